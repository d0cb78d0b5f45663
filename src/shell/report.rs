//! Errors for people: code, place, the line with a caret, what to do; always on standard error.

use std::error::Error as _;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

use super::input::Before;
use super::language::{Language, Text, advice, both};
use super::redact::redacted;
use super::render::width::{escaped, visible, width};
use crate::error::{Error, without_passwords};

/// The text an error speaks of.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The statement as it was run.
    pub text: String,
    /// Its line in a script, from 1; 1 at the prompt.
    pub line: u64,
    /// What stands before it on that line.
    pub before: Before,
    /// Name of the script and number of the statement, when there are several.
    pub origin: String,
}

/// The error as text.
pub fn describe(error: &Error, source: Option<&Source>, color: bool, language: Language) -> String {
    let fact = |name: &str| error.context().iter().find(|(n, _)| *n == name).and_then(|(_, v)| v.parse::<u64>().ok());
    // the place in a statement that a command made is of no use to who wrote the command
    let place = fact("line").zip(fact("column")).filter(|_| source.is_none_or(|source| !source.text.is_empty()));
    let mut out = String::new();
    let (red, off) = if color { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    let _ = write!(out, "{red}error[{}]{off}", error.code());
    if let Some(source) = source {
        if !source.origin.is_empty() {
            let _ = write!(out, " {}", escaped(&source.origin));
        }
        match place {
            Some((line, column)) => {
                let column = column + if line == 1 { source.before.columns } else { 0 };
                let _ = write!(out, " line {}:{column}", source.line.max(1) + line - 1);
            }
            None if !source.origin.is_empty() => drop(write!(out, " line {}", source.line.max(1))),
            None => {}
        }
    }
    // engines quote data
    let _ = writeln!(out, ": {}", visible(&message(error)));
    if let (Some(source), Some((line, column))) = (source, place) {
        let line_text = usize::try_from(line.saturating_sub(1)).ok().and_then(|at| source.text.lines().nth(at));
        if let Some(line_text) = line_text {
            let before = if line == 1 { source.before.text.as_str() } else { "" };
            let at = usize::try_from(column.saturating_sub(1)).unwrap_or(0);
            let line = format!("{before}{line_text}");
            // an address in it may hold a password
            match line.contains("://").then(|| redacted(&line)).filter(|bare| *bare != line) {
                Some(bare) => drop(writeln!(out, "  {}", visible(&bare))),
                None => out.push_str(&caret(&line, before.chars().count() + at)),
            }
        }
    }
    for (name, value) in error.context() {
        if !matches!(*name, "line" | "column") {
            let _ = writeln!(out, "  {name}: {}", escaped(value));
        }
    }
    if let Some(hint) = error.hint() {
        let _ = writeln!(out, "{}{}", HINT.of(language), visible(hint));
    }
    if language == Language::Zh {
        let _ = writeln!(out, "{}{}", HINT.of(language), advice(error));
    }
    out
}

/// What stands before a way out.
const HINT: Text = both("hint: ", "提示: ");

/// What went wrong, without the wrappings of the libraries below, which the code and the place already tell.
fn message(error: &Error) -> String {
    let mut text = error.message();
    const WRAPPINGS: &[&str] = &[
        "SQL error: ",
        "Schema error: ",
        "Error during planning: ",
        "Execution error: ",
        "This feature is not implemented: ",
    ];
    while let Some(inner) = WRAPPINGS.iter().find_map(|wrapping| text.strip_prefix(wrapping)) {
        text = inner;
    }
    let parser = ["ParserError(\"", "TokenizerError(\""].iter().find_map(|wrapping| text.strip_prefix(wrapping));
    if let Some(inner) = parser.and_then(|inner| inner.strip_suffix("\")")) {
        let inner = inner.find(" at Line: ").and_then(|at| inner.get(..at)).unwrap_or(inner);
        return inner.replace("\\\"", "\"").replace("\\'", "'");
    }
    match (error.hint(), text.split_once('\n')) {
        // the hint says the same, better
        (Some(_), Some((first, rest))) if rest.starts_with("Valid fields are") => {
            first.trim_end_matches('.').to_string()
        }
        _ => text.to_string(),
    }
}

/// The line and a caret under the character, shortened around it when it is long.
fn caret(line: &str, at: usize) -> String {
    let chars: Vec<char> = line.chars().collect();
    let from = if at > 60 { at - 40 } else { 0 };
    let to = chars.len().min(from + 100);
    let part = |a: usize, b: usize| escaped(&chars.get(a..b.max(a)).unwrap_or_default().iter().collect::<String>());
    let lead = if from > 0 { "…" } else { "" };
    let trail = if to < chars.len() { "…" } else { "" };
    let indent = width(lead) + width(&part(from, at.min(to)));
    format!("  {lead}{}{trail}\n  {}^\n", part(from, to), " ".repeat(indent))
}

/// Everything known about an error: its causes too.
pub fn verbose(error: &Error, language: Language) -> String {
    let what = visible(&message(error)).into_owned();
    let mut out = format!("error[{}]: {what}\n  kind: {:?}\n", error.code(), error.kind());
    for (name, value) in error.context() {
        let _ = writeln!(out, "  {name}: {}", escaped(value));
    }
    if let Some(hint) = error.hint() {
        let _ = writeln!(out, "{}{}", HINT.of(language), visible(hint));
    }
    let caused_by = both("caused by: ", "起因: ").of(language);
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = writeln!(out, "{caused_by}{}", visible(&without_passwords(&error.to_string())));
        cause = error.source();
    }
    out
}

