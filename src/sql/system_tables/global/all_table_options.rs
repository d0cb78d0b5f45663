//! `sys.all_table_options`: the options of every table, its path among them.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::{all, readable};
use crate::error::Result;
use crate::snapshot::Table;
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::statement::Statement;

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("database_name", Kind::Text, true),
        ("table_name", Kind::Text, true),
        ("key", Kind::Text, true),
        ("value", Kind::Text, true),
    ])
}

pub(super) async fn rows(statement: Arc<Statement>) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for (database, table) in all(&statement).await? {
        rows.extend(readable(&statement, &table, of_table(&database, &table).await));
    }
    cells::batch(&schema(), &rows)
}

async fn of_table(database: &str, table: &Table) -> Result<Vec<Vec<Cell>>> {
    let mut options = table.latest_schema().await?.options.clone();
    options.entry("path".to_string()).or_insert_with(|| table.root().to_string());
    let row = |(key, value): (String, String)| {
        vec![Cell::text(database), Cell::text(&table.ident().table), Cell::text(key), Cell::text(value)]
    };
    Ok(options.into_iter().map(row).collect())
}
