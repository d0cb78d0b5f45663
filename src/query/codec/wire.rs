//! The bytes of a plan node: a JSON header, the manifest entries of its files as a manifest, and what DataFusion encoded.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::query::mapping::Mapping;
use crate::query::nodes::ScanSummary;
use crate::query::nodes::read_exec::Item;
use crate::query::view::LakeView;
use crate::read::{ReadColumn, SectionHandle, SectionPart};
use crate::scan::{DeletionFile, PlannedFile, Section, SectionClass, Stages, Unit, key_range};
use crate::snapshot::{Fingerprint, Pin, PinRequest, SnapshotFingerprint, Table, TableIdent};
use crate::spec::manifest::{decode_manifest, encode_manifest};
use crate::spec::{Bucket, CoreOptions, Datum, ManifestEntry, Snapshot, SnapshotId, TableSchema, Zone};
use crate::storage::{Location, Storage};

/// Version of the encoding. It also stands for how sections are cut: each process that runs a part of one cuts for itself,
/// and all must cut in the same places.
const VERSION: u32 = 4;

/// A node, taken apart.
pub struct Packed {
    /// Which node.
    pub kind: NodeKind,
    /// The pin and what planning counted.
    pub summary: Arc<ScanSummary>,
    /// Columns given out, for our own node.
    pub columns: Vec<ReadColumn>,
    /// Their schema.
    pub schema: SchemaRef,
    /// Rows that are enough.
    pub fetch: Option<usize>,
    /// Items of each output partition.
    pub partitions: Vec<Vec<Item>>,
    /// Columns of the table to columns of the files.
    pub mapping: Option<Mapping>,
    /// What DataFusion encoded.
    pub inner: Vec<u8>,
}

/// Which node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeKind {
    /// Our own.
    Read,
    /// DataFusion's Parquet source.
    Parquet,
    /// What remains of a scan that metadata answered.
    Metadata,
    /// Rows computed of data files as a whole.
    Deferred,
}

/// Rows computed of the pin of a node.
#[derive(Serialize, Deserialize)]
pub struct DeferredWire {
    /// Name of the computation.
    pub computation: String,
    /// Zone of the session that planned, as it names it.
    pub zone: String,
    /// What the computation is told.
    pub arguments: Vec<String>,
    /// Columns given out.
    pub projection: Option<Vec<usize>>,
    /// Data files it reads.
    pub files: u64,
    /// Bytes of them.
    pub file_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    kind: NodeKind,
    pin: PinWire,
    view: LakeView,
    zone: String,
    stages: Stages,
    columns: Vec<ReadColumn>,
    fetch: Option<usize>,
    mapping: Option<BTreeMap<String, Option<String>>>,
    schemas: Vec<String>,
    files: Vec<FileWire>,
    sections: Vec<SectionWire>,
    partitions: Vec<Vec<ItemWire>>,
}

#[derive(Serialize, Deserialize)]
struct PinWire {
    database: String,
    table: String,
    branch: String,
    root: String,
    path: String,
    schema: String,
    options: BTreeMap<String, String>,
    snapshot: Option<String>,
    tag: Option<String>,
    fallback: Option<Box<PinWire>>,
    primary: Option<Box<PinWire>>,
}

