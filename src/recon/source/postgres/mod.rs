//! PostgreSQL: a repeatable read in one connection, whose rows come by cursors.
//!
//! A cursor shows the transaction's one snapshot, is fetched from in chunks, and needs no order without ties: NULLs and
//! doubles in the order asked for are neither lost nor read twice.
//!
//! `server.rs` the connection · `columns.rs` types · `values.rs` cells and parameters · `filters.rs` conditions.

mod columns;
mod filters;
mod server;
mod values;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use tokio_postgres::Row;

use super::address::Address;
use super::bounds::{Bounds, Term, listed};
use super::cells::{Chunk, schema_of};
use super::feed::{self, Feed, OrderCheck};
use super::manners::{Manners, Pace};
use super::{
    Filter, Source, SourceColumn, SourceOrder, SourcePosition, SourceRead, SourceWork, faults, is_fixed, is_query,
    relations,
};
use crate::error::{Error, Result};
use columns::{Declared, Kind, PgColumn, quoted};
use server::Server;
use values::{Raw, decode, key_text};

/// Keys asked for in one statement.
const KEYS: usize = 200;

/// What all reads of a source share.
struct Body {
    server: Server,
    columns: Vec<PgColumn>,
    /// What stands behind FROM.
    from: String,
}

struct PgSource {
    name: String,
    columns: Vec<SourceColumn>,
    key: Vec<String>,
    position: SourcePosition,
    estimate: Option<u64>,
    body: Arc<Body>,
}

impl fmt::Debug for PgSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

pub(super) async fn open(address: &Address, what: &str, manners: Manners) -> Result<Arc<dyn Source>> {
    let mut server = Server::connect(address, address.name(), manners).await?;
    let position = begin(&mut server).await?;
    let opened =
        if is_query(what) { of_query(&server, address, what).await? } else { of_table(&server, address, what).await? };
    server.rename(opened.name.clone());
    Ok(Arc::new(PgSource {
        name: opened.name,
        columns: opened.columns.iter().map(|column| column.source.clone()).collect(),
        key: opened.key,
        position: SourcePosition {
            is_state: position.is_state && opened.is_state,
            caveats: [position.caveats.clone(), opened.caveats].concat(),
            ..position
        },
        estimate: opened.estimate,
        body: Arc::new(Body { server, columns: opened.columns, from: opened.from }),
    }))
}

/// What was found out about a table or query.
struct Opened {
    name: String,
    columns: Vec<PgColumn>,
    key: Vec<String>,
    from: String,
    estimate: Option<u64>,
    /// Whether one position of the server is one state of it.
    is_state: bool,
    caveats: Vec<String>,
}

fn value<T>(row: &Row, name: &str) -> Option<T>
where
    T: for<'a> tokio_postgres::types::FromSql<'a>,
{
    row.try_get::<_, Option<T>>(name).ok().flatten()
}

/// Begins the transaction, and says where it lies.
async fn begin(server: &mut Server) -> Result<SourcePosition> {
    let manners = &server.manners;
    // a reader that pauses is not cut off; texts of values do not depend on how the server is set up; rows that a policy
    // would hide are an error
    let session = format!(
        "SET statement_timeout = {}; SET lock_timeout = {}; SET idle_in_transaction_session_timeout = 0; \
         SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'; SET IntervalStyle = 'postgres'; \
         SET bytea_output = 'hex'; SET extra_float_digits = 3; SET standard_conforming_strings = on; \
         SET row_security = off; \
         BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SAVEPOINT lakepin",
        manners.statement_timeout.as_millis(),
        manners.lock_timeout.as_millis(),
    );
    server.batch(&session).await?;
    // the first statement takes the snapshot
    let rows = server
        .rows(
            "SELECT txid_current_snapshot()::text AS snapshot, \
             (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS clock, current_setting('server_version') AS version, \
             pg_is_in_recovery() AS standby, current_setting('server_encoding') AS encoding, \
             (extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000)::bigint AS lag",
            &[],
        )
        .await?;
    let row = rows.first().ok_or_else(|| Error::internal("the source says nothing about itself"))?;
    server.is_utf8 = value::<String>(row, "encoding").as_deref() == Some("UTF8");
    let standby = value(row, "standby").unwrap_or(false);
    let mut caveats = Vec::new();
    let lsn = if standby { "pg_last_wal_replay_lsn()" } else { "pg_current_wal_lsn()" };
    let lsn = match server.rows(&format!("SELECT {lsn}::text AS lsn"), &[]).await {
        Ok(rows) => rows.first().and_then(|row| value::<String>(row, "lsn")),
        Err(error) if ["SourceDenied", "SourceStatement"].contains(&error.code()) => None,
        Err(error) => return Err(error),
    };
    if lsn.is_none() {
        caveats.push("the position in the log is not known: this user may not ask for it".into());
    }
    if standby {
        caveats.push("a standby: a conflict with what it replays may end the read".into());
    }
    let version = value::<String>(row, "version").unwrap_or_default();
    let snapshot = value::<String>(row, "snapshot").unwrap_or_default();
    Ok(SourcePosition {
        server: format!("PostgreSQL {}", version.split(' ').next().unwrap_or_default()),
        is_state: lsn.is_some(),
        position: format!("LSN {}, snapshot {snapshot}", lsn.as_deref().unwrap_or("not known")),
        clock_millis: value(row, "clock").unwrap_or_default(),
        zone: "UTC".into(),
        lag_millis: value(row, "lag").filter(|_| standby),
        caveats,
    })
}

