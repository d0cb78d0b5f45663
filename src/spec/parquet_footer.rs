//! A look at the footer of a Parquet file before a decoder gets it.
//!
//! The decoder follows the tree of the schema by recursion and reserves what a footer says it will need. A damaged or
//! hostile footer that nests ten thousand levels deep overflows the stack, one that counts two billion row groups asks for
//! more memory than there is; both end the process, which no guard can catch. So the footer is walked once before, without
//! deep recursion and without memory.

use crate::error::{Error, Result};

/// Levels of a schema at most: a type nested in 64 lists or maps takes two levels for each.
const MAX_LEVELS: usize = 130;

/// Structures within structures, in what the walk passes over. The decoder has its own, larger limit.
const MAX_SKIPPED: usize = 32;

/// Bytes behind the footer: its length and the format's mark.
const TAIL: usize = 8;

/// Walks the footer of a file that is in memory as a whole, and refuses what a decoder would not survive.
///
/// # Errors
/// Corrupt: a footer that is torn, nested too deeply or counts what it cannot hold.
pub fn check_parquet_file(file: &[u8]) -> Result<()> {
    let torn = || Error::corrupt(TORN);
    let end = file.len().checked_sub(TAIL).ok_or_else(torn)?;
    let (before, tail) = file.split_at(end);
    let length = tail.first_chunk::<4>().map(|length| u32::from_le_bytes(*length)).ok_or_else(torn)?;
    let start = end.checked_sub(usize::try_from(length).map_err(|_| torn())?).ok_or_else(torn)?;
    check_parquet_footer(before.get(start..).ok_or_else(torn)?)
}

/// Walks a footer and refuses what a decoder would not survive.
///
/// # Errors
/// As [`check_parquet_file`].
pub fn check_parquet_footer(footer: &[u8]) -> Result<()> {
    walk(footer).map_err(Error::corrupt)
}

/// Why a footer is not decoded.
type Refusal = &'static str;

const TORN: Refusal = "the footer is torn";

fn walk(footer: &[u8]) -> Result<(), Refusal> {
    let mut walk = Walk(footer);
    let mut last = 0;
    while let Some((kind, id)) = walk.field(last)? {
        match (id, kind) {
            (SCHEMA, Kind::LIST) => walk.schema()?,
            _ => walk.skip(kind, MAX_SKIPPED)?,
        }
        last = id;
    }
    Ok(())
}

/// Field of the schema in the footer.
const SCHEMA: i16 = 2;

/// Field of the number of children in an element of the schema.
const CHILDREN: i16 = 5;

/// Kinds of values in Thrift's compact encoding.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind(u8);

impl Kind {
    const STOP: Self = Self(0);
    const BYTE: Self = Self(3);
    const I16: Self = Self(4);
    const I32: Self = Self(5);
    const I64: Self = Self(6);
    const DOUBLE: Self = Self(7);
    const BINARY: Self = Self(8);
    const LIST: Self = Self(9);
    const SET: Self = Self(10);
    const MAP: Self = Self(11);
    const STRUCT: Self = Self(12);
    const UUID: Self = Self(13);
}

/// What is still to be walked.
struct Walk<'a>(&'a [u8]);

