//! Whether what is kept of a commit is of the line that is in force: a rollback removes snapshots and uses their numbers
//! again, and a tag may go on holding what it removed.
//!
//! ```text
//! kept        3 (tag)   5 (tag)   4   5   6          snapshots, times rising from 4
//! stands      ?         aside     +   +   +          5 was rolled back; whether 3 was with it, nothing says
//! ```

use std::sync::Arc;

use super::Recorded;
use crate::spec::{Snapshot, SnapshotId};

/// How a kept state stands to the line that is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is part of it.
    InForce,
    /// A rollback removed it: its number was used again, or lies beyond the newest snapshot.
    RolledBack,
    /// Later numbers were rolled back, and nothing says how far.
    Doubtful,
}

impl Standing {
    /// What is put behind the way it is kept; nothing of one in force.
    pub fn mark(self) -> &'static str {
        match self {
            Self::InForce => "",
            Self::RolledBack => " (rolled back)",
            Self::Doubtful => " (perhaps rolled back)",
        }
    }
}

/// The standing of each of some commits, which are ascending; `newest`: the number of the newest snapshot that is there,
/// whether it can be read or not; `hinted`: a number beyond it that the LATEST hint names.
pub(super) fn standings(commits: &[Recorded], newest: Option<SnapshotId>, hinted: Option<SnapshotId>) -> Vec<Standing> {
    let live: Vec<&Arc<Snapshot>> = commits.iter().filter(|one| one.is_snapshot()).map(|one| &one.snapshot).collect();
    let is_beyond = |id: SnapshotId| newest.is_some_and(|newest| id > newest);
    // what is proven to be aside by its number alone
    let proven: Vec<bool> = commits
        .iter()
        .map(|one| {
            let used_again = commits.iter().any(|other| {
                other.id() == one.id() && (other.is_snapshot() || other.snapshot.time_millis > one.snapshot.time_millis)
            });
            let beyond_all = is_beyond(one.id()) && hinted.is_none_or(|hinted| one.id() > hinted);
            !one.is_snapshot() && (used_again || beyond_all)
        })
        .collect();
    let aside: Vec<&Recorded> = commits.iter().zip(&proven).filter(|(_, aside)| **aside).map(|(one, _)| one).collect();
    let of = |one: &Recorded| -> Standing {
        if one.is_snapshot() {
            return Standing::InForce;
        }
        // the hint says that it was published, and nothing else does
        let mut found = if is_beyond(one.id()) { Standing::Doubtful } else { Standing::InForce };
        for gone in &aside {
            // the first snapshot of those that came in its place, or after it
            let Some(begins) = live.iter().find(|snapshot| snapshot.time_millis > gone.snapshot.time_millis) else {
                continue;
            };
            let is_first = live.first().is_some_and(|first| first.id == begins.id);
            if one.id() >= begins.id {
                if one.snapshot.time_millis < begins.time_millis {
                    return Standing::RolledBack;
                }
            } else if is_first && one.snapshot.time_millis <= gone.snapshot.time_millis {
                // the numbers that were used again may begin below those that are kept
                found = Standing::Doubtful;
            }
        }
        found
    };
    let all = commits.iter().zip(&proven);
    all.map(|(one, aside)| if *aside { Standing::RolledBack } else { of(one) }).collect()
}
