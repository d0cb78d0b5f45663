//! `\key` and `\why`: the past of one key, and why it is there, is not, or has another value.

use futures::future::{FutureExt, LocalBoxFuture};

use super::listings::literal;
use super::{Argument, Call, Command, Task, Word, unquoted, usage};
use crate::error::Result;
use crate::shell::execute::Show;
use crate::shell::language::both;
use crate::shell::state::Shell;

/// `\key`, `\why`
pub const COMMANDS: &[&Command] = &[
    &Command {
        names: &["key"],
        usage: "table column=value … [from snapshot] [to snapshot]",
        task: Task::Prove,
        about: both("every kept version of a key", "某个键保留下来的所有版本"),
        detail: both(
            "\\key dwd_pay_success dt=2026-04-16 pay_id=P1001\n\\key dwd_pay_success pay_id=P1001   in all partitions\n\
             \\key dwd_pay_success pay_id=P1001 from 100 to 120   in those snapshots\n\
             words besides: uncommitted, changelog",
            "\\key dwd_pay_success dt=2026-04-16 pay_id=P1001\n\\key dwd_pay_success pay_id=P1001   在所有分区里查找\n\
             \\key dwd_pay_success pay_id=P1001 from 100 to 120   只看这些快照\n\
             另可加：uncommitted、changelog",
        ),
        argument: Argument::Condition,
        run: |shell, call| key(shell, call),
    },
    &Command {
        names: &["why"],
        usage: "table column=value … [expected column=value] [at snapshot]",
        task: Task::Prove,
        about: both("why a key is there, is not, or has another value", "某个键为什么在、为什么不在、为什么值不同"),
        detail: both(
            "\\why dwd_pay_success dt=2026-04-16 pay_id=P1001\n\
             \\why dwd_pay_success pay_id=P1001 expected amount=50 at 105",
            "\\why dwd_pay_success dt=2026-04-16 pay_id=P1001\n\
             \\why dwd_pay_success pay_id=P1001 expected amount=50 at 105",
        ),
        argument: Argument::Condition,
        run: |shell, call| why(shell, call),
    },
];

/// The words of a call: table, then `column=value` pairs, then the others.
struct Parts {
    table: String,
    pairs: Vec<String>,
    others: Vec<String>,
}

fn parts(words: Vec<Word>, wrong: &str) -> Result<Parts> {
    let mut words = words.into_iter().map(|word| word.text);
    let Some(table) = words.next() else { return Err(usage(wrong)) };
    let mut found = Parts { table: unquoted(&table).to_string(), pairs: Vec::new(), others: Vec::new() };
    for word in words {
        // a `-` may stand before words of the command line
        let bare = word.trim_start_matches("--");
        match word.split_once('=').filter(|_| found.others.is_empty()) {
            Some((name, value)) => found.pairs.push(format!("{}={}", unquoted(name), literal(value))),
            None => found.others.push(bare.to_string()),
        }
    }
    if found.pairs.is_empty() { Err(usage(wrong)) } else { Ok(found) }
}

fn key(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let wrong = "write \\key table column=value … [from snapshot] [to snapshot] [uncommitted] [changelog]";
        let Parts { table, pairs, others } = parts(call.marked_words(&shell.variables)?, wrong)?;
        let mut sql =
            format!("SELECT * FROM paimon_key_history({}, key => {}", literal(&table), literal(&pairs.join(", ")));
        let mut words = others.iter().map(String::as_str);
        while let Some(word) = words.next() {
            sql += &match word {
                "uncommitted" => ", include_uncommitted => true".to_string(),
                "changelog" => ", include_changelog => true".to_string(),
                "from" | "to" => {
                    let state = words.next().ok_or_else(|| usage(wrong))?;
                    let state = if state.parse::<i64>().is_ok() { state.to_string() } else { literal(state) };
                    format!(", {word} => {state}")
                }
                _ => return Err(usage(wrong)),
            };
        }
        shell.statement(&(sql + ")"), Show::LISTING).await
    }
    .boxed_local()
}

fn why(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let wrong = "write \\why table column=value … [expected column=value] [at snapshot]";
        let Parts { table, pairs, others } = parts(call.marked_words(&shell.variables)?, wrong)?;
        let mut sql = format!("paimon_explain_key({}, key => {}", literal(&table), literal(&pairs.join(", ")));
        for pair in others.chunks(2) {
            sql += &match pair {
                [name, value] if name == "expected" => format!(", expected => {}", literal(value)),
                [name, value] if name == "at" && value.parse::<i64>().is_ok() => format!(", at => {value}"),
                [name, value] if name == "at" => format!(", at => {}", literal(value)),
                _ => return Err(usage(wrong)),
            };
        }
        shell.statement(&format!("SELECT * FROM {sql})"), Show::LISTING).await
    }
    .boxed_local()
}
