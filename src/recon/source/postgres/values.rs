//! Values as PostgreSQL sends them, in its binary form, to cells; keys to texts.

use std::borrow::Cow;

use datafusion::common::ScalarValue;
use tokio_postgres::types::{FromSql, Type};

use super::super::SourceColumn;
use super::super::cells::{Cell, decimal_text, key_cell, key_value};
use super::columns::Kind;
use crate::error::{Error, Result};

/// The bytes of a value, as they came.
pub(super) struct Raw<'a>(pub(super) Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> std::result::Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> std::result::Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// From 2000-01-01, where PostgreSQL counts from, to the epoch.
const DAYS: i32 = 10_957;
const MICROS: i64 = 10_957 * 86_400_000_000;
const DAY: i64 = 86_400_000_000;

/// A value before its cell: a number's text is made here.
pub(super) enum Decoded<'a> {
    Cell(Cell<'a>),
    Decimal(String),
}

impl Decoded<'_> {
    pub(super) fn cell(&self) -> Cell<'_> {
        match self {
            Self::Cell(cell) => cell.clone(),
            Self::Decimal(text) => Cell::Decimal(text),
        }
    }
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| Error::internal(format!("a value of {} bytes, not of {N}", bytes.len())))
}

pub(super) fn decode<'a>(raw: Raw<'a>, kind: Kind) -> Result<Decoded<'a>> {
    let Some(bytes) = raw.0 else { return Ok(Decoded::Cell(Cell::Null)) };
    Ok(Decoded::Cell(match kind {
        Kind::Bool => Cell::Bool(bytes != [0]),
        Kind::Int2 => Cell::Int(i16::from_be_bytes(array(bytes)?).into()),
        Kind::Int4 => Cell::Int(i32::from_be_bytes(array(bytes)?).into()),
        Kind::Int8 => Cell::Int(i64::from_be_bytes(array(bytes)?)),
        Kind::Float4 => Cell::Float(f32::from_be_bytes(array(bytes)?)),
        Kind::Float8 => Cell::Double(f64::from_be_bytes(array(bytes)?)),
        Kind::Numeric => {
            return Ok(match numeric(bytes).ok_or_else(|| Error::internal("a numeric that is none"))? {
                Cow::Owned(digits) => Decoded::Decimal(digits),
                Cow::Borrowed(word) => Decoded::Cell(Cell::Unreadable(word.into())),
            });
        }
        Kind::Text | Kind::Inet => text(bytes),
        Kind::Padded => match text(bytes) {
            Cell::Text(text) => Cell::Text(text.trim_end_matches(' ')),
            other => other,
        },
        Kind::Bytes => Cell::Bytes(bytes),
        Kind::Date => match i32::from_be_bytes(array(bytes)?) {
            i32::MAX => Cell::Unreadable("infinity".into()),
            i32::MIN => Cell::Unreadable("-infinity".into()),
            days => days.checked_add(DAYS).map_or_else(|| outside(days.into(), "days"), Cell::Days),
        },
        Kind::Time => match i64::from_be_bytes(array(bytes)?) {
            DAY => Cell::Unreadable("24:00:00".into()),
            micros => Cell::Micros(micros),
        },
        Kind::Timestamp => match i64::from_be_bytes(array(bytes)?) {
            i64::MAX => Cell::Unreadable("infinity".into()),
            i64::MIN => Cell::Unreadable("-infinity".into()),
            micros => micros.checked_add(MICROS).map_or_else(|| outside(micros, "µs"), Cell::Micros),
        },
    }))
}

/// The last years that PostgreSQL knows.
fn outside(value: i64, unit: &str) -> Cell<'static> {
    Cell::Unreadable(format!("{value} {unit} after 2000-01-01"))
}

fn text(bytes: &[u8]) -> Cell<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cell::Text(text),
        Err(_) => Cell::Unreadable(format!("\\x{}", hex(bytes))),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of a numeric: digits, owned, or a word. It travels as digits to the base of 10 000.
