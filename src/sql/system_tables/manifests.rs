//! `t$manifests`: the manifest files of the pinned snapshot.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use super::entries::texts_of;
use crate::error::Result;
use crate::scan::manifests;
use crate::spec::BinaryRow;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("file_name", Kind::Text, true),
        ("file_size", Kind::Long, true),
        ("num_added_files", Kind::Long, true),
        ("num_deleted_files", Kind::Long, true),
        ("schema_id", Kind::Long, true),
        ("min_partition_stats", Kind::Text, false),
        ("max_partition_stats", Kind::Text, false),
        ("min_row_id", Kind::Long, false),
        ("max_row_id", Kind::Long, false),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let manifests = manifests(source.pin()?, &source.env.scan).await?;
    let texts = texts_of(&source, &[]).await?;
    let bound = |row: &BinaryRow| -> Result<Cell> {
        Ok(if row.is_empty() { Cell::text("{}") } else { Cell::text(texts.partition_in_braces(row)?) })
    };
    let mut rows = Vec::with_capacity(manifests.len());
    for meta in &manifests {
        rows.push(vec![
            Cell::text(&meta.file_name),
            Cell::count(meta.file_size),
            Cell::Long(meta.num_added_files),
            Cell::Long(meta.num_deleted_files),
            Cell::Long(meta.schema_id.0),
            bound(&meta.partition_stats.min_values)?,
            bound(&meta.partition_stats.max_values)?,
            Cell::opt_long(meta.min_row_id),
            Cell::opt_long(meta.max_row_id),
        ]);
    }
    cells::batch(&schema(), &rows)
}
