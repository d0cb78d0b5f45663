//! `sum` and `product`.

use arrow::datatypes::i256;

use super::{AggregateFunction, FoldState, Spec, is_numeric};
use crate::error::{Error, Result};
use crate::merge::cell::{Cell, Column, Value};
use crate::spec::DataType;

/// Arithmetic of the column's type.
#[derive(Debug, Clone)]
enum Numbers {
    /// Integers by their range; leaving it is an error. Java 0.9 goes on with what is left of the number.
    Int(i64, i64),
    Float,
    Double,
    /// Precision and scale.
    Decimal(u8, u8),
}

impl Numbers {
    fn of(spec: &Spec<'_>) -> Result<Self> {
        let data_type = spec.field.data_type();
        if !is_numeric(data_type) {
            return Err(spec.wrong_type("numbers"));
        }
        Ok(match data_type {
            DataType::TinyInt => Self::Int(i8::MIN.into(), i8::MAX.into()),
            DataType::SmallInt => Self::Int(i16::MIN.into(), i16::MAX.into()),
            DataType::Int => Self::Int(i32::MIN.into(), i32::MAX.into()),
            DataType::BigInt => Self::Int(i64::MIN, i64::MAX),
            DataType::Float => Self::Float,
            DataType::Decimal(precision, scale) => Self::Decimal(*precision, *scale),
            _ => Self::Double,
        })
    }
}

/// Operation of two values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operation {
    fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
        }
    }
}

fn failed(
    column: &Column<'_>,
    why: &str,
    a: impl std::fmt::Display,
    op: Operation,
    b: impl std::fmt::Display,
) -> Error {
    Error::invalid(format!("{why}: {a} {} {b}", op.sign()))
        .with_code("AggregateOverflow")
        .with_context("column", column.name)
        .with_hint("leave the column out of the query, read an earlier snapshot, or give the column a wider type")
}

fn calculate(numbers: &Numbers, op: Operation, a: &Cell, b: &Cell, column: &Column<'_>) -> Result<Cell> {
    let value = match numbers {
        Numbers::Int(min, max) => {
            let (Some(a), Some(b)) = (column.int(a)?, column.int(b)?) else { return Ok(Cell::Null) };
            let result = match op {
                Operation::Add => a.checked_add(b),
                Operation::Subtract => a.checked_sub(b),
                Operation::Multiply => a.checked_mul(b),
                Operation::Divide if b == 0 => return Err(failed(column, "division by zero", a, op, b)),
                Operation::Divide => a.checked_div(b),
            };
            let result = result.filter(|result| (min..=max).contains(&result));
            Value::Int(result.ok_or_else(|| failed(column, "integer overflow", a, op, b))?)
        }
        Numbers::Float => {
            let (Some(a), Some(b)) = (column.float(a)?, column.float(b)?) else { return Ok(Cell::Null) };
            Value::Float(match op {
                Operation::Add => a + b,
                Operation::Subtract => a - b,
                Operation::Multiply => a * b,
                Operation::Divide => a / b,
            })
        }
        Numbers::Double => {
            let (Some(a), Some(b)) = (column.double(a)?, column.double(b)?) else { return Ok(Cell::Null) };
            Value::Double(match op {
                Operation::Add => a + b,
                Operation::Subtract => a - b,
                Operation::Multiply => a * b,
                Operation::Divide => a / b,
            })
        }
        Numbers::Decimal(precision, scale) => {
            let (Some(a), Some(b)) = (column.decimal(a)?, column.decimal(b)?) else { return Ok(Cell::Null) };
            let result = match op {
                Operation::Add => add(a, b, *precision),
                Operation::Subtract => b.checked_neg().and_then(|b| add(a, b, *precision)),
                Operation::Multiply => multiply(a, b, *precision, *scale),
                Operation::Divide => divide(a, b, *precision, *scale).map_err(|why| failed(column, why, a, op, b))?,
            };
            match result {
                Some(result) => Value::Decimal(result),
                None => return Ok(Cell::Null),
            }
        }
    };
    Ok(Cell::Value(value))
}

