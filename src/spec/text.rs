//! Values as text: casts to STRING, as Java writes them.
//!
//! | type | text |
//! |---|---|
//! | BOOLEAN, integers | `true`, `-12` |
//! | FLOAT, DOUBLE | `1.5`, `1.0E10`, `-0.0`, `NaN`, `Infinity` |
//! | DECIMAL | plain, with its scale: `1.50` |
//! | DATE | `2024-01-02` |
//! | TIME(p) | `03:04:05`, for p > 0 with 1..p fraction digits |
//! | TIMESTAMP(p) | `2024-01-02 03:04:05.678`, p fraction digits, more if the value has more |
//! | LTZ | the same, on the clock of a zone |
//! | bytes | as UTF-8 |
//! | ARRAY, MAP, ROW | `[a, b]`, `{k -> v}`, `{a, b}`, with `null` |
//!
//! Years outside of 0..=9999, which Java garbles, have a sign: `+10000-01-01`, `-0001-12-31`.

use std::fmt::Write;

use super::data_type::DataType;
use super::datum::Datum;
use super::zone::Zone;

pub use array::array_text;
pub use number::{decimal, java_double, java_float};

mod array;
mod number;

/// An atomic value as cast to STRING, LTZ in UTC; None for NULL.
pub fn datum_text(datum: &Datum, data_type: &DataType) -> Option<String> {
    datum_text_in(datum, data_type, &Zone::UTC)
}

/// An atomic value as cast to STRING, LTZ in a zone; None for NULL.
pub fn datum_text_in(datum: &Datum, data_type: &DataType, zone: &Zone) -> Option<String> {
    Some(match datum {
        Datum::Null => return None,
        Datum::Boolean(value) => value.to_string(),
        Datum::TinyInt(value) => value.to_string(),
        Datum::SmallInt(value) => value.to_string(),
        Datum::Int(value) => value.to_string(),
        Datum::BigInt(value) => value.to_string(),
        Datum::Float(value) => java_float(*value),
        Datum::Double(value) => java_double(*value),
        Datum::Decimal(value, _, scale) => decimal(*value, i16::from(*scale)),
        Datum::Date(days) => date(i64::from(*days)),
        Datum::Time(millis) => time(*millis, if let DataType::Time(precision) = data_type { *precision } else { 3 }),
        Datum::Timestamp(millis, nanos) => match data_type {
            DataType::TimestampLtz(precision) => timestamp(zone.to_local_millis(*millis), *nanos, *precision),
            DataType::Timestamp(precision) => timestamp(*millis, *nanos, *precision),
            _ => timestamp(*millis, *nanos, 3),
        },
        Datum::String(value) => value.clone(),
        Datum::Binary(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    })
}

/// A date, given as days since 1970-01-01.
pub fn date(days: i64) -> String {
    let mut text = String::with_capacity(10);
    write_date(&mut text, days);
    text
}

/// A time of the day: without fraction for precision 0, otherwise with 1 to `precision` digits.
pub fn time(millis_of_day: i32, precision: u8) -> String {
    let mut text = String::with_capacity(12);
    write_time(&mut text, millis_of_day, precision);
    text
}

/// A wall-clock time with `precision` fraction digits, or more if the value has more.
pub fn timestamp(millis: i64, nanos_of_milli: i32, precision: u8) -> String {
    let mut text = String::with_capacity(29);
    write_timestamp(&mut text, millis, nanos_of_milli, precision);
    text
}

fn write_date(text: &mut String, days: i64) {
    let (year, month, day) = civil_from_days(days);
    // writing to a String cannot fail
    let _ = match year {
        0..=9999 => write!(text, "{year:04}-{month:02}-{day:02}"),
        10_000.. => write!(text, "+{year}-{month:02}-{day:02}"),
        _ => write!(text, "-{:04}-{month:02}-{day:02}", year.unsigned_abs()),
    };
}

fn write_time(text: &mut String, millis_of_day: i32, precision: u8) {
    let millis = millis_of_day.rem_euclid(86_400_000);
    write_clock(text, millis / 1000);
    if precision > 0 {
        // Java's way: digits until the rest is zero, but at least one
        text.push('.');
        let mut rest = millis % 1000;
        for _ in 0..precision {
            text.push(digit(rest / 100));
            rest = rest % 100 * 10;
            if rest == 0 {
                break;
            }
        }
    }
}

fn write_timestamp(text: &mut String, millis: i64, nanos_of_milli: i32, precision: u8) {
    write_date(text, millis.div_euclid(86_400_000));
    text.push(' ');
    // both remainders are below the day, so they fit
    let millis_of_day = i32::try_from(millis.rem_euclid(86_400_000)).unwrap_or(0);
    write_clock(text, millis_of_day / 1000);
    let fraction = format!("{:03}{:06}", millis_of_day % 1000, nanos_of_milli.clamp(0, 999_999));
    let significant = fraction.trim_end_matches('0').len();
    let digits = significant.max(usize::from(precision).min(fraction.len()));
    if digits > 0 {
        text.push('.');
        text.push_str(fraction.get(..digits).unwrap_or_default());
    }
}

fn write_clock(text: &mut String, second_of_day: i32) {
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let _ = write!(text, "{hour:02}:{minute:02}:{second:02}");
}

fn digit(number: i32) -> char {
    u32::try_from(number).ok().and_then(|number| char::from_digit(number, 10)).unwrap_or('0')
}

/// Year, month and day of a day count since 1970-01-01, in the proleptic Gregorian calendar.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // eras of 400 years that begin on the first of March, so that leap days come last
    let day = days.saturating_add(719_468);
    let era = day.div_euclid(146_097);
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_month)
}

#[cfg(test)]
mod tests;
