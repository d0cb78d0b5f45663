//! `\files`: what became of every file of a query.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task};
use crate::error::{Error, Result};
use crate::shell::execute::Show;
use crate::shell::state::Shell;

/// `\files`
pub const FILES: Command = Command {
    names: &["files"],
    usage: "[query]",
    task: Task::Prove,
    about: "files of a query, kept or dropped, and the rule that decided",
    detail: "\\files select * from t where dt = '2026-04-16'\nwithout a query: of the last one",
    argument: Argument::Sql,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let sql = query_or_last(shell, &call)?;
        let keep = shell.last_query.clone();
        let done = shell.statement(&format!("EXPLAIN FILES {sql}"), Show { cap: false, ..Show::default() }).await;
        shell.last_query = keep.or(Some(sql));
        done
    }
    .boxed_local()
}

/// The query of the line, else the last one.
pub fn query_or_last(shell: &Shell, call: &Call) -> Result<String> {
    match (call.sql(), &shell.last_query) {
        ("", Some(last)) => Ok(last.clone()),
        ("", None) => Err(Error::invalid("which query?").with_code("Usage")),
        (sql, _) => Ok(sql.to_string()),
    }
}
