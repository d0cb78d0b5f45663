//! D-7, D-9, D-17, D-19: what commits did to files.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::material::Commit;
use super::{Finding, Material, Severity, span};
use crate::error::Result;
use crate::recon::creation::{CreationClock, SKEW_MILLIS};
use crate::recon::history::FileChange;
use crate::recon::lookup::Confidence;
use crate::spec::{BinaryRow, CommitKind, FileSource, ManifestEntry, Snapshot, SnapshotId};

pub(super) fn detect(material: &Material<'_>, found: &mut Vec<Finding>) -> Result<()> {
    added_twice(material, found)?;
    inverted_sequences(material, found)?;
    let clock = CreationClock::of(material.commits.iter().map(|commit| (commit.snapshot().as_ref(), commit.changes())));
    lost_under_overwrite(material, &clock, found)?;
    files_from_the_future(material, &clock, found);
    Ok(())
}

fn is_rollback(snapshot: &Snapshot) -> bool {
    snapshot.commit_user.starts_with("rollback-to-as-latest")
}

/// D-7
fn added_twice(material: &Material<'_>, found: &mut Vec<Finding>) -> Result<()> {
    let mut added: HashMap<(&str, i32, &BinaryRow), &Commit<'_>> = HashMap::new();
    for commit in material.commits.iter().filter(|commit| !is_rollback(commit.snapshot())) {
        for change in commit.changes() {
            let FileChange::Add(entry) = change else { continue };
            let place = (entry.file.file_name.as_str(), entry.bucket.0, &entry.partition);
            let Some(first) = added.insert(place, commit) else { continue };
            let (one, next) = (first.snapshot(), commit.snapshot());
            found.push(
                Finding::new(
                    "D-7",
                    Severity::Error,
                    Confidence::Exact,
                    "a data file was committed twice: the messages of a commit that had succeeded were committed again",
                )
                .seen(format!("file {}, added by snapshots {} and {}", entry.file.file_name, one.id, next.id))
                .at([one.id, next.id])
                .of([one.commit_user.as_str(), &next.commit_user])
                .in_unit(material.texts.unit(entry)?),
            );
        }
    }
    Ok(())
}

/// D-9
fn inverted_sequences(material: &Material<'_>, found: &mut Vec<Finding>) -> Result<()> {
    let options = &material.history.pin.options;
    let keyed = material.history.pin.schema.is_primary_key_table();
    if !keyed || !options.sequence_fields.is_empty() || options.sequence_snapshot_ordering {
        return Ok(());
    }
    type Level0<'a> = Vec<(&'a Arc<Snapshot>, &'a Arc<ManifestEntry>)>;
    let mut units: BTreeMap<(Vec<u8>, i32), Level0<'_>> = BTreeMap::new();
    for commit in &material.commits {
        for change in commit.changes() {
            let FileChange::Add(entry) = change else { continue };
            if entry.file.level == 0 && entry.bucket.0 >= 0 && entry.file.file_source != Some(FileSource::Compact) {
                let unit = (entry.partition.0.to_vec(), entry.bucket.0);
                units.entry(unit).or_default().push((commit.snapshot(), entry));
            }
        }
    }
    for files in units.into_values() {
        // per pair of users the first, and how often
        let mut pairs: BTreeMap<(&str, &str), (Finding, u64)> = BTreeMap::new();
        // the highest sequence number of each user so far, and who had it
        let mut highest: BTreeMap<&str, (&Arc<Snapshot>, &Arc<ManifestEntry>)> = BTreeMap::new();
        for (snapshot, entry) in files {
            let user = snapshot.commit_user.as_str();
            for (other, (earlier, file)) in &highest {
                let inverted = *other != user
                    && earlier.id < snapshot.id
                    && entry.file.min_sequence_number <= file.file.max_sequence_number;
                if !inverted {
                    continue;
                }
                if let Some((_, times)) = pairs.get_mut(&(*other, user)) {
                    *times += 1;
                    continue;
                }
                let finding = Finding::new(
                    "D-9",
                    Severity::Error,
                    Confidence::Exact,
                    "two users write one bucket without a sequence.field: the later commit has the lower sequence numbers, \
                     and of a key that both wrote the earlier value stays",
                )
                .seen(format!(
                    "snapshot {} of {other} has sequence numbers {}..{}, snapshot {} of {user} after it {}..{}",
                    earlier.id,
                    file.file.min_sequence_number,
                    file.file.max_sequence_number,
                    snapshot.id,
                    entry.file.min_sequence_number,
                    entry.file.max_sequence_number
                ))
                .at([earlier.id, snapshot.id])
                .of([*other, user])
                .in_unit(material.texts.unit(entry)?);
                pairs.insert((*other, user), (finding, 1));
            }
            let best = highest.entry(user).or_insert((snapshot, entry));
            if entry.file.max_sequence_number >= best.1.file.max_sequence_number {
                *best = (snapshot, entry);
            }
        }
        found.extend(pairs.into_values().map(|(mut finding, times)| {
            if times > 1 {
                finding.evidence.push_str(&format!("; {times} times in all"));
            }
            finding
        }));
    }
    Ok(())
}

