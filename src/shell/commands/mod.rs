//! Backslash commands. One registry gives dispatch, help and completion; a command is one file, or one line of a
//! table where many are alike (`listings`, `settings`).

mod arguments;
mod assert;
mod checked;
mod condition;
mod connect;
mod counts;
mod describe;
mod diff;
mod echo;
mod errors;
mod explain;
mod files;
mod findings;
mod forensics;
mod help;
mod history;
mod include;
mod key;
mod listings;
mod more;
mod options;
mod output;
mod parameter;
mod pin;
mod quit;
mod reconcile;
mod run;
mod settings;
mod tour;
mod variables;
mod verdict;
mod wait;
mod watch;

use futures::future::LocalBoxFuture;

use super::language::{Text, both};
use super::state::Shell;
use super::variables::Variables;
use crate::error::{Error, Result};

#[cfg(feature = "slt")]
pub use arguments::words;
pub use arguments::{Word, marked_words, unquoted};
use arguments::{file_name, without_semicolon};
#[cfg(feature = "slt")]
pub use pin::{pin_statement, unpin_statements};
pub use verdict::line as verdict_line;

/// What a command is for; `\?` groups by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Look around.
    Look,
    /// Fix what is read.
    Pin,
    /// Prove what was read.
    Prove,
    /// Run things.
    Run,
    /// Show results.
    Display,
    /// The shell itself.
    Shell,
}

impl Task {
    /// In the order of help.
    pub const ALL: &'static [(Task, Text)] = &[
        (Task::Look, both("Look around", "查看")),
        (Task::Pin, both("Fix what is read", "固定读取的快照")),
        (Task::Prove, both("Prove what was read", "证明读到了什么")),
        (Task::Run, both("Run", "执行")),
        (Task::Display, both("Show results", "显示结果")),
        (Task::Shell, both("The shell", "命令行")),
    ];
}

/// What completion offers after the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// Nothing.
    None,
    /// Databases.
    Database,
    /// Tables.
    Table,
    /// Tables that the session pins.
    Pinned,
    /// A table, then its versions.
    Version,
    /// A table, then the ids of its schemas.
    Schema,
    /// A table, then a condition over its columns.
    Condition,
    /// Files.
    File,
    /// SQL.
    Sql,
    /// These words.
    Words(&'static [&'static str]),
    /// Names of commands.
    Command,
}

/// One command.
pub struct Command {
    /// Its name and aliases, without backslash.
    pub names: &'static [&'static str],
    /// Its arguments.
    pub usage: &'static str,
    /// What it is for.
    pub task: Task,
    /// One line of help.
    pub about: Text,
    /// More help, with examples; none when the line says all.
    pub detail: Text,
    /// What completion offers.
    pub argument: Argument,
    /// Does it.
    pub run: for<'a> fn(&'a mut Shell, Call) -> LocalBoxFuture<'a, Result<()>>,
}

/// One use of a command.
#[derive(Debug, Clone)]
pub struct Call {
    /// The name that was typed.
    pub name: String,
    /// The rest of the line.
    pub rest: String,
}

impl Call {
    /// Arguments: words, quotes holding words together, variables replaced.
    ///
    /// # Errors
    /// A quote that is not closed.
    pub fn words(&self, variables: &Variables) -> Result<Vec<String>> {
        arguments::words(&self.rest, variables)
    }

    /// The same, with what began with a quote marked.
    ///
    /// # Errors
    /// A quote that is not closed.
    pub fn marked_words(&self, variables: &Variables) -> Result<Vec<Word>> {
        marked_words(&self.rest, variables)
    }

    /// SQL: the rest of the line without its semicolon.
    pub fn sql(&self) -> &str {
        self.rest.trim().trim_end_matches(';').trim_end()
    }
}

/// Every command, in the order of help.
pub fn all() -> Vec<&'static Command> {
    let mut all: Vec<&'static Command> = Vec::new();
    all.extend(listings::COMMANDS);
    all.extend([&describe::DESCRIBE]);
    all.extend(pin::COMMANDS);
    all.extend([
        &counts::COUNTS,
        &reconcile::RECONCILE,
        &verdict::VERDICT,
        &files::FILES,
        &explain::EXPLAIN,
        &assert::ASSERT,
    ]);
    all.extend(diff::COMMANDS);
    all.extend(forensics::COMMANDS);
    all.extend(wait::COMMANDS);
    all.extend(key::COMMANDS);
    all.extend(run::COMMANDS);
    all.extend([&include::INCLUDE, &watch::WATCH]);
    all.extend(variables::COMMANDS);
    all.extend([&parameter::PARAMETER]);
    all.extend(condition::COMMANDS);
    all.extend([&echo::ECHO]);
    all.extend(settings::COMMANDS);
    all.extend([&more::MORE]);
    all.extend(output::COMMANDS);
    all.extend([&connect::CONNECT, &tour::TOUR_COMMAND, &errors::ERRORS, &history::HISTORY, &help::HELP, &quit::QUIT]);
    all
}

