//! How far a planning is, for whoever waits for it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Manifests of a statement: how many are wanted, how many are there. Written while plans are made, read by others.
#[derive(Debug, Default)]
pub struct ScanProgress {
    wanted: AtomicU64,
    read: AtomicU64,
}

impl ScanProgress {
    pub(crate) fn want(&self, manifests: u64) {
        self.wanted.fetch_add(manifests, Ordering::Relaxed);
    }

    pub(crate) fn have(&self, manifests: u64) {
        self.read.fetch_add(manifests, Ordering::Relaxed);
    }

    /// Manifests wanted so far; more may be added while a statement is planned.
    pub fn manifests(&self) -> u64 {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Manifests that are there, from the cache or read.
    pub fn manifests_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}
