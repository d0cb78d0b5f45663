//! Why a key is there, is not, or has another value: one reason, and what proves it.

mod absent;

use std::sync::Arc;

use super::{Certainty, Expected, Fate, Key, KeyHistory, KeyScope, Seen, Span, Version, Written, is_postpone};
use crate::error::{Error, Result};
use crate::memory::MemoryBudget;
use crate::notice::NoticeKind;
use crate::recon::accounting::RECORD_EXPIRY;
use crate::recon::entry_texts::EntryTexts;
use crate::recon::history::History;
use crate::recon::lookup::Confidence;
use crate::snapshot::SessionZone;
use crate::spec::{CommitIdentifier, CommitKind, Snapshot, SnapshotId};

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// No file, committed or not, has it.
    NeverSeen,
    /// A file has it that no commit names.
    NotYetCommitted,
    /// A later commit brings it.
    CommittedLater,
    /// The expected value lost to another version.
    SupersededBySequence,
    /// Its newest version deletes it.
    Tombstoned,
    /// A deletion vector names its row.
    VectorDeleted,
    /// It lies on level 0, which readers skip here.
    HiddenLevel0,
    /// It lies in the postpone bucket.
    HiddenPostpone,
    /// An OVERWRITE replaced its partition's files.
    RemovedByOverwrite,
    /// An OVERWRITE removed its partition.
    DroppedPartition,
    /// A state that was rolled back has it.
    RolledBack,
    /// A compaction dropped it by its age.
    ExpiredRecord,
    /// A compaction dropped it, and nothing says why it may.
    LostInCompaction,
    /// Another partition has it.
    OtherPartition,
    /// Another bucket than its own has it.
    OtherBucket,
    /// The visible value, and where it comes from.
    ValueFrom,
    /// It was decided before the history begins, or in files that cannot be read.
    UnknownBeforeHistory,
}

impl Reason {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeverSeen => "NEVER_SEEN",
            Self::NotYetCommitted => "NOT_YET_COMMITTED",
            Self::CommittedLater => "COMMITTED_LATER",
            Self::SupersededBySequence => "SUPERSEDED_BY_SEQUENCE",
            Self::Tombstoned => "TOMBSTONED",
            Self::VectorDeleted => "VECTOR_DELETED",
            Self::HiddenLevel0 => "HIDDEN_LEVEL0",
            Self::HiddenPostpone => "HIDDEN_POSTPONE",
            Self::RemovedByOverwrite => "REMOVED_BY_OVERWRITE",
            Self::DroppedPartition => "DROPPED_PARTITION",
            Self::RolledBack => "ROLLED_BACK",
            Self::ExpiredRecord => "EXPIRED_RECORD",
            Self::LostInCompaction => "LOST_IN_COMPACTION",
            Self::OtherPartition => "OTHER_PARTITION",
            Self::OtherBucket => "OTHER_BUCKET",
            Self::ValueFrom => "VALUE_FROM",
            Self::UnknownBeforeHistory => "UNKNOWN_BEFORE_HISTORY",
        }
    }
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The state that was read.
    pub at: SnapshotId,
    /// Its delta manifest list, which makes it that state and not another of its number.
    pub delta_list: String,
    /// The value that a column was expected to have.
    pub expected: Option<Expected>,
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// Why.
    pub reason: Reason,
    /// The same, for the person on call.
    pub sentence: String,
    /// The commit responsible, where there is one.
    pub commit: Option<Arc<Snapshot>>,
    /// The file that shows it.
    pub file: Option<String>,
    /// Sequence number of the version that shows it.
    pub sequence: Option<i64>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What is not known of the key.
    pub limits: Vec<NoticeKind>,
}

/// Explains a key in one state.
///
/// # Errors
/// As [`KeyHistory::load`]; a state that is not of this history.
pub async fn explain(
    history: &History,
    key: &Key,
    asked: &Asked,
    budget: &Arc<dyn MemoryBudget>,
    zone: &SessionZone,
) -> Result<Explanation> {
    let past = KeyHistory::load(history, key, KeyScope::default(), budget, zone).await?;
    explain_past(history, key, &past, asked, budget, zone).await
}

