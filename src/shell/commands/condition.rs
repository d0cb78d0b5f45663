//! `\if`, `\elif`, `\else`, `\endif`.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, switch};
use crate::error::Result;
use crate::shell::language::{Text, both};
use crate::shell::state::Shell;

macro_rules! condition {
    ($name:expr, $usage:expr, $en:expr, $zh:expr) => {
        &Command {
            names: &[$name],
            usage: $usage,
            task: Task::Run,
            about: both($en, $zh),
            detail: Text::NONE,
            argument: Argument::None,
            run,
        }
    };
}

/// The four.
pub const COMMANDS: &[&Command] = &[
    condition!("if", "true | false | :variable", "run what follows only when it is true", "为真时才执行后面的内容"),
    condition!("elif", "true | false | :variable", "the next branch of \\if", "\\if 的下一个分支"),
    condition!("else", "", "the last branch of \\if", "\\if 的最后一个分支"),
    condition!("endif", "", "the end of \\if", "\\if 结束"),
];

/// Whether a command runs even in a branch that does not.
pub fn is_condition(command: &Command) -> bool {
    COMMANDS.iter().any(|known| known.names == command.names)
}

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        // whether it is true, when that matters; what cannot be read is not, and a branch begins all the same
        let holds = |asked: bool, shell: &Shell| match asked {
            true => switch(call.words(&shell.variables)?.first().map(String::as_str).unwrap_or_default()),
            false => Ok(false),
        };
        match call.name.as_str() {
            "if" => {
                let holds = holds(shell.conditions.active(), shell);
                // a condition nobody understands is false, so nothing runs by mistake
                shell.conditions.begin(*holds.as_ref().unwrap_or(&false));
                holds.map(drop)
            }
            "elif" => {
                let holds = holds(shell.conditions.asks(), shell);
                shell.conditions.next(Some(*holds.as_ref().unwrap_or(&false)))?;
                holds.map(drop)
            }
            "else" => shell.conditions.next(None),
            _ => shell.conditions.end(),
        }
    }
    .boxed_local()
}
