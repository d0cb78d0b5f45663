//! Subqueries by the three values of SQL: what is in none of their rows, and what is NULL in one.

use super::*;

/// `pay.n(k, d)` without NULL, `pay.u(b, d)` with them, and an empty `pay.e(b)`.
fn tables() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("k", "BIGINT NOT NULL"), ("d", "INT")]).primary_key(&["k"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "n", &spec).unwrap();
    table.append(&[json!({"k": 1, "d": 1}), json!({"k": 2, "d": 2}), json!({"k": 3, "d": null})]).unwrap();
    let spec = TableSpec::new(&[("b", "INT"), ("d", "INT")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "u", &spec).unwrap();
    table.append(&[json!({"b": 1, "d": 1}), json!({"b": null, "d": 0})]).unwrap();
    TableBuilder::create(dir.path(), "pay", "e", &TableSpec::new(&[("b", "INT")]).option("bucket", "-1")).unwrap();
    dir
}

const T: &str = "(VALUES (1), (2), (NULL)) t(a)";

#[tokio::test]
async fn the_value_of_a_subquery_without_a_row_is_null() {
    let dir = tables();
    let session = session_of(&dir).await;
    for (sql, found) in [
        ("SELECT count(*) FROM n WHERE (SELECT k FROM n WHERE k = 9) IS NULL", vec!["3"]),
        ("SELECT count(*) FROM n WHERE (SELECT k FROM n WHERE k = 9) IS NOT NULL", vec!["0"]),
        ("SELECT coalesce((SELECT k FROM n WHERE k = 9), -1)", vec!["-1"]),
        ("SELECT coalesce((SELECT k FROM n WHERE k = -5 LIMIT 1), 0)", vec!["0"]),
        ("SELECT (SELECT k FROM n WHERE k = 2)", vec!["2"]),
        ("SELECT (SELECT k AS q FROM n WHERE k = 9) IS NULL AS missing", vec!["true"]),
        ("SELECT count(*) FROM n WHERE (SELECT 7 FROM e) IS NULL", vec!["3"]),
        ("SELECT (SELECT count(*) FROM n HAVING count(*) > 5) IS NULL", vec!["true"]),
        ("SELECT (SELECT count(*) FROM n LIMIT 0) IS NULL", vec!["true"]),
        ("SELECT (SELECT count(*) FROM e) IS NULL", vec!["false"]),
        ("SELECT k FROM n WHERE (SELECT count(*) FROM u WHERE u.d = n.d) = 0", vec!["2", "3"]),
        (
            "SELECT k, (SELECT count(*) FROM u WHERE u.d = n.d GROUP BY u.d) IS NULL FROM n",
            vec!["1,false", "2,true", "3,true"],
        ),
        // the columns above know it too
        ("SELECT count(*) FROM (SELECT (SELECT k FROM n WHERE k = 9) AS s FROM n) WHERE s IS NULL", vec!["3"]),
        (
            "SELECT k FROM (SELECT k, (SELECT k FROM n WHERE k = 9) AS s FROM n) q WHERE EXISTS \
             (SELECT 1 FROM u WHERE q.s IS NULL AND u.b = q.k)",
            vec!["1"],
        ),
    ] {
        assert_eq!(rows(&session, sql).await, found, "{sql}");
    }
    // in a session that is not ours too
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    warehouse.register(&context, "lake").await.unwrap();
    let sql = "SELECT k FROM lake.pay.n WHERE (SELECT k FROM lake.pay.n WHERE k = 9) IS NULL";
    let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
}

#[tokio::test]
async fn not_in_asks_the_rows_that_belong_to_the_row_outside() {
    let dir = tables();
    let session = session_of(&dir).await;
    for (sql, found) in [
        (
            "SELECT a FROM (VALUES (1), (2)) t(a) WHERE a NOT IN (SELECT c FROM (VALUES (1, 1), (NULL, 0)) u(c, d) \
             WHERE d >= a)",
            vec!["2"],
        ),
        (
            "SELECT a FROM (VALUES (1), (NULL)) t(a) WHERE a NOT IN (SELECT c FROM (VALUES (1, 1), (5, 0)) u(c, d) \
             WHERE d >= a)",
            vec!["NULL"],
        ),
        // the same table inside, under the same name
        ("SELECT k FROM n WHERE d NOT IN (SELECT d FROM n WHERE k > 1) OR k = 9", vec![]),
        ("SELECT k FROM n WHERE d NOT IN (SELECT d FROM n WHERE k = 2) OR k = 9", vec!["1"]),
        ("SELECT k FROM n WHERE k > ALL (SELECT k FROM n WHERE k < 3)", vec!["3"]),
        ("SELECT k FROM n WHERE k NOT IN (SELECT b FROM u WHERE u.d = n.d)", vec!["2", "3"]),
        ("SELECT k FROM n WHERE 5 NOT IN (SELECT b FROM u)", vec![]),
        ("SELECT k FROM n WHERE 5 NOT IN (SELECT b FROM u WHERE b > 0)", vec!["1", "2", "3"]),
        ("SELECT k FROM n WHERE NULL NOT IN (SELECT b FROM e)", vec!["1", "2", "3"]),
        ("SELECT k FROM n WHERE d NOT IN (SELECT b FROM e)", vec!["1", "2", "3"]),
        // neither column has NULL, but the value may be
        ("SELECT k FROM n WHERE nullif(k, 2) NOT IN (SELECT k FROM n WHERE k = 1)", vec!["3"]),
    ] {
        assert_eq!(rows(&session, sql).await, found, "{sql}");
    }
}

#[tokio::test]
async fn what_is_compared_may_be_brought_to_another_type() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let (outer, inner) = ("(VALUES (CAST(1 AS BIGINT)), (2)) o(y)", "(VALUES (CAST(1 AS SMALLINT))) i(x)");
    for (condition, right) in [
        ("1 IN (SELECT x FROM {inner} WHERE x <> o.y)", vec!["2"]),
        ("1 NOT IN (SELECT x FROM {inner} WHERE x <> o.y)", vec!["1"]),
        ("y - 1 IN (SELECT x FROM {inner} WHERE x <> o.y)", vec!["2"]),
        ("1 = ANY (SELECT x FROM {inner} WHERE x <> o.y)", vec!["2"]),
        ("y = 1 OR 1 IN (SELECT x FROM {inner} WHERE x <> o.y)", vec!["1", "2"]),
    ] {
        let sql = format!("SELECT y FROM {outer} WHERE {}", condition.replace("{inner}", inner));
        assert_eq!(rows(&session, &sql).await, right, "{sql}");
    }
}

