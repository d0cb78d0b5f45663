//! From clauses in a statement's tree to names: `t AT (VERSION => 3)` becomes the relation `"t@v3"`, which the
//! statement's catalog resolves and the relation planner shows under the user's own name.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, Statement as DfStatement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, Spanned, TableAlias, TableFactor, TableVersion, VisitMut,
    VisitorMut,
};

use super::constant::{instant, integer, text, watermark};
use super::functions;
use super::names::split_selector;
use super::selector::Selection;
use super::walk::walk;
use crate::error::{Error, Result};
use crate::snapshot::{PinRequest, SessionZone};
use crate::spec::CommitIdentifier;

/// What a renamed relation stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reference {
    /// A table at a selection.
    Table {
        /// The last part of the name as it is looked up.
        base: String,
        /// The name and the selector in it, should there be no table that is really called `t@v3`.
        named: Option<(String, Selection)>,
        /// What a clause or hint said about it.
        selection: Selection,
    },
    /// A table function of ours.
    Function(functions::Call),
}

/// Relations renamed by [`rename`], by their new last part.
pub(crate) type References = BTreeMap<String, Reference>;

/// Renames every relation of the statement that says which state it means, and calls of our table functions.
pub(crate) fn rename(
    statement: &mut DfStatement,
    state: &SessionState,
    zone: &SessionZone,
    scans: &AtomicUsize,
) -> Result<References> {
    let mut visitor = Renamer { state, zone, scans, ctes: Vec::new(), found: References::new() };
    visit(statement, &mut visitor)?;
    Ok(visitor.found)
}

/// The same for one table outside of a query.
pub(crate) fn rename_factor(
    factor: &mut TableFactor,
    state: &SessionState,
    zone: &SessionZone,
    scans: &AtomicUsize,
) -> Result<References> {
    let mut visitor = Renamer { state, zone, scans, ctes: Vec::new(), found: References::new() };
    visitor.factor(factor)?;
    Ok(visitor.found)
}

/// Gives the tables of a view their whole names, under their own as alias: what it reads must not depend on where the
/// session is when the view is read.
pub(crate) fn qualify(query: &mut Query, catalog: &str, database: &str) {
    let mut visitor = Qualifier { catalog, database, ctes: Vec::new() };
    let _ = query.visit(&mut visitor);
}

/// Columns of a relation that was written `"t@v3"` are columns of `t`, as which it is shown: `"t@v3".id`, `"t@v3".*`.
pub(crate) fn requalify(statement: &mut DfStatement, written: &str, shown: &str) {
    let mut visitor = Requalifier { written, shown };
    let _ = walk(statement, &mut visitor);
}

struct Requalifier<'a> {
    written: &'a str,
    shown: &'a str,
}

impl Requalifier<'_> {
    fn fix(&self, relation: &mut Ident) {
        if normal(relation) == self.written {
            relation.value = self.shown.to_string();
            relation.quote_style = Some('"');
        }
    }
}

impl VisitorMut for Requalifier<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [.., relation, _] = parts.as_mut_slice()
        {
            self.fix(relation);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let Some(ObjectNamePart::Identifier(relation)) = name.0.last_mut()
            {
                self.fix(relation);
            }
        }
        ControlFlow::Continue(())
    }
}

struct Qualifier<'a> {
    catalog: &'a str,
    database: &'a str,
    ctes: Vec<String>,
}

impl VisitorMut for Qualifier<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        // as for renaming: a name that is whole already is left alone by the second visit
        if let Some(with) = &mut query.with {
            for cte in &mut with.cte_tables {
                if !with.recursive {
                    cte.visit(self)?;
                }
                self.ctes.push(normal(&cte.alias.name));
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let Some(with) = &query.with {
            let left = self.ctes.len().saturating_sub(with.cte_tables.len());
            self.ctes.truncate(left);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return ControlFlow::Continue(()) };
        let [ObjectNamePart::Identifier(own)] = name.0.as_slice() else { return ControlFlow::Continue(()) };
        let own = own.clone();
        if self.ctes.contains(&normal(&own)) {
            return ControlFlow::Continue(());
        }
        if alias.is_none() {
            let mut shown = own.clone();
            if let Some((base, _)) = split_selector(&own.value) {
                shown.value = base.to_string();
            }
            *alias = Some(TableAlias { explicit: true, name: shown, columns: Vec::new(), at: None });
        }
        let quoted = |text: &str| Ident::with_quote('"', text);
        *name = ObjectName::from(vec![quoted(self.catalog), quoted(self.database), own]);
        ControlFlow::Continue(())
    }
}

