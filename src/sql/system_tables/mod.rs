//! System tables, `t$name`: one file each, and one list.

mod aggregation_fields;
mod branches;
mod buckets;
mod changes;
mod commit_files;
pub(crate) mod commit_rate;
pub(crate) mod commits;
mod consumers;
mod entries;
mod file_indexes;
mod file_key_ranges;
mod files;
mod global;
mod listed;
mod manifests;
mod options;
mod partitions;
mod read_journal;
mod retention;
mod row_accounting;
mod schemas;
mod snapshots;
mod statistics;
mod table_indexes;
mod tags;
mod unreferenced_files;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::execution::memory_pool::MemoryPool;
use futures::future::BoxFuture;

use super::cells::{self, Cell};
use super::memory::LazyTable;
use super::selector::Selection;
use super::statement::Statement;
use crate::error::{Error, ErrorKind, Result};
use crate::notice::NoticeKind;
use crate::query::{PoolBudget, QueryEnv};
use crate::recon::journal::Kept;
use crate::scan::blame_manifest;
use crate::snapshot::{Fingerprint, Pin, PinRequest, Readable, SessionZone, Table};
use crate::spec::ManifestEntry;

pub(crate) use read_journal::{is_journal, provider as journal};

pub(crate) use global::{GLOBAL_DATABASE, is_global, provider as global, tables as global_tables};

/// What a system table is made from.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) table: Arc<Table>,
    /// None for tables that stay live.
    pub(crate) pin: Option<Arc<Pin>>,
    pub(crate) zone: SessionZone,
    pub(crate) env: Arc<QueryEnv>,
    /// What the session pins of the table, where its row is to be marked.
    pinned: Vec<Fingerprint>,
    pool: Arc<dyn MemoryPool>,
    /// Weak: the statement keeps the tables it resolved.
    statement: Weak<Statement>,
}

impl Source {
    /// Memory of the session.
    pub(crate) fn budget(&self) -> Arc<PoolBudget> {
        Arc::new(PoolBudget::new(&self.pool, "accounting"))
    }

    pub(crate) fn pin(&self) -> Result<&Arc<Pin>> {
        self.pin.as_ref().ok_or_else(|| Error::internal("a system table was planned without its pin"))
    }

    /// What functions over a table's past are made from.
    pub(crate) async fn of_now(statement: &Arc<Statement>, table: &Arc<Table>) -> Result<Self> {
        let mut source = source(statement, table, None);
        source.pin = Some(source.newest().await?);
        Ok(source)
    }

    /// What the session's journal holds; None: it keeps none.
    pub(crate) fn journal(&self) -> Result<Option<Kept>> {
        let statement = self.statement.upgrade();
        let journal = statement.and_then(|statement| statement.settings().journal.read().clone());
        journal.map(|journal| journal.read()).transpose()
    }

    /// The state that a query of the table reads by a version; without one that which the session pins.
    pub(crate) async fn read_at(&self, request: &PinRequest) -> Result<Arc<Pin>> {
        match self.statement.upgrade() {
            Some(statement) => {
                statement.pin(&self.table, &Selection { request: request.clone(), ..Selection::none() }).await
            }
            None => Pin::resolve_in(&self.table, request.clone(), &BTreeMap::new(), &self.zone).await,
        }
    }

    /// The table as it is now: its newest snapshot, columns and options. Where the file of that snapshot is torn the
    /// newest that can be read, which is told: what is wrong with a table has to be shown of a damaged one too.
    pub(crate) async fn newest(&self) -> Result<Arc<Pin>> {
        let resolved = |request| async { Pin::resolve_in(&self.table, request, &BTreeMap::new(), &self.zone).await };
        let error = match resolved(PinRequest::Latest).await {
            Err(error) if error.kind() == ErrorKind::Corrupt => error,
            outcome => return outcome,
        };
        let all = self.table.snapshots_one_by_one().await?;
        let torn = all.last().filter(|(_, read)| read.is_err()).map(|(id, _)| *id);
        let readable = all.iter().rev().find_map(|(id, read)| read.is_ok().then_some(*id));
        let (Some(torn), Some(read)) = (torn, readable) else { return Err(error) };
        let pin = resolved(PinRequest::SnapshotId(read.0)).await?;
        let (table, why) = (self.table.name(), error.message().to_string());
        self.notice(NoticeKind::NewestUnreadable { table, torn: torn.0, read: read.0, why });
        Ok(pin)
    }

