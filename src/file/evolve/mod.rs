//! From the type a file was written with to the type of the table: the casts that `ALTER TABLE` can ask for.
//!
//! | from → to | rule |
//! |---|---|
//! | integer → integer | two's complement: 383 INT is 127 TINYINT |
//! | float → integer | towards zero, saturating at INT or BIGINT, NaN is 0 |
//! | numeric → DECIMAL | half up; overflow is NULL; a DOUBLE counts as its shortest text |
//! | any → CHAR, VARCHAR | Java's text; cut and padded only from text, numbers and BOOLEAN |
//! | STRING → any | parsed; what is no such value is an error |
//! | TIMESTAMP(p) → fewer digits | below a millisecond floor, above it towards zero |
//! | TIMESTAMP ↔ LTZ | through the session zone |
//! | ROW, ARRAY, MAP values | field by field id, then as above |
//!
//! Every other pair is refused with both types.

mod number;
mod parse;
mod text;
mod time;

use std::sync::Arc;

pub(super) use number::{fits, rescale};
pub(super) use time::{from_units, out_of_range};

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeListArray, ListArray, MapArray, PrimitiveArray,
    StringArray, StructArray, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::nullif;
use arrow::datatypes::{DataType as ArrowType, FieldRef};

use crate::error::{Error, Result};
use crate::spec::arrow_types::arrow_type;
use crate::spec::zone::Zone;
use crate::spec::{DataType, FieldType};

/// Whether values of one type can be read as another.
///
/// # Errors
/// A pair that `ALTER TABLE` cannot produce, naming both types.
pub fn can_cast(from: &FieldType, to: &FieldType) -> Result<()> {
    match (&from.data_type, &to.data_type) {
        (DataType::Row(from_fields), DataType::Row(to_fields)) => {
            for field in to_fields {
                if let Some(old) = from_fields.iter().find(|old| old.id == field.id) {
                    can_cast(&old.field_type, &field.field_type)
                        .map_err(|e| e.with_context("nested field", &field.name))?;
                }
            }
            Ok(())
        }
        (DataType::Array(from), DataType::Array(to)) => can_cast(from, to),
        (DataType::Vector(from, n), DataType::Vector(to, m)) if n == m => can_cast(from, to),
        (DataType::Map(from_key, from_value), DataType::Map(to_key, to_value)) if same_type(from_key, to_key) => {
            can_cast(from_value, to_value)
        }
        (DataType::Multiset(from), DataType::Multiset(to)) if same_type(from, to) => Ok(()),
        (a, b) if a == b || atomic(a, b).is_some() => Ok(()),
        _ => Err(Error::unsupported(format!("values of type {from} cannot be read as {to}"))
            .with_code("UnsupportedCast")
            .with_hint("read the table at a snapshot before the type was changed")),
    }
}

/// Values of one type as another; both arrays have exactly the Arrow type of their Paimon type.
///
/// # Errors
/// A pair that cannot be cast, or a value that has no cast (text that is no number, for example).
pub fn cast_array(array: &ArrayRef, from: &FieldType, to: &FieldType, zone: &Zone) -> Result<ArrayRef> {
    if same_layout(from, to) {
        return Ok(Arc::clone(array));
    }
    match (&from.data_type, &to.data_type) {
        (DataType::Row(_), DataType::Row(_)) => cast_row(array, from, to, zone),
        (DataType::Array(from_item), DataType::Array(to_item)) => {
            let list = downcast::<ListArray>(array)?;
            let (offsets, values) = visible(list.offsets(), list.values())?;
            let values = cast_array(&values, from_item, to_item, zone)?;
            let ArrowType::List(field) = arrow_type(&to.data_type) else { return Err(unexpected(to)) };
            let list = ListArray::try_new(field, offsets, values, list.nulls().cloned()).map_err(null_in_not_null)?;
            Ok(Arc::new(list))
        }
        (DataType::Vector(from_item, n), DataType::Vector(to_item, m)) if n == m => {
            let list = downcast::<FixedSizeListArray>(array)?;
            let values = list
                .values()
                .slice(list.value_offset(0).max(0) as usize, list.len() * list.value_length().max(0) as usize);
            let values = cast_array(&values, from_item, to_item, zone)?;
            let ArrowType::FixedSizeList(field, size) = arrow_type(&to.data_type) else { return Err(unexpected(to)) };
            let list =
                FixedSizeListArray::try_new(field, size, values, list.nulls().cloned()).map_err(null_in_not_null)?;
            Ok(Arc::new(list))
        }
        (DataType::Map(from_key, from_value), DataType::Map(to_key, to_value)) if same_type(from_key, to_key) => {
            let map = downcast::<MapArray>(array)?;
            let (offsets, entries) = visible(map.offsets(), &(Arc::new(map.entries().clone()) as ArrayRef))?;
            let entries = downcast::<StructArray>(&entries)?;
            let keys = cast_array(entries.column(0), from_key, to_key, zone)?;
            let values = cast_array(entries.column(1), from_value, to_value, zone)?;
            map_array(to, offsets, keys, values, map.nulls().cloned())
        }
        (DataType::Multiset(from_item), DataType::Multiset(to_item)) if same_type(from_item, to_item) => {
            let map = downcast::<MapArray>(array)?;
            let (offsets, entries) = visible(map.offsets(), &(Arc::new(map.entries().clone()) as ArrayRef))?;
            let entries = downcast::<StructArray>(&entries)?;
            let keys = cast_array(entries.column(0), from_item, to_item, zone)?;
            map_array(to, offsets, keys, Arc::clone(entries.column(1)), map.nulls().cloned())
        }
        (a, b) => match atomic(a, b) {
            Some(cast) => cast.apply(array, a, b, zone),
            None => can_cast(from, to).and(Err(unexpected(to))),
        },
    }
}

