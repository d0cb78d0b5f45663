//! ORC files.
//!
//! Stripes are decoded by `orc-rust`, but timestamps are put together here: the decoder takes negative nanoseconds for
//! huge ones, and cannot hold all times in one Arrow type. It is shown a file in which they are BIGINTs of seconds, and
//! the nanoseconds are read from their own stream.
//!
//! TIMESTAMP is stored against the clock of the writer's zone, named in every stripe; what comes out is that wall clock,
//! unchanged. TIMESTAMP WITH LOCAL TIME ZONE comes out as an instant: files written with
//! `orc.timestamp-ltz.legacy.type` by a JVM outside of UTC may hold a shifted instant, which cannot be told from the
//! file.
//!
//! Java keeps no fractions of the last second before 1970 in ORC: times strictly between 1969-12-31T23:59:59 and
//! 00:00:00 come back one second late, in every reader. Java also stores times before 1582-10-15 by the Julian calendar
//! and reads them by the Gregorian: 1500-01-01 comes back as 1500-01-10 there, and here.
//!
//! | file | one idea |
//! |---|---|
//! | `tail` | the metadata with seconds in place of timestamps |
//! | `rle` | unsigned run lengths |
//! | `moments` | seconds, nanoseconds and zone to a time |

mod moments;
mod rle;
mod tail;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Decimal128Array, Int64Array, ListArray, MapArray, StructArray};
use arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields, Schema, SchemaRef};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use orc_rust::array_decoder::NaiveStripeDecoder;
use orc_rust::error::OrcError;
use orc_rust::projection::ProjectionMask;
use orc_rust::proto::column_encoding::Kind as EncodingKind;
use orc_rust::proto::stream::Kind as StreamKind;
use orc_rust::reader::AsyncChunkReader;
use orc_rust::schema::{DataType as OrcType, RootDataType};
use orc_rust::stripe::Stripe;

use self::moments::Moments;
use self::rle::{Unsigned, Version};
use self::tail::Tail;
use super::access::Access;
use super::decode::{Request, Stored, StoredBatch};
use super::evolve::downcast;
use super::guard::{guarded, guarded_stream};
use super::parquet::counted;
use crate::error::{Error, ErrorKind, Result};
use crate::spec::orc_footer::MAX_DEPTH;

/// A file of at most this size is read at once; of a larger one, streams are read ahead by as much.
const WINDOW: u64 = 1 << 20;

pub(super) async fn open(access: &Access, request: Request) -> Result<Stored> {
    let mut reader = WindowReader { access: access.clone(), start: 0, window: Bytes::new() };
    let read = async {
        tail::read(&mut reader).await.map_err(|e| match e.kind() {
            ErrorKind::Corrupt if e.code() != "DataFileCorrupt" => access.damaged(e.message()).with_source(e),
            _ => access.locate(e),
        })
    };
    let tail = guarded(read, |words| access.gave_up(words)).await?;
    let rows = tail.metadata.number_of_rows();
    let stripes = tail.metadata.stripe_metadatas();
    let in_stripes = stripes.iter().map(|s| s.number_of_rows()).fold(0, u64::saturating_add);
    if in_stripes != rows {
        return Err(access.damaged(format!("its footer counts {rows} rows, its stripes {in_stripes}")));
    }
    let Some(wanted) = project(access, tail.metadata.root_data_type(), &request)? else {
        return Ok(Stored { rows: Some(rows), masked: false, batches: counted(rows, &request) });
    };
    let file = File { access: access.clone(), tail, wanted, reader, batch_size: request.batch_size, next_stripe: 0 };
    let own = access.clone();
    let batches = guarded_stream(file.into_stream(), move |words| own.gave_up(words))
        .map_ok(move |(schema, columns, rows)| StoredBatch {
            columns: request
                .columns
                .iter()
                .map(|name| schema.index_of(name).ok().and_then(|at| columns.get(at).cloned()))
                .collect(),
            rows,
        })
        .boxed();
    Ok(Stored { rows: Some(rows), masked: false, batches })
}

