//! Live files of a pin, and their parts as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use indexmap::IndexMap;

use super::Source;
use crate::error::{Error, Result};
use crate::recon::accounting::partition_text;
use crate::snapshot::Pin;
use crate::spec::manifest::{FileIdentity, decode_manifest, decode_manifest_list};
use crate::spec::partition_path::{bucket_dir, partition_dir};
use crate::spec::text::datum_text_in;
use crate::spec::{
    BinaryRow, DataField, DataType, Datum, FileKind, ManifestEntry, ManifestFileMeta, SchemaId, SimpleStats,
    TableSchema, Zone,
};

/// Manifests read at the same time.
const CONCURRENCY: usize = 16;

/// The manifests of a pin: base, then delta.
pub(super) async fn manifests(pin: &Pin) -> Result<Vec<ManifestFileMeta>> {
    let Some(snapshot) = &pin.snapshot else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for list in [&snapshot.base_manifest_list, &snapshot.delta_manifest_list] {
        let location = pin.table.manifest_location(list)?;
        let bytes = read(pin, &location).await?;
        all.extend(decode_manifest_list(&bytes, list).map_err(|e| e.with_context("file", &location))?);
    }
    Ok(all)
}

/// Reads a file of the pin; one that is gone is told as the pin's loss.
pub(super) async fn read(pin: &Pin, location: &crate::storage::Location) -> Result<bytes::Bytes> {
    match pin.table.storage().read_opt(location).await? {
        Some(bytes) => Ok(bytes),
        None => Err(pin.missing_file(location).await),
    }
}

/// Files that are live in the pinned snapshot: added and not removed.
pub(super) async fn live(pin: &Arc<Pin>) -> Result<Vec<ManifestEntry>> {
    let manifests = manifests(pin).await?;
    let read_all = stream::iter(manifests.into_iter().map(|meta| {
        let pin = Arc::clone(pin);
        async move {
            let location = pin.table.manifest_location(&meta.file_name)?;
            let bytes = read(&pin, &location).await?;
            decode_manifest(&bytes, &meta.file_name).map_err(|e| e.with_context("file", &location))
        }
    }))
    .buffered(CONCURRENCY);
    let all: Vec<Vec<ManifestEntry>> = read_all.try_collect().await?;
    Ok(fold(all.into_iter().flatten()))
}

/// A file is live when it was added and occurs in no DELETE entry.
fn fold(entries: impl Iterator<Item = ManifestEntry>) -> Vec<ManifestEntry> {
    let mut added: IndexMap<FileIdentity, ManifestEntry> = IndexMap::new();
    let mut removed = std::collections::HashSet::new();
    for entry in entries {
        match entry.kind {
            FileKind::Add => {
                added.insert(entry.identity(), entry);
            }
            FileKind::Delete => {
                removed.insert(entry.identity());
            }
        }
    }
    added.into_iter().filter(|(identity, _)| !removed.contains(identity)).map(|(_, entry)| entry).collect()
}

/// Parts of entries as text, with the schemas files were written with.
pub(super) struct Texts {
    pin: Arc<Pin>,
    zone: Zone,
    schemas: BTreeMap<SchemaId, Arc<TableSchema>>,
}

impl Texts {
    pub(super) async fn of(source: &Source, entries: &[ManifestEntry]) -> Result<Self> {
        let pin = Arc::clone(source.pin()?);
        let zone = Zone::parse(&source.zone.name())?;
        let mut schemas = BTreeMap::from([(pin.schema.id, Arc::clone(&pin.schema))]);
        for entry in entries {
            let id = entry.file.schema_id;
            if let std::collections::btree_map::Entry::Vacant(e) = schemas.entry(id) {
                e.insert(pin.table.schema(id).await?);
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

    fn schema_of(&self, entry: &ManifestEntry) -> Result<&Arc<TableSchema>> {
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
            if row.is_empty() || index >= row.arity()? || is_nested(data_type) {
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

/// Types without bounds.
fn is_nested(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Array(_)
            | DataType::Map(..)
            | DataType::Multiset(_)
            | DataType::Row(_)
            | DataType::Vector(..)
            | DataType::Variant
            | DataType::Blob
            | DataType::Geometry(_)
            | DataType::Geography(_)
    )
}

fn field(schema: &TableSchema, index: usize) -> Result<&DataField> {
    schema.fields.get(index).ok_or_else(|| Error::corrupt("a key names a column that is not there"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Bucket, DataFileMeta};

    fn entry(kind: FileKind, name: &str, level: i32) -> ManifestEntry {
        ManifestEntry {
            kind,
            partition: BinaryRow::empty(),
            bucket: Bucket(0),
            total_buckets: 1,
            file: DataFileMeta {
                file_name: name.into(),
                file_size: 1,
                row_count: 1,
                min_key: BinaryRow::empty(),
                max_key: BinaryRow::empty(),
                key_stats: SimpleStats::default(),
                value_stats: SimpleStats::default(),
                min_sequence_number: 0,
                max_sequence_number: 0,
                schema_id: SchemaId(0),
                level,
                extra_files: vec![],
                creation_time_millis: None,
                delete_row_count: None,
                embedded_index: None,
                file_source: None,
                value_stats_cols: None,
                external_path: None,
                first_row_id: None,
                write_cols: None,
                write_cols_sequences: None,
            },
        }
    }

    #[test]
    fn an_upgraded_file_is_live_once_at_its_new_level() {
        let live = fold(
            [
                entry(FileKind::Delete, "a", 0),
                entry(FileKind::Add, "a", 5),
                entry(FileKind::Add, "a", 0),
                entry(FileKind::Add, "b", 0),
            ]
            .into_iter(),
        );
        let names: Vec<(&str, i32)> = live.iter().map(|e| (e.file.file_name.as_str(), e.file.level)).collect();
        assert_eq!(names, [("a", 5), ("b", 0)]);
    }
}
