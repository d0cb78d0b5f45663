//! `merge_map` and `merge_map_with_keytime`. Keys keep the order of their first occurrence; Java gives hash order.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::row::OwnedRow;
use indexmap::IndexMap;

use super::elements::{Pick, collection, encode, project, structs};
use super::{AggregateFunction, FoldState, Spec};
use crate::error::{Error, Result};
use crate::merge::cell::{Cell, Column};
use crate::spec::DataType;

/// Entries of two maps, and their encoded keys.
fn encode_keys(sources: &[ArrayRef], column: &Column<'_>) -> Result<Vec<arrow::row::Rows>> {
    let keys: Vec<Vec<ArrayRef>> =
        sources.iter().map(|source| project(structs(source, column)?, &[0])).collect::<Result<_>>()?;
    encode(&keys)
}

#[derive(Debug)]
struct MergeMap;

pub(super) fn merge_map(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    if !matches!(spec.field.data_type(), DataType::Map(..)) {
        return Err(spec.wrong_type("MAP"));
    }
    Ok(Box::new(MergeMap))
}

impl AggregateFunction for MergeMap {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        let sources = match (column.elements(&acc)?, column.elements(&input)?) {
            (_, None) => return Ok(acc),
            (None, _) => return Ok(input),
            (Some(old), Some(new)) => [old, new],
        };
        let keys = encode_keys(&sources, column)?;
        let mut entries: IndexMap<OwnedRow, Pick> = IndexMap::new();
        for (source, keys) in keys.iter().enumerate() {
            for (at, key) in keys.iter().enumerate() {
                entries.insert(key.owned(), (source, at));
            }
        }
        let picks: Vec<Pick> = entries.into_values().collect();
        collection(column, &sources, &picks)
    }

    fn retract(&self, acc: Cell, input: Cell, column: &Column<'_>) -> Result<Option<Cell>> {
        let sources = match (column.elements(&acc)?, column.elements(&input)?) {
            (Some(old), Some(gone)) if !gone.is_empty() => [old, gone],
            _ => return Ok(Some(acc)),
        };
        let keys = encode_keys(&sources, column)?;
        let [old, gone] = keys.as_slice() else { return Ok(Some(acc)) };
        let gone: HashSet<_> = gone.iter().collect();
        let picks: Vec<Pick> =
            old.iter().enumerate().filter(|(_, key)| !gone.contains(key)).map(|(at, _)| (0, at)).collect();
        collection(column, &sources, &picks).map(Some)
    }
}

/// Each key keeps the value with the larger time.
#[derive(Debug)]
struct MergeMapWithKeyTime {
    /// Place of the time in the value.
    time: usize,
}

pub(super) fn merge_map_with_keytime(spec: &Spec<'_>) -> Result<Box<dyn AggregateFunction>> {
    let DataType::Map(_, value) = spec.field.data_type() else { return Err(spec.wrong_type("MAP of ROW")) };
    let DataType::Row(fields) = &value.data_type else { return Err(spec.wrong_type("MAP of ROW")) };
    let time = match spec.text("ts-field") {
        Some(name) => fields
            .iter()
            .position(|field| field.name == name)
            .ok_or_else(|| spec.wrong_option("ts-field", format!("the values have no field `{name}`")))?,
        None => fields.len().saturating_sub(1),
    };
    let textual = |at: usize| {
        fields.get(at).is_some_and(|field| matches!(field.data_type(), DataType::Varchar(_) | DataType::Char(_)))
    };
    if fields.len() < 2 || !textual(time) {
        return Err(spec.wrong_type("MAP of ROW with at least two fields and a STRING time"));
    }
    Ok(Box::new(MergeMapWithKeyTime { time }))
}

impl AggregateFunction for MergeMapWithKeyTime {
    fn agg(&self, acc: Cell, input: Cell, column: &Column<'_>, _state: &mut FoldState) -> Result<Cell> {
        let sources = match (column.elements(&acc)?, column.elements(&input)?) {
            (_, None) => return Ok(acc),
            (None, _) => return Ok(input),
            (Some(old), Some(new)) => [old, new],
        };
        let keys = encode_keys(&sources, column)?;
        let mut values = Vec::new();
        let mut times = Vec::new();
        for source in &sources {
            let rows = project(structs(source, column)?, &[1])?.pop();
            let rows = rows.ok_or_else(|| Error::internal("a map has keys and values"))?;
            let time = project(structs(&rows, column)?, &[self.time])?.pop();
            times.push(time.ok_or_else(|| Error::internal("a map value has a time"))?);
            values.push(rows);
        }
        let is_null = |pick: &Pick| values[pick.0].is_null(pick.1);
        let time_of = |pick: &Pick| -> Result<Option<&str>> {
            let times = times[pick.0].as_string_opt::<i32>().ok_or_else(|| Error::internal("times are text"))?;
            Ok(times.is_valid(pick.1).then(|| times.value(pick.1)))
        };
        let mut entries: IndexMap<OwnedRow, Pick> = IndexMap::new();
        let [old_keys, new_keys] = keys.as_slice() else { return Ok(acc) };
        for (at, key) in old_keys.iter().enumerate() {
            entries.insert(key.owned(), (0, at));
        }
        for (at, key) in new_keys.iter().enumerate() {
            let (key, new) = (key.owned(), (1, at));
            if is_null(&new) {
                entries.shift_remove(&key);
                continue;
            }
            let Some(new_time) = time_of(&new)? else { continue };
            let old_time = match entries.get(&key) {
                Some(old) if !is_null(old) => time_of(old)?,
                _ => None,
            };
            if old_time.is_none_or(|old_time| new_time.as_bytes() > old_time.as_bytes()) {
                entries.insert(key, new);
            }
        }
        let picks: Vec<Pick> = entries.into_values().collect();
        collection(column, &sources, &picks)
    }
}
