//! A table of an open warehouse, with the caches that its readers share.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use super::env::QueryEnv;
use super::table::LakeTable;
use crate::error::Result;
use crate::snapshot::{Pin, PinRequest, Table};

/// A table on storage and the caches of its warehouse: what is pinned of it shares manifests and footers with all other
/// readers. It says what is there now; [`OpenTable::pin`] fixes one state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct OpenTable {
    table: Arc<Table>,
    env: Arc<QueryEnv>,
}

impl OpenTable {
    /// `table`, read with the caches of `env`.
    pub fn new(table: Arc<Table>, env: Arc<QueryEnv>) -> Self {
        Self { table, env }
    }

    /// The table fixed at one state, for any DataFusion session: `context.register_table("t", Arc::new(provider))`. The
    /// provider never moves on; pin again for what was committed since. Costs the requests that find the snapshot and its
    /// schema; manifests are read when it is scanned, once for all who share the caches.
    ///
    /// # Errors
    /// Nothing is kept that answers `request`, or the table's options cannot be read.
    pub async fn pin(&self, request: PinRequest) -> Result<LakeTable> {
        let pin = Pin::resolve(&self.table, request, &BTreeMap::new()).await?;
        LakeTable::try_new(pin, Arc::clone(&self.env))
    }

    /// The table on storage: its snapshots, schemas, tags.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl Deref for OpenTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}
