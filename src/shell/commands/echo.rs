//! `\echo`.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task};
use crate::error::{Error, Result};
use crate::shell::language::{Text, both};
use crate::shell::state::Shell;

/// `\echo`
pub const ECHO: Command = Command {
    names: &["echo"],
    usage: "text",
    task: Task::Run,
    about: both("print a line, variables replaced", "输出一行，替换变量"),
    detail: Text::NONE,
    argument: Argument::None,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        use std::io::Write as _;
        let line = call.words(&shell.variables)?.join(" ");
        let written = match &mut shell.output {
            Some(file) => writeln!(file, "{line}"),
            None => writeln!(std::io::stdout(), "{line}"),
        };
        written.map_err(|e| Error::unavailable(format!("cannot write: {e}")).with_code("Output"))
    }
    .boxed_local()
}
