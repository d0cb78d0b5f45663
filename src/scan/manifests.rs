//! Manifest lists and manifests of a pin: read side by side, decoded once for all statements, folded by identity.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;

use super::agree::{removes_nothing, rows_fit};
use super::lists::{Origins, check_rows, manifests, totals};
use super::plan::ScanEnv;
use super::progress::ScanProgress;
use crate::error::{Error, Result};
use crate::snapshot::{Pin, Table};
use crate::spec::index_manifest::decode_index_manifest;
use crate::spec::manifest::{self, ManifestList, check_size, decode_manifest, decode_whole_list};
use crate::spec::{FileKind, IndexFileMeta, ManifestEntry, ManifestFileMeta, SimpleStats};
use crate::storage::Location;
use crate::storage::cache::ByteLimitedCache;

/// A manifest, decoded.
pub(crate) type Manifest = Arc<[Arc<ManifestEntry>]>;

/// Bytes of decoded manifests kept by default: about a million files.
pub const MANIFEST_CACHE_BYTES: usize = 512 << 20;

/// Decoded manifests by file. Manifest files never change, so an entry is good for every snapshot that names it.
#[derive(Debug)]
pub struct ManifestCache {
    manifests: ByteLimitedCache<(Location, u64), Manifest>,
    lists: ByteLimitedCache<Location, Arc<ManifestList>>,
    index_manifests: ByteLimitedCache<Location, Arc<[Arc<IndexFileMeta>]>>,
}

impl ManifestCache {
    /// Keeps at most so many bytes of decoded manifests, an eighth of it for lists and as much for index manifests; 0
    /// keeps none.
    pub fn new(limit_bytes: usize) -> Self {
        let eighth = limit_bytes / 8;
        Self {
            manifests: ByteLimitedCache::new(limit_bytes - 2 * eighth),
            lists: ByteLimitedCache::new(eighth),
            index_manifests: ByteLimitedCache::new(eighth),
        }
    }

    /// A manifest list by name. `told` is its size as the snapshot has it.
    pub(crate) async fn list(
        &self,
        pin: &Pin,
        table: &Table,
        name: &str,
        told: Option<u64>,
    ) -> Result<Arc<ManifestList>> {
        let location = table.manifest_location(name)?;
        self.lists
            .get_or_load(&location, || async {
                let bytes = read_whole(pin, table, &location).await?;
                check_size(told, bytes.len()).map_err(|error| error.with_context("file", &location))?;
                let shown = location.to_string();
                let list = run_blocking(move || decode_whole_list(&bytes, &shown)).await?;
                for meta in &list.manifests {
                    table
                        .manifest_location(&meta.file_name)
                        .map_err(|error| error.with_context("file", &location).with_context("table", table.name()))?;
                }
                let size = list
                    .manifests
                    .iter()
                    .map(|meta| size_of_val(meta) + meta.file_name.len() + stats_bytes(&meta.partition_stats))
                    .sum();
                Ok((Arc::new(list), size))
            })
            .await
    }

    /// An index manifest by name.
    pub(crate) async fn index_manifest(
        &self,
        pin: &Pin,
        table: &Table,
        name: &str,
    ) -> Result<Arc<[Arc<IndexFileMeta>]>> {
        let location = table.manifest_location(name)?;
        self.index_manifests
            .get_or_load(&location, || async {
                let bytes = read_whole(pin, table, &location).await?;
                let shown = location.to_string();
                let files = run_blocking(move || decode_index_manifest(&bytes, &shown)).await?;
                for file in &files {
                    file.check_vectors().map_err(|error| error.with_context("file", &location))?;
                }
                let range = |file: &IndexFileMeta| {
                    file.deletion_vectors
                        .iter()
                        .flatten()
                        .map(|range| size_of_val(range) + range.data_file_name.len())
                        .sum::<usize>()
                };
                let size = files.iter().map(|file| size_of_val(file) + file.file_name.len() + range(file)).sum();
                Ok((files.into_iter().map(Arc::new).collect(), size))
            })
            .await
    }

    /// What it holds and did.
    pub fn stats(&self) -> crate::storage::cache::CacheStats {
        self.manifests.stats()
    }
}

impl Default for ManifestCache {
    fn default() -> Self {
        Self::new(MANIFEST_CACHE_BYTES)
    }
}

/// A metadata file of a pin; if it is gone, the pin has expired or the table is damaged.
async fn read_whole(pin: &Pin, table: &Table, location: &Location) -> Result<Bytes> {
    match table.storage().read_opt(location).await? {
        Some(bytes) => Ok(bytes),
        None => Err(pin.missing_file(location).await),
    }
}

