//! Columns of one name in one list: `SELECT id, id`, `SELECT *, amount * 2 AS amount`, `SELECT ts, ts::DATE`.
//!
//! DataFusion takes names for the columns themselves, and refuses a list that has one twice; of a derived table it calls
//! the second `id:1`, and takes `id` for the first. Here such columns are given names that nobody can write, and the answer
//! shows them under their own again. Which one is meant by the name alone is nobody's to say, so that is refused.
//!
//! So are views, tables and files with columns of one name: they are asked for by it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, SchemaError, TableReference};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{DdlStatement, Expr as PlanExpr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, SetQuantifier, Spanned, Value, VisitorMut,
};

use super::place::Place;
use super::walk::walk;
use crate::error::{Error, Result};

/// Parts a name from the number that tells it from others: invisible, and in no name that is written.
const MARK: char = '\u{2063}';

/// What planning found to be there twice.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Names that `*` has too.
    beside_all: BTreeSet<String>,
    /// Expressions that are called the same, whatever they are written as.
    expressions: bool,
}

impl Found {
    /// Adds the name that an error tells; whether that is news.
    pub(crate) fn learn(&mut self, error: &DataFusionError) -> bool {
        match twice(error) {
            Some(name) => self.beside_all.insert(name) || !std::mem::replace(&mut self.expressions, true),
            None => false,
        }
    }
}

