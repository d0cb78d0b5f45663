//! The states that a run gives in place of those its checks name: `v3`, `tag:eod`, or as a gate prints them, with their
//! table: `pay.dwd_pay_success@v4711`.

use super::identifier;
use crate::error::{Error, Result};

/// A pin and the table that it names, where it names one: `pay.t@v3`.
fn named(at: &str) -> (Option<&str>, &str) {
    match at.split_once('@') {
        Some((table, pin)) if !table.contains(':') => (Some(table), pin),
        _ => (None, at),
    }
}

/// A table without the version that stands in its name.
fn bare(table: &str) -> String {
    table.split_once('@').map_or(table, |(bare, _)| bare).to_string()
}

/// Database and table as names that can be compared.
fn parts(table: &str, database: &str) -> (String, String) {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in bare(table).trim().chars() {
        match (c, parts.last_mut()) {
            ('"', _) => quoted = !quoted,
            ('.', _) if !quoted => parts.push(String::new()),
            (c, Some(part)) if quoted => part.push(c),
            (c, Some(part)) => part.extend(c.to_lowercase()),
            (_, None) => {}
        }
    }
    let table = parts.pop().unwrap_or_default();
    (parts.pop().unwrap_or_else(|| database.to_lowercase()), table)
}

/// Whether two texts name one table.
pub fn is_same(one: &str, other: &str, database: &str) -> bool {
    parts(one, database) == parts(other, database)
}

/// `pay.t` at `v3` as `pay."t@v3"`, in place of a version that stands in the name. A table that the pin names is not
/// looked at here.
pub fn table_at(table: &str, at: Option<&str>) -> String {
    let Some(at) = at else { return table.to_string() };
    let (_, at) = named(at);
    match table.strip_suffix('"') {
        Some(open) => format!("{}@{}\"", bare(open), at.replace('"', "\"\"")),
        None => {
            let table = bare(table);
            let begins = table.rfind('.').map_or(0, |point| point + 1);
            let (before, name) = table.split_at(begins);
            format!("{before}{}", identifier(&format!("{}@{at}", name.to_lowercase())))
        }
    }
}

/// The pin that `table` is read at.
///
/// # Errors
/// One that names another table.
pub fn own_pin<'a>(table: &str, at: Option<&'a str>, database: &str) -> Result<Option<&'a str>> {
    match at.map(|at| (at, named(at))) {
        Some((at, (Some(other), _))) if !is_same(other, table, database) => {
            Err(Error::invalid(format!("{at} is a state of another table than {}", bare(table)))
                .with_hint("write the state alone, v3 or tag:eod, or that of this table"))
        }
        Some((_, (_, pin))) => Ok(Some(pin)),
        None => Ok(None),
    }
}

/// What a run was given with `--at`.
#[derive(Debug)]
pub struct Given<'a> {
    /// For every table.
    any: Option<&'a str>,
    /// As they were given.
    of_tables: Vec<&'a str>,
    database: &'a str,
}

/// What a table is read at.
#[derive(Debug, PartialEq, Eq)]
pub enum At<'a> {
    /// At this pin.
    Pin(&'a str),
    /// As its check says: nothing was given.
    Own,
    /// The same, while pins of other tables were given.
    OwnBeside(String),
}

impl<'a> Given<'a> {
    /// # Errors
    /// Two for one table, or two for all.
    pub fn new(given: &'a [String], database: &'a str) -> std::result::Result<Self, String> {
        let mut found = Self { any: None, of_tables: Vec::new(), database };
        for at in given {
            match named(at).0 {
                None if found.any.is_some() => return Err("two states are given with --at for every table".into()),
                None => found.any = Some(at),
                Some(table) => {
                    let mut twice = found.of_tables.iter().copied().filter_map(|other| named(other).0);
                    if twice.any(|other| is_same(other, table, database)) {
                        return Err(format!("two states of {table} are given with --at"));
                    }
                    found.of_tables.push(at);
                }
            }
        }
        Ok(found)
    }

    /// What a table is read at.
    pub fn of(&self, table: &str) -> At<'a> {
        let mut own = self.of_tables.iter().copied().map(named);
        let own = own.find(|(of, _)| of.is_some_and(|of| is_same(of, table, self.database)));
        match (own, self.any) {
            (Some((_, pin)), _) | (None, Some(pin)) => At::Pin(pin),
            (None, None) if self.of_tables.is_empty() => At::Own,
            (None, None) => At::OwnBeside(self.of_tables.join(", ")),
        }
    }

    /// One that is of none of these tables.
    pub fn unused<'b>(&self, tables: impl Iterator<Item = &'b str> + Clone) -> Option<&'a str> {
        let is_of =
            |at: &&str| named(at).0.is_some_and(|of| tables.clone().any(|table| is_same(of, table, self.database)));
        self.of_tables.iter().copied().find(|at| !is_of(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_of_the_table_that_it_names() {
        for (table, expected) in
            [("t@v4", "\"t@v3\""), ("pay.t@ts:2026-04-16.5", "pay.\"t@v3\""), ("\"t@v4\"", "\"t@v3\"")]
        {
            assert_eq!(table_at(table, Some("v3")), expected);
            assert_eq!(table_at(table, Some("pay.t@v3")), expected);
        }
        assert!(is_same("PAY.T", "t@v3", "pay") && is_same("\"t@v4\"", "t", "pay"));
        assert!(is_same("pay.\"A b\"@tag:x", "\"A b\"", "Pay"));
        for (one, other) in [("t", "u"), ("\"T\"", "t"), ("a.t", "t"), ("t$branch_b", "t")] {
            assert!(!is_same(one, other, "pay"), "{one} {other}");
        }
        assert_eq!(own_pin("t", Some("pay.t@v3"), "pay").unwrap(), Some("v3"));
        assert_eq!(own_pin("t", Some("commit:u@3"), "pay").unwrap(), Some("commit:u@3"));
        assert!(own_pin("u", Some("pay.t@v3"), "pay").is_err());
    }

    #[test]
    fn states_are_given_for_all_tables_or_for_one() {
        let texts = |given: &[&str]| given.iter().map(|at| (*at).to_string()).collect::<Vec<_>>();
        let two = texts(&["pay.t@v3", "u@tag:eod"]);
        let given = Given::new(&two, "pay").unwrap();
        assert_eq!((given.of("T"), given.of("pay.\"u\"")), (At::Pin("v3"), At::Pin("tag:eod")));
        assert_eq!(given.of("w@v9"), At::OwnBeside("pay.t@v3, u@tag:eod".into()));
        assert_eq!(given.unused(["t", "w"].into_iter()), Some("u@tag:eod"));
        assert_eq!(given.unused(["t", "u"].into_iter()), None);
        let all = texts(&["v9", "t@v3"]);
        let given = Given::new(&all, "pay").unwrap();
        assert_eq!((given.of("t"), given.of("u")), (At::Pin("v3"), At::Pin("v9")));
        assert_eq!(Given::new(&[], "pay").unwrap().of("t"), At::Own);
        assert!(Given::new(&texts(&["v1", "v2"]), "pay").is_err());
        assert!(Given::new(&texts(&["t@v1", "pay.T@v2"]), "pay").is_err());
    }
}
