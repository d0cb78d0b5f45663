//! Spellings of other engines whose meaning DataFusion has under another: `MINUS`, `FETCH FIRST n ROWS ONLY`, `TOP n`,
//! `RLIKE`, `LIKE ANY (…)`, `SEMI JOIN`; and rows of several columns in a subquery, `(a, b) IN (SELECT x, y …)`, which are
//! one column of it there.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Join,
    JoinOperator, LimitClause, ObjectName, Query, Select, SelectItem, SetExpr, SetOperator, TableFactor, TopQuantity,
    UnaryOperator, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::dialect::LakeDialect;
use super::walk::walk;

/// Writes them as DataFusion has them.
pub(crate) fn fix(statement: &mut DfStatement) {
    let _ = walk(statement, &mut Fixer);
}

struct Fixer;

impl VisitorMut for Fixer {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        minus(&mut query.body);
        if let Some(fetch) = &query.fetch
            && !fetch.with_ties
            && !fetch.percent
        {
            let rows = fetch.quantity.clone().unwrap_or_else(|| number(1));
            query.fetch = if limited(query, rows) { None } else { query.fetch.take() };
        }
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Some(top) = &select.top
            && !top.with_ties
            && !top.percent
            && let Some(rows) = &top.quantity
        {
            let rows = match rows {
                TopQuantity::Expr(rows) => rows.clone(),
                TopQuantity::Constant(rows) => number(*rows),
            };
            let top = select.top.take();
            if !limited(query, rows)
                && let SetExpr::Select(select) = query.body.as_mut()
            {
                select.top = top;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
            half(join);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::RLike { negated, expr: of, pattern, .. } => {
                let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
                let (left, right) = (std::mem::replace(of, nothing()), std::mem::replace(pattern, nothing()));
                *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
            }
            Expr::Like { any: any @ true, negated, expr: of, pattern, .. }
            | Expr::ILike { any: any @ true, negated, expr: of, pattern, .. } => {
                let patterns = match pattern.as_ref() {
                    Expr::Tuple(patterns) => patterns.clone(),
                    Expr::Nested(pattern) => vec![pattern.as_ref().clone()],
                    _ => return ControlFlow::Continue(()),
                };
                *any = false;
                let is_negated = std::mem::replace(negated, false);
                **of = Expr::Nested(std::mem::replace(of, nothing()));
                let one = |one: Expr| {
                    let mut like = expr.clone();
                    if let Expr::Like { pattern, .. } | Expr::ILike { pattern, .. } = &mut like {
                        **pattern = one;
                    }
                    like
                };
                let or = |left, right| Expr::BinaryOp {
                    left: Box::new(left),
                    op: BinaryOperator::Or,
                    right: Box::new(right),
                };
                let Some(any) = patterns.into_iter().map(one).reduce(or) else { return ControlFlow::Continue(()) };
                let any = Expr::Nested(Box::new(any));
                *expr = match is_negated {
                    true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) },
                    false => any,
                };
            }
            Expr::InSubquery { expr, subquery, .. } => {
                if let Expr::Tuple(columns) = expr.as_ref()
                    && columns.len() > 1
                {
                    one_column(subquery, columns.len());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        // of expressions, DataFusion knows rows under this name only
        if let Expr::Tuple(columns) = expr
            && columns.len() > 1
        {
            *expr = call("struct", std::mem::take(columns));
        }
        ControlFlow::Continue(())
    }
}

fn minus(body: &mut SetExpr) {
    if let SetExpr::SetOperation { op, left, right, .. } = body {
        if *op == SetOperator::Minus {
            *op = SetOperator::Except;
        }
        minus(left);
        minus(right);
    }
}

/// Puts a LIMIT where there is none; whether that was so.
fn limited(query: &mut Query, rows: Expr) -> bool {
    match &mut query.limit_clause {
        None => {
            let clause = LimitClause::LimitOffset { limit: Some(rows), offset: None, limit_by: Vec::new() };
            query.limit_clause = Some(clause);
            true
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => {
            *limit = Some(rows);
            true
        }
        Some(_) => false,
    }
}

fn half(join: &mut Join) {
    join.join_operator = match join.join_operator.clone() {
        JoinOperator::Semi(on) => JoinOperator::LeftSemi(on),
        JoinOperator::Anti(on) => JoinOperator::LeftAnti(on),
        other => other,
    };
}

/// The rows of a subquery as one column.
fn one_column(query: &mut Query, columns: usize) {
    if matches!(query.body.as_ref(), SetExpr::SetOperation { .. } | SetExpr::Values(_)) {
        let names: Vec<String> = (0..columns).map(|at| format!("__c{at}")).collect();
        let names = names.join(", ");
        let text = format!("SELECT ({names}) FROM (SELECT 1) AS __rows ({names})");
        let whole = Parser::new(&LakeDialect).try_with_sql(&text).and_then(|mut parser| parser.parse_query());
        let Ok(mut whole) = whole else { return };
        if let SetExpr::Select(select) = whole.body.as_mut()
            && let Some(from) = select.from.first_mut()
            && let TableFactor::Derived { subquery, .. } = &mut from.relation
        {
            std::mem::swap(subquery.as_mut(), query);
            std::mem::swap(query, whole.as_mut());
        }
        return;
    }
    if let SetExpr::Select(select) = query.body.as_mut()
        && query.order_by.is_none()
    {
        let listed = select.projection.iter().map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
            _ => None,
        });
        if let Some(row) = listed.collect::<Option<Vec<Expr>>>()
            && row.len() == columns
        {
            select.projection = vec![SelectItem::UnnamedExpr(Expr::Tuple(row))];
        }
    }
}

/// A call of a function.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn number(rows: u64) -> Expr {
    Expr::value(Value::Number(rows.to_string(), false))
}

fn nothing() -> Box<Expr> {
    Box::new(Expr::value(Value::Null))
}
