//! ORC files.
//!
//! Timestamps are asked for as DECIMAL(38, 9) of seconds: the only form of the decoder that neither overflows nor
//! refuses fractions. TIMESTAMP is stored against the clock of the writer's zone, named in every stripe; what comes out
//! is that wall clock, unchanged. TIMESTAMP WITH LOCAL TIME ZONE comes out as an instant: files written with
//! `orc.timestamp-ltz.legacy.type` by a JVM outside of UTC hold a shifted instant, which cannot be told from the file.
//!
//! ORC cannot hold fractions of the last second before 1970: times strictly between 1969-12-31T23:59:59 and 00:00:00
//! come back one second late, in every reader.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Fields, Schema};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use orc_rust::ArrowReaderBuilder;
use orc_rust::error::OrcError;
use orc_rust::projection::ProjectionMask;
use orc_rust::reader::AsyncChunkReader;
use orc_rust::schema::DataType as OrcType;

use super::access::Access;
use super::decode::{Request, Stored, StoredBatch};
use super::guard::{guarded, guarded_stream};
use super::parquet::counted;
use crate::error::{Error, Result};

/// A file of at most this size is read at once; of a larger one, streams are read ahead by as much.
const WINDOW: u64 = 1 << 20;

/// Nesting of types at most.
const MAX_DEPTH: usize = 64;

pub(super) async fn open(access: &Access, request: Request) -> Result<Stored> {
    let reader = WindowReader { access: access.clone(), start: 0, window: Bytes::new() };
    let builder =
        guarded(access, async { ArrowReaderBuilder::try_new_async(reader).await.map_err(|e| failure(access, e)) })
            .await?;
    let own = access.clone();
    guarded(access, async move { stored(own, builder, request) }).await
}

fn stored(access: Access, builder: ArrowReaderBuilder<WindowReader>, request: Request) -> Result<Stored> {
    let metadata = builder.file_metadata();
    let rows = metadata.number_of_rows();
    let in_stripes: u64 = metadata.stripe_metadatas().iter().map(|s| s.number_of_rows()).fold(0, u64::saturating_add);
    if in_stripes != rows {
        return Err(access.damaged(format!("its footer counts {rows} rows, its stripes {in_stripes}")));
    }
    let root = metadata.root_data_type();
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
        return Ok(Stored { rows: Some(rows), masked: false, batches: counted(rows, &request) });
    }
    let mask = ProjectionMask::roots(root, indices);
    let stream = builder
        .with_projection(mask)
        .with_schema(Arc::new(Schema::new(fields)))
        .with_batch_size(request.batch_size)
        .build_async();
    let own = access.clone();
    let stream = stream
        .map_err(move |error| match error {
            arrow::error::ArrowError::ExternalError(source) => match source.downcast::<OrcError>() {
                Ok(orc) => failure(&own, *orc),
                Err(source) => own.damaged(&source).with_source(source),
            },
            other => own.damaged(&other).with_source(other),
        })
        .boxed();
    let columns = request.columns;
    let batches = guarded_stream(&access, stream)
        .map_ok(move |batch| StoredBatch {
            columns: columns.iter().map(|name| batch.column_by_name(name).cloned()).collect(),
            rows: batch.num_rows(),
        })
        .boxed();
    Ok(Stored { rows: Some(rows), masked: false, batches })
}

/// The Arrow type that is asked of the decoder.
fn decoded_type(stored: &OrcType, depth: usize) -> Result<ArrowType> {
    if depth > MAX_DEPTH {
        return Err(Error::unsupported(format!("types nested deeper than {MAX_DEPTH}")));
    }
    Ok(match stored {
        OrcType::Timestamp { .. } | OrcType::TimestampWithLocalTimezone { .. } => ArrowType::Decimal128(38, 9),
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
        if let Some(own) = io.and_then(|inner| inner.downcast_ref::<Carried>()) {
            if let Some(own) = own.0.lock().take() {
                return own;
            }
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
