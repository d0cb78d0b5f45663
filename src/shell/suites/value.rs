//! Values and types of results as suites write them.

use arrow::array::cast::AsArray;
use arrow::array::types::{Float32Type, Float64Type};
use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use sqllogictest::ColumnType;

use super::place::Places;
use crate::error::{Error, Result};
use crate::export::value::{ISO, text};

/// DataFusion's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letter {
    /// `B`
    Boolean,
    /// `D`: dates and times of day.
    DateTime,
    /// `I`
    Integer,
    /// `P`: timestamps.
    Timestamp,
    /// `R`: floats and decimals.
    Real,
    /// `T`
    Text,
    /// `?`
    Other,
}

impl ColumnType for Letter {
    fn from_char(value: char) -> Option<Self> {
        Some(match value {
            'B' => Self::Boolean,
            'D' => Self::DateTime,
            'I' => Self::Integer,
            'P' => Self::Timestamp,
            'R' => Self::Real,
            'T' => Self::Text,
            _ => Self::Other,
        })
    }

    fn to_char(&self) -> char {
        match self {
            Self::Boolean => 'B',
            Self::DateTime => 'D',
            Self::Integer => 'I',
            Self::Timestamp => 'P',
            Self::Real => 'R',
            Self::Text => 'T',
            Self::Other => '?',
        }
    }
}

impl Letter {
    fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Boolean,
            DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => Self::DateTime,
            DataType::Timestamp(..) => Self::Timestamp,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Dictionary(_, value) => Self::of(value),
            other if other.is_integer() => Self::Integer,
            other if other.is_numeric() => Self::Real,
            _ => Self::Other,
        }
    }
}

/// The letters of a schema.
pub fn letters(schema: &SchemaRef) -> Vec<Letter> {
    schema.fields().iter().map(|field| Letter::of(field.data_type())).collect()
}

/// Rows as words.
pub fn rows(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>> {
    let cells = cells(batches)?.into_iter();
    Ok(cells.map(|row| row.into_iter().map(|cell| one_line(&cell)).collect()).collect())
}

/// Plans as words: a line a row, numbered as in DataFusion's suites.
pub fn plan_rows(batches: &[RecordBatch], places: &Places) -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for row in cells(batches)? {
        let mut cells = row.into_iter();
        rows.push(vec![cells.next().unwrap_or_default()]);
        let plan = cells.next().unwrap_or_default();
        for (i, line) in plan.trim_end().lines().enumerate() {
            let depth = line.len() - line.trim_start().len();
            let line = places.hidden_in_plan(line.trim_start());
            rows.push(vec![format!("{:02}){}{line}", i + 1, "-".repeat(depth))]);
        }
    }
    Ok(rows)
}

fn cells(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>> {
    let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
    rows.map(|(batch, row)| batch.columns().iter().map(|column| cell(column.as_ref(), row)).collect()).collect()
}

fn one_line(cell: &str) -> String {
    cell.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}

fn cell(column: &dyn Array, row: usize) -> Result<String> {
    let whole = |value: f64| value.is_finite().then(|| value.to_string());
    if !column.is_null(row) {
        // a float that is whole has no point, as in DataFusion's suites
        let plain = match column.data_type() {
            DataType::Float64 => whole(column.as_primitive::<Float64Type>().value(row)),
            DataType::Float32 => {
                let value = column.as_primitive::<Float32Type>().value(row);
                value.is_finite().then(|| value.to_string())
            }
            _ => None,
        };
        if let Some(plain) = plain {
            return Ok(plain);
        }
    }
    let mut out = String::new();
    let present = text(column, row, ISO, &mut out).map_err(|e| Error::internal(format!("cannot show a value: {e}")))?;
    Ok(match (present, out.is_empty()) {
        (false, _) => "NULL".to_string(),
        (true, true) => "(empty)".to_string(),
        // blanks at the end of a line are lost when it is read again
        (true, false) if out.trim().is_empty() => "(blank)".to_string(),
        (true, false) => out,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, StringArray};

    use super::*;

    #[test]
    fn cells_are_one_line_and_tell_null_from_empty() {
        let names: ArrayRef = Arc::new(StringArray::from(vec![Some("a\nb"), Some(""), Some("  "), None]));
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 0.1, 2.5, f64::NAN]));
        let batch = RecordBatch::try_from_iter([("n", names), ("f", numbers)]).unwrap();
        let schema = batch.schema();
        assert_eq!(rows(&[batch]).unwrap(), [["a\\nb", "1"], ["(empty)", "0.1"], ["(blank)", "2.5"], ["NULL", "NaN"]]);
        assert_eq!(letters(&schema), [Letter::Text, Letter::Real]);
    }

    #[test]
    fn plans_are_numbered_lines() {
        let types: ArrayRef = Arc::new(StringArray::from(vec!["logical_plan"]));
        let plans: ArrayRef = Arc::new(StringArray::from(vec!["Limit\n  Scan"]));
        let batch = RecordBatch::try_from_iter([("plan_type", types), ("plan", plans)]).unwrap();
        let rows = plan_rows(&[batch], &Places::default()).unwrap();
        assert_eq!(rows, [["logical_plan"], ["01)Limit"], ["02)--Scan"]]);
    }
}
