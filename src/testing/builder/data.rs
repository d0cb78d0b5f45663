//! Rows to a Parquet data file and its description.

use std::cmp::Ordering;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int8Array, Int64Array, RecordBatch};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType as ArrowType, Field, Int8Type, Int64Type, Schema, UInt64Type};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use serde_json::Value;

use super::io;
use crate::error::{Error, Result};
use crate::spec::arrow_types::{arrow_schema, datum_at};
use crate::spec::binary_row::RowForm;
use crate::spec::{BinaryRow, DataField, DataType, Datum, RowKind, SimpleStats, TableSchema};

/// Name of the column of sequence numbers.
pub const SEQUENCE: &str = "_SEQUENCE_NUMBER";
/// Name of the column of row kinds.
pub const KIND: &str = "_VALUE_KIND";

/// JSON rows as a batch of the table's columns, then sequence number and kind. `_ROW_KIND` and `_SEQUENCE_NUMBER` are
/// members of a row where it wants its own.
pub fn batch_of(rows: &[Value], schema: &TableSchema, next_sequence: &mut i64) -> Result<RecordBatch> {
    let mut sequences = Vec::new();
    let mut kinds = Vec::new();
    for row in rows {
        let sequence = row.get(SEQUENCE).and_then(Value::as_i64).unwrap_or_else(|| {
            *next_sequence += 1;
            *next_sequence - 1
        });
        sequences.push(sequence);
        let kind = row.get("_ROW_KIND").and_then(Value::as_str).unwrap_or("+I");
        let byte = (0..4).find(|b| RowKind::from_byte(*b).is_some_and(|k| k.as_str() == kind));
        kinds.push(byte.ok_or_else(|| Error::invalid(format!("no row kind {kind}")))?);
    }
    let columns = arrow_schema(schema);
    // nullable while decoding: a test may leave out what the table requires
    let lenient =
        Schema::new(columns.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect::<Vec<_>>());
    let mut decoder =
        arrow::json::ReaderBuilder::new(Arc::new(lenient)).with_batch_size(rows.len().max(1)).build_decoder()?;
    decoder.serialize(rows)?;
    let values = match decoder.flush()? {
        Some(batch) => batch,
        None => RecordBatch::new_empty(Arc::clone(&columns)),
    };
    with_system_columns(&values, Int64Array::from(sequences), Int8Array::from(kinds))
}

/// Appends sequence numbers and kinds to the table's columns.
pub fn with_system_columns(values: &RecordBatch, sequence: Int64Array, kind: Int8Array) -> Result<RecordBatch> {
    let mut fields: Vec<Arc<Field>> = values.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(SEQUENCE, ArrowType::Int64, false)));
    fields.push(Arc::new(Field::new(KIND, ArrowType::Int8, false)));
    let mut columns = values.columns().to_vec();
    columns.push(Arc::new(sequence));
    columns.push(Arc::new(kind));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Values of some columns of one row.
pub fn datums(batch: &RecordBatch, row: usize, fields: &[(usize, &DataField)]) -> Result<Vec<Datum>> {
    fields.iter().map(|(i, field)| datum_at(batch.column(*i).as_ref(), row, field.data_type())).collect()
}

/// A row of datums in the form of keys and partitions.
pub fn encode(values: &[Datum], fields: &[(usize, &DataField)], form: RowForm) -> Result<BinaryRow> {
    let pairs: Vec<(&Datum, &DataType)> = values.iter().zip(fields).map(|(v, (_, f))| (v, f.data_type())).collect();
    BinaryRow::encode(&pairs, form)
}