/// A name as it is looked up.
fn normal(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

fn finish(flow: ControlFlow<Box<Error>>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

fn visit(statement: &mut DfStatement, visitor: &mut Renamer<'_>) -> Result<()> {
    match statement {
        DfStatement::Statement(statement) => finish(statement.visit(visitor)),
        DfStatement::Explain(explain) => visit(&mut explain.statement, visitor),
        DfStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => finish(query.visit(visitor)),
            CopyToSource::Relation(name) => visitor.named(name),
        },
        DfStatement::CreateExternalTable(_) | DfStatement::Reset(_) => Ok(()),
    }
}

struct Renamer<'a> {
    state: &'a SessionState,
    zone: &'a SessionZone,
    scans: &'a AtomicUsize,
    ctes: Vec<String>,
    found: References,
}

impl Renamer<'_> {
    /// Takes a name that carries its own selector.
    fn named(&mut self, name: &mut ObjectName) -> Result<()> {
        let Some(ObjectNamePart::Identifier(last)) = name.0.last_mut() else { return Ok(()) };
        if split_selector(&last.value).is_some() {
            self.put(last, Selection::none())?;
        }
        Ok(())
    }

    /// Gives a relation a name that tells what is meant, and remembers that.
    fn put(&mut self, last: &mut Ident, selection: Selection) -> Result<()> {
        let base = normal(last);
        // a tag's name keeps its case, the table's is read as any unquoted name
        let named = match split_selector(&last.value) {
            Some((bare, suffix)) => {
                let bare = Ident { value: bare.to_string(), ..last.clone() };
                Some((normal(&bare), Selection::parse_suffix(suffix, self.zone)?))
            }
            None => None,
        };
        let renamed = match &named {
            Some((bare, named)) if selection == Selection::none() => format!("{bare}@{}", named.suffix()),
            _ => format!("{base}@{}", selection.suffix()),
        };
        let reference = Reference::Table { base, named, selection };
        let same = |found: &References, name: &String| found.get(name).is_none_or(|known| *known == reference);
        let mut name = renamed.clone();
        let mut twin = 1;
        while !same(&self.found, &name) {
            twin += 1;
            name = format!("{renamed}#{twin}");
        }
        last.value = name.clone();
        last.quote_style = Some('"');
        self.found.insert(name, reference);
        Ok(())
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Result<()> {
        let place = factor.span().start;
        let result = self.factor_here(factor);
        // the place of the relation, where nothing nearer is known
        result.map_err(|error| match place.line {
            0 => error,
            _ => error.with_context("line", place.line).with_context("column", place.column),
        })
    }

    fn factor_here(&mut self, factor: &mut TableFactor) -> Result<()> {
        if let Some(call) = functions::Call::from_factor(factor, self.state, self.zone)? {
            let index = self.scans.fetch_add(1, Ordering::Relaxed);
            let renamed = format!("{}()#{index}", call.function.name());
            if let TableFactor::Table { name, args, alias, .. } = factor {
                if alias.is_none() {
                    *alias = Some(functions::alias(call.function.name()));
                }
                *args = None;
                let span = name.span();
                *name = ObjectName::from(vec![Ident { span, ..Ident::with_quote('"', renamed.clone()) }]);
            }
            self.found.insert(renamed, Reference::Function(call));
            return Ok(());
        }
        refuse_unread(factor)?;
        let TableFactor::Table { name, version, with_hints, args, .. } = factor else { return Ok(()) };
        // seen before: a WITH query is visited twice
        if let Some(ObjectNamePart::Identifier(last)) = name.0.last()
            && last.quote_style.is_some()
            && self.found.contains_key(&last.value)
        {
            return Ok(());
        }
        if args.is_some() {
            if version.is_some() {
                return Err(
                    Error::invalid(format!("{name} is a function and cannot travel in time")).with_code("CannotTravel")
                );
            }
            return Ok(());
        }
        let mut selection = match version.take() {
            Some(version) => self.clause(version)?,
            None => Selection::none(),
        };
        for hint in with_hints.drain(..) {
            let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = &hint else {
                return Err(Error::invalid(format!("{hint} is not an option: write WITH ('key' = 'value')")));
            };
            let (Some(key), Some(value)) = (text(left), text(right)) else {
                return Err(Error::invalid(format!("{hint} is not an option: write WITH ('key' = 'value')")));
            };
            selection.options.insert(key.to_string(), value.to_string());
        }
        let single = name.0.len() == 1;
        let shown = name.to_string();
        let Some(ObjectNamePart::Identifier(last)) = name.0.last_mut() else { return Ok(()) };
        if single && self.ctes.contains(&normal(last)) {
            if selection != Selection::none() {
                return Err(Error::invalid(format!("{shown} is a WITH query and cannot travel in time"))
                    .with_code("CannotTravel")
                    .with_hint("put the clause behind the tables inside of it"));
            }
            return Ok(());
        }
        if selection == Selection::none() && split_selector(&last.value).is_none() {
            return Ok(());
        }
        self.put(last, selection.check()?)
    }

    fn clause(&self, version: TableVersion) -> Result<Selection> {
        let request = match version {
            TableVersion::VersionAsOf(expr) => self.version(&expr)?,
            TableVersion::TimestampAsOf(expr) | TableVersion::ForSystemTimeAsOf(expr) => {
                PinRequest::TimestampMillis(instant(self.state, &expr, self.zone)?)
            }
            TableVersion::Function(Expr::Function(function)) => {
                let before = function.name.to_string().eq_ignore_ascii_case("before");
                let FunctionArguments::List(list) = function.args else {
                    return Err(unknown_clause(before));
                };
                return self.arguments(before, &list.args);
            }
            other => {
                return Err(Error::unsupported(format!("the clause {other} is not known"))
                    .with_code("UnknownClause")
                    .with_hint("changes of a table are read with paimon_changes('db.t', 1, 5) or paimon_delta(…)"));
            }
        };
        Ok(Selection { request, options: BTreeMap::new() })
    }

    fn version(&self, expr: &Expr) -> Result<PinRequest> {
        if let Some(id) = integer(expr) {
            return Ok(PinRequest::SnapshotId(id));
        }
        match text(expr) {
            Some(text) => Ok(PinRequest::Version(text.to_string())),
            None if expr.to_string().bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(Error::invalid(format!("{expr} is larger than any snapshot id"))
                    .with_code("BadSelector")
                    .with_hint("snapshot ids are at most 9223372036854775807; t$snapshots lists those there are"))
            }
            None => Err(Error::invalid(format!("{expr} is no version: it is written as it is, and is no expression"))
                .with_code("BadSelector")
                .with_hint("write a snapshot id such as 3 or a tag such as 'eod'")),
        }
    }

    /// `AT (…)` and `BEFORE (…)`.
    pub(super) fn arguments(&self, before: bool, arguments: &[FunctionArg]) -> Result<Selection> {
        let mut selection = Selection::none();
        let mut said = false;
        for argument in arguments {
            let FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expr), .. } = argument else {
                return Err(unknown_clause(before));
            };
            let name = name.value.to_uppercase();
            if name == "OPTIONS" {
                let text = text(expr).ok_or_else(|| unknown_clause(before))?;
                selection.options = serde_json::from_str(text)
                    .map_err(|_| Error::invalid("OPTIONS takes a JSON object of strings").with_code("BadSelector"))?;
                continue;
            }
            if std::mem::replace(&mut said, true) {
                return Err(Error::invalid("one clause names two versions").with_code("ConflictingSelectors"));
            }
            selection.request = match (before, name.as_str()) {
                (false, "VERSION" | "SNAPSHOT" | "SNAPSHOT_ID") => self.version(expr)?,
                (false, "TAG") => match text(expr) {
                    Some(tag) => PinRequest::Tag(tag.to_string()),
                    None => return Err(Error::invalid("TAG takes a quoted name").with_code("BadSelector")),
                },
                (false, "TIMESTAMP") => PinRequest::TimestampMillis(instant(self.state, expr, self.zone)?),
                (false, "WATERMARK") => watermark(self.state, expr, self.zone)?,
                (_, "COMMIT") => {
                    let (user, identifier) = commit(expr)?;
                    if before {
                        PinRequest::BeforeCommit { user, identifier }
                    } else {
                        PinRequest::Commit { user, identifier }
                    }
                }
                _ => return Err(unknown_clause(before)),
            };
        }
        if !said && selection.options.is_empty() {
            return Err(unknown_clause(before));
        }
        Ok(selection)
    }
}

