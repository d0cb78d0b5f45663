//! `\assert`: a line of a runbook that must hold.

use datafusion::sql::sqlparser::tokenizer::Token;
use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, usage};
use crate::error::{Error, Result};
use crate::shell::execute::Collected;
use crate::shell::input::lexed;
use crate::shell::language::both;
use crate::shell::render::value::text;
use crate::shell::state::Shell;
use crate::shell::variables::replaced;

/// `\assert`
pub const ASSERT: Command = Command {
    names: &["assert"],
    usage: "query [= value]",
    task: Task::Prove,
    about: both(
        "fail (exit code 1) unless a query answers the value, or true",
        "查询结果不等于给定值（或不为真）就失败，退出码 1",
    ),
    detail: both(
        "\\assert select count(*) from t = 184\n\\assert select max(amount) < 1000 from t\n\
         the value stands after the last = outside of parentheses and is one word, number or string",
        "\\assert select count(*) from t = 184\n\\assert select max(amount) < 1000 from t\n\
         值写在括号外最后一个 = 之后：一个词、数字或字符串",
    ),
    argument: Argument::Sql,
    run,
};

/// Query and expected value.
fn parts(line: &str) -> (&str, Option<String>) {
    let tokens: Vec<_> = lexed(line).into_iter().filter(|(t, _)| !matches!(t, Token::Whitespace(_))).collect();
    let mut depth = 0i32;
    let mut last = None;
    for (i, (token, range)) in tokens.iter().enumerate() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Eq if depth == 0 => last = Some((i, range.clone())),
            _ => {}
        }
    }
    let Some((at, range)) = last else { return (line, None) };
    let value = match tokens.get(at + 1..).unwrap_or_default() {
        [(Token::SingleQuotedString(s), _)] => Some(s.clone()),
        [(Token::Number(..) | Token::Word(_), r)] => line.get(r.clone()).map(|v| v.trim().to_string()),
        [(Token::Minus, _), (Token::Number(..), r)] => line.get(r.clone()).map(|v| format!("-{}", v.trim())),
        _ => None,
    };
    match value {
        Some(value) => (line.get(..range.start).unwrap_or_default().trim_end(), Some(value)),
        None => (line, None),
    }
}

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let line = replaced(call.sql(), &shell.variables);
        let (query, expected) = parts(&line);
        if query.is_empty() {
            return Err(usage("write \\assert query = value"));
        }
        let Collected { schema, batches, pins, notices } = shell.collect(query, 1).await?;
        let rows: usize = batches.iter().map(arrow::array::RecordBatch::num_rows).sum();
        let found = match batches.iter().find(|batch| batch.num_rows() > 0) {
            Some(batch) if rows == 1 && schema.fields().len() == 1 => {
                let mut found = String::new();
                let present = text(batch.column(0), 0, shell.times(), &mut found).map_err(|e| usage(e.to_string()))?;
                if present { found } else { "NULL".to_string() }
            }
            _ => {
                return Err(usage(format!(
                    "the query answers {rows} rows of {} columns, not one value",
                    schema.fields().len()
                )));
            }
        };
        let expected = expected.unwrap_or_else(|| "true".to_string());
        if found == expected || (expected.eq_ignore_ascii_case("null") && found == "NULL") {
            let mut lines = vec![format!("holds: {query} = {found}")];
            lines.extend(shell.notes(&pins, &notices));
            return shell.say(&lines);
        }
        let failed = Error::invalid(format!("{query} answers {found}, not {expected}")).with_code("AssertionFailed");
        let read: Vec<&str> = pins.iter().map(|pin| pin.text.as_str()).collect();
        Err(if read.is_empty() { failed } else { failed.with_context("pin", read.join("; ")) })
    }
    .boxed_local()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_stands_after_the_last_equals_sign() {
        let cases = [
            ("select count(*) from t where a = 1 = 3", "select count(*) from t where a = 1", Some("3")),
            ("select 'a=b' = 'x y'", "select 'a=b'", Some("x y")),
            ("select (a = 3) from t", "select (a = 3) from t", None),
            ("select max(a) < 3 from t", "select max(a) < 3 from t", None),
            ("select -2 = -2", "select -2", Some("-2")),
        ];
        for (line, query, value) in cases {
            assert_eq!(parts(line), (query, value.map(str::to_string)), "{line}");
        }
    }
}
