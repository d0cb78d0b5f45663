//! D-13, D-16: what only reading the rows shows.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::row::{RowConverter, SortField};
use arrow::util::display::array_value_to_string;
use datafusion::error::Result as DfResult;
use futures::TryStreamExt;

use super::state::damaged;
use super::{Finding, Severity, SnapshotRange};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::MemoryBudget;
use crate::merge::canonical_keys;
use crate::query::compared_values;
use crate::read::{Held, ReadColumn, ReadContext, ReadOptions, SectionHandle, section};
use crate::recon::accounting::RECORD_EXPIRY;
use crate::recon::entry_texts::EntryTexts;
use crate::recon::history::History;
use crate::recon::lookup::Confidence;
use crate::scan::{ScanKind, ScanRequest};
use crate::snapshot::{Pin, SessionZone};
use crate::spec::options::MergeEngine;
use crate::spec::{BinaryRow, CommitKind, DataType, ManifestEntry, Snapshot};

/// Bytes of a key that is remembered.
const KEY_BYTES: usize = 48;

/// Runs the detectors that read data files, of the snapshots of a range.
///
/// Cost: the keys of the newest snapshot; of each COMPACT snapshot all rows of the buckets it touched, before and after.
///
/// # Errors
/// Storage that does not answer, memory refused. What is damaged is a finding of other detectors.
pub async fn deep(
    history: &History,
    range: SnapshotRange,
    zone: &SessionZone,
    budget: &Arc<dyn MemoryBudget>,
) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    if !history.pin.schema.is_primary_key_table() {
        return Ok(found);
    }
    let texts = history.texts(zone).await?;
    let rows = Rows { history, zone, budget };
    if let Some(latest) = history.latest().filter(|latest| range.contains(latest.id)) {
        told(rows.misplaced(latest, &texts).await, ("D-13", latest), &mut found)?;
    }
    // level 0 of a first-row table is never read, so a compaction always brings rows
    if history.pin.options.merge_engine == MergeEngine::FirstRow {
        return Ok(found);
    }
    let mut before: Option<&Arc<Snapshot>> = None;
    for snapshot in history.snapshots() {
        if let Some(previous) = before.replace(snapshot)
            && snapshot.commit_kind == CommitKind::Compact
            && range.contains(snapshot.id)
            && previous.id.0.checked_add(1) == Some(snapshot.id.0)
        {
            told(rows.changed_by(previous, snapshot, &texts).await, ("D-16", snapshot), &mut found)?;
        }
    }
    Ok(found)
}

/// What cannot be read was not checked, which is a finding of its own.
fn told(outcome: Result<Vec<Finding>>, of: (&'static str, &Snapshot), found: &mut Vec<Finding>) -> Result<()> {
    let (detector, snapshot) = of;
    match outcome {
        Ok(findings) => found.extend(findings),
        Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Exhausted | ErrorKind::Internal) => {
            return Err(error);
        }
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound) => {
            found.push(damaged(format!("the rows of snapshot {}", snapshot.id), &error, Some(snapshot.id)));
            let why = format!("the rows of snapshot {} cannot be read", snapshot.id);
            found.push(Finding::unchecked(detector, why).at([snapshot.id]));
        }
        Err(error) => found.push(Finding {
            severity: Severity::Warning,
            ..Finding::unchecked(detector, format!("what holds the rows cannot be read here: {error}"))
                .at([snapshot.id])
        }),
    }
    Ok(())
}

struct Rows<'a> {
    history: &'a History,
    zone: &'a SessionZone,
    budget: &'a Arc<dyn MemoryBudget>,
}

/// Rows as a number of them and two sums of hashes, the same in whatever order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Digest {
    rows: u64,
    sums: [u64; 2],
}

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        self.rows += 1;
        let [one, other] = hashes(bytes);
        self.sums = [self.sums[0].wrapping_add(one), self.sums[1].wrapping_add(other)];
    }
}

/// Two hashes of bytes: together they tell all that are met apart.
pub(in crate::recon) fn hashes(bytes: &[u8]) -> [u64; 2] {
    [1u8, 2].map(|salt| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        bytes.hash(&mut hasher);
        hasher.finish()
    })
}

