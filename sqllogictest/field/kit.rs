//! What the tests of this folder share: a warehouse in a temporary folder, sessions on it, rows as text.

use std::fmt::Debug;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use lakepin::arrow;
use lakepin::sql::{PinLine, Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{TableBuilder, TableSpec};
use lakepin::{Error, ErrorKind, Notice};

/// How a case ends.
pub type Done = Result<(), String>;

/// Turns any error into the text of a failed test.
pub trait OrText<T> {
    fn text(self) -> Result<T, String>;
}

impl<T, E: Debug> OrText<T> for Result<T, E> {
    fn text(self) -> Result<T, String> {
        self.map_err(|e| format!("{e:?}"))
    }
}

/// Registers cases: `cases!(tests, "prefix", B001 upserts, …)` gives the tests `prefix::B001_upserts`.
macro_rules! cases {
    ($tests:expr, $prefix:literal, $($id:ident $name:ident),* $(,)?) => {
        $($tests.push(crate::harness::Test::new_async(
            concat!($prefix, "::", stringify!($id), "_", stringify!($name)),
            || async {
                $name(crate::field::kit::Lake::new()?).await.map(|()| crate::harness::Outcome::Passed(String::new()))
            },
        ));)*
    };
}
pub(crate) use cases;

/// Registers tests of no case: `named!(tests, "branch", reads_both, …)` gives the tests `branch::reads_both`.
macro_rules! named {
    ($tests:expr, $prefix:literal, $($name:ident),* $(,)?) => {
        $($tests.push(crate::harness::Test::new_async(concat!($prefix, "::", stringify!($name)), || async {
            $name(crate::field::kit::Lake::new()?).await.map(|()| crate::harness::Outcome::Passed(String::new()))
        }));)*
    };
}
pub(crate) use named;

/// True when the heavy proofs run at their full figures.
pub use crate::resume::full_scale;

/// A warehouse in a temporary folder; its database is `d`.
pub struct Lake {
    dir: tempfile::TempDir,
}

impl Lake {
    pub fn new() -> Result<Self, String> {
        Ok(Self { dir: tempfile::tempdir().text()? })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn table(&self, name: &str, spec: &TableSpec) -> Result<TableBuilder, String> {
        TableBuilder::create(self.path(), "d", name, spec).text()
    }

    pub async fn session(&self) -> Result<Session, String> {
        self.session_with(config()).await
    }

    pub async fn session_in(&self, zone: &str) -> Result<Session, String> {
        self.session_with(SessionConfig { time_zone: Some(zone.into()), ..config() }).await
    }

    pub async fn session_with(&self, config: SessionConfig) -> Result<Session, String> {
        let warehouse = Warehouse::open(&self.path().to_string_lossy(), &Default::default()).await.text()?;
        Session::new(&warehouse, config).await.text()
    }
}

/// Database `d`, UTC, two output partitions.
pub fn config() -> SessionConfig {
    SessionConfig {
        database: Some("d".into()),
        time_zone: Some("UTC".into()),
        target_partitions: Some(2),
        ..SessionConfig::default()
    }
}

/// A statement's whole answer.
pub struct Answer {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
    pub pins: Vec<PinLine>,
    pub notices: Vec<Notice>,
}

impl Answer {
    /// Rows in the order they came, cells joined by `|`, NULL as `NULL`.
    pub fn rows(&self) -> Vec<String> {
        let options = FormatOptions::default().with_null("NULL");
        let mut rows = Vec::new();
        for batch in &self.batches {
            let columns: Vec<ArrayFormatter<'_>> = batch
                .columns()
                .iter()
                .map(|c| ArrayFormatter::try_new(c.as_ref(), &options).expect("every type has a text"))
                .collect();
            for row in 0..batch.num_rows() {
                let cells: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
                rows.push(cells.join("|"));
            }
        }
        rows
    }

    pub fn sorted(&self) -> Vec<String> {
        let mut rows = self.rows();
        rows.sort();
        rows
    }

    pub fn count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Texts of one column.
    pub fn column(&self, name: &str) -> Result<Vec<String>, String> {
        let options = FormatOptions::default().with_null("NULL");
        let mut cells = Vec::new();
        for batch in &self.batches {
            let column = batch.column_by_name(name).ok_or_else(|| format!("no column {name} in {:?}", self.schema))?;
            let formatter = ArrayFormatter::try_new(column.as_ref(), &options).text()?;
            cells.extend((0..batch.num_rows()).map(|row| formatter.value(row).to_string()));
        }
        Ok(cells)
    }

    /// Whether any notice holds every one of these words.
    pub fn notice_says(&self, words: &[&str]) -> bool {
        self.notices.iter().any(|n| words.iter().all(|w| n.to_lowercase().contains(&w.to_lowercase())))
    }
}

/// Runs one statement and reads it to the end.
pub async fn ask(session: &Session, sql: &str) -> Result<Answer, Error> {
    let result = session.run_one(sql).await?;
    let (schema, pins, notices) = (result.schema.clone(), result.pins, result.notices);
    let batches = result.stream.try_collect().await.map_err(Error::from_datafusion)?;
    Ok(Answer { schema, batches, pins, notices })
}

/// The statement's rows, sorted.
pub async fn rows(session: &Session, sql: &str) -> Result<Vec<String>, String> {
    ask(session, sql).await.map(|a| a.sorted()).map_err(|e| format!("{sql}\n  {e:?}"))
}

/// The statement's rows must be these, in any order.
pub async fn expect(session: &Session, sql: &str, expected: &[&str]) -> Done {
    let mut expected: Vec<String> = expected.iter().map(|r| (*r).to_string()).collect();
    expected.sort();
    same(sql, &expected, &rows(session, sql).await?)
}

/// The statement's rows must be these, in this order.
pub async fn expect_ordered(session: &Session, sql: &str, expected: &[&str]) -> Done {
    let read = ask(session, sql).await.map_err(|e| format!("{sql}\n  {e:?}"))?.rows();
    same(sql, &expected.iter().map(|r| (*r).to_string()).collect::<Vec<_>>(), &read)
}

/// A statement with one cell.
pub async fn cell(session: &Session, sql: &str) -> Result<String, String> {
    let rows = rows(session, sql).await?;
    match rows.as_slice() {
        [one] => Ok(one.clone()),
        other => Err(format!("{sql}\n  one row expected, read {}", other.len())),
    }
}

/// Fails when two lists of rows differ, showing a little of both.
pub fn same(what: &str, expected: &[String], read: &[String]) -> Done {
    if expected == read {
        return Ok(());
    }
    let missing: Vec<&String> = expected.iter().filter(|r| !read.contains(r)).take(5).collect();
    let extra: Vec<&String> = read.iter().filter(|r| !expected.contains(r)).take(5).collect();
    Err(format!(
        "{what}\n  expected {} rows, read {}\n  missing {missing:?}\n  extra   {extra:?}\n  read    {:?}",
        expected.len(),
        read.len(),
        read.iter().take(8).collect::<Vec<_>>()
    ))
}

/// The statement must fail; its error.
pub async fn fails(session: &Session, sql: &str) -> Result<Error, String> {
    match ask(session, sql).await {
        Ok(answer) => Err(format!("{sql}\n  should fail, gave {:?}", answer.rows().iter().take(5).collect::<Vec<_>>())),
        Err(error) => Ok(error),
    }
}

/// The statement must fail in this way, with words that help.
pub async fn refused(session: &Session, sql: &str, kind: ErrorKind, words: &[&str]) -> Result<Error, String> {
    let error = fails(session, sql).await?;
    says(&error, kind, words).map_err(|m| format!("{sql}\n  {m}"))?;
    Ok(error)
}

/// The error is of this kind and has these words in message, context or hint.
pub fn says(error: &Error, kind: ErrorKind, words: &[&str]) -> Done {
    let text = error.to_string();
    if error.kind() != kind {
        return Err(format!("expected {kind:?}, got {error:?}"));
    }
    match words.iter().find(|w| !text.to_lowercase().contains(&w.to_lowercase())) {
        Some(word) => Err(format!("does not say {word:?}: {error:?}")),
        None => Ok(()),
    }
}

/// A condition of a test.
pub fn check(holds: bool, message: impl Into<String>) -> Done {
    if holds { Ok(()) } else { Err(message.into()) }
}
