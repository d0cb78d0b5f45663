//! Directory of a partition and bucket.

use super::data_type::DataType;
use super::datum::Datum;
use super::options::CoreOptions;
use super::schema::Bucket;
use crate::error::{Error, Result};

/// Escapes a partition name or value for a path: control characters and `" # % ' * / : = ? \ { } [ ] ^` become `%XX`.
pub fn escape(text: &str) -> String {
    text.to_string()
}

/// `name=value/name=value` of a partition, escaped, without a slash at the end; empty for a table without partitions.
/// Null, empty and blank values share the default directory, so values are never taken back from paths.
pub fn partition_dir(names: &[&str], values: &[Datum], types: &[&DataType], options: &CoreOptions) -> Result<String> {
    let _ = (names, values, types, options);
    Err(Error::internal("not built yet"))
}

/// `bucket-N`, or `bucket-postpone`.
pub fn bucket_dir(bucket: Bucket) -> String {
    if bucket.0 == -2 { "bucket-postpone".to_string() } else { format!("bucket-{bucket}") }
}
