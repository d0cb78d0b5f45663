//! A value that may be missing although its column never is NULL: that of a subquery without a row.
//!
//! The function is made where a statement is planned; no SQL can call it.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::utils::take_function_args;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

const NAME: &str = "perhaps";

/// The same value, of which nobody knows that it is there.
pub(crate) fn perhaps(value: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function().into(), vec![value]))
}

fn function() -> ScalarUDF {
    // what is volatile is not computed while a statement is planned: a literal would be there for sure again
    ScalarUDF::new_from_impl(Perhaps { signature: Signature::any(1, Volatility::Volatile) })
}

/// The function, for a plan that comes from elsewhere.
#[cfg(feature = "codec")]
pub(super) fn of_name(name: &str) -> Option<ScalarUDF> {
    (name == NAME).then(function)
}

/// Whether a function is this one.
#[cfg(feature = "codec")]
pub(super) fn is_ours(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<Perhaps>().is_some()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Perhaps {
    signature: Signature,
}

impl ScalarUDFImpl for Perhaps {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, operands: &[DataType]) -> DfResult<DataType> {
        let [of] = take_function_args(NAME, operands)?;
        Ok(of.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let [of] = take_function_args(NAME, args.arg_fields)?;
        Ok(of.as_ref().clone().with_nullable(true).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [of] = take_function_args(NAME, args.args)?;
        Ok(of)
    }
}
