//! What can fail is computed only where other conditions leave the row.

use super::*;

const T: &str = "(VALUES (0, 1, 'x'), (1, 2, '5'), (2, 0, '7'), (NULL, 3, 'y')) t(k, j, s)";
const A: &str = "(VALUES (0, 1, 'x'), (1, 2, '5'), (2, 0, '7'), (NULL, 3, 'y')) a(k, j, s)";

#[tokio::test]
async fn a_condition_guards_what_would_fail() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let u = "(VALUES (1), (2)) u(x)";
    for (sql, right) in [
        (format!("SELECT k FROM {T} WHERE k <> 0 AND 10 / k > 5"), vec!["1"]),
        (format!("SELECT k FROM {T} WHERE 10 / k > 4 AND k <> 0"), vec!["1", "2"]),
        (format!("SELECT k FROM {T} WHERE k <> 0 AND 10 / k > 3 AND j <> 0 AND 10 / j > 3"), vec!["1"]),
        (format!("SELECT k FROM {T} WHERE s NOT IN ('x', 'y') AND CAST(s AS INT) > 5"), vec!["2"]),
        (format!("SELECT k FROM {T} WHERE k > 0 AND CAST(s AS INT) > 0 AND 35 / CAST(s AS INT) > 5"), vec!["1"]),
        (format!("SELECT k FROM {T} WHERE k = 0 OR 10 / k > 5"), vec!["0", "1"]),
        (format!("SELECT k FROM {T} WHERE NOT (k = 0 OR 10 / k > 5)"), vec!["2"]),
        (
            format!("SELECT k <> 0 AND 10 / k > 5, k = 0 OR 10 / k > 5 FROM {T}"),
            vec!["NULL,NULL", "false,false", "false,true", "true,true"],
        ),
        (format!("SELECT k FROM {T} WHERE CASE WHEN k <> 0 THEN 10 / k > 5 ELSE j = 1 END"), vec!["0", "1"]),
        (format!("SELECT k FROM {T} WHERE CASE WHEN k = 0 THEN false WHEN 10 / k > 5 THEN true END"), vec!["1"]),
        // inner queries
        (format!("SELECT k FROM (SELECT * FROM {T} WHERE k <> 0) v WHERE 10 / k > 5"), vec!["1"]),
        (format!("SELECT k FROM (SELECT k, 10 / k AS q FROM {T} WHERE k <> 0) v WHERE q > 5"), vec!["1"]),
        (
            format!("SELECT k FROM (SELECT k FROM {T} WHERE k <> 0 UNION ALL SELECT 5) v WHERE 10 / k > 1"),
            vec!["1", "2", "5"],
        ),
        (format!("SELECT k FROM (SELECT k FROM {T} GROUP BY k HAVING k <> 0) v WHERE 10 / k > 5"), vec!["1"]),
        // joins, groups
        (format!("SELECT k, x FROM {T} JOIN {u} ON k <> 0 AND 10 / k > x + 4"), vec!["1,1", "1,2"]),
        (
            format!("SELECT k, x FROM {T} LEFT JOIN {u} ON k <> 0 AND 10 / k > x * 4"),
            vec!["0,NULL", "1,1", "1,2", "2,1", "NULL,NULL"],
        ),
        (
            format!("SELECT k, x FROM {T} LEFT JOIN {u} ON k <> 0 AND 2 / k = x"),
            vec!["0,NULL", "1,2", "2,1", "NULL,NULL"],
        ),
        (format!("SELECT k, count(*) FROM {T} GROUP BY k HAVING k <> 0 AND 10 / k > 5"), vec!["1,1"]),
        (format!("SELECT count(*) FILTER (WHERE k <> 0 AND 10 / k > 5) FROM {T}"), vec!["1"]),
        (
            format!("SELECT k, sum(10 / k) FILTER (WHERE k <> 0) FROM {T} GROUP BY k"),
            vec!["0,NULL", "1,10", "2,5", "NULL,NULL"],
        ),
        (format!("SELECT sum(10 / k) FILTER (WHERE k <> 0) OVER () FROM {T} WHERE j < 3"), vec!["15", "15", "15"]),
        (format!("SELECT array_agg(10 / k ORDER BY 10 / k) FILTER (WHERE k <> 0) FROM {T}"), vec!["[5, 10]"]),
        (
            format!("SELECT sum(CASE WHEN j > 0 AND 10 / k > 3 THEN 20 / j END) FILTER (WHERE k <> 0) FROM {T}"),
            vec!["10"],
        ),
        // the values of a list
        (format!("SELECT k FROM {T} WHERE k <> 0 AND 5 IN (10 / k, 7)"), vec!["2"]),
        (
            format!("SELECT k <> 0 AND 5 IN (10 / k), k <> 0 AND 10 / k IN (j, 5) FROM {T}"),
            vec!["NULL,NULL", "false,false", "false,false", "true,true"],
        ),
        (format!("SELECT a.k, x FROM {A} JOIN {u} ON a.k <> 0 AND x + 3 IN (10 / a.k, 40)"), vec!["2,2"]),
        (
            format!("SELECT a.k, x FROM {A} LEFT JOIN {u} ON a.k > 1 AND 10 / a.k > x + 3"),
            vec!["0,NULL", "1,NULL", "2,1", "NULL,NULL"],
        ),
        (format!("SELECT a.k, x FROM {A} JOIN {u} ON 10 / a.k > x + 3 AND a.k > 1"), vec!["2,1"]),
    ] {
        assert_eq!(rows(&session, &sql).await, right, "{sql}");
    }
    // and what nothing guards fails
    for condition in ["10 / k > 5", "10 / k > 5 OR k = 0 AND j = 5", "j < 3 AND 10 / k > 5"] {
        assert_eq!(code(&session, &format!("SELECT k FROM {T} WHERE {condition}")).await, "Execution", "{condition}");
    }
}

