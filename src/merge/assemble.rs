//! From finished keys to a batch.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int8Array, Int64Array};
use arrow::compute::interleave;
use arrow::record_batch::RecordBatch;

use super::cell::{Cell, Column, ColumnSink, RowRef};
use super::engines::{Engine, Outcome};
use super::order::{Record, row_kind};
use super::rules::MergeRules;
use super::run::{Layout, Runs};
use super::tree::{MergeCounters, MergeOptions};
use crate::error::{Error, Result};

/// Keys in order.
pub(super) enum Item {
    /// Rows of one batch that nothing else has the keys of: they go out as they are.
    Alone { batch: u32, from: usize, rows: usize },
    /// A key with several versions; `records` are those that count, in order.
    Key { records: Vec<Record>, versions: usize },
}

pub(super) struct Assembler {
    engine: Engine,
    /// Table columns of a batch.
    width: usize,
    keep_deletes: bool,
    counters: Arc<MergeCounters>,
}

/// Rows that are chosen, not computed.
#[derive(Default)]
struct Chosen {
    rows: Vec<(usize, usize)>,
}

/// Rows of which some are computed.
struct Computed {
    sinks: Vec<ColumnSink>,
    sequence: Vec<i64>,
    kinds: Vec<i8>,
}

impl Assembler {
    pub(super) fn try_new(rules: &MergeRules, layout: &Layout, options: &MergeOptions) -> Result<Self> {
        Ok(Self {
            engine: Engine::try_new(rules, &layout.columns)?,
            width: layout.columns.len(),
            keep_deletes: options.keep_deletes,
            counters: Arc::clone(&options.counters),
        })
    }

    /// Folds the keys and gives what is left of them; None when that is nothing.
    pub(super) fn assemble(&self, items: Vec<Item>, runs: &Runs) -> Result<Option<RecordBatch>> {
        if let [Item::Alone { batch, from, rows }] = items.as_slice()
            && let Some(slice) = self.slice(*batch, *from, *rows, runs)
        {
            return Ok(Some(slice));
        }
        let Some(schema) = runs.schema() else { return Ok(None) };
        let columns = if self.engine.computes() { self.compute(items, runs)? } else { self.choose(items, runs)? };
        let Some(columns) = columns else { return Ok(None) };
        for (field, column) in schema.fields().iter().zip(&columns) {
            if !field.is_nullable() && column.null_count() > 0 {
                return Err(Error::invalid("merging gives NULL for a NOT NULL column")
                    .with_code("NullInNotNull")
                    .with_context("column", field.name()));
            }
        }
        Ok(Some(RecordBatch::try_new(schema, columns)?))
    }

    /// The common case without a copy: a stretch of adds.
    fn slice(&self, batch: u32, from: usize, rows: usize, runs: &Runs) -> Option<RecordBatch> {
        let kinds = runs.kinds(batch).get(from..from + rows)?;
        let adds = kinds.iter().all(|kind| row_kind(*kind).is_ok_and(|kind| !kind.is_retract()));
        if !adds {
            return None;
        }
        self.counters.add(rows as u64, rows as u64, 0);
        Some(runs.batch(batch).slice(from, rows))
    }

    /// Calls `give` for every row that goes out as it is, and counts.
    fn alone(&self, batch: u32, from: usize, rows: usize, runs: &Runs, mut give: impl FnMut(Record)) -> Result<()> {
        let mut tombstones = 0;
        for row in from..from + rows {
            let record = runs.record_at(batch, row)?;
            tombstones += u64::from(record.kind.is_retract());
            if self.keep_deletes || !record.kind.is_retract() {
                give(record);
            }
        }
        self.counters.add(rows as u64, rows as u64, tombstones);
        Ok(())
    }

