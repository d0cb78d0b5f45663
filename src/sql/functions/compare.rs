//! `paimon_compare(left => 'db.t@v3', right => 'SELECT …', key => 'id', …)`: [`RECONCILE`](crate::sql::statements) as a
//! relation. The parts of the statement stand in its arguments as they stand in it.

use std::fmt;
use std::sync::{Arc, Weak};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::stream;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::Call;
use crate::error::{Error, Result};
use crate::recon::compare::{Comparison, Report};
use crate::sql::reconcile;
use crate::sql::statement::Statement;
use crate::sql::statements::parse_reconcile;
use crate::sql::tokens::{is_word, statements, tokenize};

/// The statement that a call stands for.
fn text(call: &Call) -> Result<String> {
    let of = |name: &str| call.text(name).map(str::trim).filter(|text| !text.is_empty());
    let needed = |name: &str| of(name).ok_or_else(|| call.wrong(format!("{name} is missing")));
    let (left, right, key) = (needed("left")?, needed("right")?, needed("key")?);
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let ending = right.rsplit('.').next().unwrap_or_default();
    let is_file = ["csv", "parquet"].iter().any(|known| ending.eq_ignore_ascii_case(known));
    let right = if right.contains("://") || (is_file && !right.contains(char::is_whitespace)) {
        match of("from") {
            Some(what) => format!("{} FROM {}", quoted(right), quoted(what)),
            None => quoted(right),
        }
    } else {
        let first = statements(tokenize(right)?).into_iter().next().unwrap_or_default();
        let query = ["SELECT", "WITH", "VALUES", "FROM"].iter().any(|word| is_word(first.first(), word));
        if query { format!("({right})") } else { right.to_string() }
    };
    let mut sql = format!("RECONCILE {left} WITH {right} ON KEY ({key})");
    for (name, open, close) in [
        ("columns", " COMPARE (", ")"),
        ("except", " EXCEPT (", ")"),
        ("where", " WHERE ", ""),
        ("horizon", " HORIZON ", ""),
        ("tolerance", " TOLERANCE ", ""),
        ("nocase", " COLLATE NOCASE (", ")"),
        ("sample", " SAMPLE ", " PERCENT BY KEY HASH"),
        ("limit", " LIMIT ", " PER CLASS"),
    ] {
        if let Some(text) = of(name) {
            sql.push_str(&format!("{open}{text}{close}"));
        }
    }
    if call.is_true("allow_empty") {
        sql.push_str(" ALLOW EMPTY");
    }
    if let Some(zone) = of("zone") {
        sql.push_str(&format!(" ZONE {}", quoted(zone)));
    }
    Ok(sql)
}

/// The relation of a call.
pub(super) async fn provider(statement: &Arc<Statement>, call: &Call) -> Result<Arc<dyn TableProvider>> {
    let mut notices = Vec::new();
    let mut all = statements(tokenize(&text(call)?)?).into_iter();
    let (Some(tokens), None) = (all.next(), all.next()) else { return Err(call.wrong("a semicolon ends no argument")) };
    let asked = parse_reconcile(tokens, &mut notices).map_err(|error| match error.code() {
        "Syntax" => call.wrong(error.message()),
        _ => error,
    })?;
    notices.into_iter().for_each(|notice| statement.notice(notice));
    let state = statement.state();
    let comparison = reconcile::plan(statement, &state, &asked, None).await?;
    let compared = Compared {
        statement: Arc::downgrade(statement),
        comparison: Mutex::new(Some(comparison)),
        rows: OnceCell::new(),
    };
    let run = Arc::new(compared);
    Ok(Arc::new(CompareTable { run, schema: Report::schema() }))
}

/// A comparison that runs once, when the first asks for its rows.
struct Compared {
    statement: Weak<Statement>,
    comparison: Mutex<Option<Comparison>>,
    rows: OnceCell<RecordBatch>,
}

impl Compared {
    async fn rows(&self) -> Result<RecordBatch> {
        let compute = || async {
            let comparison = self.comparison.lock().take();
            let comparison =
                comparison.ok_or_else(|| Error::invalid("the comparison has failed before").with_code("Execution"))?;
            match self.statement.upgrade() {
                Some(statement) => reconcile::run(&statement, comparison).await?.rows(),
                None => comparison.run().await?.rows(),
            }
        };
        self.rows.get_or_try_init(compute).await.cloned()
    }
}

impl fmt::Debug for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compared").field("done", &self.rows.initialized()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct CompareTable {
    run: Arc<Compared>,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for CompareTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let rows = Arc::new(CompareRows { run: Arc::clone(&self.run), schema: Arc::clone(&self.schema) });
        let schema = Arc::clone(&self.schema);
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![rows], projection, Vec::new(), false, None)?))
    }
}

#[derive(Debug)]
struct CompareRows {
    run: Arc<Compared>,
    schema: SchemaRef,
}

impl PartitionStream for CompareRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let run = Arc::clone(&self.run);
        let rows = stream::once(async move { run.rows().await.map_err(DataFusionError::from) });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}
