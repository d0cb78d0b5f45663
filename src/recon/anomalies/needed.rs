//! D-15, of files: all that kept snapshots, tags and changelogs name is there, with the size that their metadata tells.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures::{StreamExt, stream};

use super::state::damaged;
use super::{Finding, Material};
use crate::error::{Error, ErrorKind, Result};
use crate::recon::history::{FileChange, KeptAs, ListKind};
use crate::scan::index_files;
use crate::spec::partition_path::bucket_dir;
use crate::spec::{IndexFileMeta, ManifestEntry, Snapshot, SnapshotId};
use crate::storage::{Location, Storage};

/// A file that something kept needs.
struct Needed {
    storage: Arc<Storage>,
    folder: Location,
    kind: Kind,
    /// Bytes, where metadata tells them.
    size: Option<u64>,
    unit: Option<String>,
    /// The snapshots that need it, ascending: first and last of each stretch.
    snapshots: Vec<(i64, i64)>,
    /// Tags and changelogs: `tag 'eod'`.
    others: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Data,
    Index,
    Changelog,
    Statistics,
}

impl Kind {
    fn plural(self) -> &'static str {
        match self {
            Self::Data => "data files",
            Self::Index => "index files",
            Self::Changelog => "changelog files",
            Self::Statistics => "files of statistics",
        }
    }
}

impl Needed {
    fn is_needed(&self) -> bool {
        !self.snapshots.is_empty() || !self.others.is_empty()
    }

    /// Notes that a stretch of snapshots needs it; stretches come in ascending order.
    fn by_snapshots(&mut self, first: i64, last: i64) {
        match self.snapshots.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => self.snapshots.push((first, last)),
        }
    }
}

/// What needs a file.
#[derive(Clone, Copy)]
enum By<'a> {
    Snapshot(SnapshotId),
    /// A tag or changelog of a snapshot that may be gone.
    Other(&'a str),
    /// Said later.
    Later,
}

/// Where a file is: its folder and its name.
type Place = (String, String);

type IndexFiles = Arc<[Arc<IndexFileMeta>]>;
type Entries = Vec<Arc<ManifestEntry>>;

/// The index files and the changelogs of states, in their order, several read at once.
async fn read_beside(material: &Material<'_>, states: &[Arc<Snapshot>]) -> Vec<(Result<IndexFiles>, Result<Entries>)> {
    let history = material.history;
    let reads: Vec<_> = states
        .iter()
        .map(|snapshot| {
            let (snapshot, pin) = (Arc::clone(snapshot), history.pin_of(snapshot));
            async move {
                let index = index_files(&pin, &history.env().scan).await;
                (index, history.entries(&snapshot, ListKind::Changelog).await)
            }
        })
        .collect();
    stream::iter(reads).buffered(history.env().scan.concurrency.max(1)).collect().await
}

struct Files<'a> {
    material: &'a Material<'a>,
    all: BTreeMap<Place, Needed>,
}

