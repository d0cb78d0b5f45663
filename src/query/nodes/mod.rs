//! The plan nodes of a table, one a file.

pub mod read_exec;
pub mod summary;

pub use read_exec::ReadExec;
pub use summary::ScanSummary;
