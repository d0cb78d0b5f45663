//! `\g`, `\gx`, `\G`: the statement before it, or the last one again, to the screen, a file or a program.

use futures::future::{FutureExt, LocalBoxFuture};

use super::output::open;
use super::{Argument, Call, Command, Task};
use crate::error::Result;
use crate::shell::execute::Show;
use crate::shell::language::{both, same};
use crate::shell::render::Expanded;
use crate::shell::state::Shell;

/// The three.
pub const COMMANDS: &[&Command] = &[
    &Command {
        names: &["g"],
        usage: "[file | |program]",
        task: Task::Run,
        about: both(
            "run the statement before it, or the last one again; to a file or program if named",
            "执行前面的语句，或重跑上一条；可写到文件或程序",
        ),
        detail: same("select 1 \\g\nselect * from t \\g t.csv\nselect * from t \\g |sort\n\\g"),
        argument: Argument::File,
        run: grid,
    },
    &Command {
        names: &["gx", "G"],
        usage: "[file | |program]",
        task: Task::Run,
        about: both("as \\g, as records, whatever the format", "同 \\g，逐条竖排显示，不管格式"),
        detail: same("select * from t limit 1 \\G\nselect * from t; \\gx"),
        argument: Argument::File,
        run: records,
    },
];

fn grid(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    run(shell, call, Show::default())
}

fn records(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    run(shell, call, Show { expanded: Some(Expanded::On), ..Show::default() })
}

fn run(shell: &mut Shell, call: Call, show: Show) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        // a semicolon after it is habit
        let target = call.rest.trim_end_matches(';').trim();
        if !target.is_empty() {
            shell.once = Some(open(shell, target)?);
        }
        shell.again(show).await
    }
    .boxed_local()
}