fn numeric(bytes: &[u8]) -> Option<Cow<'static, str>> {
    let short = |at: usize| Some(i16::from_be_bytes(bytes.get(at * 2..at * 2 + 2)?.try_into().ok()?));
    let (count, weight, sign) = (usize::try_from(short(0)?).ok()?, i32::from(short(1)?), short(2)?.cast_unsigned());
    let scale = usize::from(short(3)?.cast_unsigned());
    match sign {
        0xC000 => return Some(Cow::Borrowed("NaN")),
        0xD000 => return Some(Cow::Borrowed("Infinity")),
        0xF000 => return Some(Cow::Borrowed("-Infinity")),
        _ => {}
    }
    let group = |at: i32| -> Option<i16> {
        match usize::try_from(at) {
            Ok(at) if at < count => short(4 + at),
            _ => Some(0),
        }
    };
    let mut digits = String::new();
    for at in 0..=weight {
        digits.push_str(&format!("{:04}", group(at)?));
    }
    let whole = digits.trim_start_matches('0');
    let mut text = format!("{}{}", if sign == 0x4000 { "-" } else { "" }, if whole.is_empty() { "0" } else { whole });
    if scale > 0 {
        let mut fraction = String::new();
        let mut at = weight + 1;
        // groups before the first that is sent are zero
        if weight < -1 {
            fraction.push_str(&"0000".repeat(usize::try_from(-1 - weight).ok()?));
            at = 0;
        }
        while fraction.len() < scale {
            fraction.push_str(&format!("{:04}", group(at)?));
            at += 1;
        }
        text.push('.');
        text.push_str(fraction.get(..scale)?);
    }
    Some(Cow::Owned(text))
}

/// A key's value as the text that `around` takes; none: NULL.
pub(super) fn key_text(column: &SourceColumn, value: &ScalarValue) -> Result<Option<String>> {
    let value = key_value(column, value)?;
    if let Some(text) = decimal_text(&value) {
        return Ok(Some(text));
    }
    Ok(Some(match key_cell(&value)? {
        Cell::Null => return Ok(None),
        Cell::Bool(value) => value.to_string(),
        Cell::Int(value) => value.to_string(),
        Cell::Unsigned(value) => value.to_string(),
        Cell::Float(value) => float(value.into(), &value.to_string()),
        Cell::Double(value) => float(value, &value.to_string()),
        Cell::Text(text) | Cell::Decimal(text) => text.to_string(),
        Cell::Bytes(bytes) => hex(bytes),
        Cell::Days(days) => days.to_string(),
        Cell::Micros(micros) => micros.to_string(),
        Cell::Unreadable(_) => return Err(Error::internal("a key that cannot be read")),
    }))
}

fn float(value: f64, text: &str) -> String {
    match value {
        value if value.is_nan() => "NaN".into(),
        value if value.is_infinite() => if value > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerics_are_read_digit_by_digit() {
        let of = |weight: i16, sign: u16, scale: u16, groups: &[i16]| {
            let mut bytes = Vec::new();
            bytes.extend(i16::try_from(groups.len()).unwrap().to_be_bytes());
            bytes.extend(weight.to_be_bytes());
            bytes.extend(sign.to_be_bytes());
            bytes.extend(scale.to_be_bytes());
            groups.iter().for_each(|group| bytes.extend(group.to_be_bytes()));
            numeric(&bytes).map(Cow::into_owned)
        };
        let cases: [(i16, u16, u16, &[i16], &str); 9] = [
            (0, 0, 0, &[], "0"),
            (0, 0, 2, &[], "0.00"),
            (0, 0x4000, 2, &[12, 3400], "-12.34"),
            (1, 0, 0, &[1], "10000"),
            (-1, 0, 5, &[12, 3000], "0.00123"),
            (-3, 0, 12, &[7], "0.000000000007"),
            (2, 0, 1, &[1, 0, 5, 5000], "100000005.5"),
            (0, 0xC000, 0, &[], "NaN"),
            (0, 0xF000, 0, &[], "-Infinity"),
        ];
        for (weight, sign, scale, groups, expected) in cases {
            assert_eq!(of(weight, sign, scale, groups).as_deref(), Some(expected));
        }
        assert_eq!(numeric(&[0, 1]), None);
    }
}
