//! Values as indexes store and order them.

use std::cmp::Ordering;

use super::damaged;
use super::reader::Reader;
use crate::error::Result;
use crate::spec::data_type::DataType;
use crate::spec::datum::Datum;

/// An indexed value. Only keys of one column are compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    /// Integers, dates, times, timestamps in milliseconds (precision up to 3) or microseconds, unscaled decimals, and
    /// booleans as 0 and 1.
    Number(i64),
    /// FLOAT and DOUBLE.
    Float(f64),
    /// Texts and bytes.
    Bytes(Vec<u8>),
}

/// A literal on its way into an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    /// What the index would hold.
    pub key: Key,
    /// Whether values with this key are exactly those equal to the literal.
    pub exact: bool,
}

impl Literal {
    fn exact(key: Key) -> Self {
        Self { key, exact: true }
    }

    /// None for null, for NaN, and for a literal that is not of the column's type.
    pub fn new(literal: &Datum, data_type: &DataType) -> Option<Self> {
        Some(match (literal, data_type) {
            (Datum::Boolean(v), DataType::Boolean) => Self::exact(Key::Number(i64::from(*v))),
            (Datum::TinyInt(v), DataType::TinyInt) => Self::exact(Key::Number(i64::from(*v))),
            (Datum::SmallInt(v), DataType::SmallInt) => Self::exact(Key::Number(i64::from(*v))),
            (Datum::Int(v), DataType::Int) | (Datum::Date(v), DataType::Date) | (Datum::Time(v), DataType::Time(_)) => {
                Self::exact(Key::Number(i64::from(*v)))
            }
            (Datum::BigInt(v), DataType::BigInt) => Self::exact(Key::Number(*v)),
            (Datum::Float(v), DataType::Float) if !v.is_nan() => Self::exact(Key::Float(f64::from(*v))),
            (Datum::Double(v), DataType::Double) if !v.is_nan() => Self::exact(Key::Float(*v)),
            (Datum::Decimal(v, _, scale), DataType::Decimal(precision, wanted))
                if scale == wanted && *precision <= 18 =>
            {
                Self::exact(Key::Number(i64::try_from(*v).ok()?))
            }
            (Datum::Timestamp(millis, nanos), DataType::Timestamp(precision) | DataType::TimestampLtz(precision)) => {
                let (number, rest) = match precision {
                    0..=3 => (*millis, *nanos),
                    _ => (millis.checked_mul(1000)?.checked_add(i64::from(nanos / 1000))?, nanos % 1000),
                };
                // digits under the microsecond are cut from what is stored, too
                Self { key: Key::Number(number), exact: rest == 0 && *precision <= 6 }
            }
            (Datum::String(v), DataType::Char(_) | DataType::Varchar(_)) => {
                Self::exact(Key::Bytes(v.as_bytes().to_vec()))
            }
            (Datum::Binary(v), DataType::Binary(_) | DataType::Varbinary(_)) => Self::exact(Key::Bytes(v.clone())),
            _ => return None,
        })
    }
}

/// How a key is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Bool,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    /// 32-bit length and bytes.
    Text,
}

impl Form {
    /// The form of a column's keys; None for a type that has none.
    pub fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Bool,
            DataType::TinyInt => Self::I8,
            DataType::SmallInt => Self::I16,
            DataType::Int | DataType::Date | DataType::Time(_) => Self::I32,
            DataType::BigInt | DataType::Timestamp(_) | DataType::TimestampLtz(_) => Self::I64,
            DataType::Decimal(precision, _) if *precision <= 18 => Self::I64,
            DataType::Float => Self::F32,
            DataType::Double => Self::F64,
            DataType::Char(_) | DataType::Varchar(_) => Self::Text,
            _ => return None,
        })
    }

    /// Reads one key.
    pub fn read(self, reader: &mut Reader<'_>) -> Result<Key> {
        Ok(match self {
            Self::Bool => Key::Number(i64::from(reader.u8()? != 0)),
            Self::I8 => Key::Number(i64::from(reader.i8()?)),
            Self::I16 => Key::Number(i64::from(reader.i16()?)),
            Self::I32 => Key::Number(i64::from(reader.i32()?)),
            Self::I64 => Key::Number(reader.i64()?),
            Self::F32 => Key::Float(f64::from(reader.f32()?)),
            Self::F64 => Key::Float(reader.f64()?),
            Self::Text => {
                let length = reader.length()?;
                Key::Bytes(reader.bytes(length)?.to_vec())
            }
        })
    }
}

impl Key {
    /// The order in which indexes are sorted: floats as in Java's `compare`, bytes unsigned.
    pub fn order(&self, other: &Self) -> Result<Ordering> {
        match (self, other) {
            (Self::Number(left), Self::Number(right)) => Ok(left.cmp(right)),
            (Self::Bytes(left), Self::Bytes(right)) => Ok(left.cmp(right)),
            (Self::Float(left), Self::Float(right)) => Ok(match (left.is_nan(), right.is_nan()) {
                (false, false) => left.total_cmp(right),
                (left, right) => left.cmp(&right),
            }),
            _ => Err(damaged("keys of an index are of different types")),
        }
    }

    /// Whether this is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self, Self::Float(value) if value.is_nan())
    }
}
