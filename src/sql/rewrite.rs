//! Brings every spelling of time travel to one that the parser knows, on tokens: `t [AS x] FOR VERSION AS OF 'eod'`
//! and `t /*+ OPTIONS('k'='v') */` become `t AT (VERSION => 'eod') AS x` and `t AT (OPTIONS => '{"k":"v"}')`.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::keywords::{Keyword, RESERVED_FOR_TABLE_ALIAS};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Whitespace};

use super::dialect::LakeDialect;
use super::statements::parse_error;
use super::tokens::{are_words, is_identifier, is_word, mark, string, syntax, tokenize, word};
use crate::error::{Error, Result};
use crate::notice::{Notice, NoticeKind};
use crate::snapshot::nearest::nearest;

/// Words that may stand before a table name and are no table names themselves.
const BEFORE_NAMES: &[Keyword] = &[
    Keyword::FROM,
    Keyword::JOIN,
    Keyword::TABLE,
    Keyword::TABLES,
    Keyword::DESCRIBE,
    Keyword::DESC,
    Keyword::COPY,
    Keyword::UPDATE,
    Keyword::INTO,
    Keyword::ONLY,
    Keyword::AS,
    Keyword::PARTITIONS,
    Keyword::DATABASE,
    Keyword::SELECT,
    Keyword::BY,
    Keyword::AND,
    Keyword::OR,
    Keyword::NOT,
    Keyword::WHEN,
    Keyword::THEN,
    Keyword::ELSE,
    Keyword::CASE,
    Keyword::IN,
    Keyword::BETWEEN,
    Keyword::LIKE,
    Keyword::IS,
    Keyword::DISTINCT,
    Keyword::ALL,
];

/// What one clause or hint says: `name => value tokens`.
struct Clause {
    before: bool,
    arguments: Vec<TokenWithSpan>,
    span: Span,
}

/// Rewrites the tokens of one statement. `notices` hears of hints that have no meaning here.
pub(crate) fn rewrite(tokens: Vec<TokenWithSpan>, notices: &mut Vec<Notice>) -> Result<Vec<TokenWithSpan>> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let after_reference = !out.is_empty() && ends_reference(&out);
        if !after_reference && matches!(out.last().map(|t| &t.token), Some(Token::RParen)) {
            refuse_after_parenthesis(&tokens, at)?;
        }
        let Some((first, next)) = read_selector(&tokens, at, after_reference, notices)? else {
            match tokens.get(at) {
                Some(TokenWithSpan { token: Token::Whitespace(_), .. }) | None => {}
                Some(token) => {
                    if is_bare_alias(&out, &tokens, at) {
                        out.push(word("AS", token.span));
                    }
                    out.push(token.clone());
                }
            }
            at += 1;
            continue;
        };
        let (mut clause, mut options) = match first {
            Selector::Clause(clause) => (Some(clause), BTreeMap::new()),
            Selector::Options(options, _) => (None, options),
        };
        let span = tokens.get(at).map_or_else(Span::empty, |t| t.span);
        at = next;
        // alias between or behind several of them
        if names_parenthesis(&out) {
            return Err(cannot_travel(span));
        }
        let mut alias = take_alias(&mut out);
        loop {
            if alias.is_empty() {
                let taken = alias_length(&tokens, at);
                if taken > 0 && read_selector(&tokens, at + taken, true, &mut Vec::new())?.is_some() {
                    alias.extend(tokens.iter().skip(at).take(taken).cloned());
                    at += taken;
                }
            }
            let Some((more, next)) = read_selector(&tokens, at, true, notices)? else { break };
            match more {
                Selector::Clause(second) => {
                    if clause.is_some() {
                        return Err(two_clauses(second.span));
                    }
                    clause = Some(second);
                }
                Selector::Options(more, hint) => {
                    for (key, value) in more {
                        if options.insert(key.clone(), value.clone()).is_some_and(|old| old != value) {
                            return Err(Error::invalid(format!("option {key} is given twice for one table"))
                                .with_code("ConflictingSelectors")
                                .with_context("line", hint.start.line)
                                .with_context("column", hint.start.column));
                        }
                    }
                }
            }
            at = next;
        }
        emit(&mut out, clause, &options, span);
        out.extend(alias);
    }
    Ok(out)
}