/// The part of a file that is read.
struct Wanted {
    root: RootDataType,
    /// Types that are asked of the decoder: seconds for timestamps.
    schema: SchemaRef,
}

/// None when the file holds none of the columns.
fn project(access: &Access, root: &RootDataType, request: &Request) -> Result<Option<Wanted>> {
    let mut fields = Vec::new();
    let mut indices = Vec::new();
    for column in root.children() {
        if !request.columns.iter().any(|name| name == column.name()) {
            continue;
        }
        if fields.iter().any(|f: &Field| f.name() == column.name()) {
            return Err(access.damaged(format!("it has two columns '{}'", column.name())));
        }
        let data_type =
            decoded_type(column.data_type(), 0).map_err(|e| access.locate(e.with_context("column", column.name())))?;
        fields.push(Field::new(column.name(), data_type, true));
        indices.push(column.data_type().column_index());
    }
    if fields.is_empty() {
        return Ok(None);
    }
    let root = root.project(&ProjectionMask::roots(root, indices));
    Ok(Some(Wanted { root, schema: Arc::new(Schema::new(fields)) }))
}

type Decoded = (SchemaRef, Vec<ArrayRef>, usize);

/// An open file in front of its next stripe.
struct File {
    access: Access,
    tail: Tail,
    wanted: Wanted,
    reader: WindowReader,
    batch_size: usize,
    next_stripe: usize,
}

impl File {
    fn into_stream(self) -> BoxStream<'static, Result<Decoded>> {
        stream::try_unfold((self, None::<OpenStripe>), |(mut file, mut open)| async move {
            loop {
                let stripe = match &mut open {
                    Some(stripe) => stripe,
                    None => match file.open_stripe().await? {
                        Some(stripe) => open.insert(stripe),
                        None => return Ok(None),
                    },
                };
                match stripe.next_batch(&file)? {
                    Some(batch) => return Ok(Some((batch, (file, open)))),
                    None => open = None,
                }
            }
        })
        .boxed()
    }

    async fn open_stripe(&mut self) -> Result<Option<OpenStripe>> {
        let Some(info) = self.tail.metadata.stripe_metadatas().get(self.next_stripe) else { return Ok(None) };
        self.next_stripe += 1;
        let stripe = Stripe::new_async(&mut self.reader, &self.tail.metadata, &self.wanted.root, info)
            .await
            .map_err(|e| failure(&self.access, e))?;
        let moments = moments(&stripe, &self.tail).map_err(|e| self.access.locate(e))?;
        let decoder = NaiveStripeDecoder::new(stripe, Arc::clone(&self.wanted.schema), self.batch_size)
            .map_err(|e| failure(&self.access, e))?;
        Ok(Some(OpenStripe { decoder, moments }))
    }
}

/// A stripe that is being decoded.
struct OpenStripe {
    decoder: NaiveStripeDecoder,
    /// By column index.
    moments: BTreeMap<usize, Moments>,
}

impl OpenStripe {
    fn next_batch(&mut self, file: &File) -> Result<Option<Decoded>> {
        let Some(batch) = self.decoder.next() else { return Ok(None) };
        let batch = batch.map_err(|e| failure(&file.access, e))?;
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (column, array) in file.wanted.root.children().iter().zip(batch.columns()) {
            let array = with_moments(array, column.data_type(), &mut self.moments)
                .map_err(|e| file.access.locate(e.with_context("column", column.name())))?;
            columns.push(array);
        }
        if columns.len() != file.wanted.schema.fields().len() {
            return Err(file.access.damaged("a stripe lacks columns"));
        }
        Ok(Some((Arc::clone(&file.wanted.schema), columns, batch.num_rows())))
    }
}

