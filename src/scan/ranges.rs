//! Which manifests a plan reads, by the ranges their list names: partitions, buckets, levels.
//!
//! `scan.bucket` leaves no manifest out, since what it leaves unread is counted and told.
//!
//! Partition, bucket and level are part of a file's identity, so a manifest left out takes ADD and DELETE of the same
//! file with it. Only where a branch completes another, buckets and levels decide nothing here: what is read of a partition
//! there, files of other buckets included, decides whose rows it gives.
//!
//! A filter on the bucket key names buckets only together with a bucket count, and that is each entry's own: partitions are
//! rescaled one by one, and a manifest may hold entries from before and after. So its buckets decide about a manifest only
//! where every manifest of the read tells the count of its entries (`_TOTAL_BUCKETS`, which newer writers put down when
//! it is the same for all); then a manifest is left out when the filter's keys are in none of its buckets under *any* of
//! these counts. Under its own count alone would not do: writers differ in the count they put on a DELETE, and a file
//! whose DELETE is left out, but not its ADD, would come back to life.

use std::collections::BTreeSet;

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
    level: Option<i32>,
    /// Buckets that can hold the keys asked for, under every bucket count there is.
    buckets: Option<BTreeSet<i32>>,
}

impl<'a> ManifestFilter<'a> {
    /// `buckets`: those that can hold the keys asked for.
    pub(crate) fn try_new(
        filters: &Filters,
        schema: &'a TableSchema,
        options: &CoreOptions,
        kind: ScanKind,
        buckets: Option<BTreeSet<i32>>,
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
        Ok(Self { schema, partition, level, buckets })
    }

    fn may_hold_buckets(&self, meta: &ManifestFileMeta) -> bool {
        match (&self.buckets, meta.min_bucket, meta.max_bucket) {
            (Some(wanted), Some(low), Some(high)) if low <= high => wanted.range(low..=high).next().is_some(),
            _ => true,
        }
    }

    /// Keeps the manifests of every bucket and level: where another branch gives the partitions that this one lacks, it
    /// must be known which those are.
    pub(crate) fn of_all_partitions(self) -> Self {
        Self { level: None, buckets: None, ..self }
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
                // what a list with impossible counts says of ranges is worth no more
                meta.entry_count().is_none()
                    || within(self.level, meta.min_level, meta.max_level) && self.may_hold_buckets(meta)
            })
            .collect();
        if self.partition.is_empty() {
            return Ok(keep);
        }
        let indices = self.schema.partition_indices()?;
        for pruner in &self.partition {
            let mut table = BoundsTable::new(metas.iter().map(ManifestFileMeta::entry_count).collect());
            for column in pruner.columns() {
                let Some(position) = indices.iter().position(|index| index == column) else { continue };
                let Some(field) = self.schema.fields.get(*column) else { continue };
                let bounds = metas
                    .iter()
                    .map(|meta| {
                        let (stats, rows) = (&meta.partition_stats, meta.entry_count());
                        partition_bounds(stats, position, partitions.types().len(), rows, field)
                    })
                    .collect();
                table.add(&field.name, &field.value_type().data_type, bounds);
            }
            for ((slot, may), meta) in keep.iter_mut().zip(pruner.may_match(&table)).zip(metas) {
                *slot &= may || meta.entry_count().is_none();
            }
        }
        Ok(keep)
    }
}
