//! Reads of what changed between snapshots.
//!
//! Changes are those of the snapshots after the first, up to and with the last. Delta: the files that APPEND snapshots
//! added. Changelog: the changelog files of all snapshots but OVERWRITE. Both are read unmerged and nothing is hidden by
//! level.

use std::sync::Arc;

use super::plan::ScanKind;
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::{Pin, Table};
use crate::spec::{CommitKind, Snapshot, SnapshotId};

/// A manifest list of changes and the snapshot it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct ChangeList {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) list: String,
    /// Its bytes, where the snapshot says so.
    pub(crate) bytes: Option<u64>,
    /// Rows of the files it adds less those of the files it removes, where the snapshot says so.
    pub(crate) rows: Option<i64>,
}

/// The lists of a range, oldest first.
pub(crate) async fn change_lists(pin: &Pin, kind: ScanKind) -> Result<Option<Vec<ChangeList>>> {
    let (range, changelog) = match kind {
        ScanKind::Delta(range) => (range, false),
        ScanKind::Changelog(range) => (range, true),
        _ => return Ok(None),
    };
    let table = &pin.table;
    let mut lists = Vec::new();
    if range.upto == range.after {
        return Ok(Some(lists));
    }
    if range.upto < range.after {
        return Err(Error::invalid(format!("changes from {} to {} run backwards", range.after, range.upto))
            .with_code("ChangeRange")
            .with_context("table", table.name())
            .with_hint("name the older snapshot first"));
    }
    // a table without snapshots has no changes, whatever the range
    let Some(latest) = table.latest_snapshot_id().await? else { return Ok(Some(lists)) };
    if range.upto > latest {
        return Err(Error::not_found(format!("snapshot {} does not exist yet", range.upto))
            .with_code("ChangeRange")
            .with_context("table", table.name())
            .with_hint(format!("the latest snapshot is {latest}")));
    }
    let mut id = range.after.0;
    while id < range.upto.0 {
        id += 1;
        let snapshot = snapshot_or_changelog(table, SnapshotId(id)).await?;
        let (list, bytes, rows) = if changelog {
            let list = snapshot.changelog_manifest_list.clone();
            let list = list.filter(|_| snapshot.commit_kind != CommitKind::Overwrite);
            (list, snapshot.changelog_manifest_list_size, snapshot.changelog_record_count)
        } else {
            let list = (snapshot.commit_kind == CommitKind::Append).then(|| snapshot.delta_manifest_list.clone());
            (list, snapshot.delta_manifest_list_size, snapshot.delta_record_count)
        };
        if let Some(list) = list.filter(|list| !list.is_empty()) {
            lists.push(ChangeList { snapshot, list, bytes, rows });
        }
    }
    Ok(Some(lists))
}

/// A snapshot, or what is kept of it for change reads after it expired.
async fn snapshot_or_changelog(table: &Arc<Table>, id: SnapshotId) -> Result<Arc<Snapshot>> {
    match table.snapshot(id).await {
        Ok(snapshot) => Ok(snapshot),
        Err(error) if error.kind() == ErrorKind::NotFound => match table.changelog(id).await {
            Ok(changelog) => Ok(changelog),
            Err(missing) if missing.kind() == ErrorKind::NotFound => Err(error),
            Err(other) => Err(other),
        },
        Err(error) => Err(error),
    }
}
