//! `\watch`: the last statement again and again, each time on the latest snapshot, with what changed.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, switch, usage};
use crate::error::{Error, Result};
use crate::shell::args::duration;
use crate::shell::execute::{Answer, Show};
use crate::shell::interrupt::interrupted;
use crate::shell::render::value::text;
use crate::shell::state::Shell;

/// Rows of a watched statement, at most.
const ROWS: usize = 1000;

/// `\watch`
pub const WATCH: Command = Command {
    names: &["watch"],
    usage: "[seconds] [times] [--until-change | --until 'query']",
    task: Task::Run,
    about: "run the last statement every few seconds, telling what changed",
    detail: "select count(*) from t; \\watch 2\nselect count(*) from t \\watch 1 10\n\
             \\watch 5 --until-change            ends when the answer changes\n\
             \\watch 5 --until 'select count(*) > 10 from t'",
    argument: Argument::Words(&["--until-change", "--until"]),
    run,
};

struct Plan {
    every: Duration,
    times: Option<u64>,
    until_change: bool,
    until: Option<String>,
}

fn plan(words: &[String]) -> Result<Plan> {
    let mut plan = Plan { every: Duration::from_secs(2), times: None, until_change: false, until: None };
    let mut numbers = 0;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--until-change" => plan.until_change = true,
            "--until" => plan.until = Some(words.next().cloned().ok_or_else(|| usage("write --until 'query'"))?),
            word if numbers == 0 => {
                plan.every = duration(word).map_err(usage)?;
                numbers += 1;
            }
            word if numbers == 1 => {
                plan.times = Some(word.parse().map_err(|_| usage(format!("{word:?} is no number of times")))?);
                numbers += 1;
            }
            _ => return Err(usage("write \\watch [seconds] [times]")),
        }
    }
    Ok(plan)
}

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let plan = plan(&call.words(&shell.variables))?;
        let Some(sql) = shell.last_query.clone() else { return Err(usage("which statement?")) };
        let mut last: Option<Vec<Vec<String>>> = None;
        let mut turn = 0;
        loop {
            turn += 1;
            let (schema, batches, pins) = shell.collect(&sql, ROWS).await?;
            let cells = cells(shell, &batches)?;
            let snapshots: Vec<String> = pins
                .iter()
                .map(|pin| match pin.snapshot_id {
                    Some(id) => format!("{}@{id}", pin.table),
                    None => format!("{}@empty", pin.table),
                })
                .collect();
            let mut lines = vec![format!("turn {turn}: {}", snapshots.join(", "))];
            if let Some(last) = &last {
                lines.push(change(&schema, last, &cells));
            }
            let changed = last.as_ref().is_some_and(|last| *last != cells);
            let answer = Answer::of_batches(schema, batches)?;
            shell.say(&lines)?;
            // the pager would wait for a key
            shell.present(answer, Show { page: false, cap: true, footer: false, expanded: None }).await?;
            last = Some(cells);
            if plan.until_change && changed || plan.times.is_some_and(|times| turn >= times) {
                return Ok(());
            }
            if let Some(until) = &plan.until {
                let (_, batches, _) = shell.collect(until, 1).await?;
                if holds(shell, &batches)? {
                    return Ok(());
                }
            }
            let running = shell.interrupts.running();
            tokio::select! {
                () = running.wait() => {
                    return if shell.interactive { Ok(()) } else { Err(interrupted()) };
                }
                () = tokio::time::sleep(plan.every) => {}
            }
        }
    }
    .boxed_local()
}

fn cells(shell: &Shell, batches: &[RecordBatch]) -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let mut cells = Vec::new();
            for column in batch.columns() {
                let mut cell = String::new();
                if !text(column.as_ref(), row, shell.times(), &mut cell).map_err(|e| Error::internal(e.to_string()))? {
                    cell.push_str("NULL");
                }
                cells.push(cell);
            }
            rows.push(cells);
        }
    }
    Ok(rows)
}

fn holds(shell: &Shell, batches: &[RecordBatch]) -> Result<bool> {
    match cells(shell, batches)?.as_slice() {
        [row] if row.len() == 1 => switch(row.first().map(String::as_str).unwrap_or_default()),
        _ => Err(usage("--until needs a query of one value, true or false")),
    }
}

/// What changed since the last turn.
fn change(schema: &SchemaRef, before: &[Vec<String>], now: &[Vec<String>]) -> String {
    if before == now {
        return "no change".to_string();
    }
    let mut parts = Vec::new();
    if before.len() != now.len() {
        parts.push(format!("rows {} → {}", before.len(), now.len()));
    }
    for (row, (old, new)) in before.iter().zip(now).enumerate() {
        for ((field, old), new) in schema.fields().iter().zip(old).zip(new) {
            if old == new {
                continue;
            }
            let place = if now.len() == 1 { String::new() } else { format!("row {} ", row + 1) };
            let difference = match (old.parse::<i128>(), new.parse::<i128>()) {
                (Ok(old), Ok(new)) => new.checked_sub(old),
                _ => None,
            };
            let delta = match difference {
                Some(difference) => format!(" ({difference:+})"),
                None => match (old.parse::<f64>(), new.parse::<f64>()) {
                    (Ok(old), Ok(new)) => format!(" ({:+})", new - old),
                    _ => String::new(),
                },
            };
            parts.push(format!("{place}{} {old} → {new}{delta}", field.name()));
        }
    }
    parts.truncate(12);
    format!("changed: {}", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn rows(values: &[&str]) -> Vec<Vec<String>> {
        values.iter().map(|v| vec![(*v).to_string()]).collect()
    }

    #[test]
    fn change_tells_the_difference() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        assert_eq!(change(&schema, &rows(&["3"]), &rows(&["3"])), "no change");
        assert_eq!(change(&schema, &rows(&["3"]), &rows(&["5"])), "changed: n 3 → 5 (+2)");
        assert_eq!(change(&schema, &rows(&["a"]), &rows(&["b", "c"])), "changed: rows 1 → 2; row 1 n a → b");
    }

    #[test]
    fn words_of_watch() {
        let words: Vec<String> = ["1500ms", "3", "--until", "select true"].iter().map(ToString::to_string).collect();
        let plan = plan(&words).unwrap();
        assert_eq!((plan.every, plan.times), (Duration::from_millis(1500), Some(3)));
        assert_eq!(plan.until.as_deref(), Some("select true"));
    }
}
