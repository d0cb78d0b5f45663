//! `RECONCILE t [AT (…)] WITH … ON KEY (…) …`: what is compared with what.
//!
//! ```text
//! RECONCILE table [AT (…)]
//!   WITH (SELECT …) | table [AT (…)] | 'file.parquet' | 'file.csv' | 'mysql://…' [FROM 'table or SELECT']
//!   ON KEY (column, …)
//!   [COMPARE (column [MAP ('of the right' => 'on the left', …)], …)] [EXCEPT (column, …)]
//!   [WHERE condition] [HORIZON column <= value | column AUTO] [TOLERANCE column 0.01, column rel:0.001]
//!   [COLLATE NOCASE (column, …)] [ZONE '+08:00'] [ROUND HALF UP] [SAMPLE n PERCENT BY KEY HASH] [LIMIT n PER CLASS] [STOP AFTER n]
//!   [ALLOW EMPTY] [PROGRESS 'file'] [INTO name]
//!   [VERDICT [OF n KEYS]] [THEIR COUNT n | (SELECT …)]
//!
//! RECONCILE table [AT (…)] WITH COUNT n
//! ```
//!
//! VERDICT makes the answer the verdict in place of the findings. It is a clause and no EXPLAIN: an EXPLAIN reads no row,
//! and a verdict reads all of them, and more. THEIR COUNT is a count of the other side that the verdict accounts for;
//! WITH COUNT has nothing else to go by.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Query, TableFactor};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::{factor, parse_error, parser};
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::recon::verdict::KEYS;
use crate::sql::rewrite::rewrite;
use crate::sql::tokens::{are_words, is_word, syntax};

/// Examples of each class, where nothing else is said.
pub(crate) const EXAMPLES: usize = 100;

const USAGE: &str = "write RECONCILE t AT (VERSION => 3) WITH (SELECT …) ON KEY (id) [COMPARE (a, b MAP ('x' => '1'))] [WHERE …] \
                     [HORIZON c <= …] [TOLERANCE a 0.01] [COLLATE NOCASE (id)] [SAMPLE 1 PERCENT BY KEY HASH] [LIMIT 100 PER CLASS] [ALLOW EMPTY] [INTO name] \
                     [VERDICT OF 100 KEYS] [THEIR COUNT 503]";

/// The right side.
#[derive(Debug)]
pub(crate) enum RightSide {
    /// A table of the session, at what is said of it.
    Table(Box<TableFactor>),
    /// A query of the session.
    Query(Box<Query>),
    /// A file.
    File(String),
    /// Nothing but a count.
    Count,
    /// A database: its address, and a table or query in it.
    Source {
        /// With secrets.
        url: String,
        /// In the database's own words; empty: what the address names.
        what: String,
    },
}

/// A count of the other side.
#[derive(Debug)]
pub(crate) enum Theirs {
    /// As it is written.
    Number(u64),
    /// A query of the session for one number.
    Query(Box<Query>),
}

/// Up to when rows are compared.
#[derive(Debug)]
pub(crate) enum Horizon {
    /// Up to this value.
    At(Box<Expr>),
    /// Up to what both sides are known to have.
    Auto,
}

/// One comparison.
#[derive(Debug)]
pub(crate) struct Reconcile {
    pub(crate) left: TableFactor,
    pub(crate) right: RightSide,
    pub(crate) key: Vec<String>,
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) except: Vec<String>,
    pub(crate) maps: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) condition: Option<Expr>,
    /// The column that tells how new a row is, and up to when rows are compared.
    pub(crate) horizon: Option<(String, Horizon)>,
    pub(crate) tolerances: BTreeMap<String, String>,
    /// Columns whose texts are compared in lower case.
    pub(crate) folded: Vec<String>,
    pub(crate) zone: Option<String>,
    pub(crate) half_up: bool,
    pub(crate) sample_percent: Option<String>,
    /// Whether it may be that no row meets the condition.
    pub(crate) may_be_empty: bool,
    pub(crate) examples: usize,
    pub(crate) stop_after: Option<u64>,
    pub(crate) progress: Option<String>,
    pub(crate) into: Option<ObjectName>,
    /// Findings that a verdict looks up; None: the comparison alone is wanted.
    pub(crate) verdict: Option<usize>,
    pub(crate) theirs: Option<Theirs>,
}

/// Where a word stands outside of parentheses.
fn top_level(tokens: &[TokenWithSpan], from: usize, words: &[&str]) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && are_words(tokens, at, words) => return Some(at),
            _ => {}
        }
    }
    None
}

