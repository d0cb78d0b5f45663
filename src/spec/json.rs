//! JSON helpers for metadata documents.
