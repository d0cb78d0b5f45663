//! Metadata that is damaged and yet can be decoded: what other facts betray is an error that names table, snapshot and the
//! file that says it, never other rows.

use std::path::Path;

use super::*;
use crate::notice::Notice;
use crate::spec::binary_row::RowForm;
use crate::spec::index_manifest::{decode_index_manifest, encode_index_manifest};
use crate::spec::manifest::{decode_manifest, decode_manifest_list, encode_manifest, encode_manifest_list};
use crate::spec::{
    BinaryRow, DataType, Datum, FileKind, IndexFileMeta, ManifestEntry, ManifestFileMeta, SchemaId, Snapshot,
};

/// The newest snapshot of every table here.
fn newest(root: &Path) -> Snapshot {
    Snapshot::from_json(&std::fs::read(root.join("snapshot/snapshot-3")).unwrap()).unwrap()
}

fn put(root: &Path, snapshot: &Snapshot) {
    std::fs::write(root.join(format!("snapshot/snapshot-{}", snapshot.id)), snapshot.to_json()).unwrap();
}

/// Changes what the lists of the newest snapshot say, in place; whoever tells how long they are is told.
fn lists(root: &Path, mut change: impl FnMut(&mut Vec<ManifestFileMeta>)) {
    let mut snapshot = newest(root);
    let mut sizes = Vec::new();
    for name in [&snapshot.base_manifest_list, &snapshot.delta_manifest_list] {
        let path = root.join("manifest").join(name);
        let mut metas = decode_manifest_list(&std::fs::read(&path).unwrap(), name).unwrap();
        change(&mut metas);
        let bytes = encode_manifest_list(&metas).unwrap();
        sizes.push(Some(bytes.len() as u64));
        std::fs::write(path, bytes).unwrap();
    }
    (snapshot.base_manifest_list_size, snapshot.delta_manifest_list_size) = (sizes[0], sizes[1]);
    put(root, &snapshot);
}

/// Changes the entries of every manifest of the newest snapshot, in place; their lists count what is there then.
fn entries(root: &Path, mut change: impl FnMut(&mut Vec<ManifestEntry>)) {
    lists(root, |metas| {
        for meta in metas {
            let path = root.join("manifest").join(&meta.file_name);
            let mut entries = decode_manifest(&std::fs::read(&path).unwrap(), &meta.file_name).unwrap();
            change(&mut entries);
            let bytes = encode_manifest(&entries).unwrap();
            meta.file_size = bytes.len() as u64;
            meta.num_added_files = entries.iter().filter(|entry| entry.kind == FileKind::Add).count() as i64;
            meta.num_deleted_files = entries.len() as i64 - meta.num_added_files;
            std::fs::write(path, bytes).unwrap();
        }
    });
}

fn each(root: &Path, change: impl Fn(&mut ManifestEntry)) {
    entries(root, |entries| entries.iter_mut().for_each(&change));
}

fn index_files(root: &Path, change: impl Fn(&mut IndexFileMeta)) {
    let name = newest(root).index_manifest.unwrap();
    let path = root.join("manifest").join(&name);
    let mut files = decode_index_manifest(&std::fs::read(&path).unwrap(), &name).unwrap();
    files.iter_mut().for_each(change);
    std::fs::write(path, encode_index_manifest(&files).unwrap()).unwrap();
}

/// Nobody counts rows: the writers of old did not.
fn uncounted(root: &Path) {
    let mut snapshot = newest(root);
    (snapshot.total_record_count, snapshot.delta_record_count) = (None, None);
    put(root, &snapshot);
}

fn key(id: Datum) -> BinaryRow {
    BinaryRow::encode(&[(&id, &DataType::BigInt)], RowForm::Serialized).unwrap()
}

/// Rows of keys 1 to 8 in two compacted files, the first of which was removed by a compaction into another.
fn keyed() -> (TempDir, TableBuilder) {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "2");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let rows = |from: i64| (from..from + 4).map(|id| json!({"id": id, "v": id})).collect::<Vec<_>>();
    table.commit().file(FileSpec::rows(&rows(1)).bucket(0).level(5)).publish().unwrap();
    table.commit().file(FileSpec::rows(&rows(5)).bucket(0).level(5)).publish().unwrap();
    let first = table.live_files().unwrap().remove(0).file.file_name;
    table
        .commit()
        .kind(CommitKind::Compact)
        .remove(&first)
        .file(FileSpec::rows(&rows(1)).bucket(0).level(5))
        .publish()
        .unwrap();
    (dir, table)
}

