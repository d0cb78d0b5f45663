//! What is wrong in a table's history: one detector for each fault that was met in the field.
//!
//! | file | detectors |
//! |---|---|
//! | `identity` | D-1, D-3, D-4, D-5: who committed what, and how often |
//! | `chain` | D-2, D-6, D-8, D-10, D-18, D-20: how snapshots follow each other |
//! | `files` | D-7, D-9, D-17, D-19: what commits did to files |
//! | `deep` | D-13, D-16: what only reading the rows shows, on request |
//! | `state` | D-11, D-12, D-14, D-15: what the newest snapshot holds |
//! | `needed` | D-15: whether the files that something kept names are there |

mod chain;
mod deep;
mod files;
mod identity;
mod material;
mod needed;
mod state;

pub use deep::deep;
pub(super) use deep::{encoded, hashes};
pub use material::Material;

use super::history::History;
use super::lookup::Confidence;
use crate::error::Result;
use crate::snapshot::SessionZone;
use crate::spec::SnapshotId;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Rows are wrong, lost or twice, or soon will be.
    Error,
    /// Something that reconciliation relies on does not hold.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `D-1` to `D-20`.
    pub detector: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The snapshots it is about, ascending.
    pub snapshots: Vec<SnapshotId>,
    /// The users it is about.
    pub users: Vec<String>,
    /// Partition and bucket, where it is about one.
    pub unit: Option<String>,
    /// What it means.
    pub explanation: String,
    /// What was seen.
    pub evidence: String,
    /// How sure it is.
    pub confidence: Confidence,
    /// Whether the detector looked; where not, nothing is wrong that is known of, and the evidence says why it could not.
    pub checked: bool,
}

impl Finding {
    fn new(detector: &'static str, severity: Severity, confidence: Confidence, explanation: &str) -> Self {
        Self {
            detector,
            severity,
            snapshots: Vec::new(),
            users: Vec::new(),
            unit: None,
            explanation: explanation.to_string(),
            evidence: String::new(),
            confidence,
            checked: true,
        }
    }

    /// That a detector could not look.
    fn unchecked(detector: &'static str, why: impl std::fmt::Display) -> Self {
        let what = "this was not checked, so that nothing is found by it here proves nothing";
        let told = Self::new(detector, Severity::Info, Confidence::Exact, what);
        Self { checked: false, ..told }.seen(format!("{detector}: not checked, because {why}"))
    }

    fn at(mut self, snapshots: impl IntoIterator<Item = SnapshotId>) -> Self {
        self.snapshots.extend(snapshots);
        self.snapshots.sort_unstable();
        self.snapshots.dedup();
        self
    }

    fn of<'a>(mut self, users: impl IntoIterator<Item = &'a str>) -> Self {
        for user in users {
            if !self.users.iter().any(|known| known == user) {
                self.users.push(user.to_string());
            }
        }
        self
    }

    fn in_unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.evidence = evidence.into();
        self
    }
}

/// Numbers of snapshots from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRange {
    /// The first.
    pub first: i64,
    /// The last.
    pub last: i64,
}

impl SnapshotRange {
    /// Whether a snapshot is one of them.
    pub fn contains(self, id: SnapshotId) -> bool {
        (self.first..=self.last).contains(&id.0)
    }

    /// Whether a finding is about one of them, or about none at all.
    pub fn concerns(self, finding: &Finding) -> bool {
        finding.snapshots.is_empty() || finding.snapshots.iter().any(|id| self.contains(*id))
    }
}

/// Runs all detectors that need no data file to be read, in the order of their numbers.
///
/// Cost: all metadata of the branch, of others where a commit was not published; a listing of each bucket that has files.
///
/// # Errors
/// Storage that does not answer. What is lost or damaged is a finding.
pub async fn anomalies(history: &History, zone: &SessionZone) -> Result<Vec<Finding>> {
    let material = Material::load(history, zone).await?;
    let mut found = Vec::new();
    unread_changes(&material, &mut found);
    identity::detect(&material, &mut found);
    chain::detect(&material, &mut found).await?;
    files::detect(&material, &mut found)?;
    state::detect(&material, &mut found).await?;
    sort(&mut found);
    Ok(found)
}

/// Detectors that look at what commits did to files.
const OF_CHANGES: &[&str] = &["D-1", "D-6", "D-7", "D-9", "D-10", "D-17", "D-19"];

/// Detectors that look at snapshots beside each other, besides those.
const OF_NEIGHBOURS: &[&str] = &["D-8", "D-18"];

/// Tells of the snapshots whose changes cannot be read, or that cannot be read themselves, which detectors have not looked
/// at them. That they cannot be read is D-15; what has expired is told as the reach of the history.
fn unread_changes(material: &Material<'_>, found: &mut Vec<Finding>) {
    let torn: Vec<SnapshotId> = material.history.unread.iter().filter_map(|unread| unread.snapshot).collect();
    for detector in OF_CHANGES.iter().chain(OF_NEIGHBOURS).copied().filter(|_| !torn.is_empty()) {
        let why = format!("snapshot {} cannot be read", some_of(&torn));
        found.push(Finding::unchecked(detector, why).at(torn.iter().copied()));
    }
    let unread = material.commits.iter().filter(|commit| commit.recorded.is_snapshot() && commit.changes.is_err());
    let ids: Vec<SnapshotId> = unread.map(|commit| commit.snapshot().id).collect();
    if ids.is_empty() {
        return;
    }
    let which = if ids.len() == 1 { "snapshot" } else { "snapshots" };
    for detector in OF_CHANGES.iter().copied() {
        let why = format!("the changes of {which} {} cannot be read", some_of(&ids));
        found.push(Finding::unchecked(detector, why).at(ids.iter().copied()));
    }
}

/// The first of some as `3, 5 and 7 more`.
fn some_of<T: ToString>(of: &[T]) -> String {
    const NAMED: usize = 5;
    let first = listed(of.iter().take(NAMED).map(ToString::to_string));
    match of.len().checked_sub(NAMED) {
        None | Some(0) => first,
        Some(more) => format!("{first} and {more} more"),
    }
}

/// Brings findings into the order of their detectors.
pub fn sort(found: &mut [Finding]) {
    let number = |finding: &Finding| finding.detector.trim_start_matches("D-").parse::<u32>().unwrap_or(u32::MAX);
    found.sort_by(|a, b| number(a).cmp(&number(b)).then_with(|| a.snapshots.cmp(&b.snapshots)));
}

/// Ids as `3, 5`.
fn listed<T: ToString>(of: impl IntoIterator<Item = T>) -> String {
    of.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

/// A stretch of time for people.
fn span(millis: i64) -> String {
    match millis.unsigned_abs() {
        ms @ ..1_000 => format!("{ms} ms"),
        ms @ ..120_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        ms @ ..7_200_000 => format!("{} min", ms / 60_000),
        ms @ ..172_800_000 => format!("{} h", ms / 3_600_000),
        ms => format!("{} days", ms / 86_400_000),
    }
}

#[cfg(test)]
mod tests;
