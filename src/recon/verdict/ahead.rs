//! Whether the lake is newer than the source was when it was read.
//!
//! A source that was read earlier lacks everything that came since, whoever brought it: then every newer commit shows among
//! the findings, and most of its rows do. One wrong change among many right ones is no older source.

use std::collections::BTreeMap;

use super::decide::Facts;
use super::model::CommitRef;
use crate::recon::compare::Class;
use crate::recon::keys::Reason;

/// What a finding would be if the source were older: the commit that the source does not know, and whether it wrote over
/// the rows of another user.
fn newer(facts: &Facts) -> Option<(&CommitRef, bool)> {
    facts.clean_until?;
    // values that are wrong in one way are wrong whenever they came
    if facts.pattern.is_some() {
        return None;
    }
    let commit = facts.commit.as_ref()?;
    let own = |other: &Option<CommitRef>| other.as_ref().is_none_or(|other| other.user == commit.user);
    match facts.reason? {
        Reason::SupersededBySequence => {
            let other = facts.expected.as_ref().filter(|other| other.snapshot < commit.snapshot)?;
            Some((commit, other.user != commit.user))
        }
        Reason::Tombstoned | Reason::VectorDeleted if own(&facts.before) => Some((commit, false)),
        Reason::ValueFrom if facts.class == Some(Class::ExtraInLake) => Some((commit, false)),
        _ => None,
    }
}

/// Marks the findings that an older source explains; `commits`: those up to the pin, ascending; `scale`: findings for each
/// of those looked at.
///
/// Those are the findings of the newest commits, as far back as each commit that brought rows has findings, and most of
/// the rows have. One that wrote over the rows of others is no sign by itself: it may be a repair that went wrong.
pub fn mark(all: &mut [Facts], commits: &[CommitRef], scale: f64) {
    let mut findings: BTreeMap<i64, (u64, bool)> = BTreeMap::new();
    for (commit, over_others) in all.iter().filter_map(newer) {
        let (count, is_sign) = findings.entry(commit.snapshot).or_default();
        *count += 1;
        *is_sign |= !over_others;
    }
    let (mut since, mut rows, mut found) = (None, 0_i64, 0_u64);
    for commit in commits.iter().rev().filter(|commit| commit.kind == "APPEND" && commit.delta_rows != Some(0)) {
        let Some((own, is_sign)) = findings.get(&commit.snapshot) else { break };
        rows = rows.saturating_add(commit.delta_rows.unwrap_or(0));
        found += own;
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let most = found as f64 * scale * 2.0 >= rows as f64;
        if !most {
            break;
        }
        if *is_sign {
            since = Some(commit.snapshot);
        }
    }
    for facts in all {
        facts.ahead = newer(facts).is_some_and(|(commit, _)| since.is_some_and(|since| commit.snapshot >= since));
    }
}
