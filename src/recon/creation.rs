//! When files were made, in UTC: creation times of files are wall clock without a zone.
//!
//! The zone of each user is estimated from how far the newest file of a commit is from the commit, over all its commits.

use std::collections::BTreeMap;

use super::history::FileChange;
use crate::spec::Snapshot;

/// Zones differ from UTC by whole quarters of an hour.
const QUARTER_MILLIS: i64 = 900_000;

/// No zone is farther from UTC.
const FARTHEST_MILLIS: i64 = 14 * 3_600_000;

/// A file that is newer than its commit by more than this was not made before it.
pub const SKEW_MILLIS: i64 = 60_000;

/// The clocks of the users of a table.
#[derive(Debug, Default)]
pub struct CreationClock {
    zones: BTreeMap<String, i64>,
}

impl CreationClock {
    /// From commits and what they changed.
    pub fn of<'a>(commits: impl Iterator<Item = (&'a Snapshot, &'a [FileChange])>) -> Self {
        let mut differences: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for (snapshot, changes) in commits {
            let newest = created(changes).max();
            let difference = newest.and_then(|newest| newest.checked_sub(snapshot.time_millis));
            differences.entry(&snapshot.commit_user).or_default().extend(difference);
        }
        let mut zones = BTreeMap::new();
        for (user, mut differences) in differences {
            differences.sort_unstable();
            let Some(middle) = differences.get(differences.len() / 2) else { continue };
            let mut zone = nearest_quarter(*middle);
            // what is written for long looks like a zone to the west: where most files would be newer than their commits
            // the next one is taken
            let late = differences.iter().filter(|difference| **difference > zone.saturating_add(SKEW_MILLIS)).count();
            if late * 2 > differences.len() {
                zone = zone.saturating_add(QUARTER_MILLIS);
            }
            // what is no zone on earth is a clock that tells nothing
            if zone.abs() <= FARTHEST_MILLIS {
                zones.insert(user.to_string(), zone);
            }
        }
        Self { zones }
    }

    /// An instant, epoch milliseconds, from a creation time of a user's file; None where its clock tells nothing.
    pub fn instant(&self, user: &str, created: i64) -> Option<i64> {
        created.checked_sub(*self.zones.get(user)?)
    }

    /// When a commit began to write, about.
    pub fn started(&self, snapshot: &Snapshot, changes: &[FileChange]) -> Option<i64> {
        self.instant(&snapshot.commit_user, created(changes).min()?)
    }
}

fn nearest_quarter(millis: i64) -> i64 {
    millis.saturating_add(QUARTER_MILLIS / 2).div_euclid(QUARTER_MILLIS).saturating_mul(QUARTER_MILLIS)
}

/// Creation times of the files that were added.
fn created(changes: &[FileChange]) -> impl Iterator<Item = i64> {
    changes.iter().filter_map(|change| match change {
        FileChange::Add(entry) => entry.file.creation_time_millis,
        FileChange::Delete(_) | FileChange::Upgrade { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use super::nearest_quarter;

    #[test]
    fn zones_are_whole_quarters() {
        assert_eq!(nearest_quarter(8 * 3_600_000 - 2_000), 8 * 3_600_000);
        assert_eq!(nearest_quarter(-2_000), 0);
        assert_eq!(nearest_quarter(-7 * 3_600_000 - 30_000), -7 * 3_600_000);
        assert_eq!(nearest_quarter(5 * 3_600_000 + 1_800_000 - 40_000), 5 * 3_600_000 + 1_800_000);
    }
}
