//! Text to statements and backslash commands. The tokenizer decides what is a semicolon or a backslash, so strings,
//! comments and quoted names may hold either; several statements, and a command after them, may share a line.

use std::ops::Range;

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace};

use crate::sql::Cursor;

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
    /// What stands before it on that line.
    pub before: Before,
    /// How it ended.
    pub ending: Ending,
}

/// What stands on a line before a statement that does not begin it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Before {
    /// Characters.
    pub columns: u64,
    /// The last of them: those that an error may show.
    pub text: String,
}

impl Before {
    /// Takes in what the input is done with.
    fn push(&mut self, gone: &str) {
        let last = match gone.rsplit_once('\n') {
            Some((_, last)) => {
                *self = Self::default();
                last
            }
            None => gone,
        };
        self.columns += last.chars().count() as u64;
        self.text.push_str(last);
        let more = self.text.chars().count().saturating_sub(SHOWN_BEFORE);
        if more > 0 {
            self.text = self.text.chars().skip(more).collect();
        }
    }
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

/// Characters before a statement that an error may show: more than it does.
const SHOWN_BEFORE: usize = 64;

/// Commands that may stand in place of the semicolon.
const ENDINGS: &[&str] = &["g", "G", "gx", "gset", "watch"];

/// Input that was read and not yet run.
///
/// Each part of it goes through the tokenizer about once, however many lines or statements there are: `read` is the
/// place where that goes on, at the next mark that can end something.
#[derive(Debug, Default)]
pub struct Input {
    buffer: String,
    /// Bytes of the buffer that are done with; other places count from here.
    taken: usize,
    /// Line of the first character, from 0.
    line: u64,
    /// What is done with of its line.
    before: Before,
    /// Whether it begins where a line begins.
    fresh: bool,
    /// Where the first token begins that is not read, or not whole.
    read: usize,
    /// Where to look for the next mark; nothing between `read` and this ends anything.
    from: usize,
    /// Whether a token of the statement was read: comments are none.
    begun: bool,
    /// What must come before the token at `read` can end.
    wants: Option<&'static str>,
}

/// What the tokenizer found.
enum Found {
    /// Nothing that ends anything yet.
    Nothing,
    /// The statement begins here, behind comments.
    Begin(usize),
    /// A semicolon.
    Semicolon(usize),
    /// A backslash.
    Backslash(usize),
    /// The semicolon behind a text that no tokenizer reads.
    Refused(usize),
}

impl Input {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self { fresh: true, ..Self::default() }
    }

    fn rest(&self) -> &str {
        self.buffer.get(self.taken..).unwrap_or_default()
    }

