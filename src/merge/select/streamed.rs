//! Selection out of a merge of batches of keys, for sections whose keys do not fit into memory.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::TryStreamExt;

use super::mask::Mask;
use super::{SectionSelection, SelectionStats};
use crate::error::{Error, Result};
use crate::merge::rules::MergeRules;
use crate::merge::tree::{MergeOptions, RunInput, merge_runs};

/// The column in which positions travel: no column of the table.
const POSITION: usize = usize::MAX;

/// Selects the live rows of a section as [`select`](super::select) does, in the memory of a merge: one batch a run.
///
/// Batches of the runs have the columns of [`MergeRules::required_columns`] of no projection, then the position of the
/// row (Int64) among all rows of the section, then `_SEQUENCE_NUMBER` and `_VALUE_KIND`. Rows that a vector deletes do
/// not come. `files` are the numbers of physical rows, per run and file; positions count them in that order.
///
/// # Errors
/// Those of a merge; an engine other than deduplicate and first-row.
pub async fn select_streamed(
    runs: Vec<RunInput>,
    rules: &Arc<MergeRules>,
    files: &[Vec<usize>],
    options: MergeOptions,
) -> Result<SectionSelection> {
    if !rules.is_selection() {
        return Err(Error::internal("rows of this merge engine are computed, not selected"));
    }
    let mut columns = rules.required_columns(&[])?;
    let position = columns.len();
    columns.push(POSITION);
    let counters = Arc::clone(&options.counters);
    let rows: usize = files.iter().flatten().sum();
    let mut live = Mask::none(rows);
    let mut merged = merge_runs(runs, Arc::clone(rules), &columns, options);
    while let Some(batch) = merged.try_next().await? {
        let positions = batch.columns().get(position).and_then(|column| column.as_primitive_opt::<Int64Type>());
        let positions = positions.ok_or_else(|| Error::internal("a merge of keys lost their positions"))?;
        for at in positions.values() {
            match usize::try_from(*at) {
                Ok(at) if at < rows => live.set(at),
                _ => return Err(Error::internal("a position lies outside of the section")),
            }
        }
    }
    let stats = SelectionStats {
        rows: rows as u64,
        vector_deleted: (rows as u64).saturating_sub(counters.rows()),
        keys: counters.keys(),
        superseded: counters.superseded(),
        tombstones: counters.tombstones(),
        live: live.count(),
    };
    if stats.keys != stats.tombstones + stats.live {
        return Err(Error::internal("a selection counted other live rows than it gave"));
    }
    let live = live.into_buffer();
    let mut from = 0;
    let mut next = |rows: &usize| {
        from += rows;
        live.slice(from - rows, *rows)
    };
    let files = files.iter().map(|run| run.iter().map(&mut next).collect()).collect();
    Ok(SectionSelection { files, stats })
}
