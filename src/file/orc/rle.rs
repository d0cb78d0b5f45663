//! Unsigned integers of ORC's run length encodings, version 1 and 2.

use std::io::{self, BufRead, BufReader, Read};

use crate::error::{Error, Result};

/// Bits of a value by its 5-bit code.
const WIDTHS: [u32; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 32, 40, 48, 56,
    64,
];

/// A stream of unsigned numbers, decompressed while they are asked for: what a file says of its length is not believed.
pub(super) struct Unsigned {
    source: BufReader<Box<dyn Read + Send>>,
    version: Version,
    /// The decoded run, and how much of it is given out.
    run: Vec<u64>,
    given: usize,
}

/// Which encoding a column says it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

fn cut_off() -> Error {
    Error::corrupt("a stream of numbers is cut off")
}

fn failed(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return cut_off();
    }
    Error::corrupt("a stream cannot be decompressed").with_source(error)
}

impl Unsigned {
    pub(super) fn new(source: Box<dyn Read + Send>, version: Version) -> Self {
        Self { source: BufReader::new(source), version, run: Vec::new(), given: 0 }
    }

    /// The next number; an error at the end of the stream.
    pub(super) fn next(&mut self) -> Result<u64> {
        loop {
            if let Some(value) = self.run.get(self.given) {
                self.given += 1;
                return Ok(*value);
            }
            self.run.clear();
            self.given = 0;
            match self.version {
                Version::One => self.read_run_one()?,
                Version::Two => self.read_run_two()?,
            }
        }
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.source.fill_buf().map_err(failed)?.first().ok_or_else(cut_off)?;
        self.source.consume(1);
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::corrupt("a number of more than 64 bits"))
    }

    /// A zigzag number, as a two's complement.
    fn signed_varint(&mut self) -> Result<u64> {
        let value = self.varint()?;
        Ok((value >> 1) ^ (value & 1).wrapping_neg())
    }

    /// A big-endian number of some bytes.
    fn big_endian(&mut self, bytes: u32) -> Result<u64> {
        let mut value = 0;
        for _ in 0..bytes {
            value = value << 8 | u64::from(self.byte()?);
        }
        Ok(value)
    }

    /// `count` numbers of `width` bits, highest bit first, padded to a byte at the end.
    fn packed(&mut self, count: usize, width: u32) -> Result<Vec<u64>> {
        let bits = count as u64 * u64::from(width);
        let length = usize::try_from(bits.div_ceil(8)).map_err(|_| cut_off())?;
        // 512 numbers of 8 bytes at most
        let mut source = vec![0; length];
        self.source.read_exact(&mut source).map_err(failed)?;
        let mask = if width >= 64 { u128::from(u64::MAX) } else { (1_u128 << width) - 1 };
        let mut values = Vec::with_capacity(count);
        let (mut held, mut held_bits) = (0_u128, 0);
        let mut source = source.iter();
        for _ in 0..count {
            while held_bits < width {
                held = held << 8 | u128::from(*source.next().ok_or_else(cut_off)?);
                held_bits += 8;
            }
            held_bits -= width;
            // masked to 64 bits
            values.push((held >> held_bits & mask) as u64);
            held &= (1 << held_bits) - 1;
        }
        Ok(values)
    }

    fn read_run_one(&mut self) -> Result<()> {
        let header = self.byte()?;
        if header < 0x80 {
            let step = i64::from(self.byte()?.cast_signed());
            let base = self.varint()?;
            for i in 0..u64::from(header) + 3 {
                self.run.push(base.wrapping_add(i.wrapping_mul(step.cast_unsigned())));
            }
        } else {
            for _ in 0..256 - usize::from(header) {
                let value = self.varint()?;
                self.run.push(value);
            }
        }
        Ok(())
    }

    fn read_run_two(&mut self) -> Result<()> {
        let header = self.byte()?;
        match header >> 6 {
            0 => {
                let value = self.big_endian(u32::from(header >> 3 & 7) + 1)?;
                self.run = vec![value; usize::from(header & 7) + 3];
                Ok(())
            }
            kind => {
                let code = usize::from(header >> 1 & 0x1f);
                let length = (usize::from(header & 1) << 8 | usize::from(self.byte()?)) + 1;
                let width = WIDTHS.get(code).copied().unwrap_or(64);
                match kind {
                    1 => {
                        self.run = self.packed(length, width)?;
                        Ok(())
                    }
                    2 => self.read_patched(length, width),
                    // a delta of no bits repeats the first one
                    _ => self.read_delta(length, if code == 0 { 0 } else { width }),
                }
            }
        }
    }

    /// A base below small numbers, and high bits for the few large ones.
    fn read_patched(&mut self, length: usize, width: u32) -> Result<()> {
        let (third, fourth) = (self.byte()?, self.byte()?);
        let base_bytes = u32::from(third >> 5) + 1;
        let patch_width = WIDTHS.get(usize::from(third & 0x1f)).copied().unwrap_or(64);
        let gap_width = u32::from(fourth >> 5) + 1;
        let patches = usize::from(fourth & 0x1f);
        let raw = self.big_endian(base_bytes)?;
        let sign = 1_u64 << (base_bytes * 8 - 1);
        let base = if raw & sign != 0 { (raw & (sign - 1)).wrapping_neg() } else { raw };
        let mut values = self.packed(length, width)?;
        if patch_width + gap_width > 64 {
            return Err(Error::corrupt("a patch of more than 64 bits"));
        }
        let entry_width = closest_width(patch_width + gap_width);
        let mut at = 0_usize;
        for entry in self.packed(patches, entry_width)? {
            let patch = if patch_width >= 64 { entry } else { entry & ((1 << patch_width) - 1) };
            at += usize::try_from(entry.checked_shr(patch_width).unwrap_or(0)).map_err(|_| cut_off())?;
            let value = values.get_mut(at).ok_or_else(|| Error::corrupt("a patch behind its run"))?;
            *value |= patch.checked_shl(width).unwrap_or(0);
        }
        self.run = values.into_iter().map(|v| base.wrapping_add(v)).collect();
        Ok(())
    }

    /// A first number and the steps from each to the next.
    fn read_delta(&mut self, length: usize, width: u32) -> Result<()> {
        let first = self.varint()?;
        let step = self.signed_varint()?;
        let mut run = Vec::with_capacity(length);
        let mut value = first;
        run.push(value);
        if width == 0 {
            for _ in 1..length {
                value = value.wrapping_add(step);
                run.push(value);
            }
        } else {
            if length > 1 {
                value = value.wrapping_add(step);
                run.push(value);
            }
            let down = step >> 63 == 1;
            for delta in self.packed(length.saturating_sub(2), width)? {
                value = if down { value.wrapping_sub(delta) } else { value.wrapping_add(delta) };
                run.push(value);
            }
        }
        self.run = run;
        Ok(())
    }
}

