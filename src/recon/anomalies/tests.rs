//! For each detector a table that fires it and a legal one that must not.

mod commits;
mod legal;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::query::QueryEnv;
use crate::snapshot::{Pin, PinRequest};
use crate::spec::{CommitKind, ManifestEntry};
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

/// A table that a test makes, and what is found in it.
struct Bed {
    dir: tempfile::TempDir,
    table: TableBuilder,
}

const MINUTE: i64 = 60_000;
const START: i64 = 1_776_300_000_000;

impl Bed {
    fn new(options: &[(&str, &str)]) -> Self {
        Self::partitioned(options, &[])
    }

    fn partitioned(options: &[(&str, &str)], partition: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key: Vec<&str> = partition.iter().copied().chain(["id"]).collect();
        let columns = [("id", "INT NOT NULL"), ("v", "STRING"), ("dt", "STRING NOT NULL")];
        let mut spec = TableSpec::new(&columns).primary_key(&key).partitioned_by(partition).option("bucket", "1");
        for (name, value) in options {
            spec = spec.option(name, value);
        }
        let table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
        Self { dir, table }
    }

    /// A commit of some keys.
    fn commit(&mut self, user: &str, identifier: i64, keys: std::ops::Range<i64>) -> i64 {
        self.commit_of(user, identifier, CommitKind::Append, 0, keys, None)
    }

    fn commit_of(
        &mut self,
        user: &str,
        identifier: i64,
        kind: CommitKind,
        level: i32,
        keys: std::ops::Range<i64>,
        time: Option<i64>,
    ) -> i64 {
        let rows: Vec<Value> =
            keys.map(|id| json!({"id": id, "v": user, "dt": "2026-04-16", "_SEQUENCE_NUMBER": id})).collect();
        let mut commit = self.table.commit().file(FileSpec::rows(&rows).level(level)).user(user).identifier(identifier);
        commit = commit.kind(kind);
        if let Some(time) = time {
            commit = commit.time_millis(time);
        }
        commit.publish().unwrap().id.0
    }

    /// A commit whose file was made at a time of its own; as an OVERWRITE it replaces all there is.
    fn stamped(&mut self, user: &str, kind: CommitKind, time: i64, created: i64, keys: std::ops::Range<i64>) {
        let rows: Vec<Value> = keys.map(|id| json!({"id": id, "v": user, "dt": "d", "_SEQUENCE_NUMBER": id})).collect();
        let mut aside = TableBuilder::open(self.dir.path(), "d", "t").unwrap();
        let prepared = aside.commit().file(FileSpec::rows(&rows)).prepare().unwrap();
        let mut entry = entries_of(&self.table, &prepared.snapshot().delta_manifest_list).remove(0);
        // no attempt of a commit
        for list in [&prepared.snapshot().base_manifest_list, &prepared.snapshot().delta_manifest_list] {
            fs::remove_file(self.table.root().join("manifest").join(list)).unwrap();
        }
        entry.file.creation_time_millis = Some(created);
        let commit = self.table.commit().entry(entry).user(user).kind(kind).time_millis(time);
        if kind == CommitKind::Overwrite { commit.remove_all() } else { commit }.publish().unwrap();
    }

    /// Changes the file of a snapshot by hand.
    fn patch(&self, snapshot: i64, change: impl Fn(&mut Value)) {
        let file = self.table.root().join(format!("snapshot/snapshot-{snapshot}"));
        let mut document: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        change(&mut document);
        fs::write(&file, document.to_string()).unwrap();
    }

    /// Gives the lists of a snapshot the names that a committer object gives.
    fn by_instance(&self, snapshot: i64, instance: u8) {
        self.patch(snapshot, |document| {
            let name = format!("manifest-list-{instance:08x}-0000-0000-0000-000000000000-{snapshot}");
            let manifest = self.table.root().join("manifest");
            let old = document["deltaManifestList"].as_str().unwrap().to_string();
            fs::rename(manifest.join(&old), manifest.join(&name)).unwrap();
            document["deltaManifestList"] = json!(name);
        });
    }

    async fn history(&self) -> History {
        history(self.dir.path()).await
    }

