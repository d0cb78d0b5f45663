//! What metadata alone says of the final rows of a section.
//!
//! Of a file with `r` rows, `v` of them named by its vector and `d` that take back, `r - v` rows are visible; of these
//! between `d - v` and `min(d, r - v)` take back, since a vector may name a row that does. What is not said, of a vector
//! or of rows that take back, may be none and may be all; a count of no such row says nothing either, but for files of
//! which that is certain: some writers put it whatever the file holds.
//!
//! | section | final rows are at least | and at most |
//! |---|---|---|
//! | kind-only: each key once | `r - v - d`, file by file | `r - max(v, d)`, file by file |
//! | merged | the most keys that one run has, less all rows that take back | rows that do not take back |
//! | merged by aggregation | the same | the same, and one for two rows that take back |
//!
//! *At least*: a run has each key once, so a section has at least as many keys as any of its runs has visible rows, and
//! under every engine a key without a result has a row that takes back: it is what won (deduplicate), what removed the
//! record (partial-update, aggregation), or all there is of the key (first-row, ignore-delete). *At most*: what won is a
//! row that does not take back; under partial-update a record without one is no row. Aggregation alone makes a row of
//! nothing but rows that take back, and of two at least, since a single one is given as it is. Rows that record-level
//! expiry may drop are final until a compaction drops them: readers do not.

use std::sync::Arc;

use crate::scan::{PlannedFile, Section, SectionClass};
use crate::spec::CoreOptions;
use crate::spec::options::MergeEngine;

/// Least and most.
#[derive(Debug, Clone, Copy, Default)]
struct Between {
    low: u64,
    high: u64,
}

/// Rows of a file.
struct Rows {
    /// That no vector names.
    visible: Between,
    /// Those of them that take back.
    retracts: Between,
}

impl Rows {
    fn of(file: &PlannedFile, keyed: bool, options: &CoreOptions) -> Self {
        let rows = file.physical_rows();
        let visible = match file.rows_after_vector() {
            Some(left) => Between { low: left, high: left },
            None => Between { low: 0, high: rows },
        };
        let told = file.entry.file.delete_row_count.and_then(|count| u64::try_from(count).ok());
        let told = told.filter(|count| *count > 0 || file.is_clean(options));
        let retracts = match told {
            // in append tables every row counts, whatever its kind
            _ if !keyed => Between::default(),
            Some(count) => {
                let count = count.min(rows);
                let named = rows - visible.low;
                Between { low: count.saturating_sub(named), high: count.min(visible.high) }
            }
            None => Between { low: 0, high: visible.high },
        };
        Self { visible, retracts }
    }
}

/// Least and most final rows of a section of a table with these options. `keyed`: whether it has a primary key.
pub(super) fn bounds(section: &Section, keyed: bool, options: &CoreOptions) -> (u64, u64) {
    if let Some(exact) = section.exact_rows() {
        return (exact, exact);
    }
    let keyed = keyed && section.class != SectionClass::Raw;
    let of = |file: &Arc<PlannedFile>| Rows::of(file, keyed, options);
    let rows: Vec<Vec<Rows>> = section.runs.iter().map(|run| run.iter().map(of).collect()).collect();
    let all = || rows.iter().flatten();
    let alone = |one: &Rows| one.visible.low.saturating_sub(one.retracts.high);
    if !section.class.is_merge() {
        // as many as are visible at most, as many of them as take back at least
        let high = all().map(|one| one.visible.high.saturating_sub(one.retracts.low)).sum();
        return (all().map(alone).sum(), high);
    }
    let retracts = all().map(|one| one.retracts.high).fold(0u64, u64::saturating_add);
    let keys = rows.iter().map(|run| run.iter().map(|one| one.visible.low).sum::<u64>()).max().unwrap_or(0);
    let visible: u64 = all().map(|one| one.visible.high).sum();
    let taken: u64 = all().map(|one| one.retracts.low).sum();
    let made = if options.merge_engine == MergeEngine::Aggregation { taken / 2 } else { 0 };
    (keys.saturating_sub(retracts), visible.saturating_sub(taken) + made)
}

#[cfg(test)]
mod tests;
