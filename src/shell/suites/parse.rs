//! Files to records. sqllogictest ends the program at a file it cannot read, so every file is read here before it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sqllogictest::{ExpectedError, QueryExpect, Record, StatementExpect, parse_file, parse_with_name};

use super::Letter;
use crate::error::{Error, Result};

/// The records of a file and of those it includes.
pub(super) fn records(path: &Path) -> Result<Vec<Record<Letter>>> {
    check(path, &mut Vec::new())?;
    parse_file::<Letter>(path).map_err(|e| Error::invalid(e.to_string()).with_code("Syntax"))
}

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(|e| {
        Error::not_found(format!("cannot read the file: {e}"))
            .with_code("FileNotFound")
            .with_context("file", path.display())
    })?;
    if bytes.starts_with("\u{feff}".as_bytes()) {
        return Err(Error::invalid("the file begins with a byte order mark")
            .with_code("Usage")
            .with_context("file", path.display())
            .with_hint("save it as UTF-8 without one"));
    }
    let named = path.to_str().is_some();
    match String::from_utf8(bytes) {
        Ok(text) if named => Ok(text),
        Ok(_) => Err(Error::invalid("the name of the file is not UTF-8")
            .with_code("Usage")
            .with_context("file", path.display())),
        Err(e) => {
            let before = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            Err(Error::invalid("the text is not UTF-8")
                .with_code("Usage")
                .with_context("file", path.display())
                .with_context("line", line))
        }
    }
}

/// Reads a file and what it includes; `around` are the files that include it.
fn check(path: &Path, around: &mut Vec<PathBuf>) -> Result<()> {
    if around.iter().any(|file| file == path) {
        return Err(Error::invalid("the file includes itself").with_code("Usage").with_context("file", path.display()));
    }
    let text = text(path)?;
    check_all_run(path, &text)?;
    around.push(path.to_path_buf());
    for line in text.lines() {
        // a line of SQL may look so too, but names no file
        let mut words = line.split_whitespace();
        let (Some("include"), Some(pattern), None) = (words.next(), words.next(), words.next()) else { continue };
        let pattern = path.with_file_name(pattern);
        let found = pattern.to_str().map(glob::glob);
        for file in found.into_iter().flatten().flatten().flatten() {
            check(&file, around)?;
        }
    }
    around.pop();
    Ok(())
}

/// Refuses a file in which a record lies within another: it would never run, and completing the other would end it.
fn check_all_run(path: &Path, text: &str) -> Result<()> {
    // what cannot be parsed is told by who parses it
    let Ok(records) = parse_with_name::<Letter>(text, path.to_string_lossy()) else { return Ok(()) };
    let starts: BTreeSet<usize> = records.iter().filter_map(line_of).collect();
    let lost = |line: usize| {
        let within = starts.range(..line).next_back().copied().unwrap_or_default();
        Error::invalid(format!("this line never runs: it belongs to the record that begins in line {within}"))
            .with_code("Syntax")
            .with_context("file", path.display())
            .with_context("line", line)
            .with_hint(
                "an empty line ends a record, without blanks in it; two of them end the text of an error or of a \
                 command under ----",
            )
    };
    let mut fresh = true;
    for (number, line) in (1..).zip(text.lines()) {
        if fresh && begins_record(line) && !starts.contains(&number) {
            return Err(lost(number));
        }
        let goes_on =
            line.starts_with('#') || matches!(line.split_whitespace().next(), Some("onlyif" | "skipif" | "connection"));
        fresh = line.trim().is_empty() || (fresh && goes_on);
    }
    // an error is one line
    for record in &records {
        let (Some(start), true) = (line_of(record), expects_paragraphs(record)) else { continue };
        let after = text.lines().enumerate().skip(start).skip_while(|(_, line)| !line.trim().is_empty());
        let mut behind = after.skip_while(|(_, line)| line.trim().is_empty());
        return Err(lost(behind.next().map_or(start, |(at, _)| at + 1)));
    }
    Ok(())
}

/// Where a record begins, for those that tell it.
fn line_of(record: &Record<Letter>) -> Option<usize> {
    let loc = match record {
        Record::Include { loc, .. }
        | Record::Statement { loc, .. }
        | Record::Query { loc, .. }
        | Record::System { loc, .. }
        | Record::Sleep { loc, .. }
        | Record::Subtest { loc, .. }
        | Record::Halt { loc }
        | Record::HashThreshold { loc, .. }
        | Record::Let { loc, .. } => loc,
        _ => return None,
    };
    usize::try_from(loc.line()).ok()
}

/// Whether the error that is expected has an empty line in it.
fn expects_paragraphs(record: &Record<Letter>) -> bool {
    match record {
        Record::Statement { expected: StatementExpect::Error(ExpectedError::Multiline(text)), .. }
        | Record::Query { expected: QueryExpect::Error(ExpectedError::Multiline(text)), .. } => {
            text.trim().lines().any(|line| line.trim().is_empty())
        }
        _ => false,
    }
}

/// Whether a line by itself would begin a record that does something.
pub(super) fn begins_record(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let letters = |word: &str| word.chars().all(|letter| letter.is_ascii_uppercase() || letter == '?');
    match words.as_slice() {
        ["statement", "ok" | "error" | "count", ..] | ["query", "error", ..] | ["system", "ok", ..] | ["halt"] => true,
        ["query", types, ..] => letters(types),
        ["include" | "sleep" | "hash-threshold" | "subtest", _] => true,
        _ => false,
    }
}
