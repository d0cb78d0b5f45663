//! Little memory, and queries that are given up: the same rows or a clear error, and nothing left behind.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use serde_json::{Value, json};

use super::cases::versions;
use super::{PLAIN, Way, keyed, latest, register, row, rows, texts};
use crate::error::Result;
use crate::query::{LakeTable, LakeView, QueryEnv};
use crate::spec::CommitKind;
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

/// A session with a pool of so many bytes.
fn limited(lake: &LakeTable, way: Way, bytes: usize) -> (SessionContext, Arc<dyn MemoryPool>) {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
    (pooled(lake, way, &pool), pool)
}

/// A session with this pool.
fn pooled(lake: &LakeTable, way: Way, pool: &Arc<dyn MemoryPool>) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(pool)).build_arc().expect("a runtime");
    let mut config = SessionConfig::new().with_target_partitions(way.partitions).with_batch_size(way.batch_size);
    config.options_mut().extensions.insert(way.options());
    let context = SessionContext::new_with_config_rt(config, runtime);
    context.register_table("t", Arc::new(lake.clone())).expect("registers");
    context
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

/// A pool that refuses some requests by their number, and no other.
#[derive(Debug, Default)]
struct Refusing {
    refused: std::ops::Range<usize>,
    asked: AtomicUsize,
    used: AtomicUsize,
}

impl fmt::Display for Refusing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refusing")
    }
}

impl MemoryPool for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::SeqCst);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::SeqCst);
    }

    fn try_grow(&self, _reservation: &MemoryReservation, additional: usize) -> DfResult<()> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        if self.refused.contains(&number) {
            return Err(DataFusionError::ResourcesExhausted(format!("request {number} is refused")));
        }
        self.used.fetch_add(additional, Ordering::SeqCst);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }
}

/// What the nodes of a plan counted under a name.
pub(super) fn counted(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name(name)).map_or(0, |value| value.as_usize());
    own + plan.children().into_iter().map(|child| counted(child, name)).sum::<usize>()
}

/// Rows, and how often a selection was made in little memory and a merge begun again.
async fn told(context: &SessionContext) -> Result<(Vec<String>, usize, usize)> {
    let plan = context.sql("SELECT id, v, s FROM t").await?.create_physical_plan().await?;
    let batches = collect(Arc::clone(&plan), context.task_ctx()).await?;
    let counts = ["sections_selected_in_little_memory", "merges_begun_again"].map(|name| counted(&plan, name));
    Ok((texts(&batches)?, counts[0], counts[1]))
}

/// One record: id, sequence field, value, whether it deletes.
type Version = (i32, i32, i32, bool);

fn file(level: i32, versions: &[Version]) -> FileSpec {
    let line = |(id, q, v, deletes): &Version| {
        let kind = if *deletes { "-D" } else { "+I" };
        json!({"id": id, "q": q, "v": v, "s": format!("s{v}"), "_ROW_KIND": kind})
    };
    FileSpec::rows(&versions.iter().map(line).collect::<Vec<_>>()).level(level)
}

fn sequenced(option: &str) -> TableSpec {
    TableSpec::new(&[("id", "INT NOT NULL"), ("q", "INT"), ("v", "INT"), ("s", "STRING")])
        .primary_key(&["id"])
        .option("bucket", "1")
        .option("sequence.field", "q")
        .option(option, "true")
}

/// Rows of keys with their live value, as they are shown.
fn shown(values: impl Iterator<Item = (i32, i32)>) -> Vec<String> {
    let mut rows: Vec<String> = values.map(|(id, v)| format!("{id}|{v}|s{v}")).collect();
    rows.sort();
    rows
}

