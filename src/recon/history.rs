//! What is kept of a table's past: every snapshot, and what each commit changed.
//!
//! | kept as | what can still be read |
//! |---|---|
//! | snapshot | everything |
//! | tag of an expired snapshot | its files; its changes too, unless its delta list went with the snapshot |
//! | long-lived changelog | its changes |
//!
//! What cannot be read does not hide the rest: it is kept beside it, as evidence of damage.

mod standing;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures::{StreamExt, stream};

pub use standing::Standing;

use super::entry_texts::EntryTexts;
use crate::error::{Error, ErrorKind, Result};
use crate::query::QueryEnv;
use crate::scan;
use crate::snapshot::{Pin, SessionZone, Table};
use crate::spec::{FileKind, ManifestEntry, Snapshot, SnapshotId};

/// As what a snapshot is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptAs {
    /// A snapshot.
    Snapshot,
    /// A tag, by name; the snapshot itself has expired.
    Tag(String),
    /// A long-lived changelog; the snapshot itself has expired.
    Changelog,
}

impl fmt::Display for KeptAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snapshot => f.write_str("snapshot"),
            Self::Tag(name) => write!(f, "tag {name}"),
            Self::Changelog => f.write_str("changelog"),
        }
    }
}

/// A commit of which something is kept.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// What its file says.
    pub snapshot: Arc<Snapshot>,
    /// As what it is kept.
    pub kept: KeptAs,
    /// Whether it is of the line that is in force.
    pub standing: Standing,
}

impl Recorded {
    /// Its number.
    pub fn id(&self) -> SnapshotId {
        self.snapshot.id
    }

    /// Whether it is a snapshot still.
    pub fn is_snapshot(&self) -> bool {
        self.kept == KeptAs::Snapshot
    }

    /// As what it is kept, and that it is not in force: `tag eod (rolled back)`.
    pub fn kept_text(&self) -> String {
        format!("{}{}", self.kept, self.standing.mark())
    }
}

/// A document or metadata file that cannot be read.
#[derive(Debug)]
pub struct Unread {
    /// The snapshot it belongs to, where that is known.
    pub snapshot: Option<SnapshotId>,
    /// What it is: `snapshot 7`, `tag 'eod'`.
    pub what: String,
    /// Why.
    pub error: Error,
}

/// Which list of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// All that was there before.
    Base,
    /// What the commit added and removed.
    Delta,
    /// Changelog files that the commit made.
    Changelog,
}

impl ListKind {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Delta => "delta",
            Self::Changelog => "changelog",
        }
    }
}

/// What a commit did to one file.
#[derive(Debug, Clone)]
pub enum FileChange {
    /// Added.
    Add(Arc<ManifestEntry>),
    /// Removed from the snapshot.
    Delete(Arc<ManifestEntry>),
    /// Moved to another level without being written again.
    Upgrade {
        /// As it was.
        from: Arc<ManifestEntry>,
        /// As it is.
        to: Arc<ManifestEntry>,
    },
}

impl FileChange {
    /// The entry that says what the file is now, or was.
    pub fn entry(&self) -> &Arc<ManifestEntry> {
        match self {
            Self::Add(entry) | Self::Delete(entry) | Self::Upgrade { to: entry, .. } => entry,
        }
    }
}

/// The kept past of one branch of a table, as of the moment it was read.
#[derive(Debug)]
pub struct History {
    /// The state of the moment: options, schema, the newest snapshot.
    pub pin: Arc<Pin>,
    /// All commits that something is kept of, ascending. A number used again after a rollback is there once for each state,
    /// the snapshot last.
    pub commits: Vec<Recorded>,
    /// Snapshots, changelogs and tags that cannot be read.
    pub unread: Vec<Unread>,
    env: Arc<QueryEnv>,
}

