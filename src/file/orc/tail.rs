//! A second reading of a file's tail, in which every timestamp column is a BIGINT of seconds.
//!
//! The decoder's own timestamps go wrong for a file whose nanoseconds are negative, as ORC's C++ library writes them for
//! Arrow (and so Python) before 1970: it takes them for huge positive numbers. Seconds alone it decodes right. The tail
//! is rewritten in memory: the type of each timestamp becomes `LONG`, a change of one byte that keeps all lengths.
//!
//! ```text
//! … stripes … | metadata | footer | postscript | length of the postscript (1 byte)
//! ```

use std::collections::BTreeMap;
use std::io::Read;

use bytes::Bytes;
use orc_rust::compression::{Compression, Decompressor};
use orc_rust::reader::metadata::{FileMetadata, read_metadata};

use super::WindowReader;
use crate::error::{Error, Result};

const KIND_LONG: u8 = 4;
const KIND_TIMESTAMP: u64 = 9;
const KIND_TIMESTAMP_INSTANT: u64 = 18;

/// A footer is not larger than this once decompressed.
const MAX_FOOTER: u64 = 256 << 20;

/// What a timestamp column stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// The wall clock of the writer's zone.
    Wall,
    /// An instant.
    Instant,
}

/// The metadata with seconds in place of timestamps.
pub(super) struct Tail {
    pub(super) metadata: FileMetadata,
    /// Timestamp columns by column index.
    pub(super) clocks: BTreeMap<usize, Clock>,
}

/// Reads the tail again; `known` is what the decoder made of it.
pub(super) async fn read(reader: &mut WindowReader, known: &FileMetadata) -> Result<Tail> {
    let size = reader.size();
    let guess = size.min(16 * 1024);
    let end = reader.get(size - guess, guess).await?;
    let bad = || Error::corrupt("the tail of the ORC file is not well formed");
    let (script_length, before) = end.split_last().ok_or_else(bad)?;
    let script_start = before.len().checked_sub(usize::from(*script_length)).ok_or_else(bad)?;
    let script = before.get(script_start..).ok_or_else(bad)?;
    let mut footer_length = None;
    let mut block_size = 256 * 1024;
    // all of the postscript but the lengths, which are written anew
    let mut new_script = Vec::new();
    for field in Fields::new(script) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Varint(length)) => footer_length = Some(length),
            (5, FieldValue::Varint(_)) => {}
            (number, value) => {
                if let (3, FieldValue::Varint(bytes)) = (number, value) {
                    block_size = bytes.max(1);
                }
                new_script.extend_from_slice(script.get(field.start..field.end).ok_or_else(bad)?);
            }
        }
    }
    let footer_length = footer_length.ok_or_else(bad)?;
    let tail_length = 1 + u64::from(*script_length);
    let footer_start = size.checked_sub(tail_length).and_then(|at| at.checked_sub(footer_length)).ok_or_else(bad)?;
    let stored = reader.get(footer_start, footer_length).await?;
    let mut footer = decompress(stored, known.compression())?;
    let clocks = replace_kinds(&mut footer)?;

    let mut bytes = match known.compression() {
        None => footer,
        Some(_) => as_original_chunks(&footer, block_size),
    };
    let length = bytes.len() as u64;
    push_varint_field(&mut new_script, 1, length);
    push_varint_field(&mut new_script, 5, 0);
    let script_length = u8::try_from(new_script.len()).map_err(|_| bad())?;
    bytes.extend(new_script);
    bytes.push(script_length);
    let metadata = read_metadata(&mut Bytes::from(bytes))
        .map_err(|e| Error::internal("the rewritten tail of an ORC file cannot be read").with_source(e))?;
    Ok(Tail { metadata, clocks })
}

/// All bytes of a compressed section.
pub(super) fn decompress(stored: Bytes, compression: Option<Compression>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Decompressor::new(stored, compression, Vec::new())
        .take(MAX_FOOTER)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::corrupt("a section cannot be decompressed").with_source(e))?;
    Ok(bytes)
}

/// Turns timestamps into longs and tells which columns they were.
fn replace_kinds(footer: &mut [u8]) -> Result<BTreeMap<usize, Clock>> {
    let mut clocks = BTreeMap::new();
    let mut changes = Vec::new();
    let mut column = 0;
    for field in Fields::new(footer) {
        let field = field?;
        let (4, FieldValue::Bytes { start, end }) = (field.number, field.value) else { continue };
        let message = footer.get(start..end).unwrap_or_default();
        for inner in Fields::new(message) {
            let inner = inner?;
            let (1, FieldValue::Varint(kind)) = (inner.number, inner.value) else { continue };
            let clock = match kind {
                KIND_TIMESTAMP => Clock::Wall,
                KIND_TIMESTAMP_INSTANT => Clock::Instant,
                _ => continue,
            };
            clocks.insert(column, clock);
            // both kinds take one byte, the last of the field
            changes.push(start + inner.end - 1);
        }
        column += 1;
    }
    for at in changes {
        if let Some(byte) = footer.get_mut(at) {
            *byte = KIND_LONG;
        }
    }
    Ok(clocks)
}

/// Chunks that say they are not compressed.
fn as_original_chunks(bytes: &[u8], block_size: u64) -> Vec<u8> {
    // the length of a chunk has 23 bits
    let size = usize::try_from(block_size.min(1 << 20)).unwrap_or(1 << 20);
    let mut chunks = Vec::with_capacity(bytes.len() + 64);
    for chunk in bytes.chunks(size) {
        let header = (chunk.len() << 1 | 1).to_le_bytes();
        chunks.extend(header.iter().take(3));
        chunks.extend_from_slice(chunk);
    }
    chunks
}

fn push_varint_field(target: &mut Vec<u8>, number: u8, mut value: u64) {
    target.push(number << 3);
    loop {
        // seven bits
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            target.push(low);
            return;
        }
        target.push(low | 0x80);
    }
}

/// One field of a Protocol Buffers message.
#[derive(Debug, Clone, Copy)]
struct Field {
    number: u64,
    value: FieldValue,
    /// Where tag and value lie in the message.
    start: usize,
    end: usize,
}

#[derive(Debug, Clone, Copy)]
enum FieldValue {
    Varint(u64),
    Bytes { start: usize, end: usize },
    Fixed,
}

/// The fields of a message, in order.
struct Fields<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    fn new(message: &'a [u8]) -> Self {
        Self { message, at: 0 }
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = *self.message.get(self.at).ok_or_else(malformed)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(malformed())
    }

    fn field(&mut self) -> Result<Field> {
        let start = self.at;
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => FieldValue::Varint(self.varint()?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| malformed())?;
                let start = self.at;
                self.skip(length)?;
                FieldValue::Bytes { start, end: self.at }
            }
            1 => self.skip(8).map(|()| FieldValue::Fixed)?,
            5 => self.skip(4).map(|()| FieldValue::Fixed)?,
            _ => return Err(malformed()),
        };
        Ok(Field { number: tag >> 3, value, start, end: self.at })
    }

    fn skip(&mut self, length: usize) -> Result<()> {
        self.at = self.at.checked_add(length).filter(|at| *at <= self.message.len()).ok_or_else(malformed)?;
        Ok(())
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<Field>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.message.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.message.len();
        }
        Some(field)
    }
}

fn malformed() -> Error {
    Error::corrupt("a message of the ORC file's tail is not well formed")
}
