//! Databases that a table is compared with: one consistent read of one of them.
//!
//! A source is opened, which fixes what it shows (a transaction with a snapshot of its own), and says where that lies in
//! the database's own history. All reads of an opened source show that one state; when its connection ends, so does the
//! state, and nothing is read again behind the caller's back.
//!
//! `address.rs` where it is · `secrets.rs` passwords kept elsewhere · `tls.rs` · `manners.rs` how politely it is read ·
//! `cells.rs` values to batches · `bounds.rs` conditions on keys · `filter.rs` conditions on other columns · `feed.rs` a read as a stream · `faults.rs` what went
//! wrong · `mysql/`, `postgres/` the databases.

// what only the drivers use is there without them too
#![cfg_attr(not(all(feature = "mysql", feature = "postgres")), allow(dead_code, unused_imports))]

mod address;
mod bounds;
mod cells;
mod faults;
mod feed;
mod filter;
mod manners;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod secrets;
mod tls;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::sqlparser::ast::{ObjectName, visit_relations};
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::error::{Error, Result};

pub use address::{Address, Database};
pub(super) use cells::{UNREADABLE, unreadable_field};
pub use cells::{Unreadable, unreadable_of};
pub use filter::{Filter, Operator, Test, widens};
pub use manners::Manners;

/// Opens a database for one comparison: one connection, read only, at one consistent state.
///
/// `what` is a table, `schema.table` or `database.table`, with the database's quotes where it needs them, or a query
/// (`SELECT …`, `WITH …`); empty: the table that the address names. How politely it is read may stand in the address:
/// `mysql://reader@db.host/shop?chunk_rows=2000&pause=50ms`.
///
/// # Errors
/// An address that is none, a server that does not answer or refuses, a table that is not there or may not be read.
pub async fn open(url: &str, what: &str) -> Result<Arc<dyn Source>> {
    open_politely(url, what, &Manners::default()).await
}

/// The same with manners of the caller's; what the address says goes before them.
///
/// # Errors
/// As [`open`].
pub async fn open_politely(url: &str, what: &str, manners: &Manners) -> Result<Arc<dyn Source>> {
    let address = Address::parse(url)?;
    let manners = address.manners(manners);
    let what = match (what.trim(), &address.table) {
        ("", Some(table)) => table.clone(),
        ("", None) => {
            return Err(Error::invalid("no table of the source is named")
                .with_code("SourceAddress")
                .with_context("source", address.name())
                .with_hint("name a table or a SELECT, or put ?table=NAME behind the address"));
        }
        (what, _) => what.trim_end_matches(';').trim_end().to_string(),
    };
    match address.database_kind {
        #[cfg(feature = "mysql")]
        Database::MySql => mysql::open(&address, &what, manners).await,
        #[cfg(feature = "postgres")]
        Database::Postgres => postgres::open(&address, &what, manners).await,
        #[cfg(not(all(feature = "mysql", feature = "postgres")))]
        other => {
            let _ = (what, manners);
            let (name, feature) = match other {
                Database::MySql => ("MySQL", "mysql"),
                Database::Postgres => ("PostgreSQL", "postgres"),
            };
            Err(Error::unsupported(format!("this build reads no {name}"))
                .with_code("SourceAddress")
                .with_hint(format!("build it with the feature {feature}")))
        }
    }
}

/// Whether what is to be read is a query, not the name of a table.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn is_query(what: &str) -> bool {
    let what = what.trim_start();
    let word: String = what.chars().take_while(char::is_ascii_alphabetic).collect();
    let after = what.get(word.len()..).unwrap_or_default();
    let ends = after.starts_with(|c: char| c.is_whitespace() || "('`\"*/".contains(c));
    what.starts_with('(') || ends && ["select", "with", "values", "table"].contains(&word.to_lowercase().as_str())
}

