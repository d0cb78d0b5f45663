//! Keys of sorted files at some of their rows: where to cut a section into ranges of keys that hold about as many rows
//! each, and where in each file a range begins and ends.

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::{concat, take};

use super::keys::{KeyEncoder, Keys};
use super::range::{Key, KeyRange};
use super::run::UNSORTED;
use crate::error::{Error, Result};

/// The keys of a file, or of a stretch of one, at some of its rows, its first and last among them.
#[derive(Debug, Clone)]
pub struct KeySample {
    /// Numbers of the rows, increasing.
    rows: Vec<usize>,
    /// Key columns of those rows; none when the file has no rows.
    columns: Vec<ArrayRef>,
    /// Rows of the file.
    total: usize,
}

/// Takes the sample of a file whose keys go by, in their order.
#[derive(Debug)]
pub struct KeySampler {
    step: usize,
    checks: bool,
    encoder: Option<KeyEncoder>,
    /// First row of the stretch.
    first: usize,
    /// Row of the next key.
    seen: usize,
    rows: Vec<usize>,
    taken: Vec<Vec<ArrayRef>>,
    last: Option<Key>,
}

impl KeySampler {
    /// Takes every `step`-th key.
    pub fn new(step: usize) -> Self {
        let step = step.max(1);
        Self { step, checks: true, encoder: None, first: 0, seen: 0, rows: Vec::new(), taken: Vec::new(), last: None }
    }

    /// The same of a stretch of a file that begins with row `first`.
    pub fn starting(first: usize, step: usize) -> Self {
        Self { seen: first, first, ..Self::new(step) }
    }

    /// The same, for a caller who looks at the order of the keys himself.
    pub(super) fn unchecked(step: usize) -> Self {
        Self { checks: false, ..Self::new(step) }
    }

    /// The next keys.
    ///
    /// # Errors
    /// Corrupt: keys that do not increase strictly.
    pub fn push(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let Some(last) = columns.first().map_or(0, |column| column.len()).checked_sub(1) else { return Ok(()) };
        if self.checks {
            self.check(columns)?;
        }
        let step = self.seen.next_multiple_of(self.step) - self.seen;
        let begins = self.seen == self.first && step > 0;
        self.take(columns, begins.then_some(0).into_iter().chain((step..=last).step_by(self.step)).collect())?;
        self.last = Some(Key::at(columns, last)?);
        self.seen += last + 1;
        Ok(())
    }

    fn check(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => KeyEncoder::of(columns)?,
        };
        let keys = encoder.encode(columns)?;
        let touches = match &self.last {
            Some(before) => encoder.encode(before.columns())?.compare(0, &keys, 0).is_ge(),
            None => false,
        };
        self.encoder = Some(encoder);
        match touches.then_some(0).or_else(|| keys.first_disorder()) {
            None => Ok(()),
            Some(row) => Err(disorder(self.seen + row)),
        }
    }

    fn take(&mut self, columns: &[ArrayRef], rows: Vec<usize>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let places: UInt64Array = rows.iter().map(|row| *row as u64).collect();
        self.taken.push(columns.iter().map(|column| Ok(take(column, &places, None)?)).collect::<Result<_>>()?);
        self.rows.extend(rows.into_iter().map(|row| self.seen + row));
        Ok(())
    }

    /// The sample of all keys that went by.
    ///
    /// # Errors
    /// Keys of several types.
    pub fn finish(mut self) -> Result<KeySample> {
        if let (Some(key), Some(row)) = (self.last.take(), self.seen.checked_sub(1))
            && self.rows.last() != Some(&row)
            && self.seen > self.first
        {
            self.rows.push(row);
            self.taken.push(key.columns().to_vec());
        }
        let width = self.taken.first().map_or(0, Vec::len);
        let columns = (0..width)
            .map(|at| {
                let parts: Vec<&dyn Array> =
                    self.taken.iter().filter_map(|columns| columns.get(at)).map(|column| column.as_ref()).collect();
                Ok(concat(&parts)?)
            })
            .collect::<Result<_>>()?;
        Ok(KeySample { rows: self.rows, columns, total: self.seen })
    }
}

