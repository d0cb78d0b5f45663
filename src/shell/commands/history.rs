//! `\history`.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, usage};
use crate::error::Result;
use crate::shell::language::both;
use crate::shell::render::width::escaped;
use crate::shell::state::Shell;

/// `\history`
pub const HISTORY: Command = Command {
    names: &["history"],
    usage: "[n]",
    task: Task::Shell,
    about: both("the last entries of the history", "最近的历史记录"),
    detail: both(
        "an entry that begins with a space is not kept; secrets are removed before it is",
        "以空格开头的不保存；保存之前先去掉密码等机密",
    ),
    argument: Argument::None,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let count = match call.words(&shell.variables)?.as_slice() {
            [] => 20,
            [n] => n.parse().map_err(|_| usage(format!("{n:?} is no number")))?,
            _ => return Err(usage("write \\history [n]")),
        };
        let from = shell.history.len().saturating_sub(count);
        let lines: Vec<String> = shell
            .history
            .iter()
            .enumerate()
            .skip(from)
            .map(|(i, entry)| {
                let lines: Vec<String> = entry.lines().map(escaped).collect();
                format!("{:>5}  {}", i + 1, lines.join("\n       "))
            })
            .collect();
        shell.say(&lines)
    }
    .boxed_local()
}
