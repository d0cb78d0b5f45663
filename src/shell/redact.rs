//! Secrets leave a text before it is kept: passwords in URLs, values of names that speak of secrets.

use std::ops::Range;

use datafusion::sql::sqlparser::tokenizer::{Token, Whitespace};

use super::commands;
use super::input::lexed;
use crate::error::without_url_passwords;
use text::{secrets, without_url_values, words};

mod text;

/// Parts of names whose values are secrets, as they are without the marks between words. Rather one too many: a value that
/// is not kept is typed again, a secret that is kept is there for whoever reads the file.
const SECRET: &[&str] = &[
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "key",
    "credential",
    "signature",
    "authoriz",
    "cookie",
    "bearer",
    "密码",
    "口令",
    "密钥",
    "令牌",
    "凭证",
    "凭据",
];
/// Words of names that say the same, too short to be looked for inside of others.
const SECRET_WORDS: &[&str] = &["pass", "pwd", "pw", "sig", "sas", "auth"];
/// What stands between a name and its value in a text.
const MARKS: &[char] = &['=', ':', '＝', '：'];
const HIDDEN: &str = "***";

fn speaks_of_secrets(name: &str) -> bool {
    let bare: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    SECRET.iter().any(|word| bare.contains(word))
        || bare.ends_with("pwd")
        || words.any(|word| SECRET_WORDS.iter().any(|secret| word.eq_ignore_ascii_case(secret)))
}

/// The text, as it was typed, without secrets.
pub fn redacted(text: &str) -> String {
    let mut out = without_url_values(&without_url_passwords(text));
    let mut hide = Vec::new();
    // the SQL, once its commands are blanks
    let mut sql = out.clone();
    while let Some(command) = next_command(&sql) {
        hide.extend(command_values(&out, command.clone()));
        sql.replace_range(command.clone(), &" ".repeat(command.len()));
    }
    hide.extend(sql_values(&sql, 0));
    for range in merged(hide).into_iter().rev() {
        let quoted = out.get(range.clone()).is_some_and(|value| value.starts_with('\''));
        out.replace_range(range, if quoted { "'***'" } else { HIDDEN });
    }
    out
}

/// The ranges in order, those that overlap as one.
fn merged(mut hide: Vec<Range<usize>>) -> Vec<Range<usize>> {
    hide.retain(|range| !range.is_empty());
    hide.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in hide {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The first command of a text, from its mark to the end of its line.
fn next_command(text: &str) -> Option<Range<usize>> {
    let mut line_begins = true;
    let mut dot = None;
    for (token, range) in lexed(text) {
        let start = match (&token, dot.take()) {
            (Token::Backslash, _) => range.start,
            // a dot is part of a name, unless a line begins with it and what follows is a command
            (Token::Word(word), Some(dot)) if commands::find(&word.value).is_some() => dot,
            (token, _) => {
                dot = (line_begins && *token == Token::Period).then_some(range.start);
                line_begins = match token {
                    Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. }) => true,
                    Token::Whitespace(Whitespace::Space | Whitespace::Tab) => line_begins,
                    _ => false,
                };
                continue;
            }
        };
        let rest = text.get(start..).unwrap_or_default();
        return Some(start..start + rest.find('\n').unwrap_or(rest.len()));
    }
    None
}

/// `\set` and `\param` with their aliases.
fn takes_values(command: &str) -> bool {
    commands::find(command).is_some_and(|command| ["set", "param"].iter().any(|name| command.names.contains(name)))
}

