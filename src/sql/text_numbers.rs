//! A text column beside a number: `dt = 20260416`.
//!
//! DataFusion casts the column, so the statement fails at the first text that is no number, after rows were read and only
//! if that row is; and `'007'` equals 7. Whoever writes it has forgotten the quotes, or a command line took them away:
//! then `dt = 2026-04-16` says 2006. So it is refused, where it stands.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use super::operands::compares;
use super::place::Place;
use crate::error::{Error, Result};

/// Refuses every comparison of a text column with a number that is written.
///
/// # Errors
/// See above, with the place of the column when it is one in the text of the statement (`placed`).
pub(super) fn check(plan: &LogicalPlan, placed: bool) -> Result<()> {
    let mut refused = None;
    plan.apply_with_subqueries(|node| {
        let mut schema = merge_schema(&node.inputs());
        if let LogicalPlan::TableScan(scan) = node {
            schema.merge(&scan.projected_schema);
        }
        node.apply_expressions(|expr| expr.apply(|part| Ok(goes_on(&mut refused, found(part, &schema)))))
    })?;
    match refused {
        Some((place, error)) => Err(if placed { place.attach(error) } else { error }),
        None => Ok(()),
    }
}

type Refusal = (Place, Error);

fn goes_on(refused: &mut Option<Refusal>, found: Option<Refusal>) -> TreeNodeRecursion {
    let goes_on = found.is_none();
    *refused = refused.take().or(found);
    if goes_on { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop }
}

fn found(expr: &Expr, schema: &DFSchema) -> Option<Refusal> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
            beside(left, [right.as_ref()], schema).or_else(|| beside(right, [left.as_ref()], schema))
        }
        Expr::Between(Between { expr, low, high, .. }) => beside(expr, [low.as_ref(), high.as_ref()], schema),
        Expr::InList(InList { expr, list, .. }) => beside(expr, list, schema),
        Expr::Case(case) => {
            let tested = case.expr.as_ref()?;
            beside(tested, case.when_then_expr.iter().map(|(when, _)| when.as_ref()), schema)
        }
        _ => None,
    }
}

/// The refusal of a text column beside the first of `others` that is a number.
fn beside<'a>(column: &Expr, others: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> Option<Refusal> {
    let Expr::Column(name) = column else { return None };
    if !column.get_type(schema).ok()?.is_string() {
        return None;
    }
    let number = others.into_iter().find(|other| is_number(other))?;
    let place = name.spans().first().map_or_else(Place::default, |span| Place::at(span.start.line, span.start.column));
    let (shown, quoted) = match number {
        Expr::Literal(value, _) => (value.to_string(), format!("'{value}'")),
        other => (other.human_display().to_string(), "'…'".to_string()),
    };
    let error = Error::invalid(format!("{} is text, and {shown} is a number", name.name))
        .with_code("TextAndNumber")
        .with_hint(format!(
            "write the text in quotes, {quoted}; as numbers they are compared by CAST({} AS BIGINT), or TRY_CAST where \
             not every text is one",
            name.name
        ));
    Some((place, error))
}

/// Whether this is a number whatever the row is.
fn is_number(expr: &Expr) -> bool {
    let written = |part: &Expr| match part {
        Expr::Literal(value, _) => !matches!(value, ScalarValue::Null),
        Expr::Negative(_) | Expr::Cast(_) | Expr::BinaryExpr(_) | Expr::Alias(_) => true,
        _ => false,
    };
    let all: DfResult<bool> = expr.exists(|part| Ok(!written(part))).map(|other| !other);
    all.unwrap_or(false) && expr.get_type(&DFSchema::empty()).is_ok_and(|found| found.is_numeric())
}
