//! Values of a column in the type in which they are compared.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, Decimal256Builder, Float32Array, Float64Array,
    PrimitiveArray, StringArray, StringBuilder, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray, new_null_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cast_utils::{Parser, string_to_datetime};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Date32Type, Date64Type, Float64Type, Int64Type, Time64NanosecondType, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::numbers::{at_scale, parse_decimal, significant_digits};
use super::pairs::{Column, CommonType, Pair};
use crate::error::{Error, Result};
use crate::query::compared_values;
use crate::snapshot::{SessionZone, names_zone};

/// Which way a time goes that has more digits than it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// Back, to the digits it keeps.
    #[default]
    Truncate,
    /// To the nearest, halves forward.
    HalfUp,
}

/// How values are brought to their common type.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Manner {
    /// Of times with more digits.
    pub rounding: Rounding,
    /// The zone of times without one.
    pub zone: SessionZone,
}

/// Values in their common type.
#[derive(Debug)]
pub struct Converted {
    /// The values; NULL where there is none, and where it could not be read.
    pub values: ArrayRef,
    /// What could not be read, as it was; NULL elsewhere. None: all was read.
    pub unread: Option<StringArray>,
    /// Values that lost digits.
    pub cut: u64,
    /// Values that MAP has.
    pub mapped: u64,
}

/// Whether some values of a column may have no counterpart in the common type.
pub fn may_fail(column: &Column, common: &CommonType, mapped: bool) -> bool {
    if mapped || column.data_type == DataType::Null {
        return false;
    }
    match (&column.data_type, common) {
        (_, CommonType::Nested(_) | CommonType::Boolean | CommonType::Binary) if !column.untyped => false,
        // what is beyond the largest FLOAT
        (from, CommonType::Float) if !column.untyped => !matches!(from, DataType::Float16 | DataType::Float32),
        (_, CommonType::Text { .. } | CommonType::Double) if !column.untyped => false,
        (from, CommonType::Integer) => !(from.is_integer() || *from == DataType::Boolean),
        // with all whole digits the type has room for each value
        (from, CommonType::Decimal(p, s)) if !column.untyped => match from {
            DataType::Decimal32(q, t)
            | DataType::Decimal64(q, t)
            | DataType::Decimal128(q, t)
            | DataType::Decimal256(q, t) => i16::from(*p) - i16::from(*s) < i16::from(*q) - i16::from(*t),
            _ => i16::from(*p) - i16::from(*s) < 20,
        },
        (DataType::Date32, CommonType::Date) => false,
        (DataType::Time32(_) | DataType::Time64(_), CommonType::Time(_)) => false,
        _ => true,
    }
}

/// Whether values keep the order that they have in the column: its order is that of the common type then.
pub fn keeps_order(column: &Column, common: &CommonType, mapped: bool) -> bool {
    if mapped || column.untyped {
        return false;
    }
    match (&column.data_type, common) {
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, CommonType::Text { trimmed, folded }) => {
            !trimmed && !folded
        }
        (
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_),
            CommonType::Binary,
        ) => true,
        (from, CommonType::Integer) => from.is_integer(),
        (from, CommonType::Decimal(..)) => from.is_integer() || from.is_decimal(),
        (DataType::Date32, CommonType::Date) => true,
        _ => false,
    }
}

