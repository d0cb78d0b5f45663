//! Parquet files.
//!
//! The schema is read from the file's annotations alone (an embedded Arrow schema is ignored), rows are skipped by row
//! selection. INT96 needs care: its days and *signed* nanoseconds reach further than an `i64` of nanoseconds, and the
//! decoder wraps. Columns that hold INT96 are therefore decoded a second time in seconds, which cannot wrap, and the
//! two must agree.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection, RowSelectionPolicy};
use ::parquet::arrow::async_reader::{
    AsyncFileReader, MetadataFetch, ParquetRecordBatchStream, ParquetRecordBatchStreamBuilder,
};
use ::parquet::basic::Type as PhysicalType;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, StructArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{
    DataType as ArrowType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit, TimestampNanosecondType,
    TimestampSecondType,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use super::access::Access;
use super::decode::{Request, Stored, StoredBatch};
use super::evolve::{downcast, out_of_range};
use super::footer::load_footer;
use super::guard::{guarded, guarded_stream};
use super::task::FileEnv;
use crate::error::{Error, Result};

/// Rows that are worth to be skipped by pages, for which their places must be read first.
const SKIPPED_ROWS: usize = 10_000;

pub(super) async fn open(env: &FileEnv, access: &Access, request: Request) -> Result<Stored> {
    let footer = footer(env, access, Source(access.clone())).await?;
    let rows = u64::try_from(footer.file_metadata().num_rows())
        .map_err(|_| access.damaged("its footer counts fewer than no rows"))?;
    check_row_groups(&footer).map_err(|what| access.damaged(what))?;
    let own = access.clone();
    let open = async move {
        let footer = match &request.live {
            Some(live) if skips_pages(live) => with_pages(env, &own, footer).await?,
            _ => footer,
        };
        stored(own, footer, rows, request)
    };
    guarded(open, |words| access.gave_up(words)).await
}

/// Whether the row groups hold as many rows as the footer says; the error is what is wrong.
pub fn check_row_groups(footer: &ParquetMetaData) -> Result<(), String> {
    let rows = footer.file_metadata().num_rows();
    let groups = footer.row_groups().iter().map(|group| u64::try_from(group.num_rows()).ok());
    let sum = groups.into_iter().try_fold(0u64, |sum, rows| sum.checked_add(rows?));
    match sum {
        Some(sum) if u64::try_from(rows) == Ok(sum) => Ok(()),
        Some(sum) => Err(format!("its footer counts {rows} rows, its row groups {sum}")),
        None => Err(format!("its footer counts {rows} rows, and no number of them is that of its row groups")),
    }
}

/// The footer, from the cache or read from `source` once for all who want it.
///
/// # Errors
/// Corrupt, naming the file: it cannot be decoded; what `source` fails with.
pub(crate) async fn footer(env: &FileEnv, access: &Access, source: impl MetadataFetch) -> Result<Arc<ParquetMetaData>> {
    let key = (access.location().clone(), access.size());
    env.footers()
        .get_or_load(&key, || async {
            let read = async {
                let footer = load_footer(source, access.size()).await.map_err(|e| failure(access, e))?;
                let bytes = footer.memory_size();
                Ok((Arc::new(footer), bytes))
            };
            guarded(read, |words| access.gave_up(words)).await
        })
        .await
}

/// The footer with the places of all pages, when the file tells them; kept instead of the one without.
async fn with_pages(env: &FileEnv, access: &Access, footer: Arc<ParquetMetaData>) -> Result<Arc<ParquetMetaData>> {
    if footer.offset_index().is_some() {
        return Ok(footer);
    }
    let mut reader = ParquetMetaDataReader::new_with_metadata(footer.as_ref().clone())
        .with_column_index_policy(PageIndexPolicy::Skip)
        .with_offset_index_policy(PageIndexPolicy::Optional);
    reader.load_page_index(Source(access.clone())).await.map_err(|e| failure(access, e))?;
    let indexed = Arc::new(reader.finish().map_err(|e| failure(access, e))?);
    if indexed.offset_index().is_some() {
        let bytes = indexed.memory_size();
        env.footers().insert((access.location().clone(), access.size()), Arc::clone(&indexed), bytes);
    }
    Ok(indexed)
}

/// Whether some stretch of unwanted rows is long.
fn skips_pages(live: &BooleanBuffer) -> bool {
    let mut before = 0;
    let within = live.set_slices().any(|(start, end)| start - std::mem::replace(&mut before, end) >= SKIPPED_ROWS);
    within || live.len() - before >= SKIPPED_ROWS
}

fn stored(access: Access, footer: Arc<ParquetMetaData>, rows: u64, request: Request) -> Result<Stored> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(&footer), options).map_err(|e| failure(&access, e))?;
    let schema = Arc::clone(metadata.schema());
    let mut roots = BTreeMap::new();
    for (at, field) in schema.fields().iter().enumerate() {
        if request.columns.contains(field.name()) && roots.insert(field.name().clone(), at).is_some() {
            return Err(access.damaged(format!("it has two columns '{}'", field.name())));
        }
    }
    if roots.is_empty() {
        return Ok(Stored { rows: Some(rows), masked: false, batches: counted(rows, &request) });
    }
    let descriptor = footer.file_metadata().schema_descr();
    let selection = match &request.live {
        Some(live) if live.count_set_bits() < live.len() => {
            let total = live.len();
            let wanted = live.set_slices().map(|(start, end)| start..end);
            Some(RowSelection::from_consecutive_ranges(wanted, total))
        }
        _ => None,
    };
    let int96: Vec<bool> = descriptor.columns().iter().map(|c| c.physical_type() == PhysicalType::INT96).collect();
    let wanted_int96: Vec<usize> = int96
        .iter()
        .enumerate()
        .filter(|(leaf, is)| **is && roots.values().any(|root| *root == descriptor.get_column_root_idx(*leaf)))
        .map(|(leaf, _)| leaf)
        .collect();
    let holds_int96 = !wanted_int96.is_empty();
    let build = |metadata: ArrowReaderMetadata, mask: ProjectionMask| -> Result<ParquetRecordBatchStream<Source>> {
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(Source(access.clone()), metadata)
            .with_projection(mask)
            .with_batch_size(request.batch_size);
        if let Some(selection) = &selection {
            builder = builder.with_row_selection(selection.clone());
        }
        if holds_int96 {
            // cut by pages, the batches of two readers would not hold the same rows
            builder = builder.with_row_selection_policy(RowSelectionPolicy::Selectors);
        }
        builder.build().map_err(|e| failure(&access, e))
    };

    let seconds = if wanted_int96.is_empty() {
        None
    } else {
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_schema(in_seconds(&schema, &int96));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(&footer), options).map_err(|e| failure(&access, e))?;
        Some(build(metadata, ProjectionMask::leaves(descriptor, wanted_int96))?)
    };
    let mask = ProjectionMask::roots(descriptor, roots.values().copied());
    let main = build(metadata, mask)?;

    let own = access.clone();
    let main = main.map_err(move |e| failure(&own, e));
    let batches: stream::BoxStream<'static, Result<RecordBatch>> = match seconds {
        None => main.boxed(),
        Some(seconds) => {
            let own = access.clone();
            let seconds = seconds.map_err(move |e| failure(&own, e));
            let own = access.clone();
            main.zip(seconds).map(move |(main, seconds)| checked(&own, main?, &seconds?)).boxed()
        }
    };
    let columns = request.columns;
    let batches = guarded_stream(batches, move |words| access.gave_up(words))
        .map_ok(move |batch| StoredBatch {
            columns: columns.iter().map(|name| batch.column_by_name(name).cloned()).collect(),
            rows: batch.num_rows(),
        })
        .boxed();
    Ok(Stored { rows: Some(rows), masked: request.live.is_some(), batches })
}