const FIND: &str = "SELECT c.oid::bigint AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind, \
    c.relpersistence::text AS persistence, has_any_column_privilege(c.oid, 'SELECT') AS readable, \
    CASE WHEN c.relkind = 'p' THEN (SELECT sum(nullif(l.reltuples, -1))::bigint FROM pg_partition_tree(c.oid) p \
    JOIN pg_class l ON l.oid = p.relid WHERE p.isleaf) ELSE nullif(c.reltuples, -1)::bigint END AS estimate \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)";

const COLUMNS: &str = "SELECT a.attname::text AS name, b.oid::bigint AS oid, b.modifier AS modifier, \
    format_type(a.atttypid, a.atttypmod) AS full, format_type(b.oid, -1) AS base, a.attnotnull AS not_null, \
    CASE WHEN l.collname = 'default' THEN (SELECT datcollate::text FROM pg_database WHERE datname = current_database() \
    AND coalesce(to_jsonb(pg_database) ->> 'datlocprovider', 'c') <> 'i') \
    WHEN (to_jsonb(l) ->> 'collisdeterministic') = 'false' THEN l.collname::text || ' (ICU, nondeterministic)' \
    WHEN l.collprovider = 'i' THEN l.collname::text || ' (ICU)' ELSE l.collname::text END AS collation \
    FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation, LATERAL ( \
    WITH RECURSIVE under AS (SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, a.atttypmod AS modifier FROM pg_type t \
    WHERE t.oid = a.atttypid UNION ALL SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, \
    CASE WHEN u.modifier = -1 THEN u.typtypmod ELSE u.modifier END FROM under u JOIN pg_type t ON t.oid = u.typbasetype \
    WHERE u.typtype = 'd') SELECT oid, modifier FROM under WHERE typtype <> 'd' LIMIT 1) b \
    WHERE a.attrelid = $1::text::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

// the primary key, else the unique index with the fewest columns; not of parts, expressions or columns with NULLs, and not
// of a table whose heirs are read with it: their keys may be the same
const KEY: &str = "SELECT a.attname::text AS name FROM (SELECT i.indexrelid, i.indrelid, i.indkey, i.indnkeyatts FROM pg_index i \
    WHERE i.indrelid = $1::text::oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL \
    AND NOT EXISTS (SELECT 1 FROM pg_inherits h JOIN pg_class p ON p.oid = h.inhparent WHERE p.oid = i.indrelid AND p.relkind = 'r') \
    AND NOT EXISTS (SELECT 1 FROM generate_series(0, i.indnkeyatts - 1) g JOIN pg_attribute a ON a.attrelid = i.indrelid \
    AND a.attnum = i.indkey[g] WHERE NOT a.attnotnull) ORDER BY i.indisprimary DESC, i.indnkeyatts, i.indexrelid LIMIT 1) i, \
    generate_series(0, i.indnkeyatts - 1) g JOIN pg_attribute a ON true \
    WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[g] ORDER BY g";

