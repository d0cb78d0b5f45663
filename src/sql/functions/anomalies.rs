//! `paimon_anomalies('db.t' [, from => 90, to => 120] [, deep => true])`: what is wrong in a table's history.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::key_history::snapshot_of;
use super::made::{Asked, Made};
use crate::error::Result;
use crate::memory::MemoryBudget;
use crate::recon::anomalies::{SnapshotRange, anomalies, deep, sort};
use crate::snapshot::PinRequest;
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::system_tables::commits::ids;

pub(super) const ANOMALIES: Made = Made {
    name: "paimon_anomalies",
    parameters: &["table", "from", "to", "deep"],
    aliases: &[("at", "to")],
    usage: "paimon_anomalies('db.t', from => 90, to => 120, deep => true); deep: data files are read, too; what is about \
            no snapshot is told of every range",
    schema: |_| Ok(schema()),
    rows: |asked| Box::pin(async move { rows(&asked).await }),
};

fn schema() -> SchemaRef {
    cells::schema(&[
        ("detector", Kind::Text, true),
        ("severity", Kind::Text, true),
        ("snapshots", Kind::Text, false),
        ("users", Kind::Text, false),
        ("unit", Kind::Text, false),
        ("explanation", Kind::Text, true),
        ("evidence", Kind::Text, true),
        ("confidence", Kind::Text, true),
    ])
}

/// A number as it is given, since nothing but damage may be kept of it; else the snapshot that is meant.
async fn bound(asked: &Asked, name: &str, otherwise: i64) -> Result<i64> {
    match asked.call.version(name) {
        None => Ok(otherwise),
        Some(PinRequest::SnapshotId(id)) => Ok(*id),
        Some(request) => Ok(snapshot_of(asked, request).await?.id.0),
    }
}

async fn rows(asked: &Asked) -> Result<RecordBatch> {
    let range =
        SnapshotRange { first: bound(asked, "from", i64::MIN).await?, last: bound(asked, "to", i64::MAX).await? };
    if range.first > range.last {
        return Err(asked.call.wrong(format!("from {} to {} runs backwards", range.first, range.last)));
    }
    let history = asked.history().await?;
    let mut found = anomalies(&history, &asked.source.zone).await?;
    if asked.call.is_true("deep") {
        let budget: Arc<dyn MemoryBudget> = asked.source.budget();
        found.extend(deep(&history, range, &asked.source.zone, &budget).await?);
        sort(&mut found);
    }
    let rows: Vec<Vec<Cell>> = found
        .into_iter()
        .filter(|finding| range.concerns(finding))
        .map(|finding| {
            vec![
                Cell::text(finding.detector),
                Cell::text(finding.severity.as_str()),
                ids(&finding.snapshots),
                Cell::opt_text((!finding.users.is_empty()).then(|| finding.users.join(", "))),
                Cell::opt_text(finding.unit),
                Cell::text(finding.explanation),
                Cell::text(finding.evidence),
                Cell::text(finding.confidence.as_str()),
            ]
        })
        .collect();
    cells::batch(&schema(), &rows)
}