/// Values of the column of a pair, on the left or the right side.
///
/// # Errors
/// Faults of the engine; what a value is to blame for is told in [`Converted::unread`].
pub fn convert(array: &ArrayRef, pair: &Pair, right: bool, manner: &Manner) -> Result<Converted> {
    let column = if right { &pair.right } else { &pair.left };
    let map = pair.map.as_ref().filter(|_| right);
    let plain = |values: ArrayRef| Converted { values, unread: None, cut: 0, mapped: 0 };
    let target = pair.common.data_type();
    let array = match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values)?,
        _ => Arc::clone(array),
    };
    if *array.data_type() == DataType::Null {
        return Ok(plain(new_null_array(&target, array.len())));
    }
    if let CommonType::Text { trimmed, .. } = pair.common {
        let texts = match pair.map {
            Some(_) => codes(&array)?,
            None => cast(&array, &DataType::Utf8)?,
        };
        let texts = texts.as_string::<i32>();
        if !trimmed && map.is_none() {
            return Ok(plain(Arc::new(texts.clone())));
        }
        let mut mapped = 0;
        let told = texts.iter().map(|text| {
            let text = text.map(|text| if trimmed { text.trim_end_matches(' ') } else { text })?;
            let found = map.and_then(|map| map.get(text));
            mapped += u64::from(found.is_some());
            Some(found.map_or(text, String::as_str))
        });
        let values: ArrayRef = Arc::new(told.collect::<StringArray>());
        return Ok(Converted { mapped, ..plain(values) });
    }
    if column.untyped {
        return from_text(&cast(&array, &DataType::Utf8)?, &pair.common, manner);
    }
    match &pair.common {
        CommonType::Nested(own) => Ok(plain(compared_values(&cast(&array, own)?)?)),
        CommonType::Boolean | CommonType::Binary => Ok(plain(cast(&array, &target)?)),
        CommonType::Integer | CommonType::Decimal(..) => {
            // 64 bits first: the kernels go from there to decimals
            let array = match array.data_type() {
                DataType::UInt64 => Arc::clone(&array),
                other if other.is_integer() => cast(&array, &DataType::Int64)?,
                _ => Arc::clone(&array),
            };
            let values = cast(&array, &target)?;
            let unread = unread(&array, values.as_ref())?;
            Ok(Converted { values, unread, cut: 0, mapped: 0 })
        }
        CommonType::Float => floats(&array),
        CommonType::Double => doubles(&array),
        CommonType::Date => {
            let Some(millis) = array.as_primitive_opt::<Date64Type>() else { return Ok(plain(cast(&array, &target)?)) };
            let day = |millis: i64| millis.div_euclid(86_400_000);
            let cut = millis.iter().flatten().filter(|millis| millis.rem_euclid(86_400_000) != 0).count() as u64;
            let days: PrimitiveArray<Date32Type> =
                millis.iter().map(|millis| millis.and_then(|millis| i32::try_from(day(millis)).ok())).collect();
            let values: ArrayRef = Arc::new(days);
            Ok(Converted { unread: unread(&array, values.as_ref())?, values, cut, mapped: 0 })
        }
        CommonType::Time(digits) => {
            let nanos = cast(&array, &target)?;
            let nanos = nanos.as_primitive::<Time64NanosecondType>();
            let kept = |value: i64| i64::try_from(round(value.into(), step(*digits), manner.rounding)).unwrap_or(value);
            let cut = nanos.iter().flatten().filter(|value| kept(*value) != *value).count() as u64;
            let values: PrimitiveArray<Time64NanosecondType> = nanos.unary(kept);
            Ok(Converted { values: Arc::new(values), unread: None, cut, mapped: 0 })
        }
        CommonType::Timestamp { digits, zoned } => {
            let own_zone = super::pairs::is_zoned(array.data_type());
            let nanos = nanos_of(&array)?;
            let mut times = Times::new(array.len(), *digits, *zoned, manner);
            for (row, value) in nanos.into_iter().enumerate() {
                let failed = times.push(value, own_zone);
                if failed {
                    times.unread.get_or_insert_with(|| vec![None; array.len()]);
                    let text = shown(&array, row)?;
                    if let Some(slot) = times.unread.as_mut().and_then(|unread| unread.get_mut(row)) {
                        *slot = Some(text);
                    }
                }
            }
            Ok(times.finish())
        }
        CommonType::Text { .. } => Err(Error::internal("texts have been converted before")),
    }
}

fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    Ok(cast_with_options(array, to, &CastOptions { safe: true, ..CastOptions::default() })?)
}

/// Texts in lower case, by what Unicode says of each character.
pub fn folded(array: &ArrayRef) -> ArrayRef {
    let Some(texts) = array.as_string_opt::<i32>() else { return Arc::clone(array) };
    Arc::new(texts.iter().map(|text| text.map(str::to_lowercase)).collect::<StringArray>())
}

