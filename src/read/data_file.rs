//! One data file to rows: which columns are read from it, which are made.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int8Array, Int64Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{Int8Type, Int64Type, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::context::{ReadColumn, ReadContext};
use super::deletion::{mask_rows, physical_rows};
use super::held::Held;
use super::section::RowStream;
use super::stretch::{by_stretches, narrowed};
use crate::error::{Error, ErrorKind, Result};
use crate::file::{FileOptions, FileTask, OutputColumn, SEQUENCE_NUMBER};
use crate::scan::{PlannedFile, partition_text};
use crate::spec::{DataField, DataType, Datum, FieldType, FileSource, RowKind, TableSchema};

/// How one column of the result comes about.
#[derive(Debug, Clone, Copy)]
enum Made {
    /// A column of the file room's batches.
    Read(usize),
    /// The same value in every row.
    Kind(RowKind),
    /// The same value in every row.
    Sequence(i64),
    /// Stored value, else first row id + position.
    RowId { stored: usize, position: usize, first: i64 },
    /// Stored value, else this.
    StoredOr { stored: usize, other: i64 },
}

/// What is asked of one file.
#[derive(Debug, Clone)]
pub struct FileRead {
    /// Columns of the result.
    pub columns: Arc<[ReadColumn]>,
    /// Schema of the result.
    pub schema: SchemaRef,
    /// Rows wanted by physical position; None: all.
    pub live: Option<BooleanBuffer>,
    /// Whether rows of kind -U and -D are left out; the kind column is read for it.
    pub drop_retracts: bool,
    /// Whether sequence numbers are replaced by the smallest of the file where the writer, not a compaction, made it
    /// (`sequence.snapshot-ordering`).
    pub snapshot_ordering: bool,
    /// Rows of a batch.
    pub batch_size: usize,
}

/// What is asked of the file room.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A column of the table.
    Field(DataField),
    /// As stored, not null.
    SequenceNumber,
    /// As stored, not null.
    ValueKind,
    /// Physical position.
    RowPosition,
    /// A row-tracking column: null where the file has none.
    Stored(Stored),
}

/// Columns of row tracking, which no schema lists and only some files hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// `_ROW_ID`
    RowId,
    /// `_SEQUENCE_NUMBER`
    SequenceNumber,
}

impl Stored {
    /// The column as a field, with the id the format reserves for it.
    fn field(self) -> DataField {
        let (id, name) = match self {
            Self::RowId => (i32::MAX - 5, "_ROW_ID"),
            Self::SequenceNumber => (i32::MAX - 1, SEQUENCE_NUMBER),
        };
        DataField {
            id,
            name: name.to_string(),
            field_type: FieldType { data_type: DataType::BigInt, nullable: true },
            description: None,
            default_value: None,
            sums: false,
        }
    }
}

impl Output {
    /// A column of the pin's schema, by its place there.
    pub fn field(context: &ReadContext, index: usize) -> Result<Self> {
        let field = context.pin.schema.fields.get(index);
        let missing = || Error::internal(format!("the schema has no column number {index}"));
        field.map(|field| Self::Field(field.clone())).ok_or_else(missing)
    }

    pub(super) fn column(&self) -> OutputColumn {
        match self {
            Self::Field(field) => OutputColumn::Field(field.clone()),
            Self::SequenceNumber => OutputColumn::SequenceNumber,
            Self::ValueKind => OutputColumn::ValueKind,
            Self::RowPosition => OutputColumn::RowPosition,
            Self::Stored(stored) => OutputColumn::Field(stored.field()),
        }
    }
}

/// The schema of a file, with the columns of row tracking it may hold besides.
fn with_stored_columns(schema: &TableSchema) -> Arc<TableSchema> {
    let mut schema = schema.clone();
    schema.fields.extend([Stored::RowId.field(), Stored::SequenceNumber.field()]);
    Arc::new(schema)
}

struct Plan {
    outputs: Vec<Output>,
    made: Vec<Made>,
    kind: Option<usize>,
}

