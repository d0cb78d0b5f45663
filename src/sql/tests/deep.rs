//! Statements that nest deep are answered or refused; no stack overflows, whoever's it is.

use std::future::Future;

use super::*;

/// Runs `work` where an embedding program would: on a thread with the stack that Tokio's workers have.
fn on_a_small_stack<F: Future<Output = ()>>(work: impl FnOnce() -> F + Send + 'static) {
    let run = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work());
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

fn joined(count: usize, by: &str, term: impl Fn(usize) -> String) -> String {
    (0..count).map(term).collect::<Vec<_>>().join(by)
}

#[test]
fn long_conditions_and_lists_are_answered() {
    on_a_small_stack(|| async {
        let (dir, _table) = three_snapshots();
        let session = session_of(&dir).await;
        for (condition, found) in [
            (joined(2000, " OR ", |at| format!("id = {at} AND v < {at}")), "0"),
            (joined(2000, " OR ", |at| format!("v = {} AND id > 1", at + 20)), "2"),
            (joined(120, " AND ", |at| format!("(v <> {at} OR id < 0)")), "0"),
            (format!("id IN ({})", joined(20_000, ",", |at| at.to_string())), "2"),
            (format!("v = 30{}", " + 0".repeat(100)), "1"),
        ] {
            let sql = format!("SELECT count(*) FROM t WHERE {condition}");
            assert_eq!(rows(&session, &sql).await, [found], "{}", &sql[..80]);
        }
        assert_eq!(rows(&session, &joined(150, " UNION ALL ", |_| "SELECT 1".into())).await.len(), 150);
        // a DataFrame is planned and computed where its owner does that
        let context = SessionContext::new();
        session.warehouse().register(&context, "lake").await.unwrap();
        let condition = joined(500, " OR ", |at| format!("v = {at} AND id > 2"));
        let sql = format!("SELECT v{} FROM lake.pay.t WHERE {condition}", " + 1".repeat(60));
        let frame = session.warehouse().sql(&context, &sql).await.unwrap();
        assert_eq!(texts(&frame.collect().await.unwrap()), [["90"]]);
    });
}

#[test]
fn what_is_too_deep_for_the_stack_is_refused() {
    on_a_small_stack(|| async {
        let (dir, _table) = three_snapshots();
        let session = session_of(&dir).await;
        let context = SessionContext::new();
        session.warehouse().register(&context, "lake").await.unwrap();
        for sql in [
            format!("SELECT {}", joined(50_000, "+", |_| "1".into())),
            format!("SELECT {}", joined(20_000, "||", |_| "'a'".into())),
            format!("EXPLAIN SELECT {}", joined(20_000, "||", |_| "'a'".into())),
            format!("EXPLAIN FILES SELECT id{} FROM t", " + 1".repeat(20_000)),
            format!("CREATE VIEW deep AS SELECT id{} AS i FROM t", " + 1".repeat(20_000)),
            format!("PREPARE p AS SELECT $1{}", " + 1".repeat(20_000)),
            format!("SELECT a{}", " IS NULL".repeat(20_000)),
            joined(20_000, " UNION ALL ", |_| "SELECT 1".into()),
            format!("SELECT * FROM t WHERE {}", joined(50_000, " AND ", |at| format!("v <> {at}"))),
            format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000)),
            format!("SELECT {}", joined(1_000_000, "+", |_| "1".into())),
        ] {
            assert_eq!(code(&session, &sql).await, "StatementTooDeep", "{}", &sql[..60]);
            let error = session.warehouse().sql(&context, &sql).await.map(drop).unwrap_err();
            assert_eq!(error.code(), "StatementTooDeep", "{}", &sql[..60]);
        }
    });
}

#[test]
fn what_queries_and_views_add_up_to_is_refused_too() {
    on_a_small_stack(|| async {
        let (dir, _table) = three_snapshots();
        let session = session_of(&dir).await;
        rows(&session, &format!("CREATE VIEW v0 AS SELECT id{} AS id FROM t", " + 1".repeat(100))).await;
        assert_eq!(rows(&session, "SELECT max(id) FROM v0").await, ["103"]);
        // how much a stack holds differs by build: what it holds is answered, and all that is more is refused
        let mut refused = None;
        for at in 1..100 {
            let one = at - 1;
            rows(&session, &format!("CREATE VIEW v{at} AS SELECT id{} AS id FROM v{one}", " + 1".repeat(100))).await;
            match ask(&session, &format!("SELECT max(id) FROM v{at}")).await {
                Ok(found) => assert_eq!(found, [format!("{}", 103 + 100 * at)]),
                Err(error) => {
                    refused = Some((at, error.code()));
                    break;
                }
            }
        }
        let Some((at, "StatementTooDeep")) = refused else { panic!("{refused:?}") };
        let nested = (0..at + 2)
            .fold("t".to_string(), |inner, at| format!("(SELECT id{} AS id FROM {inner} x{at})", " + 1".repeat(100)));
        assert_eq!(code(&session, &format!("SELECT id FROM {nested} y")).await, "StatementTooDeep");
        let chain = |count| {
            let terms = joined(count, ", ", |at| match at {
                0 => "c0 AS (SELECT id FROM t)".into(),
                _ => format!("c{at} AS (SELECT id + 1 AS id FROM c{} WHERE id > 0)", at - 1),
            });
            format!("WITH {terms} SELECT max(id) FROM c{}", count - 1)
        };
        assert_eq!(rows(&session, &chain(20)).await, ["22"]);
        assert_eq!(code(&session, &chain(100 * at)).await, "StatementTooDeep");
    });
}
