//! Two sides by key: one pass over both in the order of the key, and a look at what one side alone showed.

mod group;
mod nothing;
mod settle;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{interleave_record_batch, take_record_batch};
use arrow::row::{RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::execution::SessionState;

use super::common::Common;
use super::convert::{Manner, shown};
use super::cursor::{At, Cursor, Loaded};
use super::judge::{Finding, Judge};
use super::pairs::{Pairs, Role, Wanted, pair};
use super::pending::Pending;
use super::progress::{FORMAT, Identity, Progress, SEGMENT, Segment, SideIdentity, hex};
use super::report::Report;
use super::side::{Asked, Form, Ordered, Side, ordered};
use super::tally::{Class, Examples, Sink, Tally};
use crate::error::{Error, Result};
use crate::query::Work;

/// Rows of one key that are compared, at most.
const GROUP: usize = 10_000;
/// Pairs of rows that are compared at once.
const PAIRS: usize = 8_192;
/// What is compared, and how.
#[derive(Default)]
pub struct Options {
    /// The columns.
    pub wanted: Wanted,
    /// Rows newer than this, by the column in [`Wanted::horizon`], are left out.
    pub horizon: Option<ScalarValue>,
    /// Where that comes from, for people, when nobody wrote it.
    pub horizon_told: Option<String>,
    /// How values are brought to common types.
    pub manner: Manner,
    /// Keys that are looked at, of a million, by their hash; None: all.
    pub sample: Option<u32>,
    /// Whether it may be that no row of either side meets the condition; otherwise that is an error.
    pub may_be_empty: bool,
    /// Examples of each class that are kept.
    pub examples: usize,
    /// Ends after so many findings that make the sides different.
    pub stop_after: Option<u64>,
    /// Where progress is kept.
    pub progress: Option<PathBuf>,
    /// Takes every finding.
    pub sink: Option<Sink>,
}

/// A comparison that is planned and reads nothing yet.
pub struct Comparison {
    sides: [Side; 2],
    options: Options,
    pairs: Arc<Pairs>,
    forms: [Arc<Form>; 2],
    plans: [Ordered; 2],
    judge: Arc<Judge>,
    kept: Option<Kept>,
    state: SessionState,
}

impl Comparison {
    /// Plans a comparison in a session.
    ///
    /// # Errors
    /// Columns that do not go together, progress of something else; `StateNotKnown` where progress is to be kept of a side
    /// that may be another one next time; `FindingsIncomplete` where a sink would get the rest of them alone; those of
    /// planning.
    pub async fn plan(left: Side, right: Side, options: Options, state: &SessionState) -> Result<Self> {
        let pairs = Arc::new(pair(&left.columns, &right.columns, &options.wanted)?);
        let forms =
            [Form::new(&pairs, false, &left, options.manner)?, Form::new(&pairs, true, &right, options.manner)?];
        let [left_form, right_form] = &forms;
        let judge = Judge::new(left_form, right_form, &pairs, options.horizon.as_ref(), &options.manner)?;
        let condition = |side: &Side| side.condition.as_ref().map(ToString::to_string);
        let mut kept = None;
        if let Some(path) = &options.progress {
            let identity = Identity {
                format: FORMAT,
                left: SideIdentity::of(&left, "left")?,
                right: SideIdentity::of(&right, "right")?,
                asked: format!(
                    "{:?}; {:?}; {:?}; {:?}; {:?}; {:?}",
                    options.wanted,
                    options.horizon,
                    options.manner,
                    options.sample,
                    condition(&left),
                    condition(&right)
                ),
            };
            let before = Progress::read(path, &identity)?;
            if let Some(before) = before.as_ref().filter(|_| options.sink.is_some()) {
                return Err(not_all_findings(before, path));
            }
            kept = Some(Kept::new(path, identity, before, pairs.all.len()));
        }
        let before = kept.as_ref().and_then(Kept::before);
        let asked = Asked {
            filtered: true,
            after: before.map(Progress::last_key).transpose()?.flatten(),
            sample: options.sample,
            // each segment ends with a look at what one side alone showed
            beside: kept.is_some() && (left.condition.is_some() || right.condition.is_some()),
            nothing: before.is_some_and(|before| before.complete),
            ..Asked::default()
        };
        let plans =
            [ordered(&left, left_form, asked.clone(), state).await?, ordered(&right, right_form, asked, state).await?];
        let sides = [left, right];
        Ok(Self { sides, options, pairs, forms, plans, judge, kept, state: state.clone() })
    }

    /// What is read of files, on the left and on the right.
    pub fn works(&self) -> [&Work; 2] {
        let [left, right] = &self.plans;
        [&left.work, &right.work]
    }

    /// What the values of its findings stand for.
    pub fn common(&self) -> Common {
        Common::new(&self.pairs, self.options.manner)
    }

    /// The left side.
    pub fn left(&self) -> &Side {
        let [left, _] = &self.sides;
        left
    }

    /// Compares.
    ///
    /// # Errors
    /// What cannot be read; a side that changed meanwhile: there is no verdict then.
    pub async fn run(self) -> Result<Report> {
        let Self { sides, options, pairs, forms, plans, judge, mut kept, state } = self;
        let before = kept.as_ref().and_then(Kept::before).cloned();
        let [left_plan, right_plan] = &plans;
        let [left_form, right_form] = &forms;
        let [left_side, right_side] = &sides;
        let cursor = |plan: &Ordered, form: &Arc<Form>, side: &Side| -> Result<Cursor> {
            Ok(Cursor::new(plan.begin(&state)?, form, &judge, &side.name, pairs.keys))
        };
        let cursors = [cursor(left_plan, left_form, left_side)?, cursor(right_plan, right_form, right_side)?];
        let disk = &state.runtime_env().disk_manager;
        let pending = [Pending::new(&left_form.schema, disk), Pending::new(&right_form.schema, disk)];
        let values = pairs.all.iter().filter(|pair| pair.role == Role::Compared);
        let values = RowConverter::new(values.map(|pair| SortField::new(pair.common.data_type())).collect())?;
        let tally = before.as_ref().map_or_else(|| Tally::new(pairs.all.len()), |before| before.tally.clone());
        let looked_up = before.as_ref().map_or([0; 2], |before| before.looked_up);
        let filtered = sides.iter().any(|side| side.condition.is_some());
        let examples = Examples { most: options.examples, sink: options.sink, judge: Arc::clone(&judge) };
        let in_condition = condition_pairs(&sides, &pairs);
        let mut run = Run {
            sides: &sides,
            forms: &forms,
            pairs: &pairs,
            judge: &judge,
            state: &state,
            cursors,
            pending,
            values,
            tally,
            examples,
            filtered,
            in_condition,
            looked_up,
            manner: options.manner,
            batches: None,
            together: Vec::new(),
        };
        let stopped = run.all(options.stop_after, kept.as_mut()).await?;
        let Run { tally, looked_up, .. } = run;
        for side in &sides {
            side.check().await?;
        }
        let closed = tally.closed();
        if closed != tally.rows {
            return Err(Error::internal(format!(
                "the sums do not close: {} and {} rows were read, {} and {} are told of",
                tally.rows[0], tally.rows[1], closed[0], closed[1]
            ))
            .with_code("SumsNotClosed"));
        }
        let horizon = options.horizon.as_ref().map(|value| shown(&value.to_array()?, 0)).transpose()?;
        let limit = pairs.horizon.and_then(|at| pairs.all.get(at)).zip(horizon.as_ref());
        let about = nothing::Kept {
            horizon: limit.map(|(pair, value)| format!("{} <= {value}", pair.name())),
            sampled: options.sample.is_some(),
            may_be_empty: options.may_be_empty,
            forms: &forms,
        };
        let empty = nothing::check(&sides, &tally, about, &state).await?;
        let resumed = match &before {
            Some(before) => Some(before.told(left_form, options.progress.as_deref())?),
            None => None,
        };
        let more =
            |side: usize, at: usize| before.as_ref().and_then(|b| b.cut.get(side)?.get(at).copied()).unwrap_or(0);
        let cut = [0, 1].map(|side| -> Vec<u64> {
            (0..pairs.all.len()).map(|at| forms[side].found.cut(at) + more(side, at)).collect()
        });
        let mapped = (0..pairs.all.len()).map(|at| {
            right_form.found.mapped(at) + before.as_ref().and_then(|b| b.mapped.get(at).copied()).unwrap_or(0)
        });
        Ok(Report::new(super::report::Parts {
            sides: &sides,
            pairs: &pairs,
            tally,
            looked_up,
            streamed: [left_plan.streamed, right_plan.streamed],
            cut,
            mapped: mapped.collect(),
            stopped,
            sample: options.sample,
            empty,
            resumed,
            horizon,
            horizon_told: options.horizon_told,
            filtered,
            came: forms.each_ref().map(|form| form.found.rows.load(std::sync::atomic::Ordering::Relaxed)),
            sent: [left_plan.sent.clone(), right_plan.sent.clone()],
        }))
    }
}

/// Pairs that the conditions of the sides are about.
fn condition_pairs(sides: &[Side; 2], pairs: &Pairs) -> Vec<usize> {
    let names: Vec<String> = sides
        .iter()
        .filter_map(|side| side.condition.as_ref())
        .flat_map(|condition| condition.column_refs().into_iter().map(|column| column.name.to_lowercase()))
        .collect();
    let about = |name: &str| names.contains(&name.to_lowercase());
    let found = pairs.all.iter().enumerate().filter(|(_, pair)| about(&pair.left.name) || about(&pair.right.name));
    found.map(|(at, _)| at).collect()
}

/// Findings of the segments before would be in no file.
fn not_all_findings(before: &Progress, path: &Path) -> Error {
    Error::invalid(format!(
        "the findings cannot all be written: the comparison would go on behind {} segments that are done, and theirs are \
         not kept",
        before.segments.len()
    ))
    .with_code("FindingsIncomplete")
    .with_context("file", path.display())
    .with_hint("remove the file of the progress to compare all of it again, or go on without --out")
}

/// Progress under way.
struct Kept {
    path: PathBuf,
    progress: Progress,
    /// Values that lost digits, and that stood for others, in the runs before.
    before: ([Vec<u64>; 2], Vec<u64>),
}

impl Kept {
    fn new(path: &Path, identity: Identity, before: Option<Progress>, pairs: usize) -> Self {
        let progress = before.unwrap_or_else(|| Progress {
            identity,
            segments: Vec::new(),
            complete: false,
            tally: Tally::new(pairs),
            looked_up: [0; 2],
            cut: [vec![0; pairs], vec![0; pairs]],
            mapped: vec![0; pairs],
            sum: String::new(),
        });
        Self { path: path.to_path_buf(), before: (progress.cut.clone(), progress.mapped.clone()), progress }
    }

    /// What was done before, where that is anything.
    fn before(&self) -> Option<&Progress> {
        Some(&self.progress).filter(|progress| progress.complete || !progress.segments.is_empty())
    }
}

/// A comparison under way.
struct Run<'a> {
    sides: &'a [Side; 2],
    forms: &'a [Arc<Form>; 2],
    pairs: &'a Arc<Pairs>,
    judge: &'a Arc<Judge>,
    state: &'a SessionState,
    cursors: [Cursor; 2],
    pending: [Pending; 2],
    /// Of the compared columns.
    values: RowConverter,
    tally: Tally,
    examples: Examples,
    /// Whether a side has a condition: a row that only one side shows may be on the other one too.
    filtered: bool,
    in_condition: Vec<usize>,
    looked_up: [u64; 2],
    manner: Manner,
    /// Rows of one key each that wait to be compared, and their batches.
    batches: Option<(Arc<Loaded>, Arc<Loaded>)>,
    together: Vec<(u32, u32)>,
}

