//! Two snapshots of a random table compared: by `paimon_diff`, and by folding both.

use std::collections::BTreeMap;

use lakepin::sql::Session;
use lakepin::testing::naive::Value;

use super::column::Col;
use super::model::{Model, State};
use super::{asked, same};
use crate::random::Random;

/// How many comparisons were made, and how many of them left files out.
#[derive(Debug, Default, Clone, Copy)]
pub struct Compared {
    pub all: usize,
    pub reduced: usize,
}

/// Compares pairs of the table's snapshots, in both directions.
pub async fn check(s: &Session, model: &Model, random: &mut Random) -> Result<Compared, String> {
    let mut compared = Compared::default();
    for _ in 0..3 {
        let one = random.below(model.states.len() as u64) as usize;
        let other = random.below(model.states.len() as u64) as usize;
        let (from, to) = (&model.states[one], &model.states[other]);
        let call = format!("paimon_diff('t', from => {}, to => {})", from.id, to.id);
        let mut expected = difference(model, from, to);
        expected.sort();
        let mut read = asked(s, &format!("SELECT * FROM {call}")).await?;
        read.sort();
        same(&call, &expected, &read)?;
        let plan = asked(s, &format!("EXPLAIN SELECT * FROM {call}")).await?.join("\n");
        compared.all += 1;
        compared.reduced += usize::from(plan.contains("comparison "));
        if one < other {
            news(s, model, from, to).await?;
        }
    }
    Ok(compared)
}

/// Rows under a newer schema: a column that came later is NULL before, one of another type is cast.
fn brought_forward(state: &State, columns: &[Col]) -> Vec<Vec<Value>> {
    let cell = |row: &Vec<Value>, column: &Col| match state.columns.iter().position(|known| known.id == column.id) {
        Some(at) => state.columns[at].cast(&row[at], column),
        None => Value::Null,
    };
    state.rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect()
}

fn difference(model: &Model, from: &State, to: &State) -> Vec<String> {
    let columns = if from.id > to.id { &from.columns } else { &to.columns };
    let (before, after) = (brought_forward(from, columns), brought_forward(to, columns));
    let text = |row: &[Value]| columns.iter().zip(row).map(|(column, value)| column.shown(value)).collect::<Vec<_>>();
    if model.key.is_empty() {
        let mut counts: BTreeMap<Vec<String>, i64> = BTreeMap::new();
        after.iter().for_each(|row| *counts.entry(text(row)).or_default() += 1);
        before.iter().for_each(|row| *counts.entry(text(row)).or_default() -= 1);
        return counts
            .into_iter()
            .filter(|(_, count)| *count != 0)
            .map(|(row, count)| {
                format!("{}|{}|{}", if count > 0 { "INSERT" } else { "DELETE" }, row.join("|"), count.abs())
            })
            .collect();
    }
    let keys: Vec<usize> =
        model.key.iter().filter_map(|key| columns.iter().position(|column| column.name == *key)).collect();
    let by_key = |rows: &[Vec<Value>]| -> BTreeMap<Vec<String>, Vec<String>> {
        rows.iter().map(|row| (keys.iter().map(|at| columns[*at].shown(&row[*at])).collect(), text(row))).collect()
    };
    let (before, after) = (by_key(&before), by_key(&after));
    let mut lines = Vec::new();
    for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
        let (old, new) = (before.get(key), after.get(key));
        let op = match (old, new) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(_), Some(_)) => "UPDATE",
            (None, _) => "INSERT",
            _ => "DELETE",
        };
        let mut cells = vec![op.to_string()];
        cells.extend(key.iter().cloned());
        let mut changed = Vec::new();
        for at in (0..columns.len()).filter(|at| !keys.contains(at)) {
            let cell = |row: Option<&Vec<String>>| row.map_or("NULL".to_string(), |row| row[at].clone());
            if cell(old) != cell(new) {
                changed.push(columns[at].name);
            }
            cells.extend([cell(old), cell(new)]);
        }
        cells.push(if op == "UPDATE" { format!("[{}]", changed.join(", ")) } else { "NULL".to_string() });
        lines.push(cells.join("|"));
    }
    lines
}

/// The `diff` mode of incremental reads: rows of the later snapshot that are new or changed.
async fn news(s: &Session, model: &Model, from: &State, to: &State) -> Result<(), String> {
    let sql = format!(
        "SELECT * FROM t /*+ OPTIONS('incremental-between'='{},{}','incremental-between-scan-mode'='diff') */",
        from.id, to.id
    );
    let columns = &model.columns;
    let text = |row: &Vec<Value>| {
        columns.iter().zip(row).map(|(column, value)| column.shown(value)).collect::<Vec<_>>().join("|")
    };
    let mut old: Vec<String> = brought_forward(from, columns).iter().map(text).collect();
    let mut expected = Vec::new();
    for row in brought_forward(to, columns).iter().map(text) {
        match old.iter().position(|known| *known == row) {
            Some(at) => drop(old.swap_remove(at)),
            None => expected.push(row),
        }
    }
    expected.sort();
    let mut read = asked(s, &sql).await?;
    read.sort();
    same(&sql, &expected, &read)
}
