//! `t$statistics`: what ANALYZE left behind for the pinned snapshot.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::spec::statistics::TableStatistics;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("snapshot_id", Kind::Long, true),
        ("schema_id", Kind::Long, true),
        ("mergedRecordCount", Kind::Long, false),
        ("mergedRecordSize", Kind::Long, false),
        ("colstat", Kind::Text, false),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let pin = source.pin()?;
    let mut rows = Vec::new();
    if let Some(name) = pin.snapshot.as_ref().and_then(|s| s.statistics.as_deref()) {
        let location = pin.table.statistics_location(name)?;
        let Some(bytes) = pin.table.storage().read_opt(&location).await? else {
            return Err(pin.missing_file(&location).await);
        };
        let statistics = TableStatistics::from_json(&bytes).map_err(|e| e.with_context("file", &location))?;
        rows.push(vec![
            Cell::Long(statistics.snapshot_id.0),
            Cell::Long(statistics.schema_id.0),
            Cell::opt_long(statistics.merged_record_count),
            Cell::opt_long(statistics.merged_record_size),
            Cell::text(statistics.col_stats_json()),
        ]);
    }
    cells::batch(&schema(), &rows)
}
