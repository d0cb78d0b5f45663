//! Large merged sections in parts: the same rows for every number of parts, and every core at work on one bucket.

use std::collections::BTreeMap;

use datafusion::physical_plan::ExecutionPlanProperties;
use serde_json::{Map, Value, json};

use super::{PLAIN, Way, explain, latest, register, rows};
use crate::error::Result;
use crate::query::{LakeTable, LakeView, QueryEnv};
use crate::spec::CommitKind;
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

/// Numbers that depend on the seed alone.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn key(kind: &str, number: u64) -> Value {
    let sign = if number.is_multiple_of(2) { "" } else { "-" };
    match kind {
        "STRING NOT NULL" => json!(format!("{}{number}", ["", "k", "\u{ff5e}", "\u{10400}"][number as usize % 4])),
        "DECIMAL(20, 3) NOT NULL" => json!(format!("{sign}{}.{:03}", number * 1_000_003, number % 1000)),
        "TIMESTAMP(6) NOT NULL" => json!(format!("20{:02}-03-04T05:06:07.{:06}", 10 + number % 50, number)),
        "DATE NOT NULL" => json!(format!("19{:02}-0{}-1{}", 50 + number % 50, 1 + number % 9, number % 10)),
        "DOUBLE NOT NULL" => json!((number as f64 - 70.0) / 8.0),
        "BOOLEAN NOT NULL" => json!(number.is_multiple_of(2)),
        _ => json!(number as i64 - 60),
    }
}

/// A table of one bucket with several files of several levels that share keys.
fn build(dir: &std::path::Path, keys: &[&str], engine: &str, dice: &mut Dice) -> Result<TableBuilder> {
    let names: Vec<String> = (0..keys.len()).map(|at| format!("k{at}")).collect();
    let mut columns: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(keys.iter().copied()).collect();
    columns.extend([("a", "INT"), ("b", "BIGINT"), ("s", "STRING")]);
    let mut spec = TableSpec::new(&columns)
        .primary_key(&names.iter().map(String::as_str).collect::<Vec<_>>())
        .option("bucket", "1")
        .option("merge-engine", engine);
    spec = match engine {
        "aggregation" => spec
            .option("fields.a.aggregate-function", "sum")
            .option("fields.b.aggregate-function", "max")
            .option("fields.s.aggregate-function", "listagg"),
        "partial-update" => spec.option("fields.a.sequence-group", "b"),
        _ => spec,
    };
    let mut table = TableBuilder::create(dir, "d", "t", &spec)?;
    for (number, level) in [5, 0, 4, 0, 0].into_iter().enumerate() {
        let mut found: BTreeMap<String, Value> = BTreeMap::new();
        for _ in 0..10 + dice.below(200) {
            let mut row = Map::new();
            for (name, kind) in names.iter().zip(keys) {
                row.insert(name.clone(), key(kind, dice.below(150)));
            }
            let text = serde_json::to_string(&row).unwrap_or_default();
            if dice.below(3) > 0 {
                row.insert("a".to_string(), json!(dice.below(9)));
            }
            row.insert("b".to_string(), json!(dice.below(1000)));
            row.insert("s".to_string(), json!(format!("{number}")));
            if engine == "deduplicate" && dice.below(5) == 0 {
                row.insert("_ROW_KIND".to_string(), json!("-D"));
            }
            found.insert(text, Value::Object(row));
        }
        let rows: Vec<Value> = found.into_values().collect();
        let file = FileSpec::rows(&rows).level(level).row_group_rows(40);
        table.commit().file(file).kind(CommitKind::Append).publish()?;
    }
    Ok(table)
}

#[tokio::test]
async fn every_number_of_parts_gives_the_rows_of_the_whole() {
    let mut dice = Dice(7);
    let keys: [&[&str]; 8] = [
        &["INT NOT NULL"],
        &["STRING NOT NULL"],
        &["DECIMAL(20, 3) NOT NULL"],
        &["TIMESTAMP(6) NOT NULL"],
        &["DOUBLE NOT NULL"],
        &["STRING NOT NULL", "BIGINT NOT NULL"],
        &["BOOLEAN NOT NULL", "DATE NOT NULL", "STRING NOT NULL"],
        &["BOOLEAN NOT NULL"],
    ];
    for keys in keys {
        for engine in ["partial-update", "aggregation", "deduplicate"] {
            let dir = tempfile::tempdir().expect("a folder");
            build(dir.path(), keys, engine, &mut dice).expect("builds");
            let mut lake = latest(dir.path(), "d", "t").await.expect("pins");
            if engine == "deduplicate" {
                lake = LakeTable::try_view(lake.pin().clone(), QueryEnv::new(), LakeView::AuditLog).expect("a view");
            }
            let whole = rows(&register(PLAIN, &lake), "SELECT * FROM t").await.expect("runs");
            let mut cut = false;
            for partitions in [2, 3, 8] {
                let way = Way { partitions, part_rows: 1, batch_size: 1 + dice.below(50) as usize, ..PLAIN };
                let context = register(way, &lake);
                let found = rows(&context, "SELECT * FROM t").await.expect("runs");
                assert_eq!(whole, found, "{keys:?} {engine} {way:?}");
                assert_eq!(rows(&context, "SELECT count(*) FROM t").await.expect("runs"), [whole.len().to_string()]);
                cut |= explain(&context, "SELECT * FROM t").await.contains("parts=");
            }
            assert!(cut, "{keys:?} {engine}: nothing was cut");
        }
    }
}

