//! The plan nodes of a table, one a file.

pub mod merge_source;
mod parquet_reader;
pub mod read_exec;
pub mod summary;

pub use merge_source::MergeSource;
pub use parquet_reader::LakeReaderFactory;
pub use read_exec::ReadExec;
pub use summary::ScanSummary;
