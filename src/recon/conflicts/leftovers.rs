//! What attempts that were not published left behind: manifest lists that nothing names, of data files that a later
//! attempt published.
//!
//! The base list of such an attempt names the manifests of the state that it stood on. It is exact where every manifest
//! in it is one that snapshots name: one that was merged for the attempt alone hides what it was merged of.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::error::{ErrorKind, Result};
use crate::recon::commits::{committer_counter, committer_instance};
use crate::recon::history::{FileChange, History, Recorded};
use crate::recon::lookup::Confidence;
use crate::scan;
use crate::spec::{FileKind, SnapshotId};

/// What attempts left.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// The base of the first attempt of a commit, of which a base list was left.
    pub bases: HashMap<SnapshotId, (SnapshotId, Confidence)>,
    /// Lists of no snapshot that add data files which no kept commit has added.
    pub unpublished: u64,
}

/// Reads what attempts left. `changes`: of those commits, in their order.
///
/// Cost: a listing of the folder of manifests; where it has lists that none of the commits names, these with their
/// manifests, and the lists of all commits.
///
/// # Errors
/// Storage that does not answer. Lists that cannot be read tell nothing.
pub async fn leftovers(history: &History, commits: &[Recorded], changes: &[Vec<FileChange>]) -> Result<Leftovers> {
    let table = history.table();
    let mut named: HashSet<&str> = HashSet::new();
    for recorded in &history.commits {
        let snapshot = &recorded.snapshot;
        named.extend([snapshot.base_manifest_list.as_str(), snapshot.delta_manifest_list.as_str()]);
        named.extend(snapshot.changelog_manifest_list.as_deref());
    }
    // by committer object and number
    let mut strays: BTreeMap<(String, u64), String> = BTreeMap::new();
    for file in table.storage().list(&table.root().join("manifest")?).await? {
        if named.contains(file.name.as_str()) {
            continue;
        }
        if let (Some(instance), Some(number)) = (committer_instance(&file.name), committer_counter(&file.name)) {
            strays.insert((instance.to_string(), number), file.name.clone());
        }
    }
    let mut found = Leftovers::default();
    if strays.is_empty() {
        return Ok(found);
    }
    let mut brought: HashMap<&str, SnapshotId> = HashMap::new();
    for (recorded, changes) in commits.iter().zip(changes) {
        let added = changes.iter().filter(|change| matches!(change, FileChange::Add(_)));
        brought.extend(added.map(|change| (change.entry().file.file_name.as_str(), recorded.id())));
    }
    let states = States::load(history, commits).await?;
    for ((instance, number), name) in &strays {
        let entries = match scan::entries_of_list(&history.pin, name, None, &history.env().scan).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(_) => continue,
        };
        let base = number.checked_sub(1).and_then(|before| strays.get(&(instance.clone(), before)));
        let added = entries.iter().filter(|entry| entry.kind == FileKind::Add);
        let commit = added.clone().find_map(|entry| brought.get(entry.file.file_name.as_str()));
        let (Some(base), Some(commit)) = (base, commit) else { continue };
        let stood_on = match scan::manifests_of_list(&history.pin, base, None, &history.env().scan).await {
            Ok(metas) => states.holding(&metas.iter().map(|meta| meta.file_name.as_str()).collect()),
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(_) => None,
        };
        // a base list names files of others as well: what stood on a later state is none of this commit's
        if let Some(stood_on) = stood_on.filter(|(id, _)| *id < *commit) {
            let first = found.bases.entry(*commit).or_insert(stood_on);
            if stood_on.0 < first.0 {
                *first = stood_on;
            }
        }
    }
    found.unpublished = crate::recon::unreferenced::unreferenced_lists(history).await?.lists.len() as u64;
    Ok(found)
}

/// The manifests of each snapshot.
struct States {
    /// With those of its base and those it added, ascending.
    all: Vec<(SnapshotId, HashSet<String>, Vec<String>)>,
}

impl States {
    async fn load(history: &History, commits: &[Recorded]) -> Result<Self> {
        let mut all = Vec::new();
        for recorded in commits.iter().filter(|recorded| recorded.is_snapshot()) {
            let (snapshot, env) = (&recorded.snapshot, &history.env().scan);
            let pin = history.pin_of(snapshot);
            let (base, delta) = (&snapshot.base_manifest_list, &snapshot.delta_manifest_list);
            let read = futures::try_join!(
                scan::manifests_of_list(&pin, base, snapshot.base_manifest_list_size, env),
                scan::manifests_of_list(&pin, delta, snapshot.delta_manifest_list_size, env)
            );
            let (base, delta) = match read {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                Err(_) => continue,
            };
            let delta: Vec<String> = delta.into_iter().map(|meta| meta.file_name).collect();
            let base = base.into_iter().map(|meta| meta.file_name).collect();
            all.push((snapshot.id, base, delta));
        }
        Ok(Self { all })
    }

    /// The newest state whose own manifests are among some; None where a manifest among them is of no state.
    fn holding(&self, manifests: &HashSet<&str>) -> Option<(SnapshotId, Confidence)> {
        let known = |name: &str| {
            self.all.iter().any(|(_, base, delta)| base.contains(name) || delta.iter().any(|own| own == name))
        };
        if !manifests.iter().all(|name| known(name)) {
            return None;
        }
        let holds = |delta: &[String]| !delta.is_empty() && delta.iter().all(|name| manifests.contains(name.as_str()));
        let at = self.all.iter().rposition(|(_, _, delta)| holds(delta))?;
        let (id, ..) = self.all.get(at)?;
        // a commit without manifests leaves no mark: it may have been there as well
        let next = self.all.get(at + 1).filter(|(_, _, delta)| delta.is_empty());
        Some((*id, if next.is_none() { Confidence::Exact } else { Confidence::Inferred }))
    }
}