/// An append table of two files, of the second of which two rows are deleted.
fn vectors() -> (TempDir, TableBuilder) {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT"), ("v", "INT")])
        .option("bucket", "-1")
        .option("deletion-vectors.enabled", "true");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    for from in [0, 10] {
        table.append(&(from..from + 5).map(|id| json!({"id": id, "v": id})).collect::<Vec<_>>()).unwrap();
    }
    let name = table.live_files().unwrap().pop().unwrap().file.file_name;
    table.commit().delete_positions(&name, &[1, 3]).publish().unwrap();
    (dir, table)
}

/// What an error must say.
struct Told {
    what: &'static str,
    code: &'static str,
    /// Words of the message.
    words: &'static str,
    /// What the file named ends in, or begins with, somewhere.
    file: &'static str,
}

fn check(error: &Error, told: &Told) {
    let Told { what, code, words, file } = told;
    assert_eq!(error.code(), *code, "{what}: {error}");
    assert!(error.message().contains(words), "{what}: {error}");
    let value = |name: &str| error.context().iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    assert_eq!(value("table"), Some("pay.t"), "{what}: {error:?}");
    assert_eq!(value("snapshot"), Some("3"), "{what}: {error:?}");
    assert!(value("file").is_some_and(|known| known.contains(file)), "{what}: {error:?}");
    assert!(error.hint().is_some(), "{what}: no way out: {error:?}");
}

/// Every way in which a full read of the keyed table meets an entry.
const KEYED: [&str; 3] = ["SELECT * FROM t", "SELECT count(*), sum(1) FROM t", "EXPLAIN FILES SELECT * FROM t"];

