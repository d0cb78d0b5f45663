//! Plain values to Arrow arrays and back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int64Array,
    ListArray, MapArray, StringArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type};

use super::Value;
use crate::error::{Error, Result};

/// An array of `data_type` with these values.
///
/// # Errors
/// A value is not of the type, or the type has no array here.
pub fn to_array(values: &[Value], data_type: &DataType) -> Result<ArrayRef> {
    let wrong = || Error::internal(format!("a value is not of type {data_type}"));
    macro_rules! options {
        ($variant:ident) => {
            values
                .iter()
                .map(|value| match value {
                    Value::Null => Ok(None),
                    Value::$variant(value) => Ok(Some(value.clone())),
                    _ => Err(wrong()),
                })
                .collect::<Result<Vec<_>>>()?
        };
    }
    let nulls = || NullBuffer::from_iter(values.iter().map(|value| !value.is_null()));
    Ok(match data_type {
        DataType::Boolean => Arc::new(BooleanArray::from(options!(Bool))),
        DataType::Float32 => Arc::new(Float32Array::from(options!(Float))),
        DataType::Float64 => Arc::new(Float64Array::from(options!(Double))),
        DataType::Decimal128(p, s) => {
            Arc::new(Decimal128Array::from(options!(Decimal)).with_precision_and_scale(*p, *s)?)
        }
        DataType::Utf8 => Arc::new(StringArray::from(options!(Text))),
        DataType::Binary => {
            let bytes = options!(Bytes);
            Arc::new(BinaryArray::from_iter(bytes))
        }
        DataType::List(field) => {
            let lists = options!(List);
            let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.as_ref().map_or(0, Vec::len)));
            let elements: Vec<Value> = lists.into_iter().flatten().flatten().collect();
            let elements = to_array(&elements, field.data_type())?;
            Arc::new(ListArray::try_new(Arc::clone(field), offsets, elements, Some(nulls()))?)
        }
        DataType::Struct(fields) => {
            let rows = options!(Row);
            let column = |at: usize| -> Vec<Value> {
                rows.iter().map(|row| row.as_ref().map_or(Value::Null, |row| row[at].clone())).collect()
            };
            let columns = fields
                .iter()
                .enumerate()
                .map(|(at, field)| to_array(&column(at), field.data_type()))
                .collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, Some(nulls()))?)
        }
        DataType::Map(field, sorted) => {
            let maps = options!(Map);
            let offsets = OffsetBuffer::from_lengths(maps.iter().map(|map| map.as_ref().map_or(0, Vec::len)));
            let entries: Vec<Value> =
                maps.into_iter().flatten().flatten().map(|(key, value)| Value::Row(vec![key, value])).collect();
            let entries = to_array(&entries, field.data_type())?;
            let entries = StructArray::try_new(
                entries.as_struct().fields().clone(),
                entries.as_struct().columns().to_vec(),
                None,
            )?;
            Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, Some(nulls()), *sorted)?)
        }
        // integers, dates and times
        other => {
            let ints: ArrayRef = Arc::new(Int64Array::from(options!(Int)));
            match other {
                DataType::Date32 | DataType::Time32(_) => cast(&cast(&ints, &DataType::Int32)?, other)?,
                _ => cast(&ints, other)?,
            }
        }
    })
}

/// The values of an array.
///
/// # Errors
/// The type has no plain value here.
pub fn from_array(array: &dyn Array) -> Result<Vec<Value>> {
    (0..array.len()).map(|at| value_at(array, at)).collect()
}

fn value_at(array: &dyn Array, at: usize) -> Result<Value> {
    if array.is_null(at) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(at)),
        DataType::Float32 => Value::Float(array.as_primitive::<Float32Type>().value(at)),
        DataType::Float64 => Value::Double(array.as_primitive::<Float64Type>().value(at)),
        DataType::Decimal128(..) => Value::Decimal(array.as_primitive::<Decimal128Type>().value(at)),
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(at).to_string()),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(at).to_vec()),
        DataType::List(_) => Value::List(from_array(&array.as_list::<i32>().value(at))?),
        DataType::Struct(_) => {
            let columns = array.as_struct().columns();
            Value::Row(columns.iter().map(|column| value_at(column, at)).collect::<Result<_>>()?)
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(at);
            let (keys, values) = (from_array(entries.column(0))?, from_array(entries.column(1))?);
            Value::Map(keys.into_iter().zip(values).collect())
        }
        DataType::Date32 | DataType::Time32(_) => {
            let ints = cast(&array.slice(at, 1), &DataType::Int32)?;
            Value::Int(ints.as_primitive::<Int32Type>().value(0).into())
        }
        _ => {
            let ints = cast(&array.slice(at, 1), &DataType::Int64)?;
            let ints = ints
                .as_primitive_opt::<Int64Type>()
                .ok_or_else(|| Error::internal(format!("no plain value for {}", array.data_type())))?;
            Value::Int(ints.value(0))
        }
    })
}
