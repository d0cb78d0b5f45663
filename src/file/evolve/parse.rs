//! Text to values, as Java parses it.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, BooleanArray, Decimal128Array, PrimitiveArray, StringArray};
use arrow::datatypes::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
};

use super::number::digits_to_decimal;
use super::strings;
use super::time::{Moment, from_units};
use crate::error::{Error, Result};
use crate::spec::DataType;
use crate::spec::zone::Zone;

const MILLIS_PER_DAY: i64 = 86_400_000;

pub(super) fn cast(array: &ArrayRef, to: &DataType, zone: &Zone) -> Result<ArrayRef> {
    let text = strings(array)?;
    let fail = |value: &str| no_value(value, to);
    Ok(match to {
        DataType::Boolean => {
            let mut values = Vec::with_capacity(text.len_hint());
            for value in text {
                values.push(match value {
                    Some(v) => Some(boolean(v).ok_or_else(|| fail(v))?),
                    None => None,
                });
            }
            Arc::new(BooleanArray::from(values))
        }
        DataType::TinyInt => Arc::new(each::<Int8Type>(text, to, |v| integer(v).and_then(|i| i8::try_from(i).ok()))?),
        DataType::SmallInt => {
            Arc::new(each::<Int16Type>(text, to, |v| integer(v).and_then(|i| i16::try_from(i).ok()))?)
        }
        DataType::Int => Arc::new(each::<Int32Type>(text, to, |v| integer(v).and_then(|i| i32::try_from(i).ok()))?),
        DataType::BigInt => Arc::new(each::<Int64Type>(text, to, integer)?),
        DataType::Float => Arc::new(each::<Float32Type>(text, to, |v| float_text(v).and_then(|t| t.parse().ok()))?),
        DataType::Double => Arc::new(each::<Float64Type>(text, to, |v| float_text(v).and_then(|t| t.parse().ok()))?),
        DataType::Decimal(precision, scale) => {
            let mut values = Vec::with_capacity(text.len_hint());
            for value in text {
                values.push(match value {
                    // an overflow is NULL, nonsense an error
                    Some(v) => {
                        let (mantissa, exponent) = decimal_text(v).ok_or_else(|| fail(v))?;
                        digits_to_decimal(mantissa, exponent, *precision, *scale)
                    }
                    None => None,
                });
            }
            let scale = i8::try_from(*scale).unwrap_or(i8::MAX);
            Arc::new(values.into_iter().collect::<Decimal128Array>().with_precision_and_scale(*precision, scale)?)
        }
        DataType::Date => Arc::new(each::<Date32Type>(text, to, date)?),
        DataType::Time(_) => Arc::new(each::<Time32MillisecondType>(text, to, time)?),
        DataType::Timestamp(precision) => {
            let units =
                moments(text, to, |v| if all_digits(v) { epoch(v, *precision) } else { timestamp(v, *precision) })?;
            from_units(units, to)?
        }
        DataType::TimestampLtz(precision) => {
            let units = moments(text, to, |v| {
                let wall = timestamp(v, *precision)?;
                Some(Moment { millis: zone.to_utc_millis(wall.millis), nanos: wall.nanos })
            })?;
            from_units(units, to)?
        }
        other => return Err(Error::internal(format!("text has no cast to {other:?}"))),
    })
}

/// Length of an array where the trait is not at hand.
trait LenHint {
    fn len_hint(&self) -> usize;
}

impl LenHint for StringArray {
    fn len_hint(&self) -> usize {
        arrow::array::Array::len(self)
    }
}

fn no_value(value: &str, to: &DataType) -> Error {
    let mut shown: String = value.chars().take(60).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    let to = crate::spec::FieldType { data_type: to.clone(), nullable: true };
    Error::invalid(format!("'{shown}' cannot be read as {to}"))
        .with_code("InvalidCastValue")
        .with_hint("the column was altered from text: leave it out, or read the table before the change")
}

