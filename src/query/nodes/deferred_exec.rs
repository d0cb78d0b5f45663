//! The node of rows that are computed from data files as a whole: not before it is executed, and not unannounced.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::future::BoxFuture;
use futures::stream;
use tokio::sync::OnceCell;

use crate::error::Result;
use crate::query::budget::PoolBudget;
use crate::query::env::QueryEnv;
use crate::query::work::Work;
use crate::snapshot::{Pin, SessionZone};

/// The rows, once they are there.
pub type Computed = BoxFuture<'static, Result<RecordBatch>>;

/// Rows that can be computed of a pin wherever a plan runs, by name.
pub struct Computation {
    /// Name, the same in every process.
    pub name: &'static str,
    /// Columns of the rows.
    pub schema: fn() -> SchemaRef,
    /// Computes the rows of a recipe within a budget.
    pub rows: fn(Recipe, Arc<QueryEnv>, Arc<PoolBudget>) -> Computed,
}

/// What rows are computed of.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The pin.
    pub pin: Arc<Pin>,
    /// Zone of the session that planned.
    pub zone: SessionZone,
    /// What else the computation is told.
    pub arguments: Vec<String>,
}

/// Rows that take reading data files, computed once by whoever asks first: all nodes over them give the same.
pub struct Deferred {
    computation: &'static Computation,
    recipe: Recipe,
    env: Arc<QueryEnv>,
    budget: Arc<PoolBudget>,
    rows: OnceCell<RecordBatch>,
}

impl Deferred {
    /// Rows that `computation` makes of `recipe`.
    pub fn new(
        computation: &'static Computation,
        recipe: Recipe,
        env: Arc<QueryEnv>,
        budget: Arc<PoolBudget>,
    ) -> Arc<Self> {
        Arc::new(Self { computation, recipe, env, budget, rows: OnceCell::new() })
    }

    /// Which rows.
    pub fn computation(&self) -> &'static Computation {
        self.computation
    }

    /// What they are computed of.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    async fn rows(&self) -> Result<RecordBatch> {
        let compute = || (self.computation.rows)(self.recipe.clone(), Arc::clone(&self.env), Arc::clone(&self.budget));
        self.rows.get_or_try_init(compute).await.cloned()
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred")
            .field("computation", &self.computation.name)
            .field("recipe", &self.recipe)
            .field("computed", &self.rows.initialized())
            .finish_non_exhaustive()
    }
}

/// Gives out [`Deferred`] rows: one partition, one batch, no order promised.
///
/// `work` is what computing them reads, so that limits hold before a file is opened.
#[derive(Debug, Clone)]
pub struct DeferredExec {
    rows: Arc<Deferred>,
    projection: Option<Vec<usize>>,
    work: Work,
    properties: Arc<PlanProperties>,
}

impl DeferredExec {
    /// A node over `rows`; `projection` picks columns of them.
    ///
    /// # Errors
    /// A projection of columns that are not there.
    pub fn try_new(rows: Arc<Deferred>, projection: Option<Vec<usize>>, work: Work) -> Result<Self> {
        let schema = (rows.computation.schema)();
        let schema = match &projection {
            Some(columns) => Arc::new(schema.project(columns).map_err(DataFusionError::from)?),
            None => schema,
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(Self { rows, projection, work, properties: Arc::new(properties) })
    }

    /// The rows.
    pub fn rows(&self) -> &Arc<Deferred> {
        &self.rows
    }

    /// The columns of them that are given out; None: all.
    pub fn projection(&self) -> Option<&Vec<usize>> {
        self.projection.as_ref()
    }

    /// What computing the rows reads.
    pub fn work(&self) -> &Work {
        &self.work
    }
}

impl DisplayAs for DeferredExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Work { files, file_bytes, .. } = self.work;
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "DeferredExec: {}, files={files}, bytes={file_bytes}", self.rows.computation.name)
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "{}", self.rows.computation.name)?;
                write!(f, "files={files}")
            }
        }
    }
}

impl ExecutionPlan for DeferredExec {
    fn name(&self) -> &'static str {
        "DeferredExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("DeferredExec has no children") }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, _task: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("DeferredExec has one partition, not one of number {partition}");
        }
        let (rows, projection) = (Arc::clone(&self.rows), self.projection.clone());
        let computed = stream::once(async move {
            let batch = rows.rows().await?;
            let batch = match projection {
                Some(columns) => batch.project(&columns)?,
                None => batch,
            };
            Ok::<_, DataFusionError>(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), computed)))
    }
}
