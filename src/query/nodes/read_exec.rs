//! The node that reads what DataFusion's own Parquet source cannot: merges, other formats, evolved files.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions, StatisticsArgs,
};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};

use super::read_metrics::ReadMetrics;
use super::summary::ScanSummary;
use crate::error::{Error, Result};
use crate::query::budget::PoolBudget;
use crate::query::settings::LakepinOptions;
use crate::query::statistics::{UnitFacts, statistics_of};
use crate::query::view::kinds_as_text;
use crate::read::{
    ReadCaches, ReadColumn, ReadContext, ReadOptions, SectionHandle, SectionPart, file, is_told, part, section,
};
use crate::scan::{PlannedFile, ScanKind};
use crate::snapshot::Pin;

/// One piece of work: rows that one partition of the node gives out.
#[derive(Debug, Clone)]
pub enum Item {
    /// A section, merged as a whole.
    Section(Arc<SectionHandle>),
    /// One part of a section that is merged; where it is cut is found out once for all parts.
    Part {
        /// The section.
        section: Arc<SectionHandle>,
        /// Which part.
        part: SectionPart,
    },
    /// One file of a section that is not merged; its selection is shared with the section's other files.
    File {
        /// The section.
        section: Arc<SectionHandle>,
        /// Run of the file.
        run: usize,
        /// Place in the run.
        file: usize,
    },
}

impl Item {
    /// The section it belongs to.
    pub fn section(&self) -> &Arc<SectionHandle> {
        match self {
            Self::Section(section) | Self::Part { section, .. } | Self::File { section, .. } => section,
        }
    }

    /// The files it reads; all parts of a section read of the same files, and the first stands for them.
    pub fn files(&self) -> impl Iterator<Item = &Arc<PlannedFile>> {
        let (one, all) = match self {
            Self::Section(section) => (None, Some(section)),
            Self::Part { section, part } => (None, Some(section).filter(|_| part.number == 0)),
            Self::File { section, run, file } => {
                (section.section.runs.get(*run).and_then(|files| files.get(*file)), None)
            }
        };
        one.into_iter().chain(all.into_iter().flat_map(|section| section.section.files()))
    }
}

