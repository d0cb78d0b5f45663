//! Statements that reach DataFusion without us: `SessionContext::sql` over a warehouse that is registered as a catalog.
//!
//! DataFusion asks the catalog for each name of a statement by itself and does not say which statement it is, so a name
//! cannot be pinned there: a commit between two of them would be read in half. What the catalog gives is therefore a
//! [`PlainTable`], which knows its columns but no snapshot it will read. When the whole plan is analysed, [`OnePin`]
//! ties all of them to one statement; when the plan is made physical, that statement resolves each table once.
//!
//! So a table, its `$` tables and the views over them are one snapshot in every execution of a plan, and a view or a
//! `DataFrame` that is kept reads what is the latest each time it is executed.

use std::sync::Arc;

use arrow::datatypes::{Field, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result as DfResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableScan, TableType};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;

use super::catalog::LakeCatalog;
use super::grouping::ComputedKeys;
use super::in_lists::NullsInLists;
use super::marks::MarkedRows;
use super::statement::Statement;
use super::subqueries::ExactSubqueries;
use super::timestamps::ExactTimestamps;
use super::using::MergedColumns;
use crate::error::{Error, Result};

type Rule = Arc<dyn AnalyzerRule + Send + Sync>;

/// The rules that plans over a warehouse need; `statement` is None in sessions that are not ours.
pub(crate) fn rules(statement: Option<Arc<Statement>>) -> [Rule; 7] {
    let placed = statement.is_some();
    [
        Arc::new(OnePin { statement }),
        Arc::new(ComputedKeys),
        Arc::new(ExactTimestamps),
        Arc::new(NullsInLists),
        Arc::new(MergedColumns { placed }),
        Arc::new(ExactSubqueries),
        Arc::new(MarkedRows),
    ]
}

/// Whether a rule is one of [`rules`].
pub(crate) fn is_ours(rule: &(dyn AnalyzerRule + Send + Sync)) -> bool {
    rules(None).iter().any(|ours| ours.name() == rule.name())
}

/// A name of the warehouse in a session that is not ours.
#[derive(Debug, Clone)]
pub(crate) struct PlainTable {
    lake: LakeCatalog,
    database: String,
    name: String,
    /// What the name stood for when it was asked for: its columns, and how it takes filters.
    named: Arc<dyn TableProvider>,
    /// The plan it is part of.
    plan: Option<Arc<PlanStatements>>,
}

impl PlainTable {
    pub(crate) fn new(lake: &LakeCatalog, database: &str, name: &str, named: Arc<dyn TableProvider>) -> Self {
        Self { lake: lake.clone(), database: database.to_string(), name: name.to_string(), named, plan: None }
    }

    /// What the name stands for in the statement of the plan, and where the columns that were planned are in it.
    async fn resolve(&self, state: &SessionState) -> Result<(Arc<dyn TableProvider>, Vec<usize>)> {
        let statement = match &self.plan {
            Some(plan) => plan.of(&self.lake, state)?,
            None => self.lake.statement(state.clone())?,
        };
        let Some(now) = statement.provider(&self.database, &self.name).await? else {
            return Err(Error::not_found(format!("there is no table {}.{} any more", self.database, self.name))
                .with_code("TableNotFound"));
        };
        let (planned, schema) = (self.named.schema(), now.schema());
        let same = |one: &Field, other: &Field| {
            one.name() == other.name()
                && one.data_type() == other.data_type()
                && one.is_nullable() == other.is_nullable()
        };
        let places = planned.fields().iter().map(|column| {
            schema.fields().iter().position(|field| same(field, column)).ok_or_else(|| {
                Error::invalid(format!("column {} is not what it was when the statement was planned", column.name()))
                    .with_code("ColumnsChanged")
                    .with_context("table", format!("{}.{}", self.database, self.name))
                    .with_hint("run the statement again; make a view anew that was made before the table was altered")
            })
        });
        let places = places.collect::<Result<_>>()?;
        Ok((now, places))
    }
}

#[async_trait]
impl TableProvider for PlainTable {
    fn schema(&self) -> SchemaRef {
        self.named.schema()
    }

    fn table_type(&self) -> TableType {
        self.named.table_type()
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.named.get_table_definition()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        self.named.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return Err(Error::unsupported("tables of a warehouse need a DataFusion session state").into());
        };
        let (now, places) = self.resolve(state).await?;
        // nobody applies a filter once more that the scan said it would apply
        let filters_now: Vec<&Expr> = filters.iter().collect();
        let (planned, promised) =
            (self.supports_filters_pushdown(&filters_now)?, now.supports_filters_pushdown(&filters_now)?);
        let exact = |answer: &TableProviderFilterPushDown| *answer == TableProviderFilterPushDown::Exact;
        if planned.iter().zip(&promised).any(|(then, now)| exact(then) && !exact(now)) {
            return Err(Error::invalid("the table was altered since the statement was planned")
                .with_code("ColumnsChanged")
                .with_context("table", format!("{}.{}", self.database, self.name))
                .with_hint("run the statement again")
                .into());
        }
        let projection: Vec<usize> = match projection {
            Some(projection) => projection.iter().filter_map(|at| places.get(*at).copied()).collect(),
            None => places,
        };
        now.scan(session, Some(&projection), filters, limit).await
    }
}

/// The statements of one plan: one for each warehouse it reads, made when its first table is resolved.
#[derive(Debug, Default)]
struct PlanStatements {
    known: Mutex<Vec<Arc<Statement>>>,
}

impl PlanStatements {
    fn of(&self, lake: &LakeCatalog, state: &SessionState) -> Result<Arc<Statement>> {
        let mut known = self.known.lock();
        if let Some(statement) = known.iter().find(|statement| statement.warehouse().same(lake.warehouse())) {
            return Ok(Arc::clone(statement));
        }
        let statement = lake.statement(state.clone())?;
        known.push(Arc::clone(&statement));
        Ok(statement)
    }
}

/// Ties every name of a plan to one statement: see the module.
#[derive(Debug)]
struct OnePin {
    /// The statement that is planned, when it is ours.
    statement: Option<Arc<Statement>>,
}

impl AnalyzerRule for OnePin {
    fn name(&self) -> &str {
        "one_pin_per_table"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let statements = Arc::new(PlanStatements { known: Mutex::new(self.statement.iter().cloned().collect()) });
        let tied = plan.transform_up_with_subqueries(|node| {
            let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
            let provider = source_as_provider(&scan.source).ok();
            let Some(table) = provider.as_ref().and_then(|provider| provider.downcast_ref::<PlainTable>()) else {
                return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
            };
            // tied before, when a plan was optimised and kept: to one statement with all others, all the same
            let table = PlainTable { plan: Some(Arc::clone(&statements)), ..table.clone() };
            let source = provider_as_source(Arc::new(table));
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        })?;
        Ok(tied.data)
    }
}
