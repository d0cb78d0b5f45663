//! What does it cost to compare two tables by key, against reading both in full? And what to tell the past of a key, and
//! the anomalies, of a thousand snapshots? Prints a line for each case: seconds, rows a second, the ratio to reading both
//! sides, rows of the right side that were read more than once, the most memory the process held.
//!
//! `cargo bench --bench reconcile` (`-- --quick` for a fiftieth of the size).

#![allow(clippy::expect_used, clippy::print_stdout)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use lakepin::arrow::array::{ArrayRef, Decimal128Array, Int8Array, Int64Array, RecordBatch, StringArray};
use lakepin::arrow::datatypes::{DataType, Field, Schema};
use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{FIRST_COMMIT_MILLIS, FileSpec, TableBuilder, TableSpec};

const BUCKETS: i64 = 4;
const MEMORY: usize = 512 << 20;

/// Rows `0..rows` of payments; where `differs` says so the amount is another.
fn payments(warehouse: &Path, name: &str, rows: i64, differs: impl Fn(i64) -> bool) {
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("amount", "DECIMAL(12, 2)"), ("status", "STRING")])
        .primary_key(&["id"])
        .option("bucket", &BUCKETS.to_string());
    let mut table = TableBuilder::create(warehouse, "d", name, &spec).expect("a fresh folder");
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("amount", DataType::Decimal128(12, 2), true),
        Field::new("status", DataType::Utf8, true),
        Field::new("_SEQUENCE_NUMBER", DataType::Int64, false),
        Field::new("_VALUE_KIND", DataType::Int8, false),
    ]));
    let ids: Vec<i64> = (0..rows).collect();
    let batches = ids.chunks(1 << 18).map(|ids| {
        let amounts = ids.iter().map(|id| i128::from(id * 7 % 1_000_000 + i64::from(differs(*id))));
        let amounts = Decimal128Array::from_iter_values(amounts).with_precision_and_scale(12, 2).expect("fits");
        let states = ids.iter().map(|id| ["SUCCESS", "REFUNDED", "PENDING"][(id % 3) as usize]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(ids.to_vec())),
            Arc::new(amounts),
            Arc::new(StringArray::from_iter_values(states)),
            Arc::new(Int64Array::from(ids.to_vec())),
            Arc::new(Int8Array::from(vec![0; ids.len()])),
        ];
        RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns of one length")
    });
    let file = FileSpec::batches(batches.collect()).level(5).row_group_rows(1 << 17);
    table.commit().file(file).publish().expect("a snapshot");
}

/// A table of one bucket that `snapshots` commits wrote: each a row of its own, and the row of key 0 anew.
fn history(warehouse: &Path, snapshots: i64) {
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "BIGINT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(warehouse, "d", "h", &spec).expect("a fresh folder");
    for id in 1..=snapshots {
        let rows = [serde_json::json!({"id": 0, "v": id}), serde_json::json!({"id": id, "v": id})];
        let time = FIRST_COMMIT_MILLIS + id * 60_000;
        let commit = table.commit().file(FileSpec::rows(&rows)).user("cdc").identifier(id);
        commit.written_millis(time - 1_000).time_millis(time).publish().expect("a snapshot");
    }
}

async fn open(dir: &Path) -> Session {
    let warehouse = Warehouse::open(&dir.to_string_lossy(), &Default::default()).await.expect("warehouse");
    let config = SessionConfig {
        database: Some("d".into()),
        target_partitions: Some(2),
        memory_limit: Some(MEMORY),
        ..SessionConfig::default()
    };
    Session::new(&warehouse, config).await.expect("session")
}

async fn read(session: &Session, sql: &str) -> usize {
    let result = session.run_one(sql).await.expect("a plan");
    let batches: Vec<RecordBatch> = result.stream.try_collect().await.expect("rows");
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// The most memory the process held since the last call, in MiB; None where the system does not tell.
fn peak() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    // from here on anew; without the right to, the figure only rises
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    Some(kilobytes >> 10)
}

fn line(name: &str, took: Duration, rows: i64, against: Option<Duration>, more: &str) {
    let ratio = against.map_or(String::new(), |base| format!("{:>6.2} x", took.as_secs_f64() / base.as_secs_f64()));
    let peak = peak().map_or(String::new(), |mib| format!("   peak {mib} MiB"));
    let rate = rows as f64 / took.as_secs_f64() / 1e6;
    println!("{name:<44} {:>8.2} s {rate:>7.2} M rows/s {ratio:>9}{more}{peak}", took.as_secs_f64());
}

fn main() {
    if std::env::args().any(|a| a == "--list" || a == "--test") {
        return;
    }
    let quick = std::env::args().any(|a| a == "--quick");
    let (rows, snapshots) = if quick { (100_000, 20) } else { (5_000_000, 1_000) };
    let dir = tempfile::tempdir().expect("temporary folder");
    payments(dir.path(), "lake", rows, |_| false);
    payments(dir.path(), "equal", rows, |_| false);
    payments(dir.path(), "ten", rows, |id| id % (rows / 10) == 7);
    payments(dir.path(), "fifth", rows, |id| id % 5 == 0);
    history(dir.path(), snapshots);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
    println!("{rows} rows a side in {BUCKETS} buckets, two threads, {} MiB of memory", MEMORY >> 20);
    let _ = peak();
    runtime.block_on(async {
        let session = open(dir.path()).await;
        // every value of both sides, as DataFusion reads them
        let began = Instant::now();
        for table in ["lake", "equal"] {
            read(&session, &format!("SELECT sum(id), sum(amount), min(status), max(status) FROM {table}")).await;
        }
        let base = began.elapsed();
        line("reading both sides", base, 2 * rows, None, "");
        let began = Instant::now();
        let join = "SELECT count(*) FROM lake l FULL JOIN fifth r ON l.id = r.id
                    WHERE l.id IS NULL OR r.id IS NULL OR l.amount IS DISTINCT FROM r.amount OR l.status IS DISTINCT FROM r.status";
        match session.run_one(join).await.expect("a plan").stream.try_collect::<Vec<_>>().await {
            Ok(_) => line("FULL JOIN, a fifth different", began.elapsed(), 2 * rows, Some(base), ""),
            Err(error) => println!("FULL JOIN, a fifth different: {}", error.to_string().lines().next().unwrap_or("")),
        }
        for (name, table, found) in
            [("RECONCILE, equal", "equal", 0), ("RECONCILE, 10 differences", "ten", 10), ("RECONCILE, a fifth different", "fifth", rows / 5)]
        {
            let began = Instant::now();
            let sql = format!("RECONCILE lake WITH {table} ON KEY (id)");
            let report = session.reconcile(&sql, None).await.expect("a report").report;
            let took = began.elapsed();
            assert_eq!(report.differences(), found as u64, "{report}");
            line(name, took, 2 * rows, Some(base), &format!("   {} rows again", report.right.looked_up));
        }
        println!("{snapshots} snapshots");
        for (name, sql) in [
            ("history of a key in every snapshot", "SELECT * FROM paimon_key_history('h', key => (0))"),
            ("history of a key of one snapshot", "SELECT * FROM paimon_key_history('h', key => (7))"),
            ("anomalies", "SELECT * FROM paimon_anomalies('h')"),
            ("commits", "SELECT * FROM h$commits"),
        ] {
            let session = open(dir.path()).await;
            let began = Instant::now();
            let found = read(&session, sql).await;
            let took = began.elapsed();
            println!("{name:<44} {:>8.2} s   {found} rows", took.as_secs_f64());
        }
    });
}
