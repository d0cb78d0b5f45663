//! The end of a plan: the limit, the order of units, the numbers of sections, the counts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::plan::{ScanPlan, Section, SectionClass, Stage, Unit};
use super::planner::{Considered, Planner};
use super::rule::Rule;
use crate::snapshot::Pin;

impl Planner<'_> {
    /// The plan.
    pub(crate) fn finish(mut self, pin: &Arc<Pin>) -> ScanPlan {
        let exact_filters = self.filters.exact();
        let limited = if exact_filters.iter().all(|exact| *exact) && !self.request.kind.keeps_deletes() {
            self.limit()
        } else {
            HashSet::new()
        };
        self.stages.by_limit = limited.len() as u64;
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_by(|one, other| match (self.units.get(*one), self.units.get(*other)) {
            (Some(one), Some(other)) => one.place_cmp(other),
            _ => std::cmp::Ordering::Equal,
        });
        // numbers of the sections, in the order of the plan
        let mut numbers: HashMap<(usize, usize), usize> = HashMap::new();
        for unit in &order {
            for (section, found) in self.units.get(*unit).iter().flat_map(|unit| unit.sections.iter().enumerate()) {
                if !found.runs.is_empty() {
                    numbers.insert((*unit, section), numbers.len());
                }
            }
        }
        let decisions = std::mem::take(&mut self.considered)
            .into_iter()
            .map(|Considered { mut file, kept, from }| {
                let partition = self.partitions.values(file.partition);
                let kept = kept.filter(|kept| {
                    let name = (kept.unit, file.entry.file.file_name.clone());
                    !limited.contains(&name)
                });
                if kept.is_none() && file.is_kept() {
                    file.drop_for(Stage::Limit, &Rule::Limit);
                }
                let shown = kept.as_ref().map(|kept| {
                    let section = numbers.get(&(kept.unit, kept.section)).copied().unwrap_or(0);
                    (section, kept.class, &kept.rule)
                });
                file.decision(partition, from, shown)
            })
            .collect();
        let mut slots: Vec<Option<Unit>> = std::mem::take(&mut self.units).into_iter().map(Some).collect();
        let mut units: Vec<Unit> =
            order.into_iter().filter_map(|unit| slots.get_mut(unit).and_then(Option::take)).collect();
        for unit in &mut units {
            unit.sections.retain(|section| !section.runs.is_empty());
        }
        units.retain(|unit| !unit.sections.is_empty());
        for section in units.iter().flat_map(|unit| &unit.sections) {
            let class = match section.class {
                SectionClass::Raw => 0,
                SectionClass::KindOnly => 1,
                SectionClass::Select => 2,
                SectionClass::Combine => 3,
            };
            if let Some(count) = self.stages.sections.get_mut(class) {
                *count += 1;
            }
            for file in section.files() {
                self.stages.kept_files += 1;
                self.stages.kept_rows = self.stages.kept_rows.saturating_add(file.physical_rows());
                self.stages.kept_bytes = self.stages.kept_bytes.saturating_add(file.entry.file.file_size);
            }
        }
        // units stand in the order of their partitions
        let begins = |pair: &[Unit]| matches!(pair, [one, next] if one.partition != next.partition);
        self.stages.kept_partitions =
            u64::from(!units.is_empty()) + units.windows(2).filter(|pair| begins(pair)).count() as u64;
        let counts = exact_filters.iter().all(|exact| *exact) && limited.is_empty();
        let exact_row_count = if counts {
            units
                .iter()
                .flat_map(|unit| &unit.sections)
                .try_fold(0u64, |sum, section| sum.checked_add(section.exact_rows()?))
        } else {
            None
        };
        ScanPlan {
            pin: Arc::clone(pin),
            kind: self.request.kind,
            units,
            stages: self.stages,
            decisions,
            key_interval: self.filters.key_interval(&self.schema),
            exact_filters,
            exact_row_count,
            notices: self.notices,
        }
    }

    /// Drops files that are not needed to reach the limit: only when files whose live rows are known reach it alone.
    fn limit(&mut self) -> HashSet<(usize, String)> {
        let mut dropped = HashSet::new();
        let Some(limit) = self.request.limit.map(|limit| limit as u64) else { return dropped };
        let known: u64 = self
            .units
            .iter()
            .flat_map(|unit| &unit.sections)
            .filter(|section| section.class == SectionClass::Raw)
            .flat_map(Section::files)
            .filter_map(|file| file.rows_after_vector())
            .fold(0, u64::saturating_add);
        if known < limit {
            return dropped;
        }
        let mut reached = 0u64;
        for (number, unit) in self.units.iter_mut().enumerate() {
            for section in &mut unit.sections {
                let raw = section.class == SectionClass::Raw;
                for run in &mut section.runs {
                    run.retain(|file| {
                        let rows = if raw { file.rows_after_vector() } else { None };
                        let keep = rows.is_some_and(|rows| rows > 0) && reached < limit;
                        if keep {
                            reached = reached.saturating_add(rows.unwrap_or(0));
                        } else {
                            dropped.insert((number, file.entry.file.file_name.clone()));
                        }
                        keep
                    });
                }
                section.runs.retain(|run| !run.is_empty());
            }
        }
        dropped
    }
}