/// The live files of the pinned snapshot: all of them, whatever a read would see of them.
///
/// # Errors
/// A list or manifest that is gone or damaged, files that add up to more rows or bytes than can be said.
pub async fn live_files(pin: &Arc<Pin>, env: &ScanEnv) -> Result<Vec<Arc<ManifestEntry>>> {
    let (origins, manifests) = all_manifests(pin, env).await?;
    check_rows(pin, &manifests)?;
    let live = fold_all(&manifests, &origins, &pin.table)?;
    totals(&live, pin)?;
    for entry in &live {
        rows_fit(entry).map_err(|error| origins.blame(error, entry, &pin.table))?;
    }
    Ok(live)
}

/// All manifests of the pinned snapshot, with their names.
async fn all_manifests(pin: &Arc<Pin>, env: &ScanEnv) -> Result<(Origins, Vec<Manifest>)> {
    let metas = manifests(pin, env).await?;
    let names = metas.iter().map(|meta| meta.file_name.clone()).collect();
    let read = read_manifests(pin, &pin.table, metas, &env.cache, env.concurrency, &ScanProgress::default()).await?;
    let mut origins = Origins::default();
    origins.add(names, &read.manifests);
    Ok((origins, read.manifests))
}

/// The entries that one manifest list of the pinned snapshot leads to, as they are written, in order; `told` is the size
/// of the list as the snapshot has it.
///
/// # Errors
/// A list or manifest that is gone or damaged.
pub async fn entries_of_list(
    pin: &Arc<Pin>,
    list: &str,
    told: Option<u64>,
    env: &ScanEnv,
) -> Result<Vec<Arc<ManifestEntry>>> {
    let metas = manifests_of_list(pin, list, told, env).await?;
    let read = read_manifests(pin, &pin.table, metas, &env.cache, env.concurrency, &ScanProgress::default()).await?;
    Ok(read.manifests.iter().flat_map(|manifest| manifest.iter().map(Arc::clone)).collect())
}

/// The manifests that one manifest list of the pinned snapshot names, in order.
///
/// # Errors
/// A list that is gone or damaged.
pub async fn manifests_of_list(
    pin: &Arc<Pin>,
    list: &str,
    told: Option<u64>,
    env: &ScanEnv,
) -> Result<Vec<ManifestFileMeta>> {
    Ok(env.cache.list(pin, &pin.table, list, told).await?.manifests.clone())
}

/// An error about what an entry of the pinned snapshot says: names the manifest that says it.
///
/// Cost: the manifests, which are in the cache of who read the entry from them.
pub async fn blame_manifest(error: Error, entry: &Arc<ManifestEntry>, pin: &Arc<Pin>, env: &ScanEnv) -> Error {
    match all_manifests(pin, env).await {
        Ok((origins, _)) => origins.blame(error, entry, &pin.table),
        Err(_) => Origins::default().blame(error, entry, &pin.table),
    }
}

/// The index files of the pinned snapshot.
///
/// # Errors
/// An index manifest that is gone or damaged.
pub async fn index_files(pin: &Pin, env: &ScanEnv) -> Result<Arc<[Arc<IndexFileMeta>]>> {
    match pin.snapshot.as_ref().and_then(|snapshot| snapshot.index_manifest.as_deref()) {
        Some(name) => env.cache.index_manifest(pin, &pin.table, name).await,
        None => Ok(Arc::from(Vec::new())),
    }
}

/// Manifests as read: entries, and how many manifests came from the cache.
pub(crate) struct ManifestsRead {
    /// In the order asked for.
    pub(crate) manifests: Vec<Manifest>,
    /// How many needed no reading.
    pub(crate) cached: u64,
}