    /// An error about what the table holds names it, and the snapshot that is read.
    pub(crate) fn named(&self, error: Error) -> Error {
        match &self.pin {
            Some(pin) => pin.named(error).or_restore(),
            None if error.kind() == ErrorKind::Corrupt => error.with_context("table", self.table.name()).or_restore(),
            None => error,
        }
    }

    /// The rows that `row` makes of some entries; what is wrong with one is blamed on the manifest that holds it.
    async fn rows_of(
        &self,
        entries: &[Arc<ManifestEntry>],
        row: impl Fn(&ManifestEntry) -> Result<Vec<Cell>>,
    ) -> Result<Vec<Vec<Cell>>> {
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            match row(entry) {
                Ok(row) => rows.push(row),
                Err(error) => return Err(blame_manifest(error, entry, self.pin()?, &self.env.scan).await),
            }
        }
        Ok(rows)
    }

    /// Adds to a row whether it is the one the session pins, where rows say that.
    fn mark(&self, row: &mut Vec<Cell>, is: impl Fn(&Fingerprint) -> bool) {
        if !self.pinned.is_empty() {
            row.push(Cell::Bool(self.pinned.iter().any(is)));
        }
    }

    /// Rows that were [marked](Self::mark), as a batch.
    fn marked(&self, schema: SchemaRef, rows: &[Vec<Cell>]) -> Result<RecordBatch> {
        cells::batch(&with_mark(schema, !self.pinned.is_empty()), rows)
    }

    /// Says which of some files cannot be read.
    fn notice_unreadable<T>(&self, files: &Readable<T>, what: &'static str) {
        let names = files.unreadable.clone();
        if !names.is_empty() {
            let folder = format!("{}/{what}", self.table.branch_root());
            self.notice(NoticeKind::Unreadable { table: self.table.name(), what, names, folder });
        }
    }

    pub(crate) fn notice(&self, kind: NoticeKind) {
        if let Some(statement) = self.statement.upgrade() {
            statement.notice(kind);
        }
    }

    /// An instant as wall clock of the session.
    pub(crate) fn wall_clock(&self, millis: i64) -> i64 {
        millis.saturating_add(i64::from(self.zone.offset_seconds(millis)) * 1_000)
    }
}

/// A schema, with the column that marks the pinned row when there is one.
fn with_mark(schema: SchemaRef, marked: bool) -> SchemaRef {
    if !marked {
        return schema;
    }
    let mark = Arc::new(Field::new("pinned", DataType::Boolean, false));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([mark]).collect::<Vec<_>>()))
}

