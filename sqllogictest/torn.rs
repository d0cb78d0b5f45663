//! One statement, one snapshot: while another process publishes snapshots, a statement that reads a table twice never
//! sees two of them. `LAKEPIN_SCALE=full` runs it 1 000 times, otherwise 60.

use std::path::Path;
use std::process::Command;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use lakepin::arrow;
use lakepin::spec::CommitKind;
use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{FileSpec, TableBuilder, TableSpec};
use serde_json::json;

use crate::harness::{Outcome, Test};
use crate::resume::full_scale;

const WRITER: &str = "LAKEPIN_TORN_WRITER";

/// What the second process does: publishes a row a snapshot until the folder is gone or a stop file appears. True when
/// this process is that one.
pub fn be_the_writer() -> bool {
    let Some(dir) = std::env::var_os(WRITER) else { return false };
    let dir = Path::new(&dir);
    let mut table = TableBuilder::open(dir, "d", "t").expect("the table was made before");
    let mut n = 0;
    while !dir.join("stop").exists() && n < 500 {
        n += 1;
        // another number of rows in each snapshot, in one file: what is measured is the pin, not the merge
        let rows: Vec<_> = (0..=n % 40).map(|id| json!({"id": id, "v": n})).collect();
        if table.commit().file(FileSpec::rows(&rows)).remove_all().kind(CommitKind::Overwrite).publish().is_err() {
            break;
        }
        // slower and slower: the metadata that each statement reads grows with every commit
        std::thread::sleep(std::time::Duration::from_millis(15 + n));
    }
    true
}

pub fn register(tests: &mut Vec<Test>) {
    let (parts, runs) = if full_scale() { (10, 100) } else { (1, 60) };
    for part in 0..parts {
        let name = format!("torn::one_statement_reads_one_snapshot_{part}");
        tests.push(Test::new_async(name, move || run(runs)).resumable());
    }
}

async fn run(runs: usize) -> Result<Outcome, String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "BIGINT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).map_err(|e| e.to_string())?;
    table.append(&[json!({"id": 1, "v": 1})]).map_err(|e| e.to_string())?;
    let mut writer = Command::new(std::env::current_exe().map_err(|e| e.to_string())?)
        .env(WRITER, dir.path())
        .spawn()
        .map_err(|e| e.to_string())?;
    let outcome = read_again_and_again(dir.path(), runs).await;
    std::fs::write(dir.path().join("stop"), "").map_err(|e| e.to_string())?;
    writer.wait().map_err(|e| e.to_string())?;
    let seen = outcome?;
    if seen < 3 {
        return Err(format!("the writer published only {seen} snapshots while we read: nothing was shown"));
    }
    Ok(Outcome::Passed(format!("{runs} statements over {seen} snapshots")))
}

async fn read_again_and_again(dir: &Path, runs: usize) -> Result<usize, String> {
    let text = |e: lakepin::Error| e.to_string();
    let warehouse = Warehouse::open(&dir.to_string_lossy(), &Default::default()).await.map_err(text)?;
    let config = SessionConfig { database: Some("d".into()), ..SessionConfig::default() };
    let session = Session::new(&warehouse, config).await.map_err(text)?;
    // twice as a join, once more in a subquery, and through a system table
    let sql = "SELECT a.n, b.n, (SELECT count(*) FROM t), f.n FROM (SELECT count(*) AS n FROM t) a, \
               (SELECT count(v) AS n FROM t WHERE id >= 0) b, (SELECT sum(record_count) AS n FROM t$files) f";
    let mut seen = std::collections::BTreeSet::new();
    for run in 0..runs {
        let result = session.run_one(sql).await.map_err(text)?;
        if result.pins.len() != 1 {
            return Err(format!("run {run}: {} pins for one table", result.pins.len()));
        }
        seen.insert(result.pins[0].snapshot_id);
        let batches: Vec<arrow::array::RecordBatch> = result.stream.try_collect().await.map_err(|e| e.to_string())?;
        let counts: Vec<i64> = batches[0].columns().iter().map(|c| c.as_primitive::<Int64Type>().value(0)).collect();
        if counts.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(format!("run {run}: one statement saw {counts:?}"));
        }
    }
    Ok(seen.len())
}
