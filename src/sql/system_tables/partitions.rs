//! `t$partitions`: live files summed by partition. Counts are physical rows.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use super::entries::Texts;
use crate::error::Result;
use crate::scan::{index_files, live_files};
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("partition", Kind::Text, false),
        ("record_count", Kind::Long, true),
        ("file_size_in_bytes", Kind::Long, true),
        ("file_count", Kind::Long, true),
        ("last_update_time", Kind::Time, false),
        ("created_at", Kind::Time, false),
        ("created_by", Kind::Text, false),
        ("updated_by", Kind::Text, false),
        ("options", Kind::Text, false),
        ("total_buckets", Kind::Int, true),
        ("done", Kind::Bool, true),
        ("deleted_record_count", Kind::Long, false),
    ])
}

#[derive(Default)]
struct Sum {
    records: i64,
    bytes: u64,
    files: i64,
    last: Option<i64>,
    total_buckets: i32,
    deleted: i64,
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let pin = source.pin()?;
    let live = live_files(pin, &source.env.scan).await?;
    let texts = Texts::of(&source, &live).await?;
    // rows that deletion vectors hide, by data file
    let mut vectors: BTreeMap<String, Option<i64>> = BTreeMap::new();
    let indexes = index_files(pin, &source.env.scan).await?;
    for range in indexes.iter().flat_map(|file| file.deletion_vectors.iter().flatten()) {
        vectors.insert(range.data_file_name.clone(), range.cardinality);
    }
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for entry in &live {
        let sum = sums.entry(texts.partition_spec(&entry.partition)?).or_default();
        sum.records += entry.file.row_count;
        sum.bytes += entry.file.file_size;
        sum.files += 1;
        sum.last = sum.last.max(entry.file.creation_time_millis);
        sum.total_buckets = entry.total_buckets;
        sum.deleted += vectors.get(&entry.file.file_name).copied().flatten().unwrap_or(0);
    }
    let rows: Vec<Vec<Cell>> = sums
        .into_iter()
        .map(|(partition, sum)| {
            vec![
                Cell::text(partition),
                Cell::Long(sum.records),
                Cell::count(sum.bytes),
                Cell::Long(sum.files),
                sum.last.map_or(Cell::Null, Cell::Time),
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Int(sum.total_buckets),
                Cell::Bool(false),
                Cell::Long(sum.deleted),
            ]
        })
        .collect();
    cells::batch(&schema(), &rows)
}
