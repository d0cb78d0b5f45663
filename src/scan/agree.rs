//! What the metadata of a snapshot says in two places must agree: damage in one of them would else give other rows in
//! silence.
//!
//! | said here | and there | looked at |
//! |---|---|---|
//! | rows of all entries | `totalRecordCount` | where all manifests are read |
//! | a DELETE entry | the ADD entry of its file | where all manifests are read: its partner may be in another |
//! | a manifest of a list | the other manifests of base and delta | always |
//! | bytes of a file | its rows | always |
//! | the file a deletion vector is of | the live files | where all manifests are read; told, not refused |
//!
//! An entry that agrees with itself in all that one look at it shows (bucket and bucket count) is the decoder's matter,
//! the keys of a file are [`super::live`]'s.

use std::collections::HashSet;

use super::manifests::Manifest;
use crate::error::{Error, Result};
use crate::snapshot::Table;
use crate::spec::manifest::FileIdentity;
use crate::spec::{FileKind, ManifestEntry, ManifestFileMeta, Snapshot};

/// Rows that no writer gets into one byte of a data file. Runs of one value take next to nothing, but pages, row groups
/// and blocks are closed after a million rows at most, and each has a header.
const ROWS_A_BYTE: u128 = 1 << 20;

/// Refuses a manifest that is named twice: its files would be read twice. No writer does that, whatever it merges.
pub(super) fn named_once(snapshot: &Snapshot, metas: &[ManifestFileMeta], table: &Table) -> Result<()> {
    let mut names = HashSet::with_capacity(metas.len());
    let Some(twice) = metas.iter().find(|meta| !names.insert(meta.file_name.as_str())) else { return Ok(()) };
    Err(Error::corrupt(format!("the manifest lists of the snapshot name manifest '{}' twice", twice.file_name))
        .with_code("CorruptManifest")
        .with_context("table", table.name())
        .with_context("snapshot", snapshot.id)
        .with_context("file", format!("{}, {}", snapshot.base_manifest_list, snapshot.delta_manifest_list))
        .with_hint("a manifest list was damaged: restore it, or read another snapshot"))
}

/// Rows of all files added less those of all removed, which is how writers count them.
pub(super) fn net_rows(manifests: &[Manifest]) -> i128 {
    manifests.iter().flat_map(|manifest| manifest.iter()).fold(0, |rows, entry| match entry.kind {
        FileKind::Add => rows + i128::from(entry.file.row_count),
        FileKind::Delete => rows - i128::from(entry.file.row_count),
    })
}

/// What is likely to be wrong where rows and their count differ: a file that is added twice.
pub(super) fn added_twice(manifests: &[Manifest]) -> Option<&ManifestEntry> {
    let mut seen: HashSet<FileIdentity<'_>> = HashSet::new();
    let entries = manifests.iter().flat_map(|manifest| manifest.iter()).filter(|entry| entry.kind == FileKind::Add);
    entries.map(AsRef::as_ref).find(|entry| !seen.insert(entry.identity()))
}

/// The error for an entry that removes a file which no manifest of the snapshot adds: the file that is meant would be
/// read again.
pub(super) fn removes_nothing() -> Error {
    Error::corrupt(
        "an entry removes a file that no manifest of the snapshot adds: the file it means would be read again",
    )
    .with_code("CorruptManifest")
}

/// Refuses more rows than a file of its size can hold. Rows without columns are made from that count alone, and masks
/// of its length.
pub(super) fn rows_fit(entry: &ManifestEntry) -> Result<()> {
    let file = &entry.file;
    let rows = u128::try_from(file.row_count).unwrap_or_default();
    if rows <= u128::from(file.file_size).saturating_add(1).saturating_mul(ROWS_A_BYTE) {
        return Ok(());
    }
    Err(Error::corrupt(format!("a data file of {} bytes cannot hold {} rows", file.file_size, file.row_count))
        .with_code("CorruptManifest"))
}
