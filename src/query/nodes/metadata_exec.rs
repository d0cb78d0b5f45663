//! The node that remains of a scan which metadata answered: it reads nothing and says what was pinned.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
    StatisticsArgs,
};

use super::summary::ScanSummary;

/// Passes on the rows of its input, which stand for the answer that metadata gave, and keeps what planning found.
///
/// Output: the input's columns, rows, order and partitioning.
#[derive(Debug, Clone)]
pub struct MetadataExec {
    summary: Arc<ScanSummary>,
    input: Arc<dyn ExecutionPlan>,
}

impl MetadataExec {
    /// A node above `input` for the scan of `summary`.
    pub fn new(summary: Arc<ScanSummary>, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { summary, input }
    }

    /// The scan, as planned.
    pub fn summary(&self) -> &Arc<ScanSummary> {
        &self.summary
    }
}

impl DisplayAs for MetadataExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(f, "MetadataExec: {}", self.summary),
            DisplayFormatType::TreeRender => self.summary.fmt_tree(f),
        }
    }
}

impl ExecutionPlan for MetadataExec {
    fn name(&self) -> &'static str {
        "MetadataExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self { summary: Arc::clone(&self.summary), input })),
            Err(_) => internal_err!("MetadataExec has one child"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        self.input.execute(partition, task)
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _args: &StatisticsArgs) -> DfResult<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("MetadataExec has one child"),
        }
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
