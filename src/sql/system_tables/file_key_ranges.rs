//! `t$file_key_ranges`: the live files with their key ranges, without the cost of value statistics.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use super::entries::{self, Texts};
use super::files::format;
use crate::error::Result;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("partition", Kind::Text, false),
        ("bucket", Kind::Int, true),
        ("file_path", Kind::Text, true),
        ("file_format", Kind::Text, true),
        ("schema_id", Kind::Long, true),
        ("level", Kind::Int, true),
        ("record_count", Kind::Long, true),
        ("file_size_in_bytes", Kind::Long, true),
        ("min_key", Kind::Text, false),
        ("max_key", Kind::Text, false),
        ("first_row_id", Kind::Long, false),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let live = entries::live(source.pin()?).await?;
    let texts = Texts::of(&source, &live).await?;
    let mut rows = Vec::with_capacity(live.len());
    for entry in &live {
        let file = &entry.file;
        rows.push(vec![
            Cell::text(texts.partition(&entry.partition)?),
            Cell::Int(entry.bucket.0),
            Cell::text(texts.path(entry)?),
            Cell::text(format(&file.file_name)),
            Cell::Long(file.schema_id.0),
            Cell::Int(file.level),
            Cell::Long(file.row_count),
            Cell::count(file.file_size),
            Cell::opt_text(texts.key(entry, &file.min_key)?),
            Cell::opt_text(texts.key(entry, &file.max_key)?),
            Cell::opt_long(file.first_row_id),
        ]);
    }
    cells::batch(&schema(), &rows)
}
