//! `t$schemas`: every version of the schema, its parts as JSON.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde_json::Value;

use super::Source;
use crate::error::{Error, Result};
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("schema_id", Kind::Long, true),
        ("fields", Kind::Text, true),
        ("partition_keys", Kind::Text, true),
        ("primary_keys", Kind::Text, true),
        ("options", Kind::Text, true),
        ("comment", Kind::Text, false),
        ("update_time", Kind::Time, true),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let mut ids = source.table.schema_ids().await?;
    ids.sort_unstable();
    let mut rows = Vec::new();
    for id in ids {
        let schema = source.table.schema(id).await?;
        let json: Value = serde_json::from_str(&schema.to_json())
            .map_err(|e| Error::internal(format!("schema {id} was written as no JSON: {e}")))?;
        let part = |name: &str| Cell::text(json.get(name).map(ToString::to_string).unwrap_or_default());
        rows.push(vec![
            Cell::Long(id.0),
            part("fields"),
            part("partitionKeys"),
            part("primaryKeys"),
            part("options"),
            Cell::opt_text(schema.comment.as_deref()),
            Cell::Time(source.wall_clock(schema.time_millis)),
        ]);
    }
    cells::batch(&self::schema(), &rows)
}