#[tokio::test]
async fn a_condition_guards_all_inside_of_another() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (condition, right) in [
        ("k <> 0 AND (j = 1 OR 10 / k > 4)", vec!["1", "2"]),
        ("(j = 9 OR 10 / k > 4) AND k <> 0", vec!["1", "2"]),
        ("k <> 0 AND CASE WHEN j < 9 THEN 10 / k ELSE 0 END > 5", vec!["1"]),
        ("k <> 0 AND CASE WHEN j = 1 THEN 1 WHEN 10 / k > 5 THEN 2 ELSE 3 END > 1", vec!["1", "2"]),
        ("k <> 0 AND CASE 10 / k WHEN 10 THEN 1 ELSE 0 END = 1", vec!["1"]),
        // as the ones made here look, but written
        ("k <> 0 AND CASE WHEN 10 / k IS DISTINCT FROM 10 THEN NULL ELSE j END = 2", vec!["1"]),
        ("k <> 0 AND (j = 5 OR (s <> 'x' AND (10 / k > 4 OR 10 / j > 3)))", vec!["1", "2"]),
        ("j > 0 AND (s = 'z' OR k <> 0 AND 10 / k + 10 / j > 3)", vec!["1"]),
    ] {
        assert_eq!(rows(&session, &format!("SELECT k FROM {T} WHERE {condition}")).await, right, "{condition}");
        let joined = format!("SELECT k FROM {T} JOIN (VALUES (1)) o(one) ON {condition} AND one + k > 0");
        assert_eq!(rows(&session, &joined).await, right, "{condition}");
        let shown = format!("SELECT k FROM (SELECT k, {condition} AS found FROM {T}) v WHERE found");
        assert_eq!(rows(&session, &shown).await, right, "{condition}");
    }
    // conditions of inner queries, which come beside those of outer ones
    for (sql, right) in [
        (
            format!("SELECT k FROM (SELECT * FROM {T} WHERE k <> 0) v WHERE 10 / k > 4 AND (j = 9 OR 10 / k > 5)"),
            vec!["1"],
        ),
        (
            format!(
                "SELECT k FROM (SELECT * FROM (SELECT * FROM {T} WHERE k <> 0) v WHERE k <> 2) w \
                 WHERE 10 / (k - 2) < 0 AND 10 / k > 5 AND 20 / (10 / k) = 2"
            ),
            vec!["1"],
        ),
    ] {
        assert_eq!(rows(&session, &sql).await, right, "{sql}");
    }
}

