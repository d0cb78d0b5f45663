//! Random tables through SQL against a fold of their records: every projection, filter, limit, order, group, snapshot,
//! batch size and partition count gives the rows the fold gives. `LAKEPIN_SCALE=full` makes 2 000 tables, otherwise 60;
//! `LAKEPIN_SEED` runs one table again.

mod column;
mod diff;
mod filter;
mod model;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use lakepin::sql::{Session, SessionConfig};
use lakepin::testing::naive::Value;

use self::column::Col;
use self::diff::Compared;
use self::filter::Filter;
use self::model::{Model, State};
use super::kit::{Lake, OrText, ask, config, full_scale, same};
use crate::harness::{Outcome, Test};
use crate::random::Random;

/// Answers that differ from the fold as DataFusion's over memory do.
static ENGINES_OWN: AtomicUsize = AtomicUsize::new(0);

pub fn register(tests: &mut Vec<Test>) {
    let (tables, parts) = if full_scale() { (2_000, 100) } else { (60, 4) };
    for part in 0..parts {
        let name = format!("fuzz::tables_against_a_fold_{part:02}");
        tests.push(Test::new_async(name, move || run(tables, part, parts)).resumable());
    }
}

async fn run(tables: u64, part: u64, parts: u64) -> Result<Outcome, String> {
    let only: Option<u64> = std::env::var("LAKEPIN_SEED").ok().and_then(|s| s.parse().ok());
    let mut queries = 0;
    let mut compared = Compared::default();
    let seeds: Vec<u64> = (0..tables).filter(|seed| seed % parts == part).collect();
    for seed in only.map_or(seeds, |seed| if seed % parts == part { vec![seed] } else { Vec::new() }) {
        let (count, pairs) = one(seed).await.map_err(|m| format!("LAKEPIN_SEED={seed}: {m}"))?;
        queries += count;
        compared.all += pairs.all;
        compared.reduced += pairs.reduced;
    }
    if only.is_none() && compared.reduced == 0 {
        return Err(format!("none of {} comparisons left a file out: nothing was shown", compared.all));
    }
    Ok(Outcome::Passed(format!(
        "{queries} queries, {} answered as memory is; {} pairs compared, {} of them in part",
        ENGINES_OWN.load(Ordering::Relaxed),
        compared.all,
        compared.reduced
    )))
}

async fn one(seed: u64) -> Result<(usize, Compared), String> {
    let mut random = Random::new(seed.wrapping_mul(0x51_7c_c1_b7_27_22_0a_95) ^ 0xfeed);
    let lake = Lake::new()?;
    let model = Model::build(&lake, &mut random)?;
    let mut queries = 0;
    let mut compared = Compared::default();
    for _ in 0..2 {
        let partitions = random.pick(&[1, 2, 8]);
        let batch = random.pick(&[1, 7, 8192]);
        let settings = SessionConfig { target_partitions: Some(partitions), batch_size: Some(batch), ..config() };
        let session = lake.session_with(settings).await?;
        for name in ["lakepin.merge_source", "datafusion.execution.parquet.pushdown_filters"] {
            ask(&session, &format!("SET {name} = {}", random.chance(50))).await.text()?;
        }
        let part_rows = random.pick(&[0, 1, 7]);
        ask(&session, &format!("SET lakepin.part_rows = {part_rows}")).await.text()?;
        let last = model.states.len() - 1;
        for at in [last, random.below(model.states.len() as u64) as usize] {
            let mut state = model.states[at].clone();
            let from = if at == last { "t".to_string() } else { format!("t VERSION AS OF {}", state.id) };
            if at == last {
                // without time travel the newest schema counts
                state.columns.clone_from(&model.columns);
            }
            queries += questions(&session, &state, &from, &mut random)
                .await
                .map_err(|m| format!("{partitions} partitions, batches of {batch}: {m}\n  {}", model.describe()))?;
        }
        // dice of its own: the tables of known seeds stay as they are
        let mut dice = Random::new(seed ^ 0xd1ff);
        let pairs = diff::check(&session, &model, &mut dice).await;
        let pairs = pairs.map_err(|m| format!("{m}\n  {}", model.describe()))?;
        compared.all += pairs.all;
        compared.reduced += pairs.reduced;
    }
    Ok((queries, compared))
}

