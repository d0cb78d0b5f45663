//! `IN` and `NOT IN` by the three values of SQL.
//!
//! DataFusion joins two lists on one operand by the sets of their elements, `x IN (1, 2) AND x NOT IN (2)` to `x IN (1)`.
//! It takes NULL for an element like others there, and a column for one that equals nothing but itself; and lists that
//! leave nothing become FALSE or TRUE also where `x` is NULL. So here, before the optimizer sees them:
//!
//! - a list keeps its literals, without NULL: `x IN (1, NULL, y)` is `x IN (1) OR NULL OR x = y`;
//! - two lists that leave nothing are `x <> x`, or `x = x`, which are NULL where `x` is.
//!
//! In a WHERE, NULL selects no more than FALSE does: `x IN (1, NULL)` is `x IN (1)` there and prunes like it.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{BinaryExpr, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

/// See the module. Runs after types have been coerced.
#[derive(Debug)]
pub(crate) struct NullsInLists;

impl AnalyzerRule for NullsInLists {
    fn name(&self) -> &str {
        "nulls_in_lists"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let filters = matches!(node, LogicalPlan::Filter(_));
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let apart = expr.transform_up(|expr| joined(expr)?.transform_data(apart))?;
                let kept = if apart.transformed && filters { apart.update_data(selecting) } else { apart };
                Ok(kept.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(plan.data)
    }
}

fn null() -> Expr {
    lit(ScalarValue::Boolean(None))
}

/// A list without what is no literal, and the rest beside it.
fn apart(expr: Expr) -> DfResult<Transformed<Expr>> {
    let (operand, list, negated) = match expr {
        Expr::InList(InList { expr, list, negated }) if !expr.is_volatile() => (expr, list, negated),
        other => return Ok(Transformed::no(other)),
    };
    let mut literals = Vec::with_capacity(list.len());
    let mut others = Vec::new();
    let mut has_null = false;
    for item in list {
        match literal(&item) {
            Some(value) if value.is_null() => has_null = true,
            Some(_) => literals.push(item),
            None => others.push(item),
        }
    }
    if !has_null && others.is_empty() {
        return Ok(Transformed::no(Expr::InList(InList { expr: operand, list: literals, negated })));
    }
    let op = if negated { Operator::NotEq } else { Operator::Eq };
    let compared = others.into_iter().map(|other| binary_expr(operand.as_ref().clone(), op, other));
    let nothing = has_null.then(null);
    let rest: Vec<Expr> = nothing.into_iter().chain(compared).collect();
    let list = (!literals.is_empty()).then_some(Expr::InList(InList { expr: operand, list: literals, negated }));
    let op = if negated { Operator::And } else { Operator::Or };
    let whole = list.into_iter().chain(rest).reduce(|left, right| binary_expr(left, op, right));
    Ok(Transformed::yes(whole.unwrap_or_else(null)))
}

/// The value of an element that is the same for all rows.
fn literal(item: &Expr) -> Option<ScalarValue> {
    if let Expr::Literal(value, _) = item {
        return Some(value.clone());
    }
    let same = |expr: &Expr| matches!(expr, Expr::Literal(..) | Expr::Cast(_) | Expr::TryCast(_) | Expr::Negative(_));
    if item.exists(|part| Ok(!same(part))).unwrap_or(true) {
        return None;
    }
    let context = SimplifyContext::builder().with_schema(Arc::new(DFSchema::empty())).build();
    match ExprSimplifier::new(context).simplify(item.clone()) {
        Ok(Expr::Literal(value, _)) => Some(value),
        _ => None,
    }
}

/// Two lists on one operand as one, and NOT before a list as part of it.
fn joined(expr: Expr) -> DfResult<Transformed<Expr>> {
    let (left, op, right) = match expr {
        Expr::Not(inner) => {
            return Ok(match *inner {
                // or the optimizer finds two lists where there are none yet
                Expr::InList(list) => Transformed::yes(Expr::InList(InList { negated: !list.negated, ..list })),
                other => Transformed::no(Expr::Not(Box::new(other))),
            });
        }
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => (left, op, right),
        other => return Ok(Transformed::no(other)),
    };
    if let (Expr::InList(one), Expr::InList(other)) = (left.as_ref(), right.as_ref())
        && one.expr == other.expr
        && !one.expr.is_volatile()
        && let (Some(first), Some(second)) = (values(&one.list), values(&other.list))
    {
        let kept = |list: &InList, keep: &dyn Fn(&ScalarValue) -> bool| {
            let items = list.list.iter().filter(|item| literal(item).is_some_and(|value| keep(&value)));
            InList { list: items.cloned().collect(), ..list.clone() }
        };
        let whole = match (op, one.negated, other.negated) {
            (Operator::And, false, false) | (Operator::Or, true, true) => kept(one, &|value| second.contains(value)),
            (Operator::And, false, true) | (Operator::Or, true, false) => kept(one, &|value| !second.contains(value)),
            (Operator::And, true, false) | (Operator::Or, false, true) => kept(other, &|value| !first.contains(value)),
            _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
        };
        // what leaves elements is joined here too, because a third list or a NOT may follow
        let whole = if whole.list.is_empty() {
            let op = if op == Operator::And { Operator::NotEq } else { Operator::Eq };
            binary_expr(whole.expr.as_ref().clone(), op, *whole.expr)
        } else {
            Expr::InList(whole)
        };
        return Ok(Transformed::yes(whole));
    }
    Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })))
}

/// The elements of a list of literals.
fn values(list: &[Expr]) -> Option<HashSet<ScalarValue>> {
    list.iter().map(|item| literal(item).filter(|value| !value.is_null())).collect()
}

/// A condition of a WHERE that selects the same rows without asking for more than TRUE.
fn selecting(expr: Expr) -> Expr {
    let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) = expr else {
        return expr;
    };
    let (left, right) = (selecting(*left), selecting(*right));
    let is_null = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if value.is_null());
    match (op, is_null(&left), is_null(&right)) {
        (Operator::Or, true, _) => right,
        (Operator::Or, _, true) => left,
        (Operator::And, true, _) | (Operator::And, _, true) => lit(false),
        (op, ..) => binary_expr(left, op, right),
    }
}
