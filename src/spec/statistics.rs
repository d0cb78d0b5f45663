//! Statistics files: hints for a planner, never used to drop data.

use std::collections::BTreeMap;

use super::schema::SchemaId;
use super::snapshot::SnapshotId;
use crate::error::{Error, Result};

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
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnStatistics {
    /// Field id.
    pub col_id: Option<i32>,
    /// Number of distinct values.
    pub distinct_count: Option<i64>,
    /// Lower bound.
    pub min: Option<String>,
    /// Upper bound.
    pub max: Option<String>,
    /// Number of nulls.
    pub null_count: Option<i64>,
    /// Average length in bytes.
    pub avg_len: Option<i64>,
    /// Maximal length in bytes.
    pub max_len: Option<i64>,
}

impl TableStatistics {
    /// Reads a statistics file.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let _ = bytes;
        Err(Error::internal("not built yet"))
    }

    /// The column statistics as one JSON object, the form of the `$statistics` table.
    pub fn col_stats_json(&self) -> String {
        String::new()
    }
}
