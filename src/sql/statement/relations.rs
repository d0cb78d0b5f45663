//! What names stand for in a statement: views and tables of the session, tables at what is said of them, system tables,
//! functions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::catalog::TableProvider;
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, INFORMATION_SCHEMA_TABLES};
use datafusion::common::TableReference;
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{Spanned, TableFactor};

use super::{Statement, copy};
use crate::error::{Error, ErrorKind, Result};
use crate::query::{LakeTable, LakeView};
use crate::snapshot::nearest::known_names;
use crate::snapshot::{Pin, Table};
use crate::sql::deep_stack::DeepStack;
use crate::sql::functions;
use crate::sql::names::{TableName, split_selector};
use crate::sql::place::Place;
use crate::sql::selector::Selection;
use crate::sql::statements;
use crate::sql::system_tables;
use crate::sql::travel::{self, Reference};
use crate::sql::view::SqlView;

/// Views inside views, at most.
const VIEW_DEPTH: usize = 16;

impl Statement {
    /// The relation that a table factor outside of a query names.
    pub(crate) async fn relation(
        self: &Arc<Self>,
        state: &SessionState,
        factor: TableFactor,
    ) -> Result<Arc<dyn TableProvider>> {
        let place = Place::from(factor.span().start);
        self.relation_of(state, factor).await.map_err(|error| place.attach(error))
    }

    async fn relation_of(
        self: &Arc<Self>,
        state: &SessionState,
        factor: TableFactor,
    ) -> Result<Arc<dyn TableProvider>> {
        let mut factor = factor;
        let found = travel::rename_factor(&mut factor, state, &self.zone, &self.scans)?;
        self.references.lock().extend(found);
        let TableFactor::Table { name, .. } = &factor else {
            return Err(Error::invalid(format!("{factor} is not the name of a table")).with_code("Syntax"));
        };
        let parts = statements::parts(name);
        let reference = match parts.as_slice() {
            [table] => TableReference::bare(table.as_str()),
            [schema, table] => TableReference::partial(schema.as_str(), table.as_str()),
            [catalog, schema, table] => TableReference::full(catalog.as_str(), schema.as_str(), table.as_str()),
            _ => return Err(Error::invalid(format!("{name} is not the name of a table")).with_code("Syntax")),
        };
        if let Some(provider) = self.resolve(state, reference).await? {
            return Ok(provider);
        }
        let missed = parts.last().and_then(|last| self.misses.lock().get(last).map(copy));
        Err(missed.unwrap_or_else(|| Error::not_found(format!("there is no table {name}")).with_code("TableNotFound")))
    }

    /// A scan of a table under its own name.
    pub(crate) fn scan(&self, table: LakeTable) -> Result<LogicalPlan> {
        let own = table.pin().table.ident().table.clone();
        Ok(LogicalPlanBuilder::scan(TableReference::bare(own), provider_as_source(Arc::new(table)), None)?.build()?)
    }

    /// What a name of a database stands for in this statement; None when it is nothing we know.
    pub(crate) async fn provider(
        self: &Arc<Self>,
        database: &str,
        name: &str,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let key = (database.to_string(), name.to_string());
        if let Some(known) = self.providers.lock().get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(provider) = self.find(database, name).await? else {
            // planning will speak of the whole name
            if let Some((base, _)) = split_selector(name) {
                let mut misses = self.misses.lock();
                if let Some(missed) = misses.get(base).map(copy) {
                    misses.insert(name.to_string(), missed);
                }
            }
            return Ok(None);
        };
        self.providers.lock().insert(key, Arc::clone(&provider));
        Ok(Some(provider))
    }

    /// What a name of a catalog that is no warehouse stands for, when this statement made it up.
    pub(crate) async fn foreign(
        self: &Arc<Self>,
        database: &str,
        name: &str,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let reference = self.references.lock().get(name).cloned();
        match reference {
            Some(Reference::Function(_)) => self.provider(database, name).await,
            // a table that is really called `a@b`, or none
            Some(Reference::Table { named: Some(_), selection, .. }) if selection == Selection::none() => Ok(None),
            Some(Reference::Table { base, .. }) => Err(cannot_travel(&base)),
            None => Ok(None),
        }
    }

    /// The name that a relation had before this statement gave it another.
    pub(crate) fn written(&self, name: &str) -> String {
        match self.references.lock().get(name) {
            Some(Reference::Table { base, .. }) => base.clone(),
            _ => name.to_string(),
        }
    }

    async fn find(self: &Arc<Self>, database: &str, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let reference = self.references.lock().get(name).cloned();
        match reference {
            Some(Reference::Function(call)) => return Ok(Some(functions::provider(self, database, &call).await?)),
            Some(Reference::Table { base, named, selection }) => {
                return self.travelled(database, name, &base, named, &selection).await;
            }
            None => {}
        }
        if let Some(local) = self.local(database, name).await? {
            return Ok(Some(local));
        }
        if database == system_tables::GLOBAL_DATABASE {
            return system_tables::global(self, name).map(Some);
        }
        // a table of the warehouse that is called so comes first
        if system_tables::is_journal(database, name) && self.table(database, name).await.is_err() {
            return system_tables::journal(self).map(Some);
        }
        if let Some((base, suffix)) = split_selector(name)
            && !self.is_really_called(database, name).await
        {
            let selection = Selection::parse_suffix(suffix, &self.zone)?;
            return self.lake(database, base, &selection).await;
        }
        self.lake(database, name, &Selection::none()).await
    }

    /// Whether a name with `@` in it is the whole name of a table, or of a system table of one.
    pub(crate) async fn is_really_called(&self, database: &str, name: &str) -> bool {
        let parts = TableName::parse(name);
        parts.known_system() && self.table(database, &parts.data_table()).await.is_ok()
    }