fn each<T: ArrowPrimitiveType>(
    text: &StringArray,
    to: &DataType,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<PrimitiveArray<T>> {
    let mut values = Vec::with_capacity(text.len_hint());
    for value in text {
        values.push(match value {
            Some(v) => Some(parse(v).ok_or_else(|| no_value(v, to))?),
            None => None,
        });
    }
    Ok(values.into_iter().collect())
}

fn moments(
    text: &StringArray,
    to: &DataType,
    parse: impl Fn(&str) -> Option<Moment>,
) -> Result<PrimitiveArray<Int64Type>> {
    let (DataType::Timestamp(precision) | DataType::TimestampLtz(precision)) = to else {
        return Err(Error::internal(format!("{to:?} is no timestamp")));
    };
    let mut values = Vec::with_capacity(text.len_hint());
    for value in text {
        values.push(match value {
            Some(v) => Some(parse(v).ok_or_else(|| no_value(v, to))?.in_unit_of(*precision)?),
            None => None,
        });
    }
    Ok(values.into_iter().collect())
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Sign, digits, and a fraction that is checked and cut off.
fn integer(text: &str) -> Option<i64> {
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
    if bare.is_empty() {
        return None;
    }
    let (whole, fraction) = bare.split_once('.').unwrap_or((bare, ""));
    if !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let negative = text.starts_with('-');
    whole.bytes().try_fold(0_i64, |value, b| {
        let digit = i64::from(b - b'0');
        let value = value.checked_mul(10)?;
        if negative { value.checked_sub(digit) } else { value.checked_add(digit) }
    })
}

/// What Java's `Double.parseDouble` takes, in a form that Rust takes; hexadecimal floats are left out.
fn float_text(text: &str) -> Option<String> {
    let text = text.trim_matches(|c| c <= ' ');
    let (sign, bare) = match text.strip_prefix(['-', '+']) {
        Some(bare) => (text.get(..1)?, bare),
        None => ("", text),
    };
    if bare == "NaN" {
        return Some("NaN".to_string());
    }
    if bare == "Infinity" {
        return Some(format!("{sign}inf"));
    }
    let number = bare.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(bare);
    let (mantissa, exponent) = scientific(number)?;
    Some(format!("{sign}{mantissa}e{exponent}"))
}

/// What Java's `BigDecimal` takes: mantissa and exponent.
fn decimal_text(text: &str) -> Option<(&str, i64)> {
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = scientific(bare)?;
    let sign_length = text.len() - bare.len();
    Some((text.get(..sign_length + mantissa.len())?, exponent))
}

/// Unsigned `digits[.digits][e[+-]digits]` with at least one digit in front.
fn scientific(text: &str) -> Option<(&str, i64)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            if !all_digits(digits) || digits.len() > 10 {
                return None;
            }
            (mantissa, exponent.parse().ok()?)
        }
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.len() + fraction.len();
    (digits > 0 && whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit())).then_some((mantissa, exponent))
}

fn number(text: &str) -> Option<i64> {
    let text = text.trim_matches(|c| c <= ' ');
    if all_digits(text) { text.parse().ok() } else { None }
}

/// Days since 1970: all digits are that count; else `y[-m[-d]]` of the years 0 to 9999, up to the first blank.
fn date(text: &str) -> Option<i32> {
    if all_digits(text) {
        return text.parse().ok();
    }
    let text = match text.find(' ') {
        Some(blank) if blank > 0 => text.get(..blank)?,
        _ => text,
    };
    let mut parts = text.splitn(3, '-');
    let year = number(parts.next()?)?;
    let month = parts.next().map_or(Some(1), number)?;
    let day = parts.next().map_or(Some(1), number)?;
    days(year, month, day)
}

fn days(year: i64, month: i64, day: i64) -> Option<i32> {
    if !(0..=9999).contains(&year) {
        return None;
    }
    let date = chrono::NaiveDate::from_ymd_opt(
        i32::try_from(year).ok()?,
        u32::try_from(month).ok()?,
        u32::try_from(day).ok()?,
    )?;
    i32::try_from(date.signed_duration_since(chrono::NaiveDate::default()).num_days()).ok()
}

