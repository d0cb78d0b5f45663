//! Conditions that guard others: `k <> 0 AND 10 / k > 5`, `kind = 'n' AND CAST(s AS INT) > 5`.
//!
//! DataFusion computes the terms of AND and OR in any order and over all rows, and moves those of a query inside of another
//! beside each other. What fails for some rows fails the statement then, although another term has left those rows out.
//! Here a part that can fail is computed only in rows where its value matters:
//!
//! ```text
//! k <> 0 AND 10 / k > 5   →   k <> 0 AND CASE WHEN k <> 0 THEN 10 / k END > 5
//! ```
//!
//! Where another term of an AND is not true, in a WHERE, the row is left out whatever this one says, so each term that
//! cannot fail guards all that can, wherever it is written; of those that can, the earlier guard the later. All other terms
//! stay as they are and prune. What guards a condition guards all inside of it: the terms of an OR in an AND, the branches
//! of a CASE. The optimizer makes AND and OR of a CASE of conditions, so its branches are guarded too.
//! Conditions of a WHERE get their guards once they have been moved to where they are computed,
//! which is when those of inner queries are beside them; all else before the optimizer.
//!
//! | file | one idea |
//! |---|---|
//! | `guard` | the conditions around a part, as a CASE |
//! | `failing` | what can fail |

mod failing;
mod guard;

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{BinaryExpr, Case};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{merge_schema, split_binary_owned, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, Operator, TableProviderFilterPushDown};
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

use self::failing::{can_fail, fails, gives_truth, is_query};
use self::guard::{Guard, Place};
use super::chains::balanced;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// The rules with guards around the one that moves conditions.
pub(super) fn with_guards(rules: Vec<Rule>) -> Vec<Rule> {
    let guarded = |rule: Rule| -> Rule {
        if rule.name() == "push_down_filter" { Arc::new(GuardedFilters { rule }) } else { rule }
    };
    rules.into_iter().map(guarded).collect()
}

/// Guards in all that is no condition of its own. Runs after types have been coerced.
#[derive(Debug)]
pub(crate) struct GuardedTerms;

impl GuardedTerms {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "guarded_terms";
}

impl AnalyzerRule for GuardedTerms {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        // what is guarded may be NULL
        let mut retyped = false;
        let plan = plan.transform_up_with_subqueries(|node| {
            let node = if retyped { node.recompute_schema()? } else { node };
            let names = NamePreserver::new(&node);
            let schema = merge_schema(&node.inputs());
            let is_condition = matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
            let node = node.map_expressions(|expr| {
                if !can_fail(&expr, &schema) {
                    return Ok(Transformed::no(expr));
                }
                let name = names.save(&expr);
                let written = expr.clone();
                let guarded = if is_condition {
                    let terms = split_conjunction_owned(expr).into_iter();
                    let terms = terms.map(|term| guarded(term, &Guard::default(), &schema));
                    balanced(terms.collect::<DfResult<_>>()?, Operator::And).unwrap_or_default()
                } else {
                    guarded(expr, &Guard::default(), &schema)?
                };
                if guarded == written {
                    return Ok(Transformed::no(written));
                }
                Ok(Transformed::yes(name.restore(guarded)))
            })?;
            retyped |= node.transformed;
            if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
        })?;
        Ok(plan.data)
    }
}

/// The rule that moves conditions, with guards in what it leaves.
#[derive(Debug)]
struct GuardedFilters {
    rule: Rule,
}

impl OptimizerRule for GuardedFilters {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        let plan = match plan {
            LogicalPlan::Filter(filter) => LogicalPlan::Filter(above_scan(filter)?),
            plan => plan,
        };
        let moved = self.rule.rewrite(plan, config)?;
        moved.transform_data(|plan| match plan {
            LogicalPlan::Filter(filter) => {
                let schema = Arc::clone(filter.input.schema());
                match guarded_condition(&filter.predicate, &schema)? {
                    Some(predicate) => {
                        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
                    }
                    None => Ok(Transformed::no(LogicalPlan::Filter(filter))),
                }
            }
            LogicalPlan::Join(join) => in_join(join),
            plan => Ok(Transformed::no(plan)),
        })
    }
}

