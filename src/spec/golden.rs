//! Every metadata file of the golden tables decodes, and says what the reference implementation says of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a module of tests")]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, proptest};
use serde_json::Value;

use super::arrow_types::datum_at;
use super::binary_row::BinaryRow;
use super::data_type::DataType;
use super::file_index::{FileIndex, IndexOp, IndexPredicate, IndexVerdict};
use super::hostile::{ENOUGH, cases, peak_of};
use super::index_manifest::{decode_index_manifest, encode_index_manifest};
use super::manifest::{
    FileKind, FileSource, ManifestEntry, SimpleStats, decode_manifest, decode_manifest_list, decode_whole_list,
    encode_manifest, encode_manifest_list,
};
use super::partition_path::{bucket_dir, partition_dir};
use super::schema::{SchemaId, TableSchema};
use super::snapshot::Snapshot;
use super::vectors::{datum, hex};
use super::{CoreOptions, Datum, deletion_vector};
use crate::testing::golden;

fn tables() -> Vec<PathBuf> {
    let roots = [golden::java_warehouse().unwrap(), golden::python_warehouse().unwrap()];
    let mut tables: Vec<_> = roots.iter().flat_map(|root| children(&root.join("golden.db"))).collect();
    tables.sort();
    assert!(tables.len() > 100);
    tables
}

fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).map(|entries| entries.map(|e| e.unwrap().path()).collect()).unwrap_or_default()
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn schemas(table: &Path) -> HashMap<SchemaId, TableSchema> {
    let files = children(&table.join("schema"));
    let schemas = files.iter().map(|file| TableSchema::from_json(&fs::read(file).unwrap()).unwrap());
    schemas.map(|schema| (schema.id, schema)).collect()
}

/// Live entries of a snapshot.
fn live(table: &Path, snapshot: &Snapshot) -> Vec<ManifestEntry> {
    let manifest = |name: &str| fs::read(table.join("manifest").join(name)).unwrap();
    let mut all = Vec::new();
    for list in [&snapshot.base_manifest_list, &snapshot.delta_manifest_list] {
        for meta in decode_manifest_list(&manifest(list), list).unwrap() {
            let bytes = manifest(&meta.file_name);
            assert_eq!(bytes.len() as u64, meta.file_size);
            let entries = decode_manifest(&bytes, &meta.file_name).unwrap();
            let deletes = entries.iter().filter(|e| e.kind == FileKind::Delete).count() as i64;
            assert_eq!((meta.num_deleted_files, meta.num_added_files), (deletes, entries.len() as i64 - deletes));
            all.extend(entries);
        }
    }
    super::manifest::live(all.iter()).into_iter().cloned().collect()
}

#[test]
fn every_metadata_file_decodes_and_comes_back_from_our_own_writing() {
    let mut seen = BTreeMap::new();
    for table in tables() {
        for file in children(&table.join("manifest")) {
            let bytes = fs::read(&file).unwrap();
            let name = name(&file);
            if name.starts_with("index-manifest") {
                let files = decode_index_manifest(&bytes, name).unwrap();
                assert_eq!(decode_index_manifest(&encode_index_manifest(&files).unwrap(), name).unwrap(), files);
                *seen.entry("index manifest").or_insert(0) += files.len();
            } else if name.starts_with("manifest-list") {
                let metas = decode_manifest_list(&bytes, name).unwrap();
                assert_eq!(decode_manifest_list(&encode_manifest_list(&metas).unwrap(), name).unwrap(), metas);
                *seen.entry("manifest list").or_insert(0) += metas.len();
            } else {
                let entries = decode_manifest(&bytes, name).unwrap();
                assert!(!entries.is_empty(), "{}", file.display());
                assert_eq!(decode_manifest(&encode_manifest(&entries).unwrap(), name).unwrap(), entries);
                *seen.entry("manifest").or_insert(0) += entries.len();
            }
        }
    }
    assert!(seen["manifest"] > 1000 && seen["manifest list"] > 500 && seen["index manifest"] > 10, "{seen:?}");
}

