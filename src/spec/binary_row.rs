//! The row encoding of keys, partitions and statistics bounds.
//!
//! ```text
//! arity: i32 BE | row kind: 1 byte, null bits | 8 bytes per field | variable part, each value padded to 8 bytes
//!               └ offsets count from here
//! ```
//! Everything behind the arity is little endian. Values up to 7 bytes lie in their slot; longer ones in the variable
//! part, the slot holding `offset << 32 | length`.

use bytes::Bytes;

use super::data_type::DataType;
use super::datum::Datum;
use crate::error::{Error, Result};

/// A serialized row: big-endian field count, then header, null bits, slots and variable part. Fields are decoded on
/// demand; see `decode`, `get`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BinaryRow(pub Bytes);

/// How a null of a type with a reserved variable part (DECIMAL over 18 digits, TIMESTAMP over 3) is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowForm {
    /// Partitions, bucket keys and trimmed primary keys: the variable part stays reserved.
    Projected,
    /// Statistics bounds: nothing is reserved.
    Serialized,
}

const ARITY_BYTES: usize = 4;
const SLOT: usize = 8;
const MAX_INLINE: usize = 7;
/// Precision up to which a DECIMAL is a plain 64-bit number.
const MAX_COMPACT_DECIMAL: u8 = 18;
/// Precision up to which a TIMESTAMP is plain milliseconds.
const MAX_COMPACT_TIMESTAMP: u8 = 3;
const DECIMAL_BYTES: usize = 16;

/// Bytes of row kind and null bits; None when the arity is absurd.
fn header_bytes(arity: usize) -> Option<usize> {
    Some(arity.checked_add(63 + 8)? / 64 * 8)
}

fn damaged(what: impl Into<String>) -> Error {
    Error::corrupt(what).with_code("CorruptRow")
}

impl BinaryRow {
    /// The row of no fields: twelve zero bytes.
    pub fn empty() -> Self {
        Self(Bytes::from_static(&[0; 12]))
    }

    /// Number of fields.
    pub fn arity(&self) -> Result<usize> {
        if self.0.is_empty() {
            return Ok(0);
        }
        let Some(head) = self.0.first_chunk::<ARITY_BYTES>() else {
            return Err(damaged(format!("a row of {} bytes has no field count", self.0.len())));
        };
        usize::try_from(i32::from_be_bytes(*head)).map_err(|_| damaged("a row has a negative field count"))
    }

    /// Whether the row has no fields (no partition, no key, no statistics).
    pub fn is_empty(&self) -> bool {
        self.arity().is_ok_and(|arity| arity == 0)
    }

    /// The row without the field count: what bucket hashes are taken of.
    pub fn row_bytes(&self) -> &[u8] {
        self.0.get(ARITY_BYTES..).unwrap_or_default()
    }

    /// Field `index`, which has type `data_type`. A nested value is not decoded: it is an error, unless it is null.
    pub fn get(&self, index: usize, data_type: &DataType) -> Result<Datum> {
        let arity = self.arity()?;
        if index >= arity {
            return Err(damaged(format!("field {index} was asked of a row of {arity} fields")));
        }
        field(self.row_bytes(), arity, index, data_type)
            .map_err(|error| error.with_context("field", index).with_context("type", format!("{data_type:?}")))
    }

    /// All fields; the arity must be the number of types.
    pub fn decode(&self, types: &[&DataType]) -> Result<Vec<Datum>> {
        let arity = self.arity()?;
        if arity != types.len() {
            return Err(damaged(format!("a row has {arity} fields where {} were expected", types.len())));
        }
        types.iter().enumerate().map(|(index, data_type)| self.get(index, data_type)).collect()
    }

    /// The row of `values`. An error is a value that is not of its type.
    pub fn encode(values: &[(&Datum, &DataType)], form: RowForm) -> Result<Self> {
        let writer = RowWriter::new(values.len())?;
        writer.row(values, form)
    }
}

