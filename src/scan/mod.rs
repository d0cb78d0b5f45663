//! A pin to sections: manifests read and folded, files pruned, sections cut.
//!
//! [`plan`] is the door. It touches metadata only, never a data file, and answers with a [`ScanPlan`]: which files of
//! which bucket are read, in which sections, raw or merged, under which deletion vectors; how many rows that is when
//! it can be known; and, on request, what became of every file considered and which rule decided.
//!
//! The order of the steps: manifest lists, manifests (pruned by partition, bucket and level), entries folded by
//! identity, partitions, level visibility, buckets, key statistics, sections, value statistics and file indexes where
//! they cannot change what a merge returns, and the limit where row counts are proven.

mod agree;
mod bucket;
mod clean;
mod common;
mod condition;
mod evolution;
mod filters;
mod finish;
mod incremental;
mod index;
mod judge;
mod key_range;
mod lists;
mod literal;
mod live;
mod manifests;
mod partitions;
mod place;
mod plan;
mod planner;
mod progress;
mod prune;
mod ranges;
mod rule;
mod sections;
mod seen;
mod stats;
mod vectors;

pub use common::CommonFiles;
pub use filters::exact_filters;
pub use key_range::KeyInterval;
pub use lists::manifests;
pub use literal::{datum_to_scalar, scalar_to_datum};
pub use live::is_above;
#[cfg(feature = "codec")]
pub(crate) use live::key_range;
pub use manifests::{
    MANIFEST_CACHE_BYTES, ManifestCache, blame_manifest, entries_of_list, index_files, live_files, manifest_of,
    manifests_of_list,
};
pub use partitions::partition_text;
pub use plan::{
    ChangeRange, DeletionFile, FileDecision, FileRead, PlannedFile, REQUESTS_AT_ONCE, ScanEnv, ScanKind, ScanPlan,
    ScanRequest, Section, SectionClass, Stage, Stages, Unit,
};
pub use progress::ScanProgress;
pub use rule::Rule;
pub use seen::{BranchFiles, files_of_branches, why_unseen};

use std::collections::HashSet;
use std::sync::Arc;

use self::planner::{Planner, Source};
use crate::error::Result;
use crate::snapshot::Pin;

/// Plans one read of a pinned table.
///
/// # Errors
/// Metadata that is missing, damaged or of a kind this reader refuses; a partition filter that fails on a partition
/// the table has.
pub async fn plan(pin: &Arc<Pin>, request: &ScanRequest, env: &ScanEnv) -> Result<ScanPlan> {
    pin.check_readable()?;
    let mut planner = Planner::try_new(pin, request, env)?;
    if request.of.is_some() {
        planner.add_source(Source { pin, branch: None, without: HashSet::new() }, None).await?;
        return Ok(planner.finish(pin));
    }
    let changes = incremental::change_lists(pin, request.kind, env.concurrency).await?;
    // what is there in the first is read from it; the second gives the other partitions
    let (first, second) = if changes.is_none() { seen::branches(pin) } else { (pin, None) };
    let branch = |source: &Arc<Pin>| (!Arc::ptr_eq(source, pin)).then(|| source.table.ident().branch.clone());
    let source = Source { pin: first, branch: branch(first), without: HashSet::new() };
    let present = planner.add_source(source, changes.as_deref()).await?;
    if let Some(second) = second {
        evolution::check_branch(second, first)?;
        planner.add_source(Source { pin: second, branch: branch(second), without: present }, None).await?;
    }
    Ok(planner.finish(pin))
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod tests;
