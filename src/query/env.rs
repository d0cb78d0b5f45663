//! What all tables of a process share.

use std::fmt;
use std::sync::Arc;

use super::nodes::Computation;
use crate::read::{FOOTER_CACHE_BYTES, INDEX_FILE_CACHE_BYTES, ReadCaches, SELECTION_CACHE_BYTES};
use crate::scan::{MANIFEST_CACHE_BYTES, ManifestCache, REQUESTS_AT_ONCE, ScanEnv};

/// What the caches may hold and how much is asked of a store at once.
#[derive(Debug, Clone)]
pub struct QueryLimits {
    /// Bytes of decoded manifests, manifest lists and index manifests; 0 keeps none, as with the three below.
    pub manifest_bytes: usize,
    /// Bytes of data file footers.
    pub footer_bytes: usize,
    /// Bytes of index files (deletion vectors).
    pub index_file_bytes: usize,
    /// Bytes of selections: which rows of a merged bucket are live, a bit a row.
    pub selection_bytes: usize,
    /// Metadata files read at the same time by one scan.
    pub requests_at_once: usize,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            manifest_bytes: MANIFEST_CACHE_BYTES,
            footer_bytes: FOOTER_CACHE_BYTES,
            index_file_bytes: INDEX_FILE_CACHE_BYTES,
            selection_bytes: SELECTION_CACHE_BYTES,
            requests_at_once: REQUESTS_AT_ONCE,
        }
    }
}

/// Caches and limits shared by all tables: manifests, footers. Cheap to share, never tied to a session.
pub struct QueryEnv {
    /// What planning shares.
    pub scan: ScanEnv,
    /// Footers of data files, index files, selections.
    pub read: Arc<ReadCaches>,
    #[cfg_attr(not(feature = "codec"), expect(dead_code, reason = "only plans that come from elsewhere ask by name"))]
    computations: &'static [&'static Computation],
}

impl QueryEnv {
    /// Default caches and limits.
    pub fn new() -> Arc<Self> {
        Self::with_limits(&QueryLimits::default())
    }

    /// Limits of one's own.
    pub fn with_limits(limits: &QueryLimits) -> Arc<Self> {
        Self::with_computations(limits, &[])
    }

    /// The same, and rows that plans which come from elsewhere may ask for.
    pub(crate) fn with_computations(limits: &QueryLimits, computations: &'static [&'static Computation]) -> Arc<Self> {
        Arc::new(Self {
            scan: ScanEnv {
                concurrency: limits.requests_at_once.max(1),
                cache: Arc::new(ManifestCache::new(limits.manifest_bytes)),
            },
            read: Arc::new(ReadCaches::new(limits.footer_bytes, limits.index_file_bytes, limits.selection_bytes)),
            computations,
        })
    }

    /// The computation of that name.
    #[cfg(feature = "codec")]
    pub(super) fn computation(&self, name: &str) -> Option<&'static Computation> {
        self.computations.iter().find(|known| known.name == name).copied()
    }
}

impl fmt::Debug for QueryEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryEnv").field("scan", &self.scan).field("read", &self.read).finish_non_exhaustive()
    }
}
