//! Parts of manifest entries as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::accounting::{PartitionValues, partition_text};
use crate::error::{Error, Result};
use crate::snapshot::{Pin, SessionZone};
use crate::spec::partition_path::{bucket_dir, partition_dir};
use crate::spec::text::datum_text_in;
use crate::spec::{BinaryRow, DataField, DataType, Datum, ManifestEntry, SchemaId, SimpleStats, TableSchema, Zone};
use crate::storage::Location;

/// Parts of manifest entries as text, with the schemas that files were written with.
#[derive(Debug)]
pub struct EntryTexts {
    pin: Arc<Pin>,
    zone: Zone,
    schemas: BTreeMap<SchemaId, Arc<TableSchema>>,
}

impl EntryTexts {
    /// Reads all schemas of the table.
    ///
    /// # Errors
    /// A schema that is gone or damaged.
    pub async fn load(pin: &Arc<Pin>, zone: &SessionZone) -> Result<Self> {
        let mut texts = Self::of_pin(pin, zone)?;
        for id in pin.table.schema_ids().await? {
            texts.add_schema(id).await?;
        }
        Ok(texts)
    }

    /// With the pin's own schema alone; [`Self::add_schema`] adds those of files.
    ///
    /// # Errors
    /// A zone that is none.
    pub fn of_pin(pin: &Arc<Pin>, zone: &SessionZone) -> Result<Self> {
        let schemas = BTreeMap::from([(pin.schema.id, Arc::clone(&pin.schema))]);
        Ok(Self { pin: Arc::clone(pin), zone: Zone::parse(&zone.name())?, schemas })
    }

    /// Reads a schema, unless it is known.
    ///
    /// # Errors
    /// One that is gone or damaged.
    pub async fn add_schema(&mut self, id: SchemaId) -> Result<()> {
        if !self.schemas.contains_key(&id) {
            self.schemas.insert(id, self.pin.table.schema(id).await?);
        }
        Ok(())
    }

    /// Partition values.
    ///
    /// # Errors
    /// A row that does not fit the partition columns.
    pub fn partition_values(&self, row: &BinaryRow) -> Result<Vec<Datum>> {
        let types: Vec<&DataType> = partition_fields(&self.pin.schema)?.into_iter().map(DataField::data_type).collect();
        if types.is_empty() { Ok(Vec::new()) } else { row.decode(&types) }
    }

    /// `dt=2026-04-16/h=1`; empty without partitions.
    ///
    /// # Errors
    /// As [`Self::partition_values`].
    pub fn partition(&self, row: &BinaryRow) -> Result<String> {
        partition_text(&self.pin, &self.partition_values(row)?, &self.zone)
    }

    /// Partition values as a key: different partitions may have the same text.
    ///
    /// # Errors
    /// As [`Self::partition_values`].
    pub fn partition_key(&self, row: &BinaryRow) -> Result<PartitionValues> {
        Ok(PartitionValues::from(self.partition_values(row)?))
    }

    /// `{v1, v2}`, as the system tables of the specification show it.
    ///
    /// # Errors
    /// As [`Self::partition_values`].
    pub fn partition_in_braces(&self, row: &BinaryRow) -> Result<String> {
        let values = self.partition_values(row)?;
        let fields = partition_fields(&self.pin.schema)?;
        let texts: Vec<String> = values.iter().zip(fields).map(|(v, f)| self.value(v, f.data_type())).collect();
        Ok(format!("{{{}}}", texts.join(", ")))
    }

    /// The whole path of a data file.
    ///
    /// # Errors
    /// As [`Self::bucket_folder`].
    pub fn path(&self, entry: &ManifestEntry) -> Result<String> {
        Ok(match &entry.file.external_path {
            Some(path) => path.clone(),
            None => format!("{}/{}", self.bucket_folder(entry)?, entry.file.file_name),
        })
    }

    /// `dt=2026-04-16, bucket 3`.
    ///
    /// # Errors
    /// As [`Self::partition_values`].
    pub fn unit(&self, entry: &ManifestEntry) -> Result<String> {
        let partition = self.partition(&entry.partition)?;
        let bucket = entry.bucket;
        Ok(if partition.is_empty() { format!("bucket {bucket}") } else { format!("{partition}, bucket {bucket}") })
    }

    /// The folder of an entry's bucket.
    ///
    /// # Errors
    /// As [`Self::partition_values`]; a partition that is no folder name.
    pub fn bucket_folder(&self, entry: &ManifestEntry) -> Result<Location> {
        self.partition_folder(&entry.partition)?.join(&bucket_dir(entry.bucket))
    }

    /// The folder of a partition, in which its buckets lie.
    ///
    /// # Errors
    /// As [`Self::bucket_folder`].
    pub fn partition_folder(&self, row: &BinaryRow) -> Result<Location> {
        let fields = partition_fields(&self.pin.schema)?;
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let types: Vec<&DataType> = fields.iter().map(|field| field.data_type()).collect();
        let values = self.partition_values(row)?;
        let partition = partition_dir(&names, &values, &types, &self.pin.options)?;
        let mut folder = self.pin.table.root().clone();
        if let Some(below) = &self.pin.options.data_file_path_directory {
            folder = folder.join(below)?;
        }
        if !partition.is_empty() {
            folder = folder.join(&partition)?;
        }
        Ok(folder)
    }

