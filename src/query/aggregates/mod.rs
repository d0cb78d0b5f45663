//! Aggregate functions of our sessions, in the place of DataFusion's where those give wrong numbers.
//!
//! | file | function |
//! |---|---|
//! | `sum` | `sum`: fails where DataFusion's goes round to the other end of the type |
//! | `extremes` | `min`, `max`: infinities and NaN in groups |
//! | `average` | `avg`: a moving frame |
//! | `frames` | sums of rows that come and go |
//! | `groups` | one value for each group |
//!
//! They have the names, types and states of DataFusion's. A plan that travels through our codec says that they are
//! ours; one through another codec meets DataFusion's where it is executed.

mod average;
mod extremes;
mod frames;
mod groups;
mod sum;

use std::sync::Arc;

use datafusion::error::Result as DfResult;
use datafusion::execution::SessionState;
use datafusion::functions_aggregate::average::Avg;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::AggregateUDF;
use datafusion::logical_expr::registry::FunctionRegistry;

use self::average::FramedAverage;
use self::extremes::{OrderedMax, OrderedMin};
use self::sum::CheckedSum;

/// Puts the functions in the place of DataFusion's; one that the caller has put there stays.
pub(crate) fn register(state: &mut SessionState) -> DfResult<()> {
    for name in ["sum", "avg", "min", "max"] {
        if state.aggregate_functions().get(name).is_some_and(|known| is_its_own(known))
            && let Some(function) = of_name(name)
        {
            state.register_udaf(Arc::new(function))?;
        }
    }
    Ok(())
}

/// The function of that name.
pub(crate) fn of_name(name: &str) -> Option<AggregateUDF> {
    match name {
        "sum" => Some(CheckedSum::default().into()),
        "avg" => Some(FramedAverage::default().into()),
        "min" => Some(OrderedMin::default().into()),
        "max" => Some(OrderedMax::default().into()),
        _ => None,
    }
}

/// Whether it is one of these.
#[cfg(feature = "codec")]
pub(crate) fn is_ours(function: &AggregateUDF) -> bool {
    let inner = function.inner();
    inner.is::<CheckedSum>() || inner.is::<FramedAverage>() || inner.is::<OrderedMin>() || inner.is::<OrderedMax>()
}

fn is_its_own(function: &AggregateUDF) -> bool {
    let inner = function.inner();
    inner.is::<Sum>() || inner.is::<Avg>() || inner.is::<Min>() || inner.is::<Max>()
}

/// Hands methods of an aggregate function to DataFusion's own.
macro_rules! as_inner {
    () => {
        as_inner!(|_: &[DataType]| Ok(()));
    };
    // refusing what it would fail on
    ($check:expr) => {
        fn name(&self) -> &str {
            self.inner.name()
        }

        fn signature(&self) -> &Signature {
            self.inner.signature()
        }

        fn return_type(&self, arguments: &[DataType]) -> DfResult<DataType> {
            let check: fn(&[DataType]) -> DfResult<()> = $check;
            check(arguments)?;
            self.inner.return_type(arguments)
        }

        fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
            self.inner.state_fields(args)
        }

        fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
            self.inner.groups_accumulator_supported(args)
        }

        fn order_sensitivity(&self) -> AggregateOrderSensitivity {
            self.inner.order_sensitivity()
        }

        fn reverse_expr(&self) -> ReversedUDAF {
            self.inner.reverse_expr()
        }

        fn coerce_types(&self, arguments: &[DataType]) -> DfResult<Vec<DataType>> {
            self.inner.coerce_types(arguments)
        }

        fn is_descending(&self) -> Option<bool> {
            self.inner.is_descending()
        }

        fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
            self.inner.value_from_stats(args)
        }

        fn documentation(&self) -> Option<&Documentation> {
            self.inner.documentation()
        }

        fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
            self.inner.set_monotonicity(data_type)
        }
    };
}
use as_inner;