/// Whether a query gives the same at the same state, by its words: none of them is of time, chance or the session.
/// Rather one too many: without progress it is compared all the same.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn is_fixed(query: &str) -> bool {
    const MOVING: &[&str] = &[
        "now",
        "current_date",
        "current_time",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "curdate",
        "curtime",
        "sysdate",
        "unix_timestamp",
        "utc_date",
        "utc_time",
        "utc_timestamp",
        "clock_timestamp",
        "statement_timestamp",
        "transaction_timestamp",
        "timeofday",
        "age",
        "rand",
        "random",
        "uuid",
        "uuid_short",
        "gen_random_uuid",
        "tablesample",
        "limit",
        "fetch",
        "connection_id",
        "dblink",
    ];
    let mut words = query.split(|c: char| !c.is_alphanumeric() && c != '_');
    !query.contains("@") && !words.any(|word| MOVING.iter().any(|moving| word.eq_ignore_ascii_case(moving)))
}

/// What a query names to read, each once, names of its own WITH among them; None: only the server understands it.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn relations(query: &str, dialect: &dyn Dialect) -> Option<Vec<ObjectName>> {
    let parsed = Parser::parse_sql(dialect, query).ok()?;
    let mut found = Vec::new();
    let _ = visit_relations(&parsed, |name| {
        if !found.contains(name) {
            found.push(name.clone());
        }
        ControlFlow::<()>::Continue(())
    });
    Some(found)
}

/// A column of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceColumn {
    /// Its name.
    pub name: String,
    /// The Arrow type its values are read as, with the precision that is declared. Values that it does not hold (zero
    /// dates, infinity, times beyond a day) are unreadable: see [`SourceRead::unreadable`]. What Arrow has no exact
    /// type for is the database's own text: `numeric` without a precision, arrays, intervals, JSON.
    pub data_type: DataType,
    /// The type as the database declares it: `bigint unsigned`, `enum('PAID','FAILED')`.
    pub declared: String,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// How the database sorts and compares it.
    pub order: SourceOrder,
}

impl SourceColumn {
    /// The collation by which texts are one that are different ones here, `A` and `a` among them; `unknown` where it is not
    /// told. None: there is none.
    pub fn collation(&self) -> Option<String> {
        // MySQL names what its collations leave out, PostgreSQL marks those that take different texts for one
        let widens = |name: &str| {
            ["_ci", "_cs", "_ai"].iter().any(|ending| name.ends_with(ending)) || name.contains("nondeterministic")
        };
        match &self.order {
            SourceOrder::Collation(name) if widens(name) || name == "unknown" => Some(name.clone()),
            SourceOrder::Other if self.declared == "citext" => Some("citext".into()),
            _ => None,
        }
    }
}

/// How a database sorts and compares the values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceOrder {
    /// As values do: numbers and times by size, text and bytes byte by byte.
    Values,
    /// By a collation, which may take different texts for equal.
    Collation(String),
    /// In another way, such as an enumeration's list.
    Other,
}

/// Where a read lies in a database's history, and what was found out about the database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourcePosition {
    /// The database and its release: `MariaDB 10.11.19`.
    pub server: String,
    /// The position: binlog file and offset, GTID, LSN.
    pub position: String,
    /// Whether one position is one state: whatever changes what is read moves the position.
    pub is_state: bool,
    /// The clock of the database when the read began, epoch milliseconds.
    pub clock_millis: i64,
    /// Zone in which the session's zoned values were read.
    pub zone: String,
    /// How far a replica lags behind, where that is known.
    pub lag_millis: Option<i64>,
    /// What keeps the state from being one state, or its position from being known, for people.
    pub caveats: Vec<String>,
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.server, self.position)
    }
}

/// Which rows of a source are read.
#[derive(Debug, Clone, Default)]
pub struct SourceRead {
    /// Columns, by name, in the order wanted.
    pub columns: Vec<String>,
    /// Key columns to read in ascending order of; none: in any order. Texts go byte by byte. NULLs are where the
    /// database has them: first in MySQL, last in PostgreSQL.
    pub ordered_by: Vec<String>,
    /// Only keys beyond this one, in the order above.
    pub after: Option<Vec<ScalarValue>>,
    /// Only keys up to this one and with it.
    pub upto: Option<Vec<ScalarValue>>,
    /// Only these keys, a list of few; empty: all. Values of the columns above, or else of the source's key.
    pub keys: Vec<Vec<ScalarValue>>,
    /// A condition in the database's own SQL.
    pub condition: Option<String>,
    /// Conditions that [`Source::takes`]: rows for which one of them does not hold may be left out.
    pub filters: Vec<Filter>,
    /// Whether a value that its column's type does not hold is NULL and told, with its text, in one more column behind
    /// those asked for ([`unreadable_of`] reads it); else it ends the read with an error.
    pub unreadable: bool,
}

