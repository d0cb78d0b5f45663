//! The plan nodes of a table, one a file.

mod barrier_exec;
pub mod deferred_exec;
pub mod merge_source;
pub mod metadata_exec;
mod parquet_reader;
pub mod read_exec;
mod read_metrics;
pub mod summary;

pub use barrier_exec::BarrierExec;
pub use deferred_exec::{Computation, Computed, Deferred, DeferredExec, Recipe};
pub use merge_source::MergeSource;
pub use metadata_exec::MetadataExec;
pub use parquet_reader::LakeReaderFactory;
pub use read_exec::ReadExec;
pub use summary::ScanSummary;
