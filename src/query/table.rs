//! The provider: a pin, as DataFusion reads it.

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExecBuilder;
use futures::{StreamExt, TryStreamExt, stream};

use super::compared::Compared;
use super::env::QueryEnv;
use super::filters::pushdown;
use super::layout::Layout;
use super::nodes::ScanSummary;
use super::nodes::read_exec::named_in;
use super::report::{ScanLog, ScanReport};
use super::settings::{LakepinOptions, session_zone};
use super::spread::{Cutting, items};
use super::view::LakeView;
use crate::error::{Error, ErrorKind, Result};
use crate::read::{ReadColumn, SectionHandle, check_rules, recall};
use crate::scan::{FileRead, Rule, ScanPlan, ScanRequest, Stage, Stages};
use crate::snapshot::Pin;

/// A pinned table as DataFusion's table provider. Immutable and cheap to clone: all scans of it read one snapshot.
#[derive(Debug, Clone)]
pub struct LakeTable {
    pin: Arc<Pin>,
    env: Arc<QueryEnv>,
    view: LakeView,
    columns: Arc<[ReadColumn]>,
    schema: SchemaRef,
    log: Option<Arc<ScanLog>>,
    compared: Option<Arc<Compared>>,
}

impl LakeTable {
    /// The final rows of `pin`.
    ///
    /// # Errors
    /// As [`Self::try_view`].
    pub fn try_new(pin: Arc<Pin>, env: Arc<QueryEnv>) -> Result<Self> {
        Self::try_view(pin, env, LakeView::Rows)
    }

    /// A view of `pin`.
    ///
    /// # Errors
    /// Row tracking where the table has none; options that this reader must refuse.
    pub fn try_view(pin: Arc<Pin>, env: Arc<QueryEnv>, view: LakeView) -> Result<Self> {
        let (columns, schema) = view.columns(&pin)?;
        Ok(Self { pin, env, view, columns, schema, log: None, compared: None })
    }

    /// The same table, whose scans report to `log`.
    #[must_use]
    pub fn with_log(mut self, log: Arc<ScanLog>) -> Self {
        self.log = Some(log);
        self
    }

