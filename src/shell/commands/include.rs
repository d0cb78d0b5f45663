//! `\i`: the statements of a file.

use std::path::PathBuf;

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, file_name, usage};
use crate::error::Result;
use crate::shell::language::{Text, both};
use crate::shell::state::Shell;

/// `\i`
pub const INCLUDE: Command = Command {
    names: &["i", "read"],
    usage: "file",
    task: Task::Run,
    about: both("run the statements and commands of a file", "执行文件里的语句和命令"),
    detail: Text::NONE,
    argument: Argument::File,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        match call.words(&shell.variables)?.as_slice() {
            [file] => shell.run_file(&PathBuf::from(file_name(file))).await,
            _ => Err(usage("write \\i file")),
        }
    }
    .boxed_local()
}
