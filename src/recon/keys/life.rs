//! The life of the files that can hold a key: when each came, on which level it was, when it went.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Key;
use super::timeline::is_of_state;
use crate::error::{Error, Result};
use crate::notice::NoticeKind;
use crate::recon::history::{FileChange, History, KeptAs, ListKind, Recorded, Standing};
use crate::scan::{ChangeRange, PlannedFile, ScanKind, ScanPlan, ScanRequest};
use crate::snapshot::Pin;
use crate::spec::{BinaryRow, ManifestEntry, Snapshot, SnapshotId};

/// What makes a file one, whatever its level.
pub(super) type Ident = (BinaryRow, i32, String);

pub(super) fn ident(entry: &ManifestEntry) -> Ident {
    (entry.partition.clone(), entry.bucket.0, entry.file.file_name.clone())
}

/// One file that can hold the key.
#[derive(Debug, Clone)]
pub(super) struct FileLife {
    pub(super) planned: Arc<PlannedFile>,
    /// The commit that added it, by its place in the line; None: before the history.
    pub(super) added: Option<usize>,
    /// The commit that removed it.
    pub(super) removed: Option<usize>,
    /// Levels it was moved to later, with the commit.
    pub(super) moved: Vec<(usize, i32)>,
}

/// A state, and the files of it that can hold the key.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// Its place in the line.
    pub(super) at: usize,
    pub(super) live: Vec<Arc<ManifestEntry>>,
}

/// The lives of all files that can hold a key.
#[derive(Debug)]
pub(super) struct Lives {
    /// Commits in their order, each number once: what was rolled back is not among them.
    pub(super) line: Vec<Recorded>,
    pub(super) files: BTreeMap<Ident, FileLife>,
    /// States that can be read, ascending.
    pub(super) states: Vec<State>,
    pub(super) limits: Vec<NoticeKind>,
}

/// Which files of a list can hold the key, by partition, bucket, key range and file index.
pub(super) async fn candidates(
    history: &History,
    pin: &Arc<Pin>,
    key: &Key,
    partitions: bool,
    entries: Vec<Arc<ManifestEntry>>,
) -> Result<Vec<Arc<PlannedFile>>> {
    let none = ChangeRange { after: SnapshotId(0), upto: SnapshotId(0) };
    let plan = planned(history, pin, key, partitions, ScanKind::Delta(none), entries).await?;
    Ok(plan.files().cloned().collect())
}

pub(super) async fn planned(
    history: &History,
    pin: &Arc<Pin>,
    key: &Key,
    partitions: bool,
    kind: ScanKind,
    entries: Vec<Arc<ManifestEntry>>,
) -> Result<ScanPlan> {
    let filters = key.filters(&pin.schema, partitions);
    let request = ScanRequest { filters, kind, explain: true, of: Some(entries.into()), ..ScanRequest::default() };
    crate::scan::plan(pin, &request, &history.env().scan).await
}

/// The line of a history, each number once, and what was rolled back, or may have been.
pub(super) fn line_of(history: &History) -> (Vec<Recorded>, Vec<Recorded>) {
    let (mut line, mut aside): (Vec<Recorded>, Vec<Recorded>) = (Vec::new(), Vec::new());
    for recorded in &history.commits {
        let twice = line.last().is_some_and(|last| last.id() == recorded.id());
        if recorded.standing != Standing::InForce || twice {
            aside.push(recorded.clone());
        } else {
            line.push(recorded.clone());
        }
    }
    (line, aside)
}

