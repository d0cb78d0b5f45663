//! Deletion vectors: positions of deleted rows in a data file.
//!
//! ```text
//! index file: version 1 | record | record | …         a record begins at the offset the index manifest has
//! record:     length i32 BE | magic | roaring bitmap | CRC-32 of magic and bitmap, BE
//! ```
//! Two forms exist, told apart by the magic: V1 with a 32-bit bitmap, V2 with a 64-bit one. The length word always counts
//! magic and bitmap. The index manifest repeats it for V1, but has the length of the whole record for V2.

use std::io::Cursor;
use std::ops::Range;

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::BooleanBuffer;
use roaring::{RoaringBitmap, RoaringTreemap};

use crate::error::{Error, Result};

/// First byte of an index file that holds deletion vectors.
pub const FILE_VERSION: u8 = 1;

const MAGIC_V1: [u8; 4] = 1_581_511_376_u32.to_be_bytes();
const MAGIC_V2: [u8; 4] = 1_681_511_377_u32.to_le_bytes();
/// Length word and checksum: what a V1 length leaves out.
const FRAME: u64 = 8;

/// Deleted rows of one data file, by physical position.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeletionVector(pub RoaringTreemap);

impl DeletionVector {
    /// Whether the row at `position` is deleted.
    pub fn contains(&self, position: u64) -> bool {
        self.0.contains(position)
    }

    /// Number of deleted rows.
    pub fn cardinality(&self) -> u64 {
        self.0.len()
    }

    /// One bit per row of a file of `rows` rows, set where the row lives.
    ///
    /// # Errors
    /// A position behind the end of the file: the vector is another file's, or damaged. What it was to delete is not
    /// known then, and counts made of its size would differ from the rows read.
    pub fn to_live_mask(&self, rows: usize) -> Result<BooleanBuffer> {
        let mut live = BooleanBufferBuilder::new(rows);
        live.append_n(rows, true);
        for position in &self.0 {
            match usize::try_from(position) {
                Ok(position) if position < rows => live.set_bit(position, false),
                _ => {
                    return Err(damaged(format!(
                        "the deletion vector names position {position} of a data file of {rows} rows"
                    )));
                }
            }
        }
        Ok(live.finish())
    }
}

fn damaged(what: impl Into<String>) -> Error {
    Error::corrupt(what).with_code("CorruptDeletionVector")
}

/// Checks the first byte of an index file, from which all of it depends.
pub fn check_file(bytes: &[u8]) -> Result<()> {
    match bytes.first() {
        Some(&FILE_VERSION) => Ok(()),
        Some(0) => Err(damaged("the file of deletion vectors does not begin with its version")),
        Some(other) => Err(Error::unsupported(format!(
            "version {other} of files of deletion vectors is not known; {FILE_VERSION} is"
        ))
        .with_code("NewerFormat")
        .with_hint("read the table with a release that knows this version")),
        None => Err(damaged("the file of deletion vectors is empty")),
    }
}

/// Bytes of the index file to read for a vector at `offset` of `length` as the index manifest has them. May reach eight
/// bytes over what belongs to the vector, and so over the end of the file; [`decode`] takes either.
pub fn record_range(offset: i32, length: i32) -> Result<Range<u64>> {
    match (u64::try_from(offset), u64::try_from(length)) {
        (Ok(start), Ok(length)) => Ok(start..start + length + FRAME),
        _ => Err(damaged(format!("a deletion vector cannot lie at offset {offset} with length {length}"))),
    }
}

/// Decodes the record that begins at its length word; bytes behind the record are left alone. `manifest_length` is the
/// length in the index manifest and must agree with the record; the checksum is verified.
pub fn decode(record: &[u8], manifest_length: i32) -> Result<DeletionVector> {
    let (Some(length), Some(magic)) = (word(record, 0), word(record, 4)) else {
        return Err(damaged(format!("a deletion vector of {} bytes is too short", record.len())));
    };
    let length = i32::from_be_bytes(length);
    let v2 = match magic {
        MAGIC_V1 => false,
        MAGIC_V2 => true,
        other => return Err(damaged(format!("a deletion vector begins with {other:02x?}, not with a known magic"))),
    };
    let expected = if v2 { i64::from(length) + 8 } else { i64::from(length) };
    if expected != i64::from(manifest_length) {
        return Err(damaged(format!(
            "the index manifest gives length {manifest_length} to a deletion vector, the vector itself says {expected}"
        )));
    }
    let end = usize::try_from(length)
        .ok()
        .filter(|length| *length >= magic.len())
        .and_then(|length| length.checked_add(4))
        .ok_or_else(|| damaged(format!("a deletion vector has length {length}")))?;
    let (Some(content), Some(stored)) = (record.get(4..end), word(record, end)) else {
        return Err(damaged(format!("a deletion vector of length {length} is cut after {} bytes", record.len())));
    };
    let stored = u32::from_be_bytes(stored);
    let actual = crc32fast::hash(content);
    if stored != actual {
        return Err(damaged(format!("checksum {actual:08x} of a deletion vector is not the stored {stored:08x}")));
    }
    let bitmaps = content.get(magic.len()..).unwrap_or_default();
    Ok(DeletionVector(if v2 { decode_64(bitmaps)? } else { decode_32(bitmaps)? }))
}

