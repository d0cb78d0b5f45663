//! The container: which column has which index where.
//!
//! ```text
//! magic i64 | version i32 | head length i32 | columns i32 | column | column | … | redundant length i32 | … | bodies
//! column:  name | indexes i32 | (kind | start i32 | length i32) …
//! ```
//! Texts are Java's: a 16-bit length, then UTF-16 units in one to three bytes each. Starts count from the first byte.

use std::ops::Range;

use bytes::Bytes;

use super::damaged;
use super::reader::Reader;
use crate::error::{Error, Result};

const MAGIC: i64 = 1_493_475_289_347_502;
const VERSION: i32 = 1;

/// Where the body of an index lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The column has no value in this file.
    Empty,
    /// Bytes of the container.
    At(Range<usize>),
}

/// One index.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Column, or `column[key]`.
    pub column: String,
    /// `bloom-filter`, `bitmap`, …
    pub kind: String,
    /// Where it lies.
    pub place: Place,
}

/// A parsed head and the bytes behind it.
#[derive(Debug, Clone)]
pub struct Container {
    bytes: Bytes,
    entries: Vec<Entry>,
}

impl Container {
    pub fn parse(bytes: Bytes) -> Result<Self> {
        let mut reader = Reader::new(&bytes);
        if reader.i64()? != MAGIC {
            return Err(damaged("a file index does not begin with its magic"));
        }
        let version = reader.i32()?;
        if version != VERSION {
            return Err(Error::unsupported(format!("version {version} of file indexes is not known; {VERSION} is")));
        }
        reader.i32()?;
        let mut entries = Vec::new();
        for _ in 0..reader.length()? {
            let column = text(&mut reader)?;
            for _ in 0..reader.length()? {
                let kind = text(&mut reader)?;
                let (start, length) = (reader.i32()?, reader.i32()?);
                let place = match (usize::try_from(start), usize::try_from(length)) {
                    (Ok(start), Ok(length)) => Place::At(start..start.saturating_add(length)),
                    _ if start == -1 => Place::Empty,
                    _ => return Err(damaged(format!("an index cannot lie at {start} with length {length}"))),
                };
                entries.push(Entry { column: column.clone(), kind, place });
            }
        }
        Ok(Self { bytes, entries })
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn body(&self, range: &Range<usize>) -> Result<&[u8]> {
        self.bytes.get(range.clone()).ok_or_else(|| {
            damaged(format!(
                "bytes {}..{} lie outside of a file index of {} bytes",
                range.start,
                range.end,
                self.bytes.len()
            ))
        })
    }
}

/// A text as Java's `DataOutput.writeUTF` writes it.
fn text(reader: &mut Reader<'_>) -> Result<String> {
    let length = usize::from(reader.u16()?);
    let bytes = reader.bytes(length)?;
    let mut units = Vec::with_capacity(length);
    let mut rest = bytes.iter().copied();
    let more = |rest: &mut dyn Iterator<Item = u8>| match rest.next() {
        Some(byte) if byte & 0xc0 == 0x80 => Ok(u16::from(byte & 0x3f)),
        _ => Err(damaged("a name in a file index is not Java's UTF")),
    };
    while let Some(byte) = rest.next() {
        let high = u16::from(byte);
        units.push(match byte {
            0..0x80 => high,
            0xc0..0xe0 => (high & 0x1f) << 6 | more(&mut rest)?,
            0xe0..0xf0 => {
                let middle = more(&mut rest)?;
                (high & 0x0f) << 12 | middle << 6 | more(&mut rest)?
            }
            _ => return Err(damaged("a name in a file index is not Java's UTF")),
        });
    }
    String::from_utf16(&units).map_err(|error| damaged("a name in a file index is not text").with_source(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_texts_have_their_own_zero_and_surrogates() {
        let mut reader = Reader::new(b"\0\x0aa\xc0\x80\xc3\xa4\xe4\xb8\xad\xc0\x00\x06\xed\xa0\xbd\xed\xb8\x80");
        // the first text ends in the middle of a unit
        assert!(text(&mut reader).is_err());
        let mut reader = Reader::new(b"\0\x08a\xc0\x80\xc3\xa4\xe4\xb8\xad\x00\x06\xed\xa0\xbd\xed\xb8\x80");
        assert_eq!(text(&mut reader).unwrap(), "a\0ä中");
        assert_eq!(text(&mut reader).unwrap(), "😀");
    }
}
