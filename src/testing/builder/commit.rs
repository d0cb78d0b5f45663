//! One commit: data files, removed files, deletion vectors; prepared first, published after.

use std::collections::BTreeMap;
use std::fs;

use arrow::array::RecordBatch;
use bytes::Bytes;
use serde_json::Value;

use super::data;
use super::data::Encodings;
use super::publish::{live_entries, read_snapshot};
use super::{FIRST_COMMIT_MILLIS, TableBuilder, io};
use crate::error::{Error, Result};
use crate::spec::binary_row::RowForm;
use crate::spec::bucket::bucket_of;
use crate::spec::deletion_vector::{DeletionVector, encode_v1, encode_v2};
use crate::spec::index_manifest::{decode_index_manifest, encode_index_manifest};
use crate::spec::manifest::{decode_manifest_list, encode_manifest, encode_manifest_list};
use crate::spec::partition_path::{bucket_dir, partition_dir};
use crate::spec::schema::BucketMode;
use crate::spec::{
    BinaryRow, Bucket, CommitKind, DataField, DataFileMeta, DataType, Datum, DeletionVectorRange, FileKind, FileSource,
    IndexFileMeta, ManifestEntry, ManifestFileMeta, SimpleStats, Snapshot, SnapshotId,
};
use crate::storage::env::new_id;

/// Rows of one file, before they are routed to partitions and buckets: one data file for each.
#[derive(Debug, Clone)]
pub struct FileSpec {
    rows: Vec<Value>,
    batches: Vec<RecordBatch>,
    level: i32,
    bucket: Option<i32>,
    delete_count: Option<Option<i64>>,
    source: FileSource,
    keep_order: bool,
    row_group_rows: usize,
    encodings: Encodings,
    index: Option<Bytes>,
}

impl FileSpec {
    /// Rows in the notation of the golden archive; `_ROW_KIND` and `_SEQUENCE_NUMBER` are optional members.
    pub fn rows(rows: &[Value]) -> Self {
        Self {
            rows: rows.to_vec(),
            batches: Vec::new(),
            level: 0,
            bucket: None,
            delete_count: None,
            source: FileSource::Append,
            keep_order: false,
            row_group_rows: 1 << 20,
            encodings: Encodings::default(),
            index: None,
        }
    }

    /// Rows as batches of the table's columns, then `_SEQUENCE_NUMBER` and `_VALUE_KIND`.
    pub fn batches(batches: Vec<RecordBatch>) -> Self {
        Self { batches, ..Self::rows(&[]) }
    }

    /// LSM level; a level above 0 makes the file one of a compaction.
    #[must_use]
    pub fn level(mut self, level: i32) -> Self {
        self.level = level;
        self.source = if level > 0 { FileSource::Compact } else { FileSource::Append };
        self
    }

    /// A fixed bucket instead of the hash's.
    #[must_use]
    pub fn bucket(mut self, bucket: i32) -> Self {
        self.bucket = Some(bucket);
        self
    }

    /// Another delete count than the true one: None for unknown, 0 as some writers put it.
    #[must_use]
    pub fn delete_count(mut self, count: Option<i64>) -> Self {
        self.delete_count = Some(count);
        self
    }

    /// Leaves the rows unsorted.
    #[must_use]
    pub fn keep_order(mut self) -> Self {
        self.keep_order = true;
        self
    }

    /// A file index that its manifest entry carries: the bytes of a whole `.index` file.
    #[must_use]
    pub fn embedded_index(mut self, bytes: Vec<u8>) -> Self {
        self.index = Some(bytes.into());
        self
    }

    /// Integer keys and sequence numbers as differences, text keys without a dictionary, as a writer would that thinks of
    /// readers.
    #[must_use]
    pub fn deltas(mut self) -> Self {
        self.encodings = Encodings::Delta;
        self
    }

    /// Rows in a row group.
    #[must_use]
    pub fn row_group_rows(mut self, rows: usize) -> Self {
        self.row_group_rows = rows;
        self
    }
}

/// A commit under construction.
pub struct Commit<'a> {
    table: &'a mut TableBuilder,
    files: Vec<FileSpec>,
    entries: Vec<ManifestEntry>,
    removed: Vec<String>,
    remove_all: bool,
    vectors: Vec<(String, Vec<u64>)>,
    bitmap64: bool,
    user: String,
    identifier: Option<i64>,
    kind: CommitKind,
    watermark: Option<i64>,
    time_millis: Option<i64>,
    written_millis: Option<i64>,
    entries_per_manifest: usize,
}

