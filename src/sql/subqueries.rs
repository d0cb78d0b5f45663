//! Subqueries by the three values of SQL.
//!
//! DataFusion makes joins of subqueries, and loses NULL and empty sets on the way:
//!
//! - the value of a scalar subquery is NULL where there is no row, also when its column never is;
//! - `x IN (…)` is FALSE or TRUE and never NULL, except `x NOT IN (…)` as a condition of its own;
//! - that one, in turn, forgets the condition that ties the rows of the subquery to the row outside;
//! - an aggregate without GROUP BY has a row also where no row outside finds one inside; LIMIT and window functions are
//!   computed over the rows inside of all rows outside.
//!
//! `EXISTS` has two values, so here what has three is said with it, before the optimizer sees it. Where NULL selects no
//! more than FALSE does, and there is nothing to mend, `x IN (…)` and `x NOT IN (…)` stay what they are. Joins by hash
//! remain such.
//! What cannot be said is refused.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, JoinType, ScalarValue, Spans};
use datafusion::error::Result as DfResult;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Alias, BinaryExpr, Case, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, Cast, Distinct, Expr, ExprSchemable, FetchType, Join, Limit, LogicalPlan, LogicalPlanBuilder, Operator,
    SkipType, Subquery, binary_expr, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::chains::balanced;
use super::operands::compares;
use crate::error::Error;
use crate::query::perhaps::perhaps;

/// The column of a subquery, under a name that no column outside has.
const MEMBER: &str = "__member";

/// See the module. Runs after types have been coerced.
#[derive(Debug)]
pub(crate) struct ExactSubqueries;

impl AnalyzerRule for ExactSubqueries {
    fn name(&self) -> &str {
        "exact_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let mut changed = false;
        let plan = plan.transform_up_with_subqueries(|node| {
            let node = in_node(node)?;
            changed |= node.transformed;
            // what may be NULL now may be NULL above
            if changed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
        })?;
        Ok(plan.data)
    }
}

fn in_node(node: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= has_subquery(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !found {
        return Ok(Transformed::no(node));
    }
    let names = NamePreserver::new(&node);
    let selects = matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
    let schema = merge_schema(&node.inputs());
    node.map_expressions(|expr| {
        if !has_subquery(&expr) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let place = if selects { Place::CONDITION } else { Place::VALUE };
        let before = expr.clone();
        let expr = expr.transform_up(|part| as_outside(part, &schema))?.data;
        let exact = name.restore(exact(expr, place, &schema)?);
        Ok(if exact == before { Transformed::no(exact) } else { Transformed::yes(exact) })
    })
}

/// A subquery whose columns of the row outside may be NULL where that row's may be now.
fn as_outside(part: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let in_rows = |rows: Subquery| -> DfResult<Subquery> {
        let column = |part| match part {
            Expr::OuterReferenceColumn(field, column) => {
                let field = schema.field_from_column(&column).map_or(field, Arc::clone);
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            other => Ok(Transformed::no(other)),
        };
        let plan = Arc::unwrap_or_clone(rows.subquery);
        let plan = plan.transform_up(|node| node.map_expressions(|expr| expr.transform_up(column)))?.data;
        let outer_ref_columns = plan.all_out_ref_exprs();
        Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: rows.spans })
    };
    let is_correlated = |rows: &Subquery| !rows.outer_ref_columns.is_empty();
    Ok(Transformed::yes(match part {
        Expr::ScalarSubquery(rows) if is_correlated(&rows) => Expr::ScalarSubquery(in_rows(rows)?),
        Expr::Exists(Exists { subquery, negated }) if is_correlated(&subquery) => {
            Expr::Exists(Exists { subquery: in_rows(subquery)?, negated })
        }
        Expr::InSubquery(of) if is_correlated(&of.subquery) => {
            Expr::InSubquery(InSubquery { subquery: in_rows(of.subquery)?, ..of })
        }
        Expr::SetComparison(of) if is_correlated(&of.subquery) => {
            Expr::SetComparison(SetComparison { subquery: in_rows(of.subquery)?, ..of })
        }
        other => return Ok(Transformed::no(other)),
    }))
}

