//! What ROLLUP, CUBE and GROUPING SETS group by, computed below them.
//!
//! Rules write expressions anew and keep their names by an alias; of such a set the alias would be that of all its
//! expressions together, and nobody above would find the one it speaks of. Columns are left as they are.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, Projection};
use datafusion::optimizer::AnalyzerRule;

/// See the module. Runs before rules that write expressions anew.
#[derive(Debug)]
pub(crate) struct ComputedKeys;

impl AnalyzerRule for ComputedKeys {
    fn name(&self) -> &str {
        "computed_keys"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Aggregate(aggregate) => computed(aggregate),
            node => Ok(Transformed::no(node)),
        })?;
        Ok(plan.data)
    }
}

fn computed(aggregate: Aggregate) -> DfResult<Transformed<LogicalPlan>> {
    let unchanged = |aggregate| Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    let sets = aggregate.group_expr.iter().filter_map(|expr| match expr {
        Expr::GroupingSet(set) => Some(set.distinct_expr()),
        _ => None,
    });
    let keys: Vec<Expr> = sets.flatten().filter(|key| key.try_as_col().is_none()).cloned().collect();
    let name = |key: &Expr| key.schema_name().to_string();
    let input = aggregate.input.schema();
    if keys.is_empty() || keys.iter().any(|key| input.has_column_with_unqualified_name(&name(key))) {
        return unchanged(aggregate);
    }
    let column = |expr: Expr| match keys.contains(&expr) {
        true => Expr::Column(Column::new_unqualified(name(&expr))),
        false => expr,
    };
    let all = |set: Vec<Expr>| set.into_iter().map(column).collect::<Vec<_>>();
    let group = aggregate.group_expr.iter().cloned().map(|expr| match expr {
        Expr::GroupingSet(GroupingSet::Rollup(set)) => Expr::GroupingSet(GroupingSet::Rollup(all(set))),
        Expr::GroupingSet(GroupingSet::Cube(set)) => Expr::GroupingSet(GroupingSet::Cube(all(set))),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            Expr::GroupingSet(GroupingSet::GroupingSets(sets.into_iter().map(all).collect()))
        }
        other => other,
    });
    let group: Vec<Expr> = group.collect();
    // which of the keys a row is grouped by is asked for by the key
    let asked = aggregate.aggr_expr.iter().cloned().map(|expr| {
        let asked = expr.transform_down(|expr| match expr {
            Expr::AggregateFunction(mut of) if of.func.name() == "grouping" => {
                of.params.args = all(of.params.args);
                Ok(Transformed::yes(Expr::AggregateFunction(of)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(asked.data)
    });
    let asked = asked.collect::<DfResult<Vec<_>>>()?;
    let mut columns: Vec<Expr> = input.columns().into_iter().map(Expr::Column).collect();
    for key in &keys {
        let key = key.clone().alias(name(key));
        if !columns.contains(&key) {
            columns.push(key);
        }
    }
    let below = Projection::try_new(columns, Arc::clone(&aggregate.input))?;
    let above = Aggregate::try_new(Arc::new(LogicalPlan::Projection(below)), group, asked)?;
    let names = |of: &Aggregate| of.schema.columns();
    if names(&above) != names(&aggregate) {
        return unchanged(aggregate);
    }
    Ok(Transformed::yes(LogicalPlan::Aggregate(above)))
}
