//! Times and the session's zone: in clauses, and in columns that are instants.

use super::*;

async fn zoned(dir: &TempDir, zone: &str) -> Session {
    let session = session_of(dir).await;
    session.run_one(&format!("SET TIME ZONE '{zone}'")).await.unwrap();
    session
}

/// The snapshots are committed at 01:00, 01:01 and 01:02 of 2026-04-16, UTC.
#[tokio::test]
async fn a_zone_that_is_written_counts_inside_expressions_too() {
    let (dir, _table) = three_snapshots();
    for zone in ["UTC", "-08:00", "+08:00", "Asia/Shanghai", "America/New_York"] {
        let session = zoned(&dir, zone).await;
        for moment in [
            "TIMESTAMP '2026-04-16 01:01:30Z'",
            "(TIMESTAMP '2026-04-16 01:01:30Z')",
            "((TIMESTAMP '2026-04-16 09:01:30+08:00'))",
            "TIMESTAMP '2026-04-16 01:02:30Z' - INTERVAL '1' MINUTE",
            "CAST('2026-04-16 01:01:30Z' AS TIMESTAMP)",
            "'2026-04-16 01:01:30 UTC'::timestamp",
            "coalesce(NULL, TIMESTAMP '2026-04-16 01:01:30Z')",
            "greatest(TIMESTAMP '2026-04-16 01:01:30Z', TIMESTAMP '2026-04-16 09:00:30+08:00')",
            "date_trunc('minute', TIMESTAMP '2026-04-16 01:01:30Z')",
            "TIMESTAMPTZ '2026-04-16 01:01:30Z'",
            "to_timestamp('2026-04-16 01:01:30Z')",
            "to_timestamp_millis('2026-04-16 01:01:30Z')",
        ] {
            let sql = format!("SELECT count(*) FROM t TIMESTAMP AS OF {moment}");
            let result = session.run_one(&sql).await.unwrap_or_else(|e| panic!("{zone}: {sql}: {e:?}"));
            let (_, pins) = all(result).await;
            assert_eq!(pins.first().and_then(|pin| pin.snapshot_id), Some(2), "{zone}: {sql}");
        }
    }
}

#[tokio::test]
async fn a_watermark_is_any_number_or_an_instant() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.commit().file(FileSpec::rows(&[json!({"id": 1, "v": 1})])).watermark(5).publish().unwrap();
    table.commit().file(FileSpec::rows(&[json!({"id": 2, "v": 1})])).watermark(1_776_304_495_000).publish().unwrap();
    let session = zoned(&dir, "+08:00").await;
    for (watermark, rows_read) in [
        ("-9223372036854775808", "1"),
        ("1776304495000", "2"),
        ("1776304494999 + 1", "2"),
        ("'1776304495000'", "2"),
        ("TIMESTAMP '2026-04-16 02:54:55Z' - INTERVAL '1' HOUR", "2"),
        ("TIMESTAMP '2026-04-16 09:54:55'", "2"),
    ] {
        let sql = format!("SELECT count(*) FROM t AT (WATERMARK => {watermark})");
        assert_eq!(rows(&session, &sql).await, [rows_read], "{sql}");
    }
    assert_eq!(code(&session, "SELECT * FROM t AT (WATERMARK => 1776304495000 + 1)").await, "WatermarkNotReached");
}

