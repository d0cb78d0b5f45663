//! Accounting: raw, hidden, deleted, superseded and final rows of a pin, side by side.

pub mod accounting;
