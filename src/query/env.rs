//! What all tables of a process share.

use std::sync::Arc;

use crate::read::ReadCaches;
use crate::scan::ScanEnv;

/// Caches and limits shared by all tables: manifests, footers. Cheap to share, never tied to a session.
#[derive(Debug, Default)]
pub struct QueryEnv {
    /// What planning shares.
    pub scan: ScanEnv,
    /// Footers of data files, index files.
    pub read: Arc<ReadCaches>,
}

impl QueryEnv {
    /// Default caches and limits.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }
}
