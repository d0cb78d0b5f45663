//! Live rows taken out of decoded batches. Where most rows of a file are live and nothing prunes it, decoding all of them
//! and closing the gaps costs less than a row selection.
//!
//! What the source evaluates on the way also sees rows that are dead, so it evaluates nothing here: plain columns, no
//! condition, no check of values. Those are made up for afterwards, on live rows alone.

mod gaps;

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    ParquetAccessPlan, ParquetFileMetrics, RowGroupAccess, RowGroupAccessPlanFilter,
};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, DynamicFilterTracking};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_adapter::PhysicalExprAdapterFactory;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::ObjectStore;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use self::gaps::without_gaps;
use crate::error::Error;
use crate::query::mapping::{Mapping, Unchecked};
use crate::query::stored::Stored;

/// Of how many physical rows one has to be live.
const SPARSE: usize = 4;

/// How the files of one partition of a scan are read without a row selection.
#[derive(Debug)]
pub(super) struct Compaction {
    /// Plans files of the source that knows no condition.
    bare: Arc<dyn Morselizer>,
    /// The condition that stays above the scan: a file that it prunes is not for here.
    condition: Option<Arc<dyn PhysicalExpr>>,
    mapping: Mapping,
    table: TableSchema,
    /// Columns given out, by their place in the table's schema.
    columns: Vec<usize>,
    /// What the files are sorted by.
    sorted_by: Option<String>,
    schema: SchemaRef,
}

