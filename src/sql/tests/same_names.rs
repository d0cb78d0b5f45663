//! Columns of one name in one list.

use super::*;

const T: &str = "WITH t(x, y) AS (VALUES (1, 2)), u(x) AS (VALUES (5))";

#[tokio::test]
async fn a_list_may_have_a_name_twice() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (sql, names, found) in [
        ("SELECT x, x FROM t", "x,x", vec!["1,1"]),
        ("SELECT x, y AS x FROM t", "x,x", vec!["1,2"]),
        ("SELECT *, x + 4 AS y FROM t", "x,y,y", vec!["1,2,5"]),
        ("SELECT *, x FROM t", "x,y,x", vec!["1,2,1"]),
        ("SELECT x, x::VARCHAR || 'a', x::DOUBLE FROM t ORDER BY x", "x,x || Utf8(\"a\"),x", vec!["1,1a,1.0"]),
        ("SELECT x, (SELECT x FROM u LIMIT 1) FROM t", "x,x", vec!["1,5"]),
        ("SELECT count(*), count(*), x, x FROM t GROUP BY x", "count(*),count(*),x,x", vec!["1,1,1,1"]),
        ("SELECT 1, 1", "Int64(1),Int64(1)", vec!["1,1"]),
        ("SELECT substr('abc', 2, 1), substring('abc' FROM 2 FOR 1)", "", vec!["b,b"]),
        ("SELECT DISTINCT x, x FROM t ORDER BY x", "x,x", vec!["1,1"]),
        ("SELECT * FROM (SELECT x, x, y FROM t)", "x,x,y", vec!["1,1,2"]),
        ("SELECT * FROM (SELECT * FROM t, u) s", "x,y,x", vec!["1,2,5"]),
        ("SELECT q FROM (SELECT x, y AS x FROM t) s (p, q)", "q", vec!["2"]),
        ("SELECT y FROM (SELECT x, x, y FROM t) s", "y", vec!["2"]),
        // the same under either
        ("SELECT x FROM (SELECT x, x FROM t) s", "x", vec!["1"]),
        ("SELECT x, y FROM t UNION ALL SELECT y, x + 0 FROM t", "x,y", vec!["1,2", "2,1"]),
        ("SELECT x, y FROM t UNION SELECT y, y FROM t", "x,y", vec!["1,2", "2,2"]),
        ("SELECT x, y FROM t UNION ALL (SELECT y, x + 0 FROM t ORDER BY y LIMIT 1)", "x,y", vec!["1,2", "2,1"]),
        ("SELECT t.x, u.x FROM t, u UNION SELECT x, x FROM t", "x,x", vec!["1,1", "1,5"]),
        ("SELECT x, x FROM t EXCEPT SELECT x, y FROM t", "x,x", vec!["1,1"]),
        ("SELECT x, x FROM t INTERSECT SELECT x, x FROM t", "x,x", vec!["1,1"]),
        ("SELECT sum(x) + 1, sum(x) FROM t GROUP BY y ORDER BY 1", "", vec!["2,1"]),
        ("SELECT *, * FROM (VALUES (1, 2)) v (p, q)", "p,q,p,q", vec!["1,2,1,2"]),
        ("SELECT v.*, 7, v.* FROM (VALUES (1, 2)) v (p, q)", "", vec!["1,2,7,1,2"]),
    ] {
        let sql = format!("{T} {sql}");
        let result = session.run_one(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let shown: Vec<String> = result.schema.fields().iter().map(|field| field.name().replace("t.", "")).collect();
        if !names.is_empty() {
            assert_eq!(shown.join(","), names, "{sql}");
        }
        assert_eq!(rows(&session, &sql).await, found, "{sql}");
    }
}

#[tokio::test]
async fn a_name_that_two_columns_have_is_refused_where_one_is_meant() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (sql, expected) in [
        ("SELECT x FROM (SELECT x, y AS x FROM t)", "AmbiguousColumn"),
        ("SELECT s.x FROM (SELECT * FROM t, u) s", "AmbiguousColumn"),
        ("SELECT 1 FROM (SELECT * FROM t, u) s WHERE s.x = 1", "AmbiguousColumn"),
        (", c AS (SELECT t.x, u.x FROM t, u) SELECT x FROM c", "AmbiguousColumn"),
        ("SELECT x, y AS x FROM t ORDER BY x", "AmbiguousColumn"),
        ("SELECT *, x + 1 AS y FROM t ORDER BY y", "AmbiguousColumn"),
    ] {
        assert_eq!(code(&session, &format!("{T} {sql}")).await, expected, "{sql}");
    }
    for sql in [
        "COPY (SELECT 1 AS a, 2 AS a) TO 'same-names.csv'",
        "CREATE TEMPORARY TABLE two AS SELECT 1 AS a, 2 AS a",
        "CREATE VIEW two AS SELECT 1 AS a, 2 AS a",
        "CREATE VIEW two AS SELECT * FROM (SELECT 1 AS a, 2 AS a)",
    ] {
        assert_eq!(code(&session, sql).await, "DuplicateName", "{sql}");
    }
    session.run_one("CREATE VIEW two (a, b) AS SELECT 1 AS a, 2 AS a").await.unwrap();
    assert_eq!(rows(&session, "SELECT b, a FROM two").await, ["2,1"]);
}