/// The text of a token in quotes.
fn quoted(token: Option<&TokenWithSpan>) -> Option<&str> {
    match token.map(|token| &token.token) {
        Some(Token::SingleQuotedString(text)) => Some(text),
        _ => None,
    }
}

/// Parses the tokens of the statement.
pub(crate) fn parse(tokens: Vec<TokenWithSpan>, notices: &mut Vec<Notice>) -> Result<Reconcile> {
    let tokens: Vec<TokenWithSpan> = tokens.into_iter().filter(|t| !is_blank(&t.token)).collect();
    let begin = tokens.first().map_or_else(Span::empty, |token| token.span);
    let usage = |message: &str| syntax(message, begin).with_hint(USAGE);
    let with =
        top_level(&tokens, 1, &["WITH"]).ok_or_else(|| usage("RECONCILE lacks what the table is compared with"))?;
    let left = factor(rewrite(tokens.get(1..with).unwrap_or_default().to_vec(), notices)?, 0).map_err(hinted)?;
    let rest = tokens.get(with + 1..).unwrap_or_default();
    let alone = is_word(rest.first(), "COUNT") && matches!(rest.get(1).map(|t| &t.token), Some(Token::Number(..)));
    let (right, mut clauses, key) = if alone {
        (RightSide::Count, Clauses { parser: parser(rest.get(1..).unwrap_or_default().to_vec()), begin }, Vec::new())
    } else {
        let on = top_level(&tokens, with, &["ON", "KEY"]).ok_or_else(|| usage("RECONCILE lacks ON KEY"))?;
        let right = right_side(tokens.get(with + 1..on).unwrap_or_default(), notices, begin)?;
        let mut clauses = Clauses { parser: parser(tokens.get(on + 2..).unwrap_or_default().to_vec()), begin };
        let key = clauses.names()?;
        (right, clauses, key)
    };
    let theirs = if alone { Some(Theirs::Number(clauses.count()?)) } else { None };
    let mut found = Reconcile {
        left,
        right,
        key,
        columns: None,
        except: Vec::new(),
        maps: BTreeMap::new(),
        condition: None,
        horizon: None,
        tolerances: BTreeMap::new(),
        folded: Vec::new(),
        zone: None,
        half_up: false,
        sample_percent: None,
        may_be_empty: false,
        examples: EXAMPLES,
        stop_after: None,
        progress: None,
        into: None,
        verdict: alone.then_some(KEYS),
        theirs,
    };
    let mut seen: Vec<String> = Vec::new();
    while let Some(word) = clauses.word()? {
        if alone && word != "INTO" {
            return Err(clauses.wrong(&format!("{word} does not go with a count alone")));
        }
        if seen.contains(&word) && word != "TOLERANCE" {
            return Err(clauses.wrong(&format!("{word} stands twice")));
        }
        clauses.clause(&word, &mut found)?;
        seen.push(word);
    }
    Ok(found)
}

fn is_blank(token: &Token) -> bool {
    // hints stay: they belong to tables
    matches!(token, Token::Whitespace(space) if !matches!(space, datafusion::sql::sqlparser::tokenizer::Whitespace::MultiLineComment(_)))
}

fn hinted(error: Error) -> Error {
    if error.hint().is_some() { error } else { error.with_hint(USAGE) }
}

fn right_side(tokens: &[TokenWithSpan], notices: &mut Vec<Notice>, begin: Span) -> Result<RightSide> {
    if let Some(text) = quoted(tokens.first()) {
        if !text.contains("://") {
            return match tokens.len() {
                1 => Ok(RightSide::File(text.to_string())),
                _ => Err(syntax("nothing stands behind the name of a file", begin).with_hint(USAGE)),
            };
        }
        let what = match tokens {
            [_] => String::new(),
            [_, from, what] if is_word(Some(from), "FROM") => {
                let what = quoted(Some(what));
                what.ok_or_else(|| {
                    syntax("a table or query of a database stands in quotes", begin)
                        .with_hint("write FROM 'pay_success' or FROM 'SELECT …'")
                })?
                .to_string()
            }
            // what was typed may hold a secret, and is not shown
            _ => {
                return Err(syntax("behind the address of a database stands FROM and what is read", begin)
                    .with_hint("write 'mysql://…' FROM 'pay_success'"));
            }
        };
        return Ok(RightSide::Source { url: text.to_string(), what });
    }
    let tokens = rewrite(tokens.to_vec(), notices)?;
    if !matches!(tokens.first().map(|token| &token.token), Some(Token::LParen)) {
        return Ok(RightSide::Table(Box::new(factor(tokens, 0).map_err(hinted)?)));
    }
    let count = tokens.len();
    let mut parser = parser(tokens);
    let error = |e| hinted(parse_error(&e, begin));
    parser.expect_token(&Token::LParen).map_err(error)?;
    let query = parser.parse_query().map_err(error)?;
    parser.expect_token(&Token::RParen).map_err(error)?;
    if parser.index() < count {
        return Err(syntax("behind the query stands ON KEY (…)", parser.peek_token().span).with_hint(USAGE));
    }
    Ok(RightSide::Query(query))
}