/// Rows without columns, in batches.
pub(super) fn counted(rows: u64, request: &Request) -> stream::BoxStream<'static, Result<StoredBatch>> {
    let columns = request.columns.len();
    let step = request.batch_size.max(1) as u64;
    stream::unfold(rows, move |left| async move {
        if left == 0 {
            return None;
        }
        let rows = left.min(step);
        // at most the batch size
        let batch = StoredBatch { columns: vec![None; columns], rows: rows as usize };
        Some((Ok(batch), left - rows))
    })
    .boxed()
}

/// The schema with every INT96 leaf in seconds.
fn in_seconds(schema: &Schema, int96: &[bool]) -> SchemaRef {
    let mut leaf = 0;
    let fields: Fields = schema.fields().iter().map(|field| field_in_seconds(field, int96, &mut leaf)).collect();
    Arc::new(Schema::new(fields))
}

/// Leaves are numbered depth first, as Parquet does.
fn field_in_seconds(field: &FieldRef, int96: &[bool], leaf: &mut usize) -> FieldRef {
    let data_type = match field.data_type() {
        ArrowType::Struct(fields) => {
            ArrowType::Struct(fields.iter().map(|child| field_in_seconds(child, int96, leaf)).collect())
        }
        ArrowType::List(item) => ArrowType::List(field_in_seconds(item, int96, leaf)),
        ArrowType::Map(entries, sorted) => ArrowType::Map(field_in_seconds(entries, int96, leaf), *sorted),
        other => {
            let is_int96 = int96.get(*leaf).copied().unwrap_or(false);
            *leaf += 1;
            if is_int96 { ArrowType::Timestamp(TimeUnit::Second, None) } else { other.clone() }
        }
    };
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(field.metadata().clone()))
}