/// One instant, 2024-02-29 20:34:56.123 in Shanghai, in columns of both kinds and of each unit.
async fn instants() -> (TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let columns = [
        ("id", "INT NOT NULL"),
        ("l3", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("l6", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("t3", "TIMESTAMP(3)"),
    ];
    let spec = TableSpec::new(&columns).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let row = |id: i32, instant: &str, clock: &str| json!({"id": id, "l3": instant, "l6": instant, "t3": clock});
    table
        .append(&[
            row(1, "2024-02-29 12:34:56.123", "2024-02-29 20:34:56.123"),
            row(2, "2024-02-29 16:00:00.000", "2024-03-01 00:00:00.000"),
        ])
        .unwrap();
    let session = zoned(&dir, "+08:00").await;
    (dir, session)
}

#[tokio::test]
async fn instants_are_on_the_sessions_clock_wherever_a_clock_counts() {
    let (_dir, session) = instants().await;
    let mut wrong = Vec::new();
    for column in ["l3", "l6"] {
        for (condition, found) in [
            ("COL = TIMESTAMP '2024-02-29 20:34:56.123'", vec!["1"]),
            ("COL = '2024-02-29 20:34:56.123'", vec!["1"]),
            ("COL = t3", vec!["1", "2"]),
            ("t3 >= COL", vec!["1", "2"]),
            ("COL >= DATE '2024-03-01'", vec!["2"]),
            ("COL < DATE '2024-03-01'", vec!["1"]),
            ("CAST(COL AS DATE) = DATE '2024-03-01'", vec!["2"]),
            ("CAST(COL AS TIMESTAMP) = t3", vec!["1", "2"]),
            ("COL BETWEEN TIMESTAMP '2024-02-29 20:00:00' AND TIMESTAMP '2024-02-29 21:00:00'", vec!["1"]),
            ("COL IN (TIMESTAMP '2024-03-01 00:00:00', TIMESTAMP '2024-01-01 00:00:00')", vec!["2"]),
            ("COL NOT IN (TIMESTAMP '2024-03-01 00:00:00')", vec!["1"]),
            ("extract(hour FROM COL) = 20", vec!["1"]),
            ("extract(day FROM COL) = 1", vec!["2"]),
            ("date_trunc('day', COL) = TIMESTAMP '2024-03-01 00:00:00'", vec!["2"]),
            ("date_trunc('day', COL) = COL", vec!["2"]),
            ("CAST(COL AS VARCHAR) LIKE '2024-02-29T20:34:56.123%'", vec!["1"]),
            ("to_char(COL, '%d') = '01'", vec!["2"]),
            ("COL + INTERVAL '1' MONTH = TIMESTAMP '2024-04-01 00:00:00'", vec!["2"]),
            // an instant is one whatever the zone it is written in
            ("COL = TIMESTAMPTZ '2024-02-29 20:34:56.123'", vec!["1"]),
            ("COL = TIMESTAMPTZ '2024-02-29 12:34:56.123Z'", vec!["1"]),
            ("COL = '2024-02-29T12:34:56.123Z'", vec!["1"]),
            ("COL = TIMESTAMP '2024-02-29T12:34:56.123Z'", vec!["1"]),
            ("COL BETWEEN TIMESTAMP '2024-02-29 12:34:00Z' AND TIMESTAMP '2024-02-29 20:35:00+08:00'", vec!["1"]),
            ("COL IN (TIMESTAMP '2024-02-29 12:34:56.123Z')", vec!["1"]),
            ("COL = TIMESTAMP '2024-02-29 12:34:56.123' AT TIME ZONE 'UTC'", vec!["1"]),
            ("extract(hour FROM COL AT TIME ZONE 'UTC') = 12", vec!["1"]),
            // more digits than the column has
            ("COL < TIMESTAMP '2024-02-29 20:34:56.1239999'", vec!["1"]),
            ("COL > TIMESTAMP '2024-02-29 20:34:56.1229999'", vec!["1", "2"]),
        ] {
            let condition = condition.replace("COL", column);
            let read = ask(&session, &format!("SELECT id FROM t WHERE {condition}")).await;
            let counted = ask(&session, &format!("SELECT count(*) FROM t WHERE {condition}")).await;
            let number = [found.len().to_string()];
            let right = read.as_ref().is_ok_and(|read| *read == found) && counted.as_ref().is_ok_and(|n| *n == number);
            if !right {
                wrong.push(format!("{condition}: {read:?}, {counted:?} for {found:?}"));
            }
        }
        let by_day = format!("SELECT CAST({column} AS DATE) AS day, count(*) FROM t GROUP BY 1");
        assert_eq!(rows(&session, &by_day).await, ["2024-02-29,1", "2024-03-01,1"]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn instants_beside_a_clock_time_still_leave_files_out() {
    let (_dir, session) = instants().await;
    let kept = async |condition: &str| {
        let files = rows(&session, &format!("EXPLAIN FILES SELECT id FROM t WHERE {condition}")).await;
        assert_eq!(files.len(), 1, "{files:?}");
        files.iter().filter(|file| file.split(',').nth(3) == Some("true")).count()
    };
    assert_eq!(kept("l3 >= TIMESTAMP '2024-02-29 20:34:56.123'").await, 1);
    assert_eq!(kept("l3 > TIMESTAMP '2024-03-01 00:00:00'").await, 0);
    assert_eq!(kept("l3 < TIMESTAMP '2024-02-29 20:00:00'").await, 0);
    assert_eq!(kept("l3 < DATE '2024-02-29'").await, 0);
    assert_eq!(kept("l6 >= DATE '2024-03-02'").await, 0);
}
