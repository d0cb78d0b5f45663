//! `\o` and `\once`: results to a file that appears when it is whole, or to a program.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, file_name, usage};
use crate::error::Result;
use crate::shell::language::{both, told};
use crate::shell::output::Output;
use crate::shell::state::Shell;

/// The two.
pub const COMMANDS: &[&Command] = &[
    &Command {
        names: &["o", "output"],
        usage: "[file | |program]",
        task: Task::Display,
        about: both(
            "write results to a file or program; alone: back to the screen, and the file gets its name",
            "结果写到文件或程序；不带参数：回到屏幕，文件此时得名",
        ),
        detail: both(
            "\\o orders.csv\n\\o |grep P0091\nthe name says the format (csv, tsv, json, ndjson, md, arrow, parquet) unless one was chosen\n\
             what fails leaves the file again, unless --keep-partial",
            "\\o orders.csv\n\\o |grep P0091\n没有选过格式时按文件名（csv、tsv、json、ndjson、md、arrow、parquet）决定\n\
             失败的结果不留在文件里，除非 --keep-partial",
        ),
        argument: Argument::File,
        run: standing,
    },
    &Command {
        names: &["once"],
        usage: "file | |program",
        task: Task::Display,
        about: both("write the next result to a file or program", "下一个结果写到文件或程序"),
        detail: both(
            "\\once orders.csv\nselect * from orders;\n\\format csv\n\\once |sort -t, -k2\nselect * from orders;",
            "\\once orders.csv\nselect * from orders;\n\\format csv\n\\once |sort -t, -k2\nselect * from orders;",
        ),
        argument: Argument::File,
        run: once,
    },
];

/// The output of a line: `|` and a program with its arguments, or the name of a file.
pub fn open(shell: &Shell, line: &str) -> Result<Output> {
    let (keep_partial, warehouse) = (shell.settings.keep_partial, shell.session.warehouse());
    if line.starts_with('|') {
        return Output::open(line, keep_partial, warehouse);
    }
    match super::words(line, &shell.variables)?.as_slice() {
        [file] => Output::open(&file_name(file), keep_partial, warehouse),
        _ => Err(usage("name one file, quoted when it holds spaces, or write |program")),
    }
}

fn standing(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        if let Some(output) = shell.output.take() {
            let (program, name) = (output.is_program(), output.name().to_string());
            if output.holds_nothing() {
                shell.tell_unwritten(&output);
            } else {
                output.close()?;
                if !program {
                    shell.say(&[told!(shell.settings.language, "wrote {name}", "已写出 {name}", name = name)])?;
                }
            }
        }
        if !call.rest.trim().is_empty() {
            shell.output = Some(open(shell, call.rest.trim())?);
        }
        Ok(())
    }
    .boxed_local()
}

fn once(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        if call.rest.trim().is_empty() {
            return Err(usage("write \\once file or \\once |program"));
        }
        shell.once = Some(open(shell, call.rest.trim())?);
        Ok(())
    }
    .boxed_local()
}
