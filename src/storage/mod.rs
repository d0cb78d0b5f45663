//! Object stores: reading, listing, retries, request counters, caches; and the only clock and source of ids.
//!
//! - `location`: where a file is: a store's root and a literal path under it
//! - `store`: one store: reads, listings, external paths
//! - `open`: from a path or URL and its options to a store
//! - `within`: whether a target of somebody's writing lies in a folder
//! - `counting`: the wrapper all requests go through: counts, bytes, retries, time limits
//! - `failure`: an object store's error in our words
//! - `local`: what the local file system needs besides
//! - `s3`: options of S3-compatible stores
//! - `clients`: an HTTP client for each runtime
//! - `cache`: values by key, limited by bytes, loaded once
//! - `env`: clock and ids

pub mod cache;
#[cfg(feature = "s3")]
mod clients;
mod counting;
pub mod env;
mod failure;
mod local;
mod location;
mod open;
#[cfg(feature = "s3")]
mod s3;
mod store;
mod within;

pub use counting::{RequestCounts, RequestMeter};
pub(crate) use failure::storage_error;
pub use location::Location;
pub use open::check_options;
pub use store::{FileEntry, MAX_WHOLE_FILE, Storage};
pub(crate) use within::may_lie_in;
