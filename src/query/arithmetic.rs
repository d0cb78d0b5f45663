//! Arithmetic that fails where the result is no number of its type. DataFusion's operators on integers go on at the
//! other end of the type, and a decimal may get a digit more than its type has.
//!
//! The functions are made where a statement is planned, in the place of operators; no SQL can call them.

use std::fmt;

use arrow::array::{Array, ArrayRef, AsArray, Datum, Scalar};
use arrow::compute::kernels::numeric;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType,
    Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Field, FieldRef,
};
use arrow::error::ArrowError;
use arrow::util::display::array_value_to_string;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

use crate::error::Error;

/// Code of the error.
pub(crate) const BEYOND: &str = "NumberOutOfRange";

/// An operator with two sides in a checked form; None: it does not need one, or has none.
///
/// Operands of integers have one type, that of the result. Subtraction of unsigned ones may also have signed results:
/// see [`difference`].
pub(crate) fn checked(left: &Expr, op: Operator, right: &Expr, types: (&DataType, &DataType)) -> Option<Expr> {
    let operation = Operation::of(op)?;
    let wraps = types.0 == types.1 && types.0.is_integer() && operation != Operation::Divide;
    let result = || BinaryTypeCoercer::new(types.0, &op, types.1).get_result_type();
    if wraps || (types.0.is_decimal() && types.1.is_decimal() && result().is_ok_and(|result| is_widest(&result))) {
        return Some(operation.call(vec![left.clone(), right.clone()]));
    }
    None
}

/// The negative of an integer in its checked form; None for other types.
pub(crate) fn negated(of: &Expr, data_type: &DataType) -> Option<Expr> {
    data_type.is_signed_integer().then(|| Operation::Negate.call(vec![of.clone()]))
}

/// What a checked [`negated`] is the negative of.
pub(crate) fn before_sign(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let checked = func.inner().downcast_ref::<Checked>()?;
            args.first().filter(|_| checked.operation == Operation::Negate)
        }
        _ => None,
    }
}

/// The difference of two BIGINT UNSIGNED as a BIGINT: places and lengths are counted without a sign, and which of two
/// is the greater is what their difference tells.
pub(crate) fn difference(left: Expr, right: Expr) -> Expr {
    Operation::Difference.call(vec![left, right])
}

/// The checked function of a name, for a plan that comes from elsewhere.
#[cfg(feature = "codec")]
pub(super) fn of_name(name: &str) -> Option<ScalarUDF> {
    Operation::ALL.into_iter().find(|operation| operation.name() == name).map(Operation::function)
}

/// Whether a function is one of these.
pub(crate) fn is_checked(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<Checked>().is_some()
}

/// Whether a decimal has as many digits as its type can have: sums of others always fit in the type of the result.
fn is_widest(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal32(precision, _) => *precision == DECIMAL32_MAX_PRECISION,
        DataType::Decimal64(precision, _) => *precision == DECIMAL64_MAX_PRECISION,
        DataType::Decimal128(precision, _) => *precision == DECIMAL128_MAX_PRECISION,
        DataType::Decimal256(precision, _) => *precision == DECIMAL256_MAX_PRECISION,
        _ => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Difference,
    Multiply,
    Divide,
    Negate,
}

impl Operation {
    #[cfg(feature = "codec")]
    const ALL: [Self; 6] = [Self::Add, Self::Subtract, Self::Difference, Self::Multiply, Self::Divide, Self::Negate];

    fn of(op: Operator) -> Option<Self> {
        match op {
            Operator::Plus => Some(Self::Add),
            Operator::Minus => Some(Self::Subtract),
            Operator::Multiply => Some(Self::Multiply),
            Operator::Divide => Some(Self::Divide),
            _ => None,
        }
    }

    /// What plans show.
    fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Subtract => "subtract",
            Self::Difference => "difference",
            Self::Multiply => "multiply",
            Self::Divide => "divide",
            Self::Negate => "negate",
        }
    }

    /// The operator as it is written; None before a single operand.
    fn operator(self) -> Option<Operator> {
        match self {
            Self::Add => Some(Operator::Plus),
            Self::Subtract | Self::Difference => Some(Operator::Minus),
            Self::Multiply => Some(Operator::Multiply),
            Self::Divide => Some(Operator::Divide),
            Self::Negate => None,
        }
    }

    fn function(self) -> ScalarUDF {
        let operands = if self == Self::Negate { 1 } else { 2 };
        ScalarUDF::new_from_impl(Checked {
            operation: self,
            signature: Signature::any(operands, Volatility::Immutable),
        })
    }

    fn call(self, operands: Vec<Expr>) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(self.function().into(), operands))
    }

    fn run(self, left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
        let result = match self {
            Self::Add => numeric::add(left, right),
            Self::Subtract => numeric::sub(left, right),
            Self::Difference => signed_difference(left, right),
            Self::Multiply => numeric::mul(left, right),
            Self::Divide => numeric::div(left, right),
            Self::Negate => numeric::neg(left.get().0),
        }?;
        let digits = match result.data_type() {
            DataType::Decimal32(precision, _) => {
                result.as_primitive::<Decimal32Type>().validate_decimal_precision(*precision)
            }
            DataType::Decimal64(precision, _) => {
                result.as_primitive::<Decimal64Type>().validate_decimal_precision(*precision)
            }
            DataType::Decimal128(precision, _) => {
                result.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)
            }
            DataType::Decimal256(precision, _) => {
                result.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision)
            }
            _ => Ok(()),
        };
        digits.map_err(|error| ArrowError::ArithmeticOverflow(error.to_string()))?;
        Ok(result)
    }

    /// The first row whose result is beyond the type, as it would be written; None: there is none.
    fn failing(self, operands: &[ColumnarValue]) -> DfResult<Option<String>> {
        let arrays = ColumnarValue::values_to_arrays(operands)?;
        let (Some(left), Some(right)) = (arrays.first(), arrays.last()) else { return Ok(None) };
        for row in 0..left.len() {
            let (one, other) = (left.slice(row, 1), right.slice(row, 1));
            if self.run(&one, &other).is_err() {
                let (one, other) = (array_value_to_string(&one, 0)?, array_value_to_string(&other, 0)?);
                return Ok(Some(match self.operator() {
                    Some(op) => format!("{one} {op} {other}"),
                    None => format!("-({one})"),
                }));
            }
        }
        Ok(None)
    }
}