impl Plan {
    fn new(context: &ReadContext, file: &PlannedFile, read: &FileRead) -> Result<Self> {
        let mut plan = Self { outputs: Vec::new(), made: Vec::with_capacity(read.columns.len()), kind: None };
        if read.drop_retracts {
            plan.kind = Some(plan.want(Output::ValueKind));
        }
        let meta = &file.entry.file;
        for column in read.columns.iter() {
            let made = match column {
                ReadColumn::Field(index) => Made::Read(plan.want(Output::field(context, *index)?)),
                ReadColumn::ValueKind if context.has_kinds() => Made::Read(plan.want(Output::ValueKind)),
                ReadColumn::ValueKind => Made::Kind(RowKind::Insert),
                ReadColumn::SequenceNumber if context.has_kinds() => {
                    let fixed = if read.snapshot_ordering { snapshot_sequence(file)? } else { None };
                    match fixed {
                        Some(number) => Made::Sequence(number),
                        None => Made::Read(plan.want(Output::SequenceNumber)),
                    }
                }
                ReadColumn::SequenceNumber => Made::StoredOr {
                    stored: plan.want(Output::Stored(Stored::SequenceNumber)),
                    other: meta.max_sequence_number,
                },
                ReadColumn::RowId => {
                    let first = meta.first_row_id.ok_or_else(|| {
                        Error::corrupt("the manifest entry has no first row id").with_context("file", &file.location)
                    })?;
                    if first.checked_add(meta.row_count).is_none() {
                        return Err(Error::corrupt(format!(
                            "the {} rows of a file cannot be numbered from {first} on",
                            meta.row_count
                        ))
                        .with_context("file", &file.location)
                        .or_restore());
                    }
                    Made::RowId {
                        stored: plan.want(Output::Stored(Stored::RowId)),
                        position: plan.want(Output::RowPosition),
                        first,
                    }
                }
            };
            plan.made.push(made);
        }
        Ok(plan)
    }

    /// Place of `output` in the file room's batches.
    fn want(&mut self, output: Output) -> usize {
        if let Some(at) = self.outputs.iter().position(|known| *known == output) {
            return at;
        }
        self.outputs.push(output);
        self.outputs.len() - 1
    }

    /// Brings a batch of the file room into the shape of the result.
    fn shape(&self, batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let batch = match self.kind {
            Some(kind) => drop_retracts(batch, kind)?,
            None => batch,
        };
        let rows = batch.num_rows();
        let column = |at: usize| -> Result<&ArrayRef> {
            batch.columns().get(at).ok_or_else(|| Error::internal("a data file gave fewer columns than asked for"))
        };
        let columns = self
            .made
            .iter()
            .map(|made| {
                Ok(match made {
                    Made::Read(at) => Arc::clone(column(*at)?),
                    Made::Kind(kind) => Arc::new(Int8Array::from_value(*kind as i8, rows)),
                    Made::Sequence(number) => Arc::new(Int64Array::from_value(*number, rows)),
                    Made::StoredOr { stored, other } => {
                        let stored = column(*stored)?.as_primitive::<Int64Type>();
                        Arc::new(stored.iter().map(|value| Some(value.unwrap_or(*other))).collect::<Int64Array>())
                    }
                    Made::RowId { stored, position, first } => {
                        let stored = column(*stored)?.as_primitive::<Int64Type>();
                        let positions = column(*position)?.as_primitive::<Int64Type>();
                        Arc::new(
                            stored
                                .iter()
                                .zip(positions.values())
                                .map(|(value, position)| Some(value.unwrap_or(first.saturating_add(*position))))
                                .collect::<Int64Array>(),
                        )
                    }
                })
            })
            .collect::<Result<Vec<ArrayRef>>>()?;
        batch_of(schema, columns, rows)
    }
}

