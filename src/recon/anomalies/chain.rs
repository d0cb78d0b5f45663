//! D-2, D-6, D-8, D-10, D-18, D-20: how snapshots follow each other.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::material::Commit;
use super::{Finding, Material, Severity, listed, some_of, span};
use crate::error::{Error, ErrorKind, Result};
use crate::recon::history::{FileChange, ListKind};
use crate::recon::lookup::Confidence;
use crate::recon::unreferenced::unreferenced_lists;
use crate::spec::options::RetentionOptions;
use crate::spec::{CommitKind, END_OF_INPUT, FileKind, ManifestEntry, Snapshot, SnapshotId};

/// Clocks of two machines may differ by so much.
const SKEW_MILLIS: i64 = 1_000;

/// A watermark that stands still for so long, and so many commits of rows, is told.
const STANDS_MILLIS: i64 = 3_600_000;
const STANDS_COMMITS: usize = 5;

pub(super) async fn detect(material: &Material<'_>, found: &mut Vec<Finding>) -> Result<()> {
    gaps(material, found).await?;
    counts(material, found).await?;
    times(material, found);
    watermarks(material, found);
    lost_snapshots(material, found).await?;
    unknown_commits(material, found).await?;
    retention(material, found)
}

/// D-2
async fn gaps(material: &Material<'_>, found: &mut Vec<Finding>) -> Result<()> {
    // what lies below the hint is being expired
    let earliest = material.history.table().earliest_snapshot_id().await?.map_or(1, |id| id.0);
    let unread = |id: i64| material.history.unread.iter().any(|unread| unread.snapshot == Some(SnapshotId(id)));
    let ids: Vec<i64> =
        material.history.snapshots().map(|snapshot| snapshot.id.0).filter(|id| *id >= earliest).collect();
    for pair in ids.windows(2) {
        let [one, next] = pair else { continue };
        let missing: Vec<i64> = (one + 1..*next).filter(|id| !unread(*id)).take(1_000).collect();
        let (Some(first), Some(last)) = (missing.first(), missing.last()) else { continue };
        let which = if first == last { first.to_string() } else { format!("{first}..{last}") };
        found.push(
            Finding::new(
                "D-2",
                Severity::Error,
                Confidence::Exact,
                "snapshots are missing from between others: files were deleted by hand, a rollback raced with commits, or \
                 the store is damaged",
            )
            .seen(format!("snapshot {which} is not there, {one} and {next} are"))
            .at([SnapshotId(*one), SnapshotId(*next)]),
        );
    }
    Ok(())
}

fn rows_of(changes: &[FileChange]) -> i64 {
    changes.iter().fold(0i64, |sum, change| match change {
        FileChange::Add(entry) => sum.saturating_add(entry.file.row_count),
        FileChange::Delete(entry) => sum.saturating_sub(entry.file.row_count),
        FileChange::Upgrade { .. } => sum,
    })
}