fn has_subquery(expr: &Expr) -> bool {
    let subquery = |part: &Expr| {
        matches!(part, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
    };
    expr.exists(|part| Ok(subquery(part))).unwrap_or(true)
}

/// What becomes of a value that is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Kept,
    /// As if it were FALSE: in a WHERE.
    AreFalse,
    /// As if it were TRUE: under NOT in a WHERE.
    AreTrue,
}

/// Where a part of an expression stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    nulls: Nulls,
    /// Only AND is above, in a WHERE or ON.
    alone: bool,
}

impl Place {
    const CONDITION: Self = Self { nulls: Nulls::AreFalse, alone: true };
    const VALUE: Self = Self { nulls: Nulls::Kept, alone: false };

    fn within(nulls: Nulls) -> Self {
        Self { nulls, alone: false }
    }

    fn under_not(self) -> Self {
        let nulls = match self.nulls {
            Nulls::Kept => Nulls::Kept,
            Nulls::AreFalse => Nulls::AreTrue,
            Nulls::AreTrue => Nulls::AreFalse,
        };
        Self { nulls, alone: false }
    }
}

/// An expression with its subqueries as SQL has them.
fn exact(expr: Expr, place: Place, schema: &DFSchema) -> DfResult<Expr> {
    if !has_subquery(&expr) {
        return Ok(expr);
    }
    let of = |expr: Box<Expr>, place| exact(*expr, place, schema).map(Box::new);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            let place = Place { alone: place.alone && op == Operator::And, ..place };
            let mut parts = Vec::new();
            let mut rest = vec![expr];
            while let Some(expr) = rest.pop() {
                match expr {
                    Expr::BinaryExpr(BinaryExpr { left, op: own, right }) if own == op => {
                        rest.extend([*right, *left]);
                    }
                    other => parts.push(exact(other, place, schema)?),
                }
            }
            balanced(parts, op).unwrap_or_else(|| lit(op == Operator::And))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(of) => exact(Expr::InSubquery(InSubquery { negated: !of.negated, ..of }), place, schema)?,
            Expr::Exists(of) => exact(Expr::Exists(Exists { negated: !of.negated, ..of }), place, schema)?,
            Expr::Not(twice) => exact(*twice, place, schema)?,
            other => !exact(other, place.under_not(), schema)?,
        },
        Expr::Alias(Alias { expr, relation, name, metadata }) => {
            Expr::Alias(Alias { expr: of(expr, place)?, relation, name, metadata })
        }
        Expr::IsTrue(inner) => Expr::IsTrue(of(inner, Place::within(Nulls::AreFalse))?),
        Expr::IsNotTrue(inner) => Expr::IsNotTrue(of(inner, Place::within(Nulls::AreFalse))?),
        Expr::IsFalse(inner) => Expr::IsFalse(of(inner, Place::within(Nulls::AreTrue))?),
        Expr::IsNotFalse(inner) => Expr::IsNotFalse(of(inner, Place::within(Nulls::AreTrue))?),
        Expr::Case(Case { expr: None, when_then_expr, else_expr }) => {
            let values = Place::within(place.nulls);
            let branches = when_then_expr
                .into_iter()
                .map(|(when, then)| Ok((of(when, Place::within(Nulls::AreFalse))?, of(then, values)?)));
            let when_then_expr = branches.collect::<DfResult<_>>()?;
            let else_expr = else_expr.map(|expr| of(expr, values)).transpose()?;
            Expr::Case(Case { expr: None, when_then_expr, else_expr })
        }
        Expr::ScalarSubquery(rows) => scalar(rows)?,
        Expr::Exists(Exists { subquery, negated }) => existence(subquery, negated)?,
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let value = of(expr, Place::VALUE)?;
            Compared { value: *value, op: Operator::Eq, rows: subquery, negated, is_in: true }.exact(place, schema)?
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) if is_comparison(op) => {
            let value = of(expr, Place::VALUE)?;
            // x > ALL (…) is NOT x <= ANY (…)
            let (op, negated) = match quantifier {
                SetQuantifier::Any => (op, false),
                SetQuantifier::All => (op.negate().unwrap_or(op), true),
            };
            Compared { value: *value, op, rows: subquery, negated, is_in: false }.exact(place, schema)?
        }
        other => other.map_children(|child| exact(child, Place::VALUE, schema).map(Transformed::yes))?.data,
    })
}