/// Runs of two files on two levels above 0, deletes among the rows, some rows named by vectors.
fn vectors(dir: &Path) -> Vec<String> {
    let mut table = TableBuilder::create(dir, "d", "t", &sequenced("deletion-vectors.enabled")).expect("creates");
    let old: Vec<Version> = (0..1200).map(|id| (id, 9, 1, false)).collect();
    let new: Vec<Version> = (0..1200).step_by(3).map(|id| (id, 1, 2, id % 4 == 0)).collect();
    let mut commit = table.commit().kind(CommitKind::Compact);
    for (level, rows, length) in [(5, &old, 600), (4, &new, 250)] {
        for part in rows.chunks(length) {
            // unknown: then the levels are merged
            commit = commit.file(file(level, part).delete_count(None));
        }
    }
    commit.publish().expect("publishes");
    let live = table.live_files().expect("files");
    let mut commit = table.commit().kind(CommitKind::Compact);
    for entry in live {
        let gone: Vec<u64> = match entry.file.level {
            5 => (0..600).step_by(7).collect(),
            _ => (0..150).step_by(5).collect(),
        };
        commit = commit.delete_positions(&entry.file.file_name, &gone);
    }
    commit.publish().expect("publishes");
    let values = (0..1200).filter_map(|id: i32| {
        let (in_old, in_new) = (id % 600, id / 3 % 250);
        if id % 3 == 0 && (in_new % 5 != 0 || in_new >= 150) {
            // the lower level counts, whatever the sequence says
            return (id % 4 != 0).then_some((id, 2));
        }
        (in_old % 7 != 0).then_some((id, 1))
    });
    shown(values)
}

/// Runs with files of levels 3 and 5 in turn, and level 0 over both.
fn looked_up(dir: &Path) -> Vec<String> {
    let mut table = TableBuilder::create(dir, "d", "t", &sequenced("force-lookup")).expect("creates");
    let rows = |ids: std::ops::RangeInclusive<i32>, step: usize, q: i32, v: i32| -> Vec<Version> {
        ids.step_by(step).map(|id| (id, q, v, false)).collect()
    };
    table
        .commit()
        .file(file(5, &rows(0..=500, 1, 9, 5)))
        .file(file(3, &rows(0..=450, 1, 1, 3)))
        .file(file(5, &rows(1000..=1500, 1, 9, 5)))
        .file(file(3, &rows(1001..=1500, 1, 1, 3)))
        .file(file(0, &rows(0..=1500, 5, 5, 0)))
        .publish()
        .expect("publishes");
    let values = (0..=1500).filter_map(|id| {
        let three = (0..=450).contains(&id) || (1001..=1500).contains(&id);
        let five = (0..=500).contains(&id) || (1000..=1500).contains(&id);
        match (id % 5 == 0, three, five) {
            // of levels 3 and 5 only the lower one meets level 0
            (true, true, _) | (true, false, false) => Some((id, 0)),
            (false, true, _) => Some((id, 3)),
            (_, false, true) => Some((id, 5)),
            (false, false, false) => None,
        }
    });
    shown(values)
}

/// Commits whose rows overlap in their numbers; the commit counts.
fn ordered_by_commit(dir: &Path) -> Vec<String> {
    let spec = keyed("deduplicate").option("sequence.snapshot-ordering", "true");
    let mut table = TableBuilder::create(dir, "d", "t", &spec).expect("creates");
    let line = |id: i32, v: i32, number: i32| json!({"id": id, "v": v, "s": format!("s{v}"), "dt": "a", "_SEQUENCE_NUMBER": number});
    table.append(&(0..600).map(|id| line(id, 1, 1 + id)).collect::<Vec<_>>()).expect("appends");
    table.append(&(0..600).step_by(2).map(|id| line(id, 2, 2 + id / 2)).collect::<Vec<_>>()).expect("appends");
    shown((0..600).map(|id| (id, 2 - id % 2)))
}

fn few_runs(dir: &Path) -> Vec<String> {
    many_runs(dir, "partial-update", 4)
}