impl History {
    /// Reads all documents of a table's branch.
    ///
    /// Cost: three listings and one small read for each snapshot, changelog and tag; manifests are read when they are asked
    /// for.
    ///
    /// # Errors
    /// Storage that does not answer; snapshots lost altogether; a table whose schema or options cannot be read.
    pub async fn load(pin: &Arc<Pin>, env: &Arc<QueryEnv>) -> Result<Self> {
        let table = &pin.table;
        let (mut commits, mut unread) = (Vec::new(), Vec::new());
        let mut live: HashMap<SnapshotId, Vec<Arc<Snapshot>>> = HashMap::new();
        for (id, read) in table.snapshots_one_by_one().await? {
            match read {
                Ok(snapshot) => {
                    live.entry(id).or_default().push(Arc::clone(&snapshot));
                    commits.push(Recorded { snapshot, kept: KeptAs::Snapshot, standing: Standing::InForce });
                }
                Err(error) => unread.push(Unread { snapshot: Some(id), what: format!("snapshot {id}"), error }),
            }
        }
        let known = |live: &HashMap<SnapshotId, Vec<Arc<Snapshot>>>, snapshot: &Snapshot| {
            live.get(&snapshot.id).is_some_and(|same| {
                same.iter().any(|one| {
                    one.delta_manifest_list == snapshot.delta_manifest_list && one.time_millis == snapshot.time_millis
                })
            })
        };
        // of several tags of one state the first by name
        let tags = table.readable_tags().await?;
        for (name, tag) in tags.found {
            let snapshot = Arc::new(tag.snapshot);
            if !known(&live, &snapshot) {
                live.entry(snapshot.id).or_default().push(Arc::clone(&snapshot));
                commits.push(Recorded { snapshot, kept: KeptAs::Tag(name), standing: Standing::InForce });
            }
        }
        for name in tags.unreadable {
            let error = Error::corrupt(format!("tag '{name}' cannot be read")).with_context("table", table.name());
            unread.push(Unread { snapshot: None, what: format!("tag '{name}'"), error });
        }
        for id in table.changelog_ids().await? {
            match table.changelog(id).await {
                Ok(snapshot) if known(&live, &snapshot) => {}
                Ok(snapshot) => {
                    commits.push(Recorded { snapshot, kept: KeptAs::Changelog, standing: Standing::InForce })
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                Err(error) => unread.push(Unread { snapshot: Some(id), what: format!("changelog {id}"), error }),
            }
        }
        let torn = unread.iter().filter_map(|unread| unread.snapshot);
        let newest = commits.iter().filter(|one| one.is_snapshot()).map(Recorded::id).chain(torn).max();
        let ahead = table.hinted_snapshot().await?.filter(|hinted| newest.is_none_or(|newest| *hinted > newest));
        if let Some(hinted) = ahead {
            // a listing that is behind, or a file that is lost: what it holds is not known
            let error = Error::corrupt(format!("the LATEST hint names snapshot {hinted}, which is not found"))
                .with_code("SnapshotsLost")
                .with_context("table", table.name());
            unread.push(Unread { snapshot: Some(hinted), what: format!("snapshot {hinted}"), error });
        }
        commits.sort_by_key(|recorded| (recorded.snapshot.id, recorded.is_snapshot(), recorded.snapshot.time_millis));
        let standings = standing::standings(&commits, newest, ahead);
        for (recorded, standing) in commits.iter_mut().zip(standings) {
            recorded.standing = standing;
        }
        Ok(Self { pin: Arc::clone(pin), commits, unread, env: Arc::clone(env) })
    }

    /// The same up to a snapshot: what came later is left out.
    #[must_use]
    pub fn up_to(mut self, last: SnapshotId) -> Self {
        self.commits.retain(|recorded| recorded.id() <= last);
        self.unread.retain(|unread| unread.snapshot.is_none_or(|id| id <= last));
        self
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.pin.table
    }

    /// Caches and limits that reads of it share.
    pub fn env(&self) -> &Arc<QueryEnv> {
        &self.env
    }

    /// Those that are snapshots still, ascending.
    pub fn snapshots(&self) -> impl DoubleEndedIterator<Item = &Arc<Snapshot>> {
        self.commits.iter().filter(|recorded| recorded.is_snapshot()).map(|recorded| &recorded.snapshot)
    }

    /// The commits of the line that is in force, ascending; what was rolled back, or may have been, is not among them.
    pub fn in_force(&self) -> impl DoubleEndedIterator<Item = &Recorded> {
        self.commits.iter().filter(|recorded| recorded.standing == Standing::InForce)
    }

    /// The oldest commit of that line.
    pub fn earliest(&self) -> Option<&Recorded> {
        self.in_force().next()
    }

    /// The newest snapshot.
    pub fn latest(&self) -> Option<&Arc<Snapshot>> {
        self.snapshots().next_back()
    }

    /// How far back it reaches, for people.
    pub fn reach(&self, zone: &SessionZone) -> String {
        match self.earliest() {
            None => "no snapshot is kept".to_string(),
            Some(recorded) => format!(
                "history begins with {} {}, committed {}",
                match recorded.kept {
                    KeptAs::Changelog => "changelog",
                    KeptAs::Snapshot | KeptAs::Tag(_) => "snapshot",
                },
                recorded.snapshot.id,
                zone.show(recorded.snapshot.time_millis)
            ),
        }
    }

    /// Whether every commit of the line that is in force is kept, from the first on: then what is not among them is not in
    /// it.
    pub fn is_whole(&self) -> bool {
        let mut next = 1;
        for recorded in self.in_force() {
            if recorded.snapshot.id.0 == next {
                next += 1;
            } else if recorded.snapshot.id.0 > next {
                return false;
            }
        }
        // of a tag that cannot be read nobody knows what it holds, but every number is there without it
        next > 1 && self.unread.iter().all(|unread| unread.snapshot.is_none())
    }

    /// A pin of a state of this history, with the columns of the moment.
    pub fn pin_of(&self, snapshot: &Arc<Snapshot>) -> Arc<Pin> {
        Arc::new(self.pin.alone_at(snapshot))
    }

    /// The entries of one list of a snapshot, in their order; nothing where it has no such list.
    ///
    /// # Errors
    /// A list or manifest that is gone or damaged.
    pub async fn entries(&self, snapshot: &Arc<Snapshot>, list: ListKind) -> Result<Vec<Arc<ManifestEntry>>> {
        entries_of(self.pin_of(snapshot), list, Arc::clone(&self.env)).await
    }

    /// What a commit did to data files, upgrades recognised.
    ///
    /// # Errors
    /// As [`Self::entries`].
    pub async fn changes(&self, snapshot: &Arc<Snapshot>) -> Result<Vec<FileChange>> {
        Ok(changes_of(&self.entries(snapshot, ListKind::Delta).await?))
    }

    /// What each of some commits did, in their order, several read at once.
    ///
    /// # Errors
    /// None of its own: each commit has its own outcome, so that one lost list does not hide the others.
    pub async fn all_changes(&self, commits: &[Recorded]) -> Vec<Result<Vec<FileChange>>> {
        let reads: Vec<_> = commits
            .iter()
            .map(|recorded| {
                let entries = entries_of(self.pin_of(&recorded.snapshot), ListKind::Delta, Arc::clone(&self.env));
                async move { Ok(changes_of(&entries.await?)) }
            })
            .collect();
        stream::iter(reads).buffered(self.env.scan.concurrency.max(1)).collect().await
    }

    /// The live files of a state.
    ///
    /// # Errors
    /// A list or manifest that is gone or damaged.
    pub async fn live(&self, snapshot: &Arc<Snapshot>) -> Result<Vec<Arc<ManifestEntry>>> {
        scan::live_files(&self.pin_of(snapshot), &self.env.scan).await
    }

    /// The schemas that entries were written with, and how their parts are shown.
    ///
    /// # Errors
    /// A schema that is gone or damaged.
    pub async fn texts(&self, zone: &SessionZone) -> Result<EntryTexts> {
        EntryTexts::load(&self.pin, zone).await
    }
}

/// The entries of one list of a pinned snapshot.
async fn entries_of(pin: Arc<Pin>, list: ListKind, env: Arc<QueryEnv>) -> Result<Vec<Arc<ManifestEntry>>> {
    let Some(snapshot) = &pin.snapshot else { return Ok(Vec::new()) };
    let (name, bytes) = match list {
        ListKind::Base => (Some(&snapshot.base_manifest_list), snapshot.base_manifest_list_size),
        ListKind::Delta => (Some(&snapshot.delta_manifest_list), snapshot.delta_manifest_list_size),
        ListKind::Changelog => (snapshot.changelog_manifest_list.as_ref(), snapshot.changelog_manifest_list_size),
    };
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(Vec::new()) };
    scan::entries_of_list(&pin, name, bytes, &env.scan).await
}

