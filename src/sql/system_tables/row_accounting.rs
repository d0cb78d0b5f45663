//! `t$row_accounting`: raw, hidden and vector-deleted rows by bucket, with the bounds of the final rows that metadata
//! gives. `paimon_row_accounting('db.t')` reads the files and counts exactly.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::recon::accounting::expiring_rows;
use crate::sql::functions::{AccountingLevel, accounting_batch, accounting_schema};

pub(super) fn schema() -> SchemaRef {
    accounting_schema()
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let pin = source.pin()?;
    if let Some(kind) = expiring_rows(pin) {
        source.notice(kind);
    }
    accounting_batch(pin, &source.env, &source.zone, source.budget(), AccountingLevel::Unit, false).await
}
