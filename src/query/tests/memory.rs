//! Little memory, and queries that are given up: the same rows or a clear error, and nothing left behind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use serde_json::{Value, json};

use super::cases::versions;
use super::{PLAIN, Way, keyed, latest, register, row, rows};
use crate::error::Result;
use crate::query::{LakeTable, LakepinOptions};
use crate::testing::builder::{FileSpec, TableBuilder};

/// A session with a pool of so many bytes.
fn limited(lake: &LakeTable, way: Way, bytes: usize) -> (SessionContext, Arc<dyn MemoryPool>) {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool)).build_arc().expect("a runtime");
    let mut config = SessionConfig::new().with_target_partitions(way.partitions).with_batch_size(way.batch_size);
    let options =
        LakepinOptions { merge_source: way.merge_source, part_rows: way.part_rows, ..LakepinOptions::default() };
    config.options_mut().extensions.insert(options);
    let context = SessionContext::new_with_config_rt(config, runtime);
    context.register_table("t", Arc::new(lake.clone())).expect("registers");
    (context, pool)
}

async fn asked(lake: &LakeTable, way: Way, bytes: usize) -> Result<Vec<String>> {
    let (context, pool) = limited(lake, way, bytes);
    let found = rows(&context, "SELECT id, v, s FROM t").await;
    emptied(&pool, &format!("{way:?}, {bytes} bytes")).await;
    found
}

/// Waits until a pool is empty: tasks that were aborted give back what they hold when they next come to rest.
async fn emptied(pool: &Arc<dyn MemoryPool>, what: &str) {
    let start = Instant::now();
    while pool.reserved() > 0 {
        assert!(start.elapsed() < Duration::from_secs(30), "{} bytes are still held: {what}", pool.reserved());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// One bucket: an old file, and many small new ones that share its keys.
fn many_runs(dir: &std::path::Path, engine: &str, files: i32) -> LakeRows {
    let mut table = TableBuilder::create(dir, "d", "t", &keyed(engine)).expect("creates");
    let text = |v: i32| format!("{v}{}", "x".repeat(30));
    let line = |id: i32, v: i32| json!({"id": id, "v": v, "s": text(v), "dt": "a"});
    let old: Vec<Value> = (0..3000).map(|id| line(id, 0)).collect();
    let mut commit = table.commit().file(FileSpec::rows(&old).level(5));
    for file in 1..=files {
        let new: Vec<Value> = (0..20).map(|at| line(at * 150 + file % 150, file)).collect();
        commit = commit.file(FileSpec::rows(&new));
    }
    commit.publish().expect("publishes");
    let newest = |id: i32| (1..=files).rev().find(|file| file % 150 == id % 150).unwrap_or(0);
    let mut wanted: Vec<String> = (0..3000).map(|id| format!("{id}|{}|{}", newest(id), text(newest(id)))).collect();
    wanted.sort();
    wanted
}

type LakeRows = Vec<String>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_limit_gives_all_rows_or_a_clear_error() {
    for (engine, merge_source) in [("deduplicate", true), ("deduplicate", false), ("partial-update", false)] {
        let dir = tempfile::tempdir().expect("a folder");
        let wanted = many_runs(dir.path(), engine, 30);
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        for partitions in [1, 3] {
            let way = Way { merge_source, partitions, part_rows: 100, ..PLAIN };
            let (mut answered, mut refused) = (Vec::new(), Vec::new());
            for bytes in (10..=24).flat_map(|bits| [1 << bits, 3 << (bits - 1)]) {
                match asked(&lake, way, bytes).await {
                    Ok(found) => {
                        assert_eq!(found, wanted, "{engine} {way:?} {bytes} bytes");
                        answered.push(bytes);
                    }
                    Err(error) => {
                        assert_eq!(error.code(), "ResourcesExhausted", "{error:?}");
                        let text = error.to_string();
                        for word in ["table: d.t", "partition", "bucket: 0", "runs: ", "bytes", "memory"] {
                            assert!(text.contains(word), "{word} in {text}");
                        }
                        refused.push(bytes);
                    }
                }
            }
            assert!(refused.first() == Some(&1024), "{engine} {way:?}: nothing was refused");
            // a batch of 8192 rows of each run is far more than this
            assert!(answered.first() < Some(&(1 << 20)), "{engine} {way:?}: answered from {answered:?} bytes on");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_hundred_files_of_one_bucket_are_read_in_a_few_megabytes() {
    for engine in ["deduplicate", "partial-update"] {
        let dir = tempfile::tempdir().expect("a folder");
        let wanted = many_runs(dir.path(), engine, 400);
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        let found = asked(&lake, Way { partitions: 2, merge_source: true, ..PLAIN }, 4 << 20).await.expect("runs");
        assert_eq!(found, wanted, "{engine}");
    }
}

#[tokio::test]
async fn b091_too_little_memory_is_an_error_that_names_the_bucket() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut builder = TableBuilder::create(dir.path(), "d", "t", &keyed("deduplicate")).expect("creates");
    for commit in 0..6 {
        builder.append(&(0..2000).map(|id| row(id, commit, "a")).collect::<Vec<_>>()).expect("appends");
    }
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let error = asked(&lake, PLAIN, 2_000).await.expect_err("too little");
    assert_eq!(error.code(), "ResourcesExhausted", "{error:?}");
    let text = error.to_string();
    for word in ["table: d.t", "partition", "bucket: 0", "runs: 6", "bytes", "compact the table"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert_eq!(asked(&lake, PLAIN, 100_000_000).await.expect("enough").len(), 2000);
}

#[tokio::test]
async fn a_cancelled_query_leaves_no_memory_behind() {
    let dir = tempfile::tempdir().expect("a folder");
    versions(dir.path());
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let context = register(PLAIN, &lake);
    let mut stream = context.sql("SELECT * FROM t").await.expect("plans").execute_stream().await.expect("starts");
    let first = tokio::time::timeout(Duration::from_millis(1), stream.next()).await;
    drop((first, stream));
    emptied(&context.runtime_env().memory_pool, "a cancelled query").await;
    assert_eq!(rows(&context, "SELECT count(*) FROM t").await.expect("runs"), ["48"]);
}

/// Tasks of this runtime, and those on its blocking threads, that are alive.
fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_dropped_in_the_middle_ends_its_tasks_and_gives_back_its_memory() {
    for (engine, merge_source) in [("deduplicate", true), ("deduplicate", false), ("partial-update", false)] {
        let dir = tempfile::tempdir().expect("a folder");
        many_runs(dir.path(), engine, 12);
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        let way = Way { merge_source, partitions: 3, part_rows: 500, batch_size: 16, ..PLAIN };
        // at another moment each time: while keys are read, while a selection is made, while rows are given out
        for moment in 0..24u64 {
            let (context, pool) = limited(&lake, way, 1 << 30);
            let before = alive();
            let frame = context.sql("SELECT id, v, s FROM t").await.expect("plans");
            let mut stream = frame.execute_stream().await.expect("starts");
            let batches = moment / 8;
            if batches == 0 {
                let _ = tokio::time::timeout(Duration::from_micros(1 << (moment % 8 * 2)), stream.next()).await;
            } else {
                for _ in 0..batches * 10 {
                    assert!(stream.next().await.is_some_and(|batch| batch.is_ok()), "{engine}: ended too early");
                }
            }
            drop(stream);
            emptied(&pool, &format!("{engine} {way:?} at moment {moment}")).await;
            let start = Instant::now();
            while alive() > before {
                assert!(start.elapsed() < Duration::from_secs(30), "{engine}: {} tasks go on", alive() - before);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}
