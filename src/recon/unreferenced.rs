//! Files in a table's folder that nothing kept names: what a writer left behind, as evidence. Nothing is ever deleted.
//!
//! | class | the file |
//! |---|---|
//! | never-committed | a data file that no metadata speaks of: written, and its commit never came so far as to write a manifest |
//! | failed attempt | metadata of a commit that was not published, or a data file that only such metadata names: an attempt that gave up, one that was rolled back, or a snapshot that was overwritten |
//! | rolled back | the same of a commit that a tag or changelog proves to have been rolled back |
//! | before history | older than everything that is kept: left behind by expiry |
//! | temporary | a name that is only used while a file is written |
//!
//! What is named by any snapshot, tag or changelog of any branch is in use, whether its entry adds or deletes it.

mod rolled_back;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::history::{History, ListKind};
use crate::error::{ErrorKind, Result};
use crate::query::QueryEnv;
use crate::scan::{self, index_files};
use crate::snapshot::Pin;
use crate::spec::{ManifestEntry, Snapshot};
use crate::storage::env::now_millis;
use crate::storage::{FileEntry, Location};

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileRole {
    /// Rows.
    Data,
    /// Changelog rows.
    Changelog,
    /// Deletion vectors, hashes, file indexes.
    Index,
    /// A manifest.
    Manifest,
    /// A manifest list.
    ManifestList,
    /// A list of index files.
    IndexManifest,
    /// Statistics.
    Statistics,
    /// Something else.
    Other,
}

impl FileRole {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Changelog => "changelog",
            Self::Index => "index",
            Self::Manifest => "manifest",
            Self::ManifestList => "manifest list",
            Self::IndexManifest => "index manifest",
            Self::Statistics => "statistics",
            Self::Other => "other",
        }
    }

    fn of_metadata(name: &str) -> Self {
        if name.starts_with("manifest-list-") {
            Self::ManifestList
        } else if name.starts_with("index-manifest-") {
            Self::IndexManifest
        } else if name.starts_with("manifest-") {
            Self::Manifest
        } else {
            Self::Other
        }
    }

    fn of_data(name: &str) -> Self {
        if name.starts_with("changelog-") {
            Self::Changelog
        } else if name.starts_with("index-") || name.ends_with(".index") {
            Self::Index
        } else {
            Self::Data
        }
    }
}

/// Why nothing names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StrayClass {
    /// No metadata speaks of it.
    NeverCommitted,
    /// Only metadata of a commit that is not there does.
    FailedAttempt,
    /// Only metadata of a commit does that was rolled back.
    RolledBack,
    /// It is older than what is kept.
    BeforeHistory,
    /// It is not finished.
    Temporary,
}

impl StrayClass {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeverCommitted => "never-committed",
            Self::FailedAttempt => "failed attempt",
            Self::RolledBack => "rolled back",
            Self::BeforeHistory => "before history",
            Self::Temporary => "temporary",
        }
    }
}

/// A file that nothing kept names.
#[derive(Debug, Clone)]
pub struct StrayFile {
    /// The file.
    pub file: FileEntry,
    /// What it is.
    pub role: FileRole,
    /// Why it is there.
    pub class: StrayClass,
    /// Folder of its partition and bucket, as in the table; empty for metadata.
    pub unit: String,
    /// Who wrote it, where the name says so.
    pub user: Option<String>,
}

/// A commit on its way has written its lists, and is not published yet: what is younger tells nothing.
const ON_ITS_WAY_MILLIS: i64 = 600_000;

