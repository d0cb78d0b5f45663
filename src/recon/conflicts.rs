//! What a commit competed with, item by item, each with its confidence.
//!
//! | item | from | confidence |
//! |---|---|---|
//! | base of the last attempt | the number before its own | exact |
//! | base of the first attempt | the base list that an attempt left behind (`leftovers`); else, where it was published at once, the base of the last; else the newest snapshot that was there when its first file was made | exact, inferred, heuristic |
//! | LATEST when an attempt failed | the commit that was faster; where none was, the base | inferred |
//! | who was faster | the snapshots between both | exact |
//! | what both touched | partitions and buckets of their changes | exact |
//! | what was read meanwhile | the read journal, where one is kept | exact |
//! | attempts | a committer object counts its manifest lists, two for an attempt, three with a changelog | inferred |
//!
//! Of a commit that was rejected for good nothing is in the snapshots; `t$unreferenced_files` may show its files. Commits
//! of one user do not compete, unless two committer objects of it are at work: that is suspicious (D-4).

mod keys;
mod leftovers;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub use keys::{SharedKeys, add_keys};

use super::commits::{committer_counter, committer_instance};
use super::creation::CreationClock;
use super::history::{FileChange, History, Recorded};
use super::journal::Reading;
use super::lookup::Confidence;
use crate::error::{Error, Result};
use crate::snapshot::{SessionZone, Table};
use crate::spec::{BinaryRow, CommitKind, ManifestEntry, Snapshot, SnapshotId};

/// How two commits met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// The commit had to try again because the opponent was faster.
    LostRace,
    /// The opponent committed while the commit was writing.
    OverlappingWindow,
    /// The commit removed files of the opponent without reading on: an overwrite.
    Overwrote,
    /// The commit put files of the opponent together with others.
    CompactedAway,
}

impl Relation {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LostRace => "lost race",
            Self::OverlappingWindow => "overlapping window",
            Self::Overwrote => "overwrote",
            Self::CompactedAway => "compacted away",
        }
    }
}

/// What it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As the protocol wants it.
    NormalCompetition,
    /// Rows of one side may be hidden or lost.
    WrongCoWriting,
    /// As the protocol wants it, but a statement read the one and not the other.
    ReadTiming,
    /// Two committers under one user: one of them may take the other's commits for its own.
    Suspicious,
}

impl Verdict {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NormalCompetition => "normal competition",
            Self::WrongCoWriting => "wrong co-writing",
            Self::ReadTiming => "read-timing problem",
            Self::Suspicious => "suspicious",
        }
    }
}

/// Files that one side added and removed in the units that both touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Touched {
    /// Added.
    pub added: u64,
    /// Removed.
    pub deleted: u64,
    /// Lowest and highest sequence number of what was added.
    pub sequences: Option<(i64, i64)>,
}

/// A pair of commits that met.
#[derive(Debug, Clone)]
pub struct Conflict {
    /// The later commit.
    pub commit: Arc<Snapshot>,
    /// The earlier one, of another user or of another committer of the same.
    pub opponent: Arc<Snapshot>,
    /// How they met.
    pub relation: Relation,
    /// What the first attempt stood on, and how sure that is.
    pub first_base: (SnapshotId, Confidence),
    /// What the attempt that was published stood on.
    pub final_base: SnapshotId,
    /// What LATEST was when an attempt failed, or before the only one; inferred.
    pub latest: SnapshotId,
    /// How often it was tried, inferred; None where the names of its lists do not tell.
    pub attempts: Option<u64>,
    /// Partitions and buckets that both touched.
    pub units: BTreeSet<String>,
    /// What the commit did there.
    pub by_commit: Touched,
    /// What the opponent did there.
    pub by_opponent: Touched,
    /// Whether the later commit has the lower sequence numbers, and nothing else orders the versions (D-9).
    pub inverted: bool,
    /// What it means.
    pub verdict: Verdict,
    /// How sure that is.
    pub confidence: Confidence,
    /// Keys that both wrote; None: not looked for, or one of them is no APPEND.
    pub keys: Option<SharedKeys>,
    /// Statements at work from the earlier publication to the later one, which read the table before the later one.
    pub reads: Vec<ReadMeanwhile>,
}