#[test]
fn lists_of_every_snapshot_hold_the_rows_it_counts_and_do_not_look_cut() {
    let (mut counted, mut without_sizes) = (0, 0);
    for table in tables() {
        let documents = children(&table.join("snapshot")).into_iter().chain(children(&table.join("changelog")));
        for file in documents.filter(|file| name(file).contains("-")) {
            let snapshot = Snapshot::from_json(&fs::read(&file).unwrap()).unwrap();
            let lists = [
                (Some(&snapshot.delta_manifest_list), snapshot.delta_record_count),
                (snapshot.changelog_manifest_list.as_ref(), snapshot.changelog_record_count),
            ];
            without_sizes += usize::from(snapshot.delta_manifest_list_size.is_none());
            for (list, told) in lists {
                let (Some(list), Some(told)) = (list, told) else { continue };
                // a changelog may outlive the lists of its snapshot
                let Ok(bytes) = fs::read(table.join("manifest").join(list)) else { continue };
                let list = decode_whole_list(&bytes, list).unwrap();
                assert!(!list.may_be_cut || list.manifests.is_empty(), "{}", file.display());
                let rows = list.manifests.iter().flat_map(|meta| {
                    let bytes = fs::read(table.join("manifest").join(&meta.file_name)).unwrap();
                    decode_manifest(&bytes, &meta.file_name).unwrap()
                });
                let net: i64 = rows
                    .map(|entry| if entry.kind == FileKind::Add { entry.file.row_count } else { -entry.file.row_count })
                    .sum();
                assert_eq!(net, told, "{}", file.display());
                counted += 1;
            }
        }
    }
    assert!(counted > 500 && without_sizes > 200, "{counted} lists, {without_sizes} snapshots without sizes");
}

#[test]
fn data_files_lie_where_partition_and_bucket_say() {
    let mut found = 0;
    for table in tables() {
        let schemas = schemas(&table);
        for file in children(&table.join("snapshot")).iter().filter(|file| name(file).starts_with("snapshot-")) {
            let snapshot = Snapshot::from_json(&fs::read(file).unwrap()).unwrap();
            let schema = &schemas[&snapshot.schema_id];
            let options = CoreOptions::parse(&schema.options).unwrap();
            let partition = schema.partition_indices().unwrap();
            let types: Vec<&DataType> = partition.iter().map(|i| schema.fields[*i].data_type()).collect();
            let names: Vec<&str> = schema.partition_keys.iter().map(String::as_str).collect();
            for entry in live(&table, &snapshot) {
                let values = entry.partition.decode(&types).unwrap();
                let mut path = table.join(options.data_file_path_directory.as_deref().unwrap_or_default());
                path.push(partition_dir(&names, &values, &types, &options).unwrap());
                path.push(bucket_dir(entry.bucket));
                if entry.file.external_path.is_none() {
                    assert!(path.join(&entry.file.file_name).exists(), "{} {}", path.display(), entry.file.file_name);
                    found += 1;
                }
            }
        }
    }
    assert!(found > 1000, "{found}");
}

#[test]
fn deletion_vectors_of_every_index_file_decode_and_come_back() {
    let mut found = 0;
    for table in tables() {
        for file in children(&table.join("manifest")).iter().filter(|file| name(file).starts_with("index-manifest")) {
            for index in decode_index_manifest(&fs::read(file).unwrap(), name(file)).unwrap() {
                index.check_vectors().unwrap();
                if index.index_type != "DELETION_VECTORS" {
                    continue;
                }
                let bytes = fs::read(table.join("index").join(&index.file_name)).unwrap();
                assert_eq!(bytes[0], deletion_vector::FILE_VERSION);
                for range in index.deletion_vectors.unwrap() {
                    let place = deletion_vector::record_range(range.offset, range.length).unwrap();
                    let record = &bytes[place.start as usize..place.end as usize];
                    let vector = deletion_vector::decode(record, range.length).unwrap();
                    assert!(range.cardinality.is_none_or(|stored| stored as u64 == vector.cardinality()));
                    let again = deletion_vector::encode_v1(&vector).unwrap();
                    assert_eq!(deletion_vector::decode(&again.0, again.1).unwrap(), vector);
                    found += 1;
                }
            }
        }
    }
    assert!(found > 10, "{found}");
}

/// Asserts that a row holds the values of a JSON object, whose names are those of `fields`.
fn same_row(row: &BinaryRow, expected: &Value, fields: &[(&str, &DataType)], what: &str) {
    if row.is_empty() && expected.is_null() {
        return;
    }
    assert_eq!(row.arity().unwrap(), fields.len(), "{what}");
    for (index, (name, data_type)) in fields.iter().enumerate() {
        let value = row.get(index, data_type).unwrap();
        let wanted = &expected[name];
        if wanted.is_null() {
            assert!(value.is_null(), "{what} {name}");
        } else if wanted != "NaN" {
            assert_eq!(value, datum(wanted, data_type), "{what} {name}");
        }
    }
}

