//! The runs of a merge: their current batches, and the batches that rows to be given out still refer to.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Int8Type, Int64Type, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};

use super::cell::{Column, RowRef};
use super::compare::is_comparable;
use super::keys::{KeyEncoder, Keys};
use super::order::{Record, compare_user_sequence, row_kind};
use super::range::Key;
use super::rules::MergeRules;
use super::tree::{Head, RunInput};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::MemoryBudget;

/// Characters of a key in an error.
const KEY_TEXT: usize = 200;

/// First batches asked for at once.
const OPEN_AT_ONCE: usize = 16;

/// What the batches of a merge look like.
#[derive(Debug)]
pub(super) struct Layout {
    /// Table column of each column.
    pub(super) columns: Vec<usize>,
    /// Key columns by their place in the batch.
    key: Vec<usize>,
    /// User sequence columns by their place in the batch.
    user_sequence: Vec<usize>,
}

impl Layout {
    pub(super) fn try_new(rules: &MergeRules, columns: Vec<usize>) -> Result<Self> {
        let place = |column: &usize| {
            columns
                .iter()
                .position(|known| known == column)
                .ok_or_else(|| Error::internal(format!("a merge needs table column number {column}")))
        };
        let key = rules.key_columns().iter().map(place).collect::<Result<_>>()?;
        let user_sequence = rules.user_sequence_columns().iter().map(place).collect::<Result<_>>()?;
        Ok(Self { key, user_sequence, columns })
    }

    fn check(&self, batch: &RecordBatch) -> Result<()> {
        let types: Vec<&DataType> = batch.columns().iter().map(|column| column.data_type()).collect();
        match types.as_slice() {
            [table @ .., DataType::Int64, DataType::Int8] if table.len() == self.columns.len() => {
                match self.user_sequence.iter().find(|&&at| !is_comparable(table[at])) {
                    None => Ok(()),
                    Some(&at) => Err(Error::internal(format!("rows cannot be ordered by type {}", table[at]))),
                }
            }
            _ => Err(Error::internal(format!(
                "a batch to merge has {} columns, not {} and the sequence number and kind",
                types.len(),
                self.columns.len()
            ))),
        }
    }
}

/// A batch in memory.
struct Held {
    batch: RecordBatch,
    keys: Keys,
    sequence: ScalarBuffer<i64>,
    kinds: ScalarBuffer<i8>,
    run: usize,
    bytes: usize,
}

struct Run {
    stream: Batches,
    name: String,
    level: i32,
    /// Current batch and its first unread row; None: at the end.
    at: Option<(u32, usize)>,
    /// Key of the last row so far, for the check of what follows; its batch may be gone.
    last: Option<Key>,
    /// A batch that memory was refused for.
    waiting: Option<RecordBatch>,
}

/// Answer to [`Runs::fill`].
pub(super) enum Filled {
    /// The run has a batch, or has ended.
    Yes,
    /// No memory; the run waits.
    Refused(Error),
}

pub(super) struct Runs {
    runs: Vec<Run>,
    /// Batches by number; numbers are used again.
    held: Vec<Option<Held>>,
    layout: Layout,
    encoder: Option<KeyEncoder>,
    budget: Arc<dyn MemoryBudget>,
    bytes: usize,
}

impl Runs {
    /// Opens the runs: each has its first batch then.
    pub(super) async fn open(inputs: Vec<RunInput>, layout: Layout, budget: Arc<dyn MemoryBudget>) -> Result<Self> {
        let mut all =
            Self { runs: Vec::with_capacity(inputs.len()), held: Vec::new(), layout, encoder: None, budget, bytes: 0 };
        let mut streams = Vec::with_capacity(inputs.len());
        for (number, input) in inputs.into_iter().enumerate() {
            let name = if input.name.is_empty() { format!("number {number}") } else { input.name };
            let stream = stream::empty().boxed();
            all.runs.push(Run { stream, name, level: input.level, at: None, last: None, waiting: None });
            streams.push(input.stream);
        }
        let first = streams.into_iter().enumerate().map(|(number, stream)| first_batch(number, stream).boxed());
        let mut opening = stream::iter(first.collect::<Vec<_>>()).buffer_unordered(OPEN_AT_ONCE);
        while let Some((number, stream, batch)) = opening.next().await {
            let run = &mut all.runs[number];
            run.stream = stream;
            run.waiting = batch.map_err(|error| error.with_context("run", &run.name))?;
            if run.waiting.is_some()
                && let Filled::Refused(error) = all.fill(number).await?
            {
                return Err(error);
            }
        }
        Ok(all)
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// The first unread row of a run; None at its end.
    pub(super) fn head(&self, run: usize) -> Option<Head<'_>> {
        let (batch, row) = self.runs.get(run)?.at?;
        Some(Head { run, batch, row, keys: &self.held(batch).keys })
    }

