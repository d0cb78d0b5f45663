//! Values of the driver to cells, and keys to parameters.

use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, Timelike};
use datafusion::common::ScalarValue;
use mysql_async::Value;

use super::super::cells::{Cell, decimal_text, key_cell, key_value};
use super::super::{SourceColumn, SourceOrder};
use super::columns::{Kind, MyColumn};
use crate::error::{Error, Result};

const EPOCH: NaiveDate = NaiveDate::from_epoch_days(0).expect("the epoch is a date");

/// A value as a cell of its column.
pub(super) fn cell<'a>(value: &'a Value, kind: Kind, column: &SourceColumn) -> Cell<'a> {
    match (value, kind) {
        (Value::NULL, _) => Cell::Null,
        (Value::Int(value), _) => Cell::Int(*value),
        (Value::UInt(value), _) => Cell::Unsigned(*value),
        (Value::Float(value), _) => Cell::Float(*value),
        (Value::Double(value), _) => Cell::Double(*value),
        (Value::Bytes(bytes), Kind::Bytes) => Cell::Bytes(bytes),
        (Value::Bytes(bytes), Kind::Bit) => {
            let value = number(bytes);
            if column.data_type == arrow::datatypes::DataType::Boolean {
                Cell::Bool(value != 0)
            } else {
                Cell::Unsigned(value)
            }
        }
        (Value::Bytes(bytes), kind) => match std::str::from_utf8(bytes) {
            Ok(text) if kind == Kind::Decimal => Cell::Decimal(text),
            Ok(text) => Cell::Text(text),
            Err(_) => Cell::Unreadable(format!("0x{}", hex(bytes))),
        },
        (Value::Date(year, month, day, ..), Kind::Date) => date(*year, *month, *day)
            .and_then(|date| i32::try_from(date.signed_duration_since(EPOCH).num_days()).ok())
            .map_or_else(|| Cell::Unreadable(format!("{year:04}-{month:02}-{day:02}")), Cell::Days),
        (Value::Date(year, month, day, hour, minute, second, micro), kind) => {
            let time = date(*year, *month, *day)
                .and_then(|date| date.and_hms_micro_opt((*hour).into(), (*minute).into(), (*second).into(), *micro));
            match time {
                Some(time) => Cell::Micros(time.and_utc().timestamp_micros()),
                None => Cell::Unreadable(format!(
                    "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{}",
                    fraction(*micro, kind)
                )),
            }
        }
        (Value::Time(negative, days, hour, minute, second, micro), kind) => {
            let hours = u64::from(*days) * 24 + u64::from(*hour);
            let seconds = hours * 3_600 + u64::from(*minute) * 60 + u64::from(*second);
            let is_zero = seconds == 0 && *micro == 0;
            let micros = i64::try_from(seconds * 1_000_000 + u64::from(*micro)).ok();
            match micros.filter(|_| hours < 24 && (!negative || is_zero)) {
                Some(micros) => Cell::Micros(micros),
                None => {
                    let sign = if *negative { "-" } else { "" };
                    Cell::Unreadable(format!("{sign}{hours:02}:{minute:02}:{second:02}{}", fraction(*micro, kind)))
                }
            }
        }
    }
}

fn date(year: u16, month: u8, day: u8) -> Option<NaiveDate> {
    NaiveDate::from_ymd_opt(year.into(), month.into(), day.into())
}

