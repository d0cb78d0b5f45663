//! `IN` and `NOT IN` by the three values of SQL.
//!
//! DataFusion joins two lists on one operand by the sets of their elements, `x IN (1, 2) AND x NOT IN (2)` to `x IN (1)`.
//! It takes NULL for an element like others there, and a column for one that equals nothing but itself; and lists that
//! leave nothing become FALSE or TRUE also where `x` is NULL. So here, before the optimizer sees them, and again before it
//! sees what it has brought together itself (a condition with the columns of a subquery in it, for example):
//!
//! - a list keeps its literals, without NULL: `x IN (1, NULL, y)` is `x IN (1) OR NULL OR x = y`;
//! - the lists on one operand in a chain of AND or of OR are one, single values as `x = 1` among them; when they leave
//!   nothing, they are `x <> x`, or `x = x`, which are NULL where `x` is.
//!
//! In a WHERE, NULL selects no more than FALSE does: `x IN (1, NULL)` is `x IN (1)` there and prunes like it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::common::{DFSchema, DFSchemaRef, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{BinaryExpr, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

use super::chains::balanced;

/// See the module. Runs after types have been coerced, and at the end of each pass of the optimizer.
#[derive(Debug)]
pub(crate) struct NullsInLists;

impl NullsInLists {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "nulls_in_lists";
}

impl AnalyzerRule for NullsInLists {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(in_node)?.data)
    }
}

impl OptimizerRule for NullsInLists {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> DfResult<Transformed<LogicalPlan>> {
        in_node(plan)
    }
}

fn in_node(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let mut has_lists = false;
    node.apply_expressions(|expr| {
        has_lists |= expr.exists(|part| Ok(matches!(part, Expr::InList(_))))?;
        Ok(if has_lists { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !has_lists {
        return Ok(Transformed::no(node));
    }
    let names = NamePreserver::new(&node);
    let filters = matches!(node, LogicalPlan::Filter(_));
    let schema = Arc::new(merge_schema(&node.inputs()));
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let exact = expr.rewrite(&mut Chains { parents: Vec::new(), schema: Arc::clone(&schema) })?;
        let exact = if exact.transformed && filters { exact.update_data(selecting) } else { exact };
        Ok(exact.update_data(|expr| name.restore(expr)))
    })
}

/// Rewrites chains of AND and of OR, each as a whole.
struct Chains {
    /// The operators of AND and OR above, and None for what is neither.
    parents: Vec<Option<Operator>>,
    schema: DFSchemaRef,
}

impl TreeNodeRewriter for Chains {
    type Node = Expr;

    fn f_down(&mut self, expr: Expr) -> DfResult<Transformed<Expr>> {
        self.parents.push(connective(&expr));
        Ok(Transformed::no(expr))
    }

    fn f_up(&mut self, expr: Expr) -> DfResult<Transformed<Expr>> {
        let own = self.parents.pop().flatten();
        match own {
            // part of a longer chain
            Some(op) if self.parents.last() == Some(&Some(op)) => Ok(Transformed::no(expr)),
            Some(op) => self.chain(expr, op),
            None => match expr {
                Expr::Not(inner) => Ok(match *inner {
                    // or the optimizer finds two lists where there are none yet
                    Expr::InList(list) => Transformed::yes(Expr::InList(InList { negated: !list.negated, ..list })),
                    other => Transformed::no(Expr::Not(Box::new(other))),
                }),
                other => apart(other),
            },
        }
    }
}

impl Chains {
    /// A chain with one list for each operand, where a list can lose elements to another.
    fn chain(&self, expr: Expr, op: Operator) -> DfResult<Transformed<Expr>> {
        let mut parts = Vec::new();
        let mut rest = vec![expr];
        while let Some(expr) = rest.pop() {
            match expr {
                Expr::BinaryExpr(BinaryExpr { left, op: own, right }) if own == op => rest.extend([*right, *left]),
                other => parts.push(other),
            }
        }
        let before = parts.len();
        // what turns out to be no condition at all lets the optimizer bring lists together
        let parts = parts.into_iter().map(|part| self.settled(part));
        let parts: Vec<Expr> = parts.filter(|part| !is_boolean(part, op == Operator::And)).collect();
        let settled = parts.len() != before;
        let (parts, joined) = joined(parts, op);
        let whole = balanced(parts, op).unwrap_or_else(|| lit(op == Operator::And));
        Ok(if joined || settled { Transformed::yes(whole) } else { Transformed::no(whole) })
    }

    /// A condition that is the same for all rows as its value.
    fn settled(&self, part: Expr) -> Expr {
        let tells = matches!(part, Expr::IsNull(_) | Expr::IsNotNull(_)) || !part.any_column_refs();
        if matches!(part, Expr::Literal(..)) || !tells || part.is_volatile() || has_subquery(&part) {
            return part;
        }
        let context = SimplifyContext::builder().with_schema(Arc::clone(&self.schema)).build();
        match ExprSimplifier::new(context).simplify(part.clone()) {
            Ok(value @ Expr::Literal(..)) => value,
            _ => part,
        }
    }
}

fn connective(expr: &Expr) -> Option<Operator> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => Some(*op),
        _ => None,
    }
}