impl Run<'_> {
    /// Goes through both sides; whether it stopped before the end.
    async fn all(&mut self, stop_after: Option<u64>, mut kept: Option<&mut Kept>) -> Result<bool> {
        let mut last_key: Option<Vec<u8>> = None;
        let mut keys = 0;
        let mut gone = 0;
        if kept.as_ref().is_some_and(|kept| kept.progress.complete) {
            return Ok(false);
        }
        loop {
            let [left, right] = &mut self.cursors;
            let (one, other) = (left.here().await?, right.here().await?);
            let order = match (&one, &other) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(other)) => one.key().cmp(&other.key()),
            };
            // rows without a key are not of one key: a segment that ended among them would be gone on from behind all
            let mut is_key = true;
            if kept.is_some() {
                let at = if order == Ordering::Greater { &other } else { &one };
                is_key = [&one, &other].into_iter().flatten().all(|at| !at.has_null_key() && !at.has_unread_key());
                last_key = at.as_ref().map(|at| at.key().data().to_vec());
            }
            match (order, one, other) {
                (Ordering::Less, Some(one), _) => self.lone_key(false, one).await?,
                (Ordering::Greater, _, Some(other)) => self.lone_key(true, other).await?,
                (_, Some(one), Some(other)) => self.same_key(one, other).await?,
                _ => return Err(Error::internal("a row went missing between the sides")),
            }
            if stop_after.is_some_and(|most| self.tally.differences() >= most) {
                self.flush().await?;
                self.count_passed()?;
                // what still comes of a side may hold the connection that the others are looked up by
                self.cursors.iter_mut().for_each(Cursor::close);
                self.settle().await?;
                return Ok(true);
            }
            gone += 1;
            if gone >= PAIRS {
                // where few keys meet, nothing else lets go of the batches behind
                gone = 0;
                self.count_passed()?;
                tokio::task::consume_budget().await;
            }
            keys += 1;
            if let Some(kept) = kept.as_deref_mut()
                && keys >= SEGMENT
                && is_key
            {
                self.keep(kept, last_key.as_deref(), false).await?;
                keys = 0;
            }
        }
        self.flush().await?;
        self.settle().await?;
        self.count_passed()?;
        if let Some(kept) = kept {
            self.keep(kept, last_key.as_deref(), true).await?;
        }
        Ok(false)
    }

    fn count_passed(&mut self) -> Result<()> {
        for (side, cursor) in self.cursors.iter_mut().enumerate() {
            for batch in cursor.passed() {
                self.tally.passed(self.pairs, side == 1, &batch)?;
            }
        }
        Ok(())
    }

    /// Ends a segment and keeps what is done.
    async fn keep(&mut self, kept: &mut Kept, last: Option<&[u8]>, complete: bool) -> Result<()> {
        self.flush().await?;
        self.settle().await?;
        self.count_passed()?;
        let progress = &mut kept.progress;
        let rows = |side: usize| self.tally.rows[side] - progress.tally.rows[side];
        progress.complete = complete;
        if let Some(last) = last {
            progress.segments.push(Segment {
                left_rows: rows(0),
                right_rows: rows(1),
                differences: self.tally.differences() - progress.tally.differences(),
                upto: hex(last),
            });
        }
        progress.tally = self.tally.clone();
        progress.looked_up = self.looked_up;
        for (side, form) in self.forms.iter().enumerate() {
            for at in 0..self.pairs.all.len() {
                progress.cut[side][at] = kept.before.0[side][at] + form.found.cut(at);
                progress.mapped[at] = kept.before.1[at] + self.forms[1].found.mapped(at);
            }
        }
        progress.write(&kept.path)
    }

    /// Rows of a key that one side alone has.
    async fn lone_key(&mut self, right: bool, row: At) -> Result<()> {
        let cursor = &mut self.cursors[usize::from(right)];
        if !cursor.repeats().await? {
            cursor.advance();
            return self.lone(right, &row);
        }
        let odd = row.has_null_key() || row.has_unread_key();
        if odd {
            // no key at all: they are not the same one, and there may be any number of them
            cursor.advance();
            return self.lone(right, &row);
        }
        let rows = cursor.group(GROUP).await?;
        let (lefts, rights) = if right { (Vec::new(), rows) } else { (rows, Vec::new()) };
        self.group(lefts, rights)
    }

    async fn same_key(&mut self, one: At, other: At) -> Result<()> {
        if one.has_null_key() || one.has_unread_key() || other.has_null_key() || other.has_unread_key() {
            let right = !(one.has_null_key() || one.has_unread_key());
            return self.lone_key(right, if right { other } else { one }).await;
        }
        let [left, right] = &mut self.cursors;
        let (repeats, other_repeats) = (left.repeats().await?, right.repeats().await?);
        if repeats || other_repeats {
            let (lefts, rights) = (left.group(GROUP).await?, right.group(GROUP).await?);
            return self.group(lefts, rights);
        }
        left.advance();
        right.advance();
        if one.is_late() || other.is_late() {
            return self.late(Some(&one), Some(&other));
        }
        let same =
            self.batches.as_ref().is_some_and(|(a, b)| Arc::ptr_eq(a, &one.batch) && Arc::ptr_eq(b, &other.batch));
        if !same || self.together.len() >= PAIRS {
            self.flush().await?;
            self.batches = Some((Arc::clone(&one.batch), Arc::clone(&other.batch)));
        }
        self.together.push((index(one.row)?, index(other.row)?));
        Ok(())
    }

    /// Rows of which one is newer than the horizon.
    fn late(&mut self, left: Option<&At>, right: Option<&At>) -> Result<()> {
        let class = if right.is_some_and(At::is_late) { Class::Late } else { Class::LateUpdate };
        for (row, right) in [(left, false), (right, true)] {
            if let Some(row) = row {
                self.tally.leave_out(self.pairs, right, row)?;
            }
        }
        let counts = (u64::from(left.is_some()), u64::from(right.is_some()));
        self.tally.found(class, 1, counts.0, counts.1);
        let pairs = match (left, right) {
            (Some(left), Some(right)) => self.judge.differing(&alone(left), &alone(right))?,
            _ => Vec::new(),
        };
        self.examples.keep(&mut self.tally, class, (left, right), &pairs, counts)
    }

    /// A row whose key the other side does not show.
    fn lone(&mut self, right: bool, row: &At) -> Result<()> {
        let rows = if right { (None, Some(row)) } else { (Some(row), None) };
        if !row.has_null_key() && !row.has_unread_key() {
            if row.is_late() {
                return self.late(rows.0, rows.1);
            }
            if row.is_unsure() {
                return self.one(Class::Unreadable, right, row);
            }
            if self.filtered {
                return self.pending[usize::from(right)].push(row);
            }
        }
        let class = if row.has_unread_key() {
            Class::Unreadable
        } else if row.has_null_key() {
            Class::NullKey
        } else if right {
            Class::MissingInLake
        } else {
            Class::ExtraInLake
        };
        self.one(class, right, row)
    }

    fn one(&mut self, class: Class, right: bool, row: &At) -> Result<()> {
        let rows = if right { (None, Some(row)) } else { (Some(row), None) };
        let counts = (u64::from(!right), u64::from(right));
        self.tally.found(class, 1, counts.0, counts.1);
        self.examples.keep(&mut self.tally, class, rows, &[], counts)
    }

    fn finding(&mut self, finding: Finding, left: &At, right: &At) -> Result<()> {
        let (class, pairs) = match finding {
            Finding::Equal => {
                self.tally.found(Class::Equal, 1, 1, 1);
                return Ok(());
            }
            Finding::Tolerated(pairs) => (Class::Tolerated, pairs),
            Finding::Different(pairs) => (Class::Different, pairs),
            Finding::Unreadable(pairs) => (Class::Unreadable, pairs),
        };
        self.tally.found(class, 1, 1, 1);
        for at in &pairs {
            let within = self.judge.is_within(*at, (&left.batch.batch, left.row), (&right.batch.batch, right.row))?;
            let counts = if within { &mut self.tally.tolerated } else { &mut self.tally.mismatches };
            if let Some(count) = counts.get_mut(*at) {
                *count += 1;
            }
        }
        self.examples.keep(&mut self.tally, class, (Some(left), Some(right)), &pairs, (1, 1))
    }

    /// Compares the pairs that wait.
    async fn flush(&mut self) -> Result<()> {
        let together = std::mem::take(&mut self.together);
        let Some((one, other)) = self.batches.take() else { return Ok(()) };
        if together.is_empty() {
            return Ok(());
        }
        let left = rows_of(&one.batch, together.iter().map(|(left, _)| *left))?;
        let right = rows_of(&other.batch, together.iter().map(|(_, right)| *right))?;
        match self.judge.compare(&left, &right)? {
            None => {
                let rows = together.len() as u64;
                self.tally.found(Class::Equal, rows, rows, rows);
            }
            Some(findings) => {
                for (finding, (left, right)) in findings.into_iter().zip(together) {
                    let left = At { batch: Arc::clone(&one), row: left as usize };
                    let right = At { batch: Arc::clone(&other), row: right as usize };
                    self.finding(finding, &left, &right)?;
                }
            }
        }
        self.count_passed()?;
        // streams in memory never wait, and whoever cancels has to be heard
        tokio::task::consume_budget().await;
        Ok(())
    }
}

fn index(row: usize) -> Result<u32> {
    u32::try_from(row).map_err(|_| Error::internal("a batch has too many rows"))
}

/// A row as a batch.
fn alone(row: &At) -> RecordBatch {
    row.batch.batch.slice(row.row, 1)
}

fn gathered(rows: &[At]) -> Result<RecordBatch> {
    let batches: Vec<&RecordBatch> = rows.iter().map(|row| &row.batch.batch).collect();
    let places: Vec<(usize, usize)> = rows.iter().enumerate().map(|(at, row)| (at, row.row)).collect();
    Ok(interleave_record_batch(&batches, &places)?)
}

/// Rows of a batch, in ascending order.
fn rows_of(batch: &RecordBatch, rows: impl ExactSizeIterator<Item = u32> + Clone) -> Result<RecordBatch> {
    let count = rows.len();
    let first = rows.clone().next().unwrap_or_default() as usize;
    let last = rows.clone().last().unwrap_or_default() as usize;
    // one of each: what lies between the first and the last is all of them
    if last + 1 - first == count {
        return Ok(batch.slice(first, count));
    }
    Ok(take_record_batch(batch, &UInt32Array::from_iter_values(rows))?)
}