    /// Numbers of the detectors that fire.
    async fn fired(&self) -> Vec<&'static str> {
        let found = self.found().await;
        found.iter().map(|finding| finding.detector).collect::<BTreeSet<_>>().into_iter().collect()
    }

    async fn found(&self) -> Vec<Finding> {
        anomalies(&self.history().await, &SessionZone::utc()).await.unwrap()
    }

    async fn only(&self, detector: &str) -> Finding {
        let found = self.found().await;
        let of: Vec<&Finding> = found.iter().filter(|finding| finding.detector == detector).collect();
        assert_eq!(of.len(), 1, "{found:#?}");
        of[0].clone()
    }
}

async fn history(warehouse: &Path) -> History {
    let catalog = FilesystemCatalog::open(&warehouse.to_string_lossy(), &BTreeMap::new()).await.unwrap();
    let table = catalog.table("d", "t").await.unwrap();
    let pin = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
    History::load(&pin, &QueryEnv::new()).await.unwrap()
}

fn ids(finding: &Finding) -> Vec<i64> {
    finding.snapshots.iter().map(|id| id.0).collect()
}

#[tokio::test]
async fn a_stream_with_checkpoints_compactions_and_a_repair_is_quiet() {
    let mut bed = Bed::new(&[]);
    for checkpoint in 1..=6 {
        bed.commit("cdc", checkpoint, checkpoint * 10..checkpoint * 10 + 5);
        let rows = [json!({"id": checkpoint, "v": "c", "dt": "2026-04-16", "_SEQUENCE_NUMBER": checkpoint})];
        let whole = bed.table.commit().remove_all().file(FileSpec::rows(&rows).level(5));
        whole.kind(CommitKind::Compact).user("cdc").identifier(checkpoint).publish().unwrap();
    }
    bed.commit("repair", i64::MAX, 100..103);
    bed.commit("repair", i64::MAX, 200..203);
    assert_eq!(bed.fired().await, Vec::<&str>::new(), "{:#?}", bed.found().await);
}

#[tokio::test]
async fn d1_one_identity_published_twice() {
    let mut bed = Bed::new(&[]);
    bed.commit("cdc", 1, 0..5);
    bed.commit("cdc", 2, 5..9);
    bed.commit("cdc", 2, 9..12);
    let finding = bed.only("D-1").await;
    assert_eq!((ids(&finding), finding.users.as_slice()), (vec![2, 3], &["cdc".to_string()][..]));
    assert_eq!((finding.severity, finding.confidence), (Severity::Error, Confidence::Exact));
    // batches under one identity, and a compaction beside its rows, are legal
    let mut legal = Bed::new(&[]);
    legal.commit("batch", i64::MAX, 0..5);
    legal.commit("batch", i64::MAX, 5..9);
    legal.commit("cdc", 1, 10..12);
    legal.commit_of("cdc", 1, CommitKind::Compact, 5, 20..22, None);
    assert!(!legal.fired().await.contains(&"D-1"));
}

#[tokio::test]
async fn d2_snapshots_missing_from_between() {
    let mut bed = Bed::new(&[]);
    for checkpoint in 1..=5 {
        bed.commit("cdc", checkpoint, checkpoint * 10..checkpoint * 10 + 2);
    }
    bed.table.expire(1).unwrap();
    assert!(!bed.fired().await.contains(&"D-2"), "those before the oldest have expired");
    bed.table.expire(3).unwrap();
    let finding = bed.only("D-2").await;
    assert_eq!(ids(&finding), [2, 4]);
    assert!(finding.evidence.contains("snapshot 3 is not there"), "{finding:?}");
    // an expiry that is under way removes from the oldest on, and has written its hint
    fs::write(bed.table.root().join("snapshot/EARLIEST"), "4").unwrap();
    assert!(!bed.fired().await.contains(&"D-2"));
}

#[tokio::test]
async fn d3_identifiers_that_fall() {
    let mut bed = Bed::new(&[]);
    bed.commit("cdc", 7, 0..5);
    bed.commit("cdc", 3, 5..9);
    assert_eq!(ids(&bed.only("D-3").await), [1, 2]);
    // after the end of bounded input a job may begin anew
    let mut legal = Bed::new(&[]);
    legal.commit("cdc", 7, 0..5);
    legal.commit("cdc", i64::MAX, 5..9);
    legal.commit("cdc", 1, 9..12);
    legal.commit("other", 0, 12..13);
    assert!(!legal.fired().await.contains(&"D-3"));
}

