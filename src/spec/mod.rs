//! The format as values: data types, schemas, snapshots, manifests, rows, statistics, indexes. Bytes in, values out:
//! no I/O, no async, no decisions.
//!
//! Whatever comes in may be damaged: every length is checked, nesting is bounded, and an error says what is wrong and
//! where in the document; the caller, who knows the path, adds the file. A document of a newer format version is
//! refused (`NewerFormat`), never guessed.
//!
//! | file | what it holds |
//! |---|---|
//! | `data_type`, `type_text`, `type_json` | logical types and fields, their strings and JSON |
//! | `schema` | `schema/schema-N`, keys and bucket mode |
//! | `options` | table options as values; which tables and columns are refused, what is not honoured |
//! | `snapshot`, `tag`, `statistics`, `json` | snapshots, tags, consumers, statistics: JSON documents |
//! | `manifest`, `index_manifest`, `meta_file` | lists of files, in Avro, ORC or Parquet |
//! | `avro` | Avro's container, codecs and schemas, for metadata and data |
//! | `binary_row`, `bucket`, `partition_path` | rows of keys and bounds, their bucket and directory |
//! | `deletion_vector`, `file_index` | what says that rows are gone, or cannot match |
//! | `datum`, `row_kind`, `arrow_types` | one value, its order, and its Arrow form |
//! | `text`, `zone` | values as text, clocks and instants |
//! | `parquet_footer`, `orc_footer` | whether a decoder would survive the footer of a file |

pub mod arrow_types;
pub(crate) mod avro;
pub mod binary_row;
pub mod bucket;
pub mod data_type;
pub mod datum;
pub mod deletion_vector;
pub mod file_index;
#[cfg(all(test, feature = "testing"))]
mod golden;
#[cfg(test)]
pub(crate) mod hostile;
pub mod index_manifest;
pub mod json;
pub mod manifest;
mod meta_file;
pub mod options;
#[cfg(feature = "orc")]
pub(crate) mod orc_footer;
pub mod parquet_footer;
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
pub(crate) mod vectors;
pub mod zone;

pub use binary_row::BinaryRow;
pub use data_type::{DataField, DataType, FieldType};
pub use datum::Datum;
pub use index_manifest::{DeletionVectorRange, IndexFileMeta};
pub use manifest::{DataFileMeta, FileKind, FileSource, ManifestEntry, ManifestFileMeta, SimpleStats};
pub use options::CoreOptions;
pub use row_kind::RowKind;
pub use schema::{Bucket, BucketMode, SchemaId, TableSchema};
pub use snapshot::{BATCH, CommitIdentifier, CommitKind, END_OF_INPUT, Snapshot, SnapshotId};
pub use zone::Zone;
