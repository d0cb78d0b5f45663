//! Bytes front to back, big endian, every length checked.

use std::io::Cursor;

use roaring::RoaringBitmap;

use super::damaged;
use crate::error::Result;

/// A place in bytes.
#[derive(Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// From byte `offset` of `bytes`.
    pub fn at(bytes: &'a [u8], offset: usize) -> Result<Self> {
        let rest = bytes.get(offset..);
        rest.map(Self::new)
            .ok_or_else(|| damaged(format!("offset {offset} lies behind an index of {} bytes", bytes.len())))
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let (head, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| damaged(format!("{length} bytes were expected where {} are left", self.rest.len())))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes(N)?;
        bytes.first_chunk().copied().ok_or_else(|| damaged("an index is cut short"))
    }

    pub fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub fn i8(&mut self) -> Result<i8> {
        self.array().map(i8::from_be_bytes)
    }

    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn i16(&mut self) -> Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    pub fn f32(&mut self) -> Result<f32> {
        self.array().map(f32::from_be_bytes)
    }

    pub fn f64(&mut self) -> Result<f64> {
        self.array().map(f64::from_be_bytes)
    }

    /// A 32-bit number that counts or measures something.
    pub fn length(&mut self) -> Result<usize> {
        let length = self.i32()?;
        usize::try_from(length).map_err(|_| damaged(format!("an index has a length of {length}")))
    }

    /// The next `length` bytes, the length standing in front.
    pub fn prefixed(&mut self) -> Result<Reader<'a>> {
        let length = self.length()?;
        self.bytes(length).map(Self::new)
    }

    /// A bitmap, which knows its own end, cut to rows under `rows`: a few bytes could else unfold to every number there is.
    pub fn bitmap(&mut self, rows: u32) -> Result<RoaringBitmap> {
        let mut cursor = Cursor::new(self.rest);
        let mut bitmap = RoaringBitmap::deserialize_from(&mut cursor)
            .map_err(|error| damaged("an index holds a damaged bitmap").with_source(error))?;
        let read = usize::try_from(cursor.position()).unwrap_or(usize::MAX);
        self.rest = self.rest.get(read..).unwrap_or_default();
        bitmap.remove_range(rows..);
        Ok(bitmap)
    }
}
