//! The files a plan considers, each with what became of it.

use std::cmp::Ordering;
use std::sync::Arc;

use super::clean::is_clean;
use super::partitions::PartitionId;
use super::plan::{FileDecision, FileRead, Stage};
use super::planner::Origin;
use super::rule::Rule;
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
    pub(crate) dropped: Option<(Stage, Rule)>,
}

impl Live {
    pub(crate) fn new(entry: Arc<ManifestEntry>, partition: PartitionId, snapshot: Option<SnapshotId>) -> Self {
        let none: Arc<[Datum]> = Arc::from(Vec::new());
        Self { entry, partition, snapshot, schema: None, keys: (Arc::clone(&none), none), dropped: None }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.dropped.is_none()
    }

    pub(crate) fn drop_for(&mut self, stage: Stage, rule: &Rule) {
        self.dropped = Some((stage, rule.clone()));
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
        kept: Option<(usize, super::plan::SectionClass, &Rule)>,
    ) -> FileDecision {
        let file = &self.entry.file;
        let (section, read, rule) = match (kept, &self.dropped) {
            (Some((section, class, rule)), _) => (Some(section), FileRead::In(class), rule.clone()),
            (None, Some((stage, rule))) => (None, FileRead::Dropped(*stage), rule.clone()),
            (None, None) => (None, FileRead::Dropped(Stage::Limit), Rule::NotNeeded),
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
    /// Whether NULL is a key of the files.
    nullable: Vec<bool>,
}

/// Whether a key is certainly above another. Writers agree on the order of all values but NULL, the two zeros, NaN and
/// bytes.
pub fn is_above(key: &[Datum], other: &[Datum]) -> bool {
    for pair in key.iter().zip(other) {
        let order = match pair {
            (Datum::Float(one), Datum::Float(other)) => one.partial_cmp(other),
            (Datum::Double(one), Datum::Double(other)) => one.partial_cmp(other),
            (Datum::Binary(_) | Datum::Null, _) | (_, Datum::Null) => None,
            (one, other) => Some(one.total_cmp(other)),
        };
        match order {
            Some(Ordering::Equal) => {}
            Some(order) => return order == Ordering::Greater,
            None => return false,
        }
    }
    false
}

impl KeyLayout {
    /// Refuses a schema whose key is another one, or sorts in another way.
    pub(crate) fn try_new(file_schema: &TableSchema, schema: &TableSchema) -> Result<Self> {
        let anew = "read a snapshot from before the key was altered, or have all files of the table written anew: a full \
                    compaction leaves files of the newest schema only";
        let changed =
            |what: String| Err(Error::unsupported(what).with_code("PrimaryKeyChanged").with_hint(anew.to_string()));
        let keys = schema.trimmed_primary_key()?;
        let file_keys = file_schema.trimmed_primary_key()?;
        if file_keys.len() != keys.len() {
            return changed("the primary key was another one when a data file was written".to_string());
        }
        let mut layout = Self { from: Vec::new(), to: Vec::new(), nullable: Vec::new() };
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
                .with_code("KeyTypeChanged")
                .with_context("types", format!("{file_type} in the file, {table_type} in the table"))
                .with_hint(anew));
            }
            layout.from.push(file_type.clone());
            layout.to.push(table_type.clone());
            layout.nullable.push(file_field.field_type.nullable);
        }
        Ok(layout)
    }

    /// The key range of a file; `sorted` is whether its rows are in key order.
    ///
    /// # Errors
    /// A damaged row; a smallest key above the largest, or NULL in a key column that is NOT NULL: sections cut by them
    /// would tear versions of a key apart.
    pub(crate) fn range(&self, entry: &ManifestEntry, sorted: bool) -> Result<KeyRange> {
        let from: Vec<&DataType> = self.from.iter().collect();
        let decode = |row: &BinaryRow, which: &str| -> Result<Arc<[Datum]>> {
            let values = row.decode(&from)?;
            if values.iter().zip(&self.nullable).any(|(value, nullable)| value.is_null() && !nullable) {
                return Err(Error::corrupt(format!("{which} of an entry is NULL in a column that is NOT NULL"))
                    .with_code("CorruptManifest"));
            }
            Ok(values
                .into_iter()
                .zip(self.from.iter().zip(&self.to))
                .map(|(value, (from, to))| if from == to { value } else { widen(&value, to).unwrap_or(Datum::Null) })
                .collect())
        };
        let range = (decode(&entry.file.min_key, "_MIN_KEY")?, decode(&entry.file.max_key, "_MAX_KEY")?);
        if sorted && is_above(&range.0, &range.1) {
            return Err(Error::corrupt("_MIN_KEY of an entry is above its _MAX_KEY").with_code("CorruptManifest"));
        }
        Ok(range)
    }
}

/// The key range of a file as planning found it, for a plan that comes back from elsewhere; empty for append tables.
///
/// # Errors
/// As planning: a primary key that was another one, a damaged row.
#[cfg(feature = "codec")]
pub(crate) fn key_range(entry: &ManifestEntry, file_schema: &TableSchema, schema: &TableSchema) -> Result<KeyRange> {
    if schema.is_primary_key_table() {
        // what planning found was looked at there
        KeyLayout::try_new(file_schema, schema)?.range(entry, false)
    } else {
        Ok((Arc::new([]), Arc::new([])))
    }
}
