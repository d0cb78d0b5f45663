//! The one column that `JOIN … USING (x)` and `NATURAL JOIN` make of two.
//!
//! Its value is the left side's, or the right side's where the left has none. DataFusion has no such column: it takes an
//! unqualified `x` for the left side's, and lets `*` stand for the side whose name comes first in the alphabet. Both are
//! NULL in rows that come from the other side alone. Where it can be written, statements say what is meant
//! ([`super::using_names`]). Plans that would still show such a value are refused, with what to write instead; a plan does not tell whether `a.x` or `x` was written, so the first is refused too. What `*` stands for has no
//! place in the text, where places are known.

use std::collections::HashSet;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinConstraint, JoinType};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, Join, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::error::Error;

/// See the module.
#[derive(Debug)]
pub(crate) struct MergedColumns {
    /// Whether columns know where they are written.
    pub(crate) placed: bool,
}

impl AnalyzerRule for MergedColumns {
    fn name(&self) -> &str {
        "merged_columns"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let mut joins = Vec::new();
        let mut wildcards = Vec::new();
        plan.apply_with_subqueries(|node| {
            match node {
                LogicalPlan::Join(join) if is_outer_using(join) => joins.push(join.clone()),
                LogicalPlan::Projection(projection) => {
                    let mut joins = Vec::new();
                    joined_rows(&projection.input, &mut joins);
                    wildcards.extend(joins.into_iter().map(|join| (projection.expr.clone(), join.clone())));
                }
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        for join in &joins {
            let used = columns_above(&plan, join)?;
            for (left, right) in keys(join) {
                let missing = match join.join_type {
                    JoinType::Right => used.contains(&left),
                    _ => used.contains(&left) || used.contains(&right),
                };
                if missing {
                    return Err(refused(join, &left, &right).into());
                }
            }
        }
        for (shown, join) in &wildcards {
            for (left, right) in keys(join) {
                if self.shows_right_only(shown, join, &left, &right) {
                    return Err(refused(join, &left, &right).into());
                }
            }
        }
        Ok(plan)
    }
}

fn is_outer_using(join: &Join) -> bool {
    join.join_constraint == JoinConstraint::Using && matches!(join.join_type, JoinType::Right | JoinType::Full)
}

/// The LEFT JOINs … USING whose rows a node takes as they are, or beside others.
fn joined_rows<'a>(input: &'a LogicalPlan, found: &mut Vec<&'a Join>) {
    match input {
        LogicalPlan::Filter(filter) => joined_rows(&filter.input, found),
        LogicalPlan::Join(join) => {
            if join.join_constraint == JoinConstraint::Using && join.join_type == JoinType::Left {
                found.push(join);
            }
            joined_rows(&join.left, found);
            joined_rows(&join.right, found);
        }
        _ => {}
    }
}

/// The columns that a join has in common, left and right.
fn keys(join: &Join) -> Vec<(Column, Column)> {
    let column = |expr: &Expr| expr.column_refs().into_iter().next().cloned();
    let mut keys = Vec::new();
    for (one, other) in &join.on {
        if let (Some(one), Some(other)) = (column(one), column(other)) {
            // some types make DataFusion turn the pair
            let turned = !join.left.schema().has_column(&one);
            keys.push(if turned { (other, one) } else { (one, other) });
        }
    }
    keys
}

/// The columns that a plan speaks of above a join, or beside it.
fn columns_above(plan: &LogicalPlan, join: &Join) -> DfResult<HashSet<Column>> {
    let mut columns = HashSet::new();
    plan.apply_with_subqueries(|node| {
        if matches!(node, LogicalPlan::Join(other) if other == join) {
            // its inputs are spoken of below, and have the same names
            return Ok(TreeNodeRecursion::Jump);
        }
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Column(column) | Expr::OuterReferenceColumn(_, column) = part {
                    columns.insert(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(columns)
}

impl MergedColumns {
    /// Whether these are columns of `*` over a join, among them the right one of a key and not the left one: what `*` is
    /// where the right side's name comes first.
    fn shows_right_only(&self, shown: &[Expr], join: &Join, left: &Column, right: &Column) -> bool {
        if left.flat_name() < right.flat_name() {
            return false;
        }
        let written = |column: &&Column| self.placed && column.spans().first().is_some();
        let shown: HashSet<&Column> =
            shown.iter().filter_map(|expr| expr.try_as_col()).filter(|column| !written(column)).collect();
        if shown.contains(left) || !shown.contains(right) {
            return false;
        }
        let left_keys: Vec<Column> = keys(join).into_iter().map(|(left, _)| left).collect();
        let mut others =
            join.left.schema().columns().into_iter().filter(|column| !left_keys.contains(column)).peekable();
        let none = others.peek().is_none();
        // some may be left out of it, by `* EXCEPT (…)`
        none || if self.placed {
            others.any(|one| shown.contains(&one))
        } else {
            others.all(|one| shown.contains(&one))
        }
    }
}

fn refused(join: &Join, left: &Column, right: &Column) -> Error {
    let (name, kind) = (&left.name, join.join_type.to_string().to_uppercase());
    Error::unsupported(format!(
        "column {name} of a {kind} JOIN with USING or NATURAL would be NULL in rows that only one side has"
    ))
    .with_code("MergedColumn")
    .with_hint(format!(
        "write {kind} JOIN … ON {left} = {right}, and coalesce({left}, {right}) AS {name} for the column"
    ))
}
