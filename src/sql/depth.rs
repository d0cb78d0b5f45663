//! How deep a statement nests: long chains of AND and OR become trees of few levels, and what is too deep for the stacks
//! it would be planned and computed on is refused.
//!
//! ```text
//!                OR                           OR
//!              OR  d           →          OR      OR
//!            OR  c                      a   b    c   d
//!           a  b
//! ```
//!
//! Both mean the same; but types, names and hashes of a chain are asked for at each of its levels, and each time
//! all that is below is walked.

use std::ops::ControlFlow;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr as LogicalExpr, LogicalPlan};
use datafusion::sql::parser::{CopyToSource, Statement as DfStatement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SetExpr, Spanned, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::deep_stack::Levels;
use super::tokens::{is_word, syntax};
use crate::error::{Error, Result};

/// Terms of AND and OR that stay as they are written.
const FEW_TERMS: usize = 32;

const HINT: &str = "write values as a list, IN (…) or VALUES, and a long chain in parts; a program that runs statements on \
                    threads with a larger stack has room for more";

/// The refusal of what stands at a place.
pub(super) fn too_deep(what: impl Into<String>, span: Span) -> Error {
    syntax(what, span).with_code("StatementTooDeep").with_hint(HINT)
}

/// Brings a parsed statement to few levels.
///
/// # Errors
/// An expression, or a chain of UNION, JOIN and WITH, of more levels than `levels`.
pub(super) fn level(statement: &mut DfStatement, levels: Levels) -> Result<()> {
    let mut leveller = Leveller { levels, depth: 0, walked: 0 };
    let done = match statement {
        DfStatement::Statement(statement) => statement.visit(&mut leveller),
        DfStatement::Explain(explain) => return level(&mut explain.statement, levels),
        DfStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut leveller),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        DfStatement::CreateExternalTable(create) => create.order_exprs.visit(&mut leveller),
        DfStatement::Reset(_) => ControlFlow::Continue(()),
    };
    match done {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Leveller {
    levels: Levels,
    /// Expressions around the one that is visited.
    depth: usize,
    /// Left operands that come next and were looked at with the operator they are of.
    walked: usize,
}

impl Leveller {
    fn refuse<'a, T: Spanned + 'a>(&self, what: &str, parts: impl Iterator<Item = &'a T>) -> ControlFlow<Error> {
        limited(what, parts, self.levels.most)
    }

    /// Looks at the chain of operators that ends here.
    fn chain(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr {
            let op = op.clone();
            if links(expr, &op) >= FEW_TERMS {
                let terms = terms(expr, &op);
                if op == BinaryOperator::And {
                    let what = "AND joins";
                    limited(what, terms.iter(), self.levels.terms)?;
                }
                let Some(balanced) = balanced(terms, &op) else { return ControlFlow::Continue(()) };
                *expr = balanced;
                return ControlFlow::Continue(());
            }
        }
        let mut rights = Vec::new();
        let mut at = &*expr;
        while let Expr::BinaryOp { left, right, .. } = at {
            rights.push(right.as_ref());
            at = left;
        }
        self.walked = rights.len();
        let free = self.levels.most.saturating_sub(self.depth);
        match rights.len().checked_sub(free.saturating_add(1)).and_then(|at| rights.get(at)) {
            Some(right) => ControlFlow::Break(self.nested(right)),
            None => ControlFlow::Continue(()),
        }
    }

    fn nested(&self, expr: &Expr) -> Error {
        too_deep(format!("the expression nests more than {} levels", self.levels.most), expr.span())
    }
}

/// Refuses the first of `parts`, which are in the order of the text, that has as many before it as may be.
fn limited<'a, T: Spanned + 'a>(what: &str, mut parts: impl Iterator<Item = &'a T>, most: usize) -> ControlFlow<Error> {
    match parts.nth(most) {
        Some(part) => ControlFlow::Break(too_deep(format!("{what} more than {most}"), part.span())),
        None => ControlFlow::Continue(()),
    }
}

/// How often an operator follows itself.
fn links(expr: &Expr, op: &BinaryOperator) -> usize {
    let mut links = 0;
    let mut at = expr;
    while let Expr::BinaryOp { left, op: found, .. } = at
        && found == op
    {
        links += 1;
        at = left;
    }
    links
}

/// The terms of a chain in their order; a loop, because the chain may be longer than the stack is deep.
fn terms(chain: &mut Expr, op: &BinaryOperator) -> Vec<Expr> {
    let mut terms = Vec::new();
    let mut rest = std::mem::replace(chain, Expr::Value(Value::Null.with_empty_span()));
    let first = loop {
        match rest {
            Expr::BinaryOp { left, op: found, right } if found == *op => {
                terms.push(*right);
                rest = *left;
            }
            first => break first,
        }
    };
    terms.push(first);
    terms.reverse();
    terms
}

/// The same chain as a tree.
fn balanced(terms: Vec<Expr>, op: &BinaryOperator) -> Option<Expr> {
    let mut level = terms;
    while level.len() > 1 {
        let mut above = Vec::with_capacity(level.len().div_ceil(2));
        let mut below = level.into_iter();
        while let Some(left) = below.next() {
            above.push(match below.next() {
                Some(right) => Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) },
                None => left,
            });
        }
        level = above;
    }
    level.pop()
}

