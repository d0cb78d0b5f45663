//! `t$snapshots`: the commits that are kept. A pinned number that was used again after a rollback is not marked.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("snapshot_id", Kind::Long, true),
        ("schema_id", Kind::Long, true),
        ("commit_user", Kind::Text, true),
        ("commit_identifier", Kind::Long, true),
        ("commit_kind", Kind::Text, true),
        ("commit_time", Kind::Time, true),
        ("base_manifest_list", Kind::Text, true),
        ("delta_manifest_list", Kind::Text, true),
        ("changelog_manifest_list", Kind::Text, false),
        ("total_record_count", Kind::Long, false),
        ("delta_record_count", Kind::Long, false),
        ("changelog_record_count", Kind::Long, false),
        ("watermark", Kind::Long, false),
        ("next_row_id", Kind::Long, false),
        ("operation", Kind::Text, false),
        ("writer_version", Kind::Text, false),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let mut snapshots = source.table.snapshots().await?;
    snapshots.sort_by_key(|s| s.id);
    let rows: Vec<Vec<Cell>> = snapshots
        .iter()
        .map(|s| {
            let mut row = vec![
                Cell::Long(s.id.0),
                Cell::Long(s.schema_id.0),
                Cell::text(&s.commit_user),
                Cell::Long(s.commit_identifier),
                Cell::text(s.commit_kind.as_str()),
                Cell::Time(source.wall_clock(s.time_millis)),
                Cell::text(&s.base_manifest_list),
                Cell::text(&s.delta_manifest_list),
                Cell::opt_text(s.changelog_manifest_list.as_deref()),
                Cell::opt_long(s.total_record_count),
                Cell::opt_long(s.delta_record_count),
                Cell::opt_long(s.changelog_record_count),
                Cell::opt_long(s.watermark),
                Cell::opt_long(s.next_row_id),
                Cell::opt_text(s.operation.as_deref()),
                Cell::opt_text(s.writer_version.as_deref()),
            ];
            source.mark(&mut row, |pin| pin.snapshot.as_ref().is_some_and(|pinned| pinned.is_of(s)));
            row
        })
        .collect();
    source.marked(schema(), &rows)
}
