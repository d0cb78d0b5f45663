//! `paimon_anomalies('db.t' [, deep => true])`: what is wrong in a table's history.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::made::{Asked, Made};
use crate::error::Result;
use crate::memory::MemoryBudget;
use crate::recon::anomalies::{anomalies, deep, sort};
use crate::sql::cells::{self, Cell, Kind};
use crate::sql::system_tables::commits::ids;

pub(super) const ANOMALIES: Made = Made {
    name: "paimon_anomalies",
    parameters: &["table", "deep"],
    usage: "paimon_anomalies('db.t', deep => true); deep: data files are read, too",
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

async fn rows(asked: &Asked) -> Result<RecordBatch> {
    let history = asked.history().await?;
    let mut found = anomalies(&history, &asked.source.zone).await?;
    if asked.call.is_true("deep") {
        let budget: Arc<dyn MemoryBudget> = asked.source.budget();
        found.extend(deep(&history, &asked.source.zone, &budget).await?);
        sort(&mut found);
    }
    let rows: Vec<Vec<Cell>> = found
        .into_iter()
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
