//! Rows that are compared: `(k, dt) = (5, 'd1')`, `(k, dt) IN ((5, 'd1'), (7, 'd1'))`, `(k, dt) < (5, 'd1')`. DataFusion makes structs of them,
//! which are equal where both hold NULL, and by which no file can be left out. Here they are compared column by column, as
//! SQL has it: `k = 5 AND dt = 'd1' OR …`.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Between, BinaryExpr, Case, InList};
use datafusion::logical_expr::{Expr, Operator, and, binary_expr, not, or};

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
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => before(left, *op, right).map(|before| (before, false)),
        Expr::Between(Between { expr, negated, low, high }) => {
            let bounds = before(expr, Operator::GtEq, low).zip(before(expr, Operator::LtEq, high));
            bounds.map(|(low, high)| (and(low, high), *negated))
        }
        Expr::Case(case) => searched(case).map(|case| (case, false)),
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

/// That a row comes before or after another of as many columns, by the first column in which they differ.
fn before(one: &Expr, op: Operator, other: &Expr) -> Option<Expr> {
    let strict = match op {
        Operator::Lt | Operator::LtEq => Operator::Lt,
        Operator::Gt | Operator::GtEq => Operator::Gt,
        _ => return None,
    };
    let (one, other) = (columns(one)?, columns(other)?);
    if one.len() != other.len() {
        return None;
    }
    let mut pairs: Vec<(&Expr, &Expr)> = one.iter().zip(other).collect();
    let (last, other_last) = pairs.pop()?;
    let last = binary_expr(last.clone(), op, other_last.clone());
    Some(pairs.into_iter().rev().fold(last, |rest, (one, other)| {
        let first = binary_expr(one.clone(), strict, other.clone());
        or(first, and(binary_expr(one.clone(), Operator::Eq, other.clone()), rest))
    }))
}

/// `CASE (a, b) WHEN (1, 2) THEN …` as one that compares column by column.
fn searched(case: &Case) -> Option<Expr> {
    let tested = case.expr.as_deref().filter(|tested| columns(tested).is_some())?;
    let branch = |(when, then): &(Box<Expr>, Box<Expr>)| Some((Box::new(equal(tested, when)?), then.clone()));
    let branches: Option<Vec<_>> = case.when_then_expr.iter().map(branch).collect();
    Some(Expr::Case(Case { expr: None, when_then_expr: branches?, else_expr: case.else_expr.clone() }))
}

/// The columns of a row as it is written.
fn columns(row: &Expr) -> Option<&[Expr]> {
    match row {
        Expr::ScalarFunction(function) if function.name() == "struct" => Some(&function.args),
        _ => None,
    }
}
