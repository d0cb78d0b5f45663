use std::collections::BTreeMap;

use super::super::testbed::{Bed, T0, commit, open};
use super::*;
use crate::snapshot::Pin;
use crate::testing::golden;

fn tag(name: &str) -> PinRequest {
    PinRequest::Tag(name.to_string())
}

fn version(text: &str) -> PinRequest {
    PinRequest::Version(text.to_string())
}

#[tokio::test]
async fn b016_timestamps_around_the_snapshots() {
    let bed = Bed::with_snapshots(1, 2);
    let (first, second) = (T0 + 1000, T0 + 2000);
    for (at, id) in [(first, 1), (first + 1, 1), (second - 1, 1), (second, 2), (second + 86_400_000, 2), (i64::MAX, 2)]
    {
        assert_eq!(bed.id(PinRequest::TimestampMillis(at)).await.unwrap(), id, "{at}");
    }
    for at in [first - 1, first - 86_400_000, 0, i64::MIN] {
        let error = bed.id(PinRequest::TimestampMillis(at)).await.unwrap_err();
        assert_eq!(error.code(), "TimestampTooEarly");
        let kept = "the oldest snapshot kept is 1, committed 2026-04-16 02:00:01.000 UTC (1776304801000 ms)";
        assert!(error.to_string().contains(kept), "{error}");
    }
}

#[tokio::test]
async fn b016_empty_table_has_no_past_but_a_latest_state() {
    let bed = Bed::new();
    assert!(bed.pin(PinRequest::Latest).await.unwrap().snapshot.is_none());
    for request in [
        PinRequest::TimestampMillis(T0),
        PinRequest::SnapshotId(1),
        PinRequest::Watermark(1),
        version("1"),
        PinRequest::Commit { user: "u".to_string(), identifier: 1 },
        PinRequest::BeforeCommit { user: "u".to_string(), identifier: 1 },
    ] {
        let error = bed.pin(request.clone()).await.unwrap_err();
        assert_eq!(error.code(), "NoSnapshot", "{request}: {error}");
        assert!(error.to_string().contains("no snapshot"), "{error}");
    }
    assert_eq!(bed.pin(tag("x")).await.unwrap_err().code(), "TagNotFound");
}

#[tokio::test]
async fn equal_commit_times_give_the_highest_id() {
    let bed = Bed::new();
    for id in 1..=4 {
        let mut snapshot = commit(id);
        snapshot.time = if id == 4 { T0 + 1 } else { T0 };
        bed.commit(&snapshot);
    }
    assert_eq!(bed.id(PinRequest::TimestampMillis(T0)).await.unwrap(), 3);
}

#[tokio::test]
async fn commit_times_out_of_order_are_searched_one_by_one_and_said() {
    let bed = Bed::new();
    for (id, time) in [(1, 100), (2, 300), (3, 200), (4, 400), (5, 150), (6, 500)] {
        let mut snapshot = commit(id);
        snapshot.time = time;
        bed.commit(&snapshot);
    }
    for (at, id) in [(100, 1), (149, 1), (150, 5), (250, 5), (450, 5), (500, 6)] {
        assert_eq!(bed.id(PinRequest::TimestampMillis(at)).await.unwrap(), id, "{at}");
    }
    let pin = bed.pin(PinRequest::TimestampMillis(250)).await.unwrap();
    assert!(pin.notices[0].contains("not in order: snapshot 4"), "{:?}", pin.notices);
}

#[tokio::test]
async fn timestamp_before_everything_offers_a_tag_of_that_time() {
    let bed = Bed::with_snapshots(5, 7);
    bed.tag("old", &commit(2));
    bed.tag("older", &commit(1));
    let error = bed.id(PinRequest::TimestampMillis(T0 + 3000)).await.unwrap_err();
    assert!(error.to_string().contains("tag 'old' holds snapshot 2"), "{error}");
}

