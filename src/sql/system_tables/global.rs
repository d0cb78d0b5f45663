//! Tables over the whole warehouse: `sys.tables`, `sys.partitions`, `sys.all_table_options`, `sys.catalog_options`.

use std::sync::Arc;

use datafusion::catalog::TableProvider;

use crate::error::Result;
use crate::snapshot::nearest::known_names;
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::memory::LazyTable;
use crate::sql::statement::Statement;
use crate::sql::warehouse::Warehouse;

/// The database they live in.
pub(crate) const GLOBAL_DATABASE: &str = "sys";

/// Their names.
pub(crate) fn tables() -> [&'static str; 2] {
    ["all_table_options", "tables"]
}

/// One of them; None when the warehouse has a database `sys` of its own with such a table.
pub(crate) async fn provider(statement: &Arc<Statement>, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
    let warehouse = statement.warehouse().clone();
    Ok(Some(match name {
        "tables" => {
            let schema = cells::schema(&[
                ("database_name", Kind::Text, true),
                ("table_name", Kind::Text, true),
                ("table_type", Kind::Text, true),
                ("partitioned", Kind::Bool, true),
                ("primary_key", Kind::Bool, true),
            ]);
            let own = Arc::clone(&schema);
            LazyTable::provider("sys.tables", schema, move || {
                let (warehouse, schema) = (warehouse.clone(), Arc::clone(&own));
                Box::pin(async move {
                    let mut rows = Vec::new();
                    for (database, table) in all(&warehouse).await? {
                        let latest = warehouse.catalog().table(&database, &table).await?.latest_schema().await?;
                        rows.push(vec![
                            Cell::text(database),
                            Cell::text(table),
                            Cell::text(latest.options.get("type").map_or("table", String::as_str)),
                            Cell::Bool(!latest.partition_keys.is_empty()),
                            Cell::Bool(latest.is_primary_key_table()),
                        ]);
                    }
                    cells::batch(&schema, &rows)
                })
            })
        }
        "all_table_options" => {
            let schema = cells::schema(&[
                ("database_name", Kind::Text, true),
                ("table_name", Kind::Text, true),
                ("key", Kind::Text, true),
                ("value", Kind::Text, true),
            ]);
            let own = Arc::clone(&schema);
            LazyTable::provider("sys.all_table_options", schema, move || {
                let (warehouse, schema) = (warehouse.clone(), Arc::clone(&own));
                Box::pin(async move {
                    let mut rows = Vec::new();
                    for (database, table) in all(&warehouse).await? {
                        let latest = warehouse.catalog().table(&database, &table).await?.latest_schema().await?;
                        for (key, value) in &latest.options {
                            rows.push(vec![
                                Cell::text(&database),
                                Cell::text(&table),
                                Cell::text(key),
                                Cell::text(value),
                            ]);
                        }
                    }
                    cells::batch(&schema, &rows)
                })
            })
        }
        other => {
            return Err(crate::error::Error::not_found(format!("there is no table sys.{other}"))
                .with_code("TableNotFound")
                .with_hint(known_names("tables", other, tables())));
        }
    }))
}

async fn all(warehouse: &Warehouse) -> Result<Vec<(String, String)>> {
    let mut names = Vec::new();
    for database in warehouse.catalog().list_databases().await? {
        for table in warehouse.catalog().list_tables(&database).await? {
            names.push((database.clone(), table));
        }
    }
    Ok(names)
}
