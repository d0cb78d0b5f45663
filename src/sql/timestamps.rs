//! Comparisons of a TIMESTAMP or TIME column with a literal of a finer unit, or of one that ends sooner.
//!
//! DataFusion brings the literal down to the column's unit by cutting digits (towards zero), so `ts3 < '….1239'` would
//! lose the row `.123` and `ts3 = '1969-12-31 23:59:59.9999'` would find midnight. A literal beyond the year 2262 it
//! cannot bring to nanoseconds at all, and a TIME column it leaves in the finer unit, where statistics and indexes of
//! files say nothing. Here the literal is brought to the column's unit with its meaning: a value of it, between two of
//! them, or beyond all; where nanoseconds end before it, both sides are compared in microseconds.
//!
//! A literal may come beside a column only while the statement is optimized: from an inner query, or as the value of
//! `now()`. So columns that are brought to a finer unit are so by a function, which stays where it is, and the rule runs
//! once more at the end of each pass of the optimizer.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, ScalarValue, internal_datafusion_err};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, cast, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

use super::chains::balanced;
use super::operands::compares;
use crate::query::finer::{before_unit, in_unit};

/// See the module. Runs after types have been coerced, and at the end of each pass of the optimizer.
#[derive(Debug)]
pub(crate) struct ExactTimestamps;

impl ExactTimestamps {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "exact_timestamps";
}

impl AnalyzerRule for ExactTimestamps {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(in_node)?.data)
    }
}

impl OptimizerRule for ExactTimestamps {
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
    let names = NamePreserver::new(&node);
    let mut schema = merge_schema(&node.inputs());
    if let LogicalPlan::TableScan(scan) = &node {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let schema = Arc::new(schema);
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let exact = expr.transform_up(|expr| exact(expr, &schema))?;
        let exact = exact.transform_data(|expr| expr.transform_up(|expr| Ok(by_function(expr, &schema))))?;
        Ok(exact.update_data(|expr| name.restore(expr)))
    })
}

/// A cast to a finer unit as a function.
fn by_function(expr: Expr, schema: &DFSchemaRef) -> Transformed<Expr> {
    let Expr::Cast(Cast { expr: time, field }) = &expr else { return Transformed::no(expr) };
    let (DataType::Timestamp(fine, to), Ok(DataType::Timestamp(unit, from))) =
        (field.data_type(), time.get_type(schema))
    else {
        return Transformed::no(expr);
    };
    // a literal is brought to the unit of what it is compared with while a statement is planned
    let is_column = !time.column_refs().is_empty();
    if is_column && *to == from && per_second(unit) < per_second(*fine) {
        return Transformed::yes(in_unit(time.as_ref().clone(), *fine));
    }
    Transformed::no(expr)
}

/// A column, and where a literal beside it lies among the values of its unit.
struct Narrowed {
    column: Expr,
    place: Place,
}

enum Place {
    /// At this value; NULL is one.
    At(Expr),
    /// Above this value and below the next.
    Above(Expr),
    AboveAll,
    BelowAll,
    /// Beyond nanoseconds: this value in microseconds. A partition may have a time there, so all are compared in
    /// microseconds.
    Beyond(Expr),
}

fn exact(expr: Expr, schema: &DFSchemaRef) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            if let Some(narrowed) = narrowed(&left, &right, schema)? {
                return Ok(Transformed::yes(compared(narrowed, op)?));
            }
            if let (Some(narrowed), Some(turned)) = (narrowed(&right, &left, schema)?, turned(op)) {
                return Ok(Transformed::yes(compared(narrowed, turned)?));
            }
            Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::Between(between) => {
            if narrowed(&between.expr, &between.low, schema)?.is_none()
                && narrowed(&between.expr, &between.high, schema)?.is_none()
            {
                return Ok(Transformed::no(Expr::Between(between)));
            }
            let Between { expr, negated, low, high } = between;
            let side = |op, bound| exact(binary_expr(expr.as_ref().clone(), op, bound), schema).map(|t| t.data);
            let inside = side(Operator::GtEq, *low)?.and(side(Operator::LtEq, *high)?);
            Ok(Transformed::yes(if negated { Expr::Not(Box::new(inside)) } else { inside }))
        }
        Expr::InList(list) => listed(list, schema),
        other => Ok(Transformed::no(other)),
    }
}

