//! Joins in which NULL finds NULL: `ON a.x IS NOT DISTINCT FROM b.y`, INTERSECT, EXCEPT.
//!
//! That is said of a whole join, not of a key. Two rules of DataFusion bring further keys into such a join, from `=`, which
//! would find NULL by NULL then. They pass it by here.

use std::sync::Arc;

use datafusion::common::NullEquality;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// The rules with a guard around those two.
pub(super) fn with_own_keys(rules: Vec<Rule>) -> Vec<Rule> {
    let guarded = |rule: Rule| -> Rule {
        match rule.name() {
            "extract_equijoin_predicate" | "eliminate_cross_join" => Arc::new(OwnKeys { rule }),
            _ => rule,
        }
    };
    rules.into_iter().map(guarded).collect()
}

/// A rule that is kept from joins of NULL by NULL.
#[derive(Debug)]
struct OwnKeys {
    rule: Rule,
}

impl OptimizerRule for OwnKeys {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        let kept = match self.rule.apply_order() {
            Some(_) => finds_null(&plan),
            // it goes through the plan by itself
            None => plan.exists(|node| Ok(finds_null(node)))?,
        };
        if kept { Ok(Transformed::no(plan)) } else { self.rule.rewrite(plan, config) }
    }
}

fn finds_null(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}
