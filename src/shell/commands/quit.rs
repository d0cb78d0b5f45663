//! `\q`.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, usage};
use crate::error::Result;
use crate::shell::exit;
use crate::shell::language::{Text, both};
use crate::shell::state::Shell;

/// `\q`
pub const QUIT: Command = Command {
    names: &["q", "quit", "exit"],
    usage: "[code]",
    task: Task::Shell,
    about: both("leave, with an exit code if you like; so does Ctrl-D", "退出，可给退出码；Ctrl-D 也可以"),
    detail: Text::NONE,
    argument: Argument::None,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let code = match call.words(&shell.variables)?.as_slice() {
            // a script that went on after an error still says so
            [] if shell.interactive => exit::DONE,
            [] => shell.failed,
            [code] => code.parse().map_err(|_| usage(format!("{code:?} is no exit code: 0 to 255")))?,
            _ => return Err(usage("write \\q [code]")),
        };
        shell.quit = Some(code);
        Ok(())
    }
    .boxed_local()
}
