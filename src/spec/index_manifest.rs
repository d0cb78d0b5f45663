//! The index manifest: the complete set of index files of a snapshot.

use bytes::Bytes;

use super::binary_row::BinaryRow;
use super::manifest::{FileKind, check_version, file_kind, kind_number, row_of};
use super::meta_file::{self, Element, Field, Kind, Row, Table, Value};
use super::schema::Bucket;
use crate::error::{Error, Result};

/// Where the deletion vector of one data file lies inside an index file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionVectorRange {
    /// Bare name of the data file.
    pub data_file_name: String,
    /// Offset of the record's length word.
    pub offset: i32,
    /// Length as the manifest has it (its meaning differs between V1 and V2).
    pub length: i32,
    /// Deleted rows, when stored.
    pub cardinality: Option<i64>,
}

/// One index file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexFileMeta {
    /// ADD in practice.
    pub kind: FileKind,
    /// Partition values.
    pub partition: BinaryRow,
    /// Bucket.
    pub bucket: Bucket,
    /// `DELETION_VECTORS`, `HASH` or a global index type.
    pub index_type: String,
    /// Bare name.
    pub file_name: String,
    /// Bytes.
    pub file_size: i64,
    /// Vectors or hashes.
    pub row_count: i64,
    /// Deletion vectors in it.
    pub deletion_vectors: Option<Vec<DeletionVectorRange>>,
    /// Complete path, used verbatim.
    pub external_path: Option<String>,
    /// Global index: first row, last row, field id.
    pub global_index: Option<GlobalIndexMeta>,
}

impl IndexFileMeta {
    /// Index type of deletion vectors.
    pub const DELETION_VECTORS: &'static str = "DELETION_VECTORS";

    /// Whether it is a live index file that holds deletion vectors.
    pub fn holds_vectors(&self) -> bool {
        self.kind == FileKind::Add && self.index_type == Self::DELETION_VECTORS
    }

    /// Refuses deletion vectors at places that are none, and an index file with other deletion vectors than it counts: those that are not listed would be applied to
    /// no file, and the rows they delete would come back.
    pub fn check_vectors(&self) -> Result<()> {
        if let Some(range) = self.deletion_vectors.iter().flatten().find(|range| range.offset < 0 || range.length < 0) {
            return Err(Error::corrupt(format!(
                "the index manifest places the deletion vector of '{}' at offset {} with length {} of index file '{}'",
                range.data_file_name, range.offset, range.length, self.file_name
            ))
            .with_code("CorruptManifest")
            .or_restore());
        }
        let listed = self.deletion_vectors.as_ref().map_or(0, Vec::len);
        if !self.holds_vectors() || i64::try_from(listed) == Ok(self.row_count) {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "the index manifest lists {listed} deletion vectors of index file '{}', which holds {}",
            self.file_name, self.row_count
        ))
        .with_code("ManifestIncomplete")
        .or_restore())
    }
}

/// What an index manifest says of a global index; such indexes only accelerate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalIndexMeta {
    /// First row id.
    pub row_range_start: i64,
    /// Last row id.
    pub row_range_end: i64,
    /// Indexed column.
    pub index_field_id: i32,
    /// Further indexed columns.
    pub extra_field_ids: Option<Vec<i32>>,
    /// Bytes private to the index.
    pub index_meta: Option<Bytes>,
    /// Bytes private to its source.
    pub source_meta: Option<Bytes>,
}

const VERSION: i64 = 1;

const RANGE: Table = Table {
    fields: &[
        Field::required("f0", Kind::Text),
        Field::required("f1", Kind::Int),
        Field::required("f2", Kind::Int),
        Field::nullable("_CARDINALITY", Kind::Long),
    ],
};

