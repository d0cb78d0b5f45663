//! NULL where a column is NOT NULL by now: NOT NULL is true of the files written since.

use super::*;

fn spec(keyed: bool, columns: &[(&str, &str)]) -> TableSpec {
    let spec = TableSpec::new(columns).option("bucket", "1");
    if keyed { spec.primary_key(&["k"]) } else { spec.option("bucket-key", "k") }
}

#[tokio::test]
async fn nulls_from_before_not_null_are_found() {
    for keyed in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let mut table =
            TableBuilder::create(dir.path(), "pay", "t", &spec(keyed, &[("k", "INT NOT NULL"), ("v", "STRING")]))
                .unwrap();
        table.append(&[json!({"k": 1, "v": null}), json!({"k": 2, "v": "b"})]).unwrap();
        table.alter(&SchemaChange::Retype("v", "STRING NOT NULL")).unwrap();
        table.alter(&SchemaChange::Add("extra", "INT NOT NULL")).unwrap();
        let session = session_of(&dir).await;
        for merge_source in [true, false] {
            rows(&session, &format!("SET lakepin.merge_source = {merge_source}")).await;
            for (sql, right) in [
                ("SELECT count(*) FROM t WHERE v IS NULL", vec!["1"]),
                ("SELECT count(*) FROM t WHERE v IS NOT NULL", vec!["1"]),
                ("SELECT count(v), count(extra), count(*) FROM t", vec!["1,0,2"]),
                ("SELECT k, v IS NULL FROM t ORDER BY k", vec!["1,true", "2,false"]),
                ("SELECT * FROM t ORDER BY k", vec!["1,NULL,NULL", "2,b,NULL"]),
                ("SELECT k FROM t WHERE extra IS NOT NULL", vec![]),
                ("SELECT k FROM t WHERE extra IS NULL ORDER BY k", vec!["1", "2"]),
                ("SELECT k FROM t WHERE coalesce(v, 'none') = 'none'", vec!["1"]),
            ] {
                assert_eq!(rows(&session, sql).await, right, "{keyed} {merge_source} {sql}");
            }
        }
        // what is declared is still shown
        let described = rows(&session, "DESCRIBE t").await;
        assert!(described.iter().all(|row| row.split(',').nth(2) == Some("NO")), "{described:?}");
        let created = rows(&session, "SHOW CREATE TABLE t").await.join("\n");
        assert!(created.contains("`v` STRING NOT NULL") && created.contains("`extra` INT NOT NULL"), "{created}");
        // and what always was NOT NULL is so for the optimizer too
        let plan = rows(&session, "EXPLAIN SELECT * FROM t WHERE k IS NULL").await.join("\n");
        assert!(plan.contains("EmptyRelation"), "{plan}");
    }
}

#[tokio::test]
async fn nulls_from_before_not_null_are_found_inside_of_values() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [("k", "INT NOT NULL"), ("r", "ROW<a INT, b INT>"), ("l", "ARRAY<INT>"), ("m", "MAP<STRING, INT>")];
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec(true, &columns)).unwrap();
    table.append(&[json!({"k": 1, "r": {"a": null, "b": 1}, "l": [null], "m": {"x": null}})]).unwrap();
    for (name, text) in
        [("r", "ROW<a INT NOT NULL, b INT> NOT NULL"), ("l", "ARRAY<INT NOT NULL>"), ("m", "MAP<STRING, INT NOT NULL>")]
    {
        table.alter(&SchemaChange::Retype(name, text)).unwrap();
    }
    table.append(&[json!({"k": 2, "r": {"a": 1, "b": 1}, "l": [1], "m": {"x": 1}})]).unwrap();
    let session = session_of(&dir).await;
    for expression in ["r['a']", "l[1]", "m['x']", "array_max(l)", "map_values(m)[1]"] {
        let sql = format!("SELECT k FROM t WHERE {expression} IS NULL");
        assert_eq!(rows(&session, &sql).await, ["1"], "{expression}");
    }
    assert_eq!(rows(&session, "SELECT * FROM t WHERE k = 1").await, ["1,{a: NULL, b: 1},[NULL],{x: NULL}"]);
}

#[tokio::test]
async fn a_branch_that_fills_partitions_may_hold_nulls() {
    let dir = tempfile::tempdir().unwrap();
    let columns = |v| [("p", "STRING NOT NULL"), ("k", "INT NOT NULL"), ("v", v)];
    let spec = |v| TableSpec::new(&columns(v)).partitioned_by(&["p"]).primary_key(&["p", "k"]).option("bucket", "1");
    let filled = spec("STRING NOT NULL").option("scan.fallback-branch", "b");
    let mut main = TableBuilder::create(dir.path(), "pay", "t", &filled).unwrap();
    main.append(&[json!({"p": "a", "k": 1, "v": "x"})]).unwrap();
    let mut other = TableBuilder::create(dir.path(), "pay", "other", &spec("STRING")).unwrap();
    other.append(&[json!({"p": "b", "k": 2, "v": null})]).unwrap();
    make_branch(&main, &other, "b");
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, "SELECT k FROM t WHERE v IS NULL").await, ["2"]);
    assert_eq!(rows(&session, "SELECT k, v FROM t ORDER BY k").await, ["1,x", "2,NULL"]);
    assert_eq!(rows(&session, "SELECT k FROM t$branch_b WHERE v IS NULL").await, ["2"]);
}
