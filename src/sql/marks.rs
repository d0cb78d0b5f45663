//! `EXISTS (…)`, and so `IN (…)` and `= ANY (…)`, outside of a WHERE: in a list, CASE, GROUP BY, ORDER BY or in ON.
//!
//! DataFusion joins such subqueries in a WHERE only. What it makes there of one within a larger condition, a join that marks
//! the rows for which there are rows inside, is what is done here, below the node that asks. What [`super::subqueries`] says
//! with three values is said with these marks. In ORDER BY and windows, it fails on any subquery; there all of them are
//! columns computed below.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::expr::Exists;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, Projection};
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerContext, OptimizerRule};

use super::subqueries::{any, is_correlated};
use crate::error::Error;

/// Where the numbers of our marks begin: those of the optimizer begin at one.
const FIRST_MARK: usize = 1000;

/// See the module. Runs after [`super::subqueries`].
#[derive(Debug)]
pub(crate) struct MarkedRows;

impl AnalyzerRule for MarkedRows {
    fn name(&self) -> &str {
        "marked_rows"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let context = OptimizerContext::new();
        context.alias_generator().update_min_id(FIRST_MARK);
        Ok(plan.transform_up_with_subqueries(|node| marked(node, &context))?.data)
    }
}

fn marked(node: LogicalPlan, context: &OptimizerContext) -> DfResult<Transformed<LogicalPlan>> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= asks(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    let ordered = matches!(node, LogicalPlan::Window(_) | LogicalPlan::Sort(_));
    if ordered && !found {
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(is_subquery(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    match node {
        LogicalPlan::Filter(_) | LogicalPlan::TableScan(_) | LogicalPlan::Dml(_) => Ok(Transformed::no(node)),
        node if !found => Ok(Transformed::no(node)),
        LogicalPlan::Join(join) => join_on(join, context).map(Transformed::yes),
        node @ (LogicalPlan::Window(_) | LogicalPlan::Sort(_)) => beside(node, context).map(Transformed::yes),
        node => above(node, context).map(Transformed::yes),
    }
}

fn asks(expr: &Expr) -> bool {
    expr.exists(|part| Ok(matches!(part, Expr::Exists(_) | Expr::InSubquery(_)))).unwrap_or(true)
}

fn is_subquery(part: &Expr) -> bool {
    matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_))
}

/// A Window or Sort, whose order is matched with that of its input: what has subqueries is a column there.
fn beside(node: LogicalPlan, context: &OptimizerContext) -> DfResult<LogicalPlan> {
    let inputs = node.inputs();
    let [input] = inputs.as_slice() else { return Err(refused().into()) };
    let input = with_asked((*input).clone(), &node)?;
    let mut columns: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let names = NamePreserver::new(&node);
    let mut computed = |expr: Expr| {
        if !expr.exists(|part| Ok(is_subquery(part)))? {
            return Ok(Transformed::no(expr));
        }
        let name = format!("__asked_{}", columns.len());
        columns.push(expr.alias(name.clone()));
        Ok::<_, DataFusionError>(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
    };
    let mut exprs = Vec::new();
    for expr in node.expressions() {
        let name = names.save(&expr);
        let expr = match &node {
            LogicalPlan::Window(_) => expr.transform_down(|part| match part {
                part @ Expr::WindowFunction(_) => {
                    Ok(Transformed::new(part.map_children(&mut computed)?.data, true, TreeNodeRecursion::Jump))
                }
                part => Ok(Transformed::no(part)),
            })?,
            _ => computed(expr)?,
        };
        exprs.push(name.restore(expr.data));
    }
    let below = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?);
    let below = marked(below, context)?.data;
    let columns = node.schema().columns();
    only(node.with_new_exprs(exprs, vec![below])?, columns)
}

/// A list with the columns that subqueries of ORDER BY speak of, which it does not show.
fn with_asked(input: LogicalPlan, node: &LogicalPlan) -> DfResult<LogicalPlan> {
    let mut missing: Vec<Column> = node.expressions().iter().flat_map(columns_of).collect();
    missing.retain(|column| !input.schema().has_column(column));
    missing.dedup();
    if missing.is_empty() {
        return Ok(input);
    }
    match input {
        LogicalPlan::Projection(list) if missing.iter().all(|column| list.input.schema().has_column(column)) => {
            let columns = list.expr.into_iter().chain(missing.into_iter().map(Expr::Column)).collect();
            Ok(LogicalPlan::Projection(Projection::try_new(columns, list.input)?))
        }
        _ => Err(Error::unsupported("a subquery in ORDER BY speaks of a column that is not listed")
            .with_code("CorrelatedSubquery")
            .with_hint("list the subquery and order by it: SELECT id, (SELECT …) AS k FROM t ORDER BY k")
            .into()),
    }
}

/// A node with one input whose expressions ask.
fn above(node: LogicalPlan, context: &OptimizerContext) -> DfResult<LogicalPlan> {
    let inputs = node.inputs();
    let [input] = inputs.as_slice() else { return Err(refused().into()) };
    let mut input = (*input).clone();
    let names = NamePreserver::new(&node);
    let mut exprs = Vec::new();
    for expr in node.expressions() {
        let name = names.save(&expr);
        let asks = asks(&expr);
        let marked = joined(&mut input, expr, context)?;
        exprs.push(if asks { name.restore(marked) } else { marked });
    }
    let columns = node.schema().columns();
    let node = node.with_new_exprs(exprs, vec![input])?;
    only(node, columns)
}

/// A node without the marks that it passes on.
fn only(node: LogicalPlan, columns: Vec<Column>) -> DfResult<LogicalPlan> {
    if node.schema().fields().len() == columns.len() {
        return Ok(node);
    }
    let columns = columns.into_iter().map(Expr::Column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(node))?))
}

