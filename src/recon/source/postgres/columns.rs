//! What PostgreSQL declares, and the Arrow types it is read as.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

use super::super::cells::{decimal_type, time_type, timestamp_type};
use super::super::{SourceColumn, SourceOrder};

/// How values of a column travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    /// Text that is filled up with blanks.
    Padded,
    /// The text of an address, as the server shows it: without the mask of a single one.
    Inet,
    Bytes,
    Date,
    Time,
    Timestamp,
}

/// A column and how it is asked for.
#[derive(Debug, Clone)]
pub(super) struct PgColumn {
    pub(super) source: SourceColumn,
    pub(super) kind: Kind,
    /// What stands behind its name so that it travels so.
    pub(super) cast: &'static str,
    /// Its type without a length: what a text is turned into to be compared with it.
    pub(super) base: String,
}

/// A column as the catalog declares it, or as a query's result does.
#[derive(Debug, Clone, Default)]
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) oid: u32,
    pub(super) modifier: i32,
    pub(super) full: String,
    pub(super) base: String,
    pub(super) not_null: bool,
    /// Of its texts; empty where they have none, none where it is not known.
    pub(super) collation: Option<String>,
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether a collation sorts UTF-8 byte by byte. Who reads in order checks it.
fn sorts_bytes(collation: &str) -> bool {
    ["c", "posix", "ucs_basic", "c.utf-8", "c.utf8", "pg_c_utf8"].contains(&collation.to_lowercase().as_str())
}

impl Declared {
    pub(super) fn column(self, is_utf8: bool) -> PgColumn {
        let digits = u32::try_from(self.modifier).ok();
        let texts = || match &self.collation {
            Some(collation) if is_utf8 && sorts_bytes(collation) => SourceOrder::Values,
            Some(collation) => SourceOrder::Collation(collation.clone()),
            None => SourceOrder::Collation("unknown".into()),
        };
        let values = SourceOrder::Values;
        let (data_type, kind, cast, order) = match self.oid {
            16 => (DataType::Boolean, Kind::Bool, "", values),
            21 => (DataType::Int16, Kind::Int2, "", values),
            23 => (DataType::Int32, Kind::Int4, "", values),
            20 => (DataType::Int64, Kind::Int8, "", values),
            700 => (DataType::Float32, Kind::Float4, "", values),
            701 => (DataType::Float64, Kind::Float8, "", values),
            1700 => {
                let data_type = numeric_type(self.modifier);
                // as text it sorts otherwise
                let order = if data_type == DataType::Utf8 { SourceOrder::Other } else { values };
                (data_type, Kind::Numeric, "", order)
            }
            // as many digits as there are cents, whatever the server's locale writes around them
            790 => (DataType::Decimal128(23, 4), Kind::Numeric, "::numeric", values),
            25 | 1043 => (DataType::Utf8, Kind::Text, "", texts()),
            1042 => (DataType::Utf8, Kind::Padded, "", texts()),
            17 => (DataType::Binary, Kind::Bytes, "", values),
            1082 => (DataType::Date32, Kind::Date, "", values),
            1083 => (time_type(digits.unwrap_or(6)), Kind::Time, "", values),
            1114 => (timestamp_type(digits.unwrap_or(6), false), Kind::Timestamp, "", values),
            1184 => (timestamp_type(digits.unwrap_or(6), true), Kind::Timestamp, "", values),
            // its text, in lower case, sorts as its bytes do
            2950 => (DataType::Utf8, Kind::Text, "::text", values),
            869 => (DataType::Utf8, Kind::Inet, "::text", SourceOrder::Other),
            _ => (DataType::Utf8, Kind::Text, "::text", SourceOrder::Other),
        };
        let source = SourceColumn { name: self.name, data_type, declared: self.full, nullable: !self.not_null, order };
        PgColumn { source, kind, cast, base: self.base }
    }
}

/// `numeric(p, s)`: s may be negative, or above p. Without them it may hold anything, which only text does.
fn numeric_type(modifier: i32) -> DataType {
    let Ok(packed) = u32::try_from(modifier.saturating_sub(4)) else { return DataType::Utf8 };
    let precision = packed >> 16;
    // eleven bits, with a sign
    let scale = i32::try_from(packed & 0x7ff).map_or(0, |scale| (scale ^ 1024) - 1024);
    match u32::try_from(scale) {
        Ok(scale) => decimal_type(precision.max(scale), scale),
        Err(_) => decimal_type(precision + scale.unsigned_abs(), 0),
    }
}

/// The first and the last day that PostgreSQL has, from 1970-01-01.
const DAYS: std::ops::RangeInclusive<i32> = -2_440_588..=2_145_042_905;

/// Whether a text is an identifier as the server writes it.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        })
}

