//! Which buckets can hold the keys asked for.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{Planner, drop_where, value_of};
use crate::error::Result;
use crate::notice::NoticeKind;
use crate::scan::bucket::BucketKey;
use crate::scan::live::Live;
use crate::scan::partitions::PartitionId;
use crate::scan::plan::Stage;
use crate::scan::rule::Rule;
use crate::snapshot::{Pin, Table};
use crate::spec::{Datum, ManifestFileMeta, SchemaId};

/// Schemas read, at most, to know how keys were hashed.
const SCHEMAS_LOOKED_AT: i64 = 32;

/// Buckets that can hold the keys asked for, and the rule as shown.
type WantedBuckets = (BTreeSet<i32>, Rule);

impl Planner<'_> {
    /// The buckets that can hold the keys asked for, under every bucket count that the manifests tell; None where one does
    /// not tell it, or where keys may have been hashed as another type. See `ranges` for why.
    pub(super) async fn wanted_buckets(
        &self,
        pin: &Arc<Pin>,
        table: &Arc<Table>,
        metas: &[ManifestFileMeta],
    ) -> Result<Option<BTreeSet<i32>>> {
        let counts: Option<BTreeSet<i32>> =
            metas.iter().map(|meta| meta.total_buckets.filter(|count| *count > 0)).collect();
        let newest = metas.iter().map(|meta| meta.schema_id).max();
        let (Some(counts), Some(newest)) = (counts, newest) else { return Ok(None) };
        let Some(key) = BucketKey::try_new(&self.schema, &pin.options)? else { return Ok(None) };
        let Some(keys) = key.keys(&self.filters.on_rows(), &|_| None) else { return Ok(None) };
        let mut wanted = BTreeSet::new();
        for count in counts {
            match key.buckets(&keys, count)? {
                Some(buckets) => wanted.extend(buckets),
                None => return Ok(None),
            }
        }
        // a manifest that was rewritten holds entries of older schemas than its own: any so far may be theirs
        if newest > pin.schema.id || pin.schema.id.0 >= SCHEMAS_LOOKED_AT {
            return Ok(None);
        }
        let ids = (0..=pin.schema.id.0).map(SchemaId).collect();
        let Ok(schemas) = self.schemas(pin, table, ids).await else { return Ok(None) };
        let same = schemas.values().all(|schema| key.same_types(&self.schema, schema));
        Ok(same.then_some(wanted))
    }

    /// `scan.bucket`: one bucket only. Says how much of the others is not read.
    pub(super) fn filter_scan_bucket(&mut self, pin: &Arc<Pin>, live: &mut [Live]) {
        let Some(bucket) = pin.options.scan.bucket else { return };
        let is_other = |file: &Live| file.entry.bucket.0 != bucket;
        let others: BTreeSet<(PartitionId, i32)> = live
            .iter()
            .filter(|file| file.is_kept() && is_other(file))
            .map(|file| (file.partition, file.entry.bucket.0))
            .collect();
        let (files, rows) = drop_where(live, Stage::Bucket, &Rule::BucketOption(bucket), is_other);
        if files > 0 {
            let (table, buckets) = (pin.table.name(), others.len() as u64);
            self.notices.push(NoticeKind::BucketOption { table, bucket, buckets, files, rows }.into());
        }
    }

    /// Drops buckets that cannot hold the keys asked for.
    pub(super) fn filter_buckets(
        &mut self,
        pin: &Arc<Pin>,
        live: &mut [Live],
        verdicts: &[Vec<Option<bool>>],
    ) -> Result<()> {
        let Some(key) = BucketKey::try_new(&self.schema, &pin.options)? else { return Ok(()) };
        let condition = self.filters.on_rows();
        // partition, bucket count → buckets that remain
        let mut wanted: HashMap<(PartitionId, i32), Option<WantedBuckets>> = HashMap::new();
        let mut keys: HashMap<PartitionId, Option<Arc<Vec<Vec<Datum>>>>> = HashMap::new();
        for file in live.iter_mut().filter(|file| file.is_kept()) {
            let (partition, total) = (file.partition, file.entry.total_buckets);
            if total <= 0 || !file.schema.as_deref().is_some_and(|schema| key.same_types(&self.schema, schema)) {
                continue;
            }
            let remaining = match wanted.get(&(partition, total)) {
                Some(known) => known,
                None => {
                    let keys = keys.entry(partition).or_insert_with(|| {
                        key.keys(&condition, &|number| value_of(verdicts, number, partition)).map(Arc::new)
                    });
                    let buckets = match keys {
                        Some(keys) => key.buckets(keys, total)?,
                        None => None,
                    };
                    let found = buckets.map(|buckets| {
                        let rule = if buckets.is_empty() {
                            Rule::NoKey
                        } else {
                            Rule::OtherBuckets { buckets: buckets.iter().copied().collect(), total }
                        };
                        (buckets, rule)
                    });
                    wanted.entry((partition, total)).or_insert(found)
                }
            };
            if let Some((buckets, rule)) = remaining
                && !buckets.contains(&file.entry.bucket.0)
            {
                let rule = rule.clone();
                file.drop_for(Stage::Bucket, &rule);
            }
        }
        Ok(())
    }
}