#[tokio::test]
async fn in_is_null_where_nobody_knows() {
    let dir = tables();
    let session = session_of(&dir).await;
    let inside = "(SELECT b FROM u)";
    for (condition, found) in [
        (format!("a NOT IN {inside} OR a = 5"), vec![]),
        (format!("(a IN {inside}) IS NULL"), vec!["2", "NULL"]),
        (format!("(a NOT IN {inside}) IS NULL"), vec!["2", "NULL"]),
        (format!("(a IN {inside}) IS NOT TRUE"), vec!["2", "NULL"]),
        (format!("(a NOT IN {inside}) IS NOT FALSE"), vec!["2", "NULL"]),
        (format!("NOT (a IN {inside})"), vec![]),
        (format!("NOT (a IN {inside} AND a > 0)"), vec![]),
        (format!("NOT (a NOT IN {inside} OR a > 5)"), vec!["1"]),
        (format!("CASE WHEN a NOT IN {inside} THEN true ELSE false END"), vec![]),
        (format!("CASE WHEN a IN {inside} THEN false ELSE true END"), vec!["2", "NULL"]),
        (format!("coalesce(a IN {inside}, true)"), vec!["1", "2", "NULL"]),
        (format!("(a <> ALL {inside}) IS NULL"), vec!["2", "NULL"]),
        (format!("NOT (a = ANY {inside})"), vec![]),
        (format!("a <= ALL {inside} OR a = 5"), vec![]),
        ("a > ALL (SELECT b FROM e)".to_string(), vec!["1", "2", "NULL"]),
        ("NOT (a IN (SELECT b FROM e) OR a = 1)".to_string(), vec!["2"]),
        ("a NOT IN (SELECT b FROM e) OR a = 5".to_string(), vec!["1", "2", "NULL"]),
        ("a NOT IN (SELECT k FROM n WHERE k > 1) OR a = 5".to_string(), vec!["1"]),
        ("a + (SELECT 0) NOT IN (SELECT b FROM u WHERE b > 0) OR a = 5".to_string(), vec!["2"]),
    ] {
        let sql = format!("SELECT a FROM {T} WHERE {condition}");
        assert_eq!(rows(&session, &sql).await, found, "{sql}");
    }
}