/// Reads items of a pinned table through the rooms `read`, `file` and `merge`.
///
/// Each output partition reads its items one after another. The node holds no state of a run: it may be executed any
/// number of times. What it keeps is a fact: the selection of a section, once computed, stays with the section.
///
/// Output: the columns of the view's projection; no order promised; partitioning unknown (the format's bucket hash is
/// not DataFusion's). Filters are never evaluated here, so none is accepted from above.
#[derive(Debug, Clone)]
pub struct ReadExec {
    summary: Arc<ScanSummary>,
    caches: Arc<ReadCaches>,
    /// Columns of the view that are given out.
    columns: Arc<[ReadColumn]>,
    schema: SchemaRef,
    /// Items of each output partition.
    partitions: Arc<Vec<Vec<Item>>>,
    facts: Arc<UnitFacts>,
    statistics: Arc<Statistics>,
    /// Rows that are enough, of each partition.
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ReadExec {
    /// A node that gives `columns` under `schema`.
    ///
    /// # Errors
    /// Statistics that cannot be made for the schema.
    pub fn try_new(
        summary: Arc<ScanSummary>,
        caches: Arc<ReadCaches>,
        columns: Arc<[ReadColumn]>,
        schema: SchemaRef,
        partitions: Vec<Vec<Item>>,
        facts: Arc<UnitFacts>,
        fetch: Option<usize>,
    ) -> Result<Self> {
        let partitions = if partitions.is_empty() { vec![Vec::new()] } else { partitions };
        let partitions = if is_small(fetch) { whole(partitions) } else { partitions };
        let statistics = Arc::new(statistics_of(&facts, &summary.pin, &columns, &schema)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Ok(Self {
            summary,
            caches,
            columns,
            schema,
            partitions: Arc::new(partitions),
            facts,
            statistics,
            fetch,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// What is read, as planned.
    pub fn summary(&self) -> &Arc<ScanSummary> {
        &self.summary
    }

    /// Items of each output partition.
    pub fn partitions(&self) -> &[Vec<Item>] {
        &self.partitions
    }

    /// Columns given out.
    pub fn columns(&self) -> &Arc<[ReadColumn]> {
        &self.columns
    }

    /// Whether the rows of an item are known without opening a data file.
    pub fn is_told(&self, item: &Item) -> bool {
        let (kind, keep_deletes) = (self.summary.view.scan_kind(), self.summary.view.shows_kinds());
        is_told(&self.summary.pin, kind, keep_deletes, &self.columns, item.section().section.class)
    }

    /// The files whose rows are known without opening them.
    pub fn told_files(&self) -> impl Iterator<Item = &Arc<PlannedFile>> {
        self.partitions.iter().flatten().filter(|item| self.is_told(item)).flat_map(Item::files)
    }

    /// Row counts the statistics stand on.
    pub fn facts(&self) -> &Arc<UnitFacts> {
        &self.facts
    }

    fn context(&self, partition: usize, task: &TaskContext) -> Result<Arc<ReadContext>> {
        let config = task.session_config();
        let options = ReadOptions {
            batch_size: config.batch_size(),
            parallelism: config.target_partitions().max(1) * 2,
            zone: self.summary.zone,
            budget: Arc::new(PoolBudget::new(task.memory_pool(), format!("ReadExec[{partition}]"))),
            keep_selections: LakepinOptions::of(config.options()).selection_cache,
        };
        ReadContext::try_new(
            Arc::clone(&self.summary.pin),
            self.summary.view.scan_kind(),
            self.summary.view.shows_kinds(),
            Arc::clone(&self.columns),
            options,
            Arc::clone(&self.caches),
        )
    }
}

impl DisplayAs for ReadExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match t {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "ReadExec: {}", self.summary)?;
                let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
                write!(f, ", columns=[{}]", names.join(", "))?;
                let parts = self.partitions.iter().flatten().filter(|item| matches!(item, Item::Part { .. })).count();
                if parts > 0 {
                    write!(f, ", parts={parts}")?;
                }
                let told = self.told_files().count();
                if told > 0 {
                    write!(f, ", files_from_metadata={told}")?;
                }
                if let Some(fetch) = self.fetch {
                    write!(f, ", fetch={fetch}")?;
                }
                Ok(())
            }
            DisplayFormatType::TreeRender => self.summary.fmt_tree(f),
        }
    }
}

impl ExecutionPlan for ReadExec {
    fn name(&self) -> &'static str {
        "ReadExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("ReadExec has no children") }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, task: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let Some(items) = self.partitions.get(partition) else {
            return internal_err!("ReadExec has {} partitions, not one of number {partition}", self.partitions.len());
        };
        let context = self.context(partition, &task)?;
        let rows = read_items(&context, items.clone());
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let metrics = ReadMetrics::new(&self.metrics, partition, Arc::clone(&context.counters));
        let kinds: Vec<usize> = positions(&self.columns, ReadColumn::ValueKind);
        let schema = Arc::clone(&self.schema);
        let rows = Metered { rows, baseline, metrics, left: self.fetch, schema: Arc::clone(&schema), kinds };
        Ok(make_cooperative(Box::pin(RecordBatchStreamAdapter::new(schema, rows))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> DfResult<Arc<Statistics>> {
        if args.partition().is_some() {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema)));
        }
        match self.fetch {
            None => Ok(Arc::clone(&self.statistics)),
            // each partition stops by itself: the total is not the limit
            Some(_) => Ok(Arc::new(self.statistics.as_ref().clone().to_inexact())),
        }
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let mut limited = Self { fetch: limit, metrics: ExecutionPlanMetricsSet::new(), ..self.clone() };
        if is_small(limit) {
            limited.partitions = Arc::new(whole(self.partitions.as_ref().clone()));
        }
        Some(Arc::new(limited))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
        let Some(places) = plain_columns(projection) else { return Ok(None) };
        let Some(columns) = places.iter().map(|at| self.columns.get(*at).copied()).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let schema = Arc::new(self.schema.project(&places)?);
        let node = Self::try_new(
            Arc::clone(&self.summary),
            Arc::clone(&self.caches),
            columns.into(),
            schema,
            self.partitions.as_ref().clone(),
            Arc::clone(&self.facts),
            self.fetch,
        )?;
        Ok(Some(Arc::new(node)))
    }
}