/// The same, of a past that is loaded already: that of every state, without what is not committed.
///
/// # Errors
/// As [`explain`].
pub async fn explain_past(
    history: &History,
    key: &Key,
    past: &KeyHistory,
    asked: &Asked,
    budget: &Arc<dyn MemoryBudget>,
    zone: &SessionZone,
) -> Result<Explanation> {
    // a tag may hold a state of that number which was rolled back
    let same = |own: &Snapshot| own.id == asked.at && own.delta_manifest_list == asked.delta_list;
    if !past.line.iter().any(|snapshot| same(snapshot)) {
        return Err(Error::not_found(format!("snapshot {} is not of the history that is in force", asked.at))
            .with_code("SnapshotExpired")
            .with_context("table", history.table().name())
            .with_hint(history.reach(zone)));
    }
    let one = One { history, key, past, asked, budget, zone, texts: history.texts(zone).await? };
    let mut found = one.answer().await?;
    found.limits.clone_from(&past.limits);
    Ok(found)
}

struct One<'a> {
    history: &'a History,
    key: &'a Key,
    past: &'a KeyHistory,
    asked: &'a Asked,
    budget: &'a Arc<dyn MemoryBudget>,
    zone: &'a SessionZone,
    texts: EntryTexts,
}

impl One<'_> {
    async fn answer(&self) -> Result<Explanation> {
        let spans: Vec<&Span> = self.past.seen_at(self.asked.at).collect();
        if let Some(why) = spans.iter().find_map(|span| match &span.seen {
            Seen::Unknown(why) => Some(why),
            _ => None,
        }) {
            let text = format!("what readers get of {} cannot be said: {why}", self.key.text());
            return Ok(self.told(Reason::UnknownBeforeHistory, Confidence::Exact, text));
        }
        let rows: Vec<&Span> = spans.iter().copied().filter(|span| span.seen.is_row()).collect();
        match rows.as_slice() {
            [] => self.absent(&spans).await,
            [one] => self.present(one).await,
            [one, other, ..] => {
                let same = one.unit.0 == other.unit.0;
                let text = format!(
                    "{} is there {} times: in bucket {} of {} and in bucket {} of {}; a key belongs in one place (D-13)",
                    self.key.text(),
                    rows.len(),
                    one.unit.1,
                    self.partition(one)?,
                    other.unit.1,
                    self.partition(other)?
                );
                let reason = if same { Reason::OtherBucket } else { Reason::OtherPartition };
                Ok(self.told(reason, Confidence::Exact, text))
            }
        }
    }

    fn partition(&self, span: &Span) -> Result<String> {
        let text = self.texts.partition(&span.unit.0)?;
        Ok(if text.is_empty() { "the table".to_string() } else { text })
    }

    /// Readers get a row.
    async fn present(&self, span: &Span) -> Result<Explanation> {
        let number = match &span.seen {
            Seen::Version(number) => Some(*number),
            Seen::Folded { of, .. } => of.last().copied(),
            Seen::Tombstone(_) | Seen::Unknown(_) => None,
        };
        let number = number.ok_or_else(|| Error::internal("a row of no version"))?;
        let winner = self.version(number)?;
        let expected = self.asked.expected.as_ref();
        let is_expected = match (expected, self.past.row_of(&span.seen)) {
            (Some(expected), Some(row)) => expected.is_in(row),
            _ => true,
        };
        if !is_expected && let Some(found) = self.elsewhere(winner).await? {
            return Ok(found);
        }
        let folded = match &span.seen {
            Seen::Folded { of, .. } => format!("; it is folded of {} versions, this is the last", of.len()),
            _ => String::new(),
        };
        let by = self.by(winner);
        let known = matches!(winner.origin.certainty, Certainty::Exact | Certainty::Inferred | Certainty::Ambiguous);
        let text = match known {
            true => format!(
                "the visible value of {} comes from {by}, sequence number {}{folded}",
                self.key.text(),
                winner.sequence
            ),
            false => format!(
                "the visible value of {} was written before the history begins: {}",
                self.key.text(),
                self.history.reach(self.zone)
            ),
        };
        let reason = if known { Reason::ValueFrom } else { Reason::UnknownBeforeHistory };
        let confidence = match winner.origin.certainty {
            Certainty::Inferred => Confidence::Inferred,
            Certainty::Ambiguous => Confidence::Heuristic,
            _ => Confidence::Exact,
        };
        Ok(self.told(reason, confidence, text).of(self, winner))
    }

    /// Where the expected value is, when it is not what readers get.
    async fn elsewhere(&self, winner: &Version) -> Result<Option<Explanation>> {
        let Some(expected) = &self.asked.expected else { return Ok(None) };
        let has = |version: &&Version| !version.kind.is_retract() && expected.is_in(&version.row);
        let at = self.asked.at;
        let came = |version: &Version| self.origin(version).or_else(|| version.added.clone());
        let all: Vec<&Version> = self.past.versions.iter().filter(has).collect();
        let before = all.iter().rev().find(|version| came(version).is_none_or(|commit| commit.id <= at));
        if let Some(version) = before {
            match version.fate(at) {
                Fate::Hidden(which) => return Ok(Some(self.hidden(version, which))),
                Fate::Deleted => return Ok(Some(self.vector(version))),
                Fate::Unknown => return Ok(None),
                // it was removed before anything newer was there: no sequence number decided that
                Fate::Gone if version.sequence > winner.sequence => {
                    return Ok(Some(self.removed_before(version, winner)));
                }
                _ => {}
            }
            if let Some(overwrite) = self.overwritten(version) {
                let text = format!(
                    "the expected value of {} was written by {}, and {} removed it with its partition's files",
                    self.key.text(),
                    self.by(version),
                    self.commit_text(overwrite)
                );
                let mut found = self.told(Reason::RemovedByOverwrite, Confidence::Exact, text).of(self, version);
                found.commit = Some(Arc::clone(overwrite));
                return Ok(Some(found));
            }
            let newer = match version.fate(at) {
                Fate::Loses(number) => self.version(number)?,
                _ => winner,
            };
            let later = match (came(version), came(newer)) {
                (Some(own), Some(other)) if own.id > other.id => {
                    " although it was committed later: sequence numbers and commits are in another order (D-9)"
                }
                _ => "",
            };
            let text = format!(
                "the expected value of {} was written by {} with sequence number {}, and lost to {} with {}{later}",
                self.key.text(),
                self.by(version),
                version.sequence,
                self.by(newer),
                newer.sequence
            );
            return Ok(Some(self.told(Reason::SupersededBySequence, Confidence::Exact, text).of(self, newer)));
        }
        if let Some(version) = all.first() {
            return Ok(Some(self.later(version)));
        }
        if let (Some(found), _) = self.rolled_back(Some(expected)).await? {
            return Ok(Some(found));
        }
        let more = KeyScope { uncommitted: true, ..KeyScope::default() };
        let more = KeyHistory::load(self.history, self.key, more, self.budget, self.zone).await?;
        let own = more.versions.iter().filter(has).find(|version| version.written == Written::Uncommitted);
        Ok(own.map(|version| self.uncommitted(version)))
    }

    /// The OVERWRITE that took a version away which readers had got until then.
    fn overwritten<'a>(&self, version: &'a Version) -> Option<&'a Arc<Snapshot>> {
        let removal = version.removed.as_ref()?;
        let was_seen = || version.fate(SnapshotId(removal.id.0.saturating_sub(1))) == Fate::Wins;
        let overwrote = removal.commit_kind == CommitKind::Overwrite && removal.id <= self.asked.at;
        (overwrote && version.fate(self.asked.at) == Fate::Gone && was_seen()).then_some(removal)
    }

    /// The file of the expected value was removed, and what readers get came in other ways.
    fn removed_before(&self, version: &Version, winner: &Version) -> Explanation {
        let key = self.key.text();
        let by = self.by(version);
        let removed = version.removed.as_ref().filter(|commit| commit.id <= self.asked.at);
        let Some(commit) = removed else {
            let text = format!(
                "the expected value of {key} was written by {by}, and what removed it is not kept; {} wrote what readers get",
                self.by(winner)
            );
            return self.told(Reason::UnknownBeforeHistory, Confidence::Exact, text).of(self, version);
        };
        let who = self.commit_text(commit);
        let text = format!(
            "the expected value of {key} was written by {by} and removed by {who}; {} wrote what readers get",
            self.by(winner)
        );
        let (reason, confidence) = match commit.commit_kind {
            CommitKind::Overwrite => (Reason::RemovedByOverwrite, Confidence::Exact),
            _ => (Reason::LostInCompaction, Confidence::Inferred),
        };
        let mut found = self.told(reason, confidence, text).of(self, version);
        found.commit = Some(Arc::clone(commit));
        found
    }

    fn version(&self, number: usize) -> Result<&Version> {
        self.past.versions.get(number).ok_or_else(|| Error::internal("a version that is not there"))
    }

    /// The commit that a version comes from.
    fn origin(&self, version: &Version) -> Option<Arc<Snapshot>> {
        version.origin.snapshot.and_then(|id| self.past.commit(id)).cloned()
    }

    fn by(&self, version: &Version) -> String {
        match (self.origin(version), version.origin.snapshot, version.origin.candidates.as_slice()) {
            (Some(commit), ..) => self.commit_text(&commit),
            (None, Some(id), _) => format!("snapshot {id}"),
            (None, None, []) => "a commit before the history".to_string(),
            (None, None, several) => {
                let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
                format!("snapshot {}", ids.join(" or "))
            }
        }
    }

    fn commit_text(&self, commit: &Snapshot) -> String {
        format!(
            "snapshot {} ({} of {}, identifier {}, {})",
            commit.id,
            commit.commit_kind.as_str(),
            commit.commit_user,
            CommitIdentifier(commit.commit_identifier),
            self.zone.show(commit.time_millis)
        )
    }

    fn tombstone(&self, version: &Version) -> Explanation {
        let text = format!(
            "{} is deleted: its newest version is {}, written by {} with sequence number {}{}",
            self.key.text(),
            version.kind.as_str(),
            self.by(version),
            version.sequence,
            self.until()
        );
        self.told(Reason::Tombstoned, Confidence::Exact, text).of(self, version)
    }

    /// When readers got it last.
    fn until(&self) -> String {
        let rows = self.past.spans.iter().filter(|span| span.seen.is_row());
        let last = rows.filter_map(|span| span.to).filter(|to| *to < self.asked.at).max();
        last.map_or(String::new(), |last| format!("; readers got it until snapshot {last}"))
    }

    /// The commit whose index manifest names the row first; where the state before it is not kept, an earlier one may be
    /// it, and none is named.
    fn vector(&self, version: &Version) -> Explanation {
        let key = self.key.text();
        let since = version.fates.iter().find(|(_, fate)| *fate == Fate::Deleted).map(|(at, _)| *at);
        let commit = since.filter(|at| self.past.has_state_before(*at)).and_then(|at| self.past.commit(at)).cloned();
        let by = match (&commit, since) {
            (Some(commit), _) => format!("since {}", self.commit_text(commit)),
            (None, Some(at)) => {
                format!("in snapshot {at}; the state before it is not kept, so the commit may be an older one")
            }
            (None, None) => "since a commit that is not kept".to_string(),
        };
        let text = format!("a deletion vector names row {} of the file that holds {key}, {by}", version.position);
        let mut found = self.told(Reason::VectorDeleted, Confidence::Exact, text).of(self, version);
        found.commit = commit;
        found
    }

    fn hidden(&self, version: &Version, which: crate::notice::HiddenRows) -> Explanation {
        let text = format!("{} was written by {}, but {}", self.key.text(), self.by(version), which.rule());
        let reason = if is_postpone(which) { Reason::HiddenPostpone } else { Reason::HiddenLevel0 };
        self.told(reason, Confidence::Exact, text).of(self, version)
    }

    fn later(&self, version: &Version) -> Explanation {
        let text = format!(
            "{} comes with {}, after snapshot {} that was read",
            self.key.text(),
            self.by(version),
            self.asked.at
        );
        self.told(Reason::CommittedLater, Confidence::Exact, text).of(self, version)
    }

    fn uncommitted(&self, version: &Version) -> Explanation {
        let text = format!(
            "{} is in a data file that no commit names: it was written, and its commit never happened, or was rolled back",
            self.key.text()
        );
        self.told(Reason::NotYetCommitted, Confidence::Exact, text).of(self, version)
    }

    fn told(&self, reason: Reason, confidence: Confidence, sentence: String) -> Explanation {
        let limits = Vec::new();
        Explanation { reason, sentence, commit: None, file: None, sequence: None, confidence, limits }
    }
}

impl Explanation {
    fn of(mut self, one: &One<'_>, version: &Version) -> Self {
        self.commit = one.origin(version).or_else(|| version.added.clone());
        self.file = Some(version.file.clone());
        self.sequence = Some(version.sequence);
        self
    }
}
