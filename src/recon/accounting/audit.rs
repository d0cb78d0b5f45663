//! What the files of a state hold against what its metadata says of them: every row is read, hidden and deleted ones too.
//!
//! | checked | but for |
//! |---|---|
//! | rows of the file | – |
//! | rows that take back | a count of none, which some writers put whatever the file holds |
//! | lowest and highest sequence number | tables whose rows take that of their snapshot |
//! | keys rising, each once; the first and the last those of the entry | files sorted otherwise (`pk-clustering-override`); the order of bytes, floats and NULL, in which writers do not agree |
//! | bucket of the key, of one row in [`SAMPLE`] | tables without a fixed number of buckets, functions that are not known |

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Int8Type, Int64Type};
use datafusion::common::ScalarValue;
use futures::TryStreamExt;

use super::{AccountingOptions, partition_text};
use crate::error::{Error, ErrorKind, Result};
use crate::query::QueryEnv;
use crate::read::{ReadColumn, ReadContext, ReadOptions, SectionHandle, section};
use crate::scan::{
    ChangeRange, PlannedFile, ScanKind, ScanRequest, Section, Unit, is_above, live_files, scalar_to_datum,
};
use crate::snapshot::Pin;
use crate::spec::bucket::bucket_of;
use crate::spec::schema::BucketMode;
use crate::spec::{DataType, Datum, RowKind, SnapshotId};

/// Of so many rows of a file one is asked for its bucket.
pub const SAMPLE: usize = 64;

/// Reads every file of a pin, and tells where it is not what its entry says, in words; empty when all is.
///
/// Cost: the keys, sequence numbers and kinds of all live files, those of hidden levels with them.
///
/// # Errors
/// A table without primary key; storage that does not answer, memory refused. A file that cannot be read is told.
pub async fn audit(pin: &Arc<Pin>, env: &Arc<QueryEnv>, options: &AccountingOptions) -> Result<Vec<String>> {
    if !pin.schema.is_primary_key_table() {
        return Err(Error::unsupported("files of a table without primary key have no keys, kinds and levels to check")
            .with_code("NoPrimaryKey")
            .with_context("table", pin.table.name())
            .with_hint("mode => 'exact' counts its rows"));
    }
    let entries = live_files(pin, &env.scan).await?;
    // as written: of all levels and buckets, no vector applied
    let none = ChangeRange { after: SnapshotId(0), upto: SnapshotId(0) };
    let kind = ScanKind::Delta(none);
    let request = ScanRequest { kind, of: Some(entries.into()), ..ScanRequest::default() };
    let plan = crate::scan::plan(pin, &request, &env.scan).await?;
    let reading = Reading::new(pin, env, options, kind)?;
    let mut told = Vec::new();
    for unit in &plan.units {
        for file in unit.sections.iter().flat_map(Section::files) {
            let found = match reading.file(unit, file).await {
                Ok(found) => found,
                Err(error) if is_of_the_file(&error) => vec![error.message().to_string()],
                Err(error) => return Err(error),
            };
            if found.is_empty() {
                continue;
            }
            let partition = partition_text(pin, &unit.partition, &options.zone)?;
            let place = if partition.is_empty() { String::new() } else { format!("{partition}, ") };
            let name = &file.entry.file.file_name;
            told.extend(found.into_iter().map(|what| format!("{place}bucket {}: {name} {what}", unit.bucket)));
        }
    }
    Ok(told)
}

fn is_of_the_file(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound | ErrorKind::Unsupported)
}

struct Reading {
    context: Arc<ReadContext>,
    /// Key columns, by their places in a batch.
    keys: Vec<(usize, DataType)>,
    /// Columns that choose the bucket; None where it cannot be told.
    bucket: Option<Vec<(usize, DataType)>>,
    /// Whether writers agree on the order of the keys.
    ordered: bool,
}

/// What was read of a file so far.
#[derive(Default)]
struct Seen {
    rows: u64,
    retracts: u64,
    sequences: Option<(i64, i64)>,
    first: Option<Vec<Datum>>,
    last: Option<Vec<Datum>>,
    /// The first row that is not above the one before it.
    disorder: Option<u64>,
    /// A row that belongs in another bucket, and which.
    misplaced: Option<(u64, i32)>,
}

impl Reading {
    fn new(pin: &Arc<Pin>, env: &Arc<QueryEnv>, options: &AccountingOptions, kind: ScanKind) -> Result<Self> {
        let mut columns: Vec<usize> = pin.schema.trimmed_primary_key()?;
        let keys = columns.len();
        let fixed = matches!(pin.schema.bucket_mode(&pin.options), BucketMode::Fixed(_));
        let hashed = if fixed { Some(pin.schema.bucket_key_indices(&pin.options)?) } else { None };
        for column in hashed.iter().flatten() {
            if !columns.contains(column) {
                columns.push(*column);
            }
        }
        let typed = |place: usize| -> Result<(usize, DataType)> {
            let field = columns.get(place).and_then(|index| pin.schema.fields.get(*index));
            let field = field.ok_or_else(|| Error::internal("a key column is not in the schema"))?;
            Ok((place, field.data_type().clone()))
        };
        let keys: Vec<(usize, DataType)> = (0..keys).map(typed).collect::<Result<_>>()?;
        let place = |column: &usize| typed(columns.iter().position(|own| own == column).unwrap_or(usize::MAX));
        let bucket = hashed.map(|hashed| hashed.iter().map(place).collect::<Result<Vec<_>>>()).transpose()?;
        let is_agreed = |of: &DataType| {
            !matches!(of, DataType::Float | DataType::Double | DataType::Binary(_) | DataType::Varbinary(_))
        };
        let ordered = !pin.options.pk_clustering_override && keys.iter().all(|(_, of)| is_agreed(of));
        let mut read: Vec<ReadColumn> = columns.iter().map(|index| ReadColumn::Field(*index)).collect();
        read.extend([ReadColumn::SequenceNumber, ReadColumn::ValueKind]);
        let budget = Arc::clone(&options.budget);
        let reading =
            ReadOptions { batch_size: 8192, parallelism: 1, zone: options.zone, budget, keep_selections: false };
        let context = ReadContext::try_new(Arc::clone(pin), kind, true, read, reading, Arc::clone(&env.read))?;
        Ok(Self { context, keys, bucket, ordered })
    }

