//! `\connect`: another warehouse.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, file_name, usage};
use crate::error::Result;
use crate::shell::language::{both, told};
use crate::shell::program::tell_no_database;
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
    detail: both(
        "a database of the same name stays the current one; else it is the only one, or default",
        "同名的库仍是当前库；否则为唯一的库，或 default",
    ),
    argument: Argument::File,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        match call.words(&shell.variables)?.as_slice() {
            [url] => {
                shell.connect(&file_name(url)).await?;
                let (language, session) = (shell.settings.language, &shell.session);
                let (url, database) = (session.warehouse().url(), session.database());
                shell.say(&[told!(
                    language,
                    "connected to {url}, database {database}",
                    "已连接 {url}，库 {database}",
                    url = url,
                    database = database
                )])?;
                if shell.settings.quiet || shell.settings.json_meta {
                    return Ok(());
                }
                tell_no_database(session, language).await
            }
            _ => Err(usage("write \\connect warehouse")),
        }
    }
    .boxed_local()
}
