//! Text to statements and backslash commands. The tokenizer decides what is a semicolon or a backslash, so strings,
//! comments and quoted names may hold either; several statements, and a command after them, may share a line.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A statement.
    Statement(Statement),
    /// A backslash command without the backslash.
    Command {
        /// Name and arguments.
        text: String,
        /// Its line in the whole input, from 1.
        line: u64,
        /// Whether statement text stands before it on the line and is still open.
        inside: bool,
    },
}

/// A statement and where it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Without its terminator.
    pub text: String,
    /// Line of its first token in the whole input, from 1.
    pub line: u64,
    /// How it ended.
    pub ending: Ending,
}

/// How a statement ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With a semicolon.
    Semicolon,
    /// With the end of the input.
    End,
    /// With a backslash command that runs it: `\G`, `\gset p`, `\watch 2`.
    Command(String),
}

/// Commands that may stand in place of the semicolon.
const ENDINGS: &[&str] = &["g", "G", "gx", "gset", "watch"];

/// Input that was read and not yet run.
#[derive(Debug, Default)]
pub struct Input {
    buffer: String,
    /// Line of the buffer's first character, from 0.
    line: u64,
    /// Whether the buffer begins where a line begins.
    fresh: bool,
}

impl Input {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self { buffer: String::new(), line: 0, fresh: true }
    }

    /// Adds a line, or several.
    pub fn push(&mut self, lines: &str) {
        let lines = if self.line == 0 && self.buffer.is_empty() {
            lines.strip_prefix('\u{feff}').unwrap_or(lines)
        } else {
            lines
        };
        self.buffer.push_str(lines);
        if !lines.ends_with('\n') {
            self.buffer.push('\n');
        }
    }

    /// Whether a statement has begun and is not ended.
    pub fn is_open(&self) -> bool {
        !self.buffer.trim().is_empty()
    }

    /// What was typed of the open statement.
    pub fn open_text(&self) -> &str {
        self.buffer.trim()
    }

    /// Forgets what is open.
    pub fn clear(&mut self) {
        self.advance(self.buffer.len());
    }

    /// The next complete piece.
    pub fn next(&mut self) -> Option<Piece> {
        loop {
            let blank = self.buffer.len() - self.buffer.trim_start().len();
            self.advance(blank);
            if self.buffer.is_empty() {
                return None;
            }
            let dotted = self.fresh && dotted_command(&self.buffer);
            if self.buffer.starts_with('\\') || dotted {
                return Some(self.command(0, false));
            }
            let (tokens, open) = tokens(&self.buffer);
            let mut begun = false;
            let mut stop = None;
            for token in &tokens {
                match &token.token {
                    Token::SemiColon | Token::Backslash => {
                        stop = Some((token.token == Token::SemiColon, self.at(token.span.start)));
                        break;
                    }
                    Token::Whitespace(_) | Token::EOF => {}
                    _ => begun = true,
                }
            }
            match stop {
                Some((true, end)) if begun => return Some(self.statement(end, 1, Ending::Semicolon)),
                Some((true, end)) => self.advance(end + 1),
                Some((false, at)) => {
                    let rest = self.line_at(at + 1);
                    let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                    if begun && ENDINGS.contains(&name) {
                        let length = 1 + rest.len();
                        let ending = Ending::Command(rest.trim().to_string());
                        return Some(self.statement(at, length, ending));
                    }
                    return Some(self.command(at, begun));
                }
                // a text no tokenizer reads is for the session to refuse, once it seems whole
                None if open == Open::Broken && self.buffer.trim_end().ends_with(';') => {
                    let end = self.buffer.trim_end().len() - 1;
                    return Some(self.statement(end, 1, Ending::Semicolon));
                }
                None => return None,
            }
        }
    }

    /// What is left at the end of the input, without its semicolon.
    pub fn finish(&mut self) -> Option<Piece> {
        if let Some(piece) = self.next() {
            return Some(piece);
        }
        let (tokens, open) = tokens(&self.buffer);
        let begun = tokens.iter().any(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF));
        if !begun && open == Open::No {
            self.clear();
            return None;
        }
        Some(self.statement(self.buffer.len(), 0, Ending::End))
    }

    fn statement(&mut self, end: usize, terminator: usize, ending: Ending) -> Piece {
        let text = self.buffer.get(..end).unwrap_or_default();
        let skipped = leading_comments(text);
        let line = self.line + count_lines(text.get(..skipped).unwrap_or_default()) + 1;
        let text = text.get(skipped..).unwrap_or_default().trim_end().to_string();
        self.advance(end + terminator);
        Piece::Statement(Statement { text, line, ending })
    }

    /// Takes the command at a place out of the buffer.
    fn command(&mut self, at: usize, inside: bool) -> Piece {
        let rest = self.line_at(at + 1);
        let text = rest.trim().to_string();
        let line = self.line + count_lines(self.buffer.get(..at).unwrap_or_default()) + 1;
        let length = 1 + rest.len();
        if inside {
            self.buffer.replace_range(at..at + length, "");
        } else {
            self.advance(at + length);
        }
        Piece::Command { text, line, inside }
    }

    fn line_at(&self, at: usize) -> &str {
        let rest = self.buffer.get(at..).unwrap_or_default();
        rest.split('\n').next().unwrap_or_default()
    }

    fn at(&self, place: Location) -> usize {
        byte_at(&self.buffer, place)
    }

    fn advance(&mut self, bytes: usize) {
        let gone: String = self.buffer.drain(..bytes.min(self.buffer.len())).collect();
        self.line += count_lines(&gone);
        if !gone.is_empty() {
            self.fresh = gone.rsplit('\n').next().is_some_and(|last| last.trim().is_empty()) && gone.contains('\n')
                || (self.fresh && gone.trim().is_empty());
        }
    }
}