/// A manifest list that nothing names, with what it says. `added`: data files that no kept commit ever added.
#[derive(Debug, Clone)]
pub struct StrayList {
    /// The list.
    pub file: FileEntry,
    /// Entries that add a file which nothing kept has ever added.
    pub added: Vec<Arc<ManifestEntry>>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Unreferenced {
    /// Files, by path.
    pub files: Vec<StrayFile>,
    /// Unreferenced lists younger than the oldest snapshot, and older than a commit takes, that name files of their own.
    pub lists: Vec<StrayList>,
    /// What could not be read, so that files it names may be among these.
    pub unread: Vec<String>,
    /// Unreferenced lists, of the age of those in `lists`, that cannot be read.
    pub dark: Vec<String>,
}

/// All names that something kept uses.
#[derive(Default)]
struct Used {
    metadata: HashSet<String>,
    data: HashSet<String>,
    unread: Vec<String>,
}

impl Used {
    async fn add(&mut self, history: &History, env: &Arc<QueryEnv>) -> Result<()> {
        for unread in &history.unread {
            self.unread.push(unread.what.clone());
        }
        for recorded in &history.commits {
            let snapshot = &recorded.snapshot;
            let pin = history.pin_of(snapshot);
            for kind in [ListKind::Base, ListKind::Delta, ListKind::Changelog] {
                if let Err(error) = self.add_list(&pin, snapshot, kind, env).await {
                    if error.kind() == ErrorKind::Unavailable {
                        return Err(error);
                    }
                    // an expired snapshot kept as a changelog has lost its base list by design
                    if recorded.is_snapshot() {
                        self.unread.push(format!("{} list of snapshot {}", kind.as_str(), snapshot.id));
                    }
                }
            }
            self.metadata.extend(snapshot.statistics.clone());
            if let Some(name) = &snapshot.index_manifest {
                self.metadata.insert(name.clone());
                match index_files(&pin, &env.scan).await {
                    Ok(files) => self.data.extend(files.iter().map(|file| file.file_name.clone())),
                    Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                    Err(_) => self.unread.push(format!("index manifest of snapshot {}", snapshot.id)),
                }
            }
        }
        Ok(())
    }

