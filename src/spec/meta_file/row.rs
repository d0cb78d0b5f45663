//! One row on its way into a struct.

use std::slice::Iter;

use super::damaged;
use super::table::{Field, Table};
use crate::error::{Error, Result};

/// One value of a row; texts are not yet known to be UTF-8.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Null, or a column the file does not have.
    Null,
    /// Any number.
    Long(i64),
    /// Text or bytes.
    Bytes(&'a [u8]),
    /// Elements of a list.
    List(Vec<Value<'a>>),
    /// Values of a record, in the order of its table.
    Record(Vec<Value<'a>>),
}

impl<'a> Value<'a> {
    /// A number or null.
    pub fn optional(number: Option<impl Into<i64>>) -> Self {
        number.map_or(Self::Null, |number| Self::Long(number.into()))
    }

    /// A text or null.
    pub fn optional_text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, |text| Self::Bytes(text.as_bytes()))
    }

    /// Bytes or null.
    pub fn optional_bytes(bytes: Option<&'a [u8]>) -> Self {
        bytes.map_or(Self::Null, Self::Bytes)
    }

    /// A list of texts.
    pub fn texts(texts: &'a [String]) -> Self {
        Self::List(texts.iter().map(|text| Self::Bytes(text.as_bytes())).collect())
    }
}

/// Hands out the values of a row column after column, in the order of its table. Every error names the column.
pub struct Row<'r, 'a> {
    fields: Iter<'static, Field>,
    values: Iter<'r, Value<'a>>,
}

impl<'r, 'a> Row<'r, 'a> {
    pub(super) fn new(table: &'static Table, values: &'r [Value<'a>]) -> Self {
        Self { fields: table.fields.iter(), values: values.iter() }
    }

    fn next(&mut self) -> Result<(&'static Field, &'r Value<'a>)> {
        match (self.fields.next(), self.values.next()) {
            (Some(field), Some(value)) => Ok((field, value)),
            _ => Err(Error::internal("a metadata row has fewer columns than are asked for")),
        }
    }

    /// The next column by `read`, which gives None for a value of another type.
    fn optional<T>(&mut self, read: impl FnOnce(&'r Value<'a>) -> Option<T>) -> Result<Option<T>> {
        let (field, value) = self.next()?;
        match value {
            Value::Null => Ok(None),
            value => read(value).map(Some).ok_or_else(|| {
                let what = match value {
                    Value::Long(number) => number.to_string(),
                    _ => "a value of another type".to_string(),
                };
                damaged(format!("{what} cannot be in column {}", field.name)).with_context("column", field.name)
            }),
        }
    }

    fn required<T>(&mut self, read: impl FnOnce(&'r Value<'a>) -> Option<T>) -> Result<T> {
        let name = self.fields.as_slice().first().map_or("", |field| field.name);
        self.optional(read)?.ok_or_else(|| damaged("a required value is null").with_context("column", name))
    }

    /// A number that fits `T`.
    pub fn number<T: TryFrom<i64>>(&mut self) -> Result<T> {
        self.required(number)
    }

    /// A number that fits `T`, or null.
    pub fn optional_number<T: TryFrom<i64>>(&mut self) -> Result<Option<T>> {
        self.optional(number)
    }

    /// A text.
    pub fn text(&mut self) -> Result<String> {
        self.required(text)
    }

    /// A text, or null.
    pub fn optional_text(&mut self) -> Result<Option<String>> {
        self.optional(text)
    }

    /// Bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        self.required(bytes)
    }

    /// Bytes, or null.
    pub fn optional_bytes(&mut self) -> Result<Option<&'a [u8]>> {
        self.optional(bytes)
    }

    /// A list of texts.
    pub fn texts(&mut self) -> Result<Vec<String>> {
        self.required(|value| list(value, text))
    }

    /// A list of texts, or null.
    pub fn optional_texts(&mut self) -> Result<Option<Vec<String>>> {
        self.optional(|value| list(value, text))
    }

    /// A list of numbers, or null.
    pub fn optional_numbers<T: TryFrom<i64>>(&mut self) -> Result<Option<Vec<T>>> {
        self.optional(|value| list(value, number))
    }

    /// A list of numbers and nulls, or null.
    pub fn optional_nullable_longs(&mut self) -> Result<Option<Vec<Option<i64>>>> {
        self.optional(|value| {
            list(value, |element| match element {
                Value::Null => Some(None),
                Value::Long(number) => Some(Some(*number)),
                _ => None,
            })
        })
    }

    /// A record, whose columns are those of `table`.
    pub fn record(&mut self, table: &'static Table) -> Result<Row<'r, 'a>> {
        self.required(|value| record(value, table))
    }

    /// A record, or null.
    pub fn optional_record(&mut self, table: &'static Table) -> Result<Option<Row<'r, 'a>>> {
        self.optional(|value| record(value, table))
    }

    /// A list of records, or null. Null elements are left out.
    pub fn optional_records(&mut self, table: &'static Table) -> Result<Option<Vec<Row<'r, 'a>>>> {
        self.optional(|value| match value {
            Value::List(elements) => {
                elements.iter().filter(|element| !matches!(element, Value::Null)).map(|e| record(e, table)).collect()
            }
            _ => None,
        })
    }
}

fn number<T: TryFrom<i64>>(value: &Value<'_>) -> Option<T> {
    match value {
        Value::Long(number) => T::try_from(*number).ok(),
        _ => None,
    }
}

fn bytes<'a>(value: &Value<'a>) -> Option<&'a [u8]> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn text(value: &Value<'_>) -> Option<String> {
    std::str::from_utf8(bytes(value)?).ok().map(str::to_string)
}

fn list<'r, 'a, T>(value: &'r Value<'a>, read: impl FnMut(&'r Value<'a>) -> Option<T>) -> Option<Vec<T>> {
    match value {
        Value::List(elements) => elements.iter().map(read).collect(),
        _ => None,
    }
}

fn record<'r, 'a>(value: &'r Value<'a>, table: &'static Table) -> Option<Row<'r, 'a>> {
    match value {
        Value::Record(values) => Some(Row::new(table, values)),
        _ => None,
    }
}
