//! `paimon_lookup_commit('db.t', 'user', identifier [, since => 90])`: whether a commit landed.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::made::{Asked, Made};
use crate::error::Result;
use crate::recon::lookup::lookup;
use crate::spec::SnapshotId;
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::system_tables::commits::ids;

pub(super) const LOOKUP_COMMIT: Made = Made {
    name: "paimon_lookup_commit",
    parameters: &["table", "user", "identifier", "since", "at"],
    aliases: &[],
    usage: "paimon_lookup_commit('db.t', 'user', 1, since => 90, at => 105); since: a snapshot that was there before the \
            commit; at: the last one that is looked at",
    schema: checked,
    rows: |asked| Box::pin(async move { rows(&asked).await }),
};

fn checked(asked: &Asked) -> Result<SchemaRef> {
    if asked.call.text("user").is_none_or(str::is_empty) {
        return Err(asked.call.wrong("the user is missing"));
    }
    if asked.call.number("identifier").is_none() {
        return Err(asked.call.wrong("the identifier is missing: a number, or 'batch'"));
    }
    Ok(schema())
}

fn schema() -> SchemaRef {
    cells::schema(&[
        ("status", Kind::Text, true),
        ("snapshots", Kind::Text, false),
        ("source", Kind::Text, false),
        ("confidence", Kind::Text, true),
        ("reason", Kind::Text, true),
        ("as_of_snapshot", Kind::Long, false),
    ])
}

async fn rows(asked: &Asked) -> Result<RecordBatch> {
    let (user, identifier) = (asked.call.text("user").unwrap_or_default(), asked.call.number("identifier"));
    let since = asked.call.number("since").map(SnapshotId);
    let history = asked.history_at().await?;
    let found = lookup(&history, user, identifier.unwrap_or_default(), since, &asked.source.zone);
    let row = vec![
        Cell::text(found.status.as_str()),
        ids(&found.snapshots),
        Cell::opt_text(found.source),
        Cell::text(found.confidence.as_str()),
        Cell::text(found.reason),
        Cell::opt_long(found.as_of.map(|id| id.0)),
    ];
    cells::batch(&schema(), &[row])
}
