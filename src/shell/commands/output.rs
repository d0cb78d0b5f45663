//! `\o` and `\once`: results to a file that appears when it is whole.

use std::path::Path;

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, unquoted, usage};
use crate::error::Result;
use crate::shell::output::OutputFile;
use crate::shell::state::Shell;

/// The two.
pub const COMMANDS: &[&Command] = &[
    &Command {
        names: &["o", "output"],
        usage: "[file]",
        task: Task::Display,
        about: "write results to a file; without file, back to the screen, and the file gets its name",
        detail: "",
        argument: Argument::File,
        run: output,
    },
    &Command {
        names: &["once"],
        usage: "file",
        task: Task::Display,
        about: "write the next result to a file",
        detail: "\\format csv\n\\once orders.csv\nselect * from orders;",
        argument: Argument::File,
        run: once,
    },
];

fn output(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let words = call.words(&shell.variables);
        if let Some(file) = shell.output.take() {
            let name = file.path().display().to_string();
            file.keep()?;
            shell.say(&[format!("wrote {name}")])?;
        }
        match words.as_slice() {
            [] => Ok(()),
            [file] => {
                shell.output = Some(OutputFile::create(Path::new(&unquoted(file)))?);
                Ok(())
            }
            _ => Err(usage("write \\o file")),
        }
    }
    .boxed_local()
}

fn once(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        match call.words(&shell.variables).as_slice() {
            [file] => {
                shell.once = Some(OutputFile::create(Path::new(&unquoted(file)))?);
                Ok(())
            }
            _ => Err(usage("write \\once file")),
        }
    }
    .boxed_local()
}
