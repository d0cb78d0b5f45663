//! What names snapshots beside their ids: tags, branches, consumers, long-lived changelogs.

use std::sync::Arc;

use super::{MAIN_BRANCH, Table, TableIdent, ranges_text, single_name};
use crate::error::{Error, Result};
use crate::snapshot::documents::{Readable, list_named, list_numbered, read_json, read_named, read_readable};
use crate::snapshot::nearest::known_names;
use crate::spec::tag::{Consumer, Tag};
use crate::spec::{Snapshot, SnapshotId};
use crate::storage::Location;

impl Table {
    /// All tags by name; those that vanish meanwhile are left out.
    pub async fn tags(&self) -> Result<Vec<(String, Tag)>> {
        let named = list_named(&self.storage, &self.branch_root.join("tag")?, "tag-").await?;
        read_named(&self.storage, named, Tag::from_json).await.map_err(|e| e.with_context("table", self.name()))
    }

    /// The tags that can be read, and the names of the others: for what one broken tag must not stop.
    pub async fn readable_tags(&self) -> Result<Readable<Tag>> {
        let named = list_named(&self.storage, &self.branch_root.join("tag")?, "tag-").await?;
        let read = read_readable(&self.storage, named, Tag::from_json).await;
        read.map_err(|e| e.with_context("table", self.name()))
    }

    /// The names of all tags, sorted, by listing.
    pub async fn tag_names(&self) -> Result<Vec<String>> {
        let named = list_named(&self.storage, &self.branch_root.join("tag")?, "tag-").await?;
        Ok(named.into_iter().map(|(name, _)| name).collect())
    }

    /// A tag; None when there is none of that name.
    pub async fn tag(&self, name: &str) -> Result<Option<Tag>> {
        let Ok(file_name) = single_name(&format!("tag-{name}"), "tag") else { return Ok(None) };
        let Ok(file) = self.branch_root.join("tag")?.join(&file_name) else { return Ok(None) };
        let read = read_json(&self.storage, &file, Tag::from_json).await;
        read.map_err(|e| e.with_context("table", self.name()))
    }

    /// The error for a tag that is not there, with the nearest.
    pub(in crate::snapshot) async fn missing_tag(&self, name: &str) -> Error {
        let tags = match self.tag_names().await {
            Ok(tags) => tags,
            Err(error) => return error,
        };
        Error::not_found(format!("there is no tag '{name}'"))
            .with_code("TagNotFound")
            .with_context("table", self.name())
            .with_hint(known_names("tags", name, tags.iter().map(String::as_str)))
    }

    /// The names of all branches but main, sorted.
    pub async fn branches(&self) -> Result<Vec<String>> {
        let folders = self.storage.list_dirs(&self.root.join("branch")?).await?;
        let names = folders.iter().filter_map(|folder| folder.strip_prefix("branch-"));
        Ok(names.filter(|name| !name.is_empty()).map(str::to_string).collect())
    }

    /// Another branch of this table (`main` too). Error `BranchNotFound`, with the known ones.
    pub async fn branch(&self, name: &str) -> Result<Arc<Table>> {
        let ident = TableIdent { branch: name.to_string(), ..self.ident.clone() };
        if ident.is_main() {
            return Self::new(ident, Arc::clone(&self.storage), self.root.clone());
        }
        // a name that cannot be a folder is no branch
        if let Ok(table) = Self::new(ident, Arc::clone(&self.storage), self.root.clone())
            && self.storage.is_folder(&table.branch_root.join("schema")?).await?
        {
            return Ok(table);
        }
        let mut known = self.branches().await?;
        if known.iter().any(|known| known == name) {
            let folder = self.root.join("branch")?.join(&format!("branch-{name}"))?.join("schema")?;
            return Err(Error::corrupt(format!("branch '{name}' has no schema folder"))
                .with_code("BranchWithoutSchema")
                .with_context("table", format!("{}.{}", self.ident.database, self.ident.table))
                .with_context("file", folder)
                .with_hint("restore the folder, or read another branch"));
        }
        known.push(MAIN_BRANCH.to_string());
        Err(Error::not_found(format!("there is no branch '{name}'"))
            .with_code("BranchNotFound")
            .with_context("table", format!("{}.{}", self.ident.database, self.ident.table))
            .with_hint(known_names("branches", name, known.iter().map(String::as_str))))
    }