/// A statement that read one side of a pair and not the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadMeanwhile {
    /// When it began, epoch milliseconds.
    pub time_millis: i64,
    /// The session that ran it.
    pub session: String,
    /// Its first word.
    pub statement: String,
    /// The snapshot that it read.
    pub snapshot: SnapshotId,
}

/// Adds what the journal says was read while the commits of each pair were published.
pub fn add_reads(found: &mut [Conflict], table: &Table, readings: &[Reading]) {
    let location = table.root().to_string();
    for conflict in found {
        let (since, until) = (conflict.opponent.time_millis, conflict.commit.time_millis);
        for reading in readings.iter().filter(|reading| reading.was_during(since, until)) {
            let before = reading.of(&location, &table.ident().branch).filter(|read| read.id < conflict.commit.id.0);
            conflict.reads.extend(before.map(|read| ReadMeanwhile {
                time_millis: reading.time_millis,
                session: reading.session.clone(),
                statement: reading.statement.clone(),
                snapshot: SnapshotId(read.id),
            }));
        }
        if !conflict.reads.is_empty() && conflict.verdict == Verdict::NormalCompetition {
            conflict.verdict = Verdict::ReadTiming;
        }
    }
}

/// Which commits are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around {
    /// One, as the later and as the earlier of a pair.
    Snapshot(SnapshotId),
    /// All that were published from one instant to another, epoch milliseconds, both included.
    Times(i64, i64),
}

type UnitKey<'a> = (&'a BinaryRow, i32);

/// Pairs of commits, and what is known of attempts that were never published.
#[derive(Debug, Default)]
pub struct Met {
    /// The pairs, by the later commit.
    pub pairs: Vec<Conflict>,
    /// Manifest lists of no snapshot, of data files that no commit has added: of commits that were rejected, that are on
    /// their way no more, or that were overwritten (D-18).
    pub unpublished: u64,
}