/// Reads manifests, at most `concurrency` at a time.
pub(crate) async fn read_manifests(
    pin: &Arc<Pin>,
    table: &Arc<Table>,
    metas: Vec<ManifestFileMeta>,
    cache: &Arc<ManifestCache>,
    concurrency: usize,
    progress: &ScanProgress,
) -> Result<ManifestsRead> {
    progress.want(metas.len() as u64);
    let mut cached = 0u64;
    let mut manifests: Vec<Option<Manifest>> = Vec::with_capacity(metas.len());
    let mut missing = Vec::new();
    for (index, meta) in metas.into_iter().enumerate() {
        let key = (table.manifest_location(&meta.file_name)?, meta.file_size);
        let known = cache.manifests.get(&key);
        cached += u64::from(known.is_some());
        if known.is_none() {
            missing.push((index, key, meta));
        }
        manifests.push(known);
    }
    progress.have(cached);
    let mut reads = stream::iter(missing.into_iter().map(|(index, key, meta)| {
        let (pin, table, cache) = (Arc::clone(pin), Arc::clone(table), Arc::clone(cache));
        async move {
            let manifest = cache.manifests.get_or_load(&key, || load(&pin, &table, &key.0, &meta)).await?;
            Ok::<_, Error>((index, manifest))
        }
    }))
    .buffer_unordered(concurrency.max(1));
    while let Some(read) = reads.next().await {
        let (index, manifest) = read?;
        progress.have(1);
        if let Some(slot) = manifests.get_mut(index) {
            *slot = Some(manifest);
        }
    }
    let manifests = manifests.into_iter().collect::<Option<Vec<_>>>();
    let manifests = manifests.ok_or_else(|| Error::internal("a manifest was asked for and not read"))?;
    Ok(ManifestsRead { manifests, cached })
}

async fn load(pin: &Pin, table: &Table, location: &Location, meta: &ManifestFileMeta) -> Result<(Manifest, usize)> {
    let bytes = read_whole(pin, table, location).await?;
    let named = |error: Error| error.with_context("file", location);
    check_size(Some(meta.file_size), bytes.len()).map_err(named)?;
    // decoding is pure work: keep it off the threads that wait for storage
    let shown = location.to_string();
    let entries = run_blocking(move || decode_manifest(&bytes, &shown)).await?;
    meta.check_entries(&entries).map_err(named)?;
    let size = entries.iter().map(entry_bytes).sum();
    Ok((entries.into_iter().map(Arc::new).collect(), size))
}

/// The manifest of the pinned snapshot that holds an entry. Costs as [`blame_manifest`] does.
pub async fn manifest_of(entry: &Arc<ManifestEntry>, pin: &Arc<Pin>, env: &ScanEnv) -> Option<Location> {
    all_manifests(pin, env).await.ok()?.0.manifest_of(entry, &pin.table)
}

/// Runs pure work on a thread for it, so that manifests decode on every core.
pub(crate) async fn run_blocking<T, F>(work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::internal("reading metadata was interrupted").with_source(error)),
    }
}

fn stats_bytes(stats: &SimpleStats) -> usize {
    stats.min_values.0.len() + stats.max_values.0.len() + stats.null_counts.len() * size_of::<Option<i64>>()
}

/// About how much memory an entry takes.
fn entry_bytes(entry: &ManifestEntry) -> usize {
    let file = &entry.file;
    let texts = |list: &Option<Vec<String>>| list.iter().flatten().map(|text| text.len() + 24).sum::<usize>();
    size_of::<ManifestEntry>()
        + 16
        + entry.partition.0.len()
        + file.file_name.len()
        + file.min_key.0.len()
        + file.max_key.0.len()
        + stats_bytes(&file.key_stats)
        + stats_bytes(&file.value_stats)
        + file.extra_files.iter().map(|name| name.len() + 24).sum::<usize>()
        + file.embedded_index.as_ref().map_or(0, |index| index.len())
        + texts(&file.value_stats_cols)
        + texts(&file.write_cols)
        + file.external_path.as_ref().map_or(0, String::len)
}

/// The live files of some manifests.
pub(crate) fn fold(manifests: &[Manifest]) -> Vec<Arc<ManifestEntry>> {
    manifest::live(manifests.iter().flat_map(|manifest| manifest.iter())).into_iter().map(Arc::clone).collect()
}

/// The live files of all manifests of a snapshot.
///
/// # Errors
/// `CorruptManifest`: an entry removes a file that none of them adds.
pub(crate) fn fold_all(manifests: &[Manifest], origins: &Origins, table: &Table) -> Result<Vec<Arc<ManifestEntry>>> {
    let folded = manifest::fold(manifests.iter().flat_map(|manifest| manifest.iter()));
    match folded.unmatched {
        Some(entry) => Err(origins.blame(removes_nothing(), entry, table)),
        None => Ok(folded.live.into_iter().map(Arc::clone).collect()),
    }
}

/// The entries that add a file.
pub(crate) fn added(manifests: &[Manifest]) -> impl Iterator<Item = &Arc<ManifestEntry>> {
    manifests.iter().flat_map(|manifest| manifest.iter()).filter(|entry| entry.kind == FileKind::Add)
}