    async fn add_list(
        &mut self,
        pin: &Arc<Pin>,
        snapshot: &Arc<Snapshot>,
        kind: ListKind,
        env: &Arc<QueryEnv>,
    ) -> Result<()> {
        let (name, size) = match kind {
            ListKind::Base => (Some(&snapshot.base_manifest_list), snapshot.base_manifest_list_size),
            ListKind::Delta => (Some(&snapshot.delta_manifest_list), snapshot.delta_manifest_list_size),
            ListKind::Changelog => (snapshot.changelog_manifest_list.as_ref(), snapshot.changelog_manifest_list_size),
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(()) };
        if !self.metadata.insert(name.clone()) {
            return Ok(());
        }
        let metas = scan::manifests_of_list(pin, name, size, &env.scan).await?;
        let new = metas.iter().filter(|meta| !self.metadata.contains(&meta.file_name)).count() > 0;
        self.metadata.extend(metas.into_iter().map(|meta| meta.file_name));
        if new {
            for entry in scan::entries_of_list(pin, name, size, &env.scan).await? {
                self.data.extend(entry.file.extra_files.iter().cloned());
                self.data.insert(entry.file.file_name.clone());
            }
        }
        Ok(())
    }
}

/// Lists what nothing kept names.
///
/// Cost: all metadata of all branches, tags and changelogs; a listing of every folder of the table.
///
/// # Errors
/// Storage that does not answer, a branch whose schema cannot be read.
pub async fn unreferenced(history: &History) -> Result<Unreferenced> {
    let env = Arc::clone(history.env());
    let table = history.table();
    let storage = table.storage();
    // files first: what is committed meanwhile is then in use, not left over
    let metadata = storage.list(&table.root().join("manifest")?).await?;
    let statistics = storage.list(&table.root().join("statistics")?).await?;
    let index = storage.list(&table.root().join("index")?).await?;
    let mut data = Vec::new();
    folders(history, table.root(), String::new(), &mut data).await?;
    let branches = branches(history, &env).await?;
    let oldest = oldest_of(&branches);
    let mut used = Used::default();
    for branch in &branches {
        used.add(branch, &env).await?;
    }
    let mut found = Unreferenced { unread: std::mem::take(&mut used.unread), ..Unreferenced::default() };
    let Strays { named, rolled_back } = stray_lists(history, &branches, &metadata, &used, &mut found).await?;
    let class = |file: &FileEntry, otherwise: StrayClass| {
        if is_temporary(&file.name) {
            StrayClass::Temporary
        } else if rolled_back.contains(&file.name) {
            StrayClass::RolledBack
        } else if file.modified_millis < oldest {
            StrayClass::BeforeHistory
        } else {
            otherwise
        }
    };
    for (files, role) in [(metadata, None), (statistics, Some(FileRole::Statistics)), (index, Some(FileRole::Index))] {
        for file in
            files.into_iter().filter(|file| !used.metadata.contains(&file.name) && !used.data.contains(&file.name))
        {
            let role = role.unwrap_or_else(|| FileRole::of_metadata(&file.name));
            let class = class(&file, StrayClass::FailedAttempt);
            found.files.push(StrayFile { class, role, unit: String::new(), user: None, file });
        }
    }
    for (unit, file) in data.into_iter().filter(|(_, file)| !used.data.contains(&file.name)) {
        let otherwise = if named.contains(&file.name) { StrayClass::FailedAttempt } else { StrayClass::NeverCommitted };
        let class = class(&file, otherwise);
        found.files.push(StrayFile {
            class,
            role: FileRole::of_data(&file.name),
            user: user_of(&file.name),
            unit,
            file,
        });
    }
    found.files.sort_by(|a, b| a.file.location.cmp(&b.file.location));
    Ok(found)
}

/// The lists that nothing names, as [`unreferenced`] gives them, and what could not be read.
///
/// Cost: a listing of the folder of manifests and the documents of all branches; where there are such lists all metadata of
/// all branches. No folder of data is listed.
///
/// # Errors
/// As [`unreferenced`].
pub async fn unreferenced_lists(history: &History) -> Result<Unreferenced> {
    let env = Arc::clone(history.env());
    let table = history.table();
    let metadata = table.storage().list(&table.root().join("manifest")?).await?;
    let branches = branches(history, &env).await?;
    let mut found = Unreferenced::default();
    let mut lists: HashSet<&str> = HashSet::new();
    for branch in &branches {
        found.unread.extend(branch.unread.iter().map(|unread| unread.what.clone()));
        for recorded in &branch.commits {
            let snapshot = &recorded.snapshot;
            lists.extend([snapshot.base_manifest_list.as_str(), snapshot.delta_manifest_list.as_str()]);
            lists.extend(snapshot.changelog_manifest_list.as_deref());
        }
    }
    let is_list = |file: &FileEntry| FileRole::of_metadata(&file.name) == FileRole::ManifestList;
    if metadata.iter().all(|file| !is_list(file) || lists.contains(file.name.as_str())) {
        return Ok(found);
    }
    let mut used = Used::default();
    for branch in &branches {
        used.add(branch, &env).await?;
    }
    found.unread = std::mem::take(&mut used.unread);
    stray_lists(history, &branches, &metadata, &used, &mut found).await?;
    Ok(found)
}

/// When the oldest commit was made that any branch keeps.
fn oldest_of(branches: &[History]) -> i64 {
    let times = branches.iter().flat_map(|branch| &branch.commits).map(|recorded| recorded.snapshot.time_millis);
    times.min().unwrap_or(i64::MAX)
}

/// What lists that nothing names speak of.
struct Strays {
    /// Data files that any of them names.
    named: HashSet<String>,
    /// Files of rolled back commits.
    rolled_back: HashSet<String>,
}

/// Adds the lists among some files of metadata that nothing names, but for those of commits that were rolled back.
async fn stray_lists(
    history: &History,
    branches: &[History],
    metadata: &[FileEntry],
    used: &Used,
    found: &mut Unreferenced,
) -> Result<Strays> {
    let mut named: HashSet<String> = HashSet::new();
    let (oldest, settled) = (oldest_of(branches), now_millis().saturating_sub(ON_ITS_WAY_MILLIS));
    let is_stray = |file: &&FileEntry| {
        FileRole::of_metadata(&file.name) == FileRole::ManifestList && !used.metadata.contains(&file.name)
    };
    let lists: Vec<&FileEntry> = metadata.iter().filter(is_stray).collect();
    let rolled_back = rolled_back::names(history, branches, &lists).await?;
    for file in lists {
        let is_told = file.modified_millis >= oldest && file.modified_millis <= settled;
        let is_told = is_told && !rolled_back.contains(&file.name);
        let entries = match scan::entries_of_list(&history.pin, &file.name, None, &history.env().scan).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            // cut short, or its manifests were cleaned up
            Err(_) => {
                found.dark.extend(is_told.then(|| file.name.clone()));
                continue;
            }
        };
        named.extend(entries.iter().map(|entry| entry.file.file_name.clone()));
        let own = |entry: &&Arc<ManifestEntry>| {
            entry.kind == crate::spec::FileKind::Add && !used.data.contains(&entry.file.file_name)
        };
        let added: Vec<Arc<ManifestEntry>> = entries.iter().filter(own).map(Arc::clone).collect();
        if !added.is_empty() && is_told {
            found.lists.push(StrayList { file: file.clone(), added });
        }
    }
    Ok(Strays { named, rolled_back })
}

