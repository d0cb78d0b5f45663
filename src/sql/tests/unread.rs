//! Tables of a query whose scan the optimizer folds away: each file is explained all the same.

use super::*;

/// Table, kept and rule of every file.
async fn decisions(session: &Session, sql: &str) -> Vec<(String, String, String)> {
    let (found, _) = all(session.run_one(&format!("EXPLAIN FILES {sql}")).await.unwrap()).await;
    found.into_iter().map(|row| (row[0].clone(), row[3].clone(), row[4].clone())).collect()
}

#[tokio::test]
async fn files_of_a_query_without_rows_are_explained() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "CREATE VIEW w AS SELECT * FROM t").await;
    for sql in [
        "SELECT * FROM t WHERE false",
        "SELECT * FROM t WHERE id = 1 AND id = 2",
        "SELECT * FROM t LIMIT 0",
        "SELECT count(*) FROM (SELECT * FROM t WHERE v = 1 AND v = 2)",
        "SELECT * FROM w WHERE NULL",
        "SELECT 1 WHERE EXISTS (SELECT * FROM t WHERE false)",
    ] {
        let found = decisions(&session, sql).await;
        assert_eq!(found.len(), 3, "{sql}: {found:?}");
        for (table, kept, rule) in found {
            assert_eq!((table.as_str(), kept.as_str()), ("pay.t", "false"), "{sql}");
            assert!(rule.contains("exclude each other"), "{sql}: {rule}");
        }
    }
    // one that is read beside it stays as it is, and nothing is told twice
    let found = decisions(&session, "SELECT * FROM t VERSION AS OF 1 UNION ALL SELECT * FROM t WHERE false").await;
    let kept = found.iter().filter(|(_, kept, _)| kept == "true").count();
    assert_eq!((kept, found.len()), (1, 4), "{found:?}");
    let found = decisions(&session, "SELECT * FROM t a JOIN t b ON a.id = b.id").await;
    assert!(found.iter().all(|(_, kept, _)| kept == "true"), "{found:?}");
}
