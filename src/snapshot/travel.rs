//! From a request (id, tag, time, watermark, commit) to a snapshot.
//!
//! | request | snapshot | when there is none |
//! |---|---|---|
//! | latest | the newest | an empty table reads as empty |
//! | id | that one | error: what is kept, the tag that holds it |
//! | tag | the one in the tag's file, even when it has expired | error: the nearest tag |
//! | timestamp | the newest committed at or before it; of equal times the highest id | error: the oldest kept |
//! | watermark | the oldest whose watermark is at or after it | error: the highest watermark |
//! | commit | the newest of that user and identifier | error: what that user committed |
//! | before commit | the one before the first of that user and identifier | error |
//!
//! Times are searched from the newest snapshot down, not by bisection: commit times need not be in order.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use futures::TryStreamExt;

use super::options::refuse_file_creation;
use super::table::{Table, ranges_text};
use super::zone::SessionZone;
use crate::error::{Error, Result};
use crate::notice::{Notice, NoticeKind};
use crate::spec::options::ChangelogProducer;
use crate::spec::{BATCH, CommitIdentifier, CommitKind, CoreOptions, END_OF_INPUT, Snapshot, SnapshotId};

/// Which state of a table is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PinRequest {
    /// The newest snapshot, unless the table's or caller's `scan.*` options say otherwise.
    #[default]
    Latest,
    /// A snapshot by number: `VERSION AS OF 3`.
    SnapshotId(i64),
    /// A tag by name.
    Tag(String),
    /// The newest snapshot committed at or before this instant (epoch milliseconds).
    TimestampMillis(i64),
    /// The oldest snapshot whose watermark is at or after this (epoch milliseconds).
    Watermark(i64),
    /// The same, said as a time and not as a number.
    WatermarkTime(i64),
    /// A quoted version: a tag first, else `watermark-<ms>`, else digits as a snapshot id.
    Version(String),
    /// The newest snapshot of a commit identity.
    Commit {
        /// Commit user.
        user: String,
        /// Commit identifier.
        identifier: i64,
    },
    /// The snapshot before the first one of a commit identity.
    BeforeCommit {
        /// Commit user.
        user: String,
        /// Commit identifier.
        identifier: i64,
    },
    /// The newest fully compacted snapshot, or the latest when there is none (`scan.mode = compacted-full`).
    CompactedFull,
    /// The first snapshot at or after this instant (`scan.creation-time-millis`).
    FromCreationTimestamp(i64),
}

impl PinRequest {
    /// Whether columns come from the chosen snapshot's schema instead of the latest.
    pub(super) fn takes_snapshot_schema(&self) -> bool {
        !matches!(self, Self::Latest | Self::CompactedFull | Self::FromCreationTimestamp(_))
    }
}

impl fmt::Display for PinRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::SnapshotId(id) => write!(f, "snapshot {id}"),
            Self::Tag(name) => write!(f, "tag '{name}'"),
            Self::TimestampMillis(millis) => write!(f, "timestamp {}", SessionZone::utc().show_exact(*millis)),
            Self::Watermark(millis) | Self::WatermarkTime(millis) => {
                write!(f, "watermark {}", SessionZone::utc().show_watermark(*millis))
            }
            Self::Version(text) => write!(f, "version '{text}'"),
            Self::Commit { user, identifier } => write!(f, "commit ('{user}', {})", CommitIdentifier(*identifier)),
            Self::BeforeCommit { user, identifier } => {
                write!(f, "before commit ('{user}', {})", CommitIdentifier(*identifier))
            }
            Self::CompactedFull => f.write_str("newest full compaction"),
            Self::FromCreationTimestamp(millis) => {
                write!(f, "first since {}", SessionZone::utc().show_exact(*millis))
            }
        }
    }
}

/// The snapshot a request leads to.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// The tag it was read from.
    pub(super) tag: Option<String>,
    pub(super) notices: Vec<Notice>,
    /// The request, a quoted version told apart.
    pub(super) request: PinRequest,
}

impl Chosen {
    fn of(snapshot: Arc<Snapshot>, request: PinRequest) -> Self {
        Self { snapshot: Some(snapshot), tag: None, notices: Vec::new(), request }
    }
}