/// Compares rows of datums in key order.
pub fn compare(left: &[Datum], right: &[Datum]) -> Ordering {
    left.iter().zip(right).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// The rows sorted by key; of equal keys the order stays.
pub fn sorted(batch: &RecordBatch, key: &[(usize, &DataField)]) -> Result<RecordBatch> {
    let keys: Result<Vec<Vec<Datum>>> = (0..batch.num_rows()).map(|row| datums(batch, row, key)).collect();
    let keys = keys?;
    let mut order: Vec<u64> = (0..batch.num_rows() as u64).collect();
    order.sort_by(|a, b| match (keys.get(*a as usize), keys.get(*b as usize)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    let order = arrow::array::PrimitiveArray::<UInt64Type>::from(order);
    Ok(take_record_batch(batch, &order)?)
}

/// Some rows of a batch, in the given order.
pub fn rows_of(batch: &RecordBatch, rows: &[u64]) -> Result<RecordBatch> {
    Ok(take_record_batch(batch, &arrow::array::PrimitiveArray::<UInt64Type>::from(rows.to_vec()))?)
}

/// Several batches as one.
pub fn joined(batches: &[RecordBatch]) -> Result<RecordBatch> {
    let schema = batches.first().ok_or_else(|| Error::invalid("a file needs rows"))?.schema();
    Ok(concat_batches(&schema, batches)?)
}

/// What writing a file tells about it.
pub struct Written {
    pub bytes: u64,
    pub value_stats: SimpleStats,
    pub key_stats: SimpleStats,
    pub min_sequence: i64,
    pub max_sequence: i64,
    pub deletes: i64,
}

/// How columns are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encodings {
    /// As Java writes them: a dictionary that falls back to plain values.
    #[default]
    Dictionary,
    /// Integer keys and sequence numbers as differences, text keys without a dictionary.
    Delta,
}

/// Writes a data file: `_KEY_*`, sequence and kind lead the columns of a primary-key table.
pub fn write(
    path: &Path,
    batch: &RecordBatch,
    schema: &TableSchema,
    row_group_rows: usize,
    encodings: Encodings,
) -> Result<Written> {
    let fields: Vec<(usize, &DataField)> = schema.fields.iter().enumerate().collect();
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    let key = key_fields(schema)?;
    let width = schema.fields.len();
    if schema.is_primary_key_table() {
        for (i, field) in &key {
            columns.push((format!("_KEY_{}", field.name), Arc::clone(batch.column(*i)), false));
        }
        columns.push((SEQUENCE.into(), Arc::clone(batch.column(width)), false));
        columns.push((KIND.into(), Arc::clone(batch.column(width + 1)), false));
    }
    for (i, field) in &fields {
        columns.push((field.name.clone(), Arc::clone(batch.column(*i)), field.field_type.nullable));
    }
    let arrow_fields: Vec<Field> = columns
        .iter()
        .map(|(name, array, nullable)| Field::new(name, array.data_type().clone(), *nullable || array.null_count() > 0))
        .collect();
    let file_schema = Arc::new(Schema::new(arrow_fields));
    let file_batch = RecordBatch::try_new(Arc::clone(&file_schema), columns.into_iter().map(|c| c.1).collect())?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_coerce_types(true)
        .set_max_row_group_row_count(Some(row_group_rows));
    if encodings == Encodings::Delta {
        let names = key.iter().flat_map(|(_, field)| [format!("_KEY_{}", field.name), field.name.clone()]);
        for name in names.chain([SEQUENCE.to_string()]) {
            let Ok(field) = file_schema.field_with_name(&name) else { continue };
            let column = ColumnPath::from(name);
            properties = properties.set_column_dictionary_enabled(column.clone(), false);
            if field.data_type().is_integer() {
                properties = properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
            }
        }
    }
    let properties = properties.build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let bad = |e: parquet::errors::ParquetError| {
        Error::internal("the table builder cannot write Parquet").with_context("file", path.display()).with_source(e)
    };
    let file = File::create(path).map_err(io(path))?;
    let mut writer = ArrowWriter::try_new_with_options(file, file_schema, options).map_err(bad)?;
    writer.write(&file_batch).map_err(bad)?;
    writer.close().map_err(bad)?;
    let sequence = batch.column(width).as_primitive::<Int64Type>();
    let kinds = batch.column(width + 1).as_primitive::<Int8Type>();
    Ok(Written {
        bytes: std::fs::metadata(path).map_err(io(path))?.len(),
        value_stats: stats(batch, &fields)?,
        key_stats: stats(batch, &key)?,
        min_sequence: arrow::compute::min(sequence).unwrap_or(0),
        max_sequence: arrow::compute::max(sequence).unwrap_or(0),
        deletes: kinds.iter().flatten().filter(|k| RowKind::from_byte(*k).is_some_and(RowKind::is_retract)).count()
            as i64,
    })
}

/// The trimmed primary key: column index and field, in key order.
pub fn key_fields(schema: &TableSchema) -> Result<Vec<(usize, &DataField)>> {
    if !schema.is_primary_key_table() {
        return Ok(Vec::new());
    }
    Ok(schema.trimmed_primary_key()?.into_iter().filter_map(|i| schema.fields.get(i).map(|f| (i, f))).collect())
}

/// Bounds and null count of one column as it is written down.
#[derive(Debug, Clone)]
pub struct Bounds {
    pub min: Datum,
    pub max: Datum,
    pub nulls: i64,
}

/// Full bounds of some values. A NaN leaves a column without bounds, as writers of Parquet do.
pub fn bounds(values: impl IntoIterator<Item = Datum>) -> Bounds {
    let mut found = Bounds { min: Datum::Null, max: Datum::Null, nulls: 0 };
    let mut bounded = true;
    for value in values {
        match &value {
            Datum::Null => {
                found.nulls += 1;
                continue;
            }
            Datum::Float(f) if f.is_nan() => bounded = false,
            Datum::Double(f) if f.is_nan() => bounded = false,
            _ => {}
        }
        if found.min == Datum::Null || value.total_cmp(&found.min).is_lt() {
            found.min = value.clone();
        }
        if found.max == Datum::Null || value.total_cmp(&found.max).is_gt() {
            found.max = value;
        }
    }
    if !bounded {
        (found.min, found.max) = (Datum::Null, Datum::Null);
    }
    found
}

/// Bounds of some columns, in their order.
pub fn encode_stats(bounds: &[Bounds], fields: &[(usize, &DataField)]) -> Result<SimpleStats> {
    let row = |bound: fn(&Bounds) -> &Datum| {
        let values: Vec<Datum> = bounds.iter().map(|bounds| bound(bounds).clone()).collect();
        encode(&values, fields, RowForm::Serialized)
    };
    Ok(SimpleStats {
        min_values: row(|bounds| &bounds.min)?,
        max_values: row(|bounds| &bounds.max)?,
        null_counts: bounds.iter().map(|bounds| Some(bounds.nulls)).collect(),
    })
}

/// Full bounds and null counts. Parquet files of binary columns come without bounds.
fn stats(batch: &RecordBatch, fields: &[(usize, &DataField)]) -> Result<SimpleStats> {
    let column = |(at, field): &(usize, &DataField)| -> Result<Bounds> {
        let (array, data_type) = (batch.column(*at), field.data_type());
        if !data_type.is_ordered() || matches!(data_type, DataType::Binary(_) | DataType::Varbinary(_)) {
            return Ok(Bounds { min: Datum::Null, max: Datum::Null, nulls: array.null_count() as i64 });
        }
        let values = (0..array.len()).map(|row| datum_at(array.as_ref(), row, data_type));
        Ok(bounds(values.collect::<Result<Vec<_>>>()?))
    };
    encode_stats(&fields.iter().map(column).collect::<Result<Vec<_>>>()?, fields)
}