impl Compaction {
    /// None where the scan evaluates something on rows before it gives them out, or may end early: `bare` is the source as
    /// it was before conditions were pushed into `inner`.
    pub(super) fn of(
        inner: &Arc<dyn FileSource>,
        bare: &Arc<dyn FileSource>,
        mapping: &Mapping,
        sorted_by: Option<String>,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> DfResult<Option<Self>> {
        let Some(parquet) = inner.downcast_ref::<ParquetSource>() else { return Ok(None) };
        let condition = inner.filter();
        let is_pushed = condition.is_some() && parquet.table_parquet_options().global.pushdown_filters;
        // what changes while the scan runs prunes better file by file
        let is_dynamic = condition
            .as_ref()
            .is_some_and(|condition| DynamicFilterTracking::classify(condition).contains_dynamic_filter());
        if is_pushed || is_dynamic || config.limit.is_some() {
            return Ok(None);
        }
        let table = inner.table_schema().clone();
        let Some(projection) = inner.projection() else { return Ok(None) };
        let places = projection.iter().map(|one| one.expr.downcast_ref::<Column>().map(Column::index));
        let Some(columns) = places.collect::<Option<Vec<usize>>>() else { return Ok(None) };
        let schema = Arc::new(projection.project_schema(table.table_schema())?);
        let unchecked: Arc<dyn PhysicalExprAdapterFactory> = Arc::new(Unchecked(mapping.clone()));
        // the files are told one by one, the rest of the settings is of the source
        let config = FileScanConfigBuilder::new(config.object_store_url.clone(), Arc::clone(bare))
            .with_batch_size(config.batch_size)
            .with_expr_adapter(Some(unchecked))
            .build();
        let bare = Arc::from(bare.create_morselizer(store, &config, partition)?);
        Ok(Some(Self { bare, condition, mapping: mapping.clone(), table, columns, sorted_by, schema }))
    }

    /// Plans a file through its live rows; gives it back where a row selection is better, or the file is not laid out as
    /// this takes it.
    pub(super) fn plan(
        &self,
        file: PartitionedFile,
        live: &BooleanBuffer,
        footer: &ParquetMetaData,
    ) -> DfResult<Result<Box<dyn MorselPlanner>, PartitionedFile>> {
        let count = live.count_set_bits();
        let rows: usize = footer.row_groups().iter().map(rows_of).sum();
        if rows != live.len() || count.saturating_mul(SPARSE) < rows {
            return Ok(Err(file));
        }
        let meta = footer.file_metadata();
        let Ok(physical) = parquet_to_arrow_schema(meta.schema_descr(), meta.key_value_metadata()) else {
            return Ok(Err(file));
        };
        let Some(checks) = self.checks(&physical) else { return Ok(Err(file)) };
        if self.condition.as_ref().is_some_and(|condition| self.may_prune(condition, footer, physical)) {
            return Ok(Err(file));
        }
        let (mut access, mut stretches, mut from) = (Vec::new(), Vec::new(), 0);
        for group in footer.row_groups() {
            let rows = rows_of(group);
            let read = is_within(&file, group) && live.slice(from, rows).count_set_bits() > 0;
            access.push(if read { RowGroupAccess::Scan } else { RowGroupAccess::Skip });
            if read {
                stretches.push((from, rows));
            }
            from += rows;
        }
        // the row groups are told one by one
        let file = PartitionedFile { range: None, ..file }.with_extension(ParquetAccessPlan::new(access));
        let gaps = Gaps { live: live.clone(), stretches: stretches.into(), checks, schema: Arc::clone(&self.schema) };
        Ok(Ok(Box::new(Compacting { inner: self.bare.plan_file(file)?, gaps })))
    }

    /// What is checked of each column given out, once dead rows are gone; None where a column is not stored as it is given
    /// out, or may hold a NULL that only live rows must not have.
    fn checks(&self, physical: &Schema) -> Option<Arc<[Option<Stored>]>> {
        let stored = self.table.file_schema().fields().len();
        let check = |(at, place): (usize, &usize)| -> Option<Option<Stored>> {
            if *place >= stored {
                return Some(None);
            }
            let wanted: &FieldRef = self.table.table_schema().fields().get(*place)?;
            let Some(name) = self.mapping.columns().get(wanted.name())? else {
                return wanted.is_nullable().then_some(None);
            };
            let Some((_, held)) = physical.column_with_name(name) else {
                return wanted.is_nullable().then_some(None);
            };
            if held.data_type() != wanted.data_type() || (held.is_nullable() && !wanted.is_nullable()) {
                return None;
            }
            // what came out of a sum may be longer than its type
            let is_decimal = matches!(wanted.data_type(), DataType::Decimal128(..));
            Some(is_decimal.then(|| Stored::new(Arc::new(Column::new(wanted.name(), at)), Arc::clone(wanted))))
        };
        self.columns.iter().enumerate().map(check).collect::<Option<Vec<_>>>().map(Into::into)
    }

    /// Whether the condition rules out a row group of the file, by its bounds, or might by a bloom filter.
    fn may_prune(&self, condition: &Arc<dyn PhysicalExpr>, footer: &ParquetMetaData, physical: Schema) -> bool {
        let physical = Arc::new(physical);
        let adapter = self.mapping.create(Arc::clone(self.table.file_schema()), Arc::clone(&physical));
        // one over partition columns, or of a column that the file does not have: the source knows what to do
        let Ok(condition) = adapter.and_then(|adapter| adapter.rewrite(Arc::clone(condition))) else { return true };
        let named = collect_columns(&condition);
        // pages of a sorted column are pruned as no others are
        let key = self.sorted_by.as_ref().and_then(|key| self.mapping.columns().get(key)?.as_ref());
        if key.is_some_and(|key| named.iter().any(|column| column.name() == key)) {
            return true;
        }
        let in_bloom = footer.row_groups().iter().flat_map(RowGroupMetaData::columns).any(|chunk| {
            chunk.bloom_filter_offset().is_some()
                && named.iter().any(|column| column.name() == chunk.column_path().string())
        });
        let Ok(predicate) = PruningPredicateBuilder::new().with_file_schema(Arc::clone(&physical)).try_build(condition)
        else {
            return in_bloom;
        };
        let mut kept = RowGroupAccessPlanFilter::new(ParquetAccessPlan::new_all(footer.num_row_groups()));
        let descriptor = footer.file_metadata().schema_descr();
        let uncounted = ParquetFileMetrics::new(0, "", &ExecutionPlanMetricsSet::new());
        kept.prune_by_statistics(&physical, descriptor, footer.row_groups(), &predicate, &uncounted);
        in_bloom || kept.build().row_group_index_iter().count() < footer.num_row_groups()
    }
}

fn rows_of(group: &RowGroupMetaData) -> usize {
    usize::try_from(group.num_rows()).unwrap_or(0)
}

/// Whether a row group belongs to the part of the file that is asked for, by the rule of the source.
fn is_within(file: &PartitionedFile, group: &RowGroupMetaData) -> bool {
    let Some(range) = &file.range else { return true };
    let Some(first) = group.columns().first() else { return true };
    let offset = first.dictionary_page_offset().unwrap_or_else(|| first.data_page_offset());
    (range.start..range.end).contains(&offset)
}

/// Where the live rows of a file are, in the order in which its row groups are read.
#[derive(Clone)]
struct Gaps {
    live: BooleanBuffer,
    /// First row and rows of each row group that is read.
    stretches: Arc<[(usize, usize)]>,
    checks: Arc<[Option<Stored>]>,
    schema: SchemaRef,
}

/// A file whose batches lose their dead rows.
struct Compacting<T> {
    inner: T,
    gaps: Gaps,
}

impl<T: fmt::Debug> fmt::Debug for Compacting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compacting({:?})", self.inner)
    }
}