impl Lives {
    pub(super) async fn load(history: &History, key: &Key) -> Result<Self> {
        let (line, _) = line_of(history);
        let changes = history.all_changes(&line).await;
        let mut unread: Vec<i64> = Vec::new();
        let changes: Vec<Option<Vec<FileChange>>> = line
            .iter()
            .zip(changes)
            .map(|(recorded, changes)| {
                if changes.is_err() {
                    unread.push(recorded.id().0);
                }
                changes.ok()
            })
            .collect();
        let mut lives = Self { line, files: BTreeMap::new(), states: Vec::new(), limits: Vec::new() };
        // whole states: the first one, and each that what came before does not lead to
        let mut whole: HashMap<usize, Vec<Arc<ManifestEntry>>> = HashMap::new();
        let mut broken: BTreeSet<usize> = BTreeSet::new();
        let mut before: Option<i64> = None;
        for (at, recorded) in lives.line.iter().enumerate() {
            if recorded.kept == KeptAs::Changelog {
                continue;
            }
            let follows = before.is_some_and(|id| id.checked_add(1) == Some(recorded.id().0));
            before = Some(recorded.id().0);
            if !follows || changes.get(at).is_none_or(Option::is_none) {
                match history.live(&recorded.snapshot).await {
                    Ok(live) => drop(whole.insert(at, live)),
                    Err(error) if is_of_state(&error) => {
                        // the one after it is then read whole
                        before = None;
                        broken.insert(at);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        unread.extend(broken.iter().filter_map(|at| lives.line.get(*at)).map(|recorded| recorded.id().0));
        unread.sort_unstable();
        unread.dedup();
        if !unread.is_empty() {
            lives.limits.push(NoticeKind::CommitsNotRead { table: history.table().name(), snapshots: unread });
        }
        // in the order of the line, so that of a file seen twice the first entry counts
        let mut entries: BTreeMap<Ident, Arc<ManifestEntry>> = BTreeMap::new();
        for at in 0..lives.line.len() {
            for entry in whole.get(&at).into_iter().flatten() {
                entries.entry(ident(entry)).or_insert_with(|| Arc::clone(entry));
            }
            for change in changes.get(at).and_then(Option::as_ref).into_iter().flatten() {
                let entry = match change {
                    FileChange::Upgrade { from, .. } => from,
                    other => other.entry(),
                };
                entries.entry(ident(entry)).or_insert_with(|| Arc::clone(entry));
            }
        }
        for planned in candidates(history, &history.pin, key, true, entries.into_values().collect()).await? {
            let life = FileLife { added: None, removed: None, moved: Vec::new(), planned };
            lives.files.insert(ident(&life.planned.entry), life);
        }
        lives.follow(&changes, &whole);
        lives.states.retain(|state| !broken.contains(&state.at));
        // the newest state says whether the changes told everything
        if let Some(last) = lives.states.last()
            && !whole.contains_key(&last.at)
            && let Some(recorded) = lives.line.get(last.at)
        {
            let told: BTreeSet<(Ident, i32)> = last.live.iter().map(|e| (ident(e), e.file.level)).collect();
            let live = history.live(&recorded.snapshot).await?;
            let seen: Vec<Arc<PlannedFile>> = candidates(history, &history.pin, key, true, live).await?;
            if seen.iter().map(|file| (ident(&file.entry), file.entry.file.level)).collect::<BTreeSet<_>>() != told {
                lives.read_states(history, key).await?;
            }
        }
        Ok(lives)
    }

    /// Folds the changes into lives and states.
    fn follow(&mut self, changes: &[Option<Vec<FileChange>>], whole: &HashMap<usize, Vec<Arc<ManifestEntry>>>) {
        let mut live: BTreeMap<Ident, Arc<ManifestEntry>> = BTreeMap::new();
        for at in 0..self.line.len() {
            for change in changes.get(at).and_then(Option::as_ref).into_iter().flatten() {
                let id = ident(change.entry());
                let Some(file) = self.files.get_mut(&id) else { continue };
                match change {
                    FileChange::Add(entry) => {
                        file.added = file.added.or(Some(at));
                        file.removed = None;
                        live.insert(id, Arc::clone(entry));
                    }
                    FileChange::Delete(_) => {
                        file.removed = Some(at);
                        live.remove(&id);
                    }
                    FileChange::Upgrade { to, .. } => {
                        file.moved.push((at, to.file.level));
                        live.insert(id, Arc::clone(to));
                    }
                }
            }
            if let Some(entries) = whole.get(&at) {
                let own =
                    entries.iter().map(|entry| (ident(entry), entry)).filter(|(id, _)| self.files.contains_key(id));
                live = own.map(|(id, entry)| (id, Arc::clone(entry))).collect();
            }
            if self.line.get(at).is_some_and(|recorded| recorded.kept != KeptAs::Changelog) {
                self.states.push(State { at, live: live.values().cloned().collect() });
            }
        }
    }

    /// Every state by its own manifests: what commits say of themselves does not add up.
    async fn read_states(&mut self, history: &History, key: &Key) -> Result<()> {
        for at in 0..self.states.len() {
            let Some(recorded) = self.states.get(at).and_then(|state| self.line.get(state.at)) else { continue };
            let live = history.live(&recorded.snapshot).await?;
            let files = candidates(history, &history.pin, key, true, live).await?;
            for file in &files {
                let life = || FileLife { planned: Arc::clone(file), added: None, removed: None, moved: Vec::new() };
                self.files.entry(ident(&file.entry)).or_insert_with(life);
            }
            if let Some(state) = self.states.get_mut(at) {
                state.live = files.iter().map(|file| Arc::clone(&file.entry)).collect();
            }
        }
        Ok(())
    }

    /// The commit at a place of the line.
    pub(super) fn snapshot(&self, at: usize) -> Result<&Arc<Snapshot>> {
        let found = self.line.get(at).map(|recorded| &recorded.snapshot);
        found.ok_or_else(|| Error::internal("a place beyond the line of commits"))
    }

    /// Files of the changelogs of a range that can hold the key, with the commit of each.
    pub(super) async fn changelogs(
        &self,
        history: &History,
        key: &Key,
        range: (i64, i64),
    ) -> Result<Vec<(usize, Arc<PlannedFile>)>> {
        let mut found = Vec::new();
        for (at, recorded) in self.line.iter().enumerate() {
            if recorded.id().0 < range.0 || recorded.id().0 > range.1 {
                continue;
            }
            let Ok(entries) = history.entries(&recorded.snapshot, ListKind::Changelog).await else { continue };
            if !entries.is_empty() {
                let files = candidates(history, &history.pin, key, true, entries).await?;
                found.extend(files.into_iter().map(|file| (at, file)));
            }
        }
        Ok(found)
    }
}