    /// What a file has otherwise than its entry says.
    async fn file(&self, unit: &Unit, file: &Arc<PlannedFile>) -> Result<Vec<String>> {
        let class = unit.sections.first().map(|section| section.class);
        let class = class.ok_or_else(|| Error::internal("a unit without sections"))?;
        let alone = Section { class, runs: vec![vec![Arc::clone(file)]] };
        let mut batches = section(&self.context, &SectionHandle::new(unit, alone));
        let mut seen = Seen::default();
        while let Some(batch) = batches.try_next().await? {
            self.batch(unit, file, &batch, &mut seen)?;
        }
        Ok(self.told(file, &seen))
    }

    fn batch(&self, unit: &Unit, file: &PlannedFile, batch: &RecordBatch, seen: &mut Seen) -> Result<()> {
        let width = batch.num_columns();
        let column = |back: usize| width.checked_sub(back).and_then(|at| batch.columns().get(at));
        let wrong = || Error::internal("a data file gave other columns than asked for");
        let sequences = column(2).and_then(|column| column.as_primitive_opt::<Int64Type>()).ok_or_else(wrong)?;
        let kinds = column(1).and_then(|column| column.as_primitive_opt::<Int8Type>()).ok_or_else(wrong)?;
        let columns = batch.columns();
        for row in 0..batch.num_rows() {
            let kind = RowKind::from_byte(kinds.value(row));
            let kind = kind.ok_or_else(|| Error::corrupt(format!("{} is no row kind", kinds.value(row))))?;
            seen.retracts += u64::from(kind.is_retract());
            let sequence = sequences.value(row);
            let range = seen.sequences.get_or_insert((sequence, sequence));
            *range = (range.0.min(sequence), range.1.max(sequence));
            let at = seen.rows;
            seen.rows += 1;
            if self.ordered {
                let key = datums(columns, &self.keys, row)?;
                if seen.last.as_ref().is_some_and(|last| !is_above(&key, last)) && seen.disorder.is_none() {
                    seen.disorder = Some(at);
                }
                seen.first.get_or_insert_with(|| key.clone());
                seen.last = Some(key);
            }
            if let Some(bucket) =
                self.bucket.as_ref().filter(|_| at.is_multiple_of(SAMPLE as u64) && seen.misplaced.is_none())
            {
                let values = datums(columns, bucket, row)?;
                let types: Vec<&DataType> = bucket.iter().map(|(_, of)| of).collect();
                let function = self.context.pin.options.bucket_function;
                let own = bucket_of(function, &values, &types, file.entry.total_buckets)?;
                seen.misplaced = own.filter(|own| unit.bucket.0 >= 0 && *own != unit.bucket.0).map(|own| (at, own));
            }
        }
        Ok(())
    }

    fn told(&self, file: &PlannedFile, seen: &Seen) -> Vec<String> {
        let (meta, options) = (&file.entry.file, &self.context.pin.options);
        let mut told = Vec::new();
        if u64::try_from(meta.row_count).ok() != Some(seen.rows) {
            told.push(format!("has {} rows, its entry says {}", seen.rows, meta.row_count));
        }
        let counted = meta.delete_row_count.filter(|count| *count != 0 || file.is_clean(options));
        if let Some(count) = counted.filter(|count| u64::try_from(*count).ok() != Some(seen.retracts)) {
            told.push(format!("has {} rows that take back, its entry says {count}", seen.retracts));
        }
        let (low, high) = (meta.min_sequence_number, meta.max_sequence_number);
        if let Some((least, most)) = seen.sequences.filter(|range| *range != (low, high))
            && !options.sequence_snapshot_ordering
        {
            told.push(format!("has sequence numbers {least}..{most}, its entry says {low}..{high}"));
        }
        if let Some(at) = seen.disorder {
            told.push(format!("is not sorted by key, or has one twice: row {at} is not above the row before it"));
        }
        for (which, key, own) in [("first", &seen.first, &file.min_key), ("last", &seen.last, &file.max_key)] {
            let differs = |key: &Vec<Datum>| is_above(key, own) || is_above(own, key);
            if let Some(key) = key.as_ref().filter(|key| differs(key)) {
                told.push(format!("has the {which} key {key:?}, its entry says {own:?}"));
            }
        }
        if let Some((at, bucket)) = seen.misplaced {
            told.push(format!("has a row of bucket {bucket}: row {at}"));
        }
        told
    }
}

/// Values of a row.
fn datums(columns: &[ArrayRef], of: &[(usize, DataType)], row: usize) -> Result<Vec<Datum>> {
    let value = |(place, data_type): &(usize, DataType)| {
        let column = columns.get(*place).ok_or_else(|| Error::internal("a key column was not read"))?;
        let value = ScalarValue::try_from_array(column, row)?;
        scalar_to_datum(&value, data_type)?.ok_or_else(|| Error::internal("a key is no value of its type"))
    };
    of.iter().map(value).collect()
}

#[cfg(test)]
mod tests;
