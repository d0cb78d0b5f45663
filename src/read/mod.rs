//! Sections to batches: files opened, deleted rows masked, versions of a key selected or combined.

pub mod flight;
pub mod prefetch;
