//! What a statement is: DataFusion's own, or one of ours.

pub(super) mod describe;
pub(super) mod explain_files;
pub(super) mod pin;
pub(super) mod reconcile;
pub(super) mod refuse;
pub(super) mod show;
pub(super) mod wait;

use datafusion::error::DataFusionError;
use datafusion::sql::parser::{DFParserBuilder, Statement as DfStatement};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Interval, ObjectName, ObjectNamePart, Statement as SqlStatement, TableFactor, TableVersion,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

pub(super) use self::reconcile::{Horizon, Reconcile, RightSide, Theirs, parse as parse_reconcile};
use super::deep_stack::{DeepStack, Levels, nesting};
use super::depth;
use super::dialect::LakeDialect;
use super::place::{self, Place};
use super::rewrite::rewrite;
use super::tokens::{are_words, is_word, mark, quoted_selector, syntax, word, word_or_string, written};
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::spec::options::reading_options;

/// How deep expressions and queries may be nested.
const RECURSION_LIMIT: usize = 128;

/// A parsed statement.
#[derive(Debug)]
pub(super) enum Command {
    /// One that DataFusion plans.
    Statement(Box<DfStatement>),
    /// `EXPLAIN FILES SELECT …`
    ExplainFiles(Box<DfStatement>),
    /// `PIN TABLE t AT (…)`, `PIN TABLES a AT (…), b`, `PIN DATABASE db AT (…)`
    Pin(Box<PinCommand>),
    /// `RECONCILE …`
    Reconcile(Box<Reconcile>),
    /// `UNPIN …`; None: all.
    Unpin(Option<Target>),
    ShowPins,
    /// `WAIT FOR TABLE …`
    Wait(wait::WaitCommand),
    ShowDatabases {
        like: Option<String>,
    },
    ShowTables {
        database: Option<ObjectName>,
        like: Option<String>,
    },
    ShowPartitions(TableFactor),
    ShowCreateTable(TableFactor),
    Describe(TableFactor),
    Use(ObjectName),
    /// `SET 'paimon.…' = '…'`
    SetOption {
        name: String,
        value: String,
    },
    /// `RESET 'paimon.…'`; None: all of them.
    ResetOption(Option<String>),
    /// `SHOW 'paimon.…'`
    ShowOption(String),
}

/// What is pinned.
#[derive(Debug)]
pub(super) enum Target {
    Tables(Vec<TableFactor>),
    Database(ObjectName),
}

/// `PIN …`
#[derive(Debug)]
pub(super) struct PinCommand {
    pub(super) target: Target,
    /// The clause at the end: of a database, or of all tables that have none of their own.
    pub(super) clause: Option<TableVersion>,
    /// `ALIGN …`: one moment for all.
    pub(super) align: Option<Align>,
}

/// A commit of a user.
#[derive(Debug)]
pub(super) struct OfUser {
    pub(super) identifier: Expr,
    pub(super) user: Expr,
}

/// How several tables are brought to one moment.
#[derive(Debug)]
pub(super) enum Align {
    /// The oldest snapshot of each with the smallest of their newest watermarks.
    NewestWatermark,
    /// The oldest snapshot of each with this watermark.
    Watermark(Expr),
    /// The newest snapshot of each that was committed at or before this.
    Timestamp(Expr),
    /// The newest snapshot of each of this user's commits up to this one.
    Identifier(Box<OfUser>),
}

/// Parses the tokens of one statement, which may nest as deep as the caller's stack allows.
///
/// # Errors
/// What is no statement of ours, or nests too deep.
pub(super) fn parse(tokens: Vec<TokenWithSpan>, notices: &mut Vec<Notice>) -> Result<Command> {
    parse_to(Levels::here(), tokens, notices)
}

/// The same for so many levels.
pub(super) fn parse_to(levels: Levels, tokens: Vec<TokenWithSpan>, notices: &mut Vec<Notice>) -> Result<Command> {
    // what is refused is dropped there too
    DeepStack::of(nesting(&tokens)?).run(|| {
        let mut command = command(tokens, notices)?;
        match &mut command {
            Command::Statement(statement) | Command::ExplainFiles(statement) => depth::level(statement, levels)?,
            _ => {}
        }
        Ok(command)
    })
}

