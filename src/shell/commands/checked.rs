//! Checks of a file, one after another: which of them run, at which states, and what becomes of all when one fails.

use std::path::Path;

use super::usage;
use crate::error::{Error, Result};
use crate::notice::{Notice, NoticeKind};
use crate::shell::checks::{self, At, Check, Expected, Given, Place};
use crate::shell::language::told;
use crate::shell::state::Shell;

/// A check that is to run.
pub struct Wanted {
    pub name: String,
    /// Its statement, or why there is none.
    pub sql: Result<String>,
    pub expected: Expected,
}

/// The checks of a file that are named, all where none is, each at the state that `given` has for its table.
///
/// # Errors
/// A file that is none of checks; a name or a state that is of none of them.
pub fn wanted(
    shell: &Shell,
    file: &Path,
    names: &[String],
    given: &[String],
    statement: impl Fn(&Check, Option<&str>, Place<'_>) -> Result<String>,
) -> Result<(Vec<Wanted>, Vec<Notice>)> {
    let all = checks::read(file)?;
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|check| check.name == **name)) {
        let known: Vec<&str> = all.iter().map(|check| check.name.as_str()).collect();
        return Err(usage(format!("there is no check {unknown} in the file: it has {}", known.join(", "))));
    }
    let chosen: Vec<&Check> = all.iter().filter(|check| names.is_empty() || names.contains(&check.name)).collect();
    let database = shell.session.database();
    let place = Place { folder: file.parent().unwrap_or(Path::new("")), database: &database };
    let given = Given::new(given, &database).map_err(usage)?;
    if let Some(unused) = given.unused(chosen.iter().map(|check| check.left().0)) {
        return Err(usage(format!("--at {unused} is of no table that is checked")));
    }
    let mut notices = Vec::new();
    let runs = chosen.into_iter().map(|check| {
        let (table, own) = check.left();
        let at = match given.of(table) {
            At::Pin(pin) => Some(pin),
            At::Own => None,
            At::OwnBeside(others) => {
                notices.push(NoticeKind::Own(beside(shell, check, table, own, &others)).into());
                None
            }
        };
        Wanted { name: check.name.clone(), sql: statement(check, at, place), expected: check.expected }
    });
    let runs = runs.collect();
    Ok((runs, notices))
}

fn beside(shell: &Shell, check: &Check, table: &str, own: Option<&str>, others: &str) -> String {
    let (language, name) = (shell.settings.language, &check.name);
    match own {
        Some(own) => told!(
            language,
            "{name}: --at {others} is of another table: {table} is read at {own}, which its check says",
            "{name}：--at {others} 属于另一张表：{table} 按核对文件里的 {own} 读取",
            name = name,
            others = others,
            table = table,
            own = own
        ),
        None => told!(
            language,
            "{name}: --at {others} is of another table: {table} is read without a state of its own, as the session has it",
            "{name}：--at {others} 属于另一张表：{table} 没有指定状态，按会话当前的状态读取",
            name = name,
            others = others,
            table = table
        ),
    }
}

/// Checks that could not be carried out.
#[derive(Debug, Default)]
pub struct Failed {
    first: Option<Error>,
    others: Vec<String>,
}

impl Failed {
    /// Takes the error of a check; whether the others still run: not after Ctrl-C.
    pub fn take(&mut self, name: &str, error: Error) -> bool {
        let goes_on = error.code() != "Interrupted";
        match self.first {
            None => self.first = Some(error.with_context("check", name)),
            Some(_) => self.others.push(format!("{name}: error[{}]: {}", error.code(), error.message())),
        }
        goes_on
    }

    /// How all of them end, when what was found is shown: in the first error, whatever differs besides. No answer to one
    /// question is more than an answer to another.
    pub fn ended(self, shell: &Shell, red: &[String]) -> Result<()> {
        match self.first {
            None if red.is_empty() => Ok(()),
            None => Err(Error::invalid(red.join("\n")).with_code("Different")),
            Some(error) => {
                shell.say(&[red, &self.others].concat())?;
                Err(error)
            }
        }
    }
}