/// Whether `at` or `before` at this place is the alias of a table: the parser would take it for the start of a clause.
fn is_bare_alias(out: &[TokenWithSpan], tokens: &[TokenWithSpan], at: usize) -> bool {
    let word = tokens.get(at);
    let next = tokens.get(at + 1);
    let clause = is_word(next, "TIME") || matches!(next.map(|t| &t.token), Some(Token::LParen));
    if !(is_word(word, "AT") || is_word(word, "BEFORE")) || !is_name(out.last()) || clause {
        return false;
    }
    let mut before = out.len() - 1;
    while let Some(point) =
        before.checked_sub(1).filter(|p| matches!(out.get(*p).map(|t| &t.token), Some(Token::Period)))
    {
        before = point.saturating_sub(1);
    }
    let before = before.checked_sub(1).and_then(|before| out.get(before));
    is_word(before, "FROM") || is_word(before, "JOIN") || matches!(before.map(|t| &t.token), Some(Token::Comma))
}

/// A clause behind a subquery or a function, which the parser would not understand.
fn refuse_after_parenthesis(tokens: &[TokenWithSpan], at: usize) -> Result<()> {
    match read_selector(tokens, at, true, &mut Vec::new()) {
        Ok(Some((Selector::Clause(clause), _))) => Err(cannot_travel(clause.span)),
        _ => Ok(()),
    }
}

fn cannot_travel(span: Span) -> Error {
    Error::invalid("only a table can travel in time, not a subquery or a function")
        .with_code("CannotTravel")
        .with_context("line", span.start.line)
        .with_context("column", span.start.column)
        .with_hint("put the clause behind the tables inside of it")
}

enum Selector {
    Clause(Clause),
    Options(BTreeMap<String, String>, Span),
}

fn two_clauses(span: Span) -> Error {
    Error::invalid("one table reference has two time travel clauses")
        .with_code("ConflictingSelectors")
        .with_context("line", span.start.line)
        .with_context("column", span.start.column)
        .with_hint("name the table twice to compare two versions")
}

fn emit(out: &mut Vec<TokenWithSpan>, clause: Option<Clause>, options: &BTreeMap<String, String>, span: Span) {
    let before = clause.as_ref().is_some_and(|c| c.before);
    out.push(word(if before { "BEFORE" } else { "AT" }, span));
    out.push(mark(Token::LParen, span));
    let mut filled = false;
    if let Some(clause) = clause {
        out.extend(clause.arguments);
        filled = true;
    }
    if !options.is_empty() {
        if filled {
            out.push(mark(Token::Comma, span));
        }
        let json = serde_json::Value::Object(
            options.iter().map(|(k, v)| (k.clone(), serde_json::Value::String(v.clone()))).collect(),
        );
        out.push(word("OPTIONS", span));
        out.push(mark(Token::RArrow, span));
        out.push(string(&json.to_string(), span));
    }
    out.push(mark(Token::RParen, span));
}

