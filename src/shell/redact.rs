//! Secrets leave a text before it is kept: passwords in URLs, values of names that speak of secrets.

use std::ops::Range;

use datafusion::sql::sqlparser::tokenizer::{Token, Whitespace};

use super::commands;
use super::input::lexed;

/// Parts of names whose values are secrets, as they are without the marks between words.
const SECRET: &[&str] = &[
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "accesskey",
    "apikey",
    "credential",
    "privatekey",
    "accountkey",
    "signature",
    "encryptionkey",
];
const HIDDEN: &str = "***";

fn speaks_of_secrets(name: &str) -> bool {
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SECRET.iter().any(|word| name.contains(word)) || name.ends_with("pwd")
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
    hide.sort_by_key(|range: &Range<usize>| (range.start, std::cmp::Reverse(range.end)));
    let mut until = 0;
    hide.retain(|range| {
        let apart = range.start >= until && !range.is_empty();
        until = until.max(range.end);
        apart
    });
    for range in hide.into_iter().rev() {
        let quoted = out.get(range.clone()).is_some_and(|value| value.starts_with('\''));
        out.replace_range(range, if quoted { "'***'" } else { HIDDEN });
    }
    out
}

/// The first command of a text, from its mark to the end of its line.
fn next_command(text: &str) -> Option<Range<usize>> {
    let mut line_begins = true;
    let mut dot = None;
    for (token, range) in lexed(text) {
        let start = match (&token, dot.take()) {
            (Token::Backslash, _) => range.start,
            // a dot is part of a name, unless a line begins with it and what follows is a command that takes secrets
            (Token::Word(word), Some(dot)) if takes_values(&word.value) => dot,
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

/// Secrets of a command: `\set password x`, `\param token x`, `\o |curl --password x token=y`, and those of SQL in it.
fn command_values(text: &str, command: Range<usize>) -> Vec<Range<usize>> {
    let line = text.get(command.clone()).unwrap_or_default();
    let mut words = words(line).into_iter().map(|word| command.start + word.start..command.start + word.end);
    let of = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
    let mut hide = Vec::new();
    let verb = words.next().map(|verb| of(&verb).trim_start_matches(['\\', '.']).to_string()).unwrap_or_default();
    if takes_values(&verb)
        && let Some(name) = words.clone().next()
    {
        let end = of(&name).find('=').map_or(name.end, |at| name.start + at);
        if speaks_of_secrets(text.get(name.start..end).unwrap_or_default()) {
            let value = text.get(end..command.end).unwrap_or_default();
            let marks = value.len() - value.trim_start_matches(|c: char| c == '=' || c.is_whitespace()).len();
            hide.push(end + marks..end + value.trim_end().len().max(marks));
        }
    }
    while let Some(word) = words.next() {
        let text = of(&word);
        match text.split_once('=') {
            Some((name, value)) if speaks_of_secrets(name) => hide.push(word.end - value.len()..word.end),
            None if text.starts_with('-') && speaks_of_secrets(text) => hide.extend(words.next()),
            _ => {}
        }
    }
    let rest = command.start + line.find(char::is_whitespace).unwrap_or(line.len());
    hide.extend(sql_values(text.get(rest..command.end).unwrap_or_default(), rest));
    hide
}

/// Words between blanks.
fn words(line: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut words = Vec::new();
    for word in line.split_inclusive(char::is_whitespace) {
        let length = word.trim_end().len();
        if length > 0 {
            words.push(at..at + length);
        }
        at += word.len();
    }
    words
}

/// `scheme://user:password@host` loses its password, whatever it holds: it ends at the last `@`.
fn without_url_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '\'' | '"')).unwrap_or(after.len());
        let (url, tail) = after.split_at(end);
        let login = url.rsplit_once('@').and_then(|(login, host)| login.split_once(':').map(|(user, _)| (user, host)));
        match login {
            // a colon behind a slash is part of a path
            Some((user, host)) if !user.contains(['/', '?', '#']) => {
                out.push_str(user);
                out.push(':');
                out.push_str(HIDDEN);
                out.push('@');
                out.push_str(host);
            }
            _ => out.push_str(url),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// `?token=…&X-Amz-Signature=…` lose their values.
fn without_url_values(text: &str) -> String {
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
                out.push_str(name);
                out.push('=');
                out.push_str(HIDDEN);
            }
            _ => out.push_str(pair),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
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
        hide.extend(sql_values(text.get(inside.clone()).unwrap_or_default(), inside.start));
    }
    // a string that is not closed is a token too
    if text.get(end..).is_some_and(|rest| !rest.trim().is_empty()) {
        tokens.push((Token::EOF, end..text.trim_end().len()));
    }
    for statement in tokens.split(|(token, _)| *token == Token::SemiColon) {
        hide.extend(set_value(statement));
        hide.extend((1..statement.len()).filter_map(|at| value(statement, at)));
    }
    hide.into_iter().map(|range| range.start + offset..range.end + offset).collect()
}

