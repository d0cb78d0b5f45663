//! Aggregates that metadata answers, without losing what they were computed on.
//!
//! DataFusion's own rule puts the numbers in the place of the whole scan. Who reads the plan afterwards no longer learns
//! which snapshot they belong to, so this rule runs before and leaves a [`MetadataExec`] behind:
//!
//! ```text
//! AggregateExec: count(*)                    ProjectionExec: [18 as count(*)]
//!   ReadExec: t, snapshot=6, files=2/2   →     MetadataExec: t, snapshot=6, files=2/2
//!                                                PlaceholderRowExec
//! ```

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::aggregate_statistics::AggregateStatistics;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::by_name::{Rule, guarded};
use super::constants::{NoConstants, counts_distinct};
use super::floats::{NoFloatBounds, NoFloatPruning};
use super::nodes::MetadataExec;
use super::one_nan::{OneNanComputed, OneNanRead};
use super::work::scans;

/// The rule's name.
const NAME: &str = "lakepin_answered_from_metadata";

/// Answers aggregates from exact statistics as DataFusion does, and keeps the scans' summaries.
#[derive(Debug)]
struct AnsweredFromMetadata;

/// The physical optimizer rules of a session that reads our tables: the one that answers from metadata and those that
/// forget constants and bounds around them, guards around those of DataFusion that take a column for another of its name,
/// and the one that makes one NaN of all, each in its place. None: they are there.
pub fn with_answers(rules: &[Rule]) -> Option<Vec<Rule>> {
    if rules.iter().any(|rule| rule.name() == NAME) {
        return None;
    }
    let first: [Rule; 4] =
        [Arc::new(NoFloatBounds), Arc::new(AnsweredFromMetadata), Arc::new(NoConstants), Arc::new(OneNanRead)];
    let last: [Rule; 2] = [Arc::new(NoFloatPruning), Arc::new(OneNanComputed)];
    Some(first.into_iter().chain(rules.iter().map(guarded)).chain(last).collect())
}

impl PhysicalOptimizerRule for AnsweredFromMetadata {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|node| {
            if !node.is::<AggregateExec>() || counts_distinct(&node) {
                return Ok(Transformed::no(node));
            }
            let scans = scans(&node);
            if scans.is_empty() {
                return Ok(Transformed::no(node));
            }
            let answered = AggregateStatistics::new().optimize(Arc::clone(&node), config)?;
            let Some(row) = answered.downcast_ref::<ProjectionExec>().map(ProjectionExec::input) else {
                return Ok(Transformed::no(node));
            };
            if !row.is::<PlaceholderRowExec>() {
                return Ok(Transformed::no(node));
            }
            let kept = scans.into_iter().fold(Arc::clone(row), |input, summary| {
                Arc::new(MetadataExec::new(summary, input)) as Arc<dyn ExecutionPlan>
            });
            let answered = replace_children_if_necessary(answered, vec![kept])?;
            Ok(Transformed::new(answered, true, TreeNodeRecursion::Jump))
        })
        .data()
    }

    fn name(&self) -> &str {
        NAME
    }

    /// As DataFusion's rule: a literal is not nullable where the aggregate was.
    fn schema_check(&self) -> bool {
        false
    }
}
