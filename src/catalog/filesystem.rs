//! A warehouse as folders: `<warehouse>/<database>.db/<table>`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::Catalog;
use crate::error::{Error, Result};
use crate::snapshot::Table;
use crate::storage::{Location, Storage};

/// The catalog of a warehouse folder: every `x.db` in it is a database, every folder with a schema in that a table.
#[derive(Debug)]
pub struct FilesystemCatalog {
    storage: Arc<Storage>,
    warehouse: Location,
}

impl FilesystemCatalog {
    /// Opens the warehouse at a path or URL. Error `WarehouseNotFound` when nothing is there.
    pub async fn open(url: &str, options: &BTreeMap<String, String>) -> Result<Self> {
        let _ = (url, options);
        Err(Error::internal("not built yet"))
    }

    /// The warehouse in a store the caller has.
    pub async fn open_in(storage: Arc<Storage>, warehouse: Location) -> Result<Self> {
        Ok(Self { storage, warehouse })
    }
}

#[async_trait]
impl Catalog for FilesystemCatalog {
    fn location(&self) -> &Location {
        &self.warehouse
    }

    fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    async fn list_databases(&self) -> Result<Vec<String>> {
        Err(Error::internal("not built yet"))
    }

    async fn list_tables(&self, database: &str) -> Result<Vec<String>> {
        let _ = database;
        Err(Error::internal("not built yet"))
    }

    async fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let _ = (database, name);
        Err(Error::internal("not built yet"))
    }
}
