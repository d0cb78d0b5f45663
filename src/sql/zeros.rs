//! One zero: -0.0 and 0.0 are equal, and neither comes before the other.
//!
//! DataFusion compares, joins and groups them so, but has two values of them in an order, in a window's partitions, among
//! DISTINCT arguments of an aggregate and in `CASE x WHEN …`. There `x + 0.0` stands for `x` here, which is `x` with one
//! zero. The last key of an order stays: rows that are equal by it come in any order.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Case, Sort};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;

/// See the module. Runs after types have been coerced.
#[derive(Debug)]
pub(crate) struct OneZero;

impl OneZero {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "one_zero";
}

impl AnalyzerRule for OneZero {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let schema = merge_schema(&node.inputs());
            let node = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let one = expr.transform_up(|expr| Ok(in_expression(expr, &schema)))?;
                Ok(one.update_data(|expr| name.restore(expr)))
            })?;
            node.transform_data(|node| Ok(in_node(node, &schema)))
        })?;
        Ok(plan.data)
    }
}

fn in_node(mut node: LogicalPlan, schema: &DFSchema) -> Transformed<LogicalPlan> {
    let changed = match &mut node {
        LogicalPlan::Sort(sort) => before_others(&mut sort.expr, schema),
        LogicalPlan::Distinct(Distinct::On(on)) => {
            // its first keys are what rows are told apart by
            let keys = on.sort_expr.iter_mut().flatten().map(|sort| &mut sort.expr);
            each(on.on_expr.iter_mut().chain(keys), schema)
        }
        _ => false,
    };
    if changed { Transformed::yes(node) } else { Transformed::no(node) }
}

fn in_expression(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let changed = match &mut expr {
        Expr::WindowFunction(function) => {
            let params = &mut function.params;
            let keys = params.order_by.iter_mut().map(|sort| &mut sort.expr);
            each(params.partition_by.iter_mut().chain(keys), schema)
        }
        Expr::AggregateFunction(function) => {
            let params = &mut function.params;
            let distinct = params.distinct && each(params.args.iter_mut(), schema);
            // the order of distinct arguments is told by the arguments themselves
            if params.distinct {
                distinct | each(params.order_by.iter_mut().map(|sort| &mut sort.expr), schema)
            } else {
                before_others(&mut params.order_by, schema)
            }
        }
        Expr::Case(Case { expr: Some(tested), when_then_expr, .. }) => {
            let values = when_then_expr.iter_mut().map(|(value, _)| value.as_mut());
            each(std::iter::once(tested.as_mut()).chain(values), schema)
        }
        _ => false,
    };
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

/// The keys that others follow.
fn before_others(keys: &mut [Sort], schema: &DFSchema) -> bool {
    match keys {
        [first @ .., _] => each(first.iter_mut().map(|sort| &mut sort.expr), schema),
        [] => false,
    }
}

fn each<'a>(values: impl Iterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    values.fold(false, |changed, value| with_one_zero(value, schema) | changed)
}

fn with_one_zero(value: &mut Expr, schema: &DFSchema) -> bool {
    let zero = match value.get_type(schema) {
        Ok(DataType::Float32) => ScalarValue::Float32(Some(0.0)),
        Ok(DataType::Float64) => ScalarValue::Float64(Some(0.0)),
        _ => return false,
    };
    let is_other = |number: &Expr| match number {
        Expr::Literal(ScalarValue::Float32(number), _) => number.is_none_or(|number| number != 0.0),
        Expr::Literal(ScalarValue::Float64(number), _) => number.is_none_or(|number| number != 0.0),
        _ => false,
    };
    if is_other(value) {
        return false;
    }
    *value = match value {
        Expr::Literal(..) => lit(zero),
        _ => binary_expr(std::mem::take(value), Operator::Plus, lit(zero)),
    };
    true
}