    /// Adds a line, or several.
    pub fn push(&mut self, lines: &str) {
        let lines = if self.line == 0 && self.rest().is_empty() {
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
        !self.rest().trim().is_empty()
    }

    /// What was typed of the open statement.
    pub fn open_text(&self) -> &str {
        self.rest().trim()
    }

    /// Forgets what is open.
    pub fn clear(&mut self) {
        self.advance(self.rest().len());
    }

    /// The next complete piece.
    pub fn next(&mut self) -> Option<Piece> {
        loop {
            if !self.begun {
                let blank = self.rest().len() - self.rest().trim_start().len();
                if blank > 0 {
                    self.advance(blank);
                }
                if self.rest().is_empty() {
                    return None;
                }
                if self.fresh && is_plain_command(self.line_at(0)) {
                    return Some(self.plain_command());
                }
                let dotted = self.fresh && dotted_command(self.rest());
                if self.rest().starts_with('\\') || dotted {
                    return Some(self.command(0, false));
                }
            }
            match self.look() {
                Found::Nothing => return None,
                Found::Begin(at) => self.advance(at),
                Found::Semicolon(end) if self.begun => return Some(self.statement(end, 1, Ending::Semicolon)),
                Found::Semicolon(end) => self.advance(end + 1),
                // a text no tokenizer reads is for the session to refuse, once it seems whole
                Found::Refused(end) => return Some(self.statement(end, 1, Ending::Semicolon)),
                Found::Backslash(at) => {
                    let rest = self.line_at(at + 1);
                    let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                    if self.begun && ENDINGS.contains(&name) {
                        let length = 1 + rest.len();
                        let ending = Ending::Command(rest.trim().to_string());
                        return Some(self.statement(at, length, ending));
                    }
                    return Some(self.command(at, self.begun));
                }
            }
        }
    }

    fn look(&mut self) -> Found {
        loop {
            if let Some(wanted) = self.wants {
                match self.rest().get(self.from..).and_then(|rest| rest.find(wanted)) {
                    Some(at) => self.from += at + wanted.len(),
                    None => {
                        // a line ends here, and none of what is wanted lies on two
                        self.from = self.rest().len();
                        return Found::Nothing;
                    }
                }
                self.wants = None;
            }
            let mark = self.rest().get(self.from..).and_then(|rest| rest.find([';', '\\']));
            let mark = mark.map(|at| self.from + at);
            if mark.is_none() && self.begun {
                self.from = self.rest().len();
                return Found::Nothing;
            }
            let end = mark.map_or(self.rest().len(), |at| at + 1);
            let (tokens, open) = ranges(self.rest().get(self.read..end).unwrap_or_default());
            for (token, range) in &tokens {
                let at = self.read + range.start;
                match token {
                    Token::SemiColon => return Found::Semicolon(at),
                    Token::Backslash => return Found::Backslash(at),
                    Token::Whitespace(_) | Token::EOF => {}
                    _ if !self.begun && at > 0 => return Found::Begin(at),
                    _ => self.begun = true,
                }
            }
            self.from = end;
            let rest = self.read + tokens.last().map_or(0, |(_, range)| range.end);
            match (open, tokens.last()) {
                (Open::Broken, _) => {
                    let text = self.rest().trim_end();
                    return if text.ends_with(';') { Found::Refused(text.len() - 1) } else { Found::Nothing };
                }
                (Open::Yes, _) => {
                    self.read = rest;
                    self.wants = closing(self.rest().get(rest..).unwrap_or_default());
                }
                (Open::No, Some((Token::Whitespace(Whitespace::SingleLineComment { .. }), comment)))
                    if mark.is_some() =>
                {
                    self.read += comment.start;
                    self.wants = Some("\n");
                }
                (Open::No, _) if mark.is_none() && self.begun => self.read = end,
                (Open::No, _) if mark.is_none() => self.advance(end),
                (Open::No, _) => {}
            }
            if mark.is_none() {
                return Found::Nothing;
            }
        }
    }

    /// What is left at the end of the input, without its semicolon.
    pub fn finish(&mut self) -> Option<Piece> {
        if let Some(piece) = self.next() {
            return Some(piece);
        }
        // comments alone are gone by now
        match self.rest().len() {
            0 => None,
            length => Some(self.statement(length, 0, Ending::End)),
        }
    }

    fn statement(&mut self, end: usize, terminator: usize, ending: Ending) -> Piece {
        let text = self.rest().get(..end).unwrap_or_default().trim_end().to_string();
        let (line, before) = (self.line + 1, self.before.clone());
        self.advance(end + terminator);
        Piece::Statement(Statement { text, line, before, ending })
    }

    /// Takes the command at a place out of the buffer.
    fn command(&mut self, at: usize, inside: bool) -> Piece {
        let rest = self.line_at(at + 1);
        let text = rest.trim().to_string();
        let line = self.line + count_lines(self.rest().get(..at).unwrap_or_default()) + 1;
        let length = 1 + rest.len();
        if inside {
            self.buffer.replace_range(self.taken + at..self.taken + at + length, "");
        } else {
            self.advance(at + length);
        }
        Piece::Command { text, line, inside }
    }

    /// Takes a line that is the name of a command.
    fn plain_command(&mut self) -> Piece {
        let (line, length) = (self.line + 1, self.line_at(0).len());
        let text = self.line_at(0).trim().trim_end_matches(';').trim_end().to_ascii_lowercase();
        self.advance(length);
        Piece::Command { text, line, inside: false }
    }

    fn line_at(&self, at: usize) -> &str {
        let rest = self.rest().get(at..).unwrap_or_default();
        rest.split('\n').next().unwrap_or_default()
    }

    /// Takes what is done with out of the buffer; what follows begins anew.
    fn advance(&mut self, bytes: usize) {
        (self.read, self.from, self.begun, self.wants) = (0, 0, false, None);
        let rest = self.buffer.get(self.taken..).unwrap_or_default();
        let gone = rest.get(..bytes).unwrap_or(rest);
        let (length, lines) = (gone.len(), count_lines(gone));
        let blank_since = gone.rsplit('\n').next().is_some_and(|last| last.trim().is_empty());
        if length > 0 {
            self.fresh = blank_since && (lines > 0 || self.fresh);
        }
        self.before.push(gone);
        self.line += lines;
        self.taken += length;
        // not each time: what is left would be moved for every statement of a line
        if self.taken > self.buffer.len() / 2 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
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

/// How the tokenizer begins to say that a text ends in the midst of a token.
const OPEN: &[&str] = &["Unterminated", "Unexpected EOF", "Expected close delimiter"];

/// The tokens of a text with their byte ranges, up to the place where the tokenizer fails, if it does.
fn ranges(text: &str) -> (Vec<(Token, Range<usize>)>, Open) {
    let mut tokens = Vec::new();
    let open = match Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens) {
        Ok(()) => Open::No,
        Err(e) if OPEN.iter().any(|sign| e.message.starts_with(sign)) => Open::Yes,
        Err(_) => Open::Broken,
    };
    let mut cursor = Cursor::new(text);
    let last = tokens.last().map(|token| token.span.end);
    let mut ranges: Vec<(Token, Range<usize>)> = Vec::with_capacity(tokens.len());
    for TokenWithSpan { token, span } in tokens {
        let start = cursor.byte_at(span.start);
        if let Some(before) = ranges.last_mut() {
            // where a token ends is where the next begins
            before.1.end = start;
        }
        ranges.push((token, start..start));
    }
    if let (Some(token), Some(end)) = (ranges.last_mut(), last) {
        token.1.end = cursor.byte_at(end);
    }
    (ranges, open)
}

/// The tokens of a text, as far as they go, with their byte ranges.
pub fn lexed(text: &str) -> Vec<(Token, Range<usize>)> {
    ranges(text).0
}

/// What must come before the token that a text begins with can end; None: that cannot be said.
fn closing(text: &str) -> Option<&'static str> {
    if text.starts_with("/*") {
        return Some("*/");
    }
    // a letter or two may stand before a quote
    text.chars().take(3).find_map(|c| match c {
        '\'' => Some("'"),
        '"' => Some("\""),
        '`' => Some("`"),
        '$' => Some("$"),
        _ => None,
    })
}

fn count_lines(text: &str) -> u64 {
    text.matches('\n').count() as u64
}

/// A line that is nothing but `exit`, `quit` or `help`: no statement begins so, and everybody types it once.
fn is_plain_command(line: &str) -> bool {
    let word = line.trim().trim_end_matches(';').trim_end();
    ["exit", "quit", "help"].iter().any(|name| word.eq_ignore_ascii_case(name))
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
        // those who show errors look at what stands before
        for piece in &mut pieces {
            if let Piece::Statement(statement) = piece {
                statement.before = Before::default();
            }
        }
        pieces
    }

