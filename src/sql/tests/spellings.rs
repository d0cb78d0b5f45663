//! What is grouped by sets, and spellings of other engines.

use super::*;

const T: &str = "WITH t(k, x, d) AS (VALUES (1, 2, 1.50), (2, 3, 2.25), (NULL, 4, 1.5))";

#[tokio::test]
async fn sets_group_by_expressions_that_rules_write_anew() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (sql, found) in [
        ("SELECT k IN (1, NULL), count(*) FROM t GROUP BY CUBE(k IN (1, NULL))", vec!["NULL,2", "NULL,3", "true,1"]),
        (
            "SELECT CASE k WHEN 1 THEN 1.5 ELSE 2.25e0 END, count(*) FROM t \
             GROUP BY ROLLUP(CASE k WHEN 1 THEN 1.5 ELSE 2.25e0 END)",
            vec!["1.5,1", "2.25,2", "NULL,3"],
        ),
        (
            "SELECT nullif(x, 2), sum(x), grouping(nullif(x, 2)) FROM t GROUP BY ROLLUP(nullif(x, 2))",
            vec!["3,3,0", "4,4,0", "NULL,2,0", "NULL,9,1"],
        ),
        (
            "SELECT d > 1.5e0, k, count(*) FROM t GROUP BY GROUPING SETS ((d > 1.5e0, k), (k), ())",
            vec!["NULL,1,1", "NULL,2,1", "NULL,NULL,1", "NULL,NULL,3", "false,1,1", "false,NULL,1", "true,2,1"],
        ),
        (
            "SELECT k IN (SELECT x FROM t), count(*) FROM t GROUP BY ROLLUP(k IN (SELECT x FROM t))",
            vec!["NULL,1", "NULL,3", "false,1", "true,1"],
        ),
        (
            "SELECT CASE WHEN grouping(x) = 1 THEN 'all' ELSE 'one' END, sum(d) FROM t GROUP BY ROLLUP(x) ORDER BY 1",
            vec!["all,5.25", "one,1.50", "one,1.50", "one,2.25"],
        ),
    ] {
        assert_eq!(rows(&session, &format!("{T} {sql}")).await, found, "{sql}");
    }
}

#[tokio::test]
async fn other_spellings_mean_the_same() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (sql, found) in [
        ("SELECT x FROM t MINUS SELECT 3", vec!["2", "4"]),
        ("SELECT x FROM t ORDER BY x OFFSET 1 ROWS FETCH NEXT 1 ROWS ONLY", vec!["3"]),
        ("SELECT x FROM t ORDER BY x FETCH FIRST ROW ONLY", vec!["2"]),
        ("SELECT TOP 2 x FROM t ORDER BY x DESC", vec!["3", "4"]),
        ("SELECT x FROM t WHERE x::VARCHAR RLIKE '[23]' AND x::VARCHAR NOT RLIKE '3'", vec!["2"]),
        ("SELECT x FROM t WHERE x::VARCHAR LIKE ANY ('2%', '4%')", vec!["2", "4"]),
        ("SELECT x FROM t WHERE NOT x::VARCHAR LIKE ANY ('2%', '4%')", vec!["3"]),
        ("SELECT x FROM t SEMI JOIN (SELECT 2 AS y) u ON x = y", vec!["2"]),
        ("SELECT x FROM t ANTI JOIN (SELECT 2 AS y) u ON x = y", vec!["3", "4"]),
        ("SELECT x FROM t WHERE (x + 1, k) IN ((3, 1), (4, 1))", vec!["2"]),
        ("SELECT x FROM t WHERE (x, k) IN (SELECT 2, 1 UNION SELECT 9, 9)", vec!["2"]),
        ("SELECT x FROM t WHERE (x, k) NOT IN (SELECT 2, 1 UNION ALL SELECT 9, 9)", vec!["3", "4"]),
        ("SELECT x FROM t WHERE (x, x) IN (VALUES (3, 3), (4, 2))", vec!["3"]),
    ] {
        assert_eq!(rows(&session, &format!("{T} {sql}")).await, found, "{sql}");
    }
}

#[tokio::test]
async fn what_cannot_be_computed_says_what_to_write() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT"), ("m", "MAP<STRING, INT>"), ("n", "ARRAY<INT>")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"id": 1})]).unwrap();
    let session = session_of(&dir).await;
    for (sql, hint) in [
        ("SELECT max(m) FROM t", "max(m['k'])"),
        ("SELECT id, min([m]) FROM t GROUP BY id", "any_value"),
        ("SELECT max(*) FROM t", "name the column"),
        ("SELECT id FROM t WHERE row_number() OVER () = 1", "QUALIFY"),
        ("SELECT id, e FROM t, unnest(n) AS u(e)", "SELECT id, unnest(items)"),
        ("SELECT id, (SELECT max(id) FROM t b WHERE b.id > a.id) FROM t a", "= between columns"),
        ("SELECT id, n FROM t GROUP BY id", "GROUP BY ALL"),
        ("SELECT year(now())", "extract(year FROM t)"),
        ("SELECT count(DISTINCT id, n) FROM t", "count(DISTINCT (a, b))"),
        ("SELECT id FROM t LIMIT 3 FETCH FIRST 1 ROW ONLY", "one of them"),
        ("SELECT * FROM t PIVOT (sum(id) FOR k IN (1, 2))", "sum(id) FILTER (WHERE k = 1)"),
        ("SELECT * FROM t UNPIVOT (x FOR name IN (id, k))", "'id' AS name, id AS x FROM"),
    ] {
        let error = ask(&session, sql).await.expect_err(sql);
        assert!(error.hint().unwrap_or_default().contains(hint), "{sql}: {error:?}");
        assert!(
            !error.message().contains("Physical plan") && !error.message().contains("Internal"),
            "{sql}: {error:?}"
        );
    }
    assert_eq!(rows(&session, "SELECT max(id), max(n), count(m) FROM t").await, ["1,NULL,0"]);
}
