//! `t$file_key_ranges`: the live files with their key ranges, without the cost of value statistics.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::entries::Texts;
use super::{Source, files};
use crate::error::Result;
use crate::scan::live_files;
use crate::spec::ManifestEntry;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[files::LEADING.as_slice(), &[("first_row_id", Kind::Long, false)]].concat())
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let live = live_files(source.pin()?, &source.env.scan).await?;
    let texts = Texts::of(&source, &live).await?;
    let row = |entry: &ManifestEntry| {
        let mut row = files::leading(&texts, entry)?;
        row.push(Cell::opt_long(entry.file.first_row_id));
        Ok(row)
    };
    let rows = source.rows_of(&live, row).await?;
    cells::batch(&schema(), &rows)
}
