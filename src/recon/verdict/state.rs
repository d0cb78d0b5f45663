//! What is known of the table beside its keys: how far it has come, its rows at the pin and around it, what is wrong.

use std::sync::Arc;

use super::count::FinalRows;
use super::decide::layer_of_detector;
use super::model::{AccountingPoint, Anomaly, CommitRef, ConflictLine, Counts, LakeState, Limit};
use super::{COMMITS, Lake};
use crate::error::{ErrorKind, Result};
use crate::recon::accounting::{Accounting, AccountingOptions, account};
use crate::recon::anomalies::{Finding, anomalies};
use crate::recon::conflicts::{Around, Verdict, conflicts};
use crate::recon::history::{ListKind, Recorded};
use crate::spec::{CommitIdentifier, CommitKind, Snapshot, SnapshotId};

/// Raw rows of a snapshot up to which its keys are read for a chart.
const READ_ROWS: i64 = 5_000_000;

impl Lake {
    /// A commit as it is told.
    pub fn commit(&self, snapshot: &Snapshot) -> CommitRef {
        CommitRef {
            snapshot: snapshot.id.0,
            user: snapshot.commit_user.clone(),
            identifier: CommitIdentifier(snapshot.commit_identifier).to_string(),
            kind: snapshot.commit_kind.as_str().to_string(),
            time_ms: snapshot.time_millis,
            time: self.zone.show(snapshot.time_millis),
            watermark_ms: snapshot.watermark,
            delta_rows: snapshot.delta_record_count,
        }
    }

    /// The commits in force, ascending: of several states with one number the snapshot.
    pub(super) fn line(&self) -> Vec<&Recorded> {
        let mut line: Vec<&Recorded> = Vec::new();
        for recorded in &self.history.commits {
            match line.last_mut() {
                Some(last) if last.id() == recorded.id() => *last = recorded,
                _ => line.push(recorded),
            }
        }
        line
    }

    /// The newest commits, ascending.
    pub(super) fn commits(&self) -> Vec<CommitRef> {
        let line = self.line();
        let from = line.len().saturating_sub(COMMITS);
        line.into_iter().skip(from).map(|recorded| self.commit(&recorded.snapshot)).collect()
    }

    /// Who brought most rows up to the pin.
    pub(super) fn find_main_user(&self) -> Option<String> {
        let mut users: std::collections::BTreeMap<&str, (i64, i64)> = std::collections::BTreeMap::new();
        for recorded in self.line() {
            let snapshot = &recorded.snapshot;
            if snapshot.id <= self.at.id && snapshot.commit_kind == CommitKind::Append {
                let (rows, commits) = users.entry(&snapshot.commit_user).or_default();
                *rows = rows.saturating_add(snapshot.delta_record_count.unwrap_or(0));
                *commits += 1;
            }
        }
        users.into_iter().max_by_key(|(_, sums)| *sums).map(|(user, _)| user.to_string())
    }

    /// What was read, and how far the table has come.
    pub(super) fn state(&self) -> LakeState {
        let line = self.line();
        let up_to: Vec<&Arc<Snapshot>> =
            line.iter().map(|recorded| &recorded.snapshot).filter(|snapshot| snapshot.id <= self.at.id).collect();
        let watermark = up_to.iter().rev().find_map(|snapshot| snapshot.watermark);
        let mut users: Vec<CommitRef> = Vec::new();
        for snapshot in up_to.iter().rev() {
            if !users.iter().any(|known| known.user == snapshot.commit_user) {
                users.push(self.commit(snapshot));
            }
        }
        let newest = self.history.latest().unwrap_or(&self.at);
        let newer = self.history.snapshots().filter(|snapshot| snapshot.id > self.at.id).count();
        LakeState {
            table: self.history.table().name(),
            position: self.pin.describe(&self.zone),
            at: self.commit(&self.at),
            newest: self.commit(newest),
            newer_snapshots: newer as u64,
            watermark: watermark.map(|watermark| self.zone.show_watermark(watermark)),
            watermark_lag_ms: watermark.and_then(|watermark| self.at.time_millis.checked_sub(watermark)),
            users,
            history: self.history.reach(&self.zone),
            history_whole: self.history.is_whole(),
        }
    }

