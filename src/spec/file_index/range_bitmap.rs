//! `range-bitmap`: sorted values get codes, and the rows keep their codes bit by bit.
//!
//! ```text
//! index:      head length i32 | 1 | rows i32 | values i32 | [min, max] | dictionary length i32 || dictionary | codes
//! dictionary: head length i32 | 1 | chunks i32 | offsets length i32 | chunks length i32 || offsets | chunks | keys
//! chunk:      1 | first key | its code i32 | place of its other keys i32 | their number i32 | …
//!             fixed length: keys length i32 | key length i32     variable: offsets length i32 | keys length i32
//! codes:      head length i32 | 1 | slices u8 | length of the row bitmap i32 | table length i32 | (offset, length) …
//!             || rows: bitmap | slice: bitmap …
//! ```

use roaring::RoaringBitmap;

use super::key::{Form, Key};
use super::question::Question;
use super::reader::Reader;
use super::slices::{Slices, Split};
use super::{complement, damaged};
use crate::error::Result;
use crate::spec::data_type::DataType;

const VERSION: u8 = 1;
const MAX_SLICES: usize = 64;

/// The rows that answer the question; None when the index cannot tell.
pub fn rows(body: &[u8], question: &Question, data_type: &DataType, rows: u32) -> Result<Option<RoaringBitmap>> {
    let Some(form) = Form::of(data_type) else { return Ok(None) };
    let Some(index) = Index::open(body, form)? else { return Ok(None) };
    if index.rows != usize::try_from(rows).unwrap_or(usize::MAX) {
        return Ok(None);
    }
    let Some(codes) = index.codes(rows)? else { return Ok(None) };
    let split = |key: &Key| index.split(&codes, key);
    Ok(match question {
        Question::IsNull => Some(complement(codes.present, rows)),
        Question::IsNotNull => Some(codes.present),
        Question::AnyOf(keys) | Question::NoneOf(keys) => {
            let mut equal = RoaringBitmap::new();
            for key in keys {
                let Some(split) = split(key)? else { return Ok(None) };
                equal |= split.equal;
            }
            Some(if matches!(question, Question::AnyOf(_)) { equal } else { codes.present - equal })
        }
        // NaN sorts last here, but a NaN with a sign comes first for some readers
        Question::Below { .. } if index.has_nan => None,
        Question::Below { key, inclusive } => {
            split(key)?.map(|split| if *inclusive { split.below | split.equal } else { split.below })
        }
        Question::Above { key, inclusive } => {
            split(key)?.map(|split| if *inclusive { split.above | split.equal } else { split.above })
        }
    })
}

struct Index<'a> {
    form: Form,
    rows: usize,
    values: usize,
    has_nan: bool,
    dictionary: &'a [u8],
    codes: &'a [u8],
}

impl<'a> Index<'a> {
    /// None for a version this reader does not know.
    fn open(body: &'a [u8], form: Form) -> Result<Option<Self>> {
        let mut reader = Reader::new(body);
        let mut head = reader.prefixed()?;
        if head.u8()? != VERSION {
            return Ok(None);
        }
        let (rows, values) = (head.length()?, head.length()?);
        let mut has_nan = false;
        if values > 0 {
            form.read(&mut head)?;
            has_nan = form.read(&mut head)?.is_nan();
        }
        let dictionary = reader.bytes(head.length()?)?;
        Ok(Some(Self { form, rows, values, has_nan, dictionary, codes: reader.rest() }))
    }

    /// The rows by the bits of their codes.
    fn codes(&self, rows: u32) -> Result<Option<Slices>> {
        let mut reader = Reader::new(self.codes);
        let mut head = reader.prefixed()?;
        if head.u8()? != VERSION {
            return Ok(None);
        }
        let count = usize::from(head.u8()?);
        if count > MAX_SLICES {
            return Err(damaged(format!("a range bitmap has {count} slices")));
        }
        let present = reader.bytes(head.length()?)?;
        let slices = reader.rest();
        head.i32()?;
        let mut bits = Vec::with_capacity(count);
        for _ in 0..count {
            let offset = head.length()?;
            head.i32()?;
            bits.push(Reader::at(slices, offset)?.bitmap(rows)?);
        }
        Ok(Some(Slices { present: Reader::new(present).bitmap(rows)?, bits }))
    }

    fn split(&self, codes: &Slices, key: &Key) -> Result<Option<Split>> {
        let Some((code, found)) = self.code(key)? else { return Ok(None) };
        let Split { below, equal, above } = codes.split(u64::try_from(code).unwrap_or(u64::MAX));
        Ok(Some(if found {
            Split { below, equal, above }
        } else {
            // the code belongs to the next larger value
            Split { below, equal: RoaringBitmap::new(), above: above | equal }
        }))
    }

    /// Code of a key, or of the smallest larger one; and whether it is the key itself. None for an unknown version.
    fn code(&self, key: &Key) -> Result<Option<(usize, bool)>> {
        let mut reader = Reader::new(self.dictionary);
        let mut head = reader.prefixed()?;
        if head.u8()? != VERSION {
            return Ok(None);
        }
        let count = head.length()?;
        let (offsets_length, chunks_length) = (head.length()?, head.length()?);
        let mut offsets = Reader::new(reader.bytes(offsets_length)?);
        let chunks = reader.bytes(chunks_length)?;
        let mut last = None;
        for _ in 0..count {
            let Some(chunk) = Chunk::read(&mut Reader::at(chunks, offsets.length()?)?, self.form)? else {
                return Ok(None);
            };
            if chunk.first.order(key)?.is_gt() {
                break;
            }
            last = Some(chunk);
        }
        let code = match last {
            Some(chunk) => chunk.code_of(key, reader.rest(), self.form)?,
            None => (0, false),
        };
        if code.0 > self.values {
            return Err(damaged(format!("code {} of a range bitmap exceeds its {} values", code.0, self.values)));
        }
        Ok(Some(code))
    }
}

/// Some neighbouring keys: the first in the chunk itself, the others elsewhere.
struct Chunk {
    first: Key,
    code: usize,
    /// Where the other keys begin.
    place: usize,
    others: usize,
    /// Offsets before the keys, of those that differ in length.
    offsets_length: usize,
}

impl Chunk {
    /// None for a version this reader does not know.
    fn read(reader: &mut Reader<'_>, form: Form) -> Result<Option<Self>> {
        if reader.u8()? != VERSION {
            return Ok(None);
        }
        let first = form.read(reader)?;
        let (code, place, others) = (reader.length()?, reader.length()?, reader.length()?);
        let offsets_length = if form == Form::Text { reader.length()? } else { 0 };
        Ok(Some(Self { first, code, place, others, offsets_length }))
    }

    /// Code of a key that is not under the first one; see [`Index::code`].
    fn code_of(&self, key: &Key, keys: &[u8], form: Form) -> Result<(usize, bool)> {
        let mut code = self.code;
        if self.first.order(key)?.is_eq() {
            return Ok((code, true));
        }
        // the keys follow one another in order, so their offsets are not needed
        let mut reader = Reader::at(keys, self.place)?;
        reader.bytes(self.offsets_length)?;
        for _ in 0..self.others {
            code = code.saturating_add(1);
            let other = form.read(&mut reader)?.order(key)?;
            if other.is_ge() {
                return Ok((code, other.is_eq()));
            }
        }
        Ok((code.saturating_add(1), false))
    }
}