/// A batch that keeps its row count when it has no columns.
pub fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// The sequence number that all rows of a file get under `sequence.snapshot-ordering`; None: as stored.
pub fn snapshot_sequence(file: &PlannedFile) -> Result<Option<i64>> {
    match file.entry.file.file_source {
        Some(FileSource::Append) => Ok(Some(file.entry.file.min_sequence_number)),
        Some(FileSource::Compact) => Ok(None),
        None => Err(Error::corrupt("the manifest entry does not tell whether a writer or a compaction made the file")
            .with_context("file", &file.location)
            .with_context("option", "sequence.snapshot-ordering")),
    }
}

/// Which kinds add (`+I`, `+U`).
pub fn adding(kinds: &ArrayRef) -> Result<BooleanBuffer> {
    let kinds = kinds.as_primitive_opt::<Int8Type>().ok_or_else(|| Error::internal("row kinds are not TINYINT"))?;
    let mut unknown = None;
    let adds = BooleanBuffer::collect_bool(kinds.len(), |row| {
        let byte = if kinds.is_null(row) { 0 } else { kinds.value(row) };
        match RowKind::from_byte(byte) {
            Some(kind) => !kind.is_retract(),
            None => {
                unknown = Some(byte);
                true
            }
        }
    });
    match unknown {
        Some(byte) => Err(Error::corrupt(format!("{byte} is no row kind"))),
        None => Ok(adds),
    }
}

fn drop_retracts(batch: RecordBatch, kind: usize) -> Result<RecordBatch> {
    let kinds = batch.columns().get(kind).ok_or_else(|| Error::internal("a data file gave no row kinds"))?;
    let adds = adding(kinds)?;
    if adds.count_set_bits() == batch.num_rows() {
        return Ok(batch);
    }
    Ok(filter_record_batch(&batch, &BooleanArray::new(adds, None))?)
}

/// Opens `file` and gives its wanted rows. The file is opened at the first poll.
pub fn read_file(context: &Arc<ReadContext>, file: &Arc<PlannedFile>, read: FileRead) -> RowStream {
    let (context, file) = (Arc::clone(context), Arc::clone(file));
    stream::once(async move { open(context, file, read).await }).flat_map(flatten).boxed()
}

fn flatten(opened: Result<RowStream>) -> RowStream {
    match opened {
        Ok(rows) => rows,
        Err(error) => stream::once(async { Err(error) }).boxed(),
    }
}

async fn open(context: Arc<ReadContext>, file: Arc<PlannedFile>, read: FileRead) -> Result<RowStream> {
    let plan = Plan::new(&context, &file, &read)?;
    let rows = physical_rows(&file)?;
    if read.live.as_ref().is_some_and(|live| live.len() != rows) {
        return Err(Error::internal("the mask of a file has another length than the file"));
    }
    let live = read.live.filter(|live| live.count_set_bits() < rows);
    if live.as_ref().is_some_and(|live| live.count_set_bits() == 0) {
        return Ok(stream::empty().boxed());
    }
    let batches = open_columns(&context, &file, plan.outputs.clone(), live, read.batch_size).await?;
    let schema = read.schema;
    let located = Arc::clone(&file);
    Ok(batches
        .map(move |batch| plan.shape(batch?, &schema).map_err(|error| error.with_context("file", &located.location)))
        .boxed())
}

