//! `t$file_key_ranges`: the files a batch read sees with their key ranges, without the cost of value statistics.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::{Source, files, listed};
use crate::error::Result;
use crate::spec::ManifestEntry;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[files::LEADING.as_slice(), &[("first_row_id", Kind::Long, false)]].concat())
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for listed in listed::seen(&source).await? {
        let row = |entry: &ManifestEntry| {
            let mut row = files::leading(&listed.texts, entry)?;
            row.push(Cell::opt_long(entry.file.first_row_id));
            Ok(row)
        };
        rows.extend(listed.source.rows_of(&listed.files, row).await?);
    }
    cells::batch(&schema(), &rows)
}
