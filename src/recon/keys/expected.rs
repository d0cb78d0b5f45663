//! The value that a column of a key's row was expected to have.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::ScalarValue;

/// A value that was expected of a column.
#[derive(Clone)]
pub struct Expected {
    column: usize,
    is: Arc<dyn Fn(&ArrayRef) -> bool + Send + Sync>,
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expected").field("column", &self.column).finish_non_exhaustive()
    }
}

impl Expected {
    /// Exactly this value, in the type of the column at that place of the table.
    pub fn value(column: usize, value: ScalarValue) -> Self {
        Self::of(column, move |own| ScalarValue::try_from_array(own, 0).is_ok_and(|found| found == value))
    }

    /// A value of which `is` tells, given the column of one row: where several values of the table stand for it.
    pub fn of(column: usize, is: impl Fn(&ArrayRef) -> bool + Send + Sync + 'static) -> Self {
        Self { column, is: Arc::new(is) }
    }

    /// Whether a row, its first columns those of the table, has it.
    pub fn is_in(&self, row: &RecordBatch) -> bool {
        row.columns().get(self.column).is_some_and(|own| (self.is)(own))
    }
}
