//! `paimon_diff` between neighbouring snapshots of a table, against the difference of their expected rows.

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::Fields;
use lakepin::arrow;
use serde_json::Value;

use super::reads::{Reader, cut, quoted};
use super::rows::{of_batches, of_lines};
use super::{explained, schemas};

/// Pairs of a table that are compared at most.
const MOST: usize = 12;

/// Compares pairs of snapshots that have the same columns; gives their number.
pub async fn check(reader: &Reader, files: &[String]) -> Result<usize, String> {
    let number = |file: &String| file.strip_prefix("snapshot-")?.strip_suffix(".jsonl")?.parse::<i64>().ok();
    let mut ids: Vec<i64> = files.iter().filter_map(number).collect();
    ids.sort_unstable();
    let mut compared = 0;
    for pair in ids.windows(2).take(MOST) {
        let [from, to] = pair else { continue };
        compared += usize::from(check_pair(reader, *from, *to).await?);
    }
    Ok(compared)
}

/// False where the two cannot be compared line by line.
async fn check_pair(reader: &Reader, from: i64, to: i64) -> Result<bool, String> {
    let (before, after) = (lines(reader, from)?, lines(reader, to)?);
    let names = |line: &Value| line.as_object().map(|o| o.keys().cloned().collect::<BTreeSet<_>>());
    let known: BTreeSet<_> = before.iter().chain(&after).map(names).collect();
    if known.len() != 1 {
        return Ok(false);
    }
    let table = quoted(&reader.table);
    // a column of a name need not be the same one
    if schemas::of_snapshot(&reader.folder, from)? != schemas::of_snapshot(&reader.folder, to)? {
        return Ok(false);
    }
    let answer = match reader.ask(&format!("SELECT * FROM {table} VERSION AS OF {to} LIMIT 0")).await {
        Ok(answer) => answer,
        Err(error) => return refused(reader, from, to, &error),
    };
    // arrays of no order are no part of what is compared
    let loose = explained::as_sets(reader.side, &reader.table);
    let all = answer.schema.fields();
    let fields: Fields = all.iter().filter(|field| !loose.contains(&field.name().as_str())).cloned().collect();
    if known.iter().flatten().flatten().count() != all.len() {
        return Ok(false);
    }
    let keys = primary_keys(reader, &fields)?;
    let list =
        fields.iter().map(|field| format!("'{}'", field.name().replace('\'', "''"))).collect::<Vec<_>>().join(", ");
    let call = format!("paimon_diff('{}', from => {from}, to => {to}, columns => ARRAY[{list}])", reader.table);
    let shown = if keys.is_empty() { &fields } else { &keys };
    let columns = shown.iter().map(|field| quoted(field.name())).collect::<Vec<_>>().join(", ");
    let copies = if keys.is_empty() { ", copies" } else { "" };
    let sql = format!("SELECT op, {columns}{copies} FROM {call}");
    let read = match reader.ask(&sql).await {
        Ok(answer) => of_batches(&answer.batches, &[]),
        Err(error) => return refused(reader, from, to, &error).map_err(|message| format!("{sql}\n  {message}")),
    };
    let mut expected =
        if keys.is_empty() { of_bags(&before, &after, &fields)? } else { by_key(&before, &after, &fields, &keys)? };
    expected.sort();
    if expected == read {
        return Ok(true);
    }
    Err(format!("{sql}\n  expected {expected:?}\n  read     {read:?}"))
}

/// False where one of the two is refused, as listed.
fn refused(reader: &Reader, from: i64, to: i64, error: &lakepin::Error) -> Result<bool, String> {
    let listed =
        |id: i64| explained::refusal(reader.side, &reader.table, &format!("snapshot-{id}.jsonl"), error).map(|_| false);
    listed(from).or_else(|_| listed(to))
}

fn lines(reader: &Reader, id: i64) -> Result<Vec<Value>, String> {
    let file = format!("snapshot-{id}.jsonl");
    let mut lines = reader.lines(&file)?;
    if let Some(rule) = explained::difference(reader.side, &reader.table, &file) {
        rule.correct(&mut lines, reader, &file)?;
    }
    Ok(lines)
}

/// Key columns by the newest schema.
fn primary_keys(reader: &Reader, fields: &Fields) -> Result<Fields, String> {
    let schema = schemas::newest(&reader.folder)?;
    let keys = schema["primaryKeys"].as_array().cloned().unwrap_or_default();
    let found = |key: &Value| fields.iter().find(|field| Some(field.name().as_str()) == key.as_str()).cloned();
    keys.iter().map(|key| found(key).ok_or_else(|| format!("no key column {key}"))).collect()
}

/// The text of one row.
fn text(line: &Value, fields: &Fields) -> Result<String, String> {
    let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    Ok(of_lines(cut(std::slice::from_ref(line), &names).iter(), fields, &[])?.concat())
}

fn by_key(before: &[Value], after: &[Value], fields: &Fields, keys: &Fields) -> Result<Vec<String>, String> {
    let of = |lines: &[Value]| -> Result<BTreeMap<String, String>, String> {
        lines.iter().map(|line| Ok((text(line, keys)?, text(line, fields)?))).collect()
    };
    let (before, after) = (of(before)?, of(after)?);
    let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let op = |key: &String| match (before.get(key), after.get(key)) {
        (None, _) => Some("INSERT"),
        (_, None) => Some("DELETE"),
        (old, new) => (old != new).then_some("UPDATE"),
    };
    Ok(all.into_iter().filter_map(|key| Some(format!("op={:?}|{key}", op(key)?))).collect())
}

fn of_bags(before: &[Value], after: &[Value], fields: &Fields) -> Result<Vec<String>, String> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for (lines, sign) in [(before, -1), (after, 1)] {
        for line in lines {
            *counts.entry(text(line, fields)?).or_default() += sign;
        }
    }
    let changed = counts.into_iter().filter(|(_, count)| *count != 0);
    let op = |count: i64| if count > 0 { "INSERT" } else { "DELETE" };
    Ok(changed.map(|(row, count)| format!("op={:?}|{row}|copies={}", op(count), count.abs())).collect())
}
