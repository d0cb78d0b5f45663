//! How long does it take to plan a snapshot of 1 000 manifests and 100 000 files, cold and warm, with a partition
//! filter and without? Prints one line a case: the least of five runs in milliseconds, and the files kept.
//!
//! `cargo bench --bench plan` (`-- --quick` for a tenth of the size).

#![allow(clippy::expect_used, clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{WIDE_BUCKETS, wide_table};

fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    if std::env::args().any(|a| a == "--list" || a == "--test") {
        return;
    }
    let (manifests, files) = if quick { (100, 100) } else { (1_000, 100) };
    let dir = tempfile::tempdir().expect("temporary folder");
    wide_table(dir.path(), "d", "t", manifests, files).expect("metadata is written");
    println!("{manifests} manifests, {} files, {WIDE_BUCKETS} buckets; least of five runs", manifests * files);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
    let cases = [
        ("all files", "SELECT sum(v) FROM t"),
        ("one partition", "SELECT sum(v) FROM t WHERE dt = '2024-0050'"),
        ("one key in one partition", "SELECT sum(v) FROM t WHERE dt = '2024-0050' AND id = 4711"),
        ("one key, all partitions", "SELECT sum(v) FROM t WHERE id = 4711"),
        ("count(*) from metadata", "SELECT count(*) FROM t"),
    ];
    for (name, sql) in cases {
        let explain = format!("EXPLAIN {sql}");
        let cold = (0..5)
            .map(|_| {
                runtime.block_on(async {
                    let session = open(dir.path()).await;
                    let began = Instant::now();
                    plan(&session, &explain).await;
                    began.elapsed()
                })
            })
            .min()
            .expect("five runs");
        let warm = runtime.block_on(async {
            let session = open(dir.path()).await;
            plan(&session, &explain).await;
            let mut least = std::time::Duration::MAX;
            for _ in 0..5 {
                let began = Instant::now();
                plan(&session, &explain).await;
                least = least.min(began.elapsed());
            }
            least
        });
        println!("{name:<28} cold {:>8.1} ms   warm {:>8.1} ms", cold.as_secs_f64() * 1e3, warm.as_secs_f64() * 1e3);
    }
}

async fn open(dir: &Path) -> Session {
    let warehouse = Warehouse::open(&dir.to_string_lossy(), &Default::default()).await.expect("warehouse");
    let config = SessionConfig { database: Some("d".into()), target_partitions: Some(2), ..SessionConfig::default() };
    Session::new(&warehouse, config).await.expect("session")
}

async fn plan(session: &Session, sql: &str) {
    use futures::TryStreamExt;
    let result = session.run_one(sql).await.expect("a plan");
    let _: Vec<lakepin::arrow::array::RecordBatch> = result.stream.try_collect().await.expect("plan rows");
}
