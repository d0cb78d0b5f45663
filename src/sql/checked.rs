//! Arithmetic whose result may be beyond its type: an error instead of a number from the other end of the type.
//!
//! DataFusion's `+`, `-` and `*` of integers go round, in expressions that it folds while it plans too, so the
//! functions of [`crate::query`] take their place before the optimizer sees them. They are folded like operators are,
//! and named like them.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, cast};
use datafusion::optimizer::AnalyzerRule;

use crate::query::arithmetic::{before_sign, checked, difference, negated};

/// Operators to checked functions. Runs after types have been coerced.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic;

impl CheckedArithmetic {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "checked_arithmetic";
}

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| each_expression(node, in_range))?;
        Ok(plan.data)
    }
}

/// Differences of numbers without a sign, which are as often less than zero as not: `row_number() - row_number()`. Runs
/// before types are coerced, because they are BIGINT from here on.
#[derive(Debug)]
pub(crate) struct SignedDifferences;

impl SignedDifferences {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "signed_differences";
}

impl AnalyzerRule for SignedDifferences {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let mut changed = false;
        let plan = plan.transform_up_with_subqueries(|node| {
            let node = each_expression(node, signed)?;
            changed |= node.transformed;
            // the nodes above find the new type
            if changed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
        })?;
        Ok(plan.data)
    }
}

/// Rewrites the expressions of a node, which keep their names.
fn each_expression(
    node: LogicalPlan,
    rewrite: fn(Expr, &DFSchema) -> Transformed<Expr>,
) -> DfResult<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    let mut schema = merge_schema(&node.inputs());
    if let LogicalPlan::TableScan(scan) = &node {
        schema.merge(&scan.projected_schema);
    }
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| Ok(rewrite(expr, &schema)))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })
}

/// An expression that is evaluated without a plan.
pub(crate) fn expression(expr: Expr, schema: &DFSchema) -> DfResult<Expr> {
    Ok(expr.transform_up(|expr| Ok(in_range(expr, schema)))?.data)
}

fn in_range(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let found = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.get_type(schema), right.get_type(schema)) {
            (Ok(one), Ok(other)) => checked(left, *op, right, (&one, &other))
                .or_else(|| without_sign(left, *op, right))
                .or_else(|| without_sign(right, op.swap()?, left)),
            _ => None,
        },
        Expr::Negative(of) => of.get_type(schema).ok().and_then(|found| negated(of, &found)),
        _ => None,
    };
    found.map_or_else(|| Transformed::no(expr), Transformed::yes)
}

/// `-x < 5` as `x > -5`, which statistics of x can judge.
fn without_sign(left: &Expr, op: Operator, right: &Expr) -> Option<Expr> {
    let Expr::Literal(value, metadata) = right else { return None };
    let (x, wide) = match left {
        Expr::Cast(Cast { expr, field }) => (before_sign(expr)?, Some(field.data_type())),
        other => (before_sign(other)?, None),
    };
    let turned = op.swap()?;
    if value.is_null() || !wide.is_none_or(DataType::is_signed_integer) {
        return None;
    }
    // the smallest number has no negative
    let value = value.arithmetic_negate().ok()?;
    let x = wide.map_or_else(|| x.clone(), |wide| cast(x.clone(), wide.clone()));
    Some(binary_expr(x, turned, Expr::Literal(value, metadata.clone())))
}

fn signed(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) = &expr else {
        return Transformed::no(expr);
    };
    let wide = |side: &Expr| match side.get_type(schema) {
        Ok(DataType::UInt64) => Some(side.clone()),
        Ok(found) if found.is_unsigned_integer() => Some(cast(side.clone(), DataType::UInt64)),
        _ => None,
    };
    match (wide(left), wide(right)) {
        (Some(left), Some(right)) => Transformed::yes(difference(left, right)),
        _ => Transformed::no(expr),
    }
}
