//! Which manifests a plan reads, by the ranges their list names: partitions, buckets, levels.
//!
//! Partition, bucket and level are part of a file's identity, so a manifest left out takes ADD and DELETE of the same
//! file with it.

use super::condition::{Condition, Conditions};
use super::filters::{Filters, Reach};
use super::partitions::Partitions;
use super::plan::ScanKind;
use super::prune::{BoundsTable, Pruner};
use super::stats::partition_bounds;
use crate::error::Result;
use crate::spec::{CoreOptions, ManifestFileMeta, TableSchema};

/// What a manifest must hold to be read.
pub(crate) struct ManifestFilter<'a> {
    schema: &'a TableSchema,
    partition: Vec<Pruner>,
    bucket: Option<i32>,
    level: Option<i32>,
}

impl<'a> ManifestFilter<'a> {
    pub(crate) fn try_new(
        filters: &Filters,
        schema: &'a TableSchema,
        options: &CoreOptions,
        kind: ScanKind,
    ) -> Result<Self> {
        // partition columns judged by their range, like any other column
        let mut conditions = Conditions::by_range(schema);
        let partition = filters
            .conjuncts
            .iter()
            .filter(|conjunct| conjunct.reach == Reach::Partition)
            .map(|conjunct| conditions.of(&conjunct.expr))
            .filter(|condition| *condition != Condition::Unknown)
            .filter_map(|condition| Pruner::try_new(&condition, schema))
            .collect();
        let level = (kind == ScanKind::ReadOptimized && schema.is_primary_key_table()).then_some(options.max_level);
        Ok(Self { schema, partition, bucket: options.scan.bucket, level })
    }

    /// Keeps the manifests of every bucket and level: where another branch gives the partitions that this one lacks, it
    /// must be known which those are.
    pub(crate) fn of_all_partitions(self) -> Self {
        Self { bucket: None, level: None, ..self }
    }

    /// For each manifest whether it may name a wanted file.
    pub(crate) fn keep(&self, metas: &[ManifestFileMeta], partitions: &Partitions) -> Result<Vec<bool>> {
        let within = |wanted: Option<i32>, low: Option<i32>, high: Option<i32>| match wanted {
            None => true,
            Some(wanted) => low.is_none_or(|low| low <= wanted) && high.is_none_or(|high| wanted <= high),
        };
        let mut keep: Vec<bool> = metas
            .iter()
            .map(|meta| {
                within(self.bucket, meta.min_bucket, meta.max_bucket)
                    && within(self.level, meta.min_level, meta.max_level)
            })
            .collect();
        if self.partition.is_empty() {
            return Ok(keep);
        }
        let rows = |meta: &ManifestFileMeta| {
            let entries = meta.num_added_files.checked_add(meta.num_deleted_files)?;
            u64::try_from(entries).ok()
        };
        let indices = self.schema.partition_indices()?;
        for pruner in &self.partition {
            let mut table = BoundsTable::new(metas.iter().map(rows).collect());
            for column in pruner.columns() {
                let Some(position) = indices.iter().position(|index| index == column) else { continue };
                let Some(field) = self.schema.fields.get(*column) else { continue };
                let bounds = metas
                    .iter()
                    .map(|meta| {
                        partition_bounds(&meta.partition_stats, position, partitions.types().len(), rows(meta), field)
                    })
                    .collect();
                table.add(&field.name, field.data_type(), bounds);
            }
            for (slot, may) in keep.iter_mut().zip(pruner.may_match(&table)) {
                *slot &= may;
            }
        }
        Ok(keep)
    }
}
