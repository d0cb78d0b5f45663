//! Stretches of keys, half-open, so that neighbours share no key and leave none out.

use arrow::array::{ArrayRef, UInt64Array};
use arrow::compute::take;
use arrow::record_batch::RecordBatch;
use futures::stream::{self, BoxStream, StreamExt};

use super::keys::{KeyEncoder, Keys};
use crate::error::{Error, Result};

/// One key: the values of its columns, in key order.
#[derive(Debug, Clone)]
pub struct Key(Vec<ArrayRef>);

impl Key {
    /// The key in one row of `columns`, without the buffers of the arrays it is in.
    ///
    /// # Errors
    /// A row that is not there.
    pub fn at(columns: &[ArrayRef], row: usize) -> Result<Self> {
        if columns.iter().any(|column| row >= column.len()) {
            return Err(Error::internal("there is no key in that row"));
        }
        let row = UInt64Array::from(vec![row as u64]);
        Ok(Self(columns.iter().map(|column| Ok(take(column, &row, None)?)).collect::<Result<_>>()?))
    }

    pub(super) fn columns(&self) -> &[ArrayRef] {
        &self.0
    }
}

/// Where a range of keys begins.
#[derive(Debug, Clone)]
enum Start {
    /// With this key.
    At(Key),
    /// After this key.
    After(Key),
}

/// A range of keys: from its start, where it has one, up to but without its end, where it has one.
#[derive(Debug, Clone, Default)]
pub struct KeyRange {
    start: Option<Start>,
    end: Option<Key>,
}

impl KeyRange {
    /// From `start` on, below `end`; None: from the smallest key, up to the largest.
    pub fn new(start: Option<Key>, end: Option<Key>) -> Self {
        Self { start: start.map(Start::At), end }
    }

    /// The part of the range that follows `key`.
    #[must_use]
    pub fn after(self, key: Key) -> Self {
        Self { start: Some(Start::After(key)), ..self }
    }

    /// Whether it holds every key.
    pub fn is_everything(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }

    pub(super) fn encode(&self, encoder: &KeyEncoder) -> Result<Bounds> {
        let (start, exclusive) = match &self.start {
            None => (None, false),
            Some(Start::At(key)) => (Some(encoder.encode(key.columns())?), false),
            Some(Start::After(key)) => (Some(encoder.encode(key.columns())?), true),
        };
        let end = self.end.as_ref().map(|key| encoder.encode(key.columns())).transpose()?;
        Ok(Bounds { start, exclusive, end })
    }
}

/// A range in the form of one encoder's keys.
pub(super) struct Bounds {
    start: Option<Keys>,
    /// Whether the range begins after its start.
    exclusive: bool,
    end: Option<Keys>,
}

impl Bounds {
    /// Whether a key lies before the range.
    pub(super) fn is_before(&self, keys: &Keys, row: usize) -> bool {
        self.start.as_ref().is_some_and(|start| {
            let order = keys.compare(row, start, 0);
            order.is_lt() || (self.exclusive && order.is_eq())
        })
    }

    /// Whether a key lies after the range.
    pub(super) fn is_after(&self, keys: &Keys, row: usize) -> bool {
        self.end.as_ref().is_some_and(|end| keys.compare(row, end, 0).is_ge())
    }

    /// The rows of `keys`, which increase, that lie in the range.
    fn rows(&self, keys: &Keys) -> (usize, usize) {
        let all = keys.len();
        let mut from = self.start.as_ref().map_or(0, |start| keys.lower_bound(0, all, start, 0));
        if from < all && self.is_before(keys, from) {
            from += 1;
        }
        (from, self.end(keys, from))
    }

    /// The first row of `keys` from `from` on that lies after the range.
    pub(super) fn end(&self, keys: &Keys, from: usize) -> usize {
        let all = keys.len();
        self.end.as_ref().map_or(all, |end| keys.lower_bound(from, all, end, 0))
    }
}

/// The rows of a sorted run whose keys lie in `range`; `key` are the places of the key columns in its batches. The run is
/// not polled any further once its keys have left the range. That keys increase is not checked here.
pub fn within(
    run: BoxStream<'static, Result<RecordBatch>>,
    key: Vec<usize>,
    range: KeyRange,
) -> BoxStream<'static, Result<RecordBatch>> {
    if range.is_everything() {
        return run;
    }
    let state = (Some(run), Trimmer { key, range, encoded: None });
    stream::try_unfold(state, |(run, mut trimmer)| async move {
        let Some(mut run) = run else { return Ok(None) };
        while let Some(batch) = run.next().await {
            let (batch, more) = trimmer.trim(batch?)?;
            if batch.num_rows() > 0 || !more {
                return Ok(Some((batch, (more.then_some(run), trimmer))));
            }
        }
        Ok(None)
    })
    .boxed()
}

