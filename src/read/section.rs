//! A section to rows, by its class.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanBufferBuilder, Int8Array};
use arrow::buffer::BooleanBuffer;
use arrow::record_batch::RecordBatch;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::context::{ReadColumn, ReadContext, SectionHandle, result_schema};
use super::data_file::{FileRead, adding, batch_of, read_file};
use super::deletion::{live_rows, made_rows, mask_rows};
use super::merged::merged;
use super::selection::selection;
use crate::error::{Error, Result};
use crate::scan::{PlannedFile, ScanKind, Section, SectionClass, datum_to_scalar, partition_text};
use crate::snapshot::Pin;
use crate::spec::arrow_types::arrow_type;

/// Batches of the columns asked for.
pub type RowStream = BoxStream<'static, Result<RecordBatch>>;

/// All rows of a section, in no promised order. Nothing is opened before the first poll.
pub fn section(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>) -> RowStream {
    if is_merged(&handle.section, context.keep_deletes) {
        return merged(context, handle);
    }
    let places: Vec<(usize, usize)> = handle
        .section
        .runs
        .iter()
        .enumerate()
        .flat_map(|(run, files)| (0..files.len()).map(move |file| (run, file)))
        .collect();
    let (context, handle) = (Arc::clone(context), Arc::clone(handle));
    stream::iter(places).flat_map(move |(run, at)| file(&context, &handle, run, at)).boxed()
}

/// Whether the rows of a section come out of a merge of its runs, so that its files cannot be read one by one.
pub fn is_merged(section: &Section, keep_deletes: bool) -> bool {
    match section.class {
        SectionClass::Combine => true,
        // a selection knows no retracts
        SectionClass::Select => keep_deletes,
        SectionClass::Raw | SectionClass::KindOnly => false,
    }
}

/// The rows of one file of a section that is not merged: its live rows. Nothing is opened before the first poll.
pub fn file(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>, run: usize, at: usize) -> RowStream {
    let (context, handle) = (Arc::clone(context), Arc::clone(handle));
    stream::once(async move {
        let planned = handle.file(run, at)?;
        let live = live_of(&context, &handle, planned, run, at).await?;
        let class = handle.section.class;
        let drop_retracts = must_drop_retracts(&context, class);
        if !drop_retracts && is_constant(&context.pin, &context.columns) {
            let rows = match live {
                Some(live) => live.count_set_bits(),
                None => made_rows(&context, planned).await?,
            };
            return constant_rows(&context, planned, rows);
        }
        let read = FileRead {
            columns: Arc::clone(&context.columns),
            schema: Arc::clone(context.schema()),
            live: with_index_rows(&context, planned, live).await?,
            drop_retracts,
            snapshot_ordering: false,
            batch_size: context.options.batch_size,
        };
        Ok::<RowStream, Error>(read_file(&context, planned, read))
    })
    .try_flatten()
    .boxed()
}

/// The rows of one file of a section that are rows of the result, by physical position; None: all. For readers that
/// open the file themselves.
pub async fn live_mask(
    context: &Arc<ReadContext>,
    handle: &Arc<SectionHandle>,
    run: usize,
    at: usize,
) -> Result<Option<BooleanBuffer>> {
    let planned = handle.file(run, at)?;
    let live = live_of(context, handle, planned, run, at).await?;
    let live = if must_drop_retracts(context, handle.section.class) {
        Some(added_rows(context, planned, live).await?)
    } else {
        live
    };
    let live = with_index_rows(context, planned, live).await?;
    Ok(live.filter(|live| live.count_set_bits() < live.len()))
}

/// The rows among `live` whose kind adds.
async fn added_rows(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    live: Option<BooleanBuffer>,
) -> Result<BooleanBuffer> {
    let rows = mask_rows(context, file).await?;
    let read = FileRead {
        columns: Arc::new([ReadColumn::ValueKind]),
        schema: result_schema(&context.pin, &[ReadColumn::ValueKind])?,
        live: None,
        drop_retracts: false,
        snapshot_ordering: false,
        batch_size: context.options.batch_size,
    };
    let mut adds = BooleanBufferBuilder::new(rows);
    let mut batches = read_file(context, file, read);
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let column = batch.columns().first().ok_or_else(|| Error::internal("a data file gave no row kinds"))?;
        adds.append_buffer(&adding(column)?);
    }
    let adds = adds.finish();
    if adds.len() != rows {
        return Err(Error::corrupt(format!("the file holds {} rows, its manifest entry says {rows}", adds.len()))
            .with_context("file", &file.location));
    }
    Ok(match live {
        Some(live) => &live & &adds,
        None => adds,
    })
}