/// The pairs of commits that met.
///
/// Cost: the delta manifests of every commit, which the cache keeps; a listing of the folder of manifests, and what in it
/// no snapshot names.
///
/// # Errors
/// A snapshot that is not in the history; an entry that cannot be decoded.
pub async fn conflicts(history: &History, around: Around, zone: &SessionZone) -> Result<Met> {
    let texts = history.texts(zone).await?;
    let in_force: Vec<Recorded> = history.in_force().cloned().collect();
    let commits: Vec<&Recorded> = in_force.iter().collect();
    if let Around::Snapshot(id) = around
        && !commits.iter().any(|recorded| recorded.id() == id)
    {
        return Err(Error::not_found(format!("nothing is kept of snapshot {id}: {}", history.reach(zone)))
            .with_code("SnapshotNotFound")
            .with_context("table", history.table().name())
            .with_hint("SELECT snapshot_id FROM t$snapshots lists what is kept"));
    }
    let changes: Vec<Vec<FileChange>> =
        history.all_changes(&in_force).await.into_iter().map(Result::unwrap_or_default).collect();
    let clock = CreationClock::of(
        in_force.iter().zip(&changes).map(|(recorded, changes)| (recorded.snapshot.as_ref(), changes.as_slice())),
    );
    let attempts = attempts(&in_force, history.is_whole());
    let left = leftovers::leftovers(history, &in_force, &changes).await?;
    let ordered = {
        let options = &history.pin.options;
        !history.pin.schema.is_primary_key_table()
            || !options.sequence_fields.is_empty()
            || options.sequence_snapshot_ordering
    };
    let mut found = Met { pairs: Vec::new(), unpublished: left.unpublished };
    for (at, commit) in commits.iter().enumerate() {
        let snapshot = &commit.snapshot;
        let own = changes.get(at).map_or(&[][..], Vec::as_slice);
        let start = clock.started(snapshot, own);
        let failed = left.bases.contains_key(&snapshot.id);
        // who takes a new name for each attempt counts none of them
        let tried = attempts.get(&snapshot.id).copied().filter(|tried| !failed || *tried > 1);
        let first_base =
            left.bases.get(&snapshot.id).copied().unwrap_or_else(|| first_base(&commits, at, start, tried));
        for (before, opponent) in commits.iter().enumerate().take(at) {
            let other = &opponent.snapshot;
            let wanted = match around {
                Around::Snapshot(id) => snapshot.id == id || other.id == id,
                Around::Times(since, until) => (since..=until).contains(&snapshot.time_millis),
            };
            let shared = other.commit_user == snapshot.commit_user;
            if !wanted || (shared && !takes_turns(&commits, before, at)) {
                continue;
            }
            let theirs = changes.get(before).map_or(&[][..], Vec::as_slice);
            let common: BTreeSet<UnitKey<'_>> = units(own).intersection(&units(theirs)).copied().collect();
            if common.is_empty() {
                continue;
            }
            let takes_files = removes(own, theirs);
            let during = start.is_some_and(|start| other.time_millis > start);
            let raced = failed || tried.is_some_and(|tried| tried > 1);
            let raced = raced && other.id > first_base.0 && other.id < snapshot.id;
            let relation = match (snapshot.commit_kind, takes_files) {
                (CommitKind::Overwrite, true) => Relation::Overwrote,
                // that is what a compaction is for: among all pairs it is told only where both were at work
                (CommitKind::Compact, true) if during || matches!(around, Around::Snapshot(_)) => {
                    Relation::CompactedAway
                }
                (CommitKind::Compact, true) => continue,
                _ if raced => Relation::LostRace,
                _ if during => Relation::OverlappingWindow,
                _ => continue,
            };
            let (by_commit, by_opponent) = (touched(own, &common), touched(theirs, &common));
            let inverted = !ordered
                && matches!((by_commit.sequences, by_opponent.sequences), (Some(mine), Some(other)) if mine.0 <= other.1)
                && snapshot.commit_kind == CommitKind::Append
                && other.commit_kind == CommitKind::Append;
            let lost = relation == Relation::Overwrote && during && other.commit_kind == CommitKind::Append;
            let verdict = match (inverted || lost, shared) {
                (true, _) => Verdict::WrongCoWriting,
                (false, true) => Verdict::Suspicious,
                (false, false) => Verdict::NormalCompetition,
            };
            let confidence = match relation {
                Relation::Overwrote if lost => Confidence::Heuristic,
                Relation::Overwrote | Relation::CompactedAway => Confidence::Exact,
                Relation::LostRace if failed => first_base.1,
                Relation::LostRace => Confidence::Inferred,
                Relation::OverlappingWindow => Confidence::Heuristic,
            };
            let mut names = BTreeSet::new();
            for change in own.iter().filter(|change| common.contains(&unit(change.entry()))) {
                names.insert(texts.unit(change.entry())?);
            }
            found.pairs.push(Conflict {
                commit: Arc::clone(snapshot),
                opponent: Arc::clone(other),
                relation,
                first_base,
                final_base: SnapshotId(snapshot.id.0.saturating_sub(1)),
                latest: match relation {
                    Relation::LostRace => other.id,
                    _ => SnapshotId(snapshot.id.0.saturating_sub(1)),
                },
                attempts: tried,
                units: names,
                by_commit,
                by_opponent,
                inverted,
                verdict,
                confidence,
                keys: None,
                reads: Vec::new(),
            });
        }
    }
    Ok(found)
}