#[tokio::test]
async fn b019_tag_outlives_its_snapshot_and_is_named_for_it() {
    let bed = Bed::with_snapshots(3, 7);
    bed.tag("eod", &commit(2));
    let pin = bed.pin(version("eod")).await.unwrap();
    assert_eq!((pin.snapshot_id().unwrap().0, pin.tag.as_deref()), (2, Some("eod")));
    assert_eq!(pin.request, tag("eod"));
    pin.verify().await.unwrap();
    let error = bed.id(PinRequest::SnapshotId(2)).await.unwrap_err();
    assert_eq!(error.code(), "SnapshotExpired");
    assert_eq!(error.message(), "snapshot 2 has expired; available 3..7; tag 'eod' holds it");
    let error = bed.id(version("2")).await.unwrap_err();
    assert_eq!(error.code(), "SnapshotExpired");
}

#[tokio::test]
async fn b021_digits_mean_the_id_and_quoted_digits_the_tag_with_a_notice_each() {
    let bed = Bed::with_snapshots(1, 3);
    bed.tag("1", &commit(2));
    bed.tag("3", &commit(3));
    let id = bed.pin(PinRequest::SnapshotId(1)).await.unwrap();
    assert_eq!(id.snapshot_id().unwrap().0, 1);
    assert!(id.notices[0].contains("a tag '1' exists too and holds snapshot 2"), "{:?}", id.notices);
    let quoted = bed.pin(version("1")).await.unwrap();
    assert_eq!((quoted.snapshot_id().unwrap().0, quoted.tag.as_deref()), (2, Some("1")));
    assert!(quoted.notices[0].contains("snapshot 1 exists too"), "{:?}", quoted.notices);
    let other = bed.pin(version("2")).await.unwrap();
    assert_eq!((other.snapshot_id().unwrap().0, &other.request), (2, &PinRequest::SnapshotId(2)));
    assert_eq!(other.notices, Vec::<String>::new());
    assert_eq!(bed.pin(version("3")).await.unwrap().notices, Vec::<String>::new(), "both readings are one snapshot");
    assert_eq!(bed.id(tag("1")).await.unwrap(), 2);
}

#[tokio::test]
async fn ids_that_never_were_say_what_there_is() {
    let bed = Bed::with_snapshots(3, 7);
    bed.remove("snapshot/snapshot-5");
    for (id, code, word) in [
        (8, "SnapshotNotFound", "available 3..4, 6..7"),
        (0, "SnapshotNotFound", "numbers begin at 1"),
        (-4, "SnapshotNotFound", "numbers begin at 1"),
        (5, "SnapshotNotFound", "removed from between"),
        (2, "SnapshotExpired", "available 3..4, 6..7"),
    ] {
        let error = bed.id(PinRequest::SnapshotId(id)).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let error = bed.id(version("99999999999999999999")).await.unwrap_err();
    assert_eq!(error.code(), "SnapshotNotFound");
    assert_eq!(error.message(), "snapshot 99999999999999999999 does not exist; available 3..4, 6..7");
}

#[tokio::test]
async fn a_broken_tag_is_not_in_the_way_of_others() {
    let bed = Bed::with_snapshots(3, 7);
    bed.tag("eod", &commit(2));
    bed.write("tag/tag-6", "{");
    bed.write("tag/tag-zz", "<html>");
    assert_eq!(bed.id(PinRequest::SnapshotId(6)).await.unwrap(), 6);
    assert_eq!(bed.id(version("eod")).await.unwrap(), 2);
    assert_eq!(bed.id(version("5")).await.unwrap(), 5);
    for (request, said) in [
        (PinRequest::SnapshotId(2), "snapshot 2 has expired; available 3..7; tag 'eod' holds it"),
        (
            PinRequest::SnapshotId(1),
            "snapshot 1 has expired; available 3..7; tags '6', 'zz' cannot be read and may hold it",
        ),
    ] {
        let error = bed.id(request).await.unwrap_err();
        assert_eq!((error.code(), error.message()), ("SnapshotExpired", said));
    }
    let early = bed.id(PinRequest::TimestampMillis(T0 + 2500)).await.unwrap_err();
    assert!(early.to_string().contains("tag 'eod' holds snapshot 2"), "{early}");
    let commit = PinRequest::Commit { user: "flink".to_string(), identifier: 2 };
    let commit = bed.id(commit).await.unwrap_err();
    assert!(commit.to_string().contains("tag 'eod' holds snapshot 2"), "{commit}");
    // asked for by its name it is told
    for asked in [version("6"), tag("zz")] {
        let error = bed.id(asked.clone()).await.unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::Corrupt, "{asked}: {error}");
        assert!(error.to_string().contains("tag-"), "{error}");
    }
}

