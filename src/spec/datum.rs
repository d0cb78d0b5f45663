//! One value of an atomic type, as found in keys, partitions and statistics.

use std::cmp::Ordering;
use std::fmt;

use super::text;

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

    /// A total order: nulls first; floats as Java's `compare` (-0.0 below 0.0, NaN largest and equal to itself); texts and
    /// bytes by unsigned bytes; decimals by value; timestamps by milliseconds, then nanoseconds. Not the order of keys in
    /// a merge: there both zeros are one key.
    ///
    /// Values of different types do not occur in one column; they are ordered by type, so that the order stays total.
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::TinyInt(a), Self::TinyInt(b)) => a.cmp(b),
            (Self::SmallInt(a), Self::SmallInt(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) | (Self::Date(a), Self::Date(b)) | (Self::Time(a), Self::Time(b)) => a.cmp(b),
            (Self::BigInt(a), Self::BigInt(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => java_compare(f64::from(*a), f64::from(*b)),
            (Self::Double(a), Self::Double(b)) => java_compare(*a, *b),
            (Self::Decimal(a, _, a_scale), Self::Decimal(b, _, b_scale)) => {
                compare_decimals(*a, *a_scale, *b, *b_scale)
            }
            (Self::Timestamp(a, a_nanos), Self::Timestamp(b, b_nanos)) => a.cmp(b).then(a_nanos.cmp(b_nanos)),
            (Self::String(a), Self::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Binary(a), Self::Binary(b)) => a.cmp(b),
            _ => self.type_rank().cmp(&other.type_rank()),
        }
    }

    /// Place of the variant; NULL is lowest.
    fn type_rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Boolean(_) => 1,
            Self::TinyInt(_) => 2,
            Self::SmallInt(_) => 3,
            Self::Int(_) => 4,
            Self::BigInt(_) => 5,
            Self::Float(_) => 6,
            Self::Double(_) => 7,
            Self::Decimal(..) => 8,
            Self::Date(_) => 9,
            Self::Time(_) => 10,
            Self::Timestamp(..) => 11,
            Self::String(_) => 12,
            Self::Binary(_) => 13,
        }
    }
}

/// `Double.compare`: every NaN is the same and above all numbers.
fn java_compare(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.total_cmp(&b),
    }
}

/// Compares by value without widening, which could overflow: first whole parts, then fractions at the larger scale.
fn compare_decimals(a: i128, a_scale: u8, b: i128, b_scale: u8) -> Ordering {
    if a_scale == b_scale {
        return a.cmp(&b);
    }
    let scale = a_scale.max(b_scale);
    let parts = |value: i128, own: u8| {
        // scales are at most 38, and a fraction below 10^own times 10^(scale - own) is below 10^38
        let unit = 10_i128.checked_pow(u32::from(own)).unwrap_or(i128::MAX);
        let raise = 10_i128.checked_pow(u32::from(scale - own)).unwrap_or(i128::MAX);
        (value.div_euclid(unit), value.rem_euclid(unit).saturating_mul(raise))
    };
    parts(a, a_scale).cmp(&parts(b, b_scale))
}

impl fmt::Display for Datum {
    /// The value as a literal for messages: `'it''s'`, `x'0aff'`, `2024-01-02 03:04:05.678`, `NULL`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::TinyInt(value) => write!(f, "{value}"),
            Self::SmallInt(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::BigInt(value) => write!(f, "{value}"),
            Self::Float(value) => f.write_str(&text::java_float(*value)),
            Self::Double(value) => f.write_str(&text::java_double(*value)),
            Self::Decimal(value, _, scale) => f.write_str(&text::decimal(*value, i16::from(*scale))),
            Self::Date(days) => f.write_str(&text::date(i64::from(*days))),
            Self::Time(millis) => f.write_str(&text::time(*millis, 3)),
            Self::Timestamp(millis, nanos) => f.write_str(&text::timestamp(*millis, *nanos, 0)),
            Self::String(value) => write!(f, "'{}'", value.replace('\'', "''")),
            Self::Binary(bytes) => {
                f.write_str("x'")?;
                for byte in bytes {
                    write!(f, "{byte:02x}")?;
                }
                f.write_str("'")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::Datum;

    #[test]
    fn keys_are_ordered_as_java_orders_them() {
        let ascending: &[&[Datum]] = &[
            &[Datum::Null, Datum::Boolean(false), Datum::Boolean(true)],
            &[Datum::Null, Datum::Int(i32::MIN), Datum::Int(-1), Datum::Int(0), Datum::Int(i32::MAX)],
            &[
                Datum::Null,
                Datum::Double(f64::NEG_INFINITY),
                Datum::Double(-0.0),
                Datum::Double(0.0),
                Datum::Double(f64::INFINITY),
                Datum::Double(f64::NAN),
            ],
            &[Datum::Float(f32::MIN), Datum::Float(-0.0), Datum::Float(0.0), Datum::Float(f32::NAN)],
            // by bytes: U+FFFD sorts below U+10000, which UTF-16 would turn round
            &[
                Datum::String("".into()),
                Datum::String("a".into()),
                Datum::String("aa".into()),
                Datum::String("é".into()),
            ],
            &[Datum::String("\u{fffd}".into()), Datum::String("\u{10000}".into())],
            &[Datum::Binary(vec![]), Datum::Binary(vec![0]), Datum::Binary(vec![0x7f]), Datum::Binary(vec![0x80])],
            &[Datum::Decimal(-101, 5, 2), Datum::Decimal(-1, 5, 0), Datum::Decimal(5, 5, 1), Datum::Decimal(51, 5, 2)],
            &[
                Datum::Decimal(-i128::pow(10, 37), 38, 0),
                Datum::Decimal(1, 38, 38),
                Datum::Decimal(i128::pow(10, 37), 38, 0),
            ],
            &[Datum::Timestamp(-1, 999_999), Datum::Timestamp(0, 0), Datum::Timestamp(0, 1)],
        ];
        for values in ascending {
            for (i, a) in values.iter().enumerate() {
                for (j, b) in values.iter().enumerate() {
                    assert_eq!(a.total_cmp(b), i.cmp(&j), "{a} and {b}");
                }
            }
        }
        assert_eq!(Datum::Double(f64::NAN).total_cmp(&Datum::Double(-f64::NAN)), Ordering::Equal);
        assert_eq!(Datum::Decimal(10, 5, 1).total_cmp(&Datum::Decimal(100, 5, 2)), Ordering::Equal);
    }

    #[test]
    fn messages_show_literals() {
        for (datum, shown) in [
            (Datum::Null, "NULL"),
            (Datum::String("it's".into()), "'it''s'"),
            (Datum::Binary(vec![10, 255]), "x'0aff'"),
            (Datum::Decimal(-5, 3, 2), "-0.05"),
            (Datum::Timestamp(1_704_164_645_678, 0), "2024-01-02 03:04:05.678"),
            (Datum::Double(1e10), "1.0E10"),
            (Datum::Date(-1), "1969-12-31"),
        ] {
            assert_eq!(datum.to_string(), shown);
        }
    }
}
