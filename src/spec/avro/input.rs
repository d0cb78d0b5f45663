//! The primitive values of Avro in a slice of a block. Every length is checked against what is left.

use crate::error::{Error, Result};

/// Items that may take no bytes at all, at most, in one part of a list.
const MAX_EMPTY_ITEMS: u64 = 65_536;

/// A slice that is read from the front.
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Number of bytes not yet read.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(length) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => {
                Err(Error::corrupt(format!("{length} bytes of Avro were expected where {} are left", self.rest.len())))
            }
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| Error::internal("a slice of the wrong length"))
    }

    /// A zigzag number of variable length.
    pub(crate) fn long(&mut self) -> Result<i64> {
        let mut value: u64 = 0;
        for (at, byte) in self.rest.iter().enumerate() {
            let part = u64::from(byte & 0x7f);
            if at > 9 || (at == 9 && part > 1) {
                break;
            }
            value |= part << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(at + 1..).unwrap_or_default();
                // the lowest bit is the sign
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(Error::corrupt("a number does not end"))
    }

    pub(crate) fn int(&mut self) -> Result<i32> {
        let value = self.long()?;
        i32::try_from(value).map_err(|_| Error::corrupt(format!("{value} is no int")))
    }

    pub(crate) fn boolean(&mut self) -> Result<bool> {
        match self.array::<1>()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(Error::corrupt(format!("{other} is no boolean"))),
        }
    }

    pub(crate) fn float(&mut self) -> Result<f32> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    pub(crate) fn double(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// Bytes or text with their length in front.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.long()?;
        let length =
            usize::try_from(length).map_err(|_| Error::corrupt(format!("an Avro value has length {length}")))?;
        self.take(length)
    }

    /// The number of items of the next part of a list or map; 0 ends it.
    pub(crate) fn items(&mut self, repeats: &Repeats) -> Result<u64> {
        let mut count = self.long()?;
        if count < 0 {
            // a negative count has its length in bytes behind it, for those who skip
            let bytes = self.long()?;
            if usize::try_from(bytes).ok().is_none_or(|bytes| bytes > self.rest.len()) {
                return Err(Error::corrupt(format!("{bytes} bytes of items where {} are left", self.rest.len())));
            }
            count = count.checked_neg().ok_or_else(|| Error::corrupt("a count out of range"))?;
        }
        let count = count.unsigned_abs();
        if count > MAX_EMPTY_ITEMS && count > self.rest.len() as u64 {
            return Err(Error::corrupt(format!(
                "{count} Avro values were promised where {} bytes are left",
                self.rest.len()
            )));
        }
        repeats.admit(count)?;
        Ok(count)
    }
}

/// Values that may still be read or skipped: those without bytes could else be repeated without end.
#[derive(Debug, Default)]
pub(crate) struct Repeats(u64);

impl Repeats {
    /// For the values of a block of so many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        Self((bytes as u64).saturating_mul(16).saturating_add(1 << 16))
    }

    /// Whether `count` values may follow.
    fn admit(&self, count: u64) -> Result<()> {
        if count > self.0 {
            return Err(Error::corrupt("a value without bytes repeats itself"));
        }
        Ok(())
    }

    /// One value is read or skipped.
    pub(crate) fn value(&mut self) -> Result<()> {
        self.admit(1)?;
        self.0 -= 1;
        Ok(())
    }
}