/// What a source did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceWork {
    /// Statements sent.
    pub queries: u64,
    /// Rows received.
    pub rows: u64,
}

/// A database opened for one comparison.
#[async_trait]
pub trait Source: Send + Sync + fmt::Debug {
    /// What is read, for people, without secrets: `mysql://db.host/shop.pay_success`.
    fn name(&self) -> String;

    /// Its columns, in the order of the table.
    fn columns(&self) -> &[SourceColumn];

    /// The columns of its primary key; else of a unique key without NULLs; else none.
    fn key(&self) -> &[String];

    /// What state is read.
    fn position(&self) -> &SourcePosition;

    /// How many rows the database believes it holds: an estimate, never counted for this.
    async fn estimated_rows(&self) -> Result<Option<u64>>;

    /// Whether rows come in that order by an index: without, the database would sort all of them. Asks the database for
    /// its plan.
    async fn is_indexed(&self, ordered_by: &[String]) -> Result<bool>;

    /// Whether a read in that order lets other reads begin before it has ended.
    async fn shares_connection(&self, _ordered_by: &[String]) -> Result<bool> {
        Ok(true)
    }

    /// Whether a column can hold a value, which is of its Arrow type: the database refuses to look for one that it
    /// cannot.
    fn holds(&self, _column: &str, _value: &ScalarValue) -> bool {
        true
    }

    /// Whether the database keeps at least the rows for which a condition holds here, so that it may be sent.
    fn takes(&self, _filter: &Filter) -> bool {
        false
    }

    /// Whether some value of a column may be one that its Arrow type does not hold.
    fn may_be_unreadable(&self, _column: &str) -> bool {
        true
    }

    /// Rows, as a stream of batches whose columns are those asked for. Rows are fetched in chunks as the stream is
    /// polled.
    ///
    /// # Errors
    /// In the stream too: a connection that was lost, a statement that took too long, a value that is none of its type.
    /// While MySQL streams what has no key to be read by in chunks, other reads of the source are refused.
    async fn read(&self, read: SourceRead) -> Result<SendableRecordBatchStream>;

    /// What was done so far.
    fn work(&self) -> SourceWork;
}

#[cfg(test)]
mod tests {
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    #[test]
    fn queries_are_told_from_tables() {
        let queries = ["select 1", "SELECT\n*", "(select 1)", " with a as (select 1) select 1", "select(1)"];
        let tables = ["t", "selected", "shop.select_log", "`select`.t", "\"with\"", "table_a", "select"];
        assert!(queries.iter().all(|what| super::is_query(what)));
        assert!(tables.iter().all(|what| !super::is_query(what)));
    }

    #[cfg(any(feature = "mysql", feature = "postgres"))]
    #[test]
    fn queries_of_now_and_of_chance_are_not_the_same_twice() {
        let fixed = ["SELECT id, a FROM t WHERE at < '2026-01-01'", "select nowhere from renown"];
        let moving = ["select * from t where at < NOW()", "select @x", "select * from t order by rand() limit 5"];
        assert!(fixed.iter().all(|query| super::is_fixed(query)));
        assert!(moving.iter().all(|query| !super::is_fixed(query)));
    }

    #[tokio::test]
    async fn an_address_without_a_table_says_how_to_name_one() {
        let error = super::open("mysql://u:geheim@h/d", "").await.expect_err("nothing is named");
        assert!(error.hint().is_some_and(|hint| hint.contains("?table=")), "{error:?}");
        assert!(!format!("{error:?}").contains("geheim"));
    }
}