/// Opens `file` for `outputs`; a file that is gone is told as such, also in the middle of reading.
pub async fn open_columns(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    outputs: Vec<Output>,
    live: Option<BooleanBuffer>,
    batch_size: usize,
) -> Result<BoxStream<'static, Result<RecordBatch>>> {
    let mut task = FileTask::new(
        Arc::clone(&file.storage),
        file.location.clone(),
        file.entry.file.file_size,
        Arc::clone(&file.file_schema),
        outputs.iter().map(Output::column).collect(),
    );
    if outputs.iter().any(|output| matches!(output, Output::Stored(_))) {
        task.file_schema = with_stored_columns(&file.file_schema);
    }
    task.row_count = u64::try_from(file.entry.file.row_count).ok();
    task.constants = partition_constants(context, file)?;
    let keys = context.pin.schema.trimmed_primary_key()?;
    task.keys = keys.into_iter().filter_map(|at| context.pin.schema.fields.get(at)).map(|field| field.id).collect();
    task.live = live;
    task.options = FileOptions::default().with_batch_size(batch_size).with_zone(context.options.zone);
    task.budget = Arc::clone(&context.options.budget);
    task.meter = context.counters.meter().clone();
    context.counters.add_files(1);
    let batches = match crate::file::open(&context.caches.files, &task).await {
        Ok(batches) => batches,
        Err(error) => return Err(explain(context, file, error).await),
    };
    let (context, file) = (Arc::clone(context), Arc::clone(file));
    Ok(batches
        .then(move |batch| {
            let (context, file) = (Arc::clone(&context), Arc::clone(&file));
            async move {
                // a task that is aborted ends here, however much is decoded without waiting
                tokio::task::consume_budget().await;
                match batch {
                    Ok(batch) => Ok(batch),
                    Err(error) => Err(explain(&context, &file, error).await),
                }
            }
        })
        .boxed())
}

async fn explain(context: &ReadContext, file: &PlannedFile, error: Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        return context.pin.missing_file(&file.location).await;
    }
    // a partition with a value that its type does not hold
    let error = match error.code() {
        "OutOfRange" => {
            error.with_context("partition", partition_text(&context.pin.schema.partition_keys, &file.partition))
        }
        _ => error,
    };
    error.with_context("file", &file.location)
}

/// Values of partition columns by field id: the manifest entry's word, not the file's.
fn partition_constants(context: &ReadContext, file: &PlannedFile) -> Result<BTreeMap<i32, Datum>> {
    let indices = context.pin.schema.partition_indices()?;
    if indices.len() != file.partition.len() {
        return Err(Error::corrupt(format!(
            "the partition has {} values, the table {} partition columns",
            file.partition.len(),
            indices.len()
        ))
        .with_context("file", &file.location));
    }
    Ok(indices
        .into_iter()
        .zip(file.partition.iter())
        .filter_map(|(index, value)| {
            let field = context.pin.schema.fields.get(index)?;
            Some((field.id, value.clone()))
        })
        .collect())
}

/// All rows of `outputs` of `file`, in one batch, without any mask: for keys. A large file is decoded on several cores.
pub async fn read_span(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    outputs: Vec<Output>,
    wanted: Range<usize>,
    held: &mut Held,
) -> Result<Option<RecordBatch>> {
    let rows = mask_rows(context, file).await?;
    let stretches = by_stretches(context, file, wanted, |context, file, span| {
        let outputs = outputs.clone();
        async move { read_stretch(&context, &file, outputs, rows, span).await }
    })
    .await?;
    let (mut parts, mut memory) = (Vec::new(), Vec::new());
    for (batches, taken) in stretches {
        parts.extend(batches);
        memory.push(taken);
    }
    let Some(first) = parts.first() else { return Ok(None) };
    if let [only] = parts.as_slice() {
        held.grow(only.get_array_memory_size())?;
        return Ok(parts.pop());
    }
    // for a moment there are the parts and the whole
    let schema = first.schema();
    held.grow(parts.iter().map(RecordBatch::get_array_memory_size).sum())?;
    let whole = concat_batches(&schema, &parts)?;
    drop((parts, memory));
    held.shrink_to(whole.get_array_memory_size());
    Ok(Some(whole))
}

/// The rows of `span` of a file of `rows` rows, and the memory they take.
async fn read_stretch(
    context: &Arc<ReadContext>,
    file: &Arc<PlannedFile>,
    outputs: Vec<Output>,
    rows: usize,
    span: Range<usize>,
) -> Result<(Vec<RecordBatch>, Held)> {
    let live = narrowed(None, rows, span)?;
    let mut held = Held::new(&context.options.budget);
    let mut batches = open_columns(context, file, outputs, live, context.options.batch_size).await?;
    let mut parts = Vec::new();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        held.grow(batch.get_array_memory_size())?;
        parts.push(batch);
    }
    Ok((parts, held))
}