fn added<'a>(commit: &'a Commit<'_>) -> impl Iterator<Item = &'a Arc<ManifestEntry>> {
    commit.changes().iter().filter_map(|change| match change {
        FileChange::Add(entry) => Some(entry),
        FileChange::Delete(_) | FileChange::Upgrade { .. } => None,
    })
}

/// Files of one user that an overwrite removed.
struct Lost<'a> {
    ids: Vec<SnapshotId>,
    rows: i64,
    files: u64,
    entry: &'a Arc<ManifestEntry>,
}

/// D-17
fn lost_under_overwrite(material: &Material<'_>, clock: &CreationClock, found: &mut Vec<Finding>) -> Result<()> {
    // who added each file, last
    let mut adders: HashMap<(&str, i32, &BinaryRow), &Arc<Snapshot>> = HashMap::new();
    for commit in &material.commits {
        let snapshot = commit.snapshot();
        if snapshot.commit_kind == CommitKind::Overwrite && !is_rollback(snapshot) {
            let start = clock.started(snapshot, commit.changes());
            let mut lost: BTreeMap<&str, Lost<'_>> = BTreeMap::new();
            for change in commit.changes() {
                let FileChange::Delete(entry) = change else { continue };
                let place = (entry.file.file_name.as_str(), entry.bucket.0, &entry.partition);
                let Some(adder) = adders.get(&place) else { continue };
                let during = start.is_some_and(|start| adder.time_millis > start);
                if during && adder.commit_user != snapshot.commit_user && adder.commit_kind == CommitKind::Append {
                    let lost =
                        lost.entry(&adder.commit_user).or_insert(Lost { ids: Vec::new(), rows: 0, files: 0, entry });
                    lost.ids.push(adder.id);
                    lost.rows = lost.rows.saturating_add(entry.file.row_count);
                    lost.files += 1;
                }
            }
            for (user, Lost { ids, rows, files, entry }) in lost {
                found.push(
                    Finding::new(
                        "D-17",
                        Severity::Error,
                        Confidence::Heuristic,
                        "an overwrite removed files that another user committed after the overwrite had begun to write: \
                         those rows are lost",
                    )
                    .seen(format!(
                        "snapshot {} of {} removed {files} files with {rows} rows of {user}, first written {} before its \
                         commit",
                        snapshot.id,
                        snapshot.commit_user,
                        span(start.map_or(0, |start| snapshot.time_millis.saturating_sub(start)))
                    ))
                    .at(ids.into_iter().chain([snapshot.id]))
                    .of([snapshot.commit_user.as_str(), user])
                    .in_unit(material.texts.unit(entry)?),
                );
            }
        }
        for entry in added(commit) {
            adders.insert((entry.file.file_name.as_str(), entry.bucket.0, &entry.partition), snapshot);
        }
    }
    Ok(())
}

/// D-19
fn files_from_the_future(material: &Material<'_>, clock: &CreationClock, found: &mut Vec<Finding>) {
    for commit in &material.commits {
        let snapshot = commit.snapshot();
        if is_rollback(snapshot) {
            continue;
        }
        let newest = added(commit)
            .filter_map(|entry| {
                let created = clock.instant(&snapshot.commit_user, entry.file.creation_time_millis?)?;
                Some((created, &entry.file.file_name))
            })
            .max();
        let Some((created, file)) = newest else { continue };
        let ahead = created.saturating_sub(snapshot.time_millis);
        if ahead > SKEW_MILLIS {
            found.push(
                Finding::new(
                    "D-19",
                    Severity::Warning,
                    Confidence::Heuristic,
                    "a snapshot names files that were made after it: a clock is wrong, or metadata was made up",
                )
                .seen(format!("file {file} was made {} after snapshot {}", span(ahead), snapshot.id))
                .at([snapshot.id])
                .of([snapshot.commit_user.as_str()]),
            );
        }
    }
}
