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
//! stay as they are and prune. The optimizer makes AND and OR of a CASE of conditions, so its branches are guarded too.
//! Conditions of a WHERE get their guards once they have been moved to where they are computed,
//! which is when those of inner queries are beside them; all else before the optimizer.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{BinaryExpr, Case, Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{merge_schema, split_binary_owned, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, Join, LogicalPlan, Operator, TableProviderFilterPushDown, binary_expr, lit,
};
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

use super::chains::balanced;
use crate::query::arithmetic::is_checked;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Terms that can fail and guard a later one.
const MOST_EARLIER: usize = 8;

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
                let guarded = if is_condition {
                    let mut changed = false;
                    let terms = split_conjunction_owned(expr).into_iter().map(|term| {
                        let term = guarded_inside(term, &schema)?;
                        changed |= term.transformed;
                        Ok(term.data)
                    });
                    let terms = terms.collect::<DfResult<Vec<_>>>()?;
                    Transformed::new_transformed(balanced(terms, Operator::And).unwrap_or_default(), changed)
                } else {
                    guarded_inside(expr, &schema)?
                };
                Ok(guarded.update_data(|expr| name.restore(expr)))
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
                match guarded_condition(&filter.predicate, &schema) {
                    Some(predicate) => {
                        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
                    }
                    None => Ok(Transformed::no(LogicalPlan::Filter(filter))),
                }
            }
            LogicalPlan::Join(join) => Ok(in_join(join)),
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
    let guarded = |terms: Vec<Expr>| guarded_terms(&terms, Place::Condition, schema).unwrap_or(terms);
    let terms = guarded(exact).into_iter().chain(guarded(others)).collect();
    let Some(predicate) = balanced(terms, Operator::And) else { return Ok(filter) };
    Filter::try_new(predicate, Arc::clone(scan))
}

fn guarded_condition(predicate: &Expr, schema: &DFSchema) -> Option<Expr> {
    if !can_fail(predicate, schema) {
        return None;
    }
    let terms: Vec<Expr> = split_conjunction(predicate).into_iter().cloned().collect();
    balanced(guarded_terms(&terms, Place::Condition, schema)?, Operator::And)
}

/// The condition of a join, and keys that its terms on the same side guard.
fn in_join(mut join: Join) -> Transformed<LogicalPlan> {
    let Some(filter) = join.filter.take() else { return Transformed::no(LogicalPlan::Join(join)) };
    let mut changed = false;
    for (left, right) in &mut join.on {
        for (key, side) in [(left, &join.left), (right, &join.right)] {
            let schema = side.schema();
            let of_side = |term: &&Expr| term.column_refs().iter().all(|column| schema.has_column(column));
            if can_fail(key, schema) {
                let terms: Vec<Expr> = split_conjunction(&filter).into_iter().filter(of_side).cloned().collect();
                let guard = Guard::of(&terms, Place::Condition, schema);
                if let Some(guarded) = guard.around(key, schema) {
                    *key = guarded;
                    changed = true;
                }
            }
        }
    }
    let schema = merge_schema(&[&join.left, &join.right]);
    let guarded = guarded_condition(&filter, &schema);
    changed |= guarded.is_some();
    join.filter = Some(guarded.unwrap_or(filter));
    let join = LogicalPlan::Join(join);
    if changed { Transformed::yes(join) } else { Transformed::no(join) }
}