#[tokio::test]
async fn d4_two_committers_share_a_user() {
    let mut bed = Bed::new(&[]);
    for (snapshot, instance) in [(1, 1), (2, 2), (3, 1)] {
        bed.commit("cdc", snapshot, snapshot * 10..snapshot * 10 + 2);
        bed.by_instance(snapshot, instance);
    }
    let finding = bed.only("D-4").await;
    assert_eq!((ids(&finding), finding.confidence), (vec![1, 3], Confidence::Inferred));
    // a restart changes the object once
    let mut legal = Bed::new(&[]);
    for (snapshot, instance) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
        legal.commit("cdc", snapshot, snapshot * 10..snapshot * 10 + 2);
        legal.by_instance(snapshot, instance);
    }
    assert!(!legal.fired().await.contains(&"D-4"));
    // two counters that take turns
    let mut turns = Bed::new(&[]);
    for (at, identifier) in [120, 3, 121, 4].into_iter().enumerate() {
        turns.commit("cdc", identifier, at as i64 * 10..at as i64 * 10 + 2);
    }
    assert_eq!(ids(&turns.only("D-4").await), [1, 2, 3, 4]);
    // a restore from an older state falls once
    let mut restored = Bed::new(&[]);
    for (at, identifier) in [1, 2, 3, 2, 3, 4].into_iter().enumerate() {
        restored.commit("cdc", identifier, at as i64 * 10..at as i64 * 10 + 2);
    }
    assert!(!restored.fired().await.contains(&"D-4"));
}

#[tokio::test]
async fn d5_a_crash_between_rows_and_compaction() {
    let checkpoint = |bed: &mut Bed, number: i64, instance: u8, compacts: bool| {
        let id = bed.commit("cdc", number, number * 10..number * 10 + 2);
        bed.by_instance(id, instance);
        if compacts {
            let id = bed.commit_of("cdc", number, CommitKind::Compact, 5, number * 100..number * 100 + 1, None);
            bed.by_instance(id, instance);
        }
    };
    let mut bed = Bed::new(&[]);
    checkpoint(&mut bed, 1, 1, true);
    checkpoint(&mut bed, 2, 1, false);
    checkpoint(&mut bed, 3, 2, true);
    let finding = bed.only("D-5").await;
    assert_eq!((ids(&finding), finding.severity), (vec![3], Severity::Info));
    // there may be nothing to compact
    let mut legal = Bed::new(&[]);
    checkpoint(&mut legal, 1, 1, true);
    checkpoint(&mut legal, 2, 1, false);
    checkpoint(&mut legal, 3, 1, true);
    assert!(!legal.fired().await.contains(&"D-5"));
    // the wrong way round is not harmless
    let mut turned = Bed::new(&[]);
    turned.commit_of("cdc", 1, CommitKind::Compact, 5, 0..2, None);
    turned.commit("cdc", 1, 2..4);
    assert_eq!(turned.only("D-5").await.severity, Severity::Error);
}

#[tokio::test]
async fn d6_counts_that_do_not_add_up() {
    for (field, value) in [("totalRecordCount", 100), ("deltaRecordCount", 3)] {
        let mut bed = Bed::new(&[]);
        bed.commit("cdc", 1, 0..5);
        bed.commit("cdc", 2, 5..9);
        assert!(!bed.fired().await.contains(&"D-6"));
        bed.patch(2, |document| document[field] = json!(value));
        let found = bed.found().await;
        assert!(found.iter().any(|finding| finding.detector == "D-6"), "{field}: {found:#?}");
    }
    // old snapshots count nothing
    let mut old = Bed::new(&[]);
    old.commit("cdc", 1, 0..5);
    old.commit("cdc", 2, 5..9);
    for snapshot in [1, 2] {
        old.patch(snapshot, |document| {
            let document = document.as_object_mut().unwrap();
            document.remove("totalRecordCount");
            document.remove("deltaRecordCount");
        });
    }
    assert!(!old.fired().await.contains(&"D-6"));
}

