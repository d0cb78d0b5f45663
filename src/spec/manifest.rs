//! Manifest lists and manifests: which data files a snapshot has.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

mod codec;

pub(super) use codec::{check_version, file_kind, kind_number, row_of};
pub use codec::{decode_manifest, decode_manifest_list, decode_whole_list, encode_manifest, encode_manifest_list};

use super::binary_row::BinaryRow;
use super::schema::{Bucket, SchemaId};
use crate::error::{Error, Result};

/// Bounds and null counts of some columns. Rows of no fields mean: no statistics.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SimpleStats {
    /// Lower bounds.
    pub min_values: BinaryRow,
    /// Upper bounds.
    pub max_values: BinaryRow,
    /// Null counts, None when unknown; none at all, or one a column.
    pub null_counts: Vec<Option<i64>>,
}

/// An entry of a manifest list: one manifest file.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestFileMeta {
    /// Bare name, in `manifest/`.
    pub file_name: String,
    /// Bytes.
    pub file_size: u64,
    /// ADD entries.
    pub num_added_files: i64,
    /// DELETE entries.
    pub num_deleted_files: i64,
    /// Over the partition columns; the "rows" counted are entries.
    pub partition_stats: SimpleStats,
    /// Schema the manifest was written with.
    pub schema_id: SchemaId,
    /// Smallest bucket, None when unknown.
    pub min_bucket: Option<i32>,
    /// Largest bucket.
    pub max_bucket: Option<i32>,
    /// Smallest level.
    pub min_level: Option<i32>,
    /// Largest level.
    pub max_level: Option<i32>,
    /// Smallest row id.
    pub min_row_id: Option<i64>,
    /// Largest row id.
    pub max_row_id: Option<i64>,
    /// Bucket count of every entry, where the writer tells it and all entries have the same.
    pub total_buckets: Option<i32>,
}

/// A manifest list as read.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestList {
    /// In their order.
    pub manifests: Vec<ManifestFileMeta>,
    /// Whether the list may be the beginning of a longer one: an Avro file that ends between two blocks looks whole.
    pub may_be_cut: bool,
}

impl ManifestFileMeta {
    /// Number of entries; None where the counts cannot be those of a manifest, since no writer puts an empty one down.
    pub fn entry_count(&self) -> Option<u64> {
        let (added, deleted) = (u64::try_from(self.num_added_files).ok()?, u64::try_from(self.num_deleted_files).ok()?);
        added.checked_add(deleted).filter(|count| *count > 0)
    }

    /// Refuses a manifest with other entries than its list counts. An Avro file that ends between two blocks looks whole,
    /// and the files behind would be missing from every read.
    pub fn check_entries(&self, entries: &[ManifestEntry]) -> Result<()> {
        let added = entries.iter().filter(|entry| entry.kind == FileKind::Add).count();
        let deleted = entries.len() - added;
        let is = |count: usize, told: i64| i64::try_from(count) == Ok(told);
        if is(added, self.num_added_files) && is(deleted, self.num_deleted_files) {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "the manifest adds {added} files and removes {deleted} where its list counts {} and {}",
            self.num_added_files, self.num_deleted_files
        ))
        .with_code("ManifestIncomplete")
        .or_restore())
    }
}

/// Refuses a metadata file that is shorter than the one who names it says; None: nobody says.
pub fn check_size(told: Option<u64>, bytes: usize) -> Result<()> {
    match told {
        Some(told) if (bytes as u64) < told => {
            Err(Error::corrupt(format!("the file is cut: it has {bytes} of its {told} bytes"))
                .with_code("ManifestIncomplete")
                .or_restore())
        }
        _ => Ok(()),
    }
}

/// Whether an entry brings or removes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// The file is live from here on.
    Add,
    /// The file is no longer live.
    Delete,
}

/// Where a data file came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileSource {
    /// Written by a writer.
    Append,
    /// Written by a compaction.
    Compact,
}

impl FileSource {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Append => "APPEND",
            Self::Compact => "COMPACT",
        }
    }
}

