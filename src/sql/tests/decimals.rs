//! Decimals compared with numbers of more digits than they have.

use super::*;

async fn wide() -> (TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let columns =
        [("id", "INT"), ("a", "DECIMAL(38, 10)"), ("b", "DECIMAL(38, 20)"), ("c", "DECIMAL(10, 2)"), ("n", "BIGINT")];
    let spec = TableSpec::new(&columns).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let full = format!("{}.{}", "9".repeat(28), "9".repeat(10));
    table
        .append(&[
            json!({"id": 1, "a": "1.5000000000", "b": "1.50000000000000000000", "c": "1.24", "n": 1}),
            json!({"id": 2, "a": full, "b": "2.00000000000000000001", "c": "1.23", "n": 9223372036854775807i64}),
            json!({"id": 3, "a": format!("-{full}"), "b": "-3.00000000000000000000", "c": "-1.24", "n": -3}),
            json!({"id": 4, "a": null, "b": null, "c": null, "n": null}),
        ])
        .unwrap();
    let session = session_of(&dir).await;
    (dir, session)
}

#[tokio::test]
async fn a_comparison_with_any_literal_has_an_answer() {
    let (_dir, session) = wide().await;
    let huge = "1".repeat(60);
    let behind = format!("1.5{}1", "0".repeat(30));
    for (condition, found) in [
        ("a < 12345678901".to_string(), "1,3"),
        ("a > 1234567890123456789012345678".to_string(), "2"),
        ("a = 12345678901234567890123456789".to_string(), ""),
        ("a <> 12345678901234567890123456789".to_string(), "1,2,3"),
        ("a < 12345678901234567890123456789".to_string(), "1,2,3"),
        ("a > -12345678901234567890123456789".to_string(), "1,2,3"),
        ("a IS DISTINCT FROM 12345678901234567890123456789".to_string(), "1,2,3,4"),
        ("a > 1.2345678901234567".to_string(), "1,2"),
        ("a BETWEEN 1.49999999999 AND 1.50000000001".to_string(), "1"),
        ("a IN (1.50000000001, 1.5)".to_string(), "1"),
        ("a NOT IN (1.50000000001, 1.5, 99999999999999999999999999999)".to_string(), "2,3"),
        (format!("a < {huge}"), "1,2,3"),
        (format!("a > -{huge}.25"), "1,2,3"),
        (format!("a < {behind}"), "1,3"),
        (format!("a <= {behind} AND a > -{behind}"), "1"),
        (format!("a = {behind}"), ""),
        ("b < 9223372036854775807".to_string(), "1,2,3"),
        ("b IN (1.5, 9223372036854775807)".to_string(), "1"),
        ("b >= 2.00000000000000000000000001".to_string(), "2"),
        ("b <= 2.00000000000000000000000001".to_string(), "1,3"),
        ("n = b - 0.5".to_string(), "1"),
        ("n > b".to_string(), "2"),
        ("n = 1.00000000000000000000000000".to_string(), "1"),
        ("n > 0.99999999999999999999999999".to_string(), "1,2"),
        ("n < 9223372036854775807.00000000000000000000001".to_string(), "1,2,3"),
        ("c = '1.239'".to_string(), ""),
        ("c < '1.239'".to_string(), "2,3"),
        ("c > '1.239' AND c <= ' 1.24 '".to_string(), "1"),
        ("c IN ('1.239', '1.23')".to_string(), "2"),
        ("c BETWEEN '-1.2400001' AND '1.2349999'".to_string(), "2,3"),
        ("c <> '1000000000000'".to_string(), "1,2,3"),
        ("CASE c WHEN '1.239' THEN false WHEN '1.24' THEN true END".to_string(), "1"),
    ] {
        let sql = format!("SELECT id FROM t WHERE {condition}");
        let rows = rows(&session, &sql).await;
        assert_eq!(rows.join(","), found, "{condition}");
        // and the same where nothing is pruned
        let sql = format!("SELECT id FROM (SELECT *, {condition} AS found FROM t) q WHERE found IS TRUE");
        assert_eq!(super::rows(&session, &sql).await.join(","), found, "{condition}");
    }
}

#[tokio::test]
async fn columns_of_many_digits_meet_in_a_join() {
    let (_dir, session) = wide().await;
    let sql = "SELECT x.id, y.id FROM t x JOIN (SELECT id, n + b * 0 AS k FROM t WHERE n < 9) y ON x.b < y.k";
    assert_eq!(rows(&session, sql).await, ["3,1"]);
    let sql = "SELECT x.id FROM t x JOIN t y ON x.n = y.b + 0.5 - 1";
    assert_eq!(rows(&session, sql).await, ["1"]);
}

#[tokio::test]
async fn a_literal_of_more_digits_prunes() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("a", "DECIMAL(38, 10)"), ("v", "INT")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    for v in 1..=3 {
        table.append(&[json!({"a": format!("{v}.0000000000"), "v": v})]).unwrap();
    }
    let session = session_of(&dir).await;
    for (condition, files) in [
        ("a > 1.2345678901234567", 2),
        ("a < 12345678901234567890123456789", 3),
        ("a > 12345678901234567890123456789", 0),
        ("a = '2'", 1),
    ] {
        let result = session.run_one(&format!("SELECT v FROM t WHERE {condition}")).await.unwrap();
        assert_eq!(result.scanned.map_or(0, |scanned| scanned.files), files, "{condition}");
    }
}