/// Largest unscaled value of a precision.
fn limit(precision: u8) -> i128 {
    10_i128.checked_pow(precision.into()).map_or(i128::MAX, |power| power - 1)
}

/// Up to 18 digits Java adds 64-bit numbers and does not look at the precision; past 64 bits, and for more digits, a
/// sum outside the precision is NULL.
fn add(a: i128, b: i128, precision: u8) -> Option<i128> {
    let sum = a.checked_add(b)?;
    let unchecked = precision <= 18 && i64::try_from(sum).is_ok();
    (unchecked || sum.unsigned_abs() <= limit(precision).unsigned_abs()).then_some(sum)
}

/// The exact product, rounded half up to the scale; NULL outside the precision.
fn multiply(a: i128, b: i128, precision: u8, scale: u8) -> Option<i128> {
    let product = i256::from_i128(a).checked_mul(i256::from_i128(b))?;
    round(product, power_of_ten(scale)?, precision)
}

/// The quotient, which must be a finite decimal, rounded half up to the scale; NULL outside the precision.
fn divide(a: i128, b: i128, precision: u8, scale: u8) -> Result<Option<i128>, &'static str> {
    if b == 0 {
        return Err("division by zero");
    }
    let mut rest = b.unsigned_abs() / gcd(a.unsigned_abs(), b.unsigned_abs());
    for factor in [2, 5] {
        while rest.is_multiple_of(factor) {
            rest /= factor;
        }
    }
    if rest != 1 {
        return Err("the quotient is no finite decimal");
    }
    let scaled = power_of_ten(scale).and_then(|power| i256::from_i128(a).checked_mul(power));
    Ok(scaled.and_then(|scaled| round(scaled, i256::from_i128(b), precision)))
}

fn power_of_ten(scale: u8) -> Option<i256> {
    10_i128.checked_pow(scale.into()).map(i256::from_i128)
}

/// `a / b`, half up (away from zero on a tie); None outside the precision.
fn round(a: i256, b: i256, precision: u8) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    let rest = a.checked_rem(b)?;
    let twice = rest.wrapping_abs().checked_mul(i256::from_i128(2))?;
    let away = if twice >= b.wrapping_abs() {
        if (a < i256::ZERO) == (b < i256::ZERO) { i256::ONE } else { i256::MINUS_ONE }
    } else {
        i256::ZERO
    };
    let rounded = quotient.checked_add(away)?.to_i128()?;
    (rounded.unsigned_abs() <= limit(precision).unsigned_abs()).then_some(rounded)
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[derive(Debug)]
struct Sum(Numbers);

pub(super) fn sum(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    Ok(Box::new(Sum(Numbers::of(spec)?)))
}

impl AggregateFunction for Sum {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        match (&acc, &input) {
            (_, Cell::Null) => Ok(acc),
            (Cell::Null, _) => Ok(input),
            _ => calculate(&self.0, Operation::Add, &acc, &input, column),
        }
    }

    fn retract(&self, acc: Cell, input: Cell, column: &Column<'_>) -> Result<Option<Cell>> {
        match (&acc, &input) {
            (_, Cell::Null) => Ok(Some(acc)),
            (Cell::Null, _) => {
                // the negative, not zero minus: 0.0 turns into -0.0, and a decimal is checked against its precision
                let negative = match &self.0 {
                    Numbers::Float => column.float(&input)?.map(|value| Value::Float(-value)),
                    Numbers::Double => column.double(&input)?.map(|value| Value::Double(-value)),
                    Numbers::Decimal(precision, _) => column
                        .decimal(&input)?
                        .filter(|value| value.unsigned_abs() <= limit(*precision).unsigned_abs())
                        .map(|value| Value::Decimal(-value)),
                    Numbers::Int(..) => {
                        let zero = Cell::Value(Value::Int(0));
                        return calculate(&self.0, Operation::Subtract, &zero, &input, column).map(Some);
                    }
                };
                Ok(Some(negative.map_or(Cell::Null, Cell::Value)))
            }
            _ => calculate(&self.0, Operation::Subtract, &acc, &input, column).map(Some),
        }
    }
}