impl Files<'_> {
    fn add(&mut self, file: Needed, name: &str, by: By<'_>) {
        let place = (file.folder.to_string(), name.to_string());
        let known = self.all.entry(place).or_insert(file);
        match by {
            By::Snapshot(id) => known.by_snapshots(id.0, id.0),
            By::Other(what) => drop(known.others.insert(what.to_string())),
            By::Later => {}
        }
    }

    /// The data files that were there since some snapshot were there up to another.
    fn up_to(&mut self, places: impl IntoIterator<Item = (Place, SnapshotId)>, last: i64) {
        for (place, since) in places {
            if let Some(file) = self.all.get_mut(&place) {
                file.by_snapshots(since.0, last);
            }
        }
    }

    /// A data file, or one of a changelog, and the index beside it.
    async fn entry(&mut self, entry: &ManifestEntry, kind: Kind, by: By<'_>) -> Result<Place> {
        let table = self.material.history.table();
        let name = &entry.file.file_name;
        let (storage, folder) = match &entry.file.external_path {
            Some(path) => outside(table.storage(), path).await?,
            None => (Arc::clone(table.storage()), self.material.texts.bucket_folder(entry)?),
        };
        let unit = Some(self.material.texts.unit(entry)?);
        let file = |kind, size| Needed {
            storage: Arc::clone(&storage),
            folder: folder.clone(),
            kind,
            size,
            unit: unit.clone(),
            snapshots: Vec::new(),
            others: BTreeSet::new(),
        };
        for index in entry.file.extra_files.iter().filter(|name| name.ends_with(".index")) {
            self.add(file(Kind::Index, None), index, by);
        }
        self.add(file(kind, Some(entry.file.file_size)), name, by);
        Ok((folder.to_string(), name.clone()))
    }

    /// An index file of a bucket.
    async fn index(&mut self, index: &IndexFileMeta, by: By<'_>) -> Result<()> {
        let (table, pin) = (self.material.history.table(), &self.material.history.pin);
        let (storage, folder) = match &index.external_path {
            Some(path) => outside(table.storage(), path).await?,
            None if pin.options.index_file_in_data_file_dir => {
                let partition = self.material.texts.partition_folder(&index.partition)?;
                (Arc::clone(table.storage()), partition.join(&bucket_dir(index.bucket))?)
            }
            None => (Arc::clone(table.storage()), parent(&table.index_location(&index.file_name)?)?),
        };
        let (snapshots, others) = Default::default();
        let size = u64::try_from(index.file_size).ok();
        let file = Needed { storage, folder, kind: Kind::Index, size, unit: None, snapshots, others };
        self.add(file, &index.file_name, by);
        Ok(())
    }

    /// What a state names beside its data files; `index` are its index files.
    async fn beside(
        &mut self,
        snapshot: &Arc<Snapshot>,
        index: Result<IndexFiles>,
        by: By<'_>,
        found: &mut Vec<Finding>,
    ) -> Result<()> {
        let history = self.material.history;
        match index {
            Ok(files) => {
                for file in files.iter() {
                    self.index(file, by).await?;
                }
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            // that of the newest state is told where its vectors are looked at
            Err(_) if history.latest().is_some_and(|latest| latest.id == snapshot.id) => {}
            Err(error) => {
                found.push(damaged(format!("the index manifest of {}", by.text()), &error, Some(snapshot.id)));
            }
        }
        if let Some(name) = snapshot.statistics.as_deref().filter(|name| !name.is_empty()) {
            let table = history.table();
            let (storage, folder) = (Arc::clone(table.storage()), parent(&table.statistics_location(name)?)?);
            let (snapshots, others) = Default::default();
            let file = Needed { storage, folder, kind: Kind::Statistics, size: None, unit: None, snapshots, others };
            self.add(file, name, by);
        }
        Ok(())
    }

    /// The files of a changelog.
    async fn changelog(
        &mut self,
        snapshot: &Arc<Snapshot>,
        entries: Result<Entries>,
        by: By<'_>,
        found: &mut Vec<Finding>,
    ) -> Result<()> {
        match entries {
            Ok(entries) => {
                for entry in &entries {
                    self.entry(entry, Kind::Changelog, by).await?;
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
            Err(error) => {
                found.push(damaged(format!("the changelog of snapshot {}", snapshot.id), &error, Some(snapshot.id)));
                Ok(())
            }
        }
    }
}

impl By<'_> {
    fn text(self) -> String {
        match self {
            Self::Snapshot(id) => format!("snapshot {id}"),
            Self::Other(what) => what.to_string(),
            Self::Later => String::new(),
        }
    }
}

/// Where a complete path leads: its store and folder.
async fn outside(storage: &Arc<Storage>, path: &str) -> Result<(Arc<Storage>, Location)> {
    let (storage, location) = storage.resolve(path).await?;
    Ok((storage, parent(&location)?))
}

fn parent(location: &Location) -> Result<Location> {
    location.parent().ok_or_else(|| Error::internal("a file lies in no folder"))
}

/// The files of a state, none where they cannot be told: that is a finding.
async fn state(
    material: &Material<'_>,
    snapshot: &Arc<Snapshot>,
    by: By<'_>,
    found: &mut Vec<Finding>,
) -> Result<Vec<Arc<ManifestEntry>>> {
    match material.history.live(snapshot).await {
        Ok(live) => Ok(live),
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
        // D-6 tells of counts that do not add up
        Err(error) if error.code() == "ManifestIncomplete" => {
            let why = format!("the files of {} cannot be told: {}", by.text(), error.message());
            found.push(Finding::unchecked("D-15", why).at([snapshot.id]));
            Ok(Vec::new())
        }
        Err(error) => {
            found.push(damaged(format!("the files of {}", by.text()), &error, Some(snapshot.id)));
            Ok(Vec::new())
        }
    }
}

/// The files that kept snapshots, tags and changelogs need, each once.
///
/// Cost: the delta manifests, which were read before, all manifests of the oldest snapshot and of each tag whose snapshot
/// has expired, the index manifest of each state and the manifests of changelogs.
async fn needed<'a>(
    material: &'a Material<'a>,
    live: &[Arc<ManifestEntry>],
    latest: &Snapshot,
    found: &mut Vec<Finding>,
) -> Result<BTreeMap<Place, Needed>> {
    let mut files = Files { material, all: BTreeMap::new() };
    // the data files of the state that was looked at last, and since when they are there
    let mut now: HashMap<Place, SnapshotId> = HashMap::new();
    let mut before: Option<SnapshotId> = None;
    let kept = || material.commits.iter().filter(|commit| commit.recorded.is_snapshot());
    let states: Vec<Arc<Snapshot>> = kept().map(|commit| Arc::clone(commit.snapshot())).collect();
    for (commit, (index, changelog)) in kept().zip(read_beside(material, &states).await) {
        let snapshot = commit.snapshot();
        let id = snapshot.id;
        let last = before.replace(id);
        match &commit.changes {
            // a state is the one before and what the commit did, as long as that is kept
            Ok(changes) if last.is_some_and(|last| last.0.checked_add(1) == Some(id.0)) => {
                for change in changes {
                    let place = files.entry(change.entry(), Kind::Data, By::Later).await?;
                    match change {
                        FileChange::Add(_) => drop(now.insert(place, id)),
                        FileChange::Upgrade { .. } => drop(now.entry(place).or_insert(id)),
                        FileChange::Delete(_) => {
                            let gone = now.remove(&place).map(|since| (place, since));
                            files.up_to(gone, id.0 - 1);
                        }
                    }
                }
            }
            _ => {
                let state = match id == latest.id {
                    true => live.to_vec(),
                    false => state(material, snapshot, By::Snapshot(id), found).await?,
                };
                if let Some(last) = last {
                    files.up_to(now.drain(), last.0);
                }
                for entry in &state {
                    now.insert(files.entry(entry, Kind::Data, By::Later).await?, id);
                }
            }
        }
        files.beside(snapshot, index, By::Snapshot(id), found).await?;
        files.changelog(snapshot, changelog, By::Snapshot(id), found).await?;
    }
    if let Some(last) = before {
        files.up_to(now, last.0);
    }
    // whatever the deltas say, this is what is read
    for entry in live {
        files.entry(entry, Kind::Data, By::Snapshot(latest.id)).await?;
    }
    for recorded in &material.history.commits {
        match &recorded.kept {
            KeptAs::Tag(name) => {
                let what = format!("tag '{name}'");
                let by = By::Other(&what);
                for entry in state(material, &recorded.snapshot, by, found).await? {
                    files.entry(&entry, Kind::Data, by).await?;
                }
                let index =
                    index_files(&material.history.pin_of(&recorded.snapshot), &material.history.env().scan).await;
                files.beside(&recorded.snapshot, index, by, found).await?;
            }
            KeptAs::Changelog => {
                let what = format!("changelog {}", recorded.id());
                let entries = material.history.entries(&recorded.snapshot, ListKind::Changelog).await;
                files.changelog(&recorded.snapshot, entries, By::Other(&what), found).await?;
            }
            _ => {}
        }
    }
    Ok(files.all)
}

