//! `\e`: the last error with its causes.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task};
use crate::error::Result;
use crate::shell::language::{Text, both};
use crate::shell::report::eprint;
use crate::shell::state::Shell;

/// `\e`
pub const ERRORS: Command = Command {
    names: &["e", "errverbose"],
    usage: "",
    task: Task::Shell,
    about: both("the last error with its causes", "上一个错误及其原因"),
    detail: Text::NONE,
    argument: Argument::None,
    run,
};

fn run(shell: &mut Shell, _: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        eprint(shell.last_error.as_deref().unwrap_or("no error so far\n"));
        Ok(())
    }
    .boxed_local()
}
