//! The files a plan considers, each with what became of it.

use std::sync::Arc;

use super::clean::is_clean;
use super::partitions::PartitionId;
use super::plan::{FileDecision, FileRead, Stage};
use super::planner::Origin;
use super::stats::{widen, widens};
use crate::error::{Error, Result};
use crate::spec::{BinaryRow, DataType, Datum, ManifestEntry, SnapshotId, TableSchema};

/// Smallest and largest key of a file, in the table's types.
pub(crate) type KeyRange = (Arc<[Datum]>, Arc<[Datum]>);

/// A file of the snapshot while it is planned.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    pub(crate) entry: Arc<ManifestEntry>,
    pub(crate) partition: PartitionId,
    /// Change reads: the snapshot that brought it.
    pub(crate) snapshot: Option<SnapshotId>,
    /// Schema it was written with, once known.
    pub(crate) schema: Option<Arc<TableSchema>>,
    /// Smallest and largest key in the table's types, once known.
    pub(crate) keys: KeyRange,
    /// Why it is not read.
    pub(crate) dropped: Option<(Stage, Arc<str>)>,
}

impl Live {
    pub(crate) fn new(entry: Arc<ManifestEntry>, partition: PartitionId, snapshot: Option<SnapshotId>) -> Self {
        let none: Arc<[Datum]> = Arc::from(Vec::new());
        Self { entry, partition, snapshot, schema: None, keys: (Arc::clone(&none), none), dropped: None }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.dropped.is_none()
    }

    pub(crate) fn drop_for(&mut self, stage: Stage, rule: &Arc<str>) {
        self.dropped = Some((stage, Arc::clone(rule)));
    }

    /// Whether it is certain that no row of it takes back another.
    pub(crate) fn is_clean(&self, top: i32) -> bool {
        self.schema.as_deref().is_some_and(|schema| is_clean(&self.entry.file, schema, top))
    }

    /// The decision as shown, read or not.
    pub(crate) fn decision(
        &self,
        partition: Arc<[Datum]>,
        from: Origin,
        kept: Option<(usize, super::plan::SectionClass, &str)>,
    ) -> FileDecision {
        let file = &self.entry.file;
        let (section, read, rule) = match (kept, &self.dropped) {
            (Some((section, class, rule)), _) => (Some(section), FileRead::In(class), rule.to_string()),
            (None, Some((stage, rule))) => (None, FileRead::Dropped(*stage), rule.to_string()),
            (None, None) => (None, FileRead::Dropped(Stage::Limit), "not needed".to_string()),
        };
        FileDecision {
            file: file.file_name.clone(),
            partition,
            bucket: self.entry.bucket,
            total_buckets: self.entry.total_buckets,
            level: file.level,
            rows: file.row_count,
            bytes: file.file_size,
            min_key: self.keys.0.to_vec(),
            max_key: self.keys.1.to_vec(),
            min_sequence: file.min_sequence_number,
            max_sequence: file.max_sequence_number,
            kept: kept.is_some(),
            branch: from.branch,
            snapshot: from.snapshot,
            section,
            read,
            rule,
        }
    }
}

/// How the keys of files of one schema are brought to the types of the table's schema.
pub(crate) struct KeyLayout {
    from: Vec<DataType>,
    to: Vec<DataType>,
}

impl KeyLayout {
    /// Refuses a schema whose key is another one, or sorts in another way.
    pub(crate) fn try_new(file_schema: &TableSchema, schema: &TableSchema) -> Result<Self> {
        let changed = |what: String| Err(Error::unsupported(what).with_code("PrimaryKeyChanged"));
        let keys = schema.trimmed_primary_key()?;
        let file_keys = file_schema.trimmed_primary_key()?;
        if file_keys.len() != keys.len() {
            return changed("the primary key was another one when a data file was written".to_string());
        }
        let mut layout = Self { from: Vec::with_capacity(keys.len()), to: Vec::with_capacity(keys.len()) };
        for (index, file_index) in keys.iter().zip(&file_keys) {
            let (Some(field), Some(file_field)) = (schema.fields.get(*index), file_schema.fields.get(*file_index))
            else {
                return Err(Error::internal("a key column is not in the schema"));
            };
            if field.id != file_field.id {
                return changed(format!(
                    "the primary key was another one when a data file was written (key column '{}')",
                    field.name
                ));
            }
            let (file_type, table_type) = (file_field.data_type(), field.data_type());
            if file_type != table_type && !widens(file_type, table_type) {
                return Err(Error::unsupported(format!(
                    "key column '{}' had another type when a data file was written, and its order may differ",
                    field.name
                ))
                .with_code("KeyTypeChanged"));
            }
            layout.from.push(file_type.clone());
            layout.to.push(table_type.clone());
        }
        Ok(layout)
    }

    /// The key range of a file.
    pub(crate) fn range(&self, entry: &ManifestEntry) -> Result<KeyRange> {
        let from: Vec<&DataType> = self.from.iter().collect();
        let decode = |row: &BinaryRow| -> Result<Arc<[Datum]>> {
            let values = row.decode(&from)?;
            Ok(values
                .into_iter()
                .zip(self.from.iter().zip(&self.to))
                .map(|(value, (from, to))| if from == to { value } else { widen(&value, to).unwrap_or(Datum::Null) })
                .collect())
        };
        Ok((decode(&entry.file.min_key)?, decode(&entry.file.max_key)?))
    }
}

/// The key range of a file as planning found it, for a plan that comes back from elsewhere; empty for append tables.
///
/// # Errors
/// As planning: a primary key that was another one, a damaged row.
#[cfg(feature = "codec")]
pub(crate) fn key_range(entry: &ManifestEntry, file_schema: &TableSchema, schema: &TableSchema) -> Result<KeyRange> {
    if schema.is_primary_key_table() {
        KeyLayout::try_new(file_schema, schema)?.range(entry)
    } else {
        Ok((Arc::new([]), Arc::new([])))
    }
}