fn command(tokens: Vec<TokenWithSpan>, notices: &mut Vec<Notice>) -> Result<Command> {
    let first = tokens.first().map_or_else(Span::empty, |t| t.span);
    let at = |words: &[&str]| are_words(&tokens, 0, words);
    if at(&["EXPLAIN", "FILES"]) {
        return explain_files(tokens, 2, notices);
    }
    if at(&["EXPLAIN"])
        && matches!(tokens.get(1).map(|t| &t.token), Some(Token::LParen))
        && let Some(end) = tokens.iter().position(|token| matches!(token.token, Token::RParen))
        && let Some(files) = tokens.iter().take(end).skip(2).find(|token| is_word(Some(token), "FILES"))
    {
        if end != 3 {
            return Err(syntax("FILES is the only option of its EXPLAIN", files.span)
                .with_hint("write EXPLAIN FILES SELECT …, or EXPLAIN ANALYZE SELECT … for the time of each step"));
        }
        return explain_files(tokens, 4, notices);
    }
    if at(&["PIN"]) {
        return pin_command(rewrite(tokens, notices)?);
    }
    if at(&["UNPIN"]) {
        return unpin(tokens);
    }
    if at(&["WAIT"]) {
        return Ok(Command::Wait(wait::parse(&tokens)?));
    }
    if at(&["RECONCILE"]) {
        return Ok(Command::Reconcile(Box::new(reconcile::parse(tokens, notices)?)));
    }
    if at(&["SHOW"]) && tokens.len() == 2 && is_word(tokens.get(1), "PINS") {
        return Ok(Command::ShowPins);
    }
    if at(&["SHOW", "DATABASES"]) || at(&["SHOW", "SCHEMAS"]) {
        return Ok(Command::ShowDatabases { like: like(&tokens, 2)? });
    }
    if at(&["SHOW", "TABLES"]) {
        let mut next = 2;
        let mut database = None;
        if is_word(tokens.get(2), "FROM") || is_word(tokens.get(2), "IN") {
            let (name, end) = object_name(&tokens, 3)?;
            database = Some(name);
            next = end;
        }
        return Ok(Command::ShowTables { database, like: like(&tokens, next)? });
    }
    if at(&["SHOW", "PARTITIONS"]) {
        let start = if is_word(tokens.get(2), "FROM") || is_word(tokens.get(2), "IN") { 3 } else { 2 };
        return Ok(Command::ShowPartitions(factor(rewrite(tokens, notices)?, start)?));
    }
    if at(&["SHOW", "CREATE", "TABLE"]) {
        return Ok(Command::ShowCreateTable(factor(rewrite(tokens, notices)?, 3)?));
    }
    if at(&["DESCRIBE"]) || at(&["DESC"]) {
        let query = ["SELECT", "WITH", "VALUES", "INSERT"].iter().any(|w| is_word(tokens.get(1), w))
            || matches!(tokens.get(1).map(|t| &t.token), Some(Token::LParen));
        if !query {
            let start = if is_word(tokens.get(1), "TABLE") && tokens.len() > 2 { 2 } else { 1 };
            return Ok(Command::Describe(factor(rewrite(tokens, notices)?, start)?));
        }
    }
    if at(&["USE"]) {
        let start = if (is_word(tokens.get(1), "DATABASE") || is_word(tokens.get(1), "SCHEMA")) && tokens.len() > 2 {
            2
        } else {
            1
        };
        let (name, end) = object_name(&tokens, start)?;
        ends(&tokens, end)?;
        return Ok(Command::Use(name));
    }
    if let Some(command) = option_command(&tokens)? {
        return Ok(command);
    }
    let typed = tokens.clone();
    let tokens = copy_of_query(rewrite(tokens, notices)?);
    if tokens.is_empty() {
        return Err(syntax("the statement is empty", first));
    }
    let statement = statement(tokens, &typed).map_err(|error| match are_words(&typed, 0, &["SHOW", "COLUMNS"]) {
        true => error.with_hint("DESCRIBE t VERSION AS OF 3 shows the columns of a snapshot"),
        false => error,
    })?;
    Ok(Command::Statement(Box::new(statement)))
}

/// `COPY t AT (VERSION => 3) TO …` as a copy of a query, behind EXPLAIN too: the parser takes names there only.
fn copy_of_query(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let copy = match is_word(tokens.first(), "EXPLAIN") {
        true => tokens.iter().take(5).position(|token| is_word(Some(token), "COPY")).unwrap_or(0),
        false => 0,
    };
    let named = !matches!(tokens.get(copy + 1).map(|t| &t.token), Some(Token::LParen));
    let Some(to) = tokens.iter().position(|token| is_word(Some(token), "TO")) else { return tokens };
    let clause = tokens.iter().take(to).skip(copy).any(|token| matches!(token.token, Token::LParen));
    if !is_word(tokens.get(copy), "COPY") || !named || !clause {
        return tokens;
    }
    let mut rest = tokens.into_iter();
    let mut query: Vec<TokenWithSpan> = rest.by_ref().take(copy + 1).collect();
    let span = query.last().map_or_else(Span::empty, |token| token.span);
    query.push(mark(Token::LParen, span));
    query.extend(["SELECT", "*", "FROM"].map(|text| match text {
        "*" => mark(Token::Mul, span),
        text => word(text, span),
    }));
    query.extend(rest.by_ref().take(to.saturating_sub(copy + 1)));
    query.push(mark(Token::RParen, span));
    query.extend(rest);
    query
}

