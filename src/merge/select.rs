//! Merge as selection: which physical rows of each file are live, for deduplicate and first-row.

use arrow::array::{ArrayRef, Int8Array, Int64Array};
use arrow::buffer::BooleanBuffer;

use super::rules::MergeRules;
use crate::error::{Error, Result};

/// `_SEQUENCE_NUMBER` of the rows of a file.
#[derive(Debug, Clone)]
pub enum FileSequence {
    /// The same for all rows: under snapshot ordering, or as a rank when the sequence ranges of key-overlapping files
    /// are disjoint (a file's smallest sequence number serves).
    Constant(i64),
    /// As stored.
    Rows(Int64Array),
}

impl From<Int64Array> for FileSequence {
    fn from(rows: Int64Array) -> Self {
        Self::Rows(rows)
    }
}

/// What decides about the rows of one file. All columns have one length: the physical rows of the file.
#[derive(Debug, Clone)]
pub struct KeyFile {
    /// Level of the file.
    pub level: i32,
    /// How errors name the file.
    pub name: String,
    /// The key columns ([`MergeRules::key_columns`]), of the table's types.
    pub keys: Vec<ArrayRef>,
    /// The `sequence.field` columns ([`MergeRules::user_sequence_columns`]).
    pub user_sequence: Vec<ArrayRef>,
    /// Sequence numbers.
    pub sequence: FileSequence,
    /// Row kinds; None: all rows are `+I`.
    pub kinds: Option<Int8Array>,
    /// Rows deleted by the file's vector; None: none.
    pub deleted: Option<BooleanBuffer>,
}

/// Rows of a section by what became of them: `rows = vector_deleted + superseded + tombstones + live`,
/// `keys = tombstones + live`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SelectionStats {
    /// Physical rows.
    pub rows: u64,
    /// Rows deleted by vectors.
    pub vector_deleted: u64,
    /// Distinct keys among the other rows.
    pub keys: u64,
    /// Rows beyond one per key.
    pub superseded: u64,
    /// Keys whose result is a retract or nothing.
    pub tombstones: u64,
    /// Live rows.
    pub live: u64,
}

/// The live rows of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionSelection {
    /// Per run and file, as given: one bit a row.
    pub files: Vec<Vec<BooleanBuffer>>,
    /// Counts.
    pub stats: SelectionStats,
}

/// Selects the live rows of a section (runs → files, as [`sections`](super::sections) cuts them). Rows of equal rank
/// are decided by place: the later run, then the later file wins (first-row: the earlier).
///
/// Refuses engines other than deduplicate and first-row; a file that is not in strict key order is Corrupt.
pub fn select(runs: Vec<Vec<KeyFile>>, rules: &MergeRules) -> Result<SectionSelection> {
    let _ = (runs, rules);
    Err(Error::internal("not built yet"))
}