/// The smallest width of the table that holds `bits`.
fn closest_width(bits: u32) -> u32 {
    WIDTHS.into_iter().find(|width| *width >= bits).unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(bytes: &[u8]) -> Box<dyn Read + Send> {
        Box::new(io::Cursor::new(bytes.to_vec()))
    }

    fn all(bytes: &[u8], version: Version, count: usize) -> Vec<u64> {
        let mut stream = Unsigned::new(source(bytes), version);
        (0..count).map(|_| stream.next().unwrap()).collect()
    }

    /// The examples of the ORC specification.
    #[test]
    fn examples_of_the_specification_decode() {
        assert_eq!(all(&[0x61, 0x00, 0x07], Version::One, 100), vec![7; 100]);
        assert_eq!(all(&[0x61, 0xff, 0x64], Version::One, 100), (1..=100).rev().collect::<Vec<_>>());
        assert_eq!(all(&[0xfb, 0x02, 0x03, 0x06, 0x07, 0x0b], Version::One, 5), [2, 3, 6, 7, 11]);
        assert_eq!(all(&[0x0a, 0x27, 0x10], Version::Two, 5), [10000; 5]);
        let direct = [0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef];
        assert_eq!(all(&direct, Version::Two, 4), [23713, 43806, 57005, 48879]);
        let delta = [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46];
        assert_eq!(all(&delta, Version::Two, 10), [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
        let patched = [
            0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46, 0x50, 0x5a, 0x64, 0x6e,
            0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8,
        ];
        let mut wanted = vec![2030, 2000, 2020, 1_000_000];
        wanted.extend((2040..=2190).step_by(10));
        assert_eq!(all(&patched, Version::Two, 20), wanted);
    }

    #[test]
    fn streams_that_are_cut_off_are_errors() {
        for bytes in [&[][..], &[0x61], &[0x61, 0x00, 0x80], &[0x5e, 0x03, 0x5c], &[0x8e, 0x13, 0x2b, 0x21, 0x07]] {
            for version in [Version::One, Version::Two] {
                let mut stream = Unsigned::new(source(bytes), version);
                assert!((0..200).any(|_| stream.next().is_err()), "{bytes:x?}");
            }
        }
    }

    #[test]
    fn numbers_of_all_64_bits_survive() {
        let mut bytes = vec![0x7e, 0x01];
        bytes.extend(u64::MAX.to_be_bytes());
        bytes.extend(7_u64.to_be_bytes());
        assert_eq!(all(&bytes, Version::Two, 2), [u64::MAX, 7]);
    }

    #[test]
    fn stream_without_end_is_read_as_far_as_numbers_are_wanted() {
        // runs of three times the number 0
        for version in [Version::One, Version::Two] {
            let mut stream = Unsigned::new(Box::new(io::repeat(0)), version);
            assert!((0..100).all(|_| stream.next().unwrap() == 0), "{version:?}");
        }
    }
}
