//! Rows of the last table that were not shown, for `\more`: bounded, and it says when it is not whole.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::execute::Answer;
use crate::sql::PinLine;

/// Bytes kept.
const LIMIT: usize = 64 << 20;

/// Batches of the last capped table.
#[derive(Debug)]
pub struct Spool {
    /// Columns.
    pub schema: SchemaRef,
    /// Tables read.
    pub pins: Vec<PinLine>,
    /// Rows the table showed before its gap.
    shown: u64,
    batches: Vec<RecordBatch>,
    bytes: usize,
    kept: u64,
    total: u64,
}

impl Spool {
    /// An empty spool for a table that shows so many rows before its gap.
    pub fn new(answer: &Answer, shown: u64) -> Self {
        let (schema, pins) = (Arc::clone(&answer.schema), answer.pins.clone());
        Self { schema, pins, shown, batches: Vec::new(), bytes: 0, kept: 0, total: 0 }
    }

    /// Keeps a batch while there is room.
    pub fn push(&mut self, batch: &RecordBatch) {
        self.total += batch.num_rows() as u64;
        if self.kept + batch.num_rows() as u64 == self.total && self.bytes < LIMIT {
            self.bytes += batch.get_array_memory_size();
            self.kept = self.total;
            self.batches.push(batch.clone());
        }
    }

    /// Rows the table showed before its gap.
    pub fn shown(&self) -> u64 {
        self.shown
    }

    /// Rows of the result.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Rows kept.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Kept rows from the gap on.
    pub fn rest(&self) -> Vec<RecordBatch> {
        let mut skip = usize::try_from(self.shown).unwrap_or(usize::MAX);
        let mut rest = Vec::new();
        for batch in &self.batches {
            if skip >= batch.num_rows() {
                skip -= batch.num_rows();
                continue;
            }
            rest.push(batch.slice(skip, batch.num_rows() - skip));
            skip = 0;
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};

    use super::*;

    #[test]
    fn rest_begins_inside_a_batch() {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
        let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        for (shown, rest) in [(0, 30), (15, 15), (30, 0)] {
            let answer = Answer::of_batches(batch.schema(), Vec::new()).unwrap();
            let mut spool = Spool::new(&answer, shown);
            (0..3).for_each(|_| spool.push(&batch));
            assert_eq!((spool.total(), spool.kept()), (30, 30));
            assert_eq!(spool.rest().iter().map(RecordBatch::num_rows).sum::<usize>(), rest);
        }
    }
}
