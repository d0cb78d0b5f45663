//! `WAIT FOR TABLE t UNTIL WATERMARK >= … AND … TIMEOUT INTERVAL '10' MINUTE POLL INTERVAL '2' SECOND PIN`.

use datafusion::sql::sqlparser::ast::{Expr, TableFactor};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::{parse_error, parser};
use crate::error::{Error, Result};
use crate::sql::tokens::{are_words, is_word, syntax, written};

const USAGE: &str = "write WAIT FOR TABLE t UNTIL WATERMARK >= TIMESTAMP '2026-04-16 10:00:00' AND COMMIT ('user', 120) \
                     TIMEOUT INTERVAL '10' MINUTE [POLL INTERVAL '2' SECOND] [PIN | PIN LATEST]; other conditions: \
                     SNAPSHOT >= 101, TAG 'eod', QUERY (SELECT …)";

/// What is waited for.
#[derive(Debug)]
pub(in crate::sql) enum Awaited {
    /// `WATERMARK >= …`
    Watermark(Expr),
    /// `COMMIT ('user', 120)`
    Commit(Box<[Expr; 2]>),
    /// `SNAPSHOT >= 101`
    Snapshot(Expr),
    /// `TAG 'eod'`
    Tag(Expr),
    /// `QUERY (SELECT …)`, as text.
    Query(String),
}

/// Which snapshot a gate pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sql) enum GatePin {
    /// The oldest that satisfies.
    Oldest,
    /// The newest.
    Latest,
}

/// `WAIT …`
#[derive(Debug)]
pub(in crate::sql) struct WaitCommand {
    pub(in crate::sql) tables: Vec<TableFactor>,
    pub(in crate::sql) conditions: Vec<Awaited>,
    pub(in crate::sql) timeout: Expr,
    pub(in crate::sql) poll: Option<Expr>,
    pub(in crate::sql) pin: Option<GatePin>,
}

/// Parses it.
pub(super) fn parse(tokens: &[TokenWithSpan]) -> Result<WaitCommand> {
    let place = tokens.first().map_or_else(Span::empty, |token| token.span);
    let wrong = |message: String, span: Span| syntax(message, span).with_hint(USAGE);
    if !are_words(tokens, 0, &["WAIT", "FOR", "TABLE"]) && !are_words(tokens, 0, &["WAIT", "FOR", "TABLES"]) {
        return Err(wrong("WAIT takes FOR TABLE".to_string(), place));
    }
    let Some(until) = outside(tokens, 3, &["UNTIL"]) else { return Err(wrong("UNTIL is missing".to_string(), place)) };
    let Some(timeout_at) = outside(tokens, until, &["TIMEOUT"]) else {
        return Err(wrong(
            "TIMEOUT is missing: a gate that is never given up hides that nothing comes".to_string(),
            place,
        ));
    };
    let poll_at = outside(tokens, timeout_at, &["POLL"]);
    let pin_at = outside(tokens, timeout_at, &["PIN"]);
    let end = tokens.len();
    let mut names = parser(slice(tokens, 3, until));
    let tables = names
        .parse_comma_separated(Parser::parse_table_factor)
        .map_err(|error| parse_error(&error, place).with_hint(USAGE))?;
    if names.index() < until.saturating_sub(3) {
        let next = names.peek_token();
        return Err(wrong(format!("unexpected {}", next.token), next.span));
    }
    for table in &tables {
        if !matches!(table, TableFactor::Table { version: None, args: None, .. }) {
            return Err(wrong(format!("{table}: a gate looks at all snapshots of a table, by its plain name"), place));
        }
    }
    let mut conditions = Vec::new();
    let mut from = until + 1;
    while from < timeout_at {
        let to = outside(tokens, from, &["AND"]).filter(|and| *and < timeout_at).unwrap_or(timeout_at);
        conditions.push(condition(&slice(tokens, from, to), place)?);
        from = to + usize::from(to < timeout_at);
        if to < timeout_at && from == timeout_at {
            return Err(wrong("a condition is missing after AND".to_string(), place));
        }
    }
    if conditions.is_empty() {
        return Err(wrong("a condition is missing after UNTIL".to_string(), place));
    }
    let timeout_end = poll_at.or(pin_at).unwrap_or(end);
    let timeout = expression(&slice(tokens, timeout_at + 1, timeout_end), place)?;
    let poll = match poll_at {
        Some(at) => Some(expression(&slice(tokens, at + 1, pin_at.unwrap_or(end)), place)?),
        None => None,
    };
    let pin = match pin_at {
        None => None,
        Some(at) if at + 1 == end => Some(GatePin::Oldest),
        Some(at) if is_word(tokens.get(at + 1), "LATEST") && at + 2 == end => Some(GatePin::Latest),
        Some(at) if is_word(tokens.get(at + 1), "RETAIN") => {
            return Err(Error::unsupported("RETAIN would write a tag into the table, and writing comes later")
                .with_code("NotYet")
                .with_hint("pin without RETAIN: SHOW PINS tells about when the snapshot expires"));
        }
        Some(at) => {
            let span = tokens.get(at + 1).map_or(place, |token| token.span);
            return Err(wrong("unexpected words behind PIN".to_string(), span));
        }
    };
    Ok(WaitCommand { tables, conditions, timeout, poll, pin })
}

/// The first of these words outside of parentheses.
fn outside(tokens: &[TokenWithSpan], from: usize, words: &[&str]) -> Option<usize> {
    let mut depth = 0i32;
    tokens.iter().enumerate().skip(from).find_map(|(at, token)| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        (depth == 0 && words.iter().any(|word| is_word(Some(token), word))).then_some(at)
    })
}