/// A condition above a scan, with guards before the scan sees it.
fn above_scan(filter: Filter) -> DfResult<Filter> {
    let mut scan = &filter.input;
    let mut predicates = vec![&filter.predicate];
    while let LogicalPlan::Filter(inner) = scan.as_ref() {
        predicates.push(&inner.predicate);
        scan = &inner.input;
    }
    let LogicalPlan::TableScan(table) = scan.as_ref() else { return Ok(filter) };
    let schema = scan.schema();
    let mut terms: Vec<Expr> = Vec::new();
    // those of inner queries come first
    for term in predicates.into_iter().rev().flat_map(split_conjunction) {
        if !terms.contains(term) {
            terms.push(term.clone());
        }
    }
    if !terms.iter().any(|term| can_fail(term, schema)) {
        return Ok(filter);
    }
    // what the scan itself leaves out must speak of nothing that only its rows tell
    let taken = table.source.supports_filters_pushdown(&terms.iter().collect::<Vec<_>>())?;
    let (mut exact, mut others) = (Vec::new(), Vec::new());
    for (term, taken) in terms.into_iter().zip(taken) {
        if taken == TableProviderFilterPushDown::Exact { exact.push(term) } else { others.push(term) }
    }
    let mut terms = guarded_terms(exact, Place::Condition, &Guard::default(), schema)?;
    terms.extend(guarded_terms(others, Place::Condition, &Guard::default(), schema)?);
    let Some(predicate) = balanced(terms, Operator::And) else { return Ok(filter) };
    Filter::try_new(predicate, Arc::clone(scan))
}

/// A condition of its own with guards; None: it is one already.
fn guarded_condition(predicate: &Expr, schema: &DFSchema) -> DfResult<Option<Expr>> {
    if !can_fail(predicate, schema) {
        return Ok(None);
    }
    let terms: Vec<Expr> = split_conjunction(predicate).into_iter().cloned().collect();
    let guarded = guarded_terms(terms.clone(), Place::Condition, &Guard::default(), schema)?;
    Ok(if guarded == terms { None } else { balanced(guarded, Operator::And) })
}

/// The condition of a join, and keys that its terms on the same side guard.
fn in_join(mut join: Join) -> DfResult<Transformed<LogicalPlan>> {
    let Some(filter) = join.filter.take() else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
    let mut changed = false;
    for (left, right) in &mut join.on {
        for (key, side) in [(left, &join.left), (right, &join.right)] {
            let schema = side.schema();
            if !can_fail(key, schema) {
                continue;
            }
            let mut guard = Guard::default();
            for term in split_conjunction(&filter) {
                if term.column_refs().iter().all(|column| schema.has_column(column)) {
                    guard.add(term, Place::Condition, schema);
                }
            }
            let guarded = guarded(guard.bare(key.clone())?, &guard, schema)?;
            changed |= guarded != *key;
            *key = guarded;
        }
    }
    let schema = merge_schema(&[&join.left, &join.right]);
    let guarded = guarded_condition(&filter, &schema)?;
    changed |= guarded.is_some();
    join.filter = Some(guarded.unwrap_or(filter));
    let join = LogicalPlan::Join(join);
    Ok(if changed { Transformed::yes(join) } else { Transformed::no(join) })
}

/// The terms of a chain of AND or OR behind a guard, and behind each other.
fn guarded_terms(terms: Vec<Expr>, place: Place, outer: &Guard, schema: &DFSchema) -> DfResult<Vec<Expr>> {
    let mut guard = outer.clone();
    let terms: Vec<(Expr, bool)> = terms
        .into_iter()
        .map(|term| {
            let can_fail = can_fail(&term, schema);
            (term, can_fail)
        })
        .collect();
    for (term, _) in terms.iter().filter(|(_, can_fail)| !can_fail) {
        guard.add(term, place, schema);
    }
    let guarded = terms.into_iter().map(|(term, can_fail)| {
        if !can_fail {
            return Ok(term);
        }
        // what an earlier run has put around it is known by now, and so is found again
        let bare = guard.bare(term)?;
        let guarded = guarded(bare.clone(), &guard, schema)?;
        guard.add(&bare, place, schema);
        Ok(guarded)
    });
    guarded.collect()
}

