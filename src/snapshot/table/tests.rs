use futures::TryStreamExt;

use super::super::testbed::{Bed, T0, commit, open, schema};
use super::*;
use crate::spec::SchemaId;
use crate::testing::golden;

async fn golden_table(name: &str) -> Arc<Table> {
    open(&golden::java_warehouse().unwrap().join("golden.db").join(name)).await
}

fn ids(numbers: &[i64]) -> Vec<SnapshotId> {
    numbers.iter().copied().map(SnapshotId).collect()
}

#[tokio::test]
async fn b082_latest_is_found_whatever_the_hint_says() {
    for hint in [Some("5"), Some("3"), Some(""), Some("abc"), Some("9"), Some("0"), Some("-1"), Some(" 5\n"), None] {
        let bed = Bed::with_snapshots(1, 5);
        match hint {
            Some(text) => bed.write("snapshot/LATEST", text),
            None => bed.remove("snapshot/LATEST"),
        }
        let table = bed.table().await;
        assert_eq!(table.latest_snapshot_id().await.unwrap(), Some(SnapshotId(5)), "{hint:?}");
        let (latest, notice) = table.latest_noticed().await.unwrap();
        assert_eq!(latest.unwrap().id.0, 5, "{hint:?}");
        assert_eq!(notice.is_some(), hint == Some("9"), "{hint:?}: {notice:?}");
    }
    let bed = Bed::with_snapshots(1, 5);
    bed.write("snapshot/LATEST", "9223372036854775807");
    assert_eq!(bed.table().await.latest_snapshot_id().await.unwrap(), Some(SnapshotId(5)));
    bed.write("snapshot/LATEST", "99");
    let (_, notice) = bed.table().await.latest_noticed().await.unwrap();
    assert!(notice.unwrap().contains("names snapshot 99, which does not exist"));
}

/// An empty table has no hint: under one, its snapshots are lost, whoever asks for them.
#[tokio::test]
async fn snapshots_that_are_lost_are_no_empty_table() {
    let bed = Bed::with_snapshots(1, 3);
    for id in 1..=3 {
        bed.remove(&format!("snapshot/snapshot-{id}"));
    }
    for (hint, lost) in [("3", true), ("", false), ("abc", false), ("0", false)] {
        bed.write("snapshot/LATEST", hint);
        let table = bed.table().await;
        let latest = table.latest_noticed().await.err();
        let listed = table.snapshots().await.err();
        let asked = table.snapshot(SnapshotId(2)).await.err();
        let named = asked.as_ref().map(Error::code);
        assert_eq!(named, Some(if lost { "SnapshotsLost" } else { "NoSnapshot" }), "{hint}");
        for error in [&latest, &listed] {
            assert_eq!(error.as_ref().map(Error::code), lost.then_some("SnapshotsLost"), "{hint}");
        }
        assert!(!lost || latest.unwrap().to_string().contains("snapshot-3"), "{hint}");
    }
}

#[tokio::test]
async fn b082_earliest_hint_at_an_expired_snapshot_is_not_believed() {
    for (hint, earliest) in [("1", 3), ("3", 3), ("4", 4), ("", 3), ("abc", 3), ("99", 3)] {
        let bed = Bed::with_snapshots(3, 5);
        bed.write("snapshot/EARLIEST", hint);
        let found = bed.table().await.earliest_snapshot_id().await.unwrap();
        assert_eq!(found, Some(SnapshotId(earliest)), "{hint:?}");
    }
}

#[tokio::test]
async fn listing_passes_over_what_is_no_snapshot() {
    let bed = Bed::with_snapshots(9, 11);
    for name in [
        "snapshot-",
        "snapshot-x",
        "snapshot-007",
        "snapshot-+3",
        "snapshot--1",
        ".snapshot-12.tmp",
        "snapshot-99999999999999999999",
        "snapshot-12.crc",
    ] {
        bed.write(&format!("snapshot/{name}"), "?");
    }
    std::fs::create_dir(bed.root.join("snapshot/snapshot-13")).unwrap();
    assert_eq!(bed.table().await.snapshot_ids().await.unwrap(), ids(&[9, 10, 11]));
}

