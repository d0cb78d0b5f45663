//! What readers saw of a key, state by state: the versions that lay there, merged as a reader merges them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int8Type, Int64Type};
use futures::{StreamExt, TryStreamExt, stream};

use super::life::{Ident, Lives, State, ident, planned};
use super::rows::{FoundRow, RowReader};
use super::{Key, Seen, Span};
use crate::error::{Error, ErrorKind, Result};
use crate::merge::{MergeOptions, RunInput, merge_runs};
use crate::notice::HiddenRows;
use crate::read::{ReadColumn, live_rows};
use crate::recon::history::History;
use crate::scan::{FileRead, Rule, ScanKind, SectionClass, Stage};
use crate::spec::options::MergeEngine;
use crate::spec::{BinaryRow, RowKind, SnapshotId};

/// What a state makes of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is what readers get, or ends the key.
    Wins,
    /// It is folded with others into what readers get.
    TakesPart,
    /// Another version, by its place, is newer.
    Loses(usize),
    /// Nothing of it is left by the merge.
    Ignored,
    /// Readers do not look at its file.
    Hidden(HiddenRows),
    /// A deletion vector names it.
    Deleted,
    /// Its file is not there.
    Gone,
    /// The state cannot be merged.
    Unknown,
}

/// A partition and bucket.
pub(super) type UnitId = (BinaryRow, i32);

/// What was found of all states.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    pub(super) spans: Vec<Span>,
    /// Of each version: fates by state, where they change.
    pub(super) fates: Vec<Vec<(SnapshotId, Fate)>>,
}

/// What a timeline is made from.
pub(super) struct Material<'a> {
    pub(super) history: &'a History,
    pub(super) key: &'a Key,
    pub(super) lives: &'a Lives,
    pub(super) reader: &'a RowReader,
    /// Rows by the number of their version.
    pub(super) rows: &'a [FoundRow],
    /// Versions of each file.
    pub(super) of_file: &'a HashMap<Ident, Vec<usize>>,
    /// Files that cannot be read, and why.
    pub(super) unread: &'a BTreeMap<Ident, String>,
}

/// What decides what readers get of a state: another that holds the same gives the same.
#[derive(PartialEq)]
struct Held {
    files: Vec<(Ident, i32)>,
    index_manifest: Option<String>,
}

/// One state as readers see it.
#[derive(Default)]
struct Judged {
    seen: BTreeMap<UnitId, Vec<Seen>>,
    fates: HashMap<usize, Fate>,
}

