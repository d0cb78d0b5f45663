//! `\connect`: another warehouse.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, unquoted, usage};
use crate::error::Result;
use crate::shell::state::Shell;

/// `\connect`
pub const CONNECT: Command = Command {
    names: &["connect", "c", "open"],
    usage: "warehouse",
    task: Task::Shell,
    about: "open another warehouse; pins and settings of the session end",
    detail: "",
    argument: Argument::File,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        match call.words(&shell.variables).as_slice() {
            [url] => shell.connect(&unquoted(url)).await,
            _ => Err(usage("write \\connect warehouse")),
        }
    }
    .boxed_local()
}
