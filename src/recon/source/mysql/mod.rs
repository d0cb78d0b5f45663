//! MySQL and MariaDB: a consistent snapshot in one connection, read by chunks of the primary key.
//!
//! `server.rs` the connection · `columns.rs` types and indexes · `values.rs` cells and parameters · `filters.rs`
//! conditions · `reading.rs` statements.

mod columns;
mod filters;
mod reading;
mod server;
mod values;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::sqlparser::dialect::MySqlDialect;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row, Value};

use super::address::Address;
use super::bounds::Bounds;
use super::manners::Manners;
use super::{
    Filter, Source, SourceColumn, SourcePosition, SourceRead, SourceWork, faults, is_fixed, is_query, relations,
};
use crate::error::Result;
use columns::{Declared, Index, Kind, MyColumn, key_of, quoted};
use reading::Way;
use server::{Server, first, text, whole};
use values::key_param;

/// What all reads of a source share.
struct Body {
    server: Server,
    columns: Vec<MyColumn>,
    indexes: Vec<Index>,
    /// What stands behind FROM.
    from: String,
    is_query: bool,
}

struct MySqlSource {
    name: String,
    columns: Vec<SourceColumn>,
    key: Vec<String>,
    position: SourcePosition,
    estimate: Option<u64>,
    ways: parking_lot::Mutex<HashMap<Vec<usize>, Option<Way>>>,
    body: Arc<Body>,
}

impl fmt::Debug for MySqlSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The statement that limits statements.
fn limit_of(is_mariadb: bool, manners: &Manners) -> String {
    let limit = manners.statement_timeout;
    if is_mariadb {
        format!("SET SESSION max_statement_time = {}", limit.as_secs_f64())
    } else {
        format!("SET SESSION max_execution_time = {}", limit.as_millis())
    }
}

pub(super) async fn open(address: &Address, what: &str, manners: Manners) -> Result<Arc<dyn Source>> {
    let (mut server, version) = Server::connect(address, address.name(), manners).await?;
    prepare_session(&server).await?;
    let position = begin(&server, &version).await?;
    let mut opened =
        if is_query(what) { of_query(&server, address, what).await? } else { of_table(&server, address, what).await? };
    let is_state = position.is_state && opened.position.is_state;
    opened.position =
        SourcePosition { caveats: [position.caveats.clone(), opened.position.caveats].concat(), is_state, ..position };
    server.rename(opened.name.clone());
    let key = key_of(&opened.indexes).and_then(Index::key).unwrap_or_default();
    let key = key.iter().filter_map(|at| opened.columns.get(*at)).map(|column| column.source.name.clone()).collect();
    Ok(Arc::new(MySqlSource {
        name: opened.name,
        columns: opened.columns.iter().map(|column| column.source.clone()).collect(),
        key,
        position: opened.position,
        estimate: opened.estimate,
        ways: parking_lot::Mutex::default(),
        body: Arc::new(Body {
            server,
            columns: opened.columns,
            indexes: opened.indexes,
            from: opened.from,
            is_query: opened.is_query,
        }),
    }))
}

/// What was found out about a table or query.
struct Opened {
    name: String,
    columns: Vec<MyColumn>,
    indexes: Vec<Index>,
    from: String,
    is_query: bool,
    estimate: Option<u64>,
    position: SourcePosition,
}