/// Codes as texts: of numbers their digits.
fn codes(array: &ArrayRef) -> Result<ArrayRef> {
    if array.data_type().is_decimal() {
        let texts = (0..array.len()).map(|row| {
            let text = (!array.is_null(row)).then(|| shown(array, row)).transpose()?;
            Ok(text.map(|text| match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                false => text,
            }))
        });
        return Ok(Arc::new(texts.collect::<Result<StringArray>>()?));
    }
    cast(array, &DataType::Utf8)
}

/// A value as text.
pub fn shown(array: &dyn Array, row: usize) -> Result<String> {
    let options = FormatOptions::default().with_display_error(true);
    Ok(ArrayFormatter::try_new(array, &options)?.value(row).to_string())
}

/// What became NULL and was not.
fn unread(before: &ArrayRef, after: &dyn Array) -> Result<Option<StringArray>> {
    if before.null_count() == after.null_count() {
        return Ok(None);
    }
    let mut texts = StringBuilder::new();
    for row in 0..before.len() {
        match !before.is_null(row) && after.is_null(row) {
            true => texts.append_value(shown(before, row)?),
            false => texts.append_null(),
        }
    }
    Ok(Some(texts.finish()))
}

#[expect(clippy::cast_possible_truncation, reason = "FLOAT is what values are compared as")]
fn narrow(value: f64) -> f32 {
    value as f32
}

fn narrow_loses(value: f64) -> bool {
    f64::from(narrow(value)) != value
}

pub(super) fn one_float(value: f32) -> f32 {
    if value.is_nan() { f32::NAN } else { value + 0.0 }
}

