//! `nested_update` and `nested_partial_update`: a table inside an array of rows. Rows keep the order of their key's
//! first occurrence; Java gives hash order.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StructArray, new_null_array};
use arrow::compute::interleave;
use arrow::row::{OwnedRow, Rows};
use indexmap::IndexMap;

use super::elements::{Pick, collection, collection_of, encode, project, structs};
use super::{AggregateFunction, FoldState, Spec};
use crate::error::{Error, Result};
use crate::merge::cell::{Cell, Column};
use crate::spec::{DataField, DataType};

/// What a key with a NULL in it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NullKey {
    Merge,
    Ignore,
    Error,
}

/// Key of the inner table.
#[derive(Debug)]
struct NestedKey {
    fields: Vec<usize>,
    nulls: NullKey,
}

impl NestedKey {
    fn of(spec: &Spec<'_>, fields: &[DataField]) -> Result<Self> {
        let nulls = match spec.text("nested-key-null-strategy").map(str::trim) {
            None => NullKey::Merge,
            Some(text) if text.eq_ignore_ascii_case("merge") => NullKey::Merge,
            Some(text) if text.eq_ignore_ascii_case("ignore") => NullKey::Ignore,
            Some(text) if text.eq_ignore_ascii_case("error") => NullKey::Error,
            Some(text) => {
                return Err(spec.wrong_option(
                    "nested-key-null-strategy",
                    format!("expected merge, ignore or error, found `{text}`"),
                ));
            }
        };
        Ok(Self { fields: nested_fields(spec, "nested-key", fields)?, nulls })
    }

    /// Whether a row takes part.
    fn admits(&self, rows: &StructArray, at: usize, column: &Column<'_>) -> Result<bool> {
        if self.nulls == NullKey::Merge {
            return Ok(true);
        }
        let null = project(rows, &self.fields)?.iter().any(|field| field.is_null(at));
        match self.nulls {
            NullKey::Error if null => Err(Error::invalid("a nested key is NULL")
                .with_code("NestedKeyNull")
                .with_context("column", column.name)),
            _ => Ok(!null),
        }
    }
}

/// The fields that an option names.
fn nested_fields(spec: &Spec<'_>, suffix: &str, fields: &[DataField]) -> Result<Vec<usize>> {
    let Some(text) = spec.text(suffix) else { return Ok(Vec::new()) };
    text.split(',')
        .map(str::trim)
        .map(|name| {
            fields.iter().position(|field| field.name == name).ok_or_else(|| {
                let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                spec.wrong_option(suffix, format!("the rows have no field `{name}`, only {}", known.join(", ")))
            })
        })
        .collect()
}

fn row_fields<'a>(spec: &Spec<'a>) -> Result<&'a [DataField]> {
    match spec.field.data_type() {
        DataType::Array(element) => match &element.data_type {
            DataType::Row(fields) => Ok(fields),
            _ => Err(spec.wrong_type("ARRAY of ROW")),
        },
        _ => Err(spec.wrong_type("ARRAY of ROW")),
    }
}

#[derive(Debug)]
struct NestedUpdate {
    key: Option<NestedKey>,
    sequence: Vec<usize>,
    count_limit: usize,
}

pub(super) fn nested_update(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    let fields = row_fields(spec)?;
    let key = NestedKey::of(spec, fields)?;
    let sequence = nested_fields(spec, "nested-sequence-field", fields)?;
    if key.fields.is_empty() {
        for dependent in ["nested-key-null-strategy", "nested-sequence-field"] {
            if spec.text(dependent).is_some() {
                return Err(spec.wrong_option(dependent, format!("needs '{}'", spec.key("nested-key"))));
            }
        }
    }
    let count_limit = match spec.text("count-limit") {
        None => usize::MAX,
        Some(text) => text
            .trim()
            .parse::<i32>()
            .map(|limit| usize::try_from(limit).unwrap_or(0))
            .map_err(|_| spec.wrong_option("count-limit", format!("expected a number, found `{text}`")))?,
    };
    Ok(Box::new(NestedUpdate { key: (!key.fields.is_empty()).then_some(key), sequence, count_limit }))
}

/// Encoded keys and sequences of the rows of each source.
struct Encoded {
    keys: Vec<Rows>,
    sequences: Option<Vec<Rows>>,
}

impl NestedUpdate {
    fn encode(&self, key: &NestedKey, sources: &[ArrayRef], column: &Column<'_>) -> Result<Encoded> {
        let of = |fields: &[usize]| -> Result<Vec<Rows>> {
            let columns: Vec<Vec<ArrayRef>> =
                sources.iter().map(|source| project(structs(source, column)?, fields)).collect::<Result<_>>()?;
            encode(&columns)
        };
        let sequences = if self.sequence.is_empty() { None } else { Some(of(&self.sequence)?) };
        Ok(Encoded { keys: of(&key.fields)?, sequences })
    }

    /// Upserts the rows of `source` by key.
    fn upsert(
        &self,
        key: &NestedKey,
        (source, elements): (usize, &ArrayRef),
        encoded: &Encoded,
        limited: bool,
        rows: &mut IndexMap<OwnedRow, Pick>,
        column: &Column<'_>,
    ) -> Result<()> {
        let values = structs(elements, column)?;
        for at in 0..values.len() {
            if values.is_null(at) || !key.admits(values, at, column)? {
                continue;
            }
            let owned = encoded.keys[source].row(at).owned();
            let full = limited && rows.len() >= self.count_limit;
            match rows.get_mut(&owned) {
                Some(known) => {
                    let older = encoded
                        .sequences
                        .as_ref()
                        .is_some_and(|sequences| sequences[source].row(at) < sequences[known.0].row(known.1));
                    if !older {
                        *known = (source, at);
                    }
                }
                None if full => {}
                None => {
                    rows.insert(owned, (source, at));
                }
            }
        }
        Ok(())
    }
}

