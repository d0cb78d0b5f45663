//! Tags, consumers: documents beside snapshots.

use std::time::Duration;

use chrono::NaiveDateTime;

use super::snapshot::{Snapshot, SnapshotId};
use crate::error::{Error, Result};

/// A tag file: a snapshot kept under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Tag {
    /// The snapshot, complete: `snapshot/` may have lost it.
    pub snapshot: Snapshot,
    /// When the tag was made, as the wall clock of the one who made it.
    pub create_time: Option<NaiveDateTime>,
    /// How long it is to be kept.
    pub time_retained: Option<Duration>,
}

/// A consumer file: where a reader goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consumer {
    /// The next snapshot it will read.
    pub next_snapshot: SnapshotId,
}

impl Tag {
    /// Reads a tag file.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let _ = bytes;
        Err(Error::internal("not built yet"))
    }

    /// The retention as Java writes a duration, `PT24H`.
    pub fn time_retained_text(&self) -> Option<String> {
        None
    }
}

impl Consumer {
    /// Reads a consumer file.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let _ = bytes;
        Err(Error::internal("not built yet"))
    }
}