#[derive(Debug)]
struct Product(Numbers);

pub(super) fn product(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    Ok(Box::new(Product(Numbers::of(spec)?)))
}

impl AggregateFunction for Product {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        match (&acc, &input) {
            (_, Cell::Null) => Ok(acc),
            (Cell::Null, _) => Ok(input),
            _ => calculate(&self.0, Operation::Multiply, &acc, &input, column),
        }
    }

    fn retract(&self, acc: Cell, input: Cell, column: &Column<'_>) -> Result<Option<Cell>> {
        match (&acc, &input) {
            (_, Cell::Null) => Ok(Some(acc)),
            // not its reciprocal: as Java does
            (Cell::Null, _) => Ok(Some(input)),
            _ => calculate(&self.0, Operation::Divide, &acc, &input, column).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType as ArrowType;

    use super::*;

    #[test]
    fn short_decimals_add_past_their_precision_and_long_ones_become_null() {
        assert_eq!(add(99, 1, 2), Some(100), "DECIMAL(2): no check");
        assert_eq!(add(limit(20), 1, 20), None);
        assert_eq!(add(limit(20), -1, 20), Some(limit(20) - 1));
        assert_eq!(add(i64::MAX.into(), 1, 18), None, "past 64 bits the precision counts");
        assert_eq!(add(limit(38), limit(38), 38), None);
    }

    #[test]
    fn an_integer_that_leaves_its_type_is_an_error_whatever_the_operation() {
        let column = Column { name: "a", data_type: &ArrowType::Int64, arrays: Vec::new() };
        let int = |value| Cell::Value(Value::Int(value));
        for (min, max) in [
            (i8::MIN.into(), i8::MAX.into()),
            (i16::MIN.into(), i16::MAX.into()),
            (i32::MIN.into(), i32::MAX.into()),
            (i64::MIN, i64::MAX),
        ] {
            let numbers = Numbers::Int(min, max);
            for (op, a, b) in [
                (Operation::Add, max, 1),
                (Operation::Subtract, min, 1),
                (Operation::Multiply, max / 2 + 1, 2),
                (Operation::Multiply, min, -1),
                (Operation::Divide, min, -1),
            ] {
                let error = calculate(&numbers, op, &int(a), &int(b), &column).unwrap_err();
                assert_eq!(error.code(), "AggregateOverflow", "{a} {} {b}", op.sign());
                assert!(error.message().ends_with(&format!("{a} {} {b}", op.sign())), "{error}");
            }
            for (op, b) in [(Operation::Multiply, 1), (Operation::Divide, 1), (Operation::Add, 0)] {
                let same = calculate(&numbers, op, &int(min), &int(b), &column).unwrap();
                assert_eq!(column.int(&same).unwrap(), Some(min));
            }
        }
    }

    #[test]
    fn products_round_half_up() {
        assert_eq!(multiply(15, 5, 10, 1), Some(8), "1.5 * 0.5 = 0.75 -> 0.8");
        assert_eq!(multiply(-15, 5, 10, 1), Some(-8));
        assert_eq!(multiply(14, 1, 10, 1), Some(1), "1.4 * 0.1 = 0.14 -> 0.1");
        assert_eq!(multiply(99, 99, 2, 0), None);
        assert_eq!(multiply(limit(38), limit(38), 38, 38), Some(limit(38) - 1), "just under one, squared");
    }

    #[test]
    fn quotients_must_be_finite_decimals() {
        assert_eq!(divide(10, 40, 10, 1), Ok(Some(3)), "1.0 / 4.0 = 0.25 -> 0.3");
        assert_eq!(divide(10, 30, 10, 1), Err("the quotient is no finite decimal"));
        assert_eq!(divide(30, 30, 10, 1), Ok(Some(10)));
        assert_eq!(divide(0, 30, 10, 1), Ok(Some(0)));
        assert_eq!(divide(1, 0, 10, 1), Err("division by zero"));
        assert_eq!(divide(99, 1, 3, 2), Ok(None), "0.99 / 0.01 = 99.00");
    }
}
