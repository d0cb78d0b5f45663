//! What a scan reads, and what EXPLAIN says about it.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use crate::query::view::LakeView;
use crate::scan::{ScanPlan, SectionClass, Stages};
use crate::snapshot::Pin;
use crate::spec::Zone;

/// The pin of a scan, how its rows are read, and what planning counted, stage by stage. The text is the same on every
/// run.
#[derive(Debug, Clone)]
pub struct ScanSummary {
    /// The pin.
    pub pin: Arc<Pin>,
    /// What is seen of it.
    pub view: LakeView,
    /// Zone of the session that planned: old files may need it for casts between local and absolute times, wherever the
    /// node runs.
    pub zone: Zone,
    /// Counts.
    pub stages: Stages,
    /// Files whose live rows were known from earlier statements when the scan was planned.
    pub recalled: Arc<HashSet<String>>,
    /// Where the scan stands among the reports of its statement, when it has one and was planned here.
    pub report: Option<usize>,
}

impl ScanSummary {
    /// The summary of a plan.
    pub fn new(plan: &ScanPlan, view: LakeView, zone: Zone) -> Self {
        Self { pin: Arc::clone(&plan.pin), view, zone, stages: plan.stages, recalled: Arc::default(), report: None }
    }

    /// What a node shows of it in a tree: a line each for table, pin and counts.
    pub(super) fn fmt_tree(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "table={}", self.table())?;
        writeln!(f, "{}", self.pin_text())?;
        write!(f, "{}", self.stages_text())
    }

    /// The table as SQL names it, with its view.
    pub fn table(&self) -> String {
        let name = self.pin.table.name();
        match self.view.name() {
            "" => name,
            view => format!("{name}${view}"),
        }
    }

    /// `snapshot=3, schema=0`, and the tag when there is one.
    pub fn pin_text(&self) -> String {
        let mut text = match &self.pin.snapshot {
            Some(snapshot) => format!("snapshot={}", snapshot.id),
            None => "snapshot=none".to_string(),
        };
        if let Some(tag) = &self.pin.tag {
            let _ = write!(text, ", tag={tag}");
        }
        let _ = write!(text, ", schema={}", self.pin.schema.id);
        text
    }

    /// Counts that are not zero, in the order of the stages.
    pub fn stages_text(&self) -> String {
        let stages = &self.stages;
        let mut text = format!("manifests={}", stages.manifests);
        if stages.manifests_pruned > 0 {
            let _ = write!(text, " ({} pruned)", stages.manifests_pruned);
        }
        let _ = write!(text, ", files={}/{}", stages.kept_files, stages.files);
        let dropped: Vec<String> = [
            ("partition", stages.by_partition),
            ("bucket", stages.by_bucket),
            ("level", stages.by_level),
            ("column", stages.by_column),
            ("key", stages.by_key),
            ("value", stages.by_value),
            ("index", stages.by_index),
            ("vector", stages.by_vector),
            ("comparison", stages.by_comparison),
            ("limit", stages.by_limit),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(rule, count)| format!("{rule} {count}"))
        .collect();
        if !dropped.is_empty() {
            let _ = write!(text, " (dropped by {})", dropped.join(", "));
        }
        let _ = write!(text, ", rows={}", stages.kept_rows);
        let sections: Vec<String> =
            [SectionClass::Raw, SectionClass::KindOnly, SectionClass::Select, SectionClass::Combine]
                .into_iter()
                .zip(stages.sections)
                .filter(|(_, count)| *count > 0)
                .map(|(class, count)| format!("{} {count}", class.as_str()))
                .collect();
        if !sections.is_empty() {
            let _ = write!(text, ", sections=[{}]", sections.join(", "));
        }
        text
    }
}

impl fmt::Display for ScanSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={}, {}, {}", self.table(), self.pin_text(), self.stages_text())
    }
}