#[tokio::test]
async fn d7_a_file_committed_twice() {
    let mut bed = Bed::new(&[]);
    bed.commit("cdc", 1, 0..5);
    let entry = bed.table.live_files().unwrap().remove(0);
    bed.table.commit().remove_all().kind(CommitKind::Overwrite).user("x").publish().unwrap();
    bed.table.commit().entry(entry.clone()).user("cdc").identifier(2).publish().unwrap();
    assert_eq!(ids(&bed.only("D-7").await), [1, 3]);
    // an upgrade is a deletion and an addition in one commit; a rollback brings files back on purpose
    let mut legal = Bed::new(&[]);
    legal.commit("cdc", 1, 0..5);
    let entry = legal.table.live_files().unwrap().remove(0);
    let mut up = entry.clone();
    up.file.level = 5;
    legal.table.commit().remove_all().entry(up).kind(CommitKind::Compact).user("cdc").identifier(1).publish().unwrap();
    legal.table.commit().remove_all().kind(CommitKind::Overwrite).user("x").publish().unwrap();
    let back = legal.table.commit().entry(entry).kind(CommitKind::Overwrite);
    back.user("rollback-to-as-latest-1").identifier(i64::MAX).publish().unwrap();
    assert!(!legal.fired().await.contains(&"D-7"), "{:#?}", legal.found().await);
}

#[tokio::test]
async fn d8_commit_times_that_go_back() {
    for (back, severity) in [(500, Severity::Info), (90_000, Severity::Warning)] {
        let mut bed = Bed::new(&[]);
        bed.commit_of("a", 1, CommitKind::Append, 0, 0..2, Some(START));
        bed.commit_of("b", 1, CommitKind::Append, 0, 10..12, Some(START - back));
        let finding = bed.only("D-8").await;
        assert_eq!((ids(&finding), finding.severity), (vec![1, 2], severity));
    }
    let mut legal = Bed::new(&[]);
    legal.commit_of("a", 1, CommitKind::Append, 0, 0..2, Some(START));
    legal.commit_of("b", 1, CommitKind::Append, 0, 10..12, Some(START));
    assert!(!legal.fired().await.contains(&"D-8"));
}

#[tokio::test]
async fn d9_sequences_of_two_users_that_interleave() {
    let write = |bed: &mut Bed| {
        bed.commit("base", 1, 0..1);
        // 500 keys of one writer, then one of another that began before it
        bed.commit("cdc", 1, 1..501);
        bed.commit("repair", 1, 1..2);
    };
    let mut bed = Bed::new(&[]);
    write(&mut bed);
    let finding = bed.only("D-9").await;
    assert_eq!(ids(&finding), [2, 3]);
    assert_eq!(finding.unit.as_deref(), Some("bucket 0"));
    assert!(finding.evidence.contains("1..500"), "{finding:?}");
    for (option, value) in [("sequence.field", "v"), ("sequence.snapshot-ordering", "true")] {
        let mut legal = Bed::new(&[(option, value)]);
        write(&mut legal);
        assert!(!legal.fired().await.contains(&"D-9"), "{option}");
    }
    let mut legal = Bed::new(&[]);
    legal.commit("cdc", 1, 1..501);
    legal.commit("repair", 1, 501..502);
    assert!(!legal.fired().await.contains(&"D-9"), "the later one is behind");
}

#[tokio::test]
async fn d10_watermarks_that_stand_still_or_have_two_masters() {
    let run = |users: [&str; 6], step: i64, watermark: fn(i64) -> i64| {
        let mut bed = Bed::new(&[]);
        for (at, user) in (0..).zip(users) {
            let rows = [json!({"id": at, "v": "x", "dt": "d", "_SEQUENCE_NUMBER": at})];
            let commit = bed.table.commit().file(FileSpec::rows(&rows)).user(user).identifier(at + 1);
            commit.watermark(watermark(at)).time_millis(START + at * step).publish().unwrap();
        }
        bed
    };
    let rising = |at: i64| START + at * MINUTE;
    let standing = |_: i64| START;
    assert!(run(["a"; 6], 20 * MINUTE, standing).fired().await.contains(&"D-10"));
    assert!(run(["a", "b", "a", "b", "a", "b"], MINUTE, rising).fired().await.contains(&"D-10"));
    assert!(!run(["a"; 6], 20 * MINUTE, rising).fired().await.contains(&"D-10"));
    assert!(!run(["a"; 6], MINUTE, standing).fired().await.contains(&"D-10"), "for some minutes that is usual");
    assert!(!run(["a"; 6], 20 * MINUTE, |_| i64::MAX).fired().await.contains(&"D-10"), "the end of input");
}

