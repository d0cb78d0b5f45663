//! A section cut into ranges of keys, so that each is selected on its own: on another core, and in a time after which a
//! cancelled query can stop.

use arrow::array::{Array, ArrayRef};
use arrow::buffer::BooleanBuffer;

use super::{FileSequence, KeyFile, SectionSelection, SelectionStats};
use crate::error::{Error, Result};
use crate::merge::keys::KeyEncoder;
use crate::merge::range::KeyRange;
use crate::merge::sample::{KeySample, KeySampler, key_ranges};

/// Keys sampled of a file for each part.
const SAMPLES_A_PART: usize = 64;

/// Cuts a section into at most `parts` ranges of keys with about as many rows each: the same runs and files in every
/// part, each with its rows of the range. Nothing is copied.
///
/// # Errors
/// Corrupt: keys that do not increase from one file of a run to the next.
pub fn cut(runs: Vec<Vec<KeyFile>>, parts: usize) -> Result<Vec<Vec<Vec<KeyFile>>>> {
    if parts < 2 {
        return Ok(vec![runs]);
    }
    let rows = runs.iter().flatten().map(KeyFile::rows).sum::<usize>();
    let step = rows.div_ceil(parts * SAMPLES_A_PART);
    let mut samples = Vec::with_capacity(runs.len());
    for run in &runs {
        let mut of_run: Vec<KeySample> = Vec::with_capacity(run.len());
        for file in run {
            let sample = sample(file, step).map_err(|error| error.with_context("file", &file.name))?;
            check_order(&of_run, run, &sample, file)?;
            of_run.push(sample);
        }
        samples.push(of_run);
    }
    let ranges = key_ranges(samples.iter().flatten(), parts)?;
    let mut cut: Vec<Vec<Vec<KeyFile>>> = ranges.iter().map(|_| Vec::with_capacity(runs.len())).collect();
    for (run, samples) in runs.into_iter().zip(&samples) {
        cut.iter_mut().for_each(|part| part.push(Vec::with_capacity(run.len())));
        for (file, sample) in run.into_iter().zip(samples) {
            let mut from = 0;
            for (number, (range, part)) in ranges.iter().zip(&mut cut).enumerate() {
                let last = number + 1 == ranges.len();
                let to = if last { file.rows() } else { end_of(&file, sample, range)?.max(from) };
                file.check_increase(from)?;
                if let Some(run) = part.last_mut() {
                    run.push(file.slice(from, to - from));
                }
                from = to;
            }
        }
    }
    Ok(cut)
}

/// Puts the selections of the parts together again, in their order.
///
/// # Errors
/// Parts of several sections.
pub fn join(parts: Vec<SectionSelection>) -> Result<SectionSelection> {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return Err(Error::internal("a selection of no parts")) };
    let mut stats = first.stats;
    let mut files: Vec<Vec<Vec<BooleanBuffer>>> =
        first.files.into_iter().map(|run| run.into_iter().map(|live| vec![live]).collect()).collect();
    for part in parts {
        stats = stats.plus(&part.stats);
        for (run, more) in files.iter_mut().zip(part.files) {
            for (file, live) in run.iter_mut().zip(more) {
                file.push(live);
            }
        }
    }
    let files = files.into_iter().map(|run| run.into_iter().map(joined).collect()).collect();
    Ok(SectionSelection { files, stats })
}

fn joined(mut parts: Vec<BooleanBuffer>) -> BooleanBuffer {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return only;
    }
    let mut all = arrow::array::BooleanBufferBuilder::new(parts.iter().map(BooleanBuffer::len).sum());
    parts.iter().for_each(|part| all.append_buffer(part));
    all.finish()
}

fn sample(file: &KeyFile, step: usize) -> Result<KeySample> {
    // the rows between are looked at by the part they fall into
    let mut sampler = KeySampler::unchecked(step);
    sampler.push(&file.keys)?;
    sampler.finish()
}

fn check_order(before: &[KeySample], run: &[KeyFile], sample: &KeySample, file: &KeyFile) -> Result<()> {
    for (sample_before, before) in before.iter().zip(run).rev() {
        if before.rows() > 0 {
            return if sample_before.is_before(sample)? {
                Ok(())
            } else {
                Err(super::overlap(&before.name, &file.name))
            };
        }
    }
    Ok(())
}

/// The first row of `file` that lies behind `range`.
fn end_of(file: &KeyFile, sample: &KeySample, range: &KeyRange) -> Result<usize> {
    let near = sample.end_of(range)?;
    let columns: Vec<ArrayRef> =
        file.keys.iter().map(|column| column.slice(near.start, near.end - near.start)).collect();
    let encoder = KeyEncoder::of(&columns)?;
    let bounds = range.encode(&encoder)?;
    Ok(near.start + bounds.end(&encoder.encode(&columns)?, 0))
}

impl KeyFile {
    /// Whether the keys increase from the row before `row` to it.
    fn check_increase(&self, row: usize) -> Result<()> {
        let Some(before) = row.checked_sub(1).filter(|_| row < self.rows()) else { return Ok(()) };
        let encoder = KeyEncoder::of(&self.keys)?;
        let two: Vec<ArrayRef> = self.keys.iter().map(|column| column.slice(before, 2)).collect();
        if encoder.encode(&two)?.first_disorder().is_some() {
            return Err(super::disorder(row).with_context("file", &self.name));
        }
        Ok(())
    }

    /// `rows` of its rows from `from` on; nothing is copied.
    pub fn slice(&self, from: usize, rows: usize) -> Self {
        let columns = |columns: &[ArrayRef]| columns.iter().map(|column| column.slice(from, rows)).collect();
        Self {
            level: self.level,
            name: self.name.clone(),
            keys: columns(&self.keys),
            user_sequence: columns(&self.user_sequence),
            sequence: match &self.sequence {
                FileSequence::Constant(number) => FileSequence::Constant(*number),
                FileSequence::Rows(numbers) => FileSequence::Rows(numbers.slice(from, rows)),
            },
            kinds: self.kinds.as_ref().map(|kinds| kinds.slice(from, rows)),
            deleted: self.deleted.as_ref().map(|deleted| deleted.slice(from, rows)),
        }
    }
}

impl SelectionStats {
    fn plus(&self, other: &Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            vector_deleted: self.vector_deleted + other.vector_deleted,
            keys: self.keys + other.keys,
            superseded: self.superseded + other.superseded,
            tombstones: self.tombstones + other.tombstones,
            live: self.live + other.live,
        }
    }
}