/// Rows from which a section is worth to be cut into parts.
const SMALL_FETCH: usize = 1 << 16;

/// Whether the first few rows are enough: then it does not pay to read all keys of a section first.
fn is_small(fetch: Option<usize>) -> bool {
    fetch.is_some_and(|fetch| fetch < SMALL_FETCH)
}

/// The same items, with sections instead of their parts. Partitions stay as many.
fn whole(partitions: Vec<Vec<Item>>) -> Vec<Vec<Item>> {
    let joined = |item| match item {
        Item::Part { section, part } => (part.number == 0).then_some(Item::Section(section)),
        other => Some(other),
    };
    partitions.into_iter().map(|items| items.into_iter().filter_map(joined).collect()).collect()
}

/// Places of the columns a projection names, when it only names columns and keeps their names.
fn plain_columns(projection: &ProjectionExec) -> Option<Vec<usize>> {
    projection
        .expr()
        .iter()
        .map(|expr| {
            let column = expr.expr.downcast_ref::<datafusion::physical_expr::expressions::Column>()?;
            (column.name() == expr.alias).then(|| column.index())
        })
        .collect()
}

fn positions(columns: &[ReadColumn], wanted: ReadColumn) -> Vec<usize> {
    columns.iter().enumerate().filter(|(_, column)| **column == wanted).map(|(at, _)| at).collect()
}

fn read_items(context: &Arc<ReadContext>, items: Vec<Item>) -> BoxStream<'static, Result<RecordBatch>> {
    let (context, named) = (Arc::clone(context), Arc::clone(context));
    stream::iter(items)
        .flat_map(move |item| match item {
            Item::Section(handle) => section(&context, &handle),
            Item::Part { section, part: which } => part(&context, &section, which),
            Item::File { section, run, file: at } => file(&context, &section, run, at),
        })
        .map_err(move |error| named_in(error, &named.pin, named.kind).or_elsewhere())
        .boxed()
}

/// An error of reading names the table, and the snapshot where only one is read: changes are of many, and of a branch
/// that completes the table one does not know it here.
pub(crate) fn named_in(error: Error, pin: &Pin, kind: ScanKind) -> Error {
    if kind.is_unmerged() || pin.fallback.is_some() || pin.primary.is_some() {
        return error.with_context("table", pin.table.name());
    }
    pin.named(error).with_context("table", pin.table.name())
}

/// Counts rows, stops at the limit without polling further, and shows kinds as text.
struct Metered {
    rows: BoxStream<'static, Result<RecordBatch>>,
    baseline: BaselineMetrics,
    metrics: ReadMetrics,
    left: Option<usize>,
    schema: SchemaRef,
    kinds: Vec<usize>,
}

impl Metered {
    fn shape(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        for at in &self.kinds {
            if let Some(column) = columns.get_mut(*at) {
                *column = kinds_as_text(column)?;
            }
        }
        let mut rows = batch.num_rows();
        if let Some(left) = &mut self.left {
            if rows > *left {
                columns = columns.iter().map(|column| column.slice(0, *left)).collect();
                rows = *left;
            }
            *left -= rows;
        }
        let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

impl Stream for Metered {
    type Item = DfResult<RecordBatch>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        use std::task::Poll;
        if self.left == Some(0) {
            return Poll::Ready(None);
        }
        loop {
            let timer = self.baseline.elapsed_compute().clone();
            let polled = {
                let _timing = timer.timer();
                self.rows.poll_next_unpin(cx)
            };
            self.metrics.sync();
            return match polled {
                Poll::Pending => Poll::Pending,
                Poll::Ready(None) => Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(DataFusionError::from(error)))),
                // an empty batch tells nothing
                Poll::Ready(Some(Ok(batch))) if batch.num_rows() == 0 => continue,
                Poll::Ready(Some(Ok(batch))) => {
                    let shaped = self.shape(batch).map_err(DataFusionError::from);
                    if let Ok(batch) = &shaped {
                        self.baseline.record_output(batch.num_rows());
                    }
                    Poll::Ready(Some(shaped))
                }
            };
        }
    }
}
