//! Tags, consumers: documents beside snapshots.
