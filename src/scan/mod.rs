//! A pin to sections: manifests read and folded, files pruned, sections cut.
//!
//! [`plan`] is the door. It touches metadata only, never a data file, and answers with a [`ScanPlan`]: which files of
//! which bucket are read, in which sections, raw or merged, under which deletion vectors; how many rows that is when
//! it can be known; and, on request, what became of every file considered and which rule decided.
//!
//! The order of the steps: manifest lists, manifests (pruned by partition, bucket and level), entries folded by
//! identity, partitions, level visibility, buckets, key statistics, sections, value statistics and file indexes where
//! they cannot change what a merge returns, and the limit where row counts are proven.

mod plan;

pub use plan::{
    ChangeRange, DeletionFile, FileDecision, FileRead, PlannedFile, ScanEnv, ScanKind, ScanPlan, ScanRequest, Section,
    SectionClass, Stages, Unit,
};

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::snapshot::Pin;

/// Plans one read of a pinned table.
///
/// # Errors
/// Metadata that is missing, damaged or of a kind this reader refuses; a partition filter that fails on a partition
/// the table has.
pub async fn plan(pin: &Arc<Pin>, request: &ScanRequest, env: &ScanEnv) -> Result<ScanPlan> {
    let _ = (pin, request, env);
    Err(Error::internal("not built yet"))
}
