//! `t$consumers`: where readers go on; marked are those that stand at the pinned snapshot. One that
//! cannot be read is there with its name alone, which a notice tells.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::spec::SnapshotId;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    // the number is NOT NULL in Java, which fails where a consumer cannot be read
    cells::schema(&[("consumer_id", Kind::Text, true), ("next_snapshot_id", Kind::Long, false)])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let consumers = source.table.readable_consumers().await?;
    source.notice_unreadable(&consumers, "consumer");
    let readable = consumers.found.into_iter().map(|(name, next)| (name, Some(next)));
    let mut all: Vec<(String, Option<SnapshotId>)> =
        readable.chain(consumers.unreadable.into_iter().map(|name| (name, None))).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let rows: Vec<Vec<Cell>> = all
        .into_iter()
        .map(|(name, next)| {
            let mut row = vec![Cell::text(name), Cell::opt_long(next.map(|next| next.0))];
            source.mark(&mut row, |pin| pin.snapshot.as_ref().is_some_and(|pinned| Some(pinned.id) == next));
            row
        })
        .collect();
    source.marked(schema(), &rows)
}