/// The command of a name.
pub fn find(name: &str) -> Option<&'static Command> {
    all().into_iter().find(|command| command.names.contains(&name))
}

/// Runs the command of a line without its backslash.
pub async fn run(shell: &mut Shell, line: &str) -> Result<()> {
    let (name, rest) = name_and_rest(line);
    let Some(command) = find(name) else { return Err(unknown(name)) };
    // what is echoed is text
    let rest = if command.names == echo::ECHO.names { rest.trim() } else { without_semicolon(rest) };
    let follows = rest.contains(';');
    if command.usage.is_empty() && !rest.is_empty() && !condition::is_condition(command) {
        return Err(usage(format!("\\{name} stands alone: {rest:?} is too much")));
    }
    let call = Call { name: name.to_string(), rest: rest.to_string() };
    (command.run)(shell, call).await.map_err(|error| match error.hint() {
        None if follows && error.code() == "Usage" => {
            error.with_hint("a command takes the rest of its line: write what follows on the next")
        }
        _ => error,
    })
}

fn name_and_rest(line: &str) -> (&str, &str) {
    let line = line.trim();
    line.split_at(line.find(|c: char| c.is_whitespace() || c == ';').unwrap_or(line.len()))
}

/// Whether a line without its backslash is `\if` or one of its kind: where nothing runs, those do.
pub fn branches(line: &str) -> bool {
    find(name_and_rest(line).0).is_some_and(condition::is_condition)
}

fn unknown(name: &str) -> Error {
    if name.starts_with('!') {
        return Error::unsupported("the shell runs no programs but those that take results")
            .with_code("UnknownCommand")
            .with_hint("write \\o |PROGRAM or \\once |PROGRAM");
    }
    let error = Error::invalid(format!("there is no command \\{name}")).with_code("UnknownCommand");
    let names = all().into_iter().flat_map(|c| c.names.iter().copied());
    match nearest(name, names) {
        Some(near) => error.with_hint(format!("did you mean \\{near}? \\? lists the commands")),
        None => error.with_hint("\\? lists the commands"),
    }
}

/// The name a typing error away, if any.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|known| (distance(&name.to_lowercase(), known), known))
        .filter(|(d, known)| *d <= 1 + known.chars().count() / 4)
        .min_by_key(|(d, _)| *d)
        .map(|(_, known)| known)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut last = i + 1;
        let mut next = vec![last];
        for (y, pair) in b.iter().zip(row.windows(2)) {
            let &[diagonal, above] = pair else { continue };
            last = (above + 1).min(last + 1).min(diagonal + usize::from(x != *y));
            next.push(last);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// `on`, `off` and their like.
pub fn switch(word: &str) -> Result<bool> {
    match word.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Ok(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Ok(false),
        _ => Err(usage(format!("{word:?} is neither on nor off"))),
    }
}

/// An error of how a command is written.
pub fn usage(message: impl Into<String>) -> Error {
    Error::invalid(message).with_code("Usage")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::shell::language::Language;

    #[test]
    fn names_are_unique_and_every_command_says_what_it_does() {
        let mut seen = BTreeSet::new();
        for command in all() {
            for language in [Language::En, Language::Zh] {
                assert!(!command.about.of(language).is_empty());
                // one says as much as the other
                assert_eq!(command.detail.of(language).is_empty(), command.detail == Text::NONE);
            }
            assert!(!command.names.is_empty());
            for name in command.names {
                assert!(seen.insert(*name), "\\{name} is there twice");
            }
        }
        for promised in [
            "?", "q", "l", "dt", "d", "d+", "ds", "dp", "db", "df", "dtag", "dbr", "opts", "schema", "pin", "unpin",
            "pins", "counts", "files", "explain", "format", "timing", "more", "o", "once", "set", "unset", "gset",
            "if", "elif", "else", "endif", "assert", "i", "watch", "pager", "null", "x", "e", "show", "history",
            "exit", "g", "gx", "G", "param",
        ] {
            assert!(seen.contains(promised), "\\{promised}");
        }
        assert!(!seen.contains("!"));
    }

    #[test]
    fn unknown_command_names_the_nearest() {
        let error = unknown("cuonts");
        assert_eq!(error.hint(), Some("did you mean \\counts? \\? lists the commands"));
        assert_eq!(unknown("zzzzzzz").hint(), Some("\\? lists the commands"));
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
