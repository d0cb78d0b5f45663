//! `\echo`.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task};
use crate::error::{Error, Result};
use crate::shell::execute::Show;
use crate::shell::language::both;
use crate::shell::render::width::visible;
use crate::shell::report::eprint;
use crate::shell::state::Shell;

/// `\echo`
pub const ECHO: Command = Command {
    names: &["echo"],
    usage: "text",
    task: Task::Run,
    about: both("print a line, variables replaced", "输出一行，替换变量"),
    detail: both(
        "goes where results go; to standard error where those are csv, tsv, json or for programs",
        "写到结果所去之处；结果是 csv、tsv、json 等数据格式时写到标准错误",
    ),
    argument: Argument::None,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        use std::io::Write as _;
        let line = call.words(&shell.variables)?.join(" ");
        // where a program reads rows, a line of text would be one
        let format = shell.format_for(shell.output.as_ref(), &Show::default());
        if format.is_data() {
            eprint(&format!("{line}\n"));
            return Ok(());
        }
        let written = match &mut shell.output {
            Some(output) => return output.line(&line),
            None if shell.terminal.output => writeln!(std::io::stdout(), "{}", visible(&line)),
            None => writeln!(std::io::stdout(), "{line}"),
        };
        written.map_err(|e| Error::unavailable(format!("cannot write: {e}")).with_code("Output"))
    }
    .boxed_local()
}
