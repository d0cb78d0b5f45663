//! The key that is asked for: values of the primary key, in its types.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType as ArrowType;
use datafusion::common::Column;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, lit};

use crate::error::{Error, Result};
use crate::read::KeyMatch;
use crate::scan::scalar_to_datum;
use crate::snapshot::Pin;
use crate::snapshot::nearest::known_names;
use crate::spec::arrow_types::arrow_type;
use crate::spec::binary_row::RowForm;
use crate::spec::{BinaryRow, DataField, DataType, Datum, TableSchema};

/// Values of the primary key, in its order; those of partition columns may be left out.
#[derive(Debug, Clone)]
pub struct Key {
    values: Vec<(usize, String, ScalarValue)>,
}

impl Key {
    /// A key from its values in the order of the primary key, with or without those of partition columns; or from one
    /// text, `dt=2026-04-16, pay_id=P1001`.
    ///
    /// # Errors
    /// A table without primary key; columns that are not of it, too few of them, values that are none of their types.
    pub fn try_new(pin: &Pin, given: &[ScalarValue]) -> Result<Self> {
        let schema = &pin.schema;
        if !schema.is_primary_key_table() {
            return Err(Error::unsupported("a row of a table without primary key has no history")
                .with_code("NoPrimaryKey")
                .with_context("table", pin.table.name())
                .with_hint("compare two snapshots with paimon_diff, or ask t$commit_files what each commit added"));
        }
        let all: Vec<&str> = schema.primary_keys.iter().map(String::as_str).collect();
        let trimmed: Vec<&str> = all.iter().copied().filter(|name| !is_partition(schema, name)).collect();
        let named = match given {
            [one] => one.try_as_str().flatten().and_then(named_values),
            _ => None,
        };
        let pairs: Vec<(String, ScalarValue)> =
            match named.filter(|pairs| !is_lone_text(schema) || pairs.iter().any(|(name, _)| is_key(schema, name))) {
                Some(pairs) => {
                    return Self::of_columns(
                        pin,
                        pairs.into_iter().map(|(name, value)| (name, ScalarValue::Utf8(Some(value)))).collect(),
                    );
                }
                None if given.len() == all.len() => owned(&all, given),
                None if given.len() == trimmed.len() => owned(&trimmed, given),
                None => {
                    let given = given.len();
                    return Err(bad(pin, format!("the key has {} columns, {given} values were given", all.len())));
                }
            };
        Self::of_columns(pin, pairs)
    }

    /// A key from values by column, those of partition columns as far as they are known.
    ///
    /// # Errors
    /// As [`Self::try_new`].
    pub fn of_columns(pin: &Pin, given: Vec<(String, ScalarValue)>) -> Result<Self> {
        let schema = &pin.schema;
        let mut values: Vec<(usize, String, ScalarValue)> = Vec::new();
        for (name, value) in given {
            let all = || schema.primary_keys.iter();
            let column = all().find(|known| **known == name);
            let column = column.or_else(|| all().find(|known| known.eq_ignore_ascii_case(&name)));
            let column = column.ok_or_else(|| wrong(schema, &name))?;
            if values.iter().any(|(_, known, _)| known == column) {
                return Err(bad(pin, format!("column {column} is given twice")));
            }
            let index = schema.field_index(column).ok_or_else(|| wrong(schema, column))?;
            let field = schema.fields.get(index).ok_or_else(|| wrong(schema, column))?;
            values.push((index, column.clone(), typed(pin, field, &value)?));
        }
        let given = |name: &String| values.iter().any(|(_, known, _)| known == name);
        if let Some(missing) = schema.primary_keys.iter().find(|name| !is_partition(schema, name) && !given(name)) {
            return Err(bad(pin, format!("column {missing} of the key is missing")));
        }
        Ok(Self { values })
    }

    /// The conditions of having it; without those on partitions when other partitions are searched.
    pub fn filters(&self, schema: &TableSchema, partitions: bool) -> Vec<Expr> {
        let wanted = self.values.iter().filter(|(_, name, _)| partitions || !is_partition(schema, name));
        wanted.map(|(_, name, value)| Expr::Column(Column::from_name(name)).eq(lit(value.clone()))).collect()
    }

    /// The same in whatever partition.
    pub(super) fn of_any_partition(&self, schema: &TableSchema) -> Self {
        let own = self.values.iter().filter(|(_, name, _)| !is_partition(schema, name));
        Self { values: own.cloned().collect() }
    }

    /// What rows of a file have it; partitions are the files' own.
    ///
    /// # Errors
    /// None that can be met.
    pub fn matcher(&self, schema: &TableSchema) -> Result<KeyMatch> {
        let own = self.values.iter().filter(|(_, name, _)| !is_partition(schema, name));
        let values =
            own.map(|(index, _, value)| Ok((*index, value.to_array()?))).collect::<Result<Vec<(usize, ArrayRef)>>>()?;
        Ok(KeyMatch::new(values))
    }