impl Walk<'_> {
    fn byte(&mut self) -> Result<u8, Refusal> {
        let (first, rest) = self.0.split_first().ok_or(TORN)?;
        self.0 = rest;
        Ok(*first)
    }

    fn bytes(&mut self, count: u64) -> Result<(), Refusal> {
        let count = usize::try_from(count).map_err(|_| TORN)?;
        self.0 = self.0.get(count..).ok_or(TORN)?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Refusal> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(TORN)
    }

    fn signed(&mut self) -> Result<i64, Refusal> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Kind and number of the next field of a structure; None at its end.
    fn field(&mut self, last: i16) -> Result<Option<(Kind, i16)>, Refusal> {
        let byte = self.byte()?;
        let kind = Kind(byte & 0x0f);
        if kind == Kind::STOP {
            return Ok(None);
        }
        let id = match byte >> 4 {
            0 => i16::try_from(self.signed()?).map_err(|_| TORN)?,
            step => last.checked_add(i16::from(step)).ok_or(TORN)?,
        };
        Ok(Some((kind, id)))
    }

    /// Kind and number of the elements of a list, each of which takes a byte at least.
    fn list(&mut self) -> Result<(Kind, u64), Refusal> {
        let byte = self.byte()?;
        let size = match byte >> 4 {
            15 => self.varint()?,
            size => u64::from(size),
        };
        if size > self.0.len() as u64 {
            return Err("the footer counts more than it holds");
        }
        Ok((Kind(byte & 0x0f), size))
    }

    fn skip(&mut self, kind: Kind, deeper: usize) -> Result<(), Refusal> {
        let deeper = deeper.checked_sub(1).ok_or("the footer is nested too deeply")?;
        match kind {
            // true and false
            Kind(1 | 2) => Ok(()),
            Kind::BYTE => self.bytes(1),
            Kind::I16 | Kind::I32 | Kind::I64 => self.varint().map(|_| ()),
            Kind::DOUBLE => self.bytes(8),
            Kind::UUID => self.bytes(16),
            Kind::BINARY => {
                let length = self.varint()?;
                self.bytes(length)
            }
            Kind::LIST | Kind::SET => {
                let (kind, size) = self.list()?;
                (0..size).try_for_each(|_| self.skip(kind, deeper))
            }
            Kind::MAP => {
                let size = self.varint()?;
                if size == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                (0..size).try_for_each(|_| {
                    self.skip(Kind(kinds >> 4), deeper)?;
                    self.skip(Kind(kinds & 0x0f), deeper)
                })
            }
            Kind::STRUCT => {
                while let Some((kind, _)) = self.field(0)? {
                    self.skip(kind, deeper)?;
                }
                Ok(())
            }
            _ => Err(TORN),
        }
    }

    /// The elements of the schema, parents before children.
    fn schema(&mut self) -> Result<(), Refusal> {
        let (kind, size) = self.list()?;
        // children to come, for each element on the way down to this one
        let mut open: Vec<u64> = Vec::new();
        for left in (0..size).rev() {
            if kind != Kind::STRUCT {
                return Err(TORN);
            }
            let children = self.children()?;
            if children > left {
                return Err("the schema names more columns than it has");
            }
            if let Some(siblings) = open.last_mut() {
                *siblings -= 1;
            }
            if children > 0 {
                open.push(children);
            }
            if open.len() > MAX_LEVELS {
                return Err("the schema is nested too deeply");
            }
            while open.last() == Some(&0) {
                open.pop();
            }
        }
        Ok(())
    }

    /// Children of the next element of the schema.
    fn children(&mut self) -> Result<u64, Refusal> {
        let (mut children, mut last) = (0, 0);
        while let Some((kind, id)) = self.field(last)? {
            match (id, kind) {
                (CHILDREN, Kind::I32) => {
                    children = u64::try_from(self.signed()?).map_err(|_| "the schema counts fewer than no columns")?;
                }
                _ => self.skip(kind, MAX_SKIPPED)?,
            }
            last = id;
        }
        Ok(children)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;

    /// A footer with a schema of these numbers of children, each element below the one before.
    fn footer(children: impl ExactSizeIterator<Item = i64>) -> Vec<u8> {
        let varint = |bytes: &mut Vec<u8>, mut value: u64| {
            while value >= 0x80 {
                bytes.push((value & 0x7f) as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
        };
        // version 2, then the list
        let mut bytes = vec![0x15, 0x04, 0x19, 0xfc];
        varint(&mut bytes, children.len() as u64);
        for children in children {
            // optional, named c
            bytes.extend([0x35, 0x02, 0x18, 0x01, b'c']);
            if children == 0 {
                // of type INT32
                bytes.truncate(bytes.len() - 5);
                bytes.extend([0x15, 0x02, 0x25, 0x02, 0x18, 0x01, b'c']);
            } else {
                bytes.push(0x15);
                varint(&mut bytes, ((children << 1) ^ (children >> 63)) as u64);
            }
            bytes.push(0);
        }
        // no rows, no row groups
        bytes.extend([0x16, 0x00, 0x19, 0x0c, 0x00]);
        bytes
    }

    /// The footer of a file whose schema is a chain of so many levels.
    pub(crate) fn chain(levels: usize) -> Vec<u8> {
        footer((0..=levels).map(|level| i64::from(level < levels)).collect::<Vec<_>>().into_iter())
    }

    #[test]
    fn a_schema_nested_absurdly_is_refused_before_it_is_followed() {
        for levels in [1, 2, 64, MAX_LEVELS] {
            let metadata = {
                check_parquet_footer(&chain(levels)).unwrap();
                ParquetMetaDataReader::decode_metadata(&chain(levels)).unwrap()
            };
            assert_eq!(metadata.file_metadata().schema_descr().num_columns(), 1, "{levels} levels");
        }
        for levels in [MAX_LEVELS + 1, 10_000, 1_000_000] {
            let error = check_parquet_footer(&chain(levels)).unwrap_err().to_string();
            assert!(error.contains("nested too deeply"), "{levels} levels: {error}");
        }
    }

    #[test]
    fn numbers_that_a_footer_cannot_hold_are_refused_before_memory_is_asked_for() {
        let message = |footer: Vec<u8>| check_parquet_footer(&footer).unwrap_err().to_string();
        assert!(message(footer([i64::from(i32::MAX), 0].into_iter())).contains("more columns than it has"));
        assert!(message(footer([-1, 0].into_iter())).contains("fewer than no columns"));
        // two thousand million row groups
        let mut groups = chain(1);
        groups.truncate(groups.len() - 2);
        groups.extend([0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00]);
        assert!(message(groups).contains("counts more than it holds"));
        // what is passed over, nested without end
        let mut nested = vec![0x15, 0x04];
        nested.extend(std::iter::repeat_n(0xbc, 100_000));
        assert!(message(nested).contains("nested too deeply"));
    }
}
