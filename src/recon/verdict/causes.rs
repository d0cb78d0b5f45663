//! Findings with one cause put together.

use std::collections::BTreeMap;

use super::SHOWN;
use super::decide::next;
use super::model::{Anomaly, Cause, CommitRef, KeyCase, Layer, LayerCount, Pattern, Proof};
use crate::recon::compare::Class;
use crate::recon::lookup::Confidence;

/// What makes findings one cause: a pattern, or a reason and the user whose commit it is.
type Group = (Option<Layer>, Option<String>, Option<Pattern>, Option<String>);

fn group(case: &KeyCase) -> Group {
    // how much was added is of the key; which column is of the cause
    let pattern = case.pattern.clone().map(|pattern| match pattern {
        Pattern::Twice { column, .. } => Pattern::Twice { column, delta: "the change".to_string() },
        other => other,
    });
    let user = case.commits.first().map(|commit| commit.user.clone());
    match pattern {
        // who wrote it does not matter where all of it is wrong in one way
        Some(pattern @ (Pattern::Code { .. } | Pattern::Ratio { .. } | Pattern::Shift { .. })) => {
            (case.layer, None, Some(pattern), None)
        }
        pattern => (case.layer, case.reason.clone(), pattern, user),
    }
}

/// The causes of some findings, those with the most findings first.
pub fn causes(cases: &[KeyCase], anomalies: &[Anomaly]) -> Vec<Cause> {
    let mut groups: BTreeMap<Group, Vec<&KeyCase>> = BTreeMap::new();
    for case in cases {
        groups.entry(group(case)).or_default().push(case);
    }
    let mut found: Vec<Cause> = groups.into_iter().map(|(group, cases)| cause(group, &cases, anomalies)).collect();
    // what cannot be said comes last
    found.sort_by_key(|cause| (cause.layer.is_none(), std::cmp::Reverse(cause.findings)));
    found
}

fn cause((layer, reason, pattern, _): Group, cases: &[&KeyCase], anomalies: &[Anomaly]) -> Cause {
    let mut classes: BTreeMap<Class, u64> = BTreeMap::new();
    let mut commits: BTreeMap<i64, (CommitRef, u64)> = BTreeMap::new();
    let mut proof = Proof::default();
    let mut confidence = Confidence::Exact;
    for case in cases {
        *classes.entry(case.class).or_default() += 1;
        confidence = confidence.max(case.confidence);
        for commit in &case.commits {
            let entry = commits.entry(commit.snapshot).or_insert_with(|| (commit.clone(), 0));
            entry.1 += 1;
            if !proof.users.contains(&commit.user) {
                proof.users.push(commit.user.clone());
            }
        }
        if proof.keys.len() < SHOWN {
            proof.keys.push(case.key_text());
        }
        if let Some(file) = case.file.as_ref().filter(|file| proof.files.len() < SHOWN && !proof.files.contains(file)) {
            proof.files.push(file.clone());
        }
    }
    let clean: Option<Vec<i64>> = cases.iter().map(|case| case.clean_at).collect();
    proof.clean_at = clean.and_then(|all| all.into_iter().max());
    for anomaly in anomalies {
        let about = anomaly.layer == layer && anomaly.snapshots.iter().any(|id| commits.contains_key(id));
        if about && !proof.detectors.contains(&anomaly.detector) {
            proof.detectors.push(anomaly.detector.clone());
        }
    }
    let mut all: Vec<(CommitRef, u64)> = commits.into_values().collect();
    all.sort_by_key(|(commit, findings)| (std::cmp::Reverse(*findings), commit.snapshot));
    proof.more_commits = all.len().saturating_sub(SHOWN) as u64;
    all.truncate(SHOWN);
    proof.commits = all;
    let example = cases.first().map(|case| case.sentence.clone()).unwrap_or_default();
    let text = match &pattern {
        Some(pattern) => format!("{}; for instance {example}", pattern.text()),
        None => example,
    };
    Cause {
        layer,
        reason,
        next: next(layer, pattern.as_ref()),
        pattern,
        findings: cases.len() as u64,
        classes: classes.into_iter().collect(),
        text,
        confidence,
        proof,
    }
}

/// Findings by layer, those with the most first.
pub fn layers(causes: &[Cause]) -> Vec<LayerCount> {
    let mut sums: BTreeMap<Layer, u64> = BTreeMap::new();
    for cause in causes {
        if let Some(layer) = cause.layer {
            *sums.entry(layer).or_default() += cause.findings;
        }
    }
    let mut all: Vec<LayerCount> = sums.into_iter().map(|(layer, findings)| LayerCount { layer, findings }).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.findings));
    all
}
