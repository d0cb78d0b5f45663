//! The row encoding of keys, partitions and statistics bounds.

use bytes::Bytes;

/// A serialized row: big-endian field count, then header, null bits, slots and variable part. Fields are decoded on
/// demand; see `decode`, `get`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BinaryRow(pub Bytes);
