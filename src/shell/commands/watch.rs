//! `\watch`: the last statement again and again, each time on the latest snapshot, with what changed.

use std::num::NonZeroU64;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::execution::context::SessionContext;
use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, switch, usage};
use crate::error::{Error, Result};
use crate::export::value::text;
use crate::shell::args::duration;
use crate::shell::exact;
use crate::shell::execute::{Answer, Collected, Show};
use crate::shell::interrupt::interrupted;
use crate::shell::language::{Language, both, told};
use crate::shell::render::is_numeric;
use crate::shell::state::Shell;
use crate::shell::variables::replaced;
use crate::sql::missing_column;

/// Rows of a watched statement, at most.
const ROWS: usize = 1000;

/// Changes told of one turn.
const CHANGES: usize = 12;

/// `\watch`
pub const WATCH: Command = Command {
    names: &["watch"],
    usage: "[seconds] [times] [--until-change | --until 'condition']",
    task: Task::Run,
    about: both("run the last statement every few seconds, telling what changed", "每隔几秒重跑上一条语句，并指出变化"),
    detail: both(
        "select count(*) from t; \\watch 2\nselect count(*) from t \\watch 1 10\n\
         \\watch 5 --until-change            ends when the answer changes\n\
         \\watch 5 --until 'n > 10'          ends when it is true of a row of the answer\n\
         \\watch 5 --until 'select …'        ends when that query answers true\n\
         \\watch 5 60 --until 'n > 10'       fails, exit code 5, when 60 times were not enough",
        "select count(*) from t; \\watch 2\nselect count(*) from t \\watch 1 10\n\
         \\watch 5 --until-change            结果变化时结束\n\
         \\watch 5 --until 'n > 10'          结果中有一行满足时结束\n\
         \\watch 5 --until 'select …'        该查询为真时结束\n\
         \\watch 5 60 --until 'n > 10'       60 次仍未满足则失败，退出码 5",
    ),
    argument: Argument::Words(&["--until-change", "--until"]),
    run,
};

struct Plan {
    every: Duration,
    times: Option<NonZeroU64>,
    until_change: bool,
    until: Option<String>,
}

impl Plan {
    /// After the last turn: what was waited for and did not come is no success.
    fn waited(&self, turns: u64) -> Result<()> {
        let what = match (&self.until, self.until_change) {
            (Some(until), false) => format!("{until} was not met"),
            (Some(until), true) => format!("neither did the answer change nor was {until} met"),
            (None, true) => "the answer did not change".to_string(),
            (None, false) => return Ok(()),
        };
        let times = if turns == 1 { "time" } else { "times" };
        Err(Error::exhausted(format!("{what}, looked at {turns} {times}")).with_code("NotReached"))
    }
}