/// The digits behind the second that the column declares.
fn fraction(micros: u32, kind: Kind) -> String {
    let digits = match kind {
        Kind::Time(digits) | Kind::DateTime(digits) => usize::try_from(digits).unwrap_or(6).min(6),
        _ => 6,
    };
    let all = format!("{micros:06}");
    let shown = all.get(..digits).unwrap_or_default();
    if shown.is_empty() { String::new() } else { format!(".{shown}") }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What stands around a parameter, so that it is compared as the column's values are: a decimal as a decimal, not as a
/// float, bytes as bytes.
pub(super) fn around(column: &MyColumn) -> (String, String) {
    let (before, after) = match column.kind {
        Kind::Decimal if column.source.order == SourceOrder::Values => {
            let (precision, scale) = match column.source.data_type {
                arrow::datatypes::DataType::Decimal128(precision, scale)
                | arrow::datatypes::DataType::Decimal256(precision, scale) => (precision, scale),
                _ => (65, 30),
            };
            return ("CAST(".into(), format!(" AS DECIMAL({precision},{scale}))"));
        }
        Kind::Bytes => ("UNHEX(", ")"),
        _ => ("", ""),
    };
    (before.into(), after.into())
}

/// A value that was read, as a parameter of [`around`].
pub(super) fn param(value: &Value, kind: Kind) -> Value {
    match (value, kind) {
        (Value::Bytes(bytes), Kind::Bytes) => Value::Bytes(hex(bytes).into_bytes()),
        (Value::Bytes(bytes), Kind::Bit) => Value::UInt(number(bytes)),
        (Value::Float(value), _) => Value::Double((*value).into()),
        (value, _) => value.clone(),
    }
}

/// A key's value as a parameter of [`around`]; none: NULL.
pub(super) fn key_param(column: &MyColumn, value: &ScalarValue) -> Result<Option<Value>> {
    let value = key_value(&column.source, value)?;
    if let Some(text) = decimal_text(&value) {
        return Ok(Some(Value::Bytes(text.into_bytes())));
    }
    let out_of_range = || {
        Error::invalid(format!("the key value {value} is outside what the source holds"))
            .with_code("SourceKeyValue")
            .with_context("column", &column.source.name)
            .with_hint("give keys in the types of the source's columns")
    };
    let whole = |year: i32, time: NaiveDateTime| -> Option<Value> {
        Some(Value::Date(
            u16::try_from(year).ok()?,
            u8::try_from(time.month()).ok()?,
            u8::try_from(time.day()).ok()?,
            u8::try_from(time.hour()).ok()?,
            u8::try_from(time.minute()).ok()?,
            u8::try_from(time.second()).ok()?,
            time.nanosecond() / 1_000,
        ))
    };
    Ok(Some(match key_cell(&value)? {
        Cell::Null => return Ok(None),
        Cell::Bool(value) => Value::Int(value.into()),
        Cell::Int(value) => Value::Int(value),
        Cell::Unsigned(value) => Value::UInt(value),
        Cell::Float(value) => Value::Double(value.into()),
        Cell::Double(value) => Value::Double(value),
        Cell::Text(text) | Cell::Decimal(text) => Value::Bytes(text.as_bytes().to_vec()),
        Cell::Bytes(bytes) => Value::Bytes(hex(bytes).into_bytes()),
        Cell::Days(days) => {
            let date = u64::try_from(days)
                .map_or_else(
                    |_| EPOCH.checked_sub_days(Days::new(days.unsigned_abs().into())),
                    |days| EPOCH.checked_add_days(Days::new(days)),
                )
                .ok_or_else(out_of_range)?;
            whole(date.year(), date.into()).ok_or_else(out_of_range)?
        }
        Cell::Micros(micros) if matches!(column.kind, Kind::Time(_)) => {
            let seconds = micros.div_euclid(1_000_000);
            let part = |value: i64| u8::try_from(value).map_err(|_| out_of_range());
            let micro = u32::try_from(micros.rem_euclid(1_000_000)).map_err(|_| out_of_range())?;
            Value::Time(false, 0, part(seconds / 3_600)?, part(seconds / 60 % 60)?, part(seconds % 60)?, micro)
        }
        Cell::Micros(micros) => {
            let time = chrono::DateTime::from_timestamp_micros(micros).ok_or_else(out_of_range)?.naive_utc();
            whole(time.year(), time).ok_or_else(out_of_range)?
        }
        Cell::Unreadable(_) => return Err(out_of_range()),
    }))
}
