//! `PREPARE`, `EXECUTE` and `DEALLOCATE`. What is prepared is kept as tokens and planned anew by every `EXECUTE`: it reads
//! the snapshot of that run, never the one that was latest when it was prepared, and `VERSION AS OF $1` works.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};
use parking_lot::RwLock;

use super::deep_stack::{DeepStack, nesting};
use super::dialect::LakeDialect;
use super::statements;
use super::tokens::{are_words, is_word, mark, string, syntax, word};
use crate::error::{Error, Result};

type Tokens = Vec<TokenWithSpan>;

/// The prepared statements of a session, by name.
#[derive(Debug, Default)]
pub(super) struct PreparedStatements(RwLock<BTreeMap<String, Prepared>>);

#[derive(Debug, Clone)]
struct Prepared {
    /// Types of `$1`, `$2`, …, where they were declared.
    types: Vec<Tokens>,
    statement: Tokens,
}

/// What is left to do.
pub(super) enum Step {
    /// Runs these tokens.
    Run(Tokens),
    /// Runs what was prepared: tokens that stand where EXECUTE and its values do, and the same as they were written.
    Prepared { tokens: Tokens, written: Tokens },
    /// It is done; the word to answer with.
    Done(&'static str),
}

impl PreparedStatements {
    /// Carries out PREPARE and DEALLOCATE, puts the prepared statement in the place of EXECUTE (behind EXPLAIN too), and
    /// hands back every other statement as it is.
    ///
    /// # Errors
    /// A prepared statement that does not parse, an unknown name, the wrong number of values.
    pub(super) fn step(&self, tokens: Tokens) -> Result<Step> {
        let first = tokens.first().map_or_else(Span::empty, |token| token.span);
        if is_word(tokens.first(), "PREPARE") {
            let (name, prepared) = prepare(tokens)?;
            let mut all = self.0.write();
            if all.contains_key(&name) {
                return Err(Error::invalid(format!("there is a prepared statement '{name}' already"))
                    .with_code("PreparedExists")
                    .with_hint(format!("DEALLOCATE {name} first")));
            }
            all.insert(name, prepared);
            return Ok(Step::Done("PREPARE"));
        }
        if is_word(tokens.first(), "DEALLOCATE") {
            let at = if is_word(tokens.get(1), "PREPARE") && tokens.len() > 2 { 2 } else { 1 };
            let (name, next) = name_at(&tokens, at)?;
            if let Some(token) = tokens.get(next) {
                return Err(syntax(format!("unexpected {}", token.token), token.span));
            }
            if is_word(tokens.get(at), "ALL") {
                self.0.write().clear();
            } else if self.0.write().remove(&name).is_none() {
                return Err(self.unknown(&name, first));
            }
            return Ok(Step::Done("DEALLOCATE"));
        }
        let at = tokens.iter().take_while(|token| explains(token)).count();
        if !is_word(tokens.get(at), "EXECUTE") || (at > 0 && !is_word(tokens.first(), "EXPLAIN")) {
            return Ok(Step::Run(tokens));
        }
        let mut tokens = tokens;
        let call = tokens.split_off(at);
        let (expanded, written) = self.expand(&call)?;
        let written = tokens.iter().cloned().chain(written).collect();
        tokens.extend(expanded);
        Ok(Step::Prepared { tokens, written })
    }

    /// The statement that `EXECUTE name (values)` stands for: at its place, and as it was written. A place in the text
    /// of PREPARE is none in that of EXECUTE.
    fn expand(&self, call: &[TokenWithSpan]) -> Result<(Tokens, Tokens)> {
        let place = call.first().map_or_else(Span::empty, |token| token.span);
        let (name, next) = name_at(call, 1)?;
        let Some(prepared) = self.0.read().get(&name).cloned() else { return Err(self.unknown(&name, place)) };
        let values = values(call.get(next..).unwrap_or_default(), place)?;
        let wanted = prepared.statement.iter().filter_map(position).max().unwrap_or(0).max(prepared.types.len());
        if values.len() != wanted {
            return Err(Error::invalid(format!("'{name}' takes {wanted} values, {} are given", values.len()))
                .with_code("ParameterMissing")
                .with_context("line", place.start.line)
                .with_context("column", place.start.column));
        }
        let (mut statement, mut written) = (Vec::new(), Vec::new());
        for token in prepared.statement {
            let value = position(&token).and_then(|n| n.checked_sub(1)).and_then(|i| Some((i, values.get(i)?)));
            match value {
                None => {
                    statement.push(TokenWithSpan { span: place, ..token.clone() });
                    written.push(token);
                }
                Some((i, value)) => {
                    let declared = prepared.types.get(i).map(Vec::as_slice);
                    written.extend(given(value, declared, token.span));
                    let here = |token: &TokenWithSpan| TokenWithSpan { span: place, ..token.clone() };
                    let declared: Option<Tokens> = declared.map(|declared| declared.iter().map(here).collect());
                    statement.extend(given(value, declared.as_deref(), place));
                }
            }
        }
        Ok((statement, written))
    }

