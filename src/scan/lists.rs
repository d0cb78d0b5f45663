//! The manifest lists of a read, and whether they are whole.
//!
//! A list cut between two of its blocks looks whole, and the manifests behind would be missing from every answer.
//!
//! | the snapshot tells | a cut list is noticed by |
//! |---|---|
//! | the bytes of its lists (1.1 and newer) | its length |
//! | its rows only | the rows of all manifests together; a filter leaves manifests out, so all are read where the list could have been longer |
//!
//! Where all manifests are read anyway their rows are compared in either case: an entry may be damaged.

use std::sync::Arc;

use super::agree::{added_twice, named_once, net_rows};
use super::incremental::ChangeList;
use super::manifests::Manifest;
use super::plan::ScanEnv;
use crate::error::{Error, Result};
use crate::snapshot::{Pin, Table};
use crate::spec::manifest::ManifestList;
use crate::spec::{ManifestEntry, ManifestFileMeta, Snapshot};
use crate::storage::Location;

/// The manifests that lists name.
pub(crate) struct Named {
    pub(crate) metas: Vec<ManifestFileMeta>,
    /// Whether only all of them together tell that none is missing.
    pub(crate) all_needed: bool,
}

/// What a snapshot tells of one of its lists.
struct Told {
    bytes: Option<u64>,
    rows: Option<i64>,
}

impl Told {
    /// Whether the list may have lost manifests that nothing read of it so far would show.
    fn leaves_open(&self, list: &ManifestList) -> bool {
        let known_to_be_empty = list.manifests.is_empty() && self.rows == Some(0);
        list.may_be_cut && self.bytes.is_none() && !known_to_be_empty
    }
}

