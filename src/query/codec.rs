//! Plan nodes as bytes, so that another process can run them.
//!
//! What travels: the pin as documents (schema, options, snapshot), the sections a node reads with the manifest entries of
//! their files, and the node's columns and limit; a scan through DataFusion's Parquet source travels with that source's
//! own encoding besides; of rows that are computed of a whole pin, the name of the computation; and the session's time
//! zone, which casts of old files need. What does not: stores and their
//! credentials. The receiving side opens its own and hands them to [`LakeCodec::new`]; decoding reads nothing.

mod wire;

use std::fmt;
use std::sync::Arc;

use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::TaskContext;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use self::wire::{DeferredWire, NodeKind, Packed, pack, unpack};
use super::aggregates;
use super::arithmetic;
use super::budget::PoolBudget;
use super::comparison;
use super::env::QueryEnv;
use super::finer;
use super::layout::Layout;
use super::nodes::merge_source::FileRef;
use super::nodes::read_exec::Item;
use super::nodes::{Deferred, DeferredExec, MergeSource, MetadataExec, NoConstantsExec, ReadExec, Recipe, ScanSummary};
use super::one_nan;
use super::perhaps;
use super::settings::LakepinOptions;
use super::unused_store::{UNUSED, refusing_store, unused_store};
use super::view::LakeView;
use super::work::Work;
use crate::error::{Error, Result};
use crate::scan::Stages;
use crate::snapshot::SessionZone;
use crate::storage::Storage;

/// All bytes of a [`NoConstantsExec`].
const NO_CONSTANTS: &[u8] = b"lakepin no constants";

/// Encodes and decodes the plan nodes of pinned tables.
pub struct LakeCodec {
    env: Arc<QueryEnv>,
    stores: Vec<Arc<Storage>>,
}

impl LakeCodec {
    /// A codec that finds the files of decoded plans in `stores`, by their roots.
    pub fn new(env: Arc<QueryEnv>, stores: Vec<Arc<Storage>>) -> Self {
        Self { env, stores }
    }

    fn encode(&self, node: &Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
        if node.is::<NoConstantsExec>() {
            return Ok(NO_CONSTANTS.to_vec());
        }
        if let Some(read) = node.downcast_ref::<ReadExec>() {
            return pack(&Packed {
                kind: NodeKind::Read,
                summary: Arc::clone(read.summary()),
                columns: read.columns().to_vec(),
                schema: read.schema(),
                fetch: read.fetch(),
                partitions: read.partitions().to_vec(),
                mapping: None,
                inner: Vec::new(),
            });
        }
        if let Some(answered) = node.downcast_ref::<MetadataExec>() {
            return pack(&Packed {
                kind: NodeKind::Metadata,
                summary: Arc::clone(answered.summary()),
                columns: Vec::new(),
                schema: node.schema(),
                fetch: None,
                partitions: Vec::new(),
                mapping: None,
                inner: Vec::new(),
            });
        }
        if let Some(deferred) = node.downcast_ref::<DeferredExec>() {
            return encode_deferred(deferred);
        }
        let (config, source) = merge_scan(node).ok_or_else(|| {
            Error::unsupported(format!("{} is no node of a pinned table", node.name())).with_code("NotImplemented")
        })?;
        let partitions = config
            .file_groups
            .iter()
            .map(|group| {
                group
                    .iter()
                    .map(|file| {
                        let file = file
                            .extension::<FileRef>()
                            .ok_or_else(|| Error::internal("a file of a scan does not say which file it is"))?;
                        Ok(Item::File { section: Arc::clone(&file.section), run: file.run, file: file.file })
                    })
                    .collect::<Result<Vec<_>>>()
            })
            .collect::<Result<Vec<_>>>()?;
        let mut plain = config.clone();
        plain.object_store_url = ObjectStoreUrl::parse(UNUSED)?;
        let plain =
            FileScanConfigBuilder::from(plain).with_source(Arc::clone(source.inner())).with_expr_adapter(None).build();
        let inner = physical_plan_to_bytes_with_extension_codec(DataSourceExec::from_data_source(plain), self)?;
        pack(&Packed {
            kind: NodeKind::Parquet,
            summary: Arc::clone(source.summary()),
            columns: Vec::new(),
            schema: node.schema(),
            fetch: None,
            partitions,
            mapping: Some(source.mapping().clone()),
            inner: inner.to_vec(),
        })
    }

