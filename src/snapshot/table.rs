//! A table's documents: hints, snapshots, schemas, tags, branches, consumers, changelogs.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use super::documents::{
    Numbered, Readable, Stamp, list_named, list_numbered, read_hint, read_json, read_named, read_readable,
};
use super::nearest::known_names;
use crate::error::{Error, Result};
use crate::spec::tag::{Consumer, Tag};
use crate::spec::{SchemaId, Snapshot, SnapshotId, TableSchema};
use crate::storage::cache::ByteLimitedCache;
use crate::storage::{Location, Storage};

/// The names of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableIdent {
    /// Database.
    pub database: String,
    /// Table, without branch.
    pub table: String,
    /// Branch; `main` when none is named.
    pub branch: String,
}

impl TableIdent {
    /// A table on its main branch.
    pub fn new(database: impl Into<String>, table: impl Into<String>) -> Self {
        Self { database: database.into(), table: table.into(), branch: MAIN_BRANCH.to_string() }
    }

    /// Whether this is the main branch.
    pub fn is_main(&self) -> bool {
        self.branch == MAIN_BRANCH
    }
}

/// The branch that has no folder of its own.
pub const MAIN_BRANCH: &str = "main";

/// Bytes of snapshots, and of schemas, that a table keeps in memory.
const CACHE_BYTES: usize = 16 << 20;

/// Snapshots read at once when several are looked at.
const PARALLEL: usize = 32;

impl fmt::Display for TableIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)?;
        if !self.is_main() {
            write!(f, "$branch_{}", self.branch)?;
        }
        Ok(())
    }
}

/// One branch of a table on storage. Says what is there now; a [`super::Pin`] says what was chosen.
pub struct Table {
    ident: TableIdent,
    storage: Arc<Storage>,
    root: Location,
    branch_root: Location,
    snapshots: ByteLimitedCache<Stamp, Arc<Snapshot>>,
    schemas: ByteLimitedCache<Stamp, Arc<TableSchema>>,
    /// The schema files as last listed: which version of `schema-3` a pin's files were written with.
    schema_files: Mutex<HashMap<i64, Numbered>>,
}

impl Table {
    /// The table whose folder is `root`. Nothing is read yet.
    pub fn new(ident: TableIdent, storage: Arc<Storage>, root: Location) -> Result<Arc<Self>> {
        let branch_root = if ident.is_main() {
            root.clone()
        } else {
            root.join("branch")?.join(&single_name(&format!("branch-{}", ident.branch), "branch")?)?
        };
        Ok(Arc::new(Self {
            ident,
            storage,
            root,
            branch_root,
            snapshots: ByteLimitedCache::new(CACHE_BYTES),
            schemas: ByteLimitedCache::new(CACHE_BYTES),
            schema_files: Mutex::new(HashMap::new()),
        }))
    }

    /// The name as SQL shows it: `db.t`, `db.t$branch_x`.
    pub fn name(&self) -> String {
        self.ident.to_string()
    }

    /// Database, table and branch.
    pub fn ident(&self) -> &TableIdent {
        &self.ident
    }

    /// The store its folder lies in.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The table's folder: data files, `manifest`, `index` and `statistics` lie here, for branches too.
    pub fn root(&self) -> &Location {
        &self.root
    }

    /// The branch's folder: `schema`, `snapshot`, `tag`, `changelog` and `consumer` lie here.
    pub fn branch_root(&self) -> &Location {
        &self.branch_root
    }

    /// A manifest, manifest list or index manifest by its bare name.
    pub fn manifest_location(&self, name: &str) -> Result<Location> {
        self.root.join("manifest")?.join_named(name)
    }

    /// An index file in `index/` by its bare name.
    pub fn index_location(&self, name: &str) -> Result<Location> {
        self.root.join("index")?.join_named(name)
    }

    /// A statistics file by its bare name.
    pub fn statistics_location(&self, name: &str) -> Result<Location> {
        self.root.join("statistics")?.join_named(name)
    }

    // ---- snapshots

    /// The newest snapshot's number; None for a table without snapshots. The hint is believed when the snapshot it
    /// names is there and the next one is not; otherwise the folder is listed.
    pub async fn latest_snapshot_id(&self) -> Result<Option<SnapshotId>> {
        if let Some(hinted) = read_hint(&self.storage, &self.snapshot_file("LATEST")?).await
            && let Some(next) = hinted.checked_add(1)
        {
            let next_file = self.numbered_snapshot(next)?;
            let own_file = self.numbered_snapshot(hinted)?;
            let (next, own) =
                futures::future::try_join(self.storage.exists(&next_file), self.storage.exists(&own_file)).await?;
            if own && !next {
                return Ok(Some(SnapshotId(hinted)));
            }
        }
        Ok(self.snapshot_ids().await?.last().copied())
    }

