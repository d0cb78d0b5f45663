//! Long conditions in few levels, once more after the optimizer has made chains of them.
//!
//! DataFusion takes a condition apart to move its terms, and joins what stays one behind the other. What is walked later,
//! when the condition is made physical and computed, is deep again then, and each level asks for the type of all below.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Terms that stay a chain.
const FEW_TERMS: usize = 32;

/// The rules of a session with ours behind the one that moves conditions.
pub(super) fn with_shallow_chains(rules: &[Rule]) -> Vec<Rule> {
    let mut all: Vec<Rule> = Vec::with_capacity(rules.len() + 1);
    for rule in rules.iter().filter(|rule| rule.name() != ShallowChains::NAME) {
        all.push(Arc::clone(rule));
        if rule.name() == "push_down_filter" {
            all.push(Arc::new(ShallowChains));
        }
    }
    all
}

/// See the module.
#[derive(Debug)]
struct ShallowChains;

impl ShallowChains {
    const NAME: &'static str = "shallow_chains";
}

impl OptimizerRule for ShallowChains {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(mut filter) = plan else { return Ok(Transformed::no(plan)) };
        if links(&filter.predicate) < FEW_TERMS {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        filter.predicate = shallow(std::mem::take(&mut filter.predicate));
        Ok(Transformed::yes(LogicalPlan::Filter(filter)))
    }
}

/// How often AND follows AND.
fn links(expr: &Expr) -> usize {
    let mut links = 0;
    let mut at = expr;
    while let Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, .. }) = at {
        links += 1;
        at = left;
    }
    links
}

/// A chain of AND as a tree.
fn shallow(chain: Expr) -> Expr {
    let mut terms = Vec::new();
    let mut rest = chain;
    while let Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) = rest {
        terms.push(*right);
        rest = *left;
    }
    terms.push(rest);
    terms.reverse();
    balanced(terms, Operator::And).unwrap_or_default()
}

/// All terms under one operator, in their order and in few levels; None for none.
pub(super) fn balanced(mut terms: Vec<Expr>, op: Operator) -> Option<Expr> {
    match terms.len() {
        0 | 1 => terms.pop(),
        len => {
            let right = balanced(terms.split_off(len / 2), op)?;
            Some(binary_expr(balanced(terms, op)?, op, right))
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn a_chain_is_the_same_condition_in_few_levels() {
        let term = |at: i32| col("a").not_eq(lit(at));
        let chain = (1..100).fold(term(0), |chain, at| chain.and(term(at)));
        let written = chain.to_string();
        assert_eq!(links(&chain), 99);
        let shallow = shallow(chain);
        assert!(links(&shallow) < 8 && shallow.to_string() == written, "{shallow}");
    }
}
