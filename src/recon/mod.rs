//! What a table's metadata and files prove: how its rows add up, what each commit did, which layer is responsible for a
//! difference.

pub mod accounting;
pub mod anomalies;
pub mod commits;
pub mod compare;
pub mod conflicts;
pub mod creation;
pub mod entry_texts;
pub mod gate;
pub mod history;
pub mod journal;
pub mod keys;
pub mod lookup;
pub mod readable;
pub mod retention;
pub mod source;
pub mod unreferenced;
pub mod verdict;
