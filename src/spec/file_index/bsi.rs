//! `bsi`: numbers bit by bit, negative ones apart by their magnitude.
//!
//! ```text
//! 1 | rows i32 | has positive | [half] | has negative | [half]
//! half: 1 | min i64 | max i64 | rows: bitmap | slices i32 | slice: bitmap …
//! ```
//! A half keeps `number - min`. The smallest BIGINT has no magnitude: writers fail on it, so it never occurs.

use roaring::RoaringBitmap;

use super::key::Key;
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
    if !is_numeric(data_type) {
        return Ok(None);
    }
    let mut reader = Reader::new(body);
    if reader.u8()? != VERSION || reader.length()? != usize::try_from(rows).unwrap_or(usize::MAX) {
        return Ok(None);
    }
    let (Some(positive), Some(negative)) = (Half::read(&mut reader, rows)?, Half::read(&mut reader, rows)?) else {
        return Ok(None);
    };
    let present = &positive.slices.present | &negative.slices.present;
    let split = |key: &Key| match key {
        Key::Number(number) => Some(split(&positive, &negative, *number)),
        Key::Float(_) | Key::Bytes(_) => None,
    };
    Ok(match question {
        Question::IsNull => Some(complement(present, rows)),
        Question::IsNotNull => Some(present),
        Question::AnyOf(keys) | Question::NoneOf(keys) => {
            let mut equal = RoaringBitmap::new();
            for key in keys {
                let Some(split) = split(key) else { return Ok(None) };
                equal |= split.equal;
            }
            Some(if matches!(question, Question::AnyOf(_)) { equal } else { present - equal })
        }
        Question::Below { key, inclusive } => {
            split(key).map(|split| if *inclusive { split.below | split.equal } else { split.below })
        }
        Question::Above { key, inclusive } => {
            split(key).map(|split| if *inclusive { split.above | split.equal } else { split.above })
        }
    })
}

/// Whether the type is one whose keys are the numbers this index keeps.
fn is_numeric(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::TinyInt
            | DataType::SmallInt
            | DataType::Int
            | DataType::BigInt
            | DataType::Date
            | DataType::Time(_)
            | DataType::Decimal(..)
            | DataType::Timestamp(_)
            | DataType::TimestampLtz(_)
    )
}

/// Numbers of one sign.
struct Half {
    min: u64,
    slices: Slices,
}

impl Half {
    /// None for a version this reader does not know.
    fn read(reader: &mut Reader<'_>, rows: u32) -> Result<Option<Self>> {
        if reader.u8()? == 0 {
            let slices = Slices { present: RoaringBitmap::new(), bits: Vec::new() };
            return Ok(Some(Self { min: 0, slices }));
        }
        if reader.u8()? != VERSION {
            return Ok(None);
        }
        let min = reader.i64()?;
        let min = u64::try_from(min).map_err(|_| damaged(format!("a bit-sliced index begins at {min}")))?;
        reader.i64()?;
        let present = reader.bitmap(rows)?;
        let count = reader.length()?;
        if count > MAX_SLICES {
            return Err(damaged(format!("a bit-sliced index has {count} slices")));
        }
        let bits = (0..count).map(|_| reader.bitmap(rows)).collect::<Result<_>>()?;
        Ok(Some(Self { min, slices: Slices { present, bits } }))
    }

    fn split(&self, magnitude: u64) -> Split {
        match magnitude.checked_sub(self.min) {
            Some(distance) => self.slices.split(distance),
            None => {
                Split { below: RoaringBitmap::new(), equal: RoaringBitmap::new(), above: self.slices.present.clone() }
            }
        }
    }
}

fn split(positive: &Half, negative: &Half, number: i64) -> Split {
    let magnitude = number.unsigned_abs();
    if number < 0 {
        let Split { below, equal, above } = negative.split(magnitude);
        // of negative numbers the larger magnitude is the smaller number
        Split { below: above, equal, above: below | &positive.slices.present }
    } else {
        let Split { below, equal, above } = positive.split(magnitude);
        Split { below: below | &negative.slices.present, equal, above }
    }
}
