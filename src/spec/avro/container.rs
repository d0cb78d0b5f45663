//! The container around the rows: its header, and how its blocks are compressed.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::io::{self, Read};
use std::str::FromStr;

use apache_avro::Codec;
use flate2::{Decompress, FlushDecompress, Status};

use super::input::Input;
use super::schema::Node;
use crate::error::{Error, Result};

/// How a file begins.
pub(crate) const MAGIC: &[u8] = b"Obj\x01";
/// Bytes of the mark behind the header and behind each block.
pub(crate) const MARK: usize = 16;
/// Bytes decompressed at once.
const CHUNK: usize = 256 << 10;

/// What a file says in front of its blocks.
#[derive(Debug)]
pub(crate) struct Header {
    /// Type of the rows.
    pub(crate) schema: Node,
    /// How blocks are compressed.
    pub(crate) codec: Codec,
    /// What stands behind each block.
    pub(crate) mark: [u8; MARK],
    /// Bytes of the header.
    pub(crate) length: usize,
}

/// Why a header could not be read.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It may be longer than the bytes given.
    TooShort(Error),
    /// More bytes do not help.
    Bad(Error),
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::TooShort(error) | Stop::Bad(error) => error,
        }
    }
}

impl Header {
    /// The header at the beginning of `bytes`, which begin with the magic.
    ///
    /// # Errors
    /// It is cut off or damaged; a codec or a schema that is not read.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Stop> {
        let mut input = Input::new(bytes.get(MAGIC.len()..).unwrap_or_default());
        let total = input.left();
        let mut schema = None;
        let mut codec = None;
        loop {
            // not `items`: a header that is cut by a window must not look damaged
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
        let mark = input.take(MARK).map_err(Stop::TooShort)?;
        let mark = mark.try_into().map_err(|_| Stop::Bad(Error::internal("a mark of the wrong length")))?;
        let schema = schema.ok_or_else(|| Stop::Bad(Error::corrupt("the Avro file has no schema")))?;
        let schema = Node::parse(schema).map_err(Stop::Bad)?;
        let codec = match codec {
            None => Codec::Null,
            Some(name) => codec_of(name).map_err(Stop::Bad)?,
        };
        Ok(Self { schema, codec, mark, length: MAGIC.len() + total - input.left() })
    }
}

fn codec_of(name: &[u8]) -> Result<Codec> {
    std::str::from_utf8(name).ok().and_then(|name| Codec::from_str(name).ok()).ok_or_else(|| {
        Error::unsupported(format!("the Avro codec '{}' is not read", String::from_utf8_lossy(name)))
            .with_code("UnsupportedAvro")
            .with_hint("null, deflate, snappy, zstandard, bzip2 and xz are read")
    })
}

/// The bytes of a block of at most `limit` when decompressed. What is made is told to `grow` before it is made, piece by
/// piece: a small block that unfolds without end costs a piece more than the limit.
///
/// # Errors
/// Corrupt: the block is damaged, or larger than `limit`, or says so. What `grow` answers.
pub(crate) fn decompress<'a>(
    codec: Codec,
    block: &'a [u8],
    limit: usize,
    grow: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Cow<'a, [u8]>> {
    match codec {
        Codec::Null if block.len() > limit => Err(too_large(limit)),
        Codec::Null => Ok(Cow::Borrowed(block)),
        // it says its length, and is made in one piece
        Codec::Snappy => {
            let length = snappy_length(block).filter(|length| *length <= limit).ok_or_else(|| too_large(limit))?;
            grow(length)?;
            let mut bytes = block.to_vec();
            codec.decompress(&mut bytes).map_err(damaged)?;
            Ok(Cow::Owned(bytes))
        }
        Codec::Zstandard(_) => {
            let told = zstd::zstd_safe::get_frame_content_size(block).ok().flatten();
            if told.is_some_and(|told| told > limit as u64) {
                return Err(too_large(limit));
            }
            inflate(zstd::Decoder::with_buffer(block).map_err(damaged)?, limit, grow)
        }
        Codec::Deflate(_) => inflate(Deflated { rest: block, state: Decompress::new(false) }, limit, grow),
        Codec::Bzip2(_) => inflate(bzip2::read::BzDecoder::new(block), limit, grow),
        Codec::Xz(_) => inflate(liblzma::read::XzDecoder::new(block), limit, grow),
    }
}

fn damaged(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::corrupt("a block cannot be decompressed").with_source(source)
}

fn too_large(limit: usize) -> Error {
    Error::corrupt(format!("a block is larger than {limit} bytes when decompressed, or says so"))
}

/// The length a snappy block says it has when decompressed, if it can be: three bytes give 64 at most.
fn snappy_length(block: &[u8]) -> Option<usize> {
    let mut length = 0usize;
    for (index, byte) in block.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some(length).filter(|length| *length <= block.len().saturating_mul(64));
        }
    }
    None
}

/// All bytes of `from`.
fn inflate<'a>(mut from: impl Read, limit: usize, grow: &mut dyn FnMut(usize) -> Result<()>) -> Result<Cow<'a, [u8]>> {
    let mut bytes = Vec::new();
    loop {
        grow(CHUNK)?;
        if from.by_ref().take(CHUNK as u64).read_to_end(&mut bytes).map_err(damaged)? == 0 {
            return Ok(Cow::Owned(bytes));
        }
        if bytes.len() > limit {
            return Err(too_large(limit));
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
