//! Functions that keep one of the values by its place: `last_value`, `last_non_null_value`, `first_value`,
//! `first_non_null_value`.

use super::{AggregateFunction, FoldState, Spec};
use crate::error::Result;
use crate::merge::cell::{Cell, Column};

#[derive(Debug)]
struct LastValue;

pub(super) fn last_value(_spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    Ok(Box::new(LastValue))
}

impl AggregateFunction for LastValue {
    fn agg(&self, _acc: Cell, input: Cell, _column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        Ok(input)
    }

    fn retract(&self, _acc: Cell, _input: Cell, _column: &Column<'_>) -> Result<Option<Cell>> {
        Ok(Some(Cell::Null))
    }
}

#[derive(Debug)]
struct LastNonNullValue;

pub(super) fn last_non_null_value(_spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    Ok(Box::new(LastNonNullValue))
}

impl AggregateFunction for LastNonNullValue {
    fn agg(&self, acc: Cell, input: Cell, _column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        Ok(if input.is_null() { acc } else { input })
    }

    fn retract(&self, acc: Cell, input: Cell, _column: &Column<'_>) -> Result<Option<Cell>> {
        Ok(Some(if input.is_null() { acc } else { Cell::Null }))
    }
}

/// Whether a first value was taken is remembered beside the value: a NULL counts as one, and an older value that comes
/// later (`agg_reversed`) takes the place of the accumulated one.
#[derive(Debug)]
struct FirstValue {
    non_null: bool,
}

pub(super) fn first_value(_spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    Ok(Box::new(FirstValue { non_null: false }))
}

pub(super) fn first_non_null_value(_spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    Ok(Box::new(FirstValue { non_null: true }))
}

impl AggregateFunction for FirstValue {
    fn agg(&self, acc: Cell, input: Cell, _column: &Column<'_>, state: &mut FoldState) -> Result<Cell> {
        if state.initialized || (self.non_null && input.is_null()) {
            return Ok(acc);
        }
        state.initialized = true;
        Ok(input)
    }
}
