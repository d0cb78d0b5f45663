//! `\files`: what became of every file of a query.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task};
use crate::error::{Error, Result};
use crate::shell::execute::{Answer, Collected, Show};
use crate::shell::language::{Language, both, rule};
use crate::shell::render::Format;
use crate::shell::state::Shell;

/// Files of one query, at most.
const FILES_SHOWN: usize = 1_000_000;
/// Columns shown; `EXPLAIN FILES` has the rest.
const COLUMNS: &[&str] = &["read", "rule", "partition", "bucket", "level", "rows", "file"];
/// In the column `read`, of a file that is not.
const DROPPED: &str = "no";

/// `\files`
pub const FILES: Command = Command {
    names: &["files"],
    usage: "[query]",
    task: Task::Prove,
    about: both(
        "files of a query, kept or dropped, and the rule that decided",
        "查询涉及的文件：保留或跳过，以及依据的规则",
    ),
    detail: both(
        "\\files select * from t where dt = '2026-04-16'\nwithout a query: of the last one\n\
         explain files … also gives keys, sequences, sections and sizes",
        "\\files select * from t where dt = '2026-04-16'\n不带查询：上一条\n\
         explain files … 还给出主键、序号、区段和大小",
    ),
    argument: Argument::Sql,
    run,
};

fn run(shell: &mut Shell, call: Call) -> LocalBoxFuture<'_, Result<()>> {
    async move {
        let sql = query_or_last(shell, &call)?;
        let Collected { schema, batches, pins, notices, rules } =
            shell.collect(&format!("EXPLAIN FILES {sql}"), FILES_SHOWN).await?;
        let columns: Vec<usize> = COLUMNS.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let short = shell.terminal.output && shell.settings.format == Format::Table;
        let language = if shell.settings.format.is_data() { Language::En } else { shell.settings.language };
        let mut rules = rules.iter().map(|one| rule(one, language));
        let shown = batches
            .iter()
            .map(|batch| shown(&batch.project(&columns)?, rules.by_ref().take(batch.num_rows()), short))
            .collect::<Result<Vec<_>>>()?;
        let mut answer = Answer::of_batches(Arc::new(schema.project(&columns)?), shown)?;
        (answer.pins, answer.notices) = (pins, notices);
        shell.present(answer, Show { cap: false, shrink: true, ..Show::default() }).await?;
        shell.last_query.get_or_insert(sql);
        Ok(())
    }
    .boxed_local()
}

/// What became of each file in words, and on a terminal the part of its name that tells it from others.
fn shown(batch: &RecordBatch, rules: impl Iterator<Item = String>, short: bool) -> Result<RecordBatch> {
    let schema = batch.schema();
    let rules: ArrayRef = Arc::new(StringArray::from_iter_values(rules));
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| -> ArrayRef {
        let Some(texts) = column.as_string_opt::<i32>() else { return Arc::clone(column) };
        match field.name().as_str() {
            "read" => Arc::new(texts.iter().map(|text| Some(text.unwrap_or(DROPPED))).collect::<StringArray>()),
            "rule" => Arc::clone(&rules),
            "file" if short => Arc::new(texts.iter().map(|text| text.map(short_name)).collect::<StringArray>()),
            _ => Arc::clone(column),
        }
    });
    Ok(RecordBatch::try_new(Arc::clone(&schema), columns.collect())?)
}

/// `data-ce63ab2f…-0.parquet` of `data-ce63ab2f-3ed9-4ccc-8552-e065fb8b8009-0.parquet`.
fn short_name(name: &str) -> String {
    const UUID: usize = 36;
    let begins = name.char_indices().map(|(at, _)| at).find(|at| {
        name.get(*at..at + UUID).is_some_and(|part| {
            part.chars()
                .enumerate()
                .all(|(i, c)| if matches!(i, 8 | 13 | 18 | 23) { c == '-' } else { c.is_ascii_hexdigit() })
        })
    });
    match begins.and_then(|at| name.get(..at + 8).zip(name.get(at + UUID..))) {
        Some((head, tail)) => format!("{head}…{tail}"),
        None => name.to_string(),
    }
}

/// The query of the line, else the last one.
pub fn query_or_last(shell: &Shell, call: &Call) -> Result<String> {
    match (call.sql(), &shell.last_query) {
        ("", Some(last)) => Ok(last.clone()),
        ("", None) => Err(Error::invalid("which query?").with_code("Usage")),
        (sql, _) => Ok(sql.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_what_tells_them_apart() {
        let cases = [
            ("data-ce63ab2f-3ed9-4ccc-8552-e065fb8b8009-0.parquet", "data-ce63ab2f…-0.parquet"),
            ("订单-ce63ab2f-3ed9-4ccc-8552-e065fb8b8009-12.orc", "订单-ce63ab2f…-12.orc"),
            ("compacted-7.avro", "compacted-7.avro"),
        ];
        for (name, expected) in cases {
            assert_eq!(short_name(name), expected);
        }
    }
}
