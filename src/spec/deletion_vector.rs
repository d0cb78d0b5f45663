//! Deletion vectors: positions of deleted rows in a data file.

use std::ops::Range;

use arrow::buffer::BooleanBuffer;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};

/// First byte of an index file that holds deletion vectors.
pub const FILE_VERSION: u8 = 1;

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

    /// One bit per row of a file of `rows` rows, set where the row lives. Positions behind the end are ignored.
    pub fn to_live_mask(&self, rows: usize) -> BooleanBuffer {
        BooleanBuffer::new_set(rows)
    }
}

/// Bytes of the index file to read for a vector at `offset` of `length` as the index manifest has them. May reach eight
/// bytes over what belongs to the vector, and so over the end of the file; [`decode`] takes either.
pub fn record_range(offset: i32, length: i32) -> Result<Range<u64>> {
    let _ = (offset, length);
    Err(Error::internal("not built yet"))
}

/// Decodes the record that begins at its length word. `manifest_length` is the length in the index manifest and must
/// agree with the record; the checksum is verified.
pub fn decode(record: &[u8], manifest_length: i32) -> Result<DeletionVector> {
    let _ = (record, manifest_length);
    Err(Error::internal("not built yet"))
}

/// A record of the 32-bit form and its length for the index manifest. Positions must lie under 2^32.
pub fn encode_v1(vector: &DeletionVector) -> Result<(Vec<u8>, i32)> {
    let _ = vector;
    Err(Error::internal("not built yet"))
}

/// A record of the 64-bit form and its length for the index manifest.
pub fn encode_v2(vector: &DeletionVector) -> Result<(Vec<u8>, i32)> {
    let _ = vector;
    Err(Error::internal("not built yet"))
}