/// Places of the elements that are not NULL.
fn non_null(source: usize, elements: &ArrayRef) -> impl Iterator<Item = Pick> + '_ {
    (0..elements.len()).filter(|&at| elements.is_valid(at)).map(move |at| (source, at))
}

impl AggregateFunction for NestedUpdate {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        let Some(new) = column.elements(&input)? else { return Ok(acc) };
        let old = column.elements(&acc)?;
        let Some(key) = &self.key else {
            let held = old.as_ref().map_or(0, |old| old.len());
            if old.is_some() && held >= self.count_limit {
                return Ok(acc);
            }
            let sources: Vec<ArrayRef> = old.into_iter().chain([new]).collect();
            let last = sources.len() - 1;
            let mut picks: Vec<Pick> = Vec::new();
            for (source, elements) in sources.iter().enumerate() {
                let take = if source == last { self.count_limit - held } else { usize::MAX };
                picks.extend(non_null(source, elements).take(take));
            }
            return collection(column, &sources, &picks);
        };
        let held = old.is_some();
        let sources: Vec<ArrayRef> = old.into_iter().chain([new]).collect();
        let encoded = self.encode(key, &sources, column)?;
        let mut rows = IndexMap::new();
        for (source, elements) in sources.iter().enumerate() {
            let limited = !(held && source == 0);
            self.upsert(key, (source, elements), &encoded, limited, &mut rows, column)?;
        }
        let picks: Vec<Pick> = rows.into_values().collect();
        collection(column, &sources, &picks)
    }

    fn retract(&self, acc: Cell, input: Cell, column: &Column<'_>) -> Result<Option<Cell>> {
        let sources = match (column.elements(&acc)?, column.elements(&input)?) {
            (Some(old), Some(gone)) => [old, gone],
            _ => return Ok(Some(acc)),
        };
        let [old, gone] = &sources;
        let picks: Vec<Pick> = match &self.key {
            None => {
                let all: Vec<Vec<ArrayRef>> = sources
                    .iter()
                    .map(|source| Ok(structs(source, column)?.columns().to_vec()))
                    .collect::<Result<_>>()?;
                let rows = encode(&all)?;
                let gone: HashSet<_> = non_null(1, gone).map(|(source, at)| rows[source].row(at)).collect();
                non_null(0, old).filter(|&(source, at)| !gone.contains(&rows[source].row(at))).collect()
            }
            Some(key) => {
                let encoded = self.encode(key, &sources, column)?;
                let mut rows: IndexMap<OwnedRow, Pick> = IndexMap::new();
                for (source, elements) in sources.iter().enumerate() {
                    let values = structs(elements, column)?;
                    for (_, at) in non_null(source, elements) {
                        if !key.admits(values, at, column)? {
                            continue;
                        }
                        let owned = encoded.keys[source].row(at).owned();
                        if source == 0 {
                            rows.insert(owned, (source, at));
                        } else {
                            rows.shift_remove(&owned);
                        }
                    }
                }
                rows.into_values().collect()
            }
        };
        collection(column, &sources, &picks).map(Some)
    }
}

#[derive(Debug)]
struct NestedPartialUpdate {
    key: NestedKey,
}

pub(super) fn nested_partial_update(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    let fields = row_fields(spec)?;
    let key = NestedKey::of(spec, fields)?;
    if key.fields.is_empty() {
        return Err(spec.wrong_option("nested-key", "nested_partial_update needs a nested key"));
    }
    Ok(Box::new(NestedPartialUpdate { key }))
}

impl AggregateFunction for NestedPartialUpdate {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        let Some(new) = column.elements(&input)? else { return Ok(acc) };
        let sources: Vec<ArrayRef> = column.elements(&acc)?.into_iter().chain([new]).collect();
        let structs: Vec<&StructArray> = sources.iter().map(|source| structs(source, column)).collect::<Result<_>>()?;
        let keys: Vec<Vec<ArrayRef>> =
            structs.iter().map(|rows| project(rows, &self.key.fields)).collect::<Result<_>>()?;
        let keys = encode(&keys)?;
        let Some(width) = structs.first().map(|rows| rows.num_columns()) else { return Ok(acc) };
        // per key: where each field comes from
        let mut merged: IndexMap<OwnedRow, Vec<Option<Pick>>> = IndexMap::new();
        for (source, rows) in structs.iter().enumerate() {
            for at in 0..rows.len() {
                if rows.is_null(at) || !self.key.admits(rows, at, column)? {
                    continue;
                }
                let fields = merged.entry(keys[source].row(at).owned()).or_insert_with(|| vec![None; width]);
                for (field, pick) in rows.columns().iter().zip(fields) {
                    if field.is_valid(at) {
                        *pick = Some((source, at));
                    }
                }
            }
        }
        let Some(fields) = structs.first().map(|rows| rows.fields().clone()) else { return Ok(acc) };
        let mut columns = Vec::with_capacity(width);
        for (number, field) in fields.iter().enumerate() {
            let null = new_null_array(field.data_type(), 1);
            let arrays: Vec<&dyn Array> =
                structs.iter().map(|rows| rows.column(number).as_ref()).chain([null.as_ref()]).collect();
            let nothing = (arrays.len() - 1, 0);
            let picks: Vec<Pick> = merged.values().map(|fields| fields[number].unwrap_or(nothing)).collect();
            columns.push(interleave(&arrays, &picks)?);
        }
        let rows = StructArray::try_new_with_length(fields, columns, None, merged.len())?;
        collection_of(column, Arc::new(rows))
    }
}
