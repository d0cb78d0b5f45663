//! Comparisons in TOML files, for CI and cron: each becomes a `RECONCILE` statement.
//!
//! ```toml
//! [[check]]
//! name = "pay"
//! left = "pay.dwd_pay_success"
//! at = "tag:eod"                      # or with the table: pay.dwd_pay_success@v3
//! right = "SELECT …"                  # a query, a table, a .parquet or .csv file beside this one
//! # right_env = "PAY_SOURCE_URL"      # the address of a database, from the environment
//! # from = "pay_success"              # a table or SELECT of that database
//! key = ["dt", "pay_id"]
//! compare = ["amount", "status"]      # all common columns without it
//! where = "pay_time <= TIMESTAMP '2026-04-16 10:00:00'"
//! horizon = "update_time <= TIMESTAMP '2026-04-16 10:00:00'"
//! limit = 100
//! their_count = 503                   # for a verdict: what the other side counts, or a query for it
//! expected = "equal"
//! map.status = { SUCC = "2" }
//! tolerance.amount = "0.01"
//! collate.nocase = ["pay_id"]         # texts in which upper and lower case are one
//! ```

mod at;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

pub use at::{At, Given, table_at};

use crate::error::{Error, Result};

/// A file of checks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    check: Vec<Check>,
}

/// What is expected of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    /// That nothing differs.
    #[default]
    Equal,
    /// That something does.
    Different,
}

/// A number in TOML, or as text where its digits count.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Integer(i64),
    Float(f64),
}

impl Number {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
        }
    }
}

/// How texts are compared.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Collate {
    /// Columns whose texts are compared in lower case.
    #[serde(default)]
    nocase: Vec<String>,
}

/// One comparison.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its name, for people and files.
    pub name: String,
    left: String,
    at: Option<String>,
    right: Option<String>,
    right_env: Option<String>,
    from: Option<String>,
    key: Vec<String>,
    compare: Option<Vec<String>>,
    #[serde(default)]
    except: Vec<String>,
    #[serde(rename = "where")]
    condition: Option<String>,
    horizon: Option<String>,
    #[serde(default)]
    map: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    tolerance: BTreeMap<String, Number>,
    #[serde(default)]
    collate: Collate,
    zone: Option<String>,
    #[serde(default)]
    half_up: bool,
    sample_percent: Option<Number>,
    /// Whether it passes when no row meets the condition.
    #[serde(default)]
    allow_empty: bool,
    limit: Option<u64>,
    stop_after: Option<u64>,
    progress: Option<String>,
    their_count: Option<Number>,
    /// What makes it pass.
    #[serde(default)]
    pub expected: Expected,
}

/// The checks of a file.
///
/// # Errors
/// A file that is not there, is no TOML, or has unknown keys.
pub fn read(path: &Path) -> Result<Vec<Check>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_string(),
            _ => error.to_string(),
        };
        Error::not_found(format!("the file of checks cannot be read: {why}"))
            .with_code("FileNotFound")
            .with_context("file", path.display())
            .with_source(error)
    })?;
    let checks = parse(&text).map_err(|error| error.with_context("file", path.display()))?;
    Ok(checks)
}

fn parse(text: &str) -> Result<Vec<Check>> {
    let wrong = |message: String| {
        Error::invalid(message).with_code("BadCheck").with_hint(
            "write [[check]] with name, left, right, key = [\"id\"], and where needed compare, except, where, horizon, map, \
             tolerance, zone, limit, expected",
        )
    };
    let file: File = toml::from_str(text).map_err(|error| {
        // its own display shows the line, in which a secret may stand
        let line = error.span().map_or(0, |span| text.get(..span.start).unwrap_or_default().lines().count());
        wrong(format!("line {line}: {}", error.message()))
    })?;
    for (at, check) in file.check.iter().enumerate() {
        if file.check.iter().take(at).any(|other| other.name == check.name) {
            return Err(wrong(format!("two checks are called {}", check.name)));
        }
        if check.right.is_some() == check.right_env.is_some() {
            return Err(wrong(format!("check {} needs one of right and right_env", check.name)));
        }
    }
    Ok(file.check)
}

