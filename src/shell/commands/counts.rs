//! `\counts`: every physical row of a snapshot is hidden, deleted by a vector, superseded, a tombstone or final.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, RecordBatch, StringArray, UInt64Array};
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, usage};
use crate::error::{Error, Result};
use crate::notice::NoticeKind;
use crate::shell::execute::{Answer, Show};
use crate::shell::input::lexed;
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
         \\counts dwd_pay_success version as of 4\n\
         raw = hidden + vector_deleted + superseded + tombstoned + final, checked; factor: raw rows for one final row",
        "\\counts dwd_pay_success\n\\counts dwd_pay_success dt = '2026-04-16'   只统计这些分区\n\
         \\counts dwd_pay_success@v4 amount > 100     另列满足条件的最终行\n\
         \\counts dwd_pay_success version as of 4\n\
         并核对 raw = hidden + vector_deleted + superseded + tombstoned + final；factor：每一最终行的原始行数",
    ),
    argument: Argument::Condition,
    run,
};

/// Table with its time travel clause, and condition of a line: the rest without `where`.
fn parts(line: &str) -> (&str, Option<&str>) {
    let line = line.trim().trim_end_matches(';').trim_end();
    // each part of the name may be quoted, and hold blanks then
    let mut open: Option<char> = None;
    let end = line.find(|c: char| {
        match (open, c) {
            (None, '"' | '`') => open = Some(c),
            (Some(quote), c) if c == quote => open = None,
            _ => {}
        }
        open.is_none() && c.is_whitespace()
    });
    let end = end.unwrap_or(line.len());
    let end = end + clause(line.get(end..).unwrap_or_default());
    let (table, rest) = line.split_at(end);
    let rest = rest.trim();
    let word = rest.split_whitespace().next().unwrap_or_default();
    let condition =
        if word.eq_ignore_ascii_case("where") { rest.get(word.len()..).unwrap_or_default().trim() } else { rest };
    (table.trim_end(), (!condition.is_empty()).then_some(condition))
}

/// A part of what is shown behind as many blanks as there are characters before it, so that an error tells its place in
/// what is shown.
fn in_its_place(shown: &str, from: usize, part: &str) -> String {
    let before = shown.get(..from).map_or(0, |text| text.chars().count());
    format!("{}{part}", " ".repeat(before))
}

/// Bytes of the time travel clause that a text begins with: `VERSION AS OF 3`, `FOR SYSTEM_TIME AS OF …`, `AT (…)`. What is
/// no literal ends at WHERE.
fn clause(text: &str) -> usize {
    let tokens: Vec<_> = lexed(text).into_iter().filter(|(t, _)| !matches!(t, Token::Whitespace(_))).collect();
    let is = |at: usize, words: &[&str]| match tokens.get(at) {
        Some((Token::Word(word), _)) if word.quote_style.is_none() => {
            words.iter().any(|known| word.value.eq_ignore_ascii_case(known))
        }
        _ => false,
    };
    let token = |at: usize| tokens.get(at).map(|(token, _)| token);
    let end = |at: usize| tokens.get(at).map_or(text.len(), |(_, range)| range.end);
    if is(0, &["AT", "BEFORE"]) && token(1) == Some(&Token::LParen) {
        let mut depth = 0i32;
        let closing = tokens.iter().position(|(token, _)| {
            depth += i32::from(*token == Token::LParen) - i32::from(*token == Token::RParen);
            depth == 0 && *token == Token::RParen
        });
        return closing.map_or(text.len(), end);
    }
    let first = usize::from(is(0, &["FOR"]));
    let travels = is(first, &["VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"]);
    if !travels || !is(first + 1, &["AS"]) || !is(first + 2, &["OF"]) {
        return 0;
    }
    if let Some(condition) = (first + 3..tokens.len()).find(|at| is(*at, &["WHERE"])) {
        return tokens.get(condition).map_or(text.len(), |(_, range)| range.start);
    }
    let value = first + 3 + usize::from(is(first + 3, &["TIMESTAMP", "DATE"]));
    match token(value) {
        Some(Token::Number(..) | Token::SingleQuotedString(_)) => end(value),
        _ => text.len(),
    }
}

/// Raw rows for one final row, as numbers of two places; NULL where no row is final.
fn factor(row: &AccountingRow) -> Option<i128> {
    let (raw, last) = (i128::from(row.raw_rows), i128::from(row.final_rows));
    (200 * raw + last).checked_div(2 * last)
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
        let mut lines = conclusions(&accounting, condition, shell.settings.language);
        if shell.settings.json_meta {
            answer.notices.extend(lines.drain(..).map(|line| NoticeKind::Own(line).into()));
        }
        shell.present(answer, Show { cap: false, ..Show::default() }).await?;
        shell.say(&lines)?;
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
    let factors: Decimal128Array = rows.iter().map(|row| factor(row)).collect();
    let factors: ArrayRef = Arc::new(factors.with_precision_and_scale(38, 2)?);
    let mut columns = vec![
        ("partition", partitions),
        ("files", number(|row| row.files)),
        ("raw", number(|row| row.raw_rows)),
        ("hidden", number(|row| row.hidden_rows)),
        ("vector_deleted", number(|row| row.vector_deleted)),
        ("superseded", number(|row| row.superseded)),
        ("tombstoned", number(|row| row.tombstoned)),
        ("final", number(|row| row.final_rows)),
        ("factor", factors),
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
        assert_eq!(parts("\"a b\".\"c d\" id = 1"), ("\"a b\".\"c d\"", Some("id = 1")));
        assert_eq!(parts("`a b`.`c ``d` version as of 3"), ("`a b`.`c ``d` version as of 3", None));
        assert_eq!(parts("db.\"c \"\"d\" where a"), ("db.\"c \"\"d\"", Some("a")));
        for (line, table, condition) in [
            ("t version as of 3", "t version as of 3", None),
            ("t VERSION AS OF 'eod' a = 1;", "t VERSION AS OF 'eod'", Some("a = 1")),
            (
                "t for system_time as of timestamp '2026-04-16' where a",
                "t for system_time as of timestamp '2026-04-16'",
                Some("a"),
            ),
            (
                "t timestamp as of now() - interval '1' hour where a",
                "t timestamp as of now() - interval '1' hour",
                Some("a"),
            ),
            ("t at (commit => ('u', 1)) where a", "t at (commit => ('u', 1))", Some("a")),
            ("t before(commit => ('u', 1))", "t before(commit => ('u', 1))", None),
            ("t version = 3", "t", Some("version = 3")),
            ("t at > 3 and (b)", "t", Some("at > 3 and (b)")),
            ("t \"version\" as of 3", "t", Some("\"version\" as of 3")),
        ] {
            let (found, rest) = parts(line);
            assert_eq!((found, rest), (table, condition), "{line}");
        }
    }

    #[test]
    fn factor_is_rounded_and_none_without_final_rows() {
        let of = |raw_rows, final_rows| factor(&AccountingRow { raw_rows, final_rows, ..AccountingRow::default() });
        assert_eq!(
            [of(4, 3), of(5, 3), of(214, 214), of(0, 7), of(9, 0)],
            [Some(133), Some(167), Some(100), Some(0), None]
        );
        assert!(of(u64::MAX, 1).is_some());
    }
}