    /// The schema a file was written with.
    ///
    /// # Errors
    /// One that is not there.
    pub fn schema_of(&self, entry: &ManifestEntry) -> Result<&Arc<TableSchema>> {
        self.schemas.get(&entry.file.schema_id).ok_or_else(|| {
            Error::corrupt(format!("the file was written with schema {}, which is not there", entry.file.schema_id))
                .with_code("SchemaNotFound")
                .with_context("table", self.pin.table.name())
                .with_context("entry", &entry.file.file_name)
        })
    }

    /// `[1, abc]`; None for tables without primary key.
    ///
    /// # Errors
    /// A row that does not fit the key, a schema that is not there.
    pub fn key(&self, entry: &ManifestEntry, row: &BinaryRow) -> Result<Option<String>> {
        let schema = self.schema_of(entry)?;
        if !schema.is_primary_key_table() || row.is_empty() {
            return Ok(None);
        }
        let fields: Vec<&DataField> =
            schema.trimmed_primary_key()?.into_iter().map(|index| field(schema, index)).collect::<Result<_>>()?;
        let types: Vec<&DataType> = fields.into_iter().map(DataField::data_type).collect();
        let values = row.decode(&types)?;
        let texts: Vec<String> = values.iter().zip(types).map(|(value, of)| self.value(value, of)).collect();
        Ok(Some(format!("[{}]", texts.join(", "))))
    }

    /// Null counts, lower and upper bounds of the pin's columns as `{col=value, …}`, sorted by column.
    ///
    /// # Errors
    /// Statistics that do not fit their columns.
    pub fn stats(&self, entry: &ManifestEntry) -> Result<[String; 3]> {
        let written = self.stats_columns(entry)?;
        let stats = &entry.file.value_stats;
        let mut parts: BTreeMap<&str, [String; 3]> = BTreeMap::new();
        for column in &self.pin.schema.fields {
            let texts = match written.iter().position(|f| f.id == column.id) {
                Some(index) => {
                    let data_type = written.get(index).map_or(column.data_type(), |f| f.data_type());
                    self.column_stats(stats, index, data_type)?
                }
                // a column the file does not have is NULL in all its rows
                None if entry.file.value_stats_cols.is_none() && !self.has(entry, column.id)? => {
                    [entry.file.row_count.to_string(), "null".into(), "null".into()]
                }
                None => ["null".into(), "null".into(), "null".into()],
            };
            parts.insert(&column.name, texts);
        }
        let join = |which: usize| {
            let pairs: Vec<String> = parts
                .iter()
                .map(|(name, texts)| format!("{name}={}", texts.get(which).map_or("null", String::as_str)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        };
        Ok([join(0), join(1), join(2)])
    }

    fn has(&self, entry: &ManifestEntry, id: i32) -> Result<bool> {
        Ok(self.schema_of(entry)?.field_by_id(id).is_some())
    }

    fn column_stats(&self, stats: &SimpleStats, index: usize, data_type: &DataType) -> Result<[String; 3]> {
        let nulls = stats.null_counts.get(index).copied().flatten();
        let bound = |row: &BinaryRow| -> Result<String> {
            if row.is_empty() || index >= row.arity()? || !data_type.is_ordered() {
                return Ok("null".into());
            }
            Ok(self.value(&row.get(index, data_type)?, data_type))
        };
        Ok([
            nulls.map_or_else(|| "null".into(), |n| n.to_string()),
            bound(&stats.min_values)?,
            bound(&stats.max_values)?,
        ])
    }

    /// The columns an entry's value statistics speak of, in order.
    fn stats_columns(&self, entry: &ManifestEntry) -> Result<Vec<&DataField>> {
        let schema = self.schema_of(entry)?;
        let named = |names: &[String]| {
            names.iter().filter_map(|name| schema.fields.iter().find(|f| f.name == *name)).collect::<Vec<_>>()
        };
        Ok(match (&entry.file.value_stats_cols, &entry.file.write_cols) {
            (Some(names), _) => named(names),
            (None, Some(names)) => named(names),
            (None, None) => schema.fields.iter().collect(),
        })
    }

    /// A value, `null` for NULL.
    pub fn value(&self, value: &Datum, data_type: &DataType) -> String {
        datum_text_in(value, data_type, &self.zone).unwrap_or_else(|| "null".to_string())
    }
}

fn partition_fields(schema: &TableSchema) -> Result<Vec<&DataField>> {
    schema.partition_indices()?.into_iter().map(|index| field(schema, index)).collect()
}

fn field(schema: &TableSchema, index: usize) -> Result<&DataField> {
    schema.fields.get(index).ok_or_else(|| Error::corrupt("a key names a column that is not there"))
}
