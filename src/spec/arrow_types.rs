//! Paimon types as Arrow types, and datums as arrays.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType as ArrowType, Field, SchemaRef};
use datafusion::common::ScalarValue;

use super::data_type::{DataField, DataType};
use super::datum::Datum;
use super::schema::TableSchema;
use crate::error::{Error, Result};

/// The Arrow schema of all columns, without metadata.
pub fn arrow_schema(schema: &TableSchema) -> SchemaRef {
    let fields: Vec<Field> = schema.fields.iter().map(arrow_field).collect();
    SchemaRef::new(arrow::datatypes::Schema::new(fields))
}

/// The Arrow field of a column.
pub fn arrow_field(field: &DataField) -> Field {
    Field::new(&field.name, arrow_type(field.data_type()), field.field_type.nullable)
}

/// The Arrow type of a type.
pub fn arrow_type(data_type: &DataType) -> ArrowType {
    let _ = data_type;
    ArrowType::Null
}

/// Atomic values as one array of their type's Arrow type.
pub fn datums_to_array(datums: &[Datum], data_type: &DataType) -> Result<ArrayRef> {
    let _ = (datums, data_type);
    Err(Error::internal("not built yet"))
}

/// The atomic value at a row of an array of the type's Arrow type.
pub fn datum_at(array: &dyn Array, row: usize, data_type: &DataType) -> Result<Datum> {
    let _ = (array, row, data_type);
    Err(Error::internal("not built yet"))
}

/// The value as a scalar of the type's Arrow type.
pub fn datum_to_scalar(datum: &Datum, data_type: &DataType) -> Result<ScalarValue> {
    let _ = (datum, data_type);
    Err(Error::internal("not built yet"))
}

/// A literal as a value of the type, None when it cannot be converted exactly.
pub fn scalar_to_datum(scalar: &ScalarValue, data_type: &DataType) -> Result<Option<Datum>> {
    let _ = (scalar, data_type);
    Err(Error::internal("not built yet"))
}
