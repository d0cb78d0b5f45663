//! Reads of what changed between snapshots.
//!
//! Changes are those of the snapshots after the first, up to and with the last. Delta: the files that APPEND snapshots
//! added. Changelog: the changelog files of all snapshots but OVERWRITE. Both are read unmerged and nothing is hidden by
//! level.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};

use super::plan::ScanKind;
use crate::error::{Error, Result};
use crate::snapshot::Pin;
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

/// The lists of a range, oldest first; None where no changes are read.
///
/// Cost: a small read for each snapshot of the range, two where it expired, `read_ahead` of them at once.
///
/// # Errors
/// A range that runs backwards or ends in the future; a snapshot of it of which nothing is kept.
pub(crate) async fn change_lists(pin: &Pin, kind: ScanKind, read_ahead: usize) -> Result<Option<Vec<ChangeList>>> {
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
    let ids = (range.after.0.saturating_add(1)..=range.upto.0).map(SnapshotId);
    let mut read = stream::iter(ids)
        .map(|id| {
            let table = Arc::clone(table);
            async move { Ok::<_, Error>((id, table.snapshot_or_changelog(id).await?)) }
        })
        .buffered(read_ahead.max(1));
    while let Some((id, found)) = read.try_next().await? {
        let snapshot = match found {
            Some(snapshot) => snapshot,
            // what is kept in its place is looked for only where that is to be told
            None => return Err(table.missing_changes(id).await),
        };
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::catalog::{Catalog, FilesystemCatalog};
    use crate::scan::ChangeRange;
    use crate::snapshot::PinRequest;
    use crate::testing::builder::{TableBuilder, TableSpec};

    /// Eight snapshots, those up to `expired` kept as changelogs only.
    async fn pinned(expired: i64) -> (tempfile::TempDir, Arc<Pin>) {
        let dir = tempfile::tempdir().unwrap();
        let spec = TableSpec::new(&[("a", "INT")]).option("bucket", "-1");
        let mut builder = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
        for n in 0..8 {
            builder.append(&[json!({"a": n})]).unwrap();
        }
        std::fs::create_dir(builder.root().join("changelog")).unwrap();
        for id in 1..=expired {
            let (from, to) = (format!("snapshot/snapshot-{id}"), format!("changelog/changelog-{id}"));
            std::fs::rename(builder.root().join(from), builder.root().join(to)).unwrap();
        }
        let catalog = FilesystemCatalog::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
        let table = catalog.table("d", "t").await.unwrap();
        let pin = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
        (dir, pin)
    }

    #[tokio::test]
    async fn an_expired_snapshot_costs_one_more_read_and_no_listing() {
        let mut lists = Vec::new();
        for expired in [0, 7] {
            let (_dir, pin) = pinned(expired).await;
            let kind = ScanKind::Delta(ChangeRange { after: SnapshotId(0), upto: SnapshotId(8) });
            let before = pin.table.storage().counts();
            let found = change_lists(&pin, kind, 4).await.unwrap().unwrap();
            let ids: Vec<i64> = found.iter().map(|change| change.snapshot.id.0).collect();
            assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8], "oldest first");
            lists.push((pin.table.storage().counts() - before).lists);
        }
        assert_eq!(lists[0], lists[1], "a snapshot that is not there was explained before its changelog was tried");
    }

    #[tokio::test]
    async fn a_snapshot_of_which_nothing_is_kept_is_named() {
        let (dir, pin) = pinned(3).await;
        std::fs::remove_file(dir.path().join("d.db/t/changelog/changelog-2")).unwrap();
        let range = |after, upto| ScanKind::Delta(ChangeRange { after: SnapshotId(after), upto: SnapshotId(upto) });
        let error = change_lists(&pin, range(0, 8), 4).await.unwrap_err();
        assert_eq!(error.code(), "SnapshotExpired", "{error}");
        assert!(error.message().contains("neither snapshot 2 nor its changelog is kept"), "{error}");
        assert!(error.message().contains("kept are snapshots 4..8 and changelogs 1, 3"), "{error}");
        let file = error.context().iter().find(|(name, _)| *name == "file").map(|(_, file)| file.as_str());
        assert!(file.is_some_and(|file| file.ends_with("/changelog/changelog-2")), "{error:?}");
        assert!(change_lists(&pin, range(2, 8), 4).await.is_ok());
        std::fs::write(dir.path().join("d.db/t/changelog/changelog-2"), "").unwrap();
        let error = change_lists(&pin, range(0, 8), 4).await.unwrap_err();
        assert_eq!(error.message(), "the changelog file is not valid JSON: it is empty");
    }
}