/// The rule of a pair of types, at least one of them atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cast {
    Number,
    Text,
    Parse,
    Bytes,
    Time,
}

impl Cast {
    fn apply(self, array: &ArrayRef, from: &DataType, to: &DataType, zone: &Zone) -> Result<ArrayRef> {
        match self {
            Self::Number => number::cast(array, from, to),
            Self::Text => text::to_text(array, from, to, zone),
            Self::Parse => parse::cast(array, to, zone),
            Self::Bytes => text::to_bytes(array, from, to),
            Self::Time => time::cast(array, from, to, zone),
        }
    }
}

fn is_integer(t: &DataType) -> bool {
    matches!(t, DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt)
}

fn is_number(t: &DataType) -> bool {
    is_integer(t) || matches!(t, DataType::Float | DataType::Double | DataType::Decimal(..))
}

fn is_text(t: &DataType) -> bool {
    matches!(t, DataType::Char(_) | DataType::Varchar(_))
}

fn is_bytes(t: &DataType) -> bool {
    matches!(t, DataType::Binary(_) | DataType::Varbinary(_))
}

fn is_timestamp(t: &DataType) -> bool {
    matches!(t, DataType::Timestamp(_) | DataType::TimestampLtz(_))
}

/// The rule of two different types that are not both nested.
fn atomic(from: &DataType, to: &DataType) -> Option<Cast> {
    use DataType as T;
    let whole_seconds = |t: &DataType| matches!(t, T::Int | T::BigInt);
    Some(match (from, to) {
        (a, b) if is_text(b) && has_text(a) => Cast::Text,
        (a, b) if is_text(a) && is_bytes(b) => Cast::Bytes,
        (a, b) if is_bytes(a) && is_bytes(b) => Cast::Bytes,
        (a, T::Boolean | T::Date | T::Time(_) | T::Timestamp(_) | T::TimestampLtz(_)) if is_text(a) => Cast::Parse,
        (a, b) if is_text(a) && is_number(b) => Cast::Parse,
        (a, b) if is_number(a) && is_number(b) => Cast::Number,
        (T::Boolean, b) if is_number(b) => Cast::Number,
        (a, T::Boolean) if is_integer(a) => Cast::Number,
        (a, b) if is_timestamp(a) && (is_timestamp(b) || matches!(b, T::Date | T::Time(_))) => Cast::Time,
        (T::Date | T::Time(_), b) if is_timestamp(b) => Cast::Time,
        // the precision of TIME is only declared
        (T::Time(_), T::Time(_)) => Cast::Time,
        (a, b) if (whole_seconds(a) && is_timestamp(b)) || (is_timestamp(a) && whole_seconds(b)) => Cast::Time,
        _ => return None,
    })
}

/// Types whose values have a text form as a cast.
fn has_text(t: &DataType) -> bool {
    match t {
        DataType::Array(item) => has_text(&item.data_type),
        DataType::Map(key, value) => has_text(&key.data_type) && has_text(&value.data_type),
        DataType::Row(fields) => fields.iter().all(|f| has_text(f.data_type())),
        DataType::Variant
        | DataType::Blob
        | DataType::Geometry(_)
        | DataType::Geography(_)
        | DataType::Multiset(_)
        | DataType::Vector(..) => false,
        _ => true,
    }
}

/// Equal types; nullability does not count.
fn same_type(a: &FieldType, b: &FieldType) -> bool {
    match (&a.data_type, &b.data_type) {
        (DataType::Array(a), DataType::Array(b)) | (DataType::Multiset(a), DataType::Multiset(b)) => same_type(a, b),
        (DataType::Vector(a, n), DataType::Vector(b, m)) => n == m && same_type(a, b),
        (DataType::Map(ak, av), DataType::Map(bk, bv)) => same_type(ak, bk) && same_type(av, bv),
        (DataType::Row(a), DataType::Row(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.id == b.id && same_type(&a.field_type, &b.field_type))
        }
        (a, b) => a == b,
    }
}

