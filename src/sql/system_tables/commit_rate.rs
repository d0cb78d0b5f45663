//! `t$commit_rate`: commits by minute and user. `paimon_commit_rate('t', window => INTERVAL '1' HOUR)` counts by other
//! stretches.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::recon::commits::{commit_rates, commits};
use crate::recon::history::History;
use crate::sql::cells::{self, Cell, Kind};

/// A minute.
pub(crate) const WINDOW_MILLIS: i64 = 60_000;

pub(crate) fn schema() -> SchemaRef {
    cells::schema(&[
        ("window_start", Kind::Time, true),
        ("commit_user", Kind::Text, true),
        ("commits", Kind::Long, true),
        ("snapshots", Kind::Long, true),
        ("empty_commits", Kind::Long, true),
        ("median_gap_ms", Kind::Long, false),
        ("p95_gap_ms", Kind::Long, false),
        ("rows_added", Kind::Long, true),
        ("rows_per_commit", Kind::Long, false),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let history = History::load(&source.newest().await?, &source.env).await?;
    by_window(&source, &history, WINDOW_MILLIS).await
}

/// The rates by stretches of so many milliseconds.
pub(crate) async fn by_window(source: &Source, history: &History, window_millis: i64) -> Result<RecordBatch> {
    let runs = commits(history, &history.texts(&source.zone).await?).await?;
    let rows: Vec<Vec<Cell>> = commit_rates(&runs, window_millis)
        .into_iter()
        .map(|rate| {
            let commits = i64::try_from(rate.commits).unwrap_or(i64::MAX);
            vec![
                Cell::Time(source.wall_clock(rate.start_millis)),
                Cell::text(rate.user),
                Cell::count(rate.commits),
                Cell::count(rate.snapshots),
                Cell::count(rate.empty),
                Cell::opt_long(rate.median_gap_millis),
                Cell::opt_long(rate.p95_gap_millis),
                Cell::Long(rate.rows_added),
                Cell::opt_long(rate.rows_added.checked_div(commits)),
            ]
        })
        .collect();
    cells::batch(&schema(), &rows)
}
