//! Metadata files in ORC and Parquet, which releases up to 0.9 could write.

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array, ListArray, RecordBatch, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::avro_read::Sink;
use super::damaged;
use super::row::Value;
use super::table::{Kind, Table};
use crate::error::{Error, Result, caught};
#[cfg(feature = "orc")]
use crate::spec::orc_footer::check_orc_file;
use crate::spec::parquet_footer::check_parquet_file;

/// Decodes every row of a Parquet file.
pub fn read_parquet(bytes: &[u8], table: &'static Table, sink: &mut Sink<'_>) -> Result<()> {
    check_parquet_file(bytes).map_err(|error| unreadable("Parquet").with_source(error))?;
    let bytes = Bytes::copy_from_slice(bytes);
    guarded("Parquet", || {
        let failed = |error: parquet::errors::ParquetError| unreadable("Parquet").with_source(error);
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).and_then(|b| b.build()).map_err(failed)?;
        rows(reader, "Parquet", table, sink)
    })
}

/// Decodes every row of an ORC file.
#[cfg(feature = "orc")]
pub fn read_orc(bytes: &[u8], table: &'static Table, sink: &mut Sink<'_>) -> Result<()> {
    let bytes = Bytes::copy_from_slice(bytes);
    guarded("ORC", || {
        check_orc_file(&bytes).map_err(|error| damaged(error.message()).with_source(error))?;
        let builder = orc_rust::ArrowReaderBuilder::try_new(bytes);
        let reader = builder.map_err(|error| unreadable("ORC").with_source(error))?.build();
        rows(reader, "ORC", table, sink)
    })
}

/// This build has no ORC.
#[cfg(not(feature = "orc"))]
pub fn read_orc(_: &[u8], _: &'static Table, _: &mut Sink<'_>) -> Result<()> {
    Err(Error::unsupported("this build does not read metadata files in ORC").with_hint("build with the feature `orc`"))
}

fn unreadable(format: &str) -> Error {
    damaged(format!("the {format} file cannot be decoded"))
}

/// The decoders of these formats are not ours: a panic on damaged bytes becomes an error.
fn guarded(format: &str, read: impl FnOnce() -> Result<()>) -> Result<()> {
    caught(read).unwrap_or_else(|words| Err(damaged(format!("the {format} file cannot be decoded: {words}"))))
}

fn rows(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    format: &str,
    table: &'static Table,
    sink: &mut Sink<'_>,
) -> Result<()> {
    for batch in batches {
        let batch = batch.map_err(|error| unreadable(format).with_source(error))?;
        let rows = batch.num_rows();
        let columns = Column::of_record(&StructArray::from(batch), table)?;
        let mut values = Vec::with_capacity(columns.len());
        for row in 0..rows {
            values.clear();
            values.extend(columns.iter().map(|column| column.value(row)));
            sink(&values)?;
        }
    }
    Ok(())
}

/// A column brought to the types of [`Value`].
enum Column {
    Absent,
    Numbers(Int64Array),
    Bytes(BinaryArray),
    List(ListArray, Box<Column>),
    Record(StructArray, Vec<Column>),
}

impl Column {
    fn of_record(array: &StructArray, table: &'static Table) -> Result<Vec<Self>> {
        let columns = table.fields.iter().map(|field| match array.column_by_name(field.name) {
            Some(column) => Self::new(column, &field.kind).map_err(|error| error.with_context("column", field.name)),
            None if field.nullable => Ok(Self::Absent),
            None => Err(damaged("the file lacks a required column").with_context("column", field.name)),
        });
        columns.collect()
    }

    fn new(array: &ArrayRef, kind: &Kind) -> Result<Self> {
        let misfit = || damaged(format!("a column of type {} cannot be read as a {}", array.data_type(), kind.word()));
        let cast_to = |array: &ArrayRef, to| cast(array, to).map_err(|error| misfit().with_source(error));
        Ok(match kind {
            Kind::Int | Kind::Long => {
                Self::Numbers(cast_to(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            Kind::Millis => {
                let millis = cast_to(array, &DataType::Timestamp(TimeUnit::Millisecond, None))?;
                Self::Numbers(cast_to(&millis, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            Kind::Text | Kind::Bytes => Self::Bytes(cast_to(array, &DataType::Binary)?.as_binary::<i32>().clone()),
            Kind::List(element) => {
                let list = array.as_list_opt::<i32>().ok_or_else(misfit)?;
                Self::List(list.clone(), Box::new(Self::new(list.values(), &element.kind)?))
            }
            Kind::Record(table) => {
                let record = array.as_struct_opt().ok_or_else(misfit)?;
                Self::Record(record.clone(), Self::of_record(record, table)?)
            }
        })
    }

    fn value(&self, row: usize) -> Value<'_> {
        match self {
            Self::Numbers(array) if array.is_valid(row) => Value::Long(array.value(row)),
            Self::Bytes(array) if array.is_valid(row) => Value::Bytes(array.value(row)),
            Self::List(array, elements) if array.is_valid(row) => {
                let offsets = array.value_offsets();
                let place = |at: usize| offsets.get(at).and_then(|o| usize::try_from(*o).ok()).unwrap_or_default();
                Value::List((place(row)..place(row + 1)).map(|element| elements.value(element)).collect())
            }
            Self::Record(array, columns) if array.is_valid(row) => {
                Value::Record(columns.iter().map(|column| column.value(row)).collect())
            }
            _ => Value::Null,
        }
    }
}
