//! A table of many manifests and files that are named in metadata only: for planning, which opens no data file.

use std::path::Path;

use super::{TableBuilder, TableSpec};
use crate::error::Result;
use crate::spec::binary_row::RowForm;
use crate::spec::{
    BinaryRow, Bucket, CommitKind, DataFileMeta, DataType, Datum, FileKind, FileSource, ManifestEntry, SchemaId,
    SimpleStats,
};

/// Buckets of each partition of such a table.
pub const WIDE_BUCKETS: i32 = 10;

/// Rows that each of its files claims to hold.
pub const WIDE_ROWS: i64 = 1_000;

fn row(values: &[(&Datum, &DataType)], form: RowForm) -> Result<BinaryRow> {
    BinaryRow::encode(values, form)
}

/// File `n` of a day: keys `n * 1 000` to `n * 1 000 + 999`.
fn entry(day: i64, bucket: i32, n: i64) -> Result<ManifestEntry> {
    let text = DataType::Varchar(u32::MAX >> 1);
    let dt = Datum::String(format!("2024-{day:04}"));
    let (first, last) = (n * WIDE_ROWS, n * WIDE_ROWS + WIDE_ROWS - 1);
    let (low, high) = (Datum::BigInt(first), Datum::BigInt(last));
    let bound = |key: &Datum| {
        row(&[(key, &DataType::BigInt), (&Datum::BigInt(7), &DataType::BigInt), (&dt, &text)], RowForm::Serialized)
    };
    let key = |key: &Datum| row(&[(key, &DataType::BigInt)], RowForm::Projected);
    Ok(ManifestEntry {
        kind: FileKind::Add,
        partition: row(&[(&dt, &text)], RowForm::Projected)?,
        bucket: Bucket(bucket),
        total_buckets: WIDE_BUCKETS,
        file: DataFileMeta {
            file_name: format!("data-{day:04}-{bucket:02}-{n}.parquet"),
            file_size: 8 << 20,
            row_count: WIDE_ROWS,
            min_key: key(&low)?,
            max_key: key(&high)?,
            key_stats: SimpleStats { min_values: key(&low)?, max_values: key(&high)?, null_counts: vec![Some(0)] },
            value_stats: SimpleStats {
                min_values: bound(&low)?,
                max_values: bound(&high)?,
                null_counts: vec![Some(0), Some(0), Some(0)],
            },
            min_sequence_number: first,
            max_sequence_number: last,
            schema_id: SchemaId(0),
            level: 5,
            extra_files: vec![],
            creation_time_millis: Some(0),
            delete_row_count: Some(0),
            embedded_index: None,
            file_source: Some(FileSource::Compact),
            value_stats_cols: None,
            external_path: None,
            first_row_id: None,
            write_cols: None,
            write_cols_sequences: None,
        },
    })
}

/// Makes the table `(id BIGINT, v BIGINT, dt STRING)`, key `dt, id`, of one snapshot: a manifest for each day, and in it
/// `files` files of one level with keys apart.
///
/// # Errors
/// A folder that is there already, or cannot be written.
pub fn wide_table(warehouse: &Path, database: &str, table: &str, manifests: i64, files: i64) -> Result<TableBuilder> {
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "BIGINT"), ("dt", "STRING NOT NULL")])
        .partitioned_by(&["dt"])
        .primary_key(&["dt", "id"])
        .option("bucket", &WIDE_BUCKETS.to_string());
    let mut table = TableBuilder::create(warehouse, database, table, &spec)?;
    let mut commit = table.commit().kind(CommitKind::Compact).entries_per_manifest(files as usize);
    for day in 0..manifests {
        for n in 0..files {
            commit = commit.entry(entry(day, (n % i64::from(WIDE_BUCKETS)) as i32, n)?);
        }
    }
    commit.publish()?;
    Ok(table)
}
