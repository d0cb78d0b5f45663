//! `… a JOIN b USING (x) WHERE x = 1`: the one column that USING makes of two, under its name alone.
//!
//! DataFusion looks for `x` among the columns of both sides, and takes the left side's where it knows of USING at all. The
//! column is the left side's in an inner and in a LEFT join, the right side's in a RIGHT one, and whichever there is in a
//! FULL one; so that is what is written for it here. A chain with a join of the last two kinds, or a LEFT one in which `*`
//! would be taken from the wrong side, is written with ON, and `*` as what it stands for. What has no name that could be
//! written here (NATURAL joins, a column of several joins before) is left to [`super::using`], which refuses what would be
//! wrong.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExceptSelectItem, ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, OrderBy, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableFactor, TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use super::natural::Columns;
use super::planner::ShownNames;
use super::spellings::call;
use super::walk::walk;
use crate::error::{Error, Result};

/// Writes what it stands for in the place of a column that USING names, in a statement whose relations are `shown` as.
///
/// # Errors
/// `MergedColumn`: `* EXCEPT (…)` over a LEFT JOIN with USING, where DataFusion would take the right side's column.
pub(crate) fn fix(statement: &mut DfStatement, shown: &ShownNames, columns: &Columns) -> Result<()> {
    match walk(statement, &mut Selects { shown, columns }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Selects<'a> {
    /// What relations are called that a statement of ours renamed.
    shown: &'a ShownNames,
    columns: &'a Columns,
}

impl VisitorMut for Selects<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        match query.body.as_mut() {
            SetExpr::Select(select) => self.select(select, query.order_by.as_mut()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        // those of a set operation; what a query has written above has no USING any more, or its names
        self.select(select, None)
    }
}

impl Selects<'_> {
    fn known(&self, select: &Select) -> Known {
        let [from] = select.from.as_slice() else { return Known::default() };
        let relations = std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
        let known = relations.map(|relation| {
            let name = shown_name(relation, self.shown)?;
            Some((plain(&name), self.columns.of_relation(relation)?))
        });
        Known(known.collect::<Option<_>>().unwrap_or_default())
    }

    fn select(&self, select: &mut Select, order_by: Option<&mut OrderBy>) -> ControlFlow<Error> {
        let known = self.known(select);
        let leaves_out = select.projection.iter().any(|item| leaves_out(item) && !known.can_leave_out(item));
        if leaves_out && let Some((left, right)) = select.from.iter().find_map(turned) {
            return ControlFlow::Break(
                Error::unsupported(
                    "'*' without some columns takes the column of USING from the right side of a LEFT JOIN",
                )
                .with_code("MergedColumn")
                .with_hint(format!("name the columns, or write LEFT JOIN … ON {left}.x = {right}.x")),
            );
        }
        let [from] = select.from.as_slice() else { return ControlFlow::Continue(()) };
        let all = select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
        let sided = from.joins.iter().any(|join| matches!(using(join), Some((Kept::Right | Kept::Either, _))));
        let rewritten = !leaves_out && (sided || all && turned(from).is_some());
        let Some(chain) = Chain::of(from, self.shown) else { return ControlFlow::Continue(()) };
        if chain.merged.is_empty() {
            return ControlFlow::Continue(());
        }
        let of_from = std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
        let relations =
            of_from.filter_map(|relation| shown_name(relation, self.shown)).map(|name| plain(&name)).collect();
        let mut names = Names { columns: Vec::new(), inside: Vec::new(), of: self, relations };
        if let Some(from) = select.from.first_mut() {
            for (join, step) in from.joins.iter_mut().zip(chain.steps) {
                if rewritten && let (Some(on), Some(constraint)) = (step.on, constraint_mut(join)) {
                    *constraint = JoinConstraint::On(on);
                } else if let Some(JoinConstraint::On(on)) = constraint_mut(join) {
                    let _ = on.visit(&mut names);
                }
                names.columns = step.merged;
            }
        }
        names.columns = chain.merged;
        if sided && !rewritten {
            // a column that only some rows have, and nothing to write for it
            return ControlFlow::Continue(());
        }
        if let Some(order_by) = order_by {
            names.order_by(order_by, &select.projection, rewritten);
        }
        names.list(&mut select.projection, rewritten.then_some(chain.shown), &known);
        let from = std::mem::take(&mut select.from);
        let _ = select.visit(&mut names);
        select.from = from;
        ControlFlow::Continue(())
    }
}

