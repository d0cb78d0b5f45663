//! What stands behind the name of a command, cut into words.

use super::usage;
use crate::error::{Error, Result};
use crate::shell::variables::{Variables, quoted};

/// A word, and whether it began with a quote: what is quoted is no number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// As [`words`] has it.
    pub text: String,
    /// Whether it began with a quote of any kind.
    pub quoted: bool,
}

/// Words of a line: quotes hold a word together and stay when they are double quotes or backticks (names), single
/// quotes go; a quote inside of its like is written twice. Variables are replaced outside of quotes, by their value as
/// it is: no quote or blank in it means anything.
///
/// # Errors
/// A quote that is not closed: what it should have held cannot be known.
pub fn words(line: &str, variables: &Variables) -> Result<Vec<String>> {
    Ok(marked_words(line, variables)?.into_iter().map(|word| word.text).collect())
}

/// The same, with what began with a quote marked.
///
/// # Errors
/// A quote that is not closed.
pub fn marked_words(line: &str, variables: &Variables) -> Result<Vec<Word>> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut open: Option<char> = None;
    let mut before = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        let after = rest.get(length..).unwrap_or_default();
        match open {
            Some(quote) => {
                let text = &mut word.get_or_insert_default().text;
                let doubled = c == quote && after.starts_with(quote);
                if doubled {
                    length += quote.len_utf8();
                } else if c == quote {
                    open = None;
                }
                match (quote, c == quote) {
                    ('\'', true) if !doubled => {}
                    // a name keeps its quotes, those inside too
                    ('"' | '`', true) if doubled => text.extend([c, c]),
                    _ => text.push(c),
                }
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => {
                let quote = |c: char| matches!(c, '\'' | '"' | '`');
                let begins_quoted = rest.strip_prefix(':').unwrap_or(rest).starts_with(quote);
                let Word { text, .. } = word.get_or_insert_with(|| Word { quoted: begins_quoted, ..Word::default() });
                match variable(rest, before, variables) {
                    Some((value, typed)) => {
                        text.push_str(&value);
                        length = typed;
                    }
                    None if quote(c) => {
                        open = Some(c);
                        if c != '\'' {
                            text.push(c);
                        }
                    }
                    None => text.push(c),
                }
            }
        }
        before = rest.get(..length).and_then(|done| done.chars().next_back());
        rest = rest.get(length..).unwrap_or_default();
    }
    words.extend(word);
    match open {
        None => Ok(words),
        Some(quote) => Err(open_quote(quote)),
    }
}

fn open_quote(quote: char) -> Error {
    let way_out = match quote {
        '\'' => "write 'O''Hara' for O'Hara".to_string(),
        quote => format!("inside of {quote} it is written twice"),
    };
    usage(format!("the quote {quote} is not closed")).with_hint(way_out)
}

/// The value of the variable that a text begins with, `:name`, `:'name'` or `:"name"`, and the bytes of that.
fn variable(text: &str, before: Option<char>, variables: &Variables) -> Option<(String, usize)> {
    // `::` is a cast
    let after = text.strip_prefix(':').filter(|_| before != Some(':'))?;
    let within = |quote: char| -> Option<(&String, usize)> {
        let (name, _) = after.strip_prefix(quote)?.split_once(quote)?;
        Some((variables.get(name)?, name.len() + 3))
    };
    if let Some((value, length)) = within('\'') {
        return Some((value.clone(), length));
    }
    if let Some((value, length)) = within('"') {
        return Some((quoted(value, '"'), length));
    }
    let of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '#' | '@');
    let name = after.get(..after.find(|c| !of_name(c)).unwrap_or(after.len()))?;
    let named = name.chars().next().is_some_and(|c| !c.is_numeric());
    let value = variables.get(name).filter(|_| named)?;
    Some((value.clone(), name.len() + 1))
}

/// A word without the quotes of a name.
pub fn unquoted(word: &str) -> String {
    for quote in ["\"", "`"] {
        if let Some(inner) = word.strip_prefix(quote).and_then(|w| w.strip_suffix(quote)) {
            return inner.replace(&quote.repeat(2), quote);
        }
    }
    word.to_string()
}

/// The file a word names: without the quotes of a name, `~` at its beginning being the user's folder.
pub fn file_name(word: &str) -> String {
    let name = unquoted(word);
    let rest = name.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match rest.zip(dirs::home_dir()) {
        Some((rest, home)) => format!("{}{rest}", home.display()),
        None => name,
    }
}

/// The rest of a line without the semicolon that habit puts behind a command. One that a program is given stays, and so
/// does one in quotes.
pub fn without_semicolon(rest: &str) -> &str {
    let rest = rest.trim();
    if rest.starts_with('|') { rest } else { rest.trim_end_matches(|c: char| c == ';' || c.is_whitespace()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(line: &str) -> Result<Vec<String>> {
        let pairs = [("n", "7"), ("who", "O'Hara"), ("two", "a  b"), ("none", "")];
        words(line, &pairs.map(|(name, value)| (name.to_string(), value.to_string())).into())
    }

    #[test]
    fn words_keep_quoted_names_and_strip_strings() {
        let cases: &[(&str, &[&str])] = &[
            ("\"a b\" 'c d' :n x'y z' ''", &["\"a b\"", "c d", "7", "xy z", ""]),
            ("'O''Hara' \"a\"\"b\" '''' `a``b`", &["O'Hara", "\"a\"\"b\"", "'", "`a``b`"]),
            ("  a\t b  ", &["a", "b"]),
            ("", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(cut(line).unwrap(), *expected, "{line}");
        }
        assert_eq!(unquoted("`a`"), "a");
        assert_eq!(unquoted("\"a\"\"b\""), "a\"b");
    }

    #[test]
    fn folder_of_the_user_stands_for_its_sign() {
        let home = dirs::home_dir().unwrap().display().to_string();
        for (word, expected) in [
            ("~/a b.csv", format!("{home}/a b.csv")),
            ("\"~\"", home.clone()),
            ("~other/x", "~other/x".to_string()),
            ("a~", "a~".to_string()),
        ] {
            assert_eq!(file_name(word), expected);
        }
    }

    #[test]
    fn variables_are_what_they_hold() {
        let cases: &[(&str, &[&str])] = &[
            (":who :'who' :\"who\" ':who'", &["O'Hara", "O'Hara", "\"O'Hara\"", ":who"]),
            (":two x:n :none", &["a  b", "x7", ""]),
            ("a::n :nope :'nope' : n 10:00:00", &["a::n", ":nope", ":nope", ":", "n", "10:00:00"]),
            ("--until :n", &["--until", "7"]),
        ];
        for (line, expected) in cases {
            assert_eq!(cut(line).unwrap(), *expected, "{line}");
        }
    }

    #[test]
    fn quote_that_is_not_closed_is_refused() {
        for (line, hint) in [
            ("name O'Hara", "write 'O''Hara' for O'Hara"),
            ("q a'b\"c", "write 'O''Hara' for O'Hara"),
            ("t \"a", "inside of \" it is written twice"),
        ] {
            assert_eq!(cut(line).unwrap_err().hint(), Some(hint), "{line}");
        }
    }

    #[test]
    fn semicolon_behind_a_command_is_no_part_of_it() {
        for (rest, expected) in [
            ("t 3;", "t 3"),
            (" t ; ", "t"),
            (";;", ""),
            ("x 'a;'", "x 'a;'"),
            ("|find . -exec ls {} \\;", "|find . -exec ls {} \\;"),
        ] {
            assert_eq!(without_semicolon(rest), expected);
        }
    }
}
