use std::path::Path;

use arrow::array::{Float64Array, Int8Array, Int32Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType as ArrowType;
use serde_json::json;

use super::*;
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::memory::Unbounded;
use crate::snapshot::PinRequest;
use crate::spec::CommitKind;
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};
use crate::testing::golden;

/// Counts the latest snapshot under some options.
async fn counted(warehouse: &Path, database: &str, table: &str, options: &[(&str, &str)]) -> Accounting {
    let catalog = FilesystemCatalog::open(&warehouse.to_string_lossy(), &BTreeMap::new()).await.unwrap();
    let table = catalog.table(database, table).await.unwrap();
    let options = options.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect();
    let pin = Pin::resolve(&table, PinRequest::Latest, &options).await.unwrap();
    let options = AccountingOptions {
        exact: true,
        zone: Zone::UTC,
        budget: Arc::new(Unbounded),
        partitions: Vec::new(),
        config: None,
    };
    account(&pin, &QueryEnv::new(), &options).await.unwrap()
}

/// Raw, hidden, deleted by vectors, final.
fn parts(row: &AccountingRow) -> [u64; 4] {
    [row.raw_rows, row.hidden_rows, row.vector_deleted, row.final_rows]
}

#[tokio::test]
async fn files_that_are_not_read_are_counted_for_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")])
        .primary_key(&["id"])
        .option("bucket", "2")
        .option("deletion-vectors.enabled", "true");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
    let rows: Vec<_> = (0..40).map(|id| json!({"id": id, "v": id})).collect();
    table.commit().file(FileSpec::rows(&rows).level(5)).kind(CommitKind::Compact).publish().unwrap();
    let all = table.live_files().unwrap();
    let (gone, half) = (&all[0].file, &all[1].file);
    table
        .commit()
        .delete_positions(&gone.file_name, &(0..gone.row_count as u64).collect::<Vec<_>>())
        .delete_positions(&half.file_name, &[0, 1])
        .kind(CommitKind::Compact)
        .publish()
        .unwrap();
    table.append(&[json!({"id": 1000, "v": 1})]).unwrap();
    let counts = counted(dir.path(), "d", "t", &[]).await;
    let gone = gone.row_count as u64;
    assert_eq!(parts(&counts.total), [41, 1, gone + 2, 38 - gone]);
    assert_eq!(counts.violations, Vec::<String>::new());
    // one bucket asked for: the other's files are no deleted rows
    let mut sums = [0; 4];
    for bucket in ["0", "1"] {
        let counts = counted(dir.path(), "d", "t", &[("scan.bucket", bucket)]).await;
        assert_eq!(counts.violations, Vec::<String>::new());
        assert_eq!(counts.units.len(), 1);
        sums.iter_mut().zip(parts(&counts.total)).for_each(|(sum, part)| *sum += part);
    }
    assert_eq!(sums, parts(&counts.total));
}

#[tokio::test]
async fn both_zeros_and_all_nans_are_one_key_each() {
    for (text, of) in [("DOUBLE", ArrowType::Float64), ("FLOAT", ArrowType::Float32)] {
        let dir = tempfile::tempdir().unwrap();
        let spec = TableSpec::new(&[("k", &format!("{text} NOT NULL")), ("v", "INT")])
            .primary_key(&["k"])
            .option("bucket", "1")
            .option("merge-engine", "aggregation")
            .option("fields.v.aggregate-function", "sum");
        let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
        let other_nan = if of == ArrowType::Float64 {
            f64::from_bits(0xfff8_0000_0000_0001)
        } else {
            f64::from(f32::from_bits(0xffc0_0001))
        };
        for keys in [[0.0, 1.0, f64::NAN], [-0.0, 1.0, other_nan]] {
            let keys = cast(&Float64Array::from(keys.to_vec()), &of).unwrap();
            let columns: Vec<(&str, ArrayRef)> = vec![
                ("k", keys),
                ("v", Arc::new(Int32Array::from(vec![1, 2, 3]))),
                ("_SEQUENCE_NUMBER", Arc::new(Int64Array::from(vec![1, 2, 3]))),
                ("_VALUE_KIND", Arc::new(Int8Array::from(vec![0, 0, 0]))),
            ];
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            table.commit().file(FileSpec::batches(vec![batch])).publish().unwrap();
        }
        let counts = counted(dir.path(), "d", "t", &[]).await;
        let total = &counts.total;
        assert_eq!([total.raw_rows, total.superseded, total.tombstoned, total.final_rows], [6, 3, 0, 3], "{text}");
    }
}

#[tokio::test]
async fn partitions_of_another_branch_are_no_deleted_rows() {
    // partition b is in both branches
    let counts = counted(&golden::java_warehouse().unwrap(), "golden", "fallback_branch", &[]).await;
    assert_eq!(parts(&counts.total), [3, 0, 0, 3]);
    assert!(counts.partitions.iter().all(|row| parts(row) == [1, 0, 0, 1]), "{:?}", counts.partitions);
}

/// As `count(*)`, which reads no column at all.
#[tokio::test]
async fn columns_in_files_of_their_own_add_no_rows() {
    let counts = counted(&golden::python_warehouse().unwrap(), "golden", "append_blob", &[]).await;
    let rows = counts.total.final_rows;
    assert!(rows > 0);
    assert_eq!(parts(&counts.total), [rows, 0, 0, rows]);
    assert_eq!(counts.violations, Vec::<String>::new());
    assert!(counts.notices.iter().any(|notice| notice.contains("only hold columns")), "{:?}", counts.notices);
}

#[test]
fn the_identity_is_checked_to_the_row() {
    let row = AccountingRow {
        raw_rows: 10,
        hidden_rows: 1,
        vector_deleted: 2,
        superseded: 3,
        tombstoned: 1,
        final_rows: 3,
        ..AccountingRow::default()
    };
    assert!(row.identity_holds());
    assert!(!AccountingRow { final_rows: 4, ..row.clone() }.identity_holds());
}

#[test]
fn an_unknown_retract_count_stays_unknown_in_the_sum() {
    let mut total = AccountingRow::start(String::new(), PartitionValues::default(), None);
    total.add(&AccountingRow { retract_rows: Some(2), ..AccountingRow::default() });
    assert_eq!(total.retract_rows, Some(2));
    total.add(&AccountingRow { retract_rows: None, ..AccountingRow::default() });
    assert_eq!(total.retract_rows, None);
}

#[tokio::test]
async fn rows_of_another_branch_and_of_other_buckets_are_told_where_the_snapshot_counts_otherwise() {
    let warehouse = golden::java_warehouse().unwrap();
    let told = |counts: &Accounting, words: &str| counts.notices.iter().any(|notice| notice.contains(words));
    let counts = counted(&warehouse, "golden", "fallback_branch", &[]).await;
    let other = counts.total.raw_rows - u64::try_from(counts.snapshot_total.unwrap()).unwrap();
    assert!(other > 0 && told(&counts, "which the snapshot does not count"), "{:?}", counts.notices);
    let whole = counted(&warehouse, "golden", "pk_lsm", &[]).await;
    let one = counted(&warehouse, "golden", "pk_lsm", &[("scan.bucket", "1")]).await;
    let unread = format!("{} rows not read", whole.total.raw_rows - one.total.raw_rows);
    assert!(told(&one, &unread) && !told(&whole, "not read"), "{:?}", one.notices);
}
