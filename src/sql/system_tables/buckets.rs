//! `t$buckets`: live files summed by partition and bucket. Counts are physical rows.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use super::entries::Texts;
use crate::error::Result;
use crate::scan::live_files;
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
    let live = live_files(source.pin()?, &source.env.scan).await?;
    let texts = Texts::of(&source, &live).await?;
    let mut sums: BTreeMap<(String, i32), Sums> = BTreeMap::new();
    for entry in &live {
        let sum = sums.entry((texts.partition(&entry.partition)?, entry.bucket.0)).or_default();
        sum.records += entry.file.row_count;
        sum.bytes += entry.file.file_size;
        sum.files += 1;
        sum.last = sum.last.max(entry.file.creation_time_millis);
    }
    let rows: Vec<Vec<Cell>> = sums
        .into_iter()
        .map(|((partition, bucket), sum)| {
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
