//! The past of one key: every version that a kept file holds, where each comes from, and what readers saw of them.
//!
//! ```text
//! version  snapshot  source   seq  visible
//! 1        3 APPEND  APPEND   7    3..4      lost to 2
//! 2        5 APPEND  APPEND   9    5..6      its file was removed by 7
//! 3        7 COMPACT COMPACT  9    7..       the same row again: it comes from snapshot 5
//! ```
//!
//! | file | one idea |
//! |---|---|
//! | `key` | the values asked for, in the types of the key |
//! | `life` | which files can hold the key, and when each came and went |
//! | `rows` | what they hold of it |
//! | `origin` | which commit a version comes from |
//! | `timeline` | what readers saw, state by state |
//! | `unreferenced` | files that no commit names |
//! | `expected` | a value that was expected |
//! | `explain` | why a key is there, is not, or is another |

mod expected;
mod explain;
mod key;
mod life;
mod origin;
mod rows;
mod timeline;
mod unreferenced;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::RecordBatch;

pub use expected::Expected;
pub use explain::{Asked, Reason, explain, explain_past};
pub use key::Key;
pub use origin::Certainty;
pub use timeline::Fate;

use self::life::{Ident, Lives, ident};
use self::rows::{FileRows, FoundRow, RowReader};
use self::timeline::{Material, UnitId};
use super::history::History;
use crate::error::Result;
use crate::memory::MemoryBudget;
use crate::notice::{HiddenRows, NoticeKind};
use crate::scan::PlannedFile;
use crate::snapshot::SessionZone;
use crate::spec::{BinaryRow, FileSource, RowKind, Snapshot, SnapshotId};

/// Files that a notice names.
const NAMED: usize = 3;

/// Who wrote the file of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// A writer or a compaction, as the manifest entry tells.
    By(Option<FileSource>),
    /// It is a row of a changelog.
    Changelog,
    /// No commit names it.
    Uncommitted,
}

impl Written {
    /// As shown.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Self::By(source) => source.map(FileSource::as_str),
            Self::Changelog => Some("CHANGELOG"),
            Self::Uncommitted => Some("UNCOMMITTED"),
        }
    }
}

/// The commit a version comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its snapshot; None where several can be it, or none that is kept.
    pub snapshot: Option<SnapshotId>,
    /// How sure that is.
    pub certainty: Certainty,
    /// All that can be it, where there are several.
    pub candidates: Vec<SnapshotId>,
}

/// A row of the key as a file holds it.
#[derive(Debug, Clone)]
pub struct Version {
    /// The commit that added its file; None: before the history, or none.
    pub added: Option<Arc<Snapshot>>,
    /// Who wrote the file.
    pub written: Written,
    /// Path of the file below the table.
    pub file: String,
    /// Level it came to.
    pub level: i32,
    /// Position in the file.
    pub position: u64,
    /// Sequence number, as a merge sees it.
    pub sequence: i64,
    /// Row kind.
    pub kind: RowKind,
    /// Columns of the table, then sequence number and kind; one row.
    pub row: RecordBatch,
    /// Where it comes from.
    pub origin: Origin,
    /// The commit that removed its file, or whose deletion vector named it first.
    pub removed: Option<Arc<Snapshot>>,
    /// What the states made of it, where that changes.
    pub fates: Vec<(SnapshotId, Fate)>,
    /// More about it, for people.
    pub notes: Vec<String>,
    unit: UnitId,
}

impl Version {
    /// What a state made of it.
    pub fn fate(&self, at: SnapshotId) -> Fate {
        self.fates.iter().rev().find(|(from, _)| *from <= at).map_or(Fate::Gone, |(_, fate)| *fate)
    }

    /// The version that it lost to first, by its place.
    pub fn loses_to(&self) -> Option<usize> {
        self.fates.iter().find_map(|(_, fate)| match fate {
            Fate::Loses(winner) => Some(*winner),
            _ => None,
        })
    }
}

/// What readers got of the key.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// This version, by its place.
    Version(usize),
    /// Nothing: this version ends the key.
    Tombstone(usize),
    /// Several versions in one row.
    Folded {
        /// Those.
        of: Vec<usize>,
        /// Columns of the table, then sequence number and kind.
        row: RecordBatch,
        /// Whether it ends the key.
        retract: bool,
    },
    /// It cannot be said, and why.
    Unknown(String),
}

