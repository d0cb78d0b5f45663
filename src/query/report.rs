//! What the scans of a statement found, for whoever shows its result.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::notice::Notice;
use crate::scan::{FileDecision, ScanKind, ScanProgress, Stages};
use crate::snapshot::Pin;

/// One scan, as planned.
#[derive(Debug, Clone)]
pub struct ScanReport {
    /// What was read.
    pub pin: Arc<Pin>,
    /// How.
    pub kind: ScanKind,
    /// Counts per stage.
    pub stages: Stages,
    /// What the user should know (rows hidden by design, options ignored).
    pub notices: Vec<Notice>,
    /// What became of every file, when it was asked for.
    pub decisions: Arc<Vec<FileDecision>>,
    /// Time spent planning it, manifests included.
    pub planning: Duration,
}

/// Collects the reports of a statement: plan nodes can be optimised away (`count(*)` from metadata), what they found
/// stays.
#[derive(Debug, Default)]
pub struct ScanLog {
    reports: Mutex<Vec<ScanReport>>,
    explain_files: bool,
    progress: Arc<ScanProgress>,
}

impl ScanLog {
    /// An empty log.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// An empty log whose scans tell `progress` how far they are.
    pub fn watched(progress: Arc<ScanProgress>) -> Arc<Self> {
        Arc::new(Self { progress, ..Self::default() })
    }

    /// An empty log whose scans say what became of every file (`EXPLAIN FILES`).
    pub fn explaining_files(progress: Arc<ScanProgress>) -> Arc<Self> {
        Arc::new(Self { explain_files: true, progress, ..Self::default() })
    }

    /// How far the planning is.
    pub fn progress(&self) -> &Arc<ScanProgress> {
        &self.progress
    }

    /// Whether scans say what became of every file.
    pub fn explains_files(&self) -> bool {
        self.explain_files
    }

    /// Adds a report; where it stands among [`Self::reports`].
    pub fn push(&self, report: ScanReport) -> usize {
        let mut reports = self.reports.lock();
        reports.push(report);
        reports.len() - 1
    }

    /// The reports so far, in the order of planning.
    pub fn reports(&self) -> Vec<ScanReport> {
        self.reports.lock().clone()
    }
}