/// What stands behind the name in a CREATE VIEW statement, as it was written.
pub(super) fn view_text(tokens: &[TokenWithSpan]) -> Option<String> {
    if !is_word(tokens.first(), "CREATE") {
        return None;
    }
    let mut name = tokens.iter().take(5).position(|token| is_word(Some(token), "VIEW"))? + 1;
    if are_words(tokens, name, &["IF", "NOT", "EXISTS"]) {
        name += 3;
    }
    let (_, end) = object_name(tokens, name).ok()?;
    Some(written(tokens.get(end..)?))
}

/// Parses tokens that time travel spellings are already taken out of; an error shows the token that was `typed`.
fn statement(tokens: Vec<TokenWithSpan>, typed: &[TokenWithSpan]) -> Result<DfStatement> {
    let dialect = LakeDialect;
    let end = tokens.last().map(|token| token.span.end);
    let parsed = DFParserBuilder::new(tokens)
        .with_dialect(&dialect)
        .with_recursion_limit(RECURSION_LIMIT)
        .build()
        .and_then(|mut parser| parser.parse_statements());
    let mut statements = parsed.map_err(|error| {
        if matches!(&error, DataFusionError::SQL(parser, _) if **parser == ParserError::RecursionLimitExceeded) {
            return depth::parser_is_too_deep(depth::deepest(typed)).with_source(error);
        }
        let mut place = place::of(&error).0;
        let message = match &error {
            DataFusionError::SQL(parser, _) => {
                let text = parser.to_string();
                let text = text.trim_start_matches("sql parser error: ");
                text.rsplit_once(" at Line: ").map_or(text, |(before, _)| before).to_string()
            }
            other => Error::invalid(other.strip_backtrace()).message().to_string(),
        };
        // AT and BEFORE may be ours
        let message = match typed.iter().find(|token| Place::from(token.span.start) == place) {
            Some(TokenWithSpan { token, .. }) if !token.to_string().starts_with(['A', 'B']) => {
                ["AT", "BEFORE"].iter().fold(message, |message, word| {
                    message.replacen(&format!(", found: {word}"), &format!(", found: {token}"), 1)
                })
            }
            _ => message,
        };
        // the parser says where what it found stands, but not where nothing more does
        if let (true, Some(end)) = (place == Place::default() && message.ends_with("found: EOF"), end) {
            place = end.into();
        }
        quoted_selector(place.attach(Error::invalid(message).with_code("Syntax").with_source(error)), typed, place)
    })?;
    match (statements.pop_front(), statements.pop_front()) {
        (Some(one), None) => Ok(one),
        _ => Err(Error::invalid("one statement was expected").with_code("Syntax")),
    }
}

fn explain_files(mut tokens: Vec<TokenWithSpan>, skip: usize, notices: &mut Vec<Notice>) -> Result<Command> {
    let rest = tokens.split_off(skip);
    let place = tokens.first().map_or_else(Span::empty, |t| t.span);
    let typed = rest.clone();
    let statement = statement(rewrite(rest, notices)?, &typed)?;
    match &statement {
        DfStatement::Statement(inner) if matches!(inner.as_ref(), SqlStatement::Query(_)) => {
            Ok(Command::ExplainFiles(Box::new(statement)))
        }
        _ => Err(syntax("EXPLAIN FILES takes a query", place)),
    }
}

fn parser(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&LakeDialect).with_tokens_with_locations(tokens)
}

pub(super) fn parse_error(error: &ParserError, span: Span) -> Error {
    if *error == ParserError::RecursionLimitExceeded {
        return depth::parser_is_too_deep(span);
    }
    let message = error.to_string();
    syntax(message.trim_start_matches("sql parser error: ").to_string(), span)
}

/// The table that tokens name, and nothing else.
pub(super) fn factor_of(tokens: Vec<TokenWithSpan>) -> Result<TableFactor> {
    factor(tokens, 0)
}

