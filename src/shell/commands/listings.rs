//! Commands that are a query: databases, tables, and the system tables of a table.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, unquoted, usage};
use crate::error::{Error, Result};
use crate::shell::execute::Show;
use crate::shell::language::{Text, both, told};
use crate::shell::names::{quoted_name, system_table};
use crate::shell::state::Shell;
use crate::shell::variables::quoted;

/// Schemas of a table that are looked through for one.
const SCHEMAS: usize = 10_000;

macro_rules! listing {
    ($names:expr, $usage:expr, $argument:expr, $en:expr, $zh:expr, $run:expr) => {
        &Command {
            names: $names,
            usage: $usage,
            task: Task::Look,
            about: both($en, $zh),
            detail: Text::NONE,
            argument: $argument,
            run: $run,
        }
    };
}

/// The listings.
pub const COMMANDS: &[&Command] = &[
    listing!(&["l", "databases"], "", Argument::None, "databases of the warehouse", "仓库里的库", |shell, _| {
        listed(shell, "SHOW DATABASES".to_string())
    }),
    listing!(
        &["dt", "tables"],
        "[database]",
        Argument::Database,
        "tables of a database",
        "库里的表",
        |shell, call| {
            async move {
                let sql = match call.words(&shell.variables)?.as_slice() {
                    [database] => format!("SHOW TABLES IN {}", quoted_name(&unquoted(database))),
                    [] => "SHOW TABLES".to_string(),
                    _ => return Err(usage("write \\dt [database]")),
                };
                shell.statement(&sql, Show::LISTING).await
            }
            .boxed_local()
        }
    ),
    listing!(
        &["use"],
        "database",
        Argument::Database,
        "make a database the current one",
        "切换当前库",
        |shell, call| {
            async move {
                let words = call.words(&shell.variables)?;
                let [database] = words.as_slice() else { return Err(usage("write \\use database")) };
                shell.statement(&format!("USE {}", quoted_name(&unquoted(database))), Show::LISTING).await
            }
            .boxed_local()
        }
    ),
    listing!(
        &["ds", "snapshots"],
        "table",
        Argument::Table,
        "snapshots: id, time, user, kind, rows",
        "快照：编号、时间、提交者、种类、行数",
        |shell, call| {
            let columns = format!(
                "snapshot_id AS id, commit_time, commit_user AS user, commit_identifier AS identifier, \
                 commit_kind AS kind, total_record_count AS rows, delta_record_count AS added, {} AS watermark, \
                 schema_id AS schema",
                wall_clock("watermark", &shell.session.time_zone())
            );
            async move {
                let columns = columns + mark_of(shell, &call, "snapshots").await?;
                // AT (COMMIT => …) takes the whole name
                let show = Show { keep: Some("user"), commits: true, ..Show::LISTING };
                system_as(shell, call, "snapshots", columns, "id", show).await?;
                let (language, zone) = (shell.settings.language, shell.session.time_zone());
                shell.say(&[told!(language, "times are those of {zone}", "时间按 {zone}", zone = zone)])
            }
            .boxed_local()
        }
    ),
    listing!(
        &["dp", "partitions"],
        "table",
        Argument::Table,
        "partitions: rows, bytes, files",
        "分区：行数、字节、文件数",
        |shell, call| {
            system(
                shell,
                call,
                "partitions",
                "partition, record_count AS rows, file_size_in_bytes AS bytes, file_count AS files, last_update_time",
                "partition",
            )
        }
    ),
    listing!(
        &["db", "buckets"],
        "table",
        Argument::Table,
        "buckets: rows, bytes, files",
        "桶：行数、字节、文件数",
        |shell, call| {
            system(
                shell,
                call,
                "buckets",
                "partition, bucket, record_count AS rows, file_size_in_bytes AS bytes, file_count AS files, \
                 last_update_time",
                "partition, bucket",
            )
        }
    ),
    listing!(
        &["df"],
        "table",
        Argument::Table,
        "live data files: level, rows, keys",
        "有效数据文件：层、行数、主键范围",
        |shell, call| {
            system(
                shell,
                call,
                "files",
                "partition, bucket, level, split_part(file_path, '/', -1) AS file, record_count AS rows, \
                 file_size_in_bytes AS bytes, min_key, max_key, min_sequence_number AS min_sequence, \
                 max_sequence_number AS max_sequence, schema_id AS schema",
                "partition, bucket, level, file",
            )
        }
    ),
    listing!(&["dtag", "tags"], "table", Argument::Table, "tags", "标签", |shell, call| {
        system(shell, call, "tags", "*", "snapshot_id, tag_name")
    }),
    listing!(&["dbr", "branches"], "table", Argument::Table, "branches", "分支", |shell, call| {
        system(shell, call, "branches", "*", "branch_name")
    }),
    listing!(&["opts", "options"], "table", Argument::Table, "options of a table", "表的选项", |shell, call| {
        system(shell, call, "options", "*", "key")
    }),
    listing!(
        &["schema"],
        "table [id]",
        Argument::Schema,
        "schemas of a table, or one",
        "表的各版模式，或其中一版",
        |shell, call| {
            async move {
                let words = call.words(&shell.variables)?;
                let (table, id) = match words.as_slice() {
                    [table] => (table, None),
                    [table, id] => match id.parse::<i64>() {
                        Ok(id) => (table, Some(id)),
                        Err(_) => return Err(usage(format!("{id:?} is no schema id"))),
                    },
                    _ => return Err(usage("write \\schema table [id]")),
                };
                if let Some(id) = id {
                    check_schema(shell, table, id).await?;
                }
                let filter = id.map(|id| format!(" WHERE schema_id = {id}")).unwrap_or_default();
                let sql = format!("SELECT * FROM {}{filter} ORDER BY schema_id", system_table(table, "schemas")?);
                // half a list of fields says nothing of the others
                shell.statement(&sql, Show { whole: true, shrink: false, ..Show::LISTING }).await
            }
            .boxed_local()
        }
    ),
];

