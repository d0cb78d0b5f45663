//! The provider: a pin, as DataFusion reads it.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::env::QueryEnv;
use super::report::ScanLog;
use crate::error::{Error, Result};
use crate::scan::ChangeRange;
use crate::snapshot::Pin;

/// Which rows and columns of a pinned table are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LakeView {
    /// The table: its final rows.
    #[default]
    Rows,
    /// `t$ro`: rows of the top level.
    ReadOptimized,
    /// `t$audit_log`: `rowkind` STRING, then (`table-read.sequence-number.enabled`) `_SEQUENCE_NUMBER`, then the table's
    /// columns; final rows and keys whose last record deletes.
    AuditLog,
    /// `t$row_tracking`: the table's columns, then `_ROW_ID` and `_SEQUENCE_NUMBER`.
    RowTracking,
    /// Rows added by the APPEND snapshots of a range, unmerged; with kinds as in `AuditLog` (all rows), or without
    /// (`+I` and `+U` only).
    Delta {
        /// Snapshots.
        range: ChangeRange,
        /// Whether `rowkind` (and `_SEQUENCE_NUMBER`) come first and retracts are kept.
        kinds: bool,
    },
    /// Rows of the changelog files of a range, likewise.
    Changelog {
        /// Snapshots.
        range: ChangeRange,
        /// Whether `rowkind` (and `_SEQUENCE_NUMBER`) come first and retracts are kept.
        kinds: bool,
    },
}

/// A pinned table as DataFusion's table provider. Immutable and cheap to clone: all scans of it read one snapshot.
#[derive(Debug, Clone)]
pub struct LakeTable {
    pin: Arc<Pin>,
    env: Arc<QueryEnv>,
    view: LakeView,
    schema: SchemaRef,
    log: Option<Arc<ScanLog>>,
}

impl LakeTable {
    /// The final rows of `pin`.
    pub fn try_new(pin: Arc<Pin>, env: Arc<QueryEnv>) -> Result<Self> {
        Self::try_view(pin, env, LakeView::Rows)
    }

    /// A view of `pin`. Row tracking is refused where the table has none.
    pub fn try_view(pin: Arc<Pin>, env: Arc<QueryEnv>, view: LakeView) -> Result<Self> {
        let _ = (pin, env, view);
        Err(Error::internal("not built yet"))
    }

    /// The same table, whose scans report to `log`.
    #[must_use]
    pub fn with_log(mut self, log: Arc<ScanLog>) -> Self {
        self.log = Some(log);
        self
    }

    /// The pin.
    pub fn pin(&self) -> &Arc<Pin> {
        &self.pin
    }

    /// What is seen of it.
    pub fn view(&self) -> LakeView {
        self.view
    }

    /// The caches it uses.
    pub fn env(&self) -> &Arc<QueryEnv> {
        &self.env
    }
}

#[async_trait::async_trait]
impl TableProvider for LakeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Err(Error::internal("not built yet").into())
    }
}
