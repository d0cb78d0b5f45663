//! The rows of a section, or of one of its parts, out of a merge of its runs.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::context::{ReadColumn, ReadContext, SectionHandle, result_schema};
use super::data_file::{FileRead, batch_of, read_file};
use super::deletion::{live_rows, physical_rows};
use super::held::Held;
use super::pace::Pace;
use super::parts::{PartRows, SectionPart, samples};
use super::prefetch::ahead;
use super::section::RowStream;
use super::selection::sized;
use super::stretch::narrowed;
use crate::error::{Error, ErrorKind, Result};
use crate::merge::{Key, KeyRange, MergeOptions, MergeRules, RunInput, merge_runs, runs_of_one_level, within};
use crate::scan::{PlannedFile, partition_text};

/// Runs up to this number are decoded ahead, each in a task of its own.
const RUNS_DECODED_AHEAD: usize = 16;

/// Files of a run that an error names.
const FILES_NAMED: usize = 3;

/// The rows of a section, whole.
pub fn merged(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>) -> RowStream {
    match SectionMerge::new(context, handle, None) {
        Ok(merge) => merge.rows(),
        Err(error) => stream::once(async { Err(error) }).boxed(),
    }
}

/// The rows of one part of a section. All parts together give the rows of the section, each once. Nothing is opened before
/// the first poll.
pub fn part(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>, part: SectionPart) -> RowStream {
    let (context, handle) = (Arc::clone(context), Arc::clone(handle));
    stream::once(async move {
        let samples = samples(&context, &handle).await?;
        match samples.part(part)? {
            Some(rows) => Ok::<_, Error>(SectionMerge::new(&context, &handle, Some(rows))?.rows()),
            None => Ok(stream::empty().boxed()),
        }
    })
    .try_flatten()
    .boxed()
}

/// A file of a run, and the rows of it to read; None: all.
type Piece = (Arc<PlannedFile>, Option<Range<usize>>);

/// A merge that can be started, and started again behind a key.
struct SectionMerge {
    context: Arc<ReadContext>,
    handle: Arc<SectionHandle>,
    rules: Arc<MergeRules>,
    /// Table columns of the merge.
    required: Vec<usize>,
    /// What is read of the files: those, sequence number and kind.
    columns: Arc<[ReadColumn]>,
    schema: SchemaRef,
    /// Places of the key in them.
    key: Vec<usize>,
    /// Places of the result's columns in them.
    places: Vec<usize>,
    /// Level and files of each run.
    runs: Vec<(i32, Vec<Piece>)>,
    /// What is still to be given out.
    range: KeyRange,
    pace: Pace,
}

impl SectionMerge {
    fn new(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>, part: Option<PartRows>) -> Result<Self> {
        let rules = Arc::clone(context.rules(handle)?);
        let projection: Vec<usize> = context.columns.iter().filter_map(|column| column.field()).collect();
        let required = rules.required_columns(&projection)?;
        let mut columns: Vec<ReadColumn> = required.iter().map(|index| ReadColumn::Field(*index)).collect();
        columns.extend([ReadColumn::SequenceNumber, ReadColumn::ValueKind]);
        let place = |wanted: ReadColumn| {
            let found = columns.iter().position(|known| *known == wanted);
            found.ok_or_else(|| Error::internal(format!("the merge does not carry {wanted:?}")))
        };
        let key = rules.key_columns().iter().map(|index| place(ReadColumn::Field(*index))).collect::<Result<_>>()?;
        let places = context.columns.iter().map(|column| place(*column)).collect::<Result<_>>()?;
        let (range, spans) = match part {
            Some(part) => (part.range, Some(part.rows)),
            None => (KeyRange::default(), None),
        };
        let runs = pieces(handle, spans, rules.needs_lookup());
        let pace = Pace { batch_size: context.options.batch_size, ahead: runs.len() <= RUNS_DECODED_AHEAD };
        Ok(Self {
            context: Arc::clone(context),
            handle: Arc::clone(handle),
            schema: result_schema(&context.pin, &columns)?,
            columns: columns.into(),
            required,
            rules,
            key,
            places,
            runs,
            range,
            pace,
        })
    }

    /// The rows. Where memory is refused the merge goes on behind the last key given out, with smaller batches; only
    /// when that is refused too it fails.
    fn rows(self) -> RowStream {
        stream::try_unfold((self, None::<RowStream>), |(mut merge, running)| async move {
            let mut running = running.unwrap_or_else(|| merge.start());
            loop {
                match running.next().await {
                    None => return Ok(None),
                    Some(Ok(batch)) => {
                        merge.advance(&batch)?;
                        let shaped = merge.shape(&batch)?;
                        return Ok(Some((shaped, (merge, Some(running)))));
                    }
                    Some(Err(error)) => {
                        let slower = merge.pace.slower().filter(|_| error.kind() == ErrorKind::Exhausted);
                        let Some(pace) = slower else { return Err(placed(error, &merge.context, &merge.handle)) };
                        merge.pace = pace;
                        merge.context.counters.add_resumes(1);
                        // gives its memory back first
                        drop(running);
                        running = merge.start();
                    }
                }
            }
        })
        .boxed()
    }