impl PgColumn {
    /// Whether it may have a value of its Arrow type: the server refuses what it cannot have where one is looked for.
    pub(super) fn holds(&self, value: &ScalarValue) -> bool {
        match value {
            ScalarValue::Utf8(Some(text)) => !text.contains('\0') && (self.base != "uuid" || is_uuid(text)),
            ScalarValue::Date32(Some(days)) => DAYS.contains(days),
            _ => true,
        }
    }

    /// What is selected.
    pub(super) fn selected(&self) -> String {
        match self.kind {
            Kind::Inet => self.address(),
            _ => format!("{}{}", quoted(&self.source.name), self.cast),
        }
    }

    /// An `inet` as its output has it and what is written elsewhere does: its cast to text adds `/32` and `/128`.
    fn address(&self) -> String {
        let name = quoted(&self.source.name);
        format!("regexp_replace({name}::text, CASE family({name}) WHEN 4 THEN '/32$' ELSE '/128$' END, '')")
    }

    /// What sorts as its values do here, in a database of this encoding.
    pub(super) fn in_order(&self, is_utf8: bool) -> String {
        let name = quoted(&self.source.name);
        match (&self.source.order, is_utf8) {
            (SourceOrder::Values, _) => name,
            _ if self.kind == Kind::Inet => format!("{} COLLATE \"C\"", self.address()),
            (_, true) => format!("{name}::text COLLATE \"C\""),
            (_, false) => format!("convert_to({name}::text, 'UTF8')"),
        }
    }

    /// What stands around a parameter, which is a text, to be compared with [`Self::in_order`].
    pub(super) fn around(&self, is_utf8: bool) -> (String, String) {
        let (before, after) = match (&self.source.order, self.kind, is_utf8) {
            (SourceOrder::Values, Kind::Date, _) => ("(date '1970-01-01' + ", "::text::integer)"),
            (SourceOrder::Values, Kind::Time, _) => ("(time '00:00' + (", "::text || ' microseconds')::interval)"),
            (SourceOrder::Values, Kind::Timestamp, _) if self.base.contains("with time zone") => {
                ("(timestamptz '1970-01-01 00:00:00+00' + (", "::text || ' microseconds')::interval)")
            }
            (SourceOrder::Values, Kind::Timestamp, _) => {
                ("(timestamp '1970-01-01 00:00:00' + (", "::text || ' microseconds')::interval)")
            }
            (SourceOrder::Values, Kind::Bytes, _) => ("decode(", "::text, 'hex')"),
            (_, Kind::Inet, _) => ("", "::text"),
            (SourceOrder::Values, _, _) => {
                return (
                    String::new(),
                    format!("::text{}::{}", if self.cast == "::numeric" { "::numeric" } else { "" }, self.base),
                );
            }
            (_, _, true) => ("", "::text"),
            (_, _, false) => ("convert_to(", "::text, 'UTF8')"),
        };
        (before.into(), after.into())
    }

    /// The same, to be compared with the column itself, so that an index is of use.
    pub(super) fn around_column(&self) -> (String, String) {
        match self.source.order {
            SourceOrder::Values => self.around(true),
            _ => (String::new(), format!("::text::{}", self.base)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_type_cannot_have_are_known() {
        let column = |base: &str| Declared { base: base.into(), ..Declared::default() }.column(true);
        let text = |text: &str| ScalarValue::from(text);
        for (base, value, held) in [
            ("uuid", text("123e4567-e89b-12d3-a456-426655440000"), true),
            ("uuid", text("123E4567-E89B-12D3-A456-426655440000"), false),
            ("uuid", text("123e4567e89b-12d3-a456-4266554400000"), false),
            ("uuid", text("test-1"), false),
            ("text", text("test-1"), true),
            ("text", text("a\0"), false),
            ("date", ScalarValue::Date32(Some(2_145_042_905)), true),
            ("date", ScalarValue::Date32(Some(i32::MAX)), false),
            ("date", ScalarValue::Date32(Some(i32::MIN)), false),
        ] {
            assert_eq!(column(base).holds(&value), held, "{base} {value:?}");
        }
    }

    #[test]
    fn numerics_have_the_type_that_holds_them() {
        let modifier = |precision: i32, scale: i32| (precision << 16 | scale & 0x7ff) + 4;
        let cases = [
            (modifier(12, 2), DataType::Decimal128(12, 2)),
            (modifier(38, 38), DataType::Decimal128(38, 38)),
            (modifier(5, -2), DataType::Decimal128(7, 0)),
            (modifier(3, 5), DataType::Decimal128(5, 5)),
            (modifier(76, 10), DataType::Decimal256(76, 10)),
            (modifier(77, 10), DataType::Utf8),
            (modifier(1000, 500), DataType::Utf8),
            (-1, DataType::Utf8),
        ];
        for (modifier, expected) in cases {
            assert_eq!(numeric_type(modifier), expected, "{modifier}");
        }
    }
}