/// Secrets of a command: `\set password x`, `\param token x`, `\o |curl -u ann:x token=y`, and those of SQL in it.
fn command_values(text: &str, command: Range<usize>) -> Vec<Range<usize>> {
    let line = text.get(command.clone()).unwrap_or_default();
    let of = |range: &Range<usize>| line.get(range.clone()).unwrap_or_default();
    let mut hide = Vec::new();
    let words = words(line);
    let verb = words.first().map(|verb| of(verb).trim_start_matches(['\\', '.'])).unwrap_or_default();
    if takes_values(verb)
        && let Some(name) = words.get(1)
    {
        let end = of(name).find('=').map_or(name.end, |at| name.start + at);
        if speaks_of_secrets(line.get(name.start..end).unwrap_or_default()) {
            let value = line.get(end..).unwrap_or_default();
            let marks = value.len() - value.trim_start_matches(|c: char| c == '=' || c.is_whitespace()).len();
            hide.push(end + marks..end + value.trim_end().len().max(marks));
        }
    }
    let arguments = line.get(words.first().map_or(0, |verb| verb.end)..).unwrap_or_default();
    // a text is no SQL, and may speak of secrets as people do
    if commands::find(verb).is_some_and(|command| command.names.contains(&"echo")) {
        let place = line.len() - arguments.len();
        let inner = secrets(arguments, MARKS).into_iter();
        hide.extend(inner.map(|range| place + range.start..place + range.end));
    }
    let is_program = arguments.trim_start().starts_with('|');
    if is_program {
        hide.extend(flag_values(line, &words));
    }
    for (word, next) in with_next(&words) {
        let said = of(word);
        let bare = said.trim_end_matches(':');
        match said.split_once('=') {
            Some((name, value)) if said.starts_with('-') && is_secret_flag(name) => {
                hide.push(word.end - value.len()..word.end);
            }
            None if said.starts_with('-') && is_secret_flag(said) => hide.extend(next.cloned()),
            // a header that no quotes hold together
            None if is_program && bare.len() < said.len() && speaks_of_secrets(bare) => hide.push(word.end..line.len()),
            None if said.eq_ignore_ascii_case("bearer") => hide.extend(next.cloned()),
            // `aws configure set aws_secret_access_key x`
            None if is_program && said.contains('_') && speaks_of_secrets(said) => hide.extend(next.cloned()),
            _ => {
                // `commit job:118` names a commit
                let marks: &[char] = if is_program || said.contains(['\'', '"']) { MARKS } else { &['=', '＝'] };
                let inner = secrets(said, marks).into_iter();
                hide.extend(inner.map(|range| word.start + range.start..word.start + range.end));
            }
        }
    }
    let mut hide: Vec<_> =
        hide.into_iter().map(|range| command.start + range.start..command.start + range.end).collect();
    let rest = command.start + line.find(char::is_whitespace).unwrap_or(line.len());
    hide.extend(sql_values(text.get(rest..command.end).unwrap_or_default(), rest));
    hide
}

/// `--password`, `-passin`: a flag of a program is rarely about anything else.
fn is_secret_flag(name: &str) -> bool {
    speaks_of_secrets(name) || name.to_ascii_lowercase().contains("pass")
}

/// Words, each with the one behind it.
fn with_next(words: &[Range<usize>]) -> impl Iterator<Item = (&Range<usize>, Option<&Range<usize>>)> {
    words.iter().enumerate().map(|(at, word)| (word, words.get(at + 1)))
}

/// What programs take as a login: `-u ann:x`, `--user=ann:x`, `-px`, `-p x`.
fn flag_values(line: &str, words: &[Range<usize>]) -> Vec<Range<usize>> {
    const LOGINS: &[&str] = &["-u", "-U", "-a", "--user", "--proxy-user"];
    let mut hide = Vec::new();
    let of = |range: &Range<usize>| line.get(range.clone()).unwrap_or_default();
    let names = |known: &[&str]| {
        words.iter().any(|word| known.iter().any(|known| of(word).trim_start_matches('|').ends_with(known)))
    };
    let mysql = names(&["mysql", "mariadb", "mysqldump", "mysqladmin"]);
    let curl = words.iter().any(|word| of(word).trim_start_matches('|').ends_with("curl"));
    let redis = words.iter().any(|word| of(word).trim_start_matches('|').ends_with("redis-cli"));
    for (word, next) in with_next(words) {
        let said = of(word);
        // glued to the flag, behind a `=`, or the next word
        let value_of = |flags: &[&str]| -> Option<Range<usize>> {
            let flag = flags.iter().find(|flag| said.starts_with(**flag))?;
            match said.get(flag.len()..).unwrap_or_default() {
                "" => next.filter(|next| !of(next).starts_with('-')).cloned(),
                glued if glued.starts_with('=') => Some(word.start + flag.len() + 1..word.end),
                _ if flag.starts_with("--") => None,
                _ => Some(word.start + flag.len()..word.end),
            }
        };
        if let Some(login) = value_of(LOGINS) {
            let password = of(&login).find(':').map(|at| login.start + at + 1..login.end);
            hide.extend(if redis && said.starts_with("-a") { Some(login) } else { password });
        }
        if curl && said == "-b" {
            hide.extend(next.cloned());
        }
        // a port is no password; one that MySQL takes is glued to its flag
        let glued = mysql && said.starts_with("-p") && said.len() > 2;
        let password = value_of(&["-p"]).filter(|value| glued || of(value).parse::<u16>().is_err());
        hide.extend(password.filter(|_| !is_secret_flag(said)));
    }
    hide
}