    async fn accounting(&self, snapshot: &Arc<Snapshot>, exact: bool) -> Result<Accounting> {
        let options = AccountingOptions {
            exact,
            zone: self.zone.zone(),
            budget: Arc::clone(&self.budget),
            partitions: Vec::new(),
            config: None,
        };
        let own = snapshot.id == self.at.id && snapshot.delta_manifest_list == self.at.delta_manifest_list;
        let pin = if own { Arc::clone(&self.pin) } else { self.history.pin_of(snapshot) };
        account(&pin, self.history.env(), &options).await
    }

    /// Rows at the pin.
    pub(super) async fn counts(&self) -> Result<Counts> {
        let found = self.accounting(&self.at, true).await?;
        let total = &found.total;
        let up_to = self.line().into_iter().map(|r| &r.snapshot).filter(|snapshot| snapshot.id <= self.at.id);
        let up_to: Vec<&Arc<Snapshot>> = up_to.collect();
        let changelog: Option<i64> = up_to.iter().map(|snapshot| snapshot.changelog_record_count).sum();
        let appended = up_to.iter().filter(|snapshot| snapshot.commit_kind == CommitKind::Append);
        let appended: i64 = appended.filter_map(|snapshot| snapshot.delta_record_count).fold(0, i64::saturating_add);
        Ok(Counts {
            raw_rows: total.raw_rows,
            hidden_rows: total.hidden_rows,
            vector_deleted: total.vector_deleted,
            superseded: total.superseded,
            tombstoned: total.tombstoned,
            final_rows: total.final_rows,
            changelog_rows: changelog.and_then(|rows| u64::try_from(rows).ok()),
            appended_rows: u64::try_from(appended).unwrap_or(0),
            violations: found.violations,
        })
    }

