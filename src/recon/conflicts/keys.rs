//! Whether two commits that met wrote the same keys, and other values: their files are read for it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use datafusion::error::Result as DfResult;
use futures::TryStreamExt;

use super::Conflict;
use crate::error::Result;
use crate::memory::MemoryBudget;
use crate::merge::canonical_keys;
use crate::query::compared_values;
use crate::read::{Held, ReadColumn, ReadContext, ReadOptions, SectionHandle, section};
use crate::recon::anomalies::{encoded, hashes};
use crate::recon::history::{FileChange, History};
use crate::scan::{ChangeRange, ScanKind, ScanRequest};
use crate::snapshot::SessionZone;
use crate::spec::{CommitKind, Snapshot, SnapshotId};

/// Bytes of a key that is remembered with its values.
const KEY_BYTES: usize = 64;

/// Keys that both commits of a pair wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SharedKeys {
    /// So many.
    pub common: u64,
    /// Those of them whose values, or whose being deleted, are not the same.
    pub differing: u64,
}

/// Adds what the APPEND commits of each pair wrote of the same keys.
///
/// Cost: all rows that both commits of each pair added.
///
/// # Errors
/// Files that cannot be read, memory refused.
pub async fn add_keys(
    found: &mut [Conflict],
    history: &History,
    zone: &SessionZone,
    budget: &Arc<dyn MemoryBudget>,
) -> Result<()> {
    if !history.pin.schema.is_primary_key_table() {
        return Ok(());
    }
    let appends = |snapshot: &Snapshot| snapshot.commit_kind == CommitKind::Append;
    for pair in found.iter_mut().filter(|pair| appends(&pair.commit) && appends(&pair.opponent)) {
        let mut held = Held::new(budget);
        let (mine, other) = (
            written(history, &pair.commit, zone, budget, &mut held).await?,
            written(history, &pair.opponent, zone, budget, &mut held).await?,
        );
        let mut shared = SharedKeys::default();
        for (key, values) in &mine {
            if let Some(others) = other.get(key) {
                shared.common += 1;
                shared.differing += u64::from(others != values);
            }
        }
        pair.keys = Some(shared);
    }
    Ok(())
}

/// The keys that a commit added, each with its newest values, as hashes.
async fn written(
    history: &History,
    commit: &Arc<Snapshot>,
    zone: &SessionZone,
    budget: &Arc<dyn MemoryBudget>,
    held: &mut Held,
) -> Result<HashMap<[u64; 2], [u64; 2]>> {
    let pin = history.pin_of(commit);
    let changes = history.changes(commit).await?;
    let added = changes.iter().filter(|change| matches!(change, FileChange::Add(_)));
    let entries: Vec<_> = added.map(|change| Arc::clone(change.entry())).collect();
    let none = ChangeRange { after: SnapshotId(0), upto: SnapshotId(0) };
    let kind = ScanKind::Delta(none);
    let request = ScanRequest { kind, of: Some(entries.into()), ..ScanRequest::default() };
    let plan = crate::scan::plan(&pin, &request, &history.env().scan).await?;
    let keys: Vec<usize> = pin.schema.primary_keys.iter().filter_map(|name| pin.schema.field_index(name)).collect();
    let mut columns: Vec<ReadColumn> = keys.iter().map(|index| ReadColumn::Field(*index)).collect();
    let others = (0..pin.schema.fields.len()).filter(|index| !keys.contains(index));
    columns.extend(others.map(ReadColumn::Field));
    columns.push(ReadColumn::ValueKind);
    let options = ReadOptions {
        batch_size: 8192,
        parallelism: 4,
        zone: zone.zone(),
        budget: Arc::clone(budget),
        keep_selections: false,
    };
    let context =
        ReadContext::try_new(Arc::clone(&pin), kind, true, columns, options, Arc::clone(&history.env().read))?;
    let mut rows: HashMap<[u64; 2], [u64; 2]> = HashMap::new();
    for (unit, part) in plan.sections() {
        let mut batches = section(&context, &SectionHandle::new(unit, part.clone()));
        while let Some(batch) = batches.try_next().await? {
            let (own, values) = split(&batch, keys.len())?;
            for (key, value) in own.iter().zip(&values) {
                if rows.insert(hashes(key), hashes(value)).is_none() {
                    held.grow(KEY_BYTES)?;
                }
            }
        }
    }
    Ok(rows)
}

type Bytes = Vec<Vec<u8>>;

/// Keys and values of each row as bytes.
fn split(batch: &RecordBatch, keys: usize) -> Result<(Bytes, Bytes)> {
    let own: Vec<ArrayRef> = batch.columns().iter().take(keys).map(canonical_keys).collect();
    let values = batch.columns().iter().skip(keys).map(compared_values);
    Ok((encoded(own)?, encoded(values.collect::<DfResult<_>>()?)?))
}