impl Material<'_> {
    /// Walks the states of a range of snapshots.
    pub(super) async fn timeline(&self, range: (i64, i64)) -> Result<Timeline> {
        let mut timeline = Timeline { fates: vec![Vec::new(); self.rows.len()], ..Timeline::default() };
        let mut open: BTreeMap<UnitId, (SnapshotId, Vec<Seen>)> = BTreeMap::new();
        let mut last: Option<(SnapshotId, Held)> = None;
        for state in &self.lives.states {
            let snapshot = self.lives.snapshot(state.at)?;
            if snapshot.id.0 < range.0 || snapshot.id.0 > range.1 {
                continue;
            }
            let files = state.live.iter().map(|entry| (ident(entry), entry.file.level)).collect();
            let held = Held { files, index_manifest: snapshot.index_manifest.clone() };
            if last.as_ref().is_none_or(|(_, known)| *known != held) {
                let judged = self.judge(state).await?;
                let before = last.as_ref().map(|(id, _)| *id);
                close(&mut timeline.spans, &mut open, &judged.seen, snapshot.id, before);
                for (number, fates) in timeline.fates.iter_mut().enumerate() {
                    let fate = judged.fates.get(&number).copied().unwrap_or(Fate::Gone);
                    if fates.last().map(|(_, known)| *known) != Some(fate) {
                        fates.push((snapshot.id, fate));
                    }
                }
            }
            last = Some((snapshot.id, held));
        }
        for (unit, (from, seen)) in open {
            timeline.spans.extend(seen.into_iter().map(|seen| Span { unit: unit.clone(), from, to: None, seen }));
        }
        timeline.spans.sort_by_key(|span| (span.from, span.unit.clone()));
        Ok(timeline)
    }

    async fn judge(&self, state: &State) -> Result<Judged> {
        let mut judged = Judged::default();
        if state.live.is_empty() {
            return Ok(judged);
        }
        let snapshot = self.lives.snapshot(state.at)?;
        let pin = self.history.pin_of(snapshot);
        let plan = match planned(self.history, &pin, self.key, true, ScanKind::Full, state.live.clone()).await {
            Ok(plan) => plan,
            Err(error) if is_of_state(&error) => {
                self.unknown(state, &error, &mut judged);
                return Ok(judged);
            }
            Err(error) => return Err(error),
        };
        for decision in &plan.decisions {
            let fate = match (&decision.read, &decision.rule) {
                (FileRead::Dropped(Stage::Level), Rule::Hidden(which)) => Fate::Hidden(*which),
                (FileRead::Dropped(Stage::Vector), _) => Fate::Deleted,
                _ => continue,
            };
            let file = state.live.iter().find(|e| e.file.file_name == decision.file && e.bucket == decision.bucket);
            for number in file.and_then(|entry| self.of_file.get(&ident(entry))).into_iter().flatten() {
                judged.fates.insert(*number, fate);
            }
        }
        for unit in &plan.units {
            for section in &unit.sections {
                let mut records: Vec<(usize, i32)> = Vec::new();
                let mut id: Option<UnitId> = None;
                let mut unread: Option<String> = None;
                for file in section.files() {
                    let own = ident(&file.entry);
                    id.get_or_insert_with(|| (own.0.clone(), own.1));
                    if let Some(why) = self.unread.get(&own) {
                        unread = Some(format!("{}: {why}", own.2));
                    }
                    let Some(versions) = self.of_file.get(&own) else { continue };
                    let live = match live_rows(&self.reader.context, file).await {
                        Ok(live) => live,
                        Err(error) if is_of_state(&error) => {
                            unread = Some(error.message().to_string());
                            None
                        }
                        Err(error) => return Err(error),
                    };
                    for number in versions {
                        let position = self.row(*number)?.position;
                        let position = usize::try_from(position).unwrap_or(usize::MAX);
                        let is_live = live.as_ref().is_none_or(|live| position < live.len() && live.value(position));
                        if is_live {
                            records.push((*number, file.entry.file.level));
                        } else {
                            judged.fates.insert(*number, Fate::Deleted);
                        }
                    }
                }
                let Some(id) = id else { continue };
                if let Some(why) = unread {
                    judged.fates.extend(records.iter().map(|(number, _)| (*number, Fate::Unknown)));
                    judged.seen.entry(id).or_default().push(Seen::Unknown(why));
                    continue;
                }
                let found = self.outcome(section.class, &records, &mut judged.fates).await?;
                if !found.is_empty() {
                    judged.seen.entry(id).or_default().extend(found);
                }
            }
        }
        Ok(judged)
    }

    fn unknown(&self, state: &State, error: &Error, judged: &mut Judged) {
        for entry in &state.live {
            let own = ident(entry);
            let versions = self.of_file.get(&own).into_iter().flatten();
            judged.fates.extend(versions.map(|number| (*number, Fate::Unknown)));
            let seen = judged.seen.entry((own.0, own.1)).or_default();
            if seen.is_empty() {
                seen.push(Seen::Unknown(error.message().to_string()));
            }
        }
    }

    fn row(&self, number: usize) -> Result<&FoundRow> {
        self.rows.get(number).ok_or_else(|| Error::internal("a version that is not there"))
    }

    /// What the records of the key in one section become, in the order of its runs.
    async fn outcome(
        &self,
        class: SectionClass,
        records: &[(usize, i32)],
        fates: &mut HashMap<usize, Fate>,
    ) -> Result<Vec<Seen>> {
        let alone = |number: usize, kind: RowKind| match kind.is_retract() && class != SectionClass::Raw {
            true => Seen::Tombstone(number),
            false => Seen::Version(number),
        };
        if !class.is_merge() || records.len() == 1 {
            let mut all = Vec::with_capacity(records.len());
            for (number, _) in records {
                fates.insert(*number, Fate::Wins);
                all.push(alone(*number, self.row(*number)?.kind));
            }
            return Ok(all);
        }
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let Some(result) = self.merged(records).await? else {
            fates.extend(records.iter().map(|(number, _)| (*number, Fate::Ignored)));
            return Ok(Vec::new());
        };
        let (sequence, kind) = (last_of::<Int64Type>(&result, 2)?, last_of::<Int8Type>(&result, 1)?);
        let kind = RowKind::from_byte(kind).ok_or_else(|| Error::internal("a merge gave no row kind"))?;
        let rules = &self.reader.rules;
        let chooses = matches!(rules.engine(), MergeEngine::Deduplicate | MergeEngine::FirstRow);
        let mut winner = None;
        for (number, _) in records {
            let row = self.row(*number)?;
            if row.sequence == sequence && row.kind == kind && row.row.columns() == result.columns() {
                // of equal ones the merge takes the last, first-row the first
                if winner.is_none() || rules.engine() != MergeEngine::FirstRow {
                    winner = Some(*number);
                }
            }
        }
        if chooses {
            let winner = winner.ok_or_else(|| Error::internal("a merge chose a row that no file has"))?;
            for (number, _) in records {
                fates.insert(*number, if *number == winner { Fate::Wins } else { Fate::Loses(winner) });
            }
            return Ok(vec![alone(winner, kind)]);
        }
        // where upper levels are complete only the lowest of them counts
        let lowest = records.iter().map(|(_, level)| *level).filter(|level| *level > 0).min();
        let mut of = Vec::new();
        for (number, level) in records {
            if rules.needs_lookup() && *level > 0 && Some(*level) != lowest {
                fates.insert(*number, Fate::Ignored);
            } else {
                fates.insert(*number, Fate::TakesPart);
                of.push(*number);
            }
        }
        Ok(vec![Seen::Folded { of, row: result, retract: kind.is_retract() }])
    }

    /// The result of the engine, retracts kept; columns of the table, sequence number and kind.
    async fn merged(&self, records: &[(usize, i32)]) -> Result<Option<RecordBatch>> {
        let context = &self.reader.context;
        let all: Vec<usize> = context.columns.iter().filter_map(|column: &ReadColumn| column.field()).collect();
        let required = self.reader.rules.required_columns(&all)?;
        let width = all.len();
        let places: Vec<usize> = required.iter().copied().chain([width, width + 1]).collect();
        let mut runs = Vec::with_capacity(records.len());
        for (number, level) in records {
            let row = self.row(*number)?.row.project(&places)?;
            runs.push(RunInput::new(*level, stream::iter([Ok(row)]).boxed()));
        }
        let mut options = MergeOptions::new(16, Arc::clone(&self.reader.budget));
        options.keep_deletes = true;
        let merged: Vec<RecordBatch> =
            merge_runs(runs, Arc::clone(&self.reader.rules), &required, options).try_collect().await?;
        let Some(row) = merged.into_iter().find(|batch| batch.num_rows() > 0) else { return Ok(None) };
        // back into the order of the table
        let order = (0..width + 2).map(|column| {
            let at = if column < width { required.iter().position(|known| *known == column) } else { None };
            at.or_else(|| (column >= width).then(|| required.len() + column - width))
                .ok_or_else(|| Error::internal("a merge left a column out"))
        });
        let order: Vec<usize> = order.collect::<Result<_>>()?;
        Ok(Some(row.project(&order)?))
    }
}

