//! `a IS DISTINCT FROM b AND c`: the parser takes all that follows FROM for the right side, `a IS DISTINCT FROM (b AND
//! c)`. Here the tree is built once more from its parts, with the precedence of SQL: OR, AND, NOT, and then all forms of
//! IS, which bind alike and to the left. Written parentheses are nodes of their own and stay.

use std::iter::Peekable;
use std::ops::ControlFlow;
use std::vec::IntoIter;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, VisitMut, VisitorMut};

use super::walk::walk;

/// Builds the expressions of a statement anew that have an `IS [NOT] DISTINCT FROM`.
pub(crate) fn fix(statement: &mut DfStatement) {
    let _ = walk(statement, &mut Fixer::default());
}

/// The same in one expression.
pub(crate) fn fix_expression(expr: &mut Expr) {
    let _ = expr.visit(&mut Fixer::default());
}

/// Looks at each expression that is not a part of another one's chain of operators.
#[derive(Default)]
struct Fixer {
    /// For the expressions around the one that is visited: whether they are such operators.
    around: Vec<bool>,
}

impl VisitorMut for Fixer {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let operator = is_operator(expr);
        if operator && self.around.last() != Some(&true) && has_distinct(expr) {
            let mut parts = parts(expr.clone()).into_iter().peekable();
            if let Some(built) = build(&mut parts, Binding::Or) {
                *expr = built;
            }
        }
        self.around.push(operator);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _expr: &mut Expr) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }
}

/// How tight an operator binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Not,
    Is,
    Operand,
}

/// A form of IS with nothing on its right.
type Test = fn(Box<Expr>) -> Expr;

enum Part {
    Operand(Box<Expr>),
    Not,
    And,
    Or,
    Distinct,
    NotDistinct,
    Is(Test),
}

fn test_of(expr: Box<Expr>) -> Result<(Box<Expr>, Test), Box<Expr>> {
    Ok(match *expr {
        Expr::IsNull(tested) => (tested, Expr::IsNull),
        Expr::IsNotNull(tested) => (tested, Expr::IsNotNull),
        Expr::IsTrue(tested) => (tested, Expr::IsTrue),
        Expr::IsNotTrue(tested) => (tested, Expr::IsNotTrue),
        Expr::IsFalse(tested) => (tested, Expr::IsFalse),
        Expr::IsNotFalse(tested) => (tested, Expr::IsNotFalse),
        Expr::IsUnknown(tested) => (tested, Expr::IsUnknown),
        Expr::IsNotUnknown(tested) => (tested, Expr::IsNotUnknown),
        other => return Err(Box::new(other)),
    })
}

fn is_operator(expr: &Expr) -> bool {
    !operands(expr).is_empty()
}

/// The operands of the operators that are built anew; none of any other expression.
fn operands(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right }
        | Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right) => vec![left, right],
        Expr::UnaryOp { op: UnaryOperator::Not, expr: operand }
        | Expr::IsNull(operand)
        | Expr::IsNotNull(operand)
        | Expr::IsTrue(operand)
        | Expr::IsNotTrue(operand)
        | Expr::IsFalse(operand)
        | Expr::IsNotFalse(operand)
        | Expr::IsUnknown(operand)
        | Expr::IsNotUnknown(operand) => vec![operand],
        _ => Vec::new(),
    }
}

fn has_distinct(expr: &Expr) -> bool {
    // a chain may be longer than the stack is deep
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        if matches!(expr, Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..)) {
            return true;
        }
        open.extend(operands(expr));
    }
    false
}

/// Operators and operands in the order they were written.
fn parts(expr: Expr) -> Vec<Part> {
    enum Work {
        Tree(Box<Expr>),
        Part(Part),
    }
    let mut parts = Vec::new();
    let mut open = vec![Work::Tree(Box::new(expr))];
    while let Some(work) = open.pop() {
        let expr = match work {
            Work::Part(part) => {
                parts.push(part);
                continue;
            }
            Work::Tree(expr) => expr,
        };
        let (left, part, right) = match *expr {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => (Some(left), Part::And, Some(right)),
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => (Some(left), Part::Or, Some(right)),
            Expr::IsDistinctFrom(left, right) => (Some(left), Part::Distinct, Some(right)),
            Expr::IsNotDistinctFrom(left, right) => (Some(left), Part::NotDistinct, Some(right)),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => (None, Part::Not, Some(expr)),
            other => match test_of(Box::new(other)) {
                Ok((tested, test)) => (Some(tested), Part::Is(test), None),
                Err(operand) => (None, Part::Operand(operand), None),
            },
        };
        open.extend(right.map(Work::Tree));
        open.push(Work::Part(part));
        open.extend(left.map(Work::Tree));
    }
    parts
}

/// An expression of operators that bind at least as tight as `least`; None when the parts do not make one.
fn build(parts: &mut Peekable<IntoIter<Part>>, least: Binding) -> Option<Expr> {
    let mut left = match parts.next()? {
        Part::Operand(operand) => *operand,
        Part::Not => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(build(parts, Binding::Not)?) },
        Part::And | Part::Or | Part::Distinct | Part::NotDistinct | Part::Is(_) => return None,
    };
    while let Some(part) = parts.next_if(|part| binding(part) >= least) {
        let operand = Box::new(left);
        left = match part {
            Part::Or => both(operand, BinaryOperator::Or, build(parts, Binding::And)?),
            Part::And => both(operand, BinaryOperator::And, build(parts, Binding::Not)?),
            Part::Distinct => Expr::IsDistinctFrom(operand, Box::new(build(parts, Binding::Operand)?)),
            Part::NotDistinct => Expr::IsNotDistinctFrom(operand, Box::new(build(parts, Binding::Operand)?)),
            Part::Is(test) => test(operand),
            Part::Operand(_) | Part::Not => return None,
        };
    }
    Some(left)
}

