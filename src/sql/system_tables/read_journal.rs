//! `recon.read_journal`: a row for each table that a statement read, of all sessions that keep the same journal.

use std::sync::{Arc, Weak};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;

use crate::error::{Error, Result};
use crate::notice::NoticeKind;
use crate::recon::journal::{ReadState, Reading};
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::memory::LazyTable;
use crate::sql::statement::Statement;

/// Whether that is its name.
pub(crate) fn is_journal(database: &str, name: &str) -> bool {
    (database, name) == ("recon", "read_journal")
}

fn schema() -> SchemaRef {
    cells::schema(&[
        ("time", Kind::Time, true),
        ("session", Kind::Text, true),
        ("statement", Kind::Text, true),
        ("outcome", Kind::Text, true),
        ("duration_ms", Kind::Long, true),
        ("rows", Kind::Long, true),
        ("table_name", Kind::Text, false),
        ("branch", Kind::Text, false),
        ("snapshot_id", Kind::Long, false),
        ("snapshot_uuid", Kind::Text, false),
        ("commit_user", Kind::Text, false),
        ("commit_identifier", Kind::Long, false),
        ("commit_kind", Kind::Text, false),
        ("commit_time", Kind::Time, false),
        ("watermark", Kind::Long, false),
        ("schema_id", Kind::Long, false),
        ("location", Kind::Text, false),
    ])
}

pub(crate) fn provider(statement: &Arc<Statement>) -> Result<Arc<dyn TableProvider>> {
    // the statement keeps its providers, so a provider must not keep the statement
    let statement: Weak<Statement> = Arc::downgrade(statement);
    Ok(LazyTable::provider("recon.read_journal".to_string(), schema(), move || {
        let statement = statement.upgrade();
        Box::pin(async move {
            let statement = statement.ok_or_else(|| Error::internal("a system table outlived its statement"))?;
            rows(&statement)
        })
    }))
}

fn rows(statement: &Statement) -> Result<RecordBatch> {
    let Some(journal) = statement.settings().journal.read().clone() else {
        return Err(Error::invalid("this session keeps no journal of what it reads")
            .with_code("NoJournal")
            .with_hint("in the shell set LAKEPIN_JOURNAL to a file; in a service set SessionConfig::journal"));
    };
    let kept = journal.read()?;
    if kept.unread > 0 || kept.cut {
        statement.notice(NoticeKind::JournalCut { unread: kept.unread, cut: kept.cut });
    }
    let zone = statement.zone();
    let wall = |millis: i64| Cell::Time(millis.saturating_add(i64::from(zone.offset_seconds(millis)) * 1_000));
    let row = |reading: &Reading, state: Option<&ReadState>| {
        let snapshot = state.and_then(|state| state.snapshot.as_ref());
        vec![
            wall(reading.time_millis),
            Cell::text(&reading.session),
            Cell::text(&reading.statement),
            Cell::text(&reading.outcome),
            Cell::count(reading.duration_millis),
            Cell::count(reading.rows),
            Cell::opt_text(state.map(|state| state.table.as_str())),
            Cell::opt_text(state.map(|state| state.branch.as_str())),
            Cell::opt_long(snapshot.map(|of| of.id)),
            Cell::opt_text(snapshot.and_then(|of| of.uuid.as_deref())),
            Cell::opt_text(snapshot.map(|of| of.user.as_str())),
            Cell::opt_long(snapshot.map(|of| of.identifier)),
            Cell::opt_text(snapshot.map(|of| of.kind.as_str())),
            snapshot.map_or(Cell::Null, |of| wall(of.time_millis)),
            Cell::opt_long(snapshot.and_then(|of| of.watermark)),
            Cell::opt_long(snapshot.map(|of| of.schema_id)),
            Cell::opt_text(state.map(|state| state.location.as_str())),
        ]
    };
    let mut all = Vec::new();
    for reading in &kept.readings {
        if reading.tables.is_empty() {
            all.push(row(reading, None));
        }
        all.extend(reading.tables.iter().map(|state| row(reading, Some(state))));
    }
    cells::batch(&schema(), &all)
}
