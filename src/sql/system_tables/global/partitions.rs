//! `sys.partitions`: the partitions of every partitioned table, each table at the statement's snapshot of it.
//!
//! `last_file_creation_time` is in epoch milliseconds: files tell the wall clock of their writer, which is taken to be
//! that of the session. `done` is false: nobody marks partitions in a warehouse of files.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::{all, readable};
use crate::error::Result;
use crate::snapshot::Table;
use crate::spec::DataType;
use crate::spec::partition_path::partition_name;
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::selector::Selection;
use crate::sql::statement::Statement;
use crate::sql::system_tables::partitions::sums;
use crate::sql::system_tables::source;

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("database_name", Kind::Text, true),
        ("table_name", Kind::Text, true),
        ("partition_name", Kind::Text, true),
        ("record_count", Kind::Long, true),
        ("file_size_in_bytes", Kind::Long, true),
        ("file_count", Kind::Long, true),
        ("last_file_creation_time", Kind::Long, false),
        ("done", Kind::Bool, true),
    ])
}

pub(super) async fn rows(statement: Arc<Statement>) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for (database, table) in all(&statement).await? {
        rows.extend(readable(&statement, &table, of_table(&statement, &database, &table).await));
    }
    cells::batch(&schema(), &rows)
}

async fn of_table(statement: &Arc<Statement>, database: &str, table: &Arc<Table>) -> Result<Vec<Vec<Cell>>> {
    if table.latest_schema().await?.partition_keys.is_empty() {
        return Ok(Vec::new());
    }
    let pin = statement.pin(table, &Selection::none()).await?;
    let source = source(statement, table, Some(pin));
    let pin = source.pin()?;
    let indices = pin.schema.partition_indices()?;
    let fields: Vec<_> = indices.iter().filter_map(|index| pin.schema.fields.get(*index)).collect();
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let types: Vec<&DataType> = fields.iter().map(|field| field.data_type()).collect();
    let sums = sums(&source).await?;
    sums.into_iter()
        .map(|(_, sum)| {
            let name = partition_name(&names, &sum.partition.decode(&types)?, &types, &pin.options)?;
            let last = sum.last.map(|local| source.zone.instant_of(local).unwrap_or(local));
            Ok(vec![
                Cell::text(database),
                Cell::text(&table.ident().table),
                Cell::text(name),
                Cell::Long(sum.records),
                Cell::count(sum.bytes),
                Cell::Long(sum.files),
                Cell::opt_long(last),
                Cell::Bool(false),
            ])
        })
        .collect()
}