fn plan(words: &[String]) -> Result<Plan> {
    let mut plan = Plan { every: Duration::from_secs(2), times: None, until_change: false, until: None };
    let mut numbers = 0;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--until-change" => plan.until_change = true,
            "--until" => plan.until = Some(words.next().cloned().ok_or_else(|| usage("write --until 'condition'"))?),
            word if numbers == 0 => {
                plan.every = duration(word).map_err(usage)?;
                numbers += 1;
            }
            word if numbers == 1 => {
                let times = word.parse().map_err(|_| usage(format!("{word:?} is no number of times")))?;
                plan.times = Some(NonZeroU64::new(times).ok_or_else(|| usage("it runs at least once"))?);
                numbers += 1;
            }
            _ => return Err(usage("write \\watch [seconds] [times]")),
        }
    }
    Ok(plan)
}

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let plan = plan(&call.words(&shell.variables)?)?;
        let Some(sql) = shell.last_query.clone() else { return Err(usage("which statement?")) };
        let mut last: Option<Vec<Vec<String>>> = None;
        let mut told: Vec<String> = Vec::new();
        let mut turn = 0;
        loop {
            turn += 1;
            let Collected { schema, batches, pins, notices, .. } = match shell.collect_sql(&sql, ROWS).await {
                // the end of watching, not a failure of it
                Err(error) if error.code() == "Interrupted" && shell.interactive => return Ok(()),
                answer => answer?,
            };
            let cells = cells(shell, &batches)?;
            let snapshots: Vec<String> = pins
                .iter()
                .map(|pin| match pin.snapshot_id {
                    Some(id) => format!("{}@{id}", pin.table),
                    None => format!("{}@empty", pin.table),
                })
                .collect();
            let (language, tables) = (shell.settings.language, snapshots.join(", "));
            let mut lines = vec![told!(
                language,
                "turn {turn}, {time}: {tables}",
                "第 {turn} 次，{time}：{tables}",
                turn = turn,
                time = shell.session.time_of_day(),
                tables = tables
            )];
            if let Some(last) = &last {
                lines.push(change(&schema, last, &cells, language));
            }
            let changed = last.as_ref().is_some_and(|last| *last != cells);
            let until = match &plan.until {
                Some(until) => holds(shell, until, &batches).await?,
                None => false,
            };
            let notes = shell.notes(&pins, &notices);
            let answer = Answer { pins, notices, turn: Some(turn), ..Answer::of_batches(schema, batches)? };
            if !shell.settings.json_meta {
                shell.say(&lines)?;
            }
            // the pager would wait for a key, and what was said of the turn before need not be said again
            let show = Show { page: false, footer: false, notes: notes != told, ..Show::default() };
            shell.present(answer, show).await?;
            told = notes;
            last = Some(cells);
            if until || plan.until_change && changed {
                return Ok(());
            }
            if plan.times.is_some_and(|times| turn >= times.get()) {
                return plan.waited(turn);
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

/// Whether the end is there: a query that answers true, or a condition that holds for a row of the answer.
async fn holds(shell: &mut Shell, until: &str, batches: &[RecordBatch]) -> Result<bool> {
    let first = until.trim_start_matches(['(', ' ']).split_whitespace().next().unwrap_or_default();
    if ["select", "with", "values"].iter().any(|word| first.eq_ignore_ascii_case(word)) {
        let batches = shell.collect(until, 1).await?.batches;
        return match cells(shell, &batches)?.as_slice() {
            [row] if row.len() == 1 => {
                let value = row.first().map(String::as_str).unwrap_or_default();
                switch(value).map_err(|_| {
                    Error::invalid(format!("the query of --until answers {value:?}, neither true nor false"))
                        .with_code("NotOneValue")
                })
            }
            _ => Err(Error::invalid("the query of --until answers more or less than one value")
                .with_code("NotOneValue")
                .with_hint("give a query of one value, true or false, or a condition over the answer")),
        };
    }
    // over the answer itself: asking again could meet another snapshot
    let (until, batches) = (replaced(until, &shell.variables), batches.to_vec());
    shell
        .under_guard(async move {
            if batches.is_empty() {
                return Ok(false);
            }
            let context = SessionContext::new();
            let rows = context.read_batches(batches)?;
            let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
            let named = |error| missing_column(error, names.iter().map(String::as_str));
            let condition = context.parse_sql_expr(&until, rows.schema()).map_err(named)?;
            Ok(rows.filter(condition).map_err(named)?.count().await? > 0)
        })
        .await
}

/// What changed since the last turn.
fn change(schema: &SchemaRef, before: &[Vec<String>], now: &[Vec<String>], language: Language) -> String {
    if before == now {
        return told!(language, "no change", "没有变化");
    }
    let mut parts = Vec::new();
    if before.len() != now.len() {
        parts.push(told!(language, "rows {a} → {b}", "行数 {a} → {b}", a = before.len(), b = now.len()));
    }
    for (row, (old, new)) in before.iter().zip(now).enumerate() {
        for ((field, old), new) in schema.fields().iter().zip(old).zip(new) {
            if old == new {
                continue;
            }
            let place =
                if now.len() == 1 { String::new() } else { told!(language, "row {n} ", "第 {n} 行 ", n = row + 1) };
            let delta = match difference(field.data_type(), old, new) {
                Some(difference) => format!(" ({difference})"),
                None => String::new(),
            };
            parts.push(format!("{place}{} {old} → {new}{delta}", field.name()));
        }
    }
    parts.truncate(CHANGES);
    told!(language, "changed: {parts}", "变化：{parts}", parts = parts.join("; "))
}

/// How much a number changed; nothing is lost but of floats too far apart to be written out.
fn difference(data_type: &DataType, old: &str, new: &str) -> Option<String> {
    if !is_numeric(data_type) {
        return None;
    }
    exact::difference(old, new).or_else(|| {
        match (old.parse::<f64>(), new.parse::<f64>()) {
            (Ok(old), Ok(new)) if data_type.is_floating() => Some(new - old),
            _ => None,
        }
        .filter(|difference| difference.is_finite())
        .map(|difference| format!("{difference:+}"))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, Schema};

    use super::*;

    fn rows(values: &[&str]) -> Vec<Vec<String>> {
        values.iter().map(|v| vec![(*v).to_string()]).collect()
    }

    #[test]
    fn change_tells_the_difference() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        assert_eq!(change(&schema, &rows(&["3"]), &rows(&["3"]), Language::En), "no change");
        assert_eq!(change(&schema, &rows(&["3"]), &rows(&["5"]), Language::En), "changed: n 3 → 5 (+2)");
        assert_eq!(
            change(&schema, &rows(&["a"]), &rows(&["b", "c"]), Language::En),
            "changed: rows 1 → 2; row 1 n a → b"
        );
    }

    /// DECIMAL has no last place that a double would not blur.
    #[test]
    fn difference_of_decimals_is_exact() {
        let told = |data_type: DataType, old: &str, new: &str| {
            let schema = Arc::new(Schema::new(vec![Field::new("s", data_type, true)]));
            change(&schema, &rows(&[old]), &rows(&[new]), Language::En)
        };
        let decimal = DataType::Decimal128(38, 2);
        assert_eq!(told(decimal.clone(), "98232.11", "97550.80"), "changed: s 98232.11 → 97550.80 (-681.31)");
        assert_eq!(
            told(decimal.clone(), "12345678901234567890.07", "12345678901234567890.08"),
            "changed: s 12345678901234567890.07 → 12345678901234567890.08 (+0.01)"
        );
        assert_eq!(told(decimal, "NULL", "1.00"), "changed: s NULL → 1.00");
        assert!(told(DataType::Float64, "1e300", "3e300").starts_with("changed: s 1e300 → 3e300 (+2000"));
        assert_eq!(told(DataType::Float64, "NaN", "1.0"), "changed: s NaN → 1.0");
        assert_eq!(told(DataType::Utf8, "007", "008"), "changed: s 007 → 008");
    }

    #[test]
    fn words_of_watch() {
        let words: Vec<String> = ["1500ms", "3", "--until", "select true"].iter().map(ToString::to_string).collect();
        let plan = plan(&words).unwrap();
        assert_eq!((plan.every, plan.times), (Duration::from_millis(1500), NonZeroU64::new(3)));
        assert_eq!(plan.until.as_deref(), Some("select true"));
        assert_eq!(plan.waited(3).unwrap_err().message(), "select true was not met, looked at 3 times");
        let zero: Vec<String> = ["1", "0"].iter().map(ToString::to_string).collect();
        assert_eq!(super::plan(&zero).map(|_| ()).unwrap_err().code(), "Usage");
    }
}
