//! `\counts`: every physical row of a snapshot is hidden, deleted by a vector, superseded, a tombstone or final.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, usage};
use crate::error::{Error, Result};
use crate::shell::execute::{Answer, Show};
use crate::shell::language::{Language, both, told};
use crate::shell::state::Shell;
use crate::shell::variables::replaced;
use crate::sql::{Accounting, AccountingRow, Session};

/// `\counts`
pub const COUNTS: Command = Command {
    names: &["counts", "acct"],
    usage: "table [condition]",
    task: Task::Prove,
    about: both(
        "raw, hidden, deleted, superseded, tombstoned and final rows, per partition",
        "按分区核对：原始、隐藏、向量删除、被覆盖、墓碑、最终行数",
    ),
    detail: both(
        "\\counts dwd_pay_success\n\\counts dwd_pay_success dt = '2026-04-16'   only those partitions\n\
         \\counts dwd_pay_success@v4 amount > 100     with the final rows that match\n\
         raw = hidden + vector_deleted + superseded + tombstoned + final, checked",
        "\\counts dwd_pay_success\n\\counts dwd_pay_success dt = '2026-04-16'   只统计这些分区\n\
         \\counts dwd_pay_success@v4 amount > 100     另列满足条件的最终行\n\
         并核对 raw = hidden + vector_deleted + superseded + tombstoned + final",
    ),
    argument: Argument::Condition,
    run,
};

/// Table and condition of a line: the first word, and the rest without `where`.
fn parts(line: &str) -> (&str, Option<&str>) {
    let line = line.trim().trim_end_matches(';').trim_end();
    // a quoted name may hold spaces
    let end = match line.chars().next() {
        Some(quote @ ('"' | '`')) => {
            let close = line.get(1..).and_then(|rest| rest.find(quote)).map_or(line.len(), |at| at + 2);
            let rest = line.get(close..).unwrap_or_default();
            close + rest.find(char::is_whitespace).unwrap_or(rest.len())
        }
        _ => line.find(char::is_whitespace).unwrap_or(line.len()),
    };
    let (table, rest) = line.split_at(end);
    let rest = rest.trim();
    let word = rest.split_whitespace().next().unwrap_or_default();
    let condition =
        if word.eq_ignore_ascii_case("where") { rest.get(word.len()..).unwrap_or_default().trim() } else { rest };
    (table, (!condition.is_empty()).then_some(condition))
}

/// A part of what is shown behind as many blanks as there are characters before it, so that an error tells its place in
/// what is shown.
fn in_its_place(shown: &str, from: usize, part: &str) -> String {
    let before = shown.get(..from).map_or(0, |text| text.chars().count());
    format!("{}{part}", " ".repeat(before))
}

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let line = replaced(&call.rest, &shell.variables);
        let (table, condition) = parts(&line);
        if table.is_empty() {
            return Err(usage("write \\counts table [condition]"));
        }
        let session: Arc<Session> = Arc::clone(&shell.session);
        let shown = format!("\\{} {line}", call.name);
        let name = in_its_place(&shown, shown.len() - line.trim_start().len(), table);
        // nothing but a semicolon follows it
        let filter = condition.map(|text| in_its_place(&shown, shown.rfind(text).unwrap_or(0), text));
        let counted = shell.under_guard(async move { session.counts(&name, filter.as_deref()).await }).await;
        if counted.is_err() {
            shell.placed = Some(shown);
        }
        let (pin, accounting) = counted?;
        let batch = batch(&accounting)?;
        let mut answer = Answer::of_batches(batch.schema(), vec![batch])?;
        answer.pins = vec![pin];
        answer.notices = accounting.notices.clone();
        shell.present(answer, Show { cap: false, ..Show::default() }).await?;
        shell.say(&conclusions(&accounting, condition, shell.settings.language))?;
        match accounting.violations.as_slice() {
            [] => Ok(()),
            violations => Err(Error::corrupt(format!("the accounting does not close: {}", violations.join("; ")))
                .with_code("AccountingViolation")
                .with_context("table", table)
                .with_hint(
                    "metadata and data files contradict each other: keep both as they are, and read a snapshot or tag \
                     that adds up",
                )),
        }
    }
    .boxed_local()
}

fn batch(accounting: &Accounting) -> Result<RecordBatch> {
    let total = AccountingRow { partition: "total".to_string(), ..accounting.total.clone() };
    let mut rows: Vec<&AccountingRow> = accounting.partitions.iter().filter(|row| !row.partition.is_empty()).collect();
    rows.push(&total);
    let number = |of: fn(&AccountingRow) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| of(row))))
    };
    let partitions: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.partition)));
    let mut columns = vec![
        ("partition", partitions),
        ("files", number(|row| row.files)),
        ("raw", number(|row| row.raw_rows)),
        ("hidden", number(|row| row.hidden_rows)),
        ("vector_deleted", number(|row| row.vector_deleted)),
        ("superseded", number(|row| row.superseded)),
        ("tombstoned", number(|row| row.tombstoned)),
        ("final", number(|row| row.final_rows)),
    ];
    if accounting.total.matching.is_some() {
        columns.push(("matching", number(|row| row.matching.unwrap_or(0))));
    }
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// What the numbers say.
fn conclusions(accounting: &Accounting, condition: Option<&str>, language: Language) -> Vec<String> {
    let row = &accounting.total;
    let mut lines = Vec::new();
    let holds = if row.identity_holds() && accounting.violations.is_empty() {
        told!(language, "holds", "成立")
    } else {
        told!(language, "DOES NOT HOLD", "不成立")
    };
    lines.push(format!(
        "R = H + V + X + T + N: {} = {} + {} + {} + {} + {} {holds}",
        row.raw_rows, row.hidden_rows, row.vector_deleted, row.superseded, row.tombstoned, row.final_rows
    ));
    match (row.matching, condition) {
        (Some(matching), Some(condition)) => lines.push(told!(
            language,
            "{some} of {all} final rows match {condition}",
            "最终 {all} 行中 {some} 行满足 {condition}",
            some = matching,
            all = row.final_rows,
            condition = condition
        )),
        (None, Some(condition)) => lines.push(told!(
            language,
            "only partitions that meet {condition} are counted",
            "只统计满足 {condition} 的分区",
            condition = condition
        )),
        (_, None) => {}
    }
    if let Some(total) = accounting.snapshot_total {
        lines.push(told!(language, "the snapshot says {n} raw rows in all", "快照记录原始行共 {n}", n = total));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_where_they_are_shown() {
        assert_eq!(in_its_place("\\counts 订单 a = 1", 8, "订单"), format!("{}订单", " ".repeat(8)));
        assert_eq!(in_its_place("\\counts 订单 a = 1", 15, "a = 1"), format!("{}a = 1", " ".repeat(11)));
    }

    #[test]
    fn table_and_condition_are_told_apart() {
        assert_eq!(parts("t"), ("t", None));
        assert_eq!(parts("pay.t@v3 WHERE a = 1;"), ("pay.t@v3", Some("a = 1")));
        assert_eq!(parts("\"a b\" wherever > 2"), ("\"a b\"", Some("wherever > 2")));
    }
}