/// The second streams of all timestamp columns of a stripe. They are decompressed chunk by chunk, as their numbers are
/// asked for.
fn moments(stripe: &Stripe, tail: &Tail) -> Result<BTreeMap<usize, Moments>> {
    let mut found = BTreeMap::new();
    let mut columns = stripe.columns().to_vec();
    while let Some(column) = columns.pop() {
        columns.extend(column.children());
        let index = column.data_type().column_index();
        let Some(clock) = tail.clocks.get(&index) else { continue };
        let stream: Box<dyn Read + Send> = match stripe.stream_map().get_opt(&column, StreamKind::Secondary) {
            Some(stream) => Box::new(stream),
            None => Box::new(io::empty()),
        };
        let version = match column.encoding().kind() {
            EncodingKind::Direct | EncodingKind::Dictionary => Version::One,
            EncodingKind::DirectV2 | EncodingKind::DictionaryV2 => Version::Two,
        };
        found.insert(index, Moments::new(Unsigned::new(stream, version), *clock, stripe.writer_tz())?);
    }
    Ok(found)
}

/// The array with its seconds turned into nanoseconds, as DECIMAL(38, 9) of seconds.
fn with_moments(array: &ArrayRef, stored: &OrcType, moments: &mut BTreeMap<usize, Moments>) -> Result<ArrayRef> {
    if !stored.all_indices().iter().any(|index| moments.contains_key(index)) {
        return Ok(Arc::clone(array));
    }
    if let Some(moments) = moments.get_mut(&stored.column_index()) {
        let seconds = downcast::<Int64Array>(array)?;
        let values = moments.join(seconds)?;
        let decimals = Decimal128Array::new(values.into(), seconds.nulls().cloned());
        return Ok(Arc::new(decimals.with_precision_and_scale(38, 9)?));
    }
    let retyped = |field: &FieldRef, array: &ArrayRef| -> FieldRef {
        Arc::new(Field::new(field.name(), array.data_type().clone(), field.is_nullable()))
    };
    let unfit = |e: arrow::error::ArrowError| Error::corrupt("nested columns do not fit together").with_source(e);
    match (array.data_type(), stored) {
        (ArrowType::Struct(fields), OrcType::Struct { children, .. }) => {
            let row = downcast::<StructArray>(array)?;
            let mut columns = Vec::with_capacity(children.len());
            for (child, column) in children.iter().zip(row.columns()) {
                columns.push(with_moments(column, child.data_type(), moments)?);
            }
            let fields: Fields = fields.iter().zip(&columns).map(|(field, column)| retyped(field, column)).collect();
            Ok(Arc::new(StructArray::try_new(fields, columns, row.nulls().cloned()).map_err(unfit)?))
        }
        (ArrowType::List(field), OrcType::List { child, .. }) => {
            let list = downcast::<ListArray>(array)?;
            let values = with_moments(list.values(), child, moments)?;
            let field = retyped(field, &values);
            let list = ListArray::try_new(field, list.offsets().clone(), values, list.nulls().cloned());
            Ok(Arc::new(list.map_err(unfit)?))
        }
        (ArrowType::Map(field, sorted), OrcType::Map { key, value, .. }) => {
            let map = downcast::<MapArray>(array)?;
            let keys = with_moments(map.keys(), key, moments)?;
            let values = with_moments(map.values(), value, moments)?;
            let fields: Fields =
                map.entries().fields().iter().zip([&keys, &values]).map(|(f, column)| retyped(f, column)).collect();
            let entries = StructArray::try_new(fields, vec![keys, values], None).map_err(unfit)?;
            let field = Arc::new(Field::new(field.name(), entries.data_type().clone(), false));
            let map = MapArray::try_new(field, map.offsets().clone(), entries, map.nulls().cloned(), *sorted);
            Ok(Arc::new(map.map_err(unfit)?))
        }
        (other, _) => Err(Error::internal(format!("timestamps inside of {other}"))),
    }
}