/// A table's name as it is, and as the server takes what stands without quotes.
fn spellings(what: &str) -> Vec<String> {
    if what.contains('"') {
        return vec![what.to_string()];
    }
    let exact: Vec<String> = what.split('.').map(quoted).collect();
    vec![exact.join("."), what.to_lowercase().split('.').map(quoted).collect::<Vec<_>>().join(".")]
}

/// Whether a change of it moves the position: what is logged does; a view may read what is not.
fn moved_by_log(kind: &str, persistence: &str) -> bool {
    ["r", "p", "m"].contains(&kind) && persistence == "p"
}

async fn of_table(server: &Server, address: &Address, what: &str) -> Result<Opened> {
    let mut found = None;
    for spelling in spellings(what) {
        match server.rows(FIND, &[Some(spelling)]).await {
            Ok(rows) => found = found.or(rows.into_iter().next()),
            // what no name is
            Err(error) if error.code() == "SourceStatement" => {}
            Err(error) => return Err(error),
        }
    }
    let Some(row) = found else {
        let known = server
            .rows(
                "SELECT CASE WHEN n.nspname = 'public' THEN c.relname::text ELSE n.nspname || '.' || c.relname END AS name \
                 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') \
                 AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')",
                &[],
            )
            .await?;
        let known: Vec<String> = known.iter().filter_map(|row| value(row, "name")).collect();
        return Err(faults::no_table(server.name(), what, &known));
    };
    let text = |name: &str| value::<String>(&row, name).unwrap_or_default();
    let (schema, table, kind) = (text("schema"), text("name"), text("kind"));
    if !value(&row, "readable").unwrap_or(true) {
        return Err(faults::denied(server.name(), &format!("this user may not read {schema}.{table}"), None));
    }
    let mut caveats = Vec::new();
    if kind == "f" {
        caveats.push("a foreign table: another server is read, not at one state with this one".into());
    }
    let from = format!("{}.{}", quoted(&schema), quoted(&table));
    // takes the lock that keeps the table as it is
    server.rows(&format!("SELECT FROM {from} LIMIT 0"), &[]).await?;
    let oid = Some(value::<i64>(&row, "oid").unwrap_or_default().to_string());
    let columns = server.rows(COLUMNS, std::slice::from_ref(&oid)).await?;
    let columns = columns.iter().map(|row| declared(row).column(server.is_utf8)).collect();
    let key = server.rows(KEY, std::slice::from_ref(&oid)).await?;
    Ok(Opened {
        name: format!("{}/{schema}.{table}", address.name()),
        columns,
        key: key.iter().filter_map(|row| value(row, "name")).collect(),
        from,
        estimate: value::<i64>(&row, "estimate").and_then(|rows| u64::try_from(rows).ok()),
        is_state: moved_by_log(&kind, &text("persistence")),
        caveats,
    })
}

fn declared(row: &Row) -> Declared {
    Declared {
        name: value(row, "name").unwrap_or_default(),
        oid: value::<i64>(row, "oid").and_then(|oid| u32::try_from(oid).ok()).unwrap_or_default(),
        modifier: value(row, "modifier").unwrap_or(-1),
        full: value(row, "full").unwrap_or_default(),
        base: value(row, "base").unwrap_or_default(),
        not_null: value(row, "not_null").unwrap_or(false),
        collation: value(row, "collation"),
    }
}

async fn of_query(server: &Server, address: &Address, what: &str) -> Result<Opened> {
    let from = format!("(\n{what}\n) AS query");
    let statement = server.described(&format!("SELECT * FROM {from}")).await?;
    let mut columns = Vec::new();
    for column in statement.columns() {
        let (oid, modifier) = (column.type_().oid(), column.type_modifier());
        let rows = server
            .rows(
                "SELECT format_type($1::text::oid, $2::text::integer) AS full, format_type($1::text::oid, -1) AS base",
                &[Some(oid.to_string()), Some(modifier.to_string())],
            )
            .await?;
        let (full, base) = rows.first().map(|row| (value(row, "full"), value(row, "base"))).unwrap_or_default();
        let declared = Declared {
            name: column.name().to_string(),
            oid,
            modifier,
            full: full.unwrap_or_default(),
            base: base.unwrap_or_default(),
            not_null: false,
            collation: None,
        };
        columns.push(declared.column(server.is_utf8));
    }
    let (moves, caveats) = moving(server, what).await?;
    Ok(Opened {
        name: format!("{} (query)", address.name()),
        columns,
        key: Vec::new(),
        from,
        estimate: None,
        is_state: is_fixed(what) && !moves,
        caveats,
    })
}

