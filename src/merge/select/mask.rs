//! One bit a row.

use arrow::buffer::{BooleanBuffer, Buffer};

pub(super) struct Mask {
    words: Vec<u64>,
    rows: usize,
}

impl Mask {
    /// No row is live.
    pub(super) fn none(rows: usize) -> Self {
        Self { words: vec![0; rows.div_ceil(64)], rows }
    }

    pub(super) fn set(&mut self, row: usize) {
        self.words[row / 64] |= 1 << (row % 64);
    }

    pub(super) fn set_range(&mut self, from: usize, to: usize) {
        let mut row = from;
        while row < to {
            let word = row / 64;
            let end = to.min((word + 1) * 64);
            let ones = if end - row == 64 { u64::MAX } else { ((1 << (end - row)) - 1) << (row % 64) };
            self.words[word] |= ones;
            row = end;
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(super) fn into_buffer(mut self) -> BooleanBuffer {
        // arrow numbers bits from the lowest of the first byte
        for word in &mut self.words {
            *word = word.to_le();
        }
        BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_set_exactly_their_rows() {
        for (from, to) in [(0, 0), (0, 64), (3, 5), (60, 130), (63, 64), (64, 128), (1, 200)] {
            let mut mask = Mask::none(200);
            mask.set_range(from, to);
            assert_eq!(mask.count(), (to - from) as u64);
            let buffer = mask.into_buffer();
            assert!((0..200).all(|row| buffer.value(row) == (from..to).contains(&row)), "{from}..{to}");
        }
    }
}
