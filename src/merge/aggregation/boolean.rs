//! `bool_and` and `bool_or`.

use super::{AggregateFunction, FoldState, Spec};
use crate::error::Result;
use crate::merge::cell::{Cell, Column, Value};
use crate::spec::DataType;

#[derive(Debug)]
struct Boolean {
    /// The value that decides at once: false for and, true for or.
    decisive: bool,
}

fn boolean(spec: &Spec<'_>, decisive: bool) -> Result<Box<dyn AggregateFunction>> {
    if *spec.field.data_type() != DataType::Boolean {
        return Err(spec.wrong_type("BOOLEAN"));
    }
    Ok(Box::new(Boolean { decisive }))
}

pub(super) fn bool_and(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    boolean(spec, false)
}

pub(super) fn bool_or(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    boolean(spec, true)
}

impl AggregateFunction for Boolean {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        Ok(match (column.bool(&acc)?, column.bool(&input)?) {
            (_, None) => acc,
            (None, _) => input,
            (Some(a), Some(b)) if a == self.decisive || b == self.decisive => Cell::Value(Value::Bool(self.decisive)),
            _ => Cell::Value(Value::Bool(!self.decisive)),
        })
    }
}
