//! Cells of the row being merged: a value of an input row, or a computed one.

use std::cmp::Ordering;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, StringArray, new_null_array,
};
use arrow::compute::{concat, interleave};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use std::sync::Arc;

use super::compare::{compare_sequence, compare_values};
use crate::error::{Error, Result};

/// A row of an input batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowRef {
    pub(super) batch: u32,
    pub(super) row: u32,
}

/// One column of the row being merged.
#[derive(Debug, Clone)]
pub(super) enum Cell {
    /// NULL.
    Null,
    /// The value of an input row; never a NULL.
    Row(RowRef),
    /// A computed value.
    Value(Value),
}

/// A computed value. Which variant a column has follows from its type.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// BOOLEAN.
    Bool(bool),
    /// All integers.
    Int(i64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL, unscaled.
    Decimal(i128),
    /// Text.
    Text(String),
    /// Binaries.
    Bytes(Vec<u8>),
    /// Anything else: one element of the column's type.
    Array(ArrayRef),
}

impl Cell {
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// One column of all input batches.
#[derive(Debug)]
pub(super) struct Column<'a> {
    pub(super) name: &'a str,
    pub(super) data_type: &'a DataType,
    pub(super) arrays: Vec<ArrayRef>,
}

impl Column<'_> {
    fn array(&self, row: RowRef) -> (&dyn Array, usize) {
        // rows refer to batches of the same merge step
        (self.arrays[row.batch as usize].as_ref(), row.row as usize)
    }

    /// The cell of an input row.
    pub(super) fn cell(&self, row: RowRef) -> Cell {
        let (array, at) = self.array(row);
        if array.is_null(at) { Cell::Null } else { Cell::Row(row) }
    }

    pub(super) fn is_null(&self, row: RowRef) -> bool {
        let (array, at) = self.array(row);
        array.is_null(at)
    }

    /// Orders two cells that are no computed values, nulls lowest.
    pub(super) fn compare(&self, a: &Cell, b: &Cell) -> Ordering {
        self.compare_by(a, b, compare_values)
    }

    /// Orders two cells of a sequence column.
    pub(super) fn compare_sequence(&self, a: &Cell, b: &Cell) -> Ordering {
        self.compare_by(a, b, compare_sequence)
    }

    fn compare_by(
        &self,
        a: &Cell,
        b: &Cell,
        compare: impl Fn(&dyn Array, usize, &dyn Array, usize) -> Ordering,
    ) -> Ordering {
        match (a, b) {
            (Cell::Row(a), Cell::Row(b)) => {
                let ((a, i), (b, j)) = (self.array(*a), self.array(*b));
                compare(a, i, b, j)
            }
            (a, b) => b.is_null().cmp(&a.is_null()),
        }
    }

    fn wrong(&self, what: &str) -> Error {
        Error::internal(format!("column `{}` of type {} does not hold {what}", self.name, self.data_type))
    }

    /// The integer of a cell; None for NULL.
    pub(super) fn int(&self, cell: &Cell) -> Result<Option<i64>> {
        Ok(Some(match cell {
            Cell::Null => return Ok(None),
            Cell::Value(Value::Int(value)) => *value,
            Cell::Value(_) => return Err(self.wrong("integers")),
            Cell::Row(row) => {
                let (array, at) = self.array(*row);
                match array.data_type() {
                    DataType::Int8 => array.as_primitive::<Int8Type>().value(at).into(),
                    DataType::Int16 => array.as_primitive::<Int16Type>().value(at).into(),
                    DataType::Int32 => array.as_primitive::<Int32Type>().value(at).into(),
                    DataType::Int64 => array.as_primitive::<Int64Type>().value(at),
                    _ => return Err(self.wrong("integers")),
                }
            }
        }))
    }

    /// The FLOAT of a cell; None for NULL.
    pub(super) fn float(&self, cell: &Cell) -> Result<Option<f32>> {
        Ok(Some(match cell {
            Cell::Null => return Ok(None),
            Cell::Value(Value::Float(value)) => *value,
            Cell::Value(_) => return Err(self.wrong("floats")),
            Cell::Row(row) => {
                let (array, at) = self.array(*row);
                array.as_primitive_opt::<Float32Type>().ok_or_else(|| self.wrong("floats"))?.value(at)
            }
        }))
    }

    /// The DOUBLE of a cell; None for NULL.
    pub(super) fn double(&self, cell: &Cell) -> Result<Option<f64>> {
        Ok(Some(match cell {
            Cell::Null => return Ok(None),
            Cell::Value(Value::Double(value)) => *value,
            Cell::Value(_) => return Err(self.wrong("doubles")),
            Cell::Row(row) => {
                let (array, at) = self.array(*row);
                array.as_primitive_opt::<Float64Type>().ok_or_else(|| self.wrong("doubles"))?.value(at)
            }
        }))
    }

    /// The unscaled DECIMAL of a cell; None for NULL.
    pub(super) fn decimal(&self, cell: &Cell) -> Result<Option<i128>> {
        Ok(Some(match cell {
            Cell::Null => return Ok(None),
            Cell::Value(Value::Decimal(value)) => *value,
            Cell::Value(_) => return Err(self.wrong("decimals")),
            Cell::Row(row) => {
                let (array, at) = self.array(*row);
                array.as_primitive_opt::<Decimal128Type>().ok_or_else(|| self.wrong("decimals"))?.value(at)
            }
        }))
    }

    /// The BOOLEAN of a cell; None for NULL.
    pub(super) fn bool(&self, cell: &Cell) -> Result<Option<bool>> {
        Ok(Some(match cell {
            Cell::Null => return Ok(None),
            Cell::Value(Value::Bool(value)) => *value,
            Cell::Value(_) => return Err(self.wrong("booleans")),
            Cell::Row(row) => {
                let (array, at) = self.array(*row);
                array.as_boolean_opt().ok_or_else(|| self.wrong("booleans"))?.value(at)
            }
        }))
    }

    /// The text of a cell; None for NULL.
    pub(super) fn text<'a>(&'a self, cell: &'a Cell) -> Result<Option<&'a str>> {
        Ok(Some(match cell {
            Cell::Null => return Ok(None),
            Cell::Value(Value::Text(value)) => value,
            Cell::Value(_) => return Err(self.wrong("text")),
            Cell::Row(row) => {
                let (array, at) = self.array(*row);
                array.as_string_opt::<i32>().ok_or_else(|| self.wrong("text"))?.value(at)
            }
        }))
    }

    /// The bytes of a cell; None for NULL.
    pub(super) fn bytes<'a>(&'a self, cell: &'a Cell) -> Result<Option<&'a [u8]>> {
        Ok(Some(match cell {
            Cell::Null => return Ok(None),
            Cell::Value(Value::Bytes(value)) => value,
            Cell::Value(_) => return Err(self.wrong("bytes")),
            Cell::Row(row) => {
                let (array, at) = self.array(*row);
                array.as_binary_opt::<i32>().ok_or_else(|| self.wrong("bytes"))?.value(at)
            }
        }))
    }

    /// The elements of a list, or the entries (key, value) of a map; None for NULL.
    pub(super) fn elements(&self, cell: &Cell) -> Result<Option<ArrayRef>> {
        let of = |array: &dyn Array, at: usize| -> Result<ArrayRef> {
            match array.data_type() {
                DataType::List(_) => Ok(array.as_list::<i32>().value(at)),
                DataType::Map(..) => Ok(Arc::new(array.as_map().value(at))),
                _ => Err(self.wrong("lists or maps")),
            }
        };
        match cell {
            Cell::Null => Ok(None),
            Cell::Value(Value::Array(array)) if array.len() == 1 => of(array, 0).map(Some),
            Cell::Value(_) => Err(self.wrong("lists or maps")),
            Cell::Row(row) => {
                let (array, at) = self.array(*row);
                of(array, at).map(Some)
            }
        }
    }
}

