//! Large files in stretches of rows, so that one file is decoded on several cores.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::BooleanBuffer;

use super::context::ReadContext;
use super::held::AbortOnDrop;
use crate::error::{Error, Result};
use crate::file::FileFormat;
use crate::scan::PlannedFile;

/// Fewest rows of a stretch; in tests few, so that their files have several.
const ROWS: usize = if cfg!(test) { 40 } else { 1 << 18 };

/// What `read` gives for each stretch of these rows of a file, in their order. Each has a task of its own.
pub async fn by_stretches<T, F>(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    rows: Range<usize>,
    read: impl Fn(Arc<ReadContext>, Arc<PlannedFile>, Range<usize>) -> F,
) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let tasks: Vec<_> = stretches(file, rows, context.options.parallelism)
        .into_iter()
        .map(|span| AbortOnDrop(tokio::spawn(read(Arc::clone(context), Arc::clone(file), span))))
        .collect();
    futures::future::try_join_all(tasks).await
}

/// Rows of a file in stretches, at most so many. One, where the format cannot begin to decode in the middle.
fn stretches(file: &PlannedFile, rows: Range<usize>, at_most: usize) -> Vec<Range<usize>> {
    let name = &file.entry.file.file_name;
    let skips = matches!(FileFormat::of_file(name), Ok(FileFormat::Parquet));
    let count = if skips { (rows.len() / ROWS).clamp(1, at_most.max(1)) } else { 1 };
    cut(rows, count)
}

fn cut(rows: Range<usize>, count: usize) -> Vec<Range<usize>> {
    let step = rows.len().div_ceil(count.max(1)).max(1);
    let place = |at: usize| (rows.start + at * step).min(rows.end);
    (0..count.max(1)).map(|at| place(at)..place(at + 1)).collect()
}

/// The rows among `span` that are live, as a mask of all `rows` of a file; None: all rows of the file.
pub fn narrowed(live: Option<BooleanBuffer>, rows: usize, span: Range<usize>) -> Result<Option<BooleanBuffer>> {
    if span == (0..rows) {
        return Ok(live);
    }
    if span.start > span.end || span.end > rows || live.as_ref().is_some_and(|live| live.len() != rows) {
        return Err(Error::internal("a stretch of rows lies outside of its file"));
    }
    let mut mask = BooleanBufferBuilder::new(rows);
    mask.append_n(span.start, false);
    match live {
        Some(live) => mask.append_buffer(&live.slice(span.start, span.end - span.start)),
        None => mask.append_n(span.end - span.start, true),
    }
    mask.append_n(rows - span.end, false);
    Ok(Some(mask.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_follow_each_other_and_hold_every_row_once() {
        for (rows, count) in [(0, 1), (1, 1), (10, 3), (1000, 7), (2, 2)] {
            for before in [0, 5] {
                let stretches = cut(before..before + rows, count);
                assert_eq!(stretches.len(), count);
                assert!(stretches.windows(2).all(|pair| pair[0].end == pair[1].start), "{stretches:?}");
                assert_eq!((stretches[0].start, stretches[count - 1].end), (before, before + rows));
            }
        }
    }

    #[test]
    fn a_mask_is_narrowed_to_a_stretch_of_rows() {
        let live = BooleanBuffer::from_iter([true, false, true, true, false, true]);
        let bits = |mask: Option<BooleanBuffer>| mask.unwrap().set_indices().collect::<Vec<_>>();
        assert_eq!(bits(narrowed(Some(live.clone()), 6, 1..4).unwrap()), [2, 3]);
        assert_eq!(bits(narrowed(Some(live.clone()), 6, 0..6).unwrap()), [0, 2, 3, 5]);
        assert_eq!(bits(narrowed(None, 6, 4..6).unwrap()), [4, 5]);
        assert_eq!(narrowed(None, 6, 0..0).unwrap().unwrap().count_set_bits(), 0);
        assert!(narrowed(None, 6, 0..6).unwrap().is_none());
        assert!(narrowed(Some(live), 7, 0..2).is_err());
        assert!(narrowed(None, 3, 2..4).is_err());
    }
}