/// A join whose condition asks: on the side that the question is about, or above an inner one.
fn join_on(join: Join, context: &OptimizerContext) -> DfResult<LogicalPlan> {
    let columns = join.schema.columns();
    let filter = join.filter.clone();
    let parts = filter.iter().flat_map(|filter| split_conjunction(filter));
    let (asking, mut rest): (Vec<Expr>, Vec<Expr>) = parts.cloned().partition(asks);
    if join.join_type == JoinType::Inner && !join.on.iter().any(|(left, right)| asks(left) || asks(right)) {
        let schema = Arc::clone(&join.schema);
        let join = LogicalPlan::Join(Join { filter: conjunction(rest), schema, ..join });
        let Some(asking) = conjunction(asking) else { return Ok(join) };
        return Ok(LogicalPlan::Filter(Filter::try_new(asking, Arc::new(join))?));
    }
    let (mut left, mut right) = (join.left.as_ref().clone(), join.right.as_ref().clone());
    for expr in asking {
        let asked = columns_of(&expr);
        let is_of = |side: &LogicalPlan| asked.iter().all(|column| side.schema().has_column(column));
        rest.push(match (is_of(&join.left), is_of(&join.right)) {
            (true, _) => joined(&mut left, expr, context)?,
            (false, true) => joined(&mut right, expr, context)?,
            (false, false) => return Err(refused().into()),
        });
    }
    let mut on = Vec::new();
    for (one, other) in join.on {
        on.push((joined(&mut left, one, context)?, joined(&mut right, other, context)?));
    }
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        conjunction(rest),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    only(LogicalPlan::Join(join), columns)
}

/// The columns of the rows outside that an expression and its subqueries speak of.
fn columns_of(expr: &Expr) -> Vec<Column> {
    let mut columns: Vec<Column> = expr.column_refs().into_iter().cloned().collect();
    let _ = expr.apply(|part| {
        if let Expr::Exists(Exists { subquery, .. }) | Expr::ScalarSubquery(subquery) = part {
            columns.extend(subquery.outer_ref_columns.iter().flat_map(|outer| match outer {
                Expr::OuterReferenceColumn(_, column) => Some(column.clone()),
                _ => None,
            }));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    columns
}

/// An expression over rows with marks in the place of its questions.
fn joined(input: &mut LogicalPlan, expr: Expr, context: &OptimizerContext) -> DfResult<Expr> {
    if !asks(&expr) {
        return Ok(expr);
    }
    // what is the same for all rows is asked once
    let expr = expr.transform_up(|part| match part {
        Expr::Exists(Exists { subquery, negated }) if !is_correlated(&subquery.subquery) => {
            let any = any(&subquery.subquery, None, &subquery.spans)?;
            Ok(Transformed::yes(if negated { !any } else { any }))
        }
        other => Ok(Transformed::no(other)),
    })?;
    if !asks(&expr.data) {
        return Ok(expr.data);
    }
    // as if it were part of a WHERE
    let asked = Expr::IsNotNull(Box::new(expr.data));
    let filter = LogicalPlan::Filter(Filter::try_new(asked, Arc::new(input.clone()))?);
    let mut marked = DecorrelatePredicateSubquery::new().rewrite(filter, context)?.data;
    if let LogicalPlan::Projection(projection) = marked {
        marked = Arc::unwrap_or_clone(projection.input);
    }
    let LogicalPlan::Filter(filter) = marked else { return Err(refused().into()) };
    let Expr::IsNotNull(expr) = filter.predicate else { return Err(refused().into()) };
    if asks(&expr) {
        return Err(refused().into());
    }
    *input = Arc::unwrap_or_clone(filter.input);
    Ok(*expr)
}

fn refused() -> Error {
    Error::unsupported("a subquery of EXISTS, IN, ANY or ALL cannot be computed in this place")
        .with_code("CorrelatedSubquery")
        .with_hint("ask in a WHERE, or join the rows of the subquery, grouped by the columns that are compared")
}
