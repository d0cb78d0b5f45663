//! A file's tail as the decoder gets to see it: every timestamp column is a BIGINT of seconds.
//!
//! The decoder's own timestamps go wrong for a file whose nanoseconds are negative, as ORC's C++ library writes them for
//! Arrow (and so Python) before 1970: it takes them for huge positive numbers. Seconds alone it decodes right. The tail
//! is rewritten in memory: the type of each timestamp becomes `LONG`, a change of one byte that keeps all lengths.
//!
//! The tree of types is checked on the way: the decoder follows it without looking, and a type that is its own child
//! would end the process.
//!
//! ```text
//! … stripes … | metadata | footer | postscript | length of the postscript (1 byte)
//! ```

use std::collections::BTreeMap;
use std::io::Read;

use bytes::Bytes;
use orc_rust::compression::{Compression, Decompressor};
use orc_rust::reader::metadata::{FileMetadata, read_metadata};

use super::{MAX_DEPTH, WindowReader};
use crate::error::{Error, Result};

const KIND_LONG: u8 = 4;
const KIND_STRUCT: u8 = 12;
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

/// Reads the tail.
pub(super) async fn read(reader: &mut WindowReader) -> Result<Tail> {
    let size = reader.size();
    let guess = size.min(16 * 1024);
    let end = reader.get(size - guess, guess).await?;
    let bad = || Error::corrupt("the tail of the ORC file is not well formed");
    let (script_length, before) = end.split_last().ok_or_else(bad)?;
    let script_start = before.len().checked_sub(usize::from(*script_length)).ok_or_else(bad)?;
    let script = before.get(script_start..).ok_or_else(bad)?;
    let mut footer_length = None;
    let mut block_size = 256 * 1024;
    let mut compression_kind = 0;
    // all of the postscript but the lengths, which are written anew
    let mut new_script = Vec::new();
    for field in Fields::new(script) {
        let field = field?;
        match (field.number, field.value) {
            (1, FieldValue::Varint(length)) => footer_length = Some(length),
            (5, FieldValue::Varint(_)) => {}
            (number, value) => {
                match (number, value) {
                    (2, FieldValue::Varint(kind)) => compression_kind = kind,
                    (3, FieldValue::Varint(bytes)) => block_size = bytes.max(1),
                    _ => {}
                }
                new_script.extend_from_slice(script.get(field.start..field.end).ok_or_else(bad)?);
            }
        }
    }
    let footer_length = footer_length.ok_or_else(bad)?;
    let tail_length = 1 + u64::from(*script_length);
    let footer_start = size.checked_sub(tail_length).and_then(|at| at.checked_sub(footer_length)).ok_or_else(bad)?;
    let stored = reader.get(footer_start, footer_length).await?;
    // a file of no columns, to learn what the decoder makes of the postscript
    let chunk = (compression_kind != 0).then_some(block_size);
    let compression = metadata(&[0x22, 0x02, 0x08, KIND_STRUCT], &new_script, chunk)?.compression();
    let mut footer = decompress(stored, compression)?;
    check_types(&footer)?;
    let clocks = replace_kinds(&mut footer)?;
    let metadata = metadata(&footer, &new_script, chunk)?;
    Ok(Tail { metadata, clocks })
}

/// What the decoder makes of a footer and a postscript without lengths. With compression the footer is cut into chunks
/// of at most `block_size` that say they are not compressed.
fn metadata(footer: &[u8], script: &[u8], block_size: Option<u64>) -> Result<FileMetadata> {
    let mut bytes = match block_size {
        None => footer.to_vec(),
        Some(size) => as_original_chunks(footer, size),
    };
    let length = bytes.len() as u64;
    let mut script = script.to_vec();
    push_varint_field(&mut script, 1, length);
    push_varint_field(&mut script, 5, 0);
    let script_length = u8::try_from(script.len()).map_err(|_| malformed())?;
    bytes.extend(script);
    bytes.push(script_length);
    read_metadata(&mut Bytes::from(bytes)).map_err(|e| malformed().with_source(e))
}

/// Every type but the first must be the child of one type before it, and none may lie too deep.
fn check_types(footer: &[u8]) -> Result<()> {
    let no_tree = || Error::corrupt("the types of the ORC file are no tree");
    // depth of each type that was named as a child
    let mut depths = BTreeMap::from([(0_u64, 0_usize)]);
    let mut at = 0_u64;
    for field in Fields::new(footer) {
        let field = field?;
        let (4, FieldValue::Bytes { start, end }) = (field.number, field.value) else { continue };
        let message = footer.get(start..end).ok_or_else(malformed)?;
        let mut children = Vec::new();
        for inner in Fields::new(message) {
            let inner = inner?;
            match (inner.number, inner.value) {
                (2, FieldValue::Varint(child)) => children.push(child),
                // the same numbers, packed
                (2, FieldValue::Bytes { start, end }) => {
                    let mut packed = Fields::new(message.get(start..end).ok_or_else(malformed)?);
                    while packed.at < packed.message.len() {
                        children.push(packed.varint()?);
                    }
                }
                _ => {}
            }
        }
        if !children.is_empty() {
            let depth = depths.get(&at).ok_or_else(no_tree)? + 1;
            if depth > MAX_DEPTH {
                return Err(
                    Error::unsupported(format!("types nested deeper than {MAX_DEPTH}")).with_code("UnsupportedOrc")
                );
            }
            for child in children {
                if child <= at || depths.insert(child, depth).is_some() {
                    return Err(no_tree());
                }
            }
        }
        at += 1;
    }
    if depths.last_key_value().is_some_and(|(last, _)| *last >= at) {
        return Err(Error::corrupt("a type of the ORC file is not there"));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer of types, each with a kind and children.
    fn footer(types: &[(u8, &[u8])]) -> Vec<u8> {
        let mut footer = Vec::new();
        for (kind, children) in types {
            let mut message = vec![0x08, *kind];
            for child in *children {
                message.extend([0x10, *child]);
            }
            footer.extend([0x22, u8::try_from(message.len()).unwrap()]);
            footer.extend(message);
        }
        footer
    }

    #[test]
    fn types_must_be_a_tree() {
        assert!(check_types(&footer(&[(12, &[1, 2]), (10, &[3]), (4, &[]), (9, &[])])).is_ok());
        for (what, types) in [
            ("its own child", footer(&[(12, &[0])])),
            ("a parent as child", footer(&[(12, &[1]), (12, &[0])])),
            ("two parents", footer(&[(12, &[1, 2]), (10, &[3]), (10, &[3]), (4, &[])])),
            ("twice a child", footer(&[(12, &[1, 1]), (4, &[])])),
            ("not there", footer(&[(12, &[1])])),
        ] {
            assert!(check_types(&types).is_err(), "{what}");
        }
        let deep: Vec<(u8, Vec<u8>)> = (0..100).map(|i| (10, vec![i + 1])).collect();
        let deep: Vec<(u8, &[u8])> = deep.iter().map(|(kind, children)| (*kind, children.as_slice())).collect();
        assert!(check_types(&footer(&deep)).is_err(), "too deep");
    }

    #[test]
    fn timestamps_become_longs_and_keep_their_clock() {
        let mut types = footer(&[(12, &[1, 2, 3]), (9, &[]), (4, &[]), (18, &[])]);
        let clocks = replace_kinds(&mut types).unwrap();
        assert_eq!(clocks, BTreeMap::from([(1, Clock::Wall), (3, Clock::Instant)]));
        assert_eq!(types, footer(&[(12, &[1, 2, 3]), (4, &[]), (4, &[]), (4, &[])]));
    }
}