fn slice(tokens: &[TokenWithSpan], from: usize, to: usize) -> Vec<TokenWithSpan> {
    tokens.get(from..to).unwrap_or_default().to_vec()
}

fn expression(tokens: &[TokenWithSpan], place: Span) -> Result<Expr> {
    let span = tokens.first().map_or(place, |token| token.span);
    if tokens.is_empty() {
        return Err(syntax("a value is missing", span).with_hint(USAGE));
    }
    let mut parser = parser(tokens.to_vec());
    let expr = parser.parse_expr().map_err(|error| parse_error(&error, span).with_hint(USAGE))?;
    if parser.index() < tokens.len() {
        let next = parser.peek_token();
        return Err(syntax(format!("unexpected {}", next.token), next.span).with_hint(USAGE));
    }
    Ok(expr)
}

fn condition(tokens: &[TokenWithSpan], place: Span) -> Result<Awaited> {
    let span = tokens.first().map_or(place, |token| token.span);
    let first = |word: &str| is_word(tokens.first(), word);
    let compares = matches!(tokens.get(1).map(|token| &token.token), Some(Token::GtEq));
    if (first("WATERMARK") || first("SNAPSHOT")) && !compares {
        return Err(syntax(format!("{} is compared with >= alone", written(tokens)), span).with_hint(USAGE));
    }
    let rest = |from: usize| expression(tokens.get(from..).unwrap_or_default(), span);
    if first("WATERMARK") {
        return Ok(Awaited::Watermark(rest(2)?));
    }
    if first("SNAPSHOT") {
        return Ok(Awaited::Snapshot(rest(2)?));
    }
    if first("TAG") {
        return Ok(Awaited::Tag(rest(1)?));
    }
    if first("COMMIT") {
        return match rest(1)? {
            Expr::Tuple(values) => match <[Expr; 2]>::try_from(values) {
                Ok(both) => Ok(Awaited::Commit(Box::new(both))),
                Err(_) => Err(syntax("COMMIT takes a user and an identifier", span).with_hint(USAGE)),
            },
            _ => Err(syntax("COMMIT takes a user and an identifier", span).with_hint(USAGE)),
        };
    }
    let parenthesised = matches!(tokens.get(1).map(|token| &token.token), Some(Token::LParen))
        && matches!(tokens.last().map(|token| &token.token), Some(Token::RParen));
    if first("QUERY") && parenthesised {
        return Ok(Awaited::Query(written(tokens.get(2..tokens.len() - 1).unwrap_or_default())));
    }
    Err(syntax(format!("{} is nothing that can be waited for", written(tokens)), span).with_hint(USAGE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::tokens::{statements, tokenize};

    fn parsed(sql: &str) -> Result<WaitCommand> {
        parse(&statements(tokenize(sql)?).remove(0))
    }

    #[test]
    fn a_gate_is_read_with_all_its_parts() {
        let gate = parsed(
            "WAIT FOR TABLE pay.t UNTIL WATERMARK >= TIMESTAMP '2026-04-16 10:00:00' AND COMMIT ('cdc', 120) AND \
             SNAPSHOT >= 101 AND TAG 'eod' AND QUERY (SELECT max(x) > 1 AND true FROM t WHERE a AND b) \
             TIMEOUT INTERVAL '10' MINUTE POLL INTERVAL '2' SECOND PIN LATEST",
        )
        .unwrap();
        assert_eq!((gate.tables.len(), gate.conditions.len(), gate.pin), (1, 5, Some(GatePin::Latest)));
        assert!(gate.poll.is_some());
        let Some(Awaited::Query(text)) = gate.conditions.last() else { panic!("{gate:?}") };
        assert_eq!(text, "SELECT max(x) > 1 AND true FROM t WHERE a AND b");
        let two = parsed("wait for tables a, b until snapshot >= 3 timeout interval '1' second pin").unwrap();
        assert_eq!((two.tables.len(), two.pin, two.poll.is_none()), (2, Some(GatePin::Oldest), true));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (sql, says) in [
            ("WAIT FOR TABLE t UNTIL SNAPSHOT >= 1", "TIMEOUT is missing"),
            ("WAIT FOR TABLE t TIMEOUT INTERVAL '1' SECOND", "UNTIL is missing"),
            ("WAIT FOR TABLE t UNTIL TIMEOUT INTERVAL '1' SECOND", "a condition is missing"),
            ("WAIT FOR TABLE t UNTIL SNAPSHOT >= 1 AND TIMEOUT INTERVAL '1' SECOND", "missing after AND"),
            ("WAIT FOR TABLE t UNTIL SNAPSHOT > 1 TIMEOUT INTERVAL '1' SECOND", "compared with >= alone"),
            ("WAIT FOR TABLE t UNTIL ROWS >= 1 TIMEOUT INTERVAL '1' SECOND", "nothing that can be waited for"),
            ("WAIT FOR TABLE t UNTIL COMMIT ('a') TIMEOUT INTERVAL '1' SECOND", "a user and an identifier"),
            ("WAIT FOR TABLE t VERSION AS OF 3 UNTIL SNAPSHOT >= 1 TIMEOUT INTERVAL '1' SECOND", ""),
            ("WAIT FOR TABLE t UNTIL SNAPSHOT >= 1 TIMEOUT INTERVAL '1' SECOND PIN NOW", "behind PIN"),
            ("WAIT t UNTIL SNAPSHOT >= 1", "FOR TABLE"),
        ] {
            let error = parsed(sql).unwrap_err();
            assert_eq!(error.code(), "Syntax", "{sql}");
            assert!(error.message().contains(says), "{sql}: {error}");
        }
    }
}
