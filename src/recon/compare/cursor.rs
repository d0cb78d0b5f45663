//! Rows of a side in key order, one after another, with a look at the next.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::row::{Row, Rows};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::EmptyRecordBatchStream;
use futures::StreamExt;

use super::convert::any_null;
use super::judge::Judge;
use super::side::Form;
use crate::error::{Error, Result};

/// A batch and what is known of its rows.
#[derive(Debug)]
pub struct Loaded {
    /// The rows, in common form.
    pub batch: RecordBatch,
    keys: Rows,
    null_key: Option<BooleanBuffer>,
    unread_key: Option<BooleanBuffer>,
    unsure: Option<BooleanBuffer>,
    late: Option<BooleanBuffer>,
}

fn is_set(bits: Option<&BooleanBuffer>, row: usize) -> bool {
    bits.is_some_and(|bits| row < bits.len() && bits.value(row))
}

/// A row.
#[derive(Debug, Clone)]
pub struct At {
    /// Its batch.
    pub batch: Arc<Loaded>,
    /// Which of them.
    pub row: usize,
}

impl At {
    /// Its key.
    pub fn key(&self) -> Row<'_> {
        self.batch.keys.row(self.row)
    }

    /// Whether a column of its key is NULL.
    pub fn has_null_key(&self) -> bool {
        is_set(self.batch.null_key.as_ref(), self.row)
    }

    /// Whether a column of its key could not be read.
    pub fn has_unread_key(&self) -> bool {
        is_set(self.batch.unread_key.as_ref(), self.row)
    }

    /// Whether it is not known that it meets the condition: a value could not be read.
    pub fn is_unsure(&self) -> bool {
        is_set(self.batch.unsure.as_ref(), self.row)
    }

    /// Whether it is newer than the horizon.
    pub fn is_late(&self) -> bool {
        is_set(self.batch.late.as_ref(), self.row)
    }
}

/// Goes through a side.
pub struct Cursor {
    rows: SendableRecordBatchStream,
    form: Arc<Form>,
    judge: Arc<Judge>,
    name: String,
    keys: usize,
    current: Option<Arc<Loaded>>,
    next: Option<Arc<Loaded>>,
    row: usize,
    ended: bool,
    /// Whether the rows it goes past are kept until they are counted.
    counts: bool,
    /// Rows it went past and that are not counted yet.
    passed: Vec<RecordBatch>,
    /// Rows of the current batch that are counted.
    counted: usize,
}

impl Cursor {
    /// Goes through `rows`, which come in the order of the form's keys.
    pub fn new(rows: SendableRecordBatchStream, form: &Arc<Form>, judge: &Arc<Judge>, name: &str, keys: usize) -> Self {
        Self {
            rows,
            form: Arc::clone(form),
            judge: Arc::clone(judge),
            name: name.to_string(),
            keys,
            current: None,
            next: None,
            row: 0,
            ended: false,
            counts: true,
            passed: Vec::new(),
            counted: 0,
        }
    }

    /// The same for rows that nobody counts: they are not kept.
    pub fn uncounted(self) -> Self {
        Self { counts: false, ..self }
    }

    /// Reads no more: what its source still gives is not wanted.
    pub fn close(&mut self) {
        self.rows = Box::pin(EmptyRecordBatchStream::new(Arc::clone(&self.form.schema)));
        (self.next, self.ended) = (None, true);
    }

    async fn load(&mut self) -> Result<Option<Arc<Loaded>>> {
        while !self.ended {
            let Some(batch) = self.rows.next().await else {
                self.ended = true;
                break;
            };
            let batch = batch.map_err(Error::from_datafusion)?;
            if batch.num_rows() == 0 {
                continue;
            }
            let columns = batch.columns().get(..self.keys).unwrap_or_default();
            let keys = self.form.keys.convert_columns(columns)?;
            let null_key = any_null(columns, batch.num_rows());
            let unread = self.form.unread.iter().take(self.keys).flatten();
            let mut unread_key: Option<BooleanBuffer> = None;
            for column in unread.filter_map(|at| batch.columns().get(*at)).filter(|c| c.null_count() < c.len()) {
                let set = arrow::compute::is_not_null(column)?;
                unread_key = Some(match unread_key {
                    Some(bits) => &bits | set.values(),
                    None => set.values().clone(),
                });
            }
            let unsure = match self.form.unsure.and_then(|at| batch.columns().get(at)) {
                Some(column) if column.null_count() < column.len() => {
                    Some(arrow::compute::is_not_null(column)?.values().clone())
                }
                _ => None,
            };
            let late = self.judge.late(&batch)?;
            return Ok(Some(Arc::new(Loaded { batch, keys, null_key, unread_key, unsure, late })));
        }
        Ok(None)
    }

    /// Rows it went past since the last call.
    pub fn passed(&mut self) -> Vec<RecordBatch> {
        self.pass();
        std::mem::take(&mut self.passed)
    }

    fn pass(&mut self) {
        if let Some(current) = self.current.as_ref().filter(|_| self.counts)
            && self.row > self.counted
        {
            self.passed.push(current.batch.slice(self.counted, self.row - self.counted));
            self.counted = self.row;
        }
    }

    /// The row it stands at; None behind the last.
    pub async fn here(&mut self) -> Result<Option<At>> {
        loop {
            if let Some(batch) = &self.current
                && self.row < batch.batch.num_rows()
            {
                return Ok(Some(At { batch: Arc::clone(batch), row: self.row }));
            }
            self.pass();
            (self.row, self.counted) = (0, 0);
            self.current = match self.next.take() {
                Some(next) => Some(next),
                None => self.load().await?,
            };
            if self.current.is_none() {
                return Ok(None);
            }
        }
    }

    /// Whether the row behind this one has the same key.
    ///
    /// # Errors
    /// `SourceOrder` for one with a lesser key.
    pub async fn repeats(&mut self) -> Result<bool> {
        let Some(current) = self.current.clone() else { return Ok(false) };
        let key = current.keys.row(self.row);
        let order = if self.row + 1 < current.batch.num_rows() {
            current.keys.row(self.row + 1).cmp(&key)
        } else {
            if self.next.is_none() {
                self.next = self.load().await?;
            }
            match &self.next {
                Some(next) => next.keys.row(0).cmp(&key),
                None => return Ok(false),
            }
        };
        match order {
            Ordering::Equal => Ok(true),
            Ordering::Greater => Ok(false),
            Ordering::Less => Err(Error::internal(format!(
                "rows of {} did not come in the order of the key, in which they were to come",
                self.name
            ))
            .with_code("SourceOrder")
            .with_hint("name it by a query that does not sort, or as a file: it is sorted here then")),
        }
    }

    /// Goes to the next row.
    pub fn advance(&mut self) {
        self.row += 1;
    }

    /// The rows with the key of this one; goes behind them.
    ///
    /// # Errors
    /// `KeyNotUnique` for more than `most`.
    pub async fn group(&mut self, most: usize) -> Result<Vec<At>> {
        let mut rows = Vec::new();
        loop {
            rows.extend(self.here().await?);
            let repeats = self.repeats().await?;
            self.advance();
            if !repeats {
                return Ok(rows);
            }
            if rows.len() >= most {
                return Err(Error::invalid(format!("more than {most} rows of {} have one key", self.name))
                    .with_code("KeyNotUnique")
                    .with_hint("columns that so many rows share are no key: add more columns to it"));
            }
        }
    }
}
