//! Secrets leave a text before it is kept: passwords in URLs, values of names that speak of secrets.

use datafusion::sql::sqlparser::tokenizer::Token;

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
    SECRET.iter().any(|word| name.contains(word)) || name == "pwd"
}

/// The text without secrets.
pub fn redacted(text: &str) -> String {
    let text = without_url_values(&without_url_passwords(text));
    let trimmed = text.trim_start();
    if let Some(command) = trimmed.strip_prefix('\\') {
        // \set password x, \param token x
        let words: Vec<&str> = command.split_whitespace().collect();
        if let [verb @ ("set" | "param"), name, _, ..] = words.as_slice()
            && speaks_of_secrets(name)
        {
            return format!("\\{verb} {name} {HIDDEN}");
        }
    }
    without_secret_literals(&text)
}

/// `scheme://user:password@host` loses its password.
fn without_url_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '/' | ';')).unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        match authority.rsplit_once('@').and_then(|(login, host)| login.split_once(':').map(|(user, _)| (user, host))) {
            Some((user, host)) => {
                out.push_str(user);
                out.push(':');
                out.push_str(HIDDEN);
                out.push('@');
                out.push_str(host);
            }
            None => out.push_str(authority),
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

/// `'s3.secret-key' = '…'`, `password => '…'`, `token '…'` lose their values.
fn without_secret_literals(text: &str) -> String {
    let tokens: Vec<_> = lexed(text).into_iter().filter(|(t, _)| !matches!(t, Token::Whitespace(_))).collect();
    let mut hide = Vec::new();
    for (i, (token, range)) in tokens.iter().enumerate() {
        let is_value = matches!(token, Token::SingleQuotedString(_) | Token::Number(..));
        if !is_value {
            continue;
        }
        let between = |t: &Token| matches!(t, Token::Eq | Token::RArrow | Token::Colon);
        // names such as s3.secret-key are several tokens when they are not quoted, with nothing between them
        let mut begins = None;
        let name: Vec<&Token> = tokens
            .get(..i)
            .unwrap_or_default()
            .iter()
            .rev()
            .skip_while(|(t, _)| between(t))
            .take_while(|(t, range)| {
                let joined = begins.is_none_or(|begins| begins == range.end);
                begins = Some(range.start);
                joined && matches!(t, Token::Word(_) | Token::Period | Token::Minus | Token::SingleQuotedString(_))
            })
            .map(|(t, _)| t)
            .collect();
        let secret = match name.first() {
            Some(Token::SingleQuotedString(name)) => speaks_of_secrets(name),
            Some(_) => {
                let words: String = name
                    .iter()
                    .rev()
                    .map(|t| match t {
                        Token::Word(word) => word.value.clone(),
                        Token::SingleQuotedString(_) => String::new(),
                        other => other.to_string(),
                    })
                    .collect();
                speaks_of_secrets(&words)
            }
            None => false,
        };
        if secret {
            hide.push(range.clone());
        }
    }
    let mut out = text.to_string();
    for range in hide.into_iter().rev() {
        let quoted = out.get(range.clone()).is_some_and(|v| v.starts_with('\''));
        out.replace_range(range, if quoted { "'***'" } else { HIDDEN });
    }
    out
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