/// Decodes one field of a row of `arity` fields (row bytes without the arity).
fn field(row: &[u8], arity: usize, index: usize, data_type: &DataType) -> Result<Datum> {
    let start = header_bytes(arity)
        .and_then(|header| header.checked_add(index.checked_mul(SLOT)?))
        .ok_or_else(|| damaged("a row has too many fields"))?;
    let slot: &[u8; SLOT] = row
        .get(start..)
        .and_then(|rest| rest.first_chunk())
        .ok_or_else(|| damaged(format!("a row of {arity} fields ends after {} bytes", row.len())))?;
    let bit = index + 8;
    // the slot lies behind the null bits, so these are there
    if row.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0) {
        return Ok(Datum::Null);
    }
    let number = i64::from_le_bytes(*slot);
    let int = || i32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]]);
    Ok(match data_type {
        DataType::Boolean => Datum::Boolean(slot[0] != 0),
        DataType::TinyInt => Datum::TinyInt(i8::from_le_bytes([slot[0]])),
        DataType::SmallInt => Datum::SmallInt(i16::from_le_bytes([slot[0], slot[1]])),
        DataType::Int => Datum::Int(int()),
        DataType::BigInt => Datum::BigInt(number),
        DataType::Float => Datum::Float(f32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]])),
        DataType::Double => Datum::Double(f64::from_le_bytes(*slot)),
        DataType::Date => Datum::Date(int()),
        DataType::Time(_) => Datum::Time(int()),
        DataType::Decimal(precision, scale) if *precision <= MAX_COMPACT_DECIMAL => {
            Datum::Decimal(i128::from(number), *precision, *scale)
        }
        DataType::Decimal(precision, scale) => Datum::Decimal(decimal(variable(row, slot)?)?, *precision, *scale),
        DataType::Timestamp(precision) | DataType::TimestampLtz(precision) if *precision <= MAX_COMPACT_TIMESTAMP => {
            Datum::Timestamp(number, 0)
        }
        DataType::Timestamp(_) | DataType::TimestampLtz(_) => {
            let (offset, nanos) = halves(slot);
            if nanos > 999_999 {
                return Err(damaged(format!("a timestamp has {nanos} nanoseconds of a millisecond")));
            }
            let millis = region(row, offset, SLOT)?;
            let millis = millis.first_chunk().ok_or_else(|| damaged("a timestamp is cut short"))?;
            Datum::Timestamp(i64::from_le_bytes(*millis), i32::try_from(nanos).unwrap_or_default())
        }
        DataType::Char(_) | DataType::Varchar(_) => {
            let text = std::str::from_utf8(short_or_variable(row, slot)?)
                .map_err(|error| damaged("a string is not UTF-8").with_source(error))?;
            Datum::String(text.to_string())
        }
        DataType::Binary(_)
        | DataType::Varbinary(_)
        | DataType::Blob
        | DataType::Geometry(_)
        | DataType::Geography(_) => Datum::Binary(short_or_variable(row, slot)?.to_vec()),
        DataType::Array(_)
        | DataType::Map(..)
        | DataType::Multiset(_)
        | DataType::Row(_)
        | DataType::Vector(..)
        | DataType::Variant => {
            return Err(Error::unsupported("a nested value in a key, partition or bound cannot be decoded"));
        }
    })
}

/// Upper and lower half of a slot: offset, and length or nanoseconds.
fn halves(slot: &[u8; SLOT]) -> (u32, u32) {
    (u32::from_le_bytes([slot[4], slot[5], slot[6], slot[7]]), u32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]]))
}

fn region(row: &[u8], offset: u32, length: usize) -> Result<&[u8]> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    start.checked_add(length).and_then(|end| row.get(start..end)).ok_or_else(|| {
        damaged(format!("a value of {length} bytes at {offset} lies outside of its row of {} bytes", row.len()))
    })
}

fn variable<'a>(row: &'a [u8], slot: &[u8; SLOT]) -> Result<&'a [u8]> {
    let (offset, length) = halves(slot);
    region(row, offset, usize::try_from(length).unwrap_or(usize::MAX))
}

