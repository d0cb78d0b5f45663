//! Why a file is read as it is, or not at all.

use std::fmt;
use std::sync::Arc;

use crate::notice::HiddenRows;

/// The rule that decided about a file. It reads as an English sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// Its partition does not meet this condition.
    Partition(Arc<str>),
    /// Another branch gives its partition.
    OtherBranch,
    /// The state compared with has the same rows of it.
    SameRows,
    /// Readers do not see it before it is compacted.
    Hidden(HiddenRows),
    /// It is below the top level, which alone is read.
    BelowTop(i32),
    /// Only this bucket was asked for.
    BucketOption(i32),
    /// No key of its partition meets the filter.
    NoKey,
    /// The filter's keys are in other buckets.
    OtherBuckets {
        /// Those buckets.
        buckets: Arc<[i32]>,
        /// Of how many.
        total: i32,
    },
    /// It holds only columns that are not asked for.
    OtherColumns,
    /// Its keys do not meet this condition.
    Keys(Arc<str>),
    /// Its values do not meet this condition.
    Values(Arc<str>),
    /// Nor do those of all files that share keys with it.
    ValuesTogether(Arc<str>),
    /// Its file index knows no row that meets the filter.
    FileIndex,
    /// Its deletion vector names every row.
    AllDeleted,
    /// The limit is reached without it.
    Limit,
    /// The query needs no row of its table.
    NoRowNeeded,
    /// Nothing asked for it.
    NotNeeded,
    /// Not opened, though its rows count: metadata tells all that the query asks of them.
    Told,
    /// What it asks of the rows was found by an earlier statement.
    Remembered,
    /// Read: changes are, as written.
    Changes,
    /// Read: append tables are, as written.
    Append,
    /// Read as it is: it alone has its keys, and no row of it deletes.
    Alone,
    /// Read with row kinds: it alone has its keys, and rows of it may delete.
    AloneWithKinds,
    /// Read as it is: compacted levels of a first-row table hold no key twice.
    FirstRows,
    /// Read as it is: deletion vectors hide older versions of its keys.
    VectorsHide,
    /// Merged with others, whose keys it shares.
    SharedKeys {
        /// Files.
        files: usize,
        /// Their sorted runs.
        runs: usize,
    },
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partition(condition) => write!(f, "partition does not meet {condition}"),
            Self::OtherBranch => f.write_str("the other branch has this partition"),
            Self::SameRows => f.write_str("the state compared with has the same rows of it"),
            Self::Hidden(which) => f.write_str(which.rule()),
            Self::BelowTop(level) => write!(f, "below the top level {level} ($ro)"),
            Self::BucketOption(bucket) => write!(f, "option scan.bucket = {bucket}"),
            Self::NoKey => f.write_str("no key of this partition meets the filter"),
            Self::OtherBuckets { buckets, total } => {
                let buckets: Vec<String> = buckets.iter().map(i32::to_string).collect();
                write!(f, "the filter's keys are in bucket {} of {total}", buckets.join(", "))
            }
            Self::OtherColumns => f.write_str("it holds only columns that are not asked for"),
            Self::Keys(condition) => write!(f, "key statistics exclude {condition}"),
            Self::Values(condition) => write!(f, "value statistics exclude {condition}"),
            Self::ValuesTogether(condition) => {
                write!(f, "value statistics of all files that share keys exclude {condition}")
            }
            Self::FileIndex => f.write_str("its file index holds no row that meets the filter"),
            Self::AllDeleted => f.write_str("its deletion vector names every row"),
            Self::Limit => f.write_str("the limit is reached without it"),
            Self::NoRowNeeded => f.write_str(
                "the query needs no row of this table: its conditions exclude each other, or it asks for no row",
            ),
            Self::NotNeeded => f.write_str("not needed"),
            Self::Remembered => {
                f.write_str("an earlier statement found its live rows, which is all that the query asks of it")
            }
            Self::Told => f.write_str("metadata tells all that the query asks of its rows"),
            Self::Changes => f.write_str("changes are read as written"),
            Self::Append => f.write_str("append tables are read as written"),
            Self::Alone => f.write_str("no other file has its keys, no row deletes"),
            Self::AloneWithKinds => f.write_str("no other file has its keys; rows may delete, so kinds are read"),
            Self::FirstRows => f.write_str("compacted levels of a first-row table hold no key twice"),
            Self::VectorsHide => f.write_str("deletion vectors hide the older versions of its keys"),
            Self::SharedKeys { files, runs } => write!(f, "{files} files in {runs} runs share keys"),
        }
    }
}
