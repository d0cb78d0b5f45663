//! One store: reads, listings, external paths.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::ObjectStore;

use super::counting::RequestCounts;
use super::location::Location;
use crate::error::{Error, Result};

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

/// One object store, with its own counters and its own name in DataFusion's registry. All requests of Lakepin to it,
/// those of DataFusion's Parquet source included, go through [`Storage::object_store`].
pub struct Storage {
    store: Arc<dyn ObjectStore>,
    url: ObjectStoreUrl,
}

impl Storage {
    /// Opens what `url` names: a local path (relative too), `file://`, `s3://bucket/path` or, for tests,
    /// `memory://name/path`. Returns the store and the place in it. Nothing is read yet.
    pub async fn open(url: &str, options: &BTreeMap<String, String>) -> Result<(Arc<Self>, Location)> {
        let _ = (url, options);
        Err(Error::internal("not built yet"))
    }

    /// A store made by the caller. `root` is what its locations show before the path, for instance `memory://test`.
    pub fn from_object_store(store: Arc<dyn ObjectStore>, root: &str) -> Result<Arc<Self>> {
        let _ = (store, root);
        Err(Error::internal("not built yet"))
    }

    /// The store itself, counted and retrying.
    pub fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// The name of this store in DataFusion's registry; no other store of the process has it.
    pub fn store_url(&self) -> ObjectStoreUrl {
        self.url.clone()
    }

    /// The root of the store.
    pub fn root(&self) -> Location {
        Location::from_store("".into(), Default::default())
    }

    /// A place in this store by its literal path.
    pub fn location(&self, path: &str) -> Result<Location> {
        let _ = path;
        Err(Error::internal("not built yet"))
    }

    /// What was asked of the store so far.
    pub fn counts(&self) -> RequestCounts {
        RequestCounts::default()
    }

    /// A whole file. Error `FileNotFound` when it is not there.
    pub async fn read(&self, location: &Location) -> Result<Bytes> {
        let _ = location;
        Err(Error::internal("not built yet"))
    }

    /// A whole file, or None when it is not there.
    pub async fn read_opt(&self, location: &Location) -> Result<Option<Bytes>> {
        let _ = location;
        Err(Error::internal("not built yet"))
    }

    /// Some bytes of a file. Fewer bytes than asked for are an error.
    pub async fn read_range(&self, location: &Location, range: Range<u64>) -> Result<Bytes> {
        let _ = (location, range);
        Err(Error::internal("not built yet"))
    }

    /// Whether a file is there.
    pub async fn exists(&self, location: &Location) -> Result<bool> {
        let _ = location;
        Err(Error::internal("not built yet"))
    }

    /// Size and age of a file. Error `FileNotFound` when it is not there.
    pub async fn head(&self, location: &Location) -> Result<FileEntry> {
        let _ = location;
        Err(Error::internal("not built yet"))
    }

    /// The files directly in a folder, by name. A folder that is not there has none.
    pub async fn list(&self, folder: &Location) -> Result<Vec<FileEntry>> {
        let _ = folder;
        Err(Error::internal("not built yet"))
    }

    /// The names of the folders directly in a folder, sorted. A folder that is not there has none.
    pub async fn list_dirs(&self, folder: &Location) -> Result<Vec<String>> {
        let _ = folder;
        Err(Error::internal("not built yet"))
    }

    /// The store and place of a complete path, as `_EXTERNAL_PATH` has it: this store, or another one opened with the
    /// same options and kept.
    pub async fn resolve(self: &Arc<Self>, absolute: &str) -> Result<(Arc<Self>, Location)> {
        let _ = absolute;
        Err(Error::internal("not built yet"))
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage").field("store", &self.store).field("url", &self.url.as_str()).finish()
    }
}