    /// The newest snapshot; None for a table without snapshots.
    pub async fn latest_snapshot(&self) -> Result<Option<Arc<Snapshot>>> {
        Ok(self.latest_noticed().await?.0)
    }

    /// The newest snapshot, and what to tell the user when the hint was ahead of it.
    pub(super) async fn latest_noticed(&self) -> Result<(Option<Arc<Snapshot>>, Option<String>)> {
        let hinted = read_hint(&self.storage, &self.snapshot_file("LATEST")?).await;
        let mut ahead = None;
        if let Some(hinted) = hinted
            && let Some(next) = hinted.checked_add(1)
        {
            let next_file = self.numbered_snapshot(next)?;
            let (has_next, own) =
                futures::future::try_join(self.storage.exists(&next_file), self.read_snapshot(SnapshotId(hinted)))
                    .await?;
            match own {
                Some(snapshot) if !has_next => return Ok((Some(snapshot), None)),
                None => ahead = Some(hinted),
                Some(_) => {}
            }
        }
        // what is listed last may be rolled back before it is read
        for _ in 0..5 {
            let told = |ahead: i64, instead: String| {
                format!("the LATEST hint of {} names snapshot {ahead}, which does not exist; {instead}", self.name())
            };
            let Some(last) = self.snapshot_ids().await?.last().copied() else {
                let instead = "no other is there either, so that it reads as empty".to_string();
                return Ok((None, ahead.map(|ahead| told(ahead, instead))));
            };
            if let Some(snapshot) = self.read_snapshot(last).await? {
                let newest = format!("read the newest by listing, {last}");
                let notice = ahead.filter(|ahead| *ahead > last.0).map(|ahead| told(ahead, newest));
                return Ok((Some(snapshot), notice));
            }
        }
        Err(Error::unavailable("the newest snapshot vanished each time it was to be read")
            .with_context("table", self.name())
            .with_hint("snapshots are being rolled back or expired right now: try again"))
    }

    /// The oldest snapshot's number; None for a table without snapshots. The hint is believed when the snapshot it
    /// names is there.
    pub async fn earliest_snapshot_id(&self) -> Result<Option<SnapshotId>> {
        if let Some(hinted) = read_hint(&self.storage, &self.snapshot_file("EARLIEST")?).await
            && self.storage.exists(&self.numbered_snapshot(hinted)?).await?
        {
            return Ok(Some(SnapshotId(hinted)));
        }
        Ok(self.snapshot_ids().await?.first().copied())
    }

    /// All snapshot numbers, ascending, by listing.
    pub async fn snapshot_ids(&self) -> Result<Vec<SnapshotId>> {
        Ok(self.snapshot_files().await?.iter().map(|numbered| SnapshotId(numbered.number)).collect())
    }

    /// All snapshots, ascending; those that vanish meanwhile are left out.
    pub async fn snapshots(&self) -> Result<Vec<Arc<Snapshot>>> {
        let files = self.snapshot_files().await?;
        self.read_listed(files).try_collect().await
    }

    /// A snapshot by number, as it is now: one small read, since a number may be used again after a rollback. Errors
    /// `SnapshotExpired`, `SnapshotNotFound` and `NoSnapshot`, saying what is kept and which tag holds it.
    pub async fn snapshot(&self, id: SnapshotId) -> Result<Arc<Snapshot>> {
        match self.read_snapshot(id).await? {
            Some(snapshot) => Ok(snapshot),
            None => Err(self.missing_snapshot(id).await),
        }
    }

    pub(super) async fn snapshot_files(&self) -> Result<Vec<Numbered>> {
        list_numbered(&self.storage, &self.branch_root.join("snapshot")?, "snapshot-").await
    }