fn short_or_variable<'a>(row: &'a [u8], slot: &'a [u8; SLOT]) -> Result<&'a [u8]> {
    let mark = slot[SLOT - 1];
    if mark & 0x80 == 0 {
        return variable(row, slot);
    }
    let length = usize::from(mark & 0x7f);
    slot.get(..length)
        .filter(|_| length <= MAX_INLINE)
        .ok_or_else(|| damaged(format!("an inline value claims {length} bytes")))
}

/// A decimal of a row: big-endian two's complement of one byte at least, and sixteen at most.
fn decimal(bytes: &[u8]) -> Result<i128> {
    let number = if bytes.is_empty() || bytes.len() > DECIMAL_BYTES { None } else { unscaled(bytes) };
    number.ok_or_else(|| damaged(format!("a decimal has {} bytes", bytes.len())))
}

/// Big-endian two's complement of any length; None when it needs more than 16 bytes.
pub(crate) fn unscaled(bytes: &[u8]) -> Option<i128> {
    let fill = if bytes.first().is_some_and(|b| *b >= 0x80) { 0xff } else { 0 };
    let significant = if bytes.len() > 16 {
        let (head, tail) = bytes.split_at(bytes.len() - 16);
        let sign_kept = tail.first().is_some_and(|b| (*b >= 0x80) == (fill == 0xff));
        if !sign_kept || head.iter().any(|b| *b != fill) {
            return None;
        }
        tail
    } else {
        bytes
    };
    let mut whole = [fill; 16];
    let start = 16 - significant.len();
    whole.get_mut(start..)?.copy_from_slice(significant);
    Some(i128::from_be_bytes(whole))
}

/// The shortest big-endian two's complement form.
fn minimal_bytes(value: i128) -> Vec<u8> {
    let wide = value.to_be_bytes();
    let sign = if value < 0 { 0xff } else { 0 };
    let mut start = 0;
    // a leading byte is superfluous when the sign survives without it
    while let [first, second, ..] = wide.get(start..).unwrap_or_default()
        && *first == sign
        && (second & 0x80) == (sign & 0x80)
    {
        start += 1;
    }
    wide.get(start..).unwrap_or_default().to_vec()
}

/// Builds a row front to back; offsets are taken from the length written so far.
struct RowWriter {
    arity: i32,
    header: Vec<u8>,
    slots: Vec<[u8; SLOT]>,
    tail: Vec<u8>,
    fixed: usize,
}

impl RowWriter {
    fn new(arity: usize) -> Result<Self> {
        let header = header_bytes(arity);
        let fixed = header.and_then(|header| arity.checked_mul(SLOT)?.checked_add(header));
        match (i32::try_from(arity), header, fixed) {
            (Ok(count), Some(header), Some(fixed)) => Ok(Self {
                arity: count,
                header: vec![0; header],
                slots: Vec::with_capacity(arity),
                tail: Vec::new(),
                fixed,
            }),
            _ => Err(Error::invalid(format!("a row cannot have {arity} fields"))),
        }
    }

    fn row(mut self, values: &[(&Datum, &DataType)], form: RowForm) -> Result<BinaryRow> {
        for (index, (value, data_type)) in values.iter().enumerate() {
            if matches!(value, Datum::Null) {
                let bit = index + 8;
                if let Some(byte) = self.header.get_mut(bit / 8) {
                    *byte |= 1 << (bit % 8);
                }
            }
            let slot = self.slot(value, data_type, form)?;
            self.slots.push(slot);
        }
        let mut bytes = Vec::with_capacity(ARITY_BYTES + self.fixed + self.tail.len());
        bytes.extend_from_slice(&self.arity.to_be_bytes());
        bytes.extend_from_slice(&self.header);
        for slot in &self.slots {
            bytes.extend_from_slice(slot);
        }
        bytes.extend_from_slice(&self.tail);
        Ok(BinaryRow(Bytes::from(bytes)))
    }