/// A list without what the column can never equal, in the column's unit when all of it is brought there.
fn listed(list: InList, schema: &DFSchemaRef) -> DfResult<Transformed<Expr>> {
    let InList { expr, list, negated } = list;
    let given = list.len();
    let (mut kept, mut values) = (Vec::with_capacity(given), Vec::with_capacity(given));
    let mut beyond = Vec::new();
    let mut own = None;
    for item in list {
        match narrowed(&expr, &item, schema)? {
            Some(Narrowed { column, place: Place::At(value) }) => {
                own = Some(column);
                values.push(value);
                kept.push(item);
            }
            Some(Narrowed { column, place: Place::Beyond(value) }) => {
                own = Some(column.clone());
                beyond.push(in_micros(column, if negated { Operator::NotEq } else { Operator::Eq }, value)?);
            }
            Some(Narrowed { column, .. }) => own = Some(column),
            None => kept.push(item),
        }
    }
    if !beyond.is_empty() {
        let op = if negated { Operator::And } else { Operator::Or };
        // the others keep their unit
        let others = (!kept.is_empty()).then_some(Expr::InList(InList { expr, list: kept, negated }));
        let others = others.map(|list| exact(list, schema).map(|exact| exact.data)).transpose()?;
        let whole = balanced(others.into_iter().chain(beyond).collect(), op);
        return whole.map(Transformed::yes).ok_or_else(|| internal_datafusion_err!("a list of nothing"));
    }
    Ok(match own {
        Some(column) if kept.is_empty() => Transformed::yes(known(column, negated)),
        Some(column) if values.len() == kept.len() => {
            Transformed::yes(Expr::InList(InList { expr: Box::new(column), list: values, negated }))
        }
        _ => {
            let shortened = kept.len() < given;
            let list = Expr::InList(InList { expr, list: kept, negated });
            if shortened { Transformed::yes(list) } else { Transformed::no(list) }
        }
    })
}

/// That value, and unknown for NULL.
fn known(column: Expr, value: bool) -> Expr {
    binary_expr(column.clone(), if value { Operator::Eq } else { Operator::NotEq }, column)
}

/// `column op literal`, for a comparison, in the column's unit where the literal has a place in it.
fn compared(narrowed: Narrowed, op: Operator) -> DfResult<Expr> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    let Narrowed { column, place } = narrowed;
    Ok(match (place, op) {
        (Place::At(value), op) => binary_expr(column, op, value),
        (Place::Beyond(value), op) => return in_micros(column, op, value),
        (_, IsDistinctFrom) => lit(true),
        (_, IsNotDistinctFrom) => lit(false),
        (_, Eq) => known(column, false),
        (_, NotEq) => known(column, true),
        (Place::Above(value), Lt | LtEq) => binary_expr(column, LtEq, value),
        (Place::Above(value), _) => binary_expr(column, Gt, value),
        (Place::AboveAll, op) => known(column, matches!(op, Lt | LtEq)),
        (Place::BelowAll, op) => known(column, matches!(op, Gt | GtEq)),
    })
}

/// A comparison with a value in microseconds.
fn in_micros(column: Expr, op: Operator, value: Expr) -> DfResult<Expr> {
    let unit = value.get_type(&DFSchema::empty())?;
    Ok(binary_expr(cast(column, unit), op, value))
}

/// The comparison with its sides exchanged.
fn turned(op: Operator) -> Option<Operator> {
    match op {
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => Some(op),
        op => op.swap(),
    }
}

fn narrowed(left: &Expr, right: &Expr, schema: &DFSchemaRef) -> DfResult<Option<Narrowed>> {
    let found = left.get_type(schema)?;
    let Some(fine) = unit_of(&found) else { return Ok(None) };
    let mut column = (left, found);
    let before = match left {
        Expr::Cast(Cast { expr, .. }) => Some(expr.as_ref()),
        other => before_unit(other),
    };
    if let Some(expr) = before {
        let own = expr.get_type(schema)?;
        if unit_of(&own).is_some_and(|unit| per_second(unit) < per_second(fine)) && keeps_clock(&own, &column.1) {
            column = (expr, own);
        }
    }
    let (column, own) = column;
    let Some(unit) = unit_of(&own) else { return Ok(None) };
    let Some(value) = constant(right)? else { return Ok(None) };
    let nanos = i128::from(per_second(TimeUnit::Nanosecond) / per_second(unit));
    let place = match value.map(|value| (value, i64::try_from(value.div_euclid(nanos)))) {
        Some((value, Err(_))) if unit == TimeUnit::Nanosecond => match in_microseconds(value, &own) {
            Some(value) => Place::Beyond(lit(value)),
            None => return Ok(None),
        },
        Some((value, Err(_))) if value > 0 => Place::AboveAll,
        Some((_, Err(_))) => Place::BelowAll,
        // as the engine has it
        _ if unit == fine => return Ok(None),
        Some((value, Ok(ticks))) if value.rem_euclid(nanos) != 0 => Place::Above(lit(scalar(Some(ticks), own))),
        at => Place::At(lit(scalar(at.and_then(|(_, ticks)| ticks.ok()), own))),
    };
    Ok(Some(Narrowed { column: column.clone(), place }))
}