fn binding(part: &Part) -> Binding {
    match part {
        Part::Or => Binding::Or,
        Part::And => Binding::And,
        Part::Not => Binding::Not,
        Part::Distinct | Part::NotDistinct | Part::Is(_) => Binding::Is,
        Part::Operand(_) => Binding::Operand,
    }
}

fn both(left: Box<Expr>, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left, op, right: Box::new(right) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::dialect::LakeDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    fn parsed(text: &str) -> Expr {
        Parser::new(&LakeDialect).try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    /// The expression without its parentheses: what is left is the tree itself.
    fn bare(expr: &Expr) -> Expr {
        struct Bare;
        impl VisitorMut for Bare {
            type Break = ();

            fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
                if let Expr::Nested(inner) = expr {
                    *expr = inner.as_ref().clone();
                }
                ControlFlow::Continue(())
            }
        }
        let mut expr = expr.clone();
        let _ = expr.visit(&mut Bare);
        expr
    }

    #[test]
    fn what_follows_a_distinct_binds_as_it_does_anywhere() {
        for (written, meant) in [
            ("x IS DISTINCT FROM y AND z", "(x IS DISTINCT FROM y) AND z"),
            ("x IS NOT DISTINCT FROM y OR z", "(x IS NOT DISTINCT FROM y) OR z"),
            ("w AND x IS DISTINCT FROM y OR z", "(w AND (x IS DISTINCT FROM y)) OR z"),
            ("w OR x IS DISTINCT FROM y AND z", "w OR ((x IS DISTINCT FROM y) AND z)"),
            ("NOT x IS DISTINCT FROM y AND z", "(NOT (x IS DISTINCT FROM y)) AND z"),
            ("x IS DISTINCT FROM NOT y AND z", "(x IS DISTINCT FROM (NOT y)) AND z"),
            ("x IS DISTINCT FROM y IS NULL", "(x IS DISTINCT FROM y) IS NULL"),
            ("x IS DISTINCT FROM y IS NOT TRUE OR z", "((x IS DISTINCT FROM y) IS NOT TRUE) OR z"),
            ("x IS DISTINCT FROM y IS DISTINCT FROM z", "(x IS DISTINCT FROM y) IS DISTINCT FROM z"),
            (
                "a IS DISTINCT FROM b AND c IS NOT DISTINCT FROM d OR e",
                "((a IS DISTINCT FROM b) AND (c IS NOT DISTINCT FROM d)) OR e",
            ),
            (
                "a IS DISTINCT FROM b OR c IS DISTINCT FROM d AND e OR f",
                "((a IS DISTINCT FROM b) OR ((c IS DISTINCT FROM d) AND e)) OR f",
            ),
            ("x IS DISTINCT FROM y + 1 AND z = 2", "(x IS DISTINCT FROM (y + 1)) AND (z = 2)"),
            ("x IS DISTINCT FROM y = z", "x IS DISTINCT FROM (y = z)"),
            (
                "x BETWEEN 1 AND 2 AND y IS DISTINCT FROM 3 AND z",
                "((x BETWEEN 1 AND 2) AND (y IS DISTINCT FROM 3)) AND z",
            ),
            // parentheses stay
            ("x IS DISTINCT FROM (y AND z)", "x IS DISTINCT FROM (y AND z)"),
            ("w AND (x IS DISTINCT FROM y OR z)", "w AND ((x IS DISTINCT FROM y) OR z)"),
            ("x IS DISTINCT FROM (y IS NULL) AND z", "(x IS DISTINCT FROM (y IS NULL)) AND z"),
            (
                "CASE WHEN x IS DISTINCT FROM y AND z THEN f(a IS DISTINCT FROM b OR c) END AND d",
                "(CASE WHEN ((x IS DISTINCT FROM y) AND z) THEN f((a IS DISTINCT FROM b) OR c) END) AND d",
            ),
            ("a AND b OR NOT c IS NULL", "(a AND b) OR (NOT (c IS NULL))"),
        ] {
            let mut fixed = parsed(written);
            fix_expression(&mut fixed);
            let meant = parsed(meant);
            assert_eq!(bare(&fixed), bare(&meant), "{written}: {fixed}");
            // whole already
            let again = fixed.clone();
            fix_expression(&mut fixed);
            assert_eq!(fixed, again, "{written}");
        }
    }

    #[test]
    fn a_chain_is_left_deep_again() {
        let text: Vec<String> = (0..12).map(|number| format!("x IS DISTINCT FROM {number}")).collect();
        let mut fixed = parsed(&text.join(" AND "));
        fix_expression(&mut fixed);
        let mut count = 1;
        while let Expr::BinaryOp { left, op: BinaryOperator::And, right } = fixed {
            assert!(matches!(*right, Expr::IsDistinctFrom(..)), "{right}");
            count += 1;
            fixed = *left;
        }
        assert_eq!(count, 12);
    }
}