#[tokio::test]
async fn what_the_entries_of_a_snapshot_cannot_say_is_damage() {
    type Damage = fn(&Path);
    let manifest = "/manifest/manifest-";
    let cases: Vec<(Told, Damage)> = vec![
        (
            Told {
                what: "rows",
                code: "ManifestIncomplete",
                words: "files of 9 rows where the snapshot counts 8",
                file: "-0, manifest-list-",
            },
            |root| {
                let mut first = true;
                entries(root, |entries| {
                    if std::mem::take(&mut first) {
                        entries[0].file.row_count += 1;
                    }
                });
            },
        ),
        (
            Told {
                what: "added twice",
                code: "ManifestIncomplete",
                words: "where the snapshot counts 8",
                file: "manifest-list-",
            },
            |root| {
                entries(root, |entries| {
                    let added = entries.iter().find(|entry| entry.kind == FileKind::Add).cloned();
                    entries.extend(added);
                });
            },
        ),
        (
            Told {
                what: "removes nothing",
                code: "CorruptManifest",
                words: "removes a file that no manifest",
                file: manifest,
            },
            |root| {
                each(root, |entry| {
                    if entry.kind == FileKind::Delete {
                        entry.file.file_name.insert(5, 'x');
                    }
                });
            },
        ),
        (Told { what: "a manifest twice", code: "CorruptManifest", words: "twice", file: "manifest-list-" }, |root| {
            lists(root, |metas| metas.extend(metas.first().cloned()));
            uncounted(root);
        }),
        (Told { what: "bucket", code: "CorruptManifest", words: "in bucket 2 of 2 buckets", file: manifest }, |root| {
            each(root, |entry| entry.bucket.0 = 2)
        }),
        (
            Told {
                what: "endless rows",
                code: "CorruptManifest",
                words: "cannot hold 4611686018427387904 rows",
                file: manifest,
            },
            |root| {
                each(root, |entry| entry.file.row_count = 1 << 62);
                uncounted(root);
            },
        ),
        (
            Told {
                what: "keys in the wrong order",
                code: "CorruptManifest",
                words: "_MIN_KEY of an entry is above",
                file: manifest,
            },
            |root| each(root, |entry| std::mem::swap(&mut entry.file.min_key, &mut entry.file.max_key)),
        ),
        (
            Told {
                what: "a key of NULL",
                code: "CorruptManifest",
                words: "_MAX_KEY of an entry is NULL",
                file: manifest,
            },
            |root| each(root, |entry| entry.file.max_key = key(Datum::Null)),
        ),
        (
            Told {
                what: "no complete path",
                code: "InvalidPath",
                words: "'x/y.parquet' is no complete path",
                file: manifest,
            },
            |root| each(root, |entry| entry.file.external_path = Some("x/y.parquet".into())),
        ),
        (Told { what: "no path", code: "InvalidPath", words: "'' is no complete path", file: manifest }, |root| {
            each(root, |entry| entry.file.external_path = Some(String::new()))
        }),
        (
            Told { what: "no store", code: "UnknownScheme", words: "no store for scheme 'http'", file: manifest },
            |root| each(root, |entry| entry.file.external_path = Some("http://a/y.parquet".into())),
        ),
        (Told { what: "a name with folders", code: "InvalidPath", words: "'a/data-", file: manifest }, |root| {
            each(root, |entry| entry.file.file_name.insert_str(0, "a/"))
        }),
        (Told { what: "a list's name", code: "InvalidPath", words: "'../x'", file: "manifest-list-" }, |root| {
            lists(root, |metas| metas.iter_mut().for_each(|meta| meta.file_name = "../x".into()))
        }),
        (
            Told {
                what: "another schema",
                code: "SchemaNotFound",
                words: "schema 7 is missing",
                file: "schema/schema-7",
            },
            |root| each(root, |entry| entry.file.schema_id = SchemaId(7)),
        ),
    ];
    for (told, damage) in cases {
        let (dir, table) = keyed();
        assert_eq!(rows(&session_of(&dir).await, "SELECT count(*) FROM t").await, ["8"]);
        damage(table.root());
        for sql in KEYED {
            let error = ask(&session_of(&dir).await, sql).await.err();
            let error = error.unwrap_or_else(|| panic!("{}: {sql} noticed nothing", told.what));
            check(&error, &told);
            let named = |name: &str| error.context().iter().any(|(known, _)| *known == name);
            assert_eq!(named("added twice"), told.what == "added twice", "{error:?}");
            if told.what == "another schema" {
                assert!(named("entry") && named("manifest"), "who asks for the schema is not named: {error:?}");
            }
        }
    }
}

/// What the snapshot counts is compared where all manifests are read, and only there.
#[tokio::test]
async fn a_filter_that_leaves_manifests_out_compares_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT"), ("day", "INT")]).partitioned_by(&["day"]);
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    for day in 0..3 {
        table.append(&[json!({"id": 1, "day": day})]).unwrap();
    }
    let removed = table.live_files().unwrap().remove(0).file.file_name;
    table.commit().remove(&removed).publish().unwrap();
    let session = session_of(&dir).await;
    // the removal is read without what it removes
    for (filter, found) in [("day = 0", "0"), ("day = 1", "1"), ("day > 0", "2"), ("day < 9", "2")] {
        assert_eq!(rows(&session, &format!("SELECT count(*) FROM t WHERE {filter}")).await, [found], "{filter}");
    }
}

#[tokio::test]
async fn statistics_of_another_width_prune_nothing() {
    let (dir, table) = vectors();
    each(table.root(), |entry| {
        entry.file.value_stats.null_counts.push(Some(0));
        entry.file.value_stats.max_values = entry.file.value_stats.min_values.clone();
    });
    assert_eq!(rows(&session_of(&dir).await, "SELECT id FROM t WHERE id = 4").await, ["4"]);
}

