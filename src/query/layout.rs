//! From sections to plan nodes: Parquet files whose rows are not combined go to DataFusion's own Parquet source, the rest
//! to our node; a union holds both when there are both.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{Fields, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema as ScanSchema;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use datafusion_datasource::file_groups::FileGroupPartitioner;
use object_store::ObjectMeta;

use super::budget::PoolBudget;
use super::mapping::Mapping;
use super::nodes::merge_source::FileRef;
use super::nodes::read_exec::Item;
use super::nodes::{LakeReaderFactory, MergeSource, ReadExec, ScanSummary};
use super::spread::spread;
use super::statistics::{UnitFacts, statistics_of};
use super::unused_store::unused_store;
use crate::error::{Error, Result};
use crate::file::FileFormat;
use crate::read::{ReadCaches, ReadColumn, ReadContext, ReadOptions};
use crate::scan::{datum_to_scalar, partition_text};
use crate::spec::arrow_types::arrow_field;
use crate::spec::{DataField, Datum, TableSchema};

/// What all nodes of one scan have in common.
#[derive(Clone)]
pub struct Layout {
    /// The pin and what planning counted.
    pub summary: Arc<ScanSummary>,
    /// Footers and index files.
    pub caches: Arc<ReadCaches>,
    /// Columns given out.
    pub columns: Arc<[ReadColumn]>,
    /// Their schema.
    pub schema: SchemaRef,
    /// Rows that are enough.
    pub fetch: Option<usize>,
    /// Output partitions wanted of each node.
    pub target_partitions: usize,
    /// Whether DataFusion's Parquet source may be used.
    pub merge_source: bool,
    /// Size from which a Parquet file may be cut, when there are fewer files than output partitions; None: never.
    pub split_from_bytes: Option<usize>,
    /// Whether selections are kept between statements.
    pub keep_selections: bool,
    /// Rows of a batch, for selections.
    pub batch_size: usize,
    /// The session's Parquet options.
    pub parquet: TableParquetOptions,
    /// Memory, stores.
    pub runtime: Arc<RuntimeEnv>,
}

