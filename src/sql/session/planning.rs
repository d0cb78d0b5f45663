//! A statement of DataFusion's: planned, and carried out where it is no query.

use std::sync::Arc;

use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, SetVariable, Statement as PlanStatement};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, Set, Statement as SqlStatement};

use super::{Run, Session};
use crate::error::{Error, Result};
use crate::query::work::Work;
use crate::snapshot::SessionZone;
use crate::sql::constant::text;
use crate::sql::limits;
use crate::sql::refused::check_copy;
use crate::sql::statement::{Catalogue, Key};
use crate::sql::statements::{describe, refuse};
use crate::sql::travel;
use crate::sql::view::SqlView;
use crate::sql::writes;

/// What is left to do.
pub(super) enum Planned {
    /// To compute these rows.
    Query(LogicalPlan),
    /// Nothing; what it answers.
    Done(String),
}

impl Session {
    /// Plans a statement of DataFusion's; what is no query is carried out.
    pub(super) async fn plan(&self, run: &Run, statement: DfStatement) -> Result<Planned> {
        refuse::check(&statement, |name| self.is_local(name), |name| self.is_view(name))?;
        check_copy(&statement, &run.state, &self.warehouse)?;
        let mut statement = statement;
        let mut view = None;
        if let DfStatement::Statement(inner) = &mut statement {
            match inner.as_mut() {
                SqlStatement::CreateView(create) => {
                    if let Some((database, name)) = self.in_warehouse(&create.name) {
                        self.check_home(&database).await?;
                        self.check_free(run, &database, &name, create.or_replace, create.if_not_exists).await?;
                        if create.if_not_exists && self.settings().local(&database, &name).is_some() {
                            return Ok(Planned::Done("CREATE VIEW".to_string()));
                        }
                        create.if_not_exists = false;
                        let rest = run.view.clone().unwrap_or_else(|| format!("AS {}", create.query));
                        let text = describe::view_statement(&database, &name, &rest);
                        view = Some((database, name, text));
                        let (catalog, current) = {
                            let state = self.context.state_ref();
                            let state = state.read();
                            let options = &state.config_options().catalog;
                            (options.default_catalog.clone(), options.default_schema.clone())
                        };
                        travel::qualify(&mut create.query, &catalog, &current);
                    }
                }
                SqlStatement::Set(Set::SetTimeZone { value, .. }) => {
                    return self.set_time_zone(value).await;
                }
                // DataFusion has no word for it; ours always live in the session only
                SqlStatement::CreateTable(create) => {
                    create.temporary = false;
                    if let Some((database, _)) = self.in_warehouse(&create.name) {
                        self.check_home(&database).await?;
                    }
                }
                _ => {}
            }
        }
        if let DfStatement::CreateExternalTable(create) = &statement
            && let Some((database, _)) = self.in_warehouse(&create.name)
        {
            self.check_home(&database).await?;
        }
        let original = view.as_ref().map(|_| statement.clone());
        let asked = Catalogued::of(&run.state, &statement);
        if asked.is_some() {
            for (database, error) in self.catalog.refresh().await? {
                run.statement.database_left_out(database, &error);
            }
        }
        let word = done_word(&statement);
        let plan = run.statement.plan(&run.state, statement).await?;
        writes::check(&plan, &self.warehouse)?;
        match asked {
            Some(Catalogued::Relations) => {
                let catalogue = run.statement.look_at_all(self.catalog.names()).await;
                run.statement.show(catalogue);
            }
            Some(Catalogued::Named(names)) => run.statement.show(Catalogue::Named(names)),
            Some(Catalogued::Names) | None => {}
        }
        if let (Some((database, name, text)), Some(create)) = (view, original) {
            let LogicalPlan::Ddl(DdlStatement::CreateView(planned)) = &plan else {
                return Err(Error::internal("a view was planned as something else"));
            };
            let view = SqlView {
                create,
                catalog: self.context.state_ref().read().config_options().catalog.default_catalog.clone(),
                database: self.database(),
                schema: Arc::clone(planned.input.schema().inner()),
                text,
                nesting: run.nesting,
            };
            self.settings().put_local(&database, &name, Arc::new(view));
            return Ok(Planned::Done(word));
        }
        match plan {
            LogicalPlan::Ddl(_) | LogicalPlan::Statement(_) => {
                let before = self.context.state_ref().read().config_options().execution.time_zone.clone();
                let mut plan = plan;
                if let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) = &mut plan {
                    // with the rules of this statement: the session that carries it out has fewer
                    create.input = Arc::new(run.state.optimize(&create.input)?);
                    let physical = run.state.create_physical_plan(&create.input).await?;
                    limits::check(&Work::of(&physical), run.state.config_options())?;
                }
                self.context.execute_logical_plan(plan).await?;
                // a zone nobody knows would fail every later statement
                if let Err(error) = self.zone() {
                    self.context.state_ref().write().config_mut().options_mut().execution.time_zone = before;
                    return Err(error);
                }
                Ok(Planned::Done(word))
            }
            plan => {
                refuse::no_columns(&plan)?;
                Ok(Planned::Query(plan))
            }
        }
    }

    async fn set_time_zone(&self, value: &SqlExpr) -> Result<Planned> {
        let name = match value {
            SqlExpr::Identifier(name) if name.value.eq_ignore_ascii_case("default") => "UTC".to_string(),
            SqlExpr::Identifier(name) => name.value.clone(),
            other => text(other).map(str::to_string).ok_or_else(|| {
                Error::invalid(format!("{other} is no time zone"))
                    .with_code("UnknownTimeZone")
                    .with_hint("write SET TIME ZONE '+08:00' or SET TIME ZONE 'Asia/Shanghai'")
            })?,
        };
        let value = SessionZone::parse(&name)?.name();
        let variable = "datafusion.execution.time_zone".to_string();
        let set = LogicalPlan::Statement(PlanStatement::SetVariable(SetVariable { variable, value }));
        self.context.execute_logical_plan(set).await?;
        Ok(Planned::Done("SET".to_string()))
    }
}

