//! File indexes: whether a file can hold a value.

use bytes::Bytes;
use roaring::RoaringBitmap;

use super::data_type::DataType;
use super::datum::Datum;
use crate::error::{Error, Result};

/// A comparison an index may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexOp {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `IN`
    In,
    /// `NOT IN`
    NotIn,
    /// `IS NULL`
    IsNull,
    /// `IS NOT NULL`
    IsNotNull,
}

/// A filter in the names and types of the file's own schema.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexPredicate {
    /// All hold.
    And(Vec<IndexPredicate>),
    /// One holds.
    Or(Vec<IndexPredicate>),
    /// A column against literals of exactly the column's type.
    Leaf {
        /// Column, or `column[key]` for one key of a map.
        column: String,
        /// Comparison.
        op: IndexOp,
        /// One literal, none for IS \[NOT\] NULL, any number for IN.
        literals: Vec<Datum>,
        /// Type of the column in the file's schema.
        data_type: DataType,
    },
    /// A filter that no index answers.
    Unknown,
}

/// What an index says of a file. Always a superset of the rows that match: filter again.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexVerdict {
    /// No row matches.
    Skip,
    /// Nothing known.
    Remain,
    /// Only these positions can match.
    Rows(RoaringBitmap),
}

/// The index container of one data file: embedded in its manifest entry, or its `.index` file.
#[derive(Debug, Clone)]
pub struct FileIndex {}

impl FileIndex {
    /// Reads the container's head; the indexes themselves are decoded when asked.
    pub fn parse(bytes: Bytes) -> Result<Self> {
        let _ = bytes;
        Err(Error::internal("not built yet"))
    }

    /// What the indexes say of `predicate` in a file of `rows` rows.
    pub fn evaluate(&self, predicate: &IndexPredicate, rows: u64) -> Result<IndexVerdict> {
        let _ = (predicate, rows);
        Err(Error::internal("not built yet"))
    }
}
