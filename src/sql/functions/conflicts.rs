//! `paimon_conflicts('db.t', snapshot => 102)`, `paimon_conflicts('db.t', since => …, until => …)`: which commits met,
//! and what that means.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::made::{Asked, Made};
use crate::error::Result;
use crate::memory::MemoryBudget;
use crate::notice::NoticeKind;
use crate::recon::conflicts::{Around, Conflict, Met, add_keys, add_reads, conflicts};
use crate::recon::lookup::Confidence;
use crate::spec::{Snapshot, SnapshotId};
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::system_tables::Source;

pub(super) const CONFLICTS: Made = Made {
    name: "paimon_conflicts",
    parameters: &["table", "snapshot", "from_time", "to_time", "at", "deep"],
    aliases: &[("since", "from_time"), ("until", "to_time")],
    usage: "paimon_conflicts('db.t', snapshot => 102), or since => TIMESTAMP '…', until => TIMESTAMP '…'; at => 105: as of \
            that snapshot; deep => true: rows are read for the keys that both wrote",
    schema: checked,
    rows: |asked| Box::pin(async move { rows(&asked).await }),
};

fn checked(asked: &Asked) -> Result<SchemaRef> {
    let times = asked.call.number("from_time").is_some() || asked.call.number("to_time").is_some();
    if times && asked.call.number("snapshot").is_some() {
        return Err(asked.call.wrong("a snapshot and a stretch of time exclude each other"));
    }
    Ok(schema())
}

fn schema() -> SchemaRef {
    cells::schema(&[
        ("snapshot_id", Kind::Long, true),
        ("commit_user", Kind::Text, true),
        ("commit_identifier", Kind::Long, true),
        ("commit_kind", Kind::Text, true),
        ("commit_time", Kind::Time, true),
        ("opponent_snapshot_id", Kind::Long, true),
        ("opponent_user", Kind::Text, true),
        ("opponent_identifier", Kind::Long, true),
        ("opponent_kind", Kind::Text, true),
        ("opponent_time", Kind::Time, true),
        ("relation", Kind::Text, true),
        ("first_base", Kind::Long, true),
        ("first_base_confidence", Kind::Text, true),
        ("final_base", Kind::Long, true),
        ("final_base_confidence", Kind::Text, true),
        ("latest", Kind::Long, true),
        ("latest_confidence", Kind::Text, true),
        ("sides_confidence", Kind::Text, true),
        ("attempts", Kind::Long, false),
        ("attempts_confidence", Kind::Text, false),
        ("units_common", Kind::Text, true),
        ("units_confidence", Kind::Text, true),
        ("files_added", Kind::Long, true),
        ("files_deleted", Kind::Long, true),
        ("opponent_files_added", Kind::Long, true),
        ("opponent_files_deleted", Kind::Long, true),
        ("sequences", Kind::Text, false),
        ("opponent_sequences", Kind::Text, false),
        ("sequence_inverted", Kind::Bool, true),
        ("common_keys", Kind::Long, false),
        ("differing_keys", Kind::Long, false),
        ("recon_reads", Kind::Text, false),
        ("reads_confidence", Kind::Text, false),
        ("verdict", Kind::Text, true),
        ("confidence", Kind::Text, true),
    ])
}

async fn rows(asked: &Asked) -> Result<RecordBatch> {
    let around = match asked.call.number("snapshot") {
        Some(id) => Around::Snapshot(SnapshotId(id)),
        None => Around::Times(
            asked.call.number("from_time").unwrap_or(i64::MIN),
            asked.call.number("to_time").unwrap_or(i64::MAX),
        ),
    };
    let history = asked.history_at().await?;
    let Met { mut pairs, unpublished } = conflicts(&history, around, &asked.source.zone).await?;
    if asked.call.is_true("deep") {
        let budget: Arc<dyn MemoryBudget> = asked.source.budget();
        add_keys(&mut pairs, &history, &asked.source.zone, &budget).await?;
    }
    let table = asked.source.table.name();
    asked.source.notice(NoticeKind::RejectedCommits { table, lists: unpublished });
    if let Some(kept) = asked.source.journal()? {
        add_reads(&mut pairs, &asked.source.table, &kept.readings);
    }
    let rows: Vec<Vec<Cell>> = pairs.iter().map(|conflict| row(conflict, &asked.source)).collect();
    cells::batch(&schema(), &rows)
}

fn row(conflict: &Conflict, source: &Source) -> Vec<Cell> {
    let side = |snapshot: &Snapshot| {
        [
            Cell::Long(snapshot.id.0),
            Cell::text(&snapshot.commit_user),
            Cell::Long(snapshot.commit_identifier),
            Cell::text(snapshot.commit_kind.as_str()),
            Cell::Time(source.wall_clock(snapshot.time_millis)),
        ]
    };
    let range = |range: Option<(i64, i64)>| Cell::opt_text(range.map(|(low, high)| format!("{low}..{high}")));
    let units: Vec<&str> = conflict.units.iter().map(String::as_str).collect();
    let mut row: Vec<Cell> = side(&conflict.commit).into_iter().chain(side(&conflict.opponent)).collect();
    row.extend([
        Cell::text(conflict.relation.as_str()),
        Cell::Long(conflict.first_base.0.0),
        Cell::text(conflict.first_base.1.as_str()),
        Cell::Long(conflict.final_base.0),
        Cell::text(Confidence::Exact.as_str()),
        Cell::Long(conflict.latest.0),
        Cell::text(Confidence::Inferred.as_str()),
        Cell::text(Confidence::Exact.as_str()),
        conflict.attempts.map_or(Cell::Null, Cell::count),
        Cell::opt_text(conflict.attempts.map(|_| Confidence::Inferred.as_str())),
        Cell::text(units.join("; ")),
        Cell::text(Confidence::Exact.as_str()),
        Cell::count(conflict.by_commit.added),
        Cell::count(conflict.by_commit.deleted),
        Cell::count(conflict.by_opponent.added),
        Cell::count(conflict.by_opponent.deleted),
        range(conflict.by_commit.sequences),
        range(conflict.by_opponent.sequences),
        Cell::Bool(conflict.inverted),
        conflict.keys.map_or(Cell::Null, |keys| Cell::count(keys.common)),
        conflict.keys.map_or(Cell::Null, |keys| Cell::count(keys.differing)),
        reads(conflict, source),
        Cell::opt_text((!conflict.reads.is_empty()).then(|| Confidence::Exact.as_str())),
        Cell::text(conflict.verdict.as_str()),
        Cell::text(conflict.confidence.as_str()),
    ]);
    row
}

/// Readings that are named.
const READS: usize = 20;

fn reads(conflict: &Conflict, source: &Source) -> Cell {
    let mut texts: Vec<String> = conflict
        .reads
        .iter()
        .take(READS)
        .map(|read| {
            let time = source.zone.show(read.time_millis);
            format!("{} of session {} at {time} read snapshot {}", read.statement, read.session, read.snapshot)
        })
        .collect();
    if conflict.reads.len() > READS {
        texts.push("…".to_string());
    }
    if texts.is_empty() { Cell::Null } else { Cell::Text(texts.join("; ")) }
}
