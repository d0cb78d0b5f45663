//! Statistics against filters: which files, alone or with those they share keys with, hold no row that is wanted.

use std::collections::HashSet;
use std::sync::Arc;

use super::filters::{Conjunct, Reach};
use super::live::Live;
use super::plan::Stage;
use super::planner::{BucketDraft, Planner, value_of};
use super::prune::{BoundsTable, Pruner};
use super::rule::Rule;
use super::sections::Draft;
use super::stats::{Bounds, key_bounds, value_bounds};
use crate::spec::options::MergeEngine;

impl Planner<'_> {
    /// Holds conditions against the statistics of files that `which` admits and drops those they contradict.
    pub(super) fn judge(
        &self,
        live: &mut [Live],
        reach: Reach,
        stage: Stage,
        verdicts: &[Vec<Option<bool>>],
        which: impl Fn(usize) -> bool,
    ) {
        for (conjunct, pruner) in self.pruners(|known| known == reach) {
            let files: Vec<usize> = live
                .iter()
                .enumerate()
                .filter(|(number, file)| file.is_kept() && which(*number))
                .map(|(number, _)| number)
                .collect();
            let verdict = self.may_match(pruner, &files, live, verdicts);
            let condition = Arc::clone(&conjunct.text);
            let rule = if stage == Stage::Key { Rule::Keys(condition) } else { Rule::Values(condition) };
            for (number, keep) in files.into_iter().zip(verdict) {
                if !keep && let Some(file) = live.get_mut(number) {
                    file.drop_for(stage, &rule);
                }
            }
        }
    }

    fn pruners(&self, wanted: impl Fn(Reach) -> bool) -> impl Iterator<Item = (&Conjunct, &Pruner)> {
        self.filters
            .conjuncts
            .iter()
            .filter(move |conjunct| wanted(conjunct.reach))
            .filter_map(|conjunct| Some((conjunct, conjunct.pruner.as_ref()?)))
    }

    /// For each of `files` whether a row of it may meet the pruner's condition.
    fn may_match(&self, pruner: &Pruner, files: &[usize], live: &[Live], verdicts: &[Vec<Option<bool>>]) -> Vec<bool> {
        let found: Vec<&Live> = files.iter().filter_map(|number| live.get(*number)).collect();
        let rows = found.iter().map(|file| u64::try_from(file.entry.file.row_count).ok()).collect();
        let mut table = BoundsTable::new(rows);
        let keys = if self.schema.is_primary_key_table() {
            self.schema.trimmed_primary_key().unwrap_or_default()
        } else {
            Vec::new()
        };
        for column in pruner.columns() {
            let Some(field) = self.schema.fields.get(*column) else { continue };
            let bounds = found
                .iter()
                .map(|file| {
                    let Some(schema) = &file.schema else { return Bounds::unknown() };
                    let meta = &file.entry.file;
                    if keys.contains(column) {
                        let bounds = key_bounds(meta, schema, field, self.sorted_by_key);
                        if bounds != Bounds::unknown() {
                            return bounds;
                        }
                    }
                    value_bounds(meta, schema, field)
                })
                .collect();
            table.add(&field.name, &field.value_type().data_type, bounds);
        }
        for number in pruner.partitions() {
            let values = found.iter().map(|file| value_of(verdicts, *number, file.partition)).collect();
            table.add_partition_value(*number, values);
        }
        pruner.may_match(&table)
    }

    /// Value statistics of a primary-key table: single files only where files are judged alone; elsewhere a section goes
    /// whole or not at all, and not where merged values exist in no file.
    pub(super) fn judge_sections(
        &self,
        live: &mut [Live],
        buckets: &mut [BucketDraft],
        verdicts: &[Vec<Option<bool>>],
        engine: MergeEngine,
    ) {
        if self.pruners(|reach| reach == Reach::Value).next().is_none() {
            return;
        }
        let alone: HashSet<usize> = buckets
            .iter()
            .flat_map(|bucket| &bucket.sections)
            .filter(|section| section.alone)
            .flat_map(Draft::files)
            .collect();
        self.judge(live, Reach::Value, Stage::Value, verdicts, |number| alone.contains(&number));
        if !matches!(engine, MergeEngine::Deduplicate | MergeEngine::FirstRow) {
            return;
        }
        for (conjunct, pruner) in self.pruners(|reach| reach == Reach::Value) {
            let together: Vec<usize> = buckets
                .iter()
                .flat_map(|bucket| &bucket.sections)
                .filter(|section| !section.alone)
                .flat_map(Draft::files)
                .filter(|number| live.get(*number).is_some_and(Live::is_kept))
                .collect();
            let verdict = self.may_match(pruner, &together, live, verdicts);
            let matching: HashSet<usize> =
                together.iter().zip(verdict).filter_map(|(number, keep)| keep.then_some(*number)).collect();
            let rule = Rule::ValuesTogether(Arc::clone(&conjunct.text));
            for section in buckets.iter().flat_map(|bucket| &bucket.sections).filter(|section| !section.alone) {
                if section.files().any(|number| matching.contains(&number)) {
                    continue;
                }
                for number in section.files() {
                    if let Some(file) = live.get_mut(number)
                        && file.is_kept()
                    {
                        file.drop_for(Stage::Value, &rule);
                    }
                }
            }
        }
    }
}