#[tokio::test]
async fn table_without_snapshot_folder_is_empty() {
    let table = Bed::new().table().await;
    assert_eq!(table.latest_snapshot_id().await.unwrap(), None);
    assert_eq!(table.earliest_snapshot_id().await.unwrap(), None);
    assert!(table.latest_noticed().await.unwrap().0.is_none());
    assert_eq!(table.snapshots().await.unwrap(), []);
    assert_eq!(table.snapshot(SnapshotId(1)).await.unwrap_err().code(), "NoSnapshot");
}

#[tokio::test]
async fn half_written_snapshot_is_looked_at_again() {
    let bed = Bed::with_snapshots(1, 1);
    let whole = commit(1).json();
    bed.write("snapshot/snapshot-1", &whole[..40]);
    let path = bed.root.join("snapshot/snapshot-1");
    let writer = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        std::fs::write(path, whole).unwrap();
    });
    let read = bed.table().await.snapshot(SnapshotId(1)).await.unwrap();
    writer.await.unwrap();
    assert_eq!(read.time_millis, T0 + 1000);
}

#[tokio::test]
async fn damaged_documents_name_their_file() {
    let bed = Bed::with_snapshots(1, 3);
    bed.write("snapshot/snapshot-1", "{\"version\": 3, \"id\": 1");
    bed.write("snapshot/snapshot-2", &commit(3).json());
    bed.write("snapshot/snapshot-3", &commit(3).json().replace("\"version\":3", "\"version\":99"));
    let table = bed.table().await;
    for (id, kind, word) in [
        (1, crate::ErrorKind::Corrupt, "snapshot/snapshot-1"),
        (2, crate::ErrorKind::Corrupt, "holds snapshot 3"),
        (3, crate::ErrorKind::Unsupported, "snapshot/snapshot-3"),
    ] {
        let error = table.snapshot(SnapshotId(id)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(word), "{error}");
        assert!(error.to_string().contains("pay.orders"), "{error}");
    }
    bed.write("schema/schema-1", &schema(0, &[(0, "a")], &[]));
    let error = table.latest_schema().await.unwrap_err();
    assert!(error.to_string().contains("schema/schema-1"), "{error}");
}

#[tokio::test]
async fn b084_listing_skips_snapshots_that_vanish() {
    let bed = Bed::with_snapshots(1, 5);
    let table = bed.table().await;
    let files = table.snapshot_files().await.unwrap();
    for id in [1, 2, 5] {
        bed.remove(&format!("snapshot/snapshot-{id}"));
    }
    let read: Vec<_> = table.read_listed(files).try_collect().await.unwrap();
    assert_eq!(read.iter().map(|snapshot| snapshot.id.0).collect::<Vec<_>>(), [3, 4]);
}

#[tokio::test]
async fn number_used_again_is_read_anew() {
    let bed = Bed::with_snapshots(1, 3);
    let table = bed.table().await;
    assert_eq!(table.snapshots().await.unwrap().len(), 3);
    let mut again = commit(3);
    (again.user, again.time) = ("spark-repair", T0 + 90_000);
    bed.commit(&again);
    assert_eq!(table.snapshots().await.unwrap()[2].commit_user, "spark-repair");
    assert_eq!(table.snapshot(SnapshotId(3)).await.unwrap().commit_user, "spark-repair");

    bed.write("schema/schema-0", &schema(0, &[(0, "a"), (1, "longer_name")], &[]));
    assert_eq!(table.latest_schema().await.unwrap().fields.len(), 2);
    assert_eq!(table.schema(SchemaId(0)).await.unwrap().fields.len(), 2);
}

