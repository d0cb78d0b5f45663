//! A table's documents: hints, snapshots, schemas, tags, branches, consumers, changelogs.

mod references;
mod schemas;
mod snapshots;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::documents::{Numbered, Stamp};
use crate::error::{Error, Result};
use crate::spec::{Snapshot, SnapshotId, TableSchema};
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
fn range_text(first: SnapshotId, last: SnapshotId) -> String {
    if first == last { first.to_string() } else { format!("{first}..{last}") }
}

/// Stretches of ids that are told; of more, those between them are left out.
const STRETCHES: usize = 6;

/// `1..4, 6..8` of ids in order.
pub(super) fn ranges_text(ids: &[SnapshotId]) -> String {
    let stretches: Vec<&[SnapshotId]> = ids.chunk_by(|a, b| a.0.checked_add(1) == Some(b.0)).collect();
    let text = |stretch: &&[SnapshotId]| match stretch {
        [first, .., last] => range_text(*first, *last),
        few => few.iter().map(ToString::to_string).collect(),
    };
    let (head, tail) = match stretches.len().checked_sub(STRETCHES) {
        None | Some(0) => (stretches.as_slice(), &[][..]),
        Some(_) => stretches.split_at(STRETCHES / 2),
    };
    let tail = tail.get(tail.len().saturating_sub(STRETCHES / 2)..).unwrap_or_default();
    let gap = (!tail.is_empty()).then(|| "…".to_string());
    head.iter().map(text).chain(gap).chain(tail.iter().map(text)).collect::<Vec<_>>().join(", ")
}

/// What a snapshot takes in memory, roughly.
fn snapshot_bytes(snapshot: &Snapshot) -> usize {
    let properties: usize = snapshot.properties.iter().map(|(key, value)| key.len() + value.len() + 64).sum();
    size_of::<Snapshot>() + 512 + properties
}

#[cfg(test)]
mod tests;