    fn unknown(&self, name: &str, place: Span) -> Error {
        let all = self.0.read();
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        let hint = match names.as_slice() {
            [] => "there are none in this session; write PREPARE name AS SELECT …".to_string(),
            names => format!("prepared in this session: {}", names.join(", ")),
        };
        Error::not_found(format!("there is no prepared statement '{name}'"))
            .with_code("PreparedNotFound")
            .with_context("line", place.start.line)
            .with_context("column", place.start.column)
            .with_hint(hint)
    }
}

/// What takes the place of `$n`: a value, of the type that was declared.
fn given(value: &[TokenWithSpan], declared: Option<&[TokenWithSpan]>, span: Span) -> Tokens {
    let (open, close) = (mark(Token::LParen, span), mark(Token::RParen, span));
    match (value, declared) {
        ([one], None) => vec![one.clone()],
        (several, None) => [&[open], several, &[close]].concat(),
        (value, Some(declared)) => {
            [&[word("CAST", span), open], value, &[word("AS", span)], declared, &[close]].concat()
        }
    }
}

/// Words between EXPLAIN and what is explained.
fn explains(token: &TokenWithSpan) -> bool {
    ["EXPLAIN", "ANALYZE", "VERBOSE", "FILES"].iter().any(|known| is_word(Some(token), known))
        || matches!(token.token, Token::LParen | Token::RParen)
}

/// `PREPARE name [(types)] AS statement`
fn prepare(tokens: Tokens) -> Result<(String, Prepared)> {
    let (name, mut next) = name_at(&tokens, 1)?;
    let mut types = Vec::new();
    if matches!(tokens.get(next).map(|t| &t.token), Some(Token::LParen)) {
        let rest = tokens.get(next + 1..).unwrap_or_default();
        let mut parser = parser(rest);
        loop {
            let start = parser.index();
            parser.parse_data_type().map_err(|e| statements::parse_error(&e, place(rest, start)))?;
            types.push(rest.get(start..parser.index()).unwrap_or_default().to_vec());
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        let end = parser.index();
        if !parser.consume_token(&Token::RParen) {
            return Err(syntax("the types end with )", place(rest, end)));
        }
        next += 1 + parser.index();
    }
    if !are_words(&tokens, next, &["AS"]) {
        return Err(syntax("AS is missing", place(&tokens, next)).with_hint("write PREPARE name AS SELECT … $1 …"));
    }
    let statement = tokens.get(next + 1..).unwrap_or_default().to_vec();
    for ours in ["PREPARE", "EXECUTE", "DEALLOCATE"] {
        if is_word(statement.first(), ours) {
            return Err(syntax(format!("{ours} cannot be prepared"), place(&statement, 0)));
        }
    }
    // a string may stand wherever a value may: what does not parse with one never will
    let tried = statement.iter().map(|token| match &token.token {
        Token::Placeholder(_) => string("1", token.span),
        _ => token.clone(),
    });
    statements::parse(tried.collect(), &mut Vec::new())?;
    Ok((name, Prepared { types, statement }))
}

fn parser(tokens: &[TokenWithSpan]) -> Parser<'static> {
    Parser::new(&LakeDialect).with_tokens_with_locations(tokens.to_vec())
}

fn place(tokens: &[TokenWithSpan], at: usize) -> Span {
    tokens.get(at).or(tokens.last()).map_or_else(Span::empty, |token| token.span)
}

/// The name at a place and what comes behind it.
fn name_at(tokens: &[TokenWithSpan], at: usize) -> Result<(String, usize)> {
    match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(w)) if w.quote_style.is_some() => Ok((w.value.clone(), at + 1)),
        Some(Token::Word(w)) => Ok((w.value.to_lowercase(), at + 1)),
        _ => Err(syntax("the name of a prepared statement is missing", place(tokens, at))),
    }
}

