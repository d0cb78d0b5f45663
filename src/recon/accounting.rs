//! Row accounting: every physical row of a snapshot is hidden, deleted by a vector, superseded, a tombstone or final.

use crate::error::{Error, Result};

/// Counts of one partition or unit, or of the whole table. For primary-key tables
/// `raw = hidden + vector_deleted + superseded + tombstoned + final`; for append tables `raw = vector_deleted + final`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountingRow {
    /// Partition as `dt=2026-04-16/h=1`; empty for tables without partitions and for the total.
    pub partition: String,
    /// Bucket, None for sums over buckets.
    pub bucket: Option<i32>,
    /// Live files.
    pub files: u64,
    /// Sorted runs, summed over units.
    pub runs: u64,
    /// R: rows of all live files.
    pub raw_rows: u64,
    /// D: rows that take something back, None when a file does not say.
    pub retract_rows: Option<u64>,
    /// H: rows of files that readers skip by design.
    pub hidden_rows: u64,
    /// V: rows deleted by vectors.
    pub vector_deleted: u64,
    /// X: versions beyond one per key.
    pub superseded: u64,
    /// T: keys whose result is a retract or nothing.
    pub tombstoned: u64,
    /// N: rows a reader gets.
    pub final_rows: u64,
}

/// The accounting of one pin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accounting {
    /// Whether the table has a primary key.
    pub primary_key: bool,
    /// One row per partition, sorted.
    pub partitions: Vec<AccountingRow>,
    /// One row per partition and bucket, sorted.
    pub units: Vec<AccountingRow>,
    /// The whole table.
    pub total: AccountingRow,
    /// `totalRecordCount` of the snapshot.
    pub snapshot_total: Option<i64>,
    /// Rows of final rows that match the condition, when one was given; the identity speaks of all rows.
    pub matching: Option<u64>,
    /// Where the identity fails, in words; empty when it holds.
    pub violations: Vec<String>,
}

impl AccountingRow {
    /// Whether raw rows equal the sum of the parts.
    pub fn identity_holds(&self) -> bool {
        self.raw_rows == self.hidden_rows + self.vector_deleted + self.superseded + self.tombstoned + self.final_rows
    }
}

/// Counts a pin.
pub async fn account() -> Result<Accounting> {
    Err(Error::internal("not built yet"))
}
