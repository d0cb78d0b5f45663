//! `DESCRIBE t` and `SHOW CREATE TABLE t`.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::catalog::TableProvider;

use crate::error::Result;
use crate::query::LakeTable;
use crate::snapshot::Pin;
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::types::{arrow_text, text};

/// Columns of a relation; tables of the warehouse tell their Paimon types, keys and comments.
pub(crate) fn columns(provider: &Arc<dyn TableProvider>) -> Result<RecordBatch> {
    let schema = cells::schema(&[
        ("column_name", Kind::Text, true),
        ("data_type", Kind::Text, true),
        ("is_nullable", Kind::Text, true),
        ("key", Kind::Text, false),
        ("comment", Kind::Text, false),
    ]);
    let lake = provider.downcast_ref::<LakeTable>().map(LakeTable::pin);
    let rows: Vec<Vec<Cell>> = provider
        .schema()
        .fields()
        .iter()
        .map(|column| {
            let field = lake.and_then(|pin| pin.declared.fields.iter().find(|f| f.name == *column.name()));
            let is_nullable = field.map_or(column.is_nullable(), |field| field.field_type.nullable);
            let mut keys = Vec::new();
            if let Some(pin) = lake {
                if pin.schema.primary_keys.contains(column.name()) {
                    keys.push("PRIMARY");
                }
                if pin.schema.partition_keys.contains(column.name()) {
                    keys.push("PARTITION");
                }
            }
            vec![
                Cell::text(column.name()),
                match field {
                    // nullability has its own column
                    Some(field) => Cell::text(text(&field.field_type).trim_end_matches(" NOT NULL")),
                    None => Cell::text(arrow_text(column.data_type())),
                },
                Cell::text(if is_nullable { "YES" } else { "NO" }),
                if keys.is_empty() { Cell::Null } else { Cell::text(keys.join(", ")) },
                Cell::opt_text(field.and_then(|f| f.description.as_deref())),
            ]
        })
        .collect();
    cells::batch(&schema, &rows)
}

/// The statement that makes a view; `rest` is what stands behind its name.
pub(crate) fn view_statement(database: &str, name: &str, rest: &str) -> String {
    format!("CREATE VIEW {}.{} {rest}", quoted(database), quoted(name))
}

/// The statement that would make a view again.
pub(crate) fn create_view(name: &str, statement: &str) -> Result<RecordBatch> {
    let schema = cells::schema(&[("table_name", Kind::Text, true), ("create_statement", Kind::Text, true)]);
    cells::batch(&schema, &[vec![Cell::text(name), Cell::text(statement)]])
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The statement that would make the pinned table.
pub(crate) fn create_table(pin: &Pin) -> Result<RecordBatch> {
    let schema = cells::schema(&[("table_name", Kind::Text, true), ("create_statement", Kind::Text, true)]);
    let (ident, declared) = (pin.table.ident(), &pin.declared);
    let string = |value: &str| format!("'{}'", value.replace('\'', "''"));
    let names = |all: &[String]| all.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let mut lines: Vec<String> = declared
        .fields
        .iter()
        .map(|field| {
            let comment = field.description.as_ref().map(|c| format!(" COMMENT {}", string(c))).unwrap_or_default();
            format!("  {} {}{comment}", quoted(&field.name), text(&field.field_type))
        })
        .collect();
    if declared.is_primary_key_table() {
        lines.push(format!("  PRIMARY KEY ({}) NOT ENFORCED", names(&declared.primary_keys)));
    }
    let mut statement =
        format!("CREATE TABLE {}.{} (\n{}\n)", quoted(&ident.database), quoted(&ident.table), lines.join(",\n"));
    if let Some(comment) = &declared.comment {
        statement.push_str(&format!("\nCOMMENT {}", string(comment)));
    }
    if !declared.partition_keys.is_empty() {
        statement.push_str(&format!("\nPARTITIONED BY ({})", names(&declared.partition_keys)));
    }
    if !declared.options.is_empty() {
        let options: Vec<String> =
            declared.options.iter().map(|(k, v)| format!("  {} = {}", string(k), string(v))).collect();
        statement.push_str(&format!("\nWITH (\n{}\n)", options.join(",\n")));
    }
    cells::batch(&schema, &[vec![Cell::text(pin.table.name()), Cell::text(statement)]])
}
