//! Reads of what changed between snapshots.
//!
//! Changes are those of the snapshots after the first, up to and with the last. Delta: the files that APPEND snapshots
//! added. Changelog: the changelog files of all snapshots but OVERWRITE. Both are read unmerged and nothing is hidden by
//! level. A diff compares the final rows of two pins, bucket by bucket.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use datafusion::logical_expr::Expr;

use super::filters::{Filters, Reach};
use super::plan::{ChangeRange, PlannedFile, ScanEnv, ScanKind, ScanPlan, ScanRequest, Section, SectionClass, Unit};
use crate::error::{Error, ErrorKind, Result};
use crate::snapshot::{Pin, Table};
use crate::spec::options::ChangelogProducer;
use crate::spec::{Bucket, CommitKind, CoreOptions, Datum, Snapshot, SnapshotId};
use crate::storage::Location;

/// A manifest list of changes and the snapshot it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeList {
    pub(crate) snapshot: SnapshotId,
    pub(crate) list: String,
    /// Its bytes, where the snapshot says so.
    pub(crate) size: Option<u64>,
}

/// Where changes are taken from when nothing is said: the changelog if the table makes one, else the deltas.
pub fn automatic_changes(options: &CoreOptions, range: ChangeRange) -> ScanKind {
    match options.changelog_producer {
        ChangelogProducer::None => ScanKind::Delta(range),
        _ => ScanKind::Changelog(range),
    }
}

/// The lists of a range, oldest first.
pub(crate) async fn change_lists(pin: &Pin, kind: ScanKind) -> Result<Option<Vec<ChangeList>>> {
    let (range, changelog) = match kind {
        ScanKind::Delta(range) => (range, false),
        ScanKind::Changelog(range) => (range, true),
        _ => return Ok(None),
    };
    let table = &pin.table;
    let mut lists = Vec::new();
    if range.upto == range.after {
        return Ok(Some(lists));
    }
    if range.upto < range.after {
        return Err(Error::invalid(format!("changes from {} to {} run backwards", range.after, range.upto))
            .with_code("ChangeRange")
            .with_context("table", table.name())
            .with_hint("name the older snapshot first"));
    }
    // a table without snapshots has no changes, whatever the range
    let Some(latest) = table.latest_snapshot_id().await? else { return Ok(Some(lists)) };
    if range.upto > latest {
        return Err(Error::not_found(format!("snapshot {} does not exist yet", range.upto))
            .with_code("ChangeRange")
            .with_context("table", table.name())
            .with_hint(format!("the latest snapshot is {latest}")));
    }
    let mut id = range.after.0;
    while id < range.upto.0 {
        id += 1;
        let snapshot = snapshot_or_changelog(table, SnapshotId(id)).await?;
        let (list, size) = if changelog {
            let list = snapshot.changelog_manifest_list.clone();
            (list.filter(|_| snapshot.commit_kind != CommitKind::Overwrite), snapshot.changelog_manifest_list_size)
        } else {
            let list = (snapshot.commit_kind == CommitKind::Append).then(|| snapshot.delta_manifest_list.clone());
            (list, snapshot.delta_manifest_list_size)
        };
        if let Some(list) = list.filter(|list| !list.is_empty()) {
            lists.push(ChangeList { snapshot: SnapshotId(id), list, size });
        }
    }
    Ok(Some(lists))
}

/// A snapshot, or what is kept of it for change reads after it expired.
async fn snapshot_or_changelog(table: &Arc<Table>, id: SnapshotId) -> Result<Arc<Snapshot>> {
    match table.snapshot(id).await {
        Ok(snapshot) => Ok(snapshot),
        Err(error) if error.kind() == ErrorKind::NotFound => match table.changelog(id).await {
            Ok(changelog) => Ok(changelog),
            Err(missing) if missing.kind() == ErrorKind::NotFound => Err(error),
            Err(other) => Err(other),
        },
        Err(error) => Err(error),
    }
}

/// One bucket of a diff. A side is None when it has nothing there that the other lacks.
#[derive(Debug, Clone)]
pub struct DiffBucket {
    /// Values of the partition columns.
    pub partition: Arc<[Datum]>,
    /// Bucket.
    pub bucket: Bucket,
    /// What the start has.
    pub start: Option<Unit>,
    /// What the end has.
    pub end: Option<Unit>,
}

/// What has to be read to compare two pins of a table.
#[derive(Debug, Clone)]
pub struct DiffPlan {
    /// Plan of the start; its units are in `buckets`.
    pub start: ScanPlan,
    /// Plan of the end.
    pub end: ScanPlan,
    /// Buckets that may differ.
    pub buckets: Vec<DiffBucket>,
    /// Files left out because both sides have them in the same place with the same vectors.
    pub common_files: u64,
}

