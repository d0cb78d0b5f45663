use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::memory::Unbounded;
use crate::snapshot::PinRequest;
use crate::spec::{CommitKind, ManifestEntry, Zone};
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

async fn audited(warehouse: &Path) -> Vec<String> {
    let catalog = FilesystemCatalog::open(&warehouse.to_string_lossy(), &BTreeMap::new()).await.unwrap();
    let table = catalog.table("d", "t").await.unwrap();
    let pin = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
    let budget = Arc::new(Unbounded);
    let options = AccountingOptions { exact: true, zone: Zone::UTC, budget, partitions: Vec::new(), config: None };
    audit(&pin, &QueryEnv::new(), &options).await.unwrap()
}

fn table(dir: &Path) -> TableBuilder {
    let columns = [("dt", "STRING NOT NULL"), ("id", "INT NOT NULL"), ("v", "STRING")];
    let spec = TableSpec::new(&columns).partitioned_by(&["dt"]).primary_key(&["dt", "id"]);
    let spec = spec.option("bucket", "4").option("deletion-vectors.enabled", "true");
    TableBuilder::create(dir, "d", "t", &spec).unwrap()
}

fn rows(ids: std::ops::Range<i64>) -> Vec<Value> {
    ids.map(|id| json!({"dt": "a", "id": id, "v": "x", "_ROW_KIND": if id % 7 == 3 { "-D" } else { "+I" }})).collect()
}

/// Files of two levels, some of whose rows a vector names.
fn healthy(dir: &Path) -> TableBuilder {
    let mut table = table(dir);
    table.commit().file(FileSpec::rows(&rows(0..200)).level(3)).kind(CommitKind::Compact).publish().unwrap();
    let name = table.live_files().unwrap().remove(0).file.file_name;
    table.commit().delete_positions(&name, &[0, 5]).kind(CommitKind::Compact).publish().unwrap();
    table.append(&rows(100..400)).unwrap();
    table
}

/// Puts another entry in the place of a file's, over a copy of its bytes: an entry that was removed stays removed.
fn replace(table: &mut TableBuilder, entry: &mut ManifestEntry) {
    let name = std::mem::replace(&mut entry.file.file_name, "data-copy-0.parquet".to_string());
    let root = table.root().to_path_buf();
    let folder =
        [root.join("dt=a"), root.clone()].into_iter().map(|below| below.join(format!("bucket-{}", entry.bucket)));
    let folder = folder.into_iter().find(|folder| folder.join(&name).exists()).unwrap();
    std::fs::copy(folder.join(&name), folder.join(&entry.file.file_name)).unwrap();
    table.commit().remove(&name).kind(CommitKind::Overwrite).publish().unwrap();
    table.commit().entry(entry.clone()).publish().unwrap();
}

#[tokio::test]
async fn files_that_are_what_their_entries_say_are_passed() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = healthy(dir.path());
    assert_eq!(audited(dir.path()).await, Vec::<String>::new());
    // a count of none is what some writers put
    let spec = FileSpec::rows(&rows(400..450)).delete_count(Some(0));
    table.commit().file(spec).publish().unwrap();
    table.commit().file(FileSpec::rows(&rows(450..460)).delete_count(None)).publish().unwrap();
    assert_eq!(audited(dir.path()).await, Vec::<String>::new());
}

#[tokio::test]
async fn each_thing_that_an_entry_says_otherwise_is_told() {
    type Change = (&'static str, fn(&mut ManifestEntry));
    let changes: [Change; 6] = [
        ("rows that take back, its entry says 99", |entry| entry.file.delete_row_count = Some(99)),
        ("sequence numbers", |entry| entry.file.max_sequence_number += 1),
        ("sequence numbers", |entry| entry.file.min_sequence_number -= 1),
        ("the first key", |entry| entry.file.min_key = entry.file.max_key.clone()),
        ("the last key", |entry| entry.file.max_key = entry.file.min_key.clone()),
        ("rows", |entry| entry.file.row_count += 1),
    ];
    for (number, (what, change)) in changes.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = healthy(dir.path());
        let mut entry = table.live_files().unwrap().pop().unwrap();
        change(&mut entry);
        replace(&mut table, &mut entry);
        let told = audited(dir.path()).await;
        assert!(told.len() == 1 && told[0].contains(what), "{number}, {what}: {told:?}");
        assert!(told[0].starts_with("dt=a, bucket "), "{told:?}");
    }
}

#[tokio::test]
async fn rows_out_of_order_twice_or_in_another_bucket_are_told() {
    let turned: Vec<Value> = rows(0..9).into_iter().rev().collect();
    let twice: Vec<Value> = [rows(0..9), rows(8..12)].concat();
    for (given, what) in [(turned, "row 1 is not above"), (twice, "row 9 is not above")] {
        let dir = tempfile::tempdir().unwrap();
        // keys of one bucket, left as they are
        let columns = [("id", "INT NOT NULL"), ("v", "STRING")];
        let spec = TableSpec::new(&columns).primary_key(&["id"]).option("bucket", "1");
        let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
        let given: Vec<Value> = given.into_iter().map(|row| json!({"id": row["id"], "v": row["v"]})).collect();
        let file = FileSpec::rows(&given).keep_order();
        table.commit().file(file).publish().unwrap();
        let told = audited_entries(dir.path(), &mut table).await;
        assert!(told.iter().any(|told| told.contains(what)), "{told:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut table = table(dir.path());
    table.commit().file(FileSpec::rows(&rows(0..40)).bucket(2)).publish().unwrap();
    let told = audited(dir.path()).await;
    assert!(told.len() == 1 && told[0].contains("has a row of bucket "), "{told:?}");
}

/// What is told once the entry's smallest key is not above its largest: such a one is refused before it is read.
async fn audited_entries(dir: &Path, table: &mut TableBuilder) -> Vec<String> {
    let mut entry = table.live_files().unwrap().pop().unwrap();
    let types = [&DataType::Int];
    let (one, other) = (entry.file.min_key.decode(&types).unwrap(), entry.file.max_key.decode(&types).unwrap());
    if is_above(&one, &other) {
        std::mem::swap(&mut entry.file.min_key, &mut entry.file.max_key);
    }
    replace(table, &mut entry);
    audited(dir).await
}
