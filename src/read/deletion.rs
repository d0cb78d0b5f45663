//! The deletion vector of a file.

use std::sync::Arc;

use arrow::buffer::BooleanBuffer;

use super::context::ReadContext;
use super::data_file::open_columns;
use crate::error::{Error, ErrorKind, Result};
use crate::file::FileFormat;
use crate::scan::{DeletionFile, PlannedFile};
use crate::spec::deletion_vector::{DeletionVector, check_file, decode, record_range};

/// The rows of `file` that its deletion vector leaves, one bit per physical row; None: all.
///
/// # Errors
/// The vector cannot be read, or is not one of this file: it names more rows than the index manifest says, or rows the
/// file does not have.
pub async fn live_rows(context: &Arc<ReadContext>, file: &Arc<PlannedFile>) -> Result<Option<BooleanBuffer>> {
    let Some(deletion) = &file.deletion else { return Ok(None) };
    let vector = vector(context, file, deletion).await?;
    let live = vector.to_live_mask(mask_rows(context, file).await?);
    live.map(Some).map_err(|error| named(error, context, file, deletion))
}

/// An error about the vector of a file.
fn named(error: Error, context: &ReadContext, file: &PlannedFile, deletion: &DeletionFile) -> Error {
    let error = error.with_context("file", &deletion.location).with_context("data file", &file.location);
    let error = error.with_context("table", context.pin.table.name());
    let error = match file.snapshot.or_else(|| context.pin.snapshot_id()) {
        Some(id) => error.with_context("snapshot", id),
        None => error,
    };
    error.or_restore()
}

/// Physical rows as an index.
pub fn physical_rows(file: &PlannedFile) -> Result<usize> {
    usize::try_from(file.entry.file.row_count)
        .map_err(|_| Error::corrupt(format!("row count {} is none", file.entry.file.row_count)))
        .map_err(|error| error.with_context("file", &file.location))
}

/// Physical rows for a mask of as many bits. What a manifest entry says of a small file is believed; where the mask would
/// be large the file itself is asked first.
///
/// Cost: a footer, of files of more than some ten million rows, which is kept for those who read the file.
///
/// # Errors
/// The file holds other rows.
pub async fn mask_rows(context: &Arc<ReadContext>, file: &Arc<PlannedFile>) -> Result<usize> {
    believed(context, file, MASKED_UNSEEN).await
}

/// Physical rows for rows that are made without opening the file: endless ones never end.
pub async fn made_rows(context: &Arc<ReadContext>, file: &Arc<PlannedFile>) -> Result<usize> {
    believed(context, file, MADE_UNSEEN).await
}

/// Rows of a mask that is made without asking: eight megabytes.
const MASKED_UNSEEN: usize = 1 << 26;

/// Rows that are made without asking: a few seconds of them.
const MADE_UNSEEN: usize = 1 << 32;

/// Rows that no Avro file has in a byte, however well they are compressed: it has no footer to ask.
const AVRO_ROWS_A_BYTE: u64 = 1 << 12;

async fn believed(context: &Arc<ReadContext>, file: &Arc<PlannedFile>, unseen: usize) -> Result<usize> {
    let rows = physical_rows(file)?;
    if rows <= unseen {
        return Ok(rows);
    }
    let meta = &file.entry.file;
    if matches!(FileFormat::of_file(&meta.file_name), Ok(FileFormat::Avro)) {
        if rows as u64 / AVRO_ROWS_A_BYTE > meta.file_size {
            return Err(Error::corrupt(format!("a data file of {} bytes cannot hold {rows} rows", meta.file_size))
                .with_code("DataFileCorrupt")
                .with_context("file", &file.location)
                .or_restore());
        }
        return Ok(rows);
    }
    // opening compares the footer with the entry
    drop(open_columns(context, file, Vec::new(), None, context.options.batch_size).await?);
    Ok(rows)
}

async fn vector(context: &ReadContext, file: &PlannedFile, deletion: &DeletionFile) -> Result<DeletionVector> {
    let named = |error: Error| named(error, context, file, deletion);
    // one index file holds the vectors of many data files: read it whole, once
    let bytes = context
        .caches
        .index_files
        .get_or_load(&deletion.location.to_string(), || async {
            let bytes = deletion.storage.read(&deletion.location).await?;
            let size = bytes.len();
            Ok((bytes, size))
        })
        .await;
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(context.pin.missing_file(&deletion.location).await);
        }
        Err(error) => return Err(named(error)),
    };
    check_file(&bytes).map_err(named)?;
    let range = record_range(deletion.offset, deletion.length).map_err(named)?;
    let start = usize::try_from(range.start).unwrap_or(usize::MAX).min(bytes.len());
    let end = usize::try_from(range.end).unwrap_or(usize::MAX).clamp(start, bytes.len());
    let record = bytes.get(start..end).unwrap_or_default();
    let vector = decode(record, deletion.length).map_err(named)?;
    if deletion.cardinality.is_some_and(|told| told != vector.cardinality()) {
        return Err(named(Error::corrupt(format!(
            "the deletion vector holds {} rows, the index manifest says {}",
            vector.cardinality(),
            deletion.cardinality.unwrap_or_default()
        ))));
    }
    Ok(vector)
}
