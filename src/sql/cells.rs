//! Rows of small relations, cell by cell.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Int32Builder, Int64Builder, ListBuilder, RecordBatch, RecordBatchOptions, StringBuilder,
    TimestampMillisecondBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::error::{Error, Result};

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Text(String),
    Long(i64),
    Int(i32),
    Bool(bool),
    /// Wall clock, milliseconds.
    Time(i64),
    Texts(Vec<String>),
}

impl Cell {
    pub(crate) fn text(value: impl Into<String>) -> Self {
        Self::Text(value.into())
    }

    pub(crate) fn opt_text(value: Option<impl Into<String>>) -> Self {
        value.map_or(Self::Null, |v| Self::Text(v.into()))
    }

    pub(crate) fn opt_long(value: Option<i64>) -> Self {
        value.map_or(Self::Null, Self::Long)
    }

    /// A count.
    pub(crate) fn count(value: u64) -> Self {
        Self::Long(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

/// Types of the cells, by their SQL names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Long,
    Int,
    Bool,
    Time,
    Texts,
}

/// A schema from names, kinds and whether NULL is not possible.
pub(crate) fn schema(columns: &[(&str, Kind, bool)]) -> SchemaRef {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, kind, not_null)| {
            let data_type = match kind {
                Kind::Text => DataType::Utf8,
                Kind::Long => DataType::Int64,
                Kind::Int => DataType::Int32,
                Kind::Bool => DataType::Boolean,
                Kind::Time => DataType::Timestamp(TimeUnit::Millisecond, None),
                Kind::Texts => DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))),
            };
            Field::new(*name, data_type, !not_null)
        })
        .collect();
    Arc::new(Schema::new(fields))
}

/// Rows as a batch.
pub(crate) fn batch(schema: &SchemaRef, rows: &[Vec<Cell>]) -> Result<RecordBatch> {
    let mut arrays = Vec::with_capacity(schema.fields().len());
    for (index, field) in schema.fields().iter().enumerate() {
        let cells = rows.iter().map(|row| row.get(index).unwrap_or(&Cell::Null));
        arrays.push(column(field, cells)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}

fn column<'a>(field: &Field, cells: impl Iterator<Item = &'a Cell>) -> Result<ArrayRef> {
    let wrong = |cell: &Cell| Error::internal(format!("column {} cannot hold {cell:?}", field.name()));
    macro_rules! build {
        ($builder:expr, $($pattern:pat => $value:expr),+) => {{
            let mut builder = $builder;
            for cell in cells {
                match cell {
                    Cell::Null => builder.append_null(),
                    $($pattern => builder.append_value($value),)+
                    other => return Err(wrong(other)),
                }
            }
            Ok(Arc::new(builder.finish()) as ArrayRef)
        }};
    }
    match field.data_type() {
        DataType::Utf8 => build!(StringBuilder::new(), Cell::Text(v) => v),
        DataType::Int64 => build!(Int64Builder::new(), Cell::Long(v) => *v, Cell::Int(v) => i64::from(*v)),
        DataType::Int32 => build!(Int32Builder::new(), Cell::Int(v) => *v),
        DataType::Boolean => build!(BooleanBuilder::new(), Cell::Bool(v) => *v),
        DataType::Timestamp(TimeUnit::Millisecond, None) => {
            build!(TimestampMillisecondBuilder::new(), Cell::Time(v) => *v)
        }
        DataType::List(_) => {
            let mut builder = ListBuilder::new(StringBuilder::new());
            for cell in cells {
                match cell {
                    Cell::Null => builder.append(false),
                    Cell::Texts(values) => {
                        values.iter().for_each(|value| builder.values().append_value(value));
                        builder.append(true);
                    }
                    other => return Err(wrong(other)),
                }
            }
            Ok(Arc::new(builder.finish()))
        }
        other => Err(Error::internal(format!("no cells of type {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_fill_their_columns() {
        let schema = schema(&[("a", Kind::Text, true), ("b", Kind::Long, false), ("c", Kind::Texts, false)]);
        let rows = vec![
            vec![Cell::text("x"), Cell::Long(1), Cell::Texts(vec!["p".into()])],
            vec![Cell::text("y"), Cell::Null, Cell::Null],
        ];
        let made = batch(&schema, &rows).unwrap();
        assert_eq!(made.num_rows(), 2);
        assert_eq!(made.column(1).null_count(), 1);
        // NULL where there cannot be one, and a value of another kind
        assert!(batch(&schema, &[vec![Cell::Null]]).is_err());
        assert!(batch(&schema, &[vec![Cell::Long(1)]]).is_err());
    }
}
