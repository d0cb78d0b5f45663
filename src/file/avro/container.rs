//! The container: a header with schema and codec, then blocks of rows between marks of 16 bytes.

use std::io::{self, Read};
use std::str::FromStr;
use std::sync::Arc;

use apache_avro::Codec;
use bytes::{Buf, Bytes, BytesMut};
use flate2::{Decompress, FlushDecompress, Status};

use super::super::access::Access;
use super::super::format::FileFormat;
use super::allowance::Meter;
use super::input::Input;
use super::schema::Node;
use crate::error::{Error, Result};
use crate::merge::MemoryBudget;
use crate::spec::snappy_length;

/// Bytes fetched at once.
const WINDOW: u64 = 1 << 20;
/// A header is not larger than this.
const MAX_HEADER: u64 = 64 << 20;
/// Longest start of a block: two numbers.
const BLOCK_START: u64 = 20;
/// A block is not larger than this when decompressed. Writers cut blocks at some 64 KiB; only a row that is larger makes
/// a larger one.
const MAX_BLOCK: usize = 512 << 20;
/// Bytes decompressed at once.
const CHUNK: usize = 256 << 10;

/// An open container, in front of its next block.
pub(super) struct Container {
    pub(super) schema: Node,
    codec: Codec,
    mark: [u8; 16],
    /// Where `held` begins in the file.
    offset: u64,
    held: Bytes,
    /// The block given out last.
    meter: Meter,
}

/// Decompressed rows.
pub(super) struct Block {
    pub(super) rows: u64,
    pub(super) bytes: Bytes,
}

impl Container {
    pub(super) async fn open(access: &Access, budget: &Arc<dyn MemoryBudget>) -> Result<Self> {
        let mut window = WINDOW.min(access.size());
        loop {
            let held = access.read(0..window).await?;
            if !FileFormat::Avro.matches_magic(&held) {
                return Err(access.damaged("it does not begin as an Avro file"));
            }
            match header(&held) {
                Ok((schema, codec, mark, length)) => {
                    let mut held = held;
                    held.advance(length);
                    return Ok(Self { schema, codec, mark, offset: length as u64, held, meter: Meter::new(budget) });
                }
                // the header may go on behind the window
                Err(Stop::TooShort(_)) if window < access.size() && window < MAX_HEADER => {
                    window = window.saturating_mul(4).min(access.size());
                }
                Err(Stop::TooShort(error) | Stop::Bad(error)) => return Err(access.locate(error)),
            }
        }
    }

    /// The next block; None at the end of the file.
    pub(super) async fn next_block(&mut self, access: &Access) -> Result<Option<Block>> {
        let left = access.size().saturating_sub(self.offset);
        if left == 0 {
            return Ok(None);
        }
        self.hold(access, BLOCK_START.min(left)).await?;
        let mut input = Input::new(&self.held);
        let before = input.left();
        let (rows, length) = input.long().and_then(|rows| Ok((rows, input.long()?))).map_err(|e| access.locate(e))?;
        let start = (before - input.left()) as u64;
        let (Ok(rows), Ok(length)) = (u64::try_from(rows), u64::try_from(length)) else {
            return Err(access.damaged(format!("a block of {rows} rows in {length} bytes")));
        };
        let whole = start.checked_add(length).and_then(|n| n.checked_add(16)).filter(|whole| *whole <= left);
        let Some(whole) = whole else {
            return Err(access.damaged(format!("a block of {length} bytes where {left} are left: the file is cut off")));
        };
        self.meter.grow(usize::try_from(whole).unwrap_or(usize::MAX)).map_err(|e| access.locate(e))?;
        self.hold(access, whole).await?;
        let mut block = self.held.split_to(usize::try_from(whole).unwrap_or(usize::MAX).min(self.held.len()));
        self.offset += whole;
        block.advance(usize::try_from(start).unwrap_or(usize::MAX).min(block.len()));
        let rows_bytes = block.split_to(usize::try_from(length).unwrap_or(usize::MAX).min(block.len()));
        if block.as_ref() != self.mark.as_slice() {
            return Err(access.damaged("a block does not end with the file's mark"));
        }
        let bytes = decompress(self.codec, rows_bytes, &mut self.meter).map_err(|stop| match stop {
            Failed::Damaged(e) => access.damaged("a block cannot be decompressed").with_source(e),
            Failed::TooLarge => {
                access.damaged(format!("a block is larger than {MAX_BLOCK} bytes when decompressed, or says so"))
            }
            Failed::Refused(e) => access.locate(e),
        })?;
        Ok(Some(Block { rows, bytes }))
    }

    /// The last block is no longer held.
    pub(super) fn forget_block(&mut self) {
        self.meter.clear();
    }

