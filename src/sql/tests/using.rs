//! `JOIN … USING`: its one column is right or refused.

use super::*;

/// `pay.a(x, v)` and `pay.b(x, w)`: one row in common, one on each side alone.
fn two_tables() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, column, own) in [("a", "v", 1), ("b", "w", 3)] {
        let spec = TableSpec::new(&[("x", "INT"), (column, "INT")]).option("bucket", "-1");
        let mut table = TableBuilder::create(dir.path(), "pay", name, &spec).unwrap();
        table.append(&[json!({"x": 2, column: 20}), json!({"x": own, column: own * 10})]).unwrap();
    }
    dir
}

#[tokio::test]
async fn what_the_column_of_using_would_leave_null_is_refused() {
    let dir = two_tables();
    let session = session_of(&dir).await;
    for sql in [
        // nobody knows the columns of `a` before the statement is planned
        "WITH a AS (SELECT * FROM a) SELECT x FROM a NATURAL FULL JOIN b",
        "WITH a AS (SELECT * FROM a) SELECT x FROM a NATURAL RIGHT JOIN b",
        // the name on the right comes first in the alphabet, and `*` takes that
        "WITH a AS (SELECT * FROM a) SELECT * FROM b NATURAL LEFT JOIN a WHERE w > 0",
        "WITH a AS (SELECT * FROM a) SELECT * EXCEPT (w) FROM b LEFT JOIN a USING (x)",
        "SELECT * REPLACE (7 AS w) FROM b LEFT JOIN a USING (x)",
    ] {
        assert_eq!(code(&session, sql).await, "MergedColumn", "{sql}");
    }
    let error = ask(&session, "WITH a AS (SELECT * FROM a) SELECT x FROM a NATURAL FULL JOIN b").await.unwrap_err();
    let hint = error.hint().unwrap_or_default();
    assert!(hint.contains("FULL JOIN … ON a.x = b.x, and coalesce(a.x, b.x) AS x"), "{hint}");
}

