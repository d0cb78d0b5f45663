//! Small relations made by us: system tables and answers of statements.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::error::Result;
use crate::query::Work;
use crate::query::nodes::{Deferred, DeferredExec};

/// A relation without rows.
pub(crate) fn empty(schema: SchemaRef) -> Arc<dyn TableProvider> {
    Arc::new(EmptyTable::new(schema))
}

type Load = dyn Fn() -> BoxFuture<'static, Result<RecordBatch>> + Send + Sync;

/// A relation whose rows are made when a query is planned over it, not when it is merely named; once, so that all uses
/// in a statement see the same rows.
pub(crate) struct LazyTable {
    name: String,
    schema: SchemaRef,
    load: Box<Load>,
    rows: OnceCell<RecordBatch>,
}

impl LazyTable {
    pub(crate) fn provider(
        name: impl Into<String>,
        schema: SchemaRef,
        load: impl Fn() -> BoxFuture<'static, Result<RecordBatch>> + Send + Sync + 'static,
    ) -> Arc<dyn TableProvider> {
        Arc::new(Self { name: name.into(), schema, load: Box::new(load), rows: OnceCell::new() })
    }
}

impl fmt::Debug for LazyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyTable").field("name", &self.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for LazyTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let batch = self.rows.get_or_try_init(|| (self.load)()).await?.clone();
        let schema = Arc::clone(&self.schema);
        Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], schema, projection.cloned())?)
    }
}

type Weigh = dyn Fn() -> BoxFuture<'static, Result<Work>> + Send + Sync;

/// A relation whose rows take reading data files: they are made when a query over it is executed, so that EXPLAIN reads
/// no file and what would be read is known before; once, so that all uses in a statement see the same rows.
pub(crate) struct DeferredTable {
    weigh: Box<Weigh>,
    rows: Arc<Deferred>,
}

impl DeferredTable {
    /// These rows; `weigh` tells from metadata what computing them reads.
    pub(crate) fn provider(
        rows: Arc<Deferred>,
        weigh: impl Fn() -> BoxFuture<'static, Result<Work>> + Send + Sync + 'static,
    ) -> Arc<dyn TableProvider> {
        Arc::new(Self { weigh: Box::new(weigh), rows })
    }
}

impl fmt::Debug for DeferredTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredTable").field("rows", &self.rows).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for DeferredTable {
    fn schema(&self) -> SchemaRef {
        (self.rows.computation().schema)()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let work = (self.weigh)().await?;
        Ok(Arc::new(DeferredExec::try_new(Arc::clone(&self.rows), projection.cloned(), work)?))
    }
}