    /// Makes at least `length` bytes at hand; the caller has checked that the file has them.
    async fn hold(&mut self, access: &Access, length: u64) -> Result<()> {
        let held = self.held.len() as u64;
        if held >= length {
            return Ok(());
        }
        let from = self.offset + held;
        let to = (self.offset + length.max(WINDOW)).min(access.size());
        let more = access.read(from..to).await?;
        if self.held.is_empty() {
            self.held = more;
        } else {
            let mut joined = BytesMut::with_capacity(self.held.len() + more.len());
            joined.extend_from_slice(&self.held);
            joined.extend_from_slice(&more);
            self.held = joined.freeze();
        }
        Ok(())
    }
}

/// Why a block could not be decompressed.
enum Failed {
    Damaged(Box<dyn std::error::Error + Send + Sync>),
    TooLarge,
    /// The query's memory does not suffice.
    Refused(Error),
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::Damaged(error.into())
    }
}

/// The bytes of a block, counted by `meter` while they come.
fn decompress(codec: Codec, block: Bytes, meter: &mut Meter) -> std::result::Result<Bytes, Failed> {
    match codec {
        Codec::Null => Ok(block),
        // it says its length, and is made in one piece
        Codec::Snappy => {
            let length = snappy_length(&block).filter(|length| *length <= MAX_BLOCK).ok_or(Failed::TooLarge)?;
            meter.grow(length).map_err(Failed::Refused)?;
            let mut bytes = block.to_vec();
            codec.decompress(&mut bytes)?;
            Ok(bytes.into())
        }
        Codec::Zstandard(_) => {
            let told = zstd::zstd_safe::get_frame_content_size(&block).ok().flatten();
            if told.is_some_and(|told| told > MAX_BLOCK as u64) {
                return Err(Failed::TooLarge);
            }
            inflate(zstd::Decoder::with_buffer(block.as_ref())?, meter)
        }
        Codec::Deflate(_) => inflate(Deflated { rest: &block, state: Decompress::new(false) }, meter),
        Codec::Bzip2(_) => inflate(bzip2::read::BzDecoder::new(block.as_ref()), meter),
        Codec::Xz(_) => inflate(liblzma::read::XzDecoder::new(block.as_ref()), meter),
    }
}

/// All bytes of `from`.
fn inflate(mut from: impl Read, meter: &mut Meter) -> std::result::Result<Bytes, Failed> {
    let mut bytes = Vec::new();
    loop {
        meter.grow(CHUNK).map_err(Failed::Refused)?;
        if from.by_ref().take(CHUNK as u64).read_to_end(&mut bytes)? == 0 {
            return Ok(bytes.into());
        }
        if bytes.len() > MAX_BLOCK {
            return Err(Failed::TooLarge);
        }
    }
}

/// A deflated block; that it ends too early is an error, which flate2's own reader takes for the end.
struct Deflated<'a> {
    rest: &'a [u8],
    state: Decompress,
}

impl Read for Deflated<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        let before = (self.state.total_in(), self.state.total_out());
        let status = self.state.decompress(self.rest, to, FlushDecompress::None)?;
        let passed = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
        self.rest = self.rest.get(passed(self.state.total_in(), before.0)..).unwrap_or_default();
        let made = passed(self.state.total_out(), before.1);
        if made == 0 && status != Status::StreamEnd {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(made)
    }
}

/// Why a header could not be read.
enum Stop {
    /// It may be longer than the bytes given.
    TooShort(Error),
    Bad(Error),
}

fn header(bytes: &[u8]) -> std::result::Result<(Node, Codec, [u8; 16], usize), Stop> {
    let mut input = Input::new(bytes.get(4..).unwrap_or_default());
    let total = input.left();
    let mut schema = None;
    let mut codec = None;
    loop {
        // not `items`: a header cut by the window must not look damaged
        let mut count = input.long().map_err(Stop::TooShort)?;
        if count < 0 {
            input.long().map_err(Stop::TooShort)?;
            count = count.saturating_neg();
        }
        if count == 0 {
            break;
        }
        for _ in 0..count {
            let key = input.bytes().map_err(Stop::TooShort)?;
            let value = input.bytes().map_err(Stop::TooShort)?;
            match key {
                b"avro.schema" => schema = Some(value),
                b"avro.codec" => codec = Some(value),
                _ => {}
            }
        }
    }
    let mark = input.take(16).map_err(Stop::TooShort)?;
    let mark = mark.try_into().map_err(|_| Stop::Bad(Error::internal("a mark of the wrong length")))?;
    let schema = schema.ok_or_else(|| Stop::Bad(Error::corrupt("the Avro file has no schema")))?;
    let schema = Node::parse(schema).map_err(Stop::Bad)?;
    let codec = match codec {
        None => Codec::Null,
        Some(name) => std::str::from_utf8(name).ok().and_then(|name| Codec::from_str(name).ok()).ok_or_else(|| {
            Stop::Bad(
                Error::unsupported(format!("the Avro codec '{}' is not read", String::from_utf8_lossy(name)))
                    .with_code("UnsupportedAvro")
                    .with_hint("null, deflate, snappy, zstandard, bzip2 and xz are read"),
            )
        })?,
    };
    Ok((schema, codec, mark, 4 + total - input.left()))
}
