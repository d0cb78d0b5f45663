//! `\param`: values for `$name`.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, usage};
use crate::error::Result;
use crate::shell::language::both;
use crate::shell::state::Shell;

/// `\param`
pub const PARAMETER: Command = Command {
    names: &["param"],
    usage: "[name [value]]",
    task: Task::Run,
    about: both(
        "set the value of $name, or forget it; without arguments, list them",
        "设置 $name 的值，不带值则删除；不带参数则列出",
    ),
    detail: both(
        "\\param day 2026-04-16\nselect count(*) from t where dt = $day\n\
         \\param id 3\nselect * from t version as of $id\n\
         a number, true, false, null or '…' is what SQL takes it for, anything else a string; never more than a literal",
        "\\param day 2026-04-16\nselect count(*) from t where dt = $day\n\
         \\param id 3\nselect * from t version as of $id\n\
         数字、true、false、null、'…' 按 SQL 理解，其余都是字符串；只会是一个字面量",
    ),
    argument: Argument::None,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let rest = call.rest.trim();
        let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let name = name.trim_start_matches('$');
        if name.is_empty() {
            let lines: Vec<String> =
                shell.config.parameters.iter().map(|(name, value)| format!("${name} = {value}")).collect();
            return shell.say(&lines);
        }
        if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return Err(usage(format!("{name:?} cannot be the name of a parameter")));
        }
        let value = value.trim();
        if value.is_empty() {
            if shell.config.parameters.remove(name).is_none() {
                return Err(usage(format!("there is no parameter ${name}")));
            }
            shell.session.set_parameter(name, None);
            return Ok(());
        }
        shell.session.set_parameter(name, Some(value));
        shell.config.parameters.insert(name.to_string(), value.to_string());
        Ok(())
    }
    .boxed_local()
}
