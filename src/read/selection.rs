//! The live rows of a section: known from before, or keys of all its files read and one row chosen per key.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use arrow::compute::{max, min};
use arrow::datatypes::{Int8Type, Int64Type};
use datafusion::common::ScalarValue;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use super::context::{ReadContext, SectionHandle};
use super::data_file::{Output, read_span, snapshot_sequence};
use super::deletion::{live_rows, physical_rows};
use super::held::{AbortOnDrop, Held};
use super::kept::{SelectionId, bytes_of};
use super::streamed::streamed;
use super::wanted::{few_are_wanted, wanted_rows, wanted_span, widened};
use crate::error::{Error, ErrorKind, Result};
use crate::merge::{FileSequence, KeyFile, MergeRules, SectionSelection, cut, join, ranked_by_file, select};
use crate::scan::{PlannedFile, SectionClass, is_above, partition_text, scalar_to_datum};
use crate::spec::{DataField, DataType, Datum};

/// Rows whose selection is worth a task of its own; in tests few, so that their sections have several.
const ROWS_A_PART: usize = if cfg!(test) { 50 } else { 1 << 18 };

/// Rows after which a selection that nobody waits for any more ends.
const MOST_ROWS_A_PART: usize = 4 * ROWS_A_PART;

/// The live rows of a section of class select. Taken from those that are kept, or computed by the first who asks; shared
/// by all; see [`super::flight::OnceFlight`] for what happens to those who go away.
pub async fn selection(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>) -> Result<Arc<SectionSelection>> {
    if let Some(selection) = handle.selected() {
        // by the first who reads it
        if handle.recalled.swap(false, Ordering::Relaxed) {
            recalled(context, selection);
        }
        return Ok(Arc::clone(selection));
    }
    let (own_context, own_handle) = (Arc::clone(context), Arc::clone(handle));
    handle.selection.get_or_compute(move || async move { kept(&own_context, &own_handle).await }.boxed()).await
}

/// Files of a plan up to which planning looks for what is kept: names of more are hashed when they are read, on all cores.
const RECALLED_FILES: usize = 10_000;

/// Gives sections of a plan the selections that are kept of them, so that their rows are counted without a read. Tells the
/// files of those sections.
///
/// Cost: a hash of the names of the files of sections of class select, where anything is kept; nothing is opened.
///
/// # Errors
/// Merge options that contradict the schema.
pub fn recall(context: &ReadContext, handles: &[Arc<SectionHandle>]) -> Result<HashSet<String>> {
    let mut files = HashSet::new();
    if !context.options.keep_selections || context.caches.selections.stats().entries == 0 {
        return Ok(files);
    }
    // of a few keys more is found anew
    let selected = || {
        let select = handles.iter().filter(|handle| handle.section.class == SectionClass::Select);
        select.filter(|handle| handle.wanted.is_none())
    };
    if selected().map(|handle| handle.section.files().count()).sum::<usize>() > RECALLED_FILES {
        return Ok(files);
    }
    for handle in selected() {
        if let Some(found) = context.caches.selections.get(&SelectionId::of(context, handle)?) {
            handle.selection.put(found);
            handle.recalled.store(true, Ordering::Relaxed);
            files.extend(handle.section.files().map(|file| file.entry.file.file_name.clone()));
        }
    }
    Ok(files)
}

/// Counts what a selection says that was not computed.
fn recalled(context: &ReadContext, selection: &SectionSelection) {
    context.counters.add_recalled(1);
    told(context, selection);
}

/// Counts what became of the rows of a section.
fn told(context: &ReadContext, selection: &SectionSelection) {
    let stats = &selection.stats;
    context.counters.add_vector_deleted(stats.vector_deleted);
    context.counters.add_superseded(stats.superseded);
    context.counters.add_tombstones(stats.tombstones);
}

async fn kept(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>) -> Result<Arc<SectionSelection>> {
    if !context.options.keep_selections {
        return compute(context, handle).await.map(Arc::new);
    }
    let id = SelectionId::of(context, handle)?;
    if handle.wanted.is_some() {
        // what is found of a few keys is no fact about the section, and shows fewer rows to those who read on
        if let Some(known) = context.caches.selections.get(&id)
            && !few_are_wanted(context, handle).await?
        {
            recalled(context, &known);
            return Ok(known);
        }
        return compute(context, handle).await.map(Arc::new);
    }
    let mut own = false;
    let found = context
        .caches
        .selections
        .get_or_load(&id, || {
            own = true;
            async {
                let selection = compute(context, handle).await?;
                let bytes = bytes_of(&selection);
                Ok((Arc::new(selection), bytes))
            }
        })
        .await;
    match found {
        Ok(selection) => {
            if !own {
                recalled(context, &selection);
            }
            Ok(selection)
        }
        // another statement had less memory, or its own pin was gone
        Err(_) if !own => compute(context, handle).await.map(Arc::new),
        Err(error) => Err(error),
    }
}

