//! `\diff` and `\keys`: what became of the rows that readers get, between two states or by one commit.

use futures::future::{FutureExt, LocalBoxFuture};

use super::listings::literal;
use super::options::{Options, number};
use super::{Argument, Call, Command, Task, usage};
use crate::error::{Error, Result};
use crate::shell::execute::Show;
use crate::shell::language::{both, told};
use crate::shell::state::Shell;

/// These.
pub const COMMANDS: &[&Command] = &[&DIFF, &KEYS];

const DIFF: Command = Command {
    names: &["diff"],
    usage: "table from [to] [--where condition] [--columns a,b] [--partitions dt=…] [--attribute]",
    task: Task::Prove,
    about: both(
        "rows that differ between two states of a table; exit code 3 when some do",
        "一张表两个状态之间有差异的行；有差异时退出码 3",
    ),
    detail: both(
        "\\diff dwd_pay_success 4 6\n\\diff dwd_pay_success eod-0415   to the newest snapshot\n\
         \\diff dwd_pay_success 4 6 --where 'amount > 100' --attribute   with the commit of each difference\n\
         a state is a snapshot, a tag, a branch; from may also be another table",
        "\\diff dwd_pay_success 4 6\n\\diff dwd_pay_success eod-0415   与最新快照比较\n\
         \\diff dwd_pay_success 4 6 --where 'amount > 100' --attribute   附上造成每处差异的提交\n\
         状态可以是快照、标签、分支；from 也可以是另一张表",
    ),
    argument: Argument::Version,
    run: diff,
};

const KEYS: Command = Command {
    names: &["keys"],
    usage: "table snapshot [--where condition] [--columns a,b] [--partitions dt=…]",
    task: Task::Prove,
    about: both(
        "keys that one commit brought, changed or removed; none of a compaction",
        "某次提交带来、改变或删除的键；合并提交应当没有",
    ),
    detail: both(
        "\\keys dwd_pay_success 6\nthe net effect on final rows; one of a COMPACT snapshot is a fault (D-16)",
        "\\keys dwd_pay_success 6\n对最终行的净影响；COMPACT 快照若有结果即为异常（D-16）",
    ),
    argument: Argument::Version,
    run: keys,
};

const VALUED: &[&str] = &["--where", "--columns", "--partitions"];

/// The arguments that both functions have.
fn compared(options: &Options) -> String {
    let argument = |name: &str| {
        let value = options.last(&format!("--{name}")).map(literal);
        value.map(|value| format!(", {name} => {value}")).unwrap_or_default()
    };
    [argument("where"), argument("columns"), argument("partitions")].concat()
}

/// A state: the number of a snapshot, or a name.
fn state(word: &str) -> String {
    if word.parse::<i64>().is_ok() { word.to_string() } else { literal(word) }
}

fn diff(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let options = Options::read(shell, &call, VALUED, &["--attribute"])?;
        let (table, from, to) = match options.words.as_slice() {
            [table, from] => (table, from, None),
            [table, from, to] => (table, from, Some(to)),
            _ => return Err(usage("write \\diff table from [to]")),
        };
        let mut sql = format!("SELECT * FROM paimon_diff({}, from => {}", literal(table), state(from));
        if let Some(to) = to {
            sql += &format!(", to => {}", state(to));
        }
        sql += &compared(&options);
        if options.has("--attribute") {
            sql += ", attribute => true";
        }
        let rows = shell.counted(&(sql + ")"), Show::default()).await?;
        if rows == 0 {
            let same = told!(shell.settings.language, "nothing differs", "没有差异");
            return shell.say(&[same]);
        }
        let (number, ends) = if rows == 1 { ("one row".to_string(), "s") } else { (format!("{rows} rows"), "") };
        Err(Error::invalid(format!("{number} differ{ends}")).with_code("Different").with_context("table", table))
    }
    .boxed_local()
}

fn keys(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let options = Options::read(shell, &call, VALUED, &[])?;
        let [table, snapshot] = options.words.as_slice() else { return Err(usage("write \\keys table snapshot")) };
        let sql = format!(
            "SELECT * FROM paimon_commit_keys({}, snapshot => {}{})",
            literal(table),
            number(snapshot)?,
            compared(&options)
        );
        shell.statement(&sql, Show::default()).await
    }
    .boxed_local()
}
