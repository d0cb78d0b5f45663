//! One version of a table's schema: `schema/schema-N`.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::Serialize;

use super::data_type::{DataField, DataType, UNCHECKED_DIGITS};
use super::json::{self, Object};
use super::options::{CoreOptions, MergeEngine};
use super::type_json;
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

impl Bucket {
    /// Rows that wait for their bucket until they are compacted.
    pub const POSTPONE: Self = Self(-2);
}

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
    /// Newest format version that this release reads.
    pub const NEWEST_VERSION: i32 = 3;

    /// Reads a schema file. Options that an old version implies are filled in; unknown keys are ignored.
    ///
    /// Errors name the key; a newer version is refused (`NewerFormat`).
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let document = json::parse(bytes, DOCUMENT)?;
        let object = Object::new(&document, DOCUMENT)?;
        let version = json::format_version(&object, Self::NEWEST_VERSION)?;
        // without them the merge engine would be guessed
        object.required("options")?;
        let mut options = object.string_map("options")?;
        for (last_version, option, implied) in [(1, "bucket", "1"), (2, "file.format", "orc")] {
            if version <= last_version {
                options.entry(option.to_string()).or_insert_with(|| implied.to_string());
            }
        }
        let mut schema = Self {
            version,
            id: SchemaId(object.i64("id")?),
            fields: type_json::columns(object.array("fields")?)?,
            highest_field_id: object.i32("highestFieldId")?,
            partition_keys: object.strings("partitionKeys")?,
            primary_keys: object.strings("primaryKeys")?,
            options,
            comment: object.opt_string("comment")?,
            time_millis: object.opt_i64("timeMillis")?.unwrap_or(0),
        };
        schema.check()?;
        schema.mark_sums();
        Ok(schema)
    }

    /// The names of the options of a schema file, in its order.
    pub(crate) fn option_names(bytes: &[u8]) -> Vec<String> {
        json::member_names(bytes, "options")
    }

    /// Marks the columns whose values may exceed the precision of their DECIMAL. Options that do not parse mark none:
    /// whoever reads the table reports them.
    pub(crate) fn mark_sums(&mut self) {
        let Ok(options) = CoreOptions::parse(&self.options) else { return };
        let merges = matches!(options.merge_engine, MergeEngine::Aggregation | MergeEngine::PartialUpdate);
        let function = |name: &str| {
            let own = self.options.get(&format!("fields.{name}.aggregate-function"));
            own.or_else(|| self.options.get("fields.default-aggregate-function")).map(|function| function.trim())
        };
        for field in &mut self.fields {
            let short = matches!(field.data_type(), DataType::Decimal(precision, _) if *precision <= UNCHECKED_DIGITS);
            let folded = !self.primary_keys.contains(&field.name) && !options.sequence_fields.contains(&field.name);
            field.sums = merges && short && folded && function(&field.name) == Some("sum");
        }
    }

    /// The schema as a schema file, keys in Java's order.
    pub fn to_json(&self) -> String {
        let document = SchemaDocument {
            version: self.version,
            id: self.id.0,
            fields: &self.fields,
            highest_field_id: self.highest_field_id,
            partition_keys: &self.partition_keys,
            primary_keys: &self.primary_keys,
            options: &self.options,
            comment: self.comment.as_deref(),
            time_millis: self.time_millis,
        };
        // texts and numbers only: nothing in it can fail to become JSON
        serde_json::to_string_pretty(&document).unwrap_or_default()
    }

    /// Keys must name columns, once each, and a key must not consist of partition columns alone.
    fn check(&self) -> Result<()> {
        if self.id.0 < 0 {
            return Err(
                Error::corrupt(format!("the schema has the impossible id {}", self.id)).with_context("key", "id")
            );
        }
        for (key, columns) in [("partitionKeys", &self.partition_keys), ("primaryKeys", &self.primary_keys)] {
            let mut seen = HashSet::new();
            if let Some(twice) = columns.iter().find(|column| !seen.insert(column.as_str())) {
                return Err(
                    Error::corrupt(format!("'{key}' names the column '{twice}' twice")).with_context("key", key)
                );
            }
            self.indices(columns, key)?;
        }
        self.trimmed_primary_key().map(|_| ())
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

    /// Positions of the primary key columns that are no partition columns, in key order: what orders rows inside a
    /// bucket. Empty for append tables.
    pub fn trimmed_primary_key(&self) -> Result<Vec<usize>> {
        let trimmed: Vec<&String> =
            self.primary_keys.iter().filter(|column| !self.partition_keys.contains(column)).collect();
        if trimmed.is_empty() && self.is_primary_key_table() {
            return Err(Error::corrupt(format!(
                "the primary key ({}) has partition columns only, so no column tells the rows of a partition apart",
                self.primary_keys.join(", ")
            ))
            .with_context("key", "primaryKeys"));
        }
        self.indices(trimmed, "primaryKeys")
    }

    /// Positions of the partition columns, in path order.
    pub fn partition_indices(&self) -> Result<Vec<usize>> {
        self.indices(&self.partition_keys, "partitionKeys")
    }

    /// Positions of the columns whose hash is the bucket: `bucket-key`, else the trimmed primary key, else none.
    pub fn bucket_key_indices(&self, options: &CoreOptions) -> Result<Vec<usize>> {
        match &options.bucket_key {
            None => self.trimmed_primary_key(),
            Some(columns) => columns
                .iter()
                .map(|column| {
                    self.field_index(column).ok_or_else(|| {
                        Error::invalid(format!("option 'bucket-key' names '{column}', which is no column"))
                            .with_code("InvalidOption")
                            .with_context("option", "bucket-key")
                            .with_hint(self.known_columns())
                    })
                })
                .collect(),
        }
    }

    /// How rows find their bucket.
    pub fn bucket_mode(&self, options: &CoreOptions) -> BucketMode {
        match options.bucket {
            n if n > 0 => BucketMode::Fixed(n),
            _ if !self.is_primary_key_table() => BucketMode::Unaware,
            -2 => BucketMode::Postpone,
            _ if self.cross_partition_update() => BucketMode::KeyDynamic,
            _ => BucketMode::HashDynamic,
        }
    }

    /// Whether a key may move between partitions: the primary key lacks a partition column.
    pub fn cross_partition_update(&self) -> bool {
        self.is_primary_key_table() && self.partition_keys.iter().any(|column| !self.primary_keys.contains(column))
    }

    fn indices<'a>(&self, columns: impl IntoIterator<Item = &'a String>, key: &'static str) -> Result<Vec<usize>> {
        columns
            .into_iter()
            .map(|column| {
                self.field_index(column).ok_or_else(|| {
                    Error::corrupt(format!("'{key}' names '{column}', which is no column"))
                        .with_context("key", key)
                        .with_hint(self.known_columns())
                })
            })
            .collect()
    }

    fn known_columns(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        format!("columns are: {}", names.join(", "))
    }
}

const DOCUMENT: &str = "schema file";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SchemaDocument<'a> {
    version: i32,
    id: i64,
    fields: &'a [DataField],
    highest_field_id: i32,
    partition_keys: &'a [String],
    primary_keys: &'a [String],
    options: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    time_millis: i64,
}

#[cfg(test)]
mod tests;
