//! A TIMESTAMP in a finer unit. The optimizer moves a cast away from a column to the literal it is compared with, and cuts
//! digits of the literal that the column does not have; it leaves functions where they are.
//!
//! The functions are made where a statement is planned, in the place of casts; no SQL can call them.

use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::utils::take_function_args;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The same time in another unit.
pub(crate) fn in_unit(time: Expr, unit: TimeUnit) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function(unit).into(), vec![time]))
}

/// What [`in_unit`] was made of.
pub(crate) fn before_unit(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.inner().is::<Finer>() => args.first(),
        _ => None,
    }
}

fn function(unit: TimeUnit) -> ScalarUDF {
    ScalarUDF::new_from_impl(Finer { unit, signature: Signature::any(1, Volatility::Immutable) })
}

/// The function of a name, for a plan that comes from elsewhere.
#[cfg(feature = "codec")]
pub(super) fn of_name(name: &str) -> Option<ScalarUDF> {
    let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
    units.into_iter().find(|unit| name_of(*unit) == name).map(function)
}

/// Whether a function is one of these.
#[cfg(feature = "codec")]
pub(super) fn is_ours(function: &ScalarUDF) -> bool {
    function.inner().is::<Finer>()
}

/// What plans show.
fn name_of(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "in_seconds",
        TimeUnit::Millisecond => "in_milliseconds",
        TimeUnit::Microsecond => "in_microseconds",
        TimeUnit::Nanosecond => "in_nanoseconds",
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Finer {
    unit: TimeUnit,
    signature: Signature,
}

impl Finer {
    fn result(&self, of: &DataType) -> DataType {
        match of {
            DataType::Timestamp(_, zone) => DataType::Timestamp(self.unit, zone.clone()),
            other => other.clone(),
        }
    }
}

impl ScalarUDFImpl for Finer {
    fn name(&self) -> &str {
        name_of(self.unit)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, operands: &[DataType]) -> DfResult<DataType> {
        let [of] = take_function_args(self.name(), operands)?;
        Ok(self.result(of))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let [of] = take_function_args(self.name(), args.arg_fields)?;
        Ok(of.as_ref().clone().with_data_type(self.result(of.data_type())).into())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> DfResult<SortProperties> {
        Ok(inputs.first().map_or(SortProperties::Unordered, |of| of.sort_properties))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [of] = take_function_args(self.name(), args.args)?;
        of.cast_to(args.return_field.data_type(), None)
    }
}
