//! Commits as runs: the snapshots that one user published in a row under one identifier.
//!
//! A checkpoint makes an APPEND and often a COMPACT snapshot of one identity. An identity that comes back later, after
//! other commits, is a run of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::entry_texts::EntryTexts;
use super::history::{FileChange, History, KeptAs, Recorded, Standing};
use crate::error::Result;
use crate::spec::{CommitKind, Snapshot, SnapshotId};

/// What snapshots of one kind did to data files. Rows are physical.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileCounts {
    /// Files added.
    pub added: u64,
    /// Rows of those.
    pub added_rows: i64,
    /// Files removed.
    pub deleted: u64,
    /// Rows of those.
    pub deleted_rows: i64,
    /// Files moved to another level as they are.
    pub upgraded: u64,
}

impl FileCounts {
    fn add(&mut self, change: &FileChange) {
        let rows = change.entry().file.row_count;
        match change {
            FileChange::Add(_) => {
                self.added += 1;
                self.added_rows = self.added_rows.saturating_add(rows);
            }
            FileChange::Delete(_) => {
                self.deleted += 1;
                self.deleted_rows = self.deleted_rows.saturating_add(rows);
            }
            FileChange::Upgrade { .. } => self.upgraded += 1,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            added: self.added + other.added,
            added_rows: self.added_rows.saturating_add(other.added_rows),
            deleted: self.deleted + other.deleted,
            deleted_rows: self.deleted_rows.saturating_add(other.deleted_rows),
            upgraded: self.upgraded + other.upgraded,
        }
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct CommitRun {
    /// Who.
    pub user: String,
    /// Which change.
    pub identifier: i64,
    /// Its snapshots, ascending, each with its kind.
    pub snapshots: Vec<Arc<Snapshot>>,
    /// As what the least well kept of them is kept.
    pub kept: KeptAs,
    /// Whether it is of the line that is in force; what was rolled back makes runs of its own.
    pub standing: Standing,
    /// Watermark before the run; None where there was none, or what was before is not kept.
    pub watermark_before: Option<i64>,
    /// Per kind; without those of which the list cannot be read.
    pub counts: BTreeMap<&'static str, FileCounts>,
    /// Partition and bucket of what was touched, as text.
    pub units: BTreeSet<String>,
    /// The committer objects at work, by the names of manifest lists; more than one in a run is a restart.
    pub instances: BTreeSet<String>,
    /// Milliseconds since the user's run before this one.
    pub gap_millis: Option<i64>,
    /// Why its changes are not, or not all, counted.
    pub unread: Option<String>,
}

impl CommitRun {
    /// Number of its first snapshot.
    pub fn first(&self) -> Option<SnapshotId> {
        self.snapshots.first().map(|snapshot| snapshot.id)
    }

    /// Number of its last snapshot.
    pub fn last(&self) -> Option<SnapshotId> {
        self.snapshots.last().map(|snapshot| snapshot.id)
    }

    /// Numbers of its snapshots of one kind.
    pub fn ids(&self, kind: CommitKind) -> Vec<SnapshotId> {
        self.snapshots.iter().filter(|snapshot| snapshot.commit_kind == kind).map(|snapshot| snapshot.id).collect()
    }

    /// Over all kinds.
    pub fn total(&self) -> FileCounts {
        self.counts.values().fold(FileCounts::default(), |sum, counts| sum.plus(*counts))
    }

    /// Counts of one kind.
    pub fn of(&self, kind: CommitKind) -> FileCounts {
        self.counts.get(kind.as_str()).copied().unwrap_or_default()
    }

    /// Whether it changed no data file; not known where a list cannot be read.
    pub fn is_empty(&self) -> Option<bool> {
        self.unread.is_none().then(|| self.total() == FileCounts::default())
    }
}

/// The committer object that wrote a manifest list: the UUID in its name. Writers that take a new one for each attempt are
/// a new object each time.
pub fn committer_instance(list: &str) -> Option<&str> {
    const UUID: usize = 36;
    let uuid = list.strip_prefix("manifest-list-")?.get(..UUID)?;
    let is_uuid = uuid.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    is_uuid.then_some(uuid)
}

/// The number behind the UUID in a manifest list's name: a committer counts its lists.
pub fn committer_counter(list: &str) -> Option<u64> {
    let uuid = committer_instance(list)?;
    let (_, rest) = list.split_once(uuid)?;
    let digits = rest.strip_prefix('-')?;
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// All commits of a history as runs, oldest first; what was rolled back is told as such.
///
/// Cost: the delta manifests of every commit, which the cache keeps.
///
/// # Errors
/// An entry whose partition cannot be decoded. A list that is gone is told in its run.
pub async fn commits(history: &History, texts: &EntryTexts) -> Result<Vec<CommitRun>> {
    let changes = history.all_changes(&history.commits).await;
    let mut runs: Vec<CommitRun> = Vec::new();
    let mut before: Option<&Recorded> = None;
    // the line that is in force first: what was rolled back stands between no two of its commits
    let (mut in_force, mut aside) = (Vec::new(), Vec::new());
    for (recorded, changes) in history.commits.iter().zip(changes) {
        if recorded.standing == Standing::InForce { &mut in_force } else { &mut aside }.push((recorded, changes));
    }
    for (recorded, changes) in in_force.into_iter().chain(aside) {
        let snapshot = &recorded.snapshot;
        if before.is_some_and(|before| before.standing == Standing::InForce) && recorded.standing != Standing::InForce {
            before = None;
        }
        let continues = runs.last().is_some_and(|run| {
            run.user == snapshot.commit_user
                && run.identifier == snapshot.commit_identifier
                && run.standing == recorded.standing
                && before.is_some_and(|before| before.id().0.checked_add(1) == Some(snapshot.id.0))
        });
        if !continues {
            let follows = before.filter(|before| before.id().0.checked_add(1) == Some(snapshot.id.0));
            let is_of = |run: &&CommitRun| run.user == snapshot.commit_user && run.standing == recorded.standing;
            let last_of_user = runs.iter().rev().find(is_of);
            let gap_millis = last_of_user
                .and_then(|run| run.snapshots.last())
                .and_then(|last| snapshot.time_millis.checked_sub(last.time_millis));
            runs.push(CommitRun {
                user: snapshot.commit_user.clone(),
                identifier: snapshot.commit_identifier,
                snapshots: Vec::new(),
                kept: recorded.kept.clone(),
                standing: recorded.standing,
                watermark_before: follows.and_then(|before| before.snapshot.watermark),
                counts: BTreeMap::new(),
                units: BTreeSet::new(),
                instances: BTreeSet::new(),
                gap_millis,
                unread: None,
            });
        }
        before = Some(recorded);
        let Some(run) = runs.last_mut() else { continue };
        run.snapshots.push(Arc::clone(snapshot));
        if run.kept == KeptAs::Snapshot {
            run.kept = recorded.kept.clone();
        }
        run.instances.extend(committer_instance(&snapshot.delta_manifest_list).map(str::to_string));
        match changes {
            Ok(changes) => {
                let counts = run.counts.entry(snapshot.commit_kind.as_str()).or_default();
                for change in &changes {
                    counts.add(change);
                    run.units.insert(texts.unit(change.entry())?);
                }
            }
            Err(error) => run.unread = Some(error.to_string()),
        }
    }
    runs.sort_by_key(|run| (run.first(), run.standing == Standing::InForce));
    Ok(runs)
}

/// Commits of one user in one stretch of time.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitRate {
    /// Start of the stretch, epoch milliseconds.
    pub start_millis: i64,
    /// Who.
    pub user: String,
    /// Runs that began in it.
    pub commits: u64,
    /// Snapshots of those.
    pub snapshots: u64,
    /// Runs without a change of data files.
    pub empty: u64,
    /// Median of the distances of a run to the user's run before it, milliseconds.
    pub median_gap_millis: Option<i64>,
    /// The distance that 95 of 100 do not exceed.
    pub p95_gap_millis: Option<i64>,
    /// Physical rows added by APPEND and OVERWRITE snapshots.
    pub rows_added: i64,
}

/// Rates of commits, without what was rolled back, by stretches of `window_millis` (from 1) and users, in order.
pub fn commit_rates(runs: &[CommitRun], window_millis: i64) -> Vec<CommitRate> {
    let window = window_millis.max(1);
    let mut found: BTreeMap<(i64, &str), (CommitRate, Vec<i64>)> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.standing != Standing::RolledBack) {
        let Some(first) = run.snapshots.first() else { continue };
        let start = first.time_millis.div_euclid(window).saturating_mul(window);
        let (rate, gaps) = found.entry((start, &run.user)).or_insert_with(|| {
            let rate = CommitRate {
                start_millis: start,
                user: run.user.clone(),
                commits: 0,
                snapshots: 0,
                empty: 0,
                median_gap_millis: None,
                p95_gap_millis: None,
                rows_added: 0,
            };
            (rate, Vec::new())
        });
        rate.commits += 1;
        rate.snapshots += run.snapshots.len() as u64;
        rate.empty += u64::from(run.is_empty() == Some(true));
        let rows = [CommitKind::Append, CommitKind::Overwrite].map(|kind| run.of(kind).added_rows);
        rate.rows_added = rows.iter().fold(rate.rows_added, |sum, rows| sum.saturating_add(*rows));
        gaps.extend(run.gap_millis);
    }
    let finish = |(mut rate, mut gaps): (CommitRate, Vec<i64>)| {
        gaps.sort_unstable();
        let at = |percent: usize| gaps.get((gaps.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        (rate.median_gap_millis, rate.p95_gap_millis) = (at(50), at(95));
        rate
    };
    found.into_values().map(finish).collect()
}

#[cfg(test)]
mod tests;