/// One resolution: the table, its options, and the zone of messages.
pub(super) struct Traveller<'a> {
    pub(super) table: &'a Table,
    pub(super) options: &'a CoreOptions,
    pub(super) zone: &'a SessionZone,
}

impl Traveller<'_> {
    pub(super) async fn choose(&self, request: PinRequest) -> Result<Chosen> {
        match request {
            PinRequest::Latest => {
                let (snapshot, notice) = self.table.latest_noticed().await?;
                Ok(Chosen { snapshot, tag: None, notices: notice.into_iter().collect(), request })
            }
            PinRequest::SnapshotId(id) => self.by_id(id).await,
            PinRequest::Tag(name) => self.by_tag(name).await,
            PinRequest::Version(text) => self.by_version(text).await,
            PinRequest::TimestampMillis(millis) => self.by_time(millis).await,
            PinRequest::Watermark(_) | PinRequest::WatermarkTime(_) => self.by_watermark(request).await,
            PinRequest::Commit { ref user, identifier } => {
                let snapshot = self.by_commit(user, identifier).await?;
                Ok(Chosen::of(snapshot, request))
            }
            PinRequest::BeforeCommit { ref user, identifier } => {
                let snapshot = self.before_commit(user, identifier).await?;
                Ok(Chosen::of(snapshot, request))
            }
            PinRequest::CompactedFull => self.newest_full_compaction().await,
            PinRequest::FromCreationTimestamp(millis) => self.since_creation(millis).await,
        }
    }

    async fn by_id(&self, id: i64) -> Result<Chosen> {
        let tag_name = id.to_string();
        let (snapshot, tag) =
            futures::future::join(self.table.snapshot(SnapshotId(id)), self.table.tag(&tag_name)).await;
        let mut chosen = Chosen::of(snapshot?, PinRequest::SnapshotId(id));
        // the tag serves a notice only: one that cannot be read is not in the way
        if let Ok(Some(tag)) = tag {
            let (table, held) = (self.table.name(), tag.snapshot.id.0);
            chosen.notices.push(NoticeKind::TagOfThatNumber { table, id, held }.into());
        }
        Ok(chosen)
    }

    async fn by_tag(&self, name: String) -> Result<Chosen> {
        let Some(tag) = self.table.tag(&name).await? else {
            return Err(self.table.missing_tag(&name).await);
        };
        let mut chosen = Chosen::of(Arc::new(tag.snapshot), PinRequest::Tag(name.clone()));
        chosen.tag = Some(name);
        Ok(chosen)
    }

    async fn by_version(&self, text: String) -> Result<Chosen> {
        if self.table.tag(&text).await?.is_some() {
            let mut chosen = self.by_tag(text.clone()).await?;
            // the snapshot serves a notice only: one that cannot be read is not in the way
            if let Some(id) = canonical_id(&text)
                && let Ok(Some(other)) = self.table.read_snapshot(SnapshotId(id)).await
            {
                let held = chosen.snapshot.as_ref().map(|snapshot| snapshot.id);
                if held != Some(other.id) {
                    let held = held.unwrap_or(other.id).0;
                    let table = self.table.name();
                    chosen.notices.push(NoticeKind::SnapshotOfThatNumber { table, tag: text, held, id }.into());
                }
            }
            return Ok(chosen);
        }
        if let Some(millis) = text.strip_prefix("watermark-").and_then(|digits| digits.parse().ok()) {
            return self.by_watermark(PinRequest::Watermark(millis)).await;
        }
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return match text.parse() {
                Ok(id) => Ok(Chosen::of(self.table.snapshot(SnapshotId(id)).await?, PinRequest::SnapshotId(id))),
                Err(_) => {
                    let written = text.trim_start_matches('0');
                    Err(self.table.missing_snapshot_as(SnapshotId(i64::MAX), written).await)
                }
            };
        }
        let missing = self.table.missing_tag(&text).await;
        if missing.code() == "TagNotFound" && self.table.branches().await.unwrap_or_default().contains(&text) {
            let table = &self.table.ident().table;
            return Err(missing.with_hint(format!("there is a branch of that name: read {table}$branch_{text}")));
        }
        Err(missing)
    }

    async fn by_time(&self, millis: i64) -> Result<Chosen> {
        let mut files = self.table.snapshot_files().await?;
        files.reverse();
        let Some(newest) = files.first().map(|file| file.number) else {
            return Err(self.no_snapshot().await);
        };
        let mut read = pin!(self.table.read_listed(files));
        let mut oldest: Option<Arc<Snapshot>> = None;
        while let Some(snapshot) = read.try_next().await? {
            if snapshot.time_millis > millis {
                oldest = Some(snapshot);
                continue;
            }
            let mut chosen = Chosen::of(Arc::clone(&snapshot), PinRequest::TimestampMillis(millis));
            if let Some(before) = read.try_next().await?
                && before.time_millis > millis
            {
                let told = NoticeKind::TimesNotInOrder {
                    before: before.id.0,
                    before_time: self.zone.show(before.time_millis),
                    chosen: snapshot.id.0,
                    chosen_time: self.zone.show(snapshot.time_millis),
                };
                chosen.notices.push(told.into());
            }
            return Ok(chosen);
        }
        let asked = self.zone.show_exact(millis);
        let kept = match &oldest {
            None => "its snapshots are being expired right now".to_string(),
            Some(oldest) => format!(
                "the oldest snapshot kept is {}, committed {}; the newest is {newest}",
                oldest.id,
                self.zone.show_exact(oldest.time_millis)
            ),
        };
        let error = Error::not_found(format!("no snapshot was committed at or before {asked}: {kept}"))
            .with_code("TimestampTooEarly")
            .with_context("table", self.table.name());
        let tags = self.table.readable_tags().await.map(|tags| tags.found).unwrap_or_default();
        let earlier = tags.iter().filter(|(_, tag)| tag.snapshot.time_millis <= millis);
        Err(match earlier.max_by_key(|(_, tag)| tag.snapshot.id) {
            Some((name, tag)) => error.with_hint(format!(
                "tag '{name}' holds snapshot {}, committed {}: VERSION AS OF '{name}'",
                tag.snapshot.id,
                self.zone.show(tag.snapshot.time_millis)
            )),
            None => error.with_hint("ask for that time or later"),
        })
    }

    async fn by_watermark(&self, request: PinRequest) -> Result<Chosen> {
        let (PinRequest::Watermark(millis) | PinRequest::WatermarkTime(millis)) = request else {
            return Err(Error::internal(format!("{request} is no watermark")));
        };
        let files = self.table.snapshot_files().await?;
        if files.is_empty() {
            return Err(self.no_snapshot().await);
        }
        // a snapshot without watermark stands where its nearest predecessor with one stands, so the oldest with a
        // watermark of its own is never later than one that inherits it
        let mut read = pin!(self.table.read_listed(files));
        let mut highest: Option<(i64, SnapshotId)> = None;
        while let Some(snapshot) = read.try_next().await? {
            let Some(watermark) = snapshot.watermark else { continue };
            if watermark >= millis {
                let as_number = matches!(request, PinRequest::Watermark(_));
                let mut chosen = Chosen::of(snapshot, request);
                chosen.notices.extend(self.seconds(millis, watermark).filter(|_| as_number));
                return Ok(chosen);
            }
            if highest.is_none_or(|(so_far, _)| watermark > so_far) {
                highest = Some((watermark, snapshot.id));
            }
        }
        let found = match highest {
            None => "no snapshot has a watermark".to_string(),
            Some((watermark, id)) => {
                format!("the highest is {}, at snapshot {id}", self.zone.show_watermark(watermark))
            }
        };
        Err(Error::not_found(format!(
            "no snapshot has a watermark at or after {}: {found}",
            self.zone.show_watermark(millis)
        ))
        .with_code("WatermarkNotReached")
        .with_context("table", self.table.name())
        .with_hint(match highest {
            None => "choose by snapshot id, tag or timestamp",
            Some(_) => "wait for the writer, or ask for an earlier watermark",
        }))
    }

    /// A number decades before what it found was meant in seconds.
    fn seconds(&self, millis: i64, found: i64) -> Option<Notice> {
        const DECADES: i64 = 20 * 365 * 86_400_000;
        // the end of input is decades after any time
        (millis > 0 && found != END_OF_INPUT && found.saturating_sub(millis) > DECADES).then(|| {
            let told = NoticeKind::WatermarkInSeconds {
                asked: millis,
                asked_time: self.zone.show_exact(millis),
                found_time: self.zone.show_exact(found),
                millis: millis.saturating_mul(1_000),
            };
            told.into()
        })
    }

    async fn by_commit(&self, user: &str, identifier: i64) -> Result<Arc<Snapshot>> {
        let mut files = self.table.snapshot_files().await?;
        if files.is_empty() {
            return Err(self.no_snapshot().await);
        }
        files.reverse();
        let mut read = pin!(self.table.read_listed(files));
        let mut seen = Seen::default();
        while let Some(snapshot) = read.try_next().await? {
            if snapshot.commit_user == user && snapshot.commit_identifier == identifier {
                return Ok(snapshot);
            }
            seen.add(&snapshot);
        }
        Err(self.missing_commit(user, identifier, &seen).await)
    }

    async fn before_commit(&self, user: &str, identifier: i64) -> Result<Arc<Snapshot>> {
        let files = self.table.snapshot_files().await?;
        if files.is_empty() {
            return Err(self.no_snapshot().await);
        }
        let mut read = pin!(self.table.read_listed(files));
        let mut seen = Seen::default();
        let mut before: Option<Arc<Snapshot>> = None;
        while let Some(snapshot) = read.try_next().await? {
            if snapshot.commit_user == user && snapshot.commit_identifier == identifier {
                return match before {
                    // a gap would hide a snapshot, perhaps the first of this very commit
                    Some(before) if before.id.0 == snapshot.id.0 - 1 => Ok(before),
                    _ if snapshot.id.0 == 1 => Err(Error::not_found(format!(
                        "commit ('{user}', {}) made the first snapshot of the table: there is none before it",
                        CommitIdentifier(identifier)
                    ))
                    .with_code("SnapshotNotFound")
                    .with_context("table", self.table.name())),
                    _ => Err(self.table.missing_snapshot(SnapshotId(snapshot.id.0 - 1)).await),
                };
            }
            seen.add(&snapshot);
            before = Some(snapshot);
        }
        Err(self.missing_commit(user, identifier, &seen).await)
    }

    async fn missing_commit(&self, user: &str, identifier: i64, seen: &Seen) -> Error {
        let kept = seen.text(user);
        let error = Error::not_found(format!(
            "no kept snapshot is of commit user '{user}' with identifier {}; {kept}",
            CommitIdentifier(identifier)
        ))
        .with_code("CommitNotFound")
        .with_context("table", self.table.name());
        let tags = self.table.readable_tags().await.map(|tags| tags.found).unwrap_or_default();
        let holding = tags
            .iter()
            .find(|(_, tag)| tag.snapshot.commit_user == user && tag.snapshot.commit_identifier == identifier);
        match holding {
            Some((name, tag)) => error
                .with_hint(format!("tag '{name}' holds snapshot {} of it: VERSION AS OF '{name}'", tag.snapshot.id)),
            None => error.with_hint("it never committed, or its snapshots have expired"),
        }
    }

    /// The newest full compaction: any COMPACT, or, where full compactions come every n commits, one of those.
    async fn newest_full_compaction(&self) -> Result<Chosen> {
        let every = match self.options.full_compaction_delta_commits {
            Some(every) => Some(every),
            None if self.options.changelog_producer == ChangelogProducer::FullCompaction => Some(1),
            None => None,
        };
        let is_full = |snapshot: &Snapshot| {
            snapshot.commit_kind == CommitKind::Compact
                && every.is_none_or(|every| {
                    snapshot.commit_identifier == BATCH
                        || snapshot.commit_identifier.checked_rem(every).is_none_or(|rest| rest == 0)
                })
        };
        let mut files = self.table.snapshot_files().await?;
        files.reverse();
        let mut read = pin!(self.table.read_listed(files));
        let mut newest = None;
        while let Some(snapshot) = read.try_next().await? {
            if is_full(&snapshot) {
                return Ok(Chosen::of(snapshot, PinRequest::CompactedFull));
            }
            newest.get_or_insert(snapshot);
        }
        let mut notices = Vec::new();
        if newest.is_some() {
            notices.push(NoticeKind::NoFullCompaction.into());
        }
        Ok(Chosen { snapshot: newest, tag: None, notices, request: PinRequest::CompactedFull })
    }

    /// The snapshot after the last one committed before the time.
    async fn since_creation(&self, millis: i64) -> Result<Chosen> {
        let mut files = self.table.snapshot_files().await?;
        if files.is_empty() {
            return Err(self.no_snapshot().await);
        }
        files.reverse();
        let mut read = pin!(self.table.read_listed(files));
        let mut after: Option<Arc<Snapshot>> = None;
        while let Some(snapshot) = read.try_next().await? {
            if snapshot.time_millis < millis {
                return match after {
                    Some(after) if after.id.0 == snapshot.id.0 + 1 => {
                        Ok(Chosen::of(after, PinRequest::FromCreationTimestamp(millis)))
                    }
                    _ => {
                        Err(refuse_file_creation("scan.creation-time-millis").with_context("table", self.table.name()))
                    }
                };
            }
            after = Some(snapshot);
        }
        Err(refuse_file_creation("scan.creation-time-millis").with_context("table", self.table.name()))
    }

    async fn no_snapshot(&self) -> Error {
        let tags = self.table.tag_names().await.unwrap_or_default();
        let error = Error::not_found("the table has no snapshot: there is no past to read")
            .with_code("NoSnapshot")
            .with_context("table", self.table.name());
        match tags.as_slice() {
            [] => error.with_hint("without time travel it reads as empty"),
            tags => error.with_hint(format!("its tags still hold some: '{}'", tags.join("', '"))),
        }
    }
}