/// The Arrow type that is asked of the decoder.
fn decoded_type(stored: &OrcType, depth: usize) -> Result<ArrowType> {
    if depth > MAX_DEPTH {
        return Err(Error::unsupported(format!("types nested deeper than {MAX_DEPTH}")));
    }
    Ok(match stored {
        OrcType::Decimal { precision, scale, .. } => {
            let (Ok(precision @ 1..=38), Ok(scale @ 0..=38)) = (u8::try_from(*precision), i8::try_from(*scale)) else {
                return Err(Error::corrupt(format!("the file has a decimal({precision}, {scale})")));
            };
            ArrowType::Decimal128(precision, scale)
        }
        OrcType::Struct { children, .. } => {
            let mut fields = Vec::with_capacity(children.len());
            for child in children {
                fields.push(Field::new(child.name(), decoded_type(child.data_type(), depth + 1)?, true));
            }
            ArrowType::Struct(Fields::from(fields))
        }
        OrcType::List { child, .. } => ArrowType::new_list(decoded_type(child, depth + 1)?, true),
        OrcType::Map { key, value, .. } => {
            let key = Field::new("keys", decoded_type(key, depth + 1)?, false);
            let value = Field::new("values", decoded_type(value, depth + 1)?, true);
            let entries = ArrowType::Struct(Fields::from(vec![key, value]));
            ArrowType::Map(Arc::new(Field::new("entries", entries, false)), false)
        }
        OrcType::Union { .. } => {
            return Err(Error::unsupported("an ORC union is not read").with_code("UnsupportedOrc"));
        }
        plain => plain.to_arrow_data_type(),
    })
}

/// An ORC error in our words: our own when it is one underneath, else damage.
fn failure(access: &Access, error: OrcError) -> Error {
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(source) = at {
        let io = source.downcast_ref::<std::io::Error>().and_then(|io| io.get_ref());
        let carried = io.and_then(|inner| inner.downcast_ref::<Carried>());
        if let Some(own) = carried.and_then(|carried| carried.0.lock().take()) {
            return own;
        }
        at = source.source();
    }
    match &error {
        OrcError::UnsupportedTypeVariant { msg, .. } => {
            Error::unsupported(format!("the ORC file uses what is not read: {msg}"))
                .with_code("UnsupportedOrc")
                .with_context("file", access.location())
        }
        other => access.damaged(other),
    }
    .with_source(error)
}

/// Our own error on its way through the decoder.
#[derive(Debug)]
struct Carried(parking_lot::Mutex<Option<Error>>);

impl std::fmt::Display for Carried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the data file could not be read")
    }
}

impl std::error::Error for Carried {}

/// The file as the decoder wants it. It asks for one stream after the other; a window spares it a request for each.
struct WindowReader {
    access: Access,
    start: u64,
    window: Bytes,
}

impl WindowReader {
    fn size(&self) -> u64 {
        self.access.size()
    }

    async fn get(&mut self, offset: u64, length: u64) -> Result<Bytes> {
        let end = offset.checked_add(length).filter(|end| *end <= self.access.size()).ok_or_else(|| {
            self.access
                .damaged(format!("it points at {length} bytes from {offset} in a file of {} bytes", self.access.size()))
        })?;
        let held = self.start..self.start + self.window.len() as u64;
        if offset < held.start || end > held.end {
            let (from, to) = if self.access.size() <= WINDOW {
                (0, self.access.size())
            } else {
                (offset, end.max(offset.saturating_add(WINDOW)).min(self.access.size()))
            };
            self.window = self.access.read(from..to).await?;
            self.start = from;
        }
        let at = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match at.checked_add(length).filter(|end| *end <= self.window.len()) {
            Some(end) => Ok(self.window.slice(at..end)),
            None => Err(self.access.damaged("it ends too early")),
        }
    }
}

impl AsyncChunkReader for WindowReader {
    fn len(&mut self) -> BoxFuture<'_, std::io::Result<u64>> {
        let size = self.access.size();
        async move { Ok(size) }.boxed()
    }

    fn get_bytes(&mut self, offset_from_start: u64, length: u64) -> BoxFuture<'_, std::io::Result<Bytes>> {
        async move {
            self.get(offset_from_start, length)
                .await
                .map_err(|error| std::io::Error::other(Carried(parking_lot::Mutex::new(Some(error)))))
        }
        .boxed()
    }
}
