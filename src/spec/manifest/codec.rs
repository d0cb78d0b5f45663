//! Bytes of manifest lists and manifests.

use bytes::Bytes;

use super::{DataFileMeta, FileKind, FileSource, ManifestEntry, ManifestFileMeta, ManifestList, SimpleStats};
use crate::error::{Error, Result};
use crate::spec::binary_row::BinaryRow;
use crate::spec::meta_file::{self, Field, Kind, Row, Table, Value};
use crate::spec::schema::{Bucket, SchemaId};

/// Format of manifest lists and manifests since release 0.4.
const VERSION: i64 = 2;
/// Format before that.
const ANCIENT_VERSION: i64 = 1;

const STATS: Table = Table {
    fields: &[
        Field::required("_MIN_VALUES", Kind::Bytes),
        Field::required("_MAX_VALUES", Kind::Bytes),
        Field::nullable("_NULL_COUNTS", Kind::NULLABLE_LONGS),
    ],
};

const MANIFEST_LIST: Table = Table {
    fields: &[
        Field::required("_VERSION", Kind::Int),
        Field::required("_FILE_NAME", Kind::Text),
        Field::required("_FILE_SIZE", Kind::Long),
        Field::required("_NUM_ADDED_FILES", Kind::Long),
        Field::required("_NUM_DELETED_FILES", Kind::Long),
        Field::required("_PARTITION_STATS", Kind::Record(&STATS)),
        Field::required("_SCHEMA_ID", Kind::Long),
        Field::nullable("_MIN_BUCKET", Kind::Int),
        Field::nullable("_MAX_BUCKET", Kind::Int),
        Field::nullable("_MIN_LEVEL", Kind::Int),
        Field::nullable("_MAX_LEVEL", Kind::Int),
        Field::nullable("_MIN_ROW_ID", Kind::Long),
        Field::nullable("_MAX_ROW_ID", Kind::Long),
        Field::nullable("_TOTAL_BUCKETS", Kind::Int),
    ],
};

const DATA_FILE: Table = Table {
    fields: &[
        Field::required("_FILE_NAME", Kind::Text),
        Field::required("_FILE_SIZE", Kind::Long),
        Field::required("_ROW_COUNT", Kind::Long),
        Field::required("_MIN_KEY", Kind::Bytes),
        Field::required("_MAX_KEY", Kind::Bytes),
        Field::required("_KEY_STATS", Kind::Record(&STATS)),
        Field::required("_VALUE_STATS", Kind::Record(&STATS)),
        Field::required("_MIN_SEQUENCE_NUMBER", Kind::Long),
        Field::required("_MAX_SEQUENCE_NUMBER", Kind::Long),
        Field::required("_SCHEMA_ID", Kind::Long),
        Field::required("_LEVEL", Kind::Int),
        Field::required("_EXTRA_FILES", Kind::TEXTS),
        Field::nullable("_CREATION_TIME", Kind::Millis),
        Field::nullable("_DELETE_ROW_COUNT", Kind::Long),
        Field::nullable("_EMBEDDED_FILE_INDEX", Kind::Bytes),
        Field::nullable("_FILE_SOURCE", Kind::Int),
        Field::nullable("_VALUE_STATS_COLS", Kind::TEXTS),
        Field::nullable("_EXTERNAL_PATH", Kind::Text),
        Field::nullable("_FIRST_ROW_ID", Kind::Long),
        Field::nullable("_WRITE_COLS", Kind::TEXTS),
        Field::nullable("_WRITE_COLS_SEQUENCES", Kind::LONGS),
    ],
};

const MANIFEST: Table = Table {
    fields: &[
        Field::required("_VERSION", Kind::Int),
        Field::required("_KIND", Kind::Int),
        Field::required("_PARTITION", Kind::Bytes),
        Field::required("_BUCKET", Kind::Int),
        Field::required("_TOTAL_BUCKETS", Kind::Int),
        Field::required("_FILE", Kind::Record(&DATA_FILE)),
    ],
};

/// Decodes a manifest list (Avro of any codec, ORC or Parquet by its first bytes). `name` is the file, for errors.
pub fn decode_manifest_list(bytes: &[u8], name: &str) -> Result<Vec<ManifestFileMeta>> {
    Ok(decode_whole_list(bytes, name)?.manifests)
}

/// Decodes a manifest list and tells whether it may have been longer.
pub fn decode_whole_list(bytes: &[u8], name: &str) -> Result<ManifestList> {
    let decoded = meta_file::decode(bytes, name, &MANIFEST_LIST, manifest_file)?;
    Ok(ManifestList { manifests: decoded.rows, may_be_cut: decoded.may_be_cut })
}