/// The changes that the entries of a delta list stand for: a deletion and an addition of one file are an upgrade.
pub fn changes_of(entries: &[Arc<ManifestEntry>]) -> Vec<FileChange> {
    let place = |entry: &ManifestEntry| (entry.file.file_name.clone(), entry.bucket, entry.partition.clone());
    let mut gone: HashMap<_, Vec<&Arc<ManifestEntry>>> = HashMap::new();
    for entry in entries.iter().filter(|entry| entry.kind == FileKind::Delete) {
        gone.entry(place(entry)).or_default().push(entry);
    }
    let mut upgraded: Vec<*const ManifestEntry> = Vec::new();
    let mut changes = Vec::with_capacity(entries.len());
    for entry in entries.iter().filter(|entry| entry.kind == FileKind::Add) {
        let from = gone.get_mut(&place(entry)).and_then(|same| {
            let other = same.iter().position(|one| one.file.level != entry.file.level)?;
            Some(same.remove(other))
        });
        changes.push(match from {
            Some(from) => {
                upgraded.push(Arc::as_ptr(from));
                FileChange::Upgrade { from: Arc::clone(from), to: Arc::clone(entry) }
            }
            None => FileChange::Add(Arc::clone(entry)),
        });
    }
    let deleted = entries.iter().filter(|entry| entry.kind == FileKind::Delete);
    let deleted = deleted.filter(|entry| !upgraded.contains(&Arc::as_ptr(entry)));
    changes.extend(deleted.map(|entry| FileChange::Delete(Arc::clone(entry))));
    changes
}
