//! `sys.tables`: every table of the warehouse.
//!
//! Owner, creation and update come from the table's options, where catalogs that know them put them. Counts and sizes
//! are NULL: a catalog with a service keeps them beside the table, a warehouse of files would have to read all metadata
//! of all tables for them; `sys.partitions` and `t$partitions` do.

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
        ("table_type", Kind::Text, true),
        ("partitioned", Kind::Bool, true),
        ("primary_key", Kind::Bool, true),
        ("owner", Kind::Text, false),
        ("created_at", Kind::Long, false),
        ("created_by", Kind::Text, false),
        ("updated_at", Kind::Long, false),
        ("updated_by", Kind::Text, false),
        ("record_count", Kind::Long, false),
        ("file_size_in_bytes", Kind::Long, false),
        ("file_count", Kind::Long, false),
        ("last_file_creation_time", Kind::Long, false),
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
    let latest = table.latest_schema().await?;
    let text = |key: &str| Cell::opt_text(latest.options.get(key).map(String::as_str));
    let number = |key: &str| Cell::opt_long(latest.options.get(key).and_then(|value| value.trim().parse().ok()));
    Ok(vec![vec![
        Cell::text(database),
        Cell::text(&table.ident().table),
        Cell::text(latest.options.get("type").map_or("table", String::as_str)),
        Cell::Bool(!latest.partition_keys.is_empty()),
        Cell::Bool(latest.is_primary_key_table()),
        text("owner"),
        number("createdAt"),
        text("createdBy"),
        number("updatedAt"),
        text("updatedBy"),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
    ]])
}