    /// Folds a key with several versions.
    fn fold(
        &self,
        records: &[Record],
        versions: usize,
        columns: &[Column<'_>],
        cells: &mut Vec<Cell>,
        runs: &Runs,
    ) -> Result<Outcome> {
        let outcome = self.engine.fold(records, columns, cells).map_err(|error| match records.first() {
            Some(record) => error.with_context("key", runs.key_text(record.at)),
            None => error,
        })?;
        let (retract, outcome) = match outcome {
            Outcome::Nothing => (true, outcome),
            Outcome::Record(at) => match records.get(at) {
                Some(record) => (record.kind.is_retract(), outcome),
                None => return Err(Error::internal("an engine chose a record that is not there")),
            },
            Outcome::Row { kind, .. } => (kind.is_retract(), outcome),
        };
        self.counters.add(versions as u64, 1, u64::from(retract));
        Ok(if retract && !self.keep_deletes { Outcome::Nothing } else { outcome })
    }

    fn choose(&self, items: Vec<Item>, runs: &Runs) -> Result<Option<Vec<ArrayRef>>> {
        let mut chosen = Chosen::default();
        let mut cells = Vec::new();
        for item in items {
            match item {
                Item::Alone { batch, from, rows } => {
                    self.alone(batch, from, rows, runs, |record| chosen.push(record.at))?
                }
                Item::Key { records, versions } => {
                    if let Outcome::Record(at) = self.fold(&records, versions, &[], &mut cells, runs)? {
                        chosen.push(records[at].at);
                    }
                }
            }
        }
        if chosen.rows.is_empty() {
            return Ok(None);
        }
        let places: Vec<usize> = (0..self.width + 2).collect();
        let columns = runs.columns(&places).into_iter().map(|column| {
            let arrays: Vec<&dyn Array> = column.arrays.iter().map(|array| array.as_ref()).collect();
            Ok(interleave(&arrays, &chosen.rows)?)
        });
        columns.collect::<Result<Vec<_>>>().map(Some)
    }

    fn compute(&self, items: Vec<Item>, runs: &Runs) -> Result<Option<Vec<ArrayRef>>> {
        let places: Vec<usize> = (0..self.width).collect();
        let columns = runs.columns(&places);
        let sinks = (0..self.width).map(|_| ColumnSink::new(runs.numbers())).collect();
        let mut computed = Computed { sinks, sequence: Vec::new(), kinds: Vec::new() };
        let mut cells = Vec::new();
        for item in items {
            match item {
                Item::Alone { batch, from, rows } => {
                    self.alone(batch, from, rows, runs, |record| computed.push_record(&record))?;
                }
                Item::Key { records, versions } => match self.fold(&records, versions, &columns, &mut cells, runs)? {
                    Outcome::Nothing => {}
                    Outcome::Record(at) => computed.push_record(&records[at]),
                    Outcome::Row { sequence, kind } => computed.push_row(&mut cells, sequence, kind as i8),
                },
            }
        }
        if computed.kinds.is_empty() {
            return Ok(None);
        }
        let mut arrays = Vec::with_capacity(self.width + 2);
        for (sink, column) in computed.sinks.into_iter().zip(&columns) {
            arrays.push(sink.finish(column)?);
        }
        arrays.push(Arc::new(Int64Array::from(computed.sequence)));
        arrays.push(Arc::new(Int8Array::from(computed.kinds)));
        Ok(Some(arrays))
    }
}

impl Chosen {
    fn push(&mut self, at: RowRef) {
        self.rows.push((at.batch as usize, at.row as usize));
    }
}

impl Computed {
    fn push_record(&mut self, record: &Record) {
        for sink in &mut self.sinks {
            sink.push_row(record.at);
        }
        self.sequence.push(record.sequence);
        self.kinds.push(record.kind as i8);
    }

    fn push_row(&mut self, cells: &mut Vec<Cell>, sequence: i64, kind: i8) {
        for (sink, cell) in self.sinks.iter_mut().zip(cells.drain(..)) {
            sink.push(cell);
        }
        self.sequence.push(sequence);
        self.kinds.push(kind);
    }
}
