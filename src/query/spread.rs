//! Work items over output partitions.

use std::sync::Arc;

use super::nodes::read_exec::Item;
use crate::file::FileFormat;
use crate::read::{SectionHandle, SectionPart, is_merged};
use crate::scan::Section;

/// Cost of merging a byte of a section, against reading a byte of a file.
const MERGE_WEIGHT: u64 = 3;

/// The fewest rows of a part, against those of a page of a file: both neighbours of a cut read the page it goes through.
const PAGES_A_PART: u64 = 16;

/// How sections are laid over output partitions.
#[derive(Debug, Clone, Copy)]
pub struct Cutting {
    /// Whether rows that take back others are asked for: then every section is merged.
    pub keep_deletes: bool,
    /// Output partitions.
    pub targets: usize,
    /// Fewest rows of a part of a merged section; None: such sections stay whole.
    pub part_rows: Option<u64>,
}

/// The items of some sections: single files where versions are not combined, else whole sections or, where these are
/// too large for one partition, their parts; so that one bucket can use every core.
pub fn items(handles: &[Arc<SectionHandle>], cutting: Cutting) -> Vec<(Item, u64)> {
    let weight = |handle: &SectionHandle| -> u64 {
        let bytes = handle.section.files().map(|file| file.entry.file.file_size).fold(0, u64::saturating_add);
        if is_merged(&handle.section, cutting.keep_deletes) { bytes.saturating_mul(MERGE_WEIGHT) } else { bytes }
    };
    let weights: Vec<u64> = handles.iter().map(|handle| weight(handle)).collect();
    let share = weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight)) / cutting.targets.max(1) as u64;
    let mut items = Vec::new();
    for (handle, weight) in handles.iter().zip(weights) {
        if is_merged(&handle.section, cutting.keep_deletes) {
            let of = parts(&handle.section, weight, share, cutting);
            if of < 2 {
                items.push((Item::Section(Arc::clone(handle)), weight));
                continue;
            }
            let weight = weight / of as u64;
            items.extend(
                (0..of).map(|number| {
                    (Item::Part { section: Arc::clone(handle), part: SectionPart { number, of } }, weight)
                }),
            );
            continue;
        }
        for (run, files) in handle.section.runs.iter().enumerate() {
            for (file, planned) in files.iter().enumerate() {
                let item = Item::File { section: Arc::clone(handle), run, file };
                items.push((item, planned.entry.file.file_size));
            }
        }
    }
    items
}

/// Into how many parts a merged section is cut, so that none weighs much more than the share of a partition.
fn parts(section: &Section, weight: u64, share: u64, cutting: Cutting) -> usize {
    let Some(part_rows) = cutting.part_rows else { return 1 };
    // a file of another format is decoded from its beginning by every part
    let stretches = |name: &str| matches!(FileFormat::of_file(name), Ok(FileFormat::Parquet));
    // a quarter above the share is not worth a second look at the keys
    if weight <= share.saturating_add(share / 4) || !section.files().all(|file| stretches(&file.entry.file.file_name)) {
        return 1;
    }
    let rows = section.files().map(|file| file.physical_rows()).fold(0, u64::saturating_add);
    // a cut goes through one file of each run
    let seam = section.runs.iter().map(|run| {
        let rows = run.iter().map(|file| file.physical_rows()).max().unwrap_or_default();
        rows.min(part_rows / PAGES_A_PART)
    });
    let seam = seam.fold(0, u64::saturating_add).max(1);
    let wanted = weight.div_ceil(share.max(1)).min(cutting.targets as u64);
    usize::try_from(wanted.min(rows / part_rows.max(1)).min(rows / seam)).unwrap_or(1)
}

/// Spreads items over at most `targets` partitions: the largest first, each to the partition with the least so far. Within a
/// partition the given order is kept. The same items give the same spread.
pub fn spread<T>(items: Vec<(T, u64)>, targets: usize) -> Vec<Vec<T>> {
    let partitions = targets.clamp(1, items.len().max(1));
    let mut order: Vec<(usize, u64)> = items.iter().map(|(_, weight)| *weight).enumerate().collect();
    order.sort_by_key(|(at, weight)| (std::cmp::Reverse(*weight), *at));
    let mut loads: Vec<u64> = vec![0; partitions];
    let mut home: Vec<usize> = vec![0; items.len()];
    for (at, weight) in order {
        let Some((partition, load)) = loads.iter_mut().enumerate().min_by_key(|(partition, load)| (**load, *partition))
        else {
            continue;
        };
        // an empty file costs a request all the same
        *load = load.saturating_add(weight.max(1));
        if let Some(slot) = home.get_mut(at) {
            *slot = partition;
        }
    }
    let mut spread: Vec<Vec<T>> = (0..partitions).map(|_| Vec::new()).collect();
    for ((item, _), partition) in items.into_iter().zip(home) {
        if let Some(list) = spread.get_mut(partition) {
            list.push(item);
        }
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_items_go_apart_and_order_is_kept_within_a_partition() {
        let items = vec![("a", 1), ("b", 10), ("c", 9), ("d", 2)];
        assert_eq!(spread(items, 2), [vec!["a", "b"], vec!["c", "d"]]);
        assert_eq!(spread(vec![("a", 0), ("b", 0)], 8), [vec!["a"], vec!["b"]]);
        assert_eq!(spread(Vec::<((), u64)>::new(), 8), [Vec::<()>::new()]);
    }
}
