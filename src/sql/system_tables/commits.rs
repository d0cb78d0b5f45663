//! `t$commits`: a row for each run, the snapshots that one user published in a row under one identifier. Of now, as
//! `t$snapshots`: under a pin the late commit that is looked for must not be hidden.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::recon::commits::{CommitRun, commits};
use crate::recon::history::History;
use crate::spec::{CommitKind, SnapshotId};
use crate::sql::cells::{self, Cell, Kind};

/// Partitions and buckets that are named.
const UNITS: usize = 20;

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("commit_user", Kind::Text, true),
        ("commit_identifier", Kind::Long, true),
        ("first_snapshot", Kind::Long, true),
        ("last_snapshot", Kind::Long, true),
        ("append_snapshots", Kind::Text, false),
        ("compact_snapshots", Kind::Text, false),
        ("overwrite_snapshots", Kind::Text, false),
        ("analyze_snapshots", Kind::Text, false),
        ("first_time", Kind::Time, true),
        ("last_time", Kind::Time, true),
        ("gap_ms", Kind::Long, false),
        ("watermark_before", Kind::Long, false),
        ("watermark_after", Kind::Long, false),
        ("files_added", Kind::Long, true),
        ("rows_added", Kind::Long, true),
        ("files_deleted", Kind::Long, true),
        ("rows_deleted", Kind::Long, true),
        ("files_upgraded", Kind::Long, true),
        ("append_rows", Kind::Long, true),
        ("overwrite_rows", Kind::Long, true),
        ("compact_rows", Kind::Long, true),
        ("units", Kind::Long, true),
        ("unit_names", Kind::Text, false),
        ("committer_instances", Kind::Text, false),
        ("is_empty", Kind::Bool, false),
        ("kept_as", Kind::Text, true),
        ("unread", Kind::Text, false),
    ])
}

/// `3, 5` of numbers; NULL of none.
pub(crate) fn ids(ids: &[SnapshotId]) -> Cell {
    let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
    if texts.is_empty() { Cell::Null } else { Cell::Text(texts.join(", ")) }
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let history = History::load(&source.newest().await?, &source.env).await?;
    let runs = commits(&history, &history.texts(&source.zone).await?).await?;
    let rows: Vec<Vec<Cell>> = runs.iter().map(|run| row(run, &source)).collect();
    source.marked(schema(), &rows)
}

fn row(run: &CommitRun, source: &Source) -> Vec<Cell> {
    let total = run.total();
    let time = |millis: Option<i64>| millis.map_or(Cell::Null, |millis| Cell::Time(source.wall_clock(millis)));
    let (first, last) = (run.snapshots.first(), run.snapshots.last());
    let mut names: Vec<&str> = run.units.iter().take(UNITS).map(String::as_str).collect();
    if run.units.len() > UNITS {
        names.push("…");
    }
    let list = |texts: Vec<&str>| if texts.is_empty() { Cell::Null } else { Cell::Text(texts.join("; ")) };
    let mut row = vec![
        Cell::text(&run.user),
        Cell::Long(run.identifier),
        Cell::opt_long(run.first().map(|id| id.0)),
        Cell::opt_long(run.last().map(|id| id.0)),
        ids(&run.ids(CommitKind::Append)),
        ids(&run.ids(CommitKind::Compact)),
        ids(&run.ids(CommitKind::Overwrite)),
        ids(&run.ids(CommitKind::Analyze)),
        time(first.map(|snapshot| snapshot.time_millis)),
        time(last.map(|snapshot| snapshot.time_millis)),
        Cell::opt_long(run.gap_millis),
        Cell::opt_long(run.watermark_before),
        Cell::opt_long(last.and_then(|snapshot| snapshot.watermark)),
        Cell::count(total.added),
        Cell::Long(total.added_rows),
        Cell::count(total.deleted),
        Cell::Long(total.deleted_rows),
        Cell::count(total.upgraded),
        Cell::Long(run.of(CommitKind::Append).added_rows),
        Cell::Long(run.of(CommitKind::Overwrite).added_rows),
        Cell::Long(run.of(CommitKind::Compact).added_rows),
        Cell::count(run.units.len() as u64),
        list(names),
        list(run.instances.iter().map(String::as_str).collect()),
        run.is_empty().map_or(Cell::Null, Cell::Bool),
        Cell::text(format!("{}{}", run.kept, run.standing.mark())),
        Cell::opt_text(run.unread.as_deref()),
    ];
    source.mark(&mut row, |pin| {
        pin.snapshot.as_ref().is_some_and(|pinned| run.snapshots.iter().any(|snapshot| pinned.is_of(snapshot)))
    });
    row
}