/// D-6
async fn counts(material: &Material<'_>, found: &mut Vec<Finding>) -> Result<()> {
    let mut finding = |evidence: String, ids: &[SnapshotId], user: &str| {
        found.push(
            Finding::new(
                "D-6",
                Severity::Error,
                Confidence::Exact,
                "the row counts of snapshots do not add up: a committer counts wrongly, or a commit was lost when another \
                 one was published",
            )
            .seen(evidence)
            .at(ids.iter().copied())
            .of([user]),
        );
    };
    for commit in &material.commits {
        let snapshot = commit.snapshot();
        if let (Some(told), Ok(changes)) = (snapshot.delta_record_count, &commit.changes)
            && rows_of(changes) != told
        {
            let evidence =
                format!("snapshot {} tells {told} new rows, its files have {}", snapshot.id, rows_of(changes));
            finding(evidence, &[snapshot.id], &snapshot.commit_user);
        }
    }
    for (one, next) in material.neighbours() {
        let (one, next) = (one.snapshot(), next.snapshot());
        if let (Some(before), Some(total), Some(delta)) =
            (one.total_record_count, next.total_record_count, next.delta_record_count)
            && before.checked_add(delta) != Some(total)
        {
            let evidence = format!("snapshot {} has {before} rows, {} adds {delta} and has {total}", one.id, next.id);
            finding(evidence, &[one.id, next.id], &next.commit_user);
        }
    }
    // that all live files together have the rows of the newest snapshot
    if let Some(latest) = material.history.latest() {
        match material.history.live(latest).await {
            Err(error) if error.code() == "ManifestIncomplete" => {
                finding(error.message().to_string(), &[latest.id], &latest.commit_user);
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            // what is lost or damaged is told as D-15
            Err(error) => found.push(
                Finding::unchecked(
                    "D-6",
                    format!("the files of snapshot {} cannot be told: {}", latest.id, error.message()),
                )
                .at([latest.id]),
            ),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// D-8
fn times(material: &Material<'_>, found: &mut Vec<Finding>) {
    for (one, next) in material.neighbours() {
        let (one, next) = (one.snapshot(), next.snapshot());
        let back = one.time_millis.saturating_sub(next.time_millis);
        if back > 0 {
            let severity = if back < SKEW_MILLIS { Severity::Info } else { Severity::Warning };
            found.push(
                Finding::new(
                    "D-8",
                    severity,
                    Confidence::Exact,
                    "commit times go back: time travel by timestamp is not reliable here",
                )
                .seen(format!("snapshot {} was committed {} before snapshot {}", next.id, span(back), one.id))
                .at([one.id, next.id])
                .of([one.commit_user.as_str(), &next.commit_user]),
            );
        }
    }
}

/// D-10
fn watermarks(material: &Material<'_>, found: &mut Vec<Finding>) {
    let mut raised: BTreeMap<&str, Vec<SnapshotId>> = BTreeMap::new();
    for (one, next) in material.neighbours() {
        let (before, after) = (one.snapshot().watermark, next.snapshot().watermark);
        if after.is_some_and(|after| after != END_OF_INPUT && before.is_none_or(|before| after > before)) {
            raised.entry(&next.snapshot().commit_user).or_default().push(next.snapshot().id);
        }
    }
    if raised.len() > 1 {
        let evidence: Vec<String> = raised
            .iter()
            .map(|(user, ids)| format!("{user} {} times, last in snapshot {}", ids.len(), listed(ids.last())))
            .collect();
        let ids: Vec<SnapshotId> = raised.values().filter_map(|ids| ids.last().copied()).collect();
        found.push(
            Finding::new(
                "D-10",
                Severity::Warning,
                Confidence::Exact,
                "several users raise the watermark: the fastest hides the others, and a gate on it proves nothing of them",
            )
            .seen(evidence.join("; "))
            .at(ids)
            .of(raised.keys().copied()),
        );
    }
    // a stretch of commits of rows under one watermark
    let data = |commit: &&Commit<'_>| {
        let snapshot = commit.snapshot();
        snapshot.commit_kind == CommitKind::Append && rows_of(commit.changes()) > 0
    };
    let with_rows: Vec<&Arc<Snapshot>> = material.commits.iter().filter(data).map(Commit::snapshot).collect();
    for stretch in with_rows.chunk_by(|one, next| one.watermark == next.watermark) {
        let (Some(first), Some(last)) = (stretch.first(), stretch.last()) else { continue };
        let Some(watermark) = first.watermark.filter(|watermark| *watermark != END_OF_INPUT) else { continue };
        let stood = last.time_millis.saturating_sub(first.time_millis);
        if stood > STANDS_MILLIS && stretch.len() >= STANDS_COMMITS {
            let users: BTreeSet<&str> = stretch.iter().map(|snapshot| snapshot.commit_user.as_str()).collect();
            found.push(
                Finding::new(
                    "D-10",
                    Severity::Warning,
                    Confidence::Exact,
                    "the watermark stands still while rows arrive: a gate on it waits in vain, or answers too early",
                )
                .seen(format!(
                    "{} over {} commits with rows in {}",
                    material.zone.show_watermark(watermark),
                    stretch.len(),
                    span(stood)
                ))
                .at([first.id, last.id])
                .of(users),
            );
        }
    }
}

/// D-18 (a): a base list that does not go on from the snapshot before.
async fn lost_snapshots(material: &Material<'_>, found: &mut Vec<Finding>) -> Result<()> {
    for (one, next) in material.neighbours() {
        let (Some(before), Some(now)) = (&one.lists, &next.lists) else { continue };
        let ids = [one.snapshot().id, next.snapshot().id];
        let unchecked = |error: &Error| {
            let why = format!("snapshot {} cannot be put beside {}: {}", ids[1], ids[0], error.message());
            Finding::unchecked("D-18", why).at(ids)
        };
        let ((base_before, delta_before), base) = match (before, now) {
            (Ok((base_before, delta_before)), Ok((base, _))) => ((base_before, delta_before), base),
            (Err(error), _) | (_, Err(error)) => {
                found.push(unchecked(error));
                continue;
            }
        };
        let before: HashSet<&str> =
            base_before.iter().chain(delta_before).map(|meta| meta.file_name.as_str()).collect();
        let now: HashSet<&str> = base.iter().map(|meta| meta.file_name.as_str()).collect();
        if before == now {
            continue;
        }
        // merged manifests have other names: what they hold tells
        let (old, new) = match live_pair(material, one, next).await {
            Ok(pair) => pair,
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(error) => {
                found.push(unchecked(&error));
                continue;
            }
        };
        let keys = |entries: &[Arc<ManifestEntry>]| -> BTreeSet<(String, i32, i32, Vec<u8>)> {
            let key = |entry: &Arc<ManifestEntry>| {
                (entry.file.file_name.clone(), entry.file.level, entry.bucket.0, entry.partition.0.to_vec())
            };
            entries.iter().map(key).collect()
        };
        let (old, new) = (keys(&old), keys(&new));
        let lacks: Vec<&str> = old.difference(&new).map(|key| key.0.as_str()).collect();
        let extra: Vec<&str> = new.difference(&old).map(|key| key.0.as_str()).collect();
        if lacks.is_empty() && extra.is_empty() {
            continue;
        }
        let (one, next) = (one.snapshot(), next.snapshot());
        let mut evidence = Vec::new();
        if let Some(file) = lacks.first() {
            evidence.push(format!("{} files of snapshot {} are not in it, such as {file}", lacks.len(), one.id));
        }
        if let Some(file) = extra.first() {
            evidence.push(format!("{} files in it were never in snapshot {}, such as {file}", extra.len(), one.id));
        }
        found.push(
            Finding::new(
                "D-18",
                Severity::Error,
                Confidence::Exact,
                "a snapshot does not go on from the one before it: two committers published the same number, and one was \
                 overwritten after it was told that it had succeeded",
            )
            .seen(format!("base list of snapshot {}: {}", next.id, evidence.join("; ")))
            .at([one.id, next.id])
            .of([one.commit_user.as_str(), &next.commit_user]),
        );
    }
    Ok(())
}

/// D-18 (b): a list that nothing names, with data files that no commit ever added.
async fn unknown_commits(material: &Material<'_>, found: &mut Vec<Finding>) -> Result<()> {
    let strays = match unreferenced_lists(material.history).await {
        Ok(strays) => strays,
        Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
        // a branch that cannot be read may name anything: what is damaged of this one is told as D-15
        Err(error) => {
            let why = format!("what the branches of the table name cannot be told: {}", error.message());
            found.push(Finding::unchecked("D-18", why));
            return Ok(());
        }
    };
    if !strays.dark.is_empty() {
        let why = format!("lists that no snapshot names cannot be read: {}", some_of(&strays.dark));
        found.push(Finding::unchecked("D-18", why));
    }
    if strays.lists.is_empty() {
        return Ok(());
    }
    // what cannot be read may name the files too
    if !strays.unread.is_empty() {
        let why = format!(
            "{} lists that no snapshot names speak of files that what cannot be read may have: {}",
            strays.lists.len(),
            some_of(&strays.unread)
        );
        found.push(Finding::unchecked("D-18", why));
        return Ok(());
    }
    for list in strays.lists {
        let rows = list.added.iter().fold(0i64, |sum, entry| sum.saturating_add(entry.file.row_count));
        let Some(first) = list.added.first() else { continue };
        found.push(
            Finding::new(
                "D-18",
                Severity::Error,
                Confidence::Inferred,
                "a commit wrote its metadata and is in no snapshot: another committer overwrote it after it was told that \
                 it had succeeded, unless it gave up for good or was rolled back",
            )
            .seen(format!(
                "manifest list {} of {} names {} data files with {rows} rows that no snapshot has, such as {}",
                list.file.name,
                material.zone.show(list.file.modified_millis),
                list.added.len(),
                first.file.file_name
            ))
            .in_unit(material.texts.unit(first)?),
        );
    }
    Ok(())
}

/// The live files of a snapshot, and those that the base list of its follower holds.
async fn live_pair(
    material: &Material<'_>,
    one: &Commit<'_>,
    next: &Commit<'_>,
) -> Result<(Vec<Arc<ManifestEntry>>, Vec<Arc<ManifestEntry>>)> {
    let history = material.history;
    let mut before = history.entries(one.snapshot(), ListKind::Base).await?;
    before.extend(history.entries(one.snapshot(), ListKind::Delta).await?);
    let after = history.entries(next.snapshot(), ListKind::Base).await?;
    Ok((live(&before), live(&after)))
}

fn live(entries: &[Arc<ManifestEntry>]) -> Vec<Arc<ManifestEntry>> {
    crate::spec::manifest::live(entries.iter())
        .into_iter()
        .filter(|entry| entry.kind == FileKind::Add)
        .map(Arc::clone)
        .collect()
}

/// D-20
fn retention(material: &Material<'_>, found: &mut Vec<Finding>) -> Result<()> {
    let history = material.history;
    let options = RetentionOptions::parse(&history.pin.options.raw)?;
    let snapshots: Vec<&Arc<Snapshot>> = history.snapshots().collect();
    let (Some(first), Some(last)) = (snapshots.first(), snapshots.last()) else { return Ok(()) };
    let reach = last.time_millis.saturating_sub(first.time_millis);
    let by_count = options.at_most.is_some_and(|most| i64::try_from(snapshots.len()).is_ok_and(|count| count >= most));
    if by_count && first.id.0 > 1 && reach < options.millis {
        found.push(
            Finding::new(
                "D-20",
                Severity::Warning,
                Confidence::Exact,
                "snapshots expire by their number before the time they are to be kept for is over: what reconciliation \
                 needs may be gone",
            )
            .seen(format!(
                "{} snapshots reach back {}, snapshot.time-retained is {}, snapshot.num-retained.max {}",
                snapshots.len(),
                span(reach),
                span(options.millis),
                options.at_most.unwrap_or_default()
            ))
            .at([first.id, last.id]),
        );
    }
    Ok(())
}