/// One data file, as described by a manifest entry.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFileMeta {
    /// Bare name.
    pub file_name: String,
    /// Bytes.
    pub file_size: u64,
    /// Physical rows, deletes included.
    pub row_count: i64,
    /// Smallest trimmed primary key; no fields for append tables.
    pub min_key: BinaryRow,
    /// Largest trimmed primary key.
    pub max_key: BinaryRow,
    /// Over the trimmed primary key columns.
    pub key_stats: SimpleStats,
    /// Over the file schema's columns, or those of `value_stats_cols`.
    pub value_stats: SimpleStats,
    /// Smallest sequence number.
    pub min_sequence_number: i64,
    /// Largest sequence number.
    pub max_sequence_number: i64,
    /// Schema the file was written with: decides names and types inside the file.
    pub schema_id: SchemaId,
    /// LSM level; 0 for append tables.
    pub level: i32,
    /// Names beside the file (`.index`, …).
    pub extra_files: Vec<String>,
    /// Wall clock of the writer's zone as if it were UTC, epoch milliseconds.
    pub creation_time_millis: Option<i64>,
    /// Rows of kind -U or -D; None when unknown. Zero is no proof (pypaimon writes 0 always).
    pub delete_row_count: Option<i64>,
    /// Whole file-index container.
    pub embedded_index: Option<bytes::Bytes>,
    /// Written by a writer or by a compaction; None in old files.
    pub file_source: Option<FileSource>,
    /// None: `value_stats` covers all columns of the file's schema (or of `write_cols`) in order.
    pub value_stats_cols: Option<Vec<String>>,
    /// Complete path, used verbatim.
    pub external_path: Option<String>,
    /// Row tracking: id of the first row.
    pub first_row_id: Option<i64>,
    /// Columns physically present; None: all.
    pub write_cols: Option<Vec<String>>,
    /// Sequence number of each written column, newest writers only.
    pub write_cols_sequences: Option<Vec<i64>>,
}

/// One entry of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestEntry {
    /// ADD or DELETE.
    pub kind: FileKind,
    /// Partition values.
    pub partition: BinaryRow,
    /// Bucket.
    pub bucket: Bucket,
    /// Bucket count in force when the file was written; -1 dynamic or unaware, -2 postpone.
    pub total_buckets: i32,
    /// The file.
    pub file: DataFileMeta,
}

/// What makes a data file one and the same across manifests, nothing copied. The level is part of it: an upgrade is a
/// DELETE and an ADD of the same name.
#[derive(Debug, Clone, Copy)]
pub struct FileIdentity<'a>(&'a ManifestEntry);

impl ManifestEntry {
    /// The identity of the entry's file.
    pub fn identity(&self) -> FileIdentity<'_> {
        FileIdentity(self)
    }
}

impl PartialEq for FileIdentity<'_> {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&self.0.file, &other.0.file);
        one.file_name == two.file_name
            && one.level == two.level
            && self.0.bucket == other.0.bucket
            && self.0.partition == other.0.partition
            && one.extra_files == two.extra_files
            && one.embedded_index == two.embedded_index
            && one.external_path == two.external_path
    }
}

impl Eq for FileIdentity<'_> {}

impl Hash for FileIdentity<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // names are unique in all but constructed tables; the rest is left to the comparison
        self.0.file.file_name.hash(state);
        self.0.file.level.hash(state);
        self.0.bucket.hash(state);
    }
}

/// The entries of a snapshot, folded.
#[derive(Debug)]
pub struct Folded<'a, E> {
    /// The files added and not deleted, in the order of the entries.
    pub live: Vec<&'a E>,
    /// A deletion of a file that none of the entries adds, the first. Where all manifests of a snapshot were folded it is
    /// damage: the file meant is live again.
    pub unmatched: Option<&'a E>,
}

/// Folds entries whatever their order. A file added again after its deletion stays invisible, one added twice is there
/// twice, as in the reference implementation.
pub fn fold<'a, E: Borrow<ManifestEntry> + 'a>(entries: impl Iterator<Item = &'a E> + Clone) -> Folded<'a, E> {
    let of_kind = |kind: FileKind| move |entry: &&E| Borrow::<ManifestEntry>::borrow(*entry).kind == kind;
    let identity = |entry: &'a E| Borrow::<ManifestEntry>::borrow(entry).identity();
    // whether a file of that identity was added
    let mut deleted: HashMap<FileIdentity<'_>, bool> =
        entries.clone().filter(of_kind(FileKind::Delete)).map(|entry| (identity(entry), false)).collect();
    let added = entries.clone().filter(of_kind(FileKind::Add));
    let live = if deleted.is_empty() {
        added.collect()
    } else {
        added
            .filter(|entry| match deleted.get_mut(&identity(entry)) {
                Some(matched) => {
                    *matched = true;
                    false
                }
                None => true,
            })
            .collect()
    };
    let unmatched = if deleted.values().all(|matched| *matched) {
        None
    } else {
        entries.filter(of_kind(FileKind::Delete)).find(|entry| deleted.get(&identity(entry)) == Some(&false))
    };
    Folded { live, unmatched }
}

/// The live files among the entries of a snapshot: those added and not deleted. See [`fold`].
pub fn live<'a, E: Borrow<ManifestEntry> + 'a>(entries: impl Iterator<Item = &'a E> + Clone) -> Vec<&'a E> {
    fold(entries).live
}