#[tokio::test]
async fn d11_levels_that_overlap() {
    let mut bed = Bed::new(&[]);
    bed.commit_of("c", 1, CommitKind::Compact, 5, 0..10, None);
    bed.commit_of("c", 2, CommitKind::Compact, 5, 5..15, None);
    let finding = bed.only("D-11").await;
    assert!(finding.evidence.starts_with("level 5"), "{finding:?}");
    let mut legal = Bed::new(&[]);
    legal.commit_of("c", 1, CommitKind::Compact, 5, 0..10, None);
    legal.commit_of("c", 2, CommitKind::Compact, 5, 10..15, None);
    legal.commit_of("c", 3, CommitKind::Compact, 4, 5..15, None);
    legal.commit("c", 4, 0..15);
    assert!(!legal.fired().await.contains(&"D-11"));
}

#[tokio::test]
async fn d12_rescaled_without_overwrite() {
    let mut bed = Bed::partitioned(&[], &["dt"]);
    bed.commit("a", 1, 0..5);
    let entry = bed.table.live_files().unwrap().remove(0);
    bed.commit("a", 2, 5..9);
    assert!(!bed.fired().await.contains(&"D-12"));
    let mut other = entry;
    other.total_buckets = 4;
    other.file.file_name = "data-other-0.parquet".to_string();
    bed.table.commit().entry(other).user("a").identifier(3).publish().unwrap();
    let finding = bed.only("D-12").await;
    assert_eq!((finding.unit.as_deref(), finding.evidence.as_str()), (Some("dt=2026-04-16"), "files of 1, 4 buckets"));
}

#[tokio::test]
async fn d14_vectors_of_files_that_are_gone() {
    let mut bed = Bed::new(&[("deletion-vectors.enabled", "true")]);
    bed.commit_of("c", 1, CommitKind::Compact, 5, 0..10, None);
    let name = bed.table.live_files().unwrap().remove(0).file.file_name;
    bed.table.commit().delete_positions(&name, &[0, 1]).kind(CommitKind::Compact).user("c").publish().unwrap();
    assert!(!bed.fired().await.contains(&"D-14"), "{:#?}", bed.found().await);
    let index = serde_json::from_slice::<Value>(&fs::read(bed.table.root().join("snapshot/snapshot-2")).unwrap());
    let index = index.unwrap()["indexManifest"].clone();
    bed.table.commit().remove(&name).kind(CommitKind::Overwrite).user("c").publish().unwrap();
    bed.patch(3, |document| document["indexManifest"] = index.clone());
    assert!(bed.only("D-14").await.evidence.contains("which is not live"));
}

#[tokio::test]
async fn d15_files_that_are_lost() {
    let make = || {
        let mut bed = Bed::new(&[]);
        bed.commit("a", 1, 0..5);
        bed.commit("a", 2, 5..9);
        bed.commit("a", 3, 9..12);
        bed
    };
    let bed = make();
    assert!(!bed.fired().await.contains(&"D-15"));
    let lost = bed.table.live_files().unwrap().remove(0).file.file_name;
    fs::remove_file(bed.table.root().join("bucket-0").join(&lost)).unwrap();
    let finding = bed.only("D-15").await;
    assert!(finding.evidence.contains(&lost), "{finding:?}");
    let bed = make();
    let document: Value =
        serde_json::from_slice(&fs::read(bed.table.root().join("snapshot/snapshot-2")).unwrap()).unwrap();
    let list = document["deltaManifestList"].as_str().unwrap().to_string();
    fs::remove_file(bed.table.root().join("manifest").join(&list)).unwrap();
    let found = bed.found().await;
    assert!(found.iter().any(|f| f.detector == "D-15" && ids(f) == [2] && f.evidence.contains(&list)), "{found:#?}");
    let bed = make();
    fs::write(bed.table.root().join("snapshot/snapshot-2"), "{").unwrap();
    let found = bed.found().await;
    assert!(found.iter().any(|f| f.detector == "D-15" && ids(f) == [2]), "{found:#?}");
    let others: Vec<&str> =
        found.iter().filter(|f| f.checked).map(|f| f.detector).filter(|of| ["D-2", "D-18"].contains(of)).collect();
    assert!(others.is_empty(), "it is there, though torn: {found:#?}");
}

