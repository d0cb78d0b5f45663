//! `\assert`: a line of a runbook that must hold.

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, usage};
use crate::error::{Error, Result};
use crate::export::value::text;
use crate::shell::exact;
use crate::shell::execute::Collected;
use crate::shell::input::lexed;
use crate::shell::language::{both, told};
use crate::shell::render::is_numeric;
use crate::shell::state::Shell;
use crate::shell::variables::replaced;
use crate::sql::{LastEquals, last_equals};

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
         the value stands after the last = outside of parentheses and is one word, number or string; where that = could be\n\
         the query's own, as in WHERE, write \\assert (query) = value",
        "\\assert select count(*) from t = 184\n\\assert select max(amount) < 1000 from t\n\
         值写在括号外最后一个 = 之后：一个词、数字或字符串；这个 = 若可能属于查询本身（如 WHERE），\n\
         就写成 \\assert (query) = value",
    ),
    argument: Argument::Sql,
    run,
};

/// Query and expected value, when the last `=` is not the query's own.
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
        let own = if expected.is_some() { last_equals(&line) } else { LastEquals::Outside };
        if own == LastEquals::Either {
            return Err(parentheses("the last = may compare the answer, or belong to the query"));
        }
        let (query, expected) = if own == LastEquals::Inside { (line.as_str(), None) } else { (query, expected) };
        let answer = shell.collect(query, 1).await?;
        let Collected { schema, batches, pins, .. } = &answer;
        if own == LastEquals::Inside && !schema.fields().iter().all(|field| *field.data_type() == DataType::Boolean) {
            return Err(parentheses("the last = belongs to the query, which answers neither true nor false"));
        }
        let rows: usize = batches.iter().map(arrow::array::RecordBatch::num_rows).sum();
        let found = match batches.iter().find(|batch| batch.num_rows() > 0) {
            Some(batch) if rows == 1 && schema.fields().len() == 1 => {
                let mut found = String::new();
                let present = text(batch.column(0), 0, shell.times(), &mut found).map_err(|e| usage(e.to_string()))?;
                if present { found } else { "NULL".to_string() }
            }
            _ => {
                return Err(Error::invalid(format!(
                    "the query answers {rows} rows of {} columns, not one value",
                    schema.fields().len()
                ))
                .with_code("NotOneValue"));
            }
        };
        let expected = expected.unwrap_or_else(|| "true".to_string());
        let data_type = schema.field(0).data_type();
        if is(data_type, &found, &expected) {
            let language = shell.settings.language;
            shell.say(&[told!(
                language,
                "holds: {query} = {found}",
                "成立：{query} = {found}",
                query = query,
                found = found
            )])?;
            return shell.tell_read(&answer);
        }
        let failed = Error::invalid(format!("{query} answers {found}, not {expected}")).with_code("AssertionFailed");
        let read: Vec<&str> = pins.iter().map(|pin| pin.text.as_str()).collect();
        Err(if read.is_empty() { failed } else { failed.with_context("pin", read.join("; ")) })
    }
    .boxed_local()
}

fn parentheses(message: &str) -> Error {
    usage(message).with_hint("write \\assert (query) = value, or a query that answers true")
}

/// Whether a value is what was expected: numbers as numbers, however many zeros are written.
fn is(data_type: &DataType, found: &str, expected: &str) -> bool {
    if found == expected {
        return true;
    }
    match data_type {
        _ if found == "NULL" => expected.eq_ignore_ascii_case("null"),
        DataType::Boolean => found.eq_ignore_ascii_case(expected),
        number if is_numeric(number) => {
            exact::same(found, expected).unwrap_or_else(|| match (found.parse::<f64>(), expected.parse::<f64>()) {
                (Ok(found), Ok(expected)) => number.is_floating() && found == expected,
                _ => false,
            })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers_and_texts_as_texts() {
        let decimal = DataType::Decimal128(12, 2);
        for (data_type, found, expected) in [
            (&decimal, "97550.80", "97550.8"),
            (&DataType::Int64, "214", "214.0"),
            (&DataType::Float64, "1e300", "1.0E300"),
            (&DataType::Float64, "NaN", "NaN"),
            (&DataType::Boolean, "true", "TRUE"),
            (&DataType::Utf8, "NULL", "null"),
        ] {
            assert!(is(data_type, found, expected), "{found} {expected}");
        }
        for (data_type, found, expected) in [
            (&decimal, "97550.80", "97550.81"),
            (&DataType::Int64, "9007199254740993", "9007199254740992"),
            (&DataType::Float64, "NaN", "x"),
            (&DataType::Utf8, "007", "7"),
            (&DataType::Utf8, "true", "TRUE"),
        ] {
            assert!(!is(data_type, found, expected), "{found} {expected}");
        }
    }

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
