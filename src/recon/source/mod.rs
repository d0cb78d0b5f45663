//! Databases that a table is compared with: one consistent read of one of them.
//!
//! A source is opened, which fixes what it shows (a transaction with a snapshot of its own), and says where that lies in
//! the database's own history. All reads of an opened source show that one state.

use std::fmt;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;

use crate::error::Result;

/// A column of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceColumn {
    /// Its name.
    pub name: String,
    /// The Arrow type its values are read as: wide enough for every value that the database holds.
    pub data_type: DataType,
    /// The type as the database declares it: `bigint unsigned`, `enum('PAID','FAILED')`.
    pub declared: String,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// How the database sorts and compares it.
    pub order: SourceOrder,
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
    /// The clock of the database when the read began, epoch milliseconds.
    pub clock_millis: i64,
    /// Zone in which the session's zoned values were read.
    pub zone: String,
    /// How far a replica lags behind, where that is known.
    pub lag_millis: Option<i64>,
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
    /// Key columns to read in ascending order of; none: in any order.
    pub ordered_by: Vec<String>,
    /// Only keys beyond this one, in the order above.
    pub after: Option<Vec<ScalarValue>>,
    /// Only keys up to this one and with it.
    pub upto: Option<Vec<ScalarValue>>,
    /// Only these keys, a list of few; empty: all.
    pub keys: Vec<Vec<ScalarValue>>,
    /// A condition in the database's own SQL.
    pub condition: Option<String>,
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

    /// Whether rows come in that order by an index: without, the database would sort all of them.
    async fn is_indexed(&self, ordered_by: &[String]) -> Result<bool>;

    /// Rows, as a stream of batches whose columns are those asked for. Rows are fetched in chunks as the stream is
    /// polled.
    ///
    /// # Errors
    /// In the stream too: a connection that was lost, a statement that took too long, a value that is none of its type.
    async fn read(&self, read: SourceRead) -> Result<SendableRecordBatchStream>;

    /// What was done so far.
    fn work(&self) -> SourceWork;
}
