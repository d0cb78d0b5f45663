//! `\connect`: another warehouse.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, file_name, usage};
use crate::error::Result;
use crate::shell::language::{Text, both};
use crate::shell::state::Shell;

/// `\connect`
pub const CONNECT: Command = Command {
    names: &["connect", "c", "open"],
    usage: "warehouse",
    task: Task::Shell,
    about: both(
        "open another warehouse; pins and settings of the session end",
        "打开另一个仓库；会话的固定与设置随之结束",
    ),
    detail: Text::NONE,
    argument: Argument::File,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        match call.words(&shell.variables)?.as_slice() {
            [url] => shell.connect(&file_name(url)).await,
            _ => Err(usage("write \\connect warehouse")),
        }
    }
    .boxed_local()
}
