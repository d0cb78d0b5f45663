//! `t$consumers`: where readers go on.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[("consumer_id", Kind::Text, true), ("next_snapshot_id", Kind::Long, true)])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let mut consumers = source.table.consumers().await?;
    consumers.sort_by(|a, b| a.0.cmp(&b.0));
    let rows: Vec<Vec<Cell>> =
        consumers.into_iter().map(|(name, next)| vec![Cell::text(name), Cell::Long(next.0)]).collect();
    cells::batch(&schema(), &rows)
}
