//! `collect`: elements of arrays, all or distinct.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef};

use super::elements::{Pick, collection, encode};
use super::{AggregateFunction, FoldState, Spec};
use crate::error::Result;
use crate::merge::cell::{Cell, Column};
use crate::spec::DataType;

/// Distinct elements keep the order of their first occurrence; Java keeps it only where it compares elements one by
/// one (binaries and nested values) and gives hash order otherwise.
#[derive(Debug)]
struct Collect {
    distinct: bool,
    /// Java trusts the accumulated array to be distinct where it compares one by one.
    trusts_accumulated: bool,
}

pub(super) fn collect(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    let DataType::Array(element) = spec.field.data_type() else { return Err(spec.wrong_type("ARRAY")) };
    let trusts_accumulated = matches!(
        element.data_type,
        DataType::Array(_)
            | DataType::Map(..)
            | DataType::Multiset(_)
            | DataType::Row(_)
            | DataType::Vector(..)
            | DataType::Binary(_)
            | DataType::Varbinary(_)
    );
    Ok(Box::new(Collect { distinct: spec.flag("distinct")?, trusts_accumulated }))
}

impl AggregateFunction for Collect {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        let (old, new) = match (column.elements(&acc)?, column.elements(&input)?) {
            (None, None) => return Ok(Cell::Null),
            (Some(_), None) if !self.distinct => return Ok(acc),
            (None, Some(_)) if !self.distinct => return Ok(input),
            (old, new) => (old, new),
        };
        let trusted = if self.trusts_accumulated { usize::from(old.is_some()) } else { 0 };
        let sources: Vec<ArrayRef> = old.into_iter().chain(new).collect();
        let everything = sources.iter().enumerate().flat_map(|(s, array)| (0..array.len()).map(move |at| (s, at)));
        let picks: Vec<Pick> = if self.distinct {
            let columns: Vec<Vec<ArrayRef>> = sources.iter().map(|source| vec![ArrayRef::clone(source)]).collect();
            let rows = encode(&columns)?;
            let mut known = HashSet::new();
            everything.filter(|&(source, at)| known.insert(rows[source].row(at).owned()) || source < trusted).collect()
        } else {
            everything.collect()
        };
        collection(column, &sources, &picks)
    }

    fn agg_reversed(&self, acc: Cell, input: Cell, column: &Column<'_>, state: &mut FoldState) -> Result<Cell> {
        self.agg(acc, input, column, state)
    }

    fn retract(&self, acc: Cell, input: Cell, column: &Column<'_>) -> Result<Option<Cell>> {
        let (old, gone) = match (column.elements(&acc)?, column.elements(&input)?) {
            (Some(old), Some(gone)) if !gone.is_empty() => (old, gone),
            _ => return Ok(Some(acc)),
        };
        let rows = encode(&[vec![ArrayRef::clone(&old)], vec![gone]])?;
        let [old_rows, gone_rows] = rows.as_slice() else { return Ok(Some(acc)) };
        let mut gone: Vec<_> = gone_rows.iter().collect();
        let mut picks: Vec<Pick> = Vec::with_capacity(old.len());
        for (at, row) in old_rows.iter().enumerate() {
            match gone.iter().position(|gone| *gone == row) {
                Some(found) => {
                    gone.remove(found);
                }
                None => picks.push((0, at)),
            }
        }
        collection(column, &[old], &picks).map(Some)
    }
}