#[tokio::test]
async fn what_using_gives_rightly_is_given() {
    let dir = two_tables();
    let session = session_of(&dir).await;
    for (sql, found) in [
        ("SELECT x FROM a JOIN b USING (x)", vec!["2"]),
        ("SELECT x, w FROM a LEFT JOIN b USING (x)", vec!["1,NULL", "2,20"]),
        ("SELECT * FROM a LEFT JOIN b USING (x)", vec!["1,10,NULL", "2,20,20"]),
        ("SELECT x, v FROM b LEFT JOIN a USING (x)", vec!["2,20", "3,NULL"]),
        ("SELECT w FROM b LEFT JOIN a USING (x) WHERE a.x IS NULL", vec!["30"]),
        ("SELECT x, w FROM a JOIN b USING (x) WHERE x = 2", vec!["2,20"]),
        ("SELECT x, w FROM a LEFT JOIN b USING (X) WHERE X < 2 OR x > 1", vec!["1,NULL", "2,20"]),
        ("SELECT x FROM b LEFT JOIN a USING (x) WHERE x = 3", vec!["3"]),
        (
            "SELECT a.x FROM a VERSION AS OF 1 JOIN b USING (x) JOIN b c USING (x) WHERE x IN (SELECT x FROM b)",
            vec!["2"],
        ),
        ("SELECT a.* FROM b LEFT JOIN a USING (x)", vec!["2,20", "NULL,NULL"]),
        ("SELECT b.*, v FROM b LEFT JOIN a USING (x)", vec!["2,20,20", "3,30,NULL"]),
        ("SELECT * EXCEPT (w) FROM a LEFT JOIN b USING (x)", vec!["1,10", "2,20"]),
        ("SELECT v, w FROM a FULL JOIN b USING (x)", vec!["10,NULL", "20,20", "NULL,30"]),
        ("SELECT b.x, w FROM a RIGHT JOIN b USING (x)", vec!["2,20", "3,30"]),
        ("SELECT count(*) FROM a FULL JOIN b USING (x)", vec!["3"]),
        ("SELECT x FROM a FULL JOIN b USING (x)", vec!["1", "2", "3"]),
        ("SELECT x, v, w FROM a FULL JOIN b USING (X) WHERE x > 1", vec!["2,20,20", "3,NULL,30"]),
        ("SELECT * FROM a FULL JOIN b USING (x)", vec!["1,10,NULL", "2,20,20", "3,NULL,30"]),
        ("SELECT a.x, b.x FROM a FULL JOIN b USING (x)", vec!["1,NULL", "2,2", "NULL,3"]),
        ("SELECT x FROM a RIGHT JOIN b USING (x) ORDER BY x + 0", vec!["2", "3"]),
        ("SELECT * FROM a RIGHT JOIN b USING (x)", vec!["2,20,20", "3,NULL,30"]),
        ("SELECT x, count(*) FROM a RIGHT JOIN b USING (x) GROUP BY x HAVING x > 2", vec!["3,1"]),
        (
            "SELECT x, sum(w) FROM a FULL JOIN b USING (x) GROUP BY ROLLUP (x)",
            vec!["1,NULL", "2,20", "3,30", "NULL,50"],
        ),
        (
            "SELECT * FROM a FULL JOIN b USING (x) FULL JOIN (SELECT 3 AS x, 7 AS y) c USING (x)",
            vec!["1,10,NULL,NULL", "2,20,20,NULL", "3,NULL,30,7"],
        ),
        ("SELECT x FROM a RIGHT JOIN b USING (x) JOIN b c ON c.x = x", vec!["2", "3"]),
        ("SELECT x FROM a JOIN b USING (x) JOIN b c USING (x)", vec!["2"]),
        ("SELECT x, c.v FROM a RIGHT JOIN b USING (x) LEFT JOIN a c USING (x)", vec!["2,20", "3,NULL"]),
        ("SELECT * FROM b LEFT JOIN a USING (x)", vec!["2,20,20", "3,30,NULL"]),
        ("SELECT * FROM b LEFT JOIN a USING (x) CROSS JOIN (SELECT 7 AS y) k", vec!["2,20,20,7", "3,30,NULL,7"]),
        ("SELECT * FROM (SELECT x FROM a FULL JOIN b USING (x)) WHERE x > 2", vec!["3"]),
        ("SELECT v FROM a WHERE x IN (SELECT x FROM a FULL JOIN b USING (x))", vec!["10", "20"]),
        ("SELECT x FROM a VERSION AS OF 1 FULL JOIN b USING (x) UNION SELECT 9", vec!["1", "2", "3", "9"]),
        ("SELECT coalesce(a.x, b.x) AS x FROM a FULL JOIN b ON a.x = b.x", vec!["1", "2", "3"]),
        ("SELECT x FROM a NATURAL FULL JOIN b", vec!["1", "2", "3"]),
        ("SELECT * FROM a NATURAL FULL JOIN b", vec!["1,10,NULL", "2,20,20", "3,NULL,30"]),
        ("SELECT x, v FROM a NATURAL RIGHT JOIN b WHERE x > 0", vec!["2,20", "3,NULL"]),
        ("SELECT * FROM b NATURAL LEFT JOIN a WHERE w > 0", vec!["2,20,20", "3,30,NULL"]),
        ("SELECT * FROM (SELECT x, v + 1 AS w FROM a) s NATURAL FULL JOIN b", vec!["1,11", "2,20", "2,21", "3,30"]),
        (
            "SELECT * FROM a NATURAL FULL JOIN b NATURAL FULL JOIN (VALUES (3, 7)) c (x, y)",
            vec!["1,10,NULL,NULL", "2,20,20,NULL", "3,NULL,30,7"],
        ),
        ("SELECT * EXCEPT (v) FROM a FULL JOIN b USING (x)", vec!["1,NULL", "2,20", "3,30"]),
        ("SELECT * EXCEPT (x) FROM a RIGHT JOIN b USING (x)", vec!["20,20", "NULL,30"]),
        ("SELECT * EXCLUDE (x, w) FROM a FULL JOIN b USING (x)", vec!["10", "20", "NULL"]),
        ("SELECT * EXCEPT (w) FROM b LEFT JOIN a USING (x)", vec!["2,20", "3,NULL"]),
        ("SELECT * EXCEPT (v) FROM b LEFT JOIN a USING (x)", vec!["2,20", "3,30"]),
        // in a subquery, where no relation of its own has the name
        (
            "SELECT x FROM a FULL JOIN b USING (x) WHERE EXISTS (SELECT 1 FROM (VALUES (3)) c (z) WHERE z = x)",
            vec!["3"],
        ),
        (
            "SELECT x, (SELECT max(z) FROM (VALUES (1), (3)) c (z) WHERE z = x) FROM a FULL JOIN b USING (x)",
            vec!["1,1", "2,NULL", "3,3"],
        ),
        (
            "SELECT x FROM a FULL JOIN b USING (x) WHERE EXISTS (SELECT 1 FROM (VALUES (9)) c (x) WHERE x = 9)",
            vec!["1", "2", "3"],
        ),
        // the key is spoken of below the join
        ("SELECT w, u FROM a JOIN b ON a.v = b.w FULL JOIN (SELECT 20 AS v, 5 AS u) o USING (v)", vec!["20,5"]),
    ] {
        assert_eq!(rows(&session, sql).await, found, "{sql}");
    }
    // in a session that is not ours too
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    warehouse.register(&context, "lake").await.unwrap();
    let frame = context.sql("SELECT x FROM lake.pay.a FULL JOIN lake.pay.b USING (x)").await.unwrap();
    let error = Error::from_datafusion(frame.collect().await.unwrap_err());
    assert_eq!(error.code(), "MergedColumn");
}