/// Plans the comparison of two pins.
///
/// Both sides are merged in full; what is left out is only what is provably the same on both: sections (append tables:
/// files) made of the same files under the same deletion vectors. Filters on values are not used, for a row may meet
/// them on one side only; the caller applies them to the result.
///
/// # Errors
/// The tables have other keys, or a partition has another number of buckets on the two sides.
pub async fn plan_diff(start: &Arc<Pin>, end: &Arc<Pin>, filters: &[Expr], env: &ScanEnv) -> Result<DiffPlan> {
    let keyed = end.schema.is_primary_key_table();
    if start.schema.primary_keys.len() != end.schema.primary_keys.len() {
        return Err(Error::unsupported("the primary key changed between the two snapshots")
            .with_code("PrimaryKeyChanged")
            .with_context("table", end.table.name()));
    }
    let sides = [start, end].map(|pin| {
        let sorted = Filters::try_new(filters, &pin.schema)?;
        let usable = |number: usize| {
            sorted
                .conjuncts
                .iter()
                .filter(|conjunct| conjunct.filter == number)
                .all(|conjunct| matches!(conjunct.reach, Reach::Partition | Reach::Key))
        };
        let filters = filters.iter().enumerate().filter(|(number, _)| usable(*number)).map(|(_, f)| f.clone());
        Ok::<_, Error>(ScanRequest { filters: filters.collect(), ..ScanRequest::default() })
    });
    let [start_request, end_request] = sides;
    let (start_request, end_request) = (start_request?, end_request?);
    let (mut start, mut end) =
        futures::try_join!(super::plan(start, &start_request, env), super::plan(end, &end_request, env))?;
    let buckets = paired(std::mem::take(&mut start.units), std::mem::take(&mut end.units));
    if keyed && end.pin.options.bucket != -1 {
        check_bucket_counts(&buckets, &end.pin)?;
    }
    let mut common_files = 0;
    let buckets = buckets
        .into_iter()
        .filter_map(|(start, end)| {
            let (start, end) = match (start, end) {
                (Some(one), Some(other)) => without_common(one, other, keyed, &mut common_files),
                sides => sides,
            };
            let shown = start.as_ref().or(end.as_ref())?;
            Some(DiffBucket { partition: Arc::clone(&shown.partition), bucket: shown.bucket, start, end })
        })
        .collect();
    Ok(DiffPlan { start, end, buckets, common_files })
}

/// What two plans have of one bucket.
type Sides = (Option<Unit>, Option<Unit>);

/// The units of two plans, those of the same bucket side by side. Plans have their units in order.
fn paired(start: Vec<Unit>, end: Vec<Unit>) -> Vec<Sides> {
    let (mut start, mut end) = (start.into_iter().peekable(), end.into_iter().peekable());
    let mut pairs = Vec::new();
    loop {
        let order = match (start.peek(), end.peek()) {
            (None, None) => return pairs,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.place_cmp(other),
        };
        let one = if order.is_le() { start.next() } else { None };
        let other = if order.is_ge() { end.next() } else { None };
        pairs.push((one, other));
    }
}

/// Rows that moved to another bucket would look deleted in one and new in the other.
fn check_bucket_counts(buckets: &[Sides], pin: &Pin) -> Result<()> {
    let partition = |sides: &Sides| sides.0.as_ref().or(sides.1.as_ref()).map(|unit| Arc::clone(&unit.partition));
    for partition in buckets.chunk_by(|one, other| partition(one) == partition(other)) {
        let counts = |side: fn(&Sides) -> Option<&Unit>| -> BTreeSet<i32> {
            partition.iter().filter_map(side).map(|unit| unit.total_buckets).filter(|count| *count >= 0).collect()
        };
        let (before, after) = (counts(|sides| sides.0.as_ref()), counts(|sides| sides.1.as_ref()));
        let changed = before.iter().find_map(|one| Some((one, after.iter().find(|other| *other != one)?)));
        if let Some((before, after)) = changed {
            return Err(Error::unsupported(format!(
                "a partition has {before} buckets at the start and {after} at the end"
            ))
            .with_code("BucketsChanged")
            .with_context("table", pin.table.name())
            .with_hint("compare the two snapshots with EXCEPT"));
        }
    }
    Ok(())
}

/// What makes a file give the same rows on both sides: where it is, its level, its vector.
type FileKey = (Location, i32, Option<(Location, i32, i32)>);

fn file_key(file: &PlannedFile) -> FileKey {
    let vector = file.deletion.as_ref().map(|vector| (vector.location.clone(), vector.offset, vector.length));
    (file.location.clone(), file.entry.file.level, vector)
}

/// What makes a section give the same rows on both sides: it holds all of its keys.
fn section_key(section: &Section) -> (SectionClass, Vec<Vec<FileKey>>) {
    let runs = section.runs.iter().map(|run| run.iter().map(|file| file_key(file)).collect()).collect();
    (section.class, runs)
}

/// The two sides without what they have in common: sections, or files of an append table.
fn without_common(mut one: Unit, mut other: Unit, keyed: bool, common: &mut u64) -> (Option<Unit>, Option<Unit>) {
    if keyed {
        let keys = |unit: &Unit| unit.sections.iter().map(section_key).collect::<HashSet<_>>();
        let (mine, theirs) = (keys(&one), keys(&other));
        one.sections.retain(|section| {
            let shared = theirs.contains(&section_key(section));
            if shared {
                *common += section.files().count() as u64;
            }
            !shared
        });
        other.sections.retain(|section| !mine.contains(&section_key(section)));
    } else {
        let keys = |unit: &Unit| {
            unit.sections.iter().flat_map(Section::files).map(|file| file_key(file)).collect::<HashSet<_>>()
        };
        let (mine, theirs) = (keys(&one), keys(&other));
        let before = one.sections.iter().flat_map(Section::files).count();
        for (unit, elsewhere) in [(&mut one, &theirs), (&mut other, &mine)] {
            for run in unit.sections.iter_mut().flat_map(|section| &mut section.runs) {
                run.retain(|file| !elsewhere.contains(&file_key(file)));
            }
        }
        *common += (before - one.sections.iter().flat_map(Section::files).count()) as u64;
    }
    let rest = |mut unit: Unit| {
        for section in &mut unit.sections {
            section.runs.retain(|run| !run.is_empty());
        }
        unit.sections.retain(|section| !section.runs.is_empty());
        (!unit.sections.is_empty()).then_some(unit)
    };
    (rest(one), rest(other))
}
