//! Atomic values into arrays and out of them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, PrimitiveArray, StringArray, Time32MillisecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, new_null_array,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time32MillisecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};

use super::{arrow_type, mismatch};
use crate::error::{Error, Result};
use crate::spec::data_type::DataType;
use crate::spec::datum::Datum;

/// Atomic values as one array of their type's Arrow type.
///
/// A timestamp that the unit cannot hold (nanoseconds end in the years 1677 and 2262) is an error, never wrapped.
pub fn datums_to_array(datums: &[Datum], data_type: &DataType) -> Result<ArrayRef> {
    /// Picks the values of one variant; another variant than that or NULL is an error.
    macro_rules! pick {
        ($($variant:pat => $value:expr),+) => {
            datums
                .iter()
                .map(|datum| match datum {
                    Datum::Null => Ok(None),
                    $($variant => Ok(Some($value)),)+
                    other => Err(not_of_type(other, data_type)),
                })
                .collect::<Result<Vec<_>>>()?
        };
    }
    let arrow = arrow_type(data_type);
    Ok(match data_type {
        DataType::Boolean => Arc::new(BooleanArray::from(pick!(Datum::Boolean(value) => *value))),
        DataType::TinyInt => Arc::new(Int8Array::from(pick!(Datum::TinyInt(value) => *value))),
        DataType::SmallInt => Arc::new(Int16Array::from(pick!(Datum::SmallInt(value) => *value))),
        DataType::Int => Arc::new(Int32Array::from(pick!(Datum::Int(value) => *value))),
        DataType::BigInt => Arc::new(Int64Array::from(pick!(Datum::BigInt(value) => *value))),
        DataType::Float => Arc::new(Float32Array::from(pick!(Datum::Float(value) => *value))),
        DataType::Double => Arc::new(Float64Array::from(pick!(Datum::Double(value) => *value))),
        DataType::Decimal(_, scale) => {
            let values = pick!(Datum::Decimal(value, _, own) => {
                rescale(*value, *own, *scale).ok_or_else(|| not_of_type(&Datum::Decimal(*value, 38, *own), data_type))?
            });
            Arc::new(Decimal128Array::from(values).with_data_type(arrow))
        }
        DataType::Date => Arc::new(Date32Array::from(pick!(Datum::Date(value) => *value))),
        DataType::Time(_) => Arc::new(Time32MillisecondArray::from(pick!(Datum::Time(value) => *value))),
        DataType::Timestamp(_) | DataType::TimestampLtz(_) => {
            let ArrowType::Timestamp(unit, zone) = arrow else { return Err(Error::internal("no timestamp type")) };
            let values = pick!(Datum::Timestamp(millis, nanos) => {
                ticks(*millis, *nanos, unit).ok_or_else(|| {
                    Error::invalid(format!(
                        "the timestamp {} is out of the range of {data_type}, which is held in 64 bits",
                        Datum::Timestamp(*millis, *nanos)
                    ))
                    .with_code("OutOfRange")
                })?
            });
            match unit {
                TimeUnit::Microsecond => Arc::new(TimestampMicrosecondArray::from(values).with_timezone_opt(zone)),
                TimeUnit::Nanosecond => Arc::new(TimestampNanosecondArray::from(values).with_timezone_opt(zone)),
                _ => Arc::new(TimestampMillisecondArray::from(values).with_timezone_opt(zone)),
            }
        }
        DataType::Char(_) | DataType::Varchar(_) => {
            Arc::new(StringArray::from(pick!(Datum::String(value) => value.as_str())))
        }
        DataType::Binary(_)
        | DataType::Varbinary(_)
        | DataType::Blob
        | DataType::Geometry(_)
        | DataType::Geography(_) => Arc::new(BinaryArray::from(pick!(Datum::Binary(value) => value.as_slice()))),
        _ => match datums.iter().find(|datum| !datum.is_null()) {
            None => new_null_array(&arrow, datums.len()),
            Some(datum) => return Err(not_of_type(datum, data_type)),
        },
    })
}

