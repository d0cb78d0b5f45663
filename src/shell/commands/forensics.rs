//! What commits did, whether one landed, and what is wrong in a table's history.

use arrow::array::{Array, AsArray, RecordBatch};
use futures::future::{FutureExt, LocalBoxFuture};

use super::listings::literal;
use super::options::{Options, interval, number};
use super::{Argument, Call, Command, Task, unquoted, usage};
use crate::error::{Error, ErrorKind, Result};
use crate::shell::execute::{Answer, Collected, Show};
use crate::shell::language::{Text, both, told};
use crate::shell::names::system_table;
use crate::shell::state::Shell;

/// Rows that are kept to look at: nobody has more commits or findings.
const ROWS: usize = 10_000_000;

/// These.
pub const COMMANDS: &[&Command] = &[&COMMITS, &COMMITTED, &CHECK, &CONFLICTS, &ORPHANS, &RATE, &RETENTION, &READS];

const COMMITS: Command = Command {
    names: &["commits"],
    usage: "table [--user name]",
    task: Task::Prove,
    about: both("commits: who, which, when, files and rows", "提交：谁、哪一次、何时、文件与行数"),
    detail: both(
        "\\commits dwd_pay_success\n\\commits dwd_pay_success --user flink-cdc-pay\n\
         a line for each run: the snapshots that one user published in a row under one identifier",
        "\\commits dwd_pay_success\n\\commits dwd_pay_success --user flink-cdc-pay\n\
         每行是一次提交：同一提交者以同一标识连续发布的快照",
    ),
    argument: Argument::Table,
    run: |shell, call| {
        async move {
            let (words, user) = with_option(shell, &call, "--user")?;
            let [table] = words.as_slice() else { return Err(usage("write \\commits table [--user name]")) };
            let filter = user.map(|user| format!(" WHERE commit_user = {}", literal(&user))).unwrap_or_default();
            let sql = format!(
                "SELECT first_snapshot AS \"from\", last_snapshot AS \"to\", first_time AS time, commit_user AS user, \
                 commit_identifier AS identifier, append_snapshots AS append, compact_snapshots AS compact, \
                 overwrite_snapshots AS overwrite, files_added, rows_added, files_deleted, rows_deleted, units, gap_ms, \
                 kept_as FROM {}{filter} ORDER BY first_snapshot",
                system_table(table, "commits")?
            );
            shell.statement(&sql, Show { keep: Some("user"), commits: true, ..Show::LISTING }).await
        }
        .boxed_local()
    },
};

const COMMITTED: Command = Command {
    names: &["committed", "lookup"],
    usage: "table user identifier [--since snapshot]",
    task: Task::Prove,
    about: both(
        "did a commit land? exit code 0: yes, 6: no, or superseded, 7: it cannot be said",
        "某次提交落地了吗？退出码 0：是，6：否或已被更新的标识取代，7：无法断定",
    ),
    detail: both(
        "\\committed dwd_pay_success spark-fix-7 1\n\\committed dwd_pay_success spark-fix-7 batch --since 4711\n\
         --since: a snapshot that was there before the commit was first tried; NOT_COMMITTED is never said without proof",
        "\\committed dwd_pay_success spark-fix-7 1\n\\committed dwd_pay_success spark-fix-7 batch --since 4711\n\
         --since：首次尝试提交之前就存在的快照；没有证据绝不说 NOT_COMMITTED",
    ),
    argument: Argument::Table,
    run: committed,
};

const CHECK: Command = Command {
    names: &["check", "doctor"],
    usage: "table [deep] [--from snapshot] [--to snapshot]",
    task: Task::Prove,
    about: both(
        "what is wrong in a table's history; exit code 1 when an error was found",
        "表的历史有何异常；发现错误时退出码 1",
    ),
    detail: both(
        "\\check dwd_pay_success\n\\check dwd_pay_success deep --from 100 --to 120\n\
         deep: keys in two places and compactions that changed rows (D-13, D-16), for which data files are read",
        "\\check dwd_pay_success\n\\check dwd_pay_success deep --from 100 --to 120\n\
         deep：键出现在两处、合并改变了行（D-13、D-16），需要读取数据文件",
    ),
    argument: Argument::Table,
    run: check,
};

