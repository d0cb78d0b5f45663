//! `a NATURAL FULL JOIN b` as `a FULL JOIN b USING (…)`, where the columns of both sides are known: of tables, and of
//! subqueries that name theirs. What one column is that two make, is written by [`super::using_names`].

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableFactor,
    TableWithJoins, VisitorMut,
};

use super::using_names::{constraint_mut, plain};
use super::walk::walk;

/// The columns of the relations that a statement may speak of.
pub(crate) struct Columns {
    /// By the names of tables; None where two databases have one.
    tables: BTreeMap<String, Option<Vec<String>>>,
    /// Names that the statement itself gives to queries.
    queries: HashSet<String>,
}

impl Columns {
    /// Of a statement with these tables.
    pub(crate) fn of(statement: &mut DfStatement, known: impl Iterator<Item = (String, Vec<String>)>) -> Self {
        let mut tables: BTreeMap<String, Option<Vec<String>>> = BTreeMap::new();
        for (name, columns) in known {
            tables.entry(name).and_modify(|two| *two = None).or_insert(Some(columns));
        }
        let mut named = Named::default();
        let _ = walk(statement, &mut named);
        Self { tables, queries: named.0 }
    }

    /// Of a relation, in their order; None: not known here.
    pub(super) fn of_relation(&self, relation: &TableFactor) -> Option<Vec<String>> {
        let (alias, own) = match relation {
            TableFactor::Table { name, alias, args: None, .. } => (alias, self.of_table(name)),
            TableFactor::Derived { subquery, alias, .. } => (alias, of_query(subquery)),
            _ => return None,
        };
        match alias {
            Some(alias) if !alias.columns.is_empty() => {
                let named: Vec<String> = alias.columns.iter().map(|column| plain(&column.name)).collect();
                // fewer names than columns leave the others theirs
                own.is_none_or(|own| own.len() == named.len()).then_some(named)
            }
            _ => own,
        }
    }

    fn of_table(&self, name: &ObjectName) -> Option<Vec<String>> {
        let name = plain(name.0.last().and_then(ObjectNamePart::as_ident)?);
        if self.queries.contains(&name) {
            return None;
        }
        self.tables.get(&name).cloned().flatten()
    }
}

/// The names of WITH.
#[derive(Default)]
struct Named(HashSet<String>);

impl VisitorMut for Named {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(with.map(|one| plain(&one.alias.name)));
        ControlFlow::Continue(())
    }
}

fn of_query(query: &Query) -> Option<Vec<String>> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let name = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) | SelectItem::ExprWithAlias { alias: name, .. } => {
            Some(plain(name))
        }
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => names.last().map(plain),
        _ => None,
    };
    select.projection.iter().map(name).collect()
}

/// Writes the columns in common in the place of NATURAL in outer joins.
pub(crate) fn fix(statement: &mut DfStatement, columns: &Columns) {
    let _ = walk(statement, &mut Selects { columns });
}

struct Selects<'a> {
    columns: &'a Columns,
}

impl VisitorMut for Selects<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for from in &mut select.from {
            self.joins(from);
        }
        ControlFlow::Continue(())
    }
}

impl Selects<'_> {
    /// Up to the first join of which nothing is known.
    fn joins(&self, from: &mut TableWithJoins) -> Option<()> {
        let mut visible = self.columns.of_relation(&from.relation)?;
        for join in &mut from.joins {
            let right = self.columns.of_relation(&join.relation)?;
            let constraint = constraint_mut(join)?;
            let common: Vec<String> = match constraint {
                JoinConstraint::Natural => right.iter().filter(|name| visible.contains(name)).cloned().collect(),
                JoinConstraint::Using(columns) => {
                    let names = columns.iter().map(|name| name.0.last().and_then(ObjectNamePart::as_ident).map(plain));
                    names.collect::<Option<_>>()?
                }
                JoinConstraint::On(_) | JoinConstraint::None => Vec::new(),
            };
            // of two columns of one name, neither is the one in common
            if common.iter().any(|name| visible.iter().filter(|other| *other == name).count() != 1) {
                return None;
            }
            let natural = matches!(constraint, JoinConstraint::Natural);
            if natural && !common.is_empty() {
                let columns = common.iter().map(|name| ObjectName::from(vec![Ident::with_quote('"', name)]));
                *constraint = JoinConstraint::Using(columns.collect());
            }
            visible.extend(right.into_iter().filter(|name| !common.contains(name)));
        }
        Some(())
    }
}
