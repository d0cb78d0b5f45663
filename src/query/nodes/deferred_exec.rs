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
use crate::query::work::Work;

/// Computes rows of one schema.
pub type Compute = dyn Fn() -> BoxFuture<'static, Result<RecordBatch>> + Send + Sync;

/// Rows that take reading data files, computed once by whoever asks first: all nodes over them give the same.
pub struct Deferred {
    compute: Box<Compute>,
    rows: OnceCell<RecordBatch>,
}

impl Deferred {
    /// Rows that `compute` makes.
    pub fn new(compute: impl Fn() -> BoxFuture<'static, Result<RecordBatch>> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { compute: Box::new(compute), rows: OnceCell::new() })
    }

    async fn rows(&self) -> Result<RecordBatch> {
        self.rows.get_or_try_init(|| (self.compute)()).await.cloned()
    }
}

impl fmt::Debug for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("computed", &self.rows.initialized()).finish_non_exhaustive()
    }
}

/// Gives out [`Deferred`] rows: one partition, one batch, no order promised.
///
/// `work` is what computing them reads, so that limits hold before a file is opened.
#[derive(Debug, Clone)]
pub struct DeferredExec {
    name: String,
    rows: Arc<Deferred>,
    projection: Option<Vec<usize>>,
    work: Work,
    properties: Arc<PlanProperties>,
}

impl DeferredExec {
    /// A node over rows of `schema`; `projection` picks columns of it.
    ///
    /// # Errors
    /// A projection of columns that are not there.
    pub fn try_new(
        name: &str,
        rows: Arc<Deferred>,
        schema: &SchemaRef,
        projection: Option<Vec<usize>>,
        work: Work,
    ) -> Result<Self> {
        let schema = match &projection {
            Some(columns) => Arc::new(schema.project(columns).map_err(DataFusionError::from)?),
            None => Arc::clone(schema),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(Self { name: name.to_string(), rows, projection, work, properties: Arc::new(properties) })
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
                write!(f, "DeferredExec: {}, files={files}, bytes={file_bytes}", self.name)
            }
            DisplayFormatType::TreeRender => {
                writeln!(f, "{}", self.name)?;
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