    fn decode_deferred(&self, packed: &Packed, task: &TaskContext) -> Result<Arc<dyn ExecutionPlan>> {
        let wire: DeferredWire = serde_json::from_slice(&packed.inner)
            .map_err(|error| Error::corrupt(format!("the plan does not say what to compute: {error}")))?;
        let computation = self.env.computation(&wire.computation).ok_or_else(|| {
            Error::invalid(format!(
                "the plan asks for {}, which the codec's environment does not know",
                wire.computation
            ))
            .with_code("ComputationUnknown")
            .with_hint("make the codec with the environment of a warehouse")
        })?;
        let zone = SessionZone::parse(&wire.zone)?;
        let recipe = Recipe { pin: Arc::clone(&packed.summary.pin), zone, arguments: wire.arguments };
        let budget = Arc::new(PoolBudget::new(&task.runtime_env().memory_pool, computation.name));
        let rows = Deferred::new(computation, recipe, Arc::clone(&self.env), budget);
        let work = Work { files: wire.files, file_bytes: wire.file_bytes, ..Work::default() };
        Ok(Arc::new(DeferredExec::try_new(rows, wire.projection, work)?))
    }

    fn decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        task: &TaskContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if bytes == NO_CONSTANTS {
            let [input] = inputs else { return Err(Error::corrupt("a node without its input")) };
            return Ok(Arc::new(NoConstantsExec::new(Arc::clone(input))));
        }
        let packed = unpack(bytes, &self.stores)?;
        match (packed.kind, inputs) {
            (NodeKind::Metadata, [input]) => {
                return Ok(Arc::new(MetadataExec::new(packed.summary, Arc::clone(input))));
            }
            (NodeKind::Metadata, _) => return Err(Error::corrupt("a node without its input")),
            (NodeKind::Deferred, []) => return self.decode_deferred(&packed, task),
            (_, []) => {}
            (_, _) => return Err(Error::corrupt("a scan has no inputs")),
        }
        let config = task.session_config();
        let layout = Layout {
            summary: packed.summary,
            caches: Arc::clone(&self.env.read),
            columns: packed.columns.into(),
            schema: packed.schema,
            fetch: packed.fetch,
            target_partitions: config.target_partitions(),
            merge_source: true,
            keep_selections: LakepinOptions::of(config.options()).selection_cache,
            // files were cut where the plan was made
            split_from_bytes: None,
            batch_size: config.batch_size(),
            parquet: Default::default(),
            runtime: task.runtime_env(),
        };
        match packed.kind {
            NodeKind::Metadata | NodeKind::Deferred => Err(Error::internal("a node without files is no scan")),
            NodeKind::Read => layout.read_node(packed.partitions),
            NodeKind::Parquet => {
                let mapping = packed.mapping.ok_or_else(|| Error::corrupt("the plan has no mapping of columns"))?;
                let context = layout.selection_context()?;
                // DataFusion looks the store up while it decodes; this session may have none of the sender's
                refusing_store(&layout.runtime)?;
                let inner = physical_plan_from_bytes_with_extension_codec(&packed.inner, task, self)?;
                let config = parquet_config(&inner)
                    .ok_or_else(|| Error::corrupt("the plan holds another node than a Parquet scan"))?;
                let reader = layout.reader_factory(&context);
                let source = config
                    .file_source()
                    .downcast_ref::<ParquetSource>()
                    .ok_or_else(|| Error::corrupt("the plan holds another source than Parquet's"))?
                    .clone()
                    .with_parquet_file_reader_factory(Arc::clone(&reader));
                let groups = regroup(config, packed.partitions)?;
                let plain = groups
                    .iter()
                    .flat_map(|group| group.iter())
                    .all(|file| file.extension::<FileRef>().is_some_and(FileRef::is_plain));
                let source = MergeSource::new(
                    Arc::new(source),
                    reader,
                    context,
                    Arc::clone(&layout.summary),
                    mapping.clone(),
                    plain,
                );
                let mut config = config.clone();
                config.object_store_url = unused_store(&layout.runtime)?;
                let config = FileScanConfigBuilder::from(config)
                    .with_source(Arc::new(source))
                    .with_file_groups(groups)
                    .with_expr_adapter(Some(Arc::new(mapping)))
                    .build();
                Ok(DataSourceExec::from_data_source(config))
            }
        }
    }
}