/// One table with its clause, and nothing behind it.
fn factor(mut tokens: Vec<TokenWithSpan>, start: usize) -> Result<TableFactor> {
    let place = tokens.first().map_or_else(Span::empty, |t| t.span);
    if tokens.len() <= start {
        return Err(syntax("the name of a table is missing", place));
    }
    let rest = tokens.split_off(start);
    let count = rest.len();
    let typed = rest.clone();
    let mut parser = parser(rest);
    let factor = parser.parse_table_factor().map_err(|e| parse_error(&e, place))?;
    if parser.index() < count {
        let next = parser.peek_token();
        let error = syntax(format!("unexpected {}", next.token), next.span);
        return Err(quoted_selector(error, &typed, next.span.start.into()));
    }
    match &factor {
        TableFactor::Table { args: None, .. } => Ok(factor),
        other => Err(syntax(format!("{other} is not the name of a table"), place)),
    }
}

fn object_name(tokens: &[TokenWithSpan], start: usize) -> Result<(ObjectName, usize)> {
    let place = tokens.first().map_or_else(Span::empty, |t| t.span);
    let rest = tokens.get(start..).unwrap_or_default().to_vec();
    if rest.is_empty() {
        return Err(syntax("a name is missing", place));
    }
    let mut parser = parser(rest);
    let name = parser.parse_object_name(false).map_err(|e| parse_error(&e, place))?;
    Ok((name, start + parser.index()))
}

fn ends(tokens: &[TokenWithSpan], at: usize) -> Result<()> {
    match tokens.get(at) {
        None => Ok(()),
        Some(token) => Err(syntax(format!("unexpected {}", token.token), token.span)),
    }
}

fn like(tokens: &[TokenWithSpan], at: usize) -> Result<Option<String>> {
    if !is_word(tokens.get(at), "LIKE") {
        ends(tokens, at)?;
        return Ok(None);
    }
    ends(tokens, at + 2)?;
    match tokens.get(at + 1).map(|t| &t.token) {
        Some(Token::SingleQuotedString(pattern)) => Ok(Some(pattern.clone())),
        _ => Err(syntax("LIKE takes a quoted pattern", tokens.get(at).map_or_else(Span::empty, |t| t.span))),
    }
}

fn pin_command(tokens: Vec<TokenWithSpan>) -> Result<Command> {
    let place = tokens.first().map_or_else(Span::empty, |t| t.span);
    let usage = "write PIN TABLE t AT (VERSION => 3), PIN TABLES a, b AT (TIMESTAMP => '…') or PIN DATABASE db AT (…)";
    for (i, token) in tokens.iter().enumerate() {
        let token = Some(token);
        if i > 2 && is_word(token, "RETAIN") {
            // read all of it, so that a typing error is told first
            let mut parser = parser(tokens.get(i + 1..).unwrap_or_default().to_vec());
            match parser.parse_expr() {
                Ok(Expr::Interval(Interval { .. })) => {}
                _ => return Err(syntax("RETAIN takes an interval", place).with_hint("write RETAIN INTERVAL '2' HOUR")),
            }
            return Err(Error::unsupported("RETAIN would write a tag into the table, and writing comes later")
                .with_code("NotYet")
                .with_hint(
                    "pin without RETAIN: SHOW PINS tells about when the snapshot expires, and a lost pin is an error, \
                     never other rows; or make a tag where the table is written and PIN TABLE t AT (TAG => 'name'), \
                     which keeps it",
                ));
        }
    }
    let aligned = tokens.iter().enumerate().skip(3).find(|(_, token)| is_word(Some(token), "ALIGN")).map(|(at, _)| at);
    let align = match aligned {
        Some(at) => Some(align(tokens.get(at + 1..).unwrap_or_default(), place)?),
        None => None,
    };
    let tokens = tokens.get(..aligned.unwrap_or(tokens.len())).unwrap_or_default().to_vec();
    if is_word(tokens.get(1), "DATABASE") {
        let (name, end) = object_name(&tokens, 2)?;
        let clause = clause(&tokens, end)?;
        check_aligned(align.as_ref(), clause.as_ref(), place)?;
        return Ok(Command::Pin(Box::new(PinCommand { target: Target::Database(name), clause, align })));
    }
    if !is_word(tokens.get(1), "TABLE") && !is_word(tokens.get(1), "TABLES") {
        return Err(syntax("PIN takes TABLE, TABLES or DATABASE", place).with_hint(usage));
    }
    let rest = tokens.get(2..).unwrap_or_default().to_vec();
    let count = rest.len();
    if count == 0 {
        return Err(syntax("the name of a table is missing", place).with_hint(usage));
    }
    let mut parser = parser(rest);
    let mut tables = parser
        .parse_comma_separated(Parser::parse_table_factor)
        .map_err(|e| parse_error(&e, place).with_hint(usage))?;
    if parser.index() < count {
        return Err(syntax(format!("unexpected {}", parser.peek_token()), parser.peek_token().span).with_hint(usage));
    }
    // a clause at the end speaks for all tables, when only the last has one
    let mut clause = None;
    let bare = tables.iter().filter(|t| matches!(t, TableFactor::Table { version: None, .. })).count();
    if tables.len() > 1
        && bare == tables.len() - 1
        && let Some(TableFactor::Table { version, .. }) = tables.last_mut()
    {
        clause = version.take();
    }
    let said = tables.iter().find_map(|table| match table {
        TableFactor::Table { version, .. } => version.as_ref(),
        _ => None,
    });
    check_aligned(align.as_ref(), clause.as_ref().or(said), place)?;
    Ok(Command::Pin(Box::new(PinCommand { target: Target::Tables(tables), clause, align })))
}

