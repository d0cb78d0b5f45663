//! Names in the statements that commands make.

use super::variables::quoted;
use crate::error::{Error, Result};

/// A name as SQL reads it: quoted unless it is a plain word.
pub fn quoted_name(name: &str) -> String {
    let mut chars = name.chars();
    let plain = chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain { name.to_string() } else { quoted(name, '"') }
}

/// The system table of a table as the user wrote it: `t`, `db.t`, `"a b"`, `t@v3`.
pub fn system_table(table: &str, system: &str) -> Result<String> {
    let table = table.trim().trim_end_matches(';');
    if table.is_empty() {
        return Err(Error::invalid("which table?").with_code("Usage"));
    }
    let (body, quote) = match table.strip_suffix('"') {
        Some(body) => (body, "\""),
        None => match table.strip_suffix('`') {
            Some(body) => (body, "`"),
            None => (table, ""),
        },
    };
    Ok(match body.rsplit_once('@') {
        Some((base, selector)) => format!("{base}${system}@{selector}{quote}"),
        None => format!("{body}${system}{quote}"),
    })
}

/// A branch of a table as the user wrote it, as SQL reads it.
pub fn branch_of(table: &str, branch: &str) -> Result<String> {
    let suffix = format!("branch_{branch}");
    let named = system_table(table, &suffix)?;
    // a name that is quoted may hold anything
    if quoted_name(&suffix) == suffix || named.ends_with(['"', '`']) {
        return Ok(named);
    }
    let (database, last) = named.rsplit_once('.').map_or(("", named.as_str()), |(database, last)| (database, last));
    let (base, _) = last.split_once('$').unwrap_or((last, ""));
    let point = if database.is_empty() { "" } else { "." };
    Ok(format!("{database}{point}{}", quoted(&format!("{}${suffix}", base.to_lowercase()), '"')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_tables_are_named_inside_quotes_and_before_selectors() {
        let cases = [
            ("t", "t$files"),
            ("pay.t;", "pay.t$files"),
            ("\"a b\"", "\"a b$files\""),
            ("db.`a-b`", "db.`a-b$files`"),
            ("t@v3", "t$files@v3"),
        ];
        for (table, expected) in cases {
            assert_eq!(system_table(table, "files").unwrap(), expected);
        }
        assert!(system_table(" ", "files").is_err());
    }

    #[test]
    fn names_are_quoted_when_they_must_be() {
        assert_eq!(quoted_name("dwd_1"), "dwd_1");
        assert_eq!(quoted_name("订单"), "\"订单\"");
        assert_eq!(quoted_name("Order"), "\"Order\"");
        assert_eq!(quoted_name("1a"), "\"1a\"");
    }
}
