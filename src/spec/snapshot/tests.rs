use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{CommitKind, Snapshot, SnapshotId};
use crate::spec::hostile::{ENOUGH, cases, peak_of};
use crate::spec::statistics::TableStatistics;
use crate::spec::tag::{Consumer, Tag};

/// As Java 0.9 writes it.
const JAVA: &str = r#"{
  "version" : 3,
  "id" : 1,
  "schemaId" : 0,
  "baseManifestList" : "manifest-list-c2afce24-0",
  "deltaManifestList" : "manifest-list-c2afce24-1",
  "changelogManifestList" : null,
  "commitUser" : "golden-user",
  "commitIdentifier" : 9223372036854775807,
  "commitKind" : "APPEND",
  "timeMillis" : 1795953836147,
  "logOffsets" : { "0" : 12 },
  "totalRecordCount" : 5,
  "deltaRecordCount" : 5,
  "changelogRecordCount" : 0,
  "watermark" : -9223372036854775808
}"#;

fn edited(from: &str, to: &str) -> crate::Result<Snapshot> {
    assert!(JAVA.contains(from), "{from}");
    Snapshot::from_json(JAVA.replace(from, to).as_bytes())
}

#[test]
fn java_snapshot_is_read_and_written_back() {
    let snapshot = Snapshot::from_json(JAVA.as_bytes()).unwrap();
    assert_eq!(snapshot.id, SnapshotId(1));
    assert_eq!(snapshot.commit_identifier, i64::MAX);
    assert_eq!(snapshot.watermark, None);
    assert_eq!(snapshot.changelog_manifest_list, None);
    assert_eq!(snapshot.base_manifest_list_size, None);
    assert_eq!(Snapshot::from_json(snapshot.to_json().as_bytes()).unwrap(), snapshot);
}

#[test]
fn newest_writers_keys_are_read() {
    let text = JAVA.replace(
        "\"logOffsets\" : { \"0\" : 12 },",
        r#""baseManifestListSize": 1234, "deltaManifestListSize": 1337, "uuid": "33dd", "writerVersion": "python-2.1.0",
        "nextRowId": 40, "properties": {"a": "b"}, "operation": "WRITE", "statistics": "stat-1", "indexManifest": "i","#,
    );
    let snapshot = Snapshot::from_json(text.as_bytes()).unwrap();
    assert_eq!((snapshot.base_manifest_list_size, snapshot.next_row_id), (Some(1234), Some(40)));
    assert_eq!(snapshot.properties["a"], "b");
    assert_eq!(snapshot.operation.as_deref(), Some("WRITE"));
    assert_eq!(Snapshot::from_json(snapshot.to_json().as_bytes()).unwrap(), snapshot);
}

#[test]
fn old_files_lack_version_and_counts() {
    let text = JAVA
        .replace("\"version\" : 3,", "")
        .replace("\"totalRecordCount\" : 5,", "")
        .replace("\"deltaRecordCount\" : 5,", "\"deltaRecordCount\" : null,");
    let snapshot = Snapshot::from_json(text.as_bytes()).unwrap();
    assert_eq!((snapshot.version, snapshot.total_record_count, snapshot.delta_record_count), (1, None, None));
}

#[test]
fn damage_is_named_by_key() {
    for (from, to, telling) in [
        ("\"version\" : 3", "\"version\" : 4", "newer one is never guessed"),
        ("\"id\" : 1", "\"id\" : 0", "impossible 'id' 0"),
        ("\"schemaId\" : 0", "\"schemaId\" : -1", "schemaId"),
        ("\"APPEND\"", "\"MERGE\"", "commit kind 'MERGE'"),
        ("\"commitUser\"", "\"user\"", "lacks 'commitUser'"),
        ("\"timeMillis\" : 1795953836147", "\"timeMillis\" : \"now\"", "'timeMillis'"),
        ("\"totalRecordCount\" : 5", "\"totalRecordCount\" : 5.5", "'totalRecordCount'"),
        ("9223372036854775807", "9223372036854775808", "'commitIdentifier'"),
        ("\"baseManifestList\" :", "\"baseManifestListSize\" : -1, \"baseManifestList\" :", "baseManifestListSize"),
    ] {
        let error = edited(from, to).unwrap_err().to_string();
        assert!(error.contains(telling), "{to}: {error}");
    }
    assert_eq!(edited("\"APPEND\"", "\"ANALYZE\"").unwrap().commit_kind, CommitKind::Analyze);
}

#[test]
fn torn_file_is_malformed_so_that_a_reader_may_try_again() {
    for length in [0, 1, 40, JAVA.len() - 1] {
        assert_eq!(Snapshot::from_json(&JAVA.as_bytes()[..length]).unwrap_err().code(), "MalformedJson");
    }
}

/// A document of each kind that is read beside schemas.
const DOCUMENTS: &[&str] = &[
    JAVA,
    r#"{"version":3,"id":2,"schemaId":0,"baseManifestList":"a","deltaManifestList":"b","commitUser":"u",
        "commitIdentifier":2,"commitKind":"APPEND","timeMillis":1,"properties":{"a":"b"},"watermark":-9223372036854775808,
        "tagCreateTime":[2026,11,29,12,3,56,321953393],"tagTimeRetained":315360000.000000000}"#,
    r#"{"nextSnapshot": 5}"#,
    r#"{"snapshotId":5,"schemaId":0,"mergedRecordCount":100,"mergedRecordSize":8000,"colStats":{"c":{"colId":1,
        "distinctCount":5,"min":"1","max":"9","nullCount":0,"avgLen":4,"maxLen":4}}}"#,
];

/// Pieces of JSON that decoders stumble over.
fn odd_json() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "1e400",
        "-1",
        "9223372036854775808",
        "-9223372036854775809",
        "0.1",
        "null",
        "[]",
        "{}",
        "\"\"",
        "true",
        "\"\\ud800\"",
        "[[[[[[[[",
        "{\"a\":",
        "\u{feff}",
        "\0",
        "1e-400",
        "99999999999999999999999999",
    ];
    prop::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn mutated_snapshots_never_panic(at in any::<prop::sample::Index>(), with in any::<Vec<u8>>(), cut in 0_usize..40) {
        let mut bytes = JAVA.as_bytes().to_vec();
        let start = at.index(bytes.len());
        let end = (start + cut).min(bytes.len());
        bytes.splice(start..end, with);
        if let Ok(snapshot) = Snapshot::from_json(&bytes) {
            prop_assert_eq!(&Snapshot::from_json(snapshot.to_json().as_bytes()).unwrap(), &snapshot);
        }
    }

    #[test]
    fn mutated_and_random_documents_of_every_kind_never_panic(
        pick in 0..DOCUMENTS.len(),
        at in any::<prop::sample::Index>(),
        with in prop_oneof![any::<Vec<u8>>(), odd_json()],
        cut in 0_usize..40,
        noise in any::<Vec<u8>>(),
    ) {
        let mut bytes = DOCUMENTS[pick].as_bytes().to_vec();
        let start = at.index(bytes.len());
        let end = (start + cut).min(bytes.len());
        bytes.splice(start..end, with);
        for bytes in [&bytes, &noise] {
            let ((), peak) = peak_of(|| {
                let _ = Snapshot::from_json(bytes);
                let _ = Tag::from_json(bytes);
                let _ = Consumer::from_json(bytes);
                let _ = TableStatistics::from_json(bytes);
            });
            prop_assert!(peak < ENOUGH, "{peak} bytes of memory");
        }
    }
}
