//! Rows that are compared: `(k, dt) = (5, 'd1')`, `(k, dt) IN ((5, 'd1'), (7, 'd1'))`. DataFusion makes structs of them,
//! which are equal where both hold NULL, and by which no file can be left out. Here they are compared column by column, as
//! SQL has it: `k = 5 AND dt = 'd1' OR …`.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{BinaryExpr, InList};
use datafusion::logical_expr::{Expr, Operator, binary_expr, not};

use super::chains::balanced;
use crate::error::Error;

/// Longest list that is written out.
const LIST_ROWS: usize = 2_000;

/// A comparison of rows as one of their columns.
///
/// # Errors
/// A list of very many rows: as structs they would be compared by other rules.
pub(super) fn by_columns(expr: Expr) -> DfResult<Transformed<Expr>> {
    let whole = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Eq | Operator::NotEq), right }) => {
            equal(left, right).map(|equal| (equal, *op == Operator::NotEq))
        }
        Expr::InList(InList { expr, list, negated }) if columns(expr).is_some() => {
            if list.len() > LIST_ROWS {
                return Err(too_many(list.len()).into());
            }
            let any: Option<Vec<Expr>> = list.iter().map(|row| equal(expr, row)).collect();
            any.and_then(|any| balanced(any, Operator::Or)).map(|any| (any, *negated))
        }
        _ => None,
    };
    Ok(match whole {
        Some((whole, negated)) => Transformed::yes(if negated { not(whole) } else { whole }),
        None => Transformed::no(expr),
    })
}

fn too_many(rows: usize) -> Error {
    Error::unsupported(format!("IN lists {rows} rows of several columns, and no more than {LIST_ROWS} are compared"))
        .with_code("StatementTooDeep")
        .with_hint("join them: JOIN (VALUES (5, 'a'), …) AS v(x, y) ON …, or WHERE [NOT] EXISTS over them")
}

/// That two rows of as many columns are equal.
fn equal(one: &Expr, other: &Expr) -> Option<Expr> {
    let (one, other) = (columns(one)?, columns(other)?);
    if one.len() != other.len() {
        return None;
    }
    let pairs = one.iter().zip(other).map(|(one, other)| binary_expr(one.clone(), Operator::Eq, other.clone()));
    balanced(pairs.collect(), Operator::And)
}

/// The columns of a row as it is written.
fn columns(row: &Expr) -> Option<&[Expr]> {
    match row {
        Expr::ScalarFunction(function) if function.name() == "struct" => Some(&function.args),
        _ => None,
    }
}
