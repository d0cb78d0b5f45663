//! Merging sorted runs into rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::record_batch::RecordBatch;
use futures::stream::{self, BoxStream, StreamExt};

use super::assemble::{Assembler, Item};
use super::budget::MemoryBudget;
use super::keys::Keys;
use super::loser_tree::LoserTree;
use super::order::{self, Record};
use super::rules::MergeRules;
use super::run::{Filled, Layout, Runs};
use crate::error::Result;

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
        self.rows().saturating_sub(self.keys())
    }

    pub(super) fn add(&self, rows: u64, keys: u64, tombstones: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.keys.fetch_add(keys, Ordering::Relaxed);
        self.tombstones.fetch_add(tombstones, Ordering::Relaxed);
    }
}

/// Merges `runs`, whose batches have the table columns `columns` (from [`MergeRules::required_columns`]), then
/// `_SEQUENCE_NUMBER` and `_VALUE_KIND`. Gives batches of the same layout, one row per key, in key order; the kind is
/// the kind of the result, the sequence number that of the last record.
///
/// A key with a single record is given as it is, whatever the engine; a retract among them is dropped unless deletes
/// are kept.
///
/// A run that is not in strict key order is an error of kind Corrupt that names the run; memory refused is an error of
/// kind Exhausted, code `ResourcesExhausted`, that names bytes and runs. Memory: one batch a run, and the batches of the
/// rows that are being given out.
pub fn merge_runs(
    runs: Vec<RunInput>,
    rules: Arc<MergeRules>,
    columns: &[usize],
    options: MergeOptions,
) -> BoxStream<'static, Result<RecordBatch>> {
    let columns = columns.to_vec();
    let state = State::Start(runs, rules, columns, options);
    stream::try_unfold(state, |state| async move {
        let mut merge = match state {
            State::Start(runs, rules, columns, options) => {
                Box::new(Merge::start(runs, &rules, columns, options).await?)
            }
            State::Running(merge) => merge,
        };
        Ok(merge.next().await?.map(|batch| (batch, State::Running(merge))))
    })
    .boxed()
}

enum State {
    Start(Vec<RunInput>, Arc<MergeRules>, Vec<usize>, MergeOptions),
    Running(Box<Merge>),
}

/// A merge under way.
struct Merge {
    runs: Runs,
    tree: LoserTree,
    assembler: Assembler,
    /// The run whose next batch is wanted before anything can be compared.
    starving: Option<usize>,
    /// Finished keys, in order.
    items: Vec<Item>,
    pending: usize,
    /// Records of the key being collected.
    open: Vec<Record>,
    lookup: bool,
    batch_size: usize,
    descending: bool,
}

impl Merge {
    async fn start(
        inputs: Vec<RunInput>,
        rules: &MergeRules,
        columns: Vec<usize>,
        options: MergeOptions,
    ) -> Result<Self> {
        let layout = Layout::try_new(rules, columns)?;
        let assembler = Assembler::try_new(rules, &layout, &options)?;
        let runs = Runs::open(inputs, layout, Arc::clone(&options.budget)).await?;
        let tree = LoserTree::new(runs.len(), |a, b| runs.less(a, b));
        Ok(Self {
            runs,
            tree,
            assembler,
            starving: None,
            items: Vec::new(),
            pending: 0,
            open: Vec::new(),
            lookup: rules.needs_lookup(),
            batch_size: options.batch_size.max(1),
            descending: rules.sequence_descending(),
        })
    }

    /// The next batch that has rows.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(run) = self.starving {
                match self.runs.fill(run).await? {
                    Filled::Yes => {
                        self.starving = None;
                        self.tree.replay(|a, b| self.runs.less(a, b));
                    }
                    // giving out what is ready may free enough
                    Filled::Refused(_) if self.pending > 0 => {
                        if let Some(batch) = self.flush()? {
                            return Ok(Some(batch));
                        }
                    }
                    Filled::Refused(error) => return Err(error),
                }
                continue;
            }
            if self.pending >= self.batch_size {
                if let Some(batch) = self.flush()? {
                    return Ok(Some(batch));
                }
                continue;
            }
            let winner = self.runs.head(self.tree.winner());
            if let (Some(first), Some(head)) = (self.open.first(), &winner) {
                if self.runs.has_key_of(head, first.at) {
                    let record = self.runs.record(head)?;
                    self.open.push(record);
                    self.advance(head.run, 1);
                    continue;
                }
            }
            if !self.open.is_empty() {
                self.close()?;
                continue;
            }
            let Some(head) = winner else {
                return if self.pending > 0 { self.flush() } else { Ok(None) };
            };
            let next = self.tree.runner_up(|a, b| self.runs.less(a, b)).and_then(|run| self.runs.head(run));
            let room = head.row.saturating_add(self.batch_size - self.pending).min(head.keys.len());
            // below the next run's key nothing else has these keys
            let alone = match &next {
                None => room,
                Some(next) => head.keys.lower_bound(head.row, room, next.keys, next.row),
            };
            let (run, rows) = (head.run, alone - head.row);
            if rows > 0 {
                self.items.push(Item::Alone { batch: head.batch, from: head.row, rows });
                self.pending += rows;
                self.advance(run, rows);
            } else {
                let record = self.runs.record(&head)?;
                self.open.push(record);
                self.advance(run, 1);
            }
        }
    }

    fn advance(&mut self, run: usize, rows: usize) {
        if self.runs.advance(run, rows) {
            self.tree.replay(|a, b| self.runs.less(a, b));
        } else {
            self.starving = Some(run);
        }
    }

    /// The key being collected is complete.
    fn close(&mut self) -> Result<()> {
        let mut records = std::mem::take(&mut self.open);
        let versions = records.len();
        if versions > 1 {
            order::sort(&mut records, |a, b| self.runs.compare_user_sequence(a, b, self.descending));
            if self.lookup {
                order::retain_lookup(&mut records);
            }
        }
        self.items.push(Item::Key { records, versions });
        self.pending += 1;
        Ok(())
    }

    /// Gives out the finished keys; None when none of them left a row.
    fn flush(&mut self) -> Result<Option<RecordBatch>> {
        let items = std::mem::take(&mut self.items);
        self.pending = 0;
        let batch = self.assembler.assemble(items, &self.runs)?;
        self.runs.release(&self.open);
        Ok(batch)
    }
}

/// The first unread row of a run.
pub(super) struct Head<'a> {
    pub(super) run: usize,
    pub(super) batch: u32,
    pub(super) row: usize,
    pub(super) keys: &'a Keys,
}
