//! A table's documents: hints, snapshots, schemas, tags, branches, consumers, changelogs.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::spec::tag::Tag;
use crate::spec::{SchemaId, Snapshot, SnapshotId, TableSchema};
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
#[derive(Debug)]
pub struct Table {
    ident: TableIdent,
    storage: Arc<Storage>,
    root: Location,
    branch_root: Location,
}

impl Table {
    /// The table whose folder is `root`. Nothing is read yet.
    pub fn new(ident: TableIdent, storage: Arc<Storage>, root: Location) -> Result<Arc<Self>> {
        let _ = (ident, storage, root);
        Err(Error::internal("not built yet"))
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
        self.root.join("manifest")?.join(name)
    }

    /// An index file in `index/` by its bare name.
    pub fn index_location(&self, name: &str) -> Result<Location> {
        self.root.join("index")?.join(name)
    }

    /// A statistics file by its bare name.
    pub fn statistics_location(&self, name: &str) -> Result<Location> {
        self.root.join("statistics")?.join(name)
    }

    /// The newest snapshot's number; None for a table without snapshots. The hint is trusted only after a look.
    pub async fn latest_snapshot_id(&self) -> Result<Option<SnapshotId>> {
        Err(Error::internal("not built yet"))
    }

    /// The newest snapshot; None for a table without snapshots.
    pub async fn latest_snapshot(&self) -> Result<Option<Arc<Snapshot>>> {
        Err(Error::internal("not built yet"))
    }

    /// The oldest snapshot's number.
    pub async fn earliest_snapshot_id(&self) -> Result<Option<SnapshotId>> {
        Err(Error::internal("not built yet"))
    }

    /// All snapshot numbers, ascending, by listing.
    pub async fn snapshot_ids(&self) -> Result<Vec<SnapshotId>> {
        Err(Error::internal("not built yet"))
    }

    /// All snapshots, ascending; those that vanish meanwhile are left out.
    pub async fn snapshots(&self) -> Result<Vec<Arc<Snapshot>>> {
        Err(Error::internal("not built yet"))
    }

    /// A snapshot by number. Error `SnapshotExpired` or `SnapshotNotFound`, saying what is kept.
    pub async fn snapshot(&self, id: SnapshotId) -> Result<Arc<Snapshot>> {
        let _ = id;
        Err(Error::internal("not built yet"))
    }

    /// A schema by number.
    pub async fn schema(&self, id: SchemaId) -> Result<Arc<TableSchema>> {
        let _ = id;
        Err(Error::internal("not built yet"))
    }

    /// The schema with the highest number.
    pub async fn latest_schema(&self) -> Result<Arc<TableSchema>> {
        Err(Error::internal("not built yet"))
    }

    /// All schema numbers, ascending, by listing.
    pub async fn schema_ids(&self) -> Result<Vec<SchemaId>> {
        Err(Error::internal("not built yet"))
    }

    /// All tags by name; those that vanish meanwhile are left out.
    pub async fn tags(&self) -> Result<Vec<(String, Tag)>> {
        Err(Error::internal("not built yet"))
    }

    /// A tag; None when there is none of that name.
    pub async fn tag(&self, name: &str) -> Result<Option<Tag>> {
        let _ = name;
        Err(Error::internal("not built yet"))
    }

    /// The names of all branches but main, sorted.
    pub async fn branches(&self) -> Result<Vec<String>> {
        Err(Error::internal("not built yet"))
    }

    /// Another branch of this table (`main` too). Error `BranchNotFound`, with the known ones.
    pub async fn branch(&self, name: &str) -> Result<Arc<Table>> {
        let _ = name;
        Err(Error::internal("not built yet"))
    }

    /// Consumers and the snapshot each reads next.
    pub async fn consumers(&self) -> Result<Vec<(String, SnapshotId)>> {
        Err(Error::internal("not built yet"))
    }

    /// Numbers of the long-lived changelogs, ascending.
    pub async fn changelog_ids(&self) -> Result<Vec<SnapshotId>> {
        Err(Error::internal("not built yet"))
    }

    /// A long-lived changelog. Only its changelog (and delta) list may still be readable.
    pub async fn changelog(&self, id: SnapshotId) -> Result<Arc<Snapshot>> {
        let _ = id;
        Err(Error::internal("not built yet"))
    }
}
