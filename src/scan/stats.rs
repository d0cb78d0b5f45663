//! Bounds of a column in a file, as far as they may be believed.
//!
//! The rules are those of the format: columns are found by field id, in the dense store of the file's own schema; a
//! column that came later is all null; bounds of another type are used only where widening an integer makes them exact;
//! cut bounds, bounds of floats, blank-padded text and cut timestamps are widened or forgotten. A NULL bound means
//! unknown.

use crate::spec::{DataField, DataFileMeta, DataType, Datum, SimpleStats, TableSchema};

/// What is known of a column in one file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bounds {
    /// Not greater than any value, or NULL when unknown.
    pub(crate) min: Datum,
    /// Not less than any value, or NULL when unknown.
    pub(crate) max: Datum,
    /// Nulls, None when unknown.
    pub(crate) nulls: Option<u64>,
}

impl Bounds {
    /// Nothing known.
    pub(crate) fn unknown() -> Self {
        Self { min: Datum::Null, max: Datum::Null, nulls: None }
    }

    fn all_null(rows: u64) -> Self {
        Self { min: Datum::Null, max: Datum::Null, nulls: Some(rows) }
    }
}

/// Bounds of a table's column by the file's value statistics.
pub(crate) fn value_bounds(file: &DataFileMeta, file_schema: &TableSchema, field: &DataField) -> Bounds {
    let Some(rows) = rows_of(file) else { return Bounds::unknown() };
    let Some(file_field) = file_schema.field_by_id(field.id) else {
        return Bounds::all_null(rows);
    };
    let Some((position, width)) = value_position(file, file_schema, file_field) else { return Bounds::unknown() };
    read(&file.value_stats, position, width, rows, &file.file_name, file_field, field)
}

/// Bounds of a key column by the file's key statistics or, for the first key column, by its smallest and largest key.
pub(crate) fn key_bounds(
    file: &DataFileMeta,
    file_schema: &TableSchema,
    field: &DataField,
    sorted_by_key: bool,
) -> Bounds {
    let Some(rows) = rows_of(file) else { return Bounds::unknown() };
    let Ok(keys) = file_schema.trimmed_primary_key() else { return Bounds::unknown() };
    let position =
        keys.iter().position(|index| file_schema.fields.get(*index).is_some_and(|known| known.id == field.id));
    let Some(position) = position else { return Bounds::unknown() };
    let Some(file_field) = file_schema.field_by_id(field.id) else { return Bounds::unknown() };
    let bounds = read(&file.key_stats, position, keys.len(), rows, &file.file_name, file_field, field);
    if position != 0 || !sorted_by_key || (!bounds.min.is_null() && !bounds.max.is_null()) {
        return bounds;
    }
    let width = Some(keys.len());
    if file.min_key.arity().ok() != width || file.max_key.arity().ok() != width {
        return bounds;
    }
    let data_type = file_field.data_type();
    let (Ok(min), Ok(max)) = (file.min_key.get(0, data_type), file.max_key.get(0, data_type)) else { return bounds };
    // nulls stand first among keys: a null minimum says nothing of the values
    if min.is_null() || max.is_null() {
        return bounds;
    }
    settle(min, max, bounds.nulls, rows, &file.file_name, file_field, field)
}

/// Bounds of a partition column over the entries of a manifest.
pub(crate) fn partition_bounds(
    stats: &SimpleStats,
    position: usize,
    width: usize,
    rows: Option<u64>,
    field: &DataField,
) -> Bounds {
    match rows {
        Some(rows) => read(stats, position, width, rows, "", field, field),
        None => Bounds::unknown(),
    }
}

fn rows_of(file: &DataFileMeta) -> Option<u64> {
    // a file without rows is not written: it is read, so that a wrong count shows
    u64::try_from(file.row_count).ok().filter(|rows| *rows > 0)
}

/// Where a column's value statistics stand and how many columns have some.
fn value_position(file: &DataFileMeta, file_schema: &TableSchema, field: &DataField) -> Option<(usize, usize)> {
    if let Some(columns) = &file.value_stats_cols {
        return Some((columns.iter().position(|name| *name == field.name)?, columns.len()));
    }
    let Some(written) = &file.write_cols else {
        return Some((file_schema.fields.iter().position(|known| known.id == field.id)?, file_schema.fields.len()));
    };
    // only where the order of the list and that of the schema agree is it certain which column is meant
    let in_schema_order: Vec<&str> = file_schema
        .fields
        .iter()
        .map(|known| known.name.as_str())
        .filter(|name| written.iter().any(|own| own == name))
        .collect();
    if in_schema_order.len() != written.len() || in_schema_order.iter().zip(written).any(|(one, other)| one != other) {
        return None;
    }
    Some((written.iter().position(|name| *name == field.name)?, written.len()))
}

fn read(
    stats: &SimpleStats,
    position: usize,
    width: usize,
    rows: u64,
    file_name: &str,
    file_field: &DataField,
    field: &DataField,
) -> Bounds {
    // counts of other columns than the bounds are of: neither can be told apart from damage
    if !stats.null_counts.is_empty() && stats.null_counts.len() != width {
        return Bounds::unknown();
    }
    let nulls = stats.null_counts.get(position).copied().flatten();
    let nulls = nulls.and_then(|count| u64::try_from(count).ok()).filter(|count| *count <= rows);
    let bound = |row: &crate::spec::BinaryRow| match row.arity() {
        Ok(arity) if arity == width => row.get(position, file_field.data_type()).unwrap_or(Datum::Null),
        _ => Datum::Null,
    };
    let (min, max) = (bound(&stats.min_values), bound(&stats.max_values));
    settle(min, max, nulls, rows, file_name, file_field, field)
}

