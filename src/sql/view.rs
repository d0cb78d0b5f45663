//! Views of a session: kept as text, planned anew by every statement, so that clauses inside them and the session's
//! pins are resolved when the view is read.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::ViewTable;
use datafusion::error::Result as DfResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, LogicalPlanBuilder, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::parser::Statement as DfStatement;

use super::settings::Settings;
use super::statement::Statement;
use super::warehouse::Warehouse;
use crate::error::{Error, Result};
use crate::query::ScanLog;

/// A view. `create` is its whole `CREATE VIEW` statement, before names were resolved.
#[derive(Debug, Clone)]
pub(crate) struct SqlView {
    pub(crate) create: DfStatement,
    /// Catalog and database its unqualified names belong to.
    pub(crate) catalog: String,
    pub(crate) database: String,
    /// Columns when it was created.
    pub(crate) schema: SchemaRef,
    /// `SELECT …`, for humans.
    pub(crate) text: String,
    pub(crate) warehouse: Warehouse,
    pub(crate) settings: Arc<Settings>,
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

    // only reached in statements that DataFusion runs without us: a statement of its own
    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return Err(Error::unsupported("views need a DataFusion session state").into());
        };
        let statement = Statement::new(&self.warehouse, &self.settings, state.clone(), ScanLog::new())?;
        let mut plan = LogicalPlanBuilder::from(self.logical(&statement).await?);
        if let Some(projection) = projection {
            plan = plan.select(projection.iter().copied())?;
        }
        let plan = plan.limit(0, limit)?.build()?;
        state.create_physical_plan(&plan).await
    }
}
