//! The rows of a file that can hold the keys a query wants. Of a point in a large bucket some pages are read, not all keys.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, BooleanBufferBuilder, Scalar};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};

use super::context::{ReadContext, SectionHandle};
use super::deletion::mask_rows;
use crate::error::{Error, Result};
use crate::file::{Access, FileFormat, SortedRange, span_of_sorted};
use crate::merge::{KeyFile, SectionSelection};
use crate::scan::PlannedFile;

/// Rows that can hold the keys that are wanted; all rows where nothing is wanted in particular, or the file does not tell.
pub async fn wanted_span(
    context: &Arc<ReadContext>,
    handle: &SectionHandle,
    file: &Arc<PlannedFile>,
) -> Result<Range<usize>> {
    let rows = mask_rows(context, file).await?;
    let all = 0..rows;
    let meta = &file.entry.file;
    let Some(wanted) = &handle.wanted else { return Ok(all) };
    if !matches!(FileFormat::of_file(&meta.file_name), Ok(FileFormat::Parquet)) {
        return Ok(all);
    }
    let Some(field) = context.pin.schema.fields.get(wanted.column) else { return Ok(all) };
    // a column that changed its type is sorted as it was
    let stored = file.file_schema.fields.iter().find(|stored| stored.id == field.id);
    let Some(stored) = stored.filter(|stored| stored.data_type() == field.data_type()) else { return Ok(all) };
    let bound = |value: &Option<_>| value.as_ref().map(datafusion::common::ScalarValue::to_array).transpose();
    let range = SortedRange { lower: bound(&wanted.lower)?, upper: bound(&wanted.upper)? };
    let names = [format!("_KEY_{}", stored.name), stored.name.clone()];
    let access = Access::of(&file.storage, context.counters.meter(), &file.location, meta.file_size);
    let span = match span_of_sorted(&context.caches.files, &access, &names, &range).await {
        Ok(span) => span,
        // who reads it tells what is wrong with it
        Err(_) => return Ok(all),
    };
    Ok(if span.end <= rows { span } else { all })
}

/// Whether the keys that are wanted are in few of the section's rows, so that finding them anew costs less than reading
/// all rows that are live around them.
pub async fn few_are_wanted(context: &Arc<ReadContext>, handle: &SectionHandle) -> Result<bool> {
    const FEW: u64 = 10;
    // around one key there are whole pages of others
    if handle.wanted.as_ref().is_some_and(|wanted| wanted.lower == wanted.upper) {
        return Ok(true);
    }
    let (mut wanted, mut rows) = (0u64, 0u64);
    for file in handle.section.files() {
        wanted = wanted.saturating_add(wanted_span(context, handle, file).await?.len() as u64);
        rows = rows.saturating_add(file.physical_rows());
    }
    Ok(wanted.saturating_mul(FEW) <= rows)
}

/// The rows of these keys, which increase, that are wanted.
pub fn wanted_rows(handle: &SectionHandle, keys: &KeyFile) -> Result<Range<usize>> {
    let all = 0..keys.rows();
    let (Some(wanted), Some(first)) = (&handle.wanted, keys.keys.first()) else { return Ok(all) };
    let mut found = all.clone();
    for (bound, lower) in [(&wanted.lower, true), (&wanted.upper, false)] {
        let Some(bound) = bound else { continue };
        let bound = bound.to_array()?;
        if bound.data_type() != first.data_type() || bound.data_type().is_floating() {
            return Ok(all);
        }
        let bound = Scalar::new(bound);
        let met = if lower { gt_eq(first, &bound)? } else { lt_eq(first, &bound)? };
        let mut met = met.values().set_slices();
        // where keys do not increase, what selects them says so
        let of_bound = match (met.next(), met.next()) {
            (None, _) => 0..0,
            (Some((from, to)), None) => from..to,
            (Some(_), Some(_)) => return Ok(all),
        };
        found = found.start.max(of_bound.start)..found.end.min(of_bound.end);
    }
    Ok(found.start..found.end.max(found.start))
}

/// The selection of some rows of each file as one of all its rows: of the others no key is wanted.
pub fn widened(
    selected: SectionSelection,
    spans: Vec<Range<usize>>,
    handle: &SectionHandle,
) -> Result<SectionSelection> {
    let lost = || Error::internal("the selection of a section has another shape than the section");
    let mut spans = spans.into_iter();
    let mut files = Vec::with_capacity(selected.files.len());
    for (run, planned) in selected.files.into_iter().zip(&handle.section.runs) {
        let mut masks = Vec::with_capacity(run.len());
        for (live, file) in run.into_iter().zip(planned) {
            let span = spans.next().filter(|span| span.len() == live.len()).ok_or_else(lost)?;
            let rows = super::deletion::physical_rows(file)?;
            masks.push(within(live, span, rows)?);
        }
        files.push(masks);
    }
    Ok(SectionSelection { files, stats: selected.stats })
}

fn within(live: BooleanBuffer, span: Range<usize>, rows: usize) -> Result<BooleanBuffer> {
    if span == (0..rows) {
        return Ok(live);
    }
    let after = rows.checked_sub(span.end).ok_or_else(|| Error::internal("a span of rows lies outside of its file"))?;
    let mut mask = BooleanBufferBuilder::new(rows);
    mask.append_n(span.start, false);
    mask.append_buffer(&live);
    mask.append_n(after, false);
    Ok(mask.finish())
}