#[tokio::test]
async fn a_broken_snapshot_is_not_in_the_way_of_the_tag_of_its_number() {
    let bed = Bed::with_snapshots(1, 3);
    bed.tag("1", &commit(2));
    bed.write("snapshot/snapshot-1", "{");
    assert_eq!(bed.id(version("1")).await.unwrap(), 2);
}

#[tokio::test]
async fn unknown_version_offers_tags_or_the_branch() {
    let bed = Bed::with_snapshots(1, 1);
    bed.tag("eod-0416", &commit(1));
    bed.write("branch/branch-fix/schema/schema-0", "{}");
    let error = bed.id(version("eod-0417")).await.unwrap_err();
    assert_eq!(error.code(), "TagNotFound");
    assert!(error.to_string().contains("did you mean 'eod-0416'?"), "{error}");
    let error = bed.id(version("fix")).await.unwrap_err();
    assert!(error.to_string().contains("orders$branch_fix"), "{error}");
}

#[tokio::test]
async fn watermark_gives_the_oldest_at_or_after_it() {
    let table = open(&golden::java_warehouse().unwrap().join("golden.db/watermarks")).await;
    let id = async |request| {
        let pin = Pin::resolve(&table, request, &BTreeMap::new()).await?;
        Ok::<_, Error>(pin.snapshot_id().unwrap().0)
    };
    for (watermark, wanted) in [(i64::MIN, 2), (600, 2), (1000, 2), (1001, 5), (2000, 5)] {
        assert_eq!(id(PinRequest::Watermark(watermark)).await.unwrap(), wanted, "{watermark}");
    }
    assert_eq!(id(version("watermark-600")).await.unwrap(), 2);
    let error = id(PinRequest::Watermark(2001)).await.unwrap_err();
    assert_eq!(error.code(), "WatermarkNotReached");
    assert!(error.to_string().contains("the highest is 1970-01-01 00:00:02.000 UTC (2000 ms), at snapshot 5"));
    let none = Bed::with_snapshots(1, 2);
    let error = none.id(PinRequest::Watermark(0)).await.unwrap_err();
    assert!(error.to_string().contains("no snapshot has a watermark"), "{error}");
}

#[tokio::test]
async fn commit_identity_gives_its_newest_snapshot_and_before_it_the_one_before_its_first() {
    let table = open(&golden::java_warehouse().unwrap().join("golden.db/history")).await;
    let id = async |request| {
        let pin = Pin::resolve(&table, request, &BTreeMap::new()).await?;
        Ok::<_, Error>(pin.snapshot_id().unwrap().0)
    };
    let at = |identifier| PinRequest::Commit { user: "golden-user".to_string(), identifier };
    let before = |identifier| PinRequest::BeforeCommit { user: "golden-user".to_string(), identifier };
    assert_eq!(id(at(9)).await.unwrap(), 6, "APPEND 5 and COMPACT 6 are one commit");
    assert_eq!(id(at(10)).await.unwrap(), 7);
    assert_eq!(id(before(10)).await.unwrap(), 6);
    assert_eq!(id(before(9)).await.unwrap_err().code(), "SnapshotExpired");
    let tagged = id(at(2)).await.unwrap_err();
    assert_eq!(tagged.code(), "CommitNotFound");
    assert!(tagged.to_string().contains("VERSION AS OF 't2'"), "{tagged}");
    let missing = id(at(99)).await.unwrap_err();
    assert!(missing.to_string().contains("available 5..7, of 'golden-user' identifiers 9 to 10"), "{missing}");
    let stranger = id(PinRequest::Commit { user: "nobody".to_string(), identifier: 1 }).await.unwrap_err();
    assert!(stranger.to_string().contains("of users 'golden-user'"), "{stranger}");
}