    /// Rows at some snapshots: the pin, its neighbours, the newest, others evenly between.
    pub(super) async fn series(&self, most: usize, limits: &mut Vec<Limit>) -> Result<Vec<AccountingPoint>> {
        let all: Vec<&Arc<Snapshot>> = self.history.snapshots().collect();
        let Some(last) = all.len().checked_sub(1) else { return Ok(Vec::new()) };
        let at = all.iter().position(|snapshot| snapshot.id == self.at.id).unwrap_or(last);
        let mut chosen: Vec<usize> =
            [0, 1, 2].into_iter().flat_map(|step| [at.saturating_sub(step), at + step]).collect();
        chosen.extend([0, last]);
        // what a gate on the pin's watermark gives, and the last state before it
        let reached = self.reached().and_then(|id| all.iter().position(|snapshot| snapshot.id == id));
        chosen.extend(reached.into_iter().flat_map(|place| [place, place.saturating_sub(1)]));
        let each = all.len().div_ceil(most.max(1));
        chosen.extend((0..all.len()).step_by(each.max(1)));
        chosen.sort_unstable();
        chosen.dedup();
        let mut points = Vec::new();
        for snapshot in chosen.into_iter().filter_map(|place| all.get(place)) {
            let exact = snapshot.total_record_count.is_some_and(|rows| rows <= READ_ROWS);
            match self.accounting(snapshot, exact).await {
                Ok(found) => points.push(AccountingPoint {
                    snapshot: snapshot.id.0,
                    raw_rows: found.total.raw_rows,
                    superseded: exact.then_some(found.total.superseded),
                    final_rows: exact.then_some(found.total.final_rows),
                }),
                Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Exhausted) => {
                    return Err(error);
                }
                Err(error) => limits.push(Limit {
                    what: format!("rows of snapshot {}", snapshot.id),
                    why: error.message().to_string(),
                }),
            }
        }
        Ok(points)
    }

    /// The first snapshot with the watermark in force at the pin.
    fn reached(&self) -> Option<SnapshotId> {
        let line = self.line();
        let mut up_to = line.iter().rev().filter(|recorded| recorded.id() <= self.at.id);
        let watermark = up_to.find_map(|recorded| recorded.snapshot.watermark)?;
        self.history.snapshots().find(|snapshot| snapshot.watermark >= Some(watermark)).map(|snapshot| snapshot.id)
    }

    /// Final rows of other states that the count of the other side may be one of.
    pub(super) fn other_states(&self, series: &[AccountingPoint]) -> Vec<FinalRows> {
        let reached = self.reached();
        let others = series.iter().filter(|point| point.snapshot != self.at.id.0);
        let named = others.filter_map(|point| {
            let apart = point.snapshot - self.at.id.0;
            let what = match apart {
                1 => ", the next one".to_string(),
                -1 => ", the one before".to_string(),
                _ if reached.is_some_and(|id| id.0 == point.snapshot) => {
                    ", the first with the pin's watermark".to_string()
                }
                _ => String::new(),
            };
            Some(FinalRows { name: format!("snapshot {}{what}", point.snapshot), rows: point.final_rows? })
        });
        let mut all: Vec<FinalRows> = named.collect();
        // the nearest explains best
        let distance = |state: &FinalRows| {
            let id = state.name.trim_start_matches("snapshot ").split(',').next().and_then(|id| id.parse::<i64>().ok());
            id.map_or(u64::MAX, |id| id.abs_diff(self.at.id.0))
        };
        all.sort_by_key(distance);
        all
    }

    /// What is wrong in the history, and what detectors could not look at.
    pub(super) async fn anomalies(&self) -> Result<(Vec<Anomaly>, Vec<Limit>)> {
        let found = anomalies(&self.history, &self.zone).await?;
        let (found, unchecked): (Vec<Finding>, Vec<Finding>) = found.into_iter().partition(|finding| finding.checked);
        let limits = unchecked.into_iter().map(|one| {
            let why = one.evidence.split_once(": not checked, because ").map(|(_, why)| why.to_string());
            Limit { what: format!("detector {}", one.detector), why: why.unwrap_or(one.evidence) }
        });
        let told = found.into_iter().map(|finding| Anomaly {
            detector: finding.detector.to_string(),
            severity: finding.severity.as_str().to_string(),
            layer: layer_of_detector(finding.detector),
            snapshots: finding.snapshots.iter().map(|id| id.0).collect(),
            users: finding.users,
            unit: finding.unit,
            explanation: finding.explanation,
            evidence: finding.evidence,
            confidence: finding.confidence,
        });
        Ok((told.collect(), limits.collect()))
    }

    /// Pairs of commits that met: those about some commits, and those that were not as the protocol wants it.
    pub(super) async fn conflicts(&self, about: &[i64]) -> Result<Vec<ConflictLine>> {
        let found = conflicts(&self.history, Around::Times(i64::MIN, i64::MAX), &self.zone).await?;
        let wanted = found.pairs.into_iter().filter(|one| {
            matches!(one.verdict, Verdict::WrongCoWriting | Verdict::Suspicious)
                || about.contains(&one.commit.id.0)
                || about.contains(&one.opponent.id.0)
        });
        let told = wanted.map(|one| ConflictLine {
            commit: self.commit(&one.commit),
            opponent: self.commit(&one.opponent),
            relation: one.relation.as_str().to_string(),
            units: one.units.into_iter().collect(),
            verdict: one.verdict.as_str().to_string(),
            confidence: one.confidence,
        });
        Ok(told.collect())
    }

    /// Why some changes up to the pin cannot be told, where lists are lost.
    pub(super) async fn lost_lists(&self) -> Vec<Limit> {
        let mut limits = Vec::new();
        for unread in &self.history.unread {
            limits.push(Limit { what: unread.what.clone(), why: unread.error.message().to_string() });
        }
        if let Err(error) = self.history.entries(&self.at, ListKind::Base).await {
            limits.push(Limit { what: format!("snapshot {}", self.at.id), why: error.message().to_string() });
        }
        limits
    }
}
