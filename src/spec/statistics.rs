//! Statistics files: hints for a planner, never used to drop data.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::json::{self, Object};
use super::schema::SchemaId;
use super::snapshot::SnapshotId;
use crate::error::Result;

/// A statistics file.
#[derive(Debug, Clone, PartialEq)]
pub struct TableStatistics {
    /// Snapshot that was analysed.
    pub snapshot_id: SnapshotId,
    /// Its schema.
    pub schema_id: SchemaId,
    /// Rows after merging.
    pub merged_record_count: Option<i64>,
    /// Bytes after merging.
    pub merged_record_size: Option<i64>,
    /// By column name.
    pub col_stats: BTreeMap<String, ColumnStatistics>,
}

/// Statistics of one column. Bounds are texts of the column's type.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ColumnStatistics {
    /// Field id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub col_id: Option<i32>,
    /// Number of distinct values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct_count: Option<i64>,
    /// Lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// Upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// Number of nulls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_count: Option<i64>,
    /// Average length in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avg_len: Option<i64>,
    /// Maximal length in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_len: Option<i64>,
}

impl TableStatistics {
    /// Reads a statistics file.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let document = json::parse(bytes, DOCUMENT)?;
        let object = Object::new(&document, DOCUMENT)?;
        let mut col_stats = BTreeMap::new();
        match object.get("colStats") {
            None => {}
            Some(Value::Object(columns)) => {
                for (name, value) in columns {
                    let column = ColumnStatistics::from_value(value).map_err(|e| e.with_context("column", name))?;
                    col_stats.insert(name.clone(), column);
                }
            }
            Some(other) => return Err(object.wrong("colStats", "an object", other)),
        }
        Ok(Self {
            snapshot_id: SnapshotId(object.i64("snapshotId")?),
            schema_id: SchemaId(object.i64("schemaId")?),
            merged_record_count: object.opt_i64("mergedRecordCount")?,
            merged_record_size: object.opt_i64("mergedRecordSize")?,
            col_stats,
        })
    }

    /// The column statistics as one JSON object, the form of the `$statistics` table.
    pub fn col_stats_json(&self) -> String {
        // texts and numbers only: nothing in it can fail to become JSON
        serde_json::to_string(&self.col_stats).unwrap_or_default()
    }
}

impl ColumnStatistics {
    fn from_value(value: &Value) -> Result<Self> {
        let object = Object::new(value, "column of the statistics file")?;
        Ok(Self {
            col_id: object.opt_i32("colId")?,
            distinct_count: object.opt_i64("distinctCount")?,
            min: object.opt_string("min")?,
            max: object.opt_string("max")?,
            null_count: object.opt_i64("nullCount")?,
            avg_len: object.opt_i64("avgLen")?,
            max_len: object.opt_i64("maxLen")?,
        })
    }
}

const DOCUMENT: &str = "statistics file";

#[cfg(test)]
mod tests {
    use super::TableStatistics;

    #[test]
    fn statistics_are_read_and_columns_written_back() {
        let text = r#"{"snapshotId": 5, "schemaId": 0, "mergedRecordCount": 100, "colStats": {
            "c": {"colId": 1, "distinctCount": 5, "min": "1", "max": "9", "nullCount": 0, "avgLen": 4, "maxLen": 4},
            "d": {"colId": 2}}}"#;
        let statistics = TableStatistics::from_json(text.as_bytes()).unwrap();
        assert_eq!((statistics.merged_record_count, statistics.merged_record_size), (Some(100), None));
        assert_eq!(
            statistics.col_stats_json(),
            r#"{"c":{"colId":1,"distinctCount":5,"min":"1","max":"9","nullCount":0,"avgLen":4,"maxLen":4},"d":{"colId":2}}"#
        );
    }

    #[test]
    fn wrong_types_name_column_and_key() {
        let text = r#"{"snapshotId": 5, "schemaId": 0, "colStats": {"c": {"min": 1}}}"#;
        let error = TableStatistics::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("'min'") && error.contains("column: c"), "{error}");
        assert!(TableStatistics::from_json(br#"{"snapshotId": 5, "schemaId": 0, "colStats": []}"#).is_err());
    }
}