    fn statement(text: &str, line: u64, ending: Ending) -> Piece {
        Piece::Statement(Statement { text: text.to_string(), line, before: Before::default(), ending })
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
    fn words_of_other_shells_alone_on_a_line_are_commands() {
        assert_eq!(
            all("help\nExit ;\nselect\nexit\n;\nquit now;"),
            [
                command("help", 1),
                command("exit", 2),
                statement("select\nexit", 3, Ending::Semicolon),
                statement("quit now", 6, Ending::Semicolon)
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
    fn comments_before_a_command_or_a_statement_are_no_part_of_it() {
        let text = "-- mine; \\q\n.timing on\n/* a;\n b */ -- c\n\\x\n/* d */ .e;\n/* f */\n\nselect 1;";
        assert_eq!(
            all(text),
            [
                command("timing on", 2),
                command("x", 5),
                statement(".e", 6, Ending::Semicolon),
                statement("select 1", 9, Ending::Semicolon),
            ]
        );
        // several lines at once, as the history gives them
        let mut input = Input::new();
        input.push("-- c\n.timing on\nselect 1;");
        assert_eq!(input.next(), Some(command("timing on", 2)));
        assert_eq!(input.next(), Some(statement("select 1", 3, Ending::Semicolon)));
    }

    /// Text cut anywhere between its lines, and marks in all that can hold them, give the pieces of the text as a whole.
    #[test]
    fn marks_in_what_is_open_end_nothing() {
        let pieces = [
            "select 'a;\n\\b;\n;;''c;'",
            "select \"x;\n\\y\", `z;\n`",
            "select $$ ;\n\\g ; $$, $t$ ; $$ \n; $t$",
            "select 1 -- ; \\q ; '\n + 2 /* ; \n /* ' ; */ ; */ + 3",
            "select e'it\\'s;\n', 4",
        ];
        let whole = pieces.map(|piece| format!("{piece};")).join(" ");
        let expected: Vec<String> = pieces.iter().map(ToString::to_string).collect();
        let texts = |pieces: Vec<Piece>| -> Vec<String> {
            let text = |piece| match piece {
                Piece::Statement(statement) => statement.text,
                Piece::Command { text, .. } => format!("command {text}"),
            };
            pieces.into_iter().map(text).collect()
        };
        assert_eq!(texts(all(&whole)), expected);
        let mut input = Input::new();
        input.push(&whole);
        assert_eq!(texts(std::iter::from_fn(|| input.next()).collect()), expected);
    }

    /// The work grows with the text, not with its square: a hundred times as much text takes seconds otherwise.
    #[test]
    fn long_texts_are_read_once() {
        let rows = 40_000;
        let lines = (0..rows).map(|n| format!("({n}, 'a;b', \"c\"), -- ;")).collect::<Vec<_>>().join("\n");
        let began = std::time::Instant::now();
        assert_eq!(all(&format!("values\n{lines}\n(0);")).len(), 1);
        let line = "select 'a;b', 1; ".repeat(rows);
        assert_eq!(all(&line).len(), rows);
        assert_eq!(all(&format!("select '{}';", "text; text\n".repeat(rows))).len(), 1);
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
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
