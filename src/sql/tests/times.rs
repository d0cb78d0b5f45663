//! TIME, DATE, TIMESTAMP and BOOLEAN columns beside what is written for them: other units, more digits, later years.

use super::*;

/// Two files with TIMEs of the morning and of the evening, and with moments of today and of the last day there is.
async fn times() -> (TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let columns = [
        ("id", "INT"),
        ("t0", "TIME(0)"),
        ("t3", "TIME(3)"),
        ("d", "DATE"),
        ("s3", "TIMESTAMP(3)"),
        ("s9", "TIMESTAMP(9)"),
        ("l3", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("l9", "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
        ("b", "BOOLEAN"),
    ];
    let spec = TableSpec::new(&columns).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let row = |id: i32, time: &str, day: &str, far: &str, truth: bool| {
        let (near, far) = (format!("{day} {time}"), format!("{far} {time}"));
        json!({
            "id": id, "t0": &time[..8], "t3": time, "d": &far[..10], "s3": far, "s9": near, "l3": far, "l9": near,
            "b": truth,
        })
    };
    let morning = row(1, "08:00:00.123", "2024-02-29", "2024-02-29", true);
    table.append(&[morning, row(2, "09:30:00.000", "2024-03-01", "2024-03-01", false), json!({"id": 9})]).unwrap();
    table.append(&[row(3, "20:15:30.500", "2024-03-01", "9999-12-31", true)]).unwrap();
    let session = session_of(&dir).await;
    (dir, session)
}

async fn ids(session: &Session, condition: &str) -> String {
    rows(session, &format!("SELECT id FROM t WHERE {condition}")).await.join(" ")
}

#[tokio::test]
async fn times_are_compared_with_every_digit_that_is_written() {
    let (_dir, session) = times().await;
    for (condition, expected) in [
        ("t3 < TIME '10:00:00'", "1 2"),
        ("t0 = TIME '08:00:00'", "1"),
        ("TIME '08:00:00.123' = t3", "1"),
        ("t3 < TIME '08:00:00.1239'", "1"),
        ("t3 >= TIME '08:00:00.1239'", "2 3"),
        ("t3 = TIME '08:00:00.1239'", ""),
        ("t3 <> TIME '08:00:00.1239'", "1 2 3"),
        ("t3 IS DISTINCT FROM TIME '08:00:00.1239'", "1 2 3 9"),
        ("t3 IS NOT DISTINCT FROM TIME '08:00:00.123'", "1"),
        ("t3 < '08:00:00.1239'", "1"),
        ("t3 BETWEEN TIME '08:00:00.123' AND TIME '09:30:00.0001'", "1 2"),
        ("t3 NOT BETWEEN '08:00:00.1231' AND '09:30:00'", "1 3"),
        ("t3 IN (TIME '09:30:00', TIME '20:15:30.5001', NULL)", "2"),
        ("t3 NOT IN (TIME '09:30:00', TIME '20:15:30.5001')", "1 3"),
        ("t0 = t3", "2"),
        ("t3 = CAST('20:15:30.500' AS TIME)", "3"),
        ("t3 = CAST('20:15:30.500' AS TIME(3))", "3"),
        ("t3 >= TIME(0) '20:15:30.900'", "3"),
        ("t3 IN (SELECT TIME '20:15:30.5')", "3"),
        ("t3 = (SELECT max(TIME '20:15:30.5'))", "3"),
        ("CASE t3 WHEN TIME '20:15:30.5' THEN true ELSE false END", "3"),
        ("coalesce(t3, TIME '00:00:00') < TIME '09:00:00'", "1 9"),
        ("id IN (SELECT x.id FROM t x JOIN (VALUES (TIME '09:30:00')) v(at) ON x.t3 = v.at)", "2"),
    ] {
        assert_eq!(ids(&session, condition).await, expected, "{condition}");
    }
    let both = "SELECT t3 FROM t WHERE id = 2 UNION ALL SELECT TIME '10:00:00.0001'";
    assert_eq!(rows(&session, both).await, ["09:30:00", "10:00:00.000100"]);
    let alone = "SELECT arrow_typeof(coalesce(t3, t0)), arrow_typeof(CASE WHEN id = 2 THEN t3 ELSE t0 END) FROM t \
                 WHERE id = 2";
    assert_eq!(rows(&session, alone).await, ["Time32(ms),Time32(ms)"], "times of one unit keep it");
    let digits = "SELECT CAST('10:00:00.1239' AS TIME(3)) a, TIME(0) '10:00:00.9', CAST('10:00:00.1239' AS TIME(6)) b";
    assert_eq!(rows(&session, digits).await, ["10:00:00.123,10:00:00,10:00:00.123900"]);
}

#[tokio::test]
async fn files_are_dropped_by_bounds_of_their_times() {
    let (_dir, session) = times().await;
    for (condition, read) in [
        ("t3 < TIME '10:00:00'", 1),
        ("t3 <= '08:00:00.1239'", 1),
        ("t0 > TIME '10:00:00'", 1),
        ("t3 BETWEEN TIME '10:00:00' AND TIME '11:00:00'", 0),
        ("t3 IN (TIME '20:15:30.5', NULL)", 1),
        ("t3 = TIME '08:00:00.123'", 1),
        ("s3 > TIMESTAMP '3000-01-01 00:00:00'", 1),
        ("s3 BETWEEN '2024-03-02' AND '9999-12-31 23:00:00'", 1),
        ("d > TIMESTAMP '3000-01-01 00:00:00'", 1),
        ("s9 > '9999-12-31'", 0),
        ("s9 = TIMESTAMP '9999-12-31 00:00:00'", 0),
    ] {
        let files = rows(&session, &format!("EXPLAIN FILES SELECT id FROM t WHERE {condition}")).await;
        let dropped = files.iter().filter(|file| file.contains("statistics")).count();
        assert_eq!(files.len() - dropped, read, "{condition}: {files:#?}");
    }
}

#[tokio::test]
async fn moments_beyond_nanoseconds_are_compared_and_shown() {
    let (_dir, session) = times().await;
    for (zone, last) in [("UTC", "3"), ("+08:00", "")] {
        session.run_one(&format!("SET TIME ZONE '{zone}'")).await.unwrap();
        for (condition, expected) in [
            ("s3 < TIMESTAMP '9999-12-31 00:00:00'", "1 2"),
            ("s3 BETWEEN TIMESTAMP '2024-03-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59'", "2 3"),
            ("s3 BETWEEN '2024-03-01' AND '9999-12-31'", "2"),
            ("s3 > '9999-12-31'", "3"),
            ("s3 IN (TIMESTAMP '9999-12-31 20:15:30.5', TIMESTAMP '2024-03-01 09:30:00')", "2 3"),
            ("coalesce(s3, TIMESTAMP '9999-12-31 00:00:00') = TIMESTAMP '9999-12-31 00:00:00'", "9"),
            ("s9 < TIMESTAMP '9999-12-31 00:00:00'", "1 2 3"),
            ("s9 >= '9999-12-31'", ""),
            ("s9 <> TIMESTAMP '0001-01-01 00:00:00'", "1 2 3"),
            ("s9 < TIMESTAMP '0001-01-01 00:00:00'", ""),
            ("s9 BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'", "1 2 3"),
            ("s9 NOT IN (TIMESTAMP '9999-12-31 00:00:00')", "1 2 3"),
            ("s9 IS DISTINCT FROM TIMESTAMP '9999-12-31 00:00:00'", "1 2 3 9"),
            ("l9 < '9999-12-31'", "1 2 3"),
            (
                "l3 BETWEEN TIMESTAMP '2024-03-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59'",
                if last.is_empty() { "2" } else { "2 3" },
            ),
            ("l3 BETWEEN DATE '2024-03-01' AND DATE '9999-12-31'", "2"),
            ("l3 > DATE '9999-12-31'", "3"),
            ("d <= s3", "1 2 3"),
            ("d < TIMESTAMP '9999-12-31 00:00:00'", "1 2"),
            ("d > now()", "3"),
        ] {
            assert_eq!(ids(&session, condition).await, expected, "{zone}: {condition}");
        }
    }
    assert_eq!(rows(&session, "SELECT TIMESTAMP '9999-12-31 00:00:00'").await, ["9999-12-31T00:00:00"]);
    // digits that microseconds have no place for are not cut
    assert_eq!(
        code(&session, "SELECT id FROM t WHERE s3 < TIMESTAMP '9999-12-31 23:59:59.999999999'").await,
        "Execution"
    );
}

#[tokio::test]
async fn booleans_are_compared_with_what_stands_for_them() {
    let (_dir, session) = times().await;
    for (condition, expected) in
        [("b = 1", "1 3"), ("0 = b", "2"), ("b IN (0, 1)", "1 2 3"), ("b = 'true'", "1 3"), ("b <> 'false'", "1 3")]
    {
        assert_eq!(ids(&session, condition).await, expected, "{condition}");
    }
    for condition in ["b = 2", "b = 'maybe'", "b = id"] {
        assert_eq!(code(&session, &format!("SELECT id FROM t WHERE {condition}")).await, "Plan", "{condition}");
    }
}

#[tokio::test]
async fn columns_declare_their_digits() {
    let (_dir, session) = times().await;
    for (sql, right) in [
        ("SELECT id, t0, t3, d, s3, s9, l3 FROM t", vec![None, Some(0), Some(3), None, Some(3), Some(9), Some(3)]),
        ("SELECT a FROM (SELECT t0 AS a FROM t WHERE t0 IS NOT NULL ORDER BY 1 LIMIT 2) u", vec![Some(0)]),
        ("SELECT max(t0), min(t0) OVER (), coalesce(t0, NULL) FROM t GROUP BY t0", vec![Some(0); 3]),
        ("SELECT CASE WHEN b THEN t0 ELSE t3 END, lag(t0) OVER (ORDER BY id) FROM t", vec![Some(3), Some(0)]),
        ("SELECT t0 FROM t UNION SELECT t0 FROM t", vec![Some(0)]),
        ("SELECT u.t0, v.t3 FROM t u LEFT JOIN t v ON u.id = v.id", vec![Some(0), Some(3)]),
        ("SELECT s3 + INTERVAL '1 day', s3 + INTERVAL '1 millisecond', now() FROM t", vec![Some(3), None, None]),
        ("SELECT 1", vec![None]),
    ] {
        let result = session.run_one(sql).await.unwrap();
        assert_eq!(result.digits, right, "{sql}");
    }
}

#[tokio::test]
async fn times_keep_their_digits_wherever_they_come_from() {
    let (_dir, session) = times().await;
    let finer = "TIMESTAMP '2024-02-29 08:00:00.123456'";
    let inner = format!("(SELECT id, s3, {finer} AS c FROM t) u");
    for (sql, right) in [
        (format!("SELECT id FROM {inner} WHERE s3 = c"), vec![]),
        (format!("SELECT id FROM {inner} WHERE s3 < c"), vec!["1"]),
        (format!("SELECT id FROM {inner} WHERE c BETWEEN s3 AND s3"), vec![]),
        (format!("SELECT id FROM t WHERE {finer} BETWEEN s3 AND s3"), vec![]),
        (format!("SELECT id FROM (SELECT id, CAST(s3 AS TIMESTAMP(6)) AS c FROM t) u WHERE c = {finer}"), vec![]),
        // also beside the last day there is
        (format!("SELECT id FROM t WHERE coalesce(s3, TIMESTAMP '2024-01-01 00:00:00') < {finer}"), vec!["1", "9"]),
        (format!("SELECT id FROM t WHERE greatest(s3, {finer}) = {finer}"), vec!["1", "9"]),
        (
            format!("SELECT id, coalesce(s3, TIMESTAMP '0001-01-01 00:00:00', {finer}) FROM t WHERE id IN (3, 9)"),
            vec!["3,9999-12-31T20:15:30.500", "9,0001-01-01T00:00:00"],
        ),
        (
            "SELECT CASE WHEN b THEN now() ELSE TIMESTAMP '9999-12-31 00:00:00' END FROM t WHERE id = 2".to_string(),
            vec!["9999-12-31T00:00:00Z"],
        ),
        (format!("SELECT nvl(s3, {finer}) FROM t WHERE id = 9"), vec!["2024-02-29T08:00:00.123456"]),
        (
            "SELECT coalesce(d, TIMESTAMP '9999-12-31 00:00:00') FROM t WHERE id = 3".to_string(),
            vec!["9999-12-31T00:00:00"],
        ),
    ] {
        assert_eq!(rows(&session, &sql).await, right, "{sql}");
    }
    for sql in ["SELECT id FROM t WHERE s3 > now()".to_string(), format!("SELECT id FROM {inner} WHERE s3 > c")] {
        let result = session.run_one(&sql).await.unwrap();
        assert!(result.scanned.is_some_and(|scanned| scanned.files <= 2), "{sql}");
    }
}
