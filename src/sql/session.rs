//! A session: a current database, settings and pins, and the statements run in it.

use datafusion::execution::context::SessionContext;

use super::result::{PinLine, StatementResult};
use super::warehouse::Warehouse;
use crate::error::{Error, Result};
use crate::recon::accounting::Accounting;

/// How a session starts.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Name of the warehouse as a catalog.
    pub catalog: String,
    /// Current database; None: `default` if it exists, else the only one.
    pub database: Option<String>,
    /// Session time zone (`+08:00`, `Asia/Shanghai`); None: UTC.
    pub time_zone: Option<String>,
    /// Memory for merging, sorting and hashing, in bytes; None: no limit.
    pub memory_limit: Option<usize>,
    /// Degree of parallelism; None: the cores of the machine.
    pub target_partitions: Option<usize>,
    /// Rows per batch; None: DataFusion's.
    pub batch_size: Option<usize>,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            catalog: "paimon".to_string(),
            database: None,
            time_zone: None,
            memory_limit: None,
            target_partitions: None,
            batch_size: None,
        }
    }
}

/// One statement of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementText {
    /// The text without the closing semicolon.
    pub text: String,
    /// Byte position in the whole text.
    pub offset: usize,
    /// Line of its first token, from 1.
    pub line: u64,
    /// Column of its first token, from 1.
    pub column: u64,
}

/// A session over a warehouse. Statements of one session run one after another.
pub struct Session {
    warehouse: Warehouse,
    context: SessionContext,
}

impl Session {
    /// Opens a session.
    pub async fn new(warehouse: &Warehouse, config: SessionConfig) -> Result<Self> {
        let _ = (warehouse, config);
        Err(Error::internal("not built yet"))
    }

    /// The warehouse.
    pub fn warehouse(&self) -> &Warehouse {
        &self.warehouse
    }

    /// The DataFusion session underneath; tables and functions registered there are seen by statements.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// The current database.
    pub fn database(&self) -> String {
        String::new()
    }

    /// The session's time zone as text.
    pub fn time_zone(&self) -> String {
        String::new()
    }

    /// Cuts a text into statements with the tokenizer. A text that ends inside a string or comment is an error with
    /// code `Incomplete`.
    pub fn split(sql: &str) -> Result<Vec<StatementText>> {
        let _ = sql;
        Err(Error::internal("not built yet"))
    }

    /// Runs every statement of the text; stops at the first error.
    pub async fn run(&self, sql: &str) -> Result<Vec<StatementResult>> {
        let _ = sql;
        Err(Error::internal("not built yet"))
    }

    /// Runs exactly one statement.
    pub async fn run_one(&self, sql: &str) -> Result<StatementResult> {
        let _ = sql;
        Err(Error::internal("not built yet"))
    }

    /// The session's own pins.
    pub fn session_pins(&self) -> Vec<PinLine> {
        Vec::new()
    }

    /// Databases of the warehouse.
    pub async fn databases(&self) -> Result<Vec<String>> {
        Err(Error::internal("not built yet"))
    }

    /// Tables of a database, the current one when None.
    pub async fn tables(&self, database: Option<&str>) -> Result<Vec<String>> {
        let _ = database;
        Err(Error::internal("not built yet"))
    }

    /// Columns of a table (`t` or `db.t`) at the session's pin: name and type as Paimon writes it.
    pub async fn columns(&self, table: &str) -> Result<Vec<(String, String)>> {
        let _ = table;
        Err(Error::internal("not built yet"))
    }

    /// Kept snapshot ids and tags of a table, newest first, for completion.
    pub async fn versions(&self, table: &str) -> Result<(Vec<i64>, Vec<String>)> {
        let _ = table;
        Err(Error::internal("not built yet"))
    }

    /// Names after `$`.
    pub fn system_tables() -> Vec<&'static str> {
        Vec::new()
    }

    /// Row accounting of a table reference (`t`, `db.t`, `t VERSION AS OF 3`, `t@v3`), with an optional condition
    /// (SQL over the table's columns).
    pub async fn counts(&self, table: &str, condition: Option<&str>) -> Result<(PinLine, Accounting)> {
        let _ = (table, condition);
        Err(Error::internal("not built yet"))
    }
}