/// Reads a clause or a hint at `at`; the second value is where it ends.
fn read_selector(
    tokens: &[TokenWithSpan],
    at: usize,
    after_reference: bool,
    notices: &mut Vec<Notice>,
) -> Result<Option<(Selector, usize)>> {
    let Some(first) = tokens.get(at) else { return Ok(None) };
    if let Token::Whitespace(Whitespace::MultiLineComment(comment)) = &first.token {
        let Some(options) = hint_options(comment, first.span, notices)? else { return Ok(None) };
        if !after_reference {
            return Err(syntax("an OPTIONS hint must follow the name of a table", first.span)
                .with_hint("write FROM t /*+ OPTIONS('scan.snapshot-id'='3') */"));
        }
        return Ok(Some((Selector::Options(options, first.span), at + 1)));
    }
    if !after_reference {
        return Ok(None);
    }
    if (is_word(Some(first), "AT") || is_word(Some(first), "BEFORE"))
        && matches!(tokens.get(at + 1).map(|t| &t.token), Some(Token::LParen))
        && matches!(tokens.get(at + 3).map(|t| &t.token), Some(Token::RArrow))
    {
        let end = closing(tokens, at + 1).ok_or_else(|| syntax("the parenthesis is not closed", first.span))?;
        let arguments = tokens.get(at + 2..end).unwrap_or_default().to_vec();
        let before = is_word(Some(first), "BEFORE");
        return Ok(Some((Selector::Clause(Clause { before, arguments, span: first.span }), end + 1)));
    }
    let start = if is_word(Some(first), "FOR") { at + 1 } else { at };
    let version = is_word(tokens.get(start), "VERSION") || is_word(tokens.get(start), "SYSTEM_VERSION");
    let time = is_word(tokens.get(start), "TIMESTAMP") || is_word(tokens.get(start), "SYSTEM_TIME");
    if !(version || time) || !are_words(tokens, start + 1, &["AS", "OF"]) {
        return Ok(None);
    }
    let value = start + 3;
    if version {
        let Some(token) = tokens.get(value) else {
            return Err(syntax("VERSION AS OF needs a snapshot id or a quoted tag", first.span));
        };
        let negative = matches!(token.token, Token::Minus);
        let end = if negative { value + 2 } else { value + 1 };
        match tokens.get(end - 1).map(|t| &t.token) {
            Some(Token::Number(..)) => {}
            Some(Token::SingleQuotedString(_) | Token::Placeholder(_)) if !negative => {}
            // a parameter whose type was declared
            Some(Token::Word(_)) if is_word(Some(token), "CAST") => {
                let end = closing(tokens, value + 1)
                    .map(|end| end + 1)
                    .ok_or_else(|| syntax("the parenthesis is not closed", token.span))?;
                return Ok(Some((Selector::Clause(named("VERSION", tokens, value, end, first.span)), end)));
            }
            _ => {
                return Err(syntax("VERSION AS OF needs a snapshot id or a quoted tag", token.span)
                    .with_hint("write VERSION AS OF 3 or VERSION AS OF 'tag'"));
            }
        }
        return Ok(Some((Selector::Clause(named("VERSION", tokens, value, end, first.span)), end)));
    }
    let rest = tokens.get(value..).unwrap_or_default().to_vec();
    if rest.is_empty() {
        return Err(syntax("TIMESTAMP AS OF needs a time", first.span));
    }
    let mut parser = Parser::new(&LakeDialect).with_tokens_with_locations(rest);
    parser.parse_expr().map_err(|error| parse_error(&error, first.span))?;
    let end = value + parser.index();
    Ok(Some((Selector::Clause(named("TIMESTAMP", tokens, value, end, first.span)), end)))
}

fn named(name: &str, tokens: &[TokenWithSpan], from: usize, to: usize, span: Span) -> Clause {
    let mut arguments = vec![word(name, span), mark(Token::RArrow, span)];
    arguments.extend(tokens.get(from..to).unwrap_or_default().iter().cloned());
    Clause { before: false, arguments, span }
}

fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

/// The options of a hint comment `+ OPTIONS('a'='b', …)`; None when the hint is of another kind.
fn hint_options(comment: &str, span: Span, notices: &mut Vec<Notice>) -> Result<Option<BTreeMap<String, String>>> {
    let Some(text) = comment.strip_prefix('+') else { return Ok(None) };
    let tokens: Vec<TokenWithSpan> =
        tokenize(text)?.into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF)).collect();
    if !is_word(tokens.first(), "OPTIONS") {
        if tokens.iter().any(|t| is_word(Some(t), "OPTIONS")) {
            return Err(syntax("an OPTIONS hint stands alone in its comment", span));
        }
        let said = Notice::from(NoticeKind::ForeignHint { hint: comment.to_string() });
        // a typing error is never dropped
        if let Some(Token::Word(first)) = tokens.first().map(|t| &t.token)
            && !nearest(&first.value, ["OPTIONS"]).is_empty()
        {
            return Err(syntax(format!("{} is no hint", first.value), span).with_hint("did you mean OPTIONS?"));
        }
        if !notices.contains(&said) {
            notices.push(said);
        }
        return Ok(None);
    }
    let wrong = || {
        syntax("an OPTIONS hint is written /*+ OPTIONS('key'='value', …) */", span)
            .with_hint("for instance t /*+ OPTIONS('scan.snapshot-id'='3') */")
    };
    if !matches!(tokens.get(1).map(|t| &t.token), Some(Token::LParen))
        || !matches!(tokens.last().map(|t| &t.token), Some(Token::RParen))
    {
        return Err(wrong());
    }
    let inner = tokens.get(2..tokens.len() - 1).unwrap_or_default();
    let mut options = BTreeMap::new();
    for pair in inner.split(|t| matches!(t.token, Token::Comma)) {
        let [key, equals, value] = pair else { return Err(wrong()) };
        if !matches!(equals.token, Token::Eq) {
            return Err(wrong());
        }
        let Token::SingleQuotedString(key) = &key.token else { return Err(wrong()) };
        let value = match &value.token {
            Token::SingleQuotedString(value) => value.clone(),
            Token::Number(value, _) => value.clone(),
            _ => return Err(wrong()),
        };
        if options.insert(key.clone(), value.clone()).is_some_and(|old| old != value) {
            return Err(syntax(format!("option {key} is given twice"), span).with_code("ConflictingSelectors"));
        }
    }
    Ok(Some(options))
}