impl KeySample {
    /// The sample of a file out of those of its stretches, which follow each other: the same as of the whole.
    ///
    /// # Errors
    /// Corrupt: keys that do not increase from one stretch to the next.
    pub fn join(stretches: Vec<Self>, step: usize) -> Result<Self> {
        for pair in stretches.windows(2) {
            if let [before, after] = pair
                && !before.is_before(after)?
            {
                return Err(disorder(before.total));
            }
        }
        let total = stretches.last().map_or(0, |last| last.total);
        let rows: Vec<usize> = stretches.iter().flat_map(|stretch| stretch.rows.iter().copied()).collect();
        // the ends of the stretches are none of the file's steps
        let kept: Vec<usize> =
            (0..rows.len()).filter(|&at| rows[at].is_multiple_of(step.max(1)) || at + 1 == rows.len()).collect();
        let places: UInt64Array = kept.iter().map(|at| *at as u64).collect();
        let width = stretches.iter().map(|stretch| stretch.columns.len()).max().unwrap_or(0);
        let columns = (0..width)
            .map(|at| {
                let parts: Vec<&dyn Array> = stretches
                    .iter()
                    .filter_map(|stretch| stretch.columns.get(at))
                    .map(|column| column.as_ref())
                    .collect();
                Ok(take(&concat(&parts)?, &places, None)?)
            })
            .collect::<Result<_>>()?;
        Ok(Self { rows: kept.into_iter().map(|at| rows[at]).collect(), columns, total })
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.get_array_memory_size()).sum();
        columns + self.rows.len() * size_of::<usize>()
    }

    /// Whether every key of this file comes before every key of `later`.
    ///
    /// # Errors
    /// Keys of other types.
    pub fn is_before(&self, later: &Self) -> Result<bool> {
        let Some(last) = self.rows.len().checked_sub(1).filter(|_| !later.rows.is_empty()) else { return Ok(true) };
        let encoder = KeyEncoder::of(&self.columns)?;
        Ok(encoder.encode(&self.columns)?.compare(last, &encoder.encode(&later.columns)?, 0).is_lt())
    }

    /// The rows among which the first row behind `range` lies; an empty stretch tells it.
    ///
    /// # Errors
    /// A range of other types.
    pub(super) fn end_of(&self, range: &KeyRange) -> Result<std::ops::Range<usize>> {
        if self.rows.is_empty() {
            return Ok(0..0);
        }
        let encoder = KeyEncoder::of(&self.columns)?;
        let keys = encoder.encode(&self.columns)?;
        let bounds = range.encode(&encoder)?;
        let after = bounds.end(&keys, 0);
        let start = after.checked_sub(1).and_then(|before| self.rows.get(before)).map_or(0, |row| row + 1);
        Ok(start..self.rows.get(after).copied().unwrap_or(self.total))
    }

    /// Rows that hold all keys of the file in `range`, and as few others as the sample can tell.
    ///
    /// # Errors
    /// A range of other types.
    pub fn rows_within(&self, range: &KeyRange) -> Result<std::ops::Range<usize>> {
        if self.rows.is_empty() || range.is_everything() {
            return Ok(0..self.total);
        }
        let encoder = KeyEncoder::of(&self.columns)?;
        let keys = encoder.encode(&self.columns)?;
        let bounds = range.encode(&encoder)?;
        let mut span = 0..self.total;
        for (at, &row) in self.rows.iter().enumerate() {
            if bounds.is_before(&keys, at) {
                span.start = row + 1;
            } else if bounds.is_after(&keys, at) {
                span.end = row;
                break;
            }
        }
        // between two neighbours of the sample there may be no room at all
        Ok(span.start..span.end.max(span.start))
    }
}

/// A file whose keys do not increase.
pub(super) fn disorder(row: usize) -> Error {
    Error::corrupt(format!("keys do not increase at row {row}")).with_code("RunNotSorted").with_hint(UNSORTED)
}

