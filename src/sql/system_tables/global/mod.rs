//! Tables over the whole warehouse, in the database `sys`: one file each, and one list.

mod all_table_options;
mod catalog_options;
mod partitions;
mod tables;

use std::sync::{Arc, Weak};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use futures::future::BoxFuture;

use crate::error::{Error, Result};
use crate::snapshot::Table;
use crate::snapshot::nearest::known_names;
use crate::sql::cells::Cell;
use crate::sql::memory::LazyTable;
use crate::sql::statement::Statement;
use crate::sql::warehouse::Warehouse;

/// The database they live in.
pub(crate) const GLOBAL_DATABASE: &str = "sys";

/// One of them.
struct GlobalTable {
    name: &'static str,
    schema: fn() -> SchemaRef,
    rows: fn(Arc<Statement>) -> BoxFuture<'static, Result<RecordBatch>>,
}

/// Lists a table.
macro_rules! global {
    ($name:literal, $module:ident) => {
        GlobalTable { name: $name, schema: $module::schema, rows: |statement| Box::pin($module::rows(statement)) }
    };
}

const ALL: &[GlobalTable] = &[
    global!("all_table_options", all_table_options),
    global!("catalog_options", catalog_options),
    global!("partitions", partitions),
    global!("tables", tables),
];

/// The names of those that the warehouse shows.
pub(crate) fn tables(warehouse: &Warehouse) -> Vec<&'static str> {
    let shown = |table: &&GlobalTable| table.name != catalog_options::NAME || catalog_options::enabled(warehouse);
    ALL.iter().filter(shown).map(|table| table.name).collect()
}

/// Whether a name is one of theirs.
pub(crate) fn is_global(database: &str, name: &str) -> bool {
    database == GLOBAL_DATABASE && ALL.iter().any(|table| table.name == name)
}

/// One of them.
pub(crate) fn provider(statement: &Arc<Statement>, name: &str) -> Result<Arc<dyn TableProvider>> {
    let shown = tables(statement.warehouse());
    let Some(table) = ALL.iter().find(|table| table.name == name && shown.contains(&name)) else {
        let missing = Error::not_found(format!("there is no table sys.{name}")).with_code("TableNotFound");
        return Err(if name == catalog_options::NAME {
            missing
                .with_hint(format!("it is shown when the warehouse is opened with {} = true", catalog_options::OPTION))
        } else {
            missing.with_hint(known_names("tables", name, shown))
        });
    };
    // the statement keeps its providers, so a provider must not keep the statement
    let statement: Weak<Statement> = Arc::downgrade(statement);
    let rows = table.rows;
    Ok(LazyTable::provider(format!("sys.{name}"), (table.schema)(), move || {
        let statement = statement.upgrade();
        Box::pin(async move {
            let statement = statement.ok_or_else(|| Error::internal("a system table outlived its statement"))?;
            rows(statement).await
        })
    }))
}

/// All tables of the warehouse with their database; those dropped meanwhile are left out, those that cannot be opened with
/// a notice.
async fn all(statement: &Statement) -> Result<Vec<(String, Arc<Table>)>> {
    let gone = |error: &Error| matches!(error.code(), "TableNotFound" | "DatabaseNotFound");
    let warehouse = statement.warehouse();
    let mut found = Vec::new();
    for database in warehouse.catalog().list_databases().await? {
        let names = match warehouse.catalog().list_tables(&database).await {
            Ok(names) => names,
            Err(error) if gone(&error) => continue,
            Err(error) => {
                statement.database_left_out(database, &error);
                continue;
            }
        };
        for name in names {
            match warehouse.catalog().table(&database, &name).await {
                Ok(table) => found.push((database.clone(), table)),
                Err(error) if gone(&error) => {}
                Err(error) => statement.left_out(format!("{database}.{name}"), &error),
            }
        }
    }
    Ok(found)
}

/// The rows found for a table; one that cannot be read is left out with a notice, and hides no other.
fn readable(statement: &Statement, table: &Table, found: Result<Vec<Vec<Cell>>>) -> Vec<Vec<Cell>> {
    found.unwrap_or_else(|error| {
        statement.left_out(table.name(), &error);
        Vec::new()
    })
}
