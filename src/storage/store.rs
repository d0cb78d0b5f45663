//! One store: reads, listings, external paths.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;

use super::counting::{Counters, CountingStore, RequestCounts, RequestMeter, RetryPolicy};
use super::failure::{io_error, storage_error};
use super::local;
use super::location::Location;
use super::open::Address;
use crate::error::{Error, ErrorKind, Result};

/// Bytes of a file that is read whole, at most. Such files hold metadata and indexes; writers cut them at some megabytes.
pub const MAX_WHOLE_FILE: u64 = 1 << 30;

/// A file as a listing or a look at it reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Last segment of the path.
    pub name: String,
    /// The file.
    pub location: Location,
    /// Bytes.
    pub size: u64,
    /// Last modification, epoch milliseconds.
    pub modified_millis: i64,
    /// Entity tag, where the store has one.
    pub e_tag: Option<String>,
}

/// One object store, with its own counters. All requests of Lakepin to it, those of DataFusion's Parquet source
/// included, go through [`Storage::object_store`].
pub struct Storage {
    store: Arc<CountingStore>,
    counters: Arc<Counters>,
    root: Arc<str>,
    is_local: bool,
    options: BTreeMap<String, String>,
    /// Other stores that external paths led to, by root. They know no further ones: they ask this one.
    others: Mutex<HashMap<String, Arc<Storage>>>,
}

impl Storage {
    /// Opens what `url` names: a local path (relative too), `file://`, `s3://bucket/path` or, for tests,
    /// `memory://name/path`. Returns the store and the place in it. Nothing is read yet.
    ///
    /// S3 options: `s3.endpoint`, `s3.region`, `s3.access-key`, `s3.secret-key`, `s3.session-token`,
    /// `s3.path-style-access`, `s3.anonymous`, Hadoop's `fs.s3a.…`, `aws_…`; else the environment (`AWS_…`). Time
    /// limits: `storage.timeout`, `storage.connect-timeout`, `storage.retries`, `storage.retry-timeout`.
    pub async fn open(url: &str, options: &BTreeMap<String, String>) -> Result<(Arc<Self>, Location)> {
        let address = Address::parse(url)?;
        let storage = Self::open_address(&address, options)?;
        let location = storage.location(address.path())?;
        Ok((storage, location))
    }

    fn open_address(address: &Address, options: &BTreeMap<String, String>) -> Result<Arc<Self>> {
        let (store, policy) = address.open(options)?;
        let is_local = matches!(address, Address::Local { .. });
        Self::wrap(store, &address.root(), policy, is_local, options.clone())
    }

    /// A store made by the caller. `root` is what its locations show before the path, for instance `memory://test`.
    pub fn from_object_store(store: Arc<dyn ObjectStore>, root: &str) -> Result<Arc<Self>> {
        Self::wrap(store, root.trim_end_matches('/'), RetryPolicy::default(), false, BTreeMap::new())
    }

    fn wrap(
        store: Arc<dyn ObjectStore>,
        root: &str,
        policy: RetryPolicy,
        is_local: bool,
        options: BTreeMap<String, String>,
    ) -> Result<Arc<Self>> {
        let counters = Arc::new(Counters::default());
        let store = Arc::new(CountingStore::new(store, Arc::clone(&counters), policy, is_local));
        let others = Mutex::new(HashMap::new());
        Ok(Arc::new(Self { store, counters, root: root.into(), is_local, options, others }))
    }