/// The atomic value at a row of an array of the type's Arrow type.
pub fn datum_at(array: &dyn Array, row: usize, data_type: &DataType) -> Result<Datum> {
    if row >= array.len() {
        return Err(Error::internal(format!("row {row} was asked of an array of {} rows", array.len())));
    }
    if array.is_null(row) {
        return Ok(Datum::Null);
    }
    let found = || mismatch(array, data_type);
    Ok(match data_type {
        DataType::Boolean => Datum::Boolean(array.as_boolean_opt().ok_or_else(found)?.value(row)),
        DataType::TinyInt => Datum::TinyInt(value::<Int8Type>(array, row).ok_or_else(found)?),
        DataType::SmallInt => Datum::SmallInt(value::<Int16Type>(array, row).ok_or_else(found)?),
        DataType::Int => Datum::Int(value::<Int32Type>(array, row).ok_or_else(found)?),
        DataType::BigInt => Datum::BigInt(value::<Int64Type>(array, row).ok_or_else(found)?),
        DataType::Float => Datum::Float(value::<Float32Type>(array, row).ok_or_else(found)?),
        DataType::Double => Datum::Double(value::<Float64Type>(array, row).ok_or_else(found)?),
        DataType::Decimal(precision, scale) => {
            let decimals: &PrimitiveArray<Decimal128Type> = array.as_primitive_opt().ok_or_else(found)?;
            if u8::try_from(decimals.scale()) != Ok(*scale) {
                return Err(found());
            }
            Datum::Decimal(decimals.value(row), *precision, *scale)
        }
        DataType::Date => Datum::Date(value::<Date32Type>(array, row).ok_or_else(found)?),
        DataType::Time(_) => Datum::Time(value::<Time32MillisecondType>(array, row).ok_or_else(found)?),
        DataType::Timestamp(_) | DataType::TimestampLtz(_) => {
            let (millis, nanos) = None
                .or_else(|| value::<TimestampMillisecondType>(array, row).map(|ticks| (ticks, 0)))
                .or_else(|| value::<TimestampMicrosecondType>(array, row).map(|ticks| split_ticks(ticks, 1000)))
                .or_else(|| value::<TimestampNanosecondType>(array, row).map(|ticks| split_ticks(ticks, 1_000_000)))
                .ok_or_else(found)?;
            Datum::Timestamp(millis, nanos)
        }
        DataType::Char(_) | DataType::Varchar(_) => {
            Datum::String(array.as_string_opt::<i32>().ok_or_else(found)?.value(row).to_string())
        }
        DataType::Binary(_)
        | DataType::Varbinary(_)
        | DataType::Blob
        | DataType::Geometry(_)
        | DataType::Geography(_) => Datum::Binary(array.as_binary_opt::<i32>().ok_or_else(found)?.value(row).to_vec()),
        _ => return Err(Error::internal(format!("a value of the nested type {data_type} was asked as an atomic one"))),
    })
}

fn value<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Option<T::Native> {
    array.as_primitive_opt::<T>().map(|values| values.value(row))
}

/// Splits ticks into milliseconds and nanoseconds of the millisecond, which are never negative. `per_milli` is 1 000
/// for microseconds and 1 000 000 for nanoseconds.
pub(crate) fn split_ticks(ticks: i64, per_milli: i64) -> (i64, i32) {
    let nanos = ticks.rem_euclid(per_milli) * (1_000_000 / per_milli);
    // below a million by the remainder
    (ticks.div_euclid(per_milli), i32::try_from(nanos).unwrap_or(0))
}

/// Ticks of a unit, digits below it cut; None when they do not fit.
pub(super) fn ticks(millis: i64, nanos: i32, unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Second => Some(millis.div_euclid(1000)),
        TimeUnit::Millisecond => Some(millis),
        TimeUnit::Microsecond => millis.checked_mul(1000)?.checked_add(i64::from(nanos / 1000)),
        TimeUnit::Nanosecond => {
            let total = i128::from(millis) * 1_000_000 + i128::from(nanos);
            i64::try_from(total).ok()
        }
    }
}

/// Brings an unscaled value to another scale, None when digits would be lost or do not fit.
pub(crate) fn rescale(value: i128, from: u8, to: u8) -> Option<i128> {
    if from <= to {
        return value.checked_mul(10_i128.checked_pow(u32::from(to - from))?);
    }
    let unit = 10_i128.checked_pow(u32::from(from - to))?;
    (value % unit == 0).then_some(value / unit)
}

pub(super) fn not_of_type(datum: &Datum, data_type: &DataType) -> Error {
    Error::internal(format!("the value {datum} is not of the type {data_type}"))
}
