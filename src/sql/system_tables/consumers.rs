//! `t$consumers`: where readers go on; marked are those that stand at the pinned snapshot.

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
    let rows: Vec<Vec<Cell>> = consumers
        .into_iter()
        .map(|(name, next)| {
            let mut row = vec![Cell::text(name), Cell::Long(next.0)];
            source.mark(&mut row, |pin| pin.snapshot.as_ref().is_some_and(|pinned| pinned.id == next));
            row
        })
        .collect();
    source.marked(schema(), &rows)
}
