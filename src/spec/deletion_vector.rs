//! Deletion vectors: positions of deleted rows in a data file.