struct Clauses {
    parser: Parser<'static>,
    begin: Span,
}

impl Clauses {
    fn wrong(&self, message: &str) -> Error {
        let next = self.parser.peek_token();
        let span = if next.token == Token::EOF { self.begin } else { next.span };
        syntax(message, span).with_hint(USAGE)
    }

    fn told<T>(&self, result: std::result::Result<T, datafusion::sql::sqlparser::parser::ParserError>) -> Result<T> {
        result.map_err(|error| hinted(parse_error(&error, self.begin)))
    }

    /// The word a clause begins with; None at the end.
    fn word(&mut self) -> Result<Option<String>> {
        let token = self.parser.peek_token();
        match token.token {
            Token::EOF | Token::SemiColon => Ok(None),
            Token::Word(word) if word.quote_style.is_none() => {
                self.parser.next_token();
                Ok(Some(word.value.to_uppercase()))
            }
            other => Err(self.wrong(&format!("unexpected {other}"))),
        }
    }

    fn expect(&mut self, words: &[&str]) -> Result<()> {
        for expected in words {
            match self.parser.peek_token().token {
                Token::Word(word) if word.value.eq_ignore_ascii_case(expected) => drop(self.parser.next_token()),
                _ => return Err(self.wrong(&format!("{expected} was expected"))),
            }
        }
        Ok(())
    }

    fn name(&mut self) -> Result<String> {
        let name = self.parser.parse_identifier();
        self.told(name).map(|Ident { value, .. }| value)
    }

    fn names(&mut self) -> Result<Vec<String>> {
        let open = self.parser.expect_token(&Token::LParen);
        self.told(open)?;
        let mut names = vec![self.name()?];
        while self.parser.consume_token(&Token::Comma) {
            names.push(self.name()?);
        }
        let close = self.parser.expect_token(&Token::RParen);
        self.told(close)?;
        Ok(names)
    }

    fn string(&mut self) -> Result<String> {
        match self.parser.peek_token().token {
            Token::SingleQuotedString(text) => {
                self.parser.next_token();
                Ok(text)
            }
            _ => Err(self.wrong("a text in quotes was expected")),
        }
    }

    fn number(&mut self) -> Result<String> {
        match self.parser.peek_token().token {
            Token::Number(text, _) => {
                self.parser.next_token();
                Ok(text)
            }
            _ => Err(self.wrong("a number was expected")),
        }
    }

    fn count(&mut self) -> Result<u64> {
        let text = self.number()?;
        text.parse().map_err(|_| self.wrong(&format!("{text} is no count")))
    }

    /// A value of MAP: a text, or a number as it is written.
    fn code(&mut self) -> Result<String> {
        let sign = if self.parser.consume_token(&Token::Minus) { "-" } else { "" };
        match self.parser.peek_token().token {
            Token::Number(..) => Ok(format!("{sign}{}", self.number()?)),
            _ => self.string(),
        }
    }

    fn map(&mut self) -> Result<BTreeMap<String, String>> {
        let open = self.parser.expect_token(&Token::LParen);
        self.told(open)?;
        let mut map = BTreeMap::new();
        loop {
            let from = self.code()?;
            let arrow = self.parser.expect_token(&Token::RArrow);
            self.told(arrow)?;
            let to = self.code()?;
            if map.insert(from.clone(), to).is_some() {
                return Err(self.wrong(&format!("MAP names '{from}' twice")));
            }
            if !self.parser.consume_token(&Token::Comma) {
                break;
            }
        }
        let close = self.parser.expect_token(&Token::RParen);
        self.told(close)?;
        Ok(map)
    }