    fn start(&self) -> RowStream {
        let inputs = self.runs.iter().map(|(level, pieces)| self.input(*level, pieces)).collect();
        let mut options = MergeOptions::new(self.pace.batch_size, Arc::clone(&self.context.options.budget));
        options.keep_deletes = self.context.keep_deletes;
        merge_runs(inputs, Arc::clone(&self.rules), &self.required, options)
    }

    fn input(&self, level: i32, pieces: &[Piece]) -> RunInput {
        let read = FileRead {
            columns: Arc::clone(&self.columns),
            schema: Arc::clone(&self.schema),
            live: None,
            drop_retracts: false,
            snapshot_ordering: self.rules.snapshot_ordering(),
            batch_size: self.pace.batch_size,
        };
        let context = Arc::clone(&self.context);
        let rows = stream::iter(pieces.to_vec())
            .flat_map(move |(file, span)| masked(&context, &file, span, read.clone()))
            .boxed();
        let rows = within(rows, self.key.clone(), self.range.clone());
        let rows = if self.pace.ahead { self.ahead(rows) } else { rows };
        RunInput::new(level, rows).named(names(pieces))
    }

    /// Decodes a run ahead of the merge, on another core; what is decoded and not yet taken is accounted for, too.
    fn ahead(&self, rows: RowStream) -> RowStream {
        let budget = Arc::clone(&self.context.options.budget);
        let held = rows.map(move |batch| {
            let batch = batch?;
            let mut held = Held::new(&budget);
            held.grow(batch.get_array_memory_size())?;
            Ok((batch, held))
        });
        ahead(held.boxed(), 1).map_ok(|(batch, _)| batch).boxed()
    }

    /// What was given out is done.
    fn advance(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(last) = batch.num_rows().checked_sub(1) else { return Ok(()) };
        let key: Vec<ArrayRef> = columns_at(batch, &self.key)?;
        self.range = std::mem::take(&mut self.range).after(Key::at(&key, last)?);
        Ok(())
    }

    fn shape(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        batch_of(self.context.schema(), columns_at(batch, &self.places)?, batch.num_rows())
    }
}

fn columns_at(batch: &RecordBatch, places: &[usize]) -> Result<Vec<ArrayRef>> {
    places
        .iter()
        .map(|at| batch.columns().get(*at).cloned().ok_or_else(|| Error::internal("a merge gave too few columns")))
        .collect()
}

/// A run as errors name it: by its files, not all of very many.
fn names(pieces: &[Piece]) -> String {
    let named: Vec<String> = pieces.iter().take(FILES_NAMED).map(|(file, _)| file.location.to_string()).collect();
    let more = match pieces.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

/// An error of merging says which section it was for, unless it names a file.
fn placed(error: Error, context: &ReadContext, handle: &SectionHandle) -> Error {
    if error.kind() == ErrorKind::Exhausted {
        return sized(error, context, handle);
    }
    let told = matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported | ErrorKind::Corrupt);
    if !told || error.context().iter().any(|(name, _)| *name == "file") {
        return error;
    }
    let error = match handle.partition.is_empty() {
        true => error,
        false => {
            let names = &context.pin.schema.partition_keys;
            error.with_context("partition", partition_text(names, &handle.partition))
        }
    };
    let error = error.with_context("bucket", handle.bucket);
    // of changes and of tables in two branches it is not known here
    let one = !context.kind.is_unmerged() && context.pin.fallback.is_none() && context.pin.primary.is_none();
    match context.pin.snapshot_id().filter(|_| one) {
        Some(id) => error.with_context("snapshot", id),
        None => error,
    }
}

/// The runs of a section, with the rows to read of each file; files of which nothing is read are left out.
fn pieces(
    handle: &SectionHandle,
    spans: Option<Vec<Vec<Range<usize>>>>,
    one_level_each: bool,
) -> Vec<(i32, Vec<Piece>)> {
    let mut spans = spans.map(Vec::into_iter);
    let mut runs = Vec::with_capacity(handle.section.runs.len());
    for files in &handle.section.runs {
        let spans = spans.as_mut().and_then(Iterator::next);
        let run: Vec<Piece> = match spans {
            None => files.iter().map(|file| (Arc::clone(file), None)).collect(),
            Some(spans) => files
                .iter()
                .zip(spans)
                .filter(|(_, span)| !span.is_empty())
                .map(|(file, span)| (Arc::clone(file), Some(span)))
                .collect(),
        };
        if one_level_each {
            runs.extend(runs_of_one_level(run, |(file, _)| file.entry.file.level));
        } else {
            runs.push((run.first().map_or(0, |(file, _)| file.entry.file.level), run));
        }
    }
    runs
}

/// The rows `span` of a file, without those its deletion vector names.
fn masked(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    span: Option<Range<usize>>,
    mut read: FileRead,
) -> RowStream {
    let (context, file) = (Arc::clone(context), Arc::clone(file));
    stream::once(async move {
        let live = live_rows(&context, &file).await?;
        read.live = match span {
            Some(span) => narrowed(live, physical_rows(&file)?, span)?,
            None => live,
        };
        Ok::<RowStream, Error>(read_file(&context, &file, read))
    })
    .try_flatten()
    .boxed()
}