const CONFLICTS: Command = Command {
    names: &["conflicts"],
    usage: "table [snapshot] [--since time] [--until time]",
    task: Task::Prove,
    about: both("commits that met: races, overlaps, overwrites", "相互竞争的提交：抢先、重叠、覆盖"),
    detail: both(
        "\\conflicts dwd_pay_success 102\n\\conflicts dwd_pay_success --since '2026-04-16 09:00' --until '2026-04-16 10:00'\n\
         base: what the first attempt and the last one stood on; each item with how sure it is",
        "\\conflicts dwd_pay_success 102\n\\conflicts dwd_pay_success --since '2026-04-16 09:00' --until '2026-04-16 10:00'\n\
         base：首次和最后一次尝试所依据的快照；每一项都附可信程度",
    ),
    argument: Argument::Version,
    run: |shell, call| {
        async move {
            let options = Options::read(shell, &call, &["--since", "--until"], &[])?;
            let (table, mut filter) = match options.words.as_slice() {
                [table] => (table, String::new()),
                [table, snapshot] => (table, format!(", snapshot => {}", number(snapshot)?)),
                _ => return Err(usage("write \\conflicts table [snapshot] [--since time] [--until time]")),
            };
            for name in ["since", "until"] {
                if let Some(time) = options.last(&format!("--{name}")) {
                    filter += &format!(", {name} => {}", literal(time));
                }
            }
            let sql = format!(
                "SELECT snapshot_id AS id, commit_user AS user, commit_identifier AS identifier, commit_kind AS kind, \
                 opponent_snapshot_id AS opponent, opponent_user, opponent_identifier, relation, \
                 concat(first_base, ' (', first_base_confidence, ')') AS first_base, \
                 concat(final_base, ' (', final_base_confidence, ')') AS final_base, \
                 concat(latest, ' (', latest_confidence, ')') AS latest, \
                 CASE WHEN attempts IS NOT NULL THEN concat(attempts, ' (', attempts_confidence, ')') END AS attempts, \
                 units_common AS units, sequences, opponent_sequences, recon_reads, verdict, confidence \
                 FROM paimon_conflicts({}{filter}) ORDER BY snapshot_id, opponent_snapshot_id",
                literal(table)
            );
            shell.statement(&sql, Show::LISTING).await
        }
        .boxed_local()
    },
};

const ORPHANS: Command = Command {
    names: &["orphans"],
    usage: "table",
    task: Task::Prove,
    about: both(
        "files that nothing kept names, as evidence; nothing is deleted",
        "无人引用的文件（只作证据，绝不删除）",
    ),
    detail: Text::NONE,
    argument: Argument::Table,
    run: |shell, call| {
        async move {
            let words = call.words(&shell.variables)?;
            let words: Vec<&String> = words.iter().filter(|word| *word != "--list").collect();
            let [table] = words.as_slice() else { return Err(usage("write \\orphans table")) };
            let sql = format!(
                "SELECT class, kind, unit, split_part(file_path, '/', -1) AS file, file_size_in_bytes AS bytes, \
                 modified_time, commit_user AS user FROM {} ORDER BY modified_time, file",
                system_table(table, "unreferenced_files")?
            );
            shell.statement(&sql, Show::LISTING).await
        }
        .boxed_local()
    },
};

const RATE: Command = Command {
    names: &["rate"],
    usage: "table [--window 1h]",
    task: Task::Prove,
    about: both("commits by minute, or by another window, and user", "按分钟（或指定窗口）和提交者统计提交"),
    detail: Text::NONE,
    argument: Argument::Table,
    run: |shell, call| {
        async move {
            let options = Options::read(shell, &call, &["--window"], &[])?;
            let [table] = options.words.as_slice() else { return Err(usage("write \\rate table [--window 1h]")) };
            let window = interval(options.last("--window").unwrap_or("1m"))?;
            let sql = format!(
                "SELECT * FROM paimon_commit_rate({}, window => {window}) ORDER BY window_start, commit_user",
                literal(table)
            );
            shell.statement(&sql, Show::LISTING).await
        }
        .boxed_local()
    },
};

const RETENTION: Command = Command {
    names: &["retention"],
    usage: "table",
    task: Task::Prove,
    about: both("until when snapshots are kept, and what protects them", "快照保留到何时，由什么保护"),
    detail: Text::NONE,
    argument: Argument::Table,
    run: |shell, call| {
        async move {
            let words = call.words(&shell.variables)?;
            let [table] = words.as_slice() else { return Err(usage("write \\retention table")) };
            let table = system_table(table, "retention")?;
            shell.statement(&format!("SELECT * FROM {table} ORDER BY snapshot_id, commit_time"), Show::LISTING).await
        }
        .boxed_local()
    },
};

const READS: Command = Command {
    names: &["reads"],
    usage: "[table]",
    task: Task::Prove,
    about: both("what statements read, and when: the read journal", "语句在何时读取了什么：读取日志"),
    detail: both(
        "\\reads\n\\reads pay.dwd_pay_success\nof all sessions that keep the same journal; LAKEPIN_JOURNAL names its file, empty: none is \
         kept. The text of statements is not in it",
        "\\reads\n\\reads pay.dwd_pay_success\n使用同一日志的所有会话；LAKEPIN_JOURNAL 指定文件，为空则不记录。不含语句文本",
    ),
    argument: Argument::Table,
    run: |shell, call| {
        async move {
            let words = call.words(&shell.variables)?;
            let filter = match words.as_slice() {
                [] => String::new(),
                [table] => {
                    let named = if table.contains('.') { table.clone() } else { format!("{}.{table}", shell.session.database()) };
                    format!(" WHERE table_name = {}", literal(&named))
                }
                _ => return Err(usage("write \\reads [table]")),
            };
            let sql = format!(
                "SELECT time, session, statement, outcome, rows, duration_ms AS ms, table_name AS table, snapshot_id AS id, \
                 commit_user AS user, commit_identifier AS identifier, watermark FROM recon.read_journal{filter} ORDER BY time"
            );
            shell.statement(&sql, Show::LISTING).await
        }
        .boxed_local()
    },
};