    /// Consumers and the snapshot each reads next, by name.
    pub async fn consumers(&self) -> Result<Vec<(String, SnapshotId)>> {
        let named = list_named(&self.storage, &self.branch_root.join("consumer")?, "consumer-").await?;
        let read = read_named(&self.storage, named, Consumer::from_json).await;
        let read = read.map_err(|e| e.with_context("table", self.name()))?;
        Ok(read.into_iter().map(|(name, consumer)| (name, consumer.next_snapshot)).collect())
    }

    /// The consumers that can be read, and the names of the others.
    pub async fn readable_consumers(&self) -> Result<Readable<SnapshotId>> {
        let named = list_named(&self.storage, &self.branch_root.join("consumer")?, "consumer-").await?;
        let next = |bytes: &[u8]| Consumer::from_json(bytes).map(|consumer| consumer.next_snapshot);
        let read = read_readable(&self.storage, named, next).await;
        read.map_err(|e| e.with_context("table", self.name()))
    }

    /// Numbers of the long-lived changelogs, ascending.
    pub async fn changelog_ids(&self) -> Result<Vec<SnapshotId>> {
        let files = list_numbered(&self.storage, &self.branch_root.join("changelog")?, "changelog-").await?;
        Ok(files.iter().map(|file| SnapshotId(file.number)).collect())
    }

    /// A long-lived changelog. Only its changelog (and delta) list may still be readable.
    pub async fn changelog(&self, id: SnapshotId) -> Result<Arc<Snapshot>> {
        if let Some(changelog) = self.read_changelog(id).await? {
            return Ok(changelog);
        }
        let kept = match self.changelog_ids().await?.as_slice() {
            [] => "none are kept".to_string(),
            [only] => format!("kept is {only}"),
            several => format!("kept are {}", ranges_text(several)),
        };
        Err(Error::not_found(format!("changelog {id} has expired or never was; {kept}"))
            .with_code("ChangelogNotFound")
            .with_context("table", self.name()))
    }

    /// The error for a snapshot of which neither its file nor its changelog is there: where others are kept as
    /// changelogs, it is the changelog that is missing.
    pub(crate) async fn missing_changes(&self, id: SnapshotId) -> Error {
        let error = self.missing_snapshot(id).await;
        let (Ok(changelogs), Ok(snapshots)) = (self.changelog_ids().await, self.snapshot_ids().await) else {
            return error;
        };
        if changelogs.is_empty() {
            return error;
        }
        let snapshots = if snapshots.is_empty() { "none".to_string() } else { ranges_text(&snapshots) };
        let message = format!(
            "neither snapshot {id} nor its changelog is kept; kept are snapshots {snapshots} and changelogs {}",
            ranges_text(&changelogs)
        );
        let error = Error::not_found(message).with_code(error.code()).with_context("table", self.name());
        let error = match self.changelog_file(id) {
            Ok(file) => error.with_context("file", file),
            Err(_) => error,
        };
        error.with_hint(format!("ask for a range that does not need {id}, or restore its changelog file"))
    }

    fn changelog_file(&self, id: SnapshotId) -> Result<Location> {
        self.branch_root.join("changelog")?.join(&format!("changelog-{id}"))
    }

    /// The same; None when it is not there.
    pub(in crate::snapshot) async fn read_changelog(&self, id: SnapshotId) -> Result<Option<Arc<Snapshot>>> {
        let file = self.changelog_file(id)?;
        let read = read_json(&self.storage, &file, |bytes| {
            let snapshot = Snapshot::from_changelog_json(bytes)?;
            if snapshot.id != id {
                return Err(Error::corrupt(format!("the file of changelog {id} holds that of {}", snapshot.id)));
            }
            Ok(snapshot)
        });
        let read = read.await.map_err(|e| e.with_context("table", self.name()))?;
        Ok(read.map(Arc::new))
    }
}
