//! Subqueries of EXISTS, IN, ANY and ALL outside of a WHERE.

use super::*;

const T: &str = "WITH t(k, x) AS (VALUES (1, 2), (2, 3), (NULL, 4)), u(id) AS (VALUES (1), (5)), \
                 n(id) AS (VALUES (1), (NULL))";

#[tokio::test]
async fn subqueries_are_values_of_three_kinds() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (sql, found) in [
        ("SELECT k, k IN (SELECT id FROM u) FROM t", vec!["1,true", "2,false", "NULL,NULL"]),
        ("SELECT k, k NOT IN (SELECT id FROM u) FROM t", vec!["1,false", "2,true", "NULL,NULL"]),
        ("SELECT k, k IN (SELECT id FROM n) FROM t", vec!["1,true", "2,NULL", "NULL,NULL"]),
        ("SELECT k, k IN (SELECT id FROM u WHERE id > 9) FROM t", vec!["1,false", "2,false", "NULL,false"]),
        ("SELECT x, k IN (SELECT id FROM u WHERE id < x) FROM t", vec!["2,true", "3,false", "4,NULL"]),
        ("SELECT k, EXISTS (SELECT 1 FROM u WHERE id = k) FROM t", vec!["1,true", "2,false", "NULL,false"]),
        ("SELECT NOT EXISTS (SELECT 1 FROM u WHERE id > 9)", vec!["true"]),
        (
            "SELECT k, k = ANY (SELECT id FROM u), k > ALL (SELECT id FROM u) FROM t",
            vec!["1,true,false", "2,false,false", "NULL,NULL,NULL"],
        ),
        ("SELECT CASE WHEN k IN (SELECT id FROM u) THEN 'in' ELSE 'out' END FROM t", vec!["in", "out", "out"]),
        ("SELECT k IN (SELECT id FROM u) z, count(*) FROM t GROUP BY z", vec!["NULL,1", "false,1", "true,1"]),
        ("SELECT k FROM t GROUP BY k HAVING sum(x) NOT IN (SELECT id + 1 FROM u)", vec!["2", "NULL"]),
        ("SELECT count(*) FILTER (WHERE k IN (SELECT id FROM u)), sum(x) FROM t", vec!["1,9"]),
        ("SELECT sum(CASE WHEN EXISTS (SELECT 1 FROM u WHERE id = k) THEN x END) FROM t", vec!["2"]),
        ("SELECT max(x) FROM (SELECT x FROM t ORDER BY k IN (SELECT id FROM u) LIMIT 1)", vec!["3"]),
        ("SELECT max(x) FROM (SELECT x FROM t ORDER BY EXISTS (SELECT 1 FROM u WHERE id = k) DESC LIMIT 1)", vec!["2"]),
        ("SELECT max(x) FROM (SELECT x FROM t ORDER BY (SELECT max(id) FROM u WHERE id = k) LIMIT 1)", vec!["2"]),
        ("SELECT x, row_number() OVER (ORDER BY k IN (SELECT id FROM u), k) FROM t", vec!["2,2", "3,1", "4,3"]),
        (
            "SELECT x, row_number() OVER (ORDER BY x > (SELECT max(id) - 3 FROM u), x DESC) FROM t",
            vec!["2,1", "3,3", "4,2"],
        ),
        (
            "SELECT a.x, u.id FROM t a LEFT JOIN u ON a.k IN (SELECT id FROM u) AND a.k = u.id",
            vec!["2,1", "3,NULL", "4,NULL"],
        ),
        (
            "SELECT a.x, u.id FROM t a FULL JOIN u ON a.k = u.id AND u.id NOT IN (SELECT id FROM n)",
            vec!["2,NULL", "3,NULL", "4,NULL", "NULL,1", "NULL,5"],
        ),
        ("SELECT a.x, u.id FROM t a JOIN u ON u.id > 2 AND (a.k IN (SELECT id FROM u) OR a.x > 3)", vec!["2,5", "4,5"]),
        // rows of several columns
        (
            "SELECT x, (k, x) IN (SELECT 1, 2), (k, x) NOT IN (SELECT 2, 4) FROM t",
            vec!["2,true,true", "3,false,true", "4,false,NULL"],
        ),
        ("SELECT x FROM t WHERE (k, x) IN (SELECT k, max(x) FROM t GROUP BY k)", vec!["2", "3"]),
        ("SELECT x FROM t WHERE (k, x) NOT IN (SELECT 1, 2)", vec!["3", "4"]),
        ("SELECT x FROM t WHERE (x, x) IN (SELECT max(x), max(x) FROM t)", vec!["4"]),
        ("SELECT x FROM t WHERE (k, x) IN (SELECT NULL, x FROM t)", vec![]),
    ] {
        assert_eq!(rows(&session, &format!("{T} {sql}")).await, found, "{sql}");
    }
    let sql = "SELECT a.x FROM t a LEFT JOIN u ON EXISTS (SELECT 1 FROM u b WHERE b.id = a.x + u.id)";
    assert_eq!(code(&session, &format!("{T} {sql}")).await, "CorrelatedSubquery");
}