type Tokens = Vec<(Token, Range<usize>)>;

fn is_to(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("to"))
}

/// What stands between a name and its value.
fn is_between(token: &Token) -> bool {
    matches!(token, Token::Eq | Token::RArrow | Token::Colon) || is_to(token)
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
    let literal = !matches!(first, Token::Word(_) | Token::LParen | Token::RParen | Token::Comma | Token::Period);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_stay() {
        let cases = [
            ("\\connect s3://ann:pa:ss@host/bucket", "\\connect s3://ann:***@host/bucket"),
            ("set 's3.secret-key' = 'abc';", "set 's3.secret-key' = '***';"),
            ("set s3.access-key = 'abc'", "set s3.access-key = '***'"),
            ("select f(password => 'x', 'keep')", "select f(password => '***', 'keep')"),
            ("\\set my_token abc def", "\\set my_token ***"),
            ("\\param db_password x y", "\\param db_password ***"),
            ("set 'fs.oss.accessKeyId' = 'abc';", "set 'fs.oss.accessKeyId' = '***';"),
            ("set azure.account.key = 'abc'", "set azure.account.key = '***'"),
            ("select 'https://h/x?a=1&token=abc&b=2' as u", "select 'https://h/x?a=1&token=***&b=2' as u"),
            ("\\connect s3://b/w?X-Amz-Signature=ffee", "\\connect s3://b/w?X-Amz-Signature=***"),
            ("set s3.secret_key = \"abc123\";", "set s3.secret_key = ***;"),
            ("set s3.secret = bareval; select 1", "set s3.secret = ***; select 1"),
            ("set s3.secret = bare-val.x/y+z", "set s3.secret = ***"),
            ("set 's3.secret' to 'toval';", "set 's3.secret' to '***';"),
            ("SET s3.secret TO toval", "SET s3.secret TO ***"),
            ("set s3.secret = 'not closed", "set s3.secret = '***'"),
            (".set my_token tok123", ".set my_token ***"),
            ("-- mine\n  .param api_key k9", "-- mine\n  .param api_key ***"),
            ("select 1; \\set password hunter2", "select 1; \\set password ***"),
            ("select 1; \\param token q123\nselect 'it''s'", "select 1; \\param token ***\nselect 'it''s'"),
            ("\\echo it's\nset s3.secret = 'x';", "\\echo it's\nset s3.secret = '***';"),
            ("set s3.secret \\timing\n = 'x';", "set s3.secret \\timing\n = '***';"),
            ("\\set password=hunter2", "\\set password=***"),
            ("\\param token=abc def", "\\param token=***"),
            ("\\o |curl --token abc -H x", "\\o |curl --token *** -H x"),
            ("\\once |mysql --password=abc", "\\once |mysql --password=***"),
            (
                "\\assert select count(*) from t where password = 'x' = 3",
                "\\assert select count(*) from t where password = '***' = 3",
            ),
            ("\\connect s3://ann:pa/ss@host/b", "\\connect s3://ann:***@host/b"),
            ("\\connect s3://ann:p@ss;1@host/b", "\\connect s3://ann:***@host/b"),
            ("select f(password => bare, keep)", "select f(password => ***, keep)"),
            (
                "copy t to 'x' options ('aws.secret' 'abc', 'format.a' 'b')",
                "copy t to 'x' options ('aws.secret' '***', 'format.a' 'b')",
            ),
            (
                "select * from t /*+ options('fs.secret.key'='x', 'scan.snapshot-id'='3') */",
                "select * from t /*+ options('fs.secret.key'='***', 'scan.snapshot-id'='3') */",
            ),
            ("-- set s3.secret = 'x'\nselect 1", "-- set s3.secret = '***'\nselect 1"),
            ("select * from t where token = :tok", "select * from t where token = :tok"),
            ("set s3.secret 'x'", "set s3.secret '***'"),
            ("select * from a join b on a.token = b.token", "select * from a join b on a.token = b.token"),
            ("select token, 'x' from t", "select token, 'x' from t"),
            ("select t\n.set from t", "select t\n.set from t"),
            ("\\set name it's a token", "\\set name it's a token"),
            ("\\counts tokens where id = 3", "\\counts tokens where id = 3"),
            ("select * from t where order_key = 'K1'", "select * from t where order_key = 'K1'"),
            ("select * from t where a & b = 3", "select * from t where a & b = 3"),
            ("select * from t where name = 'ann' and n = 3", "select * from t where name = 'ann' and n = 3"),
            ("select 'https://example.com/a:b@c'", "select 'https://example.com/a:b@c'"),
        ];
        for (text, expected) in cases {
            assert_eq!(redacted(text), expected);
        }
    }
}
