//! Statistics files: hints for a planner, never used to drop data.

use std::io;

use serde::{Serialize, Serializer as _};
use serde_json::ser::{Formatter, PrettyFormatter};
use serde_json::{Serializer, Value};

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
    /// By column name, in the order of the file.
    pub col_stats: Vec<(String, ColumnStatistics)>,
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
        let mut col_stats = Vec::new();
        match object.get("colStats") {
            None => {}
            Some(Value::Object(columns)) => {
                let known = json::member_names(bytes, "colStats");
                for (name, value) in known.iter().filter_map(|name| columns.get_key_value(name)) {
                    let column = ColumnStatistics::from_value(value).map_err(|e| e.with_context("column", name))?;
                    col_stats.push((name.clone(), column));
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

    /// The column statistics as one JSON object, the form of the `$statistics` table: on several lines, as Java has it.
    pub fn col_stats_json(&self) -> String {
        if self.col_stats.is_empty() {
            return "{ }".to_string();
        }
        // texts and numbers only: nothing in it can fail to become JSON
        let mut bytes = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut bytes, Jackson(PrettyFormatter::new()));
        let written = serializer.collect_map(self.col_stats.iter().map(|(name, column)| (name, column)));
        written.map(|()| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
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

/// JSON on several lines as Java's library writes it: with a blank before the colon.
struct Jackson(PrettyFormatter<'static>);

impl Formatter for Jackson {
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b" : ")
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

const DOCUMENT: &str = "statistics file";

#[cfg(test)]
mod tests {
    use super::TableStatistics;

    #[test]
    fn statistics_are_read_and_columns_written_back() {
        let text = r#"{"snapshotId": 5, "schemaId": 0, "mergedRecordCount": 100, "colStats": {
            "d": {"colId": 1, "distinctCount": 5, "min": "1", "max": "9", "nullCount": 0, "avgLen": 4, "maxLen": 4},
            "c": {"colId": 2}}}"#;
        let statistics = TableStatistics::from_json(text.as_bytes()).unwrap();
        assert_eq!((statistics.merged_record_count, statistics.merged_record_size), (Some(100), None));
        assert_eq!(
            statistics.col_stats_json(),
            r#"{
  "d" : {
    "colId" : 1,
    "distinctCount" : 5,
    "min" : "1",
    "max" : "9",
    "nullCount" : 0,
    "avgLen" : 4,
    "maxLen" : 4
  },
  "c" : {
    "colId" : 2
  }
}"#
        );
        let none = TableStatistics::from_json(br#"{"snapshotId": 5, "schemaId": 0, "colStats": {}}"#).unwrap();
        assert_eq!(none.col_stats_json(), "{ }");
    }

    #[test]
    fn wrong_types_name_column_and_key() {
        let text = r#"{"snapshotId": 5, "schemaId": 0, "colStats": {"c": {"min": 1}}}"#;
        let error = TableStatistics::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("'min'") && error.contains("column: c"), "{error}");
        assert!(TableStatistics::from_json(br#"{"snapshotId": 5, "schemaId": 0, "colStats": []}"#).is_err());
    }
}