const GLOBAL_INDEX: Table = Table {
    fields: &[
        Field::required("_ROW_RANGE_START", Kind::Long),
        Field::required("_ROW_RANGE_END", Kind::Long),
        Field::required("_INDEX_FIELD_ID", Kind::Int),
        Field::nullable("_EXTRA_FIELD_IDS", Kind::INTS),
        Field::nullable("_INDEX_META", Kind::Bytes),
        Field::nullable("_SOURCE_META", Kind::Bytes),
    ],
};

const INDEX_MANIFEST: Table = Table {
    fields: &[
        Field::required("_VERSION", Kind::Int),
        Field::required("_KIND", Kind::Int),
        Field::required("_PARTITION", Kind::Bytes),
        Field::required("_BUCKET", Kind::Int),
        Field::required("_INDEX_TYPE", Kind::Text),
        Field::required("_FILE_NAME", Kind::Text),
        Field::required("_FILE_SIZE", Kind::Long),
        Field::required("_ROW_COUNT", Kind::Long),
        // spelt so in every writer
        Field::nullable(
            "_DELETIONS_VECTORS_RANGES",
            Kind::List(&Element { kind: Kind::Record(&RANGE), nullable: true }),
        ),
        Field::nullable("_EXTERNAL_PATH", Kind::Text),
        Field::nullable("_GLOBAL_INDEX", Kind::Record(&GLOBAL_INDEX)),
    ],
};

/// Decodes an index manifest (Avro of any codec, ORC or Parquet by its first bytes). `name` is the file, for errors.
pub fn decode_index_manifest(bytes: &[u8], name: &str) -> Result<Vec<IndexFileMeta>> {
    Ok(meta_file::decode(bytes, name, &INDEX_MANIFEST, index_file)?.rows)
}

/// An index manifest as an Avro file with codec zstandard.
pub fn encode_index_manifest(files: &[IndexFileMeta]) -> Result<Vec<u8>> {
    meta_file::encode(&INDEX_MANIFEST, files, index_file_values)
}

fn index_file(row: &mut Row<'_, '_>) -> Result<IndexFileMeta> {
    check_version(row, VERSION)?;
    Ok(IndexFileMeta {
        kind: file_kind(row)?,
        partition: row_of(row.bytes()?),
        bucket: Bucket(row.number()?),
        index_type: row.text()?,
        file_name: row.text()?,
        file_size: row.number()?,
        row_count: row.number()?,
        deletion_vectors: match row.optional_records(&RANGE)? {
            Some(ranges) => Some(ranges.into_iter().map(range).collect::<Result<_>>()?),
            None => None,
        },
        external_path: row.optional_text()?,
        global_index: row.optional_record(&GLOBAL_INDEX)?.map(global_index).transpose()?,
    })
}

fn range(mut row: Row<'_, '_>) -> Result<DeletionVectorRange> {
    Ok(DeletionVectorRange {
        data_file_name: row.text()?,
        offset: row.number()?,
        length: row.number()?,
        cardinality: row.optional_number()?,
    })
}

fn global_index(mut row: Row<'_, '_>) -> Result<GlobalIndexMeta> {
    Ok(GlobalIndexMeta {
        row_range_start: row.number()?,
        row_range_end: row.number()?,
        index_field_id: row.number()?,
        extra_field_ids: row.optional_numbers()?,
        index_meta: row.optional_bytes()?.map(Bytes::copy_from_slice),
        source_meta: row.optional_bytes()?.map(Bytes::copy_from_slice),
    })
}

