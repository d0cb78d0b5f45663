use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::catalog::{Catalog, FilesystemCatalog};
use crate::memory::Unbounded;
use crate::query::QueryEnv;
use crate::recon::accounting::{Accounting, AccountingOptions, account};
use crate::snapshot::{Pin, PinRequest};
use crate::spec::{CommitKind, Zone};
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

use std::sync::Arc;

async fn counted(warehouse: &Path, exact: bool) -> Accounting {
    let catalog = FilesystemCatalog::open(&warehouse.to_string_lossy(), &BTreeMap::new()).await.unwrap();
    let table = catalog.table("d", "t").await.unwrap();
    let pin = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
    let budget = Arc::new(Unbounded);
    let options = AccountingOptions { exact, zone: Zone::UTC, budget, partitions: Vec::new(), config: None };
    account(&pin, &QueryEnv::new(), &options).await.unwrap()
}

fn table(dir: &Path, options: &[(&str, &str)]) -> TableBuilder {
    let columns = [("id", "INT NOT NULL"), ("v", "INT"), ("g", "INT")];
    let spec = TableSpec::new(&columns).primary_key(&["id"]).option("bucket", "1");
    let spec = options.iter().fold(spec, |spec, (key, value)| spec.option(key, value));
    TableBuilder::create(dir, "d", "t", &spec).unwrap()
}

fn row(id: i64, kind: &str) -> Value {
    json!({"id": id, "v": id, "g": id, "_ROW_KIND": kind})
}

fn adds(ids: std::ops::Range<i64>) -> Vec<Value> {
    ids.map(|id| row(id, "+I")).collect()
}

/// Bounds by metadata alone, then the rows there are.
async fn told(dir: &Path) -> ((u64, u64), u64) {
    let metadata = counted(dir, false).await;
    (metadata.total.final_bounds, counted(dir, true).await.total.final_rows)
}

/// A base of 100 rows on the top level under a commit of other rows.
async fn over_base(options: &[(&str, &str)], rows: &[Value], count: Option<Option<i64>>) -> ((u64, u64), u64) {
    let dir = tempfile::tempdir().unwrap();
    let mut table = table(dir.path(), options);
    let base = table.commit().file(FileSpec::rows(&adds(0..100)).level(5)).kind(CommitKind::Compact);
    base.publish().unwrap();
    let file = FileSpec::rows(rows);
    let file = if let Some(count) = count { file.delete_count(count) } else { file };
    table.commit().file(file).publish().unwrap();
    told(dir.path()).await
}

#[tokio::test]
async fn both_bounds_are_reached() {
    let gone = |ids: std::ops::Range<i64>| -> Vec<Value> { ids.map(|id| row(id, "-D")).collect() };
    // ten keys of the base are deleted: all that can be
    let deletes = over_base(&[], &gone(10..20), None).await;
    assert_eq!(deletes, ((90, 100), 90));
    // deletes of keys that were never there: none is
    let beside = [gone(-5..0), vec![row(1_000, "+I")]].concat();
    assert_eq!(over_base(&[], &beside, None).await, ((95, 101), 101));
    // new versions of old keys, and new keys between old ones: none is known to be deleted, five may be, though none is
    // counted
    for (ids, rows) in [(50..55, 100), (100..105, 105)] {
        let mut given = adds(ids);
        // the ranges overlap, so that the files are merged
        given.push(row(0, "+U"));
        assert_eq!(over_base(&[], &given, None).await, ((94, 106), rows));
    }
}

#[tokio::test]
async fn what_is_not_counted_may_be_all_or_nothing() {
    let rows: Vec<Value> = (10..20).map(|id| row(id, if id < 14 { "-D" } else { "+U" })).collect();
    assert_eq!(over_base(&[], &rows, None).await, ((96, 106), 96));
    for count in [None, Some(0)] {
        assert_eq!(over_base(&[], &rows, Some(count)).await, ((90, 110), 96), "{count:?}");
    }
}

#[tokio::test]
async fn two_rows_that_take_back_can_make_one_under_aggregation() {
    let sum = [("merge-engine", "aggregation"), ("fields.v.aggregate-function", "sum")];
    let dir = tempfile::tempdir().unwrap();
    let mut table = table(dir.path(), &sum);
    for _ in 0..2 {
        table.append(&[row(1, "-D"), row(2, "-D")]).unwrap();
    }
    assert_eq!(told(dir.path()).await, ((0, 2), 2));
}

