//! One committed state of a table: `snapshot/snapshot-N` (also the body of tags and long-lived changelogs).

use std::collections::BTreeMap;
use std::fmt;

use super::schema::SchemaId;
use crate::error::{Error, Result};

/// Number of a snapshot, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub i64);

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a commit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommitKind {
    /// Adds files.
    Append,
    /// Replaces files by equivalent ones.
    Compact,
    /// Deletes and adds.
    Overwrite,
    /// Changes statistics only.
    Analyze,
}

impl CommitKind {
    /// As written in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Append => "APPEND",
            Self::Compact => "COMPACT",
            Self::Overwrite => "OVERWRITE",
            Self::Analyze => "ANALYZE",
        }
    }
}

/// A snapshot file. Sizes are bytes, times epoch milliseconds, counts physical rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Format version; 1 when the file has none.
    pub version: i32,
    /// Identity, newest writers only.
    pub uuid: Option<String>,
    /// Number.
    pub id: SnapshotId,
    /// Schema in force at commit time.
    pub schema_id: SchemaId,
    /// Name of the list of everything before this snapshot.
    pub base_manifest_list: String,
    /// Size of it.
    pub base_manifest_list_size: Option<u64>,
    /// Name of the list of this snapshot's changes.
    pub delta_manifest_list: String,
    /// Size of it.
    pub delta_manifest_list_size: Option<u64>,
    /// Name of the list of changelog files made here.
    pub changelog_manifest_list: Option<String>,
    /// Size of it.
    pub changelog_manifest_list_size: Option<u64>,
    /// Name of the complete list of index files.
    pub index_manifest: Option<String>,
    /// Who committed.
    pub commit_user: String,
    /// Release of the writer.
    pub writer_version: Option<String>,
    /// Which change; `i64::MAX` for batch writers.
    pub commit_identifier: i64,
    /// What the commit did.
    pub commit_kind: CommitKind,
    /// Commit time.
    pub time_millis: i64,
    /// Physical rows of all live files.
    pub total_record_count: Option<i64>,
    /// Change of the above by this snapshot.
    pub delta_record_count: Option<i64>,
    /// Rows in changelog files made here.
    pub changelog_record_count: Option<i64>,
    /// Watermark; `i64::MIN` in the file is None here.
    pub watermark: Option<i64>,
    /// File in `statistics/`.
    pub statistics: Option<String>,
    /// Properties.
    pub properties: BTreeMap<String, String>,
    /// Row tracking: the next row id.
    pub next_row_id: Option<i64>,
    /// `WRITE`, `DELETE`, … as written by newest writers.
    pub operation: Option<String>,
}

impl Snapshot {
    /// Reads a snapshot file.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let _ = bytes;
        Err(Error::internal("not built yet"))
    }

    /// The snapshot as a snapshot file.
    pub fn to_json(&self) -> String {
        String::new()
    }
}