#[tokio::test]
async fn functions_that_fail_are_guarded() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let from = "(VALUES (0, 'a-b'), (2, 'c-d'), (-1, 'e')) t(k, s)";
    for (call, right) in [
        ("split_part(s, '-', k)", "d"),
        ("substr(s, 1, k)", "c-"),
        ("to_timestamp_nanos(CASE WHEN k = 2 THEN '2026-01-01' ELSE s END)", "2026-01-01T00:00:00Z"),
        ("to_unixtime(CASE WHEN k = 2 THEN '1970-01-02' ELSE s END)", "86400"),
        ("regexp_replace(s, CASE WHEN k = 2 THEN '-d' ELSE '(' END, '')", "c"),
    ] {
        let sql = format!("SELECT {call} FROM {from} WHERE k = 2 AND CAST({call} AS STRING) <> ''");
        assert_eq!(rows(&session, &sql).await, [right], "{sql}");
    }
}

#[tokio::test]
async fn deep_guards_take_no_time() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let nested = |count: usize, open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let began = std::time::Instant::now();
    for condition in [
        format!("id > 0 AND {} > 0", nested(40, "abs(", "v", ")")),
        format!("id > 0 AND {} > 0", nested(40, "abs(1 + ", "v", ")")),
        format!("id > 0 AND {} >= 0", nested(40, "(", "v", " / id)")),
        format!("id > 0 AND {} > 0", nested(7, "CASE WHEN v > 1 THEN 1 + ", "10 / v", " ELSE 1 END")),
        format!("id > 0 AND {}", nested(25, "(v > 1 AND (10 / v >= 0 OR ", "v > 3", "))")),
        (0..60).map(|at| format!("10 / (v + {at}) < 5")).collect::<Vec<_>>().join(" AND "),
    ] {
        let sql = format!("SELECT count(*) FROM t WHERE {condition}");
        assert_eq!(rows(&session, &sql).await, ["2"], "{sql}");
    }
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test]
async fn other_conditions_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("day", "STRING"), ("id", "INT"), ("v", "INT")])
        .partitioned_by(&["day"])
        .option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    for (day, id) in [("1", 10), ("2", 20), ("3", 30), ("bad", 40)] {
        table.append(&[json!({"day": day, "id": id, "v": 0})]).unwrap();
    }
    let session = session_of(&dir).await;
    for (condition, files, found) in [
        ("id < 25 AND 10 / id > 0", 2, vec!["10"]),
        ("day <> 'bad' AND CAST(day AS INT) >= 2", 2, vec!["20", "30"]),
        // a partition is left out by what is said of partitions
        ("id > 0 AND day <> 'bad' AND CAST(day AS INT) = 2", 1, vec!["20"]),
        ("v <> 0 AND 10 / v > 0", 0, vec![]),
    ] {
        let result = session.run_one(&format!("SELECT id FROM t WHERE {condition}")).await.unwrap();
        assert_eq!(result.scanned.as_ref().map_or(0, |scanned| scanned.files), files, "{condition}");
        let (mut all, _) = all(result).await;
        all.sort();
        assert_eq!(all.concat(), found, "{condition}");
    }
    let plan = rows(&session, "EXPLAIN SELECT v FROM t WHERE id < 25 AND day = '1' AND v + 0.5 > 1").await.join("\n");
    assert!(!plan.contains("CASE") && plan.contains("full_filters"), "{plan}");
}