fn check_aligned(align: Option<&Align>, clause: Option<&TableVersion>, place: Span) -> Result<()> {
    match (align, clause) {
        (Some(_), Some(_)) => Err(syntax("ALIGN chooses the snapshots: no table has a clause of its own", place)
            .with_hint("write PIN TABLES a, b ALIGN ON WATERMARK TIMESTAMP '2026-04-16 10:00:00'")),
        _ => Ok(()),
    }
}

/// What stands behind ALIGN.
fn align(tokens: &[TokenWithSpan], place: Span) -> Result<Align> {
    let usage = "write ALIGN, ALIGN ON WATERMARK TIMESTAMP '2026-04-16 10:00:00', ALIGN ON TIMESTAMP TIMESTAMP '…' or \
                 ALIGN ON IDENTIFIER 120 USER 'flink-cdc'";
    if tokens.is_empty() {
        return Ok(Align::NewestWatermark);
    }
    let span = tokens.first().map_or(place, |token| token.span);
    let expression = |from: usize, to: usize| -> Result<Expr> {
        let tokens = tokens.get(from..to).unwrap_or_default();
        if tokens.is_empty() {
            return Err(syntax("a value is missing behind ALIGN", span).with_hint(usage));
        }
        let mut parser = parser(tokens.to_vec());
        let expr = parser.parse_expr().map_err(|error| parse_error(&error, span).with_hint(usage))?;
        if parser.index() < tokens.len() {
            let next = parser.peek_token();
            return Err(syntax(format!("unexpected {}", next.token), next.span).with_hint(usage));
        }
        Ok(expr)
    };
    if are_words(tokens, 0, &["ON", "WATERMARK"]) {
        return Ok(Align::Watermark(expression(2, tokens.len())?));
    }
    if are_words(tokens, 0, &["ON", "IDENTIFIER"]) {
        let Some(user) = tokens.iter().position(|token| is_word(Some(token), "USER")) else {
            return Err(syntax("whose identifier? USER is missing", span).with_hint(usage));
        };
        let (identifier, user) = (expression(2, user)?, expression(user + 1, tokens.len())?);
        return Ok(Align::Identifier(Box::new(OfUser { identifier, user })));
    }
    if are_words(tokens, 0, &["ON", "TIMESTAMP"]) {
        // ON TIMESTAMP '…' is the literal already
        let from =
            if matches!(tokens.get(2).map(|token| &token.token), Some(Token::SingleQuotedString(_))) { 1 } else { 2 };
        return Ok(Align::Timestamp(expression(from, tokens.len())?));
    }
    Err(syntax("ALIGN goes ON WATERMARK, TIMESTAMP or IDENTIFIER", span).with_hint(usage))
}

/// `AT (…)` at `start`, by way of a table that is not there.
fn clause(tokens: &[TokenWithSpan], start: usize) -> Result<Option<TableVersion>> {
    if tokens.len() <= start {
        return Ok(None);
    }
    let span = tokens.get(start).map_or_else(Span::empty, |t| t.span);
    let mut all = vec![TokenWithSpan::new(Token::make_word("x", None), span)];
    all.extend(tokens.iter().skip(start).cloned());
    match factor(all, 0)? {
        TableFactor::Table { version, .. } => Ok(version),
        _ => Ok(None),
    }
}

