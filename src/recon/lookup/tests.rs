use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::query::QueryEnv;
use crate::snapshot::{Pin, PinRequest};
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

struct Bed {
    dir: tempfile::TempDir,
    table: TableBuilder,
    time: i64,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let spec = TableSpec::new(&[("id", "INT NOT NULL")]).primary_key(&["id"]).option("bucket", "1");
        let table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
        Self { dir, table, time: 1_776_300_000_000 }
    }

    fn commit(&mut self, user: &str, identifier: i64) -> i64 {
        self.time += 60_000;
        let commit = self.table.commit().file(FileSpec::rows(&[json!({"id": identifier % 100})])).user(user);
        commit.identifier(identifier).time_millis(self.time).publish().unwrap().id.0
    }

    /// Removes the snapshots behind one, as a rollback does; a tag that nobody removed stays.
    fn roll_back_to(&mut self, last: i64) {
        let mut id = last + 1;
        while self.table.root().join(format!("snapshot/snapshot-{id}")).exists() {
            self.table.expire(id).unwrap();
            id += 1;
        }
        std::fs::write(self.table.root().join("snapshot/LATEST"), last.to_string()).unwrap();
        self.table = TableBuilder::open(self.dir.path(), "d", "t").unwrap();
    }

    async fn history(&self) -> History {
        let warehouse = self.dir.path().to_str().unwrap().to_string();
        let catalog = FilesystemCatalog::open(&warehouse, &BTreeMap::new()).await.unwrap();
        let table = catalog.table("d", "t").await.unwrap();
        let pin = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
        History::load(&pin, &QueryEnv::new()).await.unwrap()
    }

    async fn asked(&self, user: &str, identifier: i64, since: Option<i64>) -> CommitLookup {
        lookup(&self.history().await, user, identifier, since.map(SnapshotId), &SessionZone::utc())
    }
}

#[tokio::test]
async fn what_was_rolled_back_did_not_land() {
    let mut bed = Bed::new();
    bed.commit("cdc", 1);
    bed.commit("repair", 1);
    bed.table.tag("gone", 2).unwrap();
    bed.commit("cdc", 2);
    bed.roll_back_to(1);
    // beyond the newest snapshot, then under one that has its number
    for _ in 0..2 {
        let found = bed.asked("repair", 1, None).await;
        assert_eq!(found.status, CommitStatus::NotCommitted, "{found:?}");
        assert!(found.reason.contains("tag gone") && found.reason.contains("rolled back"), "{found:?}");
        bed.commit("cdc", 3);
    }
    assert_eq!(bed.asked("cdc", 3, None).await.status, CommitStatus::Committed);
    // a tag of a snapshot that expired is kept as before
    bed.table.tag("eod", 2).unwrap();
    bed.table.expire(2).unwrap();
    let found = bed.asked("cdc", 3, None).await;
    assert_eq!((found.status, found.source.as_deref()), (CommitStatus::Committed, Some("tag eod")), "{found:?}");
}

#[tokio::test]
async fn a_rollback_that_may_have_reached_a_tag_is_no_answer() {
    let mut bed = Bed::new();
    for identifier in 1..=5 {
        bed.commit("cdc", identifier);
    }
    bed.table.tag("three", 3).unwrap();
    bed.table.tag("five", 5).unwrap();
    bed.roll_back_to(1);
    for identifier in 10..=15 {
        bed.commit("new", identifier);
    }
    // 2 to 4 of the new line are gone: whether 3 is of it, nothing says
    for id in 1..=4 {
        bed.table.expire(id).unwrap();
    }
    let found = bed.asked("cdc", 3, None).await;
    assert_eq!(found.status, CommitStatus::Unknown, "{found:?}");
    assert!(found.reason.contains("tag three") && found.reason.contains("rolled back"), "{found:?}");
    assert_ne!(bed.asked("cdc", 5, None).await.status, CommitStatus::Committed);
}

