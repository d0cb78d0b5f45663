//! The node that remains of a scan which metadata answered: it reads nothing and says what was pinned.

use std::fmt;
use std::sync::Arc;

use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::one_input::one_input;
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

    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(Arc::clone(&self.summary), input)
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
    one_input!("MetadataExec");

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
