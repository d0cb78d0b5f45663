//! A warehouse: the folder of databases, opened once and shared by any number of sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;

use crate::error::{Error, Result};

/// A warehouse that is open for reading. Cheap to clone.
#[derive(Clone)]
pub struct Warehouse {
    inner: Arc<Inner>,
}

struct Inner {
    url: String,
}

impl Warehouse {
    /// Opens the warehouse at a path or URL; `options` are those of the object store.
    pub async fn open(url: &str, options: &BTreeMap<String, String>) -> Result<Self> {
        let _ = options;
        let _ = Arc::new(Inner { url: url.to_string() });
        Err(Error::internal("not built yet"))
    }

    /// Where the warehouse is, as given.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// Registers the warehouse as a catalog of the caller's session: `catalog_name.database.table`, with names such as
    /// `"t@v3"`, `"t@tag"` and `t$snapshots`.
    pub async fn register(&self, context: &SessionContext, catalog_name: &str) -> Result<()> {
        let _ = (context, catalog_name);
        Err(Error::internal("not built yet"))
    }

    /// Runs one statement of our SQL (time travel clauses, hints) on the caller's session.
    pub async fn sql(&self, context: &SessionContext, sql: &str) -> Result<DataFrame> {
        let _ = (context, sql);
        Err(Error::internal("not built yet"))
    }
}