/// Whether two commits of one user are of committer objects that are both at work: one commits again after the other.
fn takes_turns(commits: &[&Recorded], before: usize, at: usize) -> bool {
    let instance = |number: usize| {
        let snapshot = &commits.get(number)?.snapshot;
        committer_instance(&snapshot.delta_manifest_list).map(|instance| (snapshot.commit_user.as_str(), instance))
    };
    let (Some(earlier), Some(later)) = (instance(before), instance(at)) else { return false };
    earlier != later
        && ((0..before).any(|number| instance(number) == Some(later))
            || (at + 1..commits.len()).any(|number| instance(number) == Some(earlier)))
}

fn unit(entry: &ManifestEntry) -> UnitKey<'_> {
    (&entry.partition, entry.bucket.0)
}

fn units(changes: &[FileChange]) -> BTreeSet<UnitKey<'_>> {
    changes.iter().map(|change| unit(change.entry())).collect()
}

/// Whether some changes remove a file that others added.
fn removes(later: &[FileChange], earlier: &[FileChange]) -> bool {
    let added: BTreeSet<(&str, UnitKey<'_>)> = earlier
        .iter()
        .filter_map(|change| match change {
            FileChange::Add(entry) => Some((entry.file.file_name.as_str(), unit(entry))),
            FileChange::Delete(_) | FileChange::Upgrade { .. } => None,
        })
        .collect();
    later.iter().any(|change| match change {
        FileChange::Delete(entry) => added.contains(&(entry.file.file_name.as_str(), unit(entry))),
        FileChange::Add(_) | FileChange::Upgrade { .. } => false,
    })
}

fn touched(changes: &[FileChange], common: &BTreeSet<UnitKey<'_>>) -> Touched {
    let mut sum = Touched::default();
    for change in changes.iter().filter(|change| common.contains(&unit(change.entry()))) {
        match change {
            FileChange::Add(entry) => {
                sum.added += 1;
                let (low, high) = (entry.file.min_sequence_number, entry.file.max_sequence_number);
                sum.sequences = Some(sum.sequences.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
            }
            FileChange::Delete(_) => sum.deleted += 1,
            FileChange::Upgrade { .. } => {}
        }
    }
    sum
}

/// What the first attempt of a commit stood on.
fn first_base(commits: &[&Recorded], at: usize, start: Option<i64>, attempts: Option<u64>) -> (SnapshotId, Confidence) {
    let id = commits.get(at).map_or(0, |commit| commit.id().0);
    let last = SnapshotId(id.saturating_sub(1));
    if attempts == Some(1) {
        return (last, Confidence::Inferred);
    }
    let Some(start) = start else { return (last, Confidence::Heuristic) };
    let before = commits.iter().take(at).rev().find(|commit| commit.snapshot.time_millis <= start);
    (before.map_or(last, |commit| commit.id().min(last)), Confidence::Heuristic)
}

/// How often each commit was tried, by the numbers that a committer object gives its manifest lists.
///
/// Of the first commit of an object that is kept that is known only if none before it can have expired.
fn attempts(commits: &[Recorded], whole: bool) -> HashMap<SnapshotId, u64> {
    let mut counters: BTreeMap<&str, u64> = BTreeMap::new();
    let mut found = HashMap::new();
    for recorded in commits {
        let snapshot = &recorded.snapshot;
        let last = snapshot.changelog_manifest_list.as_ref().unwrap_or(&snapshot.delta_manifest_list);
        let (Some(instance), Some(first), Some(last)) = (
            committer_instance(&snapshot.delta_manifest_list),
            committer_counter(&snapshot.base_manifest_list),
            committer_counter(last),
        ) else {
            continue;
        };
        let before = counters.insert(instance, last + 1);
        let each = last.saturating_sub(first) + 1;
        if before.is_none() && first != 0 && !whole {
            continue;
        }
        let lists = (last + 1).checked_sub(before.unwrap_or(0));
        if let Some(lists) = lists.filter(|lists| each >= 2 && lists % each == 0) {
            found.insert(snapshot.id, lists / each);
        }
    }
    found
}
