//! `t$tags`: names that hold a snapshot; marked are those that hold the pinned one. A tag that cannot be read is there
//! with its name alone, which a notice tells: one broken file must not hide the others.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::spec::tag::Tag;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("tag_name", Kind::Text, true),
        // NOT NULL in Java, which fails where a tag cannot be read
        ("snapshot_id", Kind::Long, false),
        ("schema_id", Kind::Long, false),
        ("commit_time", Kind::Time, false),
        ("record_count", Kind::Long, false),
        ("create_time", Kind::Time, false),
        ("time_retained", Kind::Text, false),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let tags = source.table.readable_tags().await?;
    source.notice_unreadable(&tags, "tag");
    let readable = tags.found.iter().map(|(name, tag)| (name, Some(tag)));
    let mut all: Vec<(&String, Option<&Tag>)> =
        readable.chain(tags.unreadable.iter().map(|name| (name, None))).collect();
    all.sort_by_key(|(name, _)| *name);
    let rows: Vec<Vec<Cell>> = all
        .into_iter()
        .map(|(name, tag)| {
            let mut row = vec![Cell::text(name)];
            let Some(tag) = tag else {
                row.resize_with(schema().fields().len(), || Cell::Null);
                source.mark(&mut row, |_| false);
                return row;
            };
            row.extend([
                Cell::Long(tag.snapshot.id.0),
                Cell::Long(tag.snapshot.schema_id.0),
                Cell::Time(source.wall_clock(tag.snapshot.time_millis)),
                Cell::opt_long(tag.snapshot.total_record_count),
                tag.create_time.map_or(Cell::Null, |time| Cell::Time(time.and_utc().timestamp_millis())),
                Cell::opt_text(tag.time_retained_text()),
            ]);
            source.mark(&mut row, |pin| pin.snapshot.as_ref().is_some_and(|pinned| pinned.is_of(&tag.snapshot)));
            row
        })
        .collect();
    source.marked(schema(), &rows)
}