    /// The partition it is of, where its values are given.
    ///
    /// # Errors
    /// Values that are none of the partition's types.
    pub(super) fn partition(&self, schema: &TableSchema) -> Result<Option<BinaryRow>> {
        let mut values: Vec<(Datum, DataType)> = Vec::new();
        for index in schema.partition_indices()? {
            let given = self.values.iter().find(|(own, ..)| *own == index).map(|(_, _, value)| value);
            let (Some(value), Some(field)) = (given, schema.fields.get(index)) else { return Ok(None) };
            let Some(datum) = scalar_to_datum(value, field.data_type())? else { return Ok(None) };
            values.push((datum, field.data_type().clone()));
        }
        let pairs: Vec<(&Datum, &DataType)> = values.iter().map(|(value, of)| (value, of)).collect();
        if pairs.is_empty() {
            Ok(Some(BinaryRow::empty()))
        } else {
            BinaryRow::encode(&pairs, RowForm::Projected).map(Some)
        }
    }

    /// `dt=2026-04-16, pay_id=P1001`.
    pub fn text(&self) -> String {
        let parts: Vec<String> = self.values.iter().map(|(_, name, value)| format!("{name}={value}")).collect();
        parts.join(", ")
    }
}

fn owned(names: &[&str], values: &[ScalarValue]) -> Vec<(String, ScalarValue)> {
    names.iter().map(|name| (*name).to_string()).zip(values.iter().cloned()).collect()
}

/// `a=1, b='x, y'` as pairs.
fn named_values(text: &str) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, left) = match after.strip_prefix('\'') {
            Some(quoted) => {
                let end = closing(quoted)?;
                let (value, left) = quoted.split_at(end);
                (value.replace("''", "'"), left.get(1..).unwrap_or_default().trim_start())
            }
            None => {
                let end = after.find(',').unwrap_or(after.len());
                let (value, left) = after.split_at(end);
                (value.trim().to_string(), left)
            }
        };
        pairs.push((name.trim().to_string(), value));
        if left.is_empty() {
            return Some(pairs);
        }
        rest = left.strip_prefix(',')?;
    }
}

/// Where a quoted value ends; a quote inside is written twice.
fn closing(text: &str) -> Option<usize> {
    let mut quotes = text.match_indices('\'').map(|(at, _)| at).peekable();
    while let Some(at) = quotes.next() {
        if quotes.peek() == Some(&(at + 1)) {
            quotes.next();
        } else {
            return Some(at);
        }
    }
    None
}

fn is_partition(schema: &TableSchema, name: &str) -> bool {
    schema.partition_keys.iter().any(|key| key == name)
}

/// Whether the key is one text, which may hold any sign.
fn is_lone_text(schema: &TableSchema) -> bool {
    let [only] = schema.primary_keys.as_slice() else { return false };
    let field = schema.field_index(only).and_then(|index| schema.fields.get(index));
    field.is_some_and(|field| arrow_type(field.data_type()) == ArrowType::Utf8)
}

fn is_key(schema: &TableSchema, name: &str) -> bool {
    schema.primary_keys.iter().any(|key| key.eq_ignore_ascii_case(name))
}

fn wrong(schema: &TableSchema, name: &str) -> Error {
    Error::invalid(format!("'{name}' is no column of the key"))
        .with_code("ColumnNotFound")
        .with_context("parameter", "key")
        .with_hint(known_names("key columns", name, schema.primary_keys.iter().map(String::as_str)))
}

fn bad(pin: &Pin, message: String) -> Error {
    let names = pin.schema.primary_keys.join(", ");
    Error::invalid(message).with_code("BadArgument").with_context("parameter", "key").with_hint(format!(
        "write the values of ({names}) in this order, or as text: '{}=…'; partition columns may be left out",
        pin.schema.primary_keys.join("=…, ")
    ))
}

/// A value in the type of its column, exactly.
fn typed(pin: &Pin, field: &DataField, value: &ScalarValue) -> Result<ScalarValue> {
    let wanted = arrow_type(field.data_type());
    let no = || {
        let error = bad(pin, format!("{value} is no value of column {}", field.name));
        error.with_context("type", field.data_type())
    };
    if value.is_null() {
        return Err(bad(pin, format!("column {} of a key is never NULL", field.name)));
    }
    let has_zone = matches!(value.data_type(), ArrowType::Timestamp(_, Some(_)));
    if matches!(wanted, ArrowType::Timestamp(_, Some(_))) && !has_zone {
        return Err(bad(pin, format!("column {} holds instants, and {value} does not tell its zone", field.name)));
    }
    let cast = value.cast_to(&wanted).map_err(|_| no())?;
    // digits that the type does not keep would make another key of it
    let is_text = value.try_as_str().is_some();
    if !is_text && cast.cast_to(&value.data_type()).map_err(|_| no())? != *value {
        return Err(no());
    }
    Ok(cast)
}
