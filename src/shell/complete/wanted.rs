//! What a place in a statement asks for, by the words before it.

use datafusion::sql::sqlparser::tokenizer::Token;

use crate::shell::input::lexed;

/// What a place in a statement asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A table or a table function.
    Relation,
    /// A database.
    Database,
    /// An id or a tag of the table before.
    Version,
    /// A tag of the table before.
    Tag,
    /// A time.
    Time,
    /// What `UNPIN` ends.
    Unpin,
    /// A table that is pinned.
    Pinned,
    /// One of these, in the case of the word before them.
    Words(&'static [&'static str], bool),
    /// A setting.
    Setting,
    /// A scan option.
    ScanOption,
    /// A column, a word or a function.
    Anything,
}

/// What `AT (…)` chooses by.
const SELECTORS: &[&str] = &["VERSION", "TAG", "TIMESTAMP", "WATERMARK", "COMMIT"];
/// What follows `FOR` behind a table.
const CLAUSES: &[&str] = &["SYSTEM_TIME", "SYSTEM_VERSION", "VERSION"];

/// Whether the last token stands behind `FROM t` or `JOIN t`, the name in several parts or not.
fn follows_relation(tokens: &[Token]) -> bool {
    let mut before = tokens.iter().rev().skip(1);
    loop {
        if !matches!(before.next(), Some(Token::Word(_))) {
            return false;
        }
        match before.next() {
            Some(Token::Period) => {}
            Some(Token::Comma) => return true,
            Some(Token::Word(word)) if word.quote_style.is_none() => {
                return ["FROM", "JOIN", "TABLE"].iter().any(|known| word.value.eq_ignore_ascii_case(known));
            }
            _ => return false,
        }
    }
}

/// The meaning of a place by the words before it.
pub(super) fn wanted(context: &str) -> Wanted {
    let lexed = lexed(context);
    // a hint is a comment, and this one is still open
    let read = lexed.last().map_or(0, |(_, range)| range.end);
    if context.get(read..).is_some_and(|rest| rest.trim_start().starts_with("/*+")) {
        return Wanted::ScanOption;
    }
    let tokens: Vec<Token> = lexed.into_iter().map(|(t, _)| t).filter(|t| !matches!(t, Token::Whitespace(_))).collect();
    let upper = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
        Token::RArrow => "=>".to_string(),
        Token::LParen => "(".to_string(),
        Token::Comma => ",".to_string(),
        _ => String::new(),
    };
    let words: Vec<String> = tokens.iter().rev().take(6).map(upper).collect();
    let at = |i: usize| words.get(i).map(String::as_str).unwrap_or_default();
    let lower = |i: usize| match tokens.iter().rev().nth(i) {
        Some(Token::Word(word)) => word.value.chars().any(char::is_lowercase),
        _ => true,
    };
    match (at(0), at(1), at(2)) {
        ("OF", "AS", "VERSION" | "SYSTEM_VERSION") => Wanted::Version,
        ("OF", "AS", "TIMESTAMP" | "SYSTEM_TIME") => Wanted::Time,
        ("=>", "VERSION", "(") => Wanted::Version,
        ("=>", "TAG", "(") => Wanted::Tag,
        ("(", "AT", _) => Wanted::Words(SELECTORS, lower(1)),
        ("(", "WITH", _) => Wanted::ScanOption,
        ("(", "BEFORE", _) => Wanted::Words(&["COMMIT"], lower(1)),
        // `substring(x FOR 3)` stands in parentheses
        ("FOR", ..) if follows_relation(&tokens) => Wanted::Words(CLAUSES, lower(0)),
        ("TABLE", "UNPIN", _) => Wanted::Pinned,
        ("UNPIN", ..) => Wanted::Unpin,
        ("SET" | "RESET", ..) => Wanted::Setting,
        ("USE", ..) | ("IN" | "FROM", "TABLES", _) => Wanted::Database,
        ("FROM" | "JOIN" | "TABLE" | "DESCRIBE" | "INTO", ..) => Wanted::Relation,
        ("PARTITIONS", "SHOW", _) => Wanted::Relation,
        _ => Wanted::Anything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_tells_what_is_wanted() {
        let cases = [
            ("select * from ", Wanted::Relation),
            ("select * from a join ", Wanted::Relation),
            ("describe ", Wanted::Relation),
            ("pin table ", Wanted::Relation),
            ("use ", Wanted::Database),
            ("select * from t with (", Wanted::ScanOption),
            ("show tables in ", Wanted::Database),
            ("select * from pay.t version as of ", Wanted::Version),
            ("select * from pay.t for system_time as of ", Wanted::Time),
            ("select * from t at (tag => ", Wanted::Tag),
            ("unpin ", Wanted::Unpin),
            ("unpin table ", Wanted::Pinned),
            ("select * from t at (", Wanted::Words(SELECTORS, true)),
            ("SELECT * FROM t AT (", Wanted::Words(SELECTORS, false)),
            ("select * from t before (", Wanted::Words(&["COMMIT"], true)),
            ("select * from pay.t for ", Wanted::Words(CLAUSES, true)),
            ("select substring(a for ", Wanted::Anything),
            ("set ", Wanted::Setting),
            ("select * from t /*+ options(", Wanted::ScanOption),
            ("select * from t /*+ options('scan.tag-name'='x') */ where ", Wanted::Anything),
            ("select * from t where ", Wanted::Anything),
            ("select ", Wanted::Anything),
        ];
        for (context, expected) in cases {
            assert_eq!(wanted(context), expected, "{context}");
        }
    }
}
