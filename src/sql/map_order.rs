//! DataFusion compares maps entry by entry in their order, although a map has none: two engines may write the same map
//! in two orders. Where a statement depends on that, its result says so.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan};

/// Whether rows are grouped, told apart or joined by maps, subqueries included.
pub(crate) fn matters(plan: &LogicalPlan) -> DfResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found = match node {
            LogicalPlan::Distinct(Distinct::All(input)) => {
                input.schema().fields().iter().any(|field| has_map(field.data_type()))
            }
            LogicalPlan::Distinct(Distinct::On(distinct)) => any_map(&distinct.on_expr, &distinct.input)?,
            LogicalPlan::Aggregate(aggregate) => {
                let groups = aggregate.group_expr_len()?;
                aggregate.schema.fields().iter().take(groups).any(|field| has_map(field.data_type()))
                    || any_map(aggregate.aggr_expr.iter().flat_map(told_apart), &aggregate.input)?
            }
            LogicalPlan::Join(join) => any_map(join.on.iter().map(|(left, _)| left), &join.left)?,
            _ => false,
        };
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// What an aggregate counts only once.
fn told_apart(expr: &Expr) -> &[Expr] {
    match expr {
        Expr::Alias(alias) => told_apart(&alias.expr),
        Expr::AggregateFunction(function) if function.params.distinct => &function.params.args,
        _ => &[],
    }
}

fn any_map<'a>(exprs: impl IntoIterator<Item = &'a Expr>, input: &LogicalPlan) -> DfResult<bool> {
    for expr in exprs {
        if has_map(&expr.get_type(input.schema())?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_map(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_map(field.data_type())),
        _ => false,
    }
}
