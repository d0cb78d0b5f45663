//! `paimon_key_history('db.t', key => ('2026-04-16', 'P1001'))`: every version of a key that is kept.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_empty_array};
use arrow::compute::concat;
use arrow::datatypes::{Field, Schema, SchemaRef};

use super::made::{Asked, Made};
use crate::error::{Error, Result};
use crate::memory::MemoryBudget;
use crate::recon::keys::{Key, KeyHistory, KeyScope, Seen, Version};
use crate::snapshot::PinRequest;
use crate::spec::arrow_types::arrow_field;
use crate::spec::{RowKind, Snapshot, SnapshotId};
use crate::sql::cells::{self, Cell, Kind};

pub(super) const KEY_HISTORY: Made = Made {
    name: "paimon_key_history",
    parameters: &["table", "key", "from", "to", "include_uncommitted", "include_changelog"],
    aliases: &[("at", "to")],
    usage: "paimon_key_history('db.t', key => ('2026-04-16', 'P1001'), from => 90, to => 120, include_uncommitted => true, \
            include_changelog => true)",
    schema: checked,
    rows: |asked| Box::pin(async move { rows(&asked).await }),
};

/// What stands before the columns of the table.
const BEFORE: &[(&str, Kind, bool)] = &[
    ("version", Kind::Long, false),
    ("snapshot_id", Kind::Long, false),
    ("commit_kind", Kind::Text, false),
    ("commit_user", Kind::Text, false),
    ("commit_identifier", Kind::Long, false),
    ("commit_time", Kind::Time, false),
    ("file", Kind::Text, false),
    ("file_source", Kind::Text, false),
    ("level", Kind::Int, false),
    ("position", Kind::Long, false),
    ("sequence", Kind::Long, true),
    ("row_kind", Kind::Text, true),
];

/// What stands behind them.
const BEHIND: &[(&str, Kind, bool)] = &[
    ("origin_snapshot", Kind::Long, false),
    ("origin_confidence", Kind::Text, false),
    ("visible_from", Kind::Long, false),
    ("visible_to", Kind::Long, false),
    ("removed_by", Kind::Long, false),
    ("loses_to", Kind::Long, false),
    ("note", Kind::Text, false),
];

/// The key that a call asks for.
pub(super) fn key_of(asked: &Asked) -> Result<Key> {
    let values = asked.call.values("key").ok_or_else(|| asked.call.wrong("the key is missing"))?;
    Key::try_new(asked.source.pin()?, values)
}

fn checked(asked: &Asked) -> Result<SchemaRef> {
    key_of(asked)?;
    let pin = asked.source.pin()?;
    let fields = |columns: &[(&str, Kind, bool)]| cells::schema(columns).fields().to_vec();
    let own = pin.schema.fields.iter().map(|field| {
        let field = arrow_field(field);
        let taken = BEFORE.iter().chain(BEHIND).any(|(name, ..)| *name == field.name());
        // a column of the table that is called as one of ours
        let name = if taken { format!("value_{}", field.name()) } else { field.name().clone() };
        Arc::new(Field::new(name, field.data_type().clone(), true))
    });
    let all = fields(BEFORE).into_iter().chain(own).chain(fields(BEHIND));
    Ok(Arc::new(Schema::new(all.collect::<Vec<_>>())))
}

/// The snapshot that a version of a call means; without one that which a query of the table reads.
pub(super) async fn snapshot_of(asked: &Asked, request: &PinRequest) -> Result<Arc<Snapshot>> {
    let pin = asked.source.read_at(request).await?;
    pin.snapshot.clone().ok_or_else(|| {
        let table = asked.source.table.name();
        Error::not_found("the table has no snapshot").with_code("NoSnapshot").with_context("table", table)
    })
}

async fn rows(asked: &Asked) -> Result<RecordBatch> {
    let mut scope = KeyScope {
        uncommitted: asked.call.is_true("include_uncommitted"),
        changelog: asked.call.is_true("include_changelog"),
        ..KeyScope::default()
    };
    if let Some(request) = asked.call.version("from") {
        scope.from = snapshot_of(asked, request).await?.id.0;
    }
    if let Some(request) = asked.call.version("to") {
        scope.to = snapshot_of(asked, request).await?.id.0;
    }
    if scope.from > scope.to {
        return Err(asked.call.wrong(format!("from {} to {} runs backwards", scope.from, scope.to)));
    }
    let key = key_of(asked)?;
    let history = asked.history().await?;
    let budget: Arc<dyn MemoryBudget> = asked.source.budget();
    let past = KeyHistory::load(&history, &key, scope, &budget, &asked.source.zone).await?;
    for limit in &past.limits {
        asked.source.notice(limit.clone());
    }
    let schema = checked(asked)?;
    let width = asked.source.pin()?.schema.fields.len();
    let mut lines = Vec::new();
    for (number, version) in past.versions.iter().enumerate() {
        if in_scope(version, scope) {
            lines.push(Line::of_version(asked, &past, number, version));
        }
    }
    for span in &past.spans {
        if let Seen::Folded { of, row, retract } = &span.seen {
            lines.push(Line::of_fold(&past, span.from, span.to, of, row, *retract));
        }
    }
    batch(&schema, width, &lines)
}

