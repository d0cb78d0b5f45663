//! Values for `$name`. A value takes the place of its token before the statement is parsed: it may stand wherever a
//! literal may, `VERSION AS OF $id` included, and is never more than a literal.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::tokens::{mark, string, tokenize, word};
use crate::error::{Error, Result};

/// The tokens of a statement with parameters replaced. With `all`, one without a value is an error.
pub(crate) fn bind(
    tokens: Vec<TokenWithSpan>,
    values: &BTreeMap<String, String>,
    all: bool,
) -> Result<Vec<TokenWithSpan>> {
    if all && let Some((name, span)) = unset_variable(&tokens) {
        return Err(unset(&name, span));
    }
    let mut bound = Vec::with_capacity(tokens.len());
    for token in tokens {
        let Token::Placeholder(name) = &token.token else {
            bound.push(token);
            continue;
        };
        match name.strip_prefix('$').and_then(|name| values.get(name)) {
            Some(value) => bound.extend(literal(value, token.span)),
            None if all => return Err(missing(name, values, token.span)),
            None => bound.push(token),
        }
    }
    Ok(bound)
}

fn missing(name: &str, values: &BTreeMap<String, String>, span: Span) -> Error {
    let plain = name.trim_start_matches('$');
    let known: Vec<String> = values.keys().map(|name| format!("${name}")).collect();
    let known = if known.is_empty() { String::new() } else { format!("; known: {}", known.join(", ")) };
    let error = Error::invalid(format!("there is no value for {name}"))
        .with_code("ParameterMissing")
        .with_context("line", span.start.line)
        .with_context("column", span.start.column);
    if plain.starts_with('?') {
        return error.with_hint("values have names: write $name, and give one with --param name=value");
    }
    error.with_hint(format!("give one: --param {plain}=value, or \\param {plain} value in the shell{known}"))
}

/// Words behind which an expression or a name begins: what a colon follows there is no slice and no path.
const BEFORE_OPERANDS: &[&str] = &[
    "SELECT",
    "DISTINCT",
    "ALL",
    "FROM",
    "JOIN",
    "WHERE",
    "ON",
    "AND",
    "OR",
    "NOT",
    "BY",
    "HAVING",
    "QUALIFY",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "FIRST",
    "NEXT",
    "OF",
    "AS",
    "IN",
    "IS",
    "LIKE",
    "ILIKE",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "TABLE",
    "TABLES",
    "DATABASE",
    "DESCRIBE",
    "DESC",
    "USE",
    "SET",
    "TO",
    "COPY",
    "UNPIN",
    "VALUES",
    "EXPLAIN",
    "ANALYZE",
    "VERBOSE",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "INTERVAL",
    "TIMESTAMP",
    "DATE",
    "EXECUTE",
    "PARTITIONS",
];

/// The first `:name`, `:'name'` or `:"name"` where an operand stands: a variable of the shell that nobody has set, since
/// those that are set have been replaced.
fn unset_variable(tokens: &[TokenWithSpan]) -> Option<(String, Span)> {
    let mut brackets: Vec<&Token> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            open @ (Token::LParen | Token::LBracket | Token::LBrace) => brackets.push(open),
            Token::RParen | Token::RBracket | Token::RBrace => drop(brackets.pop()),
            // `a[1:n]`, `{a: b}`
            Token::Colon if !matches!(brackets.last(), Some(Token::LBracket | Token::LBrace)) => {
                let before = at.checked_sub(1).and_then(|before| tokens.get(before));
                let name = tokens.get(at + 1).filter(|name| follows(token, name)).and_then(|name| named(&name.token));
                if let (true, Some(name)) = (before.is_none_or(|before| begins_operand(&before.token)), name) {
                    return Some((name, token.span));
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether nothing stands between two tokens; those of a prepared statement all have one place.
fn follows(token: &TokenWithSpan, next: &TokenWithSpan) -> bool {
    token.span.end == next.span.start || token.span == next.span
}

fn named(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.to_string()),
        Token::SingleQuotedString(name) => Some(format!("'{name}'")),
        Token::Number(name, _) => Some(name.clone()),
        _ => None,
    }
}

/// Whether an operand begins behind a token.
fn begins_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => {
            word.quote_style.is_none() && BEFORE_OPERANDS.iter().any(|known| word.value.eq_ignore_ascii_case(known))
        }
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::HexStringLiteral(_)
        | Token::UnicodeStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::Placeholder(_)
        | Token::RParen
        | Token::RBracket
        | Token::RBrace
        | Token::Colon => false,
        _ => true,
    }
}

