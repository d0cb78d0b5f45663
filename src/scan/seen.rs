//! Live files by the branch they are read from, and which of them a batch read does not see.

use std::collections::HashSet;
use std::sync::Arc;

use super::manifests::live_files;
use super::partitions::{PartitionId, Partitions};
use super::plan::ScanEnv;
use super::sections::MergeFacts;
use crate::error::{Error, Result};
use crate::notice::HiddenRows;
use crate::snapshot::Pin;
use crate::spec::{ManifestEntry, TableSchema};

/// Live files of one branch.
#[derive(Debug, Clone)]
pub struct BranchFiles {
    /// The pin that was asked for, or that of the branch that completes it.
    pub pin: Arc<Pin>,
    /// The files in the partitions that are read from it.
    pub files: Vec<Arc<ManifestEntry>>,
}

/// Which pin's partitions are read first, and which gives the partitions that one lacks.
pub(crate) fn branches(pin: &Arc<Pin>) -> (&Arc<Pin>, Option<&Arc<Pin>>) {
    match (&pin.primary, &pin.fallback) {
        (Some(primary), _) => (primary, Some(pin)),
        (None, Some(fallback)) => (pin, Some(fallback)),
        (None, None) => (pin, None),
    }
}

/// The live files of a pin, whatever a read would see of them, and of the branch that completes it those in the
/// partitions it gives.
///
/// # Errors
/// As [`live_files`], for each of the two.
pub async fn files_of_branches(pin: &Arc<Pin>, env: &ScanEnv) -> Result<Vec<BranchFiles>> {
    let (first, second) = branches(pin);
    let live = async |pin: &Arc<Pin>| {
        let files = live_files(pin, env).await.map_err(|error| pin.named(error))?;
        Ok::<_, Error>(BranchFiles { pin: Arc::clone(pin), files })
    };
    let mut all = vec![live(first).await?];
    let Some(second) = second else { return Ok(all) };
    let mut partitions = Partitions::try_new(&pin.schema, None)?;
    let mut present: HashSet<PartitionId> = HashSet::new();
    for entry in all.iter().flat_map(|branch| &branch.files) {
        present.insert(partitions.intern(&entry.partition)?);
    }
    let mut other = live(second).await?;
    let mut given = Vec::with_capacity(other.files.len());
    for entry in other.files {
        if !present.contains(&partitions.intern(&entry.partition)?) {
            given.push(entry);
        }
    }
    other.files = given;
    all.push(other);
    Ok(all)
}

/// Why a batch read of `pin` does not see a live file, if it does not. `schema` is the one the file was written with.
pub fn why_unseen(pin: &Pin, entry: &ManifestEntry, schema: &TableSchema) -> Option<HiddenRows> {
    if !pin.schema.is_primary_key_table() {
        return None;
    }
    if entry.bucket.0 < 0 {
        return Some(HiddenRows::PostponeBucket);
    }
    if entry.file.level == 0 { MergeFacts::new(&pin.options, false).hides_level_0(schema) } else { None }
}
