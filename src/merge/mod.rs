//! Folding the versions of a key: runs, sections, selection, merge engines. Knows arrays and streams, never files.
//!
//! | file | what it gives |
//! |---|---|
//! | [`section`] | files of a bucket, cut into sections and runs by their key ranges |
//! | [`rules`] | how a table folds the rows of one key: engine, order, groups, aggregate functions |
//! | [`tree`] | runs in, merged rows out, for every engine |
//! | [`select`] | which physical rows are live, for deduplicate and first-row |
//! | [`budget`] | what a merge asks before it holds memory |
//!
//! Batches that go through a merge have the required columns of [`MergeRules::required_columns`] in that order, then
//! `_SEQUENCE_NUMBER` (Int64) and `_VALUE_KIND` (Int8).

pub mod budget;
pub mod rules;
pub mod section;
pub mod select;
pub mod tree;

pub use budget::{MemoryBudget, Unbounded};
pub use rules::MergeRules;
pub use section::{runs_of_one_level, sections};
pub use select::{FileSequence, KeyFile, SectionSelection, SelectionStats, select};
pub use tree::{MergeCounters, MergeOptions, RunInput, merge_runs};
