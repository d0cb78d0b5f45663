//! The deletion vector of a file.

use arrow::buffer::BooleanBuffer;

use super::context::ReadContext;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::{DeletionFile, PlannedFile};
use crate::spec::deletion_vector::{DeletionVector, check_file, decode, record_range};

/// The rows of `file` that its deletion vector leaves, one bit per physical row; None: all.
///
/// # Errors
/// The vector cannot be read, or is not one of this file: it names more rows than the index manifest says, or rows the
/// file does not have.
pub async fn live_rows(context: &ReadContext, file: &PlannedFile) -> Result<Option<BooleanBuffer>> {
    let Some(deletion) = &file.deletion else { return Ok(None) };
    let vector = vector(context, file, deletion).await?;
    let live = vector.to_live_mask(physical_rows(file)?);
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
