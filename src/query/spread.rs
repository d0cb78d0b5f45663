//! Work items over output partitions.

use std::sync::Arc;

use super::nodes::read_exec::Item;
use crate::read::SectionHandle;
use crate::scan::SectionClass;

/// Cost of merging a byte of a section, against reading a byte of a file.
const MERGE_WEIGHT: u64 = 3;

/// The items of some sections: whole sections where versions are combined, single files else, so that one bucket can
/// use every core.
pub fn items(handles: &[Arc<SectionHandle>], keep_deletes: bool) -> Vec<(Item, u64)> {
    let mut items = Vec::new();
    for handle in handles {
        let merged = match handle.section.class {
            SectionClass::Combine => true,
            SectionClass::Select => keep_deletes,
            SectionClass::Raw | SectionClass::KindOnly => false,
        };
        if merged {
            let bytes = handle.section.files().map(|file| file.entry.file.file_size).fold(0, u64::saturating_add);
            items.push((Item::Section(Arc::clone(handle)), bytes.saturating_mul(MERGE_WEIGHT)));
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