impl Seen {
    /// Whether readers got a row.
    pub fn is_row(&self) -> bool {
        matches!(self, Self::Version(_) | Self::Folded { retract: false, .. })
    }
}

/// A stretch of states in which readers got the same of one bucket.
#[derive(Debug, Clone)]
pub struct Span {
    /// Partition and bucket.
    pub unit: (BinaryRow, i32),
    /// Its first state.
    pub from: SnapshotId,
    /// Its last; None: it goes on.
    pub to: Option<SnapshotId>,
    /// What they got.
    pub seen: Seen,
}

/// What to look at.
#[derive(Debug, Clone, Copy)]
pub struct KeyScope {
    /// First snapshot.
    pub from: i64,
    /// Last snapshot.
    pub to: i64,
    /// Whether files are searched that no commit names.
    pub uncommitted: bool,
    /// Whether changelogs are searched.
    pub changelog: bool,
}

impl Default for KeyScope {
    fn default() -> Self {
        Self { from: i64::MIN, to: i64::MAX, uncommitted: false, changelog: false }
    }
}

/// The past of a key.
#[derive(Debug)]
pub struct KeyHistory {
    /// Versions, oldest first.
    pub versions: Vec<Version>,
    /// What readers got, by state and bucket.
    pub spans: Vec<Span>,
    /// What is not told, and why.
    pub limits: Vec<NoticeKind>,
    /// Data files opened.
    #[cfg(test)]
    pub files_opened: u64,
    /// Whether all that ever was of the key is here.
    pub whole: bool,
    line: Vec<Arc<Snapshot>>,
    /// Those whose state can be read, ascending.
    states: Vec<SnapshotId>,
}

