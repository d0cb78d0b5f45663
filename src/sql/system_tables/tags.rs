//! `t$tags`: names that hold a snapshot; marked are those that hold the pinned one.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("tag_name", Kind::Text, true),
        ("snapshot_id", Kind::Long, true),
        ("schema_id", Kind::Long, true),
        ("commit_time", Kind::Time, true),
        ("record_count", Kind::Long, false),
        ("create_time", Kind::Time, false),
        ("time_retained", Kind::Text, false),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let mut tags = source.table.tags().await?;
    tags.sort_by(|a, b| a.0.cmp(&b.0));
    let rows: Vec<Vec<Cell>> = tags
        .iter()
        .map(|(name, tag)| {
            let mut row = vec![
                Cell::text(name),
                Cell::Long(tag.snapshot.id.0),
                Cell::Long(tag.snapshot.schema_id.0),
                Cell::Time(source.wall_clock(tag.snapshot.time_millis)),
                Cell::opt_long(tag.snapshot.total_record_count),
                tag.create_time.map_or(Cell::Null, |time| Cell::Time(time.and_utc().timestamp_millis())),
                Cell::opt_text(tag.time_retained_text()),
            ];
            source.mark(&mut row, |pin| pin.snapshot.as_ref().is_some_and(|pinned| pinned.is_of(&tag.snapshot)));
            row
        })
        .collect();
    source.marked(schema(), &rows)
}