/// A text that is a snapshot number as we write it.
fn canonical_id(text: &str) -> Option<i64> {
    text.parse().ok().filter(|id: &i64| *id >= 1 && id.to_string() == text)
}

/// The commits that were passed over, for the message when none was the right one.
#[derive(Default)]
struct Seen {
    ids: BTreeSet<SnapshotId>,
    /// User, lowest and highest identifier; of batch jobs, who all commit with one, apart.
    users: Vec<(String, i64, i64)>,
}

impl Seen {
    fn add(&mut self, snapshot: &Snapshot) {
        self.ids.insert(snapshot.id);
        let identifier = snapshot.commit_identifier;
        let alike = |low: i64| (low == BATCH) == (identifier == BATCH);
        match self.users.iter_mut().find(|(user, low, _)| *user == snapshot.commit_user && alike(*low)) {
            Some((_, low, high)) => {
                *low = (*low).min(identifier);
                *high = (*high).max(identifier);
            }
            None => self.users.push((snapshot.commit_user.clone(), identifier, identifier)),
        }
    }

    fn text(&self, wanted: &str) -> String {
        let ids: Vec<SnapshotId> = self.ids.iter().copied().collect();
        let kept = if ids.is_empty() { "nothing".to_string() } else { ranges_text(&ids) };
        let identifiers = |low: i64, high: i64| match low == high {
            true => format!("identifier {}", CommitIdentifier(low)),
            false => format!("identifiers {low} to {high}"),
        };
        let mut own: Vec<(i64, i64)> =
            self.users.iter().filter(|(user, _, _)| user == wanted).map(|(_, low, high)| (*low, *high)).collect();
        own.sort_unstable();
        if !own.is_empty() {
            let own: Vec<String> = own.into_iter().map(|(low, high)| identifiers(low, high)).collect();
            return format!("available {kept}, of '{wanted}' {}", own.join(" and "));
        }
        let mut users: Vec<&str> = Vec::new();
        for (user, _, _) in &self.users {
            if !users.contains(&user.as_str()) {
                users.push(user);
            }
        }
        let others: Vec<String> = users.iter().take(5).map(|user| format!("'{user}'")).collect();
        let more = if users.len() > others.len() { ", …" } else { "" };
        format!("available {kept}, of users {}{more}", others.join(", "))
    }
}

#[cfg(test)]
mod tests;