fn is_boolean(expr: &Expr, value: bool) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Boolean(Some(found)), _) if *found == value)
}

fn has_subquery(expr: &Expr) -> bool {
    let subquery = |part: &Expr| {
        matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Placeholder(_)
        )
    };
    expr.exists(|part| Ok(subquery(part))).unwrap_or(true)
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
    // sets tell the two zeros apart, though they are equal
    let zeros = literals.iter().filter_map(literal).filter_map(other_zero).collect::<Vec<_>>();
    let before = literals.len();
    for zero in zeros {
        if !literals.iter().any(|item| literal(item).as_ref() == Some(&zero)) {
            literals.push(lit(zero));
        }
    }
    if !has_null && others.is_empty() && literals.len() == before {
        return Ok(Transformed::no(Expr::InList(InList { expr: operand, list: literals, negated })));
    }
    let op = if negated { Operator::NotEq } else { Operator::Eq };
    let compared = others.into_iter().map(|other| binary_expr(operand.as_ref().clone(), op, other));
    let nothing = has_null.then(null);
    let rest: Vec<Expr> = nothing.into_iter().chain(compared).collect();
    let list = (!literals.is_empty()).then_some(Expr::InList(InList { expr: operand, list: literals, negated }));
    let op = if negated { Operator::And } else { Operator::Or };
    let whole = balanced(list.into_iter().chain(rest).collect(), op);
    Ok(Transformed::yes(whole.unwrap_or_else(null)))
}

/// The value of an element that is the same for all rows.
pub(super) fn literal(item: &Expr) -> Option<ScalarValue> {
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

/// A condition on one operand by its values: a list of literals, or a comparison with one.
struct Listed {
    operand: Expr,
    values: Vec<(ScalarValue, Expr)>,
    negated: bool,
}

impl Listed {
    fn of(expr: &Expr) -> Option<Self> {
        let (operand, items, negated) = match expr {
            Expr::InList(InList { expr, list, negated }) => (expr.as_ref(), list.as_slice(), *negated),
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Eq | Operator::NotEq), right }) => {
                let (operand, item) = match (left.as_ref(), right.as_ref()) {
                    (operand, item @ Expr::Literal(..)) => (operand, item),
                    (item @ Expr::Literal(..), operand) => (operand, item),
                    _ => return None,
                };
                (operand, std::slice::from_ref(item), *op == Operator::NotEq)
            }
            _ => return None,
        };
        if operand.is_volatile() || matches!(operand, Expr::Literal(..)) {
            return None;
        }
        let values = items.iter().map(|item| {
            let value = literal(item).filter(|value| !value.is_null())?;
            Some((one_zero(value), item.clone()))
        });
        Some(Self { operand: operand.clone(), values: values.collect::<Option<_>>()?, negated })
    }
}