impl VisitorMut for Leveller {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let mut queries = Vec::new();
        let mut at = query.body.as_ref();
        while let SetExpr::SetOperation { left, right, .. } = at {
            queries.push(right.as_ref());
            at = left;
        }
        queries.push(at);
        self.refuse("UNION, EXCEPT and INTERSECT chain", queries.into_iter().rev())?;
        self.refuse("WITH names", query.with.iter().flat_map(|with| &with.cte_tables))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let relations = select.from.iter().flat_map(|table| {
            let joined = table.joins.iter().map(|join| &join.relation);
            std::iter::once(&table.relation).chain(joined)
        });
        self.refuse("FROM joins", relations)
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if self.depth > self.levels.most {
            return ControlFlow::Break(self.nested(expr));
        }
        match self.walked.checked_sub(1) {
            Some(left) => self.walked = left,
            None => self.chain(expr)?,
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _expr: &mut Expr) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Refuses a plan of more than `most` levels: expressions of queries inside of queries, and of views, become one.
///
/// # Errors
/// See above.
pub(super) fn check(plan: &LogicalPlan, most: usize) -> Result<()> {
    let levels = levels(plan)?;
    if levels <= most {
        return Ok(());
    }
    let what = format!("the statement and the views it reads nest {levels} levels, more than {most}");
    Err(Error::invalid(what).with_code("StatementTooDeep").with_hint(HINT))
}

/// Nodes one above the other, and the levels of expressions that are deep.
fn levels(plan: &LogicalPlan) -> DfResult<usize> {
    let mut expressions = 0;
    plan.apply_expressions(|expr| {
        let mut levels = ExprLevels::default();
        expr.visit(&mut levels)?;
        expressions = expressions.max(levels.most);
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut below = 0;
    for input in plan.inputs() {
        below = below.max(levels(input)?);
    }
    plan.apply_subqueries(|subquery| {
        below = below.max(levels(subquery)?);
        Ok(TreeNodeRecursion::Jump)
    })?;
    // those are no nodes of the physical plan, or one for all
    let own = usize::from(!matches!(plan, LogicalPlan::SubqueryAlias(_) | LogicalPlan::Union(_)));
    Ok(below + own + expressions.saturating_sub(FEW_TERMS))
}

#[derive(Default)]
struct ExprLevels {
    here: usize,
    most: usize,
}

impl TreeNodeVisitor<'_> for ExprLevels {
    type Node = LogicalExpr;

    fn f_down(&mut self, _expr: &LogicalExpr) -> DfResult<TreeNodeRecursion> {
        self.here += 1;
        self.most = self.most.max(self.here);
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, _expr: &LogicalExpr) -> DfResult<TreeNodeRecursion> {
        self.here -= 1;
        Ok(TreeNodeRecursion::Continue)
    }
}

/// The error of the parser where it went as deep as it goes.
pub(super) fn parser_is_too_deep(span: Span) -> Error {
    too_deep("parentheses, subqueries or signs nest deeper than the parser follows", span)
}

/// Where tokens nest deepest.
pub(super) fn deepest(tokens: &[TokenWithSpan]) -> Span {
    let (mut open, mut most, mut place) = (0usize, 0, Span::empty());
    // prefixes nest until an operand follows
    let mut prefixes = 0;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => open += 1,
            Token::RParen | Token::RBracket => open = open.saturating_sub(1),
            Token::Word(_) if is_word(Some(token), "CASE") => open += 1,
            Token::Word(_) if is_word(Some(token), "END") => open = open.saturating_sub(1),
            _ => {}
        }
        let prefix = matches!(token.token, Token::Minus | Token::Plus) || is_word(Some(token), "NOT");
        prefixes = if prefix { prefixes + 1 } else { 0 };
        if open + prefixes > most {
            (most, place) = (open + prefixes, token.span);
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::statements::{Command, parse_to};
    use crate::sql::tokens::{statements, tokenize};

    const MOST: usize = 500;

    fn parsed(sql: &str, most: usize) -> Result<DfStatement> {
        let most = Levels { most, terms: 20_000 };
        let tokens = statements(tokenize(sql)?).remove(0);
        match parse_to(most, tokens, &mut Vec::new())? {
            Command::Statement(statement) => Ok(*statement),
            other => panic!("{other:?}"),
        }
    }

    fn joined(term: impl Fn(usize) -> String, by: &str, count: usize) -> String {
        (0..count).map(term).collect::<Vec<_>>().join(by)
    }

    #[test]
    fn chains_of_and_and_or_stay_what_they_are_in_few_levels() {
        for op in [" OR ", " AND "] {
            let sql = format!("SELECT {}", joined(|at| format!("a = {at} + {at}"), op, 20_000));
            assert!(parsed(&sql, 40).unwrap().to_string() == sql, "{op}");
        }
        let mixed = joined(|at| format!("a = {at} AND b OR NOT c"), " OR ", 1000);
        assert_eq!(parsed(&format!("SELECT {mixed}"), 40).unwrap().to_string(), format!("SELECT {mixed}"));
    }

    #[test]
    fn what_nests_too_deep_is_refused_where_it_does() {
        let deep = |inner: &str, count: usize| inner.repeat(count);
        let cases = [
            (format!("SELECT {}", joined(|_| "1".into(), "+", 800)), 7 + 2 * (MOST as u64 + 1) + 1),
            (format!("SELECT a{}", deep(" IS NULL", 800)), 8),
            (format!("SELECT a{}", deep("::INT", 800)), 8),
            (joined(|_| "SELECT 1".into(), " UNION ALL ", 800), 19 * MOST as u64 + 1),
            (format!("SELECT * FROM {}", joined(|at| format!("t{at:03}"), ",", 800)), 15 + 5 * MOST as u64),
            (format!("SELECT * FROM a {}", joined(|_| "JOIN b ON c".into(), " ", 800)), 0),
            (format!("WITH {} SELECT 1", joined(|at| format!("c{at:03} AS (SELECT 1)"), ",", 800)), 0),
            (format!("SELECT {}", joined(|_| "a".into(), " AND ", 30_000)), 8 + 6 * 20_000),
            (format!("SELECT {}1{}", deep("(", 300), deep(")", 300)), 7 + 300),
            (format!("SELECT {}1", deep("- ", 300)), 6 + 2 * 300),
            (format!("SELECT {}1{}", deep("abs(", 300), deep(")", 300)), 7 + 4 * 300),
            (format!("{}SELECT 1{}", deep("SELECT * FROM (", 300), deep(") t", 300)), 15 * 300),
        ];
        for (sql, column) in cases {
            let error = parsed(&sql, MOST).unwrap_err();
            assert_eq!(error.code(), "StatementTooDeep", "{error:?} for {}", &sql[..60]);
            assert!(error.hint().is_some());
            let found = error.context().iter().find(|(name, _)| *name == "column").unwrap();
            assert!(column == 0 || found.1 == column.to_string(), "{found:?}, not {column}: {}", &sql[..60]);
        }
    }
}
