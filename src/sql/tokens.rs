//! Small things about tokens: cutting a text into statements, making words and strings.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, Whitespace, Word};

use super::dialect::LakeDialect;
use super::place::Place;
use crate::error::{Error, Result};

/// One statement of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementText {
    /// The text without the closing semicolon.
    pub text: String,
    /// Byte position in the whole text.
    pub offset: usize,
    /// Line of its first token, from 1.
    pub line: u64,
    /// Column of its first token, from 1.
    pub column: u64,
    /// Whether a semicolon closed it.
    pub closed: bool,
}

/// The tokens of a text with their places.
pub(crate) fn tokenize(sql: &str) -> Result<Vec<TokenWithSpan>> {
    Tokenizer::new(&LakeDialect, sql).tokenize_with_location().map_err(|error| {
        let open = ["Unterminated", "Unexpected EOF", "Expected close delimiter"]
            .iter()
            .any(|sign| error.message.starts_with(sign));
        Error::invalid(error.message)
            .with_code(if open { "Incomplete" } else { "Syntax" })
            .with_context("line", error.location.line)
            .with_context("column", error.location.column)
    })
}

/// Turns lines and columns of a text into bytes; places are asked for in their order.
pub(crate) struct Cursor<'a> {
    rest: std::str::Chars<'a>,
    length: usize,
    line: u64,
    column: u64,
}

impl<'a> Cursor<'a> {
    /// At the beginning of a text.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text.chars(), length: text.len(), line: 1, column: 1 }
    }

    /// The byte of a place, or of the text's end when the place lies behind it.
    pub(crate) fn byte_at(&mut self, place: Location) -> usize {
        while (self.line, self.column) < (place.line, place.column) {
            match self.rest.next() {
                Some('\n') => (self.line, self.column) = (self.line + 1, 1),
                Some(_) => self.column += 1,
                None => break,
            }
        }
        self.length - self.rest.as_str().len()
    }
}

/// Cuts a text at its semicolons.
pub(crate) fn split(sql: &str) -> Result<Vec<StatementText>> {
    let mut cursor = Cursor::new(sql);
    let mut statements = Vec::new();
    let mut first: Option<(Location, usize)> = None;
    let mut push = |(from, offset): (Location, usize), end: usize, closed: bool| {
        let text = sql.get(offset..end).unwrap_or_default().trim_end().to_string();
        statements.push(StatementText { text, offset, line: from.line, column: from.column, closed });
    };
    for token in tokenize(sql)? {
        match token.token {
            Token::SemiColon => {
                if let Some(from) = first.take() {
                    push(from, cursor.byte_at(token.span.start), true);
                }
            }
            Token::Whitespace(_) | Token::EOF => {}
            _ if first.is_none() => first = Some((token.span.start, cursor.byte_at(token.span.start))),
            _ => {}
        }
    }
    if let Some(from) = first {
        push(from, sql.len(), false);
    }
    Ok(statements)
}

/// Cuts tokens at semicolons and drops what the parser does not look at; hints stay.
pub(crate) fn statements(tokens: Vec<TokenWithSpan>) -> Vec<Vec<TokenWithSpan>> {
    let mut all = Vec::new();
    let mut current = Vec::new();
    for token in tokens {
        match &token.token {
            Token::SemiColon => {
                if !current.is_empty() {
                    all.push(std::mem::take(&mut current));
                }
            }
            Token::Whitespace(Whitespace::MultiLineComment(comment)) if comment.starts_with('+') => {
                current.push(token);
            }
            Token::Whitespace(_) | Token::EOF => {}
            _ => current.push(token),
        }
    }
    if !current.is_empty() {
        all.push(current);
    }
    all
}

