//! The type in which values of two columns are compared.

use arrow::datatypes::DataType;

use super::{Column, CommonType};
use crate::error::{Error, Result};

pub(in super::super) fn is_zoned(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, Some(_)))
}

/// What kind of values a type has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Boolean,
    Integer,
    Unsigned64,
    Decimal(u8, i8),
    Float,
    Double,
    Text,
    Binary,
    Date,
    Time,
    Timestamp,
    Nested,
    Other,
}

fn kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Null => Kind::Null,
        DataType::Boolean => Kind::Boolean,
        DataType::UInt64 => Kind::Unsigned64,
        other if other.is_integer() => Kind::Integer,
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => Kind::Decimal(*p, *s),
        DataType::Float16 | DataType::Float32 => Kind::Float,
        DataType::Float64 => Kind::Double,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
        DataType::Dictionary(_, values) => kind(values),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Kind::Binary,
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Time32(_) | DataType::Time64(_) => Kind::Time,
        DataType::Timestamp(..) => Kind::Timestamp,
        other if other.is_nested() => Kind::Nested,
        _ => Kind::Other,
    }
}

/// What values of two columns are compared as.
pub(in super::super) fn common_type(left: &Column, right: &Column, mapped: bool) -> Result<CommonType> {
    use Kind::{
        Binary, Boolean, Date, Decimal, Double, Float, Integer, Nested, Null, Other, Text, Time, Timestamp, Unsigned64,
    };
    let (one, other) = (kind(&left.data_type), kind(&right.data_type));
    let trimmed = left.is_char() || right.is_char();
    if mapped && !matches!(one, Nested | Binary | Other) && !matches!(other, Nested | Binary | Other) {
        return Ok(CommonType::Text { trimmed, folded: false });
    }
    if left.untyped != right.untyped {
        let (typed, typed_kind) = if left.untyped { (right, other) } else { (left, one) };
        return untyped_beside(typed, typed_kind, trimmed).ok_or_else(|| incompatible(left, right));
    }
    let digits = left.precision().min(right.precision());
    Ok(match (one, other) {
        (Null, Null) | (Null, Text) | (Text, Null) | (Text, Text) => CommonType::Text { trimmed, folded: false },
        (Null, kind) => own_type(right, kind).ok_or_else(|| incompatible(left, right))?,
        (kind, Null) => own_type(left, kind).ok_or_else(|| incompatible(left, right))?,
        (Boolean, Boolean) => CommonType::Boolean,
        (Boolean, Integer | Unsigned64) if right.is_one_bit() => CommonType::Integer,
        (Integer | Unsigned64, Boolean) if left.is_one_bit() => CommonType::Integer,
        (Integer, Integer) => CommonType::Integer,
        (Integer | Unsigned64, Integer | Unsigned64) => CommonType::Decimal(20, 0),
        (Integer | Unsigned64, Decimal(p, s)) | (Decimal(p, s), Integer | Unsigned64) => wider((20, 0), (p, s)),
        (Decimal(p, s), Decimal(q, t)) => wider((p, s), (q, t)),
        (Float, Float | Double | Decimal(..)) | (Double | Decimal(..), Float) => CommonType::Float,
        (Float | Double, Double | Integer | Unsigned64 | Decimal(..))
        | (Integer | Unsigned64 | Decimal(..), Float | Double) => CommonType::Double,
        (Binary, Binary) => CommonType::Binary,
        (Date, Date) => CommonType::Date,
        (Time, Time) => CommonType::Time(digits),
        (Date, Timestamp) => CommonType::Timestamp { digits: right.precision(), zoned: is_zoned(&right.data_type) },
        (Timestamp, Date) => CommonType::Timestamp { digits: left.precision(), zoned: is_zoned(&left.data_type) },
        (Timestamp, Timestamp) => {
            CommonType::Timestamp { digits, zoned: is_zoned(&left.data_type) || is_zoned(&right.data_type) }
        }
        (Nested, Nested) if same_shape(&left.data_type, &right.data_type) => CommonType::Nested(left.data_type.clone()),
        _ => return Err(incompatible(left, right)),
    })
}

/// A type compared with nothing but NULL.
fn own_type(column: &Column, of: Kind) -> Option<CommonType> {
    Some(match of {
        Kind::Boolean => CommonType::Boolean,
        Kind::Integer => CommonType::Integer,
        Kind::Unsigned64 => CommonType::Decimal(20, 0),
        Kind::Decimal(p, s) => wider((p, s), (p, s)),
        Kind::Float => CommonType::Float,
        Kind::Double => CommonType::Double,
        Kind::Text | Kind::Null => CommonType::Text { trimmed: column.is_char(), folded: false },
        Kind::Binary => CommonType::Binary,
        Kind::Date => CommonType::Date,
        Kind::Time => CommonType::Time(column.precision()),
        Kind::Timestamp => CommonType::Timestamp { digits: column.precision(), zoned: is_zoned(&column.data_type) },
        Kind::Nested => CommonType::Nested(column.data_type.clone()),
        Kind::Other => return None,
    })
}

/// Digits behind the point that texts are read with.
const TEXT_SCALE: i8 = 30;

/// What a text without a type is read as, beside a column that has one.
fn untyped_beside(typed: &Column, of: Kind, trimmed: bool) -> Option<CommonType> {
    Some(match of {
        Kind::Nested | Kind::Binary | Kind::Other => return None,
        Kind::Text | Kind::Null => CommonType::Text { trimmed, folded: false },
        // a text may have digits that the column has not, and is another value then
        Kind::Integer | Kind::Unsigned64 => CommonType::Decimal(76, TEXT_SCALE),
        Kind::Decimal(_, s) => CommonType::Decimal(76, s.max(TEXT_SCALE)),
        kind => own_type(typed, kind)?,
    })
}

/// A decimal that holds the values of two.
fn wider((p, s): (u8, i8), (q, t): (u8, i8)) -> CommonType {
    let scale = s.max(t).max(0);
    let whole = |p: u8, s: i8| i16::from(p) - i16::from(s);
    let precision = (whole(p, s).max(whole(q, t)) + i16::from(scale)).clamp(1, 76);
    CommonType::Decimal(u8::try_from(precision).unwrap_or(76), scale)
}

/// Whether nested types differ in the names of their inner fields only.
fn same_shape(one: &DataType, other: &DataType) -> bool {
    match (one, other) {
        (DataType::List(a), DataType::List(b)) => same_shape(a.data_type(), b.data_type()),
        (DataType::Map(a, _), DataType::Map(b, _)) => same_shape(a.data_type(), b.data_type()),
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same_shape(a.data_type(), b.data_type()))
        }
        (one, other) => one == other,
    }
}

fn incompatible(left: &Column, right: &Column) -> Error {
    Error::invalid(format!(
        "column {}: {} and {} have no type in common",
        left.name,
        left.type_name(),
        right.type_name()
    ))
    .with_code("NotComparable")
    .with_hint(format!(
        "leave it out with EXCEPT ({}), cast it in a query of the right side, or say with MAP what its values stand for",
        left.name
    ))
}
