//! `t$schemas`: every version of the schema, its parts as JSON.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::{Serialize, Serializer};

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

fn json(value: &impl Serialize) -> Result<Cell> {
    let text = serde_json::to_string(value);
    text.map(Cell::text).map_err(|e| Error::internal("a part of a schema becomes no JSON").with_source(e))
}

/// An object whose members keep their order.
struct Pairs(Vec<(String, String)>);

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let mut ids = source.table.schema_ids().await?;
    ids.sort_unstable();
    let mut rows = Vec::new();
    for id in ids {
        let schema = source.table.schema(id).await?;
        let options = Pairs(source.table.options_as_written(&schema).await?);
        rows.push(vec![
            Cell::Long(id.0),
            json(&schema.fields)?,
            json(&schema.partition_keys)?,
            json(&schema.primary_keys)?,
            json(&options)?,
            Cell::opt_text(schema.comment.as_deref()),
            Cell::Time(source.wall_clock(schema.time_millis)),
        ]);
    }
    cells::batch(&self::schema(), &rows)
}