#[tokio::test]
async fn snapshots_and_schemas_are_read_once_while_they_stay() {
    let bed = Bed::with_snapshots(1, 20);
    let table = bed.table().await;
    table.snapshots().await.unwrap();
    table.latest_schema().await.unwrap();
    let before = table.storage().counts();
    table.snapshots().await.unwrap();
    table.latest_schema().await.unwrap();
    table.schema(SchemaId(0)).await.unwrap();
    let counts = table.storage().counts() - before;
    assert_eq!((counts.gets, counts.lists), (0, 2));
}

#[tokio::test]
async fn latest_needs_no_listing_when_the_hint_is_right() {
    let bed = Bed::with_snapshots(1, 20);
    let table = bed.table().await;
    table.latest_noticed().await.unwrap();
    let counts = table.storage().counts();
    assert_eq!((counts.gets, counts.heads, counts.lists), (2, 1, 0));
}

#[tokio::test]
async fn tags_keep_awkward_names() {
    let bed = Bed::with_snapshots(1, 2);
    let names = ["eod 0416", "50%", "a%2Fb", "v1#2", "日切", "with.dot", "x?"];
    for name in names {
        bed.tag(name, &commit(1));
    }
    bed.write("tag/.hidden", "?");
    let table = bed.table().await;
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let tags = table.tags().await.unwrap();
    assert_eq!(tags.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), sorted);
    for name in names {
        assert_eq!(table.tag(name).await.unwrap().unwrap().snapshot.id.0, 1, "{name}");
    }
    for name in ["nope", "", "a/b", "..", "x\ny"] {
        assert!(table.tag(name).await.unwrap().is_none(), "{name:?}");
    }
}

#[tokio::test]
async fn golden_history_has_its_tags_and_branches() {
    let table = golden_table("history").await;
    assert_eq!(table.snapshot_ids().await.unwrap(), ids(&[5, 6, 7]));
    assert_eq!(table.earliest_snapshot_id().await.unwrap(), Some(SnapshotId(5)));
    let tags = table.tags().await.unwrap();
    let held: Vec<(&str, i64)> = tags.iter().map(|(name, tag)| (name.as_str(), tag.snapshot.id.0)).collect();
    assert_eq!(held, [("t1", 1), ("t2", 2), ("with.retention", 2)]);
    assert!(tags[2].1.time_retained.is_some());
    assert_eq!(table.branches().await.unwrap(), ["b1", "b_empty"]);
    let branch = table.branch("b1").await.unwrap();
    assert_eq!(branch.snapshot_ids().await.unwrap(), ids(&[2, 3, 4]));
    assert_eq!(branch.tag_names().await.unwrap(), ["t2"]);
    assert_eq!(branch.root(), table.root(), "data and manifests stay with the table");
    assert!(branch.manifest_location("m").unwrap().to_string().ends_with("/history/manifest/m"));
    assert!(table.branch("b_empty").await.unwrap().latest_noticed().await.unwrap().0.is_none());
    assert_eq!(branch.branch("main").await.unwrap().snapshot_ids().await.unwrap(), ids(&[5, 6, 7]));
}

#[tokio::test]
async fn golden_consumers_and_changelogs() {
    let consumers = golden_table("consumers").await.consumers().await.unwrap();
    assert_eq!(consumers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["c1", "my-consumer"]);
    let table = golden_table("pk_changelog_decoupled").await;
    assert_eq!(table.changelog_ids().await.unwrap(), ids(&[1, 2, 3, 4, 5, 6]));
    assert_eq!(table.changelog(SnapshotId(2)).await.unwrap().id.0, 2);
    let error = table.changelog(SnapshotId(7)).await.unwrap_err();
    assert!(error.to_string().contains("kept are 1..6"), "{error}");
    assert_eq!(table.snapshot(SnapshotId(2)).await.unwrap_err().code(), "SnapshotExpired");
}
