//! DataFusion's Parquet source over the files of a pinned table, each through the mask of its live rows.
//!
//! ```text
//! DataSourceExec → FileScanConfig → MergeSource → ParquetSource
//!                                     │  plan_file(file)
//!                                     ├─ mask known   → attach a row selection, let the inner source plan the file;
//!                                     │                 or decode it and close the gaps, see `compact`
//!                                     └─ not yet      → a planner that waits for the section, then the same
//! ```
//! The inner source sees live rows only, so every predicate it evaluates or prunes by is sound: a superseded version
//! cannot come back. Live among the files read: where the filter's keys are in fewer files than share the section, rows of
//! other keys may be seen that are dead. The traits of `datafusion_datasource::morsel` are called
//! experimental upstream; this file alone speaks them.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetFileReaderFactory, ParquetRowSelection};
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use parking_lot::Mutex;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::file::metadata::ParquetMetaData;

use super::compact::Compaction;
use super::read_exec::named_in;
use super::read_metrics::ReadMetrics;
use super::summary::ScanSummary;
use crate::error::{Error, ErrorKind, Result};
use crate::file::guarded_stream;
use crate::query::mapping::Mapping;
use crate::read::{ReadContext, ReadCounters, SectionHandle, live_mask};
use crate::scan::ScanKind;
use crate::scan::{PlannedFile, SectionClass};
use crate::snapshot::Pin;
use crate::storage::Location;

/// Which file of which section a file of the scan is. Travels with the file through regrouping and splitting.
#[derive(Debug, Clone)]
pub struct FileRef {
    /// The section.
    pub section: Arc<SectionHandle>,
    /// Run of the file.
    pub run: usize,
    /// Place in the run.
    pub file: usize,
}

impl FileRef {
    /// The file.
    pub fn planned(&self) -> Result<&Arc<PlannedFile>> {
        self.section.file(self.run, self.file)
    }

    /// Whether every physical row is a row of the result.
    pub fn is_plain(&self) -> bool {
        self.section.section.class == SectionClass::Raw
            && self.planned().is_ok_and(|file| file.deletion.is_none() && file.index_rows.is_none())
    }
}

/// A file source that shows the inner source the live rows of each file.
#[derive(Clone)]
pub struct MergeSource {
    inner: Arc<dyn FileSource>,
    /// The same without conditions; None where it had some from the beginning.
    bare: Option<Arc<dyn FileSource>>,
    /// What files are opened with.
    reader: Arc<dyn ParquetFileReaderFactory>,
    context: Arc<ReadContext>,
    summary: Arc<ScanSummary>,
    mapping: Mapping,
    /// Whether all files of the scan are plain, so that row groups may be taken in any order.
    plain: bool,
    /// The counters of the context as metrics of the node: one for all its partitions, which share the context.
    metrics: Arc<Mutex<ReadMetrics>>,
}

impl MergeSource {
    /// Wraps `inner`, which opens files with `reader`. `context` is what selections are computed with; its columns do not
    /// matter.
    pub fn new(
        inner: Arc<dyn FileSource>,
        reader: Arc<dyn ParquetFileReaderFactory>,
        context: Arc<ReadContext>,
        summary: Arc<ScanSummary>,
        mapping: Mapping,
        plain: bool,
    ) -> Self {
        let metrics = ReadMetrics::new(inner.metrics(), 0, Arc::clone(&context.counters));
        let bare = inner.filter().is_none().then(|| Arc::clone(&inner));
        Self { inner, bare, reader, context, summary, mapping, plain, metrics: Arc::new(Mutex::new(metrics)) }
    }

    /// The source that reads.
    pub fn inner(&self) -> &Arc<dyn FileSource> {
        &self.inner
    }

    /// Columns of the table to columns of the files.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// What is read, as planned.
    pub fn summary(&self) -> &Arc<ScanSummary> {
        &self.summary
    }

    /// What finding the live rows counted, over all runs of the node.
    pub fn counters(&self) -> &Arc<ReadCounters> {
        &self.context.counters
    }

    fn around(&self, inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { inner, ..self.clone() })
    }

    /// Both sources changed in one way.
    fn around_both(&self, inner: Arc<dyn FileSource>, bare: Option<Arc<dyn FileSource>>) -> Arc<dyn FileSource> {
        Arc::new(Self { inner, bare, ..self.clone() })
    }
}

