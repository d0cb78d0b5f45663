//! `t$options`: the options of the latest schema.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[("key", Kind::Text, true), ("value", Kind::Text, true)])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let latest = source.table.latest_schema().await?;
    let rows: Vec<Vec<Cell>> =
        latest.options.iter().map(|(key, value)| vec![Cell::text(key), Cell::text(value)]).collect();
    cells::batch(&schema(), &rows)
}
