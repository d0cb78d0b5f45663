//! A warehouse as folders: `<warehouse>/<database>.db/<table>`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use super::Catalog;
use crate::error::{Error, Result};
use crate::snapshot::nearest::known_names;
use crate::snapshot::{Table, TableIdent};
use crate::storage::{Location, Storage};

/// What follows a database's name in its folder's.
const DATABASE_SUFFIX: &str = ".db";

/// What stands between a table's name and a branch's.
const BRANCH_MARK: &str = "$branch_";

/// How long the folders beside a warehouse that is not there are looked for.
const NEIGHBOURS_WITHIN: Duration = Duration::from_secs(5);

/// Folders looked into at once.
const PARALLEL: usize = 16;

/// The catalog of a warehouse folder: every `x.db` in it is a database, every folder with a schema in that a table.
pub struct FilesystemCatalog {
    storage: Arc<Storage>,
    warehouse: Location,
    options: BTreeMap<String, String>,
    /// Tables handed out, so that what they have read serves the next statement. They look at storage themselves.
    tables: Mutex<HashMap<(String, String), Arc<Table>>>,
}

impl FilesystemCatalog {
    /// Opens the warehouse at a path or URL. Errors: `WarehouseNotFound` when nothing is there, `NotAWarehouse` when it
    /// is a database or table, `PermissionDenied`.
    pub async fn open(url: &str, options: &BTreeMap<String, String>) -> Result<Self> {
        let (storage, warehouse) = Storage::open(url, options).await?;
        let opened = Self::open_in(Arc::clone(&storage), warehouse).await;
        let opened = match opened {
            // paths are literal, as the format's writers take them; a URL made by a tool may be escaped
            Err(error) if error.code() == "WarehouseNotFound" => {
                let decoded = url::Url::parse(url).ok().filter(|url| url.scheme() == "file");
                let decoded = decoded.and_then(|url| url.to_file_path().ok());
                let Some(path) = decoded.as_deref().and_then(|path| path.to_str()) else { return Err(error) };
                Self::open_in(Arc::clone(&storage), storage.location(path)?).await.map_err(|_| error)
            }
            outcome => outcome,
        };
        Ok(Self { options: options.clone(), ..opened? })
    }

    /// The warehouse in a store the caller has.
    pub async fn open_in(storage: Arc<Storage>, warehouse: Location) -> Result<Self> {
        let folders = storage.list_dirs(&warehouse).await.map_err(|e| e.with_context("warehouse", &warehouse))?;
        if !folders.iter().any(|folder| folder.ends_with(DATABASE_SUFFIX)) {
            check_warehouse(&storage, &warehouse, &folders).await?;
        }
        Ok(Self { storage, warehouse, options: BTreeMap::new(), tables: Mutex::new(HashMap::new()) })
    }

    fn database_folder(&self, database: &str) -> Option<Location> {
        if database.is_empty() || database.contains('/') {
            return None;
        }
        self.warehouse.join(&format!("{database}{DATABASE_SUFFIX}")).ok()
    }

    async fn missing_database(&self, database: &str) -> Error {
        let known = match self.list_databases().await {
            Ok(known) => known,
            Err(error) => return error,
        };
        Error::not_found(format!("there is no database '{database}'"))
            .with_code("DatabaseNotFound")
            .with_context("warehouse", &self.warehouse)
            .with_hint(known_names("databases", database, known.iter().map(String::as_str)))
    }

    async fn missing_table(&self, database: &str, table: &str) -> Error {
        let known = match self.list_tables(database).await {
            Ok(known) => known,
            Err(error) => return error,
        };
        let error = Error::not_found(format!("there is no table '{table}' in database '{database}'"))
            .with_code("TableNotFound")
            .with_context("warehouse", &self.warehouse);
        if table.contains('/') {
            return error.with_hint("a table name cannot contain '/'");
        }
        error.with_hint(known_names("tables", table, known.iter().map(String::as_str)))
    }

