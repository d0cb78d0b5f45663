//! Views of a session: kept as text, planned anew by every statement, so that clauses inside them and the session's
//! pins are resolved when the view is read.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::ViewTable;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as DfStatement;

use super::statement::Statement;
use crate::error::{Error, Result};

/// A view. `create` is its whole `CREATE VIEW` statement, before names were resolved.
#[derive(Debug, Clone)]
pub(crate) struct SqlView {
    pub(crate) create: DfStatement,
    /// Catalog and database its unqualified names belong to.
    pub(crate) catalog: String,
    pub(crate) database: String,
    /// Columns when it was created.
    pub(crate) schema: SchemaRef,
    /// Its `CREATE VIEW` statement as it was written, for humans.
    pub(crate) text: String,
    /// How many words and signs of it can nest.
    pub(crate) nesting: usize,
}

impl SqlView {
    /// The plan of the view in a statement.
    pub(crate) async fn logical(&self, statement: &Arc<Statement>) -> Result<LogicalPlan> {
        let mut state = statement.state();
        let catalog = &mut state.config_mut().options_mut().catalog;
        catalog.default_catalog = self.catalog.clone();
        catalog.default_schema = self.database.clone();
        match Box::pin(statement.plan(&state, self.create.clone())).await? {
            LogicalPlan::Ddl(DdlStatement::CreateView(view)) => Ok(Arc::unwrap_or_clone(view.input)),
            other => Err(Error::internal(format!("a view planned as {}", other.display()))),
        }
    }

    /// The view as DataFusion inlines it.
    pub(crate) async fn plan(&self, statement: &Arc<Statement>) -> Result<Arc<dyn TableProvider>> {
        Ok(Arc::new(ViewTable::new(self.logical(statement).await?, Some(self.text.clone()))))
    }
}

#[async_trait]
impl TableProvider for SqlView {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_table_definition(&self) -> Option<&str> {
        Some(&self.text)
    }

    // a view is planned by the statement that reads it; nothing scans it by itself
    async fn scan(
        &self,
        _session: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Err(Error::internal("a view was scanned without its statement").into())
    }
}