async fn questions(s: &Session, state: &State, from: &str, random: &mut Random) -> Result<usize, String> {
    let everything: Vec<usize> = (0..state.columns.len()).collect();
    check_rows(s, state, from, &everything, None).await?;
    let count = |rows: usize| vec![rows.to_string()];
    same(from, &count(state.rows.len()), &asked(s, &format!("SELECT count(*) FROM {from}")).await?)?;
    for _ in 0..3 {
        let projection = some(random, state.columns.len());
        check_rows(s, state, from, &projection, None).await?;
    }
    let filters = if full_scale() { 6 } else { 3 };
    for _ in 0..filters {
        let filter = Filter::random(random, &state.columns, 2);
        let projection = some(random, state.columns.len());
        check_rows(s, state, from, &projection, Some(&filter)).await?;
        let sql = format!("SELECT count(*) FROM {from} WHERE {}", filter.sql(&state.columns));
        let matching = state.rows.iter().filter(|r| filter.holds(r) == Some(true)).count();
        settle(s, state, from, &sql, &count(matching)).await?;
        check_limit(s, state, from, &projection, &filter, random).await?;
        check_order(s, state, from, &filter, random).await?;
        check_groups(s, state, from, &filter, random).await?;
    }
    Ok(5 + filters * 5)
}

async fn asked(s: &Session, sql: &str) -> Result<Vec<String>, String> {
    ask(s, sql).await.map(|a| a.rows()).map_err(|e| format!("{sql}\n  {e:?}"))
}

