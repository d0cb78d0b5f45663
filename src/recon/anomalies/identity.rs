//! D-1, D-3, D-4, D-5: who committed what, and how often.

use std::collections::BTreeMap;

use super::material::Commit;
use super::{Finding, Material, Severity, listed};
use crate::recon::commits::committer_instance;
use crate::recon::history::FileChange;
use crate::recon::lookup::Confidence;
use crate::spec::{BATCH, CommitKind, SnapshotId};

pub(super) fn detect(material: &Material<'_>, found: &mut Vec<Finding>) {
    published_twice(material, found);
    for (user, commits) in material.by_user() {
        falling_identifiers(user, &commits, found);
        two_committers(user, &commits, found);
        crash_between(user, &commits, found);
    }
}

/// The numbered commits of a user, batch jobs left out.
fn numbered<'a, 'b>(commits: &'b [&'b Commit<'a>]) -> impl Iterator<Item = &'b Commit<'a>> {
    commits.iter().copied().filter(|commit| commit.snapshot().commit_identifier != BATCH)
}

/// D-1
fn published_twice(material: &Material<'_>, found: &mut Vec<Finding>) {
    let mut seen: BTreeMap<(&str, i64, &str), Vec<SnapshotId>> = BTreeMap::new();
    for commit in &material.commits {
        let snapshot = commit.snapshot();
        // expiry of partitions deletes them in batches, under one identity
        let only_deletes = snapshot.commit_kind == CommitKind::Overwrite
            && commit.changes.is_ok()
            && commit.changes().iter().all(|change| matches!(change, FileChange::Delete(_)));
        if snapshot.commit_identifier != BATCH && !only_deletes {
            let identity = (snapshot.commit_user.as_str(), snapshot.commit_identifier, snapshot.commit_kind.as_str());
            seen.entry(identity).or_default().push(snapshot.id);
        }
    }
    for ((user, identifier, kind), ids) in seen.into_iter().filter(|(_, ids)| ids.len() > 1) {
        found.push(
            Finding::new(
                "D-1",
                Severity::Error,
                Confidence::Exact,
                "one commit was published more than once: its committer is broken, or does not ask what it has committed",
            )
            .seen(format!("({user}, {identifier}, {kind}) in snapshots {}", listed(&ids)))
            .at(ids)
            .of([user]),
        );
    }
}