impl Rows<'_> {
    fn context(&self, pin: &Arc<Pin>, columns: Vec<ReadColumn>) -> Result<Arc<ReadContext>> {
        let budget = Arc::clone(self.budget);
        let options =
            ReadOptions { batch_size: 8192, parallelism: 4, zone: self.zone.zone(), budget, keep_selections: false };
        let caches = Arc::clone(&self.history.env().read);
        ReadContext::try_new(Arc::clone(pin), ScanKind::Full, false, columns, options, caches)
    }

    /// D-13. Of a table that lets a key move to another partition a row may be in the new one already, while its deletion
    /// in the old one is on a level that readers do not see yet.
    async fn misplaced(&self, latest: &Arc<Snapshot>, texts: &EntryTexts) -> Result<Vec<Finding>> {
        let pin = self.history.pin_of(latest);
        let found = self.twice(&pin, latest, texts).await?;
        let moves = pin.schema.partition_keys.iter().any(|name| !pin.schema.primary_keys.contains(name));
        if found.is_empty() || !moves {
            return Ok(found);
        }
        if !self.twice(&whole(&pin), latest, texts).await?.is_empty() {
            return Ok(found);
        }
        let what = "a primary key is there twice until a compaction: it moved to another partition, and its deletion in \
                    the old one is hidden as yet";
        let told = found.into_iter().map(|finding| Finding {
            severity: Severity::Info,
            explanation: what.to_string(),
            ..finding
        });
        Ok(told.collect())
    }

    /// Whether readers of a state get a key twice.
    async fn twice(&self, pin: &Arc<Pin>, latest: &Arc<Snapshot>, texts: &EntryTexts) -> Result<Vec<Finding>> {
        let keys = pin.schema.primary_keys.iter().filter_map(|name| pin.schema.field_index(name));
        let columns: Vec<ReadColumn> = keys.map(ReadColumn::Field).collect();
        let context = self.context(pin, columns)?;
        let plan = crate::scan::plan(pin, &ScanRequest::default(), &self.history.env().scan).await?;
        let mut held = Held::new(self.budget);
        let mut places: HashMap<[u64; 2], u32> = HashMap::new();
        let (mut twice, mut example) = (0u64, None);
        for (number, unit) in (0u32..).zip(&plan.units) {
            for part in &unit.sections {
                let mut batches = section(&context, &SectionHandle::new(unit, part.clone()));
                while let Some(batch) = batches.try_next().await? {
                    for (row, bytes) in
                        encoded(batch.columns().iter().map(canonical_keys).collect())?.iter().enumerate()
                    {
                        let key = hashes(bytes);
                        if let Some(other) = places.get(&key) {
                            twice += 1;
                            example.get_or_insert_with(|| (key_text(&batch, row), *other, number));
                            continue;
                        }
                        held.grow(KEY_BYTES)?;
                        places.insert(key, number);
                    }
                }
            }
        }
        let Some((key, one, other)) = example else { return Ok(Vec::new()) };
        let place = |number: u32| -> Result<String> {
            let unit = usize::try_from(number).ok().and_then(|number| plan.units.get(number));
            let file = unit.and_then(|unit| unit.sections.iter().flat_map(|section| section.files()).next());
            file.map_or_else(|| Ok(String::new()), |file| texts.unit(&file.entry))
        };
        let what =
            "a primary key is there twice, so readers get it twice: a writer put it into another bucket or partition";
        let finding = Finding::new("D-13", Severity::Error, Confidence::Exact, what)
            .seen(format!("{twice} rows, such as {key}: in {} and in {}", place(one)?, place(other)?))
            .at([latest.id]);
        Ok(vec![finding])
    }

    /// D-16
    async fn changed_by(
        &self,
        before: &Arc<Snapshot>,
        after: &Arc<Snapshot>,
        texts: &EntryTexts,
    ) -> Result<Vec<Finding>> {
        let changes = self.history.changes(after).await?;
        let units: BTreeSet<(BinaryRow, i32)> =
            changes.iter().map(|change| (change.entry().partition.clone(), change.entry().bucket.0)).collect();
        if units.is_empty() {
            return Ok(Vec::new());
        }
        let (old, new) = (self.history.live(before).await?, self.history.live(after).await?);
        let mut found = Vec::new();
        for (partition, bucket) in units {
            // what a compaction took out of the postpone bucket is elsewhere
            if bucket < 0 {
                continue;
            }
            let own = |entries: &[Arc<ManifestEntry>]| -> Vec<Arc<ManifestEntry>> {
                entries.iter().filter(|e| e.bucket.0 == bucket && e.partition == partition).map(Arc::clone).collect()
            };
            let (old, new) = (own(&old), own(&new));
            let any = old.first().or(new.first()).map(|entry| texts.unit(entry)).transpose()?;
            let (was, is) = (self.digest(before, old).await?, self.digest(after, new).await?);
            if was == is {
                continue;
            }
            let may = self.history.pin.options.raw.contains_key(RECORD_EXPIRY);
            let severity = if may { Severity::Info } else { Severity::Error };
            let what = match may {
                true => {
                    "a compaction dropped or changed rows; record-level.expire-time lets it drop those that are old"
                }
                false => "a compaction changed what the table holds: rows were lost, changed or brought back",
            };
            let mut finding = Finding::new("D-16", severity, Confidence::Exact, what)
                .seen(format!("{} rows before, {} after; paimon_commit_keys lists them", was.rows, is.rows))
                .at([after.id])
                .of([after.commit_user.as_str()]);
            if let Some(unit) = any {
                finding = finding.in_unit(unit);
            }
            found.push(finding);
        }
        Ok(found)
    }

    /// The rows of some files of a state, those of level 0 among them.
    async fn digest(&self, snapshot: &Arc<Snapshot>, entries: Vec<Arc<ManifestEntry>>) -> Result<Digest> {
        let pin = whole(&self.history.pin_of(snapshot));
        let folds = !matches!(pin.options.merge_engine, MergeEngine::Deduplicate);
        let columns = pin.schema.fields.iter().enumerate().filter(|(_, field)| {
            // the order of elements and the last digits of sums are not kept by folding in another order
            !folds || !matches!(field.data_type(), DataType::Array(_) | DataType::Float | DataType::Double)
        });
        let context = self.context(&pin, columns.map(|(index, _)| ReadColumn::Field(index)).collect())?;
        let request = ScanRequest { of: Some(entries.into()), ..ScanRequest::default() };
        let plan = crate::scan::plan(&pin, &request, &self.history.env().scan).await?;
        let mut digest = Digest::default();
        for (unit, part) in plan.sections() {
            let mut batches = section(&context, &SectionHandle::new(unit, part.clone()));
            while let Some(batch) = batches.try_next().await? {
                // entries of a map come in any order, and a compaction may write them in another one
                let columns = batch.columns().iter().map(compared_values);
                for bytes in encoded(columns.collect::<DfResult<_>>()?)? {
                    digest.add(&bytes);
                }
            }
        }
        Ok(digest)
    }
}