struct Trimmer {
    key: Vec<usize>,
    range: KeyRange,
    encoded: Option<(KeyEncoder, Bounds)>,
}

impl Trimmer {
    /// The rows in the range, and whether there may be more behind them.
    fn trim(&mut self, batch: RecordBatch) -> Result<(RecordBatch, bool)> {
        let Some(last) = batch.num_rows().checked_sub(1) else { return Ok((batch, true)) };
        let columns: Vec<ArrayRef> = self
            .key
            .iter()
            .map(|&at| {
                batch.columns().get(at).cloned().ok_or_else(|| Error::internal("a batch lacks a column of the key"))
            })
            .collect::<Result<_>>()?;
        let (encoder, bounds) = match self.encoded.take() {
            Some(encoded) => encoded,
            None => {
                let encoder = KeyEncoder::of(&columns)?;
                let bounds = self.range.encode(&encoder)?;
                (encoder, bounds)
            }
        };
        // the two ends decide for most batches; only those that a bound cuts are encoded as a whole
        let ends = UInt64Array::from(vec![0, last as u64]);
        let ends: Vec<ArrayRef> = columns.iter().map(|column| Ok(take(column, &ends, None)?)).collect::<Result<_>>()?;
        let ends = encoder.encode(&ends)?;
        let more = !bounds.is_after(&ends, 1);
        let trimmed = if bounds.is_before(&ends, 1) || bounds.is_after(&ends, 0) {
            batch.slice(0, 0)
        } else if bounds.is_before(&ends, 0) || !more {
            let (from, to) = bounds.rows(&encoder.encode(&columns)?);
            batch.slice(from, to - from)
        } else {
            batch
        };
        self.encoded = Some((encoder, bounds));
        Ok((trimmed, more))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int32Array, StringArray};
    use arrow::datatypes::{Field, Int32Type, Schema};
    use futures::TryStreamExt;

    use super::*;

    fn batch(keys: &[(i32, &str)]) -> RecordBatch {
        let first: ArrayRef = Arc::new(Int32Array::from_iter_values(keys.iter().map(|key| key.0)));
        let second: ArrayRef = Arc::new(StringArray::from_iter_values(keys.iter().map(|key| key.1)));
        let field = |name: &str, array: &ArrayRef| Field::new(name, array.data_type().clone(), false);
        let schema = Schema::new(vec![field("a", &first), field("b", &second)]);
        RecordBatch::try_new(Arc::new(schema), vec![first, second]).unwrap()
    }

    fn key(a: i32, b: &str) -> Key {
        let batch = batch(&[(a, b)]);
        Key::at(batch.columns(), 0).unwrap()
    }

    fn kept(batches: &[&[(i32, &str)]], range: KeyRange) -> Vec<i32> {
        let run: Vec<Result<RecordBatch>> = batches.iter().map(|rows| Ok(batch(rows))).collect();
        let rows = within(stream::iter(run).boxed(), vec![0, 1], range);
        let rows: Vec<RecordBatch> = futures::executor::block_on(rows.try_collect()).unwrap();
        rows.iter().flat_map(|batch| batch.column(0).as_primitive::<Int32Type>().values().to_vec()).collect()
    }

    #[test]
    fn a_range_holds_its_start_and_not_its_end() {
        let batches: &[&[(i32, &str)]] = &[&[(1, "a"), (2, "a")], &[(2, "b"), (3, "a"), (4, "a")], &[(5, "a")]];
        let range = |from: Option<Key>, to: Option<Key>| KeyRange::new(from, to);
        assert_eq!(kept(batches, range(None, None)), [1, 2, 2, 3, 4, 5]);
        assert_eq!(kept(batches, range(Some(key(2, "b")), None)), [2, 3, 4, 5]);
        assert_eq!(kept(batches, range(None, Some(key(2, "b")))), [1, 2]);
        assert_eq!(kept(batches, range(Some(key(2, "a")), Some(key(4, "a")))), [2, 2, 3]);
        assert_eq!(kept(batches, range(Some(key(2, "aa")), Some(key(2, "aa")))), Vec::<i32>::new());
        assert_eq!(kept(batches, range(Some(key(6, "")), None)), Vec::<i32>::new());
        assert_eq!(kept(batches, range(None, Some(key(4, "a"))).after(key(2, "a"))), [2, 3]);
        assert_eq!(kept(batches, range(None, None).after(key(5, "a"))), Vec::<i32>::new());
    }

    #[test]
    fn a_run_that_has_left_the_range_is_not_polled_again() {
        let run = stream::iter([Ok(batch(&[(1, "a"), (7, "a")])), Err(Error::unavailable("polled too far"))]);
        let rows = within(run.boxed(), vec![0, 1], KeyRange::new(None, Some(key(5, "a"))));
        let rows: Vec<RecordBatch> = futures::executor::block_on(rows.try_collect()).unwrap();
        assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    }
}
