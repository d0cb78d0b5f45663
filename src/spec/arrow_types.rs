//! Paimon types as Arrow types, and atomic values as arrays.
//!
//! | Paimon | Arrow |
//! |---|---|
//! | texts | Utf8 |
//! | bytes, BLOB, GEOMETRY, GEOGRAPHY | Binary |
//! | BOOLEAN, integers, floats | Boolean, Int8 … Int64, Float32, Float64 |
//! | DECIMAL(p, s) | Decimal128(p, s); Decimal128(19, s) where a merge sums and p ≤ 18: such sums are not checked |
//! | DATE, TIME | Date32, Time32(ms) |
//! | TIMESTAMP(p) | Timestamp: ms up to p = 3, us up to 6, ns above |
//! | LTZ | the same, zone `UTC` |
//! | ARRAY, VECTOR | List, FixedSizeList of `item` |
//! | MAP, MULTISET | Map of `entries{key, value}` |
//! | ROW | Struct |
//! | VARIANT | Struct{value, metadata} |
//!
//! Fields carry no metadata, so that schemas of equal columns are equal.

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType as ArrowType, Field, Fields, Schema, SchemaRef, TimeUnit};

use super::data_type::{DataField, DataType, FieldType};
use super::schema::TableSchema;
use crate::error::Error;

pub use values::{datum_at, datums_to_array};
pub(crate) use values::{rescale, split_ticks};

mod values;

/// The Arrow schema of all columns, without metadata.
pub fn arrow_schema(schema: &TableSchema) -> SchemaRef {
    let fields: Vec<Field> = schema.fields.iter().map(arrow_field).collect();
    SchemaRef::new(Schema::new(fields))
}

/// The Arrow field of a column; its type holds every value, sums past the declared precision too.
pub fn arrow_field(field: &DataField) -> Field {
    named(&field.name, &field.value_type())
}

/// The Arrow type of a type.
pub fn arrow_type(data_type: &DataType) -> ArrowType {
    match data_type {
        DataType::Char(_) | DataType::Varchar(_) => ArrowType::Utf8,
        DataType::Boolean => ArrowType::Boolean,
        DataType::Binary(_)
        | DataType::Varbinary(_)
        | DataType::Blob
        | DataType::Geometry(_)
        | DataType::Geography(_) => ArrowType::Binary,
        // a scale is at most 38
        DataType::Decimal(precision, scale) => {
            ArrowType::Decimal128(*precision, i8::try_from(*scale).unwrap_or(i8::MAX))
        }
        DataType::TinyInt => ArrowType::Int8,
        DataType::SmallInt => ArrowType::Int16,
        DataType::Int => ArrowType::Int32,
        DataType::BigInt => ArrowType::Int64,
        DataType::Float => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Date => ArrowType::Date32,
        DataType::Time(_) => ArrowType::Time32(TimeUnit::Millisecond),
        DataType::Timestamp(precision) => ArrowType::Timestamp(time_unit(*precision), None),
        DataType::TimestampLtz(precision) => ArrowType::Timestamp(time_unit(*precision), Some(Arc::from("UTC"))),
        DataType::Variant => ArrowType::Struct(Fields::from(vec![
            Field::new("value", ArrowType::Binary, false),
            Field::new("metadata", ArrowType::Binary, false),
        ])),
        DataType::Array(element) => ArrowType::List(Arc::new(named("item", element))),
        DataType::Vector(element, length) => {
            // a length is at most the largest i32
            ArrowType::FixedSizeList(Arc::new(named("item", element)), i32::try_from(*length).unwrap_or(i32::MAX))
        }
        DataType::Map(key, value) => map(key, named("value", value)),
        DataType::Multiset(element) => map(element, Field::new("value", ArrowType::Int32, true)),
        DataType::Row(fields) => ArrowType::Struct(fields.iter().map(arrow_field).collect()),
    }
}

fn named(name: &str, field_type: &FieldType) -> Field {
    Field::new(name, arrow_type(&field_type.data_type), field_type.nullable)
}

/// Keys are never null, whatever the type says: Arrow and Parquet know no other maps.
fn map(key: &FieldType, value: Field) -> ArrowType {
    let key = Field::new("key", arrow_type(&key.data_type), false);
    let entries = Field::new("entries", ArrowType::Struct(Fields::from(vec![key, value])), false);
    ArrowType::Map(Arc::new(entries), false)
}

fn time_unit(precision: u8) -> TimeUnit {
    match precision {
        0..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

/// The error for an array of another type than was promised.
pub(crate) fn mismatch(array: &dyn Array, data_type: &DataType) -> Error {
    Error::internal(format!("an Arrow array of type {} was given for the type {data_type}", array.data_type()))
}

#[cfg(test)]
pub(crate) mod tests;
