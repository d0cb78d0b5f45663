//! `min` and `max`. In groups, DataFusion's start from the largest and smallest finite number, which stay where a group
//! has infinities only, and a NaN is lost or kept by the order of rows. Here groups follow the order that its ungrouped
//! functions and `ORDER BY` have: infinities are numbers like others, and NaN is greater than all.

use arrow::array::ArrowNativeTypeOp;
use arrow::datatypes::{ArrowPrimitiveType, DataType, FieldRef, Float16Type, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};

use super::as_inner;
use super::groups::{Fold, FoldedGroups};
use crate::error::Error;

/// `min`: see the module.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OrderedMin {
    inner: Min,
}

/// `max`: see the module.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OrderedMax {
    inner: Max,
}

/// Refuses values that are neither before nor after one another.
fn in_order(arguments: &[DataType]) -> DfResult<()> {
    if arguments.iter().any(has_map) {
        return Err(Error::invalid(
            "a MAP comes neither before nor after another, so none of them is the least or the greatest",
        )
        .with_code("Plan")
        .with_hint("ask for one of its values, max(m['k']), or for any_value(m)")
        .into());
    }
    Ok(())
}

fn has_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_map(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_map(field.data_type())),
        _ => false,
    }
}

fn fold<T: ArrowPrimitiveType>(start: T::Native) -> Fold<T> {
    Fold { start, fits: |_, _| true, refused: |_| Error::internal("every number is the least or the greatest of some") }
}

fn smallest<T: ArrowPrimitiveType + Send>(data_type: &DataType) -> Box<dyn GroupsAccumulator> {
    Box::new(FoldedGroups::new(data_type, fold::<T>(T::Native::MAX_TOTAL_ORDER), |least: &mut T::Native, value| {
        if value.is_lt(*least) {
            *least = value;
        }
        true
    }))
}

fn greatest<T: ArrowPrimitiveType + Send>(data_type: &DataType) -> Box<dyn GroupsAccumulator> {
    Box::new(FoldedGroups::new(data_type, fold::<T>(T::Native::MIN_TOTAL_ORDER), |most: &mut T::Native, value| {
        if value.is_gt(*most) {
            *most = value;
        }
        true
    }))
}

impl AggregateUDFImpl for OrderedMin {
    as_inner!(in_order);

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            wanted @ DataType::Float16 => Ok(smallest::<Float16Type>(wanted)),
            wanted @ DataType::Float32 => Ok(smallest::<Float32Type>(wanted)),
            wanted @ DataType::Float64 => Ok(smallest::<Float64Type>(wanted)),
            _ => self.inner.create_groups_accumulator(args),
        }
    }
}

impl AggregateUDFImpl for OrderedMax {
    as_inner!(in_order);

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            wanted @ DataType::Float16 => Ok(greatest::<Float16Type>(wanted)),
            wanted @ DataType::Float32 => Ok(greatest::<Float32Type>(wanted)),
            wanted @ DataType::Float64 => Ok(greatest::<Float64Type>(wanted)),
            _ => self.inner.create_groups_accumulator(args),
        }
    }
}