fn is_name(token: Option<&TokenWithSpan>) -> bool {
    matches!(token.map(|t| &t.token), Some(Token::Word(w))
        if is_identifier(w, RESERVED_FOR_TABLE_ALIAS) && is_identifier(w, BEFORE_NAMES))
}

/// Whether the tokens so far can end with a table reference: a name, or a name and an alias.
fn ends_reference(out: &[TokenWithSpan]) -> bool {
    match out.last().map(|t| &t.token) {
        Some(Token::RParen) => alias_columns(out).is_some(),
        _ => is_name(out.last()),
    }
}

/// Where the column list of an alias starts: `AS x (a, b)`, or `t x (a, b)`; not that of a function.
fn alias_columns(out: &[TokenWithSpan]) -> Option<usize> {
    let mut open = out.len().checked_sub(1)?;
    while !matches!(out.get(open)?.token, Token::LParen) {
        open = open.checked_sub(1)?;
    }
    let only_names = are_columns(out.get(open + 1..out.len() - 1)?);
    let before = open.checked_sub(2)?;
    let alias = is_name(out.get(open - 1)) && (is_word(out.get(before), "AS") || is_name(out.get(before)));
    (only_names && alias).then_some(open)
}

/// Whether the tokens so far end with the alias of a subquery or of a function: `) x`, `) AS x (a, b)`.
fn names_parenthesis(out: &[TokenWithSpan]) -> bool {
    let columns = alias_columns(out).unwrap_or(out.len());
    let Some(before) = columns.checked_sub(2) else { return false };
    let before = if is_word(out.get(before), "AS") { before.checked_sub(1) } else { Some(before) };
    matches!(before.and_then(|at| out.get(at)).map(|t| &t.token), Some(Token::RParen))
}

/// Cuts an alias off the end: `t AS x`, `t x`; not the last part of `db.t`.
fn take_alias(out: &mut Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let columns = alias_columns(out).unwrap_or(out.len());
    let Some(last) = columns.checked_sub(1) else { return Vec::new() };
    let Some(before) = last.checked_sub(1) else { return Vec::new() };
    let start = match out.get(before).map(|t| &t.token) {
        Some(Token::Period) => return Vec::new(),
        _ if is_word(out.get(before), "AS") && before > 0 && is_name(out.get(before - 1)) => before,
        _ if is_name(out.get(before)) => last,
        _ => return Vec::new(),
    };
    out.split_off(start)
}

/// How many tokens from `at` are an alias, with its column list.
fn alias_length(tokens: &[TokenWithSpan], at: usize) -> usize {
    let name = alias_name_length(tokens, at);
    let open = at + name;
    if name == 0 || !matches!(tokens.get(open).map(|t| &t.token), Some(Token::LParen)) {
        return name;
    }
    match closing(tokens, open) {
        Some(close) if are_columns(tokens.get(open + 1..close).unwrap_or_default()) => close + 1 - at,
        _ => name,
    }
}

/// Whether tokens can be the columns of an alias: `a, b`.
fn are_columns(tokens: &[TokenWithSpan]) -> bool {
    tokens.iter().all(|t| matches!(t.token, Token::Word(_) | Token::Comma))
}

