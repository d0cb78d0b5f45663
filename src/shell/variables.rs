//! Variables: `:name` as text, `:'name'` as a string, `:"name"` as a name. Only variables that are set are replaced, so
//! slices (`a[1:n]`) and casts (`::int`) stay what they are.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::tokenizer::Token;

use super::input::lexed;

/// Values by name.
pub type Variables = BTreeMap<String, String>;

/// A statement with its variables replaced.
pub fn replaced(sql: &str, variables: &Variables) -> String {
    if variables.is_empty() || !sql.contains(':') {
        return sql.to_string();
    }
    let tokens = lexed(sql);
    let mut out = String::with_capacity(sql.len());
    let mut done = 0;
    for pair in tokens.windows(2) {
        let [(colon, at), (name, name_at)] = pair else { continue };
        if *colon != Token::Colon || at.end != name_at.start || at.start < done {
            continue;
        }
        let value = match name {
            Token::SingleQuotedString(name) => variables.get(name).map(|v| quoted(v, '\'')),
            Token::Word(word) if word.quote_style == Some('"') => variables.get(&word.value).map(|v| quoted(v, '"')),
            Token::Word(word) if word.quote_style.is_none() => variables.get(&word.value).cloned(),
            _ => None,
        };
        let Some(value) = value else { continue };
        out.push_str(sql.get(done..at.start).unwrap_or_default());
        out.push_str(&value);
        done = name_at.end;
    }
    out.push_str(sql.get(done..).unwrap_or_default());
    out
}

/// Text between quotes, those inside doubled.
pub fn quoted(text: &str, quote: char) -> String {
    let doubled: String = [quote, quote].iter().collect();
    format!("{quote}{}{quote}", text.replace(quote, &doubled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_by_kind_and_only_when_set() {
        let variables = Variables::from([("n".into(), "3".into()), ("who".into(), "O'Hara".into())]);
        let cases = [
            ("select * from t version as of :n", "select * from t version as of 3"),
            ("select :'who', :\"who\", ':n'", "select 'O''Hara', \"O'Hara\", ':n'"),
            ("select a::int, b[1:m], c -- :n", "select a::int, b[1:m], c -- :n"),
            ("select :n+:n", "select 3+3"),
            ("select : n", "select : n"),
        ];
        for (sql, expected) in cases {
            assert_eq!(replaced(sql, &variables), expected);
        }
    }
}