fn word(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn bitmap(cursor: &mut Cursor<&[u8]>) -> Result<RoaringBitmap> {
    RoaringBitmap::deserialize_from(cursor)
        .map_err(|error| damaged("a deletion vector holds no bitmap").with_source(error))
}

fn at_end(cursor: &Cursor<&[u8]>) -> Result<()> {
    let left = cursor.get_ref().len() as u64 - cursor.position();
    if left > 0 { Err(damaged(format!("{left} bytes follow the bitmap of a deletion vector"))) } else { Ok(()) }
}

fn decode_32(bytes: &[u8]) -> Result<RoaringTreemap> {
    let mut cursor = Cursor::new(bytes);
    let low = bitmap(&mut cursor)?;
    at_end(&cursor)?;
    Ok(RoaringTreemap::from_bitmaps([(0, low)]))
}

fn decode_64(bytes: &[u8]) -> Result<RoaringTreemap> {
    let count = bytes.first_chunk().map(|head| u64::from_le_bytes(*head));
    let count = count.ok_or_else(|| damaged("a deletion vector has no bitmap count"))?;
    let mut cursor = Cursor::new(bytes);
    cursor.set_position(8);
    let mut bitmaps = Vec::new();
    let mut last = None;
    for _ in 0..count {
        let at = usize::try_from(cursor.position()).unwrap_or(usize::MAX);
        let key = word(bytes, at).map(u32::from_le_bytes);
        let key = key.ok_or_else(|| damaged(format!("a deletion vector of {count} bitmaps is cut short")))?;
        if last.is_some_and(|last| last >= key) {
            return Err(damaged("the bitmaps of a deletion vector do not ascend"));
        }
        last = Some(key);
        cursor.set_position(cursor.position() + 4);
        bitmaps.push((key, bitmap(&mut cursor)?));
    }
    at_end(&cursor)?;
    Ok(RoaringTreemap::from_bitmaps(bitmaps))
}

/// A record of the 32-bit form and its length for the index manifest. Positions must lie under 2^32.
pub fn encode_v1(vector: &DeletionVector) -> Result<(Vec<u8>, i32)> {
    let mut low = RoaringBitmap::new();
    for (key, bitmap) in vector.0.bitmaps() {
        if key > 0 {
            return Err(Error::invalid("a deletion vector of the 32-bit form cannot hold positions over 2^32"));
        }
        low = bitmap.clone();
    }
    low.optimize();
    let mut content = MAGIC_V1.to_vec();
    low.serialize_into(&mut content).map_err(|error| Error::internal("writing a bitmap").with_source(error))?;
    let record = frame(&content)?;
    let length = content.len();
    Ok((record, i32::try_from(length).map_err(|_| too_long())?))
}

/// A record of the 64-bit form and its length for the index manifest.
pub fn encode_v2(vector: &DeletionVector) -> Result<(Vec<u8>, i32)> {
    let mut positions = vector.0.clone();
    positions.optimize();
    let mut content = MAGIC_V2.to_vec();
    positions.serialize_into(&mut content).map_err(|error| Error::internal("writing a bitmap").with_source(error))?;
    let record = frame(&content)?;
    let length = record.len();
    Ok((record, i32::try_from(length).map_err(|_| too_long())?))
}

fn too_long() -> Error {
    Error::invalid("a deletion vector is longer than 2 GiB")
}

fn frame(content: &[u8]) -> Result<Vec<u8>> {
    let length = i32::try_from(content.len()).map_err(|_| too_long())?;
    let mut record = Vec::with_capacity(content.len() + 8);
    record.extend_from_slice(&length.to_be_bytes());
    record.extend_from_slice(content);
    record.extend_from_slice(&crc32fast::hash(content).to_be_bytes());
    Ok(record)
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::spec::hostile::{ENOUGH, cases, peak_of};

    const V1: &str = "000000185e43f2d03a30000001000000000001001000000001000300da2d59d3";
    const V2: &str = "00000024d1d339640100000000000000000000003a30000001000000000001001000000001000300683497a9";

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn vector(positions: impl IntoIterator<Item = u64>) -> DeletionVector {
        DeletionVector(positions.into_iter().collect())
    }

    #[test]
    fn both_forms_of_the_worked_example_are_read_and_written() {
        assert_eq!(decode(&hex(V1), 24).unwrap(), vector([1, 3]));
        assert_eq!(decode(&hex(V2), 44).unwrap(), vector([1, 3]));
        assert_eq!(encode_v1(&vector([1, 3])).unwrap(), (hex(V1), 24));
        assert_eq!(encode_v2(&vector([1, 3])).unwrap(), (hex(V2), 44));
    }

    #[test]
    fn runs_are_written_as_java_does() {
        let (record, _) = encode_v1(&vector(0..10)).unwrap();
        assert_eq!(record[8..record.len() - 4], hex("3b300000 01 0000 0900 0100 0000 0900"));
    }

    #[test]
    fn record_of_a_golden_table_is_read() {
        let record =
            hex("000000285e43f2d03a3000000100000000000900100000000a001a001e0022003000400044004a0051005d00ee6a4cbf");
        let vector = decode(&record, 40).unwrap();
        assert_eq!(vector.0.iter().collect::<Vec<_>>(), [10, 26, 30, 34, 48, 64, 68, 74, 81, 93]);
    }

    #[test]
    fn length_of_the_other_form_is_refused() {
        assert!(decode(&hex(V1), 32).unwrap_err().to_string().contains("length 32"));
        assert!(decode(&hex(V2), 36).is_err());
    }

    #[test]
    fn flipped_bit_fails_the_checksum() {
        let mut record = hex(V1);
        record[26] ^= 1;
        assert!(decode(&record, 24).unwrap_err().to_string().starts_with("checksum"));
    }

    #[test]
    fn live_mask_is_the_complement_and_refuses_positions_behind_the_end() {
        let live = vector([0, 2]).to_live_mask(4).unwrap();
        assert_eq!(live.iter().collect::<Vec<_>>(), [false, true, false, true]);
        assert_eq!(vector([]).to_live_mask(9).unwrap().count_set_bits(), 9);
        for (positions, rows) in [(vec![0, 2, 4], 4), (vec![0], 0), (vec![u64::MAX], 4)] {
            let error = vector(positions).to_live_mask(rows).unwrap_err();
            assert_eq!(error.code(), "CorruptDeletionVector");
            assert!(error.to_string().contains(&format!("of a data file of {rows} rows")), "{error}");
        }
    }

    #[test]
    fn file_of_another_version_is_refused() {
        assert!(check_file(&[1, 0, 0]).is_ok());
        assert_eq!(check_file(&[2]).unwrap_err().code(), "NewerFormat");
        assert_eq!(check_file(&[]).unwrap_err().code(), "CorruptDeletionVector");
        assert_eq!(check_file(&[0; 9]).unwrap_err().code(), "CorruptDeletionVector");
    }

    #[test]
    fn range_of_a_vector_covers_both_forms() {
        assert_eq!(record_range(1, 24).unwrap(), 1..33);
        assert!(record_range(-1, 24).is_err());
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn vectors_come_back(low in btree_set(0u64..200_000, 0..300), high in btree_set(any::<u64>(), 0..20)) {
            let short = vector(low.clone());
            let (record, length) = encode_v1(&short).unwrap();
            prop_assert_eq!(decode(&record, length).unwrap(), short);
            let long = vector(low.into_iter().chain(high));
            let (mut record, length) = encode_v2(&long).unwrap();
            record.extend_from_slice(b"the next record");
            prop_assert_eq!(decode(&record, length).unwrap(), long);
        }

        #[test]
        fn hostile_bytes_are_refused_calmly(bytes in vec(any::<u8>(), 0..80), cut in 0usize..44, flip in any::<(usize, u8)>()) {
            let _ = decode(&bytes, 24);
            let mut record = hex(V2);
            let at = flip.0 % record.len();
            record[at] ^= flip.1;
            prop_assert!(decode(&record, 44).is_err() || flip.1 == 0);
            prop_assert!(decode(&record[..cut], 44).is_err());
            // behind the checksum, too
            let ((), peak) = peak_of(|| {
                let _ = decode_32(&bytes);
                let _ = decode_64(&bytes);
                for at in 0..record.len() - 12 {
                    let mut content = record[8..record.len() - 4].to_vec();
                    content[at] ^= flip.1;
                    let _ = decode_64(&content);
                    let _ = decode_32(content.get(12..).unwrap());
                }
            });
            prop_assert!(peak < ENOUGH, "{peak} bytes of memory");
        }
    }
}
