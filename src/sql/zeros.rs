//! One zero: -0.0 and 0.0 are equal, and neither comes before the other.
//!
//! DataFusion compares, joins and groups them so, but has two values of them in an order, in a window's partitions, among
//! DISTINCT arguments of an aggregate and in `CASE x WHEN …`. There `x + 0.0` stands for `x` here, which is `x` with one
//! zero. The last key of an order stays: rows that are equal by it come in any order.
//!
//! Inside of arrays, rows and maps it has two of them everywhere, so those are compared with one
//! ([`with_one_number`]).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, BinaryExpr, Case, InList, Sort};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::operands::compares;
use crate::query::one_nan::{has_floats, is_ours, with_one_number};

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
            node.transform_data(|node| in_node(node, &schema))
        })?;
        Ok(plan.data)
    }
}

fn in_node(mut node: LogicalPlan, schema: &DFSchema) -> DfResult<Transformed<LogicalPlan>> {
    let changed = match &mut node {
        LogicalPlan::Sort(sort) => in_order(&mut sort.expr, schema),
        LogicalPlan::Distinct(Distinct::On(on)) => {
            // its first keys are what rows are told apart by
            let keys = on.sort_expr.iter_mut().flatten().map(|sort| &mut sort.expr);
            each(on.on_expr.iter_mut().chain(keys), schema)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let parts = input.schema().fields().iter().any(|field| has_parts(field.data_type()));
            if parts {
                let columns = input.schema().iter().map(|(table, field)| {
                    let mut value = Expr::Column(Column::from((table, field)));
                    if with_one_part(&mut value, schema) {
                        value = value.alias_qualified(table.cloned(), field.name());
                    }
                    value
                });
                let shown = LogicalPlanBuilder::from(Arc::clone(input)).project(columns.collect::<Vec<_>>())?;
                *input = Arc::new(shown.build()?);
            }
            parts
        }
        LogicalPlan::Aggregate(aggregate) => {
            let named = |expr: &mut Expr| {
                let name = NamePreserver::new_for_projection().save(expr);
                let changed = with_one_part(expr, schema);
                if changed {
                    *expr = name.restore(std::mem::take(expr));
                }
                changed
            };
            match aggregate.group_expr.as_mut_slice() {
                // their parts are compared as a whole, and the same in all of them
                [Expr::GroupingSet(_)] => false,
                keys => keys.iter_mut().fold(false, |changed, key| named(key) | changed),
            }
        }
        LogicalPlan::Join(join) => join
            .on
            .iter_mut()
            .flat_map(|(left, right)| [left, right])
            .fold(false, |changed, key| with_one_part(key, schema) | changed),
        _ => false,
    };
    Ok(if changed { Transformed::yes(node) } else { Transformed::no(node) })
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
                in_order(&mut params.order_by, schema)
            }
        }
        Expr::Case(Case { expr: Some(tested), when_then_expr, .. }) => {
            let values = when_then_expr.iter_mut().map(|(value, _)| value.as_mut());
            each(std::iter::once(tested.as_mut()).chain(values), schema)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
            with_one_part(left, schema) | with_one_part(right, schema)
        }
        Expr::InList(InList { expr, list, .. }) => {
            let values = list.iter_mut().fold(false, |changed, value| with_one_part(value, schema) | changed);
            with_one_part(expr, schema) | values
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            with_one_part(expr, schema) | with_one_part(low, schema) | with_one_part(high, schema)
        }
        _ => false,
    };
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

/// The keys that others follow; and values with parts, which others of their own follow.
fn in_order(keys: &mut [Sort], schema: &DFSchema) -> bool {
    match keys {
        [first @ .., last] => {
            let last = with_one_part(&mut last.expr, schema);
            each(first.iter_mut().map(|sort| &mut sort.expr), schema) | last
        }
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
        _ => return with_one_part(value, schema),
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

/// The same where floats are a part of values.
fn with_one_part(value: &mut Expr, schema: &DFSchema) -> bool {
    let is_ours = matches!(value, Expr::ScalarFunction(function) if is_ours(&function.func));
    if is_ours || !matches!(value.get_type(schema), Ok(found) if has_parts(&found)) {
        return false;
    }
    *value = with_one_number(std::mem::take(value));
    true
}

fn has_parts(data_type: &DataType) -> bool {
    data_type.is_nested() && has_floats(data_type)
}
