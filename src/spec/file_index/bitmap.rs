//! `bitmap`: for every value the rows that hold it.
//!
//! ```text
//! V1: 1 | rows i32 | values i32 | has null | [null: offset] | (value, offset) … | bitmaps
//! V2: 2 | rows i32 | values i32 | has null | [null: offset, length] | blocks i32 | (first value, offset) …
//!       | size of the blocks i32 | blocks: values i32, (value, offset, length) … | bitmaps
//! ```
//! An offset counts from the first bitmap; a negative one stands for the single row `-1 - offset`.

use roaring::RoaringBitmap;

use super::key::{Form, Key};
use super::question::Question;
use super::reader::Reader;
use super::{complement, damaged};
use crate::error::Result;
use crate::spec::data_type::DataType;

/// The rows that answer the question; None when the index cannot tell.
pub fn rows(body: &[u8], question: &Question, data_type: &DataType, rows: u32) -> Result<Option<RoaringBitmap>> {
    if matches!(data_type, DataType::Decimal(..)) || matches!(question, Question::Below { .. } | Question::Above { .. })
    {
        return Ok(None);
    }
    let Some(form) = Form::of(data_type) else { return Ok(None) };
    let Some(index) = Index::open(body, form)? else { return Ok(None) };
    if index.rows != rows {
        return Ok(None);
    }
    Ok(match question {
        Question::AnyOf(keys) => Some(index.union(keys)?),
        Question::NoneOf(keys) => Some(complement(index.union(keys)?, rows)),
        Question::IsNull => Some(index.nulls()?),
        Question::IsNotNull => Some(complement(index.nulls()?, rows)),
        Question::Below { .. } | Question::Above { .. } => None,
    })
}

/// A parsed head.
struct Index<'a> {
    form: Form,
    rows: u32,
    null: Option<i32>,
    dictionary: Dictionary<'a>,
    bitmaps: &'a [u8],
}

/// Where the values are listed.
enum Dictionary<'a> {
    /// One list.
    List { values: usize, entries: Reader<'a> },
    /// Sorted values in blocks: first value of each and its place.
    Blocks { firsts: Vec<(Key, usize)>, blocks: &'a [u8] },
}

impl<'a> Index<'a> {
    /// None for a version this reader does not know.
    fn open(body: &'a [u8], form: Form) -> Result<Option<Self>> {
        let mut reader = Reader::new(body);
        let version = reader.u8()?;
        if version != 1 && version != 2 {
            return Ok(None);
        }
        let rows = u32::try_from(reader.length()?).unwrap_or(u32::MAX);
        let values = reader.length()?;
        let mut null = None;
        if reader.u8()? != 0 {
            null = Some(reader.i32()?);
            if version == 2 {
                reader.i32()?;
            }
        }
        let (dictionary, bitmaps) = if version == 1 {
            let entries = reader.clone();
            for _ in 0..values {
                form.read(&mut reader)?;
                reader.i32()?;
            }
            (Dictionary::List { values, entries }, reader.rest())
        } else {
            let mut firsts = Vec::new();
            for _ in 0..reader.length()? {
                let key = form.read(&mut reader)?;
                firsts.push((key, reader.length()?));
            }
            let size = reader.length()?;
            let (blocks, bitmaps) = reader
                .rest()
                .split_at_checked(size)
                .ok_or_else(|| damaged(format!("the blocks of a bitmap index are cut before their {size} bytes")))?;
            (Dictionary::Blocks { firsts, blocks }, bitmaps)
        };
        Ok(Some(Self { form, rows, null, dictionary, bitmaps }))
    }

    fn nulls(&self) -> Result<RoaringBitmap> {
        self.null.map_or(Ok(RoaringBitmap::new()), |offset| self.bitmap(offset))
    }

    fn bitmap(&self, offset: i32) -> Result<RoaringBitmap> {
        match usize::try_from(offset) {
            Ok(offset) => Reader::at(self.bitmaps, offset)?.bitmap(self.rows),
            Err(_) => {
                let row = u32::try_from(-1i64 - i64::from(offset)).unwrap_or(u32::MAX);
                Ok(RoaringBitmap::from_iter(Some(row).filter(|row| *row < self.rows)))
            }
        }
    }

    fn union(&self, keys: &[Key]) -> Result<RoaringBitmap> {
        let mut found = RoaringBitmap::new();
        match &self.dictionary {
            Dictionary::List { values, entries } => {
                let mut entries = entries.clone();
                for _ in 0..*values {
                    let value = self.form.read(&mut entries)?;
                    let offset = entries.i32()?;
                    if is_one_of(&value, keys)? {
                        found |= self.bitmap(offset)?;
                    }
                }
            }
            Dictionary::Blocks { firsts, blocks } => {
                for key in keys {
                    if let Some(offset) = self.find(firsts, blocks, key)? {
                        found |= self.bitmap(offset)?;
                    }
                }
            }
        }
        Ok(found)
    }

    /// Offset of a key's bitmap: it is in the last block that does not begin behind it, or nowhere.
    fn find(&self, firsts: &[(Key, usize)], blocks: &[u8], key: &Key) -> Result<Option<i32>> {
        let mut block = None;
        for (first, at) in firsts {
            if first.order(key)?.is_gt() {
                break;
            }
            block = Some(*at);
        }
        let Some(at) = block else { return Ok(None) };
        let mut entries = Reader::at(blocks, at)?;
        for _ in 0..entries.length()? {
            let value = self.form.read(&mut entries)?;
            let offset = entries.i32()?;
            entries.i32()?;
            if value.order(key)?.is_eq() {
                return Ok(Some(offset));
            }
        }
        Ok(None)
    }
}

fn is_one_of(value: &Key, keys: &[Key]) -> Result<bool> {
    for key in keys {
        if value.order(key)?.is_eq() {
            return Ok(true);
        }
    }
    Ok(false)
}