#[tokio::test]
async fn vectors_of_no_file_are_told_and_those_at_no_place_refused() {
    let sql = "SELECT count(*) FROM t WHERE v >= 0";
    let notice = |notices: Vec<Notice>| notices.join("; ");
    let (dir, table) = vectors();
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, sql).await, ["8"]);
    let told = notice(session.run_one(sql).await.unwrap().notices);
    assert!(!told.contains("deletion vectors"), "{told}");

    index_files(table.root(), |index| {
        index.deletion_vectors.iter_mut().flatten().for_each(|range| range.data_file_name.insert(0, 'x'));
    });
    let told = notice(session_of(&dir).await.run_one(sql).await.unwrap().notices);
    assert!(told.contains("pay.t: deletion vectors are listed for files that are not there ('xdata-"), "{told}");

    let (dir, table) = vectors();
    index_files(table.root(), |index| index.index_type = "VECTORS".into());
    let told = notice(session_of(&dir).await.run_one(sql).await.unwrap().notices);
    assert!(told.contains("of type 'VECTORS' lists deletion vectors, which are not applied"), "{told}");

    let (dir, table) = vectors();
    index_files(table.root(), |index| {
        index.deletion_vectors.iter_mut().flatten().for_each(|range| range.offset = i32::MIN);
    });
    let told = Told {
        what: "no place",
        code: "CorruptManifest",
        words: "at offset -2147483648",
        file: "/manifest/index-manifest-",
    };
    check(&ask(&session_of(&dir).await, sql).await.unwrap_err(), &told);
}

/// A mask of more rows than a file has is not even made: the file is asked first.
#[tokio::test]
async fn more_rows_than_a_file_has_are_noticed_by_its_footer() {
    let (dir, table) = vectors();
    each(table.root(), |entry| {
        if entry.file.min_sequence_number >= 5 {
            entry.file.row_count = 1 << 27;
        }
    });
    uncounted(table.root());
    let told = Told {
        what: "rows of the footer",
        code: "DataFileCorrupt",
        words: "holds 5 rows where the manifest says 134217728",
        file: "/bucket-0/data-",
    };
    check(&ask(&session_of(&dir).await, "SELECT sum(v) FROM t").await.unwrap_err(), &told);
}

#[tokio::test]
async fn a_size_that_is_too_small_is_the_manifests_damage_not_the_data_files() {
    let (dir, table) = keyed();
    each(table.root(), |entry| entry.file.file_size -= 3);
    let told = Told {
        what: "size",
        code: "DataFileCorrupt",
        words: "the manifest entry gives the data file",
        file: "/bucket-0/data-",
    };
    for sql in ["SELECT sum(v) FROM t", "SELECT * FROM t$audit_log"] {
        check(&ask(&session_of(&dir).await, sql).await.unwrap_err(), &told);
    }
}

#[tokio::test]
async fn system_tables_name_table_snapshot_and_the_manifest_of_a_damaged_entry() {
    let (dir, table) = keyed();
    each(table.root(), |entry| entry.file.value_stats.min_values = BinaryRow(vec![0xff; 12].into()));
    let told = Told { what: "files", code: "CorruptRow", words: "", file: "/manifest/manifest-" };
    check(&ask(&session_of(&dir).await, "SELECT * FROM t$files").await.unwrap_err(), &told);
    assert_eq!(rows(&session_of(&dir).await, "SELECT count(*) FROM t").await, ["8"], "nobody needs the bounds");

    let (dir, table) = keyed();
    each(table.root(), |entry| entry.file.min_key = BinaryRow(vec![0xff; 12].into()));
    let told = Told { what: "key ranges", ..told };
    check(&ask(&session_of(&dir).await, "SELECT * FROM t$file_key_ranges").await.unwrap_err(), &told);

    let (dir, table) = keyed();
    let list = table.root().join("manifest").join(newest(table.root()).delta_manifest_list);
    let bytes = std::fs::read(&list).unwrap();
    std::fs::write(&list, &bytes[..bytes.len() - 1]).unwrap();
    for name in ["files", "file_key_ranges", "partitions", "buckets", "manifests", "row_accounting", "file_indexes"] {
        let told = Told { what: name, code: "ManifestIncomplete", words: "is cut", file: "/manifest/manifest-list-" };
        check(&ask(&session_of(&dir).await, &format!("SELECT * FROM t${name}")).await.unwrap_err(), &told);
    }
}

