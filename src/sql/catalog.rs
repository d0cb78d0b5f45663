//! The warehouse as a DataFusion catalog: one that any session can use, and the overlay of one statement.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SessionState, SessionStateBuilder};
use parking_lot::RwLock;

use super::plain::PlainTable;
use super::settings::Settings;
use super::statement::{Key, Statement};
use super::view::SqlView;
use super::warehouse::Warehouse;
use crate::error::{Error, Result};
use crate::query::ScanLog;

/// Databases and tables as last listed: DataFusion asks for names without waiting.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    databases: RwLock<Vec<(String, Vec<String>)>>,
}

impl Listing {
    fn databases(&self) -> Vec<String> {
        self.databases.read().iter().map(|(name, _)| name.clone()).collect()
    }

    fn tables(&self, database: &str) -> Vec<String> {
        let known = self.databases.read();
        known.iter().find(|(name, _)| name == database).map(|(_, tables)| tables.clone()).unwrap_or_default()
    }
}

/// A warehouse in a session.
#[derive(Debug, Clone)]
pub(crate) struct LakeCatalog {
    warehouse: Warehouse,
    settings: Arc<Settings>,
    listing: Arc<Listing>,
    /// The session it is registered in, for its time zone and memory.
    session: Weak<RwLock<SessionState>>,
}

impl LakeCatalog {
    /// The warehouse; its names are not listed yet.
    pub(crate) fn new(warehouse: &Warehouse, settings: Arc<Settings>, session: Weak<RwLock<SessionState>>) -> Self {
        Self { warehouse: warehouse.clone(), settings, listing: Arc::default(), session }
    }

    /// A statement of a session that is not ours.
    pub(crate) fn statement(&self, state: SessionState) -> Result<Arc<Statement>> {
        Statement::new(&self.warehouse, &self.settings, state, ScanLog::new())
    }

    /// A name of a session that is not ours, alone.
    async fn plain(&self, database: &str, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let local = self.settings.local(database, name);
        let named = match local {
            Some(local) if !local.is::<SqlView>() => return Ok(Some(local)),
            Some(view) => Some(view),
            None => {
                let state = self.session.upgrade().map(|state| state.read().clone());
                let state = state.unwrap_or_else(|| SessionStateBuilder::new().build());
                self.statement(state)?.provider(database, name).await?
            }
        };
        Ok(named.map(|named| Arc::new(PlainTable::new(self, database, name, named)) as _))
    }

    /// Lists databases and tables again. Returns the databases that could not be listed, and why.
    pub(crate) async fn refresh(&self) -> Result<Vec<(String, Error)>> {
        let (mut all, mut closed) = (Vec::new(), Vec::new());
        for database in self.warehouse.catalog().list_databases().await? {
            let tables = match self.warehouse.catalog().list_tables(&database).await {
                Ok(tables) => tables,
                Err(error) => {
                    closed.push((database.clone(), error));
                    Vec::new()
                }
            };
            all.push((database, tables));
        }
        *self.listing.databases.write() = all;
        Ok(closed)
    }

    /// Tables of a database as last listed, and what the session has there.
    fn names_of(&self, database: &str) -> Vec<String> {
        let mut names = self.listing.tables(database);
        names.extend(self.settings.local_names(database));
        names.sort();
        names.dedup();
        names
    }

    /// All names, as last listed, with their database.
    pub(crate) fn names(&self) -> Vec<Key> {
        let databases = self.listing.databases().into_iter();
        databases.flat_map(|of| self.names_of(&of).into_iter().map(move |name| (of.clone(), name))).collect()
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    pub(crate) fn warehouse(&self) -> &Warehouse {
        &self.warehouse
    }
}

impl CatalogProvider for LakeCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.listing.databases()
    }

    // any name may be a database: looking would need storage, asking for one of its tables tells
    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        Some(Arc::new(LakeSchema { catalog: self.clone(), database: name.to_string(), statement: None }))
    }
}

/// A database.
#[derive(Debug)]
struct LakeSchema {
    catalog: LakeCatalog,
    database: String,
    statement: Option<Arc<Statement>>,
}

#[async_trait]
impl SchemaProvider for LakeSchema {
    fn table_names(&self) -> Vec<String> {
        let shown = self.statement.as_ref().and_then(|statement| statement.shown_names(&self.database));
        shown.unwrap_or_else(|| self.catalog.names_of(&self.database))
    }