/// Where checks are run.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Where the files are that they name.
    pub folder: &'a Path,
    /// The database of tables that name none.
    pub database: &'a str,
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn string(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Check {
    /// The table on the left, and the state that the check itself names of it.
    pub fn left(&self) -> (&str, Option<&str>) {
        (&self.left, self.at.as_deref().or_else(|| self.left.split_once('@').map(|(_, own)| own.trim_end_matches('"'))))
    }

    /// The statement; `at`: the state of the left side in place of the check's own; `place`: where it is run.
    ///
    /// # Errors
    /// A variable of the environment that is not set; a state of another table.
    pub fn statement(&self, at: Option<&str>, place: Place<'_>) -> Result<String> {
        let Place { folder, database } = place;
        let own = |error: Error| error.with_code("BadCheck").with_context("check", &self.name);
        let at = at::own_pin(&self.left, at.or(self.at.as_deref()), database).map_err(own)?;
        let beside = |path: &str| folder.join(path).display().to_string();
        let right = match (&self.right, &self.right_env) {
            (Some(right), _) => {
                let trimmed = right.trim();
                let ends = |ending: &str| trimmed.to_lowercase().ends_with(ending);
                let first = trimmed.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
                if ["select", "with", "values", "from"].iter().any(|word| first.eq_ignore_ascii_case(word)) {
                    format!("({trimmed})")
                } else if trimmed.contains("://") {
                    self.source(trimmed)
                } else if ends(".csv") || ends(".parquet") {
                    string(&beside(trimmed))
                } else {
                    trimmed.to_string()
                }
            }
            (None, name) => {
                let name = name.as_deref().unwrap_or_default();
                let url = std::env::var(name).map_err(|_| {
                    Error::invalid(format!("the variable {name} of the environment is not set"))
                        .with_code("BadCheck")
                        .with_context("check", &self.name)
                        .with_hint("it holds the address of the database: mysql://user:…@host/db")
                })?;
                self.source(&url)
            }
        };
        let names = |names: &[String]| names.iter().map(|name| identifier(name)).collect::<Vec<_>>().join(", ");
        let mut sql = format!("RECONCILE {} WITH {right} ON KEY ({})", table_at(&self.left, at), names(&self.key));
        if self.compare.is_some() || !self.map.is_empty() {
            let mut columns = self.compare.clone().unwrap_or_default();
            columns.extend(self.map.keys().filter(|name| !columns.contains(name)).cloned().collect::<Vec<_>>());
            if self.compare.is_none() {
                return Err(Error::invalid("map needs compare: name the columns that are compared")
                    .with_code("BadCheck")
                    .with_context("check", &self.name));
            }
            let columns = columns.iter().map(|name| match self.map.get(name) {
                Some(map) => {
                    let pairs = map.iter().map(|(from, to)| format!("{} => {}", string(from), string(to)));
                    format!("{} MAP ({})", identifier(name), pairs.collect::<Vec<_>>().join(", "))
                }
                None => identifier(name),
            });
            sql.push_str(&format!(" COMPARE ({})", columns.collect::<Vec<_>>().join(", ")));
        }
        if !self.except.is_empty() {
            sql.push_str(&format!(" EXCEPT ({})", names(&self.except)));
        }
        if let Some(condition) = &self.condition {
            sql.push_str(&format!(" WHERE {condition}"));
        }
        if let Some(horizon) = &self.horizon {
            sql.push_str(&format!(" HORIZON {horizon}"));
        }
        let tolerances: Vec<String> =
            self.tolerance.iter().map(|(name, most)| format!("{} {}", identifier(name), most.text())).collect();
        if !tolerances.is_empty() {
            sql.push_str(&format!(" TOLERANCE {}", tolerances.join(", ")));
        }
        if !self.collate.nocase.is_empty() {
            sql.push_str(&format!(" COLLATE NOCASE ({})", names(&self.collate.nocase)));
        }
        if let Some(zone) = &self.zone {
            sql.push_str(&format!(" ZONE {}", string(zone)));
        }
        if self.half_up {
            sql.push_str(" ROUND HALF UP");
        }
        if let Some(percent) = &self.sample_percent {
            sql.push_str(&format!(" SAMPLE {} PERCENT BY KEY HASH", percent.text()));
        }
        if let Some(limit) = self.limit {
            sql.push_str(&format!(" LIMIT {limit} PER CLASS"));
        }
        if self.allow_empty {
            sql.push_str(" ALLOW EMPTY");
        }
        if let Some(most) = self.stop_after {
            sql.push_str(&format!(" STOP AFTER {most}"));
        }
        if let Some(path) = &self.progress {
            sql.push_str(&format!(" PROGRESS {}", string(&beside(path))));
        }
        Ok(sql)
    }

    /// The statement for its verdict; `keys`: findings that are looked up; `theirs`: a count in place of the check's own.
    ///
    /// # Errors
    /// As [`Self::statement`].
    pub fn verdict(
        &self,
        at: Option<&str>,
        place: Place<'_>,
        keys: Option<u64>,
        theirs: Option<u64>,
    ) -> Result<String> {
        let mut sql = self.statement(at, place)?;
        sql.push_str(" VERDICT");
        if let Some(keys) = keys {
            sql.push_str(&format!(" OF {keys} KEYS"));
        }
        match (theirs, &self.their_count) {
            (Some(count), _) => sql.push_str(&format!(" THEIR COUNT {count}")),
            (None, Some(Number::Text(query))) => sql.push_str(&format!(" THEIR COUNT ({query})")),
            (None, Some(number)) => sql.push_str(&format!(" THEIR COUNT {}", number.text())),
            (None, None) => {}
        }
        Ok(sql)
    }

    fn source(&self, url: &str) -> String {
        match &self.from {
            Some(what) => format!("{} FROM {}", string(url), string(what)),
            None => string(url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: &str) -> Place<'_> {
        Place { folder: Path::new(folder), database: "pay" }
    }

    #[test]
    fn a_check_is_a_statement() {
        let text = r#"
            [[check]]
            name = "pay"
            left = "pay.T"
            at = "v3"
            right = "s.csv"
            key = ["dt", "id"]
            compare = ["amount", "status"]
            where = "a = 1"
            horizon = "t <= TIMESTAMP '2026-04-16 10:00:00'"
            limit = 5
            allow_empty = true
            map.status = { SUCC = "it's" }
            tolerance.amount = "0.01"
            collate.nocase = ["id"]
            sample_percent = 0.5
            expected = "different"
            [[check]]
            name = "two"
            left = 'pay."A b"'
            right = "select 1 as id"
            key = ["id"]
            their_count = "select count(*) from s"
        "#;
        let checks = parse(text).unwrap();
        assert_eq!(
            checks[0].statement(None, place("/d")).unwrap(),
            "RECONCILE pay.\"t@v3\" WITH '/d/s.csv' ON KEY (\"dt\", \"id\") COMPARE (\"amount\", \"status\" MAP ('SUCC' => 'it''s')) \
             WHERE a = 1 HORIZON t <= TIMESTAMP '2026-04-16 10:00:00' TOLERANCE \"amount\" 0.01 COLLATE NOCASE (\"id\") SAMPLE 0.5 PERCENT BY KEY HASH \
             LIMIT 5 PER CLASS ALLOW EMPTY"
        );
        assert_eq!(checks[0].expected, Expected::Different);
        let verdict = checks[1].verdict(None, place(""), Some(7), None).unwrap();
        assert!(
            verdict.ends_with(" ON KEY (\"id\") VERDICT OF 7 KEYS THEIR COUNT (select count(*) from s)"),
            "{verdict}"
        );
        let verdict = checks[1].verdict(None, place(""), None, Some(5)).unwrap();
        assert!(verdict.ends_with(" VERDICT THEIR COUNT 5"), "{verdict}");
        let two = checks[1].statement(Some("pay.\"A b\"@tag:x"), place("")).unwrap();
        assert_eq!(two, "RECONCILE pay.\"A b@tag:x\" WITH (select 1 as id) ON KEY (\"id\")");
        let error = checks[0].statement(Some("u@v3"), place("")).unwrap_err();
        assert_eq!(error.code(), "BadCheck", "{error}");
    }

    #[test]
    fn what_is_wrong_in_a_file_is_told_without_its_secrets() {
        let of = |text: &str| format!("{:?}", parse(text).unwrap_err());
        let secret = of("[[check]]\nname = 'a'\nright = 'mysql://u:geheim@h/d'\nright = 5\n");
        assert!(secret.contains("BadCheck") && !secret.contains("geheim"), "{secret}");
        assert!(of("[[check]]\nname='a'\nleft='t'\nright='u'\nkey=['id']\nkeys=1").contains("keys"));
        assert!(of("[[check]]\nname='a'\nleft='t'\nkey=['id']").contains("needs one of"));
    }
}
