//! Rows that are compared: `(k, dt) = (5, 'd1')`, `(k, dt) IN ((5, 'd1'), (7, 'd1'))`. DataFusion makes structs of them,
//! which are equal where both hold NULL, and by which no file can be left out. Here they are compared column by column, as
//! SQL has it: `k = 5 AND dt = 'd1' OR …`.

use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::{BinaryExpr, InList};
use datafusion::logical_expr::{Expr, Operator, binary_expr, not};

/// Longest list that is written out: conditions that are deeper than some 200 are not judged.
const LIST_ROWS: usize = 150;

/// A comparison of rows as one of their columns.
pub(super) fn by_columns(expr: Expr) -> Transformed<Expr> {
    let whole = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Eq | Operator::NotEq), right }) => {
            equal(left, right).map(|equal| (equal, *op == Operator::NotEq))
        }
        Expr::InList(InList { expr, list, negated }) if (1..=LIST_ROWS).contains(&list.len()) => {
            let any: Option<Vec<Expr>> = list.iter().map(|row| equal(expr, row)).collect();
            any.and_then(|any| balanced(any, Operator::Or)).map(|any| (any, *negated))
        }
        _ => None,
    };
    match whole {
        Some((whole, negated)) => Transformed::yes(if negated { not(whole) } else { whole }),
        None => Transformed::no(expr),
    }
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

/// All parts under one operator, no deeper than it must be.
fn balanced(mut parts: Vec<Expr>, op: Operator) -> Option<Expr> {
    match parts.len() {
        0 | 1 => parts.pop(),
        len => {
            let right = balanced(parts.split_off(len / 2), op)?;
            Some(binary_expr(balanced(parts, op)?, op, right))
        }
    }
}
