//! Parts of manifest entries as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::accounting::partition_text;
use crate::error::{Error, Result};
use crate::snapshot::{Pin, SessionZone};
use crate::spec::partition_path::{bucket_dir, partition_dir};
use crate::spec::text::datum_text_in;
use crate::spec::{BinaryRow, DataField, DataType, Datum, ManifestEntry, SchemaId, TableSchema, Zone};
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
        let mut schemas = BTreeMap::from([(pin.schema.id, Arc::clone(&pin.schema))]);
        for id in pin.table.schema_ids().await? {
            schemas.insert(id, pin.table.schema(id).await?);
        }
        Ok(Self { pin: Arc::clone(pin), zone: Zone::parse(&zone.name())?, schemas })
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
