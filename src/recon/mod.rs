//! What a table's metadata and files prove: row accounting, and how long a snapshot will be there.

pub mod accounting;
pub mod retention;
pub mod source;
