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
        let none = both("no error so far\n", "还没有出过错\n").of(shell.settings.language);
        eprint(shell.last_error.as_deref().unwrap_or(none));
        Ok(())
    }
    .boxed_local()
}