    fn slot(&mut self, value: &Datum, data_type: &DataType, form: RowForm) -> Result<[u8; SLOT]> {
        let mismatch =
            || Error::invalid(format!("{value:?} is not a value of type {data_type:?}")).with_code("TypeMismatch");
        Ok(match (value, data_type) {
            (Datum::Null, DataType::Decimal(precision, _))
                if form == RowForm::Projected && *precision > MAX_COMPACT_DECIMAL =>
            {
                self.reserve(&[], DECIMAL_BYTES, 0)?
            }
            (Datum::Null, DataType::Timestamp(precision) | DataType::TimestampLtz(precision))
                if form == RowForm::Projected && *precision > MAX_COMPACT_TIMESTAMP =>
            {
                self.reserve(&[], SLOT, 0)?
            }
            (Datum::Null, _) => [0; SLOT],
            (Datum::Boolean(v), DataType::Boolean) => low(&[u8::from(*v)]),
            (Datum::TinyInt(v), DataType::TinyInt) => low(&v.to_le_bytes()),
            (Datum::SmallInt(v), DataType::SmallInt) => low(&v.to_le_bytes()),
            (Datum::Int(v), DataType::Int) | (Datum::Date(v), DataType::Date) | (Datum::Time(v), DataType::Time(_)) => {
                low(&v.to_le_bytes())
            }
            (Datum::BigInt(v), DataType::BigInt) => v.to_le_bytes(),
            (Datum::Float(v), DataType::Float) => low(&v.to_le_bytes()),
            (Datum::Double(v), DataType::Double) => v.to_le_bytes(),
            (Datum::Decimal(v, _, scale), DataType::Decimal(precision, wanted)) if scale == wanted => {
                if *precision <= MAX_COMPACT_DECIMAL {
                    i64::try_from(*v).map_err(|_| mismatch())?.to_le_bytes()
                } else {
                    let bytes = minimal_bytes(*v);
                    let length = u32::try_from(bytes.len()).map_err(|_| mismatch())?;
                    self.reserve(&bytes, DECIMAL_BYTES, length)?
                }
            }
            (Datum::Timestamp(millis, nanos), DataType::Timestamp(precision) | DataType::TimestampLtz(precision)) => {
                if *precision <= MAX_COMPACT_TIMESTAMP {
                    millis.to_le_bytes()
                } else {
                    let nanos = u32::try_from(*nanos).ok().filter(|n| *n <= 999_999).ok_or_else(mismatch)?;
                    self.reserve(&millis.to_le_bytes(), SLOT, nanos)?
                }
            }
            (Datum::String(v), DataType::Char(_) | DataType::Varchar(_)) => self.bytes(v.as_bytes())?,
            (
                Datum::Binary(v),
                DataType::Binary(_)
                | DataType::Varbinary(_)
                | DataType::Blob
                | DataType::Geometry(_)
                | DataType::Geography(_),
            ) => self.bytes(v)?,
            _ => return Err(mismatch()),
        })
    }

    fn bytes(&mut self, value: &[u8]) -> Result<[u8; SLOT]> {
        if value.len() <= MAX_INLINE {
            let mut slot = low(value);
            slot[SLOT - 1] = 0x80 | u8::try_from(value.len()).unwrap_or_default();
            return Ok(slot);
        }
        let length = u32::try_from(value.len()).map_err(|_| Error::invalid("a value is too long for a row"))?;
        self.reserve(value, value.len().next_multiple_of(SLOT), length)
    }

    /// Puts `value` into `room` bytes of the variable part; the slot then holds its offset and `lower`.
    fn reserve(&mut self, value: &[u8], room: usize, lower: u32) -> Result<[u8; SLOT]> {
        let start = self.tail.len();
        let offset = i32::try_from(self.fixed + start).map_err(|_| Error::invalid("a row is longer than 2 GiB"))?;
        self.tail.extend_from_slice(value);
        self.tail.resize(start + room, 0);
        let mut slot = [0; SLOT];
        slot[..4].copy_from_slice(&lower.to_le_bytes());
        slot[4..].copy_from_slice(&offset.to_le_bytes());
        Ok(slot)
    }
}

/// A slot whose first bytes are `bytes`; longer input is cut, which callers do not give.
fn low(bytes: &[u8]) -> [u8; SLOT] {
    let mut slot = [0; SLOT];
    for (to, from) in slot.iter_mut().zip(bytes) {
        *to = *from;
    }
    slot
}

#[cfg(test)]
mod tests;