/// What the detectors that could not look say of it.
fn unchecked(found: &[Finding]) -> BTreeMap<&str, &str> {
    let of = found.iter().filter(|finding| !finding.checked);
    assert!(of.clone().all(|finding| finding.severity == Severity::Info && finding.evidence.contains("not checked")));
    of.map(|finding| (finding.detector, finding.evidence.as_str())).collect()
}

#[tokio::test]
async fn what_cannot_be_read_is_told_as_not_checked() {
    let make = || {
        let mut bed = Bed::new(&[("deletion-vectors.enabled", "true")]);
        bed.commit_of("a", 1, CommitKind::Compact, 5, 0..5, None);
        let name = bed.table.live_files().unwrap().remove(0).file.file_name;
        bed.table.commit().delete_positions(&name, &[0]).kind(CommitKind::Compact).user("c").publish().unwrap();
        bed.commit("a", 2, 5..9);
        bed.commit("a", 3, 9..12);
        bed
    };
    let field = |bed: &Bed, snapshot: i64, name: &str| {
        let file = bed.table.root().join(format!("snapshot/snapshot-{snapshot}"));
        let document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        document[name].as_str().unwrap().to_string()
    };
    let bed = make();
    assert!(unchecked(&bed.found().await).is_empty());
    // a snapshot that is torn: neither its changes nor what comes before and after it can be looked at
    let every = ["D-1", "D-10", "D-17", "D-18", "D-19", "D-6", "D-7", "D-8", "D-9"];
    fs::write(bed.table.root().join("snapshot/snapshot-3"), "{").unwrap();
    let found = bed.found().await;
    let told = unchecked(&found);
    assert_eq!(told.keys().copied().collect::<Vec<_>>(), every, "{found:#?}");
    assert!(told["D-18"].contains("snapshot 3 cannot be read"), "{told:?}");
    // it may name what a stray list speaks of
    let bed = make();
    let mut aside = TableBuilder::open(bed.dir.path(), "d", "t").unwrap();
    let stray = aside.commit().file(FileSpec::rows(&[json!({"id": 1, "v": "x", "dt": "d"})])).prepare().unwrap();
    aged(&bed.table, &stray.snapshot().delta_manifest_list);
    fs::write(bed.table.root().join("snapshot/snapshot-3"), "{").unwrap();
    let found = bed.found().await;
    let told = found.iter().any(|one| one.evidence.contains("1 lists that no snapshot names") && !one.checked);
    assert!(told, "{found:#?}");
    // and so may a stray list that is torn itself
    let bed = make();
    let mut aside = TableBuilder::open(bed.dir.path(), "d", "t").unwrap();
    let stray = aside.commit().file(FileSpec::rows(&[json!({"id": 1, "v": "x", "dt": "d"})])).prepare().unwrap();
    let list = &stray.snapshot().delta_manifest_list;
    fs::write(bed.table.root().join("manifest").join(list), "torn").unwrap();
    aged(&bed.table, list);
    assert!(unchecked(&bed.found().await)["D-18"].contains(list));
    // the changes of a commit
    let bed = make();
    fs::remove_file(bed.table.root().join("manifest").join(field(&bed, 3, "deltaManifestList"))).unwrap();
    let found = bed.found().await;
    let told: Vec<&str> = unchecked(&found).into_keys().collect();
    assert_eq!(told, ["D-1", "D-10", "D-17", "D-18", "D-19", "D-6", "D-7", "D-9"], "{found:#?}");
    // vectors
    let bed = make();
    fs::write(bed.table.root().join("manifest").join(field(&bed, 4, "indexManifest")), "torn").unwrap();
    let found = bed.found().await;
    assert!(unchecked(&found)["D-14"].contains("index manifest of snapshot 4"), "{found:#?}");
    // the newest state
    let bed = make();
    bed.patch(4, |document| document["totalRecordCount"] = json!(100));
    let found = bed.found().await;
    let told: Vec<&str> = unchecked(&found).into_keys().collect();
    assert_eq!(told, ["D-11", "D-12", "D-14", "D-15"], "{found:#?}");
}

