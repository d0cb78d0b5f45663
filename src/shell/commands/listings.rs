//! Commands that are a query: databases, tables, and the system tables of a table.

use futures::future::{FutureExt, LocalBoxFuture};

use super::{Argument, Call, Command, Task, unquoted, usage};
use crate::error::Result;
use crate::shell::execute::Show;
use crate::shell::names::{quoted_name, system_table};
use crate::shell::state::Shell;
use crate::shell::variables::quoted;

macro_rules! listing {
    ($names:expr, $usage:expr, $argument:expr, $about:expr, $run:expr) => {
        &Command {
            names: $names,
            usage: $usage,
            task: Task::Look,
            about: $about,
            detail: "",
            argument: $argument,
            run: $run,
        }
    };
}

/// The listings.
pub const COMMANDS: &[&Command] = &[
    listing!(&["l", "databases"], "", Argument::None, "databases of the warehouse", |shell, _| {
        listed(shell, "SHOW DATABASES".to_string())
    }),
    listing!(&["dt", "tables"], "[database]", Argument::None, "tables of a database", |shell, call| {
        match call.words(&shell.variables).first() {
            Some(database) => listed(shell, format!("SHOW TABLES IN {}", quoted_name(&unquoted(database)))),
            None => listed(shell, "SHOW TABLES".to_string()),
        }
    }),
    listing!(&["use"], "database", Argument::None, "make a database the current one", |shell, call| {
        let words = call.words(&shell.variables);
        async move {
            let [database] = words.as_slice() else { return Err(usage("write \\use database")) };
            shell.statement(&format!("USE {}", quoted_name(&unquoted(database))), Show::LISTING).await
        }
        .boxed_local()
    }),
    listing!(&["ds", "snapshots"], "table", Argument::Table, "snapshots: id, time, user, kind, rows", |shell, call| {
        system(
            shell,
            call,
            "snapshots",
            "snapshot_id, commit_time, commit_user, commit_identifier, commit_kind, \
            total_record_count, delta_record_count, watermark, schema_id",
            "snapshot_id",
        )
    }),
    listing!(&["dp", "partitions"], "table", Argument::Table, "partitions: rows, bytes, files", |shell, call| {
        system(
            shell,
            call,
            "partitions",
            "partition, record_count, file_size_in_bytes, file_count, last_update_time",
            "partition",
        )
    }),
    listing!(&["db", "buckets"], "table", Argument::Table, "buckets: rows, bytes, files", |shell, call| {
        system(shell, call, "buckets", "*", "partition, bucket")
    }),
    listing!(&["df"], "table", Argument::Table, "live data files: level, rows, keys", |shell, call| {
        system(
            shell,
            call,
            "files",
            "partition, bucket, level, file_path, record_count, file_size_in_bytes, \
            min_key, max_key, min_sequence_number, max_sequence_number, schema_id",
            "partition, bucket, level, file_path",
        )
    }),
    listing!(&["dtag", "tags"], "table", Argument::Table, "tags", |shell, call| {
        system(shell, call, "tags", "*", "snapshot_id, tag_name")
    }),
    listing!(&["dbr", "branches"], "table", Argument::Table, "branches", |shell, call| {
        system(shell, call, "branches", "*", "branch_name")
    }),
    listing!(&["opts", "options"], "table", Argument::Table, "options of a table", |shell, call| {
        system(shell, call, "options", "*", "key")
    }),
    listing!(&["schema"], "table [id]", Argument::Table, "schemas of a table, or one", |shell, call| {
        let words = call.words(&shell.variables);
        async move {
            let (table, id) = match words.as_slice() {
                [table] => (table, None),
                [table, id] => match id.parse::<i64>() {
                    Ok(id) => (table, Some(id)),
                    Err(_) => return Err(usage(format!("{id:?} is no schema id"))),
                },
                _ => return Err(usage("write \\schema table [id]")),
            };
            let filter = id.map(|id| format!(" WHERE schema_id = {id}")).unwrap_or_default();
            let sql = format!("SELECT * FROM {}{filter} ORDER BY schema_id", system_table(table, "schemas")?);
            shell.statement(&sql, Show::LISTING).await
        }
        .boxed_local()
    }),
];

fn listed<'a>(shell: &'a mut Shell, sql: String) -> LocalBoxFuture<'a, Result<()>> {
    async move { shell.statement(&sql, Show::LISTING).await }.boxed_local()
}

fn system<'a>(
    shell: &'a mut Shell,
    call: Call,
    table: &'static str,
    columns: &'static str,
    order: &'static str,
) -> LocalBoxFuture<'a, Result<()>> {
    let words = call.words(&shell.variables);
    async move {
        let [name] = words.as_slice() else { return Err(usage(format!("write \\{} table", call.name))) };
        let sql = format!("SELECT {columns} FROM {} ORDER BY {order}", system_table(name, table)?);
        shell.statement(&sql, Show::LISTING).await
    }
    .boxed_local()
}

/// A string literal.
pub fn literal(text: &str) -> String {
    quoted(text, '\'')
}
