//! Sums of rows that come and go with the frame of a window.
//!
//! DataFusion takes a row that leaves the frame away from the sum, which for doubles does not give the sum of the others:
//! after `1e20` and `1` came and `1e20` went, 0 is left, and after NaN or an infinity went, NaN. Its sum of different
//! values goes on at the other end of the type.

use std::collections::HashMap;
use std::hash::Hash;
use std::marker::PhantomData;
use std::mem::{size_of, size_of_val};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, i256};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Accumulator;

use super::sum::{Summed, beyond};
use crate::error::Error;

/// The sum or the average of doubles: two stacks, of which one has the sums of what is left of it, so nothing is ever taken
/// away from a sum.
#[derive(Debug, Default)]
pub(super) struct Doubles {
    average: bool,
    /// For each of the older rows, the last first, the sum of it and the older rows after it.
    older: Vec<f64>,
    newer: Vec<f64>,
    sum_of_newer: f64,
}

impl Doubles {
    pub(super) fn sum() -> Box<dyn Accumulator> {
        Box::new(Self::default())
    }

    pub(super) fn average() -> Box<dyn Accumulator> {
        Box::new(Self { average: true, ..Self::default() })
    }

    fn come(&mut self, value: f64) {
        self.newer.push(value);
        self.sum_of_newer += value;
    }

    /// Forgets the oldest.
    fn go(&mut self) {
        if self.older.is_empty() {
            let mut sum = 0.0;
            for value in self.newer.drain(..).rev() {
                sum += value;
                self.older.push(sum);
            }
            self.sum_of_newer = 0.0;
        }
        self.older.pop();
    }

    fn count(&self) -> usize {
        self.older.len() + self.newer.len()
    }
}

impl Accumulator for Doubles {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        for values in values {
            values.as_primitive::<Float64Type>().iter().flatten().for_each(|value| self.come(value));
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        // a frame loses its rows in the order in which it got them
        for values in values {
            (0..values.len() - values.null_count()).for_each(|_| self.go());
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> DfResult<()> {
        Err(Error::internal("frames are not computed in parts").into())
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Err(Error::internal("frames are not computed in parts").into())
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        if self.count() == 0 {
            return Ok(ScalarValue::Float64(None));
        }
        let sum = self.older.last().copied().unwrap_or_default() + self.sum_of_newer;
        #[expect(clippy::cast_precision_loss, reason = "the count of rows of an average, as everywhere")]
        let value = if self.average { sum / self.count() as f64 } else { sum };
        Ok(ScalarValue::Float64(Some(value)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.older.capacity() + self.newer.capacity()) * size_of::<f64>()
    }
}

/// The sum of the different values in a frame.
pub(super) struct Different<T: Summed> {
    counts: HashMap<T::Native, u64>,
    sum: i256,
    data_type: DataType,
    of: PhantomData<fn() -> T>,
}

impl<T: Summed> Different<T>
where
    T::Native: Hash + Eq,
{
    pub(super) fn new(data_type: &DataType) -> Self {
        Self { counts: HashMap::new(), sum: i256::ZERO, data_type: data_type.clone(), of: PhantomData }
    }

    fn add(&mut self, value: i256) -> DfResult<()> {
        self.sum = self.sum.checked_add(value).ok_or_else(|| beyond(&self.data_type))?;
        Ok(())
    }
}

impl<T: Summed> std::fmt::Debug for Different<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Different").field("sum", &self.sum).field("count", &self.counts.len()).finish_non_exhaustive()
    }
}

impl<T: Summed> Accumulator for Different<T>
where
    T::Native: Hash + Eq,
{
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        for values in values {
            for value in values.as_primitive::<T>().iter().flatten() {
                let count = self.counts.entry(value).or_default();
                *count += 1;
                if *count == 1 {
                    self.add(T::wide(value))?;
                }
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        for values in values {
            for value in values.as_primitive::<T>().iter().flatten() {
                let left = self.counts.get(&value).copied().unwrap_or_default();
                if left > 1 {
                    self.counts.insert(value, left - 1);
                } else if self.counts.remove(&value).is_some() {
                    self.add(T::wide(value).wrapping_neg())?;
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> DfResult<()> {
        Err(Error::internal("frames are not computed in parts").into())
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Err(Error::internal("frames are not computed in parts").into())
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        if self.counts.is_empty() {
            return ScalarValue::new_primitive::<T>(None, &self.data_type);
        }
        let sum = T::narrow(self.sum).filter(|sum| T::fits(*sum, &self.data_type));
        ScalarValue::new_primitive::<T>(Some(sum.ok_or_else(|| beyond(&self.data_type))?), &self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(T::Native, u64)>()
    }
}