/// Nanoseconds as a TIMESTAMP in microseconds of the zone of a type.
fn in_microseconds(nanos: i128, of: &DataType) -> Option<ScalarValue> {
    let DataType::Timestamp(_, zone) = of else { return None };
    // no literal beyond nanoseconds has digits below microseconds
    let micros = i64::try_from(nanos.div_euclid(1_000)).ok()?;
    Some(ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()))
}

/// The unit of a TIMESTAMP or TIME.
fn unit_of(data_type: &DataType) -> Option<TimeUnit> {
    match data_type {
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => Some(*unit),
        _ => None,
    }
}

/// Whether a cast between two of them changes the unit only.
fn keeps_clock(from: &DataType, to: &DataType) -> bool {
    let is_utc = |zone: &Option<Arc<str>>| matches!(zone.as_deref(), None | Some("UTC" | "+00:00"));
    match (from, to) {
        (DataType::Timestamp(_, from), DataType::Timestamp(_, to)) => from == to || is_utc(from) && is_utc(to),
        (DataType::Timestamp(..), _) | (_, DataType::Timestamp(..)) => false,
        _ => true,
    }
}

/// Ticks of a TIMESTAMP's or TIME's unit.
fn scalar(ticks: Option<i64>, data_type: DataType) -> ScalarValue {
    let short = || ticks.and_then(|ticks| i32::try_from(ticks).ok());
    match data_type {
        DataType::Timestamp(TimeUnit::Second, zone) => ScalarValue::TimestampSecond(ticks, zone),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => ScalarValue::TimestampMillisecond(ticks, zone),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => ScalarValue::TimestampMicrosecond(ticks, zone),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => ScalarValue::TimestampNanosecond(ticks, zone),
        DataType::Time32(TimeUnit::Second) => ScalarValue::Time32Second(short()),
        DataType::Time32(_) => ScalarValue::Time32Millisecond(short()),
        DataType::Time64(TimeUnit::Microsecond) => ScalarValue::Time64Microsecond(ticks),
        _ => ScalarValue::Time64Nanosecond(ticks),
    }
}

/// A constant time in nanoseconds, also one that 64 bits of them do not hold; None for what is no constant, Some(None)
/// for NULL.
fn constant(expr: &Expr) -> DfResult<Option<Option<i128>>> {
    if !expr.column_refs().is_empty() || expr.is_volatile() {
        return Ok(None);
    }
    let context = SimplifyContext::builder().with_schema(Arc::new(DFSchema::empty())).build();
    if let Ok(Expr::Literal(value, _)) = ExprSimplifier::new(context).simplify(expr.clone()) {
        return Ok(nanoseconds(&value));
    }
    match expr {
        Expr::Cast(Cast { expr, field }) if keeps_clock(&expr.get_type(&DFSchema::empty())?, field.data_type()) => {
            constant(expr)
        }
        _ => Ok(None),
    }
}

fn nanoseconds(value: &ScalarValue) -> Option<Option<i128>> {
    let unit = unit_of(&value.data_type())?;
    let ticks = match value {
        ScalarValue::TimestampSecond(ticks, _)
        | ScalarValue::TimestampMillisecond(ticks, _)
        | ScalarValue::TimestampMicrosecond(ticks, _)
        | ScalarValue::TimestampNanosecond(ticks, _)
        | ScalarValue::Time64Microsecond(ticks)
        | ScalarValue::Time64Nanosecond(ticks) => *ticks,
        ScalarValue::Time32Second(ticks) | ScalarValue::Time32Millisecond(ticks) => ticks.map(i64::from),
        _ => return None,
    };
    let nanos = i128::from(per_second(TimeUnit::Nanosecond) / per_second(unit));
    Some(ticks.map(|ticks| i128::from(ticks) * nanos))
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
