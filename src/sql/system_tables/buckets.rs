//! `t$buckets`: live files summed by partition and bucket, whatever a read sees of them. Counts are physical rows.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::{Source, listed};
use crate::error::Result;
use crate::recon::accounting::PartitionValues;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("partition", Kind::Text, false),
        ("bucket", Kind::Int, true),
        ("record_count", Kind::Long, true),
        ("file_size_in_bytes", Kind::Long, true),
        ("file_count", Kind::Long, true),
        ("last_update_time", Kind::Time, false),
    ])
}

/// What the files of one bucket add up to.
#[derive(Default)]
struct Sums {
    records: i64,
    bytes: u64,
    files: i64,
    last: Option<i64>,
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let all = listed::live(&source).await?;
    let files = all.iter().flat_map(|listed| listed.files.iter().map(|entry| (&listed.texts, entry)));
    let mut sums: BTreeMap<(String, PartitionValues, i32), Sums> = BTreeMap::new();
    for (texts, entry) in files {
        let (shown, values) = (texts.partition_in_braces(&entry.partition)?, texts.partition_key(&entry.partition)?);
        let sum = sums.entry((shown, values, entry.bucket.0)).or_default();
        sum.records += entry.file.row_count;
        sum.bytes += entry.file.file_size;
        sum.files += 1;
        sum.last = sum.last.max(entry.file.creation_time_millis);
    }
    let rows: Vec<Vec<Cell>> = sums
        .into_iter()
        .map(|((partition, _, bucket), sum)| {
            vec![
                Cell::text(partition),
                Cell::Int(bucket),
                Cell::Long(sum.records),
                Cell::count(sum.bytes),
                Cell::Long(sum.files),
                sum.last.map_or(Cell::Null, Cell::Time),
            ]
        })
        .collect();
    cells::batch(&schema(), &rows)
}
