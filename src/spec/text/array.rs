//! Arrays of values as text, nested values included.

use std::fmt::Write;
use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, GenericByteArray,
    ListArray, MapArray, PrimitiveArray, StringArray, StringBuilder, StructArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    BinaryType, Date32Type, Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};

use super::{decimal, java_double, java_float, write_date, write_time, write_timestamp};
use crate::error::{Error, Result};
use crate::spec::arrow_types::{mismatch, split_ticks};
use crate::spec::data_type::DataType;
use crate::spec::zone::Zone;

/// Every value of an array of the type's Arrow type as cast to STRING, nested types included; LTZ in a zone.
pub fn array_text(array: &ArrayRef, data_type: &DataType, zone: &Zone) -> Result<StringArray> {
    if let Some(strings) = array.as_string_opt::<i32>() {
        return Ok(strings.clone());
    }
    let writer = Writer::new(array.as_ref(), data_type, zone)?;
    let mut texts = StringBuilder::with_capacity(array.len(), array.len() * 8);
    let mut text = String::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            texts.append_null();
        } else {
            text.clear();
            writer.write(&mut text, row);
            texts.append_value(&text);
        }
    }
    Ok(texts.finish())
}

/// An array with what is known of its type: looked up once, not once a value.
struct Writer<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Boolean(&'a BooleanArray),
    TinyInt(&'a PrimitiveArray<Int8Type>),
    SmallInt(&'a PrimitiveArray<Int16Type>),
    Int(&'a PrimitiveArray<Int32Type>),
    BigInt(&'a PrimitiveArray<Int64Type>),
    Float(&'a Float32Array),
    Double(&'a Float64Array),
    Decimal(&'a PrimitiveArray<Decimal128Type>, i16),
    Date(&'a PrimitiveArray<Date32Type>),
    Time(&'a PrimitiveArray<Time32MillisecondType>, u8),
    Timestamp(Ticks<'a>, u8, Option<Zone>),
    String(&'a StringArray),
    Binary(&'a GenericByteArray<BinaryType>),
    Array(&'a ListArray, Box<Writer<'a>>),
    Vector(&'a FixedSizeListArray, Box<Writer<'a>>),
    Map(&'a MapArray, Box<Writer<'a>>, Box<Writer<'a>>),
    Row(Vec<Writer<'a>>),
}

/// Timestamps of one of the units.
enum Ticks<'a> {
    Millis(&'a PrimitiveArray<TimestampMillisecondType>),
    Micros(&'a PrimitiveArray<TimestampMicrosecondType>),
    Nanos(&'a PrimitiveArray<TimestampNanosecondType>),
}

impl<'a> Writer<'a> {
    fn new(array: &'a dyn Array, data_type: &DataType, zone: &Zone) -> Result<Self> {
        Ok(Self { nulls: array.nulls(), values: Values::new(array, data_type, zone)? })
    }

    /// Writes the value at a row, or `null`.
    fn write(&self, text: &mut String, row: usize) {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            text.push_str("null");
        } else {
            self.values.write(text, row);
        }
    }

    fn write_list(&self, text: &mut String, rows: Range<usize>) {
        text.push('[');
        for (i, row) in rows.enumerate() {
            text.push_str(if i > 0 { ", " } else { "" });
            self.write(text, row);
        }
        text.push(']');
    }
}

impl<'a> Values<'a> {
    fn new(array: &'a dyn Array, data_type: &DataType, zone: &Zone) -> Result<Self> {
        let found = || mismatch(array, data_type);
        Ok(match data_type {
            DataType::Boolean => Self::Boolean(array.as_boolean_opt().ok_or_else(found)?),
            DataType::TinyInt => Self::TinyInt(array.as_primitive_opt().ok_or_else(found)?),
            DataType::SmallInt => Self::SmallInt(array.as_primitive_opt().ok_or_else(found)?),
            DataType::Int => Self::Int(array.as_primitive_opt().ok_or_else(found)?),
            DataType::BigInt => Self::BigInt(array.as_primitive_opt().ok_or_else(found)?),
            DataType::Float => Self::Float(array.as_primitive_opt().ok_or_else(found)?),
            DataType::Double => Self::Double(array.as_primitive_opt().ok_or_else(found)?),
            DataType::Decimal(..) => {
                let decimals: &PrimitiveArray<Decimal128Type> = array.as_primitive_opt().ok_or_else(found)?;
                Self::Decimal(decimals, i16::from(decimals.scale()))
            }
            DataType::Date => Self::Date(array.as_primitive_opt().ok_or_else(found)?),
            DataType::Time(precision) => Self::Time(array.as_primitive_opt().ok_or_else(found)?, *precision),
            DataType::Timestamp(precision) => Self::Timestamp(Ticks::new(array).ok_or_else(found)?, *precision, None),
            DataType::TimestampLtz(precision) => {
                Self::Timestamp(Ticks::new(array).ok_or_else(found)?, *precision, Some(*zone))
            }
            DataType::Char(_) | DataType::Varchar(_) => Self::String(array.as_string_opt().ok_or_else(found)?),
            DataType::Binary(_)
            | DataType::Varbinary(_)
            | DataType::Blob
            | DataType::Geometry(_)
            | DataType::Geography(_) => Self::Binary(array.as_binary_opt().ok_or_else(found)?),
            DataType::Array(element) => {
                let list = array.as_list_opt::<i32>().ok_or_else(found)?;
                Self::Array(list, Box::new(Writer::new(list.values(), &element.data_type, zone)?))
            }
            DataType::Vector(element, _) => {
                let list = array.as_fixed_size_list_opt().ok_or_else(found)?;
                Self::Vector(list, Box::new(Writer::new(list.values(), &element.data_type, zone)?))
            }
            DataType::Map(key, value) => {
                Self::map(array, &key.data_type, &value.data_type, zone).ok_or_else(found)??
            }
            DataType::Multiset(element) => {
                Self::map(array, &element.data_type, &DataType::Int, zone).ok_or_else(found)??
            }
            DataType::Row(fields) => {
                let row: &StructArray = array.as_struct_opt().ok_or_else(found)?;
                if row.num_columns() != fields.len() {
                    return Err(found());
                }
                let columns = row.columns().iter().zip(fields);
                Self::Row(
                    columns
                        .map(|(column, field)| Writer::new(column, field.data_type(), zone))
                        .collect::<Result<_>>()?,
                )
            }
            DataType::Variant => {
                return Err(Error::unsupported("a VARIANT cannot be cast to STRING").with_code("UnsupportedCast"));
            }
        })
    }

    fn map(array: &'a dyn Array, key: &DataType, value: &DataType, zone: &Zone) -> Option<Result<Self>> {
        let map = array.as_map_opt()?;
        let writers =
            Writer::new(map.keys(), key, zone).and_then(|keys| Ok((keys, Writer::new(map.values(), value, zone)?)));
        Some(writers.map(|(keys, values)| Self::Map(map, Box::new(keys), Box::new(values))))
    }

    /// Writes a value that is not null.
    fn write(&self, text: &mut String, row: usize) {
        // writing to a String cannot fail
        let _ = match self {
            Self::Boolean(values) => write!(text, "{}", values.value(row)),
            Self::TinyInt(values) => write!(text, "{}", values.value(row)),
            Self::SmallInt(values) => write!(text, "{}", values.value(row)),
            Self::Int(values) => write!(text, "{}", values.value(row)),
            Self::BigInt(values) => write!(text, "{}", values.value(row)),
            Self::Float(values) => text.write_str(&java_float(values.value(row))),
            Self::Double(values) => text.write_str(&java_double(values.value(row))),
            Self::Decimal(values, scale) => text.write_str(&decimal(values.value(row), *scale)),
            Self::Date(values) => {
                write_date(text, i64::from(values.value(row)));
                Ok(())
            }
            Self::Time(values, precision) => {
                write_time(text, values.value(row), *precision);
                Ok(())
            }
            Self::Timestamp(ticks, precision, zone) => {
                let (millis, nanos) = ticks.value(row);
                let millis = zone.map_or(millis, |zone| zone.to_local_millis(millis));
                write_timestamp(text, millis, nanos, *precision);
                Ok(())
            }
            Self::String(values) => text.write_str(values.value(row)),
            Self::Binary(values) => text.write_str(&String::from_utf8_lossy(values.value(row))),
            Self::Array(list, elements) => {
                elements.write_list(text, range(list.value_offsets(), row));
                Ok(())
            }
            Self::Vector(list, elements) => {
                let length = usize::try_from(list.value_length()).unwrap_or(0);
                let start = usize::try_from(list.value_offset(row)).unwrap_or(0);
                elements.write_list(text, start..start + length);
                Ok(())
            }
            Self::Map(map, keys, values) => {
                text.push('{');
                for (i, entry) in range(map.value_offsets(), row).enumerate() {
                    text.push_str(if i > 0 { ", " } else { "" });
                    keys.write(text, entry);
                    text.push_str(" -> ");
                    values.write(text, entry);
                }
                text.push('}');
                Ok(())
            }
            Self::Row(fields) => {
                text.push('{');
                for (i, field) in fields.iter().enumerate() {
                    text.push_str(if i > 0 { ", " } else { "" });
                    field.write(text, row);
                }
                text.push('}');
                Ok(())
            }
        };
    }
}

/// The elements of a list; offsets are valid by Arrow's own check.
fn range(offsets: &[i32], row: usize) -> Range<usize> {
    let at = |row: usize| offsets.get(row).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or(0);
    at(row)..at(row + 1)
}

impl<'a> Ticks<'a> {
    fn new(array: &'a dyn Array) -> Option<Self> {
        None.or_else(|| array.as_primitive_opt().map(Self::Millis))
            .or_else(|| array.as_primitive_opt().map(Self::Micros))
            .or_else(|| array.as_primitive_opt().map(Self::Nanos))
    }

    /// Milliseconds and nanoseconds of the millisecond.
    fn value(&self, row: usize) -> (i64, i32) {
        match self {
            Self::Millis(values) => (values.value(row), 0),
            Self::Micros(values) => split_ticks(values.value(row), 1000),
            Self::Nanos(values) => split_ticks(values.value(row), 1_000_000),
        }
    }
}
