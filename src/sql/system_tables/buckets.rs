//! `t$buckets`: live files summed by partition and bucket. Counts are physical rows.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use super::entries::{self, Texts};
use crate::error::Result;
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

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let live = entries::live(source.pin()?).await?;
    let texts = Texts::of(&source, &live).await?;
    let mut sums: BTreeMap<(String, i32), (i64, u64, i64, Option<i64>)> = BTreeMap::new();
    for entry in &live {
        let sum = sums.entry((texts.partition(&entry.partition)?, entry.bucket.0)).or_default();
        sum.0 += entry.file.row_count;
        sum.1 += entry.file.file_size;
        sum.2 += 1;
        sum.3 = sum.3.max(entry.file.creation_time_millis);
    }
    let rows: Vec<Vec<Cell>> = sums
        .into_iter()
        .map(|((partition, bucket), (records, bytes, files, last))| {
            vec![
                Cell::text(partition),
                Cell::Int(bucket),
                Cell::Long(records),
                Cell::count(bytes),
                Cell::Long(files),
                last.map_or(Cell::Null, Cell::Time),
            ]
        })
        .collect();
    cells::batch(&schema(), &rows)
}
