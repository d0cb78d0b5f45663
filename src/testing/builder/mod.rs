//! Builds real tables on a local disk: schemas, data files with chosen levels, sequence numbers and row kinds, deletion
//! vectors, and snapshots published one by one, also by a second process.
//!
//! It is no writer: it merges nothing, checks nothing and lets a test put any file where it wants it.

mod commit;
mod data;
mod publish;
mod wide;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub use commit::{Commit, FileSpec, Prepared};
pub use wide::{WIDE_BUCKETS, WIDE_ROWS, wide_table};

use crate::error::{Error, Result};
use crate::spec::{CoreOptions, DataField, DataType, FieldType, SchemaId, Snapshot, TableSchema};

/// First commit time of a table made without times: 2026-04-16 01:00 UTC. Each snapshot comes a minute later.
pub const FIRST_COMMIT_MILLIS: i64 = 1_776_301_200_000;

/// A table under construction.
#[derive(Debug, Clone)]
pub struct TableBuilder {
    root: PathBuf,
    schema: TableSchema,
    options: CoreOptions,
    /// Next sequence number where a row has none of its own.
    next_sequence: i64,
}

/// Columns, keys and options of a new table.
#[derive(Debug, Clone, Default)]
pub struct TableSpec {
    columns: Vec<(String, String)>,
    partition: Vec<String>,
    primary: Vec<String>,
    options: BTreeMap<String, String>,
}

impl TableSpec {
    /// Columns as name and type in Paimon's writing, for instance `("id", "BIGINT NOT NULL")`.
    pub fn new(columns: &[(&str, &str)]) -> Self {
        let columns = columns.iter().map(|(name, text)| ((*name).to_string(), (*text).to_string())).collect();
        Self { columns, ..Self::default() }
    }

    /// Partition columns.
    #[must_use]
    pub fn partitioned_by(mut self, columns: &[&str]) -> Self {
        self.partition = columns.iter().map(|c| (*c).to_string()).collect();
        self
    }

    /// Primary key columns, partition columns included.
    #[must_use]
    pub fn primary_key(mut self, columns: &[&str]) -> Self {
        self.primary = columns.iter().map(|c| (*c).to_string()).collect();
        self
    }

    /// One table option.
    #[must_use]
    pub fn option(mut self, key: &str, value: &str) -> Self {
        self.options.insert(key.to_string(), value.to_string());
        self
    }
}

/// A change of the schema, written as the next schema file.
#[derive(Debug, Clone)]
pub enum SchemaChange<'a> {
    /// A column at the end.
    Add(&'a str, &'a str),
    /// No longer this column.
    Drop(&'a str),
    /// The same column by another name.
    Rename(&'a str, &'a str),
    /// The same column with another type.
    Retype(&'a str, &'a str),
    /// An option set.
    Set(&'a str, &'a str),
}

pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |e| {
        Error::unavailable("the table builder cannot use a file").with_context("file", path.display()).with_source(e)
    }
}

impl TableBuilder {
    /// Makes the table's folder and its first schema.
    ///
    /// # Errors
    /// Types or options that do not parse, or the disk.
    pub fn create(warehouse: &Path, database: &str, table: &str, spec: &TableSpec) -> Result<Self> {
        let mut id = 0;
        let mut fields = Vec::new();
        for (name, text) in &spec.columns {
            let mut field_type = FieldType::parse(text)?;
            let field_id = id;
            id += 1;
            number_nested(&mut field_type, &mut id);
            fields.push(DataField {
                id: field_id,
                name: name.clone(),
                field_type,
                description: None,
                default_value: None,
                sums: false,
            });
        }
        let schema = TableSchema {
            version: 3,
            id: SchemaId(0),
            fields,
            highest_field_id: id - 1,
            partition_keys: spec.partition.clone(),
            primary_keys: spec.primary.clone(),
            options: spec.options.clone(),
            comment: None,
            time_millis: FIRST_COMMIT_MILLIS,
        };
        let root = warehouse.join(format!("{database}.db")).join(table);
        let builder = Self { root, options: CoreOptions::parse(&schema.options)?, schema, next_sequence: 0 };
        for dir in ["schema", "snapshot", "manifest"] {
            let dir = builder.root.join(dir);
            fs::create_dir_all(&dir).map_err(io(&dir))?;
        }
        builder.write_schema()?;
        Ok(builder)
    }

    /// Goes on with a table that is there, for instance from a second process.
    ///
    /// # Errors
    /// No schema file, or one that does not parse.
    pub fn open(warehouse: &Path, database: &str, table: &str) -> Result<Self> {
        let root = warehouse.join(format!("{database}.db")).join(table);
        let dir = root.join("schema");
        let newest = fs::read_dir(&dir)
            .map_err(io(&dir))?
            .flatten()
            .filter_map(|e| e.file_name().to_string_lossy().strip_prefix("schema-").and_then(|n| n.parse::<i64>().ok()))
            .max()
            .ok_or_else(|| Error::not_found("the table has no schema").with_context("file", dir.display()))?;
        let file = dir.join(format!("schema-{newest}"));
        let mut schema = TableSchema::from_json(&fs::read(&file).map_err(io(&file))?)?;
        // files are written in the declared types
        schema.fields.iter_mut().for_each(|field| field.sums = false);
        let options = CoreOptions::parse(&schema.options)?;
        Ok(Self { root, schema, options, next_sequence: 1_000_000 })
    }

