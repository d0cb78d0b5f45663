//! `t$partitions`: live files summed by partition, whatever a read sees of them. Counts are physical rows.
//!
//! `created_at`, `created_by`, `updated_by` and `options` are NULL and `done` is false: a catalog that manages partitions
//! keeps them, a warehouse of files has no place for them. `deleted_record_count` is what deletion vectors hide, NULL
//! when one of them does not tell its size.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use super::listed::{self, Listed};
use crate::error::{Error, Result};
use crate::recon::accounting::PartitionValues;
use crate::scan::index_files;
use crate::spec::BinaryRow;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("partition", Kind::Text, false),
        ("record_count", Kind::Long, true),
        ("file_size_in_bytes", Kind::Long, true),
        ("file_count", Kind::Long, true),
        ("last_update_time", Kind::Time, false),
        ("created_at", Kind::Time, false),
        ("created_by", Kind::Text, false),
        ("updated_by", Kind::Text, false),
        ("options", Kind::Text, false),
        ("total_buckets", Kind::Int, true),
        ("done", Kind::Bool, true),
        ("deleted_record_count", Kind::Long, false),
    ])
}

/// What the files of one partition add up to.
#[derive(Debug, Clone)]
pub(super) struct Sum {
    /// A row of its partition.
    pub(super) partition: BinaryRow,
    pub(super) records: i64,
    pub(super) bytes: u64,
    pub(super) files: i64,
    /// Newest file, wall clock of its writer.
    pub(super) last: Option<i64>,
    pub(super) total_buckets: i32,
    /// Rows that deletion vectors hide; None when a vector does not tell.
    pub(super) deleted: Option<i64>,
}

/// The partitions of a pin, and those that the branch beside it gives, in the order of their shown names; two of one name
/// are two.
pub(super) async fn sums(source: &Source) -> Result<Vec<(String, Sum)>> {
    let mut sums: BTreeMap<(String, PartitionValues), Sum> = BTreeMap::new();
    for listed in listed::live(source).await? {
        add(&mut sums, &listed).await?;
    }
    Ok(sums.into_iter().map(|((shown, _), sum)| (shown, sum)).collect())
}

async fn add(sums: &mut BTreeMap<(String, PartitionValues), Sum>, listed: &Listed) -> Result<()> {
    let (pin, texts) = (listed.source.pin()?, &listed.texts);
    // rows that deletion vectors hide, by data file
    let mut vectors: BTreeMap<String, Option<i64>> = BTreeMap::new();
    let indexes = index_files(pin, &listed.source.env.scan).await?;
    for range in indexes.iter().flat_map(|file| file.deletion_vectors.iter().flatten()) {
        vectors.insert(range.data_file_name.clone(), range.cardinality);
    }
    for entry in &listed.files {
        let key = (texts.partition(&entry.partition)?, texts.partition_key(&entry.partition)?);
        let sum = sums.entry(key).or_insert_with(|| Sum {
            partition: entry.partition.clone(),
            records: 0,
            bytes: 0,
            files: 0,
            last: None,
            total_buckets: entry.total_buckets,
            deleted: Some(0),
        });
        sum.records += entry.file.row_count;
        sum.bytes += entry.file.file_size;
        sum.files += 1;
        sum.last = sum.last.max(entry.file.creation_time_millis);
        sum.total_buckets = sum.total_buckets.max(entry.total_buckets);
        let deleted = vectors.get(&entry.file.file_name).copied().unwrap_or(Some(0));
        sum.deleted = match sum.deleted.zip(deleted) {
            None => None,
            Some((_, more)) if !(0..=entry.file.row_count).contains(&more) => {
                return Err(Error::corrupt(format!(
                    "a deletion vector of {more} rows belongs to a file of {}",
                    entry.file.row_count
                ))
                .with_code("CorruptDeletionVector")
                .with_context("data file", &entry.file.file_name)
                .with_context("table", pin.table.name())
                .or_restore());
            }
            // no more than the rows, which have a sum
            Some((sum, more)) => Some(sum + more),
        };
    }
    Ok(())
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let sums = sums(&source).await?;
    let rows: Vec<Vec<Cell>> = sums
        .into_iter()
        .map(|(partition, sum)| {
            vec![
                Cell::text(partition),
                Cell::Long(sum.records),
                Cell::count(sum.bytes),
                Cell::Long(sum.files),
                sum.last.map_or(Cell::Null, Cell::Time),
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Null,
                Cell::Int(sum.total_buckets),
                Cell::Bool(false),
                Cell::opt_long(sum.deleted),
            ]
        })
        .collect();
    cells::batch(&schema(), &rows)
}