/// Refuses what the parser knows about a table and the planner would drop without a word.
fn refuse_unread(factor: &TableFactor) -> Result<()> {
    let TableFactor::Table { name, sample, with_ordinality, partitions, json_path, index_hints, .. } = factor else {
        return Ok(());
    };
    let (what, hint) = if sample.is_some() {
        ("TABLESAMPLE", "sample with WHERE random() < 0.1, or with LIMIT")
    } else if *with_ordinality {
        ("WITH ORDINALITY", "number the rows with row_number() OVER (ORDER BY …)")
    } else if !partitions.is_empty() {
        ("PARTITION (…)", "choose partitions with WHERE")
    } else if json_path.is_some() || !index_hints.is_empty() {
        ("a path or index hint", "leave it out")
    } else {
        return Ok(());
    };
    Err(Error::unsupported(format!("{what} behind {name} is not known")).with_code("UnknownClause").with_hint(hint))
}

/// Reads `AT (…)` arguments outside of a query.
pub(crate) fn selection_of(version: TableVersion, state: &SessionState, zone: &SessionZone) -> Result<Selection> {
    let scans = AtomicUsize::new(0);
    let renamer = Renamer { state, zone, scans: &scans, ctes: Vec::new(), found: References::new() };
    renamer.clause(version)?.check()
}