#[tokio::test]
async fn files_that_were_exchanged_are_noticed_by_the_keys_they_hold() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    for (ids, v) in [([1, 3], 1), ([2, 4], 2), ([1, 4], 3)] {
        table.append(&ids.map(|id| json!({"id": id, "v": v}))).unwrap();
    }
    let sql = "SELECT id, v FROM t";
    assert_eq!(rows(&session_of(&dir).await, sql).await, ["1,3", "2,2", "3,1", "4,3"]);
    let files: Vec<_> = table.live_files().unwrap().into_iter().map(|entry| entry.file).collect();
    let path = |at: usize| table.root().join("bucket-0").join(&files[at].file_name);
    for (one, other, words) in [(0, 1, "holds keys"), (1, 2, "holds keys")] {
        assert_eq!(files[one].file_size, files[other].file_size, "lengths would tell");
        let (first, second) = (std::fs::read(path(one)).unwrap(), std::fs::read(path(other)).unwrap());
        std::fs::write(path(one), &second).unwrap();
        std::fs::write(path(other), &first).unwrap();
        let told = Told { what: "exchanged", code: "DataFileCorrupt", words, file: "/bucket-0/data-" };
        check(&ask(&session_of(&dir).await, sql).await.unwrap_err(), &told);
        std::fs::write(path(one), first).unwrap();
        std::fs::write(path(other), second).unwrap();
    }
}

#[tokio::test]
async fn a_range_of_changes_is_not_refused_for_a_hint_that_is_wrong() {
    let (dir, table) = keyed();
    std::fs::write(table.root().join("snapshot/EARLIEST"), "3").unwrap();
    let session = session_of(&dir).await;
    let sql = "SELECT count(*) FROM paimon_delta('t', 1, 2)";
    assert_eq!(rows(&session, sql).await, ["4"]);
}

/// The tables of a golden warehouse that a test may damage.
fn copied(table: &str) -> (TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let from = golden::java_warehouse().unwrap().join("golden.db").join(table);
    let mut folders = vec![from.clone()];
    let root = dir.path().join("pay.db").join(table);
    while let Some(folder) = folders.pop() {
        std::fs::create_dir_all(root.join(folder.strip_prefix(&from).unwrap())).unwrap();
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(std::fs::copy(&path, root.join(path.strip_prefix(&from).unwrap())).unwrap()),
            }
        }
    }
    (dir, root)
}

#[tokio::test]
async fn a_file_index_that_cannot_be_read_names_the_statement_that_does_without() {
    let (dir, root) = copied("index_bitmap_file");
    let indexes = || {
        let files = std::fs::read_dir(root.join("bucket-0")).unwrap().flatten().map(|entry| entry.path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == "index")).collect::<Vec<_>>()
    };
    let session = session_of(&dir).await;
    let all = rows(&session, "SELECT * FROM index_bitmap_file").await;
    let described = rows(&session, "DESCRIBE index_bitmap_file").await;
    let columns: Vec<&str> = described.iter().filter_map(|row| row.split(',').next()).collect();
    let statement = "SET 'paimon.pay.index_bitmap_file.file-index.read.enabled' = 'false'";
    for lost in [false, true] {
        for index in indexes() {
            match lost {
                true => std::fs::remove_file(index).unwrap(),
                false => std::fs::write(index, "damaged").unwrap(),
            }
        }
        let session = session_of(&dir).await;
        let mut refused = 0;
        for column in &columns {
            // a value that is there, so that statistics leave the file in; maps have none that is the largest
            let largest = format!("SELECT max({column}) FROM index_bitmap_file");
            let Ok(value) = ask(&session, &largest).await else { continue };
            let sql = format!("SELECT * FROM index_bitmap_file WHERE {column} = '{}'", value.concat());
            let Err(error) = ask(&session, &sql).await else { continue };
            if !["FileLost", "CorruptFileIndex"].contains(&error.code()) {
                continue;
            }
            refused += 1;
            assert_eq!(error.code(), if lost { "FileLost" } else { "CorruptFileIndex" }, "{sql}: {error:?}");
            assert!(error.hint().is_some_and(|hint| hint.contains(statement)), "{sql}: {error:?}");
        }
        assert!(refused > 0, "no index was asked: {columns:?}");
        rows(&session, statement).await;
        assert_eq!(rows(&session, "SELECT * FROM index_bitmap_file").await, all);
    }
}
