//! Whether a commit landed.
//!
//! | answer | because |
//! |---|---|
//! | COMMITTED | a snapshot, tag or changelog of that user and identifier is kept |
//! | SUPERSEDED | none is, but the user has committed a higher identifier: the commit would be filtered as done |
//! | NOT_COMMITTED | none is, and everything is kept since before it could have been made |
//! | UNKNOWN | none is, and what is not kept may have been it |

use serde::Serialize;

use super::history::{History, Recorded};
use crate::snapshot::SessionZone;
use crate::spec::{BATCH, CommitIdentifier, SnapshotId};

/// Whether a commit landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStatus {
    /// It did.
    Committed,
    /// It did not, and that is proven.
    NotCommitted,
    /// It is not there, and would be taken for done if it came now.
    Superseded,
    /// It cannot be said.
    Unknown,
}

impl CommitStatus {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Committed => "COMMITTED",
            Self::NotCommitted => "NOT_COMMITTED",
            Self::Superseded => "SUPERSEDED",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// It follows from bytes.
    Exact,
    /// It follows from what holds for well-behaved writers.
    Inferred,
    /// It is likely.
    Heuristic,
}

impl Confidence {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Inferred => "inferred",
            Self::Heuristic => "heuristic",
        }
    }
}

/// The answer, and what it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLookup {
    /// The answer.
    pub status: CommitStatus,
    /// The snapshots of the identity; of SUPERSEDED those of the higher identifier.
    pub snapshots: Vec<SnapshotId>,
    /// As what they are kept: `snapshot`, `tag eod`, `changelog`.
    pub source: Option<String>,
    /// How sure it is.
    pub confidence: Confidence,
    /// Why, in words.
    pub reason: String,
    /// The newest snapshot looked at: a commit on its way may land behind it.
    pub as_of: Option<SnapshotId>,
}

/// Whether the commit `(user, identifier)` landed. `since`: a snapshot that was there before the commit was first tried.
pub fn lookup(
    history: &History,
    user: &str,
    identifier: i64,
    since: Option<SnapshotId>,
    zone: &SessionZone,
) -> CommitLookup {
    let as_of = history.latest().map(|snapshot| snapshot.id);
    let answer = |status, snapshots: &[&Recorded], confidence, reason: String| CommitLookup {
        status,
        snapshots: snapshots.iter().map(|recorded| recorded.id()).collect(),
        source: snapshots.first().map(|recorded| recorded.kept.to_string()),
        confidence,
        reason,
        as_of,
    };
    let of_user: Vec<&Recorded> = history.commits.iter().filter(|r| r.snapshot.commit_user == user).collect();
    let found: Vec<&Recorded> =
        of_user.iter().copied().filter(|r| r.snapshot.commit_identifier == identifier).collect();
    let shown = CommitIdentifier(identifier);
    if let Some(last) = found.last() {
        let when = zone.show(last.snapshot.time_millis);
        let reason = match identifier {
            BATCH => format!(
                "user '{user}' committed as a batch job, last at {when}: batch commits of one user are told apart by nothing"
            ),
            _ => format!("committed at {when}"),
        };
        let confidence = if identifier == BATCH && found.len() > 1 { Confidence::Inferred } else { Confidence::Exact };
        return answer(CommitStatus::Committed, &found, confidence, reason);
    }
    let higher = of_user.iter().copied().filter(|r| {
        let other = r.snapshot.commit_identifier;
        other > identifier && other != BATCH
    });
    if let Some(newer) = higher.max_by_key(|r| r.id()) {
        let newer_identifier = newer.snapshot.commit_identifier;
        let reason = format!(
            "user '{user}' has committed {newer_identifier} in snapshot {}: {shown} would be taken for done and not be \
             committed again; {}",
            newer.id(),
            history.reach(zone)
        );
        return answer(CommitStatus::Superseded, &[newer], Confidence::Exact, reason);
    }
    let not = |confidence, reason: String| answer(CommitStatus::NotCommitted, &[], confidence, reason);
    if let Some(why) = gap(history, history.earliest().map(|first| first.id())) {
        return answer(CommitStatus::Unknown, &[], Confidence::Exact, format!("{why}: it may have been the commit"));
    }
    if history.commits.is_empty() {
        return not(Confidence::Exact, "the table has no snapshot".to_string());
    }
    if history.is_whole() {
        return not(
            Confidence::Exact,
            "every snapshot since the first is kept, and none is of that commit".to_string(),
        );
    }
    if let Some(since) = since {
        return match history.earliest().map(|first| first.id()) {
            Some(first) if first.0 <= since.0.saturating_add(1) => {
                not(Confidence::Exact, format!("every snapshot since {since} is kept, and none is of that commit"))
            }
            _ => answer(
                CommitStatus::Unknown,
                &[],
                Confidence::Exact,
                format!("snapshots since {since} have expired: {}", history.reach(zone)),
            ),
        };
    }
    let rises = of_user.windows(2).all(|pair| match pair {
        [one, next] => one.snapshot.commit_identifier <= next.snapshot.commit_identifier,
        _ => true,
    });
    match of_user.last() {
        Some(last) if identifier != BATCH && rises => not(
            Confidence::Inferred,
            format!(
                "user '{user}' has come as far as {} in snapshot {}, its identifiers rise, and everything since is kept",
                CommitIdentifier(last.snapshot.commit_identifier),
                last.id()
            ),
        ),
        _ => answer(
            CommitStatus::Unknown,
            &[],
            Confidence::Exact,
            format!(
                "{}, and an older snapshot may have been the commit; say since which snapshot it can have been made",
                history.reach(zone)
            ),
        ),
    }
}

/// What is missing from the history since a snapshot; None when nothing is.
fn gap(history: &History, since: Option<SnapshotId>) -> Option<String> {
    let mut next = since?.0;
    for recorded in &history.commits {
        let id = recorded.id().0;
        if id < next {
            continue;
        }
        if id > next {
            return Some(format!("snapshot {next} is not kept, though older ones are"));
        }
        next = id.saturating_add(1);
    }
    let unread = history.unread.iter().find(|unread| unread.snapshot.is_some());
    unread.map(|unread| format!("{} cannot be read", unread.what))
}

#[cfg(test)]
mod tests;
