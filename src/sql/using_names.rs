//! `… a JOIN b USING (x) WHERE x = 1`: the one column that USING makes of two, in a WHERE.
//!
//! DataFusion looks for `x` among the columns of both sides there, and finds two. In an inner and in a LEFT join the column
//! is the left side's, so that is what is written for it here. What other joins make of it, [`super::using`] tells; but a
//! plan does not tell `*` without some columns from the columns of one side, so that is looked at here too.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectNamePart, Query, Select, SelectItem, TableFactor,
    TableWithJoins, VisitMut, VisitorMut,
};

use super::planner::ShownNames;
use super::walk::walk;
use crate::error::{Error, Result};

/// Writes the left side's column for one that USING names, in the conditions of a statement whose relations are `shown` as.
///
/// # Errors
/// `MergedColumn`: `* EXCEPT (…)` over a LEFT JOIN with USING, where DataFusion would take the right side's column.
pub(crate) fn fix(statement: &mut DfStatement, shown: &ShownNames) -> Result<()> {
    match walk(statement, &mut Selects { shown }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Selects<'a> {
    /// What relations are called that a statement of ours renamed.
    shown: &'a ShownNames,
}

impl VisitorMut for Selects<'_> {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if select.projection.iter().any(leaves_out)
            && let Some((left, right)) = select.from.iter().find_map(turned)
        {
            return ControlFlow::Break(
                Error::unsupported(
                    "'*' without some columns takes the column of USING from the right side of a LEFT JOIN",
                )
                .with_code("MergedColumn")
                .with_hint(format!("name the columns, or write LEFT JOIN … ON {left}.x = {right}.x")),
            );
        }
        let [from] = select.from.as_slice() else { return ControlFlow::Continue(()) };
        let (Some(left), Some(condition)) = (name_of(&from.relation), &mut select.selection) else {
            return ControlFlow::Continue(());
        };
        // a column that one of several joins does not have in common is another one there
        let lists: Option<Vec<Vec<String>>> = from.joins.iter().map(merged).collect();
        let Some([first, others @ ..]) = lists.as_deref() else { return ControlFlow::Continue(()) };
        let columns = first.iter().filter(|name| others.iter().all(|list| list.contains(name))).cloned().collect();
        let left = self.shown.get(&left.value).map_or_else(|| left.clone(), |name| Ident::with_quote('"', name));
        let _ = condition.visit(&mut Names { left, columns, depth: 0 });
        ControlFlow::Continue(())
    }
}

fn leaves_out(item: &SelectItem) -> bool {
    let SelectItem::Wildcard(options) = item else { return false };
    options.opt_except.is_some() || options.opt_exclude.is_some() || options.opt_replace.is_some()
}

/// The sides of a LEFT JOIN with USING of which the right one's name comes first.
fn turned(from: &TableWithJoins) -> Option<(&Ident, &Ident)> {
    let left = name_of(&from.relation)?;
    let is_left = |join: &&Join| {
        matches!(&join.join_operator, JoinOperator::Left(_) | JoinOperator::LeftOuter(_)) && merged(join).is_some()
    };
    let right = from.joins.iter().filter(is_left).filter_map(|join| name_of(&join.relation));
    right.map(|right| (left, right)).find(|(left, right)| plain(right) < plain(left))
}

/// The name of a relation's columns.
fn name_of(relation: &TableFactor) -> Option<&Ident> {
    match relation {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(&alias.name)
        }
        TableFactor::Table { name, .. } => name.0.last().and_then(ObjectNamePart::as_ident),
        _ => None,
    }
}

/// The columns that an inner or LEFT join has in common by USING; None for another join.
fn merged(join: &Join) -> Option<Vec<String>> {
    let constraint = match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint) => constraint,
        _ => return None,
    };
    let JoinConstraint::Using(columns) = constraint else { return None };
    columns.iter().map(|name| name.0.last().and_then(ObjectNamePart::as_ident).map(plain)).collect()
}

fn plain(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// Puts the relation before the names of columns, outside of subqueries.
struct Names {
    left: Ident,
    columns: Vec<String>,
    depth: usize,
}

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(name) = expr
            && self.columns.contains(&plain(name))
        {
            *expr = Expr::CompoundIdentifier(vec![self.left.clone(), name.clone()]);
        }
        ControlFlow::Continue(())
    }
}