/// A commit whose files are written and whose snapshot is not yet visible.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(super) root: std::path::PathBuf,
    pub(super) snapshot: Snapshot,
}

impl<'a> Commit<'a> {
    pub(super) fn new(table: &'a mut TableBuilder) -> Self {
        Self {
            table,
            files: Vec::new(),
            entries: Vec::new(),
            removed: Vec::new(),
            remove_all: false,
            vectors: Vec::new(),
            bitmap64: false,
            user: "builder".into(),
            identifier: None,
            kind: CommitKind::Append,
            watermark: None,
            time_millis: None,
            written_millis: None,
            entries_per_manifest: usize::MAX,
        }
    }

    /// Adds data files: one for each partition and bucket the rows fall into.
    #[must_use]
    pub fn file(mut self, file: FileSpec) -> Self {
        self.files.push(file);
        self
    }

    /// Adds an entry as it is, without any data file: metadata by the hundred thousand.
    #[must_use]
    pub fn entry(mut self, entry: ManifestEntry) -> Self {
        self.entries.push(entry);
        self
    }

    /// Removes a live file by name.
    #[must_use]
    pub fn remove(mut self, file_name: &str) -> Self {
        self.removed.push(file_name.to_string());
        self
    }

    /// Removes every live file, as a full compaction does.
    #[must_use]
    pub fn remove_all(mut self) -> Self {
        self.remove_all = true;
        self
    }

    /// Deletes rows of a live file by position.
    #[must_use]
    pub fn delete_positions(mut self, file_name: &str, positions: &[u64]) -> Self {
        self.vectors.push((file_name.to_string(), positions.to_vec()));
        self
    }

    /// Writes deletion vectors in the 64-bit form.
    #[must_use]
    pub fn bitmap64(mut self) -> Self {
        self.bitmap64 = true;
        self
    }