/// The side whose value the column of USING has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Left,
    Right,
    Either,
}

/// A column that USING made, and what to write for it.
type Merged = Vec<(String, Expr)>;

/// The joins of a FROM.
struct Chain {
    steps: Vec<Step>,
    merged: Merged,
    /// What `*` stands for.
    shown: Vec<Shown>,
}

struct Step {
    /// The condition in the place of USING.
    on: Option<Expr>,
    /// The columns merged so far.
    merged: Merged,
}

/// A part of `*`.
#[derive(Clone)]
enum Shown {
    Column(String, Ident),
    /// The other columns of a relation.
    Relation(Ident, Vec<Ident>),
}

impl Chain {
    /// None where a relation has no name of its own, or the columns in common are not written.
    fn of(from: &TableWithJoins, shown: &ShownNames) -> Option<Self> {
        let name = |relation| shown_name(relation, shown);
        let mut relations = vec![name(&from.relation)?];
        let mut chain = Self { steps: Vec::new(), merged: Vec::new(), shown: Vec::new() };
        chain.shown.push(Shown::Relation(relations.first()?.clone(), Vec::new()));
        for join in &from.joins {
            let right = name(&join.relation)?;
            if is_natural(join) || relations.iter().any(|one| plain(one) == plain(&right)) {
                return None;
            }
            let mut on = None;
            let mut common = Vec::new();
            if let Some((kept, columns)) = using(join) {
                for column in columns {
                    let of = |relation: &Ident| Expr::CompoundIdentifier(vec![relation.clone(), column.clone()]);
                    let key = plain(&column);
                    let before = chain.merged.iter().position(|(name, _)| *name == key);
                    let left = match (before, relations.as_slice()) {
                        (Some(at), _) => chain.merged.remove(at).1,
                        (None, [only]) => of(only),
                        // one of several, and nobody here knows which
                        (None, _) if kept == Kept::Left => continue,
                        (None, _) => return None,
                    };
                    let equal = equals(left.clone(), of(&right));
                    on = Some(on.map_or_else(|| equal.clone(), |before| and(before, equal.clone())));
                    let value = match kept {
                        Kept::Left => left,
                        Kept::Right => of(&right),
                        Kept::Either => coalesce(left, of(&right)),
                    };
                    chain.merged.push((key, value));
                    common.push(column);
                }
            }
            chain.show(&common, &right);
            chain.steps.push(Step { on, merged: chain.merged.clone() });
            relations.push(right);
        }
        Some(chain)
    }

    /// The columns in common come first, then the others of either side.
    fn show(&mut self, common: &[Ident], right: &Ident) {
        let is_common = |name: &str| common.iter().any(|column| plain(column) == name);
        let mut shown: Vec<Shown> = common.iter().map(|name| Shown::Column(plain(name), name.clone())).collect();
        let only = matches!(self.shown.as_slice(), [Shown::Relation(..)]);
        for part in std::mem::take(&mut self.shown) {
            match part {
                Shown::Column(name, _) if is_common(&name) => {}
                Shown::Relation(relation, mut without) if only => {
                    without.extend(common.iter().cloned());
                    shown.push(Shown::Relation(relation, without));
                }
                other => shown.push(other),
            }
        }
        shown.push(Shown::Relation(right.clone(), common.to_vec()));
        self.shown = shown;
    }
}

fn leaves_out(item: &SelectItem) -> bool {
    let SelectItem::Wildcard(options) = item else { return false };
    options.opt_except.is_some()
        || options.opt_exclude.is_some()
        || options.opt_replace.is_some()
        || options.opt_ilike.is_some()
        || options.opt_rename.is_some()
}