impl KeyHistory {
    /// Reads all that is kept of a key.
    ///
    /// Cost: the delta manifests of all commits, which the cache keeps; the key columns of each file that can hold the
    /// key; an index manifest for each state that changed it.
    ///
    /// # Errors
    /// Storage that does not answer, memory refused. What is gone or damaged is told in `limits`.
    pub async fn load(
        history: &History,
        key: &Key,
        scope: KeyScope,
        budget: &Arc<dyn MemoryBudget>,
        zone: &SessionZone,
    ) -> Result<Self> {
        let mut lives = Lives::load(history, key).await?;
        let mut reader = RowReader::new(history, key, budget, zone.zone())?;
        let mut found = Found::default();
        for (id, rows) in reader.read_all(&lives).await? {
            found.add_life(&lives, &id, rows)?;
        }
        if scope.changelog {
            let files = lives.changelogs(history, key, (scope.from, scope.to)).await?;
            let planned: Vec<Arc<PlannedFile>> = files.iter().map(|(_, file)| Arc::clone(file)).collect();
            for ((at, file), rows) in files.iter().zip(reader.read(&planned).await?) {
                found.add_file(file, Some(Arc::clone(lives.snapshot(*at)?)), Written::Changelog, rows);
            }
        }
        if scope.uncommitted {
            let (files, unread) = unreferenced::files(history, key, &lives).await?;
            if let Some(first) = unread.first() {
                // a file that it names would be told as one that nothing names
                let (table, why) = (history.table().name(), format!("{first} cannot be read"));
                let names = files.iter().map(|file| file.entry.file.file_name.clone());
                let (files, more) = (names.take(NAMED).collect(), files.len().saturating_sub(NAMED));
                lives.limits.push(NoticeKind::FilesNotRead { table, files, more, why });
            }
            let files = if unread.is_empty() { files } else { Vec::new() };
            for (file, rows) in unreferenced::rows(&mut reader, &files).await? {
                found.add_file(&file, None, Written::Uncommitted, rows);
            }
        }
        let root = format!("{}/", history.table().root());
        let Found { mut versions, unread } = found;
        versions.sort_by_key(|(id, version)| {
            let added = version.added.as_ref().map(|snapshot| snapshot.id);
            let last = version.written == Written::Uncommitted;
            (last, added, version.sequence, id.clone(), version.position)
        });
        let mut of_file: HashMap<Ident, Vec<usize>> = HashMap::new();
        let mut rows = Vec::with_capacity(versions.len());
        for (number, (id, version)) in versions.iter_mut().enumerate() {
            if matches!(version.written, Written::By(_)) {
                of_file.entry(id.clone()).or_default().push(number);
            }
            if let Some(below) = version.file.strip_prefix(&root) {
                version.file = below.to_string();
            }
            let (position, sequence, kind) = (version.position, version.sequence, version.kind);
            rows.push(FoundRow { position, sequence, kind, row: version.row.clone() });
        }
        let mut versions: Vec<Version> = versions.into_iter().map(|(_, version)| version).collect();
        let material =
            Material { history, key, lives: &lives, reader: &reader, rows: &rows, of_file: &of_file, unread: &unread };
        let timeline = material.timeline((scope.from, scope.to)).await?;
        for (version, fates) in versions.iter_mut().zip(timeline.fates) {
            version.fates = fates;
        }
        origin::set_origins(&mut versions, &lives, reader.rules.snapshot_ordering());
        let mut limits = lives.limits.clone();
        let names: Vec<String> = unread.keys().map(|(_, _, name)| name.clone()).collect();
        if let Some(why) = unread.values().next() {
            let (table, more) = (history.table().name(), names.len().saturating_sub(NAMED));
            let files = names.into_iter().take(NAMED).collect();
            limits.push(NoticeKind::FilesNotRead { table, files, more, why: why.clone() });
        }
        if let Some(first) = history.earliest().filter(|_| !history.is_whole()) {
            limits.push(NoticeKind::HistoryBegins {
                table: history.table().name(),
                snapshot: first.id().0,
                time: zone.show(first.snapshot.time_millis),
            });
        }
        if history.pin.fallback.is_some() || history.pin.primary.is_some() {
            let branch = history.table().ident().branch.clone();
            limits.push(NoticeKind::OneBranchOnly { table: history.table().name(), branch });
        }
        let line: Vec<Arc<Snapshot>> = lives.line.iter().map(|recorded| Arc::clone(&recorded.snapshot)).collect();
        let whole = history.is_whole() && limits.is_empty();
        let states = lives.states.iter().map(|state| lives.snapshot(state.at).map(|snapshot| snapshot.id));
        let states = states.collect::<Result<_>>()?;
        let mut history = Self {
            versions,
            spans: timeline.spans,
            limits,
            #[cfg(test)]
            files_opened: reader.opened(),
            whole,
            line,
            states,
        };
        history.set_removals();
        history.set_notes();
        Ok(history)
    }

    /// A commit by its number.
    pub fn commit(&self, id: SnapshotId) -> Option<&Arc<Snapshot>> {
        self.line.iter().find(|snapshot| snapshot.id == id)
    }

    /// Whether the state right before a commit can be read: what its own state shows anew is its doing then.
    fn has_state_before(&self, id: SnapshotId) -> bool {
        id.0 == 1 || id.0.checked_sub(1).is_some_and(|before| self.states.contains(&SnapshotId(before)))
    }

    /// Those whose state can be read, ascending: without commits of which the changes alone are kept.
    pub fn states(&self) -> &[SnapshotId] {
        &self.states
    }

    /// What readers of a state got.
    pub fn seen_at(&self, at: SnapshotId) -> impl Iterator<Item = &Span> {
        self.spans.iter().filter(move |span| span.from <= at && span.to.is_none_or(|to| at <= to))
    }

    /// The row of what was seen: columns of the table, then sequence number and kind.
    pub fn row_of<'a>(&'a self, seen: &'a Seen) -> Option<&'a RecordBatch> {
        match seen {
            Seen::Version(number) => self.versions.get(*number).map(|version| &version.row),
            Seen::Folded { row, retract: false, .. } => Some(row),
            Seen::Folded { .. } | Seen::Tombstone(_) | Seen::Unknown(_) => None,
        }
    }