    fn clause(&mut self, word: &str, found: &mut Reconcile) -> Result<()> {
        match word {
            "COMPARE" => {
                let open = self.parser.expect_token(&Token::LParen);
                self.told(open)?;
                let mut columns = Vec::new();
                loop {
                    let name = self.name()?;
                    if is_next(&self.parser, "MAP") {
                        self.parser.next_token();
                        found.maps.insert(name.clone(), self.map()?);
                    }
                    columns.push(name);
                    if !self.parser.consume_token(&Token::Comma) {
                        break;
                    }
                }
                let close = self.parser.expect_token(&Token::RParen);
                self.told(close)?;
                found.columns = Some(columns);
            }
            "EXCEPT" => found.except = self.names()?,
            "WHERE" => {
                let condition = self.parser.parse_expr();
                found.condition = Some(self.told(condition)?);
            }
            "HORIZON" => {
                let name = self.name()?;
                if is_next(&self.parser, "AUTO") {
                    self.parser.next_token();
                    found.horizon = Some((name, Horizon::Auto));
                    return Ok(());
                }
                if !self.parser.consume_token(&Token::LtEq) {
                    return Err(self.wrong("HORIZON takes column <= value, or column AUTO"));
                }
                let value = self.parser.parse_expr();
                found.horizon = Some((name, Horizon::At(Box::new(self.told(value)?))));
            }
            "TOLERANCE" => loop {
                let name = self.name()?;
                let relative = is_next(&self.parser, "REL");
                if relative {
                    self.parser.next_token();
                    if !self.parser.consume_token(&Token::Colon) {
                        return Err(self.wrong("a part is written rel:0.001"));
                    }
                }
                let number = self.number()?;
                found.tolerances.insert(name, if relative { format!("rel:{number}") } else { number });
                if !self.parser.consume_token(&Token::Comma) {
                    break;
                }
            },
            "COLLATE" => {
                self.expect(&["NOCASE"])?;
                found.folded = self.names()?;
            }
            "ZONE" => found.zone = Some(self.string()?),
            "ROUND" => {
                self.expect(&["HALF", "UP"])?;
                found.half_up = true;
            }
            "SAMPLE" => {
                found.sample_percent = Some(self.number()?);
                self.expect(&["PERCENT", "BY", "KEY", "HASH"])?;
            }
            "LIMIT" => {
                let count = self.count()?;
                found.examples = usize::try_from(count).map_err(|_| self.wrong("the limit is too large"))?;
                self.expect(&["PER", "CLASS"])?;
            }
            "ALLOW" => {
                self.expect(&["EMPTY"])?;
                found.may_be_empty = true;
            }
            "STOP" => {
                self.expect(&["AFTER"])?;
                found.stop_after = Some(self.count()?.max(1));
            }
            "PROGRESS" => found.progress = Some(self.string()?),
            "INTO" => {
                let name = self.parser.parse_object_name(false);
                found.into = Some(self.told(name)?);
            }
            "VERDICT" => {
                let mut keys = KEYS;
                if is_next(&self.parser, "OF") {
                    self.parser.next_token();
                    let count = self.count()?;
                    keys = usize::try_from(count).map_err(|_| self.wrong("so many keys cannot be looked at"))?;
                    self.expect(&["KEYS"])?;
                }
                found.verdict = Some(keys);
            }
            "THEIR" => {
                self.expect(&["COUNT"])?;
                found.theirs = Some(if self.parser.consume_token(&Token::LParen) {
                    let query = self.parser.parse_query();
                    let query = self.told(query)?;
                    let close = self.parser.expect_token(&Token::RParen);
                    self.told(close)?;
                    Theirs::Query(query)
                } else {
                    Theirs::Number(self.count()?)
                });
                found.verdict.get_or_insert(KEYS);
            }
            other => return Err(self.wrong(&format!("{other} is no clause of RECONCILE"))),
        }
        Ok(())
    }
}

