//! Legal tables beside those that fire, of the detectors with several rules.

use std::sync::Arc;

use super::*;
use crate::memory::{MemoryBudget, Unbounded};
use crate::spec::index_manifest::{decode_index_manifest, encode_index_manifest};

const ALL: SnapshotRange = SnapshotRange { first: i64::MIN, last: i64::MAX };

/// What only reading the rows shows: detector and severity.
async fn read_deep(bed: &Bed) -> Vec<(&'static str, Severity)> {
    let budget: Arc<dyn MemoryBudget> = Arc::new(Unbounded);
    let found = deep(&bed.history().await, ALL, &SessionZone::utc(), &budget).await.unwrap();
    found.into_iter().map(|finding| (finding.detector, finding.severity)).collect()
}

/// The severities of one detector.
async fn severities(bed: &Bed, detector: &str) -> Vec<Severity> {
    read_deep(bed).await.into_iter().filter(|(own, _)| *own == detector).map(|(_, severity)| severity).collect()
}

#[tokio::test]
async fn d1_partitions_that_expire_in_batches() {
    let run = |adds: bool| {
        let mut bed = Bed::partitioned(&[], &["dt"]);
        for (identifier, dt) in [(1, "a"), (2, "b")] {
            let rows = [json!({"id": 1, "v": "x", "dt": dt})];
            bed.table.commit().file(FileSpec::rows(&rows)).user("cdc").identifier(identifier).publish().unwrap();
        }
        for file in bed.table.live_files().unwrap() {
            let commit = bed.table.commit().remove(&file.file.file_name).kind(CommitKind::Overwrite);
            let commit =
                if adds { commit.file(FileSpec::rows(&[json!({"id": 2, "v": "y", "dt": "c"})])) } else { commit };
            commit.user("expire").identifier(7).publish().unwrap();
        }
        bed
    };
    assert!(!run(false).fired().await.contains(&"D-1"), "each deletes one partition, under one identity");
    assert_eq!(ids(&run(true).only("D-1").await), [3, 4], "what adds rows is no expiry");
}

#[tokio::test]
async fn d4_releases_of_a_writer_that_take_turns() {
    let run = async |releases: &[&str]| {
        let mut bed = Bed::new(&[]);
        for (snapshot, release) in (1i64..).zip(releases) {
            bed.commit("cdc", snapshot, snapshot * 10..snapshot * 10 + 2);
            bed.patch(snapshot, |document| document["writerVersion"] = json!(release));
        }
        bed
    };
    let finding = run(&["1.0", "1.1", "1.0", "1.1"]).await.only("D-4").await;
    assert_eq!((finding.severity, finding.confidence), (Severity::Warning, Confidence::Heuristic));
    assert_eq!(ids(&finding), [1, 2, 3, 4]);
    // an upgrade, and one that was taken back
    for releases in [&["1.0", "1.0", "1.1", "1.1"], &["1.0", "1.1", "1.0", "1.0"]] {
        assert!(!run(releases).await.fired().await.contains(&"D-4"), "{releases:?}");
    }
}

#[tokio::test]
async fn d13_keys_that_move_to_another_partition() {
    let make = |deletion: bool| {
        let dir = tempfile::tempdir().unwrap();
        let columns = [("id", "INT NOT NULL"), ("v", "STRING"), ("dt", "STRING NOT NULL")];
        let spec = TableSpec::new(&columns).primary_key(&["id"]).partitioned_by(&["dt"]);
        let spec = spec.option("bucket", "-1").option("deletion-vectors.enabled", "true");
        let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
        let row = |dt: &str, kind: &str| json!({"id": 1, "v": "x", "dt": dt, "_ROW_KIND": kind});
        for dt in ["a", "b"] {
            let file = FileSpec::rows(&[row(dt, "+I")]).level(5);
            table.commit().file(file).kind(CommitKind::Compact).publish().unwrap();
        }
        if deletion {
            table.append(&[row("a", "-D")]).unwrap();
        }
        Bed { dir, table }
    };
    assert_eq!(severities(&make(true), "D-13").await, [Severity::Info], "the deletion waits for a compaction");
    assert_eq!(severities(&make(false), "D-13").await, [Severity::Error]);
}

