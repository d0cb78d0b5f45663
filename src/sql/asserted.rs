//! `query = value`: whether the last `=` of a text compares what a query answers, or belongs to the query.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, LimitClause, Query, SelectItem, SetExpr, Spanned, Statement as SqlStatement, Value,
    ValueWithSpan, Visit, Visitor,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use super::statements::{self, Command};
use super::tokens;

/// What the `=` before the last value of a text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastEquals {
    /// To what stands around the query: the text is no query with it, or it compares what is one value anyway.
    Outside,
    /// To a clause of the query, or to an expression it answers.
    Inside,
    /// To either: `… WHERE a = 1 = true`.
    Either,
}

/// Reads a text that ends with `=` and a value.
pub(crate) fn last_equals(sql: &str) -> LastEquals {
    let Some(query) = query(sql) else { return LastEquals::Outside };
    let Some(end) = tokens::tokenize(sql).ok().and_then(|tokens| {
        let last = tokens::statements(tokens).pop()?.pop()?;
        Some(last.span.end)
    }) else {
        return LastEquals::Outside;
    };
    // the select list itself ends with it: both readings compare the one value with the other
    if let SetExpr::Select(select) = query.body.as_ref()
        && let [SelectItem::UnnamedExpr(item)] = select.projection.as_slice()
        && closes(item, end).is_some()
    {
        return LastEquals::Outside;
    }
    let limited = match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            [limit.as_ref(), offset.as_ref().map(|offset| &offset.value)]
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => [Some(offset), Some(limit)],
        None => [None, None],
    };
    // no number of rows is a comparison
    if limited.into_iter().flatten().any(|expr| closes(expr, end).is_some()) {
        return LastEquals::Outside;
    }
    let mut found = Closing { end, standing: LastEquals::Inside };
    let _ = query.visit(&mut found);
    found.standing
}

fn query(sql: &str) -> Option<Box<Query>> {
    let mut all = tokens::statements(tokens::tokenize(sql).ok()?);
    let one = all.pop().filter(|_| all.is_empty())?;
    match statements::parse(one, &mut Vec::new()).ok()? {
        Command::Statement(statement) => match *statement {
            DfStatement::Statement(statement) => match *statement {
                SqlStatement::Query(query) => Some(query),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The two sides of a comparison whose right one ends the text.
fn closes(expr: &Expr, end: Location) -> Option<(&Expr, &Expr)> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } if right.span().end == end => Some((left, right)),
        _ => None,
    }
}

struct Closing {
    end: Location,
    standing: LastEquals,
}

impl Visitor for Closing {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Some((left, right)) = closes(expr, self.end) else { return ControlFlow::Continue(()) };
        if is_condition(left) {
            let truth = matches!(right, Expr::Value(ValueWithSpan { value: Value::Boolean(_), .. }));
            self.standing = if truth { LastEquals::Either } else { LastEquals::Outside };
        }
        ControlFlow::Break(())
    }
}

/// Whether an expression is true or false however its columns are typed: compared once more, it was whole before.
fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_condition(inner),
        Expr::BinaryOp { op, .. } => matches!(
            op,
            BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
        ),
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::Exists { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_of_a_clause_is_no_comparison_with_the_answer() {
        let cases = [
            ("select count(*) from t = 3", LastEquals::Outside),
            ("select count(*) from t version as of 3 = 179", LastEquals::Outside),
            ("select count(*) from t$files = 3", LastEquals::Outside),
            ("select count(*) from t where a = 1 = 3", LastEquals::Outside),
            ("select count(*) from t where a = 1 and b in (1, 2) = -3", LastEquals::Outside),
            ("select count(*) from t where a between 1 and 2 = 3", LastEquals::Outside),
            ("select a from t order by a limit 1 = 'x'", LastEquals::Outside),
            ("select '007' = '7'", LastEquals::Outside),
            ("select -2 = -2", LastEquals::Outside),
            ("(select count(*) from t where a) = 3", LastEquals::Outside),
            ("select count(*) > 5 from (values (true)) t(flag) where flag = false", LastEquals::Inside),
            ("select count(*) from t where amount = 32.44", LastEquals::Inside),
            ("select count(*) from t where b > 1 and not a = 3", LastEquals::Inside),
            ("select max(a) from t group by b having min(a) = 3", LastEquals::Inside),
            ("select a or b = 3", LastEquals::Inside),
            ("select a from t where a = 1 = true", LastEquals::Either),
        ];
        for (sql, expected) in cases {
            assert_eq!(last_equals(sql), expected, "{sql}");
        }
    }
}