#[tokio::test]
async fn d15_files_of_older_snapshots_and_tags_and_files_of_another_size() {
    let make = || {
        let mut bed = Bed::new(&[]);
        bed.commit("a", 1, 0..5);
        let old = bed.table.live_files().unwrap().remove(0).file.file_name;
        bed.table.tag("eod", 1).unwrap();
        bed.table.commit().remove_all().kind(CommitKind::Overwrite).user("x").publish().unwrap();
        bed.commit("a", 2, 5..9);
        let file = bed.table.root().join("bucket-0").join(&old);
        (bed, old, file)
    };
    let (bed, old, file) = make();
    assert!(!bed.fired().await.contains(&"D-15"), "{:#?}", bed.found().await);
    fs::remove_file(&file).unwrap();
    let finding = bed.only("D-15").await;
    assert!(finding.evidence.contains(&old) && finding.evidence.contains("snapshot 1"), "{finding:?}");
    // the snapshot expired, and a tag holds it still
    bed.table.expire(1).unwrap();
    let finding = bed.only("D-15").await;
    assert!(finding.evidence.contains(&old) && finding.evidence.contains("tag 'eod'"), "{finding:?}");
    let (bed, old, file) = make();
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 7]).unwrap();
    let finding = bed.only("D-15").await;
    assert!(finding.evidence.contains(&old) && finding.evidence.contains("another size"), "{finding:?}");
}

#[tokio::test]
async fn folders_that_nothing_needs_are_not_listed() {
    let mut bed = Bed::new(&[]);
    bed.commit("a", 1, 0..5);
    let history = bed.history().await;
    let lists = async |history: &History| {
        let before = history.table().storage().counts();
        anomalies(history, &SessionZone::utc()).await.unwrap();
        (history.table().storage().counts() - before).lists
    };
    let few = lists(&history).await;
    for day in 0..20 {
        fs::create_dir_all(bed.table.root().join(format!("dt={day}/bucket-0"))).unwrap();
    }
    assert_eq!(lists(&history).await, few);
    assert!(few < 20, "{few}");
}

#[tokio::test]
async fn d17_appends_lost_under_an_overwrite() {
    let run = |append_at: i64, created: i64| {
        let mut bed = Bed::new(&[]);
        bed.stamped("repair", CommitKind::Append, START, START, 0..5);
        bed.stamped("repair", CommitKind::Append, START + MINUTE, START + MINUTE, 5..9);
        bed.stamped("cdc", CommitKind::Append, START + append_at, START + append_at, 10..15);
        bed.stamped("repair", CommitKind::Overwrite, START + 10 * MINUTE, START + created, 20..25);
        bed
    };
    let finding = run(8 * MINUTE, 5 * MINUTE).only("D-17").await;
    assert_eq!((ids(&finding), finding.confidence), (vec![3, 4], Confidence::Heuristic));
    assert!(finding.evidence.contains("5 rows of cdc"), "{finding:?}");
    assert!(!run(3 * MINUTE, 5 * MINUTE).fired().await.contains(&"D-17"), "it was there when the overwrite began");
}

/// Makes a manifest list an hour old.
fn aged(table: &TableBuilder, list: &str) {
    let file = fs::File::options().write(true).open(table.root().join("manifest").join(list)).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3_600)).unwrap();
}

/// The entries a list leads to.
fn entries_of(table: &TableBuilder, list: &str) -> Vec<ManifestEntry> {
    use crate::spec::manifest::{decode_manifest, decode_manifest_list};
    let folder = table.root().join("manifest");
    let metas = decode_manifest_list(&fs::read(folder.join(list)).unwrap(), list).unwrap();
    let read = |meta: crate::spec::ManifestFileMeta| {
        decode_manifest(&fs::read(folder.join(&meta.file_name)).unwrap(), &meta.file_name).unwrap()
    };
    metas.into_iter().flat_map(read).collect()
}