/// Whether an operator has NULL for a result when, and only when, an operand is NULL.
fn is_comparison(op: Operator) -> bool {
    compares(op) && !matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
}

/// A scalar subquery that is NULL where it has no row.
fn scalar(rows: Subquery) -> DfResult<Expr> {
    if let Some(of) = Selected::of(&rows.subquery)
        && let [value] = of.values
    {
        let value = Expr::Case(Case {
            expr: None,
            when_then_expr: vec![(Box::new(of.condition.clone()), Box::new(value.clone().unalias()))],
            else_expr: None,
        });
        let (table, column) = rows.subquery.schema().qualified_field(0);
        return of.value(value.alias_qualified(table.cloned(), column.name()), &rows);
    }
    check(&rows.subquery, Asked::Value)?;
    let plan = rows.subquery.as_ref();
    let present = plan.schema().fields().first().is_none_or(|column| !column.is_nullable());
    if !present || plan.schema().fields().len() != 1 || always_has_rows(plan) {
        return Ok(Expr::ScalarSubquery(rows));
    }
    let (table, column) = plan.schema().qualified_field(0);
    let value = perhaps(Expr::Column(Column::from((table, column)))).alias_qualified(table.cloned(), column.name());
    let plan = LogicalPlanBuilder::from(plan.clone()).project([value])?.build()?;
    Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..rows }))
}

fn existence(rows: Subquery, negated: bool) -> DfResult<Expr> {
    if always_has_rows(&rows.subquery) {
        return Ok(lit(!negated));
    }
    if is_correlated(&rows.subquery) && never_has_rows(&rows.subquery) {
        return Ok(lit(negated));
    }
    if let Some(of) = Selected::of(&rows.subquery) {
        let holds = Box::new(of.holds(&rows)?);
        return Ok(if negated { Expr::IsNotTrue(holds) } else { Expr::IsTrue(holds) });
    }
    check(&rows.subquery, Asked::Existence)?;
    Ok(Expr::Exists(Exists { subquery: rows, negated }))
}

/// `value op ANY (rows)`, or NOT that.
struct Compared {
    value: Expr,
    op: Operator,
    rows: Subquery,
    negated: bool,
    is_in: bool,
}

