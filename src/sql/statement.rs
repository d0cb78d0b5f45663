//! One statement's view of the warehouse: every table is resolved once, and all its uses see the same pin.

mod pins;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::catalog::TableProvider;
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, INFORMATION_SCHEMA_TABLES};
use datafusion::common::TableReference;
use datafusion::datasource::provider_as_source;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::Statement as DfStatement;
use datafusion::sql::sqlparser::ast::{Spanned, TableFactor};
use parking_lot::Mutex;

use super::aggregates;
use super::catalog::StatementCatalogs;
use super::chains::with_shallow_chains;
use super::checked::{CheckedArithmetic, SignedDifferences};
use super::deep_stack::{DeepStack, Levels};
use super::depth;
use super::distinct;
use super::doubles::{self, DoubleLiterals};
use super::escapes;
use super::from_first;
use super::functions;
use super::identifiers;
use super::names::{TableName, split_selector};
use super::operands::LosslessOperands;
use super::place::{self, Place};
use super::plain;
use super::planner::{ShownNames, TravelPlanner};
use super::selector::Selection;
use super::settings::Settings;
use super::system_tables;
use super::text_numbers;
use super::times::TimeTypes;
use super::travel::{self, Reference, References};
use super::view::SqlView;
use super::warehouse::Warehouse;
use super::zoned::{LocalTimes, WrittenTimes};
use crate::error::{Error, ErrorKind, Result};
use crate::notice::{Notice, NoticeKind};
use crate::query::{LakeTable, PoolBudget, QueryEnv, ScanLog};
use crate::snapshot::nearest::known_names;
use crate::snapshot::{Pin, SessionZone, Table};

use self::pins::Pins;
pub(crate) use self::pins::Used;

/// A database and a name in it.
pub(crate) type Key = (String, String);

/// The relations that `information_schema` goes through.
#[derive(Debug)]
pub(crate) enum Catalogue {
    /// These, which the statement names.
    Named(Vec<Key>),
    /// All there are; None: it cannot be read.
    All(BTreeMap<Key, Option<Arc<dyn TableProvider>>>),
}

/// Rules of statements of ours, beside [`plain::rules`].
const OWN_RULES: [&str; 5] =
    [LosslessOperands::NAME, WrittenTimes::NAME, LocalTimes::NAME, CheckedArithmetic::NAME, SignedDifferences::NAME];

/// Views inside views, at most.
const VIEW_DEPTH: usize = 16;

/// One statement.
#[derive(Debug)]
pub(crate) struct Statement {
    warehouse: Warehouse,
    settings: Arc<Settings>,
    zone: SessionZone,
    log: Arc<ScanLog>,
    /// State of the session without this statement's catalog.
    base: SessionState,
    references: Mutex<References>,
    shown: Arc<ShownNames>,
    tables: Mutex<BTreeMap<(String, String), Arc<Table>>>,
    /// Shared with the views inside: tables are resolved side by side, and each state once by whoever is first.
    pins: Arc<Pins>,
    used: Mutex<Vec<Used>>,
    providers: Mutex<BTreeMap<(String, String), Arc<dyn TableProvider>>>,
    misses: Mutex<BTreeMap<String, Error>>,
    notices: Mutex<Vec<Notice>>,
    /// What `information_schema` shows of the warehouse; set once the statement itself is planned.
    catalogue: Mutex<Option<Catalogue>>,
    /// Names given to scans so far: the optimizer takes scans of one name for the same rows.
    scans: Arc<AtomicUsize>,
    depth: usize,
    /// Words and signs of the views it reads which can nest.
    nesting_of_views: Arc<AtomicUsize>,
}

impl Statement {
    /// A statement of a session.
    pub(crate) fn new(
        warehouse: &Warehouse,
        settings: &Arc<Settings>,
        base: SessionState,
        log: Arc<ScanLog>,
    ) -> Result<Arc<Self>> {
        let zone = zone_of(&base)?;
        Ok(Arc::new(Self {
            warehouse: warehouse.clone(),
            settings: Arc::clone(settings),
            zone,
            log,
            base,
            references: Mutex::default(),
            shown: Arc::default(),
            tables: Mutex::default(),
            pins: Arc::default(),
            used: Mutex::default(),
            providers: Mutex::default(),
            misses: Mutex::default(),
            notices: Mutex::default(),
            catalogue: Mutex::default(),
            scans: Arc::default(),
            depth: 0,
            nesting_of_views: Arc::default(),
        }))
    }