#[tokio::test]
async fn d18_a_snapshot_that_was_overwritten() {
    let mut bed = Bed::new(&[]);
    bed.commit("a", 1, 0..5);
    // two committers prepare number 2 on the same base, and both are told that they published it
    let mut other = TableBuilder::open(bed.dir.path(), "d", "t").unwrap();
    let rows = [json!({"id": 50, "v": "b", "dt": "d", "_SEQUENCE_NUMBER": 50})];
    let lost = other.commit().file(FileSpec::rows(&rows)).user("b").identifier(1).prepare().unwrap();
    bed.commit("a", 2, 5..9);
    bed.commit("a", 3, 9..12);
    assert!(!bed.fired().await.contains(&"D-18"), "a commit on its way looks the same");
    aged(&bed.table, &lost.snapshot().delta_manifest_list);
    let finding = bed.only("D-18").await;
    assert_eq!(finding.confidence, Confidence::Inferred, "its metadata is there, and nothing names it");
    assert!(finding.evidence.contains(&lost.snapshot().delta_manifest_list), "{finding:?}");
    // the next commit had read the snapshot that was lost
    let mut bed = Bed::new(&[]);
    bed.commit("a", 1, 0..5);
    bed.commit("a", 2, 5..9);
    bed.commit("a", 3, 9..12);
    let document: Value =
        serde_json::from_slice(&fs::read(bed.table.root().join("snapshot/snapshot-1")).unwrap()).unwrap();
    bed.patch(3, |third| third["baseManifestList"] = document["deltaManifestList"].clone());
    let found = bed.found().await;
    assert!(
        found.iter().any(|f| f.detector == "D-18" && f.confidence == Confidence::Exact && ids(f) == [2, 3]),
        "{found:#?}"
    );
    // an attempt that lost a race and came again: its data files are in a later snapshot
    let mut raced = Bed::new(&[]);
    raced.commit("a", 1, 0..5);
    let mut other = TableBuilder::open(raced.dir.path(), "d", "t").unwrap();
    let first = other.commit().file(FileSpec::rows(&rows)).user("b").identifier(1).prepare().unwrap();
    raced.commit("a", 2, 5..9);
    aged(&raced.table, &first.snapshot().delta_manifest_list);
    let entry = entries_of(&raced.table, &first.snapshot().delta_manifest_list).remove(0);
    raced.table.commit().entry(entry).user("b").identifier(1).publish().unwrap();
    assert!(!raced.fired().await.contains(&"D-18"), "{:#?}", raced.found().await);
}

#[tokio::test]
async fn d19_files_from_the_future() {
    let make = |ahead: i64| {
        let mut bed = Bed::new(&[]);
        // eight hours east of UTC
        let zone = 480 * MINUTE;
        for at in 0..5 {
            let time = START + at * MINUTE;
            bed.stamped("a", CommitKind::Append, time, time + zone - 2_000, at * 10..at * 10 + 2);
        }
        let time = START + 5 * MINUTE;
        bed.stamped("a", CommitKind::Append, time, time + zone + ahead, 90..92);
        bed
    };
    assert_eq!(ids(&make(40 * MINUTE).only("D-19").await), [6]);
    assert!(!make(-MINUTE).fired().await.contains(&"D-19"));
}

#[tokio::test]
async fn d20_expired_by_number_before_their_time() {
    let make = |most: &str| {
        let mut bed = Bed::new(&[("snapshot.num-retained.max", most), ("snapshot.num-retained.min", "1")]);
        for checkpoint in 1..=5 {
            let time = START + checkpoint * MINUTE;
            bed.commit_of("a", checkpoint, CommitKind::Append, 0, checkpoint * 10..checkpoint * 10 + 2, Some(time));
        }
        bed.table.expire(1).unwrap();
        bed
    };
    assert!(make("4").only("D-20").await.evidence.contains("snapshot.num-retained.max 4"));
    assert!(!make("100").fired().await.contains(&"D-20"));
}