fn same_stats(stats: &SimpleStats, expected: &Value, fields: &[(&str, &DataType)], what: &str) {
    if expected.is_null() {
        assert!(stats.min_values.is_empty(), "{what}");
        return;
    }
    same_row(&stats.min_values, &expected["min"], fields, what);
    same_row(&stats.max_values, &expected["max"], fields, what);
    let counts: Vec<_> = expected["nulls"].as_array().unwrap().iter().map(Value::as_i64).collect();
    assert_eq!(stats.null_counts, counts, "{what}");
}

#[test]
fn entries_of_java_tables_are_those_that_java_prints() {
    let expected = golden::root().unwrap().join("java-0.9/expected");
    let mut compared = 0;
    for folder in children(&expected) {
        let table = golden::java_warehouse().unwrap().join("golden.db").join(name(&folder));
        for file in children(&folder) {
            let Some(id) = name(&file).strip_prefix("files-").and_then(|rest| rest.strip_suffix(".jsonl")) else {
                continue;
            };
            let snapshot = fs::read(table.join(format!("snapshot/snapshot-{id}"))).unwrap();
            let entries = live(&table, &Snapshot::from_json(&snapshot).unwrap());
            let text = fs::read_to_string(&file).unwrap();
            let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(entries.len(), lines.len(), "{}", file.display());
            let schemas = schemas(&table);
            for line in &lines {
                let entry = entries.iter().find(|e| e.file.file_name == line["name"].as_str().unwrap()).unwrap();
                same_entry(entry, line, &schemas);
                compared += 1;
            }
        }
    }
    assert!(compared > 250, "{compared}");
}

