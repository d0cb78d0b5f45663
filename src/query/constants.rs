//! Columns of one value that DataFusion goes on taking for such where they are not any more.
//!
//! Of `SELECT 1 AS found, id FROM t` it knows that `found` is 1 in every row, and leaves such a column out of an order or
//! a grouping. Above an outer join the column is NULL where a row found none, above a UNION it is the literal of another
//! branch, and among grouping sets it is NULL for those that do not have it: rows came in the wrong order, a LIMIT gave
//! other rows, and groups came twice. A [`NoConstantsExec`] forgets what is known there.
//!
//! It also takes a column of NULL alone for one of one value, which `count(DISTINCT …)` does not count. Such counts are
//! never answered from what is known.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};

use super::by_name::Rule;
use super::nodes::NoConstantsExec;

/// See the module. Runs before orders and groupings are chosen.
#[derive(Debug)]
pub(super) struct NoConstants;

impl PhysicalOptimizerRule for NoConstants {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
                let input = aggregate.input();
                if aggregate.group_expr().is_single() || !has_constants(input) {
                    return Ok(Transformed::no(node));
                }
                let input: Arc<dyn ExecutionPlan> = Arc::new(NoConstantsExec::new(Arc::clone(input)));
                return Ok(Transformed::yes(replace_children_if_necessary(node, vec![input])?));
            }
            if mixes_constants(&node) {
                return Ok(Transformed::yes(Arc::new(NoConstantsExec::new(node))));
            }
            Ok(Transformed::no(node))
        })
        .data()
    }

    fn name(&self) -> &str {
        "lakepin_no_constants"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// `AggregateStatistics`, kept from plans that count distinct values.
#[derive(Debug)]
pub(super) struct CountedValues {
    pub(super) inner: Rule,
}

impl PhysicalOptimizerRule for CountedValues {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        if plan.exists(|node| Ok(counts_distinct(node)))? { Ok(plan) } else { self.inner.optimize(plan, config) }
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_check(&self) -> bool {
        self.inner.schema_check()
    }
}

/// Whether a node computes an aggregate of distinct values.
pub(super) fn counts_distinct(node: &Arc<dyn ExecutionPlan>) -> bool {
    let aggregate = node.downcast_ref::<AggregateExec>();
    aggregate.is_some_and(|aggregate| aggregate.aggr_expr().iter().any(|one| one.is_distinct()))
}

/// Whether a column that has one value below a node may have others above it.
fn mixes_constants(node: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(union) = node.downcast_ref::<UnionExec>() {
        return union.inputs().iter().any(has_constants);
    }
    let (left, right, join_type) = if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        (join.left(), join.right(), *join.join_type())
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        (join.left(), join.right(), *join.join_type())
    } else if let Some(join) = node.downcast_ref::<SortMergeJoinExec>() {
        (join.left(), join.right(), join.join_type())
    } else {
        return false;
    };
    match join_type {
        JoinType::Left => has_constants(right),
        JoinType::Right => has_constants(left),
        JoinType::Full => has_constants(left) || has_constants(right),
        _ => false,
    }
}

fn has_constants(node: &Arc<dyn ExecutionPlan>) -> bool {
    !node.equivalence_properties().constants().is_empty()
}