/// `(value, …)`, or nothing.
fn values(tokens: &[TokenWithSpan], call: Span) -> Result<Vec<Tokens>> {
    let Some(first) = tokens.first() else { return Ok(Vec::new()) };
    let (inner, last) = match (&first.token, tokens.split_last()) {
        (Token::LParen, Some((last, _))) if matches!(last.token, Token::RParen) => {
            (tokens.get(1..tokens.len() - 1).unwrap_or_default(), last)
        }
        _ => return Err(syntax("EXECUTE takes its values in ( )", call)),
    };
    let mut values = Vec::new();
    if inner.is_empty() {
        return Ok(values);
    }
    let mut parser = parser(inner);
    loop {
        let start = parser.index();
        let stack = DeepStack::of(nesting(inner.get(start..).unwrap_or_default())?);
        stack.run(|| parser.parse_expr().map(drop)).map_err(|e| statements::parse_error(&e, place(inner, start)))?;
        values.push(inner.get(start..parser.index()).unwrap_or_default().to_vec());
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    match inner.get(parser.index()) {
        None => Ok(values),
        Some(token) => Err(syntax(format!("unexpected {}", token.token), token.span.union(&last.span))),
    }
}

/// n of `$n`.
fn position(token: &TokenWithSpan) -> Option<usize> {
    match &token.token {
        Token::Placeholder(name) => name.strip_prefix('$')?.parse().ok().filter(|n| *n > 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::{statements, tokenize};
    use super::*;

    fn step(prepared: &PreparedStatements, sql: &str) -> Result<String> {
        match prepared.step(statements(tokenize(sql)?).remove(0))? {
            Step::Run(tokens) | Step::Prepared { tokens, .. } => {
                Ok(tokens.iter().map(|t| t.token.to_string()).collect::<Vec<_>>().join(" "))
            }
            Step::Done(word) => Ok(word.to_string()),
        }
    }

    #[test]
    fn execute_stands_for_what_was_prepared() {
        let prepared = PreparedStatements::default();
        let cases = [
            ("prepare p as select * from t version as of $1 where a = $2 or b = $2", "PREPARE"),
            ("execute p(3, 1 + 1)", "select * from t version as of 3 where a = ( 1 + 1 ) or b = ( 1 + 1 )"),
            (
                "explain files execute P (3, f(1, 2))",
                "explain files select * from t version as of 3 where a = ( f ( 1 , 2 ) ) or b = ( f ( 1 , 2 ) )",
            ),
            ("prepare \"Q\" (int, decimal(10, 2)) as select $2, $1", "PREPARE"),
            ("execute \"Q\"('1', 2)", "select CAST ( 2 AS decimal ( 10 , 2 ) ) , CAST ( '1' AS int )"),
            ("prepare n as select 1", "PREPARE"),
            ("execute n", "select 1"),
            ("execute n()", "select 1"),
            ("deallocate prepare n", "DEALLOCATE"),
            ("deallocate all", "DEALLOCATE"),
            ("select execute from t", "select execute from t"),
        ];
        for (sql, expected) in cases {
            assert_eq!(step(&prepared, sql).unwrap(), expected, "{sql}");
        }
        assert_eq!(step(&prepared, "execute p(3, 1)").unwrap_err().code(), "PreparedNotFound");
    }

    #[test]
    fn what_is_executed_stands_where_execute_does() {
        let prepared = PreparedStatements::default();
        step(&prepared, "prepare p (int) as create view v as\n  select a.b, $1 from t").unwrap();
        let call = statements(tokenize("\nexecute p(7)").unwrap()).remove(0);
        let Step::Prepared { tokens, written } = prepared.step(call).unwrap() else { panic!("a prepared statement") };
        let starts: Vec<_> =
            tokens.iter().map(|t| (t.token.to_string(), t.span.start.line, t.span.start.column)).collect();
        for (token, line, column) in starts {
            assert_eq!((line, column), if token == "7" { (2, 11) } else { (2, 1) }, "{token}");
        }
        let view = super::super::tokens::written(&written);
        assert!(view.starts_with("create view v as\n  select a.b,"), "{view}");
    }

    #[test]
    fn faults_are_told_where_they_are_made() {
        let prepared = PreparedStatements::default();
        step(&prepared, "prepare p as select $1, $2").unwrap();
        let cases = [
            ("prepare p as select 1", "PreparedExists"),
            ("prepare as select 1", "Syntax"),
            ("prepare q select 1", "Syntax"),
            ("prepare q as selec 1", "Syntax"),
            ("prepare q (int as select 1", "Syntax"),
            ("prepare q as execute p(1, 2)", "Syntax"),
            ("execute p(1)", "ParameterMissing"),
            ("execute p(1, 2, 3)", "ParameterMissing"),
            ("execute p(1, 2", "Syntax"),
            ("execute p(1 2, 3)", "Syntax"),
            ("execute z", "PreparedNotFound"),
            ("deallocate z", "PreparedNotFound"),
            ("deallocate p p", "Syntax"),
        ];
        for (sql, code) in cases {
            assert_eq!(step(&prepared, sql).unwrap_err().code(), code, "{sql}");
        }
    }
}
