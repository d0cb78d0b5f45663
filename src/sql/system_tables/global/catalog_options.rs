//! `sys.catalog_options`: what the warehouse was opened with, when that says it may be shown.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::Result;
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::statement::Statement;
use crate::sql::warehouse::Warehouse;

pub(super) const NAME: &str = "catalog_options";

/// The option that shows the table.
pub(super) const OPTION: &str = "catalog-options-table.enabled";

/// Parts of names whose values are secrets.
const SECRET: &[&str] =
    &["secret", "password", "token", "access-key", "access_key", "accesskey", "credential", "private"];

/// Whether it is shown.
pub(super) fn enabled(warehouse: &Warehouse) -> bool {
    warehouse.catalog().options().get(OPTION).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[("key", Kind::Text, true), ("value", Kind::Text, true)])
}

pub(super) async fn rows(statement: Arc<Statement>) -> Result<RecordBatch> {
    let options = statement.warehouse().catalog().options();
    let rows: Vec<Vec<Cell>> = options
        .into_iter()
        .map(|(key, value)| {
            let lower = key.to_lowercase();
            let hidden = SECRET.iter().any(|word| lower.contains(word));
            vec![Cell::text(key), Cell::text(if hidden { "***".to_string() } else { value })]
        })
        .collect();
    cells::batch(&schema(), &rows)
}