#[tokio::test]
async fn since_counts_from_where_it_says() {
    let mut bed = Bed::new();
    for identifier in 1..=6 {
        bed.commit("cdc", identifier);
    }
    let status = async |bed: &Bed, since| bed.asked("repair", 1, since).await.status;
    assert_eq!(status(&bed, None).await, CommitStatus::NotCommitted);
    let beyond = bed.asked("repair", 1, Some(7)).await;
    assert_eq!(beyond.status, CommitStatus::Unknown);
    assert!(beyond.reason.contains("snapshot 7 is not there, the newest is 6"), "{beyond:?}");
    // a gap before it is no reason to doubt
    bed.table.expire(3).unwrap();
    assert_eq!(status(&bed, Some(3)).await, CommitStatus::NotCommitted);
    assert_eq!(status(&bed, Some(2)).await, CommitStatus::Unknown);
    bed.table.expire(1).unwrap();
    bed.table.expire(2).unwrap();
    assert_eq!(status(&bed, Some(3)).await, CommitStatus::NotCommitted);
    assert_eq!(status(&bed, Some(1)).await, CommitStatus::Unknown);
}

#[tokio::test]
async fn what_is_only_likely_is_not_known() {
    let mut bed = Bed::new();
    for identifier in [1, 2, 3] {
        bed.commit("cdc", identifier);
    }
    bed.commit("batch", BATCH);
    bed.table.expire(1).unwrap();
    for (user, identifier, told) in [
        ("cdc", 4, "has come as far as 3"),
        ("batch", 7, "has come to the end of its input"),
        ("other", 1, "say since which snapshot"),
        ("other", BATCH, "say since which snapshot"),
    ] {
        let found = bed.asked(user, identifier, None).await;
        assert_eq!(found.status, CommitStatus::Unknown, "{found:?}");
        assert!(found.reason.contains(told), "{found:?}");
    }
    assert_eq!(bed.asked("cdc", 4, Some(1)).await.status, CommitStatus::NotCommitted);
}

#[tokio::test]
async fn a_hint_ahead_of_what_is_found_is_no_proof() {
    let mut bed = Bed::new();
    bed.commit("cdc", 1);
    bed.commit("cdc", 2);
    assert_eq!(bed.asked("repair", 1, None).await.status, CommitStatus::NotCommitted);
    std::fs::write(bed.table.root().join("snapshot/LATEST"), "3").unwrap();
    for since in [None, Some(1)] {
        let found = bed.asked("repair", 1, since).await;
        assert_eq!(found.status, CommitStatus::Unknown, "{found:?}");
        assert!(found.reason.contains("snapshot 3 cannot be read"), "{found:?}");
    }
}

#[tokio::test]
async fn rolled_back_commits_are_told_as_such() {
    let mut bed = Bed::new();
    bed.commit("cdc", 1);
    bed.commit("cdc", 2);
    bed.table.tag("gone", 2).unwrap();
    bed.roll_back_to(1);
    bed.commit("cdc", 2);
    let history = Arc::new(bed.history().await);
    let texts = history.texts(&SessionZone::utc()).await.unwrap();
    let runs = crate::recon::commits::commits(&history, &texts).await.unwrap();
    let told: Vec<_> = runs.iter().map(|run| (run.first().map(|id| id.0), run.standing)).collect();
    use Standing::{InForce, RolledBack};
    assert_eq!(told, [(Some(1), InForce), (Some(2), RolledBack), (Some(2), InForce)]);
    // the same identity on both lines was published once
    let found = crate::recon::anomalies::anomalies(&history, &SessionZone::utc()).await.unwrap();
    assert!(!found.iter().any(|finding| finding.detector == "D-1"), "{found:#?}");
    let rates = crate::recon::commits::commit_rates(&runs, i64::MAX);
    assert_eq!(rates.iter().map(|rate| rate.snapshots).sum::<u64>(), 2);
}