#[derive(Serialize, Deserialize)]
struct FileWire {
    root: String,
    path: String,
    schema: usize,
    deletion: Option<DeletionWire>,
    index_rows: Option<Vec<u8>>,
    snapshot: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct DeletionWire {
    root: String,
    path: String,
    offset: i32,
    length: i32,
    cardinality: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct SectionWire {
    class: SectionClass,
    bucket: i32,
    branch: Option<String>,
    runs: Vec<Vec<usize>>,
}

#[derive(Serialize, Deserialize)]
enum ItemWire {
    Section(usize),
    Part(usize, usize, usize),
    File(usize, usize, usize),
}

fn damaged(what: &str) -> Error {
    Error::corrupt(format!("an encoded plan is damaged: {what}")).with_code("PlanDamaged")
}

/// Encodes a node.
///
/// # Errors
/// Manifest entries that cannot be encoded.
pub fn pack(node: &Packed) -> Result<Vec<u8>> {
    let mut files = Files::default();
    let mut sections: Vec<SectionWire> = Vec::new();
    let mut known: HashMap<*const SectionHandle, usize> = HashMap::new();
    let mut section_of = |handle: &Arc<SectionHandle>, files: &mut Files| -> Result<usize> {
        if let Some(at) = known.get(&Arc::as_ptr(handle)) {
            return Ok(*at);
        }
        let runs = handle
            .section
            .runs
            .iter()
            .map(|run| run.iter().map(|file| files.add(file)).collect::<Result<Vec<_>>>())
            .collect::<Result<Vec<_>>>()?;
        sections.push(SectionWire {
            class: handle.section.class,
            bucket: handle.bucket.0,
            branch: handle.branch.clone(),
            runs,
        });
        known.insert(Arc::as_ptr(handle), sections.len() - 1);
        Ok(sections.len() - 1)
    };
    let partitions = node
        .partitions
        .iter()
        .map(|items| {
            items
                .iter()
                .map(|item| {
                    Ok(match item {
                        Item::Section(handle) => ItemWire::Section(section_of(handle, &mut files)?),
                        Item::Part { section, part } => {
                            ItemWire::Part(section_of(section, &mut files)?, part.number, part.of)
                        }
                        Item::File { section, run, file } => {
                            ItemWire::File(section_of(section, &mut files)?, *run, *file)
                        }
                    })
                })
                .collect::<Result<Vec<_>>>()
        })
        .collect::<Result<Vec<_>>>()?;
    let header = Header {
        version: VERSION,
        kind: node.kind,
        pin: pin_to_wire(&node.summary.pin),
        view: node.summary.view,
        zone: node.summary.zone.to_string(),
        stages: node.summary.stages,
        columns: node.columns.clone(),
        fetch: node.fetch,
        mapping: node.mapping.as_ref().map(|mapping| mapping.columns().clone()),
        schemas: files.schemas.iter().map(|schema| schema.to_json()).collect(),
        files: files.wires,
        sections,
        partitions,
    };
    let header = serde_json::to_vec(&header).map_err(|error| Error::internal(error.to_string()))?;
    let entries = encode_manifest(&files.entries)?;
    let mut bytes = Vec::with_capacity(header.len() + entries.len() + node.inner.len() + 16);
    for part in [&header, &entries] {
        let length = u64::try_from(part.len()).map_err(|_| Error::internal("a plan too large to encode"))?;
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes.extend_from_slice(&node.inner);
    Ok(bytes)
}

/// Decodes a node whose files lie in `stores`.
///
/// # Errors
/// Damaged bytes; a store that was not handed over.
pub fn unpack(bytes: &[u8], stores: &[Arc<Storage>]) -> Result<Packed> {
    let (header, rest) = part(bytes)?;
    let (entries, inner) = part(rest)?;
    let header: Header = serde_json::from_slice(header).map_err(|error| damaged(&error.to_string()))?;
    if header.version != VERSION {
        return Err(Error::unsupported(format!("plans of encoding {} are not known", header.version)));
    }
    let entries = decode_manifest(entries, "encoded plan")?;
    let pin = pin_from_wire(&header.pin, stores)?;
    let schemas = header
        .schemas
        .iter()
        .map(|json| TableSchema::from_json(json.as_bytes()).map(Arc::new))
        .collect::<Result<Vec<_>>>()?;
    if entries.len() != header.files.len() {
        return Err(damaged("files and entries do not fit together"));
    }
    let files = header
        .files
        .into_iter()
        .zip(entries)
        .map(|(wire, entry)| file_from_wire(wire, entry, &pin, &schemas, stores).map(Arc::new))
        .collect::<Result<Vec<_>>>()?;
    let sections =
        header.sections.into_iter().map(|wire| section_from_wire(wire, &files)).collect::<Result<Vec<_>>>()?;
    let partitions = header
        .partitions
        .into_iter()
        .map(|items| items.into_iter().map(|item| item_from_wire(&item, &sections)).collect::<Result<Vec<_>>>())
        .collect::<Result<Vec<_>>>()?;
    let (view, columns) = (header.view, header.columns);
    let schema = schema_of(&pin, view, &columns)?;
    Ok(Packed {
        kind: header.kind,
        summary: Arc::new(ScanSummary {
            pin,
            view,
            zone: Zone::parse(&header.zone)?,
            stages: header.stages,
            recalled: Arc::default(),
            report: None,
        }),
        columns,
        schema,
        fetch: header.fetch,
        partitions,
        mapping: header.mapping.map(Mapping::from_columns),
        inner: inner.to_vec(),
    })
}

/// A part that begins with its length, and what follows.
fn part(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(8).ok_or_else(|| damaged("it ends early"))?;
    let length: [u8; 8] = length.try_into().map_err(|_| damaged("it ends early"))?;
    let length = usize::try_from(u64::from_be_bytes(length)).map_err(|_| damaged("a length is too large"))?;
    rest.split_at_checked(length).ok_or_else(|| damaged("it ends early"))
}

fn schema_of(pin: &Pin, view: LakeView, columns: &[ReadColumn]) -> Result<SchemaRef> {
    let (known, schema) = view.columns(pin)?;
    let places = columns
        .iter()
        .map(|column| known.iter().position(|k| k == column).ok_or_else(|| damaged("an unknown column")))
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(schema.project(&places)?))
}

#[derive(Default)]
struct Files {
    entries: Vec<ManifestEntry>,
    wires: Vec<FileWire>,
    schemas: Vec<Arc<TableSchema>>,
}

impl Files {
    fn add(&mut self, file: &Arc<PlannedFile>) -> Result<usize> {
        let schema = match self.schemas.iter().position(|known| known == &file.file_schema) {
            Some(at) => at,
            None => {
                self.schemas.push(Arc::clone(&file.file_schema));
                self.schemas.len() - 1
            }
        };
        let index_rows = match &file.index_rows {
            Some(rows) => {
                let mut bytes = Vec::new();
                rows.serialize_into(&mut bytes).map_err(|error| Error::internal(error.to_string()))?;
                Some(bytes)
            }
            None => None,
        };
        self.entries.push(file.entry.as_ref().clone());
        self.wires.push(FileWire {
            root: file.location.root().to_string(),
            path: file.location.path().to_string(),
            schema,
            deletion: file.deletion.as_ref().map(|deletion| DeletionWire {
                root: deletion.location.root().to_string(),
                path: deletion.location.path().to_string(),
                offset: deletion.offset,
                length: deletion.length,
                cardinality: deletion.cardinality,
            }),
            index_rows,
            snapshot: file.snapshot.map(|id| id.0),
        });
        Ok(self.wires.len() - 1)
    }
}

fn store(root: &str, stores: &[Arc<Storage>]) -> Result<Arc<Storage>> {
    stores.iter().find(|store| store.root().root() == root).cloned().ok_or_else(|| {
        let shown = if root.is_empty() { "the local file system" } else { root };
        Error::invalid(format!("the plan reads from {shown}, which is not among the stores of its codec"))
            .with_code("StoreUnknown")
    })
}

fn file_from_wire(
    wire: FileWire,
    entry: ManifestEntry,
    pin: &Pin,
    schemas: &[Arc<TableSchema>],
    stores: &[Arc<Storage>],
) -> Result<PlannedFile> {
    let indices = pin.schema.partition_indices()?;
    let types: Vec<_> =
        indices.iter().filter_map(|index| pin.schema.fields.get(*index)).map(|field| field.data_type()).collect();
    let partition: Arc<[Datum]> = entry.partition.decode(&types)?.into();
    let deletion = match wire.deletion {
        Some(deletion) => Some(DeletionFile {
            location: Location::try_new(&deletion.root, &deletion.path)?,
            storage: store(&deletion.root, stores)?,
            offset: deletion.offset,
            length: deletion.length,
            cardinality: deletion.cardinality,
        }),
        None => None,
    };
    let index_rows = match wire.index_rows {
        Some(bytes) => Some(Arc::new(
            RoaringBitmap::deserialize_from(bytes.as_slice()).map_err(|error| damaged(&error.to_string()))?,
        )),
        None => None,
    };
    let file_schema = schemas.get(wire.schema).cloned().ok_or_else(|| damaged("a schema is missing"))?;
    // a selection whose files are known not to overlap does without sequence numbers
    let (min_key, max_key) = key_range(&entry, &file_schema, &pin.schema)?;
    Ok(PlannedFile {
        entry: Arc::new(entry),
        location: Location::try_new(&wire.root, &wire.path)?,
        storage: store(&wire.root, stores)?,
        deletion,
        index_rows,
        file_schema,
        partition,
        min_key,
        max_key,
        snapshot: wire.snapshot.map(SnapshotId),
    })
}

fn section_from_wire(wire: SectionWire, files: &[Arc<PlannedFile>]) -> Result<Arc<SectionHandle>> {
    let runs = wire
        .runs
        .iter()
        .map(|run| {
            run.iter()
                .map(|at| files.get(*at).cloned().ok_or_else(|| damaged("a file is missing")))
                .collect::<Result<Vec<_>>>()
        })
        .collect::<Result<Vec<_>>>()?;
    let first = runs.iter().flatten().next();
    let unit = Unit {
        partition: first.map_or_else(|| Arc::from([]), |file| Arc::clone(&file.partition)),
        bucket: Bucket(wire.bucket),
        total_buckets: first.map_or(0, |file| file.entry.total_buckets),
        branch: wire.branch,
        sections: Vec::new(),
    };
    Ok(SectionHandle::new(&unit, Section { class: wire.class, runs }))
}

fn item_from_wire(wire: &ItemWire, sections: &[Arc<SectionHandle>]) -> Result<Item> {
    let section = |at: &usize| sections.get(*at).cloned().ok_or_else(|| damaged("a section is missing"));
    Ok(match wire {
        ItemWire::Section(at) => Item::Section(section(at)?),
        ItemWire::Part(at, number, of) if number < of => {
            Item::Part { section: section(at)?, part: SectionPart { number: *number, of: *of } }
        }
        ItemWire::Part(..) => return Err(damaged("a part that is none")),
        ItemWire::File(at, run, file) => Item::File { section: section(at)?, run: *run, file: *file },
    })
}

fn pin_to_wire(pin: &Pin) -> PinWire {
    let ident = pin.table.ident();
    let root = pin.table.root();
    PinWire {
        database: ident.database.clone(),
        table: ident.table.clone(),
        branch: ident.branch.clone(),
        root: root.root().to_string(),
        path: root.path().to_string(),
        schema: pin.schema.to_json(),
        options: pin.options.raw.clone(),
        snapshot: pin.snapshot.as_ref().map(|snapshot| snapshot.to_json()),
        tag: pin.tag.clone(),
        fallback: pin.fallback.as_ref().map(|pin| Box::new(pin_to_wire(pin))),
        primary: pin.primary.as_ref().map(|pin| Box::new(pin_to_wire(pin))),
    }
}

fn pin_from_wire(wire: &PinWire, stores: &[Arc<Storage>]) -> Result<Arc<Pin>> {
    let mut ident = TableIdent::new(&wire.database, &wire.table);
    ident.branch.clone_from(&wire.branch);
    let root = Location::try_new(&wire.root, &wire.path)?;
    let table = Table::new(ident, store(&wire.root, stores)?, root.clone())?;
    let schema = Arc::new(TableSchema::from_json(wire.schema.as_bytes())?);
    let snapshot = match &wire.snapshot {
        Some(json) => Some(Arc::new(Snapshot::from_json(json.as_bytes())?)),
        None => None,
    };
    let other = |wire: &Option<Box<PinWire>>| match wire {
        Some(wire) => pin_from_wire(wire, stores).map(Some),
        None => Ok(None),
    };
    Ok(Arc::new(Pin {
        table,
        fingerprint: Fingerprint {
            location: root,
            branch: wire.branch.clone(),
            snapshot: snapshot.as_deref().map(SnapshotFingerprint::from),
        },
        request: snapshot.as_ref().map_or(PinRequest::Latest, |snapshot| PinRequest::SnapshotId(snapshot.id.0)),
        snapshot,
        options: Arc::new(CoreOptions::parse(&wire.options)?),
        notices: Vec::new(),
        tag: wire.tag.clone(),
        fallback: other(&wire.fallback)?,
        primary: other(&wire.primary)?,
        latest_schema_id: schema.id,
        declared: Arc::clone(&schema),
        newest_options: Arc::new(wire.options.clone()),
        schema,
    }))
}