/// Whether a text without end is open (a string, a comment) or cannot be read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    No,
    Yes,
    Broken,
}

/// Tokens up to the place where the tokenizer fails, if it does.
fn tokens(text: &str) -> (Vec<TokenWithSpan>, Open) {
    let mut tokens = Vec::new();
    let open = match Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens) {
        Ok(()) => Open::No,
        Err(e) if e.message.starts_with("Unterminated") || e.message.starts_with("Unexpected EOF") => Open::Yes,
        Err(_) => Open::Broken,
    };
    (tokens, open)
}

/// The tokens of a text, as far as they go, with their byte ranges.
pub fn lexed(text: &str) -> Vec<(Token, std::ops::Range<usize>)> {
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
    let at = |place: Location| {
        let start = usize::try_from(place.line.saturating_sub(1)).ok().and_then(|l| starts.get(l)).copied();
        let rest = start.and_then(|s| text.get(s..)).unwrap_or_default();
        start.unwrap_or(text.len()) + skip(rest, place.column)
    };
    let mut ranges: Vec<(Token, std::ops::Range<usize>)> = Vec::new();
    for token in tokens(text).0 {
        let start = at(token.span.start);
        if let Some(last) = ranges.last_mut() {
            // where a token ends is where the next begins
            last.1.end = start;
        }
        ranges.push((token.token, start..at(token.span.end).max(start)));
    }
    ranges
}

fn skip(line: &str, column: u64) -> usize {
    let chars = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at)
}

/// Byte position of a line and column, both from 1.
pub fn byte_at(text: &str, place: Location) -> usize {
    let mut start = 0;
    for _ in 1..place.line {
        match text.get(start..).and_then(|rest| rest.find('\n')) {
            Some(end) => start += end + 1,
            None => return text.len(),
        }
    }
    start + skip(text.get(start..).unwrap_or_default(), place.column)
}

fn count_lines(text: &str) -> u64 {
    text.matches('\n').count() as u64
}