/// Prints to standard error what may hold names and other data; a closed one is no reason to fail.
pub fn eprint(text: &str) {
    if std::io::stderr().is_terminal() { eprint_described(&visible(text)) } else { eprint_described(text) }
}

/// Prints what [`describe`] made, colours and all.
pub fn eprint_described(text: &str) {
    super::progress::clear();
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

#[cfg(test)]
mod tests {
    use super::super::input::{Input, Piece, Statement};
    use super::*;

    #[test]
    fn a_password_in_the_line_that_is_shown_is_none() {
        let error = Error::invalid("no").with_code("Syntax").with_context("line", 1).with_context("column", 50);
        let text = "RECONCILE t WITH 'mysql://u:geheim@h/db' x ON KEY (id)".to_string();
        let source = Source { text, line: 1, ..Source::default() };
        let told = describe(&error, Some(&source), false, Language::En);
        assert!(told.contains("mysql://") && !told.contains("geheim"), "{told}");
    }

    #[test]
    fn error_points_at_the_place_in_cells() {
        let error = Error::not_found("there is no column 订单")
            .with_code("ColumnNotFound")
            .with_context("line", 2)
            .with_context("column", 11)
            .with_hint("did you mean \"订单号\"?");
        let text = "select *,\n  '订单' || 订单 from t".into();
        let before = Before { columns: 90, text: "select 1; ".into() };
        let source = Source { text, line: 7, before, origin: "a.sql".into() };
        assert_eq!(
            describe(&error, Some(&source), false, Language::En),
            "error[ColumnNotFound] a.sql line 8:11: there is no column 订单\n    '订单' || 订单 from t\n              ^\nhint: did you mean \"订单号\"?\n"
        );
    }

    /// The place is that of the file, and so is the line that is shown.
    #[test]
    fn place_counts_what_stands_before_the_statement() {
        let error = Error::invalid("x").with_context("line", 1).with_context("column", 8);
        let mut input = Input::new();
        input.push("select 1;\n    select nope from t; /* 订 */ select nope;");
        let mut places = Vec::new();
        while let Some(piece) = input.next() {
            let Piece::Statement(Statement { text, line, before, .. }) = piece else { panic!("{piece:?}") };
            let source = Source { text, line, before, origin: String::new() };
            places.push(describe(&error, Some(&source), false, Language::En));
        }
        assert_eq!(places[0], "error[Invalid] line 1:8: x\n  select 1\n         ^\n");
        assert_eq!(places[1], "error[Invalid] line 2:12: x\n      select nope from t\n             ^\n");
        let shown = "      select nope from t; /* 订 */ select nope";
        let expected = format!("error[Invalid] line 2:40: x\n{shown}\n{}^\n", " ".repeat(42));
        assert_eq!(places[2], expected);
    }

    /// However much there is.
    #[test]
    fn line_of_many_statements_is_shortened() {
        let error = Error::invalid("x").with_context("line", 1).with_context("column", 8);
        let mut input = Input::new();
        input.push(&"select 12345;".repeat(1000));
        let mut last = None;
        while let Some(Piece::Statement(statement)) = input.next() {
            last = Some(statement);
        }
        let Statement { text, before, .. } = last.unwrap();
        assert!(before.text.len() <= 64);
        let source = Source { text, line: 1, before, origin: String::new() };
        let told = describe(&error, Some(&source), false, Language::En);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], format!("error[Invalid] line 1:{}: x", 13 * 999 + 8));
        assert!(lines[1].starts_with("  …") && lines[1].ends_with(";select 12345"), "{told}");
        assert_eq!(lines[1].chars().nth(lines[2].find('^').unwrap()), Some('1'), "{told}");
    }

    #[test]
    fn advice_follows_in_chinese_and_the_code_stays() {
        let error = Error::not_found("there is no table 't'").with_code("TableNotFound");
        let text = describe(&error, None, false, Language::Zh);
        assert!(text.starts_with("error[TableNotFound]: there is no table 't'\n提示: 没有这个表"), "{text}");
    }

    #[test]
    fn wrappings_of_libraries_are_taken_off() {
        let cases = [
            (
                "SQL error: ParserError(\"Expected: \\\"x\\\", found: y at Line: 1, Column: 2\")",
                "Expected: \"x\", found: y",
            ),
            ("Error during planning: Execution error: no", "no"),
            ("Schema error: No field named boom.\nValid fields are a, b.", "No field named boom"),
        ];
        for (text, expected) in cases {
            assert_eq!(message(&Error::invalid(text).with_hint("known columns: a")), expected);
        }
    }

    #[test]
    fn long_lines_are_shortened_around_the_place() {
        let error = Error::invalid("x").with_context("line", 1).with_context("column", 501);
        let source = Source { text: "y".repeat(1000), line: 1, ..Source::default() };
        let text = describe(&error, Some(&source), false, Language::En);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "error[Invalid] line 1:501: x");
        assert!(lines[1].starts_with("  …y") && lines[1].ends_with("y…"));
        assert_eq!(lines[2].find('^'), Some(2 + 1 + 40));
    }

    #[test]
    fn all_that_is_known_begins_as_the_error_did() {
        let error = Error::corrupt("bad").with_code("Torn").with_context("file", "a");
        assert_eq!(verbose(&error, Language::En), "error[Torn]: bad\n  kind: Corrupt\n  file: a\n");
    }

    #[test]
    fn facts_are_listed_and_cannot_move_the_cursor() {
        let error = Error::corrupt("bad").with_context("file", "a\x1b[2Jb");
        assert_eq!(describe(&error, None, false, Language::En), "error[Corrupt]: bad\n  file: a\\x1b[2Jb\n");
        // nor can the data that a message quotes
        let error = Error::invalid("cannot cast '\x1b[2J\u{9b}'\nto INT").with_hint("write \x07");
        let text = describe(&error, None, false, Language::En);
        assert_eq!(text, "error[Invalid]: cannot cast '\\x1b[2J\\x9b'\nto INT\nhint: write \\x07\n");
        assert!(!verbose(&error.with_source(Error::invalid("\x1b")), Language::En).contains('\x1b'));
    }
}