/// Collects the cells of one output column. Its sources are the input arrays, one array with a NULL, and one with the
/// computed values.
#[derive(Debug)]
pub(super) struct ColumnSink {
    inputs: usize,
    picks: Vec<(usize, usize)>,
    values: Vec<Value>,
    nulls: bool,
}

impl ColumnSink {
    /// A sink for cells of so many input batches.
    pub(super) fn new(inputs: usize) -> Self {
        Self { inputs, picks: Vec::new(), values: Vec::new(), nulls: false }
    }

    pub(super) fn push(&mut self, cell: Cell) {
        match cell {
            Cell::Null => {
                self.nulls = true;
                self.picks.push((self.inputs, 0));
            }
            Cell::Row(row) => self.push_row(row),
            Cell::Value(value) => {
                self.picks.push((self.inputs + 1, self.values.len()));
                self.values.push(value);
            }
        }
    }

    /// The value of an input row, NULL or not.
    pub(super) fn push_row(&mut self, row: RowRef) {
        self.picks.push((row.batch as usize, row.row as usize));
    }

    /// The column.
    pub(super) fn finish(self, column: &Column<'_>) -> Result<ArrayRef> {
        let mut sources = column.arrays.clone();
        if self.nulls || !self.values.is_empty() {
            sources.push(new_null_array(column.data_type, 1));
        }
        if !self.values.is_empty() {
            sources.push(values_to_array(self.values, column)?);
        }
        let sources: Vec<&dyn Array> = sources.iter().map(|array| array.as_ref()).collect();
        Ok(interleave(&sources, &self.picks)?)
    }
}