fn is_next(parser: &Parser<'_>, word: &str) -> bool {
    is_word(Some(&parser.peek_token()), word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::tokens::{statements, tokenize};

    fn parsed(sql: &str) -> Result<Reconcile> {
        parse(statements(tokenize(sql)?).remove(0), &mut Vec::new())
    }

    #[test]
    fn every_clause_is_read() {
        let found = parsed(
            "RECONCILE pay.t VERSION AS OF 3 WITH (SELECT id, a FROM u AT (TAG => 'x')) ON KEY (dt, \"编号\")
             COMPARE (amount, status MAP ('SUCC' => '2', 1 => -1)) WHERE pay_time <= TIMESTAMP '2026-04-16 10:00:00' and x = 1
             HORIZON update_time <= TIMESTAMP '2026-04-16 10:00:00' TOLERANCE amount 0.01, rate rel:0.001 ZONE '+08:00'
             ROUND HALF UP SAMPLE 0.5 PERCENT BY KEY HASH LIMIT 7 PER CLASS STOP AFTER 9 ALLOW EMPTY PROGRESS 'p.json' INTO db.result",
        )
        .unwrap();
        assert_eq!(
            (found.key, found.columns.unwrap()),
            (vec!["dt".into(), "编号".into()], vec!["amount".to_string(), "status".into()])
        );
        assert_eq!(
            found.maps["status"],
            [("SUCC", "2"), ("1", "-1")].map(|(a, b)| (a.to_string(), b.to_string())).into()
        );
        assert!(found.condition.unwrap().to_string().ends_with("AND x = 1"));
        assert_eq!(found.horizon.unwrap().0, "update_time");
        assert_eq!((found.tolerances["amount"].as_str(), found.tolerances["rate"].as_str()), ("0.01", "rel:0.001"));
        assert_eq!(
            (found.zone.as_deref(), found.half_up, found.sample_percent.as_deref()),
            (Some("+08:00"), true, Some("0.5"))
        );
        assert!(found.may_be_empty);
        assert_eq!((found.examples, found.stop_after, found.progress.as_deref()), (7, Some(9), Some("p.json")));
        assert_eq!(found.into.unwrap().to_string(), "db.result");
        assert!(matches!(found.right, RightSide::Query(_)));
        assert!(matches!(found.left, TableFactor::Table { version: Some(_), .. }));
    }

    #[test]
    fn the_right_side_is_a_table_a_file_or_a_database() {
        let right =
            |with: &str| parsed(&format!("reconcile t with {with} on key (id) except (a)")).map(|found| found.right);
        assert!(matches!(right("u@v3").unwrap(), RightSide::Table(_)));
        assert!(matches!(right("db.u VERSION AS OF 'eod'").unwrap(), RightSide::Table(_)));
        assert!(matches!(right("'a/b.csv'").unwrap(), RightSide::File(name) if name == "a/b.csv"));
        assert!(matches!(right("'mysql://h/db' FROM 'pay'").unwrap(), RightSide::Source { what, .. } if what == "pay"));
        let error = right("'mysql://u:geheim@h/db' 'pay'").unwrap_err();
        assert!(!format!("{error:?}").contains("geheim"), "{error:?}");
    }

    #[test]
    fn a_verdict_is_a_clause_and_a_count_goes_with_it() {
        let found = |rest: &str| parsed(&format!("RECONCILE t WITH u ON KEY (id) {rest}"));
        assert_eq!(found("").unwrap().verdict, None);
        assert_eq!(found("VERDICT").unwrap().verdict, Some(KEYS));
        let both = found("VERDICT OF 7 KEYS THEIR COUNT 503").unwrap();
        assert_eq!(both.verdict, Some(7));
        assert!(matches!(both.theirs, Some(Theirs::Number(503))));
        let query = found("THEIR COUNT (SELECT count(*) FROM x) LIMIT 5 PER CLASS").unwrap();
        assert!(matches!(query.theirs, Some(Theirs::Query(_))) && query.verdict == Some(KEYS) && query.examples == 5);
        let alone = parsed("RECONCILE t@v3 WITH COUNT 503").unwrap();
        assert!(matches!((alone.right, alone.theirs), (RightSide::Count, Some(Theirs::Number(503)))));
        for wrong in ["RECONCILE t WITH COUNT 5 ON KEY (id)", "RECONCILE t WITH COUNT -5", "RECONCILE t WITH COUNT"] {
            assert_eq!(parsed(wrong).unwrap_err().code(), "Syntax", "{wrong}");
        }
        assert_eq!(found("VERDICT OF KEYS").unwrap_err().code(), "Syntax");
    }

    #[test]
    fn what_is_missing_is_told_with_the_way_to_write_it() {
        for sql in [
            "RECONCILE t",
            "RECONCILE t WITH u",
            "RECONCILE t WITH u ON KEY id",
            "RECONCILE t WITH u ON KEY (id) LIMIT 5",
            "RECONCILE t WITH u ON KEY (id) HORIZON a < 3",
            "RECONCILE t WITH u ON KEY (id) HORIZON AUTO",
            "RECONCILE t WITH u ON KEY (id) WHERE a = 1 WHERE b = 1",
            "RECONCILE t WITH u ON KEY (id) COMPARE (a MAP ('x' = 'y'))",
            "RECONCILE t WITH (SELECT 1) x ON KEY (id)",
            "RECONCILE t WITH u ON KEY (id) FROBNICATE 3",
        ] {
            let error = parsed(sql).unwrap_err();
            assert_eq!((error.code(), error.hint().is_some()), ("Syntax", true), "{sql}: {error}");
        }
    }
}
