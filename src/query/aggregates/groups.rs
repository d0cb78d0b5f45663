//! One value for each group, into which the values of its rows are folded.

use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use crate::error::Error;

/// What is done with values; a fold that starts from `start` and meets one value must give that value.
pub(super) struct Fold<T: ArrowPrimitiveType> {
    /// Before the first value of a group.
    pub(super) start: T::Native,
    /// Whether a value is one of the type.
    pub(super) fits: fn(T::Native, &DataType) -> bool,
    /// What is said when one is not, or when `fold` refuses.
    pub(super) refused: fn(&DataType) -> Error,
}

/// Groups with a value each; NULL for groups without values.
pub(super) struct FoldedGroups<T: ArrowPrimitiveType, F> {
    values: Vec<T::Native>,
    /// Whether a group has met a value.
    seen: Vec<bool>,
    data_type: DataType,
    by: Fold<T>,
    fold: F,
}

impl<T, F> FoldedGroups<T, F>
where
    T: ArrowPrimitiveType,
    F: Fn(&mut T::Native, T::Native) -> bool + Send + Sync + 'static,
{
    /// `fold` takes a value in and says whether it could.
    pub(super) fn new(data_type: &DataType, by: Fold<T>, fold: F) -> Self {
        Self { values: Vec::new(), seen: Vec::new(), data_type: data_type.clone(), by, fold }
    }
}

/// The rows of a batch that have a value and pass the filter; None: all.
fn counted(values: &dyn Array, filter: Option<&BooleanArray>) -> Option<NullBuffer> {
    let passed = filter.map(|filter| {
        let passed = NullBuffer::from(filter.values().clone());
        NullBuffer::union(Some(&passed), filter.nulls()).unwrap_or(passed)
    });
    NullBuffer::union(values.nulls(), passed.as_ref()).filter(|counted| counted.null_count() > 0)
}

impl<T, F> GroupsAccumulator for FoldedGroups<T, F>
where
    T: ArrowPrimitiveType + Send,
    F: Fn(&mut T::Native, T::Native) -> bool + Send + Sync + 'static,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> DfResult<()> {
        self.values.resize(total_num_groups, self.by.start);
        self.seen.resize(total_num_groups, false);
        let Some(values) = values.first().map(|values| values.as_primitive::<T>()) else { return Ok(()) };
        let mut fine = true;
        let mut take = |group: usize, value: T::Native| {
            if let (Some(so_far), Some(seen)) = (self.values.get_mut(group), self.seen.get_mut(group)) {
                fine &= (self.fold)(so_far, value);
                *seen = true;
            }
        };
        let rows = groups.iter().zip(values.values());
        match counted(values, filter) {
            None => rows.for_each(|(group, value)| take(*group, *value)),
            Some(counted) => {
                for (_, (group, value)) in counted.iter().zip(rows).filter(|(counted, _)| *counted) {
                    take(*group, *value);
                }
            }
        }
        if fine { Ok(()) } else { Err((self.by.refused)(&self.data_type).into()) }
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> DfResult<ArrayRef> {
        let values = emit_to.take_needed(&mut self.values);
        let seen = emit_to.take_needed(&mut self.seen);
        let fits = |(value, seen): (&T::Native, &bool)| !seen || (self.by.fits)(*value, &self.data_type);
        if !values.iter().zip(&seen).all(fits) {
            return Err((self.by.refused)(&self.data_type).into());
        }
        let nulls = Some(NullBuffer::from(seen)).filter(|seen| seen.null_count() > 0);
        Ok(Arc::new(PrimitiveArray::<T>::try_new(values.into(), nulls)?.with_data_type(self.data_type.clone())))
    }

    fn state(&mut self, emit_to: EmitTo) -> DfResult<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_num_groups: usize) -> DfResult<()> {
        self.update_batch(states, groups, None, total_num_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> DfResult<Vec<ArrayRef>> {
        let mut states: Vec<ArrayRef> = Vec::with_capacity(values.len());
        for values in values {
            let values = values.as_primitive::<T>();
            let state = PrimitiveArray::<T>::try_new(values.values().clone(), counted(values, filter))?;
            states.push(Arc::new(state.with_data_type(self.data_type.clone())));
        }
        Ok(states)
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.seen.capacity()
    }
}