/// At least one column, in any order.
fn some(random: &mut Random, n: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    for at in 0..n {
        let other = at + random.below((n - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(1 + random.below(n as u64) as usize);
    all
}

fn names(columns: &[Col], projection: &[usize]) -> String {
    projection.iter().map(|at| columns[*at].name).collect::<Vec<_>>().join(", ")
}

fn line(columns: &[Col], row: &[Value], projection: &[usize]) -> String {
    projection.iter().map(|at| columns[*at].shown(&row[*at])).collect::<Vec<_>>().join("|")
}

fn matching<'a>(state: &'a State, filter: Option<&Filter>) -> Vec<&'a Vec<Value>> {
    state.rows.iter().filter(|row| filter.is_none_or(|f| f.holds(row) == Some(true))).collect()
}

fn statement(state: &State, from: &str, what: &str, filter: Option<&Filter>) -> String {
    let condition = filter.map_or(String::new(), |f| format!(" WHERE {}", f.sql(&state.columns)));
    format!("SELECT {what} FROM {from}{condition}")
}

async fn check_rows(
    s: &Session,
    state: &State,
    from: &str,
    projection: &[usize],
    filter: Option<&Filter>,
) -> Result<(), String> {
    let sql = statement(state, from, &names(&state.columns, projection), filter);
    let expected: Vec<String> =
        matching(state, filter).iter().map(|row| line(&state.columns, row, projection)).collect();
    settle(s, state, from, &sql, &expected).await
}

/// The statement must give these rows, in the order said when it has one. Where it does not, the same statement over
/// the same rows in memory decides: DataFusion 55 takes `a NOT IN (1) OR a NOT IN (2)` for true, NULL or not.
async fn settle(s: &Session, state: &State, from: &str, sql: &str, expected: &[String]) -> Result<(), String> {
    let mut expected = expected.to_vec();
    let mut read = asked(s, sql).await?;
    let ordered = sql.contains(" ORDER BY ");
    if !ordered {
        expected.sort();
        read.sort();
    }
    let Err(message) = same(sql, &expected, &read) else { return Ok(()) };
    let mut in_memory = asked(s, &sql.replacen(&format!("FROM {from}"), &format!("FROM {}", memory(state)), 1)).await?;
    if !ordered {
        in_memory.sort();
    }
    if in_memory != read {
        return Err(message);
    }
    ENGINES_OWN.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// The rows as a relation of their own.
fn memory(state: &State) -> String {
    let columns: Vec<String> =
        state.columns.iter().map(|c| format!("CAST({n} AS {t}) AS {n}", n = c.name, t = c.sql_type())).collect();
    let names: Vec<&str> = state.columns.iter().map(|c| c.name).collect();
    let mut rows: Vec<String> = state
        .rows
        .iter()
        .map(|row| {
            let cells: Vec<String> = state.columns.iter().zip(row).map(|(column, value)| column.sql(value)).collect();
            format!("({})", cells.join(", "))
        })
        .collect();
    let none = if rows.is_empty() { " WHERE false" } else { "" };
    if rows.is_empty() {
        rows.push(format!("({})", vec!["NULL"; names.len()].join(", ")));
    }
    let values = format!("(VALUES {}) r({})", rows.join(", "), names.join(", "));
    format!("(SELECT {} FROM {values}{none}) t", columns.join(", "))
}

async fn check_limit(
    s: &Session,
    state: &State,
    from: &str,
    projection: &[usize],
    filter: &Filter,
    random: &mut Random,
) -> Result<(), String> {
    let filter = random.chance(70).then_some(filter);
    let limit = random.below(12) as usize;
    let sql = format!("{} LIMIT {limit}", statement(state, from, &names(&state.columns, projection), filter));
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    let rows = matching(state, filter);
    rows.iter().for_each(|row| *expected.entry(line(&state.columns, row, projection)).or_default() += 1);
    let read = asked(s, &sql).await?;
    if read.len() != limit.min(rows.len()) {
        let all = statement(state, from, &names(&state.columns, projection), filter);
        let in_memory = asked(s, &all.replacen(&format!("FROM {from}"), &format!("FROM {}", memory(state)), 1)).await?;
        if read.len() != limit.min(in_memory.len()) {
            return Err(format!("{sql}\n  {} rows of {}", read.len(), rows.len()));
        }
        return Ok(());
    }
    for row in read {
        let left = expected.entry(row.clone()).or_default();
        *left -= 1;
        if *left < 0 {
            return Err(format!("{sql}\n  {row} is no row of the table, or too often"));
        }
    }
    Ok(())
}

async fn check_order(
    s: &Session,
    state: &State,
    from: &str,
    filter: &Filter,
    random: &mut Random,
) -> Result<(), String> {
    let filter = random.chance(60).then_some(filter);
    let at = random.below(state.columns.len() as u64) as usize;
    let (down, nulls_first, limit) = (random.chance(50), random.chance(50), 1 + random.below(9) as usize);
    let name = state.columns[at].name;
    let mut values: Vec<&Value> = matching(state, filter).iter().map(|row| &row[at]).collect();
    values.sort_by(|a, b| match (a.is_null(), b.is_null()) {
        (true, true) => std::cmp::Ordering::Equal,
        (true, false) if nulls_first => std::cmp::Ordering::Less,
        (true, false) => std::cmp::Ordering::Greater,
        (false, true) if nulls_first => std::cmp::Ordering::Greater,
        (false, true) => std::cmp::Ordering::Less,
        _ if down => b.order(a),
        _ => a.order(b),
    });
    let expected: Vec<String> = values.into_iter().take(limit).map(|value| state.columns[at].shown(value)).collect();
    let sql = format!(
        "{} ORDER BY {name} {} NULLS {} LIMIT {limit}",
        statement(state, from, name, filter),
        if down { "DESC" } else { "ASC" },
        if nulls_first { "FIRST" } else { "LAST" }
    );
    settle(s, state, from, &sql, &expected).await
}

async fn check_groups(
    s: &Session,
    state: &State,
    from: &str,
    filter: &Filter,
    random: &mut Random,
) -> Result<(), String> {
    let filter = random.chance(50).then_some(filter);
    let by = random.below(state.columns.len() as u64) as usize;
    let place = |name: &str| state.columns.iter().position(|c| c.name == name).unwrap_or_default();
    let (v, w, t) = (place("v"), place("w"), place("s"));
    let mut groups: BTreeMap<String, Vec<&Vec<Value>>> = BTreeMap::new();
    for row in matching(state, filter) {
        groups.entry(state.columns[by].shown(&row[by])).or_default().push(row);
    }
    let expected: Vec<String> = groups
        .into_iter()
        .map(|(group, rows)| {
            let known = |at: usize| rows.iter().map(|row| &row[at]).filter(|v| !v.is_null()).collect::<Vec<_>>();
            let sum = known(v).iter().fold(None, |sum: Option<i64>, value| match value {
                Value::Int(n) => Some(sum.unwrap_or(0) + n),
                _ => sum,
            });
            let sum = sum.map_or("NULL".into(), |n| n.to_string());
            let max = known(w)
                .into_iter()
                .max_by(|a, b| a.order(b))
                .map_or("NULL".into(), |value| state.columns[w].shown(value));
            let min = known(t)
                .into_iter()
                .min_by(|a, b| a.order(b))
                .map_or("NULL".into(), |value| state.columns[t].shown(value));
            format!("{group}|{}|{}|{sum}|{max}|{min}", rows.len(), known(v).len())
        })
        .collect();
    let name = state.columns[by].name;
    let what = format!("{name}, count(*), count(v), sum(v), max(w), min(s)");
    let sql = format!("{} GROUP BY {name}", statement(state, from, &what, filter));
    settle(s, state, from, &sql, &expected).await
}
