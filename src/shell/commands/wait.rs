//! `\wait` and `\lag`: gates on the snapshots of a table, and how far it is behind one.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use futures::future::{FutureExt, LocalBoxFuture};

use super::listings::literal;
use super::options::{Options, interval, number};
use super::{Argument, Call, Command, Task, usage};
use crate::error::{Error, Result};
use crate::shell::execute::Show;
use crate::shell::language::{Text, both};
use crate::shell::names::system_table;
use crate::shell::state::Shell;

/// These.
pub const COMMANDS: &[&Command] = &[&WAIT, &LAG];

const WAIT: Command = Command {
    names: &["wait"],
    usage: "table[,table] [--watermark time] [--commit user:id] [--snapshot n] [--tag name] [--query select] [--timeout 5m] \
            [--poll 2s] [--pin] [--print-pin]",
    task: Task::Pin,
    about: both(
        "wait until a snapshot satisfies all conditions; exit code 5 when none came in time",
        "等到有快照满足全部条件；超时退出码 5",
    ),
    detail: both(
        "\\wait dwd_pay_success --watermark '2026-04-16 10:00' --timeout 5m --pin\n\
         \\wait dwd_pay_success --commit flink-cdc-pay:120 --print-pin\n\
         \\wait dwd_pay_success --query 'select max(pay_time) >= timestamp ''2026-04-16 10:00'' from dwd_pay_success'\n\
         the oldest snapshot that satisfies them is the answer, so the same gate gives the same one again;\n\
         --print-pin prints db.t@v4711 alone, a line for each table, for scripts; without --timeout it waits ten minutes",
        "\\wait dwd_pay_success --watermark '2026-04-16 10:00' --timeout 5m --pin\n\
         \\wait dwd_pay_success --commit flink-cdc-pay:120 --print-pin\n\
         \\wait dwd_pay_success --query 'select max(pay_time) >= timestamp ''2026-04-16 10:00'' from dwd_pay_success'\n\
         返回满足条件的最旧快照，因此同样的条件总得到同一个快照；\n\
         --print-pin 只输出 db.t@v4711（每张表一行），供脚本使用；不写 --timeout 时等十分钟",
    ),
    argument: Argument::Table,
    run: wait,
};

const LAG: Command = Command {
    names: &["lag"],
    usage: "table [--checkpoint n]",
    task: Task::Prove,
    about: both(
        "how far each user of a table has come: last commit, identifier, watermark",
        "各提交者进展到哪里：最后提交、标识、水位线",
    ),
    detail: Text::NONE,
    argument: Argument::Table,
    run: lag,
};

fn wait(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let valued = ["--watermark", "--commit", "--snapshot", "--tag", "--query", "--timeout", "--poll"];
        let options = Options::read(shell, &call, &valued, &["--pin", "--print-pin"])?;
        let [table] = options.words.as_slice() else { return Err(usage("write \\wait table --watermark '…'")) };
        let mut conditions = Vec::new();
        for watermark in options.all("--watermark") {
            // a number is of milliseconds; a time is of the session's zone unless it says its own
            conditions.push(format!("WATERMARK >= {}", literal(watermark)));
        }
        for commit in options.all("--commit") {
            let (user, identifier) = commit.rsplit_once(':').ok_or_else(|| usage("--commit takes user:identifier"))?;
            conditions.push(format!("COMMIT ({}, {})", literal(user), literal(identifier)));
        }
        for id in options.all("--snapshot") {
            conditions.push(format!("SNAPSHOT >= {}", number(id)?));
        }
        for tag in options.all("--tag") {
            conditions.push(format!("TAG {}", literal(tag)));
        }
        for query in options.all("--query") {
            conditions.push(format!("QUERY ({query})"));
        }
        if conditions.is_empty() {
            return Err(usage("for what? --watermark, --commit, --snapshot, --tag or --query"));
        }
        let timeout = interval(options.last("--timeout").unwrap_or("10m"))?;
        let poll = match options.last("--poll") {
            Some(poll) => format!(" POLL {}", interval(poll)?),
            None => String::new(),
        };
        let pin = if options.has("--pin") { " PIN" } else { "" };
        let sql = format!("WAIT FOR TABLE {table} UNTIL {} TIMEOUT {timeout}{poll}{pin}", conditions.join(" AND "));
        if !options.has("--print-pin") {
            return shell.statement(&sql, Show::LISTING).await;
        }
        let answer = shell.collect_sql(&sql, TABLES).await?;
        let lines =
            pins(&answer.batches).ok_or_else(|| Error::internal("a gate gave another answer than its tables"))?;
        shell.print(&lines)
    }
    .boxed_local()
}

/// Tables of one gate: nobody waits for more.
const TABLES: usize = 10_000;

/// `db.t@v4711`, a line for each table.
fn pins(batches: &[RecordBatch]) -> Option<String> {
    let mut lines = String::new();
    for batch in batches {
        let names = batch.column_by_name("table")?.as_string_opt::<i32>()?;
        let ids = batch.column_by_name("snapshot_id")?.as_primitive_opt::<Int64Type>()?;
        for (name, id) in names.iter().zip(ids) {
            lines.push_str(&format!("{}@v{}\n", name?, id?));
        }
    }
    Some(lines).filter(|lines| !lines.is_empty())
}

fn lag(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let options = Options::read(shell, &call, &["--checkpoint"], &[])?;
        let [table] = options.words.as_slice() else { return Err(usage("write \\lag table [--checkpoint n]")) };
        let behind = match options.last("--checkpoint") {
            // batch jobs have no checkpoints
            Some(checkpoint) => format!(
                ", CASE WHEN max(commit_identifier) < {} THEN {} - max(commit_identifier) END AS checkpoints_behind",
                i64::MAX,
                number(checkpoint)?
            ),
            None => String::new(),
        };
        let sql = format!(
            "SELECT commit_user AS user, max(last_snapshot) AS snapshot, max(commit_identifier) AS identifier, \
             max(last_time) AS last_commit, max(watermark_after) AS watermark_ms, count(*) AS commits{behind} \
             FROM {} GROUP BY commit_user ORDER BY snapshot DESC",
            system_table(table, "commits")?
        );
        shell.statement(&sql, Show::LISTING).await
    }
    .boxed_local()
}