impl Compared {
    fn exact(self, place: Place, schema: &DFSchema) -> DfResult<Expr> {
        let plan = self.rows.subquery.as_ref();
        let Some((table, column)) = plan.schema().iter().next() else { return Ok(self.unchanged()) };
        if plan.schema().fields().len() != 1 {
            return Ok(self.unchanged());
        }
        let correlated = is_correlated(plan);
        let value_may_be_null = self.value.nullable(schema).unwrap_or(true);
        let member_may_be_null = column.is_nullable();
        // columns of a row are compared one by one, and any of them may be NULL
        let columns = match column.data_type() {
            DataType::Struct(fields) if self.is_in && is_row(&self.value) => Some(fields.len()),
            _ => None,
        };
        let may_be_null = value_may_be_null || member_may_be_null || columns.is_some();
        let of_a_row = self.value.any_column_refs() && !self.value.contains_outer();
        // NOT IN forgets what ties the rows, takes a value that is the same for all rows for a condition on the rows, and
        // looks for NULL in the columns of a value only: nullif(x, 2)
        let seen = member_may_be_null || !value_may_be_null || has_null_columns(&self.value, schema);
        let is_right = columns.is_none() && place.alone && (!self.negated || of_a_row && seen && !correlated);
        if correlated && never_has_rows(plan) {
            return Ok(lit(self.negated));
        }
        // an aggregate alone has one row, whatever the row outside
        if has_one_row(plan) && columns.is_none() {
            let op = if self.negated { self.op.negate().unwrap_or(self.op) } else { self.op };
            return Ok(binary_expr(self.value, op, scalar(self.rows)?));
        }
        if let Some(of) = Selected::of(plan)
            && let [value] = of.values
            && columns.is_none()
        {
            let holds = Box::new(of.holds(&self.rows)?);
            let member = of.value(value.clone(), &self.rows)?;
            return Ok(if self.negated {
                let op = self.op.negate().unwrap_or(self.op);
                Expr::IsNotTrue(holds).or(binary_expr(self.value, op, member))
            } else {
                Expr::IsTrue(holds).and(binary_expr(self.value, self.op, member))
            });
        }
        if self.is_in && is_right {
            check(plan, Asked::Members)?;
            let rows = if correlated { with_own_name(self.rows)? } else { self.rows };
            return Ok(Self { rows, ..self }.unchanged());
        }
        let named = if correlated && columns.is_none() { Some(with_own_name(self.rows.clone())?) } else { None };
        let plan = named.as_ref().map_or(plan, |named| named.subquery.as_ref());
        let (table, column) = plan.schema().iter().next().unwrap_or((table, column));
        let member = Expr::Column(Column::from((table, column)));
        let shown = match columns {
            Some(columns) => (0..columns).map(|at| column_of(&member, at).alias(format!("{MEMBER}_{at}"))).collect(),
            None => vec![member.alias(MEMBER)],
        };
        let members = LogicalPlanBuilder::from(plan.clone()).project(shown)?.build()?;
        check(&members, Asked::Members)?;
        let spans = &self.rows.spans;
        let member = || Expr::Column(Column::new_unqualified(MEMBER));
        let value = from_inside(&self.value, schema)?;
        let inside = |at| Expr::Column(Column::new_unqualified(format!("{MEMBER}_{at}")));
        let compared = columns.and_then(|columns| {
            let equal = (0..columns).map(|at| column_of(&value, at).eq(inside(at)));
            balanced(equal.collect(), Operator::And)
        });
        let compared = compared.unwrap_or_else(|| binary_expr(value, self.op, member()));
        let is_true = |negated| exists(&members, Some(compared.clone()), negated, spans);
        let one_by_one = correlated || columns.is_some();
        let is_null = || {
            if one_by_one {
                return exists(&members, Some(compared.clone().is_null()), false, spans);
            }
            let of_member = member_may_be_null.then(|| any(&members, Some(member().is_null()), spans)).transpose()?;
            let of_value = value_may_be_null.then(|| any(&members, None, spans)).transpose()?;
            let of_value = of_value.map(|any| self.value.clone().is_null().and(any));
            Ok(of_member.into_iter().chain(of_value).reduce(Expr::or).unwrap_or_else(|| lit(false)))
        };
        let is_not_false = |negated| match one_by_one {
            true => exists(&members, Some(Expr::IsNotFalse(Box::new(compared.clone()))), negated, spans),
            false if negated => Ok(is_true(true)?.and(!is_null()?)),
            false => Ok(is_true(false)?.or(is_null()?)),
        };
        match (place.nulls, self.negated) {
            _ if !may_be_null => is_true(self.negated),
            (Nulls::AreFalse, false) | (Nulls::AreTrue, true) => is_true(self.negated),
            (Nulls::AreFalse, true) | (Nulls::AreTrue, false) => is_not_false(self.negated),
            (Nulls::Kept, negated) => Ok(Expr::Case(Case {
                expr: None,
                when_then_expr: vec![
                    (Box::new(is_true(false)?), Box::new(lit(!negated))),
                    (Box::new(is_null()?), Box::new(lit(ScalarValue::Boolean(None)))),
                ],
                else_expr: Some(Box::new(lit(negated))),
            })),
        }
    }

    fn unchanged(self) -> Expr {
        let (expr, subquery, op) = (Box::new(self.value), self.rows, self.op);
        match (self.is_in, self.negated) {
            (true, negated) => Expr::InSubquery(InSubquery { expr, subquery, negated }),
            (false, false) => Expr::SetComparison(SetComparison { expr, subquery, op, quantifier: SetQuantifier::Any }),
            (false, true) => {
                let op = op.negate().unwrap_or(op);
                Expr::SetComparison(SetComparison { expr, subquery, op, quantifier: SetQuantifier::All })
            }
        }
    }
}