    async fn main_table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let key = (database.to_string(), name.to_string());
        if let Some(known) = self.tables.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let folder = self.database_folder(database).filter(|_| !name.is_empty() && !name.contains('/'));
        if let Some(root) = folder.and_then(|folder| folder.join(name).ok())
            && self.storage.is_folder(&root.join("schema")?).await?
        {
            let table = Table::new(TableIdent::new(database, name), Arc::clone(&self.storage), root)?;
            self.tables.lock().insert(key, Arc::clone(&table));
            return Ok(table);
        }
        Err(self.missing_table(database, name).await)
    }
}

/// A folder without databases may be an empty warehouse, nothing at all, or the wrong floor.
async fn check_warehouse(storage: &Storage, warehouse: &Location, folders: &[String]) -> Result<()> {
    let is_table = folders.iter().any(|folder| folder == "schema");
    let is_database = warehouse.file_name().ends_with(DATABASE_SUFFIX);
    if is_table || is_database {
        let up = if is_table { warehouse.parent().and_then(|database| database.parent()) } else { warehouse.parent() };
        let (what, up) = (if is_table { "table" } else { "database" }, up.unwrap_or_else(|| storage.root()));
        return Err(Error::invalid(format!("{warehouse} looks like a {what}, not like a warehouse"))
            .with_code("NotAWarehouse")
            .with_hint(format!("open the folder above the databases: {up}")));
    }
    if !folders.is_empty() || storage.is_folder(warehouse).await? {
        return Ok(());
    }
    let error = Error::not_found(format!("there is no warehouse at {warehouse}")).with_code("WarehouseNotFound");
    if *warehouse == storage.root() {
        return Err(error);
    }
    let parent = warehouse.parent().unwrap_or_else(|| storage.root());
    // it only adds to the error: neither waited for long nor an error of its own
    let Ok(Ok(siblings)) = tokio::time::timeout(NEIGHBOURS_WITHIN, storage.list_dirs(&parent)).await else {
        return Err(error);
    };
    if siblings.is_empty() {
        return Err(error.with_hint(format!("the folder above, {parent}, is not there either or holds no folder")));
    }
    let near = known_names("folders", warehouse.file_name(), siblings.iter().map(String::as_str));
    Err(error.with_hint(format!("in {parent}: {near}")))
}

#[async_trait]
impl Catalog for FilesystemCatalog {
    fn location(&self) -> &Location {
        &self.warehouse
    }

    fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    fn options(&self) -> BTreeMap<String, String> {
        self.options.clone()
    }

    async fn list_databases(&self) -> Result<Vec<String>> {
        let folders = self.storage.list_dirs(&self.warehouse).await?;
        let names = folders.iter().filter_map(|folder| folder.strip_suffix(DATABASE_SUFFIX));
        let mut names: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_string).collect();
        names.sort();
        Ok(names)
    }

    async fn list_tables(&self, database: &str) -> Result<Vec<String>> {
        let Some(folder) = self.database_folder(database) else {
            return Err(self.missing_database(database).await);
        };
        let folders = self.storage.list_dirs(&folder).await?;
        if folders.is_empty() && !self.storage.is_folder(&folder).await? {
            return Err(self.missing_database(database).await);
        }
        let looks = folders.into_iter().map(|name| {
            let schemas = folder.join(&name).and_then(|table| table.join("schema"));
            async move {
                match self.storage.is_folder(&schemas?).await {
                    Ok(is_table) => Ok(is_table.then_some(name)),
                    // one table that is closed to this user does not hide the others: reading it will say so
                    Err(error) if error.code() == "PermissionDenied" => Ok(Some(name)),
                    Err(error) => Err(error),
                }
            }
        });
        let found: Vec<Option<String>> = stream::iter(looks).buffered(PARALLEL).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let Some((main, branch)) = name.split_once(BRANCH_MARK) else {
            return self.main_table(database, name).await;
        };
        let key = (database.to_string(), name.to_string());
        if let Some(known) = self.tables.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let table = self.main_table(database, main).await?.branch(branch).await?;
        self.tables.lock().insert(key, Arc::clone(&table));
        Ok(table)
    }
}

impl fmt::Debug for FilesystemCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilesystemCatalog({})", self.warehouse)
    }
}

#[cfg(test)]
mod tests;
