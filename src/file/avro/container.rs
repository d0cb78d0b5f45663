//! The container: a header with schema and codec, then blocks of rows between marks of 16 bytes.

use std::str::FromStr;

use apache_avro::Codec;
use bytes::{Buf, Bytes, BytesMut};

use super::super::access::Access;
use super::super::format::FileFormat;
use super::input::Input;
use super::schema::Node;
use crate::error::{Error, Result};

/// Bytes fetched at once.
const WINDOW: u64 = 1 << 20;
/// A header is not larger than this.
const MAX_HEADER: u64 = 64 << 20;
/// Longest start of a block: two numbers.
const BLOCK_START: u64 = 20;

/// An open container, in front of its next block.
pub(super) struct Container {
    pub(super) schema: Node,
    codec: Codec,
    mark: [u8; 16],
    /// Where `held` begins in the file.
    offset: u64,
    held: Bytes,
}

/// Decompressed rows.
pub(super) struct Block {
    pub(super) rows: u64,
    pub(super) bytes: Vec<u8>,
}

impl Container {
    pub(super) async fn open(access: &Access) -> Result<Self> {
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
                    return Ok(Self { schema, codec, mark, offset: length as u64, held });
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
        self.hold(access, whole).await?;
        let mut block = self.held.split_to(usize::try_from(whole).unwrap_or(usize::MAX).min(self.held.len()));
        self.offset += whole;
        block.advance(usize::try_from(start).unwrap_or(usize::MAX).min(block.len()));
        let rows_bytes = block.split_to(usize::try_from(length).unwrap_or(usize::MAX).min(block.len()));
        if block.as_ref() != self.mark.as_slice() {
            return Err(access.damaged("a block does not end with the file's mark"));
        }
        let mut bytes = rows_bytes.to_vec();
        self.codec
            .decompress(&mut bytes)
            .map_err(|e| access.damaged("a block cannot be decompressed").with_source(e))?;
        Ok(Some(Block { rows, bytes }))
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
