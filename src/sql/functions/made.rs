//! Functions whose rows are made by us of what is kept of a table, as it is now.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use futures::future::BoxFuture;

use super::Call;
use super::key_history::snapshot_of;
use crate::error::Result;
use crate::recon::history::History;
use crate::snapshot::Table;
use crate::sql::memory::LazyTable;
use crate::sql::statement::Statement;
use crate::sql::system_tables::Source;

/// What a function is asked.
pub(crate) struct Asked {
    /// The table, pinned at its newest snapshot.
    pub(crate) source: Source,
    /// The call.
    pub(crate) call: Call,
}

impl Asked {
    /// All that is kept of the table.
    pub(crate) async fn history(&self) -> Result<History> {
        History::load(self.source.pin()?, &self.source.env).await
    }

    /// The same up to the state that the parameter `at` names.
    pub(crate) async fn history_at(&self) -> Result<History> {
        let history = self.history().await?;
        match self.call.version("at") {
            Some(request) => Ok(history.up_to(snapshot_of(self, request).await?.id)),
            None => Ok(history),
        }
    }
}

/// One function.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    /// By position.
    pub(crate) parameters: &'static [&'static str],
    /// Other names of parameters, each with the one it stands for.
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    /// As it is written.
    pub(crate) usage: &'static str,
    /// Checks the arguments, and gives the columns.
    pub(crate) schema: fn(&Asked) -> Result<SchemaRef>,
    pub(crate) rows: fn(Arc<Asked>) -> BoxFuture<'static, Result<RecordBatch>>,
}

impl PartialEq for Made {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Made {}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

pub(super) async fn provider(
    statement: &Arc<Statement>,
    table: &Arc<Table>,
    made: &'static Made,
    call: &Call,
) -> Result<Arc<dyn TableProvider>> {
    let source = Source::of_now(statement, table).await?;
    let asked = Arc::new(Asked { source, call: call.clone() });
    let schema = (made.schema)(&asked)?;
    let shown = format!("{}('{}')", made.name, table.name());
    Ok(LazyTable::provider(shown, schema, move || {
        let asked = Arc::clone(&asked);
        Box::pin(async move { (made.rows)(Arc::clone(&asked)).await.map_err(|error| asked.source.named(error)) })
    }))
}
