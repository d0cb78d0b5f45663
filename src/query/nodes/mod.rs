//! The plan nodes of a table, one a file.

mod compact;
pub mod deferred_exec;
pub mod merge_source;
pub mod metadata_exec;
mod no_constants_exec;
pub(in crate::query) mod one_input;
mod parquet_reader;
pub mod read_exec;
mod read_metrics;
pub mod summary;

pub use deferred_exec::{Computation, Computed, Deferred, DeferredExec, Recipe};
pub use merge_source::MergeSource;
pub use metadata_exec::MetadataExec;
pub use no_constants_exec::NoConstantsExec;
pub use parquet_reader::LakeReaderFactory;
pub use read_exec::ReadExec;
pub use summary::ScanSummary;