/// A correlated subquery whose column, when it is computed, has a name of its own: DataFusion puts the columns beside it that
/// tie it to the row outside, and calls `CAST(x AS BIGINT)` as it calls `x`.
fn with_own_name(rows: Subquery) -> DfResult<Subquery> {
    let LogicalPlan::Projection(shown) = rows.subquery.as_ref() else { return Ok(rows) };
    let [value] = shown.expr.as_slice() else { return Ok(rows) };
    if matches!(value, Expr::Column(_)) {
        return Ok(rows);
    }
    let value = value.clone().unalias().alias(MEMBER);
    let plan = LogicalPlanBuilder::from(Arc::clone(&shown.input)).project([value])?.build()?;
    Ok(Subquery { subquery: Arc::new(plan), ..rows })
}

/// Whether a value is a row as it is written, of any types: `(a, b)`.
fn is_row(value: &Expr) -> bool {
    match value {
        Expr::Cast(Cast { expr, .. }) => is_row(expr),
        Expr::ScalarFunction(function) => function.name() == "struct",
        _ => false,
    }
}

/// A column of a row; those of a row as it is written are its own.
fn column_of(row: &Expr, at: usize) -> Expr {
    match row {
        Expr::ScalarFunction(function) if function.name() == "struct" && at < function.args.len() => {
            function.args.get(at).cloned().unwrap_or_default()
        }
        row => get_field(row.clone(), format!("c{at}")),
    }
}

/// The one row of a correlated aggregate that HAVING may leave out: its values, and the condition as one more.
struct Selected<'a> {
    values: &'a [Expr],
    condition: &'a Expr,
    rows: &'a LogicalPlan,
}

impl<'a> Selected<'a> {
    fn of(plan: &'a LogicalPlan) -> Option<Self> {
        let LogicalPlan::Projection(shown) = plan else { return None };
        let LogicalPlan::Filter(having) = shown.input.as_ref() else { return None };
        let (values, condition, rows) = (shown.expr.as_slice(), &having.predicate, having.input.as_ref());
        let plain = !has_subquery(condition) && !values.iter().any(has_subquery);
        (plain && has_one_row(rows) && is_correlated(rows)).then_some(Self { values, condition, rows })
    }

    /// What HAVING says.
    fn holds(&self, rows: &Subquery) -> DfResult<Expr> {
        self.value(self.condition.clone().alias("__holds"), rows)
    }

    fn value(&self, value: Expr, rows: &Subquery) -> DfResult<Expr> {
        let plan = LogicalPlanBuilder::from(self.rows.clone()).project([value])?.build()?;
        let outer_ref_columns = plan.all_out_ref_exprs();
        scalar(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: rows.spans.clone() })
    }
}

fn has_null_columns(value: &Expr, schema: &DFSchema) -> bool {
    let columns = value.column_refs();
    columns.into_iter().any(|column| schema.field_from_column(column).is_ok_and(|field| field.is_nullable()))
}

/// An expression as it is written in a subquery.
fn from_inside(value: &Expr, schema: &DFSchema) -> DfResult<Expr> {
    let value = value.clone().transform_up(|part| match part {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        Expr::ScalarSubquery(rows) if is_correlated(&rows.subquery) => {
            Err(refused("a subquery is compared with another one that speaks of the row outside")
                .with_hint("compute the one in FROM, as a column of (SELECT …), and compare the other with the column")
                .into())
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(value.data)
}

/// Whether there are rows that a condition holds for.
fn exists(rows: &LogicalPlan, condition: Option<Expr>, negated: bool, spans: &Spans) -> DfResult<Expr> {
    Ok(Expr::Exists(Exists { subquery: selected(rows, condition, spans)?, negated }))
}

/// Like [`exists`] for rows that are the same for all rows outside: counted once.
pub(super) fn any(rows: &LogicalPlan, condition: Option<Expr>, spans: &Spans) -> DfResult<Expr> {
    let rows = selected(rows, condition, spans)?;
    let plan = LogicalPlanBuilder::from(rows.subquery.as_ref().clone()).limit(0, Some(1))?;
    let plan = plan.aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64)).alias("__any")])?;
    let plan = plan.project([Expr::Column(Column::new_unqualified("__any"))])?.build()?;
    let counted = Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..rows });
    Ok(binary_expr(counted, Operator::Gt, lit(0_i64)))
}

