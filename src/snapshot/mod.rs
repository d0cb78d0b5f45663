//! A table through time: snapshots, schemas, tags, branches, consumers, and the pin every read starts from.
//!
//! - `table`: a table's documents: hints, snapshots, schemas, tags, branches, consumers, changelogs
//! - `documents`: how such small files are read and listed
//! - `travel`: from a request (id, tag, time, watermark, commit) to a snapshot
//! - `options`: from `scan.*` options to a request
//! - `pin`: a table fixed at one snapshot and its schema
//! - `fingerprint`: what tells a snapshot from another one of the same number
//! - `columns`: why a column is not there
//! - `nullability`: which columns may hold NULL, whatever the newest schema says
//! - `renamed`: options that name columns, told in the names of an older schema
//! - `timestamp`: points in time as users write them
//! - `zone`: the session's time zone
//! - `nearest`: "did you mean"

mod columns;
mod documents;
mod fingerprint;
pub mod nearest;
mod nullability;
mod options;
mod pin;
mod renamed;
mod table;
#[cfg(test)]
mod testbed;
pub mod timestamp;
pub mod travel;
pub mod zone;

pub use documents::Readable;
pub use fingerprint::{Fingerprint, SnapshotFingerprint};
pub use pin::Pin;
pub use table::{MAIN_BRANCH, Table, TableIdent};
pub(crate) use timestamp::names_zone;
pub use timestamp::{parse_timestamp, refuse_number};
pub use travel::PinRequest;
pub use zone::SessionZone;
