//! Folding the versions of a key: runs, sections, selection, merge engines. Knows arrays and streams, never files.
//!
//! | file | what it gives |
//! |---|---|
//! | [`section`] | files of a bucket, cut into sections and runs by their key ranges |
//! | [`rules`] | how a table folds the rows of one key: engine, order, groups, aggregate functions |
//! | [`tree`] | runs in, merged rows out, for every engine |
//! | [`range`], [`sample`] | stretches of keys, so that one section is merged on several cores |
//! | [`mod@select`] | which physical rows are live, for deduplicate and first-row |
//!
//! Batches that go through a merge have the required columns of [`MergeRules::required_columns`] in that order, then
//! `_SEQUENCE_NUMBER` (Int64) and `_VALUE_KIND` (Int8).
//!
//! ```text
//! run 0   1 a #1 +I   2 b #2 +I               5 e #3 +I
//! run 1               2 B #7 -D   4 d #8 +I
//! merged  1 a #1 +I               4 d #8 +I   5 e #3 +I      (deduplicate, deletes dropped)
//! ```

#[cfg(test)]
mod against_golden;
#[cfg(test)]
mod against_naive;
mod aggregation;
mod assemble;
mod cell;
mod compare;
mod engines;
mod keys;
mod loser_tree;
mod order;
pub mod range;
pub mod rules;
mod run;
pub mod sample;
pub mod section;
pub mod select;
#[cfg(test)]
mod testkit;
pub mod tree;

pub use compare::canonical_keys;
pub use range::{Key, KeyRange, within};
pub use rules::MergeRules;
pub use sample::{KeySample, KeySampler, key_ranges};
pub use section::{ranked_by_file, runs_of_one_level, sections};
pub use select::{FileSequence, KeyFile, SectionSelection, cut, join, select, select_streamed};
pub use tree::{MergeOptions, RunInput, merge_runs};