    /// Commit user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.user = user.to_string();
        self
    }

    /// Commit identifier; the snapshot id otherwise.
    #[must_use]
    pub fn identifier(mut self, identifier: i64) -> Self {
        self.identifier = Some(identifier);
        self
    }

    /// Commit kind.
    #[must_use]
    pub fn kind(mut self, kind: CommitKind) -> Self {
        self.kind = kind;
        self
    }

    /// Watermark in epoch milliseconds.
    #[must_use]
    pub fn watermark(mut self, millis: i64) -> Self {
        self.watermark = Some(millis);
        self
    }

    /// When its files were written, in epoch milliseconds; at the time of the first commit otherwise.
    #[must_use]
    pub fn written_millis(mut self, millis: i64) -> Self {
        self.written_millis = Some(millis);
        self
    }

    /// Commit time in epoch milliseconds; a minute after the one before otherwise.
    #[must_use]
    pub fn time_millis(mut self, millis: i64) -> Self {
        self.time_millis = Some(millis);
        self
    }

    /// Cuts the delta into manifests of so many entries.
    #[must_use]
    pub fn entries_per_manifest(mut self, entries: usize) -> Self {
        self.entries_per_manifest = entries.max(1);
        self
    }

    /// Writes all files and makes the snapshot visible.
    ///
    /// # Errors
    /// Rows that do not fit the schema, a name that is not live, or the disk.
    pub fn publish(self) -> Result<Snapshot> {
        self.prepare()?.publish()
    }

    /// Writes all files but the snapshot.
    ///
    /// # Errors
    /// As [`Commit::publish`].
    pub fn prepare(mut self) -> Result<Prepared> {
        let before = read_snapshot(&self.table.root)?;
        let live = match &before {
            Some(snapshot) if self.remove_all || !self.removed.is_empty() || !self.vectors.is_empty() => {
                live_entries(&self.table.root, snapshot)?
            }
            _ => Vec::new(),
        };
        let mut entries = std::mem::take(&mut self.entries);
        for file in std::mem::take(&mut self.files) {
            entries.extend(self.write_files(&file)?);
        }
        for name in &self.removed {
            if !live.iter().any(|e| e.file.file_name == *name) {
                return Err(Error::not_found(format!("no live file {name} to remove")));
            }
        }
        let gone = live.iter().filter(|e| self.remove_all || self.removed.contains(&e.file.file_name));
        entries.extend(gone.cloned().map(|e| ManifestEntry { kind: FileKind::Delete, ..e }));
        let index_manifest = self.write_index(before.as_ref(), &live)?;
        self.write_snapshot(before, &entries, index_manifest)
    }

    fn write_files(&mut self, spec: &FileSpec) -> Result<Vec<ManifestEntry>> {
        let written_millis = self.written_millis.unwrap_or(FIRST_COMMIT_MILLIS);
        let table = &mut *self.table;
        let batch = if spec.batches.is_empty() {
            data::batch_of(&spec.rows, &table.schema, &mut table.next_sequence)?
        } else {
            data::joined(&spec.batches)?
        };
        let schema = &table.schema;
        let with_fields = |indices: Vec<usize>| -> Vec<(usize, &DataField)> {
            indices.into_iter().filter_map(|i| schema.fields.get(i).map(|f| (i, f))).collect()
        };
        let partition = with_fields(schema.partition_indices()?);
        let key = data::key_fields(schema)?;
        let hashed = with_fields(schema.bucket_key_indices(&table.options)?);
        let hashed_types: Vec<&DataType> = hashed.iter().map(|(_, f)| f.data_type()).collect();
        let total = table.options.bucket;
        let fixed = matches!(schema.bucket_mode(&table.options), BucketMode::Fixed(_));
        let mut routed: BTreeMap<(BinaryRow, i32), Vec<u64>> = BTreeMap::new();
        let mut partitions: BTreeMap<BinaryRow, Vec<Datum>> = BTreeMap::new();
        // one place for all rows: nothing is asked of each, of millions in large tables
        let rows = match spec.bucket {
            Some(bucket) if partition.is_empty() && batch.num_rows() > 0 => {
                routed.insert((BinaryRow::empty(), bucket), (0..batch.num_rows() as u64).collect());
                0..0
            }
            _ => 0..batch.num_rows(),
        };
        for row in rows {
            let values = data::datums(&batch, row, &partition)?;
            let encoded = data::encode(&values, &partition, RowForm::Projected)?;
            let bucket = match spec.bucket {
                Some(bucket) => bucket,
                None if fixed => {
                    let values = data::datums(&batch, row, &hashed)?;
                    bucket_of(table.options.bucket_function, &values, &hashed_types, total)?.unwrap_or(0)
                }
                None => 0,
            };
            partitions.insert(encoded.clone(), values);
            routed.entry((encoded, bucket)).or_default().push(row as u64);
        }
        let names: Vec<&str> = partition.iter().map(|(_, f)| f.name.as_str()).collect();
        let types: Vec<&DataType> = partition.iter().map(|(_, f)| f.data_type()).collect();
        let mut entries = Vec::new();
        for ((encoded, bucket), rows) in routed {
            let values = partitions.get(&encoded).cloned().unwrap_or_default();
            let mut dir = table.root.clone();
            let sub = partition_dir(&names, &values, &types, &table.options)?;
            if !sub.is_empty() {
                dir.push(sub);
            }
            dir.push(bucket_dir(Bucket(bucket)));
            fs::create_dir_all(&dir).map_err(io(&dir))?;
            let file_name = format!("data-{}-0.parquet", new_id());
            let mut mine = data::rows_of(&batch, &rows)?;
            if !key.is_empty() && !spec.keep_order {
                mine = data::sorted(&mine, &key)?;
            }
            let written = data::write(&dir.join(&file_name), &mine, schema, spec.row_group_rows, spec.encodings)?;
            let bound = |row: usize| -> Result<BinaryRow> {
                if key.is_empty() {
                    return Ok(BinaryRow::empty());
                }
                data::encode(&data::datums(&mine, row, &key)?, &key, RowForm::Projected)
            };
            let none =
                SimpleStats { min_values: BinaryRow::empty(), max_values: BinaryRow::empty(), null_counts: vec![] };
            entries.push(ManifestEntry {
                kind: FileKind::Add,
                partition: encoded,
                bucket: Bucket(bucket),
                total_buckets: total,
                file: DataFileMeta {
                    file_name,
                    file_size: written.bytes,
                    row_count: mine.num_rows() as i64,
                    min_key: bound(0)?,
                    max_key: bound(mine.num_rows() - 1)?,
                    key_stats: if key.is_empty() { none } else { written.key_stats },
                    value_stats: written.value_stats,
                    min_sequence_number: written.min_sequence,
                    max_sequence_number: written.max_sequence,
                    schema_id: schema.id,
                    level: spec.level,
                    extra_files: vec![],
                    creation_time_millis: Some(written_millis),
                    delete_row_count: spec.delete_count.unwrap_or(Some(written.deletes)),
                    embedded_index: spec.index.clone(),
                    file_source: Some(spec.source),
                    value_stats_cols: None,
                    external_path: None,
                    first_row_id: None,
                    write_cols: None,
                    write_cols_sequences: None,
                },
            });
        }
        Ok(entries)
    }

    /// The complete index manifest after this commit; None when there are no vectors.
    fn write_index(&self, before: Option<&Snapshot>, live: &[ManifestEntry]) -> Result<Option<String>> {
        let old = before.and_then(|s| s.index_manifest.clone());
        if self.vectors.is_empty() {
            return Ok(old);
        }
        let manifest_dir = self.table.root.join("manifest");
        let mut files: Vec<IndexFileMeta> = match &old {
            Some(name) => {
                let path = manifest_dir.join(name);
                decode_index_manifest(&fs::read(&path).map_err(io(&path))?, name)?
            }
            None => Vec::new(),
        };
        let index_dir = self.table.root.join("index");
        fs::create_dir_all(&index_dir).map_err(io(&index_dir))?;
        let mut units: BTreeMap<(BinaryRow, i32), Vec<(String, DeletionVector)>> = BTreeMap::new();
        for (name, positions) in &self.vectors {
            let entry = live
                .iter()
                .find(|e| e.file.file_name == *name)
                .ok_or_else(|| Error::not_found(format!("no live file {name} to delete from")))?;
            let vector = DeletionVector(positions.iter().copied().collect());
            units.entry((entry.partition.clone(), entry.bucket.0)).or_default().push((name.clone(), vector));
        }
        for ((partition, bucket), vectors) in units {
            // a unit's file is rewritten as a whole: vectors not given anew are gone
            files.retain(|f| !(f.partition == partition && f.bucket.0 == bucket && f.index_type == "DELETION_VECTORS"));
            let mut bytes = vec![1u8];
            let mut ranges = Vec::new();
            for (name, vector) in &vectors {
                let (record, length) = if self.bitmap64 { encode_v2(vector)? } else { encode_v1(vector)? };
                let offset = i32::try_from(bytes.len()).map_err(|e| Error::invalid(e.to_string()))?;
                ranges.push(DeletionVectorRange {
                    data_file_name: name.clone(),
                    offset,
                    length,
                    cardinality: Some(vector.cardinality() as i64),
                });
                bytes.extend(record);
            }
            let file_name = format!("index-{}-0", new_id());
            let path = index_dir.join(&file_name);
            fs::write(&path, &bytes).map_err(io(&path))?;
            files.push(IndexFileMeta {
                kind: FileKind::Add,
                partition,
                bucket: Bucket(bucket),
                index_type: "DELETION_VECTORS".into(),
                file_name,
                file_size: bytes.len() as i64,
                row_count: vectors.len() as i64,
                deletion_vectors: Some(ranges),
                external_path: None,
                global_index: None,
            });
        }
        let name = format!("index-manifest-{}-0", new_id());
        let path = manifest_dir.join(&name);
        fs::write(&path, encode_index_manifest(&files)?).map_err(io(&path))?;
        Ok(Some(name))
    }

    fn write_snapshot(
        &self,
        before: Option<Snapshot>,
        entries: &[ManifestEntry],
        index_manifest: Option<String>,
    ) -> Result<Prepared> {
        let dir = self.table.root.join("manifest");
        let put = |name: &str, bytes: Vec<u8>| -> Result<u64> {
            let path = dir.join(name);
            let size = bytes.len() as u64;
            fs::write(&path, bytes).map_err(io(&path))?;
            Ok(size)
        };
        let list = |name: &str| -> Result<Vec<ManifestFileMeta>> {
            let path = dir.join(name);
            decode_manifest_list(&fs::read(&path).map_err(io(&path))?, name)
        };
        let base = match &before {
            Some(s) => [list(&s.base_manifest_list)?, list(&s.delta_manifest_list)?].concat(),
            None => Vec::new(),
        };
        let id = new_id();
        let mut delta = Vec::new();
        for (n, part) in entries.chunks(self.entries_per_manifest.min(entries.len().max(1))).enumerate() {
            let name = format!("manifest-{id}-{n}");
            let size = put(&name, encode_manifest(part)?)?;
            delta.push(self.manifest_meta(name, size, part)?);
        }
        let (base_name, delta_name) = (format!("manifest-list-{id}-0"), format!("manifest-list-{id}-1"));
        let base_size = put(&base_name, encode_manifest_list(&base)?)?;
        let delta_size = put(&delta_name, encode_manifest_list(&delta)?)?;
        let changed = entries.iter().fold(0i64, |sum, entry| match entry.kind {
            FileKind::Add => sum.saturating_add(entry.file.row_count),
            FileKind::Delete => sum.saturating_sub(entry.file.row_count),
        });
        let snapshot_id = before.as_ref().map_or(1, |s| s.id.0 + 1);
        let total = before.as_ref().and_then(|s| s.total_record_count).unwrap_or(0).saturating_add(changed);
        let last_time = before.as_ref().map_or(FIRST_COMMIT_MILLIS - 60_000, |s| s.time_millis);
        let snapshot = Snapshot {
            version: 3,
            uuid: None,
            id: SnapshotId(snapshot_id),
            schema_id: self.table.schema.id,
            base_manifest_list: base_name,
            base_manifest_list_size: Some(base_size),
            delta_manifest_list: delta_name,
            delta_manifest_list_size: Some(delta_size),
            changelog_manifest_list: None,
            changelog_manifest_list_size: None,
            index_manifest,
            commit_user: self.user.clone(),
            writer_version: None,
            commit_identifier: self.identifier.unwrap_or(snapshot_id),
            commit_kind: self.kind,
            time_millis: self.time_millis.unwrap_or(last_time + 60_000),
            total_record_count: Some(total),
            delta_record_count: Some(changed),
            changelog_record_count: Some(0),
            watermark: self.watermark.or(before.as_ref().and_then(|s| s.watermark)),
            statistics: None,
            properties: BTreeMap::new(),
            next_row_id: None,
            operation: None,
        };
        Ok(Prepared { root: self.table.root.clone(), snapshot })
    }

    fn manifest_meta(&self, file_name: String, file_size: u64, entries: &[ManifestEntry]) -> Result<ManifestFileMeta> {
        let schema = &self.table.schema;
        let fields: Vec<(usize, &DataField)> =
            schema.partition_indices()?.into_iter().filter_map(|i| schema.fields.get(i).map(|f| (i, f))).collect();
        let types: Vec<&DataType> = fields.iter().map(|(_, f)| f.data_type()).collect();
        let partitions = entries.iter().map(|entry| entry.partition.decode(&types)).collect::<Result<Vec<_>>>()?;
        let column = |at: usize| data::bounds(partitions.iter().filter_map(|values| values.get(at).cloned()));
        let bounds: Vec<data::Bounds> = (0..fields.len()).map(column).collect();
        let adds = entries.iter().filter(|e| e.kind == FileKind::Add).count() as i64;
        Ok(ManifestFileMeta {
            file_name,
            file_size,
            num_added_files: adds,
            num_deleted_files: entries.len() as i64 - adds,
            partition_stats: data::encode_stats(&bounds, &fields)?,
            schema_id: schema.id,
            min_bucket: entries.iter().map(|e| e.bucket.0).min(),
            max_bucket: entries.iter().map(|e| e.bucket.0).max(),
            min_level: entries.iter().map(|e| e.file.level).min(),
            max_level: entries.iter().map(|e| e.file.level).max(),
            min_row_id: None,
            max_row_id: None,
            total_buckets: match entries {
                [first, rest @ ..] if rest.iter().all(|e| e.total_buckets == first.total_buckets) => {
                    Some(first.total_buckets).filter(|total| *total > 0)
                }
                _ => None,
            },
        })
    }
}