/// The columns that `* EXCEPT (…)` or `* EXCLUDE (…)` leaves out, none for `*`; None where more is asked for.
fn left_out(options: &WildcardAdditionalOptions) -> Option<Vec<Ident>> {
    if options.opt_replace.is_some() || options.opt_ilike.is_some() || options.opt_rename.is_some() {
        return None;
    }
    let mut out = Vec::new();
    if let Some(except) = &options.opt_except {
        out.push(except.first_element.clone());
        out.extend(except.additional_elements.iter().cloned());
    }
    let excluded = match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names.as_slice(),
        None => &[],
    };
    for name in excluded {
        match name.0.as_slice() {
            [ObjectNamePart::Identifier(name)] => out.push(name.clone()),
            _ => return None,
        }
    }
    Some(out)
}

/// The columns of the relations of a FROM, by their names; empty where one is not known.
#[derive(Default)]
struct Known(Vec<(String, Vec<String>)>);

impl Known {
    /// Whether the columns that an item leaves out are some of these.
    fn can_leave_out(&self, item: &SelectItem) -> bool {
        let SelectItem::Wildcard(options) = item else { return false };
        let has = |name: &Ident| self.0.iter().any(|(_, columns)| columns.contains(&plain(name)));
        !self.0.is_empty() && left_out(options).is_some_and(|out| out.iter().all(has))
    }

    /// `relation.*` without some columns and those of `out` that it has; None: there are no others.
    fn others(&self, relation: &Ident, without: &[Ident], out: &[Ident]) -> Option<SelectItem> {
        let Some((_, columns)) = self.0.iter().find(|(name, _)| *name == plain(relation)) else {
            return Some(others(relation, without));
        };
        let mut all = without.to_vec();
        for name in out.iter().filter(|name| columns.contains(&plain(name))) {
            if !all.iter().any(|known| plain(known) == plain(name)) {
                all.push(name.clone());
            }
        }
        let left = columns.iter().any(|column| !all.iter().any(|name| plain(name) == *column));
        left.then(|| others(relation, &all))
    }
}

/// The sides of a LEFT JOIN with USING of which the right one's name comes first.
fn turned(from: &TableWithJoins) -> Option<(&Ident, &Ident)> {
    let left = name_of(&from.relation)?;
    let is_left = |join: &&Join| {
        matches!(&join.join_operator, JoinOperator::Left(_) | JoinOperator::LeftOuter(_)) && using(join).is_some()
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

/// The same as people see it.
pub(super) fn shown_name(relation: &TableFactor, shown: &ShownNames) -> Option<Ident> {
    let name = name_of(relation)?;
    Some(shown.get(&name.value).map_or_else(|| name.clone(), |name| Ident::with_quote('"', name)))
}

/// What a join with USING keeps, and its columns.
pub(super) fn using(join: &Join) -> Option<(Kept, Vec<Ident>)> {
    let (kept, constraint) = match &join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint) => (Kept::Left, constraint),
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (Kept::Right, constraint),
        JoinOperator::FullOuter(constraint) => (Kept::Either, constraint),
        _ => return None,
    };
    let JoinConstraint::Using(columns) = constraint else { return None };
    let columns = columns.iter().map(|name| name.0.last().and_then(ObjectNamePart::as_ident).cloned());
    Some((kept, columns.collect::<Option<_>>()?))
}

fn is_natural(join: &Join) -> bool {
    let mut join = join.clone();
    matches!(constraint_mut(&mut join), Some(JoinConstraint::Natural))
}

