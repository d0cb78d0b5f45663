//! The conditions around a part of an expression, as a CASE.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{BinaryExpr, Case};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, binary_expr, lit};

use arrow::datatypes::DataType;

use super::failing::{can_fail, is_query};
use crate::sql::chains::balanced;

/// Terms that can fail and guard a later one.
const MOST_EARLIER: usize = 8;

/// Parts of all conditions of one guard, literals apart: each part that can fail gets all of them.
const MOST_PARTS: usize = 200;

/// What terms are joined to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place {
    /// A condition by AND, which is as good as false where it is NULL.
    Condition,
    And,
    Or,
}

impl Place {
    /// Where no other term matters any more.
    pub(super) fn decided(self, term: Expr) -> Expr {
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

/// The conditions under which a part of an expression matters.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard {
    /// They cannot fail, and the part matters where all are true.
    sure: Vec<Expr>,
    /// They can fail, each where one before it is true, and the part does not matter where one of them is.
    closed: Vec<Expr>,
    parts: usize,
}

impl Guard {
    /// Takes a term in, unless it cannot be computed once more or there are enough.
    pub(super) fn add(&mut self, term: &Expr, place: Place, schema: &DFSchema) {
        if !may_guard(term) {
            return;
        }
        let parts = self.parts + parts(term);
        if parts > MOST_PARTS {
            return;
        }
        if !can_fail(term, schema) {
            self.sure.push(place.open(term.clone()));
        } else if self.closed.len() < MOST_EARLIER {
            self.closed.push(place.decided(term.clone()));
        } else {
            return;
        }
        self.parts = parts;
    }

    /// A part that can fail, computed behind this guard.
    pub(super) fn around(&self, part: Expr, schema: &DFSchema) -> DfResult<Expr> {
        if self.sure.is_empty() && self.closed.is_empty() {
            return Ok(part);
        }
        match part.get_type(schema)? {
            // the optimizer makes AND and OR of a CASE of BOOLEAN
            DataType::Boolean => {
                Ok(part.map_children(|operand| self.case(operand, schema).map(Transformed::yes))?.data)
            }
            _ => self.case(part, schema),
        }
    }

    fn case(&self, value: Expr, schema: &DFSchema) -> DfResult<Expr> {
        let sure = balanced(self.sure.clone(), Operator::And);
        if self.closed.is_empty() {
            let when = sure.unwrap_or_else(|| lit(true));
            return Ok(Expr::Case(Case::new(None, vec![(Box::new(when), Box::new(value))], None)));
        }
        let none = lit(ScalarValue::try_new_null(&value.get_type(schema)?)?);
        let left_out = sure.map(|sure| Place::Condition.decided(sure)).into_iter().chain(self.closed.iter().cloned());
        let branches = left_out.map(|when| (Box::new(when), Box::new(none.clone()))).collect();
        Ok(Expr::Case(Case::new(None, branches, Some(Box::new(value)))))
    }

    /// An expression that is computed behind this guard, without what guards it inside and is known here.
    pub(super) fn bare(&self, expr: Expr) -> DfResult<Expr> {
        if self.sure.is_empty() && self.closed.is_empty() {
            return Ok(expr);
        }
        let bare = expr.transform_down(|part| {
            if is_query(&part) {
                return Ok(Transformed::new(part, false, TreeNodeRecursion::Jump));
            }
            let mut part = part;
            let mut changed = false;
            while let Expr::Case(case) = part {
                let inside = self.less(case);
                changed |= inside.transformed;
                part = inside.data;
                if !inside.transformed {
                    break;
                }
            }
            Ok(if changed { Transformed::yes(part) } else { Transformed::no(part) })
        })?;
        Ok(bare.data)
    }

    /// A CASE without the conditions of this guard.
    fn less(&self, mut case: Case) -> Transformed<Expr> {
        if case.expr.is_some() {
            return Transformed::no(Expr::Case(case));
        }
        let is_null = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if value.is_null());
        let no_value = case.else_expr.as_deref().is_none_or(is_null);
        if let [(when, _)] = case.when_then_expr.as_slice()
            && no_value
        {
            let Some(rest) = self.unknown(when) else { return Transformed::no(Expr::Case(case)) };
            let Some((_, value)) = case.when_then_expr.pop() else { return Transformed::no(Expr::Case(case)) };
            return Transformed::yes(match rest {
                Some(rest) => Expr::Case(Case { when_then_expr: vec![(Box::new(rest), value)], ..case }),
                None => *value,
            });
        }
        if no_value || !case.when_then_expr.iter().all(|(_, then)| is_null(then)) {
            return Transformed::no(Expr::Case(case));
        }
        let mut changed = false;
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        for (when, then) in std::mem::take(&mut case.when_then_expr) {
            if self.closed.contains(&when) {
                changed = true;
                continue;
            }
            match decides(&when).map(|open| self.unknown(open)) {
                Some(Some(None)) => changed = true,
                Some(Some(Some(rest))) => {
                    changed = true;
                    branches.push((Box::new(Place::Condition.decided(rest)), then));
                }
                Some(None) | None => branches.push((when, then)),
            }
        }
        case.when_then_expr = branches;
        // as one that was never more
        let only = match case.when_then_expr.as_slice() {
            [] => None,
            [(when, _)] if changed => match decides(when) {
                Some(open) => Some(open.clone()),
                None => return Transformed::yes(Expr::Case(case)),
            },
            _ if changed => return Transformed::yes(Expr::Case(case)),
            _ => return Transformed::no(Expr::Case(case)),
        };
        let Some(value) = case.else_expr.take() else { return Transformed::no(Expr::Case(case)) };
        Transformed::yes(match only {
            Some(open) => Expr::Case(Case::new(None, vec![(Box::new(open), value)], None)),
            None => *value,
        })
    }

    /// What of a condition this guard does not say; None: nothing of it is said.
    fn unknown(&self, condition: &Expr) -> Option<Option<Expr>> {
        let terms = split_conjunction(condition);
        let all = terms.len();
        let rest: Vec<Expr> = terms.into_iter().filter(|term| !self.sure.contains(term)).cloned().collect();
        (rest.len() < all).then(|| balanced(rest, Operator::And))
    }
}

/// What is true where `x IS DISTINCT FROM TRUE` is not.
fn decides(when: &Expr) -> Option<&Expr> {
    match when {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::IsDistinctFrom, right }) if **right == lit(true) => {
            Some(left)
        }
        _ => None,
    }
}

/// Whether a term may be computed once more.
fn may_guard(term: &Expr) -> bool {
    let asks = |part: &Expr| is_query(part) || matches!(part, Expr::OuterReferenceColumn(..));
    !term.is_volatile() && !term.exists(|part| Ok(asks(part))).unwrap_or(true)
}

fn parts(term: &Expr) -> usize {
    let mut parts = 0;
    let _ = term.apply(|part| {
        parts += usize::from(!matches!(part, Expr::Literal(..)));
        Ok(if parts > MOST_PARTS { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    parts
}