fn unset(name: &str, span: Span) -> Error {
    let plain = name.trim_matches(['\'', '"']);
    Error::invalid(format!("the variable :{name} is not set"))
        .with_code("UnknownVariable")
        .with_context("line", span.start.line)
        .with_context("column", span.start.column)
        .with_hint(format!("set it: \\set {plain} value in the shell, or -v {plain}=value"))
}

/// A value as a literal: a number, `true`, `false`, `null` or a quoted string as written, anything else a string.
/// Digits behind a zero are a string: who writes 007 means a name.
fn literal(value: &str, span: Span) -> Vec<TokenWithSpan> {
    let tokens: Vec<Token> = match tokenize(value) {
        Ok(tokens) => tokens.into_iter().map(|t| t.token).filter(|t| !matches!(t, Token::EOF)).collect(),
        Err(_) => Vec::new(),
    };
    let counts = |digits: &str| {
        let mut chars = digits.chars();
        !(chars.next() == Some('0') && chars.next().is_some_and(|c| c.is_ascii_digit()))
    };
    match tokens.as_slice() {
        [Token::Number(digits, _)] if counts(digits) => {
            vec![TokenWithSpan::new(Token::Number(digits.clone(), false), span)]
        }
        [Token::Minus, Token::Number(digits, _)] if counts(digits) => vec![
            mark(Token::LParen, span),
            mark(Token::Minus, span),
            TokenWithSpan::new(Token::Number(digits.clone(), false), span),
            mark(Token::RParen, span),
        ],
        [Token::SingleQuotedString(text)] => vec![string(text, span)],
        [Token::Word(w)]
            if w.quote_style.is_none()
                && ["true", "false", "null"].iter().any(|known| w.value.eq_ignore_ascii_case(known)) =>
        {
            vec![word(&w.value, span)]
        }
        _ => vec![string(value, span)],
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::statements;
    use super::*;

    fn bound(sql: &str, values: &[(&str, &str)]) -> Result<String> {
        let values = values.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string())).collect();
        let tokens = bind(statements(tokenize(sql)?).remove(0), &values, true)?;
        Ok(tokens.iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn values_are_literals_and_nothing_more() {
        // tokens as they are shown, a quote in a string not doubled
        let cases = [
            ("3", "select 3"),
            ("-2.5", "select ( - 2.5 )"),
            ("true", "select true"),
            ("NULL", "select NULL"),
            ("'3'", "select '3'"),
            ("007", "select '007'"),
            ("2026-04-16", "select '2026-04-16'"),
            ("1 or 1 = 1", "select '1 or 1 = 1'"),
            ("it's", "select 'it's'"),
            ("", "select ''"),
            ("drop", "select 'drop'"),
        ];
        for (value, expected) in cases {
            assert_eq!(bound("select $x", &[("x", value)]).unwrap(), expected, "{value}");
        }
        assert_eq!(bound("select t$x, '$x', $1", &[("x", "3"), ("1", "a")]).unwrap(), "select t$x , '$x' , 'a'");
    }

    #[test]
    fn variable_that_is_not_set_is_told_with_its_place() {
        for (sql, name, column) in [
            ("select :nope", ":nope", 8),
            ("select 1 limit :nope", ":nope", 16),
            ("select a + :'no pe'", ":'no pe'", 12),
            ("select f(x, :\"nope\")", ":\"nope\"", 13),
            ("select * from t version as of :id", ":id", 31),
            ("select * from t at (version => :id)", ":id", 32),
            ("select * from :t", ":t", 15),
            ("select a[2] = :1", ":1", 15),
            ("select [f(:x)]", ":x", 11),
        ] {
            let error = bound(sql, &[]).unwrap_err();
            assert_eq!(
                (error.code(), error.message()),
                ("UnknownVariable", format!("the variable {name} is not set").as_str())
            );
            assert_eq!(error.context(), [("line", "1".to_string()), ("column", column.to_string())], "{sql}");
            assert!(error.hint().unwrap().contains("\\set "), "{error}");
        }
        for sql in [
            "select a[1:n], a[:n], a[m:], b[value:n]",
            "select {'a':b, c:d}",
            "select a::int, x:y, 'a' : b",
            "select f(a : b)",
        ] {
            assert!(bound(sql, &[]).is_ok(), "{sql}");
        }
        assert_eq!(bound("select ?", &[]).unwrap_err().hint().map(|hint| hint.contains("$name")), Some(true));
    }

    #[test]
    fn missing_value_is_told_with_its_place() {
        let error = bound("select a,\n $dya", &[("day", "1")]).unwrap_err();
        assert_eq!(error.code(), "ParameterMissing");
        assert_eq!(error.context(), [("line", "2".to_string()), ("column", "2".to_string())]);
        assert!(error.hint().unwrap().ends_with("known: $day"), "{error}");
    }
}