/// Whether an error is about what a state holds, not about asking for it.
pub(super) fn is_of_state(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Exhausted | ErrorKind::Unavailable | ErrorKind::Internal)
}

fn last_of<T: arrow::datatypes::ArrowPrimitiveType>(row: &RecordBatch, back: usize) -> Result<T::Native> {
    let at = row.num_columns().checked_sub(back);
    let column = at.and_then(|at| row.columns().get(at)).and_then(|column| column.as_primitive_opt::<T>());
    column.map(|column| column.value(0)).ok_or_else(|| Error::internal("a merge gave no sequence number or kind"))
}

/// Ends the spans that a state does not continue, and begins those it brings.
fn close(
    spans: &mut Vec<Span>,
    open: &mut BTreeMap<UnitId, (SnapshotId, Vec<Seen>)>,
    now: &BTreeMap<UnitId, Vec<Seen>>,
    at: SnapshotId,
    before: Option<SnapshotId>,
) {
    let ended: Vec<UnitId> =
        open.iter().filter(|(unit, (_, seen))| now.get(*unit) != Some(seen)).map(|(unit, _)| unit.clone()).collect();
    for unit in ended {
        if let Some((from, seen)) = open.remove(&unit) {
            spans.extend(seen.into_iter().map(|seen| Span { unit: unit.clone(), from, to: before, seen }));
        }
    }
    for (unit, seen) in now {
        open.entry(unit.clone()).or_insert_with(|| (at, seen.clone()));
    }
}
