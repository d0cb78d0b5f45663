//! Elements of lists and entries of maps: equality across arrays, and lists built from picked elements.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::interleave;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::{Error, Result};
use crate::merge::cell::{Cell, Column, Value};
use crate::merge::compare::canonical_nans;

/// An element: number of its array among the sources, place in it.
pub(super) type Pick = (usize, usize);

/// Encodes the rows of each source (a list of columns) so that equal rows are equal bytes, and bytes order as rows do,
/// nulls first.
pub(super) fn encode(sources: &[Vec<ArrayRef>]) -> Result<Vec<Rows>> {
    let Some(first) = sources.first() else { return Ok(Vec::new()) };
    let fields = first.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let converter = RowConverter::new(fields)?;
    sources
        .iter()
        .map(|columns| {
            let columns: Vec<ArrayRef> = columns.iter().map(canonical_nans).collect();
            Ok(converter.convert_columns(&columns)?)
        })
        .collect()
}

/// One cell of `column` (a list or a map) with the picked elements of `sources`.
pub(super) fn collection(column: &Column<'_>, sources: &[ArrayRef], picks: &[Pick]) -> Result<Cell> {
    let sources: Vec<&dyn Array> = sources.iter().map(|source| source.as_ref()).collect();
    let elements = interleave(&sources, picks)?;
    collection_of(column, elements)
}

/// One cell of `column` (a list or a map) with these elements.
pub(super) fn collection_of(column: &Column<'_>, elements: ArrayRef) -> Result<Cell> {
    let offsets = OffsetBuffer::from_lengths([elements.len()]);
    let array: ArrayRef = match column.data_type {
        DataType::List(field) => Arc::new(ListArray::try_new(Arc::clone(field), offsets, elements, None)?),
        DataType::Map(field, sorted) => {
            let entries = elements.as_struct_opt().ok_or_else(|| Error::internal("map entries are a struct"))?;
            Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries.clone(), None, *sorted)?)
        }
        other => return Err(Error::internal(format!("column `{}` of type {other} holds no elements", column.name))),
    };
    Ok(Cell::Value(Value::Array(array)))
}

/// The elements as structs.
pub(super) fn structs<'a>(elements: &'a ArrayRef, column: &Column<'_>) -> Result<&'a StructArray> {
    elements.as_struct_opt().ok_or_else(|| Error::internal(format!("elements of column `{}` are no rows", column.name)))
}

/// Some columns of structs.
pub(super) fn project(structs: &StructArray, fields: &[usize]) -> Result<Vec<ArrayRef>> {
    fields
        .iter()
        .map(|&field| {
            structs.columns().get(field).cloned().ok_or_else(|| Error::internal("a row has fewer fields than its type"))
        })
        .collect()
}
