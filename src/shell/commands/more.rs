//! `\more`: the rows a table left out, without running the query again.

use std::sync::Arc;

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, usage};
use crate::error::Result;
use crate::notice::NoticeKind;
use crate::shell::execute::{Answer, Show};
use crate::shell::language::{Text, both, told};
use crate::shell::state::Shell;

/// `\more`
pub const MORE: Command = Command {
    names: &["more"],
    usage: "",
    task: Task::Display,
    about: both("the rows the last table left out", "上一个结果没有显示的行"),
    detail: Text::NONE,
    argument: Argument::None,
    run,
};

fn run(shell: &mut Shell, _: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let Some(spool) = shell.spool.take() else { return Err(usage("the last result left no rows out")) };
        let mut answer = Answer::of_batches(Arc::clone(&spool.schema), spool.rest())?;
        answer.pins.clone_from(&spool.pins);
        if spool.kept() < spool.total() {
            let missing = spool.total() - spool.kept();
            let told = told!(
                shell.settings.language,
                "{n} more rows were not kept: write them to a file with \\once and run the query again",
                "另有 {n} 行没有保留：用 \\once 写到文件并重跑查询",
                n = missing
            );
            answer.notices.push(NoticeKind::Own(told).into());
        }
        let first = spool.shown() + 1;
        let done = shell.present(answer, Show { cap: false, first, ..Show::default() }).await;
        shell.spool = Some(spool);
        done
    }
    .boxed_local()
}
