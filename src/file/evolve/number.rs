//! Casts among integers, floats, decimals and BOOLEAN.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, PrimitiveArray};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type,
};

use super::{downcast, is_integer, primitive};
use crate::error::{Error, Result};
use crate::spec::DataType;

/// Largest precision of a DECIMAL.
const MAX_PRECISION: usize = 38;

pub(super) fn cast(array: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef> {
    match from {
        DataType::Boolean => from_boolean(downcast::<BooleanArray>(array)?, to),
        DataType::Float | DataType::Double => {
            let wide = arrow_cast(array, &ArrowType::Float64)?;
            from_double(primitive::<Float64Type>(&wide)?, to)
        }
        DataType::Decimal(_, scale) => from_decimal(primitive::<Decimal128Type>(array)?, *scale, to),
        integer if is_integer(integer) => {
            let wide = arrow_cast(array, &ArrowType::Int64)?;
            from_integer(primitive::<Int64Type>(&wide)?, to)
        }
        other => Err(Error::internal(format!("{other:?} is not numeric"))),
    }
}

fn unary<A, B>(array: &PrimitiveArray<A>, f: impl Fn(A::Native) -> B::Native) -> ArrayRef
where
    A: ArrowPrimitiveType,
    B: ArrowPrimitiveType,
{
    Arc::new(array.unary::<_, B>(f))
}

fn decimal(array: Decimal128Array, precision: u8, scale: u8) -> Result<ArrayRef> {
    Ok(Arc::new(array.with_precision_and_scale(precision, as_scale(scale))?))
}

fn as_scale(scale: u8) -> i8 {
    // a scale is at most 38
    i8::try_from(scale).unwrap_or(i8::MAX)
}

fn from_integer(array: &Int64Array, to: &DataType) -> Result<ArrayRef> {
    Ok(match to {
        // two's complement on purpose: as Java narrows
        DataType::TinyInt => unary::<_, Int8Type>(array, |v| v as i8),
        DataType::SmallInt => unary::<_, Int16Type>(array, |v| v as i16),
        DataType::Int => unary::<_, Int32Type>(array, |v| v as i32),
        DataType::BigInt => Arc::new(array.clone()),
        DataType::Float => unary::<_, Float32Type>(array, |v| v as f32),
        DataType::Double => unary::<_, Float64Type>(array, |v| v as f64),
        DataType::Boolean => {
            let values = array.values().iter().map(|v| *v != 0).collect();
            Arc::new(BooleanArray::new(values, array.nulls().cloned()))
        }
        DataType::Decimal(precision, scale) => {
            decimal(array.unary_opt(|v| rescale(i128::from(v), 0, *precision, *scale)), *precision, *scale)?
        }
        other => return Err(Error::internal(format!("an integer has no cast to {other:?}"))),
    })
}

fn from_double(array: &Float64Array, to: &DataType) -> Result<ArrayRef> {
    Ok(match to {
        // `as` saturates and turns NaN into 0, as Java does; below INT the result is cut
        DataType::TinyInt => unary::<_, Int8Type>(array, |v| v as i32 as i8),
        DataType::SmallInt => unary::<_, Int16Type>(array, |v| v as i32 as i16),
        DataType::Int => unary::<_, Int32Type>(array, |v| v as i32),
        DataType::BigInt => unary::<_, Int64Type>(array, |v| v as i64),
        DataType::Float => unary::<_, Float32Type>(array, |v| v as f32),
        DataType::Double => Arc::new(array.clone()),
        DataType::Decimal(precision, scale) => {
            let mut values = Vec::with_capacity(array.len());
            for value in array {
                values.push(match value {
                    Some(value) => double_to_decimal(value, *precision, *scale)?,
                    None => None,
                });
            }
            decimal(values.into_iter().collect(), *precision, *scale)?
        }
        other => return Err(Error::internal(format!("a float has no cast to {other:?}"))),
    })
}

fn from_decimal(array: &Decimal128Array, scale: u8, to: &DataType) -> Result<ArrayRef> {
    let unit = 10_i128.checked_pow(u32::from(scale)).ok_or_else(|| Error::internal("a scale above 38"))?;
    // towards zero, then the low bits, as BigDecimal.longValue
    let whole = |v: i128| (v / unit) as i64;
    Ok(match to {
        DataType::TinyInt => unary::<_, Int8Type>(array, |v| whole(v) as i8),
        DataType::SmallInt => unary::<_, Int16Type>(array, |v| whole(v) as i16),
        DataType::Int => unary::<_, Int32Type>(array, |v| whole(v) as i32),
        DataType::BigInt => unary::<_, Int64Type>(array, whole),
        DataType::Float => unary::<_, Float32Type>(array, |v| decimal_to_double(v, scale) as f32),
        DataType::Double => unary::<_, Float64Type>(array, |v| decimal_to_double(v, scale)),
        DataType::Decimal(precision, new) => {
            decimal(array.unary_opt(|v| rescale(v, scale, *precision, *new)), *precision, *new)?
        }
        other => return Err(Error::internal(format!("a decimal has no cast to {other:?}"))),
    })
}

fn from_boolean(array: &BooleanArray, to: &DataType) -> Result<ArrayRef> {
    let ones = Int64Array::new(array.values().iter().map(i64::from).collect::<Vec<_>>().into(), array.nulls().cloned());
    from_integer(&ones, to)
}

/// An unscaled value at another scale, half up; None when it has more than `precision` digits.
pub(crate) fn rescale(value: i128, from_scale: u8, precision: u8, scale: u8) -> Option<i128> {
    let moved = if scale >= from_scale {
        value.checked_mul(10_i128.checked_pow(u32::from(scale - from_scale))?)?
    } else {
        let unit = 10_i128.checked_pow(u32::from(from_scale - scale))?;
        let (whole, rest) = (value / unit, value % unit);
        whole + if rest.abs() >= unit - rest.abs() { value.signum() } else { 0 }
    };
    fits(moved, precision).then_some(moved)
}

/// Whether a value has at most `precision` digits.
pub(crate) fn fits(value: i128, precision: u8) -> bool {
    10_u128.checked_pow(u32::from(precision)).is_none_or(|limit| value.unsigned_abs() < limit)
}

/// The double next to an unscaled decimal.
fn decimal_to_double(value: i128, scale: u8) -> f64 {
    const EXACT: u128 = 1 << 53;
    if value.unsigned_abs() <= EXACT && scale <= 22 {
        // both sides are exact, so the quotient is rounded once
        return value as f64 / 10_f64.powi(i32::from(scale));
    }
    format!("{value}e-{scale}").parse().unwrap_or(f64::NAN)
}

/// A double as its shortest text says, half up; None on overflow.
fn double_to_decimal(value: f64, precision: u8, scale: u8) -> Result<Option<i128>> {
    if !value.is_finite() {
        return Err(Error::invalid(format!("{value} cannot be read as DECIMAL({precision}, {scale})"))
            .with_code("InvalidCastValue"));
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i64 = exponent.parse().map_err(|_| Error::internal("a float without exponent"))?;
    Ok(digits_to_decimal(mantissa, exponent, precision, scale))
}

/// `[-+]digits[.digits] * 10^exponent` at a scale, half up; None on overflow. The caller has checked the characters.
pub(super) fn digits_to_decimal(mantissa: &str, exponent: i64, precision: u8, scale: u8) -> Option<i128> {
    let negative = mantissa.starts_with('-');
    let fraction = mantissa.split_once('.').map_or(0, |(_, f)| f.len());
    let digits: Vec<u8> =
        mantissa.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').skip_while(|digit| *digit == 0).collect();
    if digits.is_empty() {
        return Some(0);
    }
    let shift = exponent.saturating_add(i64::from(scale)).saturating_sub(i64::try_from(fraction).unwrap_or(i64::MAX));
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    // digits in front of the point once shifted
    let kept = length.saturating_add(shift);
    if kept < 0 {
        return Some(0);
    }
    let kept = usize::try_from(kept).unwrap_or(usize::MAX);
    if kept > MAX_PRECISION {
        return None;
    }
    let mut value: i128 = 0;
    for at in 0..kept {
        value = value * 10 + i128::from(digits.get(at).copied().unwrap_or(0));
    }
    if digits.get(kept).is_some_and(|digit| *digit >= 5) {
        value += 1;
    }
    let value = if negative { -value } else { value };
    fits(value, precision).then_some(value)
}