fn alias_name_length(tokens: &[TokenWithSpan], at: usize) -> usize {
    if is_word(tokens.get(at), "AS") && is_name(tokens.get(at + 1)) {
        2
    } else if is_name(tokens.get(at)) && !is_word(tokens.get(at), "FOR") {
        let clause = ["VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME", "AT", "BEFORE"];
        usize::from(!clause.iter().any(|w| is_word(tokens.get(at), w)))
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;
    use crate::sql::tokens::statements;

    fn rewritten(sql: &str) -> Result<String> {
        let mut notices = Vec::new();
        let tokens = statements(tokenize(sql)?).remove(0);
        let tokens = rewrite(tokens, &mut notices)?;
        let dialect = LakeDialect;
        let mut parser = DFParserBuilder::new(tokens).with_dialect(&dialect).build()?;
        Ok(parser.parse_statement()?.to_string())
    }

    /// A statement of the parser's own spelling, as the parser writes it: alias before clause.
    fn parsed(sql: &str) -> String {
        let dialect = LakeDialect;
        let mut parser = DFParserBuilder::new(sql).with_dialect(&dialect).build().unwrap();
        parser.parse_statement().unwrap().to_string()
    }

    #[test]
    fn every_spelling_becomes_one() {
        for (sql, clause) in [
            ("VERSION AS OF 3", "AT(VERSION => 3)"),
            ("version as of 'eod'", "AT(VERSION => 'eod')"),
            ("FOR VERSION AS OF 3", "AT(VERSION => 3)"),
            ("FOR SYSTEM_VERSION AS OF 3", "AT(VERSION => 3)"),
            ("SYSTEM_VERSION AS OF 3", "AT(VERSION => 3)"),
            ("VERSION AS OF CAST(3 AS INT)", "AT(VERSION => CAST(3 AS INT))"),
            ("TIMESTAMP AS OF '2026-04-16 10:00:00'", "AT(TIMESTAMP => '2026-04-16 10:00:00')"),
            ("FOR TIMESTAMP AS OF DATE '2026-04-16'", "AT(TIMESTAMP => DATE '2026-04-16')"),
            (
                "FOR SYSTEM_TIME AS OF TIMESTAMP '2026-04-16 10:00:00'",
                "AT(TIMESTAMP => TIMESTAMP '2026-04-16 10:00:00')",
            ),
            ("TIMESTAMP AS OF now() - INTERVAL '1' HOUR", "AT(TIMESTAMP => now() - INTERVAL '1' HOUR)"),
            ("AT (TAG => 'x')", "AT(TAG => 'x')"),
            ("AT (COMMIT => ('u', 120))", "AT(COMMIT => ('u', 120))"),
            ("BEFORE (COMMIT => ('u', 1))", "BEFORE(COMMIT => ('u', 1))"),
            ("/*+ OPTIONS('scan.snapshot-id'='3') */", "AT(OPTIONS => '{\"scan.snapshot-id\":\"3\"}')"),
        ] {
            for (text, expected) in [
                (format!("SELECT * FROM t {sql}"), format!("SELECT * FROM t {clause}")),
                (format!("SELECT * FROM db.t {sql} AS x"), format!("SELECT * FROM db.t {clause} AS x")),
                (format!("SELECT * FROM db.t x (a, b) {sql}"), format!("SELECT * FROM db.t {clause} x (a, b)")),
                (format!("SELECT * FROM t AS x (a) {sql}"), format!("SELECT * FROM t {clause} AS x (a)")),
                (
                    format!("SELECT * FROM db.t {sql} x WHERE 1 = 1"),
                    format!("SELECT * FROM db.t {clause} x WHERE 1 = 1"),
                ),
                (format!("SELECT * FROM t AS x {sql}"), format!("SELECT * FROM t {clause} AS x")),
                (format!("SELECT * FROM db.t x {sql}"), format!("SELECT * FROM db.t {clause} x")),
                (
                    format!("SELECT * FROM a JOIN t x {sql} ON a.i = x.i"),
                    format!("SELECT * FROM a JOIN t {clause} x ON a.i = x.i"),
                ),
                (
                    format!("WITH c AS (SELECT * FROM t {sql}) SELECT * FROM c, t {sql}"),
                    format!("WITH c AS (SELECT * FROM t {clause}) SELECT * FROM c, t {clause}"),
                ),
                (
                    format!("SELECT * FROM t {sql} EXCEPT SELECT * FROM t"),
                    format!("SELECT * FROM t {clause} EXCEPT SELECT * FROM t"),
                ),
                (
                    format!("CREATE VIEW v AS SELECT * FROM t {sql}"),
                    format!("CREATE VIEW v AS SELECT * FROM t {clause}"),
                ),
            ] {
                assert_eq!(rewritten(&text).unwrap(), parsed(&expected), "{text}");
            }
        }
    }

    #[test]
    fn hint_and_clause_meet_in_one_place() {
        assert_eq!(
            rewritten("SELECT * FROM t /*+ OPTIONS('scan.bucket'='1') */ x VERSION AS OF 3").unwrap(),
            parsed("SELECT * FROM t AT(VERSION => 3, OPTIONS => '{\"scan.bucket\":\"1\"}') x")
        );
        assert_eq!(
            rewritten("SELECT * FROM t FOR VERSION AS OF 3 /*+ OPTIONS('a'='b','c'='d') */ AS x").unwrap(),
            parsed("SELECT * FROM t AT(VERSION => 3, OPTIONS => '{\"a\":\"b\",\"c\":\"d\"}') AS x")
        );
    }

    #[test]
    fn columns_named_version_and_timestamp_stay_columns() {
        for sql in [
            "SELECT version AS of FROM t",
            "SELECT t.version AS of, timestamp AS of FROM t",
            "SELECT a, version AS of FROM t",
            "SELECT ts AT TIME ZONE 'UTC' FROM t",
            "SELECT * FROM t version",
            "SELECT a AS at, before FROM at, before",
            "WITH RECURSIVE at AS (SELECT 1) SELECT at.x FROM at",
            "DROP VIEW at",
        ] {
            assert_eq!(rewritten(sql).unwrap(), sql);
        }
        for (sql, expected) in [
            ("SELECT * FROM t at WHERE at.a = 1", "SELECT * FROM t AS at WHERE at.a = 1"),
            ("SELECT * FROM db.t before", "SELECT * FROM db.t AS before"),
            ("SELECT * FROM u, t at", "SELECT * FROM u, t AS at"),
            ("SELECT * FROM u JOIN t at ON true", "SELECT * FROM u JOIN t AS at ON true"),
            ("SELECT * FROM t at AT (VERSION => 3)", "SELECT * FROM t AS at AT(VERSION => 3)"),
            ("SELECT * FROM t VERSION AS OF 3 at", "SELECT * FROM t at AT(VERSION => 3)"),
        ] {
            assert_eq!(rewritten(sql).unwrap(), expected);
        }
    }

    #[test]
    fn only_tables_travel() {
        for sql in [
            "SELECT * FROM (SELECT 1) VERSION AS OF 3",
            "SELECT * FROM (SELECT 1) x VERSION AS OF 3",
            "SELECT * FROM (SELECT 1) AS x (a) FOR SYSTEM_TIME AS OF '2026-01-01'",
            "SELECT * FROM f(1, 2) AT (VERSION => 3)",
            "SELECT * FROM f(1, 2) AS x VERSION AS OF 3",
        ] {
            assert_eq!(rewritten(sql).unwrap_err().code(), "CannotTravel", "{sql}");
        }
        for sql in
            ["SELECT (a) AS version FROM t", "SELECT f(a) AT TIME ZONE 'UTC' FROM t", "SELECT max(a) version FROM t"]
        {
            rewritten(sql).unwrap();
        }
    }

    #[test]
    fn two_clauses_for_one_reference_are_an_error() {
        let error = rewritten("SELECT * FROM t VERSION AS OF 3 FOR TIMESTAMP AS OF '2026-01-01'").unwrap_err();
        assert_eq!(error.code(), "ConflictingSelectors");
        assert!(rewritten("SELECT * FROM t VERSION AS OF 3 AS x AT (TAG => 'y')").is_err());
    }

    #[test]
    fn hint_out_of_place_is_never_dropped() {
        assert!(rewritten("SELECT /*+ OPTIONS('scan.snapshot-id'='3') */ * FROM t").is_err());
        assert!(rewritten("SELECT * FROM t WHERE a = 1 /*+ OPTIONS('scan.snapshot-id'='3') */").is_err());
        assert!(rewritten("SELECT * FROM t /*+ OPTIONS('scan.snapshot-id') */").is_err());
        assert_eq!(rewritten("SELECT /*+ BROADCAST(t) */ * FROM t").unwrap(), "SELECT * FROM t");
        for hint in ["OPTION('scan.snapshot-id'='3')", "option('a'='b')", "OPTOINS('a'='b')"] {
            assert_eq!(rewritten(&format!("SELECT * FROM t /*+ {hint} */")).unwrap_err().code(), "Syntax", "{hint}");
        }
    }

    #[test]
    fn version_wants_a_literal() {
        assert!(rewritten("SELECT * FROM t VERSION AS OF latest").is_err());
        assert!(rewritten("SELECT * FROM t VERSION AS OF").is_err());
    }
}
