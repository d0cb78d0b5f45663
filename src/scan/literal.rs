//! Atomic values as literals of a query and back.

use arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::common::ScalarValue;

use crate::error::Result;
use crate::spec::arrow_types::{datums_to_array, rescale, split_ticks};
use crate::spec::data_type::DataType;
use crate::spec::datum::Datum;

/// The value as a scalar of the type's Arrow type.
pub fn datum_to_scalar(datum: &Datum, data_type: &DataType) -> Result<ScalarValue> {
    let array = datums_to_array(std::slice::from_ref(datum), data_type)?;
    Ok(ScalarValue::try_from_array(&array, 0)?)
}

/// A literal as a value of the type, None when there is no value of the type that equals it exactly.
///
/// Numbers move between integer, floating and decimal types as long as nothing is rounded; a DATE is the midnight of a
/// TIMESTAMP. A wall clock and an instant never turn into each other, since that takes a zone. So `None` says nothing
/// about the rows: `3.5` for an INT column means that no row is equal, but many may be less.
pub fn scalar_to_datum(scalar: &ScalarValue, data_type: &DataType) -> Result<Option<Datum>> {
    if let ScalarValue::Dictionary(_, inner) = scalar {
        return scalar_to_datum(inner, data_type);
    }
    if scalar.is_null() {
        return Ok(Some(Datum::Null));
    }
    Ok(match data_type {
        DataType::Boolean => match scalar {
            ScalarValue::Boolean(Some(value)) => Some(Datum::Boolean(*value)),
            _ => None,
        },
        DataType::TinyInt => integer(scalar).and_then(|value| i8::try_from(value).ok()).map(Datum::TinyInt),
        DataType::SmallInt => integer(scalar).and_then(|value| i16::try_from(value).ok()).map(Datum::SmallInt),
        DataType::Int => integer(scalar).and_then(|value| i32::try_from(value).ok()).map(Datum::Int),
        DataType::BigInt => integer(scalar).and_then(|value| i64::try_from(value).ok()).map(Datum::BigInt),
        DataType::Float => float(scalar).and_then(narrow).map(Datum::Float),
        DataType::Double => float(scalar).map(Datum::Double),
        DataType::Decimal(precision, scale) => decimal(scalar, *precision, *scale),
        DataType::Date => date(scalar).map(Datum::Date),
        DataType::Time(_) => time(scalar).map(Datum::Time),
        DataType::Timestamp(precision) => timestamp(scalar, *precision, false),
        DataType::TimestampLtz(precision) => timestamp(scalar, *precision, true),
        DataType::Char(_) | DataType::Varchar(_) => match scalar {
            ScalarValue::Utf8(Some(value))
            | ScalarValue::LargeUtf8(Some(value))
            | ScalarValue::Utf8View(Some(value)) => Some(Datum::String(value.clone())),
            _ => None,
        },
        DataType::Binary(_)
        | DataType::Varbinary(_)
        | DataType::Blob
        | DataType::Geometry(_)
        | DataType::Geography(_) => match scalar {
            ScalarValue::Binary(Some(value))
            | ScalarValue::LargeBinary(Some(value))
            | ScalarValue::BinaryView(Some(value))
            | ScalarValue::FixedSizeBinary(_, Some(value)) => Some(Datum::Binary(value.clone())),
            _ => None,
        },
        _ => None,
    })
}

/// The whole number that a literal is.
fn integer(scalar: &ScalarValue) -> Option<i128> {
    Some(match scalar {
        ScalarValue::Int8(value) => i128::from((*value)?),
        ScalarValue::Int16(value) => i128::from((*value)?),
        ScalarValue::Int32(value) => i128::from((*value)?),
        ScalarValue::Int64(value) => i128::from((*value)?),
        ScalarValue::UInt8(value) => i128::from((*value)?),
        ScalarValue::UInt16(value) => i128::from((*value)?),
        ScalarValue::UInt32(value) => i128::from((*value)?),
        ScalarValue::UInt64(value) => i128::from((*value)?),
        ScalarValue::Float32(value) => whole(f64::from((*value)?))?,
        ScalarValue::Float64(value) => whole((*value)?)?,
        ScalarValue::Decimal128(value, _, scale) => {
            let value = (*value)?;
            match u8::try_from(*scale) {
                Ok(scale) => rescale(value, scale, 0)?,
                Err(_) => value.checked_mul(10_i128.checked_pow(u32::from(scale.unsigned_abs()))?)?,
            }
        }
        _ => return None,
    })
}