    /// Listed snapshots in the order given, read ahead; what vanished is passed over.
    pub(super) fn read_listed(&self, files: Vec<Numbered>) -> impl Stream<Item = Result<Arc<Snapshot>>> + Send + '_ {
        let reads = files.into_iter().map(move |numbered| async move {
            let stamp = numbered.stamp();
            if let Some(known) = self.snapshots.get(&stamp) {
                return Ok(Some(known));
            }
            let read = self.read_snapshot(SnapshotId(numbered.number)).await?;
            if let Some(snapshot) = &read {
                self.snapshots.insert(stamp, Arc::clone(snapshot), snapshot_bytes(snapshot));
            }
            Ok(read)
        });
        stream::iter(reads).buffered(PARALLEL).filter_map(|read| async move { read.transpose() })
    }

    /// A snapshot by number, past all caches; None when it is not there.
    pub(super) async fn read_snapshot(&self, id: SnapshotId) -> Result<Option<Arc<Snapshot>>> {
        if id.0 < 1 {
            return Ok(None);
        }
        let file = self.numbered_snapshot(id.0)?;
        let read = read_json(&self.storage, &file, |bytes| {
            let snapshot = Snapshot::from_json(bytes)?;
            snapshot.check_lists()?;
            if snapshot.id != id {
                return Err(Error::corrupt(format!("the file of snapshot {id} holds snapshot {}", snapshot.id)));
            }
            Ok(snapshot)
        });
        let read = read.await.map_err(|e| e.with_context("table", self.name()))?;
        Ok(read.map(Arc::new))
    }

    /// The error for a snapshot number that is not there: what is kept, and which tag holds it.
    pub(super) async fn missing_snapshot(&self, id: SnapshotId) -> Error {
        self.missing_snapshot_as(id, &id.to_string()).await
    }

    /// The same for a number as it was written, which may be larger than any.
    pub(super) async fn missing_snapshot_as(&self, id: SnapshotId, written: &str) -> Error {
        let ids = match self.snapshot_ids().await {
            Ok(ids) => ids,
            Err(error) => return error,
        };
        let (holding, complaint) = self.tags_holding(id).await;
        let tags = match holding.as_slice() {
            [] => complaint.map_or(String::new(), |complaint| format!("; {complaint} and may hold it")),
            [tag] => format!("; tag '{tag}' holds it"),
            tags => format!("; tags '{}' hold it", tags.join("', '")),
        };
        let (code, message) = match (ids.first(), ids.last()) {
            (Some(first), Some(last)) if id.0 >= 1 && id < *first => (
                "SnapshotExpired",
                format!("snapshot {written} has expired; available {}{tags}", range_text(*first, *last)),
            ),
            (Some(first), Some(last)) => {
                let reason = if id.0 < 1 {
                    " (numbers begin at 1)"
                } else if id < *last {
                    " (it was removed from between them)"
                } else {
                    ""
                };
                let kept = range_text(*first, *last);
                ("SnapshotNotFound", format!("snapshot {written} does not exist{reason}; available {kept}{tags}"))
            }
            _ => ("NoSnapshot", format!("the table has no snapshot, so not {written} either{tags}")),
        };
        let error = Error::not_found(message).with_code(code).with_context("table", self.name());
        match holding.first() {
            Some(tag) => error.with_hint(format!("read it with VERSION AS OF '{tag}'")),
            None if code == "NoSnapshot" => error,
            None => error.with_hint("choose one of those or a tag"),
        }
    }

    /// The tags that hold a snapshot, and what to say of tags that cannot be read; nothing when none can be listed, since
    /// this only adds to another message.
    async fn tags_holding(&self, id: SnapshotId) -> (Vec<String>, Option<String>) {
        let Ok(tags) = self.readable_tags().await else { return Default::default() };
        let complaint = tags.complaint("tag");
        let holding = tags.found.into_iter().filter(|(_, tag)| tag.snapshot.id == id);
        (holding.map(|(name, _)| name).collect(), complaint)
    }

    fn snapshot_file(&self, name: &str) -> Result<Location> {
        self.branch_root.join("snapshot")?.join(name)
    }

    fn numbered_snapshot(&self, id: i64) -> Result<Location> {
        self.snapshot_file(&format!("snapshot-{id}"))
    }

    // ---- schemas

    /// A schema by number, of the table as last listed.
    pub async fn schema(&self, id: SchemaId) -> Result<Arc<TableSchema>> {
        let known = self.schema_files.lock().get(&id.0).cloned();
        let file = match known {
            Some(file) => file,
            None => {
                let files = self.list_schemas().await?;
                match files.iter().find(|file| file.number == id.0) {
                    Some(file) => file.clone(),
                    None => return Err(self.missing_schema(id, &files)),
                }
            }
        };
        match self.read_schema(&file).await? {
            Some(schema) => Ok(schema),
            None => Err(self.missing_schema(id, &self.list_schemas().await?)),
        }
    }

    /// The schema with the highest number, by listing. Error `TableNotFound` when there is none.
    pub async fn latest_schema(&self) -> Result<Arc<TableSchema>> {
        // what is listed may be gone when it is read, in a table that is being dropped
        for _ in 0..2 {
            let files = self.list_schemas().await?;
            let Some(last) = files.last() else { break };
            if let Some(schema) = self.read_schema(last).await? {
                return Ok(schema);
            }
        }
        Err(Error::not_found("there is no schema file: this is not a table, or it was dropped")
            .with_code("TableNotFound")
            .with_context("table", self.name())
            .with_context("folder", self.branch_root.join("schema")?)
            .with_hint("if it was not dropped, restore its schema files: nothing of it can be read without them"))
    }

    /// All schema numbers, ascending, by listing.
    pub async fn schema_ids(&self) -> Result<Vec<SchemaId>> {
        Ok(self.list_schemas().await?.iter().map(|file| SchemaId(file.number)).collect())
    }

    async fn list_schemas(&self) -> Result<Vec<Numbered>> {
        let files = list_numbered(&self.storage, &self.branch_root.join("schema")?, "schema-").await?;
        *self.schema_files.lock() = files.iter().map(|file| (file.number, file.clone())).collect();
        Ok(files)
    }

    async fn read_schema(&self, file: &Numbered) -> Result<Option<Arc<TableSchema>>> {
        let stamp = file.stamp();
        if let Some(known) = self.schemas.get(&stamp) {
            return Ok(Some(known));
        }
        let id = SchemaId(file.number);
        let read = read_json(&self.storage, &file.file.location, |bytes| {
            let schema = TableSchema::from_json(bytes)?;
            if schema.id != id {
                return Err(Error::corrupt(format!("the file of schema {id} holds schema {}", schema.id)));
            }
            Ok(schema)
        });
        let Some(schema) = read.await.map_err(|e| e.with_context("table", self.name()))? else { return Ok(None) };
        let schema = Arc::new(schema);
        let bytes = usize::try_from(file.file.size).unwrap_or(usize::MAX).saturating_mul(2);
        self.schemas.insert(stamp, Arc::clone(&schema), bytes);
        Ok(Some(schema))
    }

    fn missing_schema(&self, id: SchemaId, known: &[Numbered]) -> Error {
        let numbers: Vec<String> = known.iter().map(|file| file.number.to_string()).collect();
        let mut error = Error::corrupt(format!("schema {id} is missing; there are schemas {}", numbers.join(", ")))
            .with_code("SchemaNotFound")
            .with_context("table", self.name());
        if let Ok(file) = self.branch_root.join(&format!("schema/schema-{id}")) {
            error = error.with_context("file", file);
        }
        error.with_hint("restore the schema file: snapshots and data files written with it cannot be read without it")
    }

    // ---- tags, branches, consumers, changelogs

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
    pub(super) async fn missing_tag(&self, name: &str) -> Error {
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
        let file = self.branch_root.join("changelog")?.join(&format!("changelog-{id}"))?;
        let read = read_json(&self.storage, &file, |bytes| {
            let snapshot = Snapshot::from_json(bytes)?;
            if snapshot.id != id {
                return Err(Error::corrupt(format!("the file of changelog {id} holds that of {}", snapshot.id)));
            }
            Ok(snapshot)
        });
        if let Some(snapshot) = read.await.map_err(|e| e.with_context("table", self.name()))? {
            return Ok(Arc::new(snapshot));
        }
        let kept = match self.changelog_ids().await?.as_slice() {
            [] => "none are kept".to_string(),
            [only] => format!("kept is {only}"),
            [first, .., last] => format!("kept are {first} to {last}"),
        };
        Err(Error::not_found(format!("changelog {id} has expired or never was; {kept}"))
            .with_code("ChangelogNotFound")
            .with_context("table", self.name()))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} at {})", self.ident, self.branch_root)
    }
}

/// A name that is one segment of a path.
fn single_name(name: &str, what: &str) -> Result<String> {
    if name.contains('/') {
        return Err(Error::invalid(format!("a {what} name cannot contain '/'")).with_code("InvalidName"));
    }
    Ok(name.to_string())
}

/// `3..7`, or `3` alone.
pub(super) fn range_text(first: SnapshotId, last: SnapshotId) -> String {
    if first == last { first.to_string() } else { format!("{first}..{last}") }
}

/// What a snapshot takes in memory, roughly.
fn snapshot_bytes(snapshot: &Snapshot) -> usize {
    let properties: usize = snapshot.properties.iter().map(|(key, value)| key.len() + value.len() + 64).sum();
    size_of::<Snapshot>() + 512 + properties
}

#[cfg(test)]
mod tests;