fn unpin(tokens: Vec<TokenWithSpan>) -> Result<Command> {
    let place = tokens.first().map_or_else(Span::empty, |t| t.span);
    if tokens.len() == 1 || (is_word(tokens.get(1), "ALL") && tokens.len() == 2) {
        return Ok(Command::Unpin(None));
    }
    if is_word(tokens.get(1), "DATABASE") {
        let (name, end) = object_name(&tokens, 2)?;
        ends(&tokens, end)?;
        return Ok(Command::Unpin(Some(Target::Database(name))));
    }
    let start = if is_word(tokens.get(1), "TABLE") || is_word(tokens.get(1), "TABLES") { 2 } else { 1 };
    let rest = tokens.get(start..).unwrap_or_default().to_vec();
    let count = rest.len();
    let mut parser = parser(rest);
    let tables = parser
        .parse_comma_separated(Parser::parse_table_factor)
        .map_err(|e| parse_error(&e, place).with_hint("write UNPIN TABLE t or UNPIN ALL"))?;
    if parser.index() < count {
        return Err(syntax(format!("unexpected {}", parser.peek_token()), parser.peek_token().span));
    }
    Ok(Command::Unpin(Some(Target::Tables(tables))))
}

/// `SET`, `RESET` and `SHOW` of scan options.
fn option_command(tokens: &[TokenWithSpan]) -> Result<Option<Command>> {
    let verb = ["SET", "RESET", "SHOW"].into_iter().find(|verb| is_word(tokens.first(), verb));
    let Some(verb) = verb else { return Ok(None) };
    if verb == "RESET" && is_word(tokens.get(1), "ALL") && tokens.len() == 2 {
        let place = Place::from(tokens.first().map_or_else(Span::empty, |token| token.span).start);
        return Err(place.attach(
            Error::unsupported("RESET ALL is not supported: one setting is reset at a time")
                .with_code("NotYet")
                .with_hint(
                    "RESET paimon forgets all options of tables, UNPIN ALL all pins; RESET datafusion.execution.batch_size \
                     one setting of the engine",
                ),
        ));
    }
    refuse_bare_option(tokens)?;
    let Some((name, next)) = option_name(tokens) else { return Ok(None) };
    match verb {
        "RESET" => {
            ends(tokens, next)?;
            Ok(Some(Command::ResetOption(if name == "paimon" { None } else { Some(name) })))
        }
        "SHOW" => {
            ends(tokens, next)?;
            Ok(Some(Command::ShowOption(name)))
        }
        _ => {
            let place = tokens.first().map_or_else(Span::empty, |t| t.span);
            let assigns =
                matches!(tokens.get(next).map(|t| &t.token), Some(Token::Eq)) || is_word(tokens.get(next), "TO");
            if !assigns {
                return Err(syntax("the value is missing", place).with_hint(format!("write SET '{name}' = '3'")));
            }
            let value = match tokens.get(next + 1).map(|t| &t.token) {
                Some(Token::Number(number, _)) => number.clone(),
                _ => word_or_string(tokens.get(next + 1))
                    .ok_or_else(|| {
                        syntax("the value is missing", place).with_hint(format!("write SET '{name}' = '3'"))
                    })?
                    .to_string(),
            };
            ends(tokens, next + 2)?;
            Ok(Some(Command::SetOption { name, value }))
        }
    }
}

/// Refuses an option of tables without `paimon.` before it, which the engine would take for one of its own.
fn refuse_bare_option(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut name = match tokens.get(1).map(|token| &token.token) {
        Some(Token::SingleQuotedString(name)) => name.clone(),
        Some(Token::Word(word)) => word.value.clone(),
        _ => return Ok(()),
    };
    let more = tokens.iter().skip(2).map_while(|token| match &token.token {
        Token::Period => Some("."),
        Token::Minus => Some("-"),
        Token::Word(word) if !word.value.eq_ignore_ascii_case("to") => Some(word.value.as_str()),
        _ => None,
    });
    more.for_each(|part| name.push_str(part));
    let ours = |option: &str| name == option || name.strip_suffix(option).is_some_and(|table| table.ends_with('.'));
    let foreign = ["paimon.", "datafusion.", "lakepin."].iter().any(|owner| name.starts_with(owner));
    let Some(option) = reading_options().filter(|option| ours(option)).max_by_key(|option| option.len()) else {
        return Ok(());
    };
    if foreign {
        return Ok(());
    }
    let place = Place::from(tokens.get(1).map_or_else(Span::empty, |token| token.span).start);
    Err(place.attach(
        Error::invalid(format!("'{name}' is an option of tables: paimon. stands before it"))
            .with_code("UnknownOption")
            .with_hint(format!(
                "write SET 'paimon.{option}' = '…' for every table, SET 'paimon.DATABASE.TABLE.{option}' = '…' for one"
            )),
    ))
}