pub(super) fn constraint_mut(join: &mut Join) -> Option<&mut JoinConstraint> {
    match &mut join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

pub(super) fn plain(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

fn equals(left: Expr, right: Expr) -> Expr {
    binary(left, BinaryOperator::Eq, right)
}

fn and(left: Expr, right: Expr) -> Expr {
    binary(left, BinaryOperator::And, right)
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn coalesce(left: Expr, right: Expr) -> Expr {
    call("coalesce", vec![left, right])
}

/// Puts what they stand for in the place of columns' names; in subqueries where no relation of theirs has the name.
struct Names<'a> {
    columns: Merged,
    /// The names that mean something in each of the subqueries around; None: all may.
    inside: Vec<Option<HashSet<String>>>,
    of: &'a Selects<'a>,
    /// What the columns are written with.
    relations: HashSet<String>,
}

impl Names<'_> {
    /// The names that mean something in a subquery by itself.
    fn own(&self, query: &Query) -> Option<HashSet<String>> {
        let SetExpr::Select(select) = query.body.as_ref() else { return None };
        let mut own = HashSet::new();
        for from in &select.from {
            for relation in std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)) {
                let name = shown_name(relation, self.of.shown).map(|name| plain(&name))?;
                if self.relations.contains(&name) {
                    return None;
                }
                own.extend(self.of.columns.of_relation(relation)?);
            }
        }
        own.extend(select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(plain(alias)),
            _ => None,
        }));
        Some(own)
    }

    fn is_meant(&self, name: &Ident) -> bool {
        let name = plain(name);
        self.inside.iter().all(|own| own.as_ref().is_some_and(|own| !own.contains(&name)))
    }

    fn meant(&self, name: &Ident) -> Option<&Expr> {
        let key = plain(name);
        self.columns.iter().find(|(column, _)| *column == key).map(|(_, meant)| meant)
    }

    /// A list, in which a column keeps its name; `all` is what `*` stands for.
    fn list(&self, list: &mut Vec<SelectItem>, all: Option<Vec<Shown>>, known: &Known) {
        let named = |name: &Ident| match self.meant(name) {
            Some(column @ Expr::CompoundIdentifier(_)) => SelectItem::UnnamedExpr(column.clone()),
            Some(value) => SelectItem::ExprWithAlias { expr: value.clone(), alias: name.clone() },
            None => SelectItem::UnnamedExpr(Expr::Identifier(name.clone())),
        };
        for item in std::mem::take(list) {
            match (item, &all) {
                (SelectItem::UnnamedExpr(Expr::Identifier(name)), _) => list.push(named(&name)),
                (SelectItem::Wildcard(options), Some(all)) => {
                    let out = left_out(&options).unwrap_or_default();
                    list.extend(all.iter().filter_map(|part| match part {
                        Shown::Column(key, _) if out.iter().any(|name| plain(name) == *key) => None,
                        Shown::Column(_, name) => Some(named(name)),
                        Shown::Relation(relation, without) => known.others(relation, without, &out),
                    }));
                }
                (item, _) => list.push(item),
            }
        }
    }

    /// ORDER BY, where a name that the list has is the list's.
    fn order_by(&mut self, order_by: &mut OrderBy, list: &[SelectItem], rewritten: bool) {
        let OrderByKind::Expressions(sorts) = &mut order_by.kind else { return };
        let is_listed = |name: &Ident| {
            list.iter().any(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => plain(alias) == plain(name),
                SelectItem::UnnamedExpr(Expr::Identifier(column)) => rewritten && plain(column) == plain(name),
                SelectItem::Wildcard(_) => rewritten,
                _ => false,
            })
        };
        for sort in sorts {
            if !matches!(&sort.expr, Expr::Identifier(name) if is_listed(name)) {
                let _ = sort.expr.visit(self);
            }
        }
    }
}

/// `relation.* EXCEPT (…)`.
fn others(relation: &Ident, without: &[Ident]) -> SelectItem {
    let mut without = without.iter().cloned();
    let except =
        without.next().map(|first_element| ExceptSelectItem { first_element, additional_elements: without.collect() });
    let relation = SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(vec![relation.clone()]));
    SelectItem::QualifiedWildcard(
        relation,
        WildcardAdditionalOptions { opt_except: except, ..WildcardAdditionalOptions::default() },
    )
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let own = self.own(query);
        self.inside.push(own);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.inside.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && self.is_meant(name)
            && let Some(meant) = self.meant(name)
        {
            *expr = meant.clone();
        }
        ControlFlow::Continue(())
    }
}
