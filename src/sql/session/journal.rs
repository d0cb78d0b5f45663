//! What each statement read goes into the session's journal when its last row was given.

use std::pin::Pin as StdPin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use super::Session;
use crate::error::{Error, Result};
use crate::notice::{Notice, NoticeKind};
use crate::recon::journal::{CANCELLED, COMPLETE, ReadState, Reading};
use crate::snapshot::Table;
use crate::spec::Snapshot;
use crate::sql::result::{Readings, StatementKind, StatementResult};
use crate::sql::settings::Settings;
use crate::storage::env::now_millis;

/// Statements that are recorded though they failed: that a gate stayed shut is an answer.
const ANSWERS: &[&str] = &["WAIT", "RECONCILE"];

/// What a gate looked at: it reads no rows, so that nothing of it is pinned.
#[derive(Default)]
pub(super) struct Looked(Mutex<Vec<ReadState>>);

impl Looked {
    /// Replaces what is known of.
    pub(super) fn at<'a>(&self, states: impl Iterator<Item = (&'a Table, Option<&'a Snapshot>)>) {
        *self.0.lock() = states.map(|(table, snapshot)| ReadState::of(table, snapshot)).collect();
    }
}

/// A statement under way. Dropped before its end, it was given up.
pub(super) struct Noted {
    settings: Arc<Settings>,
    reading: Option<Reading>,
    began: Instant,
}

impl Session {
    /// Begins the entry of a statement; None: the session keeps no journal.
    pub(super) fn noting(&self, tokens: &[TokenWithSpan]) -> Option<Noted> {
        let journal = self.settings().journal.read().clone()?;
        let word = tokens.iter().find_map(|token| match &token.token {
            Token::Word(word) => Some(word.value.to_uppercase()),
            _ => None,
        });
        let reading = Reading {
            time_millis: now_millis(),
            duration_millis: 0,
            session: journal.session().to_string(),
            statement: word.unwrap_or_default(),
            outcome: String::new(),
            rows: 0,
            tables: Vec::new(),
        };
        Some(Noted { settings: Arc::clone(self.settings()), reading: Some(reading), began: Instant::now() })
    }

    /// That the journal could not be written, where no statement told it yet: to ask when the session ends.
    pub fn journal_failure(&self) -> Option<Notice> {
        failure(self.settings())
    }
}

fn failure(settings: &Settings) -> Option<Notice> {
    let error = settings.journal_failed.lock().take()?;
    settings.journal_told.store(true, Ordering::Relaxed);
    Some(NoticeKind::JournalFailed { why: error.message().to_string() }.into())
}

impl Noted {
    fn end(&mut self, outcome: &str) {
        let Some(mut reading) = self.reading.take() else { return };
        reading.duration_millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        reading.outcome = outcome.to_string();
        let Some(journal) = self.settings.journal.read().clone() else { return };
        match journal.record(&reading) {
            Ok(()) => self.settings.journal_told.store(false, Ordering::Relaxed),
            // no statement fails for it: the next one tells
            Err(error) if !self.settings.journal_told.load(Ordering::Relaxed) => {
                *self.settings.journal_failed.lock() = Some(error);
            }
            Err(_) => {}
        }
    }

    fn reads(&mut self, readings: &Readings) {
        if let Some(reading) = &mut self.reading {
            reading.tables = readings.0.iter().map(|used| ReadState::from(used.pin.as_ref())).collect();
        }
    }

    /// The same answer, whose end is recorded. Statements that read no table, and looked at none, are not.
    pub(super) fn of(mut self, mut answer: Result<StatementResult>, looked: Looked) -> Result<StatementResult> {
        let looked = looked.0.into_inner();
        match &mut answer {
            Err(error) => {
                if let Some(reading) = &mut self.reading {
                    reading.tables = looked;
                }
                let answers =
                    self.reading.as_ref().is_some_and(|reading| ANSWERS.contains(&reading.statement.as_str()));
                if answers { self.end(error.code()) } else { self.reading = None }
            }
            Ok(result) if result.readings.0.is_empty() && looked.is_empty() => self.reading = None,
            Ok(result) => {
                if let Some(notice) = failure(&self.settings) {
                    result.notices.push(notice);
                }
                self.reads(&result.readings);
                if let (true, Some(reading)) = (result.readings.0.is_empty(), &mut self.reading) {
                    reading.tables = looked;
                }
                match result.kind {
                    StatementKind::Done(_) => self.end(COMPLETE),
                    StatementKind::Rows => {
                        let empty = Box::pin(futures::stream::empty());
                        let schema = Arc::clone(&result.schema);
                        let none = RecordBatchStreamAdapter::new(schema, empty);
                        let rows = std::mem::replace(&mut result.stream, Box::pin(none));
                        result.stream = Box::pin(NotedRows { rows, noted: self });
                    }
                }
            }
        }
        answer
    }

    /// Records how a statement ended whose answer is no stream of rows.
    pub(super) fn ended<T>(noted: Option<Self>, readings: &Readings, answer: &Result<T>) {
        let Some(mut noted) = noted else { return };
        noted.reads(readings);
        noted.end(match answer {
            Ok(_) => COMPLETE,
            Err(error) => error.code(),
        });
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.end(CANCELLED);
    }
}

/// Rows that are counted until their end.
struct NotedRows {
    rows: SendableRecordBatchStream,
    noted: Noted,
}

impl Stream for NotedRows {
    type Item = DfResult<RecordBatch>;

    fn poll_next(mut self: StdPin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = std::task::ready!(self.rows.poll_next_unpin(cx));
        match &next {
            Some(Ok(batch)) => {
                if let Some(reading) = &mut self.noted.reading {
                    reading.rows += batch.num_rows() as u64;
                }
            }
            Some(Err(error)) => {
                let code = own_code(error).unwrap_or("Execution");
                self.noted.end(code);
            }
            None => self.noted.end(COMPLETE),
        }
        Poll::Ready(next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

/// The code of our own error inside one of DataFusion.
fn own_code(error: &DataFusionError) -> Option<&'static str> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(one) = cause {
        if let Some(own) = one.downcast_ref::<Error>() {
            return Some(own.code());
        }
        cause = one.source();
    }
    None
}

impl RecordBatchStream for NotedRows {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}
