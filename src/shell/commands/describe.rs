//! `\d`: the columns of a table; `\d+`: the statement that would make it.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, usage};
use crate::error::Result;
use crate::shell::execute::Show;
use crate::shell::language::{both, same};
use crate::shell::state::Shell;

/// `\d`
pub const DESCRIBE: Command = Command {
    names: &["d", "d+", "describe"],
    usage: "[table]",
    task: Task::Look,
    about: both(
        "columns of a table; \\d+ adds keys and options; without table, the tables",
        "表的列；\\d+ 加上主键和选项；不带表名则列出表",
    ),
    detail: same("\\d pay.dwd_pay_success\n\\d+ dwd_pay_success\n\\d dwd_pay_success@v3"),
    argument: Argument::Table,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let words = call.words(&shell.variables)?;
        match words.as_slice() {
            [] => shell.statement("SHOW TABLES", Show::LISTING).await,
            [table] => {
                let table = table.trim_end_matches(';');
                let more = call.name == "d+";
                // what follows reads the same and says so
                let show = Show { notes: !more, ..Show::LISTING };
                shell.statement(&format!("DESCRIBE {table}"), show).await?;
                if more {
                    shell.statement(&format!("SHOW CREATE TABLE {table}"), Show::LISTING).await?;
                }
                Ok(())
            }
            _ => Err(usage("write \\d table")),
        }
    }
    .boxed_local()
}
