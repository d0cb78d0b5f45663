//! Merging sorted runs into rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::record_batch::RecordBatch;
use futures::stream::{self, BoxStream, StreamExt};

use super::assemble::{Assembler, Item};
use super::keys::Keys;
use super::loser_tree::LoserTree;
use super::order::{self, Record};
use super::rules::MergeRules;
use super::run::{Filled, Layout, Runs};
use crate::error::Result;
use crate::memory::MemoryBudget;

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
    /// Whether the user sequence is an order.
    total: bool,
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
            total: rules.sequence_is_total(),
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
            if let (Some(first), Some(head)) = (self.open.first(), &winner)
                && self.runs.has_key_of(head, first.at)
            {
                let (run, record) = (head.run, self.runs.record(head)?);
                self.open.push(record);
                self.advance(run, 1);
                continue;
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
            // a long stretch goes out as it lies in memory, on its own
            let long = rows >= self.batch_size.div_ceil(4);
            if long && self.pending > 0 {
                if let Some(batch) = self.flush()? {
                    return Ok(Some(batch));
                }
                continue;
            }
            if rows > 0 {
                self.items.push(Item::Alone { batch: head.batch, from: head.row, rows });
                self.pending += rows;
                self.advance(run, rows);
                if long && let Some(batch) = self.flush()? {
                    return Ok(Some(batch));
                }
            } else {
                // the next run has this key, too
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
        order::sort(&mut records, self.total, |a, b| self.runs.compare_user_sequence(a, b, self.descending));
        if self.lookup {
            order::retain_lookup(&mut records);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures::TryStreamExt;

    use super::*;
    use crate::error::{Error, ErrorKind};
    use crate::memory::Unbounded;
    use crate::merge::testkit::{Row, int_batch, int_rows, options, row, schema};
    use crate::spec::RowKind::{self, Delete, Insert, UpdateAfter, UpdateBefore};

    type Values = [Option<i32>; 3];
    type Versions = [(RowKind, Values); 2];

    const COLUMNS: &[&str] = &["k", "a", "b", "c"];

    #[derive(Debug)]
    struct Limited {
        limit: usize,
        used: AtomicUsize,
    }

    impl MemoryBudget for Limited {
        fn try_grow(&self, bytes: usize) -> Result<()> {
            if self.used.load(Ordering::Relaxed) + bytes > self.limit {
                return Err(Error::exhausted("the pool is empty"));
            }
            self.used.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }

        fn shrink(&self, bytes: usize) {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn rules(pairs: &[(&str, &str)]) -> Arc<MergeRules> {
        let options = options(pairs);
        Arc::new(MergeRules::try_new(&schema(COLUMNS, &["k"]), &options).unwrap())
    }

    fn run(level: i32, batches: Vec<Vec<Row>>) -> RunInput {
        let batches: Vec<Result<RecordBatch>> = batches.iter().map(|rows| Ok(int_batch(COLUMNS, rows))).collect();
        RunInput::new(level, stream::iter(batches).boxed())
    }

    fn collect(runs: Vec<RunInput>, pairs: &[(&str, &str)], options: MergeOptions) -> Result<Vec<Row>> {
        let batches: Vec<RecordBatch> =
            futures::executor::block_on(merge_runs(runs, rules(pairs), &[0, 1, 2, 3], options).try_collect())?;
        Ok(batches.iter().flat_map(int_rows).collect())
    }

    /// Merges records of key 1, each in a run of its own, with sequence numbers in the order given; the values of the
    /// result and its kind, deletes kept.
    fn fold(
        pairs: &[(&str, &str)],
        records: &[(RowKind, [Option<i32>; 3])],
    ) -> Result<Vec<([Option<i32>; 3], RowKind)>> {
        let runs = records
            .iter()
            .zip(1..)
            .map(|((kind, [a, b, c]), sequence)| {
                run(0, vec![vec![Row { values: vec![Some(1), *a, *b, *c], sequence, kind: *kind }]])
            })
            .collect();
        let mut options = MergeOptions::new(10, Arc::new(Unbounded));
        options.keep_deletes = true;
        let rows = collect(runs, pairs, options)?;
        Ok(rows.into_iter().map(|row| ([row.values[1], row.values[2], row.values[3]], row.kind)).collect())
    }

    fn unbounded() -> MergeOptions {
        MergeOptions::new(10, Arc::new(Unbounded))
    }

    #[test]
    fn upserts_are_not_extra_rows_and_deletes_hide_older_ones() {
        let runs = vec![
            run(0, vec![vec![row(1, 1, Insert), row(2, 2, Insert)], vec![row(3, 3, Insert)]]),
            run(0, vec![vec![row(1, 4, UpdateAfter), row(3, 5, Delete), row(9, 6, Delete)]]),
        ];
        let options = unbounded();
        let counters = Arc::clone(&options.counters);
        assert_eq!(collect(runs, &[], options).unwrap(), [row(1, 4, UpdateAfter), row(2, 2, Insert)]);
        assert_eq!((counters.rows(), counters.keys(), counters.tombstones(), counters.superseded()), (6, 4, 2, 2));
    }

    #[test]
    fn files_with_equal_numbers_lose_no_key_and_the_later_run_wins() {
        let mut late = row(2, 5, Insert);
        late.values[1] = Some(77);
        let runs = vec![
            run(0, vec![vec![row(1, 5, Insert), row(2, 5, Insert)]]),
            run(0, vec![vec![late.clone(), row(3, 5, Insert)]]),
        ];
        assert_eq!(collect(runs, &[], unbounded()).unwrap(), [row(1, 5, Insert), late, row(3, 5, Insert)]);
    }

    #[test]
    fn lookup_tables_fold_the_lowest_upper_level_only() {
        // pk_changelog_lookup_agg, snapshot 6, key 2: levels 5, 4, 3 hold 2, 4 and 6
        let of = |level, sequence, v| {
            let values = vec![Some(2), Some(v), None, None];
            run(level, vec![vec![Row { values, sequence, kind: Insert }]])
        };
        let pairs =
            [("merge-engine", "aggregation"), ("fields.a.aggregate-function", "sum"), ("changelog-producer", "lookup")];
        let sum = |runs| collect(runs, &pairs, unbounded()).unwrap()[0].values[1];
        assert_eq!(sum(vec![of(5, 2, 2), of(4, 9, 4), of(3, 15, 6)]), Some(6));
        assert_eq!(sum(vec![of(5, 2, 2), of(4, 9, 4), of(0, 16, 10), of(0, 17, 1)]), Some(15));
        assert_eq!(sum(vec![of(5, 2, 2), of(0, 1, 10)]), Some(12), "a level counts whatever its number");
    }

    #[test]
    fn partial_update_starts_afresh_after_a_delete() {
        let pairs = [("merge-engine", "partial-update"), ("partial-update.remove-record-on-delete", "true")];
        let rows = fold(
            &pairs,
            &[(Insert, [Some(1), Some(1), Some(1)]), (Delete, [None, None, None]), (Insert, [Some(1), Some(2), None])],
        );
        assert_eq!(rows.unwrap(), [([Some(1), Some(2), None], Insert)]);
    }

    #[test]
    fn sequence_groups_are_independent() {
        // a guards b; c is free
        let pairs = [("merge-engine", "partial-update"), ("fields.a.sequence-group", "b")];
        let cases: [(&str, Versions, Values); 5] = [
            (
                "an older group keeps its values, the free column changes",
                [(Insert, [Some(5), Some(50), Some(1)]), (Insert, [Some(3), Some(30), Some(2)])],
                [Some(5), Some(50), Some(2)],
            ),
            (
                "a group without a sequence is skipped",
                [(Insert, [Some(5), Some(50), None]), (Insert, [None, Some(30), None])],
                [Some(5), Some(50), None],
            ),
            (
                "an equal sequence takes the later write",
                [(Insert, [Some(5), Some(50), None]), (Insert, [Some(5), Some(51), None])],
                [Some(5), Some(51), None],
            ),
            (
                "an accepted NULL overwrites",
                [(Insert, [Some(5), Some(50), None]), (Insert, [Some(6), None, None])],
                [Some(6), None, None],
            ),
            (
                "a delete of the group sets its columns to NULL",
                [(Insert, [Some(5), Some(50), Some(1)]), (Delete, [Some(6), Some(50), Some(1)])],
                [Some(6), None, Some(1)],
            ),
        ];
        for (what, records, expected) in cases {
            assert_eq!(fold(&pairs, &records).unwrap(), [(expected, Insert)], "{what}");
        }
    }

    #[test]
    fn a_delete_that_its_group_accepts_removes_the_row() {
        let pairs = [
            ("merge-engine", "partial-update"),
            ("fields.a.sequence-group", "b"),
            ("partial-update.remove-record-on-sequence-group", "a"),
        ];
        let first = (Insert, [Some(5), Some(50), Some(1)]);
        let rows = fold(&pairs, &[first, (Delete, [Some(6), Some(9), None])]).unwrap();
        assert_eq!(rows, [([Some(6), Some(9), None], Delete)]);
        let rows = fold(&pairs, &[first, (UpdateBefore, [Some(6), Some(9), None])]).unwrap();
        assert_eq!(rows, [([Some(6), None, Some(1)], Insert)], "-U only empties the group");
        let rows = fold(&pairs, &[first, (Delete, [Some(4), Some(9), None])]).unwrap();
        assert_eq!(rows, [(first.1, Insert)], "an older delete does nothing");
    }

    #[test]
    fn a_first_retract_fills_the_row_and_alone_is_a_delete() {
        let pairs = [("merge-engine", "partial-update"), ("ignore-delete", "true")];
        let rows = fold(&pairs, &[(Delete, [Some(1), None, None]), (Insert, [None, Some(2), None])]).unwrap();
        assert_eq!(rows, [([Some(1), Some(2), None], Insert)]);
        let rows = fold(&pairs, &[(Delete, [Some(1), None, None]), (Delete, [Some(2), None, None])]).unwrap();
        assert_eq!(rows, [([Some(1), None, None], Delete)]);
    }

    #[test]
    fn sequence_fields_of_an_aggregation_are_not_aggregated() {
        let pairs =
            [("merge-engine", "aggregation"), ("fields.default-aggregate-function", "sum"), ("sequence.field", "a")];
        let rows = fold(&pairs, &[(Insert, [Some(7), Some(1), None]), (Insert, [Some(5), Some(2), None])]).unwrap();
        assert_eq!(rows, [([Some(7), Some(3), None], Insert)]);
    }

    #[test]
    fn a_lone_retract_is_not_folded() {
        let pairs = [("merge-engine", "aggregation"), ("fields.default-aggregate-function", "sum")];
        let record = (UpdateBefore, [Some(7), Some(1), None]);
        assert_eq!(fold(&pairs, &[record]).unwrap(), [(record.1, UpdateBefore)]);
        let first_row = [("merge-engine", "first-row")];
        assert_eq!(fold(&first_row, &[record]).unwrap(), [(record.1, UpdateBefore)]);
        let error = fold(&first_row, &[record, (Insert, [None, None, None])]).unwrap_err();
        assert_eq!(error.code(), "RetractUnsupported");
    }

    #[test]
    fn first_row_keeps_the_first_and_skips_retracts() {
        let pairs = [("merge-engine", "first-row"), ("ignore-delete", "true")];
        let records =
            [(Delete, [Some(0), None, None]), (Insert, [Some(1), None, None]), (Insert, [Some(2), None, None])];
        assert_eq!(fold(&pairs, &records).unwrap(), [([Some(1), None, None], Insert)]);
    }

    #[test]
    fn overflow_and_retracts_that_cannot_be_taken_name_the_column() {
        let pairs = [("merge-engine", "aggregation"), ("fields.a.aggregate-function", "sum")];
        let error =
            fold(&pairs, &[(Insert, [Some(i32::MAX), None, None]), (Insert, [Some(1), None, None])]).unwrap_err();
        let context = [("column", "a".to_string()), ("key", "1".to_string())];
        assert_eq!((error.code(), error.context()), ("AggregateOverflow", &context[..]));
        assert!(error.hint().is_some());
        let pairs = [("merge-engine", "aggregation"), ("fields.a.aggregate-function", "max")];
        let error = fold(&pairs, &[(Insert, [Some(1), None, None]), (Delete, [Some(1), None, None])]).unwrap_err();
        let context = [
            ("column", "a".to_string()),
            ("option", "fields.a.aggregate-function".to_string()),
            ("key", "1".to_string()),
        ];
        assert_eq!((error.code(), error.context()), ("RetractUnsupported", &context[..]));
    }

    #[test]
    fn a_product_can_overflow_and_begins_with_what_is_taken_back_from_nothing() {
        let pairs = [("merge-engine", "aggregation"), ("fields.a.aggregate-function", "product")];
        let two = |first: Option<i32>, kind, second| {
            fold(&pairs, &[(Insert, [first, None, None]), (kind, [Some(second), None, None])])
        };
        assert_eq!(two(Some(2_000_000_000), Insert, 2).unwrap_err().code(), "AggregateOverflow");
        assert_eq!(two(None, Delete, 3).unwrap(), [([Some(3), None, None], Insert)]);
    }

    #[test]
    fn a_run_out_of_order_is_named() {
        for batches in [
            vec![vec![row(1, 1, Insert), row(3, 2, Insert), row(2, 3, Insert)]],
            vec![vec![row(1, 1, Insert), row(1, 2, Insert)]],
            vec![vec![row(1, 1, Insert), row(2, 2, Insert)], vec![row(2, 3, Insert)]],
        ] {
            let runs = vec![run(0, vec![vec![row(9, 9, Insert)]]), run(5, batches).named("data-7.parquet")];
            let error = collect(runs, &[], unbounded()).unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "RunNotSorted"));
            assert!(error.to_string().contains("data-7.parquet"), "{error}");
            assert!(error.hint().is_some_and(|hint| hint.contains("restore")), "{error}");
        }
    }

    #[test]
    fn a_failing_stream_fails_the_merge() {
        let broken = stream::iter([Err(Error::unavailable("gone"))]).boxed();
        let runs = vec![run(0, vec![vec![row(9, 9, Insert)]]), RunInput::new(0, broken)];
        assert_eq!(collect(runs, &[], unbounded()).unwrap_err().kind(), ErrorKind::Unavailable);
    }

    #[test]
    fn six_hundred_runs_merge_and_give_their_memory_back() {
        let runs = || -> Vec<RunInput> {
            (0..600)
                .map(|number| {
                    let batches = (0..4).map(|batch| {
                        (0..5).map(|at| row(batch * 50 + at * 10 + number % 10, i64::from(number), Insert)).collect()
                    });
                    run(0, batches.collect())
                })
                .collect()
        };
        let budget = Arc::new(Limited { limit: 1 << 20, used: AtomicUsize::new(0) });
        let rows = collect(runs(), &[], MergeOptions::new(64, Arc::clone(&budget) as Arc<dyn MemoryBudget>)).unwrap();
        assert_eq!(rows.len(), 200);
        for (key, row) in (0..).zip(&rows) {
            assert_eq!((row.values[0], row.sequence), (Some(key), 590 + i64::from(key % 10)));
        }
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);

        let budget = Arc::new(Limited { limit: 10_000, used: AtomicUsize::new(0) });
        let error =
            collect(runs(), &[], MergeOptions::new(64, Arc::clone(&budget) as Arc<dyn MemoryBudget>)).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Exhausted, "ResourcesExhausted"));
        assert!(error.to_string().contains("600 runs") && error.to_string().contains("bytes"), "{error}");
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_stretch_without_overlap_is_given_out_without_a_copy() {
        let batch = int_batch(COLUMNS, &(0..100).map(|key| row(key, 1, Insert)).collect::<Vec<_>>());
        let runs = vec![
            RunInput::new(5, stream::iter([Ok(batch.clone())]).boxed()),
            run(0, vec![vec![row(90, 2, Insert), row(95, 2, Delete)]]),
        ];
        let merged = merge_runs(runs, rules(&[]), &[0, 1, 2, 3], MergeOptions::new(40, Arc::new(Unbounded)));
        let batches: Vec<RecordBatch> = futures::executor::block_on(merged.try_collect()).unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 99);
        let (given, held) = (batches[1].column(0).to_data(), batch.column(0).to_data());
        assert_eq!(given.buffers()[0].data_ptr(), held.buffers()[0].data_ptr());
    }
}
