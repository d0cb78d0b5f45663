//! Whether a decoder would survive an ORC footer, and the footer itself.
//!
//! The decoder follows the tree of types without looking: a type that is its own child, or one a million levels deep,
//! would end the process. The tree is checked before it sees the file, be it a data file or a manifest.
//!
//! ```text
//! … stripes … | metadata | footer | postscript | length of the postscript (1 byte)
//! ```

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;

use bytes::Bytes;
use orc_rust::compression::{Compression, Decompressor};
use orc_rust::reader::metadata::{FileMetadata, read_metadata};

use crate::error::{Error, Result};

/// Nesting of types at most.
pub(crate) const MAX_DEPTH: usize = 64;
/// A footer is not larger than this once decompressed. In tests low, so that they meet it.
const MAX_FOOTER: usize = if cfg!(test) { 4 << 20 } else { 256 << 20 };
const KIND_STRUCT: u8 = 12;

/// What the end of a file says about its footer.
pub(crate) struct Postscript {
    footer_length: u64,
    /// Bytes of the postscript and of the byte that has its length.
    length: u64,
    /// All of the postscript but the lengths, which are written anew.
    rest: Vec<u8>,
    /// Bytes of a chunk, when the file is compressed.
    chunk: Option<u64>,
}

impl Postscript {
    /// Reads the postscript off the last bytes of a file.
    ///
    /// # Errors
    /// It is not well formed.
    pub(crate) fn parse(end: &[u8]) -> Result<Self> {
        let (script_length, before) = end.split_last().ok_or_else(bad)?;
        let script_start = before.len().checked_sub(usize::from(*script_length)).ok_or_else(bad)?;
        let script = before.get(script_start..).ok_or_else(bad)?;
        let mut footer_length = None;
        let mut block_size = 256 * 1024;
        let mut compression_kind = 0;
        let mut rest = Vec::new();
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
                    rest.extend_from_slice(script.get(field.start..field.end).ok_or_else(bad)?);
                }
            }
        }
        Ok(Self {
            footer_length: footer_length.ok_or_else(bad)?,
            length: 1 + u64::from(*script_length),
            rest,
            chunk: (compression_kind != 0).then_some(block_size),
        })
    }

    /// Where the footer lies in a file of `size` bytes.
    ///
    /// # Errors
    /// It would begin before the file does.
    pub(crate) fn footer_range(&self, size: u64) -> Result<Range<u64>> {
        let end = size.checked_sub(self.length).ok_or_else(bad)?;
        Ok(end.checked_sub(self.footer_length).ok_or_else(bad)?..end)
    }

    /// The footer out of its stored bytes. Its types are a tree that a decoder can follow.
    ///
    /// # Errors
    /// Corrupt: it cannot be decompressed, is larger than any footer, or its types are no tree; Unsupported: they are
    /// nested too deeply.
    pub(crate) fn footer(&self, stored: Bytes) -> Result<Vec<u8>> {
        // a file of no columns, to learn what the decoder makes of the postscript
        let compression = self.metadata(&[0x22, 0x02, 0x08, KIND_STRUCT])?.compression();
        let footer = decompress(stored, compression, MAX_FOOTER)?;
        check_types(&footer)?;
        Ok(footer)
    }

    /// What the decoder makes of a footer and this postscript. With compression the footer is cut into chunks that say
    /// they are not compressed.
    pub(crate) fn metadata(&self, footer: &[u8]) -> Result<FileMetadata> {
        let mut bytes = match self.chunk {
            None => footer.to_vec(),
            Some(size) => as_original_chunks(footer, size),
        };
        let length = bytes.len() as u64;
        let mut script = self.rest.clone();
        push_varint_field(&mut script, 1, length);
        push_varint_field(&mut script, 5, 0);
        let script_length = u8::try_from(script.len()).map_err(|_| malformed())?;
        bytes.extend(script);
        bytes.push(script_length);
        read_metadata(&mut Bytes::from(bytes)).map_err(|e| malformed().with_source(e))
    }
}

/// Whether a decoder would survive the types of a whole file.
///
/// # Errors
/// As [`Postscript::parse`] and [`Postscript::footer`].
pub(crate) fn check_orc_file(bytes: &Bytes) -> Result<()> {
    let script = Postscript::parse(bytes)?;
    let range = script.footer_range(bytes.len() as u64)?;
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    script.footer(bytes.slice(place(range.start)..place(range.end))).map(drop)
}

fn bad() -> Error {
    Error::corrupt("the tail of the ORC file is not well formed")
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

/// All bytes of a compressed section, `limit` at most.
fn decompress(stored: Bytes, compression: Option<Compression>, limit: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Decompressor::new(stored, compression, Vec::new())
        .take(limit as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::corrupt("a section cannot be decompressed").with_source(e))?;
    if bytes.len() > limit {
        return Err(Error::corrupt(format!(
            "the footer of the ORC file is larger than {limit} bytes when decompressed"
        )));
    }
    Ok(bytes)
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
pub(crate) struct Field {
    pub(crate) number: u64,
    pub(crate) value: FieldValue,
    /// Where tag and value lie in the message.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The value of a field, as far as its wire type tells.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FieldValue {
    Varint(u64),
    Bytes { start: usize, end: usize },
    Fixed,
}

/// The fields of a message, in order.
pub(crate) struct Fields<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// Those of `message`.
    pub(crate) fn new(message: &'a [u8]) -> Self {
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
pub(crate) mod tests {
    use super::*;

    /// A footer of types, each with a kind and children.
    pub(crate) fn footer(types: &[(u8, &[u8])]) -> Vec<u8> {
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

    /// A file of nothing but its tail.
    pub(crate) fn file(footer: &[u8]) -> Bytes {
        let mut bytes = [b"ORC", footer].concat();
        let mut script = Vec::new();
        push_varint_field(&mut script, 1, footer.len() as u64);
        push_varint_field(&mut script, 5, 0);
        // the magic, as field 8000
        script.extend([0x82, 0xf4, 0x03, 3, b'O', b'R', b'C']);
        bytes.extend(&script);
        bytes.push(u8::try_from(script.len()).unwrap());
        bytes.into()
    }

    #[test]
    fn types_of_a_whole_file_are_checked() {
        check_orc_file(&file(&footer(&[(12, &[1]), (4, &[])]))).unwrap();
        assert!(check_orc_file(&file(&footer(&[(12, &[0])]))).unwrap_err().to_string().contains("no tree"));
        for cut in [&b""[..], b"ORC", &[0xff]] {
            assert!(check_orc_file(&Bytes::copy_from_slice(cut)).is_err(), "{cut:?}");
        }
    }

    #[test]
    fn footer_over_the_limit_is_refused_and_not_cut() {
        // a user's metadata, field 5, that the decoder would not miss
        let mut large = footer(&[(12, &[1]), (4, &[])]);
        let padding = MAX_FOOTER;
        large.push(0x2a);
        let mut length = padding;
        while length > 0x7f {
            large.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        large.push(length as u8);
        large.resize(large.len() + padding, 0);
        let error = check_orc_file(&file(&large)).unwrap_err();
        assert!(error.to_string().contains("larger than 4194304 bytes"), "{error}");
        assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
    }
}