/// Guards in the chains of AND and OR inside of an expression, and in arguments of an aggregate with a FILTER.
fn guarded_inside(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    expr.transform_down(|expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            if !can_fail(&expr, schema) {
                return Ok(Transformed::new(expr, false, TreeNodeRecursion::Jump));
            }
            let mut changed = false;
            let terms = split_binary_owned(expr, op).into_iter().map(|term| {
                let term = guarded_inside(term, schema)?;
                changed |= term.transformed;
                Ok(term.data)
            });
            let terms = terms.collect::<DfResult<Vec<_>>>()?;
            let place = if op == Operator::And { Place::And } else { Place::Or };
            let guarded = guarded_terms(&terms, place, schema);
            changed |= guarded.is_some();
            let whole = balanced(guarded.unwrap_or(terms), op).unwrap_or_default();
            Ok(Transformed::new(whole, changed, TreeNodeRecursion::Jump))
        }
        Expr::Case(case) if gives_truth(&case, schema) => {
            let guarded = guarded_branches(case, schema)?;
            Ok(Transformed::new(guarded.data, guarded.transformed, TreeNodeRecursion::Jump))
        }
        Expr::AggregateFunction(mut function) => {
            let Some(filter) = &function.params.filter else {
                return Ok(Transformed::no(Expr::AggregateFunction(function)));
            };
            let terms: Vec<Expr> = split_conjunction(filter).into_iter().cloned().collect();
            let guard = Guard::of(&terms, Place::Condition, schema);
            let mut changed = false;
            for argument in &mut function.params.args {
                if let Some(guarded) = guard.around(argument, schema) {
                    *argument = guarded;
                    changed = true;
                }
            }
            Ok(Transformed::new_transformed(Expr::AggregateFunction(function), changed))
        }
        expr => Ok(Transformed::no(expr)),
    })
}

/// Guards in a CASE of conditions: a branch matters where its condition is true, and none of those before it.
fn guarded_branches(mut case: Case, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let mut changed = false;
    let mut before: Vec<Expr> = Vec::new();
    let mut guard = |part: &mut Expr, terms: &[Expr]| -> DfResult<()> {
        let inside = guarded_inside(std::mem::take(part), schema)?;
        let guarded = Guard::of(terms, Place::Condition, schema).around(&inside.data, schema);
        changed |= inside.transformed || guarded.is_some();
        *part = guarded.unwrap_or(inside.data);
        Ok(())
    };
    for (when, then) in &mut case.when_then_expr {
        let written = when.as_ref().clone();
        guard(when, &before)?;
        before.push(written.clone());
        guard(then, &before)?;
        before.pop();
        before.push(Place::Condition.decided(written));
    }
    if let Some(otherwise) = &mut case.else_expr {
        guard(otherwise, &before)?;
    }
    Ok(Transformed::new_transformed(Expr::Case(case), changed))
}

/// What terms are joined to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// A condition by AND, which is as good as false where it is NULL.
    Condition,
    And,
    Or,
}

impl Place {
    /// Where no other term matters any more.
    fn decided(self, term: Expr) -> Expr {
        match self {
            Self::Condition => binary_expr(term, Operator::IsDistinctFrom, lit(true)),
            Self::And => binary_expr(term, Operator::IsNotDistinctFrom, lit(false)),
            Self::Or => binary_expr(term, Operator::IsNotDistinctFrom, lit(true)),
        }
    }

    /// Where others matter.
    fn open(self, term: Expr) -> Expr {
        match self {
            Self::Condition => term,
            Self::And => binary_expr(term, Operator::IsDistinctFrom, lit(false)),
            Self::Or => binary_expr(term, Operator::IsDistinctFrom, lit(true)),
        }
    }
}

/// The terms with guards; None: nothing is changed.
fn guarded_terms(terms: &[Expr], place: Place, schema: &DFSchema) -> Option<Vec<Expr>> {
    if terms.len() < 2 || !terms.iter().any(|term| can_fail(term, schema)) {
        return None;
    }
    let mut guard = Guard::of(&[], place, schema);
    guard.sure = Guard::of(terms, place, schema).sure;
    let mut changed = false;
    let guarded = terms.iter().map(|term| {
        let guarded = guard.around(term, schema);
        if can_fail(term, schema) && may_guard(term) && guard.earlier.len() < MOST_EARLIER {
            guard.earlier.push(term.clone());
        }
        changed |= guarded.is_some();
        guarded.unwrap_or_else(|| term.clone())
    });
    let guarded = guarded.collect();
    changed.then_some(guarded)
}

struct Guard {
    place: Place,
    /// Where all terms that cannot fail leave the others open.
    sure: Option<Expr>,
    /// Terms that can fail, in their order.
    earlier: Vec<Expr>,
}

impl Guard {
    fn of(terms: &[Expr], place: Place, schema: &DFSchema) -> Self {
        let (earlier, sure): (Vec<Expr>, Vec<Expr>) =
            terms.iter().filter(|term| may_guard(term)).cloned().partition(|term| can_fail(term, schema));
        let sure = balanced(sure.into_iter().map(|term| place.open(term)).collect(), Operator::And);
        let earlier = earlier.into_iter().take(MOST_EARLIER).collect();
        Self { place, sure, earlier }
    }