/// D-15, of files: that they are there, with the size that metadata tells.
pub(super) async fn missing_files(
    material: &Material<'_>,
    live: &[Arc<ManifestEntry>],
    latest: &Snapshot,
    found: &mut Vec<Finding>,
) -> Result<()> {
    let needed = needed(material, live, latest, found).await?;
    let mut folders: BTreeMap<(&str, Kind), Vec<(&str, &Needed)>> = BTreeMap::new();
    for ((folder, name), file) in needed.iter().filter(|(_, file)| file.is_needed()) {
        folders.entry((folder, file.kind)).or_default().push((name, file));
    }
    let mut listed: HashMap<&str, HashMap<String, u64>> = HashMap::new();
    for ((folder, kind), files) in folders {
        let Some((_, first)) = files.first() else { continue };
        if !listed.contains_key(folder) {
            let there = first.storage.list(&first.folder).await?.into_iter().map(|file| (file.name, file.size));
            listed.insert(folder, there.collect());
        }
        let Some(sizes) = listed.get(folder) else { continue };
        let (mut lost, mut torn) = (Vec::new(), Vec::new());
        for (name, file) in files {
            match (sizes.get(name), file.size) {
                (None, _) => lost.push((name, file, None)),
                (Some(there), Some(told)) if *there != told => torn.push((name, file, Some((*there, told)))),
                (Some(_), _) => {}
            }
        }
        for list in [lost, torn] {
            // such as the one that the newest state needs
            let Some((name, file, sizes)) =
                list.iter().max_by_key(|(_, file, _)| file.snapshots.last().map(|(_, last)| *last))
            else {
                continue;
            };
            let (many, kind) = (list.len(), kind.plural());
            let what = match sizes {
                None => format!("{many} {kind} are not there, such as {name}"),
                Some((there, told)) => format!(
                    "{many} {kind} have another size than their metadata tells, such as {name} with {there} bytes instead of {told}"
                ),
            };
            let error = Error::corrupt(what).with_context("file", &file.folder);
            let snapshots: BTreeSet<i64> = list
                .iter()
                .flat_map(|(_, file, _)| file.snapshots.iter())
                .flat_map(|(first, last)| *first..=*last)
                .collect();
            let mut others: BTreeSet<String> =
                list.iter().flat_map(|(_, file, _)| file.others.iter().cloned()).collect();
            others.extend(tags_of(material, &snapshots).await?);
            let by = broken(&snapshots, &others);
            let finding = damaged(by, &error, None).at(snapshots.into_iter().map(SnapshotId));
            found.push(match &file.unit {
                Some(unit) => finding.in_unit(unit.clone()),
                None => finding,
            });
        }
    }
    Ok(())
}

