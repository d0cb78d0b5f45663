//! The format as values: data types, schemas, snapshots, manifests, rows, statistics, indexes. Bytes in, values out:
//! no I/O, no async, no decisions.

pub mod arrow_types;
pub mod binary_row;
pub mod bucket;
pub mod data_type;
pub mod datum;
pub mod deletion_vector;
pub mod file_index;
pub mod index_manifest;
pub mod json;
pub mod manifest;
mod meta_file;
pub mod options;
pub mod partition_path;
pub mod row_kind;
pub mod schema;
pub mod snapshot;
pub mod statistics;
pub mod tag;
pub mod text;
mod type_json;
mod type_text;
#[cfg(test)]
mod vectors;
pub mod zone;

pub use binary_row::BinaryRow;
pub use data_type::{DataField, DataType, FieldType};
pub use datum::Datum;
pub use index_manifest::{DeletionVectorRange, IndexFileMeta};
pub use manifest::{DataFileMeta, FileKind, FileSource, ManifestEntry, ManifestFileMeta, SimpleStats};
pub use options::CoreOptions;
pub use row_kind::RowKind;
pub use schema::{Bucket, BucketMode, SchemaId, TableSchema};
pub use snapshot::{CommitKind, Snapshot, SnapshotId};
pub use zone::Zone;
