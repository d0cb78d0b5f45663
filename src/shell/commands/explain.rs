//! `\explain`: the plan of a query.

use futures::future::{FutureExt, LocalBoxFuture};

use super::files::query_or_last;
use super::{Argument, Call, Command, Task};
use crate::error::Result;
use crate::shell::execute::Show;
use crate::shell::language::{Text, both};
use crate::shell::state::Shell;

/// `\explain`
pub const EXPLAIN: Command = Command {
    names: &["explain"],
    usage: "[analyze] [query]",
    task: Task::Prove,
    about: both(
        "the plan of a query, or of the last one; analyze runs it and measures",
        "查询（或上一条）的执行计划；analyze 会执行并计量",
    ),
    detail: Text::NONE,
    argument: Argument::Sql,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let first = call.rest.split_whitespace().next().unwrap_or_default().to_string();
        let (analyze, call) = if first.eq_ignore_ascii_case("analyze") {
            let rest = call.rest.get(first.len()..).unwrap_or_default().to_string();
            ("ANALYZE ", Call { rest, ..call })
        } else {
            ("", call)
        };
        let sql = query_or_last(shell, &call)?;
        let done = shell.statement(&format!("EXPLAIN {analyze}{sql}"), Show { cap: false, ..Show::default() }).await;
        shell.last_query.get_or_insert(sql);
        done
    }
    .boxed_local()
}
