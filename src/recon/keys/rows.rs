//! The rows of a key, file by file: each file that can hold it is read once.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int8Type, Int64Type};
use futures::{StreamExt, stream};

use super::Key;
use super::life::{Ident, Lives, ident};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::MemoryBudget;
use crate::merge::MergeRules;
use crate::read::{FoundRows, Held, ReadColumn, ReadContext, ReadOptions, versions};
use crate::recon::history::History;
use crate::scan::{PlannedFile, ScanKind};
use crate::spec::{RowKind, Zone};

/// A row of the key as it lies in a file.
#[derive(Debug, Clone)]
pub(super) struct FoundRow {
    /// Position in the file.
    pub(super) position: u64,
    /// Sequence number as the merge sees it.
    pub(super) sequence: i64,
    pub(super) kind: RowKind,
    /// Columns of the table, sequence number and kind; one row.
    pub(super) row: RecordBatch,
}

/// What reading a file gave.
#[derive(Debug)]
pub(super) enum FileRows {
    Found(Vec<FoundRow>),
    /// It cannot be read, and why.
    Unread(String),
}

/// Reads files for one key.
pub(super) struct RowReader {
    pub(super) context: Arc<ReadContext>,
    pub(super) rules: Arc<MergeRules>,
    pub(super) budget: Arc<dyn MemoryBudget>,
    pub(super) held: Held,
    key: Key,
    at_once: usize,
}

impl RowReader {
    pub(super) fn new(history: &History, key: &Key, budget: &Arc<dyn MemoryBudget>, zone: Zone) -> Result<Self> {
        let pin = &history.pin;
        let mut columns: Vec<ReadColumn> = (0..pin.schema.fields.len()).map(ReadColumn::Field).collect();
        columns.extend([ReadColumn::SequenceNumber, ReadColumn::ValueKind]);
        let options =
            ReadOptions { batch_size: 8192, parallelism: 4, zone, budget: Arc::clone(budget), keep_selections: false };
        let caches = Arc::clone(&history.env().read);
        let context = ReadContext::try_new(Arc::clone(pin), ScanKind::Full, true, columns, options, caches)?;
        Ok(Self {
            context,
            rules: Arc::new(MergeRules::try_new(&pin.schema, &pin.options)?),
            budget: Arc::clone(budget),
            held: Held::new(budget),
            key: key.clone(),
            at_once: history.env().scan.concurrency.clamp(1, 8),
        })
    }

    /// Number of data files opened so far.
    #[cfg(test)]
    pub(super) fn opened(&self) -> u64 {
        self.context.counters.key_files()
    }

    /// The rows of the key in some files.
    ///
    /// # Errors
    /// Storage that does not answer, memory refused; what is wrong with a file is told beside the others.
    pub(super) async fn read(&mut self, files: &[Arc<PlannedFile>]) -> Result<Vec<FileRows>> {
        let matcher = self.key.matcher(&self.context.pin.schema)?;
        let ordering = self.rules.snapshot_ordering();
        let reads: Vec<_> = files
            .iter()
            .map(|file| {
                let (context, file, matcher) = (Arc::clone(&self.context), Arc::clone(file), matcher.clone());
                async move { versions(&context, &file, &matcher, ordering).await }
            })
            .collect();
        let read: Vec<Result<Option<FoundRows>>> = stream::iter(reads).buffered(self.at_once).collect().await;
        let mut all = Vec::with_capacity(read.len());
        for found in read {
            all.push(match found {
                Ok(None) => FileRows::Found(Vec::new()),
                Ok(Some(found)) => {
                    self.held.grow(found.rows.get_array_memory_size())?;
                    FileRows::Found(rows_of(&found)?)
                }
                Err(error) => match error.kind() {
                    ErrorKind::Exhausted | ErrorKind::Unavailable | ErrorKind::Internal => return Err(error),
                    _ => FileRows::Unread(error.message().to_string()),
                },
            });
        }
        Ok(all)
    }

    /// Those of all files of a life table.
    pub(super) async fn read_all(&mut self, lives: &Lives) -> Result<BTreeMap<Ident, FileRows>> {
        let files: Vec<Arc<PlannedFile>> = lives.files.values().map(|life| Arc::clone(&life.planned)).collect();
        let rows = self.read(&files).await?;
        Ok(files.iter().map(|file| ident(&file.entry)).zip(rows).collect())
    }
}

fn rows_of(found: &FoundRows) -> Result<Vec<FoundRow>> {
    let width = found.rows.num_columns();
    let column = |back: usize| {
        let at = width.checked_sub(back);
        at.and_then(|at| found.rows.columns().get(at))
            .ok_or_else(|| Error::internal("a data file gave too few columns"))
    };
    let (sequence, kinds) = (column(2)?.as_primitive::<Int64Type>(), column(1)?.as_primitive::<Int8Type>());
    let one = |(row, position): (usize, &u64)| {
        let kind = kinds.value(row);
        let kind = RowKind::from_byte(kind).ok_or_else(|| Error::corrupt(format!("{kind} is no row kind")))?;
        Ok(FoundRow { position: *position, sequence: sequence.value(row), kind, row: found.rows.slice(row, 1) })
    };
    found.positions.iter().enumerate().map(one).collect()
}
