//! `t$files`: the live data files of the pinned snapshot that a batch read sees. Those of a level or bucket that reads skip
//! by design are not among them, as in Java; `t$partitions` counts them and `EXPLAIN FILES` names them.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::{Source, listed};
use crate::error::Result;
use crate::recon::entry_texts::EntryTexts;
use crate::spec::{FileSource, ManifestEntry};
use crate::sql::cells::{self, Cell, Kind};

/// Columns that `t$files` and `t$file_key_ranges` begin with.
pub(super) const LEADING: [(&str, Kind, bool); 10] = [
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
];

/// The cells of those columns.
pub(super) fn leading(texts: &EntryTexts, entry: &ManifestEntry) -> Result<Vec<Cell>> {
    let file = &entry.file;
    Ok(vec![
        Cell::text(texts.partition_in_braces(&entry.partition)?),
        Cell::Int(entry.bucket.0),
        Cell::text(texts.path(entry)?),
        Cell::text(format(&file.file_name)),
        Cell::Long(file.schema_id.0),
        Cell::Int(file.level),
        Cell::Long(file.row_count),
        Cell::count(file.file_size),
        Cell::opt_text(texts.key(entry, &file.min_key)?),
        Cell::opt_text(texts.key(entry, &file.max_key)?),
    ])
}

pub(super) fn schema() -> SchemaRef {
    let own = [
        ("null_value_counts", Kind::Text, true),
        ("min_value_stats", Kind::Text, true),
        ("max_value_stats", Kind::Text, true),
        ("min_sequence_number", Kind::Long, false),
        ("max_sequence_number", Kind::Long, false),
        ("creation_time", Kind::Time, false),
        ("deleteRowCount", Kind::Long, false),
        ("file_source", Kind::Text, false),
        ("first_row_id", Kind::Long, false),
        ("write_cols", Kind::Texts, false),
    ];
    cells::schema(&[LEADING.as_slice(), &own].concat())
}

/// The extension that says how a file is encoded, compression suffix left out.
fn format(name: &str) -> &str {
    let known = |part: &&str| matches!(*part, "parquet" | "orc" | "avro" | "blob" | "vector");
    name.split('.').skip(1).find(known).unwrap_or_else(|| name.rsplit('.').next().unwrap_or_default())
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for listed in listed::seen(&source).await? {
        rows.extend(listed.source.rows_of(&listed.files, |entry| row(&listed.texts, entry)).await?);
    }
    cells::batch(&schema(), &rows)
}

fn row(texts: &EntryTexts, entry: &ManifestEntry) -> Result<Vec<Cell>> {
    let file = &entry.file;
    let [nulls, min, max] = texts.stats(entry)?;
    let mut row = leading(texts, entry)?;
    row.extend([
        Cell::text(nulls),
        Cell::text(min),
        Cell::text(max),
        Cell::Long(file.min_sequence_number),
        Cell::Long(file.max_sequence_number),
        file.creation_time_millis.map_or(Cell::Null, Cell::Time),
        Cell::opt_long(file.delete_row_count),
        Cell::opt_text(file.file_source.map(FileSource::as_str)),
        Cell::opt_long(file.first_row_id),
        file.write_cols.clone().map_or(Cell::Null, Cell::Texts),
    ]);
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn the_format_is_told_by_the_name() {
        assert_eq!(format("data-1.parquet"), "parquet");
        assert_eq!(format("data-1.avro.zstd"), "avro");
        assert_eq!(format("data-1.lance"), "lance");
    }
}
