//! `t$aggregation_fields`: the columns of the pinned schema with the values and the names of their `fields.…` options, both
//! as Java writes lists: `[sum]` and `[fields.v.aggregate-function]`.

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
    let pin = source.pin()?;
    let mut rows = Vec::new();
    for field in &pin.declared.fields {
        // the options in force, columns by their names in the pinned schema
        let of_field = |key: &str| {
            let rest = key.strip_prefix("fields.")?.strip_prefix(field.name.as_str())?.strip_prefix('.')?;
            (!rest.is_empty()).then_some(())
        };
        let (keys, values): (Vec<&str>, Vec<&str>) = pin
            .options
            .raw
            .iter()
            .filter(|(key, _)| of_field(key).is_some())
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .unzip();
        let list = |all: &[&str]| Cell::text(format!("[{}]", all.join(", ")));
        rows.push(vec![
            Cell::text(&field.name),
            Cell::text(crate::sql::types::text(&field.field_type)),
            list(&values),
            list(&keys),
            Cell::opt_text(field.description.as_deref()),
        ]);
    }
    cells::batch(&schema(), &rows)
}