/// Equal types that also have the same Arrow type: names and nullability of what is nested count.
fn same_layout(from: &FieldType, to: &FieldType) -> bool {
    same_type(from, to) && arrow_type(&from.data_type) == arrow_type(&to.data_type)
}

/// A row by field id: fields the file did not know are null; a null row stays null, a row of nulls a row.
fn cast_row(array: &ArrayRef, from: &FieldType, to: &FieldType, zone: &Zone) -> Result<ArrayRef> {
    let row = downcast::<StructArray>(array)?;
    let (DataType::Row(from_fields), DataType::Row(to_fields)) = (&from.data_type, &to.data_type) else {
        return Err(unexpected(to));
    };
    let ArrowType::Struct(arrow_fields) = arrow_type(&to.data_type) else { return Err(unexpected(to)) };
    // what lies under a null row is arbitrary and must not fail a cast
    let hidden = row.nulls().map(|nulls| BooleanArray::new(!nulls.inner(), None));
    let mut columns = Vec::with_capacity(to_fields.len());
    for field in to_fields {
        let column = match from_fields.iter().position(|old| old.id == field.id) {
            None => new_null_array(&arrow_type(field.data_type()), row.len()),
            Some(at) => {
                let old = from_fields.get(at).ok_or_else(|| unexpected(from))?;
                let mut child = Arc::clone(row.columns().get(at).ok_or_else(|| unexpected(from))?);
                if !same_layout(&old.field_type, &field.field_type) {
                    if let Some(hidden) = &hidden {
                        child = nullif(&child, hidden)?;
                    }
                    child = cast_array(&child, &old.field_type, &field.field_type, zone)
                        .map_err(|e| e.with_context("nested field", &field.name))?;
                }
                child
            }
        };
        columns.push(column);
    }
    let row = if columns.is_empty() {
        StructArray::new_empty_fields(row.len(), row.nulls().cloned())
    } else {
        StructArray::try_new(arrow_fields, columns, row.nulls().cloned()).map_err(null_in_not_null)?
    };
    Ok(Arc::new(row))
}

/// The part of a list's values that its offsets can see, with offsets from 0.
pub(crate) fn visible(offsets: &OffsetBuffer<i32>, values: &ArrayRef) -> Result<(OffsetBuffer<i32>, ArrayRef)> {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return Err(Error::internal("a list without offsets"));
    };
    if *first == 0 && usize::try_from(*last).ok() == Some(values.len()) {
        return Ok((offsets.clone(), Arc::clone(values)));
    }
    let (start, end) = (usize::try_from(*first).unwrap_or(0), usize::try_from(*last).unwrap_or(0));
    if end > values.len() || start > end {
        return Err(Error::internal("a list that points behind its values"));
    }
    let moved = OffsetBuffer::new(offsets.iter().map(|o| o - first).collect());
    Ok((moved, values.slice(start, end - start)))
}

/// A map of exactly the Arrow type of `to` from its parts.
pub(crate) fn map_array(
    to: &FieldType,
    offsets: OffsetBuffer<i32>,
    keys: ArrayRef,
    values: ArrayRef,
    nulls: Option<arrow::buffer::NullBuffer>,
) -> Result<ArrayRef> {
    let ArrowType::Map(entries_field, sorted) = arrow_type(&to.data_type) else { return Err(unexpected(to)) };
    let ArrowType::Struct(fields) = entries_field.data_type() else { return Err(unexpected(to)) };
    let entries = StructArray::try_new(fields.clone(), vec![keys, values], None).map_err(null_in_not_null)?;
    let map = MapArray::try_new(FieldRef::clone(&entries_field), offsets, entries, nulls, sorted)
        .map_err(null_in_not_null)?;
    Ok(Arc::new(map))
}

/// A null where the table says NOT NULL: the type that was promised cannot be kept.
pub(crate) fn null_in_not_null(error: arrow::error::ArrowError) -> Error {
    Error::corrupt(format!("a value that must not be null is null, or nested lengths disagree: {error}"))
}

fn unexpected(t: &FieldType) -> Error {
    Error::internal(format!("unexpected Arrow form of {t}"))
}

/// The concrete array behind a reference.
pub(crate) fn downcast<A: 'static>(array: &ArrayRef) -> Result<&A> {
    array.as_any().downcast_ref::<A>().ok_or_else(|| {
        Error::internal(format!("expected a {}, found {}", std::any::type_name::<A>(), array.data_type()))
    })
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<&PrimitiveArray<T>> {
    downcast::<PrimitiveArray<T>>(array)
}

fn strings(array: &ArrayRef) -> Result<&StringArray> {
    downcast::<StringArray>(array)
}

#[cfg(test)]
mod tests;