impl FileSource for MergeSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> DfResult<Arc<dyn FileOpener>> {
        self.inner.create_file_opener(store, config, partition)
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> DfResult<Box<dyn Morselizer>> {
        let compaction = match &self.bare {
            Some(bare) if !self.plain => {
                let schema = &self.context.pin.schema;
                let key = schema.trimmed_primary_key().ok().and_then(|key| schema.fields.get(*key.first()?));
                let sorted_by = key.map(|field| field.name.clone());
                Compaction::of(&self.inner, bare, &self.mapping, sorted_by, Arc::clone(&store), config, partition)?
            }
            _ => None,
        };
        Ok(Box::new(MaskedFiles {
            inner: Arc::from(self.inner.create_morselizer(store, config, partition)?),
            compaction: compaction.map(Arc::new),
            footers: Arc::new(Footers {
                reader: Arc::clone(&self.reader),
                metrics: self.inner.metrics().clone(),
                partition,
            }),
            context: Arc::clone(&self.context),
            counted: Arc::new(Counted(Arc::clone(&self.metrics))),
        }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.inner.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        let bare = self.bare.as_ref().map(|bare| bare.with_batch_size(batch_size));
        self.around_both(self.inner.with_batch_size(batch_size), bare)
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.inner.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.inner.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.inner.metrics()
    }

    fn file_type(&self) -> &str {
        self.inner.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_extra(t, f)?;
        match t {
            DisplayFormatType::TreeRender => {
                writeln!(f, "table={}", self.summary.table())?;
                writeln!(f, "{}", self.summary.pin_text())
            }
            _ => write!(f, ", {}", self.summary),
        }
    }

    fn supports_repartitioning(&self) -> bool {
        self.inner.supports_repartitioning()
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> DfResult<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        // bounds of floats in Parquet files leave NaN out, which is the greatest value here: no pruning by them
        let schema = self.table_schema().table_schema();
        let held: Vec<bool> = filters.iter().map(|filter| touches_floats(filter, schema)).collect();
        let given = filters.into_iter().zip(&held).filter(|(_, held)| !**held).map(|(filter, _)| filter).collect();
        let pushed = self.inner.try_pushdown_filters(given, config)?;
        let mut answers = pushed.filters.into_iter();
        let filters = held
            .into_iter()
            .map(|held| if held { PushedDown::No } else { answers.next().unwrap_or(PushedDown::No) })
            .collect();
        let updated_node = pushed.updated_node.map(|inner| self.around(inner));
        Ok(FilterPushdownPropagation { filters, updated_node })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        properties: &EquivalenceProperties,
    ) -> DfResult<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        let schema = self.table_schema().table_schema();
        if !self.plain || order.iter().any(|sort| touches_floats(&sort.expr, schema)) {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        Ok(match self.inner.try_pushdown_sort(order, properties)? {
            SortOrderPushdownResult::Exact { inner } => SortOrderPushdownResult::Exact { inner: self.around(inner) },
            SortOrderPushdownResult::Inexact { inner } => {
                SortOrderPushdownResult::Inexact { inner: self.around(inner) }
            }
            SortOrderPushdownResult::Unsupported => SortOrderPushdownResult::Unsupported,
        })
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.inner.reorder_files(files)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> DfResult<Option<Arc<dyn FileSource>>> {
        let Some(inner) = self.inner.try_pushdown_projection(projection)? else { return Ok(None) };
        let bare = match &self.bare {
            Some(bare) => bare.try_pushdown_projection(projection)?,
            None => None,
        };
        Ok(Some(self.around_both(inner, bare)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }
}

/// Whether an expression uses a FLOAT or DOUBLE column.
pub(in crate::query) fn touches_floats(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> bool {
    collect_columns(expr)
        .iter()
        .any(|column| schema.field_with_name(column.name()).is_ok_and(|field| field.data_type().is_floating()))
}

/// Plans files of the inner source through their masks.
#[derive(Clone)]
struct MaskedFiles {
    inner: Arc<dyn Morselizer>,
    compaction: Option<Arc<Compaction>>,
    footers: Arc<Footers>,
    context: Arc<ReadContext>,
    counted: Arc<Counted>,
}

/// Footers of the files of a partition.
#[derive(Debug)]
struct Footers {
    reader: Arc<dyn ParquetFileReaderFactory>,
    metrics: ExecutionPlanMetricsSet,
    partition: usize,
}

impl Footers {
    /// From the cache, or read for it, as the source does when it opens the file.
    async fn of(&self, file: &PartitionedFile) -> DfResult<Arc<ParquetMetaData>> {
        let mut reader = self.reader.create_reader(self.partition, file.clone(), None, &self.metrics)?;
        Ok(reader.get_metadata(None).await?)
    }
}

/// Tells the metrics what was counted when the last file of a partition is read, or let go.
#[derive(Debug)]
struct Counted(Arc<Mutex<ReadMetrics>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.lock().sync();
    }
}

impl fmt::Debug for MaskedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaskedFiles({:?})", self.inner)
    }
}

impl Morselizer for MaskedFiles {
    fn plan_file(&self, file: PartitionedFile) -> DfResult<Box<dyn MorselPlanner>> {
        let Some(reference) = file.extension::<FileRef>().cloned() else {
            return Err(Error::internal("a file of a scan does not say which file of the table it is").into());
        };
        let place = Place {
            pin: Arc::clone(&self.context.pin),
            kind: self.context.kind,
            location: reference.planned().map_err(DataFusionError::from)?.location.clone(),
            counted: Arc::clone(&self.counted),
        };
        let planner: Box<dyn MorselPlanner> = if reference.is_plain() {
            self.inner.plan_file(file).map_err(|error| told(error, &place))?
        } else {
            Box::new(Waiting { files: self.clone(), file: Box::new(file), reference })
        };
        Ok(Box::new(Named { inner: planner, place }))
    }
}

impl MaskedFiles {
    async fn ready(&self, mut file: PartitionedFile, live: Option<BooleanBuffer>) -> DfResult<Box<dyn MorselPlanner>> {
        let Some(live) = live else { return self.inner.plan_file(file) };
        if live.count_set_bits() == 0 {
            return Ok(Box::new(Nothing));
        }
        if let Some(compaction) = &self.compaction {
            let footer = self.footers.of(&file).await?;
            file = match compaction.plan(file, &live, &footer)? {
                Ok(planned) => return Ok(planned),
                Err(file) => file,
            };
        }
        let selection = ParquetRowSelection::new(RowSelection::from_boolean_buffer(live));
        self.inner.plan_file(file.with_extension(selection))
    }
}

/// Which file of which table is read.
#[derive(Debug, Clone)]
struct Place {
    pin: Arc<Pin>,
    kind: ScanKind,
    location: Location,
    #[expect(dead_code, reason = "held while the file is read")]
    counted: Arc<Counted>,
}

/// Names the file in what the inner source says of it.
#[derive(Debug)]
struct Named<T> {
    inner: T,
    place: Place,
}

impl MorselPlanner for Named<Box<dyn MorselPlanner>> {
    fn plan(self: Box<Self>) -> DfResult<Option<MorselPlan>> {
        let Self { inner, place } = *self;
        let Some(mut plan) = inner.plan().map_err(|error| told(error, &place))? else { return Ok(None) };
        let named = |inner| -> Box<dyn MorselPlanner> { Box::new(Named { inner, place: place.clone() }) };
        let morsels = plan
            .take_morsels()
            .into_iter()
            .map(|inner| -> Box<dyn Morsel> { Box::new(Named { inner, place: place.clone() }) })
            .collect();
        let ready = plan.take_ready_planners().into_iter().map(named).collect();
        let mut renamed = MorselPlan::new().with_morsels(morsels).with_planners(ready);
        if let Some(pending) = plan.take_pending_planner() {
            let place = place.clone();
            renamed.set_pending_planner(async move {
                let inner = pending.into_future().await.map_err(|error| told(error, &place))?;
                Ok(Box::new(Named { inner, place }) as Box<dyn MorselPlanner>)
            });
        }
        Ok(Some(renamed))
    }
}

impl Morsel for Named<Box<dyn Morsel>> {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, DfResult<RecordBatch>> {
        let Self { inner, place } = *self;
        let named = place.clone();
        let batches = inner.into_stream().map_err(move |error| told(error, &named)).boxed();
        guarded_stream(batches, move |words| damaged(format!("its decoder gave up: {words}"), &place).into())
    }
}

/// An error of reading a file in our words: damage, unless it is ours already or not about the file.
fn told(error: DataFusionError, place: &Place) -> DataFusionError {
    if !is_parquet(&error) {
        return match error {
            DataFusionError::External(source) if source.is::<Error>() => {
                let ours = Error::from_datafusion(DataFusionError::External(source));
                let ours = named_in(ours, &place.pin, place.kind);
                let of_file = matches!(ours.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported);
                if of_file { ours.with_context("file", &place.location).or_restore().into() } else { ours.into() }
            }
            other => other,
        };
    }
    let ours = Error::from_datafusion(error);
    if ours.code() != "Execution" {
        return named_in(ours, &place.pin, place.kind).into();
    }
    damaged(ours.message(), place).with_source(ours).into()
}

fn damaged(what: impl fmt::Display, place: &Place) -> Error {
    let error = Error::corrupt(format!("the data file is damaged: {what}"))
        .with_code("DataFileCorrupt")
        .with_context("file", &place.location);
    named_in(error, &place.pin, place.kind).or_elsewhere()
}

fn is_parquet(error: &DataFusionError) -> bool {
    match error {
        DataFusionError::ParquetError(_) => true,
        DataFusionError::ArrowError(error, _) => matches!(error.as_ref(), ArrowError::ParquetError(_)),
        DataFusionError::External(error) => error.is::<parquet::errors::ParquetError>(),
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => is_parquet(error),
        DataFusionError::Shared(error) => is_parquet(error),
        _ => false,
    }
}

/// A file without live rows.
#[derive(Debug)]
struct Nothing;

impl MorselPlanner for Nothing {
    fn plan(self: Box<Self>) -> DfResult<Option<MorselPlan>> {
        Ok(None)
    }
}

/// A file whose mask has to be found first.
struct Waiting {
    files: MaskedFiles,
    file: Box<PartitionedFile>,
    reference: FileRef,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiting({})", self.file.object_meta.location)
    }
}

impl MorselPlanner for Waiting {
    fn plan(self: Box<Self>) -> DfResult<Option<MorselPlan>> {
        let Self { files, file, reference } = *self;
        Ok(Some(MorselPlan::new().with_pending_planner(async move {
            let live = live_mask(&files.context, &reference.section, reference.run, reference.file)
                .await
                .map_err(DataFusionError::from)?;
            files.ready(*file, live).await
        })))
    }
}
