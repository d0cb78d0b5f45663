//! `\?`: the registry, read aloud.

use std::fmt::Write as _;

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, all, find, unknown};
use crate::error::Result;
use crate::shell::language::{Language, Text, both};
use crate::shell::render::width::width;
use crate::shell::state::Shell;

/// `\?`
pub const HELP: Command = Command {
    names: &["?", "h", "help"],
    usage: "[command | sql]",
    task: Task::Shell,
    about: both("this help; of one command; of what SQL can say here", "本帮助；某个命令的帮助；SQL 在此的扩展"),
    detail: Text::NONE,
    argument: Argument::Command,
    run,
};

const SQL: Text = both(
    "Time travel in SQL
  select … from t version as of 3 | 'tag'             an id; a string is a tag first
  select … from t timestamp as of '2026-04-16 10:00'  the snapshot at or before that time, session zone
  select … from t at (tag => 'x' | watermark => … | commit => ('user', 118))
  select … from t before (commit => ('user', 1))      the snapshot before a commit
  select … from t /*+ OPTIONS('scan.snapshot-id'='3') */
  select … from \"t@v3\" join t$branch_x …
  pin table t at (version => 3); show pins; unpin all;
System tables
  t$snapshots t$files t$partitions t$buckets t$tags t$branches t$schemas t$options t$manifests t$consumers …
  t$audit_log and t$binlog: changes; t$ro: compacted rows only
  t$commits t$commit_files t$commit_rate t$retention t$unreferenced_files t$row_accounting; recon.read_journal
Gates
  wait for table a, b until watermark >= timestamp '…' and commit ('user', 118) and snapshot >= 4 and tag 'x'
    and query (select …) timeout interval '5' minute poll interval '2' second pin
  pin tables a, b align on watermark timestamp '…' | on timestamp timestamp '…' | on identifier 118 user 'user'
Comparing with a source
  reconcile t at (version => 3) with (select … from …) on key (dt, id) compare (amount, status map ('PAID' => '2'))
    where … horizon … tolerance amount 0.01 limit 100 per class into differences
  reconcile … verdict     which layer is responsible, and what proves it
  reconcile t with count 503
Proving it
  paimon_row_accounting('t', level => 'unit', mode => 'exact', at => 3)
  paimon_key_history('t', key => ('2026-04-16', 'P1')) paimon_explain_key('t', key => …, expected => 'amount=5')
  paimon_commit_keys('t', snapshot => 6) paimon_diff('t', from => 4, to => 6) paimon_changes paimon_delta
  paimon_anomalies('t', deep => true) paimon_conflicts('t', since => '…', until => '…')
  paimon_lookup_commit('t', 'user', 118) paimon_commit_rate('t', window => interval '1' hour)
  paimon_compare(left => 't@v3', right => '…', key => 'dt, id') paimon_cache()
What was read
  explain …; explain files …; \\counts t
",
    "SQL 的时间旅行
  select … from t version as of 3 | 'tag'             快照编号；字符串先当标签
  select … from t timestamp as of '2026-04-16 10:00'  该时刻或之前最近的快照，按会话时区
  select … from t at (tag => 'x' | watermark => … | commit => ('user', 118))
  select … from t before (commit => ('user', 1))      某次提交之前的快照
  select … from t /*+ OPTIONS('scan.snapshot-id'='3') */
  select … from \"t@v3\" join t$branch_x …
  pin table t at (version => 3); show pins; unpin all;
系统表
  t$snapshots t$files t$partitions t$buckets t$tags t$branches t$schemas t$options t$manifests t$consumers …
  t$audit_log 与 t$binlog：变更；t$ro：只含已合并的行
  t$commits t$commit_files t$commit_rate t$retention t$unreferenced_files t$row_accounting; recon.read_journal
等待
  wait for table a, b until watermark >= timestamp '…' and commit ('user', 118) and snapshot >= 4 and tag 'x'
    and query (select …) timeout interval '5' minute poll interval '2' second pin
  pin tables a, b align on watermark timestamp '…' | on timestamp timestamp '…' | on identifier 118 user 'user'
与来源比对
  reconcile t at (version => 3) with (select … from …) on key (dt, id) compare (amount, status map ('PAID' => '2'))
    where … horizon … tolerance amount 0.01 limit 100 per class into differences
  reconcile … verdict     责任在哪一层，依据是什么
  reconcile t with count 503
取证
  paimon_row_accounting('t', level => 'unit', mode => 'exact', at => 3)
  paimon_key_history('t', key => ('2026-04-16', 'P1')) paimon_explain_key('t', key => …, expected => 'amount=5')
  paimon_commit_keys('t', snapshot => 6) paimon_diff('t', from => 4, to => 6) paimon_changes paimon_delta
  paimon_anomalies('t', deep => true) paimon_conflicts('t', since => '…', until => '…')
  paimon_lookup_commit('t', 'user', 118) paimon_commit_rate('t', window => interval '1' hour)
  paimon_compare(left => 't@v3', right => '…', key => 'dt, id') paimon_cache()
读到了什么
  explain …; explain files …; \\counts t
",
);