fn index_file_values(file: &IndexFileMeta) -> Vec<Value<'_>> {
    let ranges = file.deletion_vectors.as_ref().map(|ranges| {
        let records = ranges.iter().map(|range| {
            Value::Record(vec![
                Value::Bytes(range.data_file_name.as_bytes()),
                Value::Long(range.offset.into()),
                Value::Long(range.length.into()),
                Value::optional(range.cardinality),
            ])
        });
        Value::List(records.collect())
    });
    let global = file.global_index.as_ref().map(|global| {
        let ids = |ids: &Vec<i32>| Value::List(ids.iter().map(|id| Value::Long((*id).into())).collect());
        Value::Record(vec![
            Value::Long(global.row_range_start),
            Value::Long(global.row_range_end),
            Value::Long(global.index_field_id.into()),
            global.extra_field_ids.as_ref().map_or(Value::Null, ids),
            Value::optional_bytes(global.index_meta.as_deref()),
            Value::optional_bytes(global.source_meta.as_deref()),
        ])
    });
    vec![
        Value::Long(VERSION),
        Value::Long(kind_number(file.kind)),
        Value::Bytes(&file.partition.0),
        Value::Long(file.bucket.0.into()),
        Value::Bytes(file.index_type.as_bytes()),
        Value::Bytes(file.file_name.as_bytes()),
        Value::Long(file.file_size),
        Value::Long(file.row_count),
        ranges.unwrap_or(Value::Null),
        Value::optional_text(file.external_path.as_deref()),
        global.unwrap_or(Value::Null),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_global_indexes_come_back() {
        let file = IndexFileMeta {
            kind: FileKind::Add,
            partition: BinaryRow::empty(),
            bucket: Bucket(3),
            index_type: "DELETION_VECTORS".to_string(),
            file_name: "index-1".to_string(),
            file_size: 49,
            row_count: 1,
            deletion_vectors: Some(vec![DeletionVectorRange {
                data_file_name: "data-1.parquet".to_string(),
                offset: 1,
                length: 40,
                cardinality: Some(10),
            }]),
            external_path: Some("s3://b/index-1".to_string()),
            global_index: Some(GlobalIndexMeta {
                row_range_start: 0,
                row_range_end: 9,
                index_field_id: 2,
                extra_field_ids: Some(vec![3, 4]),
                index_meta: Some(Bytes::from_static(b"meta")),
                source_meta: None,
            }),
        };
        let plain = IndexFileMeta {
            index_type: "HASH".to_string(),
            deletion_vectors: None,
            external_path: None,
            global_index: None,
            ..file.clone()
        };
        let bytes = encode_index_manifest(&[file.clone(), plain.clone()]).unwrap();
        assert_eq!(decode_index_manifest(&bytes, "index-manifest-1").unwrap(), [file, plain]);
    }

    #[test]
    fn vectors_are_counted() {
        let index = |row_count, listed: Option<usize>| IndexFileMeta {
            kind: FileKind::Add,
            partition: BinaryRow::empty(),
            bucket: Bucket(0),
            index_type: IndexFileMeta::DELETION_VECTORS.to_string(),
            file_name: "index-1".to_string(),
            file_size: 49,
            row_count,
            deletion_vectors: listed.map(|count| {
                let range = |number| DeletionVectorRange {
                    data_file_name: format!("data-{number}.parquet"),
                    offset: 1,
                    length: 40,
                    cardinality: None,
                };
                (0..count).map(range).collect()
            }),
            external_path: None,
            global_index: None,
        };
        for (row_count, listed) in [(2, Some(2)), (0, Some(0)), (0, None)] {
            index(row_count, listed).check_vectors().unwrap();
        }
        for (row_count, listed) in [(2, Some(1)), (2, None), (1, Some(2)), (-1, Some(0))] {
            let error = index(row_count, listed).check_vectors().unwrap_err();
            assert_eq!(error.code(), "ManifestIncomplete", "{row_count} {listed:?}");
        }
        // hashes are counted in another way
        IndexFileMeta { index_type: "HASH".to_string(), ..index(7, None) }.check_vectors().unwrap();
    }

    #[test]
    fn manifest_is_no_index_manifest() {
        let bytes = crate::spec::manifest::encode_manifest(&[]).unwrap();
        let error = decode_index_manifest(&bytes, "m").unwrap_err();
        assert_eq!(error.context(), [("column", "_INDEX_TYPE".to_string()), ("file", "m".to_string())]);
    }
}
