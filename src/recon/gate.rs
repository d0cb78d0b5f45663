//! Gates: wait until snapshots of a table satisfy a condition.
//!
//! The oldest snapshot that does is the answer, not the newest, so that the same gate gives the same snapshot again.
//! Snapshots are listed once; then each look asks for the next number alone, and whether the last one is still what it was.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{ErrorKind, Result};
use crate::snapshot::{SessionZone, SnapshotFingerprint, Table};
use crate::spec::{BATCH, CommitIdentifier, END_OF_INPUT, Snapshot, SnapshotId};

/// What a snapshot has to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// A watermark at or after this, epoch milliseconds. A snapshot without one has that of the one before.
    Watermark(i64),
    /// That user has committed this identifier or a later one.
    Commit {
        /// Who.
        user: String,
        /// Which.
        identifier: i64,
    },
    /// At least this number.
    Snapshot(SnapshotId),
    /// The tag is there.
    Tag(String),
}

/// Waits at one table.
#[derive(Debug)]
pub struct Gate {
    table: Arc<Table>,
    conditions: Vec<Condition>,
    /// The snapshots looked at, ascending.
    seen: Vec<Arc<Snapshot>>,
    /// The snapshots that satisfied everything, ascending.
    satisfied: Vec<Arc<Snapshot>>,
    /// The newest when the waiting began.
    first_newest: Option<SnapshotId>,
    /// Watermark of the last snapshot looked at, or of the one before that had one.
    watermark: Option<i64>,
    /// Whether the commit of each condition has come.
    committed: Vec<bool>,
    begun: bool,
}