/// Decodes a manifest (Avro of any codec, ORC or Parquet by its first bytes). `name` is the file, for errors.
pub fn decode_manifest(bytes: &[u8], name: &str) -> Result<Vec<ManifestEntry>> {
    // entries of one partition follow one another: they share its bytes
    let mut partition = BinaryRow::empty();
    Ok(meta_file::decode(bytes, name, &MANIFEST, |row| entry(row, &mut partition))?.rows)
}

/// A manifest list as an Avro file with codec zstandard.
pub fn encode_manifest_list(metas: &[ManifestFileMeta]) -> Result<Vec<u8>> {
    meta_file::encode(&MANIFEST_LIST, metas, manifest_file_values)
}

/// A manifest as an Avro file with codec zstandard.
pub fn encode_manifest(entries: &[ManifestEntry]) -> Result<Vec<u8>> {
    meta_file::encode(&MANIFEST, entries, entry_values)
}

/// Refuses a file of another format version.
pub(in crate::spec) fn check_version(row: &mut Row<'_, '_>, expected: i64) -> Result<()> {
    let version: i64 = row.number()?;
    if version == expected {
        return Ok(());
    }
    let error = Error::unsupported(format!("format version {version} of a metadata file is not known; {expected} is"))
        .with_code("ManifestVersion");
    Err(if version == ANCIENT_VERSION {
        error.with_hint("the table was written before release 0.4: recreate the table")
    } else {
        error.with_hint("read it with a newer release, or read a snapshot or tag that does not need it")
    })
}

/// ADD or DELETE.
pub(in crate::spec) fn file_kind(row: &mut Row<'_, '_>) -> Result<FileKind> {
    match row.number::<i64>()? {
        0 => Ok(FileKind::Add),
        1 => Ok(FileKind::Delete),
        other => Err(Error::corrupt(format!("entry kind {other} is neither ADD (0) nor DELETE (1)"))),
    }
}

/// The number of ADD or DELETE.
pub(in crate::spec) fn kind_number(kind: FileKind) -> i64 {
    match kind {
        FileKind::Add => 0,
        FileKind::Delete => 1,
    }
}

/// A row of its own: a slice would keep the whole block of the file in memory.
pub(in crate::spec) fn row_of(bytes: &[u8]) -> BinaryRow {
    let empty = BinaryRow::empty();
    if empty.0 == bytes { empty } else { BinaryRow(Bytes::copy_from_slice(bytes)) }
}

fn stats(mut row: Row<'_, '_>) -> Result<SimpleStats> {
    Ok(SimpleStats {
        min_values: row_of(row.bytes()?),
        max_values: row_of(row.bytes()?),
        null_counts: row.optional_nullable_longs()?.unwrap_or_default(),
    })
}

fn manifest_file(row: &mut Row<'_, '_>) -> Result<ManifestFileMeta> {
    check_version(row, VERSION)?;
    Ok(ManifestFileMeta {
        file_name: row.text()?,
        file_size: row.number()?,
        num_added_files: row.number()?,
        num_deleted_files: row.number()?,
        partition_stats: stats(row.record(&STATS)?)?,
        schema_id: SchemaId(row.number()?),
        min_bucket: row.optional_number()?,
        max_bucket: row.optional_number()?,
        min_level: row.optional_number()?,
        max_level: row.optional_number()?,
        min_row_id: row.optional_number()?,
        max_row_id: row.optional_number()?,
        total_buckets: row.optional_number()?,
    })
}

fn entry(row: &mut Row<'_, '_>, last_partition: &mut BinaryRow) -> Result<ManifestEntry> {
    check_version(row, VERSION)?;
    let entry = ManifestEntry {
        kind: file_kind(row)?,
        partition: {
            let bytes = row.bytes()?;
            if last_partition.0 != bytes {
                *last_partition = row_of(bytes);
            }
            last_partition.clone()
        },
        bucket: bucket(row)?,
        total_buckets: row.number()?,
        file: data_file(row.record(&DATA_FILE)?)?,
    };
    check_bucket(&entry)?;
    Ok(entry)
}

/// Refuses a file in a bucket that its own bucket count does not have: a filter on the key would look past it. Who
/// removes a file may have written down the bucket count of that day.
fn check_bucket(entry: &ManifestEntry) -> Result<()> {
    let (bucket, total) = (entry.bucket.0, entry.total_buckets);
    if entry.kind == FileKind::Delete || total <= 0 || bucket < total {
        return Ok(());
    }
    let count = if total == 1 { "1 bucket".to_string() } else { format!("{total} buckets") };
    Err(Error::corrupt(format!("a data file is in bucket {bucket} of {count}"))
        .with_context("data file", &entry.file.file_name))
}