/// Cuts the keys of some files into at most `parts` ranges that follow each other from the smallest key to the largest,
/// each with about as many rows; fewer when there are not as many keys. Ranges may be empty. The same samples give the
/// same ranges: every key lies in exactly one.
///
/// # Errors
/// Keys of several types.
pub fn key_ranges<'a>(files: impl IntoIterator<Item = &'a KeySample>, parts: usize) -> Result<Vec<KeyRange>> {
    let parts = parts.max(1);
    let files: Vec<&KeySample> = files.into_iter().filter(|file| !file.rows.is_empty()).collect();
    let Some(first) = files.first() else { return Ok(vec![KeyRange::default()]) };
    let encoder = KeyEncoder::of(&first.columns)?;
    let keys: Vec<Keys> = files.iter().map(|file| encoder.encode(&file.columns)).collect::<Result<_>>()?;
    // each key of a sample stands for the rows up to the next
    let mut weights: Vec<(usize, usize, usize)> = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let ends = file.rows.iter().skip(1).chain([&file.total]);
        weights.extend(file.rows.iter().zip(ends).enumerate().map(|(at, (from, to))| (number, at, to - from)));
    }
    weights.sort_by(|a, b| keys[a.0].compare(a.1, &keys[b.0], b.1).then((a.0, a.1).cmp(&(b.0, b.1))));
    let total: usize = files.iter().map(|file| file.total).sum();
    let mut cuts: Vec<Key> = Vec::with_capacity(parts - 1);
    let mut below = 0usize;
    for (file, at, rows) in weights {
        while cuts.len() + 1 < parts && below as u128 * parts as u128 >= (cuts.len() as u128 + 1) * total as u128 {
            cuts.push(Key::at(&files[file].columns, at)?);
        }
        below += rows;
    }
    let starts = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
    let ends = cuts.iter().cloned().map(Some).chain(std::iter::once(None));
    Ok(starts.zip(ends).map(|(start, end)| KeyRange::new(start, end)).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, StringArray};

    use super::*;

    fn column(keys: impl IntoIterator<Item = i32>) -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(keys))
    }

    fn sample(step: usize, batches: Vec<Vec<i32>>) -> KeySample {
        let mut sampler = KeySampler::new(step);
        for batch in batches {
            sampler.push(&[column(batch)]).unwrap();
        }
        sampler.finish().unwrap()
    }

    fn range(from: i32, to: i32) -> KeyRange {
        let key = |key: i32| Key::at(&[column([key])], 0).unwrap();
        KeyRange::new(Some(key(from)), Some(key(to)))
    }

    #[test]
    fn a_sample_has_every_nth_row_and_the_last_whatever_the_batches() {
        for batches in [vec![(0..23).collect()], vec![(0..1).collect(), (1..11).collect(), (11..23).collect()]] {
            let sample = sample(10, batches);
            assert_eq!((sample.rows.as_slice(), sample.total), (&[0, 10, 20, 22][..], 23));
            assert_eq!(&sample.columns, &[column([0, 10, 20, 22])]);
        }
        assert_eq!(sample(10, vec![]).rows, Vec::<usize>::new());
        assert_eq!(sample(10, vec![vec![7]]).rows, [0]);
    }

    #[test]
    fn stretches_of_a_file_give_the_sample_of_the_whole() {
        let keys: Vec<i32> = (0..100).map(|row| row * 3).collect();
        let whole = sample(7, vec![keys.clone()]);
        for cuts in [vec![0, 100], vec![0, 50, 100], vec![0, 7, 14, 100], vec![0, 0, 1, 99, 100, 100]] {
            let stretch = |from: usize, to: usize| {
                let mut sampler = KeySampler::starting(from, 7);
                sampler.push(&[column(keys[from..to].to_vec())]).unwrap();
                sampler.finish().unwrap()
            };
            let joined = KeySample::join(cuts.windows(2).map(|cut| stretch(cut[0], cut[1])).collect(), 7).unwrap();
            assert_eq!((&joined.rows, joined.total, &joined.columns), (&whole.rows, whole.total, &whole.columns));
        }
        let turned = |keys: Vec<i32>, from| {
            let mut sampler = KeySampler::starting(from, 7);
            sampler.push(&[column(keys)]).unwrap();
            sampler.finish().unwrap()
        };
        let error = KeySample::join(vec![turned(vec![1, 5], 0), turned(vec![5, 6], 2)], 7).unwrap_err();
        assert_eq!(error.code(), "RunNotSorted");
    }

    #[test]
    fn the_rows_of_a_range_are_narrowed_to_the_neighbours_in_the_sample() {
        // keys 0, 2, .. 198 in rows 0 .. 99; the sample knows rows 0, 10, .. 90 and 99
        let sample = sample(10, vec![(0..100).map(|row| row * 2).collect()]);
        for (from, to, rows) in [
            (50, 70, 21..40), // key 50 lies in row 25, key 70 in row 35
            (0, 1, 0..10),    // row 0 itself
            (20, 21, 1..20),  // the key of row 10
            (197, 999, 91..100),
            (-9, 0, 0..0),
            (199, 999, 100..100),
            (41, 41, 21..30),
        ] {
            assert_eq!(sample.rows_within(&range(from, to)).unwrap(), rows, "{from} .. {to}");
        }
        assert_eq!(sample.rows_within(&KeyRange::default()).unwrap(), 0..100);
    }

    #[test]
    fn ranges_hold_about_as_many_rows_each_and_every_key_once() {
        let files = [sample(8, vec![(0..1000).collect()]), sample(8, vec![(900..1000).collect()])];
        for parts in 1..=7 {
            let ranges = key_ranges(&files, parts).unwrap();
            assert_eq!(ranges.len(), parts);
            let mut next = 0;
            for range in &ranges {
                let encoder = KeyEncoder::of(&[column([])]).unwrap();
                let bounds = range.encode(&encoder).unwrap();
                let inside: Vec<i32> = (0..1000)
                    .filter(|key| {
                        let keys = encoder.encode(&[column([*key])]).unwrap();
                        !bounds.is_before(&keys, 0) && !bounds.is_after(&keys, 0)
                    })
                    .collect();
                assert_eq!(inside.first(), Some(&next), "{parts} parts");
                next = inside.last().unwrap() + 1;
                let rows = inside.len() + inside.iter().filter(|key| **key >= 900).count();
                assert!(rows.abs_diff(1100 / parts) <= 24, "{rows} rows in one of {parts} parts");
            }
            assert_eq!(next, 1000, "{parts} parts");
        }
    }

    #[test]
    fn fewer_keys_than_parts_give_fewer_ranges_and_no_keys_give_one() {
        assert_eq!(key_ranges(&[sample(1, vec![vec![1, 2]])], 8).unwrap().len(), 5);
        let none = key_ranges(&[sample(1, vec![])], 8).unwrap();
        assert!(matches!(none.as_slice(), [only] if only.is_everything()));
    }

    #[test]
    fn keys_out_of_order_are_found_within_a_batch_and_between_batches() {
        for batches in [vec![vec![1, 3, 2]], vec![vec![1, 2], vec![2, 3]]] {
            let mut sampler = KeySampler::new(4);
            let error = batches.into_iter().find_map(|batch| sampler.push(&[column(batch)]).err());
            assert_eq!(error.unwrap().code(), "RunNotSorted");
        }
        let text: ArrayRef = Arc::new(StringArray::from(vec!["b", "a"]));
        assert_eq!(KeySampler::new(4).push(&[text]).unwrap_err().code(), "RunNotSorted");
    }

    #[test]
    fn files_of_a_run_follow_each_other() {
        let (low, high) = (sample(2, vec![vec![1, 5, 9]]), sample(2, vec![vec![9, 10]]));
        assert!(!low.is_before(&high).unwrap(), "9 is in both");
        assert!(low.is_before(&sample(2, vec![vec![10]])).unwrap());
        assert!(low.is_before(&sample(2, vec![])).unwrap());
    }
}
