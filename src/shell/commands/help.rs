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
    about: both("this help; of one command; of time travel in SQL", "本帮助；某个命令的帮助；SQL 的时间旅行"),
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
            "Statements end with ; or \\g, or \\G for records. \\? command tells more, \\? sql shows time travel. A dot does for the backslash.\n",
            "语句以 ; 或 \\g 结束，\\G 竖排显示。\\? 命令 看详细说明，\\? sql 看时间旅行。反斜杠也可写成点。\n",
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
    fn one_command_shows_its_examples_and_aliases() {
        let text = one(find("counts").unwrap(), Language::En);
        assert!(text.contains("\\counts dwd_pay_success@v4") && text.contains("also \\acct"), "{text}");
    }
}
