//! The live rows of a section whose keys do not fit into memory: out of a merge of its runs, a batch of each at a time.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{Int64Type, SchemaRef};
use arrow::record_batch::RecordBatch;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::context::{ReadContext, SectionHandle};
use super::data_file::{Output, open_columns, snapshot_sequence};
use super::deletion::{live_rows, mask_rows};
use super::held::Held;
use super::pace::Pace;
use super::section::RowStream;
use crate::error::{Error, ErrorKind, Result};
use crate::merge::{MergeOptions, MergeRules, RunInput, SectionSelection, runs_of_one_level, select_streamed};
use crate::scan::PlannedFile;

/// The live rows of a section of class select, in the memory of one batch a run and one bit a row.
pub async fn streamed(
    context: &Arc<ReadContext>,
    handle: &Arc<SectionHandle>,
    rules: &Arc<MergeRules>,
) -> Result<SectionSelection> {
    let mut files = Vec::with_capacity(handle.section.runs.len());
    for run in &handle.section.runs {
        let mut rows = Vec::with_capacity(run.len());
        for file in run {
            rows.push(mask_rows(context, file).await?);
        }
        files.push(rows);
    }
    let rows = files.iter().flatten().try_fold(0usize, |sum, rows| sum.checked_add(*rows));
    // so that the position of every row is a number
    let rows = rows.filter(|rows| i64::try_from(*rows).is_ok()).ok_or_else(|| {
        Error::corrupt("the files of a section have more rows than can be counted")
            .with_context("bucket", handle.bucket)
            .or_restore()
    })?;
    let mut held = Held::new(&context.options.budget);
    held.grow(rows.div_ceil(8))?;
    let mut pace = Pace { batch_size: context.options.batch_size, ahead: false };
    loop {
        let options = MergeOptions::new(pace.batch_size, Arc::clone(&context.options.budget));
        let runs = inputs(context, handle, rules, &files, pace.batch_size)?;
        match select_streamed(runs, rules, &files, options).await {
            Err(error) if error.kind() == ErrorKind::Exhausted => match pace.slower() {
                Some(slower) => pace = slower,
                None => return Err(error),
            },
            other => return other,
        }
    }
}

/// The runs, with the position of each row in the section.
fn inputs(
    context: &Arc<ReadContext>,
    handle: &SectionHandle,
    rules: &Arc<MergeRules>,
    files: &[Vec<usize>],
    batch_size: usize,
) -> Result<Vec<RunInput>> {
    let mut outputs =
        rules.required_columns(&[])?.iter().map(|index| Output::field(context, *index)).collect::<Result<Vec<_>>>()?;
    outputs.extend([Output::RowPosition, Output::SequenceNumber, Output::ValueKind]);
    let mut first = 0;
    let mut inputs = Vec::with_capacity(files.len());
    for (run, rows) in handle.section.runs.iter().zip(files) {
        let mut placed = Vec::with_capacity(run.len());
        for (file, rows) in run.iter().zip(rows) {
            placed.push((Arc::clone(file), first));
            first += rows;
        }
        let levels = if rules.needs_lookup() {
            runs_of_one_level(placed, |(file, _)| file.entry.file.level)
        } else {
            vec![(run.first().map_or(0, |file| file.entry.file.level), placed)]
        };
        for (level, placed) in levels {
            let names: Vec<&str> = placed.iter().map(|(file, _)| file.entry.file.file_name.as_str()).collect();
            let name = names.join(", ");
            let (context, rules, outputs) = (Arc::clone(context), Arc::clone(rules), outputs.clone());
            let keys = stream::iter(placed)
                .flat_map(move |(file, first)| keys(&context, &rules, file, first, outputs.clone(), batch_size));
            inputs.push(RunInput::new(level, keys.boxed()).named(name));
        }
    }
    Ok(inputs)
}

/// The keys of a file whose first row is row `first` of the section.
fn keys(
    context: &Arc<ReadContext>,
    rules: &Arc<MergeRules>,
    file: Arc<PlannedFile>,
    first: usize,
    outputs: Vec<Output>,
    batch_size: usize,
) -> RowStream {
    let (context, rules) = (Arc::clone(context), Arc::clone(rules));
    stream::once(async move {
        context.counters.add_key_files(1);
        let sequence = if rules.snapshot_ordering() { snapshot_sequence(&file)? } else { None };
        let first = i64::try_from(first).map_err(|_| Error::internal("a row number above i64"))?;
        let live = live_rows(&context, &file).await?;
        let position = outputs.len().saturating_sub(3);
        let batches = open_columns(&context, &file, outputs, live, batch_size).await?;
        Ok::<RowStream, Error>(batches.map(move |batch| placed(&batch?, position, first, sequence)).boxed())
    })
    .try_flatten()
    .boxed()
}

/// Turns positions in a file into positions in the section, and fixes the sequence number where it is the file's.
fn placed(batch: &RecordBatch, position: usize, first: i64, sequence: Option<i64>) -> Result<RecordBatch> {
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    let (Some(positions), Some(numbers)) = (columns.get(position), columns.get(position + 1)) else {
        return Err(Error::internal("a data file gave fewer columns than asked for"));
    };
    let positions = positions.as_primitive_opt::<Int64Type>().ok_or_else(|| Error::internal("positions are BIGINT"))?;
    let positions: ArrayRef = Arc::new(positions.unary::<_, Int64Type>(|at| at + first));
    let numbers = match sequence {
        Some(number) => Arc::new(Int64Array::from_value(number, batch.num_rows())),
        None => Arc::clone(numbers),
    };
    columns.splice(position..position + 2, [positions, numbers]);
    let schema: SchemaRef = batch.schema();
    Ok(RecordBatch::try_new(schema, columns)?)
}