/// Where the secrets of SQL stand: what `SET` gives a secret name, `'s3.secret-key' = …`, `password => …`, `token '…'`;
/// in comments too, where hints stand. `offset` is where the text begins.
fn sql_values(text: &str, offset: usize) -> Vec<Range<usize>> {
    let mut hide = Vec::new();
    let mut tokens: Tokens = Vec::new();
    let mut end = 0;
    for (token, range) in lexed(text) {
        end = range.end;
        let inside = match &token {
            Token::Whitespace(Whitespace::MultiLineComment(comment)) => {
                range.start + 2..range.start + 2 + comment.len()
            }
            Token::Whitespace(Whitespace::SingleLineComment { prefix, .. }) => range.start + prefix.len()..range.end,
            Token::Whitespace(_) => continue,
            _ => {
                tokens.push((token, range));
                continue;
            }
        };
        let said = text.get(inside.clone()).unwrap_or_default();
        hide.extend(secrets(said, MARKS).into_iter().map(|range| inside.start + range.start..inside.start + range.end));
        hide.extend(sql_values(said, inside.start));
    }
    // a string that is not closed is a token too
    if text.get(end..).is_some_and(|rest| !rest.trim().is_empty()) {
        tokens.push((Token::EOF, end..text.trim_end().len()));
    }
    // no mark stands inside of a token but of a string or a quoted name
    for (_, range) in tokens.iter().filter(|(_, range)| range.len() > 2) {
        let said = text.get(range.clone()).unwrap_or_default();
        hide.extend(secrets(said, MARKS).into_iter().map(|inner| range.start + inner.start..range.start + inner.end));
    }
    for statement in tokens.split(|(token, _)| *token == Token::SemiColon) {
        hide.extend(set_value(statement));
        hide.extend(pair_value(statement));
        hide.extend((0..statement.len()).filter_map(|at| named_value(statement, at)));
        hide.extend((1..statement.len()).filter_map(|at| value(statement, at)));
        hide.extend((0..statement.len()).filter_map(|at| value_before(statement, at)));
    }
    hide.into_iter().map(|range| range.start + offset..range.end + offset).collect()
}

type Tokens = Vec<(Token, Range<usize>)>;

fn is_to(token: &Token) -> bool {
    is_word(token, &["to"])
}

fn is_word(token: &Token, words: &[&str]) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none()
        && words.iter().any(|known| word.value.eq_ignore_ascii_case(known)))
}

fn compares(token: &Token) -> bool {
    use Token::{DoubleEq, Eq, Gt, GtEq, Lt, LtEq, Neq};
    matches!(token, Eq | DoubleEq | Neq | Lt | LtEq | Gt | GtEq) || is_word(token, &["like", "ilike", "in", "not"])
}

/// What stands between a name and its value.
fn is_between(token: &Token) -> bool {
    matches!(token, Token::RArrow | Token::Colon) || is_to(token) || compares(token)
}

/// The value of `SET name = value`: all that stands there.
fn set_value(statement: &[(Token, Range<usize>)]) -> Option<Range<usize>> {
    let ((Token::Word(set), _), said) = statement.split_first()? else { return None };
    if !set.value.eq_ignore_ascii_case("set") {
        return None;
    }
    let (name, value) = match said.iter().position(|(token, _)| is_between(token)) {
        Some(mark) => (said.get(..mark)?, said.get(mark + 1..)?),
        // the name ends where the first blank is
        None => {
            let glued = |pair: &[(Token, Range<usize>)]| matches!(pair, [(_, a), (_, b)] if a.end == b.start);
            said.split_at_checked(1 + said.windows(2).take_while(|pair| glued(pair)).count())?
        }
    };
    let name: String = name.iter().map(|(token, _)| token.to_string()).collect();
    let (first, last) = (value.first()?, value.last()?);
    speaks_of_secrets(&name).then_some(first.1.start..last.1.end)
}

/// The value of a statement that is none: `password = x`, `密码：x`.
fn pair_value(statement: &[(Token, Range<usize>)]) -> Option<Range<usize>> {
    let mark =
        statement.iter().position(|(token, _)| matches!(token, Token::Eq | Token::Colon | Token::Char('＝' | '：')))?;
    let (name, value) = (statement.get(..mark)?, statement.get(mark + 1..)?);
    let plain = name.iter().all(|(token, _)| matches!(token, Token::Word(_) | Token::Period | Token::Minus));
    let joined = plain && name.windows(2).all(|pair| matches!(pair, [(_, a), (_, b)] if a.end == b.start));
    let name: String = name.iter().map(|(token, _)| token.to_string()).collect();
    let (first, last) = (value.first()?, value.last()?);
    (joined && speaks_of_secrets(&name)).then_some(first.1.start..last.1.end)
}