pub(super) fn one_double(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// Digits that every value of a type of floats keeps.
const FLOAT_DIGITS: usize = 6;
const DOUBLE_DIGITS: usize = 15;

/// Numbers as FLOAT; one that is beyond all of them is no infinity.
fn floats(array: &ArrayRef) -> Result<Converted> {
    let mut cut = 0;
    let values: Float32Array = if array.data_type().is_decimal() {
        // the nearest one, which the way over DOUBLE does not always give
        let mut values = Vec::with_capacity(array.len());
        for row in 0..array.len() {
            let text = (!array.is_null(row)).then(|| shown(array, row)).transpose()?;
            cut += u64::from(text.as_deref().is_some_and(|text| significant_digits(text) > FLOAT_DIGITS));
            values.push(text.and_then(|text| f32::from_str(&text).ok()).filter(|value| value.is_finite()));
        }
        values.into_iter().map(|value| value.map(one_float)).collect()
    } else {
        let wide = cast(array, &DataType::Float64)?;
        let wide = wide.as_primitive::<Float64Type>();
        cut = wide.iter().flatten().filter(|value| !value.is_nan() && narrow_loses(*value)).count() as u64;
        let held = |value: f64| !value.is_finite() || narrow(value).is_finite();
        wide.iter().map(|value| value.filter(|value| held(*value)).map(|value| one_float(narrow(value)))).collect()
    };
    Ok(Converted { unread: unread(array, &values)?, values: Arc::new(values), cut, mapped: 0 })
}

fn doubles(array: &ArrayRef) -> Result<Converted> {
    if array.data_type().is_decimal() {
        // the nearest double, which dividing by a power of ten does not always give
        let mut values = Vec::with_capacity(array.len());
        let mut cut = 0;
        for row in 0..array.len() {
            let text = (!array.is_null(row)).then(|| shown(array, row)).transpose()?;
            cut += u64::from(text.as_deref().is_some_and(|text| significant_digits(text) > DOUBLE_DIGITS));
            values.push(text.and_then(|text| f64::from_str(&text).ok()).map(one_double));
        }
        return Ok(Converted { values: Arc::new(Float64Array::from(values)), unread: None, cut, mapped: 0 });
    }
    let wide = cast(array, &DataType::Float64)?;
    let cut = match array.data_type() {
        DataType::Int64 | DataType::UInt64 => {
            let back = cast(&wide, array.data_type())?;
            let differs = arrow::compute::kernels::cmp::distinct(array, &back)?;
            differs.true_count() as u64
        }
        _ => 0,
    };
    let values: Float64Array = wide.as_primitive::<Float64Type>().unary(one_double);
    Ok(Converted { values: Arc::new(values), unread: None, cut, mapped: 0 })
}

/// Whether a number read from a text is what the text says: `1e400` is no infinity.
fn says(text: &str, is_infinite: bool) -> bool {
    !is_infinite || !text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether a float, as the shortest text that means it, is another number than the text it was read from.
fn is_shorter(text: &str, float: &str) -> bool {
    let (text, float) = (parse_decimal(text.trim()), parse_decimal(float));
    text.is_some() && text != float
}

/// The day that a text names. Midnight is the day too; any other time of it is another value.
fn day(text: &str) -> Option<i32> {
    let text = text.trim();
    if !text.contains(':') {
        let is_date = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'+');
        return Date32Type::parse(text).filter(|_| is_date);
    }
    let time = string_to_datetime(&chrono::Utc, text).ok().filter(|_| !names_zone(text))?;
    let seconds = time.timestamp();
    let is_midnight = seconds.rem_euclid(86_400) == 0 && time.timestamp_subsec_nanos() == 0;
    i32::try_from(seconds.div_euclid(86_400)).ok().filter(|_| is_midnight)
}

/// Nanoseconds between values of so many digits.
fn step(digits: u32) -> i128 {
    10i128.pow(9 - digits.min(9))
}

fn round(nanos: i128, step: i128, rounding: Rounding) -> i128 {
    match rounding {
        Rounding::Truncate => nanos.div_euclid(step) * step,
        Rounding::HalfUp => (nanos + step / 2).div_euclid(step) * step,
    }
}

/// Dates and times as nanoseconds since 1970.
fn nanos_of(array: &ArrayRef) -> Result<Vec<Option<i128>>> {
    let per = |unit: &TimeUnit| -> i128 {
        match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        }
    };
    let factor = match array.data_type() {
        DataType::Timestamp(unit, _) => per(unit),
        DataType::Date32 => 86_400 * per(&TimeUnit::Second),
        DataType::Date64 => per(&TimeUnit::Millisecond),
        other => return Err(Error::internal(format!("{other} is no time"))),
    };
    let integers = match array.data_type() {
        DataType::Date32 => cast(&cast(array, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(array, &DataType::Int64)?,
    };
    Ok(integers.as_primitive::<Int64Type>().iter().map(|value| value.map(|value| i128::from(value) * factor)).collect())
}

/// Times being brought to their common form.
struct Times<'a> {
    values: Vec<Option<i64>>,
    unread: Option<Vec<Option<String>>>,
    cut: u64,
    digits: u32,
    zoned: bool,
    manner: &'a Manner,
}

impl<'a> Times<'a> {
    fn new(rows: usize, digits: u32, zoned: bool, manner: &'a Manner) -> Self {
        Self { values: Vec::with_capacity(rows), unread: None, cut: 0, digits, zoned, manner }
    }

    fn unit_nanos(&self) -> i128 {
        match self.digits {
            0 => 1_000_000_000,
            1..=3 => 1_000_000,
            4..=6 => 1_000,
            _ => 1,
        }
    }

    /// Takes a value; whether it has no counterpart.
    fn push(&mut self, nanos: Option<i128>, own_zone: bool) -> bool {
        let Some(mut nanos) = nanos else {
            self.values.push(None);
            return false;
        };
        if self.zoned && !own_zone {
            // a clock time that happens twice or never is no instant
            let (millis, rest) = (nanos.div_euclid(1_000_000), nanos.rem_euclid(1_000_000));
            let instant = i64::try_from(millis).ok().and_then(|millis| self.manner.zone.instant_of(millis).ok());
            let Some(instant) = instant else {
                self.values.push(None);
                return true;
            };
            nanos = i128::from(instant) * 1_000_000 + rest;
        }
        let kept = round(nanos, step(self.digits), self.manner.rounding);
        self.cut += u64::from(kept != nanos);
        let value = i64::try_from(kept / self.unit_nanos()).ok();
        self.values.push(value);
        value.is_none()
    }

    fn finish(self) -> Converted {
        let zone: Option<Arc<str>> = self.zoned.then(|| Arc::from("UTC"));
        let values: ArrayRef = match self.digits {
            0 => Arc::new(TimestampSecondArray::from(self.values).with_timezone_opt(zone)),
            1..=3 => Arc::new(TimestampMillisecondArray::from(self.values).with_timezone_opt(zone)),
            4..=6 => Arc::new(TimestampMicrosecondArray::from(self.values).with_timezone_opt(zone)),
            _ => Arc::new(TimestampNanosecondArray::from(self.values).with_timezone_opt(zone)),
        };
        Converted { values, unread: self.unread.map(StringArray::from), cut: self.cut, mapped: 0 }
    }
}

/// Texts without a type, read as values of the common one.
fn from_text(array: &ArrayRef, common: &CommonType, manner: &Manner) -> Result<Converted> {
    let texts = array.as_string::<i32>();
    let mut cut = 0;
    let values: ArrayRef = match common {
        CommonType::Boolean => {
            let read = |text: &str| match text.trim().to_ascii_lowercase().as_str() {
                "true" | "t" | "1" | "yes" => Some(true),
                "false" | "f" | "0" | "no" => Some(false),
                _ => None,
            };
            Arc::new(texts.iter().map(|text| text.and_then(read)).collect::<BooleanArray>())
        }
        CommonType::Decimal(precision, scale) => {
            let mut numbers = Decimal256Builder::new().with_precision_and_scale(*precision, *scale)?;
            for text in texts {
                numbers.append_option(text.and_then(|text| at_scale(parse_decimal(text.trim())?, *scale)));
            }
            Arc::new(numbers.finish())
        }
        CommonType::Float => {
            let mut read = |text: &str| {
                let value = f32::from_str(text.trim()).ok().filter(|value| says(text, value.is_infinite()))?;
                cut += u64::from(is_shorter(text, &value.to_string()));
                Some(one_float(value))
            };
            Arc::new(texts.iter().map(|text| text.and_then(&mut read)).collect::<Float32Array>())
        }
        CommonType::Double => {
            let mut read = |text: &str| {
                let value = f64::from_str(text.trim()).ok().filter(|value| says(text, value.is_infinite()))?;
                cut += u64::from(is_shorter(text, &value.to_string()));
                Some(one_double(value))
            };
            Arc::new(texts.iter().map(|text| text.and_then(&mut read)).collect::<Float64Array>())
        }
        CommonType::Date => {
            let days = texts.iter().map(|text| text.and_then(day));
            Arc::new(days.collect::<PrimitiveArray<Date32Type>>())
        }
        CommonType::Time(digits) => {
            let step = step(*digits);
            let times = texts.iter().map(|text| {
                let value = Time64NanosecondType::parse(text?.trim())?;
                let kept = round(value.into(), step, manner.rounding);
                cut += u64::from(kept != i128::from(value));
                i64::try_from(kept).ok()
            });
            Arc::new(times.collect::<PrimitiveArray<Time64NanosecondType>>())
        }
        CommonType::Timestamp { digits, zoned } => {
            let mut times = Times::new(texts.len(), *digits, *zoned, manner);
            for text in texts {
                let own_zone = text.is_some_and(names_zone);
                // a time with a zone beside a clock without one is no value of its kind
                let read = text.filter(|_| *zoned || !own_zone).and_then(|text| {
                    let time = string_to_datetime(&chrono::Utc, text.trim()).ok()?;
                    Some(i128::from(time.timestamp()) * 1_000_000_000 + i128::from(time.timestamp_subsec_nanos()))
                });
                times.push(read, own_zone);
            }
            cut = times.cut;
            times.finish().values
        }
        other => return Err(Error::internal(format!("no text is read as {other:?}"))),
    };
    Ok(Converted { unread: unread(array, values.as_ref())?, values, cut, mapped: 0 })
}

/// Rows in which one of some columns is NULL.
pub fn any_null(columns: &[ArrayRef], rows: usize) -> Option<BooleanBuffer> {
    let nulls = columns.iter().filter_map(|column| column.logical_nulls());
    let all = nulls.fold(None, |all: Option<NullBuffer>, nulls| NullBuffer::union(all.as_ref(), Some(&nulls)));
    let all = all.filter(|nulls| nulls.null_count() > 0)?;
    let mut bits = BooleanBufferBuilder::new(rows);
    for row in 0..rows {
        bits.append(all.is_null(row));
    }
    Some(bits.finish())
}
