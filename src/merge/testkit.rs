//! Small tables and batches for the tests of this room.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int8Array, Int32Array, Int64Array};
use arrow::datatypes::{DataType as ArrowType, Field, Int8Type, Int32Type, Int64Type, Schema};
use arrow::record_batch::RecordBatch;

use crate::spec::{CoreOptions, DataField, DataType, FieldType, RowKind, SchemaId, TableSchema};

/// A row of INT columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) values: Vec<Option<i32>>,
    pub(super) sequence: i64,
    pub(super) kind: RowKind,
}

/// A row of four columns with a key; the others tell it from its neighbours.
pub(super) fn row(key: i32, sequence: i64, kind: RowKind) -> Row {
    Row { values: vec![Some(key), Some(key * 10), None, Some(-key)], sequence, kind }
}

/// A batch as a merge takes it; the first column is NOT NULL.
pub(super) fn int_batch(columns: &[&str], rows: &[Row]) -> RecordBatch {
    let mut fields: Vec<Field> =
        columns.iter().enumerate().map(|(at, name)| Field::new(*name, ArrowType::Int32, at > 0)).collect();
    fields.push(Field::new("_SEQUENCE_NUMBER", ArrowType::Int64, false));
    fields.push(Field::new("_VALUE_KIND", ArrowType::Int8, false));
    let column = |at: usize| -> ArrayRef { Arc::new(rows.iter().map(|row| row.values[at]).collect::<Int32Array>()) };
    let mut arrays: Vec<ArrayRef> = (0..columns.len()).map(column).collect();
    arrays.push(Arc::new(rows.iter().map(|row| row.sequence).collect::<Int64Array>()));
    arrays.push(Arc::new(rows.iter().map(|row| row.kind as i8).collect::<Int8Array>()));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// The rows of a batch like [`int_batch`].
pub(super) fn int_rows(batch: &RecordBatch) -> Vec<Row> {
    let width = batch.num_columns() - 2;
    (0..batch.num_rows())
        .map(|row| Row {
            values: batch.columns()[..width]
                .iter()
                .map(|column| column.is_valid(row).then(|| column.as_primitive::<Int32Type>().value(row)))
                .collect(),
            sequence: batch.column(width).as_primitive::<Int64Type>().value(row),
            kind: RowKind::from_byte(batch.column(width + 1).as_primitive::<Int8Type>().value(row)).unwrap(),
        })
        .collect()
}

/// A schema of columns with types; key columns are NOT NULL.
pub(super) fn typed_schema(columns: &[(&str, DataType)], key: &[&str]) -> TableSchema {
    let fields = columns
        .iter()
        .zip(0..)
        .map(|((name, data_type), id)| DataField {
            id,
            name: (*name).to_string(),
            field_type: FieldType { data_type: data_type.clone(), nullable: !key.contains(name) },
            description: None,
            default_value: None,
            sums: false,
        })
        .collect();
    TableSchema {
        version: 3,
        id: SchemaId(0),
        fields,
        highest_field_id: 100,
        partition_keys: vec![],
        primary_keys: key.iter().map(|name| (*name).to_string()).collect(),
        options: BTreeMap::new(),
        comment: None,
        time_millis: 0,
    }
}

/// A schema of INT columns.
pub(super) fn schema(columns: &[&str], key: &[&str]) -> TableSchema {
    let columns: Vec<_> = columns.iter().map(|name| (*name, DataType::Int)).collect();
    typed_schema(&columns, key)
}

/// Options as a table has them.
pub(super) fn options(pairs: &[(&str, &str)]) -> CoreOptions {
    let options: BTreeMap<String, String> =
        pairs.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect();
    CoreOptions::parse(&options).unwrap()
}