/// The words without an option, and its value.
fn with_option(shell: &Shell, call: &Call, option: &str) -> Result<(Vec<String>, Option<String>)> {
    let mut words = call.words(&shell.variables)?;
    let mut value = None;
    if let Some(at) = words.iter().position(|word| word == option) {
        words.remove(at);
        if at >= words.len() {
            return Err(usage(format!("{option} stands without its value")));
        }
        value = Some(unquoted(&words.remove(at)));
    }
    Ok((words, value))
}

/// Shows what was read, and gives it back.
async fn shown(shell: &mut Shell, sql: &str) -> Result<Vec<RecordBatch>> {
    let Collected { schema, batches, pins, notices, .. } = shell.collect_sql(sql, ROWS).await?;
    let mut answer = Answer::of_batches(schema, batches.clone())?;
    answer.pins = pins;
    answer.notices = notices;
    shell.present(answer, Show { cap: false, ..Show::default() }).await?;
    Ok(batches)
}

/// Cells of a text column.
fn texts(batches: &[RecordBatch], column: &str) -> Vec<String> {
    let of = |batch: &RecordBatch| -> Vec<String> {
        let Some(array) = batch.column_by_name(column) else { return Vec::new() };
        let Some(array) = array.as_string_opt::<i32>() else { return Vec::new() };
        (0..array.len()).map(|row| array.value(row).to_string()).collect()
    };
    batches.iter().flat_map(of).collect()
}

fn committed(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let (words, since) = with_option(shell, &call, "--since")?;
        let [table, user, identifier] = words.as_slice() else {
            return Err(usage("write \\committed table user identifier [--since snapshot]"));
        };
        let (user, identifier) = (unquoted(user), unquoted(identifier));
        let since = since.map(|since| number(&since)).transpose()?.map(|id| format!(", since => {id}"));
        let sql = format!(
            "SELECT * FROM paimon_lookup_commit({}, {}, {}{})",
            literal(table),
            literal(&user),
            literal(&identifier),
            since.unwrap_or_default()
        );
        let rows = shown(shell, &sql).await?;
        let (status, reason) = (texts(&rows, "status"), texts(&rows, "reason"));
        let (Some(status), Some(reason)) = (status.first(), reason.first()) else {
            return Err(Error::internal("looking up a commit gave no answer"));
        };
        let code = match status.as_str() {
            "COMMITTED" => return Ok(()),
            "NOT_COMMITTED" => "NotCommitted",
            "SUPERSEDED" => "Superseded",
            _ => "CommitUnknown",
        };
        Err(Error::new(ErrorKind::NotFound, format!("commit ('{user}', {identifier}): {status}: {reason}"))
            .with_code(code)
            .with_context("table", table))
    }
    .boxed_local()
}

fn check(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let options = Options::read(shell, &call, &["--from", "--to"], &["--deep"])?;
        let (table, deep) = match options.words.as_slice() {
            [table] => (table, options.has("--deep")),
            [table, word] if word == "deep" => (table, true),
            _ => return Err(usage("write \\check table [deep] [--from snapshot] [--to snapshot]")),
        };
        let mut sql = format!(
            "SELECT detector, severity, snapshots, users, unit, explanation, evidence, confidence \
             FROM paimon_anomalies({}",
            literal(table)
        );
        for name in ["from", "to"] {
            if let Some(id) = options.last(&format!("--{name}")) {
                sql += &format!(", {name} => {}", number(id)?);
            }
        }
        sql += if deep { ", deep => true)" } else { ")" };
        let rows = shown(shell, &sql).await?;
        let unchecked = texts(&rows, "evidence").iter().filter(|text| text.contains(": not checked, because ")).count();
        let severities = texts(&rows, "severity");
        let errors = severities.iter().filter(|severity| *severity == "error").count();
        let language = shell.settings.language;
        if errors == 0 {
            let others = severities.len() - unchecked;
            let mut lines = vec![told!(
                language,
                "no error found, {others} other findings",
                "未发现错误，其他发现 {others} 条",
                others = others
            )];
            if unchecked > 0 {
                lines.push(told!(
                    language,
                    "not all was checked: {unchecked} times a detector could not look",
                    "检查不完整：有 {unchecked} 处检测无法进行",
                    unchecked = unchecked
                ));
            }
            return shell.say(&lines);
        }
        Err(Error::corrupt(format!("{errors} of {} findings are errors", severities.len()))
            .with_code("AnomaliesFound")
            .with_context("table", table)
            .with_hint(
                "where a commit's identity is broken (D-1, D-4, D-7, D-18) stop the writers and clean nothing up",
            ))
    }
    .boxed_local()
}