fn signed_difference(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    let strictly = CastOptions { safe: false, ..CastOptions::default() };
    let wide = |side: &dyn Datum| -> Result<(ArrayRef, bool), ArrowError> {
        let (array, is_scalar) = side.get();
        Ok((cast_with_options(array, &DataType::Decimal128(20, 0), &strictly)?, is_scalar))
    };
    let difference = match (wide(left)?, wide(right)?) {
        ((left, true), (right, false)) => numeric::sub(&Scalar::new(left), &right),
        ((left, false), (right, true)) => numeric::sub(&left, &Scalar::new(right)),
        ((left, _), (right, _)) => numeric::sub(&left, &right),
    }?;
    cast_with_options(&difference, &DataType::Int64, &strictly)
        .map_err(|error| ArrowError::ArithmeticOverflow(error.to_string()))
}

fn beyond(data_type: &DataType, what: Option<String>) -> Error {
    let (name, way_out) = match data_type {
        DataType::Int8 => ("TINYINT".to_string(), "CAST an operand AS BIGINT"),
        DataType::Int16 => ("SMALLINT".to_string(), "CAST an operand AS BIGINT"),
        DataType::Int32 => ("INT".to_string(), "CAST an operand AS BIGINT"),
        DataType::Int64 => ("BIGINT".to_string(), "CAST an operand AS DECIMAL(38, 0) or DOUBLE"),
        DataType::UInt8 => ("TINYINT UNSIGNED".to_string(), "CAST an operand AS BIGINT"),
        DataType::UInt16 => ("SMALLINT UNSIGNED".to_string(), "CAST an operand AS BIGINT"),
        DataType::UInt32 => ("INT UNSIGNED".to_string(), "CAST an operand AS BIGINT"),
        DataType::UInt64 => ("BIGINT UNSIGNED".to_string(), "CAST an operand AS DECIMAL(38, 0) or DOUBLE"),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            let way_out = "CAST the operands to decimals of fewer digits behind the point, or one of them AS DOUBLE";
            (format!("DECIMAL({precision}, {scale})"), way_out)
        }
        other => (other.to_string(), "CAST an operand to a wider type"),
    };
    let what = what.unwrap_or_else(|| "the result".to_string());
    Error::invalid(format!("{what} is beyond the numbers of {name}, the type it has"))
        .with_code(BEYOND)
        .with_hint(way_out)
}

/// One operation as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operation: Operation,
    signature: Signature,
}

impl Checked {
    fn result(&self, operands: &[DataType]) -> DfResult<DataType> {
        match (self.operation, self.operation.operator(), operands) {
            (Operation::Difference, _, _) => Ok(DataType::Int64),
            (_, Some(op), [left, right]) => BinaryTypeCoercer::new(left, &op, right).get_result_type(),
            (_, None, [of]) => Ok(of.clone()),
            _ => Err(DataFusionError::Internal(format!("{} has other operands", self.operation.name()))),
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.operation.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// That of the operator: columns keep their names.
    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        Ok(match (self.operation.operator(), args) {
            (Some(op), [left, right]) => format!("{} {op} {}", left.schema_name(), right.schema_name()),
            _ => format!("(- {})", Names(args)),
        })
    }

    fn return_type(&self, operands: &[DataType]) -> DfResult<DataType> {
        self.result(operands)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Field::new(self.name(), self.result(&types)?, nullable).into())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let (Some(left), Some(right)) = (args.args.first(), args.args.last()) else {
            return Err(DataFusionError::Internal(format!("{} needs operands", self.name())));
        };
        match apply(left, right, |left, right| self.operation.run(left, right)) {
            Err(DataFusionError::ArrowError(error, _)) if matches!(*error, ArrowError::ArithmeticOverflow(_)) => {
                let what = self.operation.failing(&args.args)?;
                Err(beyond(args.return_field.data_type(), what).into())
            }
            result => result,
        }
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> DfResult<Interval> {
        let types: Vec<DataType> = inputs.iter().map(|input| input.data_type()).collect();
        Interval::make_unbounded(&self.result(&types).unwrap_or(DataType::Null))
    }
}

/// Names of operands, as columns have them.
struct Names<'a>(&'a [Expr]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|operand| write!(f, "{}", operand.schema_name()))
    }
}
