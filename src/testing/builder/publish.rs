//! Making a prepared snapshot visible, and reading back what is.

use std::fs;
use std::path::Path;

use super::commit::Prepared;
use super::io;
use crate::error::{Error, Result};
use crate::spec::manifest::{decode_manifest, decode_manifest_list, live};
use crate::spec::{ManifestEntry, Snapshot};

impl Prepared {
    /// The snapshot to be.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Makes the snapshot visible: written aside, then linked to its name, which fails if the name is taken.
    ///
    /// # Errors
    /// Somebody published this id first, or the disk.
    pub fn publish(self) -> Result<Snapshot> {
        let dir = self.root.join("snapshot");
        let file = dir.join(format!("snapshot-{}", self.snapshot.id));
        let aside = dir.join(format!(".snapshot-{}.{}", self.snapshot.id, std::process::id()));
        fs::write(&aside, self.snapshot.to_json()).map_err(io(&aside))?;
        let linked = fs::hard_link(&aside, &file);
        fs::remove_file(&aside).map_err(io(&aside))?;
        linked.map_err(|e| {
            Error::new(crate::error::ErrorKind::Conflict, "this snapshot is published already")
                .with_context("file", file.display())
                .with_source(e)
        })?;
        let hint = dir.join("LATEST");
        fs::write(&hint, self.snapshot.id.to_string()).map_err(io(&hint))?;
        Ok(self.snapshot)
    }
}

/// The newest snapshot, by listing.
pub fn read_snapshot(root: &Path) -> Result<Option<Snapshot>> {
    let dir = root.join("snapshot");
    let newest = fs::read_dir(&dir)
        .map_err(io(&dir))?
        .flatten()
        .filter_map(|e| e.file_name().to_string_lossy().strip_prefix("snapshot-").and_then(|n| n.parse::<i64>().ok()))
        .max();
    let Some(newest) = newest else { return Ok(None) };
    let file = dir.join(format!("snapshot-{newest}"));
    Ok(Some(Snapshot::from_json(&fs::read(&file).map_err(io(&file))?)?))
}

/// Live files of a snapshot.
pub fn live_entries(root: &Path, snapshot: &Snapshot) -> Result<Vec<ManifestEntry>> {
    let read = |name: &str| -> Result<Vec<u8>> {
        let path = root.join("manifest").join(name);
        fs::read(&path).map_err(io(&path))
    };
    let mut entries = Vec::new();
    for list in [&snapshot.base_manifest_list, &snapshot.delta_manifest_list] {
        for meta in decode_manifest_list(&read(list)?, list)? {
            entries.extend(decode_manifest(&read(&meta.file_name)?, &meta.file_name)?);
        }
    }
    Ok(live(entries.iter()).into_iter().cloned().collect())
}

impl super::TableBuilder {
    /// Live files of the newest snapshot.
    ///
    /// # Errors
    /// Metadata that cannot be read.
    pub fn live_files(&self) -> Result<Vec<ManifestEntry>> {
        match read_snapshot(&self.root)? {
            Some(snapshot) => live_entries(&self.root, &snapshot),
            None => Ok(Vec::new()),
        }
    }
}
