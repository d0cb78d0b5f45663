//! Databases as sources, against real servers: `LAKEPIN_TEST_MYSQL_URL` and `LAKEPIN_TEST_POSTGRES_URL`, else
//! 127.0.0.1:3306 (root, no password) and 127.0.0.1:5432 (postgres). Each test has a database of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt;
use lakepin::arrow::array::{Array, RecordBatch};
use lakepin::arrow::util::display::{ArrayFormatter, FormatOptions};
use lakepin::datafusion::common::ScalarValue;
use lakepin::sql::source::{Source, SourceOrder, SourceRead, open, unreadable_of};
use lakepin::{Error, Result};

use crate::harness::Test;

mod compared;
mod keyed;
mod matrix;
mod mysql;
mod postgres;

pub fn register(tests: &mut Vec<Test>) {
    mysql::register(tests);
    postgres::register(tests);
}

/// A database's name that no other test has.
fn own_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("lakepin_test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The address of a server, with a database and options in it.
fn address(server: &str, database: &str, options: &str) -> String {
    let mark = if options.is_empty() { "" } else { "?" };
    format!("{}/{database}{mark}{options}", server.trim_end_matches('/'))
}

/// Cells as texts; what is unreadable in brackets.
fn texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let (plain, unreadable) = unreadable_of(batch).expect("what is unreadable is told");
    let options = FormatOptions::new().with_null("NULL");
    let columns: Vec<_> =
        plain.columns().iter().map(|array| ArrayFormatter::try_new(array.as_ref(), &options).expect("shown")).collect();
    let mut rows: Vec<Vec<String>> =
        (0..plain.num_rows()).map(|row| columns.iter().map(|column| column.value(row).to_string()).collect()).collect();
    for one in unreadable {
        let at = plain.schema().index_of(&one.column).expect("the column is there");
        assert!(plain.column(at).is_null(one.row));
        rows[one.row][at] = format!("<{}>", one.text);
    }
    rows
}

/// All rows of a read.
async fn rows(source: &Arc<dyn Source>, read: SourceRead) -> Result<Vec<Vec<String>>> {
    let mut stream = source.read(SourceRead { unreadable: true, ..read }).await?;
    let mut rows = Vec::new();
    while let Some(batch) = stream.next().await {
        rows.extend(texts(&batch.map_err(Error::from)?));
    }
    Ok(rows)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_string()).collect()
}

fn reading(columns: &[&str], ordered_by: &[&str]) -> SourceRead {
    SourceRead { columns: names(columns), ordered_by: names(ordered_by), ..SourceRead::default() }
}

/// A type, how it is read, and literals with what they are read as.
struct Typed {
    declared: &'static str,
    arrow: &'static str,
    /// `values`, `other`, or a part of the collation's name.
    order: &'static str,
    cells: &'static [(&'static str, &'static str)],
}

const fn typed(
    declared: &'static str,
    arrow: &'static str,
    order: &'static str,
    cells: &'static [(&'static str, &'static str)],
) -> Typed {
    Typed { declared, arrow, order, cells }
}

impl Typed {
    /// Compares the table `t_at (id, v)`, and the same as a query.
    async fn check(&self, url: &str, table: &str) -> std::result::Result<(), String> {
        let declared = self.declared;
        let source = open(url, table).await.map_err(|e| format!("{declared}: {e:?}"))?;
        let column = &source.columns()[1];
        let order = match &column.order {
            SourceOrder::Values => "values",
            SourceOrder::Collation(name) => name,
            SourceOrder::Other => "other",
        };
        if column.data_type.to_string() != self.arrow || !order.contains(self.order) || source.key() != ["id"] {
            return Err(format!("{declared} is {:?}, key {:?}", column, source.key()));
        }
        let of_query = open(url, &format!("SELECT id, v FROM {table} -- all of it")).await;
        let of_query = of_query.map_err(|e| format!("{declared} in a query: {e:?}"))?;
        if of_query.columns()[1].data_type != column.data_type {
            return Err(format!("{declared} in a query is {:?}", of_query.columns()[1]));
        }
        let expected: Vec<&str> = self.cells.iter().map(|(_, read)| *read).chain(["NULL"]).collect();
        for (source, way) in [(&source, "table"), (&of_query, "query")] {
            let found = rows(source, reading(&["v"], &["id"])).await.map_err(|e| format!("{declared} {way}: {e:?}"))?;
            let found: Vec<&str> = found.iter().map(|row| row[0].as_str()).collect();
            if found != expected {
                return Err(format!("{declared} {way}:\n  read     {found:?}\n  expected {expected:?}"));
            }
        }
        // every value that is read finds its own row again, by what was read
        self.find_each(&source).await.map_err(|e| format!("{declared} as a key: {e}"))
    }

    async fn find_each(&self, source: &Arc<dyn Source>) -> std::result::Result<(), String> {
        if ["json", "xml", "point", "geometry", "float", "double precision"].contains(&self.declared)
            || self.order == "no key"
        {
            return Ok(());
        }
        let told = |e: Error| format!("{e:?}");
        let read = SourceRead { unreadable: true, ..reading(&["id", "v"], &["id"]) };
        let mut stream = source.read(read).await.map_err(told)?;
        while let Some(batch) = stream.next().await {
            let (batch, _) = unreadable_of(&batch.map_err(|e| e.to_string())?).map_err(told)?;
            for row in (0..batch.num_rows()).filter(|row| batch.column(1).is_valid(*row)) {
                let value = ScalarValue::try_from_array(batch.column(1), row).map_err(|e| e.to_string())?;
                let id = ScalarValue::try_from_array(batch.column(0), row).map_err(|e| e.to_string())?;
                for bound in [false, true] {
                    let mut read = reading(&["id"], &["v"]);
                    if bound {
                        read.after = None;
                        read.upto = Some(vec![value.clone()]);
                    } else {
                        read.keys = vec![vec![value.clone()]];
                    }
                    let found = rows(source, read).await.map_err(told)?;
                    if !found.iter().any(|row| row[0] == id.to_string()) {
                        return Err(format!("{value} is not found again ({found:?})"));
                    }
                }
                let read = SourceRead { after: Some(vec![value.clone()]), ..reading(&["id"], &["v"]) };
                if rows(source, read).await.map_err(told)?.iter().any(|row| row[0] == id.to_string()) {
                    return Err(format!("{value} lies beyond itself"));
                }
            }
        }
        Ok(())
    }
}

/// Polls a stream once, then does something, and gives how the stream ends.
async fn end_after(
    source: &Arc<dyn Source>,
    read: SourceRead,
    between: impl Future<Output = ()>,
) -> std::result::Result<usize, &'static str> {
    let mut stream = source.read(read).await.map_err(|e| e.code())?;
    let mut count = stream.next().await.expect("a batch").map_err(|e| Error::from(e).code())?.num_rows();
    between.await;
    while let Some(batch) = stream.next().await {
        count += batch.map_err(|e| Error::from(e).code())?.num_rows();
    }
    Ok(count)
}

/// Waits until something holds, ten seconds at most.
async fn until<Fut: Future<Output = bool>>(mut holds: impl FnMut() -> Fut) -> bool {
    for _ in 0..100 {
        if holds().await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    false
}
