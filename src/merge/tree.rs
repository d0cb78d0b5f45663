//! Merging sorted runs into rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::record_batch::RecordBatch;
use futures::stream::{self, BoxStream, StreamExt};

use super::budget::MemoryBudget;
use super::rules::MergeRules;
use crate::error::{Error, Result};

/// One sorted run: batches in key order, no key twice.
pub struct RunInput {
    /// Level of all its files. Matters only when [`MergeRules::needs_lookup`]; a run of several levels must then be
    /// split ([`runs_of_one_level`](super::runs_of_one_level)).
    pub level: i32,
    /// How errors name the run, for instance its file names; empty: by its number.
    pub name: String,
    /// The batches.
    pub stream: BoxStream<'static, Result<RecordBatch>>,
}

impl RunInput {
    /// A run of one level.
    pub fn new(level: i32, stream: BoxStream<'static, Result<RecordBatch>>) -> Self {
        Self { level, name: String::new(), stream }
    }

    /// Gives the run a name for errors.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
}

/// How to run a merge.
#[derive(Clone)]
pub struct MergeOptions {
    /// Rows of a batch given out.
    pub batch_size: usize,
    /// Whether rows of result kind -U and -D are given out (`$audit_log`).
    pub keep_deletes: bool,
    /// Memory.
    pub budget: Arc<dyn MemoryBudget>,
    /// Counts what went by.
    pub counters: Arc<MergeCounters>,
}

impl MergeOptions {
    /// Options that drop deletes.
    pub fn new(batch_size: usize, budget: Arc<dyn MemoryBudget>) -> Self {
        Self { batch_size, keep_deletes: false, budget, counters: Arc::default() }
    }
}

/// What a merge has seen so far; complete when its stream has ended. `rows = (keys - tombstones) + tombstones +
/// superseded`.
#[derive(Debug, Default)]
pub struct MergeCounters {
    rows: AtomicU64,
    keys: AtomicU64,
    tombstones: AtomicU64,
}

impl MergeCounters {
    /// Rows read.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Distinct keys.
    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    /// Keys whose result is a retract or nothing.
    pub fn tombstones(&self) -> u64 {
        self.tombstones.load(Ordering::Relaxed)
    }

    /// Rows beyond one per key.
    pub fn superseded(&self) -> u64 {
        self.rows() - self.keys()
    }
}

/// Merges `runs`, whose batches have the table columns `columns` (from [`MergeRules::required_columns`]), then
/// `_SEQUENCE_NUMBER` and `_VALUE_KIND`. Gives batches of the same layout, one row per key, in key order; the kind is
/// the kind of the result, the sequence number that of the last record.
///
/// A run that is not in strict key order is an error of kind Corrupt that names the run; memory refused is an error of
/// kind Exhausted, code `ResourcesExhausted`, that names bytes and runs.
pub fn merge_runs(
    runs: Vec<RunInput>,
    rules: Arc<MergeRules>,
    columns: &[usize],
    options: MergeOptions,
) -> BoxStream<'static, Result<RecordBatch>> {
    let _ = (runs, rules, columns, options);
    stream::once(async { Err(Error::internal("not built yet")) }).boxed()
}