/// Milliseconds of the day: all digits are that count; else `h[:m[:s[.fraction]]]`, the fraction rounded.
fn time(text: &str) -> Option<i32> {
    let millis = if all_digits(text) {
        text.parse().ok()?
    } else {
        let mut parts = text.splitn(3, ':');
        let hour = number(parts.next()?)?;
        let minute = parts.next().map_or(Some(0), number)?;
        let (second, millis) = match parts.next() {
            None => (0, 0),
            Some(rest) => match rest.split_once('.') {
                None => (number(rest)?, 0),
                Some((second, fraction)) => (number(second)?, fraction_millis(fraction.trim_matches(|c| c <= ' '))?),
            },
        };
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        ((hour * 60 + minute) * 60 + second) * 1000 + millis
    };
    if (0..MILLIS_PER_DAY).contains(&millis) { i32::try_from(millis).ok() } else { None }
}

/// `.1234` is 123 ms, `.1235` is 124.
fn fraction_millis(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let at = |i: usize| digits.as_bytes().get(i).map_or(0, |b| i64::from(b - b'0'));
    Some(at(0) * 100 + at(1) * 10 + at(2) + i64::from(at(3) >= 5))
}

/// `yyyy-m-d[ h:m:s[.fraction]]` or `yyyy-m-d[Th:m[:s[.fraction]]]`, cut to `precision` digits. As in Java a day that
/// its month lacks is the last of that month.
fn timestamp(text: &str, precision: u8) -> Option<Moment> {
    let (day, clock, needs_seconds) = if let Some((day, clock)) = text.split_once(' ') {
        (day, Some(clock), true)
    } else if let Some((day, clock)) = text.split_once('T') {
        (day, Some(clock), false)
    } else {
        (text, None, false)
    };
    let mut parts = day.splitn(3, '-');
    let year = parts.next()?;
    let (month, day) = (parts.next()?, parts.next()?);
    let short = |part: &str| part.len() <= 2 && all_digits(part);
    if year.len() != 4 || !all_digits(year) || !short(month) || !short(day) {
        return None;
    }
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let existing = (day.min(28)..=day.min(31)).rev().find_map(|day| days(year, month, day));
    let midnight = i64::from(existing.filter(|_| (1..=31).contains(&day))?) * MILLIS_PER_DAY;
    let Some(clock) = clock else { return Some(Moment { millis: midnight, nanos: 0 }) };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (parts.next()?, parts.next()?);
    let rest = match parts.next() {
        None if needs_seconds => return None,
        None => "0",
        Some(rest) => rest,
    };
    let (second, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    if !short(hour) || !short(minute) || !short(second) || fraction.len() > 9 {
        return None;
    }
    let (hour, minute, second) = (number(hour)?, number(minute)?, number(second)?);
    if hour > 23 || minute > 59 || second > 59 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let kept = fraction.get(..fraction.len().min(usize::from(precision)))?;
    let nanos: i64 = format!("{kept:0<9}").parse().ok()?;
    let millis = midnight + ((hour * 60 + minute) * 60 + second) * 1000 + nanos / 1_000_000;
    Some(Moment { millis, nanos: nanos % 1_000_000 })
}

/// A count since 1970 in the unit of the precision 0, 3, 6 or 9.
fn epoch(text: &str, precision: u8) -> Option<Moment> {
    let count = integer(text)?;
    Some(match precision {
        0 => Moment { millis: count.checked_mul(1000)?, nanos: 0 },
        3 => Moment { millis: count, nanos: 0 },
        6 => Moment { millis: count.div_euclid(1000), nanos: count.rem_euclid(1000) * 1000 },
        9 => Moment { millis: count.div_euclid(1_000_000), nanos: count.rem_euclid(1_000_000) },
        _ => return None,
    })
}