/// A string whose column is called by a name that speaks of secrets: `'x' AS password`, `'x' password`.
fn named_value(tokens: &[(Token, Range<usize>)], at: usize) -> Option<Range<usize>> {
    let [(Token::SingleQuotedString(_), place), rest @ ..] = tokens.get(at..)? else { return None };
    let name = match rest {
        [(word, _), (name, _), ..] if is_word(word, &["as"]) => name,
        [(name, _), ..] => name,
        [] => return None,
    };
    matches!(name, Token::Word(word) if speaks_of_secrets(&word.value)).then(|| place.clone())
}

/// The value that begins at a place, if the name before it speaks of secrets.
fn value(tokens: &[(Token, Range<usize>)], at: usize) -> Option<Range<usize>> {
    let (before, rest) = tokens.split_at_checked(at)?;
    let (first, place) = rest.first()?;
    let mut marks = before.iter().rev().take_while(|(token, _)| is_between(token)).map(|(token, _)| token);
    let between = marks.next().cloned();
    let named = before.get(..before.len() - usize::from(between.is_some()) - marks.count())?;
    // names such as s3.secret-key are several tokens when they are not quoted, with nothing between them
    let mut begins = None;
    let part = |(token, range): &&(Token, Range<usize>)| {
        let joined = begins.is_none_or(|begins| begins == range.end);
        begins = Some(range.start);
        joined && matches!(token, Token::Word(_) | Token::Period | Token::Minus | Token::SingleQuotedString(_))
    };
    let name: Vec<&Token> = named.iter().rev().take_while(part).map(|(token, _)| token).collect();
    let quoted = match name.first()? {
        Token::SingleQuotedString(name) => speaks_of_secrets(name),
        _ => false,
    };
    let spelled: String = name
        .iter()
        .rev()
        .map(|token| match token {
            Token::Word(word) => word.value.clone(),
            Token::SingleQuotedString(_) => String::new(),
            other => other.to_string(),
        })
        .collect();
    if !quoted && (matches!(name.first(), Some(Token::SingleQuotedString(_))) || !speaks_of_secrets(&spelled)) {
        return None;
    }
    if between.as_ref().is_some_and(|word| is_word(word, &["in"])) && *first == Token::LParen {
        let inside = rest.iter().find(|(token, _)| *token == Token::RParen).map_or(place.end, |(_, end)| end.start);
        let of_literals = !rest.get(1).is_some_and(|(token, _)| is_word(token, &["select", "with", "values"]));
        return of_literals.then_some(place.end..inside);
    }
    // the name of a parameter is none of its value
    let literal = !matches!(
        first,
        Token::Word(_) | Token::LParen | Token::RParen | Token::Comma | Token::Period | Token::Placeholder(_)
    );
    let holds = match between {
        // an argument or an option: whatever it is
        Some(Token::RArrow) => true,
        Some(ref mark) if quoted || is_to(mark) => true,
        // a condition may compare two columns
        Some(_) => literal,
        None => matches!(first, Token::SingleQuotedString(_) | Token::EOF) && !is_between(first),
    };
    if !holds || is_between(first) {
        return None;
    }
    // up to where a blank or a mark ends it
    let mut end = place.end;
    for (token, range) in rest.get(1..)? {
        if range.start != end || matches!(token, Token::Comma | Token::RParen | Token::RBracket | Token::RBrace) {
            break;
        }
        end = range.end;
    }
    Some(place.start..end)
}

/// A string in front of the name it is compared with.
fn value_before(tokens: &[(Token, Range<usize>)], at: usize) -> Option<Range<usize>> {
    let [(Token::SingleQuotedString(_), place), (mark, _), (Token::Word(_), _), ..] = tokens.get(at..)? else {
        return None;
    };
    let mut end = None;
    let named = tokens.get(at + 2..)?.iter().take_while(|(token, range)| {
        let joined = end.is_none_or(|end| end == range.start);
        end = Some(range.end);
        joined && matches!(token, Token::Word(_) | Token::Period)
    });
    let name: String = named.map(|(token, _)| token.to_string()).collect();
    (compares(mark) && speaks_of_secrets(&name)).then(|| place.clone())
}

#[cfg(test)]
mod tests;