#[tokio::test]
async fn nothing_is_before_the_first_commit_and_gaps_are_not_jumped() {
    let bed = Bed::with_snapshots(1, 4);
    let before = |identifier| PinRequest::BeforeCommit { user: "flink".to_string(), identifier };
    let error = bed.id(before(1)).await.unwrap_err();
    assert!(error.to_string().contains("made the first snapshot of the table"), "{error}");
    assert_eq!(bed.id(before(4)).await.unwrap(), 3);
    bed.remove("snapshot/snapshot-3");
    assert_eq!(bed.id(before(4)).await.unwrap_err().code(), "SnapshotNotFound");
}

#[tokio::test]
async fn compacted_full_takes_the_newest_full_compaction() {
    let bed = Bed::new();
    for (id, kind, identifier) in
        [(1, "APPEND", 1), (2, "COMPACT", 4), (3, "APPEND", 5), (4, "COMPACT", 5), (5, "APPEND", 6)]
    {
        let mut snapshot = commit(id);
        (snapshot.kind, snapshot.identifier) = (kind, identifier);
        bed.commit(&snapshot);
    }
    let table = bed.table().await;
    let id = async |options: &[(&str, &str)]| {
        let mut given = BTreeMap::from([("scan.mode".to_string(), "compacted-full".to_string())]);
        given.extend(options.iter().map(|(k, v)| (k.to_string(), v.to_string())));
        let pin = Pin::resolve(&table, PinRequest::Latest, &given).await.unwrap();
        (pin.snapshot_id().unwrap().0, pin.notices.len())
    };
    assert_eq!(id(&[]).await, (4, 0));
    assert_eq!(id(&[("full-compaction.delta-commits", "2")]).await, (2, 0));
    assert_eq!(id(&[("full-compaction.delta-commits", "7")]).await, (5, 1));
}

#[tokio::test]
async fn creation_timestamp_takes_the_first_snapshot_at_or_after_it() {
    let bed = Bed::with_snapshots(1, 3);
    let from = PinRequest::FromCreationTimestamp;
    assert_eq!(bed.id(from(T0 + 1001)).await.unwrap(), 2);
    assert_eq!(bed.id(from(T0 + 2000)).await.unwrap(), 2);
    for at in [T0, T0 + 99_000] {
        let error = bed.id(from(at)).await.unwrap_err();
        assert_eq!(error.code(), "UnsupportedOption");
        assert!(error.context().contains(&("option", "scan.creation-time-millis".to_string())), "{error}");
    }
}

#[tokio::test]
async fn golden_expired_and_empty_commits_resolve() {
    let golden = golden::java_warehouse().unwrap().join("golden.db");
    let expired = open(&golden.join("expired")).await;
    let error = Pin::resolve(&expired, PinRequest::SnapshotId(3), &BTreeMap::new()).await.unwrap_err();
    assert_eq!(error.message(), "snapshot 3 has expired; available 13..14");
    let commits = open(&golden.join("empty_commits")).await;
    let latest = Pin::resolve(&commits, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
    assert_eq!(latest.snapshot_id().unwrap().0, 3);
    let none = open(&golden.join("no_snapshot")).await;
    assert!(Pin::resolve(&none, PinRequest::Latest, &BTreeMap::new()).await.unwrap().snapshot.is_none());
}

#[tokio::test]
async fn snapshots_kept_are_told_alike_with_and_without_a_gap() {
    let bed = Bed::with_snapshots(1, 7);
    bed.remove("snapshot/snapshot-4");
    let commit = PinRequest::Commit { user: "another-user".to_string(), identifier: 100 };
    for request in [PinRequest::SnapshotId(4), commit] {
        let error = bed.id(request).await.unwrap_err();
        assert!(error.message().contains("available 1..3, 5..7"), "{error}");
    }
}