/// The same state with the rows of level 0, whatever readers see of them.
fn whole(pin: &Arc<Pin>) -> Arc<Pin> {
    let mut pin = pin.as_ref().clone();
    let mut options = pin.options.as_ref().clone();
    options.deletion_vectors_merge_on_read = true;
    pin.options = Arc::new(options);
    Arc::new(pin)
}

/// Each row as bytes, equal where the rows are.
pub(in crate::recon) fn encoded(columns: Vec<ArrayRef>) -> Result<Vec<Vec<u8>>> {
    let columns: Vec<ArrayRef> = columns
        .into_iter()
        .map(|column| match RowConverter::supports_fields(&[SortField::new(column.data_type().clone())]) {
            true => Ok(column),
            false => as_text(&column),
        })
        .collect::<Result<_>>()?;
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let rows = RowConverter::new(fields)?.convert_columns(&columns)?;
    Ok(rows.iter().map(|row| row.as_ref().to_vec()).collect())
}

fn as_text(column: &ArrayRef) -> Result<ArrayRef> {
    let text = |row: usize| array_value_to_string(column, row).map_err(Error::from);
    let texts: Vec<String> = (0..column.len()).map(text).collect::<Result<_>>()?;
    Ok(Arc::new(StringArray::from(texts)))
}

fn key_text(batch: &RecordBatch, row: usize) -> String {
    let text = |column: &ArrayRef| array_value_to_string(column, row).unwrap_or_default();
    let parts: Vec<String> = batch.columns().iter().map(text).collect();
    format!("[{}]", parts.join(", "))
}
