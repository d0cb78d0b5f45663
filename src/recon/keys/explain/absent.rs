//! Why readers get nothing of a key.

use std::sync::Arc;

use super::super::life::{candidates, line_of};
use super::super::rows::{FileRows, FoundRow, RowReader};
use super::super::timeline::is_of_state;
use super::super::{Expected, Fate, KeyHistory, KeyScope, Seen, Span, Version, Written};
use super::{Explanation, One, RECORD_EXPIRY, Reason};
use crate::error::Result;
use crate::notice::NoticeKind;
use crate::recon::history::{FileChange, KeptAs, Standing};
use crate::recon::lookup::Confidence;
use crate::scan::PlannedFile;
use crate::spec::options::BucketFunction;
use crate::spec::{CommitKind, Snapshot};

impl One<'_> {
    /// Readers get nothing of this branch, and another branch may give them the partition.
    async fn of_other_branch(&self) -> Result<Option<Explanation>> {
        let pin = &self.history.pin;
        let Some(other) = pin.fallback.as_ref().or(pin.primary.as_ref()) else { return Ok(None) };
        let own = self.key.partition(&pin.schema)?;
        let live = match self.past.commit(self.asked.at) {
            Some(commit) => self.history.live(commit).await?,
            None => Vec::new(),
        };
        let is_here = own.is_some_and(|own| live.iter().any(|entry| entry.partition == own));
        // a fallback gives the partitions that are not here, a primary branch all it has
        if is_here && pin.primary.is_none() {
            return Ok(None);
        }
        let (branch, here) = (&other.table.ident().branch, &pin.table.ident().branch);
        let text = format!(
            "branch '{here}' does not have {}, and readers get what branch '{branch}' has of its partition, which was not \
             looked at: ask for t$branch_{branch}",
            self.key.text()
        );
        Ok(Some(self.told(Reason::UnknownBeforeHistory, Confidence::Exact, text)))
    }

    /// Readers get nothing.
    pub(super) async fn absent(&self, spans: &[&Span]) -> Result<Explanation> {
        let at = self.asked.at;
        if spans.is_empty()
            && let Some(found) = self.of_other_branch().await?
        {
            return Ok(found);
        }
        for span in spans {
            let number = match &span.seen {
                Seen::Tombstone(number) => Some(*number),
                Seen::Folded { of, retract: true, .. } => of.last().copied(),
                _ => None,
            };
            if let Some(number) = number {
                return Ok(self.tombstone(self.version(number)?));
            }
        }
        for version in self.past.versions.iter().rev() {
            match version.fate(at) {
                Fate::Hidden(which) => return Ok(self.hidden(version, which)),
                Fate::Deleted => return Ok(self.vector(version)),
                Fate::Ignored if version.kind.is_retract() => return Ok(self.tombstone(version)),
                _ => {}
            }
        }
        let ended = self.past.spans.iter().filter(|span| span.to.is_some_and(|to| to < at));
        if let Some(last) = ended.max_by_key(|span| span.to)
            && let Some(found) = self.gone(last).await?
        {
            return Ok(found);
        }
        let brought = self.past.spans.iter().filter(|span| span.from > at && span.seen.is_row()).min_by_key(|s| s.from);
        let first = match brought.map(|span| &span.seen) {
            Some(Seen::Version(number)) => Some(self.version(*number)?),
            Some(Seen::Folded { of, .. }) => of.first().map(|number| self.version(*number)).transpose()?,
            _ => {
                let comes = |version: &&Version| version.added.as_ref().is_some_and(|added| added.id > at);
                self.past.versions.iter().filter(|version| !version.kind.is_retract()).find(comes)
            }
        };
        if let Some(version) = first {
            return Ok(self.later(version));
        }
        let (rolled_back, unread_aside) = self.rolled_back(None).await?;
        if let Some(found) = rolled_back {
            return Ok(found);
        }
        let more = KeyScope { uncommitted: true, ..KeyScope::default() };
        let more = KeyHistory::load(self.history, self.key, more, self.budget, self.zone).await?;
        if let Some(version) = more.versions.iter().rev().find(|version| version.written == Written::Uncommitted) {
            return Ok(self.uncommitted(version));
        }
        let (misplaced, unread_elsewhere) = self.misplaced().await?;
        if let Some(found) = misplaced {
            return Ok(found);
        }
        let is_unread =
            |limit: &NoticeKind| matches!(limit, NoticeKind::FilesNotRead { .. } | NoticeKind::CommitsNotRead { .. });
        let unread = unread_aside || unread_elsewhere || self.past.limits.iter().chain(&more.limits).any(is_unread);
        if let Some(version) = self.past.versions.iter().rev().find(|version| version.fate(at) == Fate::Ignored) {
            let text = format!(
                "{} was written by {}, and the merge of its versions leaves nothing of it",
                self.key.text(),
                self.by(version)
            );
            return Ok(self.told(Reason::UnknownBeforeHistory, Confidence::Exact, text).of(self, version));
        }
        let reach = self.history.reach(self.zone);
        if unread {
            let text = format!("{} may be in files or commits that cannot be read; {reach}", self.key.text());
            return Ok(self.told(Reason::UnknownBeforeHistory, Confidence::Exact, text));
        }
        let confidence = if self.past.whole { Confidence::Exact } else { Confidence::Inferred };
        let text = format!("no file, committed or not, holds {}; {reach}", self.key.text());
        Ok(self.told(Reason::NeverSeen, confidence, text))
    }

    /// Why what was there until a state is not there after it.
    async fn gone(&self, last: &Span) -> Result<Option<Explanation>> {
        let Some(to) = last.to else { return Ok(None) };
        let number = match &last.seen {
            Seen::Tombstone(number) => return Ok(Some(self.tombstone(self.version(*number)?))),
            Seen::Folded { of, retract: true, .. } => {
                let number = of.last().copied().unwrap_or_default();
                return Ok(Some(self.tombstone(self.version(number)?)));
            }
            Seen::Version(number) => *number,
            Seen::Folded { of, .. } => of.last().copied().unwrap_or_default(),
            Seen::Unknown(_) => return Ok(None),
        };
        let version = self.version(number)?;
        if version.fates.iter().any(|(at, fate)| *fate == Fate::Deleted && *at <= self.asked.at) {
            return Ok(Some(self.vector(version)));
        }
        let Some(next) = self.past.line.iter().find(|snapshot| snapshot.id > to) else { return Ok(None) };
        // the commit whose own list removes the file; else the next one, where no commit between is missing
        let removed = version.removed.as_ref().filter(|commit| commit.id > to && commit.id <= self.asked.at);
        let follows = to.0.checked_add(1) == Some(next.id.0);
        let may = matches!(next.commit_kind, CommitKind::Compact | CommitKind::Overwrite);
        let Some(commit) = removed.or(Some(next).filter(|_| follows && may)) else {
            let text = format!(
                "{} was there until snapshot {to}; what removed it is not kept: the next commit that is kept is {}",
                self.key.text(),
                self.commit_text(next)
            );
            return Ok(Some(self.told(Reason::UnknownBeforeHistory, Confidence::Exact, text).of(self, version)));
        };
        if !matches!(commit.commit_kind, CommitKind::Compact | CommitKind::Overwrite) {
            let text = format!(
                "{} was there until snapshot {to}; {} removed the file that held it, which no commit of its kind does",
                self.key.text(),
                self.commit_text(commit)
            );
            let mut found = self.told(Reason::UnknownBeforeHistory, Confidence::Exact, text).of(self, version);
            found.commit = Some(Arc::clone(commit));
            return Ok(Some(found));
        }
        let key = self.key.text();
        let who = self.commit_text(commit);
        let (reason, confidence, text) = match commit.commit_kind {
            CommitKind::Overwrite => {
                let changes = self.history.changes(commit).await?;
                let adds = changes
                    .iter()
                    .any(|change| matches!(change, FileChange::Add(entry) if entry.partition == last.unit.0));
                match adds {
                    true => (
                        Reason::RemovedByOverwrite,
                        Confidence::Exact,
                        format!("{key} was there until snapshot {to}; {who} overwrote its partition without it"),
                    ),
                    false => (
                        Reason::DroppedPartition,
                        Confidence::Exact,
                        format!("{key} was there until snapshot {to}; {who} removed its partition"),
                    ),
                }
            }
            CommitKind::Compact if self.history.pin.options.raw.contains_key(RECORD_EXPIRY) => (
                Reason::ExpiredRecord,
                Confidence::Inferred,
                format!("{key} was there until snapshot {to}; {who} dropped it, as {RECORD_EXPIRY} allows by its age"),
            ),
            _ => (
                Reason::LostInCompaction,
                Confidence::Exact,
                format!("{key} was there until snapshot {to}; {who} dropped it, and nothing it holds says why (D-16)"),
            ),
        };
        let mut found = self.told(reason, confidence, text).of(self, version);
        found.commit = Some(Arc::clone(commit));
        Ok(Some(found))
    }

    /// States that are kept by a tag and were rolled back, or may have been; and whether some of it cannot be read. `with`: a
    /// column and its value.
    pub(super) async fn rolled_back(&self, with: Option<&Expected>) -> Result<(Option<Explanation>, bool)> {
        let (_, aside) = line_of(self.history);
        let mut unread = false;
        for recorded in aside.iter().rev() {
            let live = match self.history.live(&recorded.snapshot).await {
                Ok(live) => live,
                // of a changelog no more than its changes is kept
                Err(error) if is_of_state(&error) => {
                    unread |= recorded.kept != KeptAs::Changelog;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let files = candidates(self.history, &self.history.pin, self.key, true, live).await?;
            let (first, lost) = self.first_with(&files, with).await?;
            unread |= lost;
            if let Some((file, sequence)) = first {
                let (certainly, confidence) = match recorded.standing {
                    Standing::Doubtful => ("may have been", Confidence::Heuristic),
                    _ => ("was", Confidence::Exact),
                };
                let what = if with.is_some() { "the expected value of " } else { "" };
                let text = format!(
                    "{what}{} is in {}, kept as {}, which {certainly} rolled back",
                    self.key.text(),
                    self.commit_text(&recorded.snapshot),
                    recorded.kept
                );
                let mut found = self.told(Reason::RolledBack, confidence, text);
                found.commit = Some(Arc::clone(&recorded.snapshot));
                (found.file, found.sequence) = (Some(file.location.to_string()), Some(sequence));
                return Ok((Some(found), unread));
            }
        }
        Ok((None, unread))
    }

    /// Places where the key does not belong; and whether some of them cannot be read.
    async fn misplaced(&self) -> Result<(Option<Explanation>, bool)> {
        let mut unread = false;
        let Some(commit) = self.past.commit(self.asked.at) else { return Ok((None, unread)) };
        let pin = self.history.pin_of(commit);
        let live = self.history.live(commit).await?;
        let mut anywhere = pin.as_ref().clone();
        let mut options = anywhere.options.as_ref().clone();
        options.bucket_function = BucketFunction::Unknown;
        anywhere.options = Arc::new(options);
        let anywhere = Arc::new(anywhere);
        for (own, reason, what) in [(true, Reason::OtherBucket, "bucket"), (false, Reason::OtherPartition, "partition")]
        {
            let files = candidates(self.history, &anywhere, self.key, own, live.clone()).await?;
            let (first, lost) = self.first_with(&files, None).await?;
            unread |= lost;
            if let Some((file, sequence)) = first {
                let unit = self.texts.unit(&file.entry)?;
                let mut text = format!("{} is not where it belongs: another {what} has it, {unit}", self.key.text());
                let commit = match reason {
                    Reason::OtherPartition => self.brought_elsewhere(&file, sequence).await?,
                    _ => None,
                };
                if let Some(commit) = &commit {
                    text.push_str(&format!(", brought by {}", self.commit_text(commit)));
                }
                let mut found = self.told(reason, Confidence::Exact, text);
                found.commit = commit;
                (found.file, found.sequence) = (Some(file.location.to_string()), Some(sequence));
                return Ok((Some(found), unread));
            }
        }
        Ok((None, unread))
    }

    /// The commit that brought a row of the key to another partition, where one alone can have.
    async fn brought_elsewhere(&self, file: &PlannedFile, sequence: i64) -> Result<Option<Arc<Snapshot>>> {
        let key = self.key.of_any_partition(&self.history.pin.schema);
        let past = KeyHistory::load(self.history, &key, KeyScope::default(), self.budget, self.zone).await?;
        let name = &file.entry.file.file_name;
        let is_it = |version: &&Version| version.sequence == sequence && version.file.ends_with(name.as_str());
        let origin = past.versions.iter().find(is_it).and_then(|version| version.origin.snapshot);
        Ok(origin.and_then(|id| past.commit(id)).cloned())
    }

    /// The first file that adds the key, with a value in a column where that is asked, and the sequence number there; and
    /// whether some file cannot be read.
    async fn first_with(
        &self,
        files: &[Arc<PlannedFile>],
        with: Option<&Expected>,
    ) -> Result<(Option<(Arc<PlannedFile>, i64)>, bool)> {
        let has = |row: &FoundRow| with.is_none_or(|expected| expected.is_in(&row.row));
        let mut reader = RowReader::new(self.history, self.key, self.budget, self.zone.zone())?;
        let mut unread = false;
        for (file, rows) in files.iter().zip(reader.read(files).await?) {
            match rows {
                FileRows::Unread(_) => unread = true,
                FileRows::Found(rows) => {
                    if let Some(row) = rows.iter().find(|row| !row.kind.is_retract() && has(row)) {
                        return Ok((Some((Arc::clone(file), row.sequence)), unread));
                    }
                }
            }
        }
        Ok((None, unread))
    }
}
