//! Secrets of a text that is no SQL: URLs, `name=value`, headers, and what looks like a key itself.

use std::ops::Range;

use super::{HIDDEN, speaks_of_secrets};

/// `?token=…&X-Amz-Signature=…` lose their values.
pub(super) fn without_url_values(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let ends = |c: char| c.is_whitespace() || matches!(c, '&' | '\'' | '"' | ';' | ')' | ',');
    let mut rest = text;
    while let Some(at) = rest.find(['?', '&']) {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        let end = after.find(ends).unwrap_or(after.len());
        let (pair, tail) = after.split_at(end);
        match pair.split_once('=') {
            Some((name, value)) if !value.is_empty() && speaks_of_secrets(name) => {
                out.extend([name, "=", HIDDEN]);
            }
            _ => out.push_str(pair),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Secrets inside a text: `token=…`, `{"password": "…"}`, `Authorization: Bearer …`, `AKIA…`; `marks` are those that may
/// stand between a name and its value.
pub(super) fn secrets(text: &str, marks: &[char]) -> Vec<Range<usize>> {
    let mut hide = Vec::new();
    for (at, mark) in text.char_indices().filter(|(_, c)| marks.contains(c)) {
        let behind = at + mark.len_utf8();
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(behind..).unwrap_or_default());
        if !speaks_of_secrets(name_before(before)) || (mark == ':' && after.starts_with("//")) {
            continue;
        }
        let blanks = after.len() - after.trim_start().len();
        let value = value(after.get(blanks..).unwrap_or_default(), mark);
        let start = behind + blanks;
        hide.push(start + value.start..start + value.end);
    }
    let (mut bearer, mut place) = (false, 0);
    for piece in text.split_inclusive(char::is_whitespace) {
        let (start, said) = (place, piece.trim_end());
        place += piece.len();
        if said.is_empty() {
            continue;
        }
        let bare = said.trim_matches(|c: char| !c.is_alphanumeric());
        if std::mem::replace(&mut bearer, bare.eq_ignore_ascii_case("bearer")) || is_key(bare) {
            let begins = said.find(bare).unwrap_or_default();
            hide.push(start + begins..start + begins + bare.len());
        }
    }
    hide.retain(|range| !range.is_empty());
    hide
}

/// The name in front of a mark, quotes and blanks between them left out.
fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '\\' | '"' | '\'' | '`'));
    let of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let start = text.char_indices().rev().take_while(|(_, c)| of_name(*c)).last().map_or(text.len(), |(at, _)| at);
    text.get(start..).unwrap_or_default()
}

/// The value at the start of a text: up to the quotes that open it, to the end of a header, or to where a pair ends.
fn value(text: &str, mark: char) -> Range<usize> {
    let quotes = |c: char| matches!(c, '"' | '\'' | '`');
    // quotes in quotes are escaped or doubled: what opens a value closes it
    let escapes = text.len() - text.trim_start_matches('\\').len();
    let opening = text.get(escapes..).and_then(|rest| rest.chars().next()).filter(|c| quotes(*c));
    if let Some(quote) = opening {
        let run = text.get(escapes..).unwrap_or_default();
        let start = escapes + (run.len() - run.trim_start_matches(quote).len());
        let (open, inner) = text.split_at(start);
        let mut from = 0;
        while let Some(found) = inner.get(from..).and_then(|rest| rest.find(open)) {
            let at = from + found;
            if escapes > 0 || !inner.get(..at).unwrap_or_default().ends_with('\\') {
                return start..start + at;
            }
            from = at + open.len();
        }
        return start..text.trim_end_matches(quotes).len().max(start);
    }
    let is_pair = matches!(mark, '=' | '＝');
    let ends = |c: char| c == '\n' || (is_pair && (c.is_whitespace() || matches!(c, '&' | ';')));
    let value = text.get(..text.find(ends).unwrap_or(text.len())).unwrap_or_default();
    // a comparison is no pair
    let compares = mark == '=' && (value.starts_with('=') || value.starts_with('>'));
    0..if compares { 0 } else { value.trim_end_matches(quotes).len() }
}

/// How keys begin that say what they are.
const KEYS: &[&str] = &[
    "AKIA",
    "ASIA",
    "AIza",
    "LTAI",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "hf_",
    "npm_",
    "pypi-",
    "glsa_",
];

/// An access key of AWS, a token of JSON, and the like.
fn is_key(word: &str) -> bool {
    let of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let begins = |heads: &[&str]| heads.iter().any(|head| word.starts_with(head));
    word.chars().all(of_key)
        && (word.len() >= 20 && begins(KEYS) || word.starts_with("eyJ") && word.matches('.').count() == 2)
}

/// Words between blanks; quotes, of either kind, hold blanks together.
pub(super) fn words(line: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut start = None;
    let mut open = None;
    for (at, c) in line.char_indices() {
        if c.is_whitespace() && open.is_none() {
            words.extend(start.take().map(|start| start..at));
            continue;
        }
        start.get_or_insert(at);
        match open {
            Some(quote) if quote == c => open = None,
            // an apostrophe that nothing closes holds nothing together
            None if matches!(c, '\'' | '"') && line.get(at + 1..).is_some_and(|rest| rest.contains(c)) => {
                open = Some(c)
            }
            _ => {}
        }
    }
    words.extend(start.map(|start| start..line.len()));
    words
}