    /// The same table without the rows that both sides of a comparison have in files they share.
    #[must_use]
    pub fn in_comparison(mut self, compared: Arc<Compared>) -> Self {
        self.compared = Some(compared);
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

    fn read_only(&self, statement: &str) -> DataFusionError {
        Error::unsupported(format!("{statement} is not possible: tables are read only"))
            .with_code("ReadOnly")
            .with_context("table", self.pin.table.name())
            .into()
    }

    /// How far the scan applies a filter. Columns a view adds (`rowkind`, `_ROW_ID`) are no columns of the files.
    fn pushdown(&self, filter: &Expr) -> TableProviderFilterPushDown {
        pushdown(&self.pin, filter)
    }

    /// Reports every file as left out: for an explanation of a query that was found to need no row of the table, so that
    /// no scan of it is left to report.
    ///
    /// # Errors
    /// As a scan.
    pub async fn report_unread(&self, session: &dyn Session) -> Result<()> {
        let started = Instant::now();
        let mut plan = self.plan_files(session, &[], &[], None).await?;
        for decision in plan.decisions.iter_mut().filter(|decision| decision.kept) {
            decision.kept = false;
            decision.section = None;
            decision.read = FileRead::Dropped(Stage::Limit);
            decision.rule = Rule::NoRowNeeded;
        }
        plan.stages = Stages { by_limit: plan.stages.kept_files, ..plan.stages }.without_kept();
        self.report(&plan, started);
        Ok(())
    }

    /// Plans the files of a scan and reports it.
    async fn plan(
        &self,
        session: &dyn Session,
        columns: &[usize],
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Planned> {
        let started = Instant::now();
        let plan = self.plan_files(session, columns, filters, limit).await?;
        let report = self.report(&plan, started);
        Ok(Planned { plan: Arc::new(plan), report })
    }

    async fn plan_files(
        &self,
        session: &dyn Session,
        columns: &[usize],
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<ScanPlan> {
        let named = |error: Error| named_in(error, &self.pin, self.view.scan_kind()).or_elsewhere();
        let without = match &self.compared {
            Some(compared) => Some(compared.common(&self.env.scan).await.map_err(named)?),
            None => None,
        };
        let request = ScanRequest {
            filters: filters.to_vec(),
            columns: Some(columns.to_vec()),
            limit,
            kind: self.view.scan_kind(),
            explain: self.log.as_ref().is_some_and(|log| log.explains_files()),
            config: Some(Arc::clone(session.config().options())),
            progress: self.log.as_ref().map(|log| Arc::clone(log.progress())).unwrap_or_default(),
            without,
            of: None,
        };
        crate::scan::plan(&self.pin, &request, &self.env.scan).await.map_err(named)
    }

    /// Reports a plan; where the report stands in the log.
    fn report(&self, plan: &ScanPlan, started: Instant) -> Option<usize> {
        self.log.as_ref().map(|log| {
            log.push(ScanReport {
                pin: Arc::clone(&self.pin),
                kind: plan.kind,
                stages: plan.stages,
                notices: plan.notices.clone(),
                decisions: Arc::new(plan.decisions.clone()),
                planning: started.elapsed(),
            })
        })
    }

    /// The plan node of one scan.
    async fn node(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let answers: Vec<_> = filters.iter().map(|filter| self.pushdown(filter)).collect();
        // a filter taken as a whole may come back in parts, of which one is a constant: `p NOT IN (1, NULL)` becomes
        // `p <> 1` and NULL. Nobody else applies what was handed over
        let (wanted, alien): (Vec<_>, Vec<_>) =
            filters.iter().zip(&answers).partition(|(_, answer)| **answer != TableProviderFilterPushDown::Unsupported);
        let cloned = |filters: Vec<(&Expr, _)>| -> Vec<Expr> { filters.into_iter().map(|(f, _)| f.clone()).collect() };
        let (wanted, alien) = (cloned(wanted), cloned(alien));
        // a limit holds only for what nothing filters afterwards
        let all_exact = answers.iter().all(|answer| *answer == TableProviderFilterPushDown::Exact);
        let limit = limit.filter(|_| all_exact);
        let projection: Vec<usize> = match projection {
            Some(projection) => projection.clone(),
            None => (0..self.columns.len()).collect(),
        };
        let columns = self.schema_columns(&projection)?;
        let mut planned = self.plan(session, &columns, &wanted, limit).await?;
        let mut unkept = self.unkept(&wanted, &planned.plan);
        unkept.extend(alien);
        if !unkept.is_empty() && limit.is_some() {
            planned = self.plan(session, &columns, &wanted, None).await?;
        }
        let settings = LakepinOptions::of(session.config_options());
        if settings.verify_files {
            verify_files(&planned.plan).await?;
        }
        if unkept.is_empty() {
            return self.read_node(session, &planned, &projection, limit);
        }
        self.filtered_node(session, &planned, &projection, &unkept, limit)
    }

    /// The view's columns of a projection.
    fn read_columns(&self, projection: &[usize]) -> Result<Vec<ReadColumn>> {
        let columns = projection.iter().map(|at| self.columns.get(*at).copied()).collect::<Option<_>>();
        columns.ok_or_else(|| Error::internal("a projection names a column the table does not have"))
    }

    /// Those of a projection that are columns of the schema, by their place there.
    fn schema_columns(&self, projection: &[usize]) -> Result<Vec<usize>> {
        let columns = self.read_columns(projection)?.into_iter();
        Ok(columns.filter_map(ReadColumn::field).collect())
    }

    /// Filters that were promised to be applied by planning and were not.
    fn unkept(&self, wanted: &[Expr], plan: &ScanPlan) -> Vec<Expr> {
        wanted
            .iter()
            .enumerate()
            .filter(|(at, filter)| {
                self.pushdown(filter) == TableProviderFilterPushDown::Exact
                    && !plan.exact_filters.get(*at).copied().unwrap_or(false)
            })
            .map(|(_, filter)| filter.clone())
            .collect()
    }

    fn read_node(
        &self,
        session: &dyn Session,
        planned: &Planned,
        projection: &[usize],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = &planned.plan;
        let columns = self.read_columns(projection)?;
        for index in columns.iter().filter_map(|column| column.field()) {
            self.pin.check_column(index)?;
        }
        let sections = plan.sections().map(|(unit, section)| (unit.branch.as_deref(), section));
        check_rules(&self.pin, &columns, self.view.shows_kinds(), sections)?;
        let schema = Arc::new(self.schema.project(projection)?);
        let handles: Vec<Arc<SectionHandle>> = plan
            .sections()
            .map(|(unit, section)| SectionHandle::within(unit, section.clone(), plan.key_interval.clone()))
            .collect();
        let config = session.config();
        let settings = LakepinOptions::of(config.options());
        let mut parquet = session.table_options().parquet.clone();
        parquet.global = config.options().execution.parquet.clone();
        let mut layout = Layout {
            summary: Arc::new(ScanSummary {
                report: planned.report,
                ..ScanSummary::new(plan, self.view, session_zone(config.options())?)
            }),
            caches: Arc::clone(&self.env.read),
            columns: columns.into(),
            schema,
            fetch: limit,
            target_partitions: config.target_partitions(),
            merge_source: settings.merge_source,
            keep_selections: settings.selection_cache,
            split_from_bytes: Some(&config.options().optimizer)
                .filter(|optimizer| optimizer.repartition_file_scans)
                .map(|optimizer| optimizer.repartition_file_min_size),
            batch_size: config.batch_size(),
            parquet,
            runtime: Arc::clone(session.runtime_env()),
        };
        let cutting = Cutting {
            keep_deletes: self.view.shows_kinds(),
            targets: config.target_partitions(),
            part_rows: Some(settings.part_rows).filter(|rows| *rows > 0),
        };
        if !self.view.shows_kinds() {
            let recalled = recall(&*layout.selection_context()?, &handles)?;
            Arc::make_mut(&mut layout.summary).recalled = Arc::new(recalled);
        }
        layout.node(items(&handles, cutting))
    }

    /// Reads more columns than asked for, filters, and takes the others away again.
    fn filtered_node(
        &self,
        session: &dyn Session,
        planned: &Planned,
        projection: &[usize],
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut read = projection.to_vec();
        for filter in filters {
            for column in filter.column_refs() {
                let at = self.schema.index_of(&column.name)?;
                if !read.contains(&at) {
                    read.push(at);
                }
            }
        }
        let node = self.read_node(session, planned, &read, None)?;
        let schema = DFSchema::try_from(node.schema())?;
        let unqualified = filters.iter().map(|filter| unqualified(filter.clone()));
        let Some(predicate) = conjunction(unqualified) else { return Ok(node) };
        let predicate = session.create_physical_expr(predicate, &schema)?;
        let filter = FilterExecBuilder::new(predicate, node)
            .apply_projection(Some((0..projection.len()).collect()))?
            .with_fetch(limit)
            .build()?;
        Ok(Arc::new(filter))
    }
}

/// The files of a scan, and where it was reported.
struct Planned {
    plan: Arc<ScanPlan>,
    report: Option<usize>,
}

/// The filter over columns without their table's name.
fn unqualified(filter: Expr) -> Expr {
    let stripped = filter.clone().transform(|expr| {
        Ok(match expr {
            Expr::Column(column) => Transformed::yes(Expr::Column(Column::from_name(column.name))),
            other => Transformed::no(other),
        })
    });
    stripped.map_or(filter, |stripped| stripped.data)
}

/// Checks that every file to read is there and has the size its manifest entry says.
async fn verify_files(plan: &ScanPlan) -> Result<()> {
    let files: Vec<_> = plan.files().cloned().collect();
    stream::iter(files)
        .map(|file| async move {
            let found = match file.storage.head(&file.location).await {
                Ok(found) => found,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(plan.pin.missing_file(&file.location).await);
                }
                Err(error) => return Err(error),
            };
            if found.size != file.entry.file.file_size {
                return Err(Error::corrupt(format!(
                    "the file has {} bytes, its manifest entry says {}",
                    found.size, file.entry.file.file_size
                ))
                .with_context("file", &file.location));
            }
            Ok(())
        })
        .buffer_unordered(VERIFIED_AT_ONCE)
        .try_collect::<()>()
        .await
}

/// Files looked at together.
const VERIFIED_AT_ONCE: usize = 32;

#[async_trait::async_trait]
impl TableProvider for LakeTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(filters.iter().map(|filter| self.pushdown(filter)).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let node = self.node(session, projection, filters, limit).await;
        node.map_err(|error| error.with_context("table", self.pin.table.name()).into())
    }

    async fn insert_into(
        &self,
        _session: &dyn Session,
        _input: Arc<dyn ExecutionPlan>,
        _op: InsertOp,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Err(self.read_only("INSERT"))
    }

    async fn delete_from(&self, _session: &dyn Session, _filters: Vec<Expr>) -> DfResult<Arc<dyn ExecutionPlan>> {
        Err(self.read_only("DELETE"))
    }

    async fn update(
        &self,
        _session: &dyn Session,
        _assignments: Vec<(String, Expr)>,
        _filters: Vec<Expr>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Err(self.read_only("UPDATE"))
    }

    async fn truncate(&self, _session: &dyn Session) -> DfResult<Arc<dyn ExecutionPlan>> {
        Err(self.read_only("TRUNCATE"))
    }
}
