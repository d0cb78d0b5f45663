//! A table through time: snapshots, schemas, tags, branches, consumers, and the pin every read starts from.
//!
//! - `table`: a table's documents: hints, snapshots, schemas, tags, branches, consumers, changelogs
//! - `travel`: from a request (id, tag, time, watermark, commit) to a snapshot
//! - `pin`: a table fixed at one snapshot and its schema
//! - `zone`: the session's time zone
//! - `nearest`: "did you mean"

pub mod nearest;
mod pin;
mod table;
pub mod travel;
pub mod zone;

pub use pin::{Fingerprint, Pin, SnapshotFingerprint};
pub use table::{Table, TableIdent};
pub use travel::{PinRequest, parse_timestamp};
pub use zone::SessionZone;
