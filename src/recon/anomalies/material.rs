//! What detectors look at, read once.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};

use crate::error::{Error, ErrorKind, Result};
use crate::recon::entry_texts::EntryTexts;
use crate::recon::history::{FileChange, History, Recorded};
use crate::scan;
use crate::snapshot::SessionZone;
use crate::spec::{ManifestFileMeta, Snapshot};

/// A commit with what it changed.
pub struct Commit<'a> {
    pub(super) recorded: &'a Recorded,
    /// What its delta list says; the error when it cannot be read.
    pub(super) changes: Result<Vec<FileChange>>,
    /// The manifests of its base and delta lists; only of snapshots.
    pub(super) lists: Option<Result<(Vec<ManifestFileMeta>, Vec<ManifestFileMeta>)>>,
}

impl Commit<'_> {
    pub(super) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.recorded.snapshot
    }

    /// Its changes, none where they cannot be read: that is told by a detector of its own.
    pub(super) fn changes(&self) -> &[FileChange] {
        self.changes.as_deref().unwrap_or_default()
    }
}

/// All of it.
pub struct Material<'a> {
    pub(super) history: &'a History,
    pub(super) zone: &'a SessionZone,
    pub(super) texts: EntryTexts,
    /// The line that is in force, ascending; what tags hold of a past that was rolled back is not among them.
    pub(super) commits: Vec<Commit<'a>>,
}

impl<'a> Material<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// Storage that does not answer, schemas that cannot be read.
    pub async fn load(history: &'a History, zone: &'a SessionZone) -> Result<Self> {
        let texts = history.texts(zone).await?;
        let mut line: BTreeMap<i64, &Recorded> = BTreeMap::new();
        for recorded in history.in_force() {
            line.insert(recorded.id().0, recorded);
        }
        let line: Vec<&Recorded> = line.into_values().collect();
        let owned: Vec<Recorded> = line.iter().map(|recorded| (*recorded).clone()).collect();
        let changes = history.all_changes(&owned).await;
        let env = history.env();
        let reads: Vec<_> = owned
            .iter()
            .map(|recorded| {
                let (pin, env) = (history.pin_of(&recorded.snapshot), Arc::clone(env));
                let wanted = recorded.is_snapshot();
                let snapshot = Arc::clone(&recorded.snapshot);
                async move {
                    if !wanted {
                        return None;
                    }
                    let (base, base_size) = (&snapshot.base_manifest_list, snapshot.base_manifest_list_size);
                    let (delta, delta_size) = (&snapshot.delta_manifest_list, snapshot.delta_manifest_list_size);
                    Some(futures::try_join!(
                        scan::manifests_of_list(&pin, base, base_size, &env.scan),
                        scan::manifests_of_list(&pin, delta, delta_size, &env.scan)
                    ))
                }
            })
            .collect();
        let lists: Vec<_> = stream::iter(reads).buffered(env.scan.concurrency.max(1)).collect().await;
        let mut commits = Vec::with_capacity(line.len());
        for ((recorded, changes), lists) in line.into_iter().zip(changes).zip(lists) {
            let down = |error: &Error| error.kind() == ErrorKind::Unavailable;
            match (changes, lists) {
                (Err(error), _) | (_, Some(Err(error))) if down(&error) => return Err(error),
                (changes, lists) => commits.push(Commit { recorded, changes, lists }),
            }
        }
        Ok(Self { history, zone, texts, commits })
    }

    /// Snapshots that follow each other.
    pub(super) fn neighbours(&self) -> impl Iterator<Item = (&Commit<'a>, &Commit<'a>)> {
        self.commits.windows(2).filter_map(|pair| match pair {
            [one, next] if one.recorded.id().0.checked_add(1) == Some(next.recorded.id().0) => Some((one, next)),
            _ => None,
        })
    }

    /// The commits of each user, ascending.
    pub(super) fn by_user(&self) -> BTreeMap<&str, Vec<&Commit<'a>>> {
        let mut users: BTreeMap<&str, Vec<&Commit<'a>>> = BTreeMap::new();
        for commit in &self.commits {
            users.entry(&commit.recorded.snapshot.commit_user).or_default().push(commit);
        }
        users
    }
}
