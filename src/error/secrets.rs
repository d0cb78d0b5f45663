//! Passwords leave what an error says: they stand in addresses and connection strings that errors quote.

use std::borrow::Cow;

/// What stands in place of a secret.
const HIDDEN: &str = "***";

/// Names whose values are passwords, in `name=value`.
const NAMES: &[&str] = &["password", "passwd", "pwd", "passphrase", "secret", "token"];

/// A text without the passwords of its URLs and of `password=…`.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    let mut out = Cow::Borrowed(text);
    if text.contains("://") {
        out = Cow::Owned(without_url_passwords(text));
    }
    if out.contains('=')
        && let Some(told) = without_password_values(&out)
    {
        out = Cow::Owned(told);
    }
    out
}

/// Schemes of addresses that hold nothing but a login, a host and a name before their last `@`.
const DATABASES: &[&str] = &["mysql://", "mariadb://", "postgres://", "postgresql://"];

/// `scheme://user:password@host` loses its password, whatever it holds: it ends at the last `@`. A user alone is a
/// token where it is not the name of a container.
pub fn without_url_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let scheme = before.to_ascii_lowercase();
        let is_one_of = |schemes: &[&str]| schemes.iter().any(|known| scheme.ends_with(known));
        let (of_the_web, of_a_database) = (is_one_of(&["http://", "https://"]), is_one_of(DATABASES));
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '\'' | '"')).unwrap_or(after.len());
        let (url, tail) = after.split_at(end);
        // a colon or an at sign behind a slash is part of a path
        let begins_path = |user: &str| user.contains(['/', '?', '#']);
        match url.rsplit_once('@') {
            // `user:2024/…@host`: digits before a slash are no port there
            Some((login, host)) if has_password(login) || of_a_database && login.contains(':') => {
                let user = login.split(':').next().unwrap_or_default();
                out.extend([user, ":", HIDDEN, "@", host]);
            }
            Some((login, host)) if of_the_web && !login.is_empty() && !begins_path(login) => {
                out.extend([HIDDEN, "@", host]);
            }
            _ => out.push_str(url),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Whether what stands before the last `@` of an address is `user:password`, not `host:port/path`.
fn has_password(login: &str) -> bool {
    let Some((user, password)) = login.split_once(':') else { return false };
    let port = password.split_once('/').map(|(port, _)| port);
    let is_port = port.is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    !user.contains(['/', '?', '#']) && !is_port
}

/// `password=x`, `PASSWORD = 'x y'` and `?pwd=x&…` lose their values; None where there is none.
fn without_password_values(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    let mut found = false;
    while let Some(at) = rest.find('=') {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        rest = after;
        let name = before.trim_end_matches('=').trim_end();
        let begins = name.rfind(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').map_or(0, |at| at + 1);
        let name = name.get(begins..).unwrap_or_default().to_ascii_lowercase();
        if !NAMES.iter().any(|known| name.ends_with(known)) {
            continue;
        }
        let value = after.trim_start();
        let blanks = after.len() - value.len();
        let end = match value.chars().next() {
            Some(quote @ ('\'' | '"')) => value.get(1..).and_then(|inner| inner.find(quote)).map(|at| at + 2),
            _ => value.find(|c: char| c.is_whitespace() || matches!(c, '&' | ';' | ',' | ')' | '\'' | '"')),
        };
        let (secret, tail) = value.split_at(end.unwrap_or(value.len()));
        if secret.is_empty() {
            continue;
        }
        out.push_str(after.get(..blanks).unwrap_or_default());
        out.push_str(HIDDEN);
        found = true;
        rest = tail;
    }
    out.push_str(rest);
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_leave_a_text_and_nothing_else_does() {
        for (text, expected) in [
            ("cannot read mysql://u:geheim@h/db?table=t", "cannot read mysql://u:***@h/db?table=t"),
            ("'postgres://u:p@ss/w@h:5432/d' FROM 't'", "'postgres://u:***@h:5432/d' FROM 't'"),
            ("https://token@h/x and s3://b/t@v3", "https://***@h/x and s3://b/t@v3"),
            ("hdfs://nn:9000/wh/t@v3", "hdfs://nn:9000/wh/t@v3"),
            ("MySQL://root:2024/geheim@db/shop", "MySQL://root:***@db/shop"),
            ("postgresql://root:20?ge#heim@db:5432/shop x@y", "postgresql://root:***@db:5432/shop x@y"),
            ("mysql://db:3306/shop FROM 't@v3'", "mysql://db:3306/shop FROM 't@v3'"),
            ("host=h user=u password=geheim dbname=d", "host=h user=u password=*** dbname=d"),
            ("host=h password = 'ge heim' x", "host=h password = *** x"),
            ("mysql://h/d?password=geheim&a=b", "mysql://h/d?password=***&a=b"),
            ("DB_PASSWORD=geheim", "DB_PASSWORD=***"),
            ("using password: YES, key=5, amount = 3", "using password: YES, key=5, amount = 3"),
            ("password=", "password="),
        ] {
            assert_eq!(without_passwords(text), expected);
        }
    }
}
