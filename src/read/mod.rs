//! A split to batches.