    /// A view or temporary table of the session.
    async fn local(self: &Arc<Self>, database: &str, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(local) = self.settings.local(database, name) else { return Ok(None) };
        match local.downcast_ref::<SqlView>() {
            Some(view) => self.view(view).await.map(Some),
            None => Ok(Some(local)),
        }
    }

    /// A name with a selector, in it or behind it. A table may really be called `a@b`.
    async fn travelled(
        self: &Arc<Self>,
        database: &str,
        renamed: &str,
        base: &str,
        named: Option<(String, Selection)>,
        selection: &Selection,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        if *selection == Selection::none()
            && let Some(local) = self.local(database, base).await?
        {
            self.shown.put(renamed, base);
            return Ok(Some(local));
        }
        let bare = named.as_ref().map_or(base, |(bare, _)| bare.as_str());
        let made = system_tables::is_global(database, bare)
            || system_tables::is_journal(database, bare) && self.table(database, bare).await.is_err()
            || database == INFORMATION_SCHEMA;
        if made || self.settings.local(database, bare).is_some() {
            return Err(cannot_travel(bare));
        }
        let Some((bare, said)) = named else { return self.lake(database, base, selection).await };
        if self.is_really_called(database, base).await {
            self.shown.put(renamed, base);
            return self.lake(database, base, selection).await;
        }
        if selection.chooses() {
            return Err(Error::invalid(format!("{base} has a version in its name and a time travel clause"))
                .with_code("ConflictingSelectors")
                .with_hint("say it once; name the table twice to compare two versions"));
        }
        self.lake(database, &bare, &Selection { options: selection.options.clone(), ..said }).await
    }

    async fn lake(
        self: &Arc<Self>,
        database: &str,
        name: &str,
        selection: &Selection,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let parts = TableName::parse(name);
        let system = parts.system.clone();
        if !parts.known_system() {
            let system = parts.system.as_deref().unwrap_or_default();
            return Err(Error::not_found(format!("there is no system table ${system}"))
                .with_code("TableNotFound")
                .with_hint(known_names("system tables", system, system_tables::names())));
        }
        let table = match self.table(database, &parts.data_table()).await {
            Ok(table) => table,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.misses.lock().insert(name.to_string(), error);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let (table, selection) = self.on_branch(table, parts, selection).await?;
        let provider = match &system {
            None => functions::table_or_changes(self, &table, &selection, false).await?,
            Some(system) => system_tables::provider(self, &table, system, &selection).await?,
        };
        Ok(Some(provider))
    }

    /// A `branch` option names another branch of the table, as `$branch_x` in its name does.
    pub(crate) async fn on_branch(
        &self,
        table: Arc<Table>,
        name: TableName,
        selection: &Selection,
    ) -> Result<(Arc<Table>, Selection)> {
        let mut selection = selection.clone();
        let Some(branch) = selection.options.remove("branch").map(|branch| branch.trim().to_string()) else {
            return Ok((table, selection));
        };
        if branch == table.ident().branch {
            return Ok((table, selection));
        }
        if let Some(named) = name.branch {
            return Err(Error::invalid(format!("the name says branch '{named}', the option branch '{branch}'"))
                .with_code("ConflictingSelectors")
                .with_context("table", table.name()));
        }
        Ok((table.branch(&branch).await?, selection))
    }

    /// A table of the warehouse; a name without upper case also finds the only one that differs in case.
    pub(crate) async fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let key = (database.to_string(), name.to_string());
        if let Some(table) = self.tables.lock().get(&key) {
            return Ok(Arc::clone(table));
        }
        let catalog = self.warehouse.catalog();
        let table = match catalog.table(database, name).await {
            Err(error) if error.code() == "TableNotFound" && name == name.to_lowercase() => {
                let bare = TableName::parse(name);
                let names = catalog.list_tables(database).await?;
                let mut same = names.iter().filter(|n| n.to_lowercase() == bare.table);
                match (same.next(), same.next()) {
                    (Some(one), None) => {
                        catalog.table(database, &TableName { table: one.clone(), ..bare }.data_table()).await?
                    }
                    _ => return Err(error),
                }
            }
            Err(error) if error.code() == "DatabaseNotFound" && database == INFORMATION_SCHEMA => {
                return Err(Error::not_found(format!("there is no table '{name}' in {database}"))
                    .with_code("TableNotFound")
                    .with_hint(known_names("tables", name, INFORMATION_SCHEMA_TABLES.iter().copied())));
            }
            other => other?,
        };
        self.tables.lock().insert(key, Arc::clone(&table));
        Ok(table)
    }

    /// A table's provider at a pin.
    pub(crate) fn lake_table(&self, pin: Arc<Pin>, view: LakeView) -> Result<LakeTable> {
        Ok(LakeTable::try_view(pin, Arc::clone(self.env()), view)?.with_log(Arc::clone(&self.log)))
    }

    /// Plans a view with the pins of this statement.
    async fn view(self: &Arc<Self>, view: &SqlView) -> Result<Arc<dyn TableProvider>> {
        if self.depth >= VIEW_DEPTH {
            return Err(Error::invalid("views are nested too deep, or a view uses itself").with_code("ViewTooDeep"));
        }
        let inner = self.nested();
        self.nesting_of_views.fetch_add(view.nesting, Ordering::Relaxed);
        let result = DeepStack::of(view.nesting).wait(view.plan(&inner)).await;
        // what the view read belongs to this statement
        self.take_in(&inner);
        result
    }
}

fn cannot_travel(name: &str) -> Error {
    Error::invalid(format!("'{name}' is no table of the warehouse and cannot travel in time")).with_code("CannotTravel")
}