/// D-3
fn falling_identifiers(user: &str, commits: &[&Commit<'_>], found: &mut Vec<Finding>) {
    let data: Vec<&&Commit<'_>> = commits
        .iter()
        .filter(|commit| matches!(commit.snapshot().commit_kind, CommitKind::Append | CommitKind::Overwrite))
        .collect();
    for pair in data.windows(2) {
        let [one, next] = pair else { continue };
        let (one, next) = (one.snapshot(), next.snapshot());
        if one.commit_identifier != BATCH && next.commit_identifier < one.commit_identifier {
            found.push(
                Finding::new(
                    "D-3",
                    Severity::Error,
                    Confidence::Exact,
                    "the identifiers of a user fall: the job was restored from an older state, or counts anew",
                )
                .seen(format!(
                    "{} in snapshot {}, then {} in snapshot {}",
                    one.commit_identifier, one.id, next.commit_identifier, next.id
                ))
                .at([one.id, next.id])
                .of([user]),
            );
        }
    }
}

/// D-4
fn two_committers(user: &str, commits: &[&Commit<'_>], found: &mut Vec<Finding>) {
    let explanation = "two live committers share one user: each takes the other's commits for its own, and filters its \
                       own as done";
    let instances: Vec<(&str, SnapshotId)> = commits
        .iter()
        .filter_map(|commit| Some((committer_instance(&commit.snapshot().delta_manifest_list)?, commit.snapshot().id)))
        .collect();
    if let Some(ids) = returns(&instances, 1) {
        found.push(
            Finding::new("D-4", Severity::Error, Confidence::Inferred, explanation)
                .seen("a committer object commits again after another one of the same user: a restart changes it once")
                .at(ids)
                .of([user]),
        );
        return;
    }
    let identifiers: Vec<(i64, SnapshotId)> = numbered(commits)
        .filter(|commit| commit.snapshot().commit_kind != CommitKind::Compact)
        .map(|commit| (commit.snapshot().commit_identifier, commit.snapshot().id))
        .collect();
    if let Some(ids) = interleaved(&identifiers) {
        found.push(
            Finding::new("D-4", Severity::Error, Confidence::Inferred, explanation)
                .seen("its identifiers form two rising sequences that take turns")
                .at(ids)
                .of([user]),
        );
        return;
    }
    let versions: Vec<(&str, SnapshotId)> = commits
        .iter()
        .filter_map(|commit| Some((commit.snapshot().writer_version.as_deref()?, commit.snapshot().id)))
        .collect();
    // one way and back is an upgrade that was taken back
    if let Some(ids) = returns(&versions, 2) {
        found.push(
            Finding::new("D-4", Severity::Warning, Confidence::Heuristic, explanation)
                .seen("releases of the writer take turns")
                .at(ids)
                .of([user]),
        );
    }
}

/// The places at which a value comes back after another one, when that happens so often at least.
fn returns(values: &[(&str, SnapshotId)], at_least: usize) -> Option<Vec<SnapshotId>> {
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ids = Vec::new();
    for (index, (value, id)) in values.iter().enumerate() {
        if let Some(before) = last.insert(value, index)
            && before + 1 != index
        {
            ids.extend(values.get(before).map(|(_, id)| *id));
            ids.push(*id);
        }
    }
    (ids.len() >= 2 * at_least).then_some(ids)
}

/// The ids at which two rising sequences take turns; None when the numbers are one sequence, begun anew or not.
fn interleaved(numbers: &[(i64, SnapshotId)]) -> Option<Vec<SnapshotId>> {
    // where the numbers fall and later go on beyond where they fell from, two counters are at work
    let falls: Vec<usize> = (1..numbers.len())
        .filter(|at| matches!((numbers.get(at - 1), numbers.get(*at)), (Some(one), Some(next)) if next.0 < one.0))
        .collect();
    let mut ids = Vec::new();
    for pair in falls.windows(2) {
        let [first, second] = pair else { continue };
        let value = |at: usize| numbers.get(at).map(|(value, _)| *value);
        let (high, low) = (value(first.wrapping_sub(1))?, value(*first)?);
        let (high_again, low_again) = (value(second.wrapping_sub(1))?, value(*second)?);
        // 120, 3, 121, 4: both went on from where they were
        if high_again > high && low_again > low && low_again < high {
            ids.extend([first - 1, *first, second - 1, *second].iter().filter_map(|at| numbers.get(*at)).map(|n| n.1));
        }
    }
    (!ids.is_empty()).then_some(ids)
}

/// D-5
fn crash_between(user: &str, commits: &[&Commit<'_>], found: &mut Vec<Finding>) {
    struct Run<'a> {
        identifier: i64,
        append: Option<SnapshotId>,
        compact: Option<SnapshotId>,
        instance: Option<&'a str>,
    }
    let mut runs: Vec<Run<'_>> = Vec::new();
    for commit in numbered(commits) {
        let snapshot = commit.snapshot();
        if runs.last().is_none_or(|run| run.identifier != snapshot.commit_identifier) {
            let instance = committer_instance(&snapshot.delta_manifest_list);
            runs.push(Run { identifier: snapshot.commit_identifier, append: None, compact: None, instance });
        }
        let Some(run) = runs.last_mut() else { continue };
        match snapshot.commit_kind {
            CommitKind::Append => run.append = run.append.or(Some(snapshot.id)),
            CommitKind::Compact => run.compact = run.compact.or(Some(snapshot.id)),
            CommitKind::Overwrite | CommitKind::Analyze => {}
        }
    }
    for run in &runs {
        if let (Some(append), Some(compact)) = (run.append, run.compact)
            && compact < append
        {
            found.push(
                Finding::new(
                    "D-5",
                    Severity::Error,
                    Confidence::Exact,
                    "a compaction was published before the rows of its own checkpoint: it may have dropped what it had not seen",
                )
                .seen(format!("identifier {}: COMPACT {compact}, APPEND {append}", run.identifier))
                .at([append, compact])
                .of([user]),
            );
        }
    }
    for trio in runs.windows(3) {
        let [before, run, after] = trio else { continue };
        // where every commit has an object of its own, another one tells nothing
        let restarted = run.instance.is_some() && run.instance == before.instance && run.instance != after.instance;
        if let (Some(append), None, Some(_), Some(_)) = (run.append, run.compact, before.compact, after.compact)
            && restarted
        {
            found.push(
                Finding::new(
                    "D-5",
                    Severity::Info,
                    Confidence::Inferred,
                    "the committer stopped between the rows of a checkpoint and its compaction: harmless, the next one compacts",
                )
                .seen(format!("identifier {} has no COMPACT, and another committer object came after it", run.identifier))
                .at([append])
                .of([user]),
            );
        }
    }
}
