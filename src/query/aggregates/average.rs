//! `avg` whose doubles come and go with the frame of a window: see [`super::frames`].

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::average::Avg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};

use super::as_inner;
use super::frames::Doubles;

/// `avg`: see the module.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct FramedAverage {
    inner: Avg,
}

impl AggregateUDFImpl for FramedAverage {
    as_inner!();

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        let doubles = args.expr_fields.iter().all(|field| *field.data_type() == DataType::Float64);
        if doubles && !args.is_distinct && *args.return_field.data_type() == DataType::Float64 {
            return Ok(Doubles::average());
        }
        self.inner.create_sliding_accumulator(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }
}
