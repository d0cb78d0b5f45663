//! Parts of manifest entries as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Source;
use crate::error::{Error, Result};
use crate::recon::accounting::{PartitionValues, partition_text};
use crate::scan::manifest_of;
use crate::snapshot::Pin;
use crate::spec::partition_path::{bucket_dir, partition_dir};
use crate::spec::text::datum_text_in;
use crate::spec::{BinaryRow, DataField, DataType, Datum, ManifestEntry, SchemaId, SimpleStats, TableSchema, Zone};

/// Parts of entries as text, with the schemas files were written with.
pub(super) struct Texts {
    pin: Arc<Pin>,
    zone: Zone,
    schemas: BTreeMap<SchemaId, Arc<TableSchema>>,
}

impl Texts {
    pub(super) async fn of(source: &Source, entries: &[Arc<ManifestEntry>]) -> Result<Self> {
        let pin = Arc::clone(source.pin()?);
        let zone = Zone::parse(&source.zone.name())?;
        let mut schemas = BTreeMap::from([(pin.schema.id, Arc::clone(&pin.schema))]);
        for entry in entries {
            let id = entry.file.schema_id;
            if let std::collections::btree_map::Entry::Vacant(e) = schemas.entry(id) {
                match pin.table.schema(id).await {
                    Ok(schema) => e.insert(schema),
                    Err(error) => return Err(blame_schema(error, entry, &pin, source).await),
                };
            }
        }
        Ok(Self { pin, zone, schemas })
    }

    fn partition_fields(&self) -> Result<Vec<&DataField>> {
        let schema = &self.pin.schema;
        schema.partition_indices()?.into_iter().map(|i| field(schema, i)).collect()
    }

    /// Partition values.
    pub(super) fn partition_values(&self, row: &BinaryRow) -> Result<Vec<Datum>> {
        let types: Vec<&DataType> = self.partition_fields()?.into_iter().map(DataField::data_type).collect();
        if types.is_empty() {
            return Ok(Vec::new());
        }
        row.decode(&types)
    }

    /// Partition values as a key: different partitions may have the same text.
    pub(super) fn partition_key(&self, row: &BinaryRow) -> Result<PartitionValues> {
        Ok(PartitionValues::from(self.partition_values(row)?))
    }

    /// `{v1, v2}`.
    pub(super) fn partition(&self, row: &BinaryRow) -> Result<String> {
        let values = self.partition_values(row)?;
        let fields = self.partition_fields()?;
        let texts: Vec<String> = values.iter().zip(fields).map(|(v, f)| self.text(v, f.data_type())).collect();
        Ok(format!("{{{}}}", texts.join(", ")))
    }

    /// `dt=2024-01-02/h=1`, with the default name for NULL; empty without partitions.
    pub(super) fn partition_spec(&self, row: &BinaryRow) -> Result<String> {
        let values = self.partition_values(row)?;
        partition_text(&self.pin, &values, &self.zone)
    }

    /// The whole path of a data file.
    pub(super) fn path(&self, entry: &ManifestEntry) -> Result<String> {
        Ok(match &entry.file.external_path {
            Some(path) => path.clone(),
            None => format!("{}/{}", self.bucket_path(entry)?, entry.file.file_name),
        })
    }

    /// The folder of an entry's bucket.
    pub(super) fn bucket_path(&self, entry: &ManifestEntry) -> Result<String> {
        let fields = self.partition_fields()?;
        let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
        let types: Vec<&DataType> = fields.iter().map(|f| f.data_type()).collect();
        let values = self.partition_values(&entry.partition)?;
        let partition = partition_dir(&names, &values, &types, &self.pin.options)?;
        let mut folder = self.pin.table.root().clone();
        if let Some(below) = &self.pin.options.data_file_path_directory {
            folder = folder.join(below)?;
        }
        if !partition.is_empty() {
            folder = folder.join(&partition)?;
        }
        Ok(folder.join(&bucket_dir(entry.bucket))?.to_string())
    }

    /// The schema a file was written with.
    pub(super) fn schema_of(&self, entry: &ManifestEntry) -> Result<&Arc<TableSchema>> {
        self.schemas.get(&entry.file.schema_id).ok_or_else(|| Error::internal("a file's schema was not loaded"))
    }

    /// `[1, abc]`; None for tables without primary key.
    pub(super) fn key(&self, entry: &ManifestEntry, row: &BinaryRow) -> Result<Option<String>> {
        let schema = self.schema_of(entry)?;
        if !schema.is_primary_key_table() || row.is_empty() {
            return Ok(None);
        }
        let types: Vec<&DataType> = schema
            .trimmed_primary_key()?
            .into_iter()
            .map(|i| field(schema, i).map(DataField::data_type))
            .collect::<Result<_>>()?;
        let values = row.decode(&types)?;
        let texts: Vec<String> = values.iter().zip(types).map(|(v, t)| self.text(v, t)).collect();
        Ok(Some(format!("[{}]", texts.join(", "))))
    }

    /// Null counts, lower and upper bounds of the pin's columns as `{col=value, …}`, sorted by column.
    pub(super) fn stats(&self, entry: &ManifestEntry) -> Result<[String; 3]> {
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
            Ok(self.text(&row.get(index, data_type)?, data_type))
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

    /// Text of a value, `null` for NULL.
    pub(super) fn text(&self, value: &Datum, data_type: &DataType) -> String {
        datum_text_in(value, data_type, &self.zone).unwrap_or_else(|| "null".into())
    }
}

/// An error about the schema that an entry asks for: the entry may be what is damaged.
async fn blame_schema(error: Error, entry: &Arc<ManifestEntry>, pin: &Arc<Pin>, source: &Source) -> Error {
    match manifest_of(entry, pin, &source.env.scan).await {
        Some(manifest) => error.with_context("manifest", manifest).with_context("entry", &entry.file.file_name),
        None => error.with_context("entry", &entry.file.file_name),
    }
}

fn field(schema: &TableSchema, index: usize) -> Result<&DataField> {
    schema.fields.get(index).ok_or_else(|| Error::corrupt("a key names a column that is not there"))
}