/// Refuses each request of a query in turn, alone and with those after it. Gives how often a selection was made in little
/// memory and a merge begun again.
async fn each_refusal(lake: &LakeTable, way: Way, wanted: &[String]) -> (usize, usize) {
    let run = async |refused: std::ops::Range<usize>| {
        let refusing = Arc::new(Refusing { refused: refused.clone(), ..Refusing::default() });
        let pool: Arc<dyn MemoryPool> = Arc::clone(&refusing) as _;
        let found = told(&pooled(lake, way, &pool)).await;
        emptied(&pool, &format!("{way:?}, refused {refused:?}")).await;
        (found, refusing.asked.load(Ordering::SeqCst))
    };
    let (found, requests) = run(0..0).await;
    assert_eq!(found.expect("nothing is refused").0, wanted, "{way:?}");
    let (mut streamed, mut begun_again) = (0, 0);
    for at in (0..requests).step_by(requests.div_ceil(40)) {
        for times in [1, 3] {
            match run(at..at + times).await.0 {
                Ok((rows, selections, merges)) => {
                    assert_eq!(rows, wanted, "{way:?}: {times} requests refused from {at} on");
                    streamed += selections;
                    begun_again += merges;
                }
                Err(error) => assert_eq!(error.code(), "ResourcesExhausted", "{error:?}"),
            }
        }
    }
    (streamed, begun_again)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_request_gives_all_rows_or_a_clear_error_whichever_it_is() {
    type Make = fn(&Path) -> Vec<String>;
    let tables: [(&str, Make); 4] =
        [("vectors", vectors), ("lookup", looked_up), ("by commit", ordered_by_commit), ("combined", few_runs)];
    for (name, build) in tables {
        let dir = tempfile::tempdir().expect("a folder");
        let wanted = build(dir.path());
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        let (mut streamed, mut begun_again) = (0, 0);
        for (merge_source, partitions) in [(false, 1), (true, 3)] {
            let way = Way { merge_source, partitions, batch_size: 90, part_rows: 100, ..PLAIN };
            let counts = each_refusal(&lake, way, &wanted).await;
            streamed += counts.0;
            begun_again += counts.1;
        }
        match name {
            "combined" => assert!(begun_again > 0, "{name}: no merge was begun again"),
            _ => assert!(streamed > 0, "{name}: no selection was made in little memory"),
        }
        // with kinds the rows of these tables are merged, too
        let audit = LakeTable::try_view(Arc::clone(lake.pin()), QueryEnv::new(), LakeView::AuditLog).expect("a view");
        let way = Way { batch_size: 90, ..PLAIN };
        let wanted = rows(&register(way, &audit), "SELECT id, v, s FROM t").await.expect("runs");
        let (_, begun_again) = each_refusal(&audit, way, &wanted).await;
        assert!(begun_again > 0, "{name}: no merge with kinds was begun again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_limit_gives_the_rows_that_vectors_lookups_and_commits_leave() {
    let tables: [fn(&Path) -> Vec<String>; 3] = [vectors, looked_up, ordered_by_commit];
    for build in tables {
        let dir = tempfile::tempdir().expect("a folder");
        let wanted = build(dir.path());
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        let way = Way { partitions: 1, ..PLAIN };
        let (mut refused, mut streamed) = (0, 0);
        for bytes in (10..=20).flat_map(|bits| [1 << bits, 3 << (bits - 1)]) {
            let (context, pool) = limited(&lake, way, bytes);
            match told(&context).await {
                Ok((found, selections, _)) => {
                    assert_eq!(found, wanted, "{bytes} bytes");
                    streamed += selections;
                }
                Err(error) => {
                    assert_eq!(error.code(), "ResourcesExhausted", "{error:?}");
                    refused += 1;
                }
            }
            emptied(&pool, &format!("{bytes} bytes")).await;
        }
        assert!(refused > 0 && streamed > 0, "{refused} refused, {streamed} selected in little memory");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_grow_are_given_out_once_when_the_merge_is_begun_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &keyed("partial-update")).expect("creates");
    let text = |id: i32| if id < 2000 { format!("s{id}") } else { format!("s{id}").repeat(2_000) };
    let line = |id: i32| json!({"id": id, "v": 1, "s": text(id), "dt": "a"});
    table.append(&(0..3000).map(line).collect::<Vec<_>>()).expect("appends");
    let line = |id: i32| json!({"id": id, "v": 2, "s": null, "dt": "a"});
    table.append(&(0..3000).map(line).collect::<Vec<_>>()).expect("appends");
    let mut wanted: Vec<String> = (0..3000).map(|id| format!("{id}|2|{}", text(id))).collect();
    wanted.sort();
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let (context, pool) = limited(&lake, Way { batch_size: 500, ..PLAIN }, 4 << 20);
    let (found, _, begun_again) = told(&context).await.expect("runs");
    emptied(&pool, "rows that grow").await;
    assert!(begun_again > 0, "there was memory for everything at once");
    assert_eq!(found.len(), 3000);
    assert!(found == wanted, "other rows");
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