impl MorselPlanner for Compacting<Box<dyn MorselPlanner>> {
    fn plan(self: Box<Self>) -> DfResult<Option<MorselPlan>> {
        let Self { inner, gaps } = *self;
        let Some(mut plan) = inner.plan()? else { return Ok(None) };
        let morsels = plan.take_morsels();
        let ready = plan.take_ready_planners();
        // positions are counted from the first row on
        if morsels.len() + ready.len() > 1 {
            return Err(Error::internal("a file is read in several parts at once").into());
        }
        let around = |inner| -> Box<dyn MorselPlanner> { Box::new(Compacting { inner, gaps: gaps.clone() }) };
        let morsels: Vec<Box<dyn Morsel>> =
            morsels.into_iter().map(|inner| Box::new(Compacting { inner, gaps: gaps.clone() }) as _).collect();
        let mut compacting =
            MorselPlan::new().with_morsels(morsels).with_planners(ready.into_iter().map(around).collect());
        if let Some(pending) = plan.take_pending_planner() {
            let gaps = gaps.clone();
            compacting.set_pending_planner(async move {
                let inner = pending.into_future().await?;
                Ok(Box::new(Compacting { inner, gaps }) as Box<dyn MorselPlanner>)
            });
        }
        Ok(Some(compacting))
    }
}

impl Morsel for Compacting<Box<dyn Morsel>> {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, DfResult<RecordBatch>> {
        let Self { inner, gaps } = *self;
        let mut reader = Place { stretch: 0, row: 0 };
        let compacted = inner.into_stream().filter_map(move |batch| {
            let rest = batch.and_then(|batch| reader.live_of(&batch, &gaps));
            futures::future::ready(rest.transpose())
        });
        compacted.boxed()
    }
}

/// How far a file has been read.
struct Place {
    stretch: usize,
    /// Row of the row group.
    row: usize,
}

impl Place {
    /// The live rows of the next batch; None where it has none.
    fn live_of(&mut self, batch: &RecordBatch, gaps: &Gaps) -> DfResult<Option<RecordBatch>> {
        let rows = batch.num_rows();
        let lost = || Error::internal("the rows of a file are not read in the order of its row groups");
        while gaps.stretches.get(self.stretch).is_some_and(|(_, rows)| self.row == *rows) {
            *self = Self { stretch: self.stretch + 1, row: 0 };
        }
        let (from, of_group) = *gaps.stretches.get(self.stretch).ok_or_else(lost)?;
        // a batch does not cross a row group
        if self.row + rows > of_group {
            return Err(lost().into());
        }
        let live = gaps.live.slice(from + self.row, rows);
        self.row += rows;
        let count = live.count_set_bits();
        if count == 0 {
            return Ok(None);
        }
        let batch = if count == rows { batch.clone() } else { without_gaps(batch, &live, count)? };
        let mut columns = batch.columns().to_vec();
        for (column, check) in columns.iter_mut().zip(gaps.checks.iter()) {
            if let Some(check) = check {
                *column = check.evaluate(&batch)?.into_array(count)?;
            }
        }
        Ok(Some(RecordBatch::try_new(Arc::clone(&gaps.schema), columns)?))
    }
}
