//! `t$retention`: until about when each kept snapshot is there, and what protects it. Of now; marked is the pinned one.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::recon::retention::{Hold, Reason, of_table};
use crate::sql::cells::{self, Cell, Kind};
use crate::storage::env::now_millis;

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("snapshot_id", Kind::Long, true),
        ("commit_time", Kind::Time, true),
        ("commit_user", Kind::Text, true),
        ("commit_identifier", Kind::Long, true),
        ("expires_about", Kind::Time, false),
        ("reason", Kind::Text, false),
        ("protected_by", Kind::Text, false),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let found = of_table(&source.table, &source.zone, now_millis()).await?;
    let list = |texts: Vec<String>, between: &str| (!texts.is_empty()).then(|| texts.join(between));
    let rows: Vec<Vec<Cell>> = found
        .iter()
        .map(|(snapshot, forecast)| {
            let mut row = vec![
                Cell::Long(snapshot.id.0),
                Cell::Time(source.wall_clock(snapshot.time_millis)),
                Cell::text(&snapshot.commit_user),
                Cell::Long(snapshot.commit_identifier),
                forecast.expires_about.map_or(Cell::Null, |time| Cell::Time(source.wall_clock(time))),
                Cell::opt_text(list(forecast.reasons.iter().map(Reason::to_string).collect(), "; ")),
                Cell::opt_text(list(forecast.retained_by.iter().map(Hold::to_string).collect(), ", ")),
            ];
            source.mark(&mut row, |pin| pin.snapshot.as_ref().is_some_and(|pinned| pinned.is_of(snapshot)));
            row
        })
        .collect();
    source.marked(schema(), &rows)
}
