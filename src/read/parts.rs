//! A section that is merged, in parts that other cores merge at the same time.
//!
//! The keys of all files are read once, and every so many kept. They tell where to cut the keys of the section into ranges
//! with about as many rows each, and between which rows of each file a range lies. Statistics are not asked: they are
//! missing, cut short or too coarse in many files, and the keys are little beside the rows that are merged.
//!
//! ```text
//! keys      1 . . . . . . . . 40 . . . . . . . . 90
//! file a    [-----------------|------------------]      part 0: keys below 40 of a, b, c
//! file b       [--------------|-----]                   part 1: keys from 40 on of a, b, c
//! file c                 [----|--------]
//! ```
//! Every reader of a part cuts for itself: the same files give the same ranges, in every process.
//!
//! Only Parquet files can be read from the middle. A section with an ORC or Avro file is merged whole, on one core, while
//! others decode.

use std::ops::Range;
use std::sync::Arc;

use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use super::context::{ReadContext, SectionHandle};
use super::data_file::{Output, open_columns};
use super::deletion::mask_rows;
use super::held::{AbortOnDrop, Held};
use super::selection::sized;
use super::stretch::{by_stretches, narrowed};
use crate::error::{Error, Result};
use crate::merge::{KeyRange, KeySample, KeySampler, MergeRules, key_ranges};
use crate::scan::PlannedFile;

/// Samples of a file, unless that makes the steps too short or too long.
const SAMPLES: usize = 1024;

/// Rows between two samples. Depends on nothing but the file, so that every process finds the same.
const STEP: std::ops::RangeInclusive<usize> = 64..=8192;

/// One of the parts of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SectionPart {
    /// From 0.
    pub number: usize,
    /// How many parts there are.
    pub of: usize,
}

/// Samples of the keys of a section's files, run by run.
#[derive(Debug)]
pub struct SectionSamples {
    runs: Vec<Vec<KeySample>>,
}

/// What one part reads.
pub struct PartRows {
    /// Its keys.
    pub range: KeyRange,
    /// Per run and file: the rows among which they lie.
    pub rows: Vec<Vec<Range<usize>>>,
}

impl SectionSamples {
    /// What a part reads; None when there are not as many keys.
    ///
    /// # Errors
    /// Keys of several types.
    pub fn part(&self, part: SectionPart) -> Result<Option<PartRows>> {
        let ranges = key_ranges(self.runs.iter().flatten(), part.of)?;
        let Some(range) = ranges.into_iter().nth(part.number) else { return Ok(None) };
        let of_run = |run: &Vec<KeySample>| run.iter().map(|file| file.rows_within(&range)).collect();
        let rows = self.runs.iter().map(of_run).collect::<Result<_>>()?;
        Ok(Some(PartRows { range, rows }))
    }
}

/// The samples of a section, taken by the first who asks, shared by all.
pub async fn samples(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>) -> Result<Arc<SectionSamples>> {
    let (own_context, own_handle) = (Arc::clone(context), Arc::clone(handle));
    handle
        .samples
        .get_or_compute(move || async move { compute(&own_context, &own_handle).await.map(Arc::new) }.boxed())
        .await
}

async fn compute(context: &Arc<ReadContext>, handle: &Arc<SectionHandle>) -> Result<SectionSamples> {
    let rules = Arc::clone(context.rules(handle)?);
    let files: Vec<Arc<PlannedFile>> = handle.section.files().cloned().collect();
    let taken: Vec<(KeySample, Held)> = stream::iter(files.into_iter().map(|file| {
        let (context, rules) = (Arc::clone(context), Arc::clone(&rules));
        AbortOnDrop(tokio::spawn(async move { sample(&context, &file, &rules).await }))
    }))
    .buffered(context.options.parallelism.max(1))
    .try_collect()
    .await
    .map_err(|error| sized(error, context, handle))?;
    let mut taken = taken.into_iter().map(|(sample, _)| sample);
    let mut runs: Vec<Vec<KeySample>> = Vec::with_capacity(handle.section.runs.len());
    for files in &handle.section.runs {
        let run: Vec<KeySample> = taken.by_ref().take(files.len()).collect();
        for (pair, named) in run.windows(2).zip(files.windows(2)) {
            if let ([before, after], [file_before, file]) = (pair, named)
                && !before.is_before(after)?
            {
                let name = &file_before.entry.file.file_name;
                return Err(Error::corrupt(format!("keys overlap those of {name}, a file of the same run"))
                    .with_code("RunNotSorted")
                    .with_context("file", &file.location)
                    .with_hint(
                        "the file is damaged, or its manifest entry gives it or its neighbour wrong keys (_MIN_KEY, \
                         _MAX_KEY): restore the one that is, or read a snapshot or tag that needs neither",
                    ));
            }
        }
        runs.push(run);
    }
    Ok(SectionSamples { runs })
}

async fn sample(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    rules: &Arc<MergeRules>,
) -> Result<(KeySample, Held)> {
    let rows = mask_rows(context, file).await?;
    let step = (rows / SAMPLES).clamp(*STEP.start(), *STEP.end());
    context.counters.add_key_files(1);
    let samples = by_stretches(context, file, 0..rows, |context, file, span| {
        let rules = Arc::clone(rules);
        async move { sample_stretch(&context, &file, &rules, step, rows, span).await }
    })
    .await?;
    let sample = KeySample::join(samples, step).map_err(|error| error.with_context("file", &file.location))?;
    let mut held = Held::new(&context.options.budget);
    held.grow(sample.bytes())?;
    Ok((sample, held))
}

async fn sample_stretch(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    rules: &MergeRules,
    step: usize,
    rows: usize,
    span: Range<usize>,
) -> Result<KeySample> {
    let keys = rules.key_columns().iter().map(|index| Output::field(context, *index)).collect::<Result<Vec<_>>>()?;
    let mut sampler = KeySampler::starting(span.start, step);
    let live = narrowed(None, rows, span)?;
    let mut batches = open_columns(context, file, keys, live, context.options.batch_size).await?;
    while let Some(batch) = batches.next().await {
        sampler.push(batch?.columns()).map_err(|error| error.with_context("file", &file.location))?;
    }
    sampler.finish()
}