    /// An expression that is computed behind this guard; None: it cannot fail, or there is nothing to guard it.
    fn around(&self, expr: &Expr, schema: &DFSchema) -> Option<Expr> {
        if self.sure.is_none() && self.earlier.is_empty() || !can_fail(expr, schema) {
            return None;
        }
        let guarded = self.parts(expr.clone(), schema).ok()?;
        guarded.transformed.then_some(guarded.data)
    }

    fn parts(&self, expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
        expr.transform_down(|part| {
            if let Expr::Case(mut case) = part {
                let mut changed = false;
                for part in always_computed(&mut case, schema) {
                    let guarded = self.parts(std::mem::take(part), schema)?;
                    changed |= guarded.transformed;
                    *part = guarded.data;
                }
                return Ok(Transformed::new(Expr::Case(case), changed, TreeNodeRecursion::Jump));
            }
            if is_query(&part) {
                return Ok(Transformed::new(part, false, TreeNodeRecursion::Jump));
            }
            if !fails(&part, schema) {
                return Ok(Transformed::no(part));
            }
            let part = match part.get_type(schema)? {
                // the optimizer makes AND and OR of a CASE of BOOLEAN
                DataType::Boolean => {
                    part.map_children(|operand| self.case(operand, schema).map(Transformed::yes))?.data
                }
                _ => self.case(part, schema)?,
            };
            Ok(Transformed::new(part, true, TreeNodeRecursion::Jump))
        })
    }

    fn case(&self, value: Expr, schema: &DFSchema) -> DfResult<Expr> {
        let null = || -> DfResult<Expr> { Ok(lit(ScalarValue::try_new_null(&value.get_type(schema)?)?)) };
        if self.earlier.is_empty() {
            let when = self.sure.clone().unwrap_or_else(|| lit(true));
            return Ok(Expr::Case(Case::new(None, vec![(Box::new(when), Box::new(value))], None)));
        }
        let closed = self.sure.clone().map(|sure| Place::Condition.decided(sure));
        let decided = self.earlier.iter().map(|term| self.place.decided(term.clone()));
        let mut branches = Vec::with_capacity(self.earlier.len() + 1);
        for when in closed.into_iter().chain(decided) {
            branches.push((Box::new(when), Box::new(null()?)));
        }
        Ok(Expr::Case(Case::new(None, branches, Some(Box::new(value)))))
    }
}

/// The parts of a CASE that are computed in every row; none of one of ours.
fn always_computed<'a>(case: &'a mut Case, schema: &DFSchema) -> Vec<&'a mut Expr> {
    // the optimizer makes AND and OR of it
    if gives_truth(case, schema) {
        let branches = case.when_then_expr.iter_mut().flat_map(|(when, then)| [when.as_mut(), then.as_mut()]);
        return branches.chain(case.else_expr.iter_mut().map(AsMut::as_mut)).collect();
    }
    let first = case.when_then_expr.first_mut();
    let ours = first.as_ref().is_some_and(|(when, then)| {
        let of_ours = [Operator::IsDistinctFrom, Operator::IsNotDistinctFrom];
        let is_ours = matches!(when.as_ref(), Expr::BinaryExpr(BinaryExpr { op, .. }) if of_ours.contains(op));
        is_ours && matches!(then.as_ref(), Expr::Literal(value, _) if value.is_null())
    });
    if ours {
        return Vec::new();
    }
    case.expr.iter_mut().map(AsMut::as_mut).chain(first.map(|(when, _)| when.as_mut())).collect()
}

/// Whether a CASE is a condition made of conditions.
fn gives_truth(case: &Case, schema: &DFSchema) -> bool {
    let first = case.when_then_expr.first();
    case.expr.is_none() && first.is_some_and(|(_, then)| matches!(then.get_type(schema), Ok(DataType::Boolean)))
}

fn is_query(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
}

/// Whether a term may be computed once more.
fn may_guard(term: &Expr) -> bool {
    let asks = |part: &Expr| is_query(part) || matches!(part, Expr::OuterReferenceColumn(..));
    !term.is_volatile() && !term.exists(|part| Ok(asks(part))).unwrap_or(true)
}

