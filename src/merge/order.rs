//! The order in which records of one key are folded, and which of them count.

use std::cmp::Ordering;

use arrow::array::Array;

use super::cell::RowRef;
use super::compare::compare_sequence;
use crate::error::{Error, Result};
use crate::spec::RowKind;

/// One record of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) at: RowRef,
    /// `_SEQUENCE_NUMBER`.
    pub(super) sequence: i64,
    pub(super) kind: RowKind,
    /// Level of its file.
    pub(super) level: i32,
    /// Decides what nothing else does: later runs and files are larger.
    pub(super) place: u32,
}

/// Sorts the records of one key into the order of folding: user sequence (nulls lowest in both directions), then
/// sequence number, then retract before add, then place.
///
/// `total` says that the user sequence is an order. With NaN, which ties with every number, it is none, and a sort might
/// do anything: then each record, in the order of the others, moves before its predecessors only as long as it is less.
pub(super) fn sort(records: &mut [Record], total: bool, user_sequence: impl Fn(RowRef, RowRef) -> Ordering) {
    records.sort_by(|a, b| {
        a.sequence.cmp(&b.sequence).then(b.kind.is_retract().cmp(&a.kind.is_retract())).then(a.place.cmp(&b.place))
    });
    if total {
        records.sort_by(|a, b| user_sequence(a.at, b.at));
        return;
    }
    for at in 1..records.len() {
        let before = records[..at].iter().rev().take_while(|older| user_sequence(records[at].at, older.at).is_lt());
        let moved = before.count();
        records[at - moved..=at].rotate_right(1);
    }
}

/// Orders row `i` of the first columns and row `j` of the second by the user sequence.
pub(super) fn compare_user_sequence<'a>(
    columns: impl IntoIterator<Item = (&'a dyn Array, &'a dyn Array)>,
    i: usize,
    j: usize,
    descending: bool,
) -> Ordering {
    for (a, b) in columns {
        let order = compare_sequence(a, i, b, j);
        if order.is_eq() {
            continue;
        }
        // descending turns values around, not nulls
        let reverse = descending && a.is_valid(i) && b.is_valid(j);
        return if reverse { order.reverse() } else { order };
    }
    Ordering::Equal
}

/// Where levels above 0 hold complete rows: keeps the records of level 0 and, of the others, the one on the lowest
/// level. Nothing else of the upper levels may be folded: it is already contained. `records` are in order.
pub(super) fn retain_lookup(records: &mut Vec<Record>) {
    let lowest = records
        .iter()
        .enumerate()
        .filter(|(_, record)| record.level > 0)
        .min_by_key(|(at, record)| (record.level, *at))
        .map(|(at, _)| at);
    let mut at = 0;
    records.retain(|record| {
        let keep = record.level <= 0 || Some(at) == lowest;
        at += 1;
        keep
    });
}

/// The kind a stored byte means.
pub(super) fn row_kind(byte: i8) -> Result<RowKind> {
    RowKind::from_byte(byte)
        .ok_or_else(|| Error::corrupt(format!("{byte} is no row kind")).with_context("column", "_VALUE_KIND"))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int32Array};

    use super::*;

    fn record(row: u32, sequence: i64, kind: RowKind, level: i32) -> Record {
        Record { at: RowRef { batch: 0, row }, sequence, kind, level, place: row }
    }

    fn order(values: Vec<Option<i32>>, descending: bool, mut records: Vec<Record>) -> Vec<u32> {
        let array = Int32Array::from(values);
        sort(&mut records, true, |a, b| {
            compare_user_sequence(
                [(&array as &dyn Array, &array as &dyn Array)],
                a.row as usize,
                b.row as usize,
                descending,
            )
        });
        records.iter().map(|record| record.at.row).collect()
    }

    #[test]
    fn nulls_are_lowest_in_both_directions() {
        let records: Vec<_> = (0..3).map(|row| record(row, 0, RowKind::Insert, 0)).collect();
        assert_eq!(order(vec![Some(1), None, Some(2)], false, records.clone()), [1, 0, 2]);
        assert_eq!(order(vec![Some(1), None, Some(2)], true, records), [1, 2, 0]);
    }

    #[test]
    fn zeros_and_nan_tie_so_that_the_later_write_is_last() {
        let order = |values: [f64; 3]| {
            let array = Float64Array::from(values.to_vec());
            let mut records: Vec<_> = (0..3).map(|row| record(row, i64::from(row), RowKind::Insert, 0)).collect();
            sort(&mut records, false, |a, b| {
                let columns = [(&array as &dyn Array, &array as &dyn Array)];
                compare_user_sequence(columns, a.row as usize, b.row as usize, false)
            });
            records.iter().map(|record| record.at.row).collect::<Vec<_>>()
        };
        assert_eq!(order([0.0, -0.0, 0.0]), [0, 1, 2]);
        assert_eq!(order([-0.0, 1.0, 0.0]), [0, 2, 1]);
        assert_eq!(order([5.0, f64::NAN, 7.0]), [0, 1, 2]);
        assert_eq!(order([f64::INFINITY, 1.0, f64::NAN]), [1, 0, 2]);
        assert_eq!(order([5.0, f64::NAN, 3.0]), [0, 1, 2], "3 does not go past NaN");
    }

    #[test]
    fn ties_go_by_sequence_number_then_retract_first_then_place() {
        let same = vec![Some(1); 5];
        let records = vec![
            record(0, 9, RowKind::Insert, 0),
            record(1, 9, RowKind::Delete, 0),
            record(2, 9, RowKind::UpdateAfter, 0),
            record(3, 8, RowKind::Insert, 0),
            record(4, 9, RowKind::UpdateBefore, 0),
        ];
        assert_eq!(order(same, false, records), [3, 1, 4, 0, 2]);
    }

    #[test]
    fn only_the_lowest_of_the_upper_levels_counts() {
        let mut records = vec![
            record(0, 2, RowKind::Insert, 5),
            record(1, 5, RowKind::Insert, 0),
            record(2, 9, RowKind::Insert, 4),
            record(3, 15, RowKind::Insert, 3),
            record(4, 16, RowKind::Insert, 0),
        ];
        retain_lookup(&mut records);
        assert_eq!(records.iter().map(|record| record.at.row).collect::<Vec<_>>(), [1, 3, 4]);
    }
}