/// What keeps a query from being of one state: foreign tables, which are told, and what cannot be known.
async fn moving(server: &Server, query: &str) -> Result<(bool, Vec<String>)> {
    let Some(names) = relations(query, &PostgreSqlDialect {}) else { return Ok((true, Vec::new())) };
    let (mut moves, mut caveats) = (false, Vec::new());
    for name in names {
        let known = match server.rows(FIND, &[Some(name.to_string())]).await {
            // what no name is
            Err(error) if error.code() == "SourceStatement" => continue,
            known => known?,
        };
        // one of its WITH, or a function, is no table
        let Some(row) = known.first() else { continue };
        let text = |name: &str| value::<String>(row, name).unwrap_or_default();
        moves |= !moved_by_log(&text("kind"), &text("persistence"));
        if text("kind") == "f" {
            caveats.push(format!("{name} is a foreign table: another server is read, not at one state with this one"));
        }
    }
    Ok((moves, caveats))
}

/// What is read, put together once.
struct Plan {
    body: Arc<Body>,
    read: Vec<usize>,
    ordered: Vec<usize>,
    conditions: Vec<String>,
    params: Vec<Option<String>>,
}

impl Plan {
    fn column(&self, at: &usize) -> Option<&PgColumn> {
        self.body.columns.get(*at)
    }

    fn select(&self, other: Option<String>) -> String {
        let names: Vec<String> = self.read.iter().filter_map(|at| self.column(at)).map(PgColumn::selected).collect();
        let conditions: Vec<String> = self.conditions.iter().cloned().chain(other).collect();
        let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let by: Vec<&PgColumn> = self.ordered.iter().filter_map(|at| self.column(at)).collect();
        format!("SELECT {} FROM {}{filter}{}", names.join(", "), self.body.from, self.body.order_by(&by))
    }

    fn chunk(&self, rows: &[Row]) -> Result<Chunk> {
        let wanted: Vec<&PgColumn> = self.read.iter().filter_map(|at| self.column(at)).collect();
        let sources: Vec<&SourceColumn> = wanted.iter().map(|column| &column.source).collect();
        let mut chunk = Chunk::new(&sources)?;
        self.body.server.count_rows(rows.len());
        for row in rows {
            let mut decoded = Vec::with_capacity(wanted.len());
            for (at, column) in wanted.iter().enumerate() {
                let raw: Raw<'_> = row.try_get(at).map_err(|e| Error::internal(e.to_string()))?;
                decoded.push(decode(raw, column.kind)?);
            }
            chunk.push(decoded.iter().map(values::Decoded::cell))?;
        }
        Ok(chunk)
    }
}

impl Body {
    fn order_by(&self, columns: &[&PgColumn]) -> String {
        let columns: Vec<String> = columns.iter().map(|column| column.in_order(self.server.is_utf8)).collect();
        if columns.is_empty() { String::new() } else { format!(" ORDER BY {}", columns.join(", ")) }
    }

    fn terms(&self, columns: &[&PgColumn], key: &[ScalarValue]) -> Result<Vec<Term<Option<String>>>> {
        let is_utf8 = self.server.is_utf8;
        let term = |(column, value): (&&PgColumn, &ScalarValue)| {
            let value = key_text(&column.source, value)?.map(Some);
            let expression = column.in_order(is_utf8);
            Ok(Term { expression, around: column.around(is_utf8), value, nullable: column.source.nullable })
        };
        columns.iter().zip(key).map(term).collect()
    }

    /// A key as it is looked up: by what an index knows, and exactly.
    fn lookup(&self, columns: &[&PgColumn], key: &[ScalarValue]) -> Result<Vec<Term<Option<String>>>> {
        let mut terms = self.terms(columns, key)?;
        for (column, value) in columns.iter().zip(key) {
            if matches!(column.source.order, SourceOrder::Collation(_)) {
                let value = key_text(&column.source, value)?.map(Some);
                let (expression, nullable) = (quoted(&column.source.name), column.source.nullable);
                terms.push(Term { expression, around: column.around_column(), value, nullable });
            }
        }
        Ok(terms)
    }
}