async fn compute(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>) -> Result<SectionSelection> {
    let started = Instant::now();
    let rules = Arc::clone(context.rules(handle)?);
    let selected = match in_memory(context, handle, &rules).await {
        Err(error) if error.kind() == ErrorKind::Exhausted => {
            context.counters.add_streamed(1);
            streamed(context, handle, &rules).await
        }
        other => other,
    }
    .map_err(|error| sized(error, context, handle))?;
    let stats = &selected.stats;
    let counters = &context.counters;
    counters.add_selections(1);
    counters.add_rows(stats.rows);
    told(context, &selected);
    counters.add_select_nanos(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    Ok(selected)
}

/// The selection with the keys of all files in memory: the fast way.
async fn in_memory(
    context: &Arc<ReadContext>,
    handle: &Arc<SectionHandle>,
    rules: &Arc<MergeRules>,
) -> Result<SectionSelection> {
    let ranked = ranked_by_file(
        &handle.section.runs,
        |file| (&file.min_key, &file.max_key),
        |file| (file.entry.file.min_sequence_number, file.entry.file.max_sequence_number),
    );
    let files: Vec<Arc<PlannedFile>> = handle.section.files().cloned().collect();
    let runs: Vec<usize> = handle.section.runs.iter().map(Vec::len).collect();
    let keys: Vec<(KeyFile, Range<usize>, Held)> = stream::iter(files.into_iter().map(|file| {
        let (context, handle, rules) = (Arc::clone(context), Arc::clone(handle), Arc::clone(rules));
        // a task each: keys are decoded on as many cores as there are
        let task = tokio::spawn(async move {
            let span = wanted_span(&context, &handle, &file).await?;
            let (keys, held) = key_file(&context, &file, &rules, ranked, span.clone()).await?;
            let found = wanted_rows(&handle, &keys)?;
            let span = span.start + found.start..span.start + found.end;
            Ok((keys.slice(found.start, found.len()), span, held))
        });
        AbortOnDrop(task)
    }))
    .buffered(context.options.parallelism.max(1))
    .try_collect()
    .await?;
    let (mut files, mut spans, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for (file, span, memory) in keys {
        files.push(file);
        spans.push(span);
        held.push(memory);
    }
    let keys = files;
    let rows: usize = keys.iter().map(KeyFile::rows).sum();
    let mut keys = keys.into_iter();
    let runs: Vec<Vec<KeyFile>> = runs.into_iter().map(|files| keys.by_ref().take(files).collect()).collect();
    let cores = context.options.parallelism.max(1);
    let parts = (rows / ROWS_A_PART).min(cores).max(rows.div_ceil(MOST_ROWS_A_PART));
    // what a task that runs cannot be kept from holds until it has ended
    let held = Arc::new(held);
    let selected: Vec<SectionSelection> = stream::iter(cut(runs, parts)?.into_iter().map(|part| {
        let (rules, keys) = (Arc::clone(rules), Arc::clone(&held));
        let mut working = Held::new(&context.options.budget);
        let bytes = part.iter().flatten().map(KeyFile::working_bytes).sum();
        async move {
            working.grow(bytes)?;
            let task = tokio::task::spawn_blocking(move || {
                let selected = select(part, &rules);
                drop((working, keys));
                selected
            });
            AbortOnDrop(task).await
        }
    }))
    .buffered(cores)
    .try_collect()
    .await?;
    let selected = join(selected)?;
    if handle.wanted.is_none() { Ok(selected) } else { widened(selected, spans, handle) }
}

/// A refused reservation says which section it was for.
pub fn sized(error: Error, context: &ReadContext, handle: &SectionHandle) -> Error {
    if error.kind() != ErrorKind::Exhausted {
        return error;
    }
    let sizes = handle.section.files().map(|file| file.entry.file.file_size);
    let bytes = sizes.fold(0, u64::saturating_add);
    error
        .with_context("table", context.pin.table.name())
        .with_context("partition", partition_text(&context.pin.schema.partition_keys, &handle.partition))
        .with_context("bucket", handle.bucket)
        .with_context("runs", handle.section.runs.len())
        .with_context("bytes of files", bytes)
        .with_hint("compact the table, or give the query more memory")
}

async fn key_file(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    rules: &MergeRules,
    ranked: bool,
    span: Range<usize>,
) -> Result<(KeyFile, Held)> {
    let meta = &file.entry.file;
    let decisive = rules.key_columns().iter().chain(rules.user_sequence_columns());
    let mut outputs = decisive.map(|index| Output::field(context, *index)).collect::<Result<Vec<_>>>()?;
    let key_width = rules.key_columns().len();
    let sequence_end = outputs.len();
    let fixed = if rules.snapshot_ordering() {
        snapshot_sequence(file)?
    } else if ranked {
        Some(meta.min_sequence_number)
    } else {
        None
    };
    let sequence_at = fixed.is_none().then(|| {
        outputs.push(Output::SequenceNumber);
        outputs.len() - 1
    });
    let kind_at = (!file.is_clean(&context.pin.options)).then(|| {
        outputs.push(Output::ValueKind);
        outputs.len() - 1
    });

    let mut held = Held::new(&context.options.budget);
    context.counters.add_key_files(1);
    let live = live_rows(context, file).await?.map(|live| live.slice(span.start, span.len()));
    let rows = physical_rows(file)?;
    let empty = |output: &Output| new_empty_array(output.column().arrow_field().data_type());
    let none: Vec<ArrayRef> = outputs.iter().filter(|_| span.is_empty()).map(empty).collect();
    let batch = read_span(context, file, outputs, span.clone(), &mut held).await?;
    let found = batch.as_ref().map_or(0, |batch| batch.num_rows());
    if found != span.len() {
        let found = rows - span.len() + found;
        return Err(Error::corrupt(format!("the file holds {found} rows, its manifest entry says {rows}"))
            .with_context("file", &file.location));
    }
    let columns: Vec<ArrayRef> = match batch {
        Some(batch) => batch.columns().to_vec(),
        // no rows: nothing to rank, nothing to select
        None => none,
    };
    check_range(context, file, columns.get(..key_width).unwrap_or_default(), rules)?;
    if let Some(numbers) = sequence_at.and_then(|at| columns.get(at)) {
        check_sequences(file, numbers)?;
    }
    let part = |from: usize, to: usize| columns.get(from..to).unwrap_or_default().to_vec();
    let sequence = match (fixed, sequence_at.and_then(|at| columns.get(at))) {
        (Some(number), _) => FileSequence::Constant(number),
        (None, Some(column)) => {
            FileSequence::Rows(column.as_primitive_opt::<Int64Type>().cloned().ok_or_else(|| not_of("BIGINT"))?)
        }
        (None, None) => FileSequence::Constant(meta.min_sequence_number),
    };
    let kinds = match kind_at.and_then(|at| columns.get(at)) {
        Some(column) => Some(column.as_primitive_opt::<Int8Type>().cloned().ok_or_else(|| not_of("TINYINT"))?),
        None => None,
    };
    let key_file = KeyFile {
        level: meta.level,
        name: meta.file_name.clone(),
        keys: part(0, key_width),
        user_sequence: part(key_width, sequence_end),
        sequence,
        kinds,
        deleted: live.map(|live| !&live),
    };
    Ok((key_file, held))
}

/// Refuses a file whose first or last key lies outside of the range its manifest entry gives: sections are cut by that
/// range. A range may be wider than the keys: releases of old left the key of a dropped delete in it.
fn check_range(context: &ReadContext, file: &PlannedFile, keys: &[ArrayRef], rules: &MergeRules) -> Result<()> {
    let Some(last) = keys.first().and_then(|column| column.len().checked_sub(1)) else { return Ok(()) };
    let fields = &context.pin.schema.fields;
    let key_at = |row: usize| -> Result<Vec<Datum>> {
        let columns = keys.iter().zip(rules.key_columns());
        columns
            .map(|(column, index)| {
                let data_type = fields.get(*index).map(DataField::data_type);
                // the others are cut, padded or rounded by some format
                let Some(
                    data_type @ (DataType::TinyInt
                    | DataType::SmallInt
                    | DataType::Int
                    | DataType::BigInt
                    | DataType::Date
                    | DataType::Varchar(_)),
                ) = data_type
                else {
                    return Ok(Datum::Null);
                };
                Ok(scalar_to_datum(&ScalarValue::try_from_array(column, row)?, data_type)?.unwrap_or(Datum::Null))
            })
            .collect()
    };
    let (first, last) = (key_at(0)?, key_at(last)?);
    let shown = |key: &[Datum]| format!("({})", key.iter().map(Datum::to_string).collect::<Vec<_>>().join(", "));
    if !is_above(&file.min_key, &first) && !is_above(&last, &file.max_key) {
        return Ok(());
    }
    Err(other_file(
        file,
        format!(
            "it holds keys {} to {} where its manifest entry says {} to {}",
            shown(&first),
            shown(&last),
            shown(&file.min_key),
            shown(&file.max_key)
        ),
    ))
}

/// Refuses sequence numbers outside of those the manifest entry gives, by which files are ranked.
fn check_sequences(file: &PlannedFile, numbers: &ArrayRef) -> Result<()> {
    let Some(numbers) = numbers.as_primitive_opt::<Int64Type>() else { return Ok(()) };
    let (Some(first), Some(last)) = (min(numbers), max(numbers)) else { return Ok(()) };
    let meta = &file.entry.file;
    if meta.min_sequence_number <= first && last <= meta.max_sequence_number {
        return Ok(());
    }
    Err(other_file(
        file,
        format!(
            "it holds sequence numbers {first} to {last} where its manifest entry says {} to {}",
            meta.min_sequence_number, meta.max_sequence_number
        ),
    ))
}

/// A file and its manifest entry contradict each other.
fn other_file(file: &PlannedFile, what: String) -> Error {
    Error::corrupt(format!("the data file is not the one its manifest entry tells of: {what}"))
        .with_code("DataFileCorrupt")
        .with_context("file", &file.location)
        .with_hint(
            "the file was exchanged, or the manifest is damaged: restore the one that is, or read a snapshot or tag that \
             needs neither",
        )
}

fn not_of(kind: &str) -> Error {
    Error::internal(format!("a system column is not {kind}"))
}
