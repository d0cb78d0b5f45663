//! Colours of what is typed.

use std::fmt::Write as _;

use datafusion::sql::sqlparser::tokenizer::{Token, Whitespace};

use super::input::lexed;
use super::words::is_keyword;

/// The line with colour codes; its width does not change.
pub fn highlighted(line: &str) -> String {
    if line.trim_start().starts_with('\\') {
        let end = line
            .trim_start()
            .find(char::is_whitespace)
            .map_or(line.len(), |at| line.len() - line.trim_start().len() + at);
        let (command, rest) = line.split_at(end);
        return format!("\x1b[35m{command}\x1b[0m{rest}");
    }
    let mut out = String::with_capacity(line.len() * 2);
    let mut done = 0;
    for (token, range) in lexed(line) {
        let colour = match &token {
            Token::Word(word) if word.quote_style.is_none() && is_keyword(&word.value) => "1;34",
            Token::SingleQuotedString(_) | Token::NationalStringLiteral(_) | Token::EscapedStringLiteral(_) => "32",
            Token::DollarQuotedString(_) => "32",
            Token::Number(..) => "36",
            Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_)) => "2",
            _ => continue,
        };
        let (Some(before), Some(text)) = (line.get(done..range.start), line.get(range.clone())) else { continue };
        out.push_str(before);
        let _ = write!(out, "\x1b[{colour}m{text}\x1b[0m");
        done = range.end;
    }
    let rest = line.get(done..).unwrap_or_default();
    // an open string or comment is what the tokenizer stopped at
    match rest.trim_start().chars().next() {
        Some('\'') => drop(write!(out, "\x1b[32m{rest}\x1b[0m")),
        Some('/') if rest.trim_start().starts_with("/*") => drop(write!(out, "\x1b[2m{rest}\x1b[0m")),
        _ => out.push_str(rest),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_do_not_change_the_text() {
        for line in ["select 'a' from t -- x", "\\counts t", "select 'open", "select 订单 /* c", "", "  \\q"] {
            let mut plain = String::new();
            let shown = highlighted(line);
            let mut chars = shown.chars();
            while let Some(c) = chars.next() {
                if c == '\x1b' {
                    chars.by_ref().find(|c| *c == 'm');
                } else {
                    plain.push(c);
                }
            }
            assert_eq!(plain, line);
        }
        assert!(highlighted("select 1").starts_with("\x1b[1;34mselect\x1b[0m"));
    }
}
