//! Names to tables: databases and tables of a warehouse.
//!
//! - `filesystem`: a warehouse as folders: `<warehouse>/<database>.db/<table>`

mod filesystem;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

pub use filesystem::FilesystemCatalog;

use crate::error::Result;
use crate::snapshot::Table;
use crate::storage::{Location, Storage};

/// Databases and tables by name. Read only.
#[async_trait]
pub trait Catalog: fmt::Debug + Send + Sync {
    /// Where the warehouse is.
    fn location(&self) -> &Location;

    /// The store the warehouse lies in.
    fn storage(&self) -> &Arc<Storage>;

    /// The options it was opened with, secrets included.
    fn options(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// All databases, sorted.
    async fn list_databases(&self) -> Result<Vec<String>>;

    /// All tables of a database, sorted. Error `DatabaseNotFound`, with the nearest.
    async fn list_tables(&self, database: &str) -> Result<Vec<String>>;

    /// A table. `name` may carry a branch: `t$branch_x`. Errors `DatabaseNotFound`, `TableNotFound`, `BranchNotFound`,
    /// with the nearest.
    async fn table(&self, database: &str, name: &str) -> Result<Arc<Table>>;
}
