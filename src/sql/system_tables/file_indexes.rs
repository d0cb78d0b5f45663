//! `t$file_indexes`: the indexes of the live data files of the pinned snapshot, embedded or beside the file.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::Source;
use super::listed::{self, Listed};
use crate::error::{Error, Result};
use crate::spec::ManifestEntry;
use crate::spec::file_index::FileIndex;
use crate::sql::cells::{self, Cell, Kind};

pub(super) fn schema() -> SchemaRef {
    cells::schema(&[
        ("partition", Kind::Text, false),
        ("bucket", Kind::Int, true),
        ("file_path", Kind::Text, true),
        ("file_size_in_bytes", Kind::Long, true),
        ("record_count", Kind::Long, true),
        ("schema_id", Kind::Long, true),
        ("column_name", Kind::Text, true),
        ("index_type", Kind::Text, true),
        ("storage_type", Kind::Text, true),
        ("index_file_path", Kind::Text, false),
        ("index_size_in_bytes", Kind::Long, true),
        ("index_container_size_in_bytes", Kind::Long, true),
        ("is_empty", Kind::Bool, true),
    ])
}

pub(super) async fn rows(source: Source) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for listed in listed::live(&source).await? {
        for entry in &listed.files {
            rows.extend(indexes(&listed, entry).await?);
        }
    }
    cells::batch(&schema(), &rows)
}

/// The indexes of one file.
async fn indexes(listed: &Listed, entry: &ManifestEntry) -> Result<Vec<Vec<Cell>>> {
    let (pin, texts) = (listed.source.pin()?, &listed.texts);
    let file = &entry.file;
    let path = texts.path(entry)?;
    let beside = file.extra_files.iter().find(|name| name.ends_with(".index"));
    let (bytes, index_path) = match (&file.embedded_index, beside) {
        (Some(bytes), _) => (bytes.clone(), None),
        (None, Some(name)) => {
            let folder = path.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
            let index_path = format!("{folder}/{name}");
            let (storage, location) = pin.table.storage().resolve(&index_path).await?;
            let bytes = match storage.read_opt(&location).await? {
                Some(bytes) => bytes,
                None => return Err(pin.missing_file(&location).await),
            };
            (bytes, Some(index_path))
        }
        (None, None) => return Ok(Vec::new()),
    };
    let size = bytes.len() as u64;
    let index = FileIndex::parse(bytes)
        .map_err(|error: Error| error.with_context("file", index_path.as_deref().unwrap_or(&path)))?;
    let partition = texts.partition(&entry.partition)?;
    let row = |(column, kind, body): (&str, &str, Option<usize>)| {
        vec![
            Cell::text(&partition),
            Cell::Int(entry.bucket.0),
            Cell::text(&path),
            Cell::count(file.file_size),
            Cell::Long(file.row_count),
            Cell::Long(file.schema_id.0),
            Cell::text(column),
            Cell::text(kind),
            Cell::text(if index_path.is_some() { "FILE" } else { "EMBEDDED" }),
            Cell::opt_text(index_path.as_deref()),
            Cell::count(body.unwrap_or(0) as u64),
            Cell::count(size),
            Cell::Bool(body.is_none()),
        ]
    };
    Ok(index.sizes().map(row).collect())
}