/// The tags of snapshots that are kept beside them.
async fn tags_of(material: &Material<'_>, snapshots: &BTreeSet<i64>) -> Result<Vec<String>> {
    let history = material.history;
    let same = |tagged: &Snapshot| {
        history.snapshots().any(|kept| kept.id == tagged.id && kept.delta_manifest_list == tagged.delta_manifest_list)
    };
    let tags = history.table().readable_tags().await?.found.into_iter();
    let tags = tags.filter(|(_, tag)| snapshots.contains(&tag.snapshot.id.0) && same(&tag.snapshot));
    Ok(tags.map(|(name, _)| format!("tag '{name}'")).collect())
}

/// `snapshots 3 to 5, 9 and tag 'eod'`
fn broken(snapshots: &BTreeSet<i64>, others: &BTreeSet<String>) -> String {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for id in snapshots {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*id) => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    let ranges: Vec<String> = ranges
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first} to {last}") })
        .collect();
    let noun = if snapshots.len() == 1 { "snapshot" } else { "snapshots" };
    let ranges = (!ranges.is_empty()).then(|| format!("{noun} {}", ranges.join(", ")));
    let others = (!others.is_empty()).then(|| others.iter().cloned().collect::<Vec<_>>().join(", "));
    ranges.into_iter().chain(others).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_is_told_in_ranges() {
        let ids = |ids: &[i64]| ids.iter().copied().collect();
        let tags = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        assert_eq!(broken(&ids(&[3, 4, 5, 9]), &tags(&["tag 'eod'"])), "snapshots 3 to 5, 9 and tag 'eod'");
        assert_eq!(broken(&ids(&[7]), &BTreeSet::new()), "snapshot 7");
        assert_eq!(broken(&ids(&[]), &tags(&["tag 'a'", "tag 'b'"])), "tag 'a', tag 'b'");
    }
}