/// All commands by task.
fn overview(language: Language) -> String {
    let mut out = String::new();
    for (task, title) in Task::ALL {
        let _ = writeln!(out, "{}", title.of(language));
        for command in all().into_iter().filter(|c| c.task == *task) {
            let name = command.names.first().copied().unwrap_or_default();
            let usage = if command.usage.len() > 26 { "…" } else { command.usage };
            let head = format!("\\{name} {usage}").trim_end().to_string();
            let pad = 34usize.saturating_sub(width(&head)).max(1);
            let _ = writeln!(out, "  {head}{:pad$}{}", "", command.about.of(language));
        }
    }
    out.push_str(
        both(
            "Statements end with ; or \\g, or \\G for records. \\? command tells more, \\? sql shows what SQL can say here. A dot does for the backslash.\n",
            "语句以 ; 或 \\g 结束，\\G 竖排显示。\\? 命令 看详细说明，\\? sql 看 SQL 的扩展。反斜杠也可写成点。\n",
        )
        .of(language),
    );
    out
}

fn one(command: &Command, language: Language) -> String {
    let name = command.names.first().copied().unwrap_or_default();
    let mut out = format!("\\{name} {}\n  {}\n", command.usage, command.about.of(language)).replace(" \n", "\n");
    for line in command.detail.of(language).lines() {
        let _ = writeln!(out, "    {line}");
    }
    if let Some(aliases) = command.names.get(1..).filter(|aliases| !aliases.is_empty()) {
        let aliases: Vec<String> = aliases.iter().map(|a| format!("\\{a}")).collect();
        let _ = writeln!(out, "  {} {}", both("also", "也可写").of(language), aliases.join(", "));
    }
    out
}

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let language = shell.settings.language;
        let topic = call.rest.trim().trim_start_matches('\\').to_string();
        let text = match topic.as_str() {
            "" => overview(language),
            "sql" | "time travel" => SQL.of(language).to_string(),
            topic => one(find(topic).ok_or_else(|| unknown(topic))?, language),
        };
        shell.page(&text)
    }
    .boxed_local()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overview_names_every_command_under_its_task() {
        for language in [Language::En, Language::Zh] {
            let text = overview(language);
            for command in all() {
                assert!(text.contains(&format!("  \\{}", command.names[0])), "{}", command.names[0]);
            }
            for (_, title) in Task::ALL {
                assert!(text.lines().any(|line| line == title.of(language)));
            }
        }
    }

    #[test]
    fn what_sql_can_say_names_every_function_and_statement() {
        for language in [Language::En, Language::Zh] {
            let text = SQL.of(language);
            let tables =
                ["commits", "commit_files", "commit_rate", "retention", "unreferenced_files", "row_accounting"];
            let tables = tables.map(|table| format!("t${table}"));
            let statements = ["wait for table", "reconcile t", "align on", "verdict"].map(str::to_string);
            let functions = crate::sql::Session::table_functions().into_iter().map(|name| name.to_string());
            for name in functions.chain(tables).chain(statements) {
                assert!(text.contains(&name), "{name}");
            }
        }
    }

    #[test]
    fn one_command_shows_its_examples_and_aliases() {
        let text = one(find("counts").unwrap(), Language::En);
        assert!(text.contains("\\counts dwd_pay_success@v4") && text.contains("also \\acct"), "{text}");
    }
}