/// A name that starts with `paimon`, quoted or as words with points and hyphens.
fn option_name(tokens: &[TokenWithSpan]) -> Option<(String, usize)> {
    let first = word_or_string(tokens.get(1))?;
    if first.starts_with("paimon.") || (first == "paimon" && tokens.len() == 2) {
        return Some((first.to_string(), 2));
    }
    if first != "paimon" {
        return None;
    }
    let mut name = first.to_string();
    let mut at = 2;
    loop {
        match tokens.get(at).map(|t| &t.token) {
            Some(Token::Period) => name.push('.'),
            Some(Token::Minus) => name.push('-'),
            // quotes keep the points of a table's name together
            Some(Token::Word(word)) if word.quote_style.is_some() => {
                name.push_str(&format!("\"{}\"", word.value.replace('"', "\"\"")));
            }
            Some(Token::Word(word)) if !word.value.eq_ignore_ascii_case("to") => name.push_str(&word.value),
            _ => return Some((name, at)),
        }
        at += 1;
    }
}

/// The name of a `Table` factor.
pub(super) fn name_of(factor: &TableFactor) -> Option<&ObjectName> {
    match factor {
        TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
}

/// The parts of a name, unquoted ones in lower case.
pub(super) fn parts(name: &ObjectName) -> Vec<String> {
    name.0
        .iter()
        .filter_map(|part| match part {
            ObjectNamePart::Identifier(Ident { value, quote_style, .. }) => {
                Some(if quote_style.is_some() { value.clone() } else { value.to_lowercase() })
            }
            ObjectNamePart::Function(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::tokens::{statements, tokenize};

    fn parsed(sql: &str) -> Result<Command> {
        parse(statements(tokenize(sql)?).remove(0), &mut Vec::new())
    }

    #[test]
    fn pins_are_parsed_with_their_clauses() {
        let pin = |sql: &str| match parsed(sql) {
            Ok(Command::Pin(pin)) => *pin,
            other => panic!("{sql}: {other:?}"),
        };
        let PinCommand { target: Target::Tables(tables), clause, .. } =
            pin("PIN TABLES a AT (VERSION => 3), db.b VERSION AS OF 'eod'")
        else {
            panic!("a pin of tables")
        };
        assert_eq!(tables.len(), 2);
        assert!(clause.is_none());
        assert!(pin("PIN TABLES a, b AT (TAG => 'x')").clause.is_some(), "one clause for all");
        let database = pin("PIN DATABASE pay AT (TIMESTAMP => '2026-01-01')");
        assert!(matches!(database, PinCommand { target: Target::Database(_), clause: Some(_), .. }));
        assert!(matches!(parsed("UNPIN ALL").unwrap(), Command::Unpin(None)));
        assert!(matches!(parsed("UNPIN TABLE t").unwrap(), Command::Unpin(Some(_))));
        assert!(matches!(parsed("SHOW PINS").unwrap(), Command::ShowPins));
    }

    #[test]
    fn retain_is_refused_by_name_and_align_is_read() {
        let error = parsed("PIN TABLE t AT (VERSION => 3) RETAIN INTERVAL '2' HOUR").unwrap_err();
        assert_eq!(error.code(), "NotYet");
        assert!(error.to_string().contains("RETAIN"));
        assert_eq!(parsed("PIN TABLE t AT (VERSION => 3) RETAIN 5").unwrap_err().code(), "Syntax");
        for sql in [
            "PIN TABLES a, b ALIGN",
            "PIN TABLES a, b ALIGN ON WATERMARK TIMESTAMP '2026-01-01'",
            "PIN TABLES a, b ALIGN ON TIMESTAMP '2026-01-01'",
            "PIN TABLES a, b ALIGN ON TIMESTAMP now() - INTERVAL '1' HOUR",
            "PIN DATABASE pay ALIGN ON IDENTIFIER 120 USER 'cdc'",
        ] {
            assert!(matches!(parsed(sql), Ok(Command::Pin(pin)) if pin.align.is_some()), "{sql}");
        }
        for sql in [
            "PIN TABLES a AT (VERSION => 3), b ALIGN",
            "PIN TABLES a, b ALIGN ON ROWS 3",
            "PIN TABLES a, b ALIGN ON IDENTIFIER 3",
            "PIN TABLES a, b ALIGN ON WATERMARK",
        ] {
            assert_eq!(parsed(sql).unwrap_err().code(), "Syntax", "{sql}");
        }
    }

    #[test]
    fn scan_options_are_set_quoted_or_not() {
        for sql in [
            "SET 'paimon.scan.version' = '5'",
            "SET \"paimon.scan.version\" = 5",
            "SET paimon.scan.version = '5'",
            "SET paimon.scan.version TO 5",
        ] {
            let Command::SetOption { name, value } = parsed(sql).unwrap() else { panic!("{sql}") };
            assert_eq!((name.as_str(), value.as_str()), ("paimon.scan.version", "5"), "{sql}");
        }
        let Command::SetOption { name, .. } = parsed("SET paimon.db.t.scan.snapshot-id = 3").unwrap() else { panic!() };
        assert_eq!(name, "paimon.db.t.scan.snapshot-id");
        assert!(matches!(parsed("RESET 'paimon.scan.version'").unwrap(), Command::ResetOption(Some(_))));
        assert!(matches!(parsed("RESET paimon").unwrap(), Command::ResetOption(None)));
        assert!(matches!(parsed("SET datafusion.execution.batch_size = 5").unwrap(), Command::Statement(_)));
        assert!(matches!(parsed("SET TIME ZONE '+08:00'").unwrap(), Command::Statement(_)));
    }

    #[test]
    fn options_of_tables_need_their_prefix_and_reset_all_has_a_way_out() {
        for sql in [
            "SET 'scan.snapshot-id' = '3'",
            "SET scan.snapshot-id = 3",
            "SET \"pay.t.scan.snapshot-id\" = 3",
            "RESET 'file-index.read.enabled'",
        ] {
            let error = parsed(sql).unwrap_err();
            assert_eq!(error.code(), "UnknownOption", "{sql}: {error}");
            assert!(error.hint().unwrap().contains("SET 'paimon."), "{sql}: {error}");
        }
        assert!(matches!(parsed("SET datafusion.execution.batch_size = 5").unwrap(), Command::Statement(_)));
        let error = parsed("RESET ALL").unwrap_err();
        assert_eq!(error.code(), "NotYet");
        assert!(error.hint().unwrap().contains("UNPIN ALL"), "{error}");
    }

    #[test]
    fn explain_files_takes_both_spellings_and_only_queries() {
        for sql in
            ["EXPLAIN FILES SELECT * FROM t VERSION AS OF 3", "explain (files) with c as (select 1) select * from c"]
        {
            assert!(matches!(parsed(sql).unwrap(), Command::ExplainFiles(_)), "{sql}");
        }
        assert!(parsed("EXPLAIN FILES DROP TABLE t").is_err());
        let error = parsed("EXPLAIN (FILES, ANALYZE) SELECT 1").unwrap_err();
        assert!(error.to_string().contains("FILES is the only option"), "{error}");
        assert!(matches!(parsed("EXPLAIN SELECT 1").unwrap(), Command::Statement(_)));
    }

    #[test]
    fn a_copy_takes_a_clause_with_its_table() {
        let text = |sql: &str| match parsed(sql).unwrap() {
            Command::Statement(statement) => statement.to_string(),
            other => panic!("{other:?}"),
        };
        let copied = text("COPY db.t VERSION AS OF 3 TO 'x.csv' STORED AS CSV");
        assert!(copied.starts_with("COPY (SELECT * FROM db.t AT(VERSION => 3)) TO x.csv"), "{copied}");
        assert!(text("COPY t TO 'x.csv'").starts_with("COPY t TO x.csv"));
        let query = text("COPY (SELECT a FROM t VERSION AS OF 3) TO 'x.csv'");
        assert!(query.starts_with("COPY (SELECT a FROM t AT(VERSION => 3)) TO x.csv"), "{query}");
    }

    #[test]
    fn names_and_show_are_parsed() {
        assert!(matches!(parsed("DESCRIBE db.t VERSION AS OF 3").unwrap(), Command::Describe(_)));
        assert!(matches!(parsed("desc t$snapshots").unwrap(), Command::Describe(_)));
        assert!(matches!(parsed("SHOW TABLES IN db LIKE 'a%'").unwrap(), Command::ShowTables { .. }));
        assert!(matches!(parsed("SHOW PARTITIONS t VERSION AS OF 3").unwrap(), Command::ShowPartitions(_)));
        assert!(matches!(parsed("SHOW CREATE TABLE t").unwrap(), Command::ShowCreateTable(_)));
        assert!(matches!(parsed("USE pay").unwrap(), Command::Use(_)));
        assert!(matches!(parsed("SHOW ALL").unwrap(), Command::Statement(_)));
    }

    #[test]
    fn a_syntax_error_has_its_place() {
        let error = parsed("SELECT *\nFROM t WHERE )").unwrap_err();
        assert_eq!(error.code(), "Syntax");
        assert!(error.context().iter().any(|(name, value)| *name == "line" && value == "2"), "{error}");
        // what was typed, not what it was rewritten to
        let error = parsed("SHOW COLUMNS FROM t VERSION AS OF 1").unwrap_err();
        assert!(error.message().contains("found: VERSION"), "{error}");
        assert!(error.hint().unwrap().contains("DESCRIBE"), "{error}");
    }
}
