//! Folding the versions of a key: runs, sections, selection, merge engines. Knows arrays and streams, never files.
pub mod engines;