/// Where rows come from.
enum Rows {
    /// Made by us, always of the present state, which is told while the session pins the table.
    Live(fn(Source) -> BoxFuture<'static, Result<RecordBatch>>),
    /// The same, with a last column `pinned` while the session pins the table.
    ///
    /// These tables tell what there is to choose from, so under a pin they stay live and mark what was chosen. As a
    /// column it can be asked for (`WHERE pinned`) and is kept in files; it is there only where `PIN` was said, which
    /// no other engine knows, so statements written for others get the columns they know.
    Marked(fn(Source) -> BoxFuture<'static, Result<RecordBatch>>),
    /// Made by us, of the pinned snapshot.
    Pinned(fn(Source) -> BoxFuture<'static, Result<RecordBatch>>),
    /// Another view of the table's rows.
    View(View),
}

/// Views of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    AuditLog,
    Binlog,
    ReadOptimized,
    RowTracking,
}

/// One system table.
struct SystemTable {
    name: &'static str,
    schema: Option<fn() -> SchemaRef>,
    rows: Rows,
}

/// Lists a table made of rows.
macro_rules! made {
    ($name:literal, $kind:ident, $module:ident) => {
        SystemTable { name: $name, schema: Some($module::schema), rows: Rows::$kind(|s| Box::pin($module::rows(s))) }
    };
}

const ALL: &[SystemTable] = &[
    made!("snapshots", Marked, snapshots),
    made!("schemas", Live, schemas),
    made!("options", Live, options),
    made!("tags", Marked, tags),
    made!("branches", Marked, branches),
    made!("consumers", Marked, consumers),
    made!("commits", Marked, commits),
    made!("commit_files", Marked, commit_files),
    made!("commit_rate", Live, commit_rate),
    made!("retention", Marked, retention),
    made!("unreferenced_files", Live, unreferenced_files),
    made!("aggregation_fields", Pinned, aggregation_fields),
    made!("files", Pinned, files),
    made!("file_key_ranges", Pinned, file_key_ranges),
    made!("file_indexes", Pinned, file_indexes),
    made!("manifests", Pinned, manifests),
    made!("partitions", Pinned, partitions),
    made!("buckets", Pinned, buckets),
    made!("statistics", Pinned, statistics),
    made!("table_indexes", Pinned, table_indexes),
    made!("row_accounting", Pinned, row_accounting),
    SystemTable { name: "audit_log", schema: None, rows: Rows::View(View::AuditLog) },
    SystemTable { name: "binlog", schema: None, rows: Rows::View(View::Binlog) },
    SystemTable { name: "ro", schema: None, rows: Rows::View(View::ReadOptimized) },
    SystemTable { name: "row_tracking", schema: None, rows: Rows::View(View::RowTracking) },
];

/// All names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|table| table.name)
}

/// Whether there is a system table of that (lower case) name.
pub(crate) fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// The system table `name` of `table`.
pub(crate) async fn provider(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    name: &str,
    selection: &Selection,
) -> Result<Arc<dyn TableProvider>> {
    let Some(system) = ALL.iter().find(|system| system.name == name) else {
        return Err(Error::internal(format!("there is no system table {name}")));
    };
    let (load, live, marked) = match &system.rows {
        Rows::View(view) => return changes::provider(statement, table, *view, selection).await,
        Rows::Live(load) => (*load, true, false),
        Rows::Marked(load) => (*load, true, true),
        Rows::Pinned(load) => (*load, false, false),
    };
    if live && selection.chooses() {
        return Err(always_now(table, system.name));
    }
    let pin = if live { None } else { Some(statement.pin(table, selection).await?) };
    if live && !marked {
        for pinned in statement.settings().pinned(table.ident(), false) {
            let table = format!("{}${name}", table.name());
            statement.notice(NoticeKind::OfNow { table, pinned: pinned.snapshot.map(|snapshot| snapshot.id.0) });
        }
    }
    let mut source = source(statement, table, pin);
    if marked {
        source.pinned = statement.settings().pinned(table.ident(), name == "branches");
    }
    let schema = system.schema.map(|schema| schema()).ok_or_else(|| Error::internal("a system table has no schema"))?;
    let schema = with_mark(schema, !source.pinned.is_empty());
    let shown = format!("{}${}", table.name(), system.name);
    Ok(LazyTable::provider(shown, schema, move || {
        let source = source.clone();
        Box::pin(async move { load(source.clone()).await.map_err(|error| source.named(error)) })
    }))
}

/// The error for a past state of a table that tells about all of them, or about what is in force for all.
fn always_now(table: &Table, name: &str) -> Error {
    let hint = match name {
        "options" => {
            "reads of any snapshot follow the options of now; older ones: SELECT schema_id, options FROM t$schemas"
        }
        "snapshots" | "commit_files" | "retention" => "filter its rows: WHERE snapshot_id <= 3",
        "commits" => "filter its rows: WHERE first_snapshot <= 3",
        "schemas" => "filter its rows: WHERE schema_id = 0; DESCRIBE t VERSION AS OF 3 shows the columns of a snapshot",
        _ => "leave the clause out, and filter its rows with WHERE",
    };
    Error::invalid(format!("{}${name} is always of now and cannot travel in time", table.name()))
        .with_code("CannotTravel")
        .with_context("table", table.name())
        .with_hint(hint)
}

/// What rows are made from.
fn source(statement: &Arc<Statement>, table: &Arc<Table>, pin: Option<Arc<Pin>>) -> Source {
    Source {
        table: Arc::clone(table),
        pin,
        zone: *statement.zone(),
        env: Arc::clone(statement.env()),
        pinned: Vec::new(),
        pool: statement.memory_pool(),
        statement: Arc::downgrade(statement),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_table_is_listed_once() {
        let mut all: Vec<&str> = names().collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(is_known("snapshots") && !is_known("nothing"));
    }
}
