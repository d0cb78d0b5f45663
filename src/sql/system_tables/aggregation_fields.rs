//! `t$aggregation_fields`: columns with their aggregate functions.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("field_name", Kind::Text, true),
        ("field_type", Kind::Text, true),
        ("function", Kind::Text, false),
        ("function_options", Kind::Text, false),
        ("comment", Kind::Text, false),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let latest = source.table.latest_schema().await?;
    let mut rows = Vec::new();
    for field in &latest.fields {
        let prefix = format!("fields.{}.", field.name);
        let mut function = None;
        let mut options = serde_json::Map::new();
        for (key, value) in &latest.options {
            match key.strip_prefix(&prefix) {
                Some("aggregate-function") => function = Some(value.clone()),
                Some(_) => {
                    options.insert(key.clone(), serde_json::Value::String(value.clone()));
                }
                None => {}
            }
        }
        rows.push(vec![
            Cell::text(&field.name),
            Cell::text(crate::sql::types::text(&field.field_type)),
            Cell::opt_text(function),
            if options.is_empty() { Cell::Null } else { Cell::text(serde_json::Value::Object(options).to_string()) },
            Cell::opt_text(field.description.as_deref()),
        ]);
    }
    cells::batch(&schema(), &rows)
}
