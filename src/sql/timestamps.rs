//! Comparisons of a TIMESTAMP column with a literal that has more digits than the column.
//!
//! DataFusion brings the literal down to the column's unit by cutting digits (towards zero), so `ts3 < '….1239'` would
//! lose the row `.123` and `ts3 = '1969-12-31 23:59:59.9999'` would find midnight. Here the cut is made with its
//! meaning: below or at the cut value, above it, or never equal.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

/// See the module. Runs after types have been coerced.
#[derive(Debug)]
pub(crate) struct ExactTimestamps;

impl AnalyzerRule for ExactTimestamps {
    fn name(&self) -> &str {
        "exact_timestamps"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let schema = Arc::new(merge_schema(&node.inputs()));
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let exact = expr.transform_up(|expr| exact(expr, &schema))?;
                Ok(exact.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(plan.data)
    }
}

/// A column of a coarser unit, and a literal of a finer one cut to it.
struct Cut {
    column: Expr,
    /// The largest value of the column's unit that is not above the literal.
    floor: Expr,
}

fn exact(expr: Expr, schema: &DFSchemaRef) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let Some(cut) = cut(&left, &right, schema)? {
                return Ok(compared(cut, op).map_or_else(
                    || Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
                    Transformed::yes,
                ));
            }
            if let (Some(cut), Some(turned)) = (cut(&right, &left, schema)?, op.swap())
                && let Some(exact) = compared(cut, turned)
            {
                return Ok(Transformed::yes(exact));
            }
            Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::Between(between) => {
            if cut(&between.expr, &between.low, schema)?.is_none()
                && cut(&between.expr, &between.high, schema)?.is_none()
            {
                return Ok(Transformed::no(Expr::Between(between)));
            }
            let Between { expr, negated, low, high } = between;
            let side = |op, bound| exact(binary_expr(expr.as_ref().clone(), op, bound), schema).map(|t| t.data);
            let inside = side(Operator::GtEq, *low)?.and(side(Operator::LtEq, *high)?);
            Ok(Transformed::yes(if negated { Expr::Not(Box::new(inside)) } else { inside }))
        }
        Expr::InList(InList { expr, list, negated }) => {
            let mut kept = Vec::new();
            let mut never = None;
            for item in list {
                match cut(&expr, &item, schema)? {
                    Some(cut) => never = Some(cut.column),
                    None => kept.push(item),
                }
            }
            let Some(column) = never else {
                return Ok(Transformed::no(Expr::InList(InList { expr, list: kept, negated })));
            };
            Ok(Transformed::yes(if kept.is_empty() {
                binary_expr(column.clone(), if negated { Operator::Eq } else { Operator::NotEq }, column)
            } else {
                Expr::InList(InList { expr, list: kept, negated })
            }))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// `column op literal` without the literal's extra digits; None for operators that are no comparisons.
fn compared(cut: Cut, op: Operator) -> Option<Expr> {
    let Cut { column, floor } = cut;
    Some(match op {
        Operator::Lt | Operator::LtEq => binary_expr(column, Operator::LtEq, floor),
        Operator::Gt | Operator::GtEq => binary_expr(column, Operator::Gt, floor),
        // false, and unknown for NULL
        Operator::Eq => binary_expr(column.clone(), Operator::NotEq, column),
        Operator::NotEq => binary_expr(column.clone(), Operator::Eq, column),
        Operator::IsDistinctFrom => lit(true),
        Operator::IsNotDistinctFrom => lit(false),
        _ => return None,
    })
}

fn cut(left: &Expr, right: &Expr, schema: &DFSchemaRef) -> DfResult<Option<Cut>> {
    let Expr::Cast(Cast { expr, field }) = left else { return Ok(None) };
    let DataType::Timestamp(fine, _) = field.data_type() else { return Ok(None) };
    let DataType::Timestamp(coarse, zone) = expr.get_type(schema)? else { return Ok(None) };
    let steps = match per_second(*fine).checked_div(per_second(coarse)) {
        Some(steps) if steps > 1 => steps,
        _ => return Ok(None),
    };
    let Some(value) = instant(right, *fine)? else { return Ok(None) };
    if value.rem_euclid(steps) == 0 {
        return Ok(None);
    }
    let floor = Some(value.div_euclid(steps));
    let floor = match coarse {
        TimeUnit::Second => ScalarValue::TimestampSecond(floor, zone),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(floor, zone),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(floor, zone),
        TimeUnit::Nanosecond => return Ok(None),
    };
    Ok(Some(Cut { column: expr.as_ref().clone(), floor: lit(floor) }))
}

/// The value of a constant timestamp of this unit.
fn instant(expr: &Expr, unit: TimeUnit) -> DfResult<Option<i64>> {
    if !expr.column_refs().is_empty() || expr.is_volatile() {
        return Ok(None);
    }
    let context = SimplifyContext::builder().with_schema(Arc::new(DFSchema::empty())).build();
    let Ok(Expr::Literal(value, _)) = ExprSimplifier::new(context).simplify(expr.clone()) else { return Ok(None) };
    Ok(match (value, unit) {
        (ScalarValue::TimestampMillisecond(value, _), TimeUnit::Millisecond)
        | (ScalarValue::TimestampMicrosecond(value, _), TimeUnit::Microsecond)
        | (ScalarValue::TimestampNanosecond(value, _), TimeUnit::Nanosecond) => value,
        _ => None,
    })
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