/// An empty table would say that the schema is empty.
async fn check_schema(shell: &mut Shell, table: &str, id: i64) -> Result<()> {
    let sql = format!("SELECT schema_id FROM {} ORDER BY schema_id", system_table(table, "schemas")?);
    let batches = shell.collect_sql(&sql, SCHEMAS).await?.batches;
    let columns = batches.iter().filter_map(|batch| batch.columns().first()?.as_primitive_opt::<Int64Type>());
    let known: Vec<i64> = columns.flat_map(|ids| ids.values().iter().copied()).collect();
    if known.contains(&id) || known.len() >= SCHEMAS {
        return Ok(());
    }
    let known = known.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    Err(Error::not_found(format!("there is no schema {id} of {table}"))
        .with_code("SchemaNotFound")
        .with_hint(format!("known schemas: {known}")))
}

/// The column that marks the pinned row, where the system table has it: only while the session pins the table.
async fn mark_of(shell: &mut Shell, call: &Call, table: &str) -> Result<&'static str> {
    if shell.session.session_pins().is_empty() {
        return Ok("");
    }
    let words = call.words(&shell.variables)?;
    let [name] = words.as_slice() else { return Ok("") };
    let none = shell.collect_sql(&format!("SELECT * FROM {} LIMIT 0", system_table(name, table)?), 0).await?;
    Ok(if none.schema.column_with_name("pinned").is_some() { ", pinned" } else { "" })
}

fn listed<'a>(shell: &'a mut Shell, sql: String) -> LocalBoxFuture<'a, Result<()>> {
    async move { shell.statement(&sql, Show::LISTING).await }.boxed_local()
}

fn system<'a>(
    shell: &'a mut Shell,
    call: Call,
    table: &'static str,
    columns: impl Into<String>,
    order: &'static str,
) -> LocalBoxFuture<'a, Result<()>> {
    system_as(shell, call, table, columns, order, Show::LISTING)
}

fn system_as<'a>(
    shell: &'a mut Shell,
    call: Call,
    table: &'static str,
    columns: impl Into<String>,
    order: &'static str,
    show: Show,
) -> LocalBoxFuture<'a, Result<()>> {
    let columns = columns.into();
    async move {
        let words = call.words(&shell.variables)?;
        let [name] = words.as_slice() else { return Err(usage(format!("write \\{} table", call.name))) };
        let sql = format!("SELECT {columns} FROM {} ORDER BY {order}", system_table(name, table)?);
        shell.statement(&sql, show).await
    }
    .boxed_local()
}

/// The last millisecond that every zone has on its calendar, about the year 262 000.
const LAST_MILLIS: i64 = 8_210_000_000_000_000;

/// Milliseconds since 1970 as the clock on the wall of a zone; those that no calendar has, the end of input among them, as
/// they are.
fn wall_clock(column: &str, zone: &str) -> String {
    let zone = if zone == "UTC" { "+00:00" } else { zone };
    format!(
        "coalesce(arrow_cast(to_local_time(arrow_cast(CASE WHEN {column} BETWEEN -{LAST_MILLIS} AND {LAST_MILLIS} \
         THEN {column} END, 'Timestamp(Millisecond, Some(\"{zone}\"))')), 'Timestamp(Second, None)'), \
         arrow_cast({column} / 1000, 'Timestamp(Second, None)'))"
    )
}

/// A string literal.
pub fn literal(text: &str) -> String {
    quoted(text, '\'')
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn watermarks_that_no_calendar_has_are_listed_with_the_others() {
        for zone in ["UTC", "Asia/Shanghai", "-08:00"] {
            let shown = wall_clock("w", zone);
            let given = format!("(VALUES ({}), (99999999999999999), (0), (NULL)) t(w)", i64::MAX);
            let rows = SessionContext::new().sql(&format!("SELECT {shown} FROM {given}")).await.unwrap();
            let rows = rows.collect().await.unwrap_or_else(|error| panic!("{zone}: {error}"));
            assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 4, "{zone}");
        }
    }
}