/// Whether the token is this unquoted word, in any case.
pub(crate) fn is_word(token: Option<&TokenWithSpan>, word: &str) -> bool {
    matches!(token.map(|t| &t.token), Some(Token::Word(w)) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

/// Whether the tokens from `at` are these unquoted words.
pub(crate) fn are_words(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    words.iter().enumerate().all(|(i, word)| is_word(tokens.get(at + i), word))
}

/// The text of a word or single-quoted string.
pub(crate) fn word_or_string(token: Option<&TokenWithSpan>) -> Option<&str> {
    match token.map(|t| &t.token) {
        Some(Token::Word(w)) => Some(&w.value),
        Some(Token::SingleQuotedString(s)) => Some(s),
        _ => None,
    }
}

/// An unquoted word.
pub(crate) fn word(text: &str, span: Span) -> TokenWithSpan {
    TokenWithSpan::new(Token::make_word(text, None), span)
}

/// A single-quoted string.
pub(crate) fn string(text: &str, span: Span) -> TokenWithSpan {
    TokenWithSpan::new(Token::SingleQuotedString(text.to_string()), span)
}

/// A mark.
pub(crate) fn mark(token: Token, span: Span) -> TokenWithSpan {
    TokenWithSpan::new(token, span)
}

/// The text of tokens, spaced as it was; where a comment stood a space is left.
pub(crate) fn written(tokens: &[TokenWithSpan]) -> String {
    let mut text = String::new();
    let mut before: Option<Span> = None;
    for TokenWithSpan { token, span } in tokens {
        if let Some(before) = before.filter(|before| before != span) {
            if span.start.line > before.end.line {
                text.push('\n');
                let indent = usize::try_from(span.start.column.saturating_sub(1)).unwrap_or(0);
                text.extend(std::iter::repeat_n(' ', indent));
            } else if span.start != before.end {
                text.push(' ');
            }
        }
        before = Some(*span);
        // the tokenizer has taken the escapes out
        match token {
            Token::SingleQuotedString(value) => text.push_str(&format!("'{}'", value.replace('\'', "''"))),
            Token::EscapedStringLiteral(value) => {
                text.push_str(&format!("E'{}'", value.replace('\\', "\\\\").replace('\'', "\\'")));
            }
            Token::Word(Word { value, quote_style: Some(quote), .. }) if matches!(quote, '"' | '`') => {
                text.push_str(&format!("{quote}{}{quote}", value.replace(*quote, &format!("{quote}{quote}"))));
            }
            other => text.push_str(&other.to_string()),
        }
    }
    text
}

/// Whether a word can be an identifier where a table or an alias stands.
pub(crate) fn is_identifier(word: &Word, reserved: &[Keyword]) -> bool {
    word.quote_style.is_some() || !reserved.contains(&word.keyword)
}

/// A syntax error at a token.
pub(crate) fn syntax(message: impl Into<String>, span: Span) -> Error {
    Error::invalid(message)
        .with_code("Syntax")
        .with_context("line", span.start.line)
        .with_context("column", span.start.column)
}

/// Tells how a name is written whose version is no plain word: `t@after-repair` ends at the hyphen.
pub(crate) fn quoted_selector(error: Error, typed: &[TokenWithSpan], place: Place) -> Error {
    let Some(at) = typed.iter().position(|token| Place::from(token.span.start) == place) else { return error };
    let glued = |at: usize| matches!(typed.get(at..at + 2), Some([a, b]) if a.span.end == b.span.start);
    let Some(before) = at.checked_sub(1).filter(|before| glued(*before)) else { return error };
    let begins = match typed.get(before).map(|token| &token.token) {
        Some(Token::Word(word)) => word.quote_style.is_none() && word.value.contains('@'),
        _ => false,
    };
    if !begins {
        return error;
    }
    let end = (at..typed.len()).find(|at| !glued(*at)).unwrap_or(at);
    let name: String = typed.iter().take(end + 1).skip(before).map(|token| token.token.to_string()).collect();
    error.with_hint(format!("quote the name and its version: \"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_tokens_not_by_semicolons_in_strings() {
        let cut = split("select ';' ; -- a;b\n  select \"x;\" /* ; */ from 订单;\n").unwrap();
        let texts: Vec<&str> = cut.iter().map(|s| s.text.as_str()).collect();
        assert_eq!(texts, ["select ';'", "select \"x;\" /* ; */ from 订单"]);
        assert_eq!((cut[1].line, cut[1].column, cut[1].closed), (2, 3, true));
        assert!(!split("select 1").unwrap()[0].closed);
    }

    #[test]
    fn a_statement_is_written_as_it_was() {
        let sql =
            "SELECT a.\"q\"\"x\", 'it''s', -1\n  FROM t VERSION AS OF 3 /*+ OPTIONS('a'='b') */\nWHERE f(x)=E'a\\'b'";
        let all = statements(tokenize(sql).unwrap());
        assert_eq!(written(&all[0]), sql);
        let all = statements(tokenize("SELECT 1 -- one\n, 2 /* two */ , 3").unwrap());
        assert_eq!(written(&all[0]), "SELECT 1\n, 2 , 3");
    }

    #[test]
    fn open_string_or_comment_is_incomplete() {
        for text in ["select 'a", "select /* b", "select \"c"] {
            assert_eq!(split(text).unwrap_err().code(), "Incomplete", "{text}");
        }
    }
}
