//! Numbers kept bit by bit: slice i holds the rows whose number has bit i.

use roaring::RoaringBitmap;

/// Rows with a number, and their numbers.
pub struct Slices {
    /// Rows that have a number.
    pub present: RoaringBitmap,
    /// Rows by bit, lowest first.
    pub bits: Vec<RoaringBitmap>,
}

/// Rows whose number is under, is, and is over some number.
pub struct Split {
    pub below: RoaringBitmap,
    pub equal: RoaringBitmap,
    pub above: RoaringBitmap,
}

impl Slices {
    /// Compares every number with `wanted`, highest bit first.
    pub fn split(&self, wanted: u64) -> Split {
        let mut split = Split { below: RoaringBitmap::new(), equal: self.present.clone(), above: RoaringBitmap::new() };
        let width = u32::try_from(self.bits.len()).unwrap_or(u32::MAX);
        if wanted.checked_shr(width).is_some_and(|rest| rest > 0) {
            // more bits than any number has
            split.below = std::mem::take(&mut split.equal);
            return split;
        }
        for (bit, rows) in self.bits.iter().enumerate().rev() {
            let with = &split.equal & rows;
            let without = &split.equal - rows;
            if u32::try_from(bit).ok().and_then(|bit| wanted.checked_shr(bit)).is_some_and(|rest| rest & 1 == 1) {
                split.below |= without;
                split.equal = with;
            } else {
                split.above |= with;
                split.equal = without;
            }
        }
        split
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn split_agrees_with_comparing(numbers in vec(0u64..40, 0..60), wanted in 0u64..80, high in any::<bool>()) {
            let shift = if high { 58 } else { 0 };
            let mut slices = Slices { present: RoaringBitmap::new(), bits: vec![RoaringBitmap::new(); 6 + shift] };
            for (row, number) in (0u32..).zip(&numbers) {
                slices.present.insert(row);
                for bit in (0..64).filter(|bit| (number << shift) >> bit & 1 == 1) {
                    slices.bits[bit].insert(row);
                }
            }
            let wanted = wanted.saturating_mul(1 << shift);
            let split = slices.split(wanted);
            let rows = |holds: &dyn Fn(u64) -> bool| -> RoaringBitmap {
                (0u32..).zip(&numbers).filter(|(_, n)| holds(**n << shift)).map(|(row, _)| row).collect()
            };
            prop_assert_eq!(split.below, rows(&|n| n < wanted));
            prop_assert_eq!(split.equal, rows(&|n| n == wanted));
            prop_assert_eq!(split.above, rows(&|n| n > wanted));
        }
    }
}
