//! The rows of a key in one file, as they lie there: nothing is merged, masked or dropped.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, RecordBatch, Scalar};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{and, concat_batches};
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;

use super::context::{ReadColumn, ReadContext, result_schema};
use super::data_file::{FileRead, Output, open_columns, read_file};
use crate::error::{Error, Result};
use crate::merge::canonical_keys;
use crate::scan::PlannedFile;

/// Values of key columns, by their place in the schema.
#[derive(Debug, Clone)]
pub struct KeyMatch(Vec<(usize, ArrayRef)>);

impl KeyMatch {
    /// Each value as an array of one.
    pub fn new(values: Vec<(usize, ArrayRef)>) -> Self {
        Self(values.into_iter().map(|(column, value)| (column, canonical_keys(&value))).collect())
    }

    /// Which rows have these values in the first columns of a batch; keys are told apart as the merge does.
    fn rows(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let mut all = BooleanArray::from(vec![true; batch.num_rows()]);
        for ((_, value), column) in self.0.iter().zip(batch.columns()) {
            all = and(&all, &not_distinct(&canonical_keys(column), &Scalar::new(value))?)?;
        }
        Ok(all)
    }
}

/// What a file holds of a key.
#[derive(Debug, Clone)]
pub struct FoundRows {
    /// Columns of the context.
    pub rows: RecordBatch,
    /// Their physical positions.
    pub positions: Vec<u64>,
}

/// The rows of a key in one file; None where it has none. `snapshot_ordering` as in a merge.
///
/// Cost: the key columns of the file; of a file that has the key, the pages of its rows besides.
///
/// # Errors
/// A file that is gone or damaged.
pub async fn versions(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    key: &KeyMatch,
    snapshot_ordering: bool,
) -> Result<Option<FoundRows>> {
    context.counters.add_key_files(1);
    let mut outputs: Vec<Output> =
        key.0.iter().map(|(index, _)| Output::field(context, *index)).collect::<Result<_>>()?;
    outputs.push(Output::RowPosition);
    let mut batches = open_columns(context, file, outputs, None, context.options.batch_size).await?;
    let (mut positions, mut file_rows) = (Vec::new(), 0u64);
    while let Some(batch) = batches.try_next().await? {
        file_rows += batch.num_rows() as u64;
        let found = key.rows(&batch)?;
        if found.true_count() == 0 {
            continue;
        }
        let at = batch.columns().last().and_then(|column| column.as_primitive_opt::<Int64Type>());
        let at = at.ok_or_else(|| Error::internal("a data file gave no positions"))?;
        let hits = found.values().set_indices().filter(|row| found.is_valid(*row));
        positions.extend(hits.filter_map(|row| at.values().get(row)).filter_map(|at| u64::try_from(*at).ok()));
    }
    drop(batches);
    if positions.is_empty() {
        return Ok(None);
    }
    let mut live = BooleanBufferBuilder::new(0);
    live.append_n(usize::try_from(file_rows).unwrap_or(usize::MAX), false);
    for position in &positions {
        live.set_bit(usize::try_from(*position).unwrap_or(usize::MAX), true);
    }
    let mut entry = file.entry.as_ref().clone();
    entry.file.row_count = i64::try_from(file_rows).unwrap_or(i64::MAX);
    let file = Arc::new(PlannedFile { entry: Arc::new(entry), ..file.as_ref().clone() });
    let columns: Vec<ReadColumn> = context.columns.to_vec();
    let schema = result_schema(&context.pin, &columns)?;
    let read = FileRead {
        columns: columns.into(),
        schema: Arc::clone(&schema),
        live: Some(live.finish()),
        drop_retracts: false,
        snapshot_ordering,
        batch_size: context.options.batch_size,
    };
    let rows: Vec<RecordBatch> = read_file(context, &file, read).try_collect().await?;
    let rows = concat_batches(&schema, &rows)?;
    if rows.num_rows() != positions.len() {
        return Err(Error::corrupt(format!("a file gave {} rows for {} positions", rows.num_rows(), positions.len()))
            .with_context("file", &file.location));
    }
    Ok(Some(FoundRows { rows, positions }))
}