#[tokio::test]
async fn d16_compactions_that_drop_old_records() {
    for (options, severity) in
        [(&[][..], Severity::Error), (&[("record-level.expire-time", "1 d")][..], Severity::Info)]
    {
        let mut bed = Bed::new(options);
        bed.commit("cdc", 1, 0..5);
        let kept = [json!({"id": 1, "v": "cdc", "dt": "2026-04-16", "_SEQUENCE_NUMBER": 1})];
        let whole = bed.table.commit().remove_all().file(FileSpec::rows(&kept).level(5)).kind(CommitKind::Compact);
        whole.user("cdc").identifier(1).publish().unwrap();
        assert_eq!(read_deep(&bed).await, [("D-16", severity)], "{options:?}");
    }
}

#[tokio::test]
async fn d14_vectors_that_do_not_fit() {
    let make = || {
        let mut bed = Bed::new(&[("deletion-vectors.enabled", "true")]);
        bed.commit_of("c", 1, CommitKind::Compact, 5, 0..10, None);
        let name = bed.table.live_files().unwrap().remove(0).file.file_name;
        bed.table.commit().delete_positions(&name, &[0, 1]).kind(CommitKind::Compact).user("c").publish().unwrap();
        bed
    };
    let change = |bed: &Bed, change: fn(&mut Vec<crate::spec::IndexFileMeta>)| {
        let file = fs::read(bed.table.root().join("snapshot/snapshot-2")).unwrap();
        let name = serde_json::from_slice::<Value>(&file).unwrap()["indexManifest"].as_str().unwrap().to_string();
        let path = bed.table.root().join("manifest").join(&name);
        let mut files = decode_index_manifest(&fs::read(&path).unwrap(), &name).unwrap();
        change(&mut files);
        fs::write(&path, encode_index_manifest(&files).unwrap()).unwrap();
    };
    assert!(!make().fired().await.contains(&"D-14"));
    // as many as there are can be deleted, and no more
    for (deleted, fires) in [(10, false), (11, true)] {
        let bed = make();
        let cardinality: fn(&mut Vec<crate::spec::IndexFileMeta>) = match deleted {
            10 => |files| files[0].deletion_vectors.as_mut().unwrap()[0].cardinality = Some(10),
            _ => |files| files[0].deletion_vectors.as_mut().unwrap()[0].cardinality = Some(11),
        };
        change(&bed, cardinality);
        let found = bed.found().await;
        let told = found.iter().find(|finding| finding.detector == "D-14");
        assert_eq!(told.is_some_and(|told| told.evidence.contains("deletes 11 rows of 10")), fires, "{found:#?}");
    }
    // vectors of two data files, one index file for each
    let mut bed = Bed::new(&[("deletion-vectors.enabled", "true")]);
    let rows = |ids: std::ops::Range<i64>| -> Vec<Value> {
        ids.map(|id| json!({"id": id, "v": "x", "dt": "d", "_SEQUENCE_NUMBER": id})).collect()
    };
    let both = bed.table.commit().file(FileSpec::rows(&rows(0..5)).level(5)).file(FileSpec::rows(&rows(5..9)).level(5));
    both.kind(CommitKind::Compact).user("c").publish().unwrap();
    let names: Vec<String> = bed.table.live_files().unwrap().into_iter().map(|entry| entry.file.file_name).collect();
    let vectors = names.iter().fold(bed.table.commit(), |commit, name| commit.delete_positions(name, &[0]));
    vectors.kind(CommitKind::Compact).user("c").publish().unwrap();
    assert!(!bed.fired().await.contains(&"D-14"), "{:#?}", bed.found().await);
    change(&bed, |files| {
        let mut other = files[0].clone();
        other.file_name = "index-other-0".to_string();
        other.deletion_vectors = Some(files[0].deletion_vectors.as_mut().unwrap().split_off(1));
        (files[0].row_count, other.row_count) = (1, 1);
        files.push(other);
    });
    let found = bed.found().await;
    let told = found.iter().any(|one| one.detector == "D-14" && one.evidence.contains("two files of vectors"));
    assert!(told, "{found:#?}");
}