/// Names the columns apart that would have one name.
///
/// # Errors
/// `AmbiguousColumn`: ORDER BY names one of them.
pub(crate) fn part(statement: &mut DfStatement, found: &Found) -> Result<()> {
    match walk(statement, &mut Lists { found, depth: 0, marks: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The name that an error of planning finds twice in a list, when it is that.
fn twice(error: &DataFusionError) -> Option<String> {
    match error {
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => twice(inner),
        DataFusionError::Collection(errors) => errors.first().and_then(twice),
        DataFusionError::Plan(text) => {
            let (_, rest) = text.split_once("require unique expression names but the expression \"")?;
            let (first, _) = rest.split_once("\" at position ")?;
            let name = first.rsplit_once(" AS ").map_or(first, |(_, alias)| alias);
            Some(name.rsplit('.').next().unwrap_or(name).to_string())
        }
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::AmbiguousReference { field } => Some(field.name.clone()),
            SchemaError::DuplicateUnqualifiedField { name } => Some(name.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The columns of a query under the names they are shown by.
///
/// # Errors
/// `DuplicateName`: a view, table or file would have a name twice. `AmbiguousColumn`: a name that a derived table has twice.
pub(crate) fn shown(plan: LogicalPlan) -> Result<LogicalPlan> {
    let names = Names::of(&plan)?;
    names.check(&plan)?;
    let stored = match &plan {
        LogicalPlan::Copy(copy) => Some(&copy.input),
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) => Some(&create.input),
        LogicalPlan::Ddl(DdlStatement::CreateView(create)) => Some(&create.input),
        LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) | LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => {
            return Ok(plan);
        }
        _ => None,
    };
    let own = |plan: &LogicalPlan| -> Vec<String> {
        plan.schema().fields().iter().map(|field| names.own(field.name()).to_string()).collect()
    };
    if let Some(stored) = stored {
        let own = own(stored);
        for (at, name) in own.iter().enumerate() {
            if let Some(first) = own.iter().take(at).position(|other| other == name) {
                return Err(doubled(name, first, at));
            }
        }
        return Ok(plan);
    }
    let own = own(&plan);
    let is_shown = |(field, own): (&std::sync::Arc<arrow::datatypes::Field>, &String)| field.name() == own;
    if plan.schema().fields().iter().zip(&own).all(is_shown) {
        return Ok(plan);
    }
    let columns = plan.schema().iter().zip(&own).enumerate().map(|(at, ((table, field), own))| {
        let column = PlanExpr::Column(Column::from((table, field)));
        let several = names.own.values().any(|name| name == own);
        if several { column.alias_qualified(Some(TableReference::bare(format!("{MARK}{at}"))), own) } else { column }
    });
    let columns: Vec<PlanExpr> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

/// The error for two columns of one name, by their places.
pub(crate) fn doubled(name: &str, first: usize, second: usize) -> Error {
    Error::invalid(format!("two columns are called '{name}', number {} and {}", first + 1, second + 1))
        .with_code("DuplicateName")
        .with_hint("give each column a name of its own: id AS a")
}

/// The error for a name that two columns of a list have; None when a column is called otherwise.
pub(crate) fn ambiguous(name: &str, valid: &[Column]) -> Option<Error> {
    let marked = |column: &Column| column.name.split_once(MARK).is_some_and(|(own, _)| own == name);
    valid.iter().any(marked).then(|| two_of(name))
}

fn two_of(name: &str) -> Error {
    Error::invalid(format!("there are two columns '{name}'"))
        .with_code("AmbiguousColumn")
        .with_hint(format!("give each a name of its own where they are selected: id AS {name}_1"))
}

struct Lists<'a> {
    found: &'a Found,
    /// Queries around.
    depth: usize,
    marks: usize,
}

impl VisitorMut for Lists<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        // a list by itself is shown, and DataFusion tells `a.x` from `b.x` there
        let is_answer = self.depth == 0;
        self.depth += 1;
        let is_set = matches!(query.body.as_ref(), SetExpr::SetOperation { .. });
        let parted = self.lists(&mut query.body, is_answer && !is_set, false);
        let Some(order) = &query.order_by else { return ControlFlow::Continue(()) };
        if let OrderByKind::Expressions(order) = &order.kind {
            for sort in order {
                self.by_number(&sort.expr, &mut query.body);
                if let Expr::Identifier(name) = &sort.expr
                    && parted.contains(&plain(name))
                {
                    return ControlFlow::Break(Place::from(name.span.start).attach(two_of(&plain(name))));
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

impl Lists<'_> {
    /// Parts the lists of a query; names that are different columns of its answer are returned. The columns of `later`
    /// lists of a set operation are called as those of the first.
    fn lists(&mut self, body: &mut SetExpr, is_answer: bool, later: bool) -> BTreeSet<String> {
        match body {
            SetExpr::Select(select) if later => {
                self.nameless(select);
                BTreeSet::new()
            }
            SetExpr::Select(select) => self.list(select, is_answer),
            SetExpr::Query(query) if later && query.order_by.is_none() => self.lists(&mut query.body, false, later),
            SetExpr::Query(query) if later => {
                // DISTINCT orders by what it lists
                if let SetExpr::Select(select) = query.body.as_mut()
                    && select.distinct.is_none()
                {
                    self.nameless(select);
                }
                BTreeSet::new()
            }
            SetExpr::SetOperation { left, right, set_quantifier, .. } => {
                use SetQuantifier::{AllByName, ByName, DistinctByName};
                let by_name = matches!(set_quantifier, ByName | AllByName | DistinctByName);
                let parted = self.lists(left, false, later && !by_name);
                self.lists(right, false, !by_name);
                parted
            }
            _ => BTreeSet::new(),
        }
    }

    fn list(&mut self, select: &mut Select, is_answer: bool) -> BTreeSet<String> {
        let has_all = select.projection.iter().any(is_all);
        let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, item) in select.projection.iter().enumerate() {
            if let Some(name) = name_of(item) {
                found.entry(name.key).or_default().push(at);
            }
        }
        let mut parted = BTreeSet::new();
        if self.found.expressions {
            for item in &mut select.projection {
                if let SelectItem::UnnamedExpr(expr) = &*item
                    && !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
                {
                    self.mark(item);
                }
            }
        }
        for (key, places) in found {
            let beside_all = has_all && self.found.beside_all.contains(&key);
            let items: Vec<&SelectItem> = places.iter().filter_map(|at| select.projection.get(*at)).collect();
            if items.len() < 2 && !beside_all || is_answer && !beside_all && are_apart(&items) {
                continue;
            }
            let same = items.windows(2).all(|pair| expr_of(pair[0]) == expr_of(pair[1]));
            let casts = items.iter().filter(|item| is_cast(item)).count();
            // what is the same under either name, or is the only one that is called so
            let kept = if beside_all {
                None
            } else if same {
                places.first().copied()
            } else {
                let of_name = || places.iter().zip(&items).find(|(_, item)| !is_cast(item)).map(|(at, _)| *at);
                if casts + 1 == items.len() { of_name() } else { None }
            };
            if kept.is_none() && !key.contains('(') {
                parted.insert(key.clone());
            }
            for at in places {
                if Some(at) != kept
                    && let Some(item) = select.projection.get_mut(at)
                {
                    self.mark(item);
                }
            }
        }
        parted
    }

    /// `ORDER BY 1`, where the first of the list has no name: of an aggregate, DataFusion looks for the expression that is
    /// computed above it among its columns.
    fn by_number(&mut self, sort: &Expr, body: &mut SetExpr) {
        let (Expr::Value(number), SetExpr::Select(select)) = (sort, body) else { return };
        if let Value::Number(number, _) = &number.value
            && let Some(at) = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1))
            && !select.projection.iter().take(at).any(is_all)
            && let Some(item @ SelectItem::UnnamedExpr(_)) = select.projection.get_mut(at)
            && !matches!(item, SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)))
        {
            self.mark(item);
        }
    }

    fn nameless(&mut self, select: &mut Select) {
        if select.projection.len() < 2 {
            return;
        }
        for item in &mut select.projection {
            if matches!(item, SelectItem::UnnamedExpr(_)) {
                self.mark(item);
            }
        }
    }

    fn mark(&mut self, item: &mut SelectItem) {
        self.marks += 1;
        let Some(name) = name_of(item) else { return };
        let (expr, span) = match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => (expr.clone(), expr.span()),
            _ => return,
        };
        let alias = Ident { value: format!("{}{MARK}{}", name.shown, self.marks), quote_style: Some('"'), span };
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
}

fn is_all(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

fn is_cast(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(Expr::Cast { .. }))
}

/// Columns of several relations, each once.
fn are_apart(items: &[&SelectItem]) -> bool {
    let mut texts = BTreeSet::new();
    items.iter().all(|item| match item {
        SelectItem::UnnamedExpr(expr @ Expr::CompoundIdentifier(_)) => texts.insert(expr.to_string().to_lowercase()),
        _ => false,
    })
}

fn expr_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// What an item of a list is called.
struct Name {
    /// The same for items that would be called the same.
    key: String,
    /// Empty: by its own expression.
    shown: String,
}

fn name_of(item: &SelectItem) -> Option<Name> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(Name { key: plain(alias), shown: plain(alias) }),
        SelectItem::UnnamedExpr(expr) => Some(called(expr)),
        _ => None,
    }
}