/// Data files in the buckets below some folders of a table that nothing kept names, with the folder's number in the list,
/// the name of the bucket's folder and the file; and what could not be read, so that files it names may be among them.
///
/// Cost: a listing of each bucket; all metadata of all branches where a bucket has files.
///
/// # Errors
/// As [`unreferenced`].
pub async fn stray_data(
    history: &History,
    below: &[Location],
) -> Result<(Vec<(usize, String, FileEntry)>, Vec<String>)> {
    let storage = history.table().storage();
    let mut found = Vec::new();
    for (number, folder) in below.iter().enumerate() {
        for name in storage.list_dirs(folder).await?.into_iter().filter(|name| name.starts_with("bucket-")) {
            let files = storage.list(&folder.join(&name)?).await?.into_iter();
            let data =
                files.filter(|file| FileRole::of_data(&file.name) == FileRole::Data && !is_temporary(&file.name));
            found.extend(data.map(|file| (number, name.clone(), file)));
        }
    }
    let mut used = Used::default();
    if !found.is_empty() {
        let env = Arc::clone(history.env());
        for history in &branches(history, &env).await? {
            used.add(history, &env).await?;
        }
    }
    found.retain(|(_, _, file)| !used.data.contains(&file.name));
    Ok((found, used.unread))
}

/// The histories of all branches, main's and the given one's included.
async fn branches(history: &History, env: &Arc<QueryEnv>) -> Result<Vec<History>> {
    let table = history.table();
    let mut names = table.branches().await?;
    names.push(crate::snapshot::MAIN_BRANCH.to_string());
    let mut all = Vec::new();
    for name in names {
        let branch = table.branch(&name).await?;
        let request = crate::snapshot::PinRequest::Latest;
        let pin = Pin::resolve(&branch, request, &BTreeMap::new()).await?;
        all.push(History::load(&pin, env).await?);
    }
    Ok(all)
}

/// Files of bucket folders, each with the folder's path in the table.
async fn folders(
    history: &History,
    folder: &Location,
    path: String,
    found: &mut Vec<(String, FileEntry)>,
) -> Result<()> {
    let storage = history.table().storage();
    for name in storage.list_dirs(folder).await? {
        let below = folder.join(&name)?;
        let inner = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        if name.starts_with("bucket-") {
            for file in storage.list(&below).await? {
                found.push((inner.clone(), file));
            }
        } else if name.contains('=') || is_data_folder(history, &inner) {
            Box::pin(folders(history, &below, inner, found)).await?;
        }
    }
    Ok(())
}

/// Whether a folder leads to where `data-file.path-directory` says.
fn is_data_folder(history: &History, path: &str) -> bool {
    let below = history.pin.options.data_file_path_directory.as_deref().unwrap_or_default().trim_matches('/');
    !below.is_empty() && (below == path || below.starts_with(&format!("{path}/")))
}

fn is_temporary(name: &str) -> bool {
    name.starts_with('.') || name.starts_with('_') || name.ends_with(".tmp") || name.contains(".tmp-")
}

/// The user in the name of a postpone file: `data-u-<user>-s-…`.
fn user_of(name: &str) -> Option<String> {
    let rest = name.split_once("-u-")?.1;
    let end = rest.find("-s-")?;
    rest.get(..end).filter(|user| !user.is_empty()).map(str::to_string)
}