fn values_to_array(values: Vec<Value>, column: &Column<'_>) -> Result<ArrayRef> {
    let wrong = || column.wrong("the values its aggregate function computed");
    let ints = |values: &[Value]| -> Result<Vec<i64>> {
        values.iter().map(|value| if let Value::Int(value) = value { Ok(*value) } else { Err(wrong()) }).collect()
    };
    fn narrow<T: TryFrom<i64>>(values: Vec<i64>, wrong: impl Fn() -> Error) -> Result<Vec<T>> {
        values.into_iter().map(|value| T::try_from(value).map_err(|_| wrong())).collect()
    }
    macro_rules! collect {
        ($variant:ident) => {
            values
                .into_iter()
                .map(|value| if let Value::$variant(value) = value { Ok(value) } else { Err(wrong()) })
                .collect::<Result<Vec<_>>>()?
        };
    }
    Ok(match column.data_type {
        DataType::Int8 => Arc::new(Int8Array::from(narrow::<i8>(ints(&values)?, wrong)?)),
        DataType::Int16 => Arc::new(Int16Array::from(narrow::<i16>(ints(&values)?, wrong)?)),
        DataType::Int32 => Arc::new(Int32Array::from(narrow::<i32>(ints(&values)?, wrong)?)),
        DataType::Int64 => Arc::new(Int64Array::from(ints(&values)?)),
        DataType::Float32 => Arc::new(Float32Array::from(collect!(Float))),
        DataType::Float64 => Arc::new(Float64Array::from(collect!(Double))),
        DataType::Boolean => Arc::new(BooleanArray::from(collect!(Bool))),
        DataType::Decimal128(precision, scale) => {
            let decimals = Decimal128Array::from(collect!(Decimal)).with_precision_and_scale(*precision, *scale)?;
            // every text of a longer value would be cut
            decimals.validate_decimal_precision(*precision).map_err(|error| {
                Error::invalid(format!("a merged value has more digits than {}", column.data_type))
                    .with_code("DecimalBeyondPrecision")
                    .with_context("column", column.name)
                    .with_source(error)
            })?;
            Arc::new(decimals)
        }
        DataType::Utf8 => Arc::new(StringArray::from(collect!(Text))),
        DataType::Binary => Arc::new(BinaryArray::from_iter_values(collect!(Bytes))),
        _ => {
            let arrays = collect!(Array);
            let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
            concat(&arrays)?
        }
    })
}
