//! Text columns beside numbers: refused where it stands, never a cast that fails at some row.

use super::*;

#[tokio::test]
async fn a_text_column_beside_a_number_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("dt", "STRING"), ("name", "STRING"), ("v", "INT")])
        .partitioned_by(&["dt"])
        .option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"dt": "2026-04-16", "name": "007", "v": 1})]).unwrap();
    let session = session_of(&dir).await;
    for (sql, column) in [
        ("SELECT * FROM t WHERE dt = 20260416", 23),
        ("SELECT * FROM t WHERE v = 1 AND 2026.5 < t.dt", 42),
        ("SELECT * FROM t WHERE dt = 2026-04-16", 23),
        ("SELECT * FROM t WHERE dt IN ('2026-04-16', 20260417)", 23),
        ("SELECT * FROM t WHERE NOT name BETWEEN 1 AND '2'", 27),
        ("SELECT CASE dt WHEN 1 THEN 2 END FROM t", 13),
        ("SELECT * FROM t WHERE v IN (SELECT v FROM t WHERE name IS DISTINCT FROM -7)", 51),
        ("SELECT count(*) FILTER (WHERE name >= CAST(7 AS INT)) FROM t", 31),
        ("SELECT a.v FROM t a JOIN t b ON a.v = b.v AND b.name = 7", 47),
        ("EXPLAIN FILES SELECT * FROM t WHERE dt = 20260416", 37),
    ] {
        let error = session.run_one(sql).await.map(drop).expect_err(sql);
        let found = error.context().iter().find(|(name, _)| *name == "column").map(|(_, at)| at.as_str());
        assert_eq!((error.code(), found), ("TextAndNumber", Some(column.to_string().as_str())), "{sql}: {error:?}");
        assert!(error.hint().unwrap().contains("in quotes"), "{error:?}");
        assert!(!error.to_string().contains("64("), "values as they are written: {error}");
    }
    for (sql, found) in [
        ("SELECT v FROM t WHERE dt = '2026-04-16' AND name = '007'", vec!["1"]),
        ("SELECT v FROM t WHERE CAST(name AS INT) = 7 AND TRY_CAST(dt AS INT) IS NULL", vec!["1"]),
        ("SELECT v FROM t WHERE v = '1' AND length(dt) = 10 AND dt || 1 = '2026-04-161' AND name <> NULL", vec![]),
        ("SELECT v FROM t WHERE substr(dt, 1, 4) = 2026", vec!["1"]),
    ] {
        assert_eq!(rows(&session, sql).await, found, "{sql}");
    }
    // texts of which one is no number
    let error = ask(&session, "SELECT v FROM t WHERE substr(dt, 1, 5) = 2026").await.unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("in quotes")), "{error:?}");
}