fn data_file(mut row: Row<'_, '_>) -> Result<DataFileMeta> {
    Ok(DataFileMeta {
        file_name: row.text()?,
        file_size: row.number()?,
        row_count: row_count(&mut row)?,
        min_key: row_of(row.bytes()?),
        max_key: row_of(row.bytes()?),
        key_stats: stats(row.record(&STATS)?)?,
        value_stats: stats(row.record(&STATS)?)?,
        min_sequence_number: row.number()?,
        max_sequence_number: row.number()?,
        schema_id: SchemaId(row.number()?),
        level: level(&mut row)?,
        extra_files: row.texts()?,
        creation_time_millis: row.optional_number()?,
        delete_row_count: row.optional_number()?,
        embedded_index: row.optional_bytes()?.map(Bytes::copy_from_slice),
        file_source: match row.optional_number::<i64>()? {
            None => None,
            Some(0) => Some(FileSource::Append),
            Some(1) => Some(FileSource::Compact),
            Some(other) => {
                return Err(Error::corrupt(format!("file source {other} is neither APPEND (0) nor COMPACT (1)")));
            }
        },
        value_stats_cols: row.optional_texts()?,
        external_path: row.optional_text()?,
        first_row_id: row.optional_number()?,
        write_cols: row.optional_texts()?,
        write_cols_sequences: row.optional_numbers()?,
    })
}

/// A bucket of data files; -2 is the one that waits for its compaction.
fn bucket(row: &mut Row<'_, '_>) -> Result<Bucket> {
    let bucket = row.number()?;
    if bucket >= 0 || bucket == Bucket::POSTPONE.0 {
        return Ok(Bucket(bucket));
    }
    Err(Error::corrupt(format!("a data file is in bucket {bucket}")))
}

fn level(row: &mut Row<'_, '_>) -> Result<i32> {
    let level = row.number()?;
    if level < 0 { Err(Error::corrupt(format!("a data file is on level {level}"))) } else { Ok(level) }
}

fn row_count(row: &mut Row<'_, '_>) -> Result<i64> {
    let count = row.number()?;
    if count < 0 { Err(Error::corrupt(format!("a data file has {count} rows"))) } else { Ok(count) }
}

fn stats_value(stats: &SimpleStats) -> Value<'_> {
    let counts = stats.null_counts.iter().map(|count| Value::optional(*count)).collect();
    Value::Record(vec![Value::Bytes(&stats.min_values.0), Value::Bytes(&stats.max_values.0), Value::List(counts)])
}

/// A size as the format has it: signed.
fn size(bytes: u64) -> Value<'static> {
    Value::Long(i64::try_from(bytes).unwrap_or(i64::MAX))
}

fn manifest_file_values(meta: &ManifestFileMeta) -> Vec<Value<'_>> {
    vec![
        Value::Long(VERSION),
        Value::Bytes(meta.file_name.as_bytes()),
        size(meta.file_size),
        Value::Long(meta.num_added_files),
        Value::Long(meta.num_deleted_files),
        stats_value(&meta.partition_stats),
        Value::Long(meta.schema_id.0),
        Value::optional(meta.min_bucket),
        Value::optional(meta.max_bucket),
        Value::optional(meta.min_level),
        Value::optional(meta.max_level),
        Value::optional(meta.min_row_id),
        Value::optional(meta.max_row_id),
        Value::optional(meta.total_buckets),
    ]
}

fn entry_values(entry: &ManifestEntry) -> Vec<Value<'_>> {
    vec![
        Value::Long(VERSION),
        Value::Long(kind_number(entry.kind)),
        Value::Bytes(&entry.partition.0),
        Value::Long(entry.bucket.0.into()),
        Value::Long(entry.total_buckets.into()),
        data_file_value(&entry.file),
    ]
}

fn data_file_value(file: &DataFileMeta) -> Value<'_> {
    Value::Record(vec![
        Value::Bytes(file.file_name.as_bytes()),
        size(file.file_size),
        Value::Long(file.row_count),
        Value::Bytes(&file.min_key.0),
        Value::Bytes(&file.max_key.0),
        stats_value(&file.key_stats),
        stats_value(&file.value_stats),
        Value::Long(file.min_sequence_number),
        Value::Long(file.max_sequence_number),
        Value::Long(file.schema_id.0),
        Value::Long(file.level.into()),
        Value::texts(&file.extra_files),
        Value::optional(file.creation_time_millis),
        Value::optional(file.delete_row_count),
        Value::optional_bytes(file.embedded_index.as_deref()),
        Value::optional(file.file_source.map(|source| match source {
            FileSource::Append => 0i64,
            FileSource::Compact => 1,
        })),
        file.value_stats_cols.as_deref().map_or(Value::Null, Value::texts),
        Value::optional_text(file.external_path.as_deref()),
        Value::optional(file.first_row_id),
        file.write_cols.as_deref().map_or(Value::Null, Value::texts),
        file.write_cols_sequences
            .as_ref()
            .map_or(Value::Null, |numbers| Value::List(numbers.iter().map(|number| Value::Long(*number)).collect())),
    ])
}

#[cfg(test)]
mod tests;
