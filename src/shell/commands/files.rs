//! `\files`: what became of every file of a query.

use std::sync::Arc;

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task};
use crate::error::{Error, Result};
use crate::shell::execute::{Answer, Show};
use crate::shell::state::Shell;

/// Files of one query, at most.
const FILES_SHOWN: usize = 1_000_000;
/// What fits a terminal; `EXPLAIN FILES` has the rest.
const COLUMNS: &[&str] = &["kept", "rule", "partition", "bucket", "level", "rows", "read", "file"];

/// `\files`
pub const FILES: Command = Command {
    names: &["files"],
    usage: "[query]",
    task: Task::Prove,
    about: "files of a query, kept or dropped, and the rule that decided",
    detail: "\\files select * from t where dt = '2026-04-16'\nwithout a query: of the last one\n\
             explain files … also gives keys, sequences, sections and sizes",
    argument: Argument::Sql,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let sql = query_or_last(shell, &call)?;
        let (schema, batches, pins) = shell.collect(&format!("EXPLAIN FILES {sql}"), FILES_SHOWN).await?;
        let columns: Vec<usize> = COLUMNS.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let shown = batches.iter().map(|batch| batch.project(&columns)).collect::<Result<Vec<_>, _>>()?;
        let mut answer = Answer::of_batches(Arc::new(schema.project(&columns)?), shown)?;
        answer.pins = pins;
        shell.present(answer, Show { cap: false, ..Show::default() }).await?;
        shell.last_query.get_or_insert(sql);
        Ok(())
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