/// Brings bounds of the file's type to bounds of the table's type that hold for every value as it is read.
fn settle(
    min: Datum,
    max: Datum,
    nulls: Option<u64>,
    rows: u64,
    file_name: &str,
    file_field: &DataField,
    field: &DataField,
) -> Bounds {
    if nulls == Some(rows) && (!min.is_null() || !max.is_null()) {
        // one of the two counts is wrong
        return Bounds::unknown();
    }
    if nulls == Some(rows) {
        // whatever the types: a null stays null
        return Bounds::all_null(rows);
    }
    let (from, to) = (file_field.data_type(), field.data_type());
    if min.is_null() || max.is_null() {
        let nulls = if from == to || widens(from, to) { nulls } else { None };
        return Bounds { min: Datum::Null, max: Datum::Null, nulls };
    }
    if from == to {
        let (min, max) = guard(min, max, to, file_name);
        return Bounds { min, max, nulls };
    }
    if !widens(from, to) {
        return Bounds::unknown();
    }
    match (widen(&min, to), widen(&max, to)) {
        (Some(min), Some(max)) => Bounds { min, max, nulls },
        _ => Bounds { min: Datum::Null, max: Datum::Null, nulls },
    }
}

fn rank(data_type: &DataType) -> Option<u8> {
    Some(match data_type {
        DataType::TinyInt => 1,
        DataType::SmallInt => 2,
        DataType::Int => 3,
        DataType::BigInt => 4,
        _ => return None,
    })
}

/// Whether every value of `from` is a value of `to`, both integers.
pub(crate) fn widens(from: &DataType, to: &DataType) -> bool {
    match (rank(from), rank(to)) {
        (Some(from), Some(to)) => from < to,
        _ => false,
    }
}

/// An integer in a wider type.
pub(crate) fn widen(datum: &Datum, to: &DataType) -> Option<Datum> {
    let value = match datum {
        Datum::TinyInt(value) => i64::from(*value),
        Datum::SmallInt(value) => i64::from(*value),
        Datum::Int(value) => i64::from(*value),
        Datum::BigInt(value) => *value,
        _ => return None,
    };
    integer(value, to)
}

/// An integer as a value of an integer type, when it fits.
pub(crate) fn integer(value: i64, to: &DataType) -> Option<Datum> {
    Some(match to {
        DataType::TinyInt => Datum::TinyInt(i8::try_from(value).ok()?),
        DataType::SmallInt => Datum::SmallInt(i16::try_from(value).ok()?),
        DataType::Int => Datum::Int(i32::try_from(value).ok()?),
        DataType::BigInt => Datum::BigInt(value),
        _ => return None,
    })
}

/// Widens or forgets bounds that writers are known to get wrong.
fn guard(min: Datum, max: Datum, data_type: &DataType, file_name: &str) -> (Datum, Datum) {
    let orc = file_name.split('.').skip(1).any(|part| part.eq_ignore_ascii_case("orc"));
    match (min, max, data_type) {
        (Datum::String(min), Datum::String(max), _) => {
            let min = if matches!(data_type, DataType::Char(_)) { unpadded_lower_bound(&min) } else { min };
            // a lone surrogate, made by cutting and incrementing, is stored as '?': too small
            let max = if max.ends_with('?') { Datum::Null } else { Datum::String(max) };
            (Datum::String(min), max)
        }
        // zeros of both signs are one value where bounds are compared, as they are where rows are
        (Datum::Float(min), Datum::Float(max), _) => {
            let number = |bound: f32| if bound.is_nan() { Datum::Null } else { Datum::Float(bound) };
            (number(min), number(max))
        }
        (Datum::Double(min), Datum::Double(max), _) => {
            let number = |bound: f64| if bound.is_nan() { Datum::Null } else { Datum::Double(bound) };
            (number(min), number(max))
        }
        (Datum::Timestamp(millis, nanos), Datum::Timestamp(max_millis, max_nanos), _) => {
            let precision = match data_type {
                DataType::Timestamp(precision) | DataType::TimestampLtz(precision) => *precision,
                _ => 9,
            };
            timestamps((millis, nanos), (max_millis, max_nanos), precision, orc)
        }
        (min, max, _) => (min, max),
    }
}

/// Blank-padded lower bound of text that is read without its padding. What stands below a blank sorts before the
/// padding but after the end of the text, so the bound stops there.
fn unpadded_lower_bound(padded: &str) -> String {
    let text = padded.trim_end_matches(' ');
    text.chars().take_while(|letter| *letter >= ' ').collect()
}

fn timestamps(min: (i64, i32), max: (i64, i32), precision: u8, orc: bool) -> (Datum, Datum) {
    let (mut max_millis, mut max_nanos) = max;
    if precision > 6 {
        // pypaimon cuts bounds to microseconds
        max_nanos = max_nanos.saturating_add(999);
        if max_nanos > 999_999 {
            max_nanos -= 1_000_000;
            max_millis = max_millis.saturating_add(1);
        }
    }
    if orc && (-1000..1000).contains(&max_millis) {
        // ORC reads fractions of the last second before 1970 one second late
        (max_millis, max_nanos) = (999, 999_999);
    }
    let fits =
        |millis: i64| precision <= 6 || millis.checked_mul(1_000_000).is_some_and(|n| n.checked_add(999_999).is_some());
    let fits = |millis: i64| {
        fits(millis) && (precision <= 3 || millis.checked_mul(1000).is_some_and(|n| n.checked_add(999).is_some()))
    };
    let bound = |millis, nanos| if fits(millis) { Datum::Timestamp(millis, nanos) } else { Datum::Null };
    (bound(min.0, min.1), bound(max_millis, max_nanos))
}

#[cfg(test)]
mod tests;