    /// The table's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The newest schema.
    pub fn schema(&self) -> &TableSchema {
        &self.schema
    }

    /// Changes the schema.
    ///
    /// # Errors
    /// An unknown column, a type that does not parse, or the disk.
    pub fn alter(&mut self, change: &SchemaChange<'_>) -> Result<()> {
        let unknown = |name: &str| Error::invalid(format!("no column {name} to change"));
        let schema = &mut self.schema;
        match change {
            SchemaChange::Add(name, text) => {
                let mut id = schema.highest_field_id + 1;
                let mut field_type = FieldType::parse(text)?;
                let field_id = id;
                id += 1;
                number_nested(&mut field_type, &mut id);
                schema.highest_field_id = id - 1;
                schema.fields.push(DataField {
                    id: field_id,
                    name: (*name).to_string(),
                    field_type,
                    description: None,
                    default_value: None,
                    sums: false,
                });
            }
            SchemaChange::Drop(name) => schema.fields.retain(|f| f.name != *name),
            SchemaChange::Rename(name, to) => {
                let field = schema.fields.iter_mut().find(|f| f.name == *name).ok_or_else(|| unknown(name))?;
                field.name = (*to).to_string();
                // keys follow; options are left as old writers left them
                for key in schema.primary_keys.iter_mut().chain(&mut schema.partition_keys) {
                    if key == name {
                        *key = (*to).to_string();
                    }
                }
            }
            SchemaChange::Retype(name, text) => {
                let mut id = schema.highest_field_id + 1;
                let field = schema.fields.iter_mut().find(|f| f.name == *name).ok_or_else(|| unknown(name))?;
                let mut field_type = FieldType::parse(text)?;
                number_nested(&mut field_type, &mut id);
                keep_nested(&mut field_type, &field.field_type);
                field.field_type = field_type;
                schema.highest_field_id = id - 1;
            }
            SchemaChange::Set(key, value) => {
                schema.options.insert((*key).to_string(), (*value).to_string());
            }
        }
        schema.id = SchemaId(schema.id.0 + 1);
        schema.time_millis += 1;
        self.options = CoreOptions::parse(&self.schema.options)?;
        self.write_schema()
    }

    /// Starts a commit with the newest schema.
    pub fn commit(&mut self) -> Commit<'_> {
        Commit::new(self)
    }

    /// Commits rows as one level-0 file a bucket; the shortest way to a snapshot.
    ///
    /// # Errors
    /// Rows that do not fit the schema, or the disk.
    pub fn append(&mut self, rows: &[serde_json::Value]) -> Result<Snapshot> {
        self.commit().file(FileSpec::rows(rows)).publish()
    }

    /// Writes a tag that holds a snapshot.
    ///
    /// # Errors
    /// No such snapshot, or the disk.
    pub fn tag(&self, name: &str, snapshot: i64) -> Result<()> {
        let dir = self.root.join("tag");
        fs::create_dir_all(&dir).map_err(io(&dir))?;
        let from = self.root.join(format!("snapshot/snapshot-{snapshot}"));
        let to = dir.join(format!("tag-{name}"));
        fs::copy(&from, &to).map_err(io(&from))?;
        Ok(())
    }

    /// Removes a snapshot file, as expiry does.
    ///
    /// # Errors
    /// No such snapshot, or the disk.
    pub fn expire(&self, snapshot: i64) -> Result<()> {
        let file = self.root.join(format!("snapshot/snapshot-{snapshot}"));
        fs::remove_file(&file).map_err(io(&file))
    }

    fn write_schema(&self) -> Result<()> {
        let file = self.root.join(format!("schema/schema-{}", self.schema.id));
        fs::write(&file, self.schema.to_json()).map_err(io(&file))
    }
}

/// Gives fields of nested rows their ids, depth first, as the writers do.
fn number_nested(field_type: &mut FieldType, next: &mut i32) {
    match &mut field_type.data_type {
        DataType::Row(fields) => {
            for field in fields {
                field.id = *next;
                *next += 1;
                number_nested(&mut field.field_type, next);
            }
        }
        DataType::Array(item) | DataType::Multiset(item) | DataType::Vector(item, _) => number_nested(item, next),
        DataType::Map(key, value) => {
            number_nested(key, next);
            number_nested(value, next);
        }
        _ => {}
    }
}

/// Gives fields of nested rows the ids of those that had their names before.
fn keep_nested(field_type: &mut FieldType, before: &FieldType) {
    match (&mut field_type.data_type, &before.data_type) {
        (DataType::Row(fields), DataType::Row(old)) => {
            for field in fields {
                if let Some(old) = old.iter().find(|old| old.name == field.name) {
                    field.id = old.id;
                    keep_nested(&mut field.field_type, &old.field_type);
                }
            }
        }
        (DataType::Array(item), DataType::Array(old)) | (DataType::Map(_, item), DataType::Map(_, old)) => {
            keep_nested(item, old);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
