//! Statements that are ours alone: what is pinned, shown, described, set and explained file by file.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::TableType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::{execute_stream, projection::ProjectionExec};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart, Spanned, TableFactor};
use futures::TryStreamExt;

use super::journal::Looked;
use super::{Planned, Run, Session, check_database, rows};
use crate::error::{Error, ErrorKind, Result};
use crate::notice::Notice;
use crate::query::{LakeTable, ScanLog};
use crate::scan::ScanProgress;
use crate::sql::cells::{Cell, Kind, batch, schema};
use crate::sql::deep_stack::DeepStack;
use crate::sql::names::{TableName, split_selector};
use crate::sql::place::Place;
use crate::sql::result::StatementResult;
use crate::sql::settings::OptionName;
use crate::sql::statements::{Command, describe, explain_files, name_of, pin, show};
use crate::sql::system_tables;
use crate::storage::env::now_millis;

impl Session {
    /// Carries out a statement that is ours alone.
    pub(super) async fn command(
        &self,
        command: Command,
        notices: Vec<Notice>,
        progress: Arc<ScanProgress>,
        looked: &Looked,
    ) -> Result<StatementResult> {
        let run = self.begin(ScanLog::watched(Arc::clone(&progress)), notices)?;
        let batch = match command {
            Command::Statement(_) => return Err(Error::internal("a plain statement came as a command")),
            Command::ExplainFiles(statement) => {
                return self.explain_files(*statement, run.statement.notices(), progress).await;
            }
            Command::Pin(command) => return self.pin(&run, *command).await,
            Command::Wait(command) => return self.wait(&run, command, looked).await,
            Command::Reconcile(asked) => return self.reconcile_rows(&run, &asked).await,
            Command::Unpin(target) => return self.unpin(&run, target).await,
            Command::ShowPins => {
                let held: Vec<_> = self.settings().pins.read().values().cloned().collect();
                for choice in self.session_choices() {
                    run.statement.notice(choice.notice());
                }
                pin::show(&held, run.statement.zone(), now_millis()).await?.rows
            }
            Command::ShowDatabases { like } => show::databases(&self.databases().await?, like.as_deref())?,
            Command::ShowTables { database, like } => self.show_tables(database, like.as_deref()).await?,
            Command::ShowPartitions(factor) => return self.show_partitions(&run, factor).await,
            Command::ShowCreateTable(factor) => {
                let named = name_of(&factor).and_then(|name| self.in_warehouse(name));
                let provider = self.relation(&run, factor).await?;
                let lake = provider.downcast_ref::<LakeTable>();
                match (lake, provider.get_table_definition()) {
                    (Some(table), _) => describe::create_table(table.pin())?,
                    (None, Some(text)) => {
                        let name = named.map_or(String::new(), |(database, name)| format!("{database}.{name}"));
                        describe::create_view(&name, text)?
                    }
                    (None, None) => {
                        return Err(Error::invalid("only tables of the warehouse have a CREATE TABLE statement")
                            .with_code("TableNotFound")
                            .with_hint("DESCRIBE shows its columns"));
                    }
                }
            }
            Command::Describe(factor) => describe::columns(&self.relation(&run, factor).await?)?,
            Command::Use(name) => {
                let found = async {
                    let database = self.database_of(&name)?;
                    check_database(&self.warehouse, &database).await?;
                    Ok(database)
                };
                let database = found.await.map_err(|error| Place::from(name.span().start).attach(error))?;
                self.context.state_ref().write().config_mut().options_mut().catalog.default_schema = database;
                return Ok(self.done("USE", Vec::new(), run.statement.notices()));
            }
            Command::SetOption { name, value } => {
                let name = self.option_name(&run, &name).await?;
                name.check(&value, run.statement.zone())?;
                self.settings().set_option(name, Some(&value));
                return Ok(self.done("SET", Vec::new(), run.statement.notices()));
            }
            Command::ResetOption(Some(name)) => {
                // the table may be gone meanwhile
                let name = self.option_name(&run, &name).await.or_else(|_| OptionName::parse(&name))?;
                self.settings().set_option(name, None);
                return Ok(self.done("RESET", Vec::new(), run.statement.notices()));
            }
            Command::ResetOption(None) => {
                self.settings().reset_options();
                return Ok(self.done("RESET", Vec::new(), run.statement.notices()));
            }
            Command::ShowOption(name) => {
                let schema = schema(&[("name", Kind::Text, true), ("value", Kind::Text, false)]);
                let value = self.settings().option(&self.option_name(&run, &name).await?);
                batch(&schema, &[vec![Cell::text(&name), Cell::opt_text(value)]])?
            }
        };
        Ok(rows(batch, &run))
    }