/// Limits, zone and modes of the session, so that values do not depend on how the server is set up.
async fn prepare_session(server: &Server) -> Result<()> {
    let manners = &server.manners;
    let lock = manners.lock_timeout.as_secs().max(1);
    let asked = [
        limit_of(server.is_mariadb, manners),
        "SET SESSION time_zone = '+00:00'".into(),
        // no padding of CHAR, no refusal of zero dates where they are compared
        "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'".into(),
        format!("SET SESSION lock_wait_timeout = {lock}"),
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ".into(),
    ];
    for statement in asked {
        server.rows(&statement, Params::Empty).await?;
    }
    // a reader that pauses is not cut off; not every server has all of them
    let mut welcome = vec![
        format!("SET SESSION innodb_lock_wait_timeout = {lock}"),
        "SET SESSION wait_timeout = 28800".into(),
        "SET SESSION net_write_timeout = 28800".into(),
    ];
    if server.is_mariadb {
        welcome.push("SET SESSION idle_transaction_timeout = 0".into());
        welcome.push("SET SESSION idle_readonly_transaction_timeout = 0".into());
    }
    for statement in welcome {
        match server.rows(&statement, Params::Empty).await {
            Err(error) if error.code() == "SourceLost" => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Rows of a statement that not every user may send, or not every server knows.
async fn if_allowed(server: &Server, sql: &str) -> Result<Option<Vec<Row>>> {
    match server.rows(sql, Params::Empty).await {
        Ok(rows) => Ok(Some(rows)),
        Err(error) if ["SourceDenied", "SourceStatement"].contains(&error.code()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The position of a server that keeps no log of changes.
const NO_BINLOG: &str = "no binlog";

/// Begins the transaction, and says where it lies.
async fn begin(server: &Server, version: &str) -> Result<SourcePosition> {
    let clock = server.rows("SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)", Params::Empty).await?;
    let clock_millis = first(&clock).and_then(|clock| clock.parse().ok()).unwrap_or_default();
    let start = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
    let mut caveats = Vec::new();
    let mut is_state = true;
    let position = if server.is_mariadb {
        server.rows(start, Params::Empty).await?;
        mariadb_position(server, &mut caveats).await?
    } else {
        let mut between = mysql_position(server).await?;
        let mut tries = 0;
        // a position that stood still around the beginning is that of the beginning
        loop {
            server.rows(start, Params::Empty).await?;
            let after = mysql_position(server).await?;
            tries += 1;
            match (between, after) {
                (Some(before), Some(after)) if before != after && tries < 5 => {
                    server.rows("ROLLBACK", Params::Empty).await?;
                    between = Some(after);
                }
                (Some(before), Some(after)) if before != after => {
                    is_state = false;
                    caveats.push("the position moved while the read began: the state lies between the two".into());
                    break Some(format!("{before} to {after}"));
                }
                (_, after) => {
                    let unproven = after.as_ref().and_then(Log::unproven);
                    is_state &= unproven.is_none();
                    caveats.extend(unproven);
                    break after.map(|after| after.to_string());
                }
            }
        }
    };
    // what nobody writes down leaves no position
    is_state &= position.as_ref().is_some_and(|position| !position.starts_with(NO_BINLOG));
    if position.is_none() {
        caveats.push("the position is not known: it needs the right BINLOG MONITOR or REPLICATION CLIENT".into());
    }
    let kind = if server.is_mariadb { "MariaDB" } else { "MySQL" };
    Ok(SourcePosition {
        server: format!("{kind} {}", version.split('-').next().unwrap_or_default()),
        position: position.unwrap_or_else(|| "a position that is not known".into()),
        is_state,
        clock_millis,
        zone: "UTC".into(),
        lag_millis: lag(server, &mut caveats).await?,
        caveats,
    })
}

/// The position of the snapshot itself, which MariaDB keeps for the transaction.
async fn mariadb_position(server: &Server, caveats: &mut Vec<String>) -> Result<Option<String>> {
    let status = server.rows("SHOW STATUS LIKE 'binlog_snapshot_%'", Params::Empty).await?;
    let value = |wanted: &str| {
        let row =
            status.iter().find(|row| text(row, "Variable_name").is_some_and(|name| name.eq_ignore_ascii_case(wanted)));
        row.and_then(|row| text(row, "Value")).filter(|value| !value.is_empty())
    };
    let gtid = async |sql: &str| -> Result<String> {
        let rows = if_allowed(server, sql).await?;
        let gtid = rows.and_then(|rows| first(&rows)).filter(|gtid| !gtid.is_empty());
        Ok(gtid.map(|gtid| format!(", gtid {gtid}")).unwrap_or_default())
    };
    if let (Some(file), Some(at)) = (value("binlog_snapshot_file"), value("binlog_snapshot_position")) {
        // file and position are the server's own words
        let gtid = gtid(&format!("SELECT BINLOG_GTID_POS('{}', {at})", file.replace('\'', "''"))).await?;
        return Ok(Some(format!("{file}:{at}{gtid}")));
    }
    let logs = server.rows("SELECT @@GLOBAL.log_bin", Params::Empty).await?;
    if first(&logs).as_deref() == Some("0") {
        caveats.push("the server writes no binlog, so the state has no position".into());
        let gtid = gtid("SELECT @@GLOBAL.gtid_current_pos").await?;
        return Ok(Some(format!("{NO_BINLOG}{gtid}")));
    }
    Ok(None)
}

/// What MySQL says of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Log {
    /// Where it ends; none where it may not be asked for.
    end: Option<String>,
    /// The transactions that are in it and committed; none where they have no names.
    gtids: Option<String>,
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gtids = self.gtids.as_ref().map(|gtids| format!("gtid {gtids}"));
        f.write_str(&[self.end.clone(), gtids].into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

impl Log {
    /// Why its end may not be that of a snapshot which was taken while it stood still: a transaction is written to the
    /// log before others see it. The names of transactions are told when they are seen.
    fn unproven(&self) -> Option<String> {
        let has_end = self.end.as_deref().is_some_and(|end| end != NO_BINLOG);
        (has_end && self.gtids.is_none()).then(|| {
            "the position is that of the log, which may be a transaction ahead of what is read: with gtid_mode = ON it is \
             exact"
                .into()
        })
    }
}

async fn mysql_position(server: &Server) -> Result<Option<Log>> {
    let gtids = if_allowed(server, "SELECT @@GLOBAL.gtid_executed FROM DUAL WHERE @@GLOBAL.gtid_mode = 'ON'").await?;
    let gtids = gtids.and_then(|rows| first(&rows)).map(|gtids| gtids.replace('\n', ""));
    let gtids = gtids.filter(|gtids| !gtids.is_empty());
    let mut status = if_allowed(server, "SHOW BINARY LOG STATUS").await?;
    if status.is_none() {
        status = if_allowed(server, "SHOW MASTER STATUS").await?;
    }
    let end = status.as_ref().map(|rows| match rows.first() {
        Some(row) => {
            format!("{}:{}", text(row, "File").unwrap_or_default(), text(row, "Position").unwrap_or_default())
        }
        None => NO_BINLOG.into(),
    });
    Ok((end.is_some() || gtids.is_some()).then_some(Log { end, gtids }))
}

/// How far a replica is behind.
async fn lag(server: &Server, caveats: &mut Vec<String>) -> Result<Option<i64>> {
    for sql in ["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"] {
        let Some(rows) = if_allowed(server, sql).await? else { continue };
        let Some(row) = rows.first() else { return Ok(None) };
        let seconds = text(row, "Seconds_Behind_Source").or_else(|| text(row, "Seconds_Behind_Master"));
        let seconds: Option<i64> = seconds.and_then(|seconds| seconds.parse().ok());
        if seconds.is_none() {
            caveats.push("a replica whose replication does not run".into());
        }
        return Ok(seconds.map(|seconds| seconds * 1_000));
    }
    Ok(None)
}

/// Parts of a name: `shop.pay`, with quotes where a part has points.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    let mut chars = name.trim().chars().peekable();
    while let Some(c) = chars.next() {
        let Some(part) = parts.last_mut() else { break };
        match c {
            '`' | '"' if quote == Some(c) => {
                if chars.next_if_eq(&c).is_some() {
                    part.push(c);
                } else {
                    quote = None;
                }
            }
            '`' | '"' if quote.is_none() && part.is_empty() => quote = Some(c),
            '.' if quote.is_none() => parts.push(String::new()),
            c => part.push(c),
        }
    }
    parts
}

async fn of_table(server: &Server, address: &Address, what: &str) -> Result<Opened> {
    let parts = parts(what);
    let (database, table) = match parts.as_slice() {
        [table] => (address.database.clone(), table.clone()),
        [database, table] => (Some(database.clone()), table.clone()),
        _ => (None, what.to_string()),
    };
    let Some(database) = database else {
        return Err(faults::statement(server.name(), &format!("'{what}' names no database"))
            .with_hint("put the database into the address or before the table: shop.pay"));
    };
    let from = format!("{}.{}", quoted(&database), quoted(&table));
    // takes the lock that keeps the table as it is, and finds out whether it may be read
    if let Err(error) = server.rows(&format!("SELECT 1 FROM {from} LIMIT 0"), Params::Empty).await {
        if error.code() != "SourceStatement" {
            return Err(error);
        }
        let sql = "SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?";
        let known = server.rows(sql, (&database,)).await?;
        let known: Vec<String> = known.iter().filter_map(|row| text(row, "name")).collect();
        return Err(if known.contains(&table) { error } else { faults::no_table(server.name(), &table, &known) });
    }
    let of = (&database, &table);
    let tables = server
        .rows(
            "SELECT TABLE_NAME AS name, ENGINE AS engine, TABLE_ROWS AS estimate FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?",
            of,
        )
        .await?;
    let found = tables.iter().find(|row| text(row, "name").as_ref() == Some(&table)).or(tables.first());
    let mut caveats = Vec::new();
    // a view may be of now and of chance
    let is_table = found.is_some_and(|row| text(row, "engine").is_some());
    if let Some(engine) = found.and_then(|row| text(row, "engine"))
        && !has_transactions(server, &engine).await?
    {
        caveats.push(format!(
            "the table's engine {engine} has no transactions: it is read as it changes, not at one state"
        ));
    }
    let table_name = found.and_then(|row| text(row, "name")).unwrap_or_else(|| table.clone());
    let of = (&database, &table_name);
    let declared = server
        .rows(
            "SELECT COLUMN_NAME AS name, COLUMN_TYPE AS full, DATA_TYPE AS type, IS_NULLABLE AS nullable, \
             COLLATION_NAME AS collation_name, NUMERIC_PRECISION AS digits, NUMERIC_SCALE AS scale, \
             DATETIME_PRECISION AS fraction FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION",
            of,
        )
        .await?;
    let small =
        |row: &Row, name: &str| whole(row, name).and_then(|value| u32::try_from(value).ok()).unwrap_or_default();
    let columns: Vec<MyColumn> = declared
        .iter()
        .map(|row| {
            Declared {
                name: text(row, "name").unwrap_or_default(),
                type_name: text(row, "type").unwrap_or_default().to_lowercase(),
                full: text(row, "full").unwrap_or_default(),
                nullable: text(row, "nullable").as_deref() != Some("NO"),
                collation: text(row, "collation_name"),
                precision: small(row, "digits"),
                scale: small(row, "scale"),
                digits: small(row, "fraction"),
            }
            .column()
        })
        .collect();
    let indexes = indexes(server, of, &columns).await?;
    Ok(Opened {
        name: format!("{}.{table_name}", address.in_database(&database).name()),
        columns,
        indexes,
        from: format!("{}.{}", quoted(&database), quoted(&table_name)),
        is_query: false,
        estimate: found.and_then(|row| whole(row, "estimate")),
        position: SourcePosition { is_state: is_table && caveats.is_empty(), caveats, ..SourcePosition::default() },
    })
}

async fn has_transactions(server: &Server, engine: &str) -> Result<bool> {
    let sql = "SELECT TRANSACTIONS AS yes FROM information_schema.ENGINES WHERE ENGINE = ?";
    let support = server.rows(sql, (engine,)).await?;
    Ok(support.first().and_then(|row| text(row, "yes")).as_deref() == Some("YES"))
}

/// What keeps a query from being of one state: tables without transactions, which are told, and what cannot be known.
async fn moving(server: &Server, address: &Address, query: &str) -> Result<(bool, Vec<String>)> {
    let Some(names) = relations(query, &MySqlDialect {}) else { return Ok((true, Vec::new())) };
    let (mut moves, mut caveats) = (false, Vec::new());
    for name in names {
        let parts: Vec<&String> = name.0.iter().filter_map(|part| Some(&part.as_ident()?.value)).collect();
        let (database, table) = match parts.as_slice() {
            [table] => (address.database.clone(), *table),
            [database, table] => (Some(database.to_string()), *table),
            _ => continue,
        };
        let sql = "SELECT ENGINE AS engine FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";
        let Some(database) = database else { continue };
        let known = server.rows(sql, (&database, table)).await?;
        // one of its WITH is no table
        let Some(row) = known.first() else { continue };
        match text(row, "engine") {
            // a view may be of now and of chance
            None => moves = true,
            Some(engine) if !has_transactions(server, &engine).await? => caveats.push(format!(
                "the engine {engine} of {database}.{table} has no transactions: it is read as it changes, not at one state"
            )),
            Some(_) => {}
        }
    }
    Ok((moves || !caveats.is_empty(), caveats))
}

async fn indexes(server: &Server, of: (&String, &String), columns: &[MyColumn]) -> Result<Vec<Index>> {
    let rows = server
        .rows(
            "SELECT INDEX_NAME AS name, NON_UNIQUE AS doubles, COLUMN_NAME AS column_name, SUB_PART AS part, \
             COLLATION AS direction, NULLABLE AS nullable, INDEX_TYPE AS type FROM information_schema.STATISTICS \
             WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY INDEX_NAME, SEQ_IN_INDEX",
            of,
        )
        .await?;
    let mut indexes: Vec<Index> = Vec::new();
    for row in &rows {
        let name = text(row, "name").unwrap_or_default();
        let unique = text(row, "doubles").as_deref() == Some("0");
        let at = text(row, "column_name")
            .and_then(|name| columns.iter().position(|column| column.source.name.eq_ignore_ascii_case(&name)));
        let is_whole = text(row, "part").is_none()
            && text(row, "direction").as_deref() == Some("A")
            && text(row, "type").as_deref() == Some("BTREE");
        if indexes.last().is_none_or(|index| index.name != name) {
            indexes.push(Index { name, unique, columns: Some(Vec::new()), nullable: false });
        }
        let Some(index) = indexes.last_mut() else { continue };
        index.nullable |= text(row, "nullable").as_deref() == Some("YES");
        index.columns = match (index.columns.take(), at) {
            (Some(mut columns), Some(at)) if is_whole => {
                columns.push(at);
                Some(columns)
            }
            _ => None,
        };
    }
    Ok(indexes)
}

async fn of_query(server: &Server, address: &Address, what: &str) -> Result<Opened> {
    let from = format!("(\n{what}\n) AS `query`");
    let mut held = server.hold().await?;
    server.count_query();
    let conn = held.as_mut().ok_or_else(|| server.gone())?;
    let prepared = conn.prep(format!("SELECT * FROM {from}")).await;
    let statement = prepared.map_err(|fault| server.fault(&mut held, &fault))?;
    let columns = statement.columns().iter().map(|column| Declared::of_result(column).column()).collect();
    if let Some(conn) = held.as_mut() {
        let _ = conn.close(statement).await;
    }
    drop(held);
    let (moves, caveats) = moving(server, address, what).await?;
    Ok(Opened {
        name: format!("{} (query)", address.name()),
        columns,
        indexes: Vec::new(),
        from,
        is_query: true,
        estimate: None,
        position: SourcePosition { is_state: is_fixed(what) && !moves, caveats, ..SourcePosition::default() },
    })
}

#[async_trait]
impl Source for MySqlSource {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn key(&self) -> &[String] {
        &self.key
    }

    fn position(&self) -> &SourcePosition {
        &self.position
    }

    async fn estimated_rows(&self) -> Result<Option<u64>> {
        Ok(self.estimate)
    }

    async fn is_indexed(&self, ordered_by: &[String]) -> Result<bool> {
        self.is_served_in_order(ordered_by).await
    }

    async fn shares_connection(&self, ordered_by: &[String]) -> Result<bool> {
        self.is_chunked(ordered_by).await
    }

    fn holds(&self, column: &str, value: &ScalarValue) -> bool {
        let known = self.body.columns.iter().find(|known| known.source.name == column);
        // later years than the server has are another date to it, or none
        let beyond = |param: &Option<Value>| matches!(param, Some(Value::Date(year, ..)) if *year > 9_999);
        known.is_none_or(|known| key_param(known, value).is_ok_and(|param| !beyond(&param)))
    }

    fn takes(&self, filter: &Filter) -> bool {
        let column = self.body.columns.iter().find(|column| column.source.name == filter.column);
        column.is_some_and(|column| filters::filtered(&mut Bounds::new(true, false), column, &filter.test).is_some())
    }

    fn may_be_unreadable(&self, column: &str) -> bool {
        let known = self.body.columns.iter().find(|known| known.source.name == column);
        // texts come in UTF-8, and numbers as a table declares them
        known.is_none_or(|known| match known.kind {
            Kind::Date | Kind::Time(_) | Kind::DateTime(_) => true,
            Kind::Decimal => self.body.is_query,
            Kind::Int | Kind::Float | Kind::Double | Kind::Bit | Kind::Text | Kind::Bytes => false,
        })
    }

    async fn read(&self, read: SourceRead) -> Result<SendableRecordBatchStream> {
        self.start(read).await
    }

    fn work(&self) -> SourceWork {
        self.body.server.work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_alone_is_not_the_position_of_a_snapshot() {
        let log = |end: Option<&str>, gtids: Option<&str>| Log {
            end: end.map(str::to_string),
            gtids: gtids.map(str::to_string),
        };
        for (log, shown, proven) in [
            (log(Some("b.1:5"), Some("u:1-9")), "b.1:5, gtid u:1-9", true),
            (log(Some("b.1:5"), None), "b.1:5", false),
            (log(None, Some("u:1-9")), "gtid u:1-9", true),
            // that it has none is told by itself
            (log(Some(NO_BINLOG), None), NO_BINLOG, true),
        ] {
            assert_eq!((log.to_string().as_str(), log.unproven().is_none()), (shown, proven));
        }
    }
}