/// What a statement asks `information_schema` for.
enum Catalogued {
    /// Nothing that opens a table.
    Names,
    /// Every relation there is.
    Relations,
    /// These (`SHOW COLUMNS`).
    Named(Vec<Key>),
}

impl Catalogued {
    fn of(state: &SessionState, statement: &DfStatement) -> Option<Self> {
        let catalog = &state.config_options().catalog;
        let references = state.resolve_table_references(statement).ok()?.into_iter();
        let all: Vec<_> =
            references.map(|one| one.resolve(&catalog.default_catalog, &catalog.default_schema)).collect();
        let asked = || all.iter().filter(|one| one.schema.as_ref() == "information_schema");
        asked().next()?;
        match statement {
            DfStatement::Statement(inner) if matches!(inner.as_ref(), SqlStatement::ShowColumns { .. }) => {
                let named = all.iter().filter(|one| one.schema.as_ref() != "information_schema");
                Some(Self::Named(named.map(|one| (one.schema.to_string(), one.table.to_string())).collect()))
            }
            DfStatement::Statement(inner) if matches!(inner.as_ref(), SqlStatement::ShowVariable { .. }) => {
                Some(Self::Names)
            }
            _ if asked().any(|one| matches!(one.table.as_ref(), "tables" | "views" | "columns")) => {
                Some(Self::Relations)
            }
            _ => Some(Self::Names),
        }
    }
}

/// What a statement without rows answers.
fn done_word(statement: &DfStatement) -> String {
    let text = match statement {
        DfStatement::CreateExternalTable(_) => return "CREATE EXTERNAL TABLE".to_string(),
        DfStatement::Reset(_) => return "RESET".to_string(),
        other => other.to_string(),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["CREATE", "OR", "REPLACE", what, ..] => format!("CREATE {what}"),
        [first @ ("CREATE" | "DROP"), second, ..] => format!("{first} {second}"),
        [first, ..] => (*first).to_string(),
        [] => String::new(),
    }
}
