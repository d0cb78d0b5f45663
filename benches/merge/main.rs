//! What does a merged answer cost against the raw scan of the same files? For each table a line a query: milliseconds of
//! processor time of the floor, then the ratios to it of the first query (every cache of ours empty), of the next ones
//! (live rows remembered) and of the same rows in one compacted level; wall time of a remembered answer; the most memory
//! over the floor's.
//!
//! `cargo bench --bench merge` (`-- --quick` for a fifth of the size, `-- NAME` for the tables whose name contains it).
//! The floor is DataFusion's own ListingTable over the files of the snapshot, every physical row, default options, two
//! partitions; `count(*)` has no floor and is in nanoseconds a physical row. The least of five runs each. Sums and counts
//! are compared with what the generator knows of the final rows, the others with each other.
//!
//! With `LAKEPIN_BENCH_PEER` the path of a Python that has pypaimon-rust and pyarrow, the peer answers the same queries in
//! a process of its own; its column is again the ratio to the floor.

#![allow(clippy::expect_used, clippy::print_stdout, clippy::panic)]

mod measure;
mod peer;
mod tables;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use lakepin::arrow::array::RecordBatch;
use lakepin::arrow::util::display::array_value_to_string;
use lakepin::sql::{Session, SessionConfig, Warehouse};

use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::prelude::{SessionConfig as EngineConfig, SessionContext};

use measure::least;
use tables::{Made, Shape};

const RUNS: usize = 5;

struct Query {
    name: &'static str,
    sql: String,
    /// Whether the answer is a sum that the generator knows.
    sums: bool,
}

fn queries(made: &Made) -> Vec<Query> {
    let keys = made.keys;
    let key = |n: u64| made.shape.key_literal(n);
    let query = |name, sql: String| Query { name, sql, sums: false };
    vec![
        Query { name: "sum", sql: "SELECT sum(amount) FROM t".into(), sums: true },
        query("group by", "SELECT status, count(*), sum(amount) FROM t GROUP BY status".into()),
        query("filter 10 %", "SELECT sum(amount) FROM t WHERE fee < 1.00".into()),
        query("filter 0.1 %, all columns", format!("SELECT * FROM t WHERE user_id < {}", tables::USERS / 1_000)),
        query(
            "key range 1 %",
            format!(
                "SELECT sum(amount) FROM t WHERE pay_id >= {} AND pay_id < {}",
                key(keys / 2),
                key(keys / 2 + keys / 100)
            ),
        ),
        query("one key", format!("SELECT * FROM t WHERE pay_id = {}", key(keys / 3))),
        query("newest 100", "SELECT * FROM t ORDER BY pay_time DESC LIMIT 100".into()),
        query("count distinct", "SELECT count(DISTINCT order_id) FROM t".into()),
        query("all columns", "SELECT * FROM t".into()),
    ]
}

async fn open(dir: &Path) -> Session {
    let warehouse = Warehouse::open(&dir.to_string_lossy(), &Default::default()).await.expect("warehouse");
    let config = SessionConfig { database: Some("d".into()), target_partitions: Some(2), ..SessionConfig::default() };
    Session::new(&warehouse, config).await.expect("session")
}

/// Reads all of an answer: its rows, and its first value as a text.
async fn ask(session: &Session, sql: &str) -> (usize, String) {
    let mut stream = session.run_one(sql).await.expect("a plan").stream;
    let (mut rows, mut first) = (0, String::new());
    while let Some(batch) = stream.try_next().await.expect("rows") {
        if rows == 0 && batch.num_rows() > 0 && batch.num_columns() > 0 {
            first = array_value_to_string(batch.column(0), 0).expect("a value");
        }
        rows += batch.num_rows();
    }
    (rows, first)
}

async fn ask_engine(context: &SessionContext, sql: &str) {
    let mut stream = context.sql(sql).await.expect("a plan").execute_stream().await.expect("a stream");
    while stream.try_next().await.expect("rows").is_some() {}
}

/// The raw scan: the files of the latest snapshot as they are.
async fn floor(session: &Session, table: &str) -> SessionContext {
    let listed = session.run_one(&format!("SELECT file_path FROM {table}$files")).await.expect("a plan").stream;
    let listed: Vec<RecordBatch> = listed.try_collect().await.expect("files");
    let mut urls = Vec::new();
    for batch in &listed {
        for row in 0..batch.num_rows() {
            let path = array_value_to_string(batch.column(0), row).expect("a path");
            urls.push(ListingTableUrl::parse(path).expect("a path"));
        }
    }
    let context = SessionContext::new_with_config(EngineConfig::new().with_target_partitions(2));
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()));
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options);
    let config = config.infer_schema(&context.state()).await.expect("a schema");
    context.register_table("t", Arc::new(ListingTable::try_new(config).expect("a table"))).expect("registered");
    context
}