fn same_entry(entry: &ManifestEntry, line: &Value, schemas: &HashMap<SchemaId, TableSchema>) {
    let file = &entry.file;
    let schema = &schemas[&file.schema_id];
    let fields_of = |indices: &[usize]| -> Vec<(&str, &DataType)> {
        indices.iter().map(|i| (schema.fields[*i].name.as_str(), schema.fields[*i].data_type())).collect()
    };
    let what = format!("{} of schema {}", file.file_name, schema.id);
    let number = |key: &str| line[key].as_i64();
    assert_eq!(entry.partition.0, hex(line["partitionBytes"].as_str().unwrap()), "{what}");
    same_row(&entry.partition, &line["partition"], &fields_of(&schema.partition_indices().unwrap()), &what);
    assert_eq!(Some(i64::from(entry.bucket.0)), number("bucket"));
    assert_eq!(Some(i64::from(entry.total_buckets)), number("totalBuckets"));
    assert_eq!(Some(file.file_size as i64), number("size"));
    assert_eq!(Some(file.row_count), number("rowCount"));
    assert_eq!(Some(i64::from(file.level)), number("level"));
    assert_eq!(Some(file.min_sequence_number), number("minSeq"));
    assert_eq!(Some(file.max_sequence_number), number("maxSeq"));
    assert_eq!(file.delete_row_count, number("deleteRowCount"));
    let source = file.file_source.map(|source| match source {
        FileSource::Append => "APPEND",
        FileSource::Compact => "COMPACT",
    });
    assert_eq!(source, line["fileSource"].as_str());
    let extra: Vec<_> = line["extraFiles"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(file.extra_files, extra);
    assert_eq!(file.embedded_index.as_deref().map(<[u8]>::to_vec), line["embeddedIndex"].as_str().map(hex));
    let created = datum(&line["creationTime"], &DataType::Timestamp(3));
    assert_eq!(created, Datum::Timestamp(file.creation_time_millis.unwrap(), 0));
    let key = schema.trimmed_primary_key().unwrap();
    if !key.is_empty() {
        let key = fields_of(&key);
        same_row(&file.min_key, &line["minKey"], &key, &what);
        same_row(&file.max_key, &line["maxKey"], &key, &what);
        same_stats(&file.key_stats, &line["keyStats"], &key, &what);
    }
    let all: Vec<usize> = (0..schema.fields.len()).collect();
    same_stats(&file.value_stats, &line["valueStats"], &fields_of(&all), &what);
}

#[test]
fn file_indexes_keep_every_row_of_the_data_file_and_drop_absent_values() {
    let (mut asked, mut skipped) = (0, 0);
    for table in tables().into_iter().filter(|table| name(table).starts_with("index_")) {
        let schemas = schemas(&table);
        for file in children(&table.join("snapshot")).iter().filter(|file| name(file).starts_with("snapshot-")) {
            for entry in live(&table, &Snapshot::from_json(&fs::read(file).unwrap()).unwrap()) {
                let folder = table.join(bucket_dir(entry.bucket));
                let index = match (&entry.file.embedded_index, entry.file.extra_files.first()) {
                    (Some(bytes), _) => bytes.clone(),
                    (None, Some(extra)) => fs::read(folder.join(extra)).unwrap().into(),
                    (None, None) => continue,
                };
                let index = FileIndex::parse(index).unwrap();
                let data = fs::File::open(folder.join(&entry.file.file_name)).unwrap();
                let reader = ParquetRecordBatchReaderBuilder::try_new(data).unwrap().build().unwrap();
                let batches: Vec<_> = reader.map(Result::unwrap).collect();
                let batch = arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
                let schema = &schemas[&entry.file.schema_id];
                for (column, kind) in index.indexes() {
                    // an index of one key of a map has no column of its own
                    let Some(field) = schema.fields.iter().find(|field| field.name == column) else { continue };
                    let array = batch.column_by_name(column).unwrap();
                    let ask = |value: Datum| {
                        let predicate = IndexPredicate::Leaf {
                            column: column.to_string(),
                            op: IndexOp::Eq,
                            literals: vec![value],
                            data_type: field.data_type().clone(),
                        };
                        index.evaluate(&predicate, entry.file.row_count as u64).unwrap()
                    };
                    for row in 0..batch.num_rows() {
                        let value = datum_at(array, row, field.data_type()).unwrap();
                        if value.is_null() {
                            continue;
                        }
                        match ask(value.clone()) {
                            IndexVerdict::Skip => panic!("{kind} of {column} loses {value:?}"),
                            IndexVerdict::Remain => assert_eq!(kind, "bloom-filter"),
                            IndexVerdict::Rows(rows) => {
                                let same =
                                    |row: u32| datum_at(array, row as usize, field.data_type()).unwrap() == value;
                                let expected = (0..batch.num_rows() as u32).filter(|row| same(*row));
                                assert_eq!(rows, expected.collect(), "{kind} of {column}: {value:?}");
                            }
                        }
                        asked += 1;
                    }
                    for absent in 0..50 {
                        let value = match field.data_type() {
                            DataType::Int => Datum::Int(1_000_000 + absent),
                            DataType::Varchar(_) => Datum::String(format!("absent {absent}")),
                            _ => continue,
                        };
                        skipped += usize::from(ask(value) == IndexVerdict::Skip);
                    }
                }
            }
        }
    }
    assert!(asked > 1000 && skipped > 200, "{asked} asked, {skipped} skipped");
}

/// One file of each kind and form: uncompressed Avro shows its inside to the mutations.
fn metadata_files() -> Vec<(String, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for table in tables() {
        let form = name(&table);
        let wanted = ["manifest_codec_null", "manifest_codec_snappy", "manifest_orc", "manifest_parquet", "append_dv"];
        if !wanted.contains(&form) {
            continue;
        }
        for file in children(&table.join("manifest")) {
            let kind = ["index-manifest", "manifest-list", "manifest"].into_iter().find(|k| name(&file).starts_with(k));
            found.insert(format!("{} of {form}", kind.unwrap()), fs::read(&file).unwrap());
        }
    }
    found.into_iter().collect()
}

fn decode_as_everything(bytes: &[u8]) {
    let _ = decode_manifest(bytes, "m");
    let _ = decode_manifest_list(bytes, "m");
    let _ = decode_index_manifest(bytes, "m");
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn damaged_metadata_files_are_refused_calmly(
        pick in any::<usize>(),
        flips in vec(any::<(usize, u8)>(), 1..6),
        cut in any::<usize>(),
        noise in vec(any::<u8>(), 0..100),
    ) {
        static FILES: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(metadata_files);
        let (_, bytes) = &FILES[pick % FILES.len()];
        let mut bytes = bytes.clone();
        let end = bytes.len();
        for (at, mask) in flips {
            bytes[at % end] ^= mask;
        }
        if cut % 4 == 0 {
            bytes.truncate(cut % (end + 1));
        }
        for bytes in [&bytes, &noise] {
            let ((), peak) = peak_of(|| decode_as_everything(bytes));
            prop_assert!(peak < ENOUGH, "{} bytes took {peak} bytes of memory", bytes.len());
        }
    }
}
