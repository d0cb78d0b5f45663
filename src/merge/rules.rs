//! How a table folds the rows of one key.

use crate::error::{Error, Result};
use crate::spec::options::MergeEngine;
use crate::spec::{CoreOptions, TableSchema};

/// Engine, key, order, groups and aggregate functions of a table, checked once. Column numbers are those of the table
/// schema.
#[derive(Debug)]
pub struct MergeRules {
    engine: MergeEngine,
    key: Vec<usize>,
    user_sequence: Vec<usize>,
    sequence_descending: bool,
    snapshot_ordering: bool,
    lookup: bool,
}

impl MergeRules {
    /// Rules of a primary-key table. An option that names an unknown column is an error that names both; an unknown
    /// aggregate function is one only when its column is projected ([`Self::required_columns`]).
    pub fn try_new(schema: &TableSchema, options: &CoreOptions) -> Result<Self> {
        let _ = (schema, options);
        Err(Error::internal("not built yet"))
    }

    /// The columns a merge needs to give `projection` (table column numbers): projected, key, `sequence.field` and the
    /// sequence columns of groups; ascending, without repeats. Refuses a projected column whose aggregate function is
    /// unknown or unsupported.
    pub fn required_columns(&self, projection: &[usize]) -> Result<Vec<usize>> {
        let _ = projection;
        Err(Error::internal("not built yet"))
    }

    /// The merge engine.
    pub fn engine(&self) -> MergeEngine {
        self.engine
    }

    /// Key columns (trimmed primary key), in key order.
    pub fn key_columns(&self) -> &[usize] {
        &self.key
    }

    /// Columns of `sequence.field`, in its order; empty when there is none.
    pub fn user_sequence_columns(&self) -> &[usize] {
        &self.user_sequence
    }

    /// Whether the smallest user sequence wins.
    pub fn sequence_descending(&self) -> bool {
        self.sequence_descending
    }

    /// Whether rows are ordered by commit: the reader must replace the sequence numbers of every file of source
    /// APPEND by the file's smallest sequence number before it merges or selects (a file of unknown source is an
    /// error).
    pub fn snapshot_ordering(&self) -> bool {
        self.snapshot_ordering
    }

    /// Whether levels above 0 hold complete rows, so that only the lowest of them counts.
    pub fn needs_lookup(&self) -> bool {
        self.lookup
    }

    /// Whether [`select`](super::select()) serves this engine.
    pub fn is_selection(&self) -> bool {
        matches!(self.engine, MergeEngine::Deduplicate | MergeEngine::FirstRow)
    }
}
