//! Kernel for ranked files with one dense integer key: a bit a key says that a newer file has it.

use super::mask::Mask;
use super::{File, Section, Selected};
use crate::merge::keys::Keys;
use crate::merge::rules::MergeRules;

/// The bitmap may have this many bits a row.
const BITS_A_ROW: u128 = 64;

/// Selects by walking the files in `walk`; None when the keys are no dense integers.
pub(super) fn select(section: &Section, rules: &MergeRules, walk: &[usize]) -> Option<Selected> {
    let (base, bits) = domain(section)?;
    let mut claims = Claims {
        base,
        claimed: vec![0; bits.div_ceil(64)],
        skipped: if rules.ignore_delete() { vec![0; bits.div_ceil(64)] } else { Vec::new() },
        ignore_delete: rules.ignore_delete(),
    };
    let mut masks: Vec<Mask> = section.files.iter().map(|file| Mask::none(file.rows())).collect();
    for &at in walk {
        let (file, mask) = (&section.files[at], &mut masks[at]);
        match &file.keys {
            Keys::Ints32(keys, _) => claims.walk(keys, file, mask),
            Keys::Ints64(keys, _) => claims.walk(keys, file, mask),
            Keys::Ints128(..) | Keys::Bytes(..) | Keys::Rows(_) => return None,
        }
    }
    Some((masks, claims.keys()))
}

/// Smallest key and number of bits, if the keys are integers without nulls and dense enough.
fn domain(section: &Section) -> Option<(i64, usize)> {
    let mut rows: u128 = 0;
    let mut range: Option<(i64, i64)> = None;
    for file in section.files.iter().filter(|file| file.rows() > 0) {
        // keys increase
        let (first, last) = match &file.keys {
            Keys::Ints32(keys, None) => (i64::from(*keys.first()?), i64::from(*keys.last()?)),
            Keys::Ints64(keys, None) => (*keys.first()?, *keys.last()?),
            _ => return None,
        };
        rows += file.rows() as u128;
        range = Some(range.map_or((first, last), |(min, max)| (min.min(first), max.max(last))));
    }
    let (min, max) = range.unwrap_or((0, 0));
    let bits = u128::from(max.abs_diff(min)) + 1;
    let dense = bits <= rows.saturating_mul(BITS_A_ROW).max(1 << 16);
    dense.then(|| usize::try_from(bits).ok()).flatten().map(|bits| (min, bits))
}

struct Claims {
    base: i64,
    /// Keys that a file of the walk had.
    claimed: Vec<u64>,
    /// Keys of skipped retracts.
    skipped: Vec<u64>,
    ignore_delete: bool,
}

impl Claims {
    fn walk<K: Copy + Into<i64>>(&mut self, keys: &[K], file: &File, mask: &mut Mask) {
        let place = |base: i64, key: K| -> (usize, u64) {
            // below the number of bits, which is a usize
            let bit = key.into().abs_diff(base) as usize;
            (bit / 64, 1 << (bit % 64))
        };
        if file.deleted.is_none() && file.retracts.is_none() {
            for (row, &key) in keys.iter().enumerate() {
                let (word, bit) = place(self.base, key);
                if self.claimed[word] & bit == 0 {
                    self.claimed[word] |= bit;
                    mask.set(row);
                }
            }
            return;
        }
        for (row, &key) in keys.iter().enumerate() {
            if file.is_deleted(row) {
                continue;
            }
            let (word, bit) = place(self.base, key);
            let retract = file.is_retract(row);
            if retract && self.ignore_delete {
                self.skipped[word] |= bit;
            } else if self.claimed[word] & bit == 0 {
                self.claimed[word] |= bit;
                if !retract {
                    mask.set(row);
                }
            }
        }
    }

    /// Distinct keys.
    fn keys(&self) -> u64 {
        let skipped = self.skipped.iter().copied().chain(std::iter::repeat(0));
        self.claimed.iter().zip(skipped).map(|(claimed, skipped)| u64::from((claimed | skipped).count_ones())).sum()
    }
}