    /// First and last state in which a version was, or was part of, what readers got; the last is None while it is.
    pub fn visible(&self, number: usize) -> Option<(SnapshotId, Option<SnapshotId>)> {
        let shows = |seen: &Seen| match seen {
            Seen::Version(own) => *own == number,
            Seen::Folded { of, retract: false, .. } => of.contains(&number),
            Seen::Folded { .. } | Seen::Tombstone(_) | Seen::Unknown(_) => false,
        };
        let mut spans = self.spans.iter().filter(|span| shows(&span.seen));
        let first = spans.next()?;
        let last = spans.next_back().unwrap_or(first);
        Some((first.from, last.to))
    }

    fn set_removals(&mut self) {
        let mut removals = Vec::new();
        for version in &self.versions {
            let deleted = version.fates.iter().find(|(_, fate)| *fate == Fate::Deleted).map(|(at, _)| *at);
            let deleted = deleted.filter(|at| self.has_state_before(*at));
            removals.push(deleted.and_then(|at| self.commit(at).cloned()));
        }
        for (version, removal) in self.versions.iter_mut().zip(removals) {
            version.removed = removal.or(version.removed.take());
        }
    }

    fn set_notes(&mut self) {
        let mut notes = vec![Vec::new(); self.versions.len()];
        for (version, notes) in self.versions.iter().zip(&mut notes) {
            for (at, fate) in &version.fates {
                match fate {
                    Fate::Hidden(which) => notes.push(format!("hidden from {at}: {}", which.rule())),
                    Fate::Deleted => notes.push(format!("named by a deletion vector from {at}")),
                    Fate::TakesPart => notes.push(format!("folded with others from {at}")),
                    Fate::Ignored => notes.push(format!("nothing of it is left by the merge from {at}")),
                    Fate::Unknown => notes.push(format!("state {at} cannot be merged")),
                    Fate::Wins if version.kind.is_retract() => notes.push(format!("ends the key from {at}")),
                    Fate::Wins | Fate::Loses(_) | Fate::Gone => {}
                }
            }
            if !version.origin.candidates.is_empty() {
                let ids: Vec<String> = version.origin.candidates.iter().map(ToString::to_string).collect();
                notes.push(format!("it may come from snapshot {}", ids.join(" or ")));
            }
            notes.dedup();
        }
        for (version, more) in self.versions.iter_mut().zip(notes) {
            version.notes.extend(more);
        }
    }
}

/// Versions with their files, and files that cannot be read.
#[derive(Default)]
struct Found {
    versions: Vec<(Ident, Version)>,
    unread: BTreeMap<Ident, String>,
}

impl Found {
    fn add_life(&mut self, lives: &Lives, id: &Ident, rows: FileRows) -> Result<()> {
        let Some(life) = lives.files.get(id) else { return Ok(()) };
        let added = life.added.map(|at| lives.snapshot(at).cloned()).transpose()?;
        let removed = life.removed.map(|at| lives.snapshot(at).cloned()).transpose()?;
        let before = self.versions.len();
        self.add_file(&life.planned, added, Written::By(life.planned.entry.file.file_source), rows);
        for (_, version) in self.versions.iter_mut().skip(before) {
            version.removed.clone_from(&removed);
            for (at, level) in &life.moved {
                version.notes.push(format!("moved to level {level} by {}", lives.snapshot(*at)?.id));
            }
        }
        Ok(())
    }

    fn add_file(&mut self, file: &PlannedFile, added: Option<Arc<Snapshot>>, written: Written, rows: FileRows) {
        let id = ident(&file.entry);
        let rows = match rows {
            FileRows::Found(rows) => rows,
            FileRows::Unread(why) => {
                self.unread.insert(id, why);
                return;
            }
        };
        for row in rows {
            let unknown = Origin { snapshot: None, certainty: Certainty::None, candidates: Vec::new() };
            let version = Version {
                added: added.clone(),
                written,
                file: file.location.to_string(),
                level: file.entry.file.level,
                position: row.position,
                sequence: row.sequence,
                kind: row.kind,
                row: row.row,
                origin: unknown,
                removed: None,
                fates: Vec::new(),
                notes: Vec::new(),
                unit: (id.0.clone(), id.1),
            };
            self.versions.push((id.clone(), version));
        }
    }
}

/// What a hidden version waits for.
pub(super) fn is_postpone(which: HiddenRows) -> bool {
    which == HiddenRows::PostponeBucket
}

#[cfg(test)]
mod tests;