/// Whether a version was there in some state of a range.
fn in_scope(version: &Version, scope: KeyScope) -> bool {
    let id = |snapshot: &Option<Arc<Snapshot>>| snapshot.as_ref().map(|snapshot| snapshot.id.0);
    id(&version.added).is_none_or(|added| added <= scope.to)
        && id(&version.removed).is_none_or(|gone| gone >= scope.from)
}

/// A row of the result.
struct Line {
    before: Vec<Cell>,
    row: RecordBatch,
    behind: Vec<Cell>,
}

fn long(number: usize) -> Cell {
    Cell::Long(i64::try_from(number).unwrap_or(i64::MAX))
}

fn id(id: Option<SnapshotId>) -> Cell {
    Cell::opt_long(id.map(|id| id.0))
}

impl Line {
    fn of_version(asked: &Asked, past: &KeyHistory, number: usize, version: &Version) -> Self {
        let added = version.added.as_deref();
        let visible = past.visible(number);
        Self {
            before: vec![
                long(number + 1),
                id(added.map(|snapshot| snapshot.id)),
                Cell::opt_text(added.map(|snapshot| snapshot.commit_kind.as_str())),
                Cell::opt_text(added.map(|snapshot| snapshot.commit_user.as_str())),
                Cell::opt_long(added.map(|snapshot| snapshot.commit_identifier)),
                added.map_or(Cell::Null, |snapshot| Cell::Time(asked.source.wall_clock(snapshot.time_millis))),
                Cell::text(&version.file),
                Cell::opt_text(version.written.as_str()),
                Cell::Int(version.level),
                Cell::Long(i64::try_from(version.position).unwrap_or(i64::MAX)),
                Cell::Long(version.sequence),
                Cell::text(version.kind.as_str()),
            ],
            row: version.row.clone(),
            behind: vec![
                id(version.origin.snapshot),
                Cell::text(version.origin.certainty.as_str()),
                id(visible.map(|(from, _)| from)),
                id(visible.and_then(|(_, to)| to)),
                id(version.removed.as_ref().map(|snapshot| snapshot.id)),
                version.loses_to().map_or(Cell::Null, |winner| long(winner + 1)),
                Cell::opt_text((!version.notes.is_empty()).then(|| version.notes.join("; "))),
            ],
        }
    }

    /// What readers got of several versions at once.
    fn of_fold(
        past: &KeyHistory,
        from: SnapshotId,
        to: Option<SnapshotId>,
        of: &[usize],
        row: &RecordBatch,
        retract: bool,
    ) -> Self {
        let numbers: Vec<String> = of.iter().map(|number| (number + 1).to_string()).collect();
        let sequence = of.iter().filter_map(|number| past.versions.get(*number)).map(|v| v.sequence).max();
        let kind = if retract { RowKind::Delete } else { RowKind::Insert };
        let mut before = vec![Cell::Null; BEFORE.len()];
        if let [.., sequences, kinds] = before.as_mut_slice() {
            *sequences = Cell::Long(sequence.unwrap_or_default());
            *kinds = Cell::text(kind.as_str());
        }
        let visible = |at: Option<SnapshotId>| if retract { Cell::Null } else { id(at) };
        let what = if retract { "nothing is left of" } else { "what readers get: folded of" };
        let note = format!("{what} versions {} from {from}", numbers.join(", "));
        let behind =
            vec![Cell::Null, Cell::Null, visible(Some(from)), visible(to), Cell::Null, Cell::Null, Cell::text(note)];
        Self { before, row: row.clone(), behind }
    }
}

fn batch(schema: &SchemaRef, width: usize, lines: &[Line]) -> Result<RecordBatch> {
    let cells = |columns: &[(&str, Kind, bool)], of: fn(&Line) -> &Vec<Cell>| {
        let rows: Vec<Vec<Cell>> = lines.iter().map(|line| of(line).clone()).collect();
        cells::batch(&cells::schema(columns), &rows)
    };
    let mut columns: Vec<ArrayRef> = cells(BEFORE, |line| &line.before)?.columns().to_vec();
    for at in 0..width {
        let parts: Vec<&dyn arrow::array::Array> =
            lines.iter().filter_map(|line| line.row.columns().get(at)).map(|column| column.as_ref()).collect();
        let field = schema.fields().get(BEFORE.len() + at);
        let field = field.ok_or_else(|| Error::internal("a history of fewer columns than its table"))?;
        columns.push(if parts.is_empty() { new_empty_array(field.data_type()) } else { concat(&parts)? });
    }
    columns.extend(cells(BEHIND, |line| &line.behind)?.columns().iter().cloned());
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