const COUNT: &str = "SELECT count(*) FROM t";

async fn bench(dir: &Path, made: &Made) {
    let shape = &made.shape;
    println!("\n{}: {} keys, {} rows in {} files, {}", shape.name, made.keys, made.rows, made.files, shape.told);
    println!(
        "{:<26} {:>10} {:>8} {:>8} {:>10} {:>8} {:>12} {:>10}",
        "query", "floor ms", "first", "next", "compacted", "peer", "next wall ms", "peak MiB"
    );
    let queries = queries(made);
    let asked: Vec<(&str, &str)> =
        queries.iter().map(|query| (query.name, query.sql.as_str())).chain([("count(*)", COUNT)]).collect();
    let peer = peer::answers(dir, RUNS, &asked);
    let raw = floor(&open(dir).await, "t").await;
    counting(dir, made, peer.get("count(*)").map(|(took, _)| *took)).await;
    for query in &queries {
        let sql = query.sql.as_str();
        let answer = ask(&open(dir).await, sql).await;
        if query.sums {
            assert_eq!(answer.1, made.sum, "{sql}");
        }
        let same = async |session: &Session, sql: &str| {
            let found = ask(session, sql).await;
            let equal = found.0 == answer.0 && (!query.sums || found.1 == answer.1);
            assert!(equal, "{sql}: {found:?}, not {answer:?}");
        };
        ask_engine(&raw, sql).await;
        let base = least(RUNS, async || (), async |()| ask_engine(&raw, sql).await).await;
        let first = least(RUNS, || open(dir), async |session: Session| same(&session, sql).await).await;
        let session = open(dir).await;
        // a range of keys alone would leave the rest unknown
        ask(&session, "SELECT min(order_id) FROM t").await;
        same(&session, sql).await;
        let next = least(RUNS, async || (), async |()| same(&session, sql).await).await;
        let one = sql.replace("FROM t", "FROM c");
        same(&session, &one).await;
        let compacted = least(RUNS, async || (), async |()| same(&session, &one).await).await;
        let peer = peer.get(query.name).map(|(took, rows)| {
            assert_eq!(*rows, answer.0, "{sql}: rows of the peer");
            *took
        });
        let ratio = |took: Duration| took.as_secs_f64() / base.cpu.as_secs_f64();
        println!(
            "{:<26} {:>10.2} {:>8.2} {:>8.2} {:>10.2} {:>8} {:>12.2} {:>10}",
            query.name,
            base.cpu.as_secs_f64() * 1e3,
            ratio(first.cpu),
            ratio(next.cpu),
            ratio(compacted.cpu),
            peer.map_or(String::new(), |took| format!("{:.2}", ratio(took))),
            next.wall.as_secs_f64() * 1e3,
            first.peak_mib.saturating_sub(base.peak_mib)
        );
    }
}

/// Counting all rows: nanoseconds of processor time a physical row.
async fn counting(dir: &Path, made: &Made, peer: Option<Duration>) {
    let counted = async |session: &Session| {
        let (_, count) = ask(session, COUNT).await;
        assert_eq!(count, made.keys_left.to_string(), "{COUNT}");
    };
    let first = least(RUNS, || open(dir), async |session: Session| counted(&session).await).await;
    let session = open(dir).await;
    counted(&session).await;
    let next = least(RUNS, async || (), async |()| counted(&session).await).await;
    let a_row = |took: Duration| format!("{:.2}", took.as_secs_f64() * 1e9 / made.rows as f64);
    println!(
        "{:<26} {:>10} {:>8} {:>8} {:>10} {:>8} {:>12.2}",
        "count(*), ns a row",
        "",
        a_row(first.cpu),
        a_row(next.cpu),
        "",
        peer.map_or(String::new(), a_row),
        next.wall.as_secs_f64() * 1e3
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if arguments.iter().any(|a| a == "--list" || a == "--test") {
        return;
    }
    let quick = arguments.iter().any(|a| a == "--quick");
    let wanted: Vec<&String> = arguments.iter().filter(|a| !a.starts_with("--")).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    for shape in Shape::all(quick) {
        if !wanted.is_empty() && !wanted.iter().any(|part| shape.name.contains(part.as_str())) {
            continue;
        }
        let dir = tempfile::tempdir().expect("temporary folder");
        let made = shape.make(dir.path());
        runtime.block_on(bench(dir.path(), &made));
    }
}