/// Keys 0 to 399 twice.
fn combined(dir: &std::path::Path, buckets: &str) {
    let spec = TableSpec::new(&[("k", "INT NOT NULL"), ("v", "INT")])
        .primary_key(&["k"])
        .option("bucket", buckets)
        .option("merge-engine", "partial-update");
    let mut table = TableBuilder::create(dir, "d", "t", &spec).expect("creates");
    for _ in 0..2 {
        table.append(&(0..400).map(|k| json!({"k": k, "v": k})).collect::<Vec<_>>()).expect("appends");
    }
}

#[tokio::test]
async fn one_large_bucket_that_is_combined_uses_every_partition_and_small_ones_stay_whole() {
    let dir = tempfile::tempdir().expect("a folder");
    combined(dir.path(), "1");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    for (partitions, part_rows, parts) in [(4, 20, 4), (4, 300, 2), (4, 100_000, 1), (4, 0, 1), (1, 20, 1)] {
        let context = register(Way { partitions, part_rows, ..PLAIN }, &lake);
        let plan = context.sql("SELECT * FROM t").await.expect("plans").create_physical_plan().await.expect("plans");
        assert_eq!(plan.output_partitioning().partition_count(), parts, "{partitions} partitions, {part_rows} rows");
        let text = explain(&context, "SELECT * FROM t").await;
        assert_eq!(text.contains(&format!("parts={parts}")), parts > 1, "{text}");
    }
}

#[tokio::test]
async fn the_first_few_rows_do_not_wait_for_all_keys() {
    let dir = tempfile::tempdir().expect("a folder");
    combined(dir.path(), "1");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let context = register(Way { partitions: 4, part_rows: 20, ..PLAIN }, &lake);
    for sql in ["SELECT k FROM t LIMIT 7", "SELECT k FROM (SELECT k, v + 1 FROM t) LIMIT 7"] {
        let text = explain(&context, sql).await;
        assert!(!text.contains("parts="), "{text}");
        assert_eq!(rows(&context, sql).await.expect("runs").len(), 7);
    }
    assert_eq!(rows(&context, "SELECT k FROM t LIMIT 70000").await.expect("runs").len(), 400);
    assert!(explain(&context, "SELECT k FROM t ORDER BY v LIMIT 7").await.contains("parts=4"));
}

#[tokio::test]
async fn several_buckets_are_spread_whole_before_any_is_cut() {
    let dir = tempfile::tempdir().expect("a folder");
    combined(dir.path(), "4");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    for (partitions, cut) in [(2, false), (4, false), (8, true)] {
        let context = register(Way { partitions, part_rows: 10, ..PLAIN }, &lake);
        let text = explain(&context, "SELECT * FROM t").await;
        assert_eq!(text.contains("parts="), cut, "{partitions} partitions: {text}");
        assert_eq!(rows(&context, "SELECT count(*), sum(v) FROM t").await.expect("runs"), ["400|79800"]);
    }
}

#[tokio::test]
async fn a_file_out_of_order_is_told_by_every_number_of_parts() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("k", "INT NOT NULL"), ("v", "INT")])
        .primary_key(&["k"])
        .option("bucket", "1")
        .option("merge-engine", "partial-update");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    table.append(&(0..300).map(|k| json!({"k": k, "v": k})).collect::<Vec<_>>()).expect("appends");
    let mut keys: Vec<i32> = (0..300).collect();
    keys.swap(120, 180);
    let file: Vec<Value> = keys.iter().map(|k| json!({"k": k, "v": k})).collect();
    table.commit().file(FileSpec::rows(&file).keep_order()).publish().expect("publishes");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    for partitions in [1, 2, 5, 8] {
        let context = register(Way { partitions, part_rows: 1, ..PLAIN }, &lake);
        let error = rows(&context, "SELECT * FROM t").await.expect_err("out of order");
        assert_eq!(error.code(), "RunNotSorted", "{partitions} partitions: {error:?}");
    }
}
