//! One version of a table's schema: `schema/schema-N`.

use std::collections::BTreeMap;
use std::fmt;

use super::data_type::DataField;

/// Number of a schema file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaId(pub i64);

impl fmt::Display for SchemaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of a bucket; -2 is the postpone bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(pub i32);

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Columns, keys and options as of one schema id. Version upgrades (implied `bucket`, `file.format`) are already
/// applied to `options`.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSchema {
    /// Format version of the file (1, 2 or 3).
    pub version: i32,
    /// Number of the file.
    pub id: SchemaId,
    /// Columns in order.
    pub fields: Vec<DataField>,
    /// Largest field id ever used, nested fields included.
    pub highest_field_id: i32,
    /// Partition columns, in path order.
    pub partition_keys: Vec<String>,
    /// Primary key columns, partition columns included; empty for append tables.
    pub primary_keys: Vec<String>,
    /// Table options.
    pub options: BTreeMap<String, String>,
    /// Comment.
    pub comment: Option<String>,
    /// Creation time in epoch milliseconds; 0 when unknown.
    pub time_millis: i64,
}