fn commit(expr: &Expr) -> Result<(String, i64)> {
    let wrong = || {
        Error::invalid(format!("{expr} is no commit"))
            .with_code("BadSelector")
            .with_hint("write COMMIT => ('commit-user', 120), or ('commit-user', 'batch') for commits of batch jobs")
    };
    let Expr::Tuple(parts) = expr else { return Err(wrong()) };
    let [user, identifier] = parts.as_slice() else { return Err(wrong()) };
    let identifier = integer(identifier).or_else(|| Some(CommitIdentifier::parse(text(identifier)?)?.0));
    match (text(user), identifier) {
        (Some(user), Some(identifier)) => Ok((user.to_string(), identifier)),
        _ => Err(wrong()),
    }
}

fn unknown_clause(before: bool) -> Error {
    let error =
        Error::invalid(if before { "BEFORE takes a commit" } else { "AT takes one version" }).with_code("BadSelector");
    error.with_hint(if before {
        "write BEFORE (COMMIT => ('user', 120))"
    } else {
        "write AT (VERSION => 3), AT (TAG => 'x'), AT (TIMESTAMP => '…'), AT (WATERMARK => '…') or \
         AT (COMMIT => ('user', 120))"
    })
}

impl VisitorMut for Renamer<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        // a WITH query is not in scope inside of itself: visit it before its name is known; the second visit finds
        // nothing left to rename
        if let Some(with) = &mut query.with {
            for cte in &mut with.cte_tables {
                if !with.recursive {
                    cte.visit(self)?;
                }
                let name = &cte.alias.name;
                self.ctes.push(if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() });
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(with) = &query.with {
            let left = self.ctes.len().saturating_sub(with.cte_tables.len());
            self.ctes.truncate(left);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        match self.factor(factor) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}
