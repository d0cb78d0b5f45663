//! `t$branches`: branches and when their folder was last touched, as Paimon tells it.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use crate::error::Result;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[("branch_name", Kind::Text, true), ("create_time", Kind::Time, true)])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let table = &source.table;
    let mut names = table.branches().await?;
    names.sort();
    let mut rows = Vec::new();
    for name in names {
        let folder = table.root().join(&format!("branch/branch-{name}"))?;
        let created = match table.storage().folder_modified_millis(&folder).await? {
            Some(touched) => touched,
            // object stores have no folders: the oldest document of the branch tells when it was made
            None => {
                let files = table.storage().list(&folder.join("schema")?).await?;
                files.iter().map(|f| f.modified_millis).min().unwrap_or_default()
            }
        };
        let mut row = vec![Cell::text(&name), Cell::Time(source.wall_clock(created))];
        source.mark(&mut row, |pin| pin.branch == name);
        rows.push(row);
    }
    source.marked(schema(), &rows)
}