#[tokio::test]
async fn an_aggregate_has_a_row_for_every_row_outside() {
    let dir = tables();
    let session = session_of(&dir).await;
    let (c, five) = ("FROM (VALUES (1), (5)) u(c) WHERE c = a", "(VALUES (0), (1)) t(a)");
    for (sql, found) in [
        (format!("SELECT a FROM {T} WHERE EXISTS (SELECT max(c) {c})"), vec!["1", "2", "NULL"]),
        (format!("SELECT a FROM {T} WHERE NOT EXISTS (SELECT max(c) {c})"), vec![]),
        (format!("SELECT a FROM {five} WHERE a IN (SELECT count(*) {c})"), vec!["0", "1"]),
        (format!("SELECT a FROM {five} WHERE a NOT IN (SELECT count(*) {c})"), vec![]),
        (format!("SELECT a FROM {five} WHERE a < ALL (SELECT count(*) {c}) OR a = 1"), vec!["1"]),
        (format!("SELECT a FROM {five} WHERE (a = ANY (SELECT max(c) {c})) IS NULL"), vec!["0"]),
        (
            "SELECT k FROM n WHERE EXISTS (SELECT 1 FROM u WHERE u.d = n.d HAVING count(*) = 0)".to_string(),
            vec!["2", "3"],
        ),
        (
            "SELECT k FROM n WHERE EXISTS (SELECT c FROM (SELECT count(*) AS c FROM u WHERE u.d = n.d) WHERE c = 0)"
                .to_string(),
            vec!["2", "3"],
        ),
        (
            "SELECT k FROM n WHERE k IN (SELECT count(*) FROM u WHERE u.d = n.d HAVING max(b) > 0)".to_string(),
            vec!["1"],
        ),
        (
            "SELECT k FROM n WHERE k NOT IN (SELECT count(*) FROM u WHERE u.d = n.d HAVING count(*) > 0)".to_string(),
            vec!["2", "3"],
        ),
        (
            "SELECT k, (SELECT count(*) FROM u WHERE u.d = n.d HAVING true) FROM n".to_string(),
            vec!["1,1", "2,0", "3,0"],
        ),
        (
            "SELECT k, (SELECT max(b) FROM u WHERE u.d = n.d HAVING count(*) <> 1) AS p FROM n".to_string(),
            vec!["1,NULL", "2,NULL", "3,NULL"],
        ),
        ("SELECT k FROM n WHERE EXISTS (SELECT max(b) FROM e)".to_string(), vec!["1", "2", "3"]),
        ("SELECT k FROM n WHERE EXISTS (SELECT count(*) FROM e HAVING count(*) > 0)".to_string(), vec![]),
        ("SELECT k FROM n WHERE EXISTS (SELECT 1 FROM u LIMIT 0)".to_string(), vec![]),
        ("SELECT k FROM n WHERE EXISTS (SELECT 1 FROM u WHERE u.d = n.d LIMIT 0)".to_string(), vec![]),
        ("SELECT k FROM n WHERE EXISTS (SELECT 1 FROM u WHERE u.d = n.d LIMIT 1)".to_string(), vec!["1"]),
        ("SELECT k FROM n WHERE EXISTS (SELECT 1 FROM u OFFSET 2)".to_string(), vec![]),
    ] {
        assert_eq!(rows(&session, &sql).await, found, "{sql}");
    }
    for sql in [
        "SELECT k FROM n WHERE EXISTS (SELECT 1 FROM (SELECT count(*) AS c FROM u WHERE u.d = n.d) s JOIN e ON e.b = s.c)",
        "SELECT k FROM n WHERE EXISTS (SELECT 1 FROM u WHERE u.d = n.d OFFSET 2)",
        "SELECT k FROM n WHERE k NOT IN (SELECT b FROM u WHERE u.d = n.d LIMIT 1)",
        "SELECT k FROM n WHERE k IN (SELECT row_number() OVER () FROM u WHERE u.d = n.d)",
        "SELECT k FROM n WHERE (SELECT sum(c) FROM (SELECT count(*) AS c FROM u WHERE u.d = n.d)) = 0",
    ] {
        assert_eq!(code(&session, sql).await, "CorrelatedSubquery", "{sql}");
    }
}

#[tokio::test]
async fn what_is_right_stays_a_join_by_hash() {
    let dir = tables();
    let session = session_of(&dir).await;
    for (sql, join) in [
        ("SELECT k FROM n WHERE d IN (SELECT b FROM u)", "LeftSemi Join: n.d = __correlated_sq_1.b"),
        ("SELECT k FROM n WHERE d NOT IN (SELECT b FROM u)", "LeftAnti Join: n.d = __correlated_sq_1.b"),
        ("SELECT k FROM n WHERE NOT d IN (SELECT b FROM u)", "LeftAnti Join: n.d = __correlated_sq_1.b"),
        ("SELECT k FROM n WHERE d IN (SELECT b FROM u) OR k = 1", "LeftMark Join: n.d = __correlated_sq_"),
        ("SELECT k FROM n WHERE d NOT IN (SELECT b FROM u) OR k = 1", "LeftMark Join: n.d = __correlated_sq_"),
    ] {
        let plan = rows(&session, &format!("EXPLAIN {sql}")).await.join("\n");
        assert!(plan.contains(join) && plan.contains("HashJoinExec"), "{sql}\n{plan}");
    }
}