/// The manifests of the pinned snapshot: base, then delta.
pub(crate) async fn named(pin: &Pin, env: &ScanEnv) -> Result<Named> {
    let Some(snapshot) = &pin.snapshot else { return Ok(Named { metas: Vec::new(), all_needed: false }) };
    let (base, delta) = futures::try_join!(
        env.cache.list(pin, &pin.table, &snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        env.cache.list(pin, &pin.table, &snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
    )?;
    let (total, changed) = (snapshot.total_record_count, snapshot.delta_record_count);
    let before = total.zip(changed).and_then(|(total, changed)| total.checked_sub(changed));
    let told = [
        (&base, Told { bytes: snapshot.base_manifest_list_size, rows: before }),
        (&delta, Told { bytes: snapshot.delta_manifest_list_size, rows: changed }),
    ];
    // without a count of rows, all manifests would tell no more than some
    let all_needed = total.is_some() && told.iter().any(|(list, told)| told.leaves_open(list));
    let metas: Vec<ManifestFileMeta> = base.manifests.iter().chain(&delta.manifests).cloned().collect();
    named_once(snapshot, &metas, &pin.table)?;
    Ok(Named { metas, all_needed })
}

/// The manifests of a list of changes.
pub(crate) async fn named_by(change: &ChangeList, pin: &Pin, table: &Table, env: &ScanEnv) -> Result<Named> {
    let list = env.cache.list(pin, table, &change.list, change.bytes).await?;
    let told = Told { bytes: change.bytes, rows: change.rows };
    let all_needed = change.rows.is_some() && told.leaves_open(&list);
    Ok(Named { metas: list.manifests.clone(), all_needed })
}

/// The manifests of the pinned snapshot: base, then delta.
///
/// # Errors
/// A list that is gone or damaged.
pub async fn manifests(pin: &Pin, env: &ScanEnv) -> Result<Vec<ManifestFileMeta>> {
    Ok(named(pin, env).await?.metas)
}

/// Whether all manifests of a pin name as many rows as its snapshot counts.
pub(crate) fn check_rows(pin: &Pin, manifests: &[Manifest]) -> Result<()> {
    let Some(snapshot) = &pin.snapshot else { return Ok(()) };
    let Some(told) = snapshot.total_record_count else { return Ok(()) };
    let lists = format!("{}, {}", snapshot.base_manifest_list, snapshot.delta_manifest_list);
    compare(told, manifests, snapshot, lists, &pin.table)
}

/// Whether all manifests of a list of changes name as many rows as its snapshot counts.
pub(crate) fn check_changes(change: &ChangeList, manifests: &[Manifest], table: &Table) -> Result<()> {
    let Some(told) = change.rows else { return Ok(()) };
    compare(told, manifests, &change.snapshot, change.list.clone(), table)
}

/// The rows of some files of a table, and their bytes.
///
/// # Errors
/// They add up to more than the format can say: a manifest is damaged. What is summed over these files later, or over
/// some of them, is a number that there is.
pub(crate) fn totals<'a>(entries: impl IntoIterator<Item = &'a Arc<ManifestEntry>>, pin: &Pin) -> Result<(u64, u64)> {
    // every file is one of a list in memory: a hundred and twenty-eight bits suffice
    let (mut rows, mut bytes) = (0i128, 0i128);
    let mut last = None;
    for entry in entries {
        rows += i128::from(entry.file.row_count.max(0));
        bytes += i128::from(entry.file.file_size);
        last = Some(entry);
        if rows.max(bytes) > i128::from(i64::MAX) {
            break;
        }
    }
    match (i64::try_from(rows), i64::try_from(bytes)) {
        (Ok(rows), Ok(bytes)) => Ok((rows.unsigned_abs(), bytes.unsigned_abs())),
        _ => {
            let error = Error::corrupt(format!(
                "the files of the snapshot have more than {} {}: a manifest gives a file more than it can have",
                i64::MAX,
                if rows > i128::from(i64::MAX) { "rows" } else { "bytes" }
            ))
            .with_code("CorruptManifest")
            .with_context("entry", last.map_or("", |entry| entry.file.file_name.as_str()))
            .with_context("table", pin.table.name());
            let error = match pin.snapshot_id() {
                Some(id) => error.with_context("snapshot", id),
                None => error,
            };
            Err(error.or_restore())
        }
    }
}

fn compare(told: i64, manifests: &[Manifest], snapshot: &Snapshot, lists: String, table: &Table) -> Result<()> {
    let found = net_rows(manifests);
    if found == i128::from(told) {
        return Ok(());
    }
    let error = Error::corrupt(format!("the manifests name files of {found} rows where the snapshot counts {told}"))
        .with_code("ManifestIncomplete")
        .with_context("table", table.name())
        .with_context("snapshot", snapshot.id)
        .with_context("file", lists);
    Err(match added_twice(manifests) {
        Some(entry) => error
            .with_context("added twice", &entry.file.file_name)
            .with_hint("a manifest that adds the file was damaged or replaced: restore it, or read another snapshot"),
        None => error.with_hint(
            "a manifest list is cut, or it, a manifest or the snapshot file was replaced: restore it, or read another \
             snapshot",
        ),
    })
}

/// The manifests read for a plan, to name the one an entry is in.
#[derive(Default)]
pub(crate) struct Origins(Vec<(String, Manifest)>);

impl Origins {
    pub(crate) fn add(&mut self, names: Vec<String>, manifests: &[Manifest]) {
        self.0.extend(names.into_iter().zip(manifests.iter().map(Arc::clone)));
    }

    /// The manifest that holds an entry.
    pub(crate) fn manifest_of(&self, entry: &Arc<ManifestEntry>, table: &Table) -> Option<Location> {
        let holds = |manifest: &Manifest| manifest.iter().any(|known| Arc::ptr_eq(known, entry));
        let (name, _) = self.0.iter().find(|(_, manifest)| holds(manifest))?;
        table.manifest_location(name).ok()
    }

    /// An error about what an entry says: the damaged file is its manifest, not the data file it tells of.
    pub(crate) fn blame(&self, error: Error, entry: &Arc<ManifestEntry>, table: &Table) -> Error {
        let error = match self.manifest_of(entry, table) {
            Some(location) => error.with_context("file", location),
            None => error,
        };
        error.with_context("entry", &entry.file.file_name).with_context("table", table.name()).or_restore()
    }
}