impl Layout {
    /// The plan node over `items` (with their weights).
    ///
    /// # Errors
    /// Columns or partition values that do not fit the schema.
    pub fn node(&self, items: Vec<(Item, u64)>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut mapped: BTreeMap<Mapping, Vec<(FileRef, u64)>> = BTreeMap::new();
        let mut rest = Vec::new();
        for (item, weight) in items {
            match self.mapping(&item) {
                Some((mapping, reference)) => mapped.entry(mapping).or_default().push((reference, weight)),
                None => rest.push((item, weight)),
            }
        }
        let mut nodes = Vec::new();
        for (mapping, files) in mapped {
            nodes.push(self.parquet_node(mapping, spread(files, self.target_partitions))?);
        }
        if nodes.is_empty() || !rest.is_empty() {
            nodes.push(self.read_node(spread(rest, self.target_partitions))?);
        }
        match (nodes.pop(), nodes.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                nodes.push(last);
                Ok(UnionExec::try_new(nodes)?)
            }
            (None, _) => Err(Error::internal("a scan has no node")),
        }
    }

    /// How DataFusion's source would find the columns of a file; None when it may not read it.
    fn mapping(&self, item: &Item) -> Option<(Mapping, FileRef)> {
        if !self.merge_source || self.summary.view.shows_kinds() || self.summary.view.scan_kind().is_unmerged() {
            return None;
        }
        let Item::File { section, run, file } = item else { return None };
        let reference = FileRef { section: Arc::clone(section), run: *run, file: *file };
        let planned = reference.planned().ok()?;
        if !matches!(FileFormat::of_file(&planned.entry.file.file_name), Ok(FileFormat::Parquet)) {
            return None;
        }
        let table = &self.summary.pin.schema;
        let partition = table.partition_indices().ok()?;
        let mut stored = Vec::new();
        for column in self.columns.iter() {
            let ReadColumn::Field(index) = column else { return None };
            if !partition.contains(index) {
                stored.push(*index);
            }
        }
        // what the manifest entry tells needs no file
        if stored.is_empty() {
            return None;
        }
        Some((Mapping::of(table, &planned.file_schema, &stored)?, reference))
    }

    /// Our own node.
    ///
    /// # Errors
    /// Statistics that do not fit the schema.
    pub fn read_node(&self, partitions: Vec<Vec<Item>>) -> Result<Arc<dyn ExecutionPlan>> {
        let facts = UnitFacts::of(partitions.iter().flatten(), self.summary.view.scan_kind());
        Ok(Arc::new(ReadExec::try_new(
            Arc::clone(&self.summary),
            Arc::clone(&self.caches),
            Arc::clone(&self.columns),
            Arc::clone(&self.schema),
            partitions,
            Arc::new(facts),
            self.fetch,
        )?))
    }

    /// DataFusion's Parquet source over files of one mapping.
    ///
    /// # Errors
    /// Columns or partition values that do not fit the schema.
    pub fn parquet_node(&self, mapping: Mapping, groups: Vec<Vec<FileRef>>) -> Result<Arc<dyn ExecutionPlan>> {
        let pin = &self.summary.pin;
        let partition = pin.schema.partition_indices()?;
        let stored: Vec<usize> = (0..pin.schema.fields.len()).filter(|index| !partition.contains(index)).collect();
        let order: Vec<ReadColumn> = stored.iter().chain(&partition).map(|index| ReadColumn::Field(*index)).collect();
        let field = |index: &usize| {
            pin.schema
                .fields
                .get(*index)
                .map(|field| Arc::new(arrow_field(field)))
                .ok_or_else(|| Error::internal(format!("the schema has no column number {index}")))
        };
        let stored_fields: Fields = stored.iter().map(field).collect::<Result<_>>()?;
        let partition_fields = partition.iter().map(field).collect::<Result<Vec<_>>>()?;
        let schema = ScanSchema::builder(Arc::new(Schema::new(stored_fields)))
            .with_table_partition_cols(partition_fields)
            .build();
        let projection = self
            .columns
            .iter()
            .map(|column| {
                order
                    .iter()
                    .position(|known| known == column)
                    .ok_or_else(|| Error::internal("the Parquet source does not have a column asked for"))
            })
            .collect::<Result<Vec<_>>>()?;

        let files: Vec<Item> = groups
            .iter()
            .flatten()
            .map(|file| Item::File { section: Arc::clone(&file.section), run: file.run, file: file.file })
            .collect();
        let facts = UnitFacts::of(&files, self.summary.view.scan_kind());
        let statistics = statistics_of(&facts, pin, &order, schema.table_schema())?;
        let plain = groups.iter().flatten().all(FileRef::is_plain);
        let mut values = PartitionScalars::try_new(&pin.schema, &self.columns)?;
        let groups = groups
            .into_iter()
            .map(|files| {
                let files = files.into_iter().map(|file| partitioned(file, &mut values)).collect::<Result<_>>()?;
                Ok(FileGroup::new(files))
            })
            .collect::<Result<Vec<_>>>()?;
        let groups = self.cut(groups);

        let mut options = self.parquet.clone();
        // INT96 in microseconds does not overflow
        options.global.coerce_int96 = Some("us".to_string());
        options.global.coerce_int96_tz = None;
        let context = self.selection_context()?;
        let reader = self.reader_factory(&context);
        let inner = ParquetSource::new(schema)
            .with_table_parquet_options(options)
            .with_parquet_file_reader_factory(Arc::clone(&reader));
        let source: Arc<dyn FileSource> = Arc::new(MergeSource::new(
            Arc::new(inner),
            reader,
            context,
            Arc::clone(&self.summary),
            mapping.clone(),
            plain,
        ));
        // A partitioning that is declared, even as unknown, keeps the files of a partition its own. Else the partitions
        // share a queue that lives in the node: a node executed a second time would find it empty and give no rows.
        let partitioning = Partitioning::UnknownPartitioning(groups.len());
        let config = FileScanConfigBuilder::new(unused_store(&self.runtime)?, source)
            .with_file_groups(groups)
            .with_output_partitioning(Some(partitioning))
            .with_statistics(statistics)
            .with_expr_adapter(Some(Arc::new(mapping)))
            .with_projection_indices(Some(projection))?
            .with_limit(self.fetch)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    /// Cuts large files when there are too few of them for every core.
    fn cut(&self, groups: Vec<FileGroup>) -> Vec<FileGroup> {
        let Some(bytes) = self.split_from_bytes.filter(|_| groups.len() < self.target_partitions) else {
            return groups;
        };
        FileGroupPartitioner::new()
            .with_target_partitions(self.target_partitions)
            .with_repartition_file_min_size(bytes)
            .repartition_file_groups(&groups)
            .unwrap_or(groups)
    }

    /// What the Parquet source opens files with.
    pub fn reader_factory(&self, context: &ReadContext) -> Arc<dyn ParquetFileReaderFactory> {
        Arc::new(LakeReaderFactory {
            pin: Arc::clone(&self.summary.pin),
            kind: self.summary.view.scan_kind(),
            files: Arc::clone(&self.caches.files),
            meter: context.counters.meter().clone(),
        })
    }

    /// The read that selections and kinds are found with.
    ///
    /// # Errors
    /// Merge options that contradict the schema.
    pub fn selection_context(&self) -> Result<Arc<ReadContext>> {
        ReadContext::try_new(
            Arc::clone(&self.summary.pin),
            self.summary.view.scan_kind(),
            false,
            Vec::new(),
            ReadOptions {
                batch_size: self.batch_size,
                parallelism: self.target_partitions.max(1) * 2,
                zone: self.summary.zone,
                budget: Arc::new(PoolBudget::new(&self.runtime.memory_pool, "MergeSource")),
                keep_selections: self.keep_selections,
            },
            Arc::clone(&self.caches),
        )
    }
}