/// As DataFusion calls an expression, as far as that can be twice.
fn called(expr: &Expr) -> Name {
    let own = |key: &str| Name { key: key.to_string(), shown: String::new() };
    match expr {
        Expr::Identifier(name) => Name { key: plain(name), shown: plain(name) },
        Expr::CompoundIdentifier(parts) => {
            let name = parts.last().map(plain).unwrap_or_default();
            Name { key: name.clone(), shown: name }
        }
        Expr::Cast { expr, .. } | Expr::Nested(expr) => called(expr),
        Expr::InSubquery { negated, .. } => own(if *negated { "NOT IN (" } else { "IN (" }),
        Expr::Exists { negated, .. } => own(if *negated { "NOT EXISTS (" } else { "EXISTS (" }),
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first().and_then(name_of) {
                Some(name) => name,
                None => own(&expr.to_string()),
            },
            _ => own(&expr.to_string()),
        },
        other => own(&format!("({other}")),
    }
}

fn plain(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// The names in a plan that are not shown.
#[derive(Default)]
struct Names {
    /// To each the name it stands for.
    own: BTreeMap<String, String>,
    /// Derived tables with a name that two of their columns have.
    doubled: BTreeSet<(TableReference, String)>,
}

impl Names {
    fn of(plan: &LogicalPlan) -> DfResult<Self> {
        let mut names = Self::default();
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Projection(projection) = node {
                for expr in &projection.expr {
                    if let PlanExpr::Alias(Alias { expr, name, .. }) = expr {
                        names.alias(expr, name);
                    }
                }
            }
            if let LogicalPlan::SubqueryAlias(of) = node
                && let LogicalPlan::Projection(inside) = of.input.as_ref()
            {
                let twice = inside.expr.iter().filter_map(|expr| match expr {
                    PlanExpr::Alias(Alias { expr, name, .. }) => numbered(expr, name),
                    _ => None,
                });
                names.doubled.extend(twice.map(|name| (of.alias.clone(), name.to_string())));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(names)
    }

    fn alias(&mut self, expr: &PlanExpr, name: &str) {
        let own = match name.split_once(MARK) {
            Some(("", _)) => expr.schema_name().to_string(),
            Some((own, _)) => own.to_string(),
            None => match numbered(expr, name) {
                Some(own) => own.to_string(),
                None => return,
            },
        };
        self.own.insert(name.to_string(), own);
    }

    fn own<'a>(&'a self, name: &'a str) -> &'a str {
        self.own.get(name).map_or(name, String::as_str)
    }

    /// Refuses a name that stands for two columns of a derived table. Those that `*` stands for were written nowhere.
    fn check(&self, plan: &LogicalPlan) -> Result<()> {
        if self.doubled.is_empty() {
            return Ok(());
        }
        let mut found = None;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    if let PlanExpr::Column(column) | PlanExpr::OuterReferenceColumn(_, column) = part
                        && let (Some(table), Some(span)) = (&column.relation, column.spans().first())
                        && self.doubled.contains(&(table.clone(), column.name.clone()))
                    {
                        let place = Place::at(span.start.line, span.start.column);
                        found.get_or_insert_with(|| place.attach(two_of(&column.name)));
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        found.map_or(Ok(()), Err)
    }
}

/// The name that DataFusion gave a number: `id:1`.
fn numbered<'a>(expr: &'a PlanExpr, name: &str) -> Option<&'a str> {
    let PlanExpr::Column(column) = expr else { return None };
    let number = name.strip_prefix(column.name.as_str())?.strip_prefix(':')?;
    number.bytes().all(|digit| digit.is_ascii_digit()).then_some(column.name.as_str())
}