fn selected(rows: &LogicalPlan, condition: Option<Expr>, spans: &Spans) -> DfResult<Subquery> {
    let plan = LogicalPlanBuilder::from(rows.clone());
    let plan = match condition {
        Some(condition) => plan.filter(condition)?,
        None => plan,
    };
    let plan = plan.build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    Ok(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: spans.clone() })
}

pub(super) fn is_correlated(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

/// Whether the rows of a plan are one, whatever is in the tables.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(of) => has_one_row(&of.input),
        LogicalPlan::SubqueryAlias(of) => has_one_row(&of.input),
        LogicalPlan::Sort(of) => has_one_row(&of.input),
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => group_expr.is_empty(),
        _ => false,
    }
}

fn always_has_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(of) => always_has_rows(&of.input),
        LogicalPlan::SubqueryAlias(of) => always_has_rows(&of.input),
        LogicalPlan::Sort(of) => always_has_rows(&of.input),
        LogicalPlan::EmptyRelation(of) => of.produce_one_row,
        LogicalPlan::Values(of) => !of.values.is_empty(),
        LogicalPlan::Limit(of) => skips_none(of) && !fetches_none(of) && always_has_rows(&of.input),
        other => has_one_row(other),
    }
}

/// Whether LIMIT 0 leaves nothing.
fn never_has_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(of) => never_has_rows(&of.input),
        LogicalPlan::SubqueryAlias(of) => never_has_rows(&of.input),
        LogicalPlan::Sort(of) => never_has_rows(&of.input),
        LogicalPlan::Limit(of) => matches!(of.get_fetch_type(), Ok(FetchType::Literal(Some(0)))),
        _ => false,
    }
}

fn skips_none(limit: &Limit) -> bool {
    matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)))
}

/// Whether a LIMIT is none, or not known to leave a row.
fn fetches_none(limit: &Limit) -> bool {
    !matches!(limit.get_fetch_type(), Ok(FetchType::Literal(None | Some(1..))))
}

/// What a subquery is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Value,
    Existence,
    Members,
}

/// Refuses what DataFusion would compute over the rows inside of all rows outside.
fn check(plan: &LogicalPlan, asked: Asked) -> DfResult<()> {
    let mut node = plan;
    // what is above selects no rows and makes no other ones
    let mut is_last = true;
    loop {
        let mut correlated = node.inputs().into_iter().filter(|input| is_correlated(input));
        let Some(input) = correlated.next() else { return Ok(()) };
        let what = match node {
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Sort(_) => None,
            LogicalPlan::Aggregate(of) if of.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_))) => {
                Some("GROUPING SETS, ROLLUP or CUBE")
            }
            LogicalPlan::Aggregate(of) if of.group_expr.is_empty() && !(asked == Asked::Value && is_last) => {
                Some("an aggregate without GROUP BY")
            }
            LogicalPlan::Limit(of) => (asked != Asked::Existence || !is_last || !skips_none(of) || fetches_none(of))
                .then_some("LIMIT or OFFSET"),
            LogicalPlan::Window(_) => Some("a window function"),
            LogicalPlan::Distinct(Distinct::On(_)) => Some("DISTINCT ON"),
            LogicalPlan::Join(join) => outer_join(join).then_some("an outer join"),
            _ => None,
        };
        if let Some(what) = what {
            let rows = "join the rows instead, grouped by the columns that are compared";
            return Err(refused(&format!("{what} in a subquery comes after a condition on the row outside"))
                .with_hint(match asked {
                    Asked::Value => rows.to_string(),
                    _ => format!("{rows}, or compare with one value: x = (SELECT count(*) FROM … WHERE …)"),
                })
                .into());
        }
        for other in correlated {
            check(other, Asked::Members)?;
        }
        is_last &= matches!(node, LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Sort(_));
        node = input;
    }
}

/// Whether a side that speaks of the row outside is one that a join fills with NULL, or is asked for what it lacks.
fn outer_join(join: &Join) -> bool {
    let (left, right) = (is_correlated(&join.left), is_correlated(&join.right));
    match join.join_type {
        JoinType::Inner => false,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => right,
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => left,
        JoinType::Full => left || right,
    }
}

fn refused(what: &str) -> Error {
    Error::unsupported(format!("{what}, which would be computed over all rows at once")).with_code("CorrelatedSubquery")
}