/// -0.0 for 0.0, and the other way round.
fn other_zero(value: ScalarValue) -> Option<ScalarValue> {
    match value {
        ScalarValue::Float32(Some(value)) if value == 0.0 => Some(ScalarValue::Float32(Some(-value))),
        ScalarValue::Float64(Some(value)) if value == 0.0 => Some(ScalarValue::Float64(Some(-value))),
        _ => None,
    }
}

/// A value in the form that equal ones have in common.
fn one_zero(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Float32(Some(value)) => ScalarValue::Float32(Some(value + 0.0)),
        ScalarValue::Float64(Some(value)) => ScalarValue::Float64(Some(value + 0.0)),
        other => other,
    }
}

/// The parts of a chain with one list in the place of those that take elements from each other; whether there are such.
fn joined(parts: Vec<Expr>, op: Operator) -> (Vec<Expr>, bool) {
    let listed: Vec<Option<Listed>> = parts.iter().map(Listed::of).collect();
    let mut operands: Vec<Vec<(usize, &Listed)>> = Vec::new();
    for (at, listed) in listed.iter().enumerate() {
        let Some(listed) = listed else { continue };
        let same =
            |lists: &&mut Vec<(usize, &Listed)>| lists.first().is_some_and(|(_, one)| one.operand == listed.operand);
        match operands.iter_mut().find(same) {
            Some(lists) => lists.push((at, listed)),
            None => operands.push(vec![(at, listed)]),
        }
    }
    // under AND a list keeps what all others leave of it, under OR a NOT IN does
    let keeps_negated = op == Operator::Or;
    let mut changed: HashMap<usize, Option<Expr>> = HashMap::new();
    for lists in operands.into_iter().filter(|lists| lists.len() > 1) {
        let Some((first, base)) = lists.iter().find(|(_, listed)| listed.negated == keeps_negated) else { continue };
        let others = lists.iter().filter(|(at, _)| at != first);
        let others: Vec<(bool, HashSet<&ScalarValue>)> = others
            .map(|(_, other)| (other.negated == keeps_negated, other.values.iter().map(|(value, _)| value).collect()))
            .collect();
        let left =
            base.values.iter().filter(|(value, _)| others.iter().all(|(keeps, of)| of.contains(value) == *keeps));
        let list: Vec<Expr> = left.map(|(_, item)| item.clone()).collect();
        let operand = Box::new(base.operand.clone());
        let whole = if list.is_empty() {
            let op = if keeps_negated { Operator::Eq } else { Operator::NotEq };
            binary_expr(base.operand.clone(), op, *operand)
        } else {
            Expr::InList(InList { expr: operand, list, negated: keeps_negated })
        };
        changed.extend(lists.iter().map(|(at, _)| (*at, None)));
        changed.insert(*first, Some(whole));
    }
    if changed.is_empty() {
        return (parts, false);
    }
    let parts = parts.into_iter().enumerate().filter_map(|(at, part)| changed.remove(&at).unwrap_or(Some(part)));
    (parts.collect(), true)
}

/// A condition of a WHERE that selects the same rows without asking for more than TRUE.
fn selecting(expr: Expr) -> Expr {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return expr;
    };
    if op == Operator::NotEq && left == right && !left.is_volatile() {
        return lit(false);
    }
    if !matches!(op, Operator::And | Operator::Or) {
        return Expr::BinaryExpr(BinaryExpr { left, op, right });
    }
    let (left, right) = (selecting(*left), selecting(*right));
    let is_null = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if value.is_null());
    match (op, is_null(&left), is_null(&right)) {
        (Operator::Or, true, _) => right,
        (Operator::Or, _, true) => left,
        (Operator::And, true, _) | (Operator::And, _, true) => lit(false),
        (op, ..) => binary_expr(left, op, right),
    }
}