    /// The store itself, counted and retrying.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store) as Arc<dyn ObjectStore>
    }

    /// The same, counting with `meter` besides.
    pub fn metered_store(&self, meter: &RequestMeter) -> Arc<dyn ObjectStore> {
        Arc::new(self.store.metered(meter))
    }

    /// The root of the store.
    pub fn root(&self) -> Location {
        Location::from_store(Arc::clone(&self.root), Default::default())
    }

    /// A place in this store by its literal path.
    pub fn location(&self, path: &str) -> Result<Location> {
        self.root().join(path)
    }

    /// What was asked of the store so far.
    pub fn counts(&self) -> RequestCounts {
        self.counters.now()
    }

    /// What was asked so far of the store and of those that external paths led to. One that is met later has been asked
    /// for nothing before, so a difference of two is right.
    pub fn counts_with_others(&self) -> RequestCounts {
        self.other_stores().iter().fold(self.counts(), |sum, other| sum + other.counts())
    }

    /// A whole file. Errors: `FileNotFound` when it is not there, `FileTooLarge` over [`MAX_WHOLE_FILE`].
    pub async fn read(&self, location: &Location) -> Result<Bytes> {
        self.read_within(location, MAX_WHOLE_FILE).await
    }

    /// A whole file, or None when it is not there.
    pub async fn read_opt(&self, location: &Location) -> Result<Option<Bytes>> {
        absent_as_none(self.read(location).await)
    }

    /// A whole file of at most `limit` bytes, or None when it is not there. Error `FileTooLarge`.
    pub async fn read_opt_within(&self, location: &Location, limit: u64) -> Result<Option<Bytes>> {
        absent_as_none(self.read_within(location, limit).await)
    }

    async fn read_within(&self, location: &Location, limit: u64) -> Result<Bytes> {
        let failed = |error| storage_error(error, "reading", location);
        let found = self.store.get(location.path()).await.map_err(failed)?;
        if found.meta.size > limit {
            return Err(Error::corrupt(format!(
                "the file has {} bytes, far more than a file of its kind can have (at most {limit} are read)",
                found.meta.size
            ))
            .with_code("FileTooLarge")
            .with_context("file", location)
            .with_hint("something else was put in its place: restore the file"));
        }
        found.bytes().await.map_err(failed)
    }

    /// A part of a file, or None when it is not there.
    pub async fn read_range_opt(&self, location: &Location, range: std::ops::Range<u64>) -> Result<Option<Bytes>> {
        let read = self.store.get_range(location.path(), range).await;
        absent_as_none(read.map_err(|error| storage_error(error, "reading", location)))
    }

    /// Whether a file is there.
    pub async fn exists(&self, location: &Location) -> Result<bool> {
        Ok(absent_as_none(self.head(location).await)?.is_some())
    }

    /// Size and age of a file. Error `FileNotFound` when it is not there.
    pub async fn head(&self, location: &Location) -> Result<FileEntry> {
        let meta = self.store.head(location.path()).await.map_err(|e| storage_error(e, "looking at", location))?;
        Ok(self.entry(meta))
    }

    /// The files directly in a folder, by name. A folder that is not there has none.
    pub async fn list(&self, folder: &Location) -> Result<Vec<FileEntry>> {
        let mut files = if self.is_local {
            let entries = self.list_machine(folder).await?;
            let files = entries.into_iter().filter(|entry| !entry.is_dir);
            files
                .map(|entry| {
                    Ok(FileEntry {
                        location: folder.join(&entry.name)?,
                        name: entry.name,
                        size: entry.size,
                        modified_millis: entry.modified_millis,
                        e_tag: None,
                    })
                })
                .collect::<Result<Vec<_>>>()?
        } else {
            let listed = self.store.list_with_delimiter(Some(folder.path())).await;
            let listed = listed.map_err(|e| storage_error(e, "listing", folder))?;
            listed.objects.into_iter().map(|meta| self.entry(meta)).collect()
        };
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// The names of the folders directly in a folder, sorted. A folder that is not there has none.
    pub async fn list_dirs(&self, folder: &Location) -> Result<Vec<String>> {
        let mut names: Vec<String> = if self.is_local {
            let entries = self.list_machine(folder).await?;
            entries.into_iter().filter(|entry| entry.is_dir).map(|entry| entry.name).collect()
        } else {
            let listed = self.store.list_with_delimiter(Some(folder.path())).await;
            let listed = listed.map_err(|e| storage_error(e, "listing", folder))?;
            listed.common_prefixes.iter().filter_map(|prefix| prefix.filename().map(str::to_string)).collect()
        };
        names.sort();
        Ok(names)
    }

    /// All files below a folder, at any depth, by path.
    #[cfg(test)]
    pub(crate) async fn list_all(&self, folder: &Location) -> Result<Vec<FileEntry>> {
        use futures::TryStreamExt;

        let listed: Vec<ObjectMeta> = self
            .store
            .list(Some(folder.path()))
            .try_collect()
            .await
            .map_err(|e| storage_error(e, "listing", folder))?;
        let mut files: Vec<FileEntry> = listed.into_iter().map(|meta| self.entry(meta)).collect();
        files.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(files)
    }

    /// Whether a folder is there. In object stores a folder is there when something is in it.
    pub async fn is_folder(&self, folder: &Location) -> Result<bool> {
        if self.is_local {
            return local::is_dir(folder.path()).await.map_err(|e| io_error(e, "looking at", folder));
        }
        let first = self.store.first_below(folder.path()).await;
        Ok(first.map_err(|e| storage_error(e, "listing", folder))?.is_some())
    }

    /// When a folder was last touched, epoch milliseconds; None in object stores, which have no folders.
    pub async fn folder_modified_millis(&self, folder: &Location) -> Result<Option<i64>> {
        if !self.is_local {
            return Ok(None);
        }
        local::modified(folder.path()).await.map(Some).map_err(|e| io_error(e, "looking at", folder))
    }

    /// The store and place of a complete path, as `_EXTERNAL_PATH` has it: this store, or another one opened with the
    /// same options and kept.
    pub async fn resolve(self: &Arc<Self>, absolute: &str) -> Result<(Arc<Self>, Location)> {
        let own = absolute.strip_prefix(self.root.as_ref()).filter(|rest| rest.starts_with('/'));
        if let (Some(path), false) = (own, self.root.is_empty()) {
            return Ok((Arc::clone(self), self.location(path)?));
        }
        let address = Address::parse(absolute)?;
        let root = address.root();
        if self.root.as_ref() == root {
            return Ok((Arc::clone(self), self.location(address.path())?));
        }
        let other = {
            let mut others = self.others.lock();
            match others.get(&root) {
                Some(known) => Arc::clone(known),
                None => {
                    let opened = Self::open_address(&address, &self.options)?;
                    others.insert(root, Arc::clone(&opened));
                    opened
                }
            }
        };
        let location = other.location(address.path())?;
        Ok((other, location))
    }

    /// Other stores that external paths led to so far.
    pub fn other_stores(&self) -> Vec<Arc<Self>> {
        self.others.lock().values().cloned().collect()
    }

    async fn list_machine(&self, folder: &Location) -> Result<Vec<local::LocalEntry>> {
        self.counters.count_list();
        local::list(folder.path()).await.map_err(|e| io_error(e, "listing", folder))
    }

    fn entry(&self, meta: ObjectMeta) -> FileEntry {
        FileEntry {
            name: meta.location.filename().unwrap_or_default().to_string(),
            size: meta.size,
            modified_millis: meta.last_modified.timestamp_millis(),
            e_tag: meta.e_tag,
            location: Location::from_store(Arc::clone(&self.root), meta.location),
        }
    }
}

/// Turns `FileNotFound` into None.
fn absent_as_none<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Debug for Storage {
    // options may hold keys
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("root", &self.root().to_string()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