    /// An option by its full name; the table in it has to be there, or the option would silently do nothing.
    async fn option_name(&self, run: &Run, name: &str) -> Result<OptionName> {
        let mut name = OptionName::parse(name)?;
        if let Some((database, table)) = &name.table {
            let ident = run.statement.table(database, table).await?.ident().clone();
            name.table = Some((ident.database, ident.table));
        }
        Ok(name)
    }

    async fn explain_files(
        &self,
        statement: DfStatement,
        notices: Vec<Notice>,
        progress: Arc<ScanProgress>,
    ) -> Result<StatementResult> {
        let run = self.begin(ScanLog::explaining_files(progress), notices)?;
        let Planned::Query(plan) = self.plan(&run, statement).await? else {
            return Err(Error::invalid("EXPLAIN FILES takes a query").with_code("Syntax"));
        };
        let planned = async {
            let optimized = run.state.optimize(&plan)?;
            let physical = run.state.query_planner().create_physical_plan(&optimized, &run.state).await?;
            // a scan that was folded away reports nothing, and an empty answer would not tell why
            for table in explain_files::unread(&plan, &optimized)? {
                if let Some(table) = table.downcast_ref::<LakeTable>() {
                    table.report_unread(&run.state).await?;
                }
            }
            let mut reports = run.statement.log().reports();
            explain_files::tell(&mut reports, &physical);
            Ok::<_, Error>(reports)
        };
        let reports = DeepStack::of(run.statement.nesting_of_views()).wait(planned).await?;
        let batch = explain_files::rows(&reports, run.statement.zone())?;
        let rules = reports.iter().flat_map(|report| report.decisions.iter().map(|one| one.rule.clone())).collect();
        Ok(StatementResult { rules, ..rows(batch, &run) })
    }

    async fn show_tables(&self, database: Option<ObjectName>, like: Option<&str>) -> Result<RecordBatch> {
        let (database, place) = match database {
            Some(name) => {
                let place = Place::from(name.span().start);
                (self.database_of(&name).map_err(|error| place.attach(error))?, place)
            }
            None => (self.database(), Place::default()),
        };
        let mut tables: Vec<(String, &str)> = Vec::new();
        match self.warehouse.catalog().list_tables(&database).await {
            Ok(names) => tables.extend(names.into_iter().map(|name| (name, "table"))),
            Err(error) if database == system_tables::GLOBAL_DATABASE && error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(place.attach(error)),
        }
        if database == system_tables::GLOBAL_DATABASE {
            let global = system_tables::global_tables(&self.warehouse);
            tables.extend(global.into_iter().map(|name| (name.to_string(), "table")));
        }
        for name in self.settings().local_names(&database) {
            let view = self.settings().local(&database, &name).is_some_and(|t| t.table_type() == TableType::View);
            tables.push((name, if view { "view" } else { "temporary" }));
        }
        tables.sort();
        show::tables(&database, &tables, like)
    }

    async fn show_partitions(&self, run: &Run, factor: TableFactor) -> Result<StatementResult> {
        let mut factor = factor;
        if let TableFactor::Table { name, .. } = &mut factor
            && let Some(last) = name.0.last_mut()
            && let ObjectNamePart::Identifier(identifier) = last
        {
            let (base, suffix) = match split_selector(&identifier.value) {
                Some((base, suffix)) => (base.to_string(), format!("@{suffix}")),
                None => (identifier.value.clone(), String::new()),
            };
            if TableName::parse(&base).system.is_some() {
                return Err(Error::invalid("a system table has no partitions")
                    .with_code("TableNotFound")
                    .with_hint("name the table itself: SHOW PARTITIONS t"));
            }
            let base = if identifier.quote_style.is_some() { base } else { base.to_lowercase() };
            identifier.value = format!("{base}$partitions{suffix}");
            identifier.quote_style = Some('"');
        }
        let provider = self.relation(run, factor).await?;
        let physical = provider.scan(&run.state, None, &[], None).await?;
        let columns = ["partition", "record_count", "file_size_in_bytes", "file_count", "last_update_time"];
        let schema = physical.schema();
        let wanted = columns
            .iter()
            .map(|name| {
                let index = schema.index_of(name)?;
                let column = Column::new(name, index);
                Ok((Arc::new(column) as Arc<dyn PhysicalExpr>, (*name).to_string()))
            })
            .collect::<Result<Vec<_>>>()?;
        let plan = ProjectionExec::try_new(wanted, physical)?;
        let stream = execute_stream(Arc::new(plan), Arc::new(TaskContext::from(&run.state)))?;
        let batches: Vec<RecordBatch> = stream.try_collect().await?;
        let batch = match batches.into_iter().next() {
            Some(batch) => batch,
            None => return Err(Error::internal("the partitions came without a batch")),
        };
        if batch.column(0).as_string::<i32>().iter().any(|p| p == Some("")) {
            return Err(Error::invalid("the table is not partitioned")
                .with_code("NotPartitioned")
                .with_hint("SELECT * FROM t$buckets counts its files and rows"));
        }
        Ok(rows(batch, run))
    }
}