fn must_drop_retracts(context: &ReadContext, class: SectionClass) -> bool {
    drops_retracts(&context.pin, context.kind, context.keep_deletes, class)
}

fn drops_retracts(pin: &Pin, kind: ScanKind, keep_deletes: bool, class: SectionClass) -> bool {
    if keep_deletes || !pin.schema.is_primary_key_table() {
        return false;
    }
    match class {
        SectionClass::KindOnly => true,
        // files of a change read hold whatever was written
        SectionClass::Raw => kind.is_unmerged(),
        SectionClass::Select | SectionClass::Combine => false,
    }
}

/// Whether the rows of a section's files are known without opening one: every row stands for itself, and all `columns`
/// are told by the manifest entries.
pub fn is_told(pin: &Pin, kind: ScanKind, keep_deletes: bool, columns: &[ReadColumn], class: SectionClass) -> bool {
    !class.is_merge() && !drops_retracts(pin, kind, keep_deletes, class) && is_constant(pin, columns)
}

async fn live_of(
    context: &Arc<ReadContext>,
    handle: &Arc<SectionHandle>,
    file: &Arc<PlannedFile>,
    run: usize,
    at: usize,
) -> Result<Option<BooleanBuffer>> {
    if handle.section.class == SectionClass::Select {
        let selection = selection(context, handle).await?;
        let live = selection
            .files
            .get(run)
            .and_then(|files| files.get(at))
            .ok_or_else(|| Error::internal("the selection of a section has another shape than the section"))?;
        return Ok(Some(live.clone()));
    }
    live_rows(context, file).await
}

/// Leaves out rows that the file's index proves not to match; which rows are live is known by then.
async fn with_index_rows(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    live: Option<BooleanBuffer>,
) -> Result<Option<BooleanBuffer>> {
    let Some(wanted) = &file.index_rows else { return Ok(live) };
    let rows = mask_rows(context, file).await?;
    let wanted = BooleanBuffer::collect_bool(rows, |row| u32::try_from(row).is_ok_and(|row| wanted.contains(row)));
    Ok(Some(match live {
        Some(live) if live.len() == rows => &live & &wanted,
        Some(_) => return Err(Error::internal("the mask of a file has another length than the file")),
        None => wanted,
    }))
}

/// Whether all columns asked for are known without opening a file.
fn is_constant(pin: &Pin, columns: &[ReadColumn]) -> bool {
    let Ok(partition) = pin.schema.partition_indices() else { return false };
    columns.iter().all(|column| match column {
        ReadColumn::Field(index) => partition.contains(index),
        ReadColumn::ValueKind => !pin.schema.is_primary_key_table(),
        ReadColumn::SequenceNumber | ReadColumn::RowId => false,
    })
}

/// `rows` rows whose columns the manifest entry tells.
fn constant_rows(context: &Arc<ReadContext>, file: &PlannedFile, rows: usize) -> Result<RowStream> {
    let size = context.options.batch_size.max(1);
    let full = constant_batch(context, file, rows.min(size))?;
    let batches = rows.div_ceil(size);
    Ok(stream::iter((0..batches).map(move |batch| {
        let left = rows - batch * size;
        Ok(if left < full.num_rows() { full.slice(0, left) } else { full.clone() })
    }))
    .boxed())
}

fn constant_batch(context: &ReadContext, file: &PlannedFile, rows: usize) -> Result<RecordBatch> {
    let partition = context.pin.schema.partition_indices()?;
    let columns = context
        .columns
        .iter()
        .map(|column| match column {
            ReadColumn::Field(index) => {
                let value = partition
                    .iter()
                    .position(|known| known == index)
                    .and_then(|at| file.partition.get(at))
                    .ok_or_else(|| Error::internal("the column is no partition column"))?;
                let field = context
                    .pin
                    .schema
                    .fields
                    .get(*index)
                    .ok_or_else(|| Error::internal(format!("the schema has no column number {index}")))?;
                let scalar = datum_to_scalar(value, field.data_type()).map_err(|error| {
                    error
                        .with_context("column", &field.name)
                        .with_context("partition", partition_text(&context.pin.schema.partition_keys, &file.partition))
                })?;
                let array: ArrayRef = scalar.to_array_of_size(rows)?;
                debug_assert_eq!(array.data_type(), &arrow_type(field.data_type()));
                Ok(array)
            }
            ReadColumn::ValueKind => Ok(Arc::new(Int8Array::from_value(0, rows)) as ArrayRef),
            ReadColumn::SequenceNumber | ReadColumn::RowId => {
                Err(Error::internal("the column is not told by the manifest entry"))
            }
        })
        .collect::<Result<Vec<_>>>()?;
    batch_of(context.schema(), columns, rows)
}