impl PgSource {
    fn positions(&self, names: &[String]) -> Result<Vec<usize>> {
        let position = |name: &String| {
            let known = self.columns.iter().position(|column| column.name == *name);
            known.ok_or_else(|| faults::no_column(self.body.server.name(), name, &self.columns))
        };
        names.iter().map(position).collect()
    }

    fn start(&self, read: SourceRead) -> Result<SendableRecordBatchStream> {
        let body = Arc::clone(&self.body);
        let ordered = self.positions(&read.ordered_by)?;
        let wanted = self.positions(&read.columns)?;
        let column = |at: &usize| body.columns.get(*at);
        let by: Vec<&PgColumn> = ordered.iter().filter_map(column).collect();
        let mut bounds = Bounds::new(false, true);
        let mut conditions = Vec::new();
        // on a line of its own: it may end in a comment
        conditions.extend(read.condition.as_ref().map(|condition| format!("({condition}\n)")));
        for (bound, is_after) in [(&read.after, true), (&read.upto, false)] {
            let Some(key) = bound else { continue };
            if key.len() != by.len() || by.is_empty() {
                return Err(Error::internal("a bound has other columns than the order of the read"));
            }
            let terms = body.terms(&by, key)?;
            conditions.push(if is_after { bounds.beyond(&terms) } else { bounds.upto(&terms) });
        }
        for filter in &read.filters {
            let [at] = self.positions(std::slice::from_ref(&filter.column))?[..] else { continue };
            let is_utf8 = body.server.is_utf8;
            let sql = column(&at).and_then(|column| filters::filtered(&mut bounds, column, &filter.test, is_utf8));
            conditions.push(sql.ok_or_else(|| Error::internal(format!("{filter} is no condition for this source")))?);
        }
        let sources: Vec<&SourceColumn> = wanted.iter().filter_map(column).map(|column| &column.source).collect();
        let order: Vec<&SourceColumn> = by.iter().map(|column| &column.source).collect();
        let check = OrderCheck::of(body.server.name(), &sources, &order, false)?;
        let schema = schema_of(&sources, read.unreadable);
        let is_binary = by.iter().all(|column| column.source.order == SourceOrder::Values);
        let plan = Plan { body: Arc::clone(&body), read: wanted, ordered, conditions, params: bounds.params };
        if !read.keys.is_empty() {
            let of = if plan.ordered.is_empty() { self.positions(&self.key)? } else { plan.ordered.clone() };
            let keys = listed(read.keys, of.len(), false)?;
            return Ok(feed::stream(schema, check, move |feed| by_keys(plan, of, keys, feed)));
        }
        Ok(feed::stream(schema, check, move |feed| by_cursor(plan, is_binary, feed)))
    }
}

/// A cursor that is left when its read ends, however it ends.
struct Cursor<'a>(&'a Server, String);

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        self.0.leave(std::mem::take(&mut self.1));
    }
}

async fn by_cursor(plan: Plan, is_binary: bool, mut feed: Feed) -> Result<()> {
    let server = &plan.body.server;
    let name = server.cursor();
    let declare = format!("DECLARE {name} NO SCROLL CURSOR WITHOUT HOLD FOR {}", plan.select(None));
    // an index that gives the order is taken where there is one: a sort would have to read all first
    let by_index = is_binary && !plan.ordered.is_empty();
    if by_index {
        server.rows("SET LOCAL enable_sort = off", &[]).await?;
    }
    let declared = server.rows_for(&feed, &declare, &plan.params).await;
    if by_index {
        server.rows("SET LOCAL enable_sort TO DEFAULT", &[]).await?;
    }
    if declared?.is_none() {
        return Ok(());
    }
    let cursor = Cursor(server, name);
    // what fails later takes no cursor with it
    server.keep().await?;
    let mut pace = Pace::new(&server.manners);
    loop {
        let asked = pace.rows();
        let fetch = format!("FETCH FORWARD {asked} FROM {}", cursor.1);
        let Some(rows) = server.rows_for(&feed, &fetch, &[]).await? else { return Ok(()) };
        let chunk = plan.chunk(&rows)?;
        pace.learn(rows.len(), chunk.bytes());
        if !feed.give(chunk).await? || rows.len() < asked || !pace.rest(&feed).await {
            return Ok(());
        }
    }
}

