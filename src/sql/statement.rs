//! One statement's view of the warehouse: every table is resolved once, and all its uses see the same pin.

mod pins;
mod relations;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as DfStatement;
use parking_lot::Mutex;

use super::deep_stack::Levels;
use super::depth;
use super::distinct;
use super::doubles;
use super::escapes;
use super::from_first;
use super::functions;
use super::identifiers;
use super::natural::{self, Columns};
use super::place::{self, Place};
use super::planner::ShownNames;
use super::same_names;
use super::settings::Settings;
use super::spellings;
use super::stars;
use super::statements::refuse;
use super::text_numbers;
use super::travel::{self, Reference, References};
use super::using_names;
use super::warehouse::Warehouse;
use crate::error::{Error, Result};
use crate::notice::{Notice, NoticeKind};
use crate::query::{PoolBudget, QueryEnv, ScanLog};
use crate::snapshot::nearest::known_names;
use crate::snapshot::{SessionZone, Table};

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

    /// Plans a parsed statement. `state` must come from [`Statement::state`].
    pub(crate) async fn plan(self: &Arc<Self>, state: &SessionState, statement: DfStatement) -> Result<LogicalPlan> {
        let mut statement = statement;
        refuse::forms(&mut statement)?;
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
        // behind time travel, which has tuples of its own
        spellings::fix(&mut statement);
        let columns = self.columns(&mut statement);
        natural::fix(&mut statement, &columns);
        stars::fix(&mut statement, &self.shown, &columns);
        using_names::fix(&mut statement, &self.shown, &columns)?;
        escapes::fix(&mut statement);
        distinct::fix(&mut statement);
        // which is built anew as a chain where it was one
        depth::level(&mut statement, Levels::ALL)?;
        doubles::fix(&mut statement);
        match parted(state, statement).await? {
            Ok(plan) => {
                // a place in the text of a view is none in the statement that reads it
                text_numbers::check(&plan, self.depth == 0)?;
                same_names::shown(plan)
            }
            Err(error) => Err(self.explain(error).await),
        }
    }

    /// The columns of the tables that were looked up for this statement.
    fn columns(&self, statement: &mut DfStatement) -> Columns {
        let providers = self.providers.lock();
        let names = |provider: &Arc<dyn TableProvider>| {
            provider.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()
        };
        Columns::of(statement, providers.iter().map(|((_, name), provider)| (name.clone(), names(provider))))
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
            let valid = place::valid_columns(&error);
            if let Some(two) = same_names::ambiguous(&column, &valid) {
                return place.attach(two.with_source(error));
            }
            let mut error =
                Error::invalid(format!("there is no column '{shown}'")).with_code("ColumnNotFound").with_source(error);
            error = place.attach(error);
            for used in self.used() {
                if let Some(reason) = used.pin.explain_missing_column(&column).await {
                    return error.with_hint(reason);
                }
            }
            let elsewhere: BTreeSet<String> = valid
                .iter()
                .filter(|other| other.name == column)
                .filter_map(|other| Some(format!("'{}.{}'", other.relation.as_ref()?.table(), other.name)))
                .filter(|other| *other != format!("'{shown}'"))
                .collect();
            if !elsewhere.is_empty() {
                let elsewhere = elsewhere.into_iter().collect::<Vec<_>>().join(", ");
                return error.with_hint(format!("did you mean {elsewhere}?"));
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

    /// Takes what an inner statement read and told for its own.
    pub(crate) fn take_in(&self, inner: &Self) {
        inner.used().into_iter().for_each(|used| self.mark_used(used));
        inner.notices().into_iter().for_each(|notice| self.notice(notice));
    }

    /// A statement inside of this one: the same pins, names of its own.
    pub(crate) fn nested(self: &Arc<Self>) -> Arc<Self> {
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

/// The plan of a statement whose columns of one name are parted: those of `*` are known when it fails to have them twice.
async fn parted(
    state: &SessionState,
    statement: DfStatement,
) -> Result<std::result::Result<LogicalPlan, DataFusionError>> {
    let mut found = same_names::Found::default();
    let mut first = None;
    loop {
        let mut parted = statement.clone();
        same_names::part(&mut parted, &found)?;
        match state.statement_to_plan(parted).await {
            Ok(plan) => return Ok(Ok(plan)),
            Err(error) => {
                let news = found.learn(&error);
                let first = first.get_or_insert(error);
                if !news {
                    let error = std::mem::replace(first, DataFusionError::Internal(String::new()));
                    return Ok(Err(error));
                }
            }
        }
    }
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