/// The batch in nanoseconds, once the same columns in seconds say that nothing wrapped.
fn checked(access: &Access, main: RecordBatch, seconds: &RecordBatch) -> Result<RecordBatch> {
    if main.num_rows() != seconds.num_rows() {
        return Err(Error::internal("two readers of one file disagree about its rows"));
    }
    for (field, column) in seconds.schema().fields().iter().zip(seconds.columns()) {
        let nanos = main
            .column_by_name(field.name())
            .ok_or_else(|| Error::internal("two readers of one file disagree about its columns"))?;
        agree(nanos, column).map_err(|e| access.locate(e.with_context("column", field.name())))?;
    }
    Ok(main)
}

fn agree(nanos: &ArrayRef, seconds: &ArrayRef) -> Result<()> {
    match (nanos.data_type(), seconds.data_type()) {
        (ArrowType::Timestamp(TimeUnit::Nanosecond, _), ArrowType::Timestamp(TimeUnit::Second, _)) => {
            let nanos = nanos.as_primitive::<TimestampNanosecondType>();
            let seconds = seconds.as_primitive::<TimestampSecondType>();
            for (nanos, seconds) in nanos.iter().zip(seconds) {
                let (Some(nanos), Some(seconds)) = (nanos, seconds) else { continue };
                // seconds are cut towards zero from a negative rest, so they may be one off
                if (i128::from(nanos) - i128::from(seconds) * 1_000_000_000).abs() > 1_000_000_000 {
                    return Err(out_of_range(seconds.saturating_mul(1000), 9));
                }
            }
            Ok(())
        }
        (ArrowType::Struct(_), ArrowType::Struct(fields)) => {
            let (nanos, seconds) = (downcast::<StructArray>(nanos)?, downcast::<StructArray>(seconds)?);
            for (field, child) in fields.iter().zip(seconds.columns()) {
                let other = nanos
                    .column_by_name(field.name())
                    .ok_or_else(|| Error::internal("two readers of one file disagree about its fields"))?;
                agree(other, child)?;
            }
            Ok(())
        }
        (ArrowType::List(_), ArrowType::List(_)) => {
            agree(downcast::<ListArray>(nanos)?.values(), downcast::<ListArray>(seconds)?.values())
        }
        (ArrowType::Map(..), ArrowType::Map(..)) => {
            let (nanos, seconds) = (downcast::<MapArray>(nanos)?, downcast::<MapArray>(seconds)?);
            agree(&(Arc::new(nanos.entries().clone()) as ArrayRef), &(Arc::new(seconds.entries().clone()) as ArrayRef))
        }
        // a map's key is read even where only its value is asked for
        (a, b) if a == b => Ok(()),
        (a, b) => Err(Error::internal(format!("{a} cannot be compared with {b}"))),
    }
}

/// The file as Parquet's readers want it.
pub(super) struct Source(pub(super) Access);

fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl MetadataFetch for Source {
    fn fetch(&mut self, range: Range<u64>) -> BoxFuture<'_, ::parquet::errors::Result<Bytes>> {
        let access = self.0.clone();
        async move { access.read(range).await.map_err(external) }.boxed()
    }
}

impl AsyncFileReader for Source {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ::parquet::errors::Result<Bytes>> {
        let access = self.0.clone();
        async move { access.read(range).await.map_err(external) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ::parquet::errors::Result<Vec<Bytes>>> {
        let access = self.0.clone();
        async move { access.read_all(&ranges).await.map_err(external) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ::parquet::errors::Result<Arc<ParquetMetaData>>> {
        let access = self.0.clone();
        async move { Ok(Arc::new(load_footer(Source(access.clone()), access.size()).await?)) }.boxed()
    }
}

/// A Parquet error in our words: our own when it is one underneath, else damage.
pub(super) fn failure(access: &Access, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<Error>() {
            Ok(own) => *own,
            Err(source) => access.damaged(&source).with_source(source),
        },
        ParquetError::NYI(what) => Error::unsupported(format!("the Parquet file uses what is not read: {what}"))
            .with_code("UnsupportedParquet")
            .with_context("file", access.location()),
        other => access.damaged(&other).with_source(other),
    }
}
