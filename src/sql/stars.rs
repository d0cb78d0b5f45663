//! `SELECT *, *` and `SELECT t.*, t.*`: every `*` but the first as the columns it stands for, where those are known, so that
//! [`super::same_names`] can tell the columns of one name apart.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinOperator, ObjectNamePart, Select, SelectItem, SelectItemQualifiedWildcardKind, VisitorMut,
    WildcardAdditionalOptions,
};

use super::natural::Columns;
use super::planner::ShownNames;
use super::using_names::{plain, shown_name, using};
use super::walk::walk;

/// Writes columns in the place of every `*` but the first of a list.
pub(crate) fn fix(statement: &mut DfStatement, shown: &ShownNames, columns: &Columns) {
    let _ = walk(statement, &mut Lists { shown, columns });
}

struct Lists<'a> {
    shown: &'a ShownNames,
    columns: &'a Columns,
}

impl VisitorMut for Lists<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.projection.iter().filter(|item| is_star(item)).count() > 1
            && let Some(relations) = self.relations(select)
        {
            let mut first = true;
            for item in std::mem::take(&mut select.projection) {
                match columns_of(&item, &relations) {
                    Some(columns) if !std::mem::take(&mut first) => select.projection.extend(columns),
                    _ => select.projection.push(item),
                }
            }
        }
        ControlFlow::Continue(())
    }
}

impl Lists<'_> {
    /// The relations of a FROM and their columns, all of which `*` stands for.
    fn relations(&self, select: &Select) -> Option<Vec<(Ident, Vec<String>)>> {
        let mut relations = Vec::new();
        for from in &select.from {
            let is_whole = |operator: &JoinOperator| {
                !matches!(
                    operator,
                    JoinOperator::LeftSemi(_)
                        | JoinOperator::RightSemi(_)
                        | JoinOperator::LeftAnti(_)
                        | JoinOperator::RightAnti(_)
                        | JoinOperator::Semi(_)
                        | JoinOperator::Anti(_)
                )
            };
            if from.joins.iter().any(|join| using(join).is_some() || !is_whole(&join.join_operator)) {
                return None;
            }
            for relation in std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)) {
                relations.push((shown_name(relation, self.shown)?, self.columns.of_relation(relation)?));
            }
        }
        Some(relations)
    }
}

fn is_star(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// What a `*` stands for; None: it is none, or leaves some out.
fn columns_of(item: &SelectItem, relations: &[(Ident, Vec<String>)]) -> Option<Vec<SelectItem>> {
    let is_plain = |options: &WildcardAdditionalOptions| {
        options.opt_except.is_none()
            && options.opt_exclude.is_none()
            && options.opt_replace.is_none()
            && options.opt_ilike.is_none()
            && options.opt_rename.is_none()
    };
    let of = |(name, columns): &(Ident, Vec<String>)| -> Vec<SelectItem> {
        let column = |column: &String| vec![name.clone(), Ident::with_quote('"', column)];
        columns.iter().map(|name| SelectItem::UnnamedExpr(Expr::CompoundIdentifier(column(name)))).collect()
    };
    match item {
        SelectItem::Wildcard(options) if is_plain(options) => Some(relations.iter().flat_map(of).collect()),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
            if is_plain(options) =>
        {
            let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
            relations.iter().find(|(relation, _)| plain(relation) == plain(name)).map(of)
        }
        _ => None,
    }
}