/// Whether a part of an expression that is computed in every row can fail.
fn can_fail(expr: &Expr, schema: &DFSchema) -> bool {
    let mut found = false;
    let _ = expr.apply(|part| {
        if let Expr::Case(case) = part {
            let mut case = case.clone();
            found |= always_computed(&mut case, schema).into_iter().any(|part| can_fail(part, schema));
            return Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Jump });
        }
        if is_query(part) {
            return Ok(TreeNodeRecursion::Jump);
        }
        found |= fails(part, schema);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// Functions that fail for some values of their types.
const FAILING: [&str; 21] = [
    "abs",
    "array_element",
    "arrow_cast",
    "chr",
    "date_bin",
    "decode",
    "factorial",
    "from_unixtime",
    "gcd",
    "generate_series",
    "lcm",
    "make_date",
    "power",
    "range",
    "repeat",
    "to_date",
    "to_local_time",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_seconds",
];

/// Whether a node of an expression fails for some rows. One without columns is computed while the statement is planned.
fn fails(part: &Expr, schema: &DFSchema) -> bool {
    fails_for_some(part, schema) && !part.column_refs().is_empty()
}

fn fails_for_some(part: &Expr, schema: &DFSchema) -> bool {
    let found = |of: &Expr| of.get_type(schema).unwrap_or(DataType::Null);
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide | Operator::Modulo, right }) => {
            let counts = |of: &Expr| found(of).is_integer() || found(of).is_decimal();
            counts(left) && counts(right) && !is_harmless(right)
        }
        Expr::ScalarFunction(ScalarFunction { func, .. }) => is_checked(func) || FAILING.contains(&func.name()),
        Expr::Cast(Cast { expr, field }) => !holds(field.data_type(), &found(expr)),
        _ => false,
    }
}

/// Whether nothing fails that is divided by this.
fn is_harmless(divisor: &Expr) -> bool {
    let Expr::Literal(value, _) = divisor else { return false };
    let number = value.cast_to(&DataType::Float64);
    value.is_null() || matches!(number, Ok(ScalarValue::Float64(Some(number))) if number != 0.0 && number != -1.0)
}

/// Whether a type has a place for all values of another.
fn holds(wide: &DataType, of: &DataType) -> bool {
    use DataType::{Date32, Date64, Null, Timestamp};
    let digits = |integer: &DataType| match integer {
        DataType::Int8 | DataType::UInt8 => Some(3),
        DataType::Int16 | DataType::UInt16 => Some(5),
        DataType::Int32 | DataType::UInt32 => Some(10),
        DataType::Int64 => Some(19),
        DataType::UInt64 => Some(20),
        _ => None,
    };
    let places = |decimal: &DataType| match decimal {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            Some((i16::from(*precision) - i16::from(*scale), *scale))
        }
        other => digits(other).map(|digits| (digits, 0)),
    };
    if wide == of || wide.is_string() || matches!(of, Null | DataType::Boolean) || wide.is_floating() && !of.is_string()
    {
        return true;
    }
    match (wide, of) {
        (Timestamp(TimeUnit::Nanosecond, _), Date32 | Date64) => false,
        // a TIMESTAMP beyond nanoseconds is rare, and pruning by times is not
        (Timestamp(..) | Date32 | Date64, Timestamp(..) | Date32 | Date64) => true,
        (wide, of) if wide.is_integer() && of.is_integer() => {
            let signs = wide.is_signed_integer() || !of.is_signed_integer();
            let wider = wide.primitive_width() > of.primitive_width();
            signs
                && (wider
                    || wide.is_signed_integer() == of.is_signed_integer()
                        && wide.primitive_width() == of.primitive_width())
        }
        (wide, of) if wide.is_decimal() => match (places(wide), places(of)) {
            (Some((before, behind)), Some((needed, given))) => before >= needed && behind >= given,
            _ => false,
        },
        // lists, maps and rows: what is inside is told by nobody
        (wide, of) => !(wide.is_primitive() && (of.is_primitive() || of.is_string())) && *wide != DataType::Boolean,
    }
}