    /// Whether run `a` comes before run `b`.
    pub(super) fn less(&self, a: usize, b: usize) -> bool {
        match (self.head(a), self.head(b)) {
            (Some(x), Some(y)) => x.keys.compare(x.row, y.keys, y.row).then(a.cmp(&b)).is_lt(),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => a < b,
        }
    }

    pub(super) fn has_key_of(&self, head: &Head<'_>, row: RowRef) -> bool {
        head.keys.compare(head.row, &self.held(row.batch).keys, row.row as usize).is_eq()
    }

    pub(super) fn record(&self, head: &Head<'_>) -> Result<Record> {
        self.record_at(head.batch, head.row)
    }

    pub(super) fn record_at(&self, batch: u32, row: usize) -> Result<Record> {
        let held = self.held(batch);
        let run = &self.runs[held.run];
        let number = |number: usize| u32::try_from(number).map_err(|_| Error::internal("too many rows in a batch"));
        Ok(Record {
            at: RowRef { batch, row: number(row)? },
            sequence: held.sequence[row],
            kind: row_kind(held.kinds[row]).map_err(|error| error.with_context("run", &run.name))?,
            level: run.level,
            place: number(held.run)?,
        })
    }

    /// The key of a row, for errors.
    pub(super) fn key_text(&self, row: RowRef) -> String {
        let batch = self.batch(row.batch);
        let text = |at: &usize| array_value_to_string(batch.column(*at), row.row as usize).unwrap_or_default();
        let parts: Vec<String> = self.layout.key.iter().map(text).collect();
        parts.join(", ").chars().take(KEY_TEXT).collect()
    }

    /// Moves a run on; false when its batch is used up.
    pub(super) fn advance(&mut self, run: usize, rows: usize) -> bool {
        let Some((batch, row)) = self.runs[run].at else { return false };
        let row = row + rows;
        let left = row < self.held(batch).keys.len();
        self.runs[run].at = left.then_some((batch, row));
        left
    }

    /// Brings the next batch of a run whose batch is used up.
    pub(super) async fn fill(&mut self, number: usize) -> Result<Filled> {
        let run = &mut self.runs[number];
        let batch = match run.waiting.take() {
            Some(batch) => batch,
            None => match next_with_rows(&mut run.stream).await {
                Ok(Some(batch)) => batch,
                Ok(None) => return Ok(Filled::Yes),
                Err(error) => return Err(error.with_context("run", &run.name)),
            },
        };
        match self.hold(number, &batch) {
            Ok(()) => Ok(Filled::Yes),
            Err(error) if error.kind() == ErrorKind::Exhausted => {
                self.runs[number].waiting = Some(batch);
                Ok(Filled::Refused(error))
            }
            Err(error) => Err(error.with_context("run", &self.runs[number].name)),
        }
    }

    /// Takes a batch in: checks it, encodes its keys, accounts for it.
    fn hold(&mut self, number: usize, batch: &RecordBatch) -> Result<()> {
        self.layout.check(batch)?;
        let columns: Vec<ArrayRef> = self.layout.key.iter().map(|&at| Arc::clone(batch.column(at))).collect();
        let keys = self.keys(&columns)?;
        if let Some(row) = keys.first_disorder() {
            return Err(disorder(row));
        }
        if let Some(last) = self.runs[number].last.take() {
            let last = self.keys(last.columns())?;
            if last.compare(0, &keys, 0).is_ge() {
                return Err(disorder(0));
            }
        }
        let (sequence, kinds) = self.system_columns(batch)?;
        let bytes = batch.get_array_memory_size() + keys.extra_bytes();
        self.budget.try_grow(bytes).map_err(|error| self.refused(bytes, error))?;
        self.bytes += bytes;
        let run = &mut self.runs[number];
        run.last = Some(Key::at(&columns, batch.num_rows().saturating_sub(1))?);
        let held = Held { batch: batch.clone(), keys, sequence, kinds, run: number, bytes };
        let free = self.held.iter().position(Option::is_none).unwrap_or(self.held.len());
        if free == self.held.len() {
            self.held.push(None);
        }
        self.held[free] = Some(held);
        run.at = Some((u32::try_from(free).map_err(|_| Error::internal("too many batches"))?, 0));
        Ok(())
    }

