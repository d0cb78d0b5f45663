//! One data file: Parquet, ORC or Avro in, batches of a table's columns out.
//!
//! A column is found by **field id** in the schema the file was written with, then by that schema's name inside the
//! file, also inside nested rows. What the file's schema does not know, or the file does not hold, is null. Values are
//! brought from the file's type to the table's type with the casts of `ALTER TABLE`.
//!
//! The room refuses formats by name and shredded variants; it knows nothing of snapshots, buckets and merging.
//!
//! | file | one idea |
//! |---|---|
//! | `format` | format of a file by its name |
//! | `task` | what to read of a file, and what files share |
//! | `open` | from a task to batches |
//! | `access` | bytes of one file, and why they cannot be had |
//! | `guard` | panics of decoders as errors |
//! | `decode` | what a format's reader is asked for and gives |
//! | `parquet`, `orc`, `avro` | the formats |
//! | `footer` | the footer of a Parquet file, looked at before it is decoded |
//! | `physical` | stored values to exactly the type of the file's schema |
//! | `evolve` | casts between the type a file was written with and the type of the table |

mod access;
mod avro;
mod decode;
pub mod evolve;
mod footer;
mod format;
#[cfg(all(test, feature = "testing", feature = "orc"))]
mod golden;
mod guard;
mod open;
#[cfg(feature = "orc")]
mod orc;
mod parquet;
mod physical;
mod span;
mod task;

pub(crate) use access::{Access, DATA_FILE_MISSING};
pub use format::FileFormat;
pub(crate) use guard::guarded_stream;
pub(crate) use open::holds_nulls;
pub use open::open;
pub use parquet::check_row_groups;
pub(crate) use parquet::footer;
pub(crate) use physical::{to_declared, within_precision};
pub use span::SortedRange;
pub(crate) use span::span_of_sorted;
#[cfg(test)]
pub(crate) use task::output_schema;
pub use task::{FileEnv, FileOptions, FileTask, OutputColumn, SEQUENCE_NUMBER};
