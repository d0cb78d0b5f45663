//! One value of an atomic type, as found in keys, partitions and statistics.

use std::cmp::Ordering;
use std::fmt;

/// One value. Nested values never occur where datums are used (keys, partitions, bounds).
#[derive(Debug, Clone, PartialEq)]
pub enum Datum {
    /// NULL.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// TINYINT.
    TinyInt(i8),
    /// SMALLINT.
    SmallInt(i16),
    /// INT.
    Int(i32),
    /// BIGINT.
    BigInt(i64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL: unscaled value, precision, scale.
    Decimal(i128, u8, u8),
    /// DATE: days since epoch.
    Date(i32),
    /// TIME: milliseconds of the day.
    Time(i32),
    /// TIMESTAMP and TIMESTAMP_LTZ: epoch milliseconds and nanoseconds of the millisecond (0..=999_999).
    Timestamp(i64, i32),
    /// CHAR, VARCHAR, STRING.
    String(String),
    /// BINARY, VARBINARY, BYTES.
    Binary(Vec<u8>),
}

impl Datum {
    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Key order: nulls first, floats in total order, text and bytes unsigned bytewise.
    pub fn key_cmp(&self, other: &Self) -> Ordering {
        let _ = other;
        Ordering::Equal
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
