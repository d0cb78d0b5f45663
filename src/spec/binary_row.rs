//! The row encoding of keys, partitions and statistics bounds.

use bytes::Bytes;

use super::data_type::DataType;
use super::datum::Datum;
use crate::error::{Error, Result};

/// A serialized row: big-endian field count, then header, null bits, slots and variable part. Fields are decoded on
/// demand; see `decode`, `get`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BinaryRow(pub Bytes);

/// How a null of a type with a reserved variable part (DECIMAL over 18 digits, TIMESTAMP over 3) is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowForm {
    /// Partitions, bucket keys and trimmed primary keys: the variable part stays reserved.
    Projected,
    /// Statistics bounds: nothing is reserved.
    Serialized,
}

impl BinaryRow {
    /// The row of no fields: twelve zero bytes.
    pub fn empty() -> Self {
        Self(Bytes::from_static(&[0; 12]))
    }

    /// Number of fields.
    pub fn arity(&self) -> Result<usize> {
        Err(Error::internal("not built yet"))
    }

    /// Whether the row has no fields (no partition, no key, no statistics).
    pub fn is_empty(&self) -> bool {
        self.arity().is_ok_and(|arity| arity == 0)
    }

    /// The row without the field count: what bucket hashes are taken of.
    pub fn row_bytes(&self) -> &[u8] {
        self.0.get(4..).unwrap_or_default()
    }

    /// Field `index`, which has type `data_type`. Nested types are not decoded: they are an error.
    pub fn get(&self, index: usize, data_type: &DataType) -> Result<Datum> {
        let _ = (index, data_type);
        Err(Error::internal("not built yet"))
    }

    /// All fields; the arity must be the number of types.
    pub fn decode(&self, types: &[&DataType]) -> Result<Vec<Datum>> {
        types.iter().enumerate().map(|(index, data_type)| self.get(index, data_type)).collect()
    }

    /// The row of `values`. An error is a value that is not of its type.
    pub fn encode(values: &[(&Datum, &DataType)], form: RowForm) -> Result<Self> {
        let _ = (values, form);
        Err(Error::internal("not built yet"))
    }
}
