//! One version of a table's schema: `schema/schema-N`.

use std::collections::BTreeMap;
use std::fmt;

use super::data_type::DataField;
use super::options::CoreOptions;
use crate::error::{Error, Result};

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

/// How rows find their bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BucketMode {
    /// `bucket` = n: by hash of the bucket key.
    Fixed(i32),
    /// Primary key table, `bucket` = -1: by the HASH index.
    HashDynamic,
    /// As above, and a key may move between partitions.
    KeyDynamic,
    /// Append table, `bucket` = -1: everything is in bucket 0.
    Unaware,
    /// Primary key table, `bucket` = -2: rows wait unmerged in bucket -2 for a compaction.
    Postpone,
}

impl TableSchema {
    /// Reads a schema file, version upgrades applied.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let _ = bytes;
        Err(Error::internal("not built yet"))
    }

    /// The schema as a schema file.
    pub fn to_json(&self) -> String {
        String::new()
    }

    /// Position of a column.
    pub fn field_index(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The top-level column of a field id.
    pub fn field_by_id(&self, id: i32) -> Option<&DataField> {
        self.fields.iter().find(|field| field.id == id)
    }

    /// Whether rows have a key.
    pub fn is_primary_key_table(&self) -> bool {
        !self.primary_keys.is_empty()
    }

    /// Primary key columns that are no partition columns, in key order.
    pub fn trimmed_primary_key(&self) -> Result<Vec<usize>> {
        Err(Error::internal("not built yet"))
    }

    /// Partition columns, in path order.
    pub fn partition_indices(&self) -> Result<Vec<usize>> {
        Err(Error::internal("not built yet"))
    }

    /// Columns whose hash is the bucket; empty for append tables without `bucket-key`.
    pub fn bucket_key_indices(&self, options: &CoreOptions) -> Result<Vec<usize>> {
        let _ = options;
        Err(Error::internal("not built yet"))
    }

    /// How rows find their bucket.
    pub fn bucket_mode(&self, options: &CoreOptions) -> BucketMode {
        let _ = options;
        BucketMode::Unaware
    }

    /// Whether a key may move between partitions: the primary key lacks a partition column.
    pub fn cross_partition_update(&self) -> bool {
        false
    }
}