    pub(crate) fn warehouse(&self) -> &Warehouse {
        &self.warehouse
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    pub(crate) fn zone(&self) -> &SessionZone {
        &self.zone
    }

    pub(crate) fn env(&self) -> &Arc<QueryEnv> {
        self.warehouse.env()
    }

    pub(crate) fn memory_pool(&self) -> Arc<dyn MemoryPool> {
        Arc::clone(&self.base.runtime_env().memory_pool)
    }

    /// Memory of the session, for counting.
    pub(crate) fn budget(&self) -> Arc<PoolBudget> {
        Arc::new(PoolBudget::new(&self.memory_pool(), "accounting"))
    }

    pub(crate) fn log(&self) -> &Arc<ScanLog> {
        &self.log
    }

    /// A name for a scan that no other scan of the statement has, views included.
    pub(crate) fn scan_name(&self, name: &str) -> TableReference {
        TableReference::bare(format!("{name}#{}", self.scans.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn notice(&self, notice: impl Into<Notice>) {
        let notice = notice.into();
        let mut notices = self.notices.lock();
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.notices.lock().clone()
    }

    /// Says that a table is left out of a list over many, and why.
    pub(crate) fn left_out(&self, name: String, error: &Error) {
        self.notice(NoticeKind::LeftOut { database: false, name, why: error.to_string() });
    }

    /// Says the same of a database.
    pub(crate) fn database_left_out(&self, name: String, error: &Error) {
        self.notice(NoticeKind::LeftOut { database: true, name, why: error.to_string() });
    }

    /// Looks at every relation for `information_schema`: what cannot be read is left out with a notice, and nothing counts
    /// as read by this statement.
    pub(crate) async fn look_at_all(self: &Arc<Self>, names: Vec<Key>) -> Catalogue {
        let inner = self.nested();
        let mut all = BTreeMap::new();
        for (database, name) in names {
            match inner.provider(&database, &name).await {
                Ok(Some(provider)) => drop(all.insert((database, name), Some(provider))),
                Ok(None) => {}
                Err(error) => {
                    self.left_out(format!("{database}.{name}"), &error);
                    all.insert((database, name), None);
                }
            }
        }
        Catalogue::All(all)
    }

    /// From now on, names are looked up by `information_schema` only.
    pub(crate) fn show(&self, catalogue: Catalogue) {
        *self.catalogue.lock() = Some(catalogue);
    }

    /// The names of a database that `information_schema` goes through, when they are not all.
    pub(crate) fn shown_names(&self, database: &str) -> Option<Vec<String>> {
        match self.catalogue.lock().as_ref()? {
            Catalogue::Named(names) => {
                Some(names.iter().filter(|(of, _)| of == database).map(|(_, name)| name.clone()).collect())
            }
            Catalogue::All(_) => None,
        }
    }

    /// What `information_schema` finds under a name, when it is that which asks: Some(None) where there is nothing that
    /// can be read.
    pub(crate) fn shown_relation(&self, database: &str, name: &str) -> Option<Option<Arc<dyn TableProvider>>> {
        let key = (database.to_string(), name.to_string());
        match self.catalogue.lock().as_ref()? {
            Catalogue::Named(_) => Some(self.providers.lock().get(&key).cloned()),
            Catalogue::All(all) => Some(all.get(&key).cloned().flatten()),
        }
    }

    /// How many words and signs of the views it reads can nest.
    pub(crate) fn nesting_of_views(&self) -> usize {
        self.nesting_of_views.load(Ordering::Relaxed)
    }

    /// How many pins were put to use so far.
    pub(crate) fn used_count(&self) -> usize {
        self.used.lock().len()
    }

    /// The pins of the statement, in order of first mention.
    pub(crate) fn used(&self) -> Vec<Used> {
        self.used.lock().clone()
    }

    /// The session's state with this statement's catalog and our rules of the language.
    pub(crate) fn state(self: &Arc<Self>) -> SessionState {
        let mut planners: Vec<_> = vec![TravelPlanner::for_statement(Arc::clone(&self.shown))];
        planners.extend(self.base.relation_planners().iter().filter(|planner| !TravelPlanner::is(planner)).cloned());
        let catalogs = StatementCatalogs::new(Arc::clone(self.base.catalog_list()), Arc::clone(self));
        let mut rules: Vec<_> = self
            .base
            .analyzer()
            .rules
            .iter()
            .filter(|rule| !plain::is_ours(rule.as_ref()))
            .filter(|rule| !OWN_RULES.contains(&rule.name()))
            .cloned()
            .collect();
        rules.push(Arc::new(LocalTimes));
        rules.extend(plain::rules(Some(Arc::clone(self))));
        rules.push(Arc::new(CheckedArithmetic));
        // before types are coerced
        rules.insert(0, Arc::new(LosslessOperands));
        rules.insert(0, Arc::new(SignedDifferences));
        rules.insert(0, Arc::new(WrittenTimes));
        let mut expressions: Vec<Arc<dyn ExprPlanner>> = vec![Arc::new(DoubleLiterals)];
        expressions.extend(self.base.expr_planners().iter().cloned());
        let mut builder = SessionStateBuilder::new_from_existing(self.base.clone());
        let types = TimeTypes(builder.type_planner().take());
        let mut state = builder
            .with_type_planner(Arc::new(types))
            .with_session_id(self.base.session_id().to_string())
            .with_expr_planners(expressions)
            .with_relation_planners(planners)
            .with_catalog_list(Arc::new(catalogs))
            .with_analyzer_rules(rules)
            .with_optimizer_rules(with_shallow_chains(self.base.optimizers()))
            .build();
        // there is no registry that would refuse
        let registered = aggregates::register(&mut state);
        debug_assert!(registered.is_ok(), "{registered:?}");
        let parser = &mut state.config_mut().options_mut().sql_parser;
        parser.parse_float_as_decimal = true;
        parser.enable_ident_normalization = true;
        parser.collect_spans = true;
        state
    }

    /// Plans a parsed statement. `state` must come from [`Statement::state`].
    pub(crate) async fn plan(self: &Arc<Self>, state: &SessionState, statement: DfStatement) -> Result<LogicalPlan> {
        let mut statement = statement;
        from_first::fix(&mut statement);
        let found = travel::rename(&mut statement, state, &self.zone, &self.scans)?;
        for (renamed, reference) in &found {
            match reference {
                Reference::Table { named: Some((bare, _)), .. } => self.shown.put(renamed, bare),
                Reference::Table { base, .. } => self.shown.put(renamed, base),
                Reference::Function(_) => {}
            }
        }
        let written = found.clone();
        self.references.lock().extend(found);
        // a place in the text of a view is none in the statement that reads it
        let places = if self.depth == 0 { place::relations(&statement) } else { BTreeMap::new() };
        // resolve first: the columns decide how unquoted names are read
        let mut known = identifiers::Known::default();
        for reference in state.resolve_table_references(&statement)? {
            let place = places.get(reference.table()).copied().unwrap_or_default();
            if let Some(provider) = self.resolve(state, reference).await.map_err(|error| place.attach(error))? {
                known.columns(&provider.schema());
            }
        }
        for (renamed, reference) in written {
            // what resolving found to be a table that is really called so is shown as it is written
            if let Reference::Table { base, named: Some((bare, _)), .. } = reference
                && self.shown.get(&renamed).as_deref() == Some(bare.as_str())
            {
                travel::requalify(&mut statement, &base, &bare);
            }
        }
        identifiers::fix(&mut statement, known);
        escapes::fix(&mut statement);
        distinct::fix(&mut statement);
        // which is built anew as a chain where it was one
        depth::level(&mut statement, Levels::ALL)?;
        doubles::fix(&mut statement);
        match state.statement_to_plan(statement).await {
            Ok(plan) => {
                // a place in the text of a view is none in the statement that reads it
                text_numbers::check(&plan, self.depth == 0)?;
                Ok(plan)
            }
            Err(error) => Err(self.explain(error).await),
        }
    }

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
        let parts = super::statements::parts(name);
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

    async fn resolve(&self, state: &SessionState, reference: TableReference) -> Result<Option<Arc<dyn TableProvider>>> {
        let catalog = &state.config_options().catalog;
        let resolved = reference.resolve(&catalog.default_catalog, &catalog.default_schema);
        let Some(provider) = state.catalog_list().catalog(&resolved.catalog) else {
            let known = state.catalog_list().catalog_names();
            let missed = Error::not_found(format!("there is no catalog '{}'", resolved.catalog))
                .with_code("CatalogNotFound")
                .with_hint(known_names("catalogs", &resolved.catalog, known.iter().map(String::as_str)));
            self.misses.lock().insert(resolved.table.to_string(), missed);
            return Ok(None);
        };
        let Some(schema) = provider.schema(&resolved.schema) else { return Ok(None) };
        Ok(schema.table(&resolved.table).await?)
    }

    /// The error of planning in our words: a table that is not there, a column that came later.
    async fn explain(&self, error: datafusion::error::DataFusionError) -> Error {
        let (place, column) = place::of(&error);
        let place = if self.depth == 0 { place } else { Place::default() };
        let text = error.strip_backtrace();
        let missed =
            self.misses.lock().iter().find(|(name, _)| text.contains(&format!("{name}'"))).map(|(_, e)| copy(e));
        if let Some(missed) = missed {
            return place.attach(missed);
        }
        if let Some(column) = column {
            let shown = match &column.relation {
                Some(relation) => format!("{relation}.{}", column.name),
                None => column.name.clone(),
            };
            let column = column.name;
            let mut error =
                Error::invalid(format!("there is no column '{shown}'")).with_code("ColumnNotFound").with_source(error);
            error = place.attach(error);
            for used in self.used() {
                if let Some(reason) = used.pin.explain_missing_column(&column).await {
                    return error.with_hint(reason);
                }
            }
            let names: Vec<String> = self
                .providers
                .lock()
                .values()
                .flat_map(|p| p.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>())
                .collect();
            if !names.is_empty() {
                error = error.with_hint(known_names("columns", &column, names.iter().map(String::as_str)));
            }
            return error;
        }
        if let Some(function) = place::unknown_function(&error) {
            return place.attach(functions::not_found(&function, &self.base)).with_source(error);
        }
        place.attach(Error::from_datafusion(error))
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
        let made = system_tables::is_global(database, bare) || database == INFORMATION_SCHEMA;
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
    pub(crate) fn lake_table(&self, pin: Arc<Pin>, view: crate::query::LakeView) -> Result<LakeTable> {
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
        inner.used().into_iter().for_each(|used| self.mark_used(used));
        for notice in inner.notices() {
            self.notice(notice);
        }
        result
    }

    /// A statement inside of this one: the same pins, names of its own.
    pub(super) fn nested(self: &Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            warehouse: self.warehouse.clone(),
            settings: Arc::clone(&self.settings),
            zone: self.zone,
            log: Arc::clone(&self.log),
            base: self.base.clone(),
            references: Mutex::default(),
            shown: Arc::default(),
            tables: Mutex::new(self.tables.lock().clone()),
            pins: Arc::clone(&self.pins),
            used: Mutex::default(),
            providers: Mutex::default(),
            misses: Mutex::default(),
            notices: Mutex::default(),
            catalogue: Mutex::default(),
            scans: Arc::clone(&self.scans),
            depth: self.depth + 1,
            nesting_of_views: Arc::clone(&self.nesting_of_views),
        })
    }
}

pub(crate) fn cannot_travel(name: &str) -> Error {
    Error::invalid(format!("'{name}' is no table of the warehouse and cannot travel in time")).with_code("CannotTravel")
}

/// The session's zone.
pub(crate) fn zone_of(state: &SessionState) -> Result<SessionZone> {
    match state.config_options().execution.time_zone.as_deref() {
        None | Some("") => Ok(SessionZone::utc()),
        Some(text) => SessionZone::parse(text),
    }
}

fn copy(error: &Error) -> Error {
    let mut copy = Error::new(error.kind(), error.message()).with_code(error.code());
    for (name, value) in error.context() {
        copy = copy.with_context(name, value);
    }
    match error.hint() {
        Some(hint) => copy.with_hint(hint),
        None => copy,
    }
}