fn whole(value: f64) -> Option<i128> {
    // beyond 2^63 no integer column has it
    if value.fract() != 0.0 || value.abs() > 9.3e18 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole and far below the range of i128")]
    Some(value as i128)
}

/// The floating number that a literal is.
fn float(scalar: &ScalarValue) -> Option<f64> {
    match scalar {
        ScalarValue::Float64(value) => *value,
        ScalarValue::Float32(value) => (*value).map(f64::from),
        _ => {
            let value = integer(scalar)?;
            // 2^53 and below, every integer is a double
            #[expect(clippy::cast_precision_loss, reason = "checked to be exact")]
            (value.unsigned_abs() <= 1 << 53).then_some(value as f64)
        }
    }
}

fn narrow(value: f64) -> Option<f32> {
    #[expect(clippy::cast_possible_truncation, reason = "checked by casting back")]
    let narrow = value as f32;
    (f64::from(narrow) == value || value.is_nan()).then_some(narrow)
}

fn decimal(scalar: &ScalarValue, precision: u8, scale: u8) -> Option<Datum> {
    let unscaled = match scalar {
        ScalarValue::Decimal128(Some(value), _, own) if *own >= 0 => rescale(*value, own.unsigned_abs(), scale)?,
        _ => rescale(integer(scalar)?, 0, scale)?,
    };
    let fits = unscaled.unsigned_abs() < 10_u128.checked_pow(u32::from(precision))?;
    fits.then_some(Datum::Decimal(unscaled, precision, scale))
}

fn date(scalar: &ScalarValue) -> Option<i32> {
    const DAY: i64 = 86_400_000;
    match scalar {
        ScalarValue::Date32(value) => *value,
        ScalarValue::Date64(Some(millis)) => (millis % DAY == 0).then(|| i32::try_from(millis / DAY).ok()).flatten(),
        _ => {
            let (millis, nanos, instant) = moment(scalar)?;
            if instant || nanos != 0 || millis % DAY != 0 {
                return None;
            }
            i32::try_from(millis / DAY).ok()
        }
    }
}

fn time(scalar: &ScalarValue) -> Option<i32> {
    let exact =
        |ticks: i64, per_milli: i64| (ticks % per_milli == 0).then(|| i32::try_from(ticks / per_milli).ok()).flatten();
    match scalar {
        ScalarValue::Time32Second(value) => (*value)?.checked_mul(1000),
        ScalarValue::Time32Millisecond(value) => *value,
        ScalarValue::Time64Microsecond(value) => exact((*value)?, 1000),
        ScalarValue::Time64Nanosecond(value) => exact((*value)?, 1_000_000),
        _ => None,
    }
}

/// Milliseconds, nanoseconds of the millisecond, and whether a zone makes it an instant.
fn moment(scalar: &ScalarValue) -> Option<(i64, i32, bool)> {
    let ArrowType::Timestamp(unit, zone) = scalar.data_type() else { return None };
    let ticks = match scalar {
        ScalarValue::TimestampSecond(value, _)
        | ScalarValue::TimestampMillisecond(value, _)
        | ScalarValue::TimestampMicrosecond(value, _)
        | ScalarValue::TimestampNanosecond(value, _) => (*value)?,
        _ => return None,
    };
    let (millis, nanos) = match unit {
        TimeUnit::Second => (ticks.checked_mul(1000)?, 0),
        TimeUnit::Millisecond => (ticks, 0),
        TimeUnit::Microsecond => split_ticks(ticks, 1000),
        TimeUnit::Nanosecond => split_ticks(ticks, 1_000_000),
    };
    Some((millis, nanos, zone.is_some()))
}

/// A moment that the precision can hold without rounding.
fn timestamp(scalar: &ScalarValue, precision: u8, instant: bool) -> Option<Datum> {
    let (millis, nanos) = match scalar {
        ScalarValue::Date32(Some(days)) if !instant => (i64::from(*days) * 86_400_000, 0),
        _ => {
            let (millis, nanos, is_instant) = moment(scalar)?;
            if is_instant != instant {
                return None;
            }
            (millis, nanos)
        }
    };
    let unit = 10_i64.checked_pow(u32::from(9_u8.saturating_sub(precision)))?;
    let nanos_of_second = millis.rem_euclid(1000) * 1_000_000 + i64::from(nanos);
    (nanos_of_second % unit == 0).then_some(Datum::Timestamp(millis, nanos))
}

#[cfg(test)]
mod tests;