/// Numbers that depend on the seed alone.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Engines, each with what makes its retracts legal.
const TABLES: &[&[(&str, &str)]] = &[
    &[],
    &[("ignore-delete", "true")],
    &[("changelog-producer", "lookup")],
    &[("sequence.field", "v")],
    &[("record-level.expire-time", "1 d"), ("record-level.time-field", "g")],
    &[("deletion-vectors.enabled", "true")],
    &[("deletion-vectors.enabled", "true"), ("deletion-vectors.merge-on-read", "true")],
    &[("merge-engine", "first-row"), ("ignore-delete", "true")],
    &[("merge-engine", "partial-update"), ("ignore-delete", "true")],
    &[("merge-engine", "partial-update"), ("partial-update.remove-record-on-delete", "true")],
    &[("merge-engine", "partial-update"), ("fields.g.sequence-group", "v")],
    &[
        ("merge-engine", "partial-update"),
        ("fields.g.sequence-group", "v"),
        ("partial-update.remove-record-on-sequence-group", "g"),
    ],
    &[("merge-engine", "aggregation"), ("fields.v.aggregate-function", "sum")],
    &[("merge-engine", "aggregation"), ("fields.v.aggregate-function", "sum"), ("changelog-producer", "lookup")],
    &[
        ("merge-engine", "aggregation"),
        ("fields.v.aggregate-function", "sum"),
        ("aggregation.remove-record-on-delete", "true"),
    ],
];

#[tokio::test]
async fn the_rows_of_random_tables_lie_within_their_bounds() {
    let mut narrow = 0;
    for (number, options) in TABLES.iter().enumerate() {
        for seed in 0..8u64 {
            let mut dice = Dice(seed * 1_000 + number as u64);
            let dir = tempfile::tempdir().unwrap();
            let mut table = table(dir.path(), options);
            let vectors = options.iter().any(|(key, _)| *key == "deletion-vectors.enabled");
            for level in [5, 4, 0, 0, 3, 0].into_iter().skip(dice.below(2) as usize) {
                let ids: BTreeSet<u64> = (0..1 + dice.below(25)).map(|_| dice.below(40)).collect();
                let kind = |dice: &mut Dice| match dice.below(10) {
                    // a compaction to the top level leaves deletes out
                    0..=5 => "+I",
                    _ if level == 5 => "+U",
                    6 => "+U",
                    7 => "-U",
                    _ => "-D",
                };
                let rows: Vec<Value> = ids.iter().map(|id| row(*id as i64, kind(&mut dice))).collect();
                let mut file = FileSpec::rows(&rows).level(level);
                file = match dice.below(4) {
                    0 => file.delete_count(None),
                    1 => file.delete_count(Some(0)),
                    _ => file,
                };
                let kind = if level > 0 { CommitKind::Compact } else { CommitKind::Append };
                table.commit().kind(kind).file(file).publish().unwrap();
            }
            if vectors {
                let mut commit = table.commit().kind(CommitKind::Compact);
                for entry in commit_files(dir.path()) {
                    if entry.file.level > 0 && dice.below(2) == 0 {
                        let some = 1 + dice.below(entry.file.row_count as u64);
                        let positions: BTreeSet<u64> =
                            (0..some).map(|_| dice.below(entry.file.row_count as u64)).collect();
                        let positions: Vec<u64> = positions.into_iter().collect();
                        commit = commit.delete_positions(&entry.file.file_name, &positions);
                    }
                }
                commit.publish().unwrap();
            }
            let what = format!("{options:?}, seed {seed}");
            let (metadata, exact) = (counted(dir.path(), false).await, counted(dir.path(), true).await);
            assert_eq!(exact.violations, Vec::<String>::new(), "{what}");
            for (bounded, counted) in metadata.units.iter().zip(&exact.units) {
                let ((low, high), rows) = (bounded.final_bounds, counted.final_rows);
                assert!((low..=high).contains(&rows), "{what}: {rows} rows are not within {low}..={high}");
                assert!(high <= bounded.raw_rows, "{what}");
                narrow += u64::from(low > 0);
            }
        }
    }
    assert!(narrow > 0, "no lower bound says anything");
}

fn commit_files(dir: &Path) -> Vec<crate::spec::ManifestEntry> {
    TableBuilder::open(dir, "d", "t").unwrap().live_files().unwrap()
}