fn encode_deferred(node: &DeferredExec) -> Result<Vec<u8>> {
    let (recipe, work) = (node.rows().recipe(), node.work());
    let wire = DeferredWire {
        computation: node.rows().computation().name.to_string(),
        zone: recipe.zone.name(),
        arguments: recipe.arguments.clone(),
        projection: node.projection().cloned(),
        files: work.files,
        file_bytes: work.file_bytes,
    };
    let summary = ScanSummary {
        pin: Arc::clone(&recipe.pin),
        view: LakeView::Rows,
        zone: recipe.zone.zone(),
        stages: Stages::default(),
        recalled: Arc::default(),
        report: None,
    };
    pack(&Packed {
        kind: NodeKind::Deferred,
        summary: Arc::new(summary),
        columns: Vec::new(),
        schema: node.schema(),
        fetch: None,
        partitions: Vec::new(),
        mapping: None,
        inner: serde_json::to_vec(&wire).map_err(|error| Error::internal(error.to_string()))?,
    })
}

/// The files of a decoded scan, each with its place in its section.
fn regroup(config: &FileScanConfig, partitions: Vec<Vec<Item>>) -> Result<Vec<FileGroup>> {
    let other = || Error::corrupt("the plan's files and sections do not fit together");
    if config.file_groups.len() != partitions.len() {
        return Err(other());
    }
    config
        .file_groups
        .iter()
        .zip(partitions)
        .map(|(group, items)| {
            if group.len() != items.len() {
                return Err(other());
            }
            let files = group
                .iter()
                .zip(items)
                .map(|(file, item)| match item {
                    Item::File { section, run, file: at } => {
                        let reference = FileRef { section, run, file: at };
                        if reference.planned()?.location.path() != &file.object_meta.location {
                            return Err(other());
                        }
                        Ok(file.clone().with_extension(reference))
                    }
                    Item::Section(_) | Item::Part { .. } => Err(other()),
                })
                .collect::<Result<Vec<PartitionedFile>>>()?;
            Ok(FileGroup::new(files))
        })
        .collect()
}

fn parquet_config(node: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    node.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()
}

fn merge_scan(node: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &MergeSource)> {
    let config = parquet_config(node)?;
    Some((config, config.file_source().downcast_ref::<MergeSource>()?))
}

impl fmt::Debug for LakeCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LakeCodec").field("stores", &self.stores.len()).finish_non_exhaustive()
    }
}

impl PhysicalExtensionCodec for LakeCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        task: &TaskContext,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        self.decode(bytes, inputs, task).map_err(DataFusionError::from)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> DfResult<()> {
        bytes.extend(self.encode(&node)?);
        Ok(())
    }

    /// The functions of comparisons, of arithmetic and of subqueries; any other one is known by its name.
    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> DfResult<()> {
        let stateless = || {
            let known = [arithmetic::is_checked, perhaps::is_ours, finer::is_ours, one_nan::is_ours];
            known.iter().any(|is_ours| is_ours(function)).then(Vec::new)
        };
        if let Some(state) = comparison::state_of(function).or_else(stateless) {
            bytes.extend(serde_json::to_vec(&state).map_err(|e| DataFusionError::External(Box::new(e)))?);
        }
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> DfResult<Arc<ScalarUDF>> {
        let state = serde_json::from_slice(bytes)
            .map_err(|e| Error::corrupt(format!("the plan does not say what {name} is")).with_source(e))?;
        let function = comparison::of_state(name, state).or_else(|| arithmetic::of_name(name));
        let function = function.or_else(|| perhaps::of_name(name)).or_else(|| finer::of_name(name));
        let function = function.or_else(|| one_nan::of_name(name));
        Ok(Arc::new(function.ok_or_else(|| Error::corrupt(format!("the plan calls {name}, which is not known")))?))
    }

    /// Our own in the place of DataFusion's, which have the same names; any other one is known by its name.
    fn try_encode_udaf(&self, function: &AggregateUDF, bytes: &mut Vec<u8>) -> DfResult<()> {
        if aggregates::is_ours(function) {
            bytes.extend(OWN);
        }
        Ok(())
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> DfResult<Arc<AggregateUDF>> {
        let function = aggregates::of_name(name).filter(|_| bytes == OWN);
        Ok(Arc::new(function.ok_or_else(|| Error::corrupt(format!("the plan calls {name}, which is not known")))?))
    }
}

/// Stands for an aggregate function of ours.
const OWN: &[u8] = b"lakepin";
