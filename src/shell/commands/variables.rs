//! `\set`, `\unset`, `\gset`.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, switch, usage};
use crate::error::{Error, Result};
use crate::export::value::text;
use crate::shell::execute::Collected;
use crate::shell::language::{Text, both, same, told};
use crate::shell::pager::notice_mark;
use crate::shell::report::eprint;
use crate::shell::state::{NULL, ROW_CAP, Shell};

/// The three.
pub const COMMANDS: &[&Command] = &[
    &Command {
        names: &["set"],
        usage: "[name [value]]",
        task: Task::Run,
        about: both(
            "set a variable for :name, :'name' and :\"name\"; without arguments, list them",
            "设置变量，用 :name、:'name'、:\"name\" 引用；不带参数则列出",
        ),
        detail: both(
            "\\set id 3\nselect * from t version as of :id\n\
             \\set autopin on    the first reading of a table pins it for the session\n\
             \\set rows 100, \\set cell_width 0, \\set ascii on, \\set null -: how tables look",
            "\\set id 3\nselect * from t version as of :id\n\
             \\set autopin on    第一次读到的快照在本会话固定\n\
             \\set rows 100、\\set cell_width 0、\\set ascii on、\\set null -：表格的样子",
        ),
        argument: Argument::Words(SETTINGS),
        run: set,
    },
    &Command {
        names: &["unset"],
        usage: "name",
        task: Task::Run,
        about: both("forget a variable; a setting is what it was without", "删除变量；设置项恢复默认"),
        detail: Text::NONE,
        argument: Argument::Words(SETTINGS),
        run: unset,
    },
    &Command {
        names: &["gset"],
        usage: "[prefix]",
        task: Task::Run,
        about: both(
            "run the statement before it and keep the columns of its one row as variables",
            "执行前面的语句，把唯一一行的各列存为变量",
        ),
        detail: same("select max(snapshot_id) as id from t$snapshots \\gset last_\n\\echo :last_id"),
        argument: Argument::None,
        run: gset,
    },
];

/// Variables that are settings of the shell.
const SETTINGS: &[&str] = &["autopin", "ascii", "rows", "cell_width", "null"];

/// Whether a setting of this name has a command of its own, and no variable.
fn is_command(name: &str) -> bool {
    ["format", "timing", "pager", "quiet", "timeout", "lang", "x"].contains(&name)
}

fn is_name(name: &str) -> bool {
    name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn set(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let words = call.words(&shell.variables)?;
        let Some((name, values)) = words.split_first() else {
            let lines: Vec<String> = shell.variables.iter().map(|(n, v)| format!("{n} = '{v}'")).collect();
            return shell.say(&lines);
        };
        if !is_name(name) {
            return Err(usage(format!("{name:?} cannot be the name of a variable")));
        }
        let value = values.join(" ");
        match name.as_str() {
            "autopin" => shell.settings.autopin = switch(&value)?,
            "ascii" => shell.settings.ascii = switch(&value)?,
            "rows" => {
                shell.settings.rows = match value.as_str() {
                    "all" | "0" => None,
                    number => Some(number.parse().map_err(|_| usage("write \\set rows 40 or \\set rows all"))?),
                };
            }
            // a bare name must not hide what is NULL
            "null" if values.is_empty() => return Err(usage("write \\set null TEXT, or '' for nothing at all")),
            "null" => shell.settings.null.clone_from(&value),
            "cell_width" => {
                shell.settings.cell_width = Some(value.parse().map_err(|_| usage("write \\set cell_width 60"))?);
            }
            _ => {}
        }
        shell.variables.insert(name.clone(), value);
        if is_command(name) {
            let language = shell.settings.language;
            eprint(&format!(
                "{}{}\n",
                notice_mark(language),
                told!(
                    language,
                    "this is the variable :{name}; the setting is that of \\{name}",
                    "这是变量 :{name}；设置用 \\{name}",
                    name = name
                )
            ));
        }
        Ok(())
    }
    .boxed_local()
}

fn unset(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        for name in call.words(&shell.variables)? {
            // a setting is what it is without being set
            let settings = &mut shell.settings;
            match name.as_str() {
                "autopin" => settings.autopin = false,
                "ascii" => settings.ascii = false,
                "rows" => settings.rows = Some(ROW_CAP),
                "cell_width" => settings.cell_width = None,
                "null" => settings.null = NULL.to_string(),
                _ => {}
            }
            let is_setting = SETTINGS.contains(&name.as_str());
            if shell.variables.remove(&name).is_none() && !is_setting {
                return Err(usage(format!("there is no variable {name}")));
            }
        }
        Ok(())
    }
    .boxed_local()
}

fn gset(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let prefix = call.words(&shell.variables)?.first().cloned().unwrap_or_default();
        let Some(sql) = shell.last_query.clone() else { return Err(usage("which statement?")) };
        let answer = shell.collect_sql(&sql, 1).await?;
        let Collected { schema, batches, .. } = &answer;
        let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else {
            return Err(Error::invalid("the statement answers no row").with_code("NoRow"));
        };
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            let name = format!("{prefix}{}", field.name());
            if !is_name(&name) {
                return Err(Error::invalid(format!("column {name:?} cannot be the name of a variable"))
                    .with_code("BadName")
                    .with_hint("give the column a name of letters, digits and _ in the statement: SELECT … AS n"));
            }
            let mut value = String::new();
            if text(column.as_ref(), 0, shell.times(), &mut value).map_err(|e| usage(e.to_string()))? {
                shell.variables.insert(name, value);
            } else {
                shell.variables.remove(&name);
            }
        }
        shell.tell_read(&answer)
    }
    .boxed_local()
}