    async fn table(&self, name: &str) -> DfResult<Option<Arc<dyn TableProvider>>> {
        match &self.statement {
            Some(statement) => match statement.shown_relation(&self.database, name) {
                Some(shown) => Ok(shown),
                None => Ok(statement.provider(&self.database, name).await?),
            },
            None => Ok(self.catalog.plain(&self.database, name).await?),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.catalog.settings.local(&self.database, name).is_some()
            || self.catalog.listing.tables(&self.database).iter().any(|known| known == name)
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> DfResult<Option<Arc<dyn TableProvider>>> {
        if self.catalog.listing.tables(&self.database).contains(&name) {
            return Err(Error::invalid(format!("the warehouse has a table {}.{name}", self.database))
                .with_code("TableExists")
                .with_hint("choose another name for the view or temporary table")
                .into());
        }
        Ok(self.catalog.settings.put_local(&self.database, &name, table))
    }

    fn deregister_table(&self, name: &str) -> DfResult<Option<Arc<dyn TableProvider>>> {
        Ok(self.catalog.settings.remove_local(&self.database, name))
    }
}

/// All catalogs of a session; those that are warehouses resolve through one statement.
#[derive(Debug)]
pub(crate) struct StatementCatalogs {
    inner: Arc<dyn CatalogProviderList>,
    statement: Arc<Statement>,
}

impl StatementCatalogs {
    pub(crate) fn new(inner: Arc<dyn CatalogProviderList>, statement: Arc<Statement>) -> Self {
        // a statement inside a statement replaces its overlay
        let inner = match inner.downcast_ref::<Self>() {
            Some(overlay) => Arc::clone(&overlay.inner),
            None => inner,
        };
        Self { inner, statement }
    }
}

impl CatalogProviderList for StatementCatalogs {
    fn register_catalog(&self, name: String, catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        self.inner.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.inner.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let catalog = self.inner.catalog(name)?;
        match catalog.downcast_ref::<LakeCatalog>() {
            Some(lake) if lake.warehouse.same(self.statement.warehouse()) => {
                Some(Arc::new(StatementCatalog { lake: lake.clone(), statement: Arc::clone(&self.statement) }))
            }
            _ => Some(Arc::new(ForeignCatalog { inner: catalog, statement: Arc::clone(&self.statement) })),
        }
    }
}

/// A catalog that is no warehouse: our table functions are found in it, time travel is refused.
#[derive(Debug)]
struct ForeignCatalog {
    inner: Arc<dyn CatalogProvider>,
    statement: Arc<Statement>,
}

impl CatalogProvider for ForeignCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.inner.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let inner = self.inner.schema(name)?;
        Some(Arc::new(ForeignSchema { inner, database: name.to_string(), statement: Arc::clone(&self.statement) }))
    }

    fn register_schema(
        &self,
        name: &str,
        schema: Arc<dyn SchemaProvider>,
    ) -> DfResult<Option<Arc<dyn SchemaProvider>>> {
        self.inner.register_schema(name, schema)
    }

    fn deregister_schema(&self, name: &str, cascade: bool) -> DfResult<Option<Arc<dyn SchemaProvider>>> {
        self.inner.deregister_schema(name, cascade)
    }
}

#[derive(Debug)]
struct ForeignSchema {
    inner: Arc<dyn SchemaProvider>,
    database: String,
    statement: Arc<Statement>,
}

#[async_trait]
impl SchemaProvider for ForeignSchema {
    fn table_names(&self) -> Vec<String> {
        self.inner.table_names()
    }

    async fn table(&self, name: &str) -> DfResult<Option<Arc<dyn TableProvider>>> {
        if let Some(found) = self.statement.foreign(&self.database, name).await? {
            return Ok(Some(found));
        }
        self.inner.table(&self.statement.written(name)).await
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.table_exist(name)
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> DfResult<Option<Arc<dyn TableProvider>>> {
        self.inner.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> DfResult<Option<Arc<dyn TableProvider>>> {
        self.inner.deregister_table(name)
    }
}

#[derive(Debug)]
struct StatementCatalog {
    lake: LakeCatalog,
    statement: Arc<Statement>,
}

impl CatalogProvider for StatementCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.lake.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        Some(Arc::new(LakeSchema {
            catalog: self.lake.clone(),
            database: name.to_string(),
            statement: Some(Arc::clone(&self.statement)),
        }))
    }
}
