//! What a plan has to read and has read so far: for limits, for progress, for the line under a result.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;

use super::nodes::merge_source::FileRef;
use super::nodes::{DeferredExec, MergeSource, MetadataExec, ReadExec, ScanSummary};
use super::yielding::multiplies;
use crate::scan::PlannedFile;

/// The data files and rows of a plan's scans.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Data files to read.
    pub files: u64,
    /// Data files whose rows metadata tells, so that they are not opened.
    pub told_files: u64,
    /// Of these the ones whose live rows an earlier statement found.
    pub remembered_files: u64,
    /// Bytes of those to read.
    pub file_bytes: u64,
    /// Physical rows in those.
    pub file_rows: u64,
    /// Files opened for their rows so far.
    pub files_read: u64,
    /// Rows that came out of the leaves of the plan so far, those that are no scans of ours included.
    pub rows_read: u64,
    /// Whether rows are joined: how long that takes, the files do not tell.
    pub joins: bool,
    /// Time spent choosing the live versions of keys, waiting for them included, summed over sections.
    pub merging: Duration,
}

impl Work {
    /// What `plan` has to do and did.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut work = Self::default();
        for_leaves(plan, &mut |leaf| work.add(leaf));
        work.joins = joins(plan);
        work
    }

    fn add(&mut self, leaf: &Arc<dyn ExecutionPlan>) {
        let metrics = leaf.metrics().unwrap_or_default();
        self.rows_read += metrics.output_rows().map_or(0, |rows| rows as u64);
        if let Some(node) = leaf.downcast_ref::<ReadExec>() {
            let before = self.files;
            self.told_files += node.told_files().count() as u64;
            for item in node.partitions().iter().flatten().filter(|item| !node.is_told(item)) {
                item.files().for_each(|file| self.add_file(file));
            }
            // files opened for their keys are opened again for their rows
            let opened = sum(&metrics, "files_read").saturating_sub(sum(&metrics, "key_files_read"));
            self.files_read += opened.min(self.files - before);
            self.merging += Duration::from_nanos(sum(&metrics, "select_time"));
            return;
        }
        if let Some(node) = leaf.downcast_ref::<MetadataExec>() {
            self.told_files += node.summary().stages.kept_files;
            self.remembered_files += node.summary().recalled.len() as u64;
            return;
        }
        if let Some(node) = leaf.downcast_ref::<DeferredExec>() {
            self.files += node.work().files;
            self.file_bytes = self.file_bytes.saturating_add(node.work().file_bytes);
            return;
        }
        let Some(scan) = lake_source(leaf) else { return };
        let (config, source) = scan;
        // a large file may be read in several pieces
        let mut pieces = 0u64;
        let mut files: Vec<&Arc<PlannedFile>> = Vec::new();
        for file in config.file_groups.iter().flat_map(|group| group.iter()) {
            pieces += 1;
            let planned = file.extension::<FileRef>().and_then(|reference| reference.planned().ok());
            if let Some(planned) = planned
                && !files.last().is_some_and(|last| Arc::ptr_eq(last, planned))
            {
                files.push(planned);
            }
        }
        files.sort_by_key(|file| Arc::as_ptr(file));
        files.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let distinct = files.len() as u64;
        files.into_iter().for_each(|file| self.add_file(file));
        let processed = sum(&metrics, "files_processed").min(pieces);
        self.files_read += (processed * distinct).checked_div(pieces).unwrap_or(0);
        self.merging += Duration::from_nanos(source.counters().select_nanos());
    }

    fn add_file(&mut self, file: &Arc<PlannedFile>) {
        self.files += 1;
        self.file_bytes = self.file_bytes.saturating_add(file.entry.file.file_size);
        self.file_rows = self.file_rows.saturating_add(file.physical_rows());
    }

    /// The part that is done, between 0 and 1; None when it cannot be told.
    #[expect(clippy::cast_precision_loss, reason = "a share is shown in per cent")]
    pub fn share(&self) -> Option<f64> {
        if self.joins {
            return None;
        }
        let part = |done: u64, all: u64| (all > 0).then(|| (done as f64 / all as f64).min(1.0));
        let (files, rows) = (part(self.files_read, self.files)?, part(self.rows_read, self.file_rows)?);
        Some(files.max(rows))
    }
}

/// The scans of a plan, each once however many nodes it became.
pub fn scans(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<ScanSummary>> {
    scan_works(plan).into_iter().map(|(summary, _)| summary).collect()
}

/// The same, each with what it has to read. A scan that metadata answered has nothing to.
pub fn scan_works(plan: &Arc<dyn ExecutionPlan>) -> Vec<(Arc<ScanSummary>, Work)> {
    let mut found: Vec<(Arc<ScanSummary>, Work)> = Vec::new();
    for_nodes(plan, &mut |node| {
        let summary = match (node.downcast_ref::<ReadExec>(), node.downcast_ref::<MetadataExec>()) {
            (Some(node), _) => node.summary(),
            (None, Some(node)) => node.summary(),
            (None, None) => match lake_source(node) {
                Some((_, source)) => source.summary(),
                None => return,
            },
        };
        let at = found.iter().position(|(known, _)| Arc::ptr_eq(known, summary));
        let at = at.unwrap_or_else(|| {
            found.push((Arc::clone(summary), Work::default()));
            found.len() - 1
        });
        if let Some((_, work)) = found.get_mut(at) {
            work.add(node);
        }
    });
    found
}

/// Data files of a scan that are not opened.
pub struct Told {
    /// Where the scan was reported.
    pub report: usize,
    /// Their bare names; None: all that the scan keeps.
    pub files: Option<HashSet<String>>,
    /// Those whose live rows an earlier statement found; of the others metadata tells enough.
    pub remembered: Arc<HashSet<String>>,
}

/// The data files that need not be opened, by scan.
pub fn told_files(plan: &Arc<dyn ExecutionPlan>) -> Vec<Told> {
    let mut told = Vec::new();
    for_nodes(plan, &mut |node| {
        if let Some(node) = node.downcast_ref::<ReadExec>()
            && let Some(report) = node.summary().report
        {
            let names = node.told_files().map(|file| file.entry.file.file_name.clone()).collect();
            told.push(Told { report, files: Some(names), remembered: Arc::default() });
        }
        if let Some(node) = node.downcast_ref::<MetadataExec>()
            && let Some(report) = node.summary().report
        {
            told.push(Told { report, files: None, remembered: Arc::clone(&node.summary().recalled) });
        }
    });
    told
}

/// Our files under DataFusion's own source.
fn lake_source(leaf: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &MergeSource)> {
    let config = leaf.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
    Some((config, config.file_source().downcast_ref::<MergeSource>()?))
}

fn joins(plan: &Arc<dyn ExecutionPlan>) -> bool {
    multiplies(plan.as_ref()) || plan.children().into_iter().any(joins)
}

fn for_leaves(plan: &Arc<dyn ExecutionPlan>, f: &mut dyn FnMut(&Arc<dyn ExecutionPlan>)) {
    for_nodes(plan, &mut |node| {
        if node.children().is_empty() {
            f(node);
        }
    });
}

fn for_nodes(plan: &Arc<dyn ExecutionPlan>, f: &mut dyn FnMut(&Arc<dyn ExecutionPlan>)) {
    f(plan);
    for child in plan.children() {
        for_nodes(child, f);
    }
}

fn sum(metrics: &MetricsSet, name: &str) -> u64 {
    metrics.sum_by_name(name).map_or(0, |value| value.as_usize() as u64)
}
