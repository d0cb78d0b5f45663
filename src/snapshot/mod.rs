//! A table through time: snapshots, schemas, tags, branches, consumers, and the pin every read starts from.