/// A file as DataFusion lists it, with the values of its partition.
fn partitioned(file: FileRef, values: &mut PartitionScalars<'_>) -> Result<PartitionedFile> {
    let planned = file.planned()?;
    let values = values.of(&planned.partition)?;
    let meta = ObjectMeta {
        location: planned.location.path().clone(),
        last_modified: chrono::DateTime::UNIX_EPOCH,
        size: planned.entry.file.file_size,
        e_tag: None,
        version: None,
    };
    Ok(PartitionedFile::new_from_meta(meta).with_partition_values(values).with_extension(file))
}

/// Values of partition columns as scalars. The last ones are kept: neighbouring files mostly share their partition.
struct PartitionScalars<'a> {
    fields: Vec<PartitionColumn<'a>>,
    last: Option<(Arc<[Datum]>, Vec<ScalarValue>)>,
}

struct PartitionColumn<'a> {
    field: &'a DataField,
    /// Whether the query asks for it.
    is_read: bool,
}

impl PartitionColumn<'_> {
    /// The value; NULL for one that Arrow does not hold and nobody reads.
    fn scalar(&self, value: &Datum) -> Result<ScalarValue> {
        match datum_to_scalar(value, self.field.data_type()) {
            Err(_) if !self.is_read => datum_to_scalar(&Datum::Null, self.field.data_type()),
            Err(error) => Err(error.with_context("column", &self.field.name)),
            scalar => scalar,
        }
    }
}

impl<'a> PartitionScalars<'a> {
    fn try_new(schema: &'a TableSchema, read: &[ReadColumn]) -> Result<Self> {
        let column = |index| {
            let field = schema.fields.get(index)?;
            Some(PartitionColumn { field, is_read: read.contains(&ReadColumn::Field(index)) })
        };
        Ok(Self { fields: schema.partition_indices()?.into_iter().filter_map(column).collect(), last: None })
    }

    fn of(&mut self, partition: &Arc<[Datum]>) -> Result<Vec<ScalarValue>> {
        if let Some((known, values)) = &self.last
            && Arc::ptr_eq(known, partition)
        {
            return Ok(values.clone());
        }
        let named = |error: Error| {
            let names: Vec<String> = self.fields.iter().map(|column| column.field.name.clone()).collect();
            error.with_context("partition", partition_text(&names, partition))
        };
        let values = partition.iter().zip(&self.fields).map(|(value, column)| column.scalar(value));
        let values = values.collect::<Result<Vec<_>>>().map_err(named)?;
        self.last = Some((Arc::clone(partition), values.clone()));
        Ok(values)
    }
}