/// Keys by lists, each list one statement.
async fn by_keys(plan: Plan, of: Vec<usize>, keys: Vec<Vec<ScalarValue>>, mut feed: Feed) -> Result<()> {
    let server = &plan.body.server;
    let columns: Vec<&PgColumn> = of.iter().filter_map(|at| plan.column(at)).collect();
    let mut pace = Pace::new(&server.manners);
    for some in keys.chunks(KEYS) {
        let mut bounds = Bounds::new(false, true);
        bounds.params.clone_from(&plan.params);
        let mut any = Vec::with_capacity(some.len());
        for key in some {
            any.push(bounds.only(&plan.body.lookup(&columns, key)?));
        }
        let sql = plan.select(Some(format!("({})", any.join(" OR "))));
        let Some(rows) = server.rows_for(&feed, &sql, &bounds.params).await? else { return Ok(()) };
        let chunk = plan.chunk(&rows)?;
        pace.learn(rows.len(), chunk.bytes());
        if !feed.give(chunk).await? || !pace.rest(&feed).await {
            return Ok(());
        }
    }
    Ok(())
}

#[async_trait]
impl Source for PgSource {
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
        let server = &self.body.server;
        let ordered = self.positions(ordered_by)?;
        let columns: Vec<&PgColumn> = ordered.iter().filter_map(|at| self.body.columns.get(*at)).collect();
        if columns.iter().any(|column| column.source.order != SourceOrder::Values) {
            return Ok(false);
        }
        server.rows("SET LOCAL enable_sort = off", &[]).await?;
        let explain = format!("EXPLAIN (FORMAT JSON) SELECT * FROM {}{}", self.body.from, self.body.order_by(&columns));
        let plan = server.rows(&explain, &[]).await;
        server.rows("SET LOCAL enable_sort TO DEFAULT", &[]).await?;
        let plan = plan?
            .iter()
            .map(|row| row.try_get::<_, Raw<'_>>(0).ok().and_then(|raw| raw.0.map(<[u8]>::to_vec)))
            .collect::<Option<Vec<_>>>();
        let plan = plan.ok_or_else(|| Error::internal("EXPLAIN gives no plan"))?.concat();
        let plan: serde_json::Value =
            serde_json::from_slice(&plan).map_err(|e| Error::internal("EXPLAIN gives no JSON").with_source(e))?;
        Ok(!sorts(&plan))
    }

    fn holds(&self, column: &str, value: &ScalarValue) -> bool {
        let known = self.body.columns.iter().find(|known| known.source.name == column);
        known.is_none_or(|known| known.holds(value))
    }

    fn takes(&self, filter: &Filter) -> bool {
        let column = self.body.columns.iter().find(|column| column.source.name == filter.column);
        let is_utf8 = self.body.server.is_utf8;
        let mut bounds = Bounds::new(false, true);
        column.is_some_and(|column| filters::filtered(&mut bounds, column, &filter.test, is_utf8).is_some())
    }

    fn may_be_unreadable(&self, column: &str) -> bool {
        let known = self.body.columns.iter().find(|known| known.source.name == column);
        known.is_none_or(|known| match known.kind {
            Kind::Bool | Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Float4 | Kind::Float8 | Kind::Bytes => false,
            // bytes of any kind are a text in a database without an encoding
            Kind::Text | Kind::Padded | Kind::Inet => !self.body.server.is_utf8,
            // NaN, infinity, times that Arrow has not
            Kind::Numeric | Kind::Date | Kind::Time | Kind::Timestamp => true,
        })
    }

    async fn read(&self, read: SourceRead) -> Result<SendableRecordBatchStream> {
        self.start(read)
    }

    fn work(&self) -> SourceWork {
        self.body.server.work()
    }
}

/// Whether some node of a plan sorts all its rows.
fn sorts(plan: &serde_json::Value) -> bool {
    match plan {
        serde_json::Value::Array(parts) => parts.iter().any(sorts),
        serde_json::Value::Object(node) => {
            node.get("Node Type").and_then(serde_json::Value::as_str) == Some("Sort") || node.values().any(sorts)
        }
        _ => false,
    }
}
