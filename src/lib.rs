//! Lakepin reads Apache Paimon tables at a pinned snapshot and proves what it read.
//!
//! It is a library (tables for DataFusion), an SQL shell and a runner of sqllogictest suites. It is not a streaming
//! engine and, so far, not a writer.
//!
//! # A query's walk
//! `sql` turns `VERSION AS OF 3`, a session pin or the current moment into a request; `snapshot` answers with one
//! [`snapshot::Pin`]: a snapshot and its schema, fixed for all uses of the table in the statement. `scan` prunes
//! manifests, files and buckets, and cuts what is left into sections. `query` lays sections out as DataFusion plan
//! nodes: raw and selected Parquet files go to DataFusion's own Parquet source, the rest to `read`, which opens files
//! through `file` and folds versions of a key with `merge`.
//!
//! # The rooms, from the ground up
//! | floor | room | owns |
//! |---|---|---|
//! | 0 | [`error`] | the one error type |
//! | 0 | `memory` | whom one asks before holding memory |
//! | 1 | [`spec`] | the format as values: bytes in, values out |
//! | 1 | `export` | rows as text that programs read |
//! | 2 | [`storage`] | object stores: reading, listing, retries, counters, caches; clock and ids |
//! | 2 | `merge` | runs, sections, merge engines: streams, never files |
//! | 3 | `file` | one data file: Parquet, ORC, Avro; schema evolution |
//! | 3 | [`snapshot`] | a table through time: snapshots, tags, branches, pins |
//! | 4 | [`catalog`] | names to tables |
//! | 4 | `scan` | a pin to splits |
//! | 5 | `read` | a split to batches |
//! | 7 | [`query`] | how DataFusion sees a table |
//! | 8 | `recon` | accounting: which rows of a snapshot are final |
//! | 9 | [`sql`] | what can be said |
//! | 10 | `shell` | the program |
//!
//! Rooms that are no links are private: what an embedder needs of them is given out by a room above.
//!
//! # Invariants
//! - A room imports only rooms below it (`layers.rs` checks).
//! - `spec` and `merge` never touch storage; nothing below `query` knows a DataFusion session or plan.
//! - No SQL text is scanned by hand: statements are parsed.
//! - Clock and random ids come only from `storage::env`.
//! - Nothing prints but `shell`.
//! - Fewer rows are never returned without saying so.

pub mod catalog;
pub mod error;
mod export;
mod file;
mod memory;
mod merge;
pub mod notice;
pub mod query;
mod read;
mod recon;
mod scan;
#[cfg(feature = "cli")]
pub mod shell;
pub mod snapshot;
pub mod spec;
pub mod sql;
pub mod storage;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(test)]
mod layers;

pub use error::{Error, ErrorKind, Result};
pub use notice::{Notice, NoticeKind};
pub use query::{LakeTable, OpenTable, QueryLimits};
pub use snapshot::{Pin, PinRequest, Table};
pub use sql::{Session, SessionConfig, Warehouse};

pub use arrow;
pub use datafusion;
pub use object_store;