impl Gate {
    /// Nothing is looked at yet.
    pub fn new(table: &Arc<Table>, conditions: Vec<Condition>) -> Self {
        Self {
            table: Arc::clone(table),
            committed: vec![false; conditions.len()],
            conditions,
            seen: Vec::new(),
            satisfied: Vec::new(),
            first_newest: None,
            watermark: None,
            begun: false,
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The newest snapshot that was looked at.
    pub fn newest(&self) -> Option<&Arc<Snapshot>> {
        self.seen.last()
    }

    /// Looks for snapshots that came since the last look. The snapshots that satisfy all conditions, ascending.
    ///
    /// Cost: a listing and every snapshot at first, and after a rollback; then two small reads, one more for each snapshot
    /// that came and each tag, and for the oldest that satisfies everything.
    ///
    /// # Errors
    /// Snapshots that cannot be read.
    pub async fn look(&mut self) -> Result<&[Arc<Snapshot>]> {
        let mut tags = true;
        for condition in &self.conditions {
            if let Condition::Tag(name) = condition {
                tags &= self.table.tag(name).await?.is_some();
            }
        }
        if !self.is_going_on().await? {
            self.seen.clear();
            self.satisfied.clear();
            self.watermark = None;
            self.committed.fill(false);
            for snapshot in self.table.snapshots().await? {
                self.take(snapshot);
            }
            if !self.begun {
                self.begun = true;
                self.first_newest = self.seen.last().map(|snapshot| snapshot.id);
            }
        }
        self.drop_expired().await?;
        Ok(if tags { &self.satisfied } else { &[] })
    }

    /// Lets go of the snapshots that expired since they were looked at: nobody can read them, and a later one satisfies
    /// everything too.
    async fn drop_expired(&mut self) -> Result<()> {
        while let Some(first) = self.satisfied.first() {
            match self.table.snapshot(first.id).await {
                Ok(now) if SnapshotFingerprint::from(first.as_ref()).is_of(&now) => return Ok(()),
                // another one of its number: the next look begins anew
                Ok(_) => drop(self.satisfied.remove(0)),
                Err(error) if error.kind() == ErrorKind::NotFound => drop(self.satisfied.remove(0)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes the snapshots that follow the last one; false where it is not there any more or another one.
    async fn is_going_on(&mut self) -> Result<bool> {
        let Some(last) = self.seen.last().map(Arc::clone) else { return Ok(false) };
        match self.table.snapshot_or_changelog(last.id).await? {
            Some(now) if SnapshotFingerprint::from(last.as_ref()).is_of(&now) => {}
            _ => return Ok(false),
        }
        let mut next = last.id;
        loop {
            next = SnapshotId(next.0.saturating_add(1));
            match self.table.snapshot_or_changelog(next).await? {
                Some(snapshot) => self.take(snapshot),
                None => return Ok(true),
            }
        }
    }

    fn take(&mut self, snapshot: Arc<Snapshot>) {
        self.watermark = snapshot.watermark.or(self.watermark);
        let mut all = true;
        for (condition, committed) in self.conditions.iter().zip(&mut self.committed) {
            all &= match condition {
                Condition::Watermark(wanted) => self.watermark.is_some_and(|watermark| watermark >= *wanted),
                Condition::Commit { user, identifier } => {
                    let reached = match (*identifier, snapshot.commit_identifier) {
                        (wanted, found) if wanted == found => true,
                        (BATCH, _) | (_, BATCH) => false,
                        (wanted, found) => found > wanted,
                    };
                    *committed |= reached && snapshot.commit_user == *user;
                    *committed
                }
                Condition::Snapshot(wanted) => snapshot.id >= *wanted,
                Condition::Tag(_) => true,
            };
        }
        if all {
            self.satisfied.push(Arc::clone(&snapshot));
        }
        self.seen.push(snapshot);
    }

    /// The users that raised the watermark, by how often.
    pub fn raisers(&self) -> BTreeMap<&str, u64> {
        self.raisers_after(None)
    }

    /// The same, by commits after a snapshot.
    fn raisers_after(&self, after: Option<SnapshotId>) -> BTreeMap<&str, u64> {
        let mut raisers = BTreeMap::new();
        let mut highest: Option<i64> = None;
        for snapshot in &self.seen {
            let Some(watermark) = snapshot.watermark.filter(|watermark| *watermark != END_OF_INPUT) else { continue };
            // who brought the first one that is kept is not known
            let counts = after.is_none_or(|after| snapshot.id > after);
            if counts && highest.is_some_and(|highest| watermark > highest) {
                *raisers.entry(snapshot.commit_user.as_str()).or_insert(0) += 1;
            }
            highest = highest.max(Some(watermark));
        }
        raisers
    }

    /// Why it is not open: the newest snapshot, who committed when, and what does not move.
    pub fn diagnosis(&self, now: i64, zone: &SessionZone) -> String {
        let Some(newest) = self.seen.last() else { return "the table has no snapshot".to_string() };
        let watermark = self.watermark.map_or("none".to_string(), |watermark| zone.show_watermark(watermark));
        let mut text = format!(
            "the newest snapshot is {}, committed {} ago, watermark {watermark}",
            newest.id,
            span(now.saturating_sub(newest.time_millis))
        );
        let mut last: BTreeMap<&str, &Arc<Snapshot>> = BTreeMap::new();
        for snapshot in &self.seen {
            last.insert(&snapshot.commit_user, snapshot);
        }
        let users: Vec<String> = last
            .iter()
            .map(|(user, snapshot)| {
                let ago = span(now.saturating_sub(snapshot.time_millis));
                format!("{user} {} {ago} ago", CommitIdentifier(snapshot.commit_identifier))
            })
            .collect();
        text.push_str(&format!("; last commits: {}", users.join(", ")));
        let came: Vec<&Arc<Snapshot>> =
            self.seen.iter().filter(|snapshot| self.first_newest.is_none_or(|first| snapshot.id > first)).collect();
        let waits_for_watermark = self.conditions.iter().any(|one| matches!(one, Condition::Watermark(_)));
        if came.is_empty() {
            text.push_str("; no commit came while waiting: an idle source moves no watermark");
        } else if waits_for_watermark {
            let before = self
                .first_newest
                .and_then(|first| self.seen.iter().rev().filter(|one| one.id <= first).find_map(|one| one.watermark));
            if self.watermark == before {
                text.push_str(&format!("; {} commits came, none moved the watermark", came.len()));
            } else {
                let movers: Vec<&str> = self.raisers_after(self.first_newest).into_keys().collect();
                // the first watermark there is has no one before it
                if !movers.is_empty() {
                    text.push_str(&format!("; while waiting the watermark was moved by {} alone", movers.join(", ")));
                }
            }
        }
        text
    }
}

/// A stretch of time for people.
fn span(millis: i64) -> String {
    let seconds = millis.max(0) / 1_000;
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::{Catalog, FilesystemCatalog};
    use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

    struct Bed {
        dir: tempfile::TempDir,
        table: TableBuilder,
    }

    impl Bed {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let spec = TableSpec::new(&[("id", "INT NOT NULL")]).primary_key(&["id"]).option("bucket", "1");
            let table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
            Self { dir, table }
        }

        fn commit(&mut self, user: &str, identifier: i64, watermark: Option<i64>) {
            let commit = self.table.commit().file(FileSpec::rows(&[json!({"id": identifier % 1_000})])).user(user);
            let commit = commit.identifier(identifier);
            match watermark {
                Some(watermark) => commit.watermark(watermark),
                None => commit,
            }
            .publish()
            .unwrap();
        }

        async fn table(&self) -> Arc<Table> {
            let catalog = FilesystemCatalog::open(self.dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
            catalog.table("d", "t").await.unwrap()
        }
    }

    async fn oldest(gate: &mut Gate) -> Option<i64> {
        gate.look().await.unwrap().first().map(|snapshot| snapshot.id.0)
    }

    #[tokio::test]
    async fn the_oldest_snapshot_that_satisfies_everything_is_the_answer() {
        let mut bed = Bed::new();
        bed.commit("cdc", 1, Some(1_000));
        bed.commit("cdc", 2, Some(2_000));
        bed.commit("repair", BATCH, None);
        bed.commit("cdc", 4, Some(4_000));
        let table = bed.table().await;
        let cdc = |identifier| Condition::Commit { user: "cdc".to_string(), identifier };
        for (conditions, answer) in [
            (vec![Condition::Watermark(1_500)], Some(2)),
            (vec![Condition::Watermark(1_500), Condition::Snapshot(SnapshotId(3))], Some(3)),
            (vec![cdc(3)], Some(4)),
            (vec![cdc(4)], Some(4)),
            (vec![cdc(5)], None),
            (vec![Condition::Commit { user: "repair".to_string(), identifier: BATCH }], Some(3)),
            (vec![Condition::Commit { user: "repair".to_string(), identifier: 1 }], None),
            (vec![Condition::Watermark(4_001)], None),
            (vec![Condition::Tag("eod".to_string())], None),
        ] {
            assert_eq!(oldest(&mut Gate::new(&table, conditions.clone())).await, answer, "{conditions:?}");
        }
        bed.table.tag("eod", 2).unwrap();
        assert_eq!(oldest(&mut Gate::new(&table, vec![Condition::Tag("eod".to_string())])).await, Some(1));
    }

    #[tokio::test]
    async fn looking_again_lists_nothing_and_sees_rollbacks() {
        let mut bed = Bed::new();
        bed.commit("cdc", 1, Some(1_000));
        let table = bed.table().await;
        let mut gate = Gate::new(&table, vec![Condition::Watermark(3_000)]);
        assert_eq!(oldest(&mut gate).await, None);
        let before = table.storage().counts();
        assert_eq!(oldest(&mut gate).await, None);
        bed.commit("cdc", 2, Some(2_000));
        bed.commit("cdc", 3, Some(3_000));
        assert_eq!(oldest(&mut gate).await, Some(3));
        assert_eq!((table.storage().counts() - before).lists, 0);
        // 3 is rolled back and used again, with less
        bed.table.expire(3).unwrap();
        std::fs::write(bed.table.root().join("snapshot/LATEST"), "2").unwrap();
        bed.commit("cdc", 4, Some(2_500));
        assert_eq!(oldest(&mut gate).await, None);
        let told = gate.diagnosis(i64::MAX, &SessionZone::utc());
        assert!(told.contains("the newest snapshot is 3"), "{told}");
    }

    #[tokio::test]
    async fn a_snapshot_that_expired_meanwhile_is_passed_over() {
        let mut bed = Bed::new();
        bed.commit("cdc", 1, Some(1_000));
        bed.commit("cdc", 2, Some(2_000));
        let table = bed.table().await;
        let mut gate = Gate::new(&table, vec![Condition::Watermark(500)]);
        assert_eq!(oldest(&mut gate).await, Some(1));
        bed.commit("cdc", 3, Some(3_000));
        bed.table.expire(1).unwrap();
        assert_eq!(oldest(&mut gate).await, Some(2));
        bed.table.expire(2).unwrap();
        assert_eq!(oldest(&mut gate).await, Some(3));
    }

    #[tokio::test]
    async fn a_table_without_watermark_never_opens_and_says_why() {
        let mut bed = Bed::new();
        bed.commit("cdc", 1, None);
        let table = bed.table().await;
        let mut gate = Gate::new(&table, vec![Condition::Watermark(i64::MIN + 1)]);
        assert_eq!(oldest(&mut gate).await, None);
        let told = gate.diagnosis(1_776_300_000_000, &SessionZone::utc());
        assert!(told.contains("watermark none") && told.contains("no commit came while waiting"), "{told}");
        bed.commit("cdc", 2, None);
        assert_eq!(oldest(&mut gate).await, None);
        let told = gate.diagnosis(1_776_300_000_000, &SessionZone::utc());
        assert!(told.contains("1 commits came, none moved the watermark"), "{told}");
    }

    #[tokio::test]
    async fn only_those_who_move_the_watermark_while_it_is_waited_for_are_named() {
        let mut bed = Bed::new();
        for (user, identifier, watermark) in [("cdc", 1, 1_000), ("cdc", 2, 2_000), ("old-job", 1, 3_000)] {
            bed.commit(user, identifier, Some(watermark));
        }
        let table = bed.table().await;
        let mut gate = Gate::new(&table, vec![Condition::Watermark(9_000)]);
        assert_eq!(oldest(&mut gate).await, None);
        assert_eq!(gate.raisers().into_keys().collect::<Vec<_>>(), ["cdc", "old-job"]);
        bed.commit("repair", 1, None);
        bed.commit("cdc", 3, Some(4_000));
        assert_eq!(oldest(&mut gate).await, None);
        let told = gate.diagnosis(1_776_300_000_000, &SessionZone::utc());
        assert!(told.ends_with("while waiting the watermark was moved by cdc alone"), "{told}");
        assert_eq!(gate.newest().map(|snapshot| snapshot.id.0), Some(5));
    }
}