/// Bytes before the first token that means something; hints (`/*+`) mean something.
fn leading_comments(text: &str) -> usize {
    for (token, range) in lexed(text) {
        match &token {
            Token::Whitespace(_) => {}
            _ => return range.start,
        }
    }
    0
}

/// `.help` and its like, at the start of a line: a dot and a word.
fn dotted_command(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('.') && chars.next().is_some_and(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Piece> {
        let mut input = Input::new();
        let mut pieces = Vec::new();
        for line in text.lines() {
            input.push(line);
            while let Some(piece) = input.next() {
                pieces.push(piece);
            }
        }
        while let Some(piece) = input.finish() {
            pieces.push(piece);
        }
        pieces
    }

    fn statement(text: &str, line: u64, ending: Ending) -> Piece {
        Piece::Statement(Statement { text: text.to_string(), line, ending })
    }

    fn command(text: &str, line: u64) -> Piece {
        Piece::Command { text: text.to_string(), line, inside: false }
    }

    #[test]
    fn semicolons_in_strings_and_comments_do_not_end_a_statement() {
        let text = "select ';' as a -- ; \\q\n, \"x;y\" /* ; */;\n;;\nselect 2";
        assert_eq!(
            all(text),
            [
                statement("select ';' as a -- ; \\q\n, \"x;y\" /* ; */", 1, Ending::Semicolon),
                statement("select 2", 4, Ending::End)
            ]
        );
    }

    #[test]
    fn command_may_follow_on_the_same_line() {
        assert_eq!(
            all("select 1; \\watch 2 it's\n\\timing on\n.tables"),
            [
                statement("select 1", 1, Ending::Semicolon),
                command("watch 2 it's", 1),
                command("timing on", 2),
                command("tables", 3)
            ]
        );
    }

    #[test]
    fn command_may_end_a_statement() {
        assert_eq!(
            all("select 1\n from t \\G\nselect 2 \\gset x_"),
            [
                statement("select 1\n from t", 1, Ending::Command("G".into())),
                statement("select 2", 3, Ending::Command("gset x_".into()))
            ]
        );
    }

    #[test]
    fn other_command_inside_a_statement_leaves_it_open() {
        assert_eq!(
            all("select 1 \\timing\n+ 1;"),
            [
                Piece::Command { text: "timing".into(), line: 1, inside: true },
                statement("select 1 \n+ 1", 1, Ending::Semicolon)
            ]
        );
    }

    #[test]
    fn line_of_a_statement_is_that_of_its_first_word() {
        let pieces = all("-- head\n\n/* more */ select 1;\n\n  select 2;");
        assert_eq!(pieces, [statement("select 1", 3, Ending::Semicolon), statement("select 2", 5, Ending::Semicolon)]);
    }

    #[test]
    fn open_string_waits_and_is_given_up_at_the_end() {
        let mut input = Input::new();
        input.push("select 'it is;");
        assert_eq!(input.next(), None);
        assert!(input.is_open());
        input.push("over';");
        assert_eq!(input.next(), Some(statement("select 'it is;\nover'", 1, Ending::Semicolon)));
        assert!(!input.is_open());
        assert_eq!(all("select 'open;"), [statement("select 'open;", 1, Ending::End)]);
        assert_eq!(all("-- nothing\n"), []);
    }

    #[test]
    fn dot_begins_a_command_only_where_a_line_begins() {
        assert_eq!(all("select t\n.a from t;"), [statement("select t\n.a from t", 1, Ending::Semicolon)]);
    }

    #[test]
    fn byte_ranges_of_tokens_are_exact() {
        let text = "select '订单',\n :x";
        let found: Vec<&str> =
            lexed(text).into_iter().map(|(_, r)| &text[r]).filter(|t| !t.trim().is_empty()).collect();
        assert_eq!(found, ["select", "'订单'", ",", ":", "x"]);
    }
}