    fn keys(&mut self, columns: &[ArrayRef]) -> Result<Keys> {
        if self.encoder.is_none() {
            self.encoder = Some(KeyEncoder::of(columns)?);
        }
        match &self.encoder {
            Some(encoder) => encoder.encode(columns),
            None => Err(Error::internal("the key encoder was just made")),
        }
    }

    fn system_columns(&self, batch: &RecordBatch) -> Result<(ScalarBuffer<i64>, ScalarBuffer<i8>)> {
        let width = self.layout.columns.len();
        let (sequence, kinds) = (batch.column(width), batch.column(width + 1));
        if sequence.null_count() + kinds.null_count() > 0 {
            return Err(Error::corrupt("a sequence number or row kind is NULL"));
        }
        Ok((sequence.as_primitive::<Int64Type>().values().clone(), kinds.as_primitive::<Int8Type>().values().clone()))
    }

    fn refused(&self, bytes: usize, error: Error) -> Error {
        Error::exhausted(format!(
            "merging {} runs needs {bytes} bytes more, besides {} bytes held",
            self.runs.len(),
            self.bytes
        ))
        .with_code("ResourcesExhausted")
        .with_hint("raise the memory limit, lower the batch size, or compact the table")
        .with_source(error)
    }

    fn held(&self, batch: u32) -> &Held {
        #[expect(clippy::expect_used, reason = "a batch is released only when no head, open key or item refers to it")]
        self.held[batch as usize].as_ref().expect("batch is held")
    }

    pub(super) fn batch(&self, batch: u32) -> &RecordBatch {
        &self.held(batch).batch
    }

    pub(super) fn kinds(&self, batch: u32) -> &[i8] {
        &self.held(batch).kinds
    }

    pub(super) fn schema(&self) -> Option<SchemaRef> {
        self.held.iter().flatten().next().map(|held| held.batch.schema())
    }

    /// How many numbers of batches there are.
    pub(super) fn numbers(&self) -> usize {
        self.held.len()
    }

    /// Orders two rows by the user sequence.
    pub(super) fn compare_user_sequence(&self, a: RowRef, b: RowRef, descending: bool) -> Ordering {
        let (x, y) = (self.batch(a.batch), self.batch(b.batch));
        let columns =
            self.layout.user_sequence.iter().map(|&place| (x.column(place).as_ref(), y.column(place).as_ref()));
        compare_user_sequence(columns, a.row as usize, b.row as usize, descending)
    }

    /// Columns of the batches by their place; their arrays by number of the batch. A number without a batch has an
    /// empty array.
    pub(super) fn columns(&self, places: &[usize]) -> Vec<Column<'_>> {
        let Some(any) = self.held.iter().flatten().next() else { return Vec::new() };
        let schema = any.batch.schema_ref();
        places
            .iter()
            .map(|&place| {
                let field = schema.field(place);
                let arrays = self
                    .held
                    .iter()
                    .map(|held| match held {
                        Some(held) => Arc::clone(held.batch.column(place)),
                        None => any.batch.column(place).slice(0, 0),
                    })
                    .collect();
                Column { name: field.name(), data_type: field.data_type(), arrays }
            })
            .collect()
    }

    /// Lets go of the batches that no run reads and the open key does not need.
    pub(super) fn release(&mut self, open: &[Record]) {
        let mut used = vec![false; self.held.len()];
        let read = self.runs.iter().filter_map(|run| run.at.map(|(batch, _)| batch));
        for batch in read.chain(open.iter().map(|record| record.at.batch)) {
            used[batch as usize] = true;
        }
        for (slot, used) in self.held.iter_mut().zip(used) {
            if let (false, Some(held)) = (used, &slot) {
                self.bytes -= held.bytes;
                self.budget.shrink(held.bytes);
                *slot = None;
            }
        }
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.budget.shrink(self.bytes);
    }
}

fn disorder(row: usize) -> Error {
    Error::corrupt(format!("keys of a sorted run do not increase at row {row} of a batch"))
        .with_code("RunNotSorted")
        .with_hint(UNSORTED)
}

/// The way out of keys that do not increase.
pub(super) const UNSORTED: &str = "a file is damaged, or its rows were written in another order: restore it, or read a \
                                   snapshot or tag that does not need it";

type Batches = BoxStream<'static, Result<RecordBatch>>;

async fn first_batch(number: usize, mut stream: Batches) -> (usize, Batches, Result<Option<RecordBatch>>) {
    let batch = next_with_rows(&mut stream).await;
    (number, stream, batch)
}

async fn next_with_rows(stream: &mut Batches) -> Result<Option<RecordBatch>> {
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        if batch.num_rows() > 0 {
            return Ok(Some(batch));
        }
    }
    Ok(None)
}
