//! What tells a snapshot from another one of the same number.

use std::fmt;

use crate::spec::{CommitKind, SchemaId, Snapshot, SnapshotId};
use crate::storage::Location;

/// What tells a snapshot from another one of the same number: numbers are used again after a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SnapshotFingerprint {
    /// Number.
    pub id: SnapshotId,
    /// Identity, newest writers only.
    pub uuid: Option<String>,
    /// Who committed.
    pub commit_user: String,
    /// Which change.
    pub commit_identifier: i64,
    /// What the commit did.
    pub commit_kind: CommitKind,
    /// Commit time, epoch milliseconds.
    pub time_millis: i64,
    /// Name of the base manifest list.
    pub base_manifest_list: String,
    /// Name of the delta manifest list.
    pub delta_manifest_list: String,
    /// Schema in force.
    pub schema_id: SchemaId,
}

impl From<&Snapshot> for SnapshotFingerprint {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            id: snapshot.id,
            uuid: snapshot.uuid.clone(),
            commit_user: snapshot.commit_user.clone(),
            commit_identifier: snapshot.commit_identifier,
            commit_kind: snapshot.commit_kind,
            time_millis: snapshot.time_millis,
            base_manifest_list: snapshot.base_manifest_list.clone(),
            delta_manifest_list: snapshot.delta_manifest_list.clone(),
            schema_id: snapshot.schema_id,
        }
    }
}

impl SnapshotFingerprint {
    /// Whether a snapshot read now is the one that was meant.
    pub fn is_of(&self, snapshot: &Snapshot) -> bool {
        *self == Self::from(snapshot)
    }
}

/// A pinned state: table, branch and, unless the table was empty, the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The table's folder.
    pub location: Location,
    /// Branch.
    pub branch: String,
    /// The snapshot; None for a table without snapshots.
    pub snapshot: Option<SnapshotFingerprint>,
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} branch {}", self.location, self.branch)?;
        match &self.snapshot {
            None => f.write_str(" without snapshot"),
            Some(snapshot) => {
                write!(
                    f,
                    " snapshot {} {} of {} {} at {} ms, lists {} {}, schema {}",
                    snapshot.id,
                    snapshot.commit_kind.as_str(),
                    snapshot.commit_user,
                    snapshot.commit_identifier,
                    snapshot.time_millis,
                    snapshot.base_manifest_list,
                    snapshot.delta_manifest_list,
                    snapshot.schema_id
                )?;
                match &snapshot.uuid {
                    Some(uuid) => write!(f, ", uuid {uuid}"),
                    None => Ok(()),
                }
            }
        }
    }
}
