//! Directory of a partition and bucket.