/// An expression behind a guard, with guards in its chains of AND and OR, and in the arguments of aggregates with a FILTER.
fn guarded(expr: Expr, guard: &Guard, schema: &DFSchema) -> DfResult<Expr> {
    let inside = |expr: Expr| guarded(expr, &Guard::default(), schema).map(Transformed::yes);
    let whole = expr.transform_down(|part| {
        let done = |part| Ok(Transformed::new(part, true, TreeNodeRecursion::Jump));
        match part {
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                if !can_fail(&part, schema) {
                    return done(part);
                }
                let place = if op == Operator::And { Place::And } else { Place::Or };
                let terms = guarded_terms(split_binary_owned(part, op), place, guard, schema)?;
                done(balanced(terms, op).unwrap_or_default())
            }
            Expr::Case(case) if gives_truth(&case, schema) => done(Expr::Case(guarded_branches(case, guard, schema)?)),
            // in rows that the guard leaves out, its branches matter no more than its conditions
            Expr::Case(case) => {
                let case = Expr::Case(case);
                if !can_fail(&case, schema) {
                    return done(case);
                }
                done(guard.around(case.map_children(inside)?.data, schema)?)
            }
            Expr::AggregateFunction(mut function) => {
                let params = &mut function.params;
                let Some(filter) = params.filter.take() else {
                    return Ok(Transformed::no(Expr::AggregateFunction(function)));
                };
                let (filter, counted) = filtered(*filter, schema)?;
                params.filter = Some(Box::new(filter));
                let keys = params.order_by.iter_mut().map(|sort| &mut sort.expr);
                for argument in params.args.iter_mut().chain(keys) {
                    *argument = guarded(std::mem::take(argument), &counted, schema)?;
                }
                done(Expr::AggregateFunction(function))
            }
            Expr::WindowFunction(mut function) if function.params.filter.is_some() => {
                let params = &mut function.params;
                if let Some(filter) = params.filter.take() {
                    let (filter, counted) = filtered(*filter, schema)?;
                    params.filter = Some(Box::new(filter));
                    for argument in &mut params.args {
                        *argument = guarded(std::mem::take(argument), &counted, schema)?;
                    }
                }
                // all rows have a place in the window
                let keys = params.order_by.iter_mut().map(|sort| &mut sort.expr);
                for key in params.partition_by.iter_mut().chain(keys) {
                    *key = guarded(std::mem::take(key), &Guard::default(), schema)?;
                }
                done(Expr::WindowFunction(function))
            }
            part if is_query(&part) => done(part),
            part if fails(&part, schema) => done(guard.around(part.map_children(inside)?.data, schema)?),
            part => Ok(Transformed::no(part)),
        }
    })?;
    Ok(whole.data)
}

/// The condition of a FILTER, and what it says of the rows that count.
fn filtered(filter: Expr, schema: &DFSchema) -> DfResult<(Expr, Guard)> {
    let filter = match guarded_condition(&filter, schema)? {
        Some(guarded) => guarded,
        None => filter,
    };
    let mut counted = Guard::default();
    for term in split_conjunction(&filter) {
        counted.add(term, Place::Condition, schema);
    }
    Ok((filter, counted))
}

/// Guards in a CASE of conditions: a branch matters where its condition is true, and none of those before it.
fn guarded_branches(mut case: Case, outer: &Guard, schema: &DFSchema) -> DfResult<Case> {
    let mut before = outer.clone();
    let behind = |part: &mut Expr, guard: &Guard| -> DfResult<()> {
        *part = guarded(guard.bare(std::mem::take(part))?, guard, schema)?;
        Ok(())
    };
    for (when, then) in &mut case.when_then_expr {
        let written = before.bare(when.as_ref().clone())?;
        behind(when, &before)?;
        let mut chosen = before.clone();
        chosen.add(&written, Place::Condition, schema);
        behind(then, &chosen)?;
        before.add(&Place::Condition.decided(written), Place::Condition, schema);
    }
    if let Some(otherwise) = &mut case.else_expr {
        behind(otherwise, &before)?;
    }
    Ok(case)
}
