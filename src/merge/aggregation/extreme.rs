//! `max` and `min`.

use std::cmp::Ordering;

use super::{AggregateFunction, FoldState, Spec};
use crate::error::Result;
use crate::merge::cell::{Cell, Column};
use crate::spec::DataType;

/// Keeps the value that is on the far side; the older one when equal.
#[derive(Debug)]
struct Extreme {
    /// How the accumulated value compares to one that replaces it.
    replaced: Ordering,
}

fn extreme(spec: &Spec<'_>, replaced: Ordering) -> Result<Box<dyn AggregateFunction>> {
    let comparable = matches!(
        spec.field.data_type(),
        DataType::Boolean
            | DataType::TinyInt
            | DataType::SmallInt
            | DataType::Int
            | DataType::BigInt
            | DataType::Float
            | DataType::Double
            | DataType::Decimal(..)
            | DataType::Date
            | DataType::Time(_)
            | DataType::Timestamp(_)
            | DataType::TimestampLtz(_)
            | DataType::Char(_)
            | DataType::Varchar(_)
            | DataType::Binary(_)
            | DataType::Varbinary(_)
    );
    if !comparable {
        return Err(spec.wrong_type("values that have an order"));
    }
    Ok(Box::new(Extreme { replaced }))
}

pub(super) fn max(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    extreme(spec, Ordering::Less)
}

pub(super) fn min(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    extreme(spec, Ordering::Greater)
}

impl AggregateFunction for Extreme {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        Ok(match (&acc, &input) {
            (_, Cell::Null) => acc,
            (Cell::Null, _) => input,
            _ if column.compare(&acc, &input) == self.replaced => input,
            _ => acc,
        })
    }
}
