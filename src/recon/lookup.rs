//! Whether a commit landed.
//!
//! | answer | because |
//! |---|---|
//! | COMMITTED | a snapshot, tag or changelog of that user and identifier is kept |
//! | SUPERSEDED | none is, but the user has committed a higher identifier: the commit would be filtered as done |
//! | NOT_COMMITTED | none is, and everything is kept since before it could have been made |
//! | UNKNOWN | none is, and what is not kept may have been it |
//!
//! What a tag alone holds of a past that was rolled back did not land.

use serde::Serialize;

use super::history::{History, Recorded, Standing, Unread};
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
    let unknown = |reason: String| answer(CommitStatus::Unknown, &[], Confidence::Exact, reason);
    let of_user: Vec<&Recorded> = history.in_force().filter(|r| r.snapshot.commit_user == user).collect();
    let is_it = |r: &&Recorded| r.snapshot.commit_user == user && r.snapshot.commit_identifier == identifier;
    let found: Vec<&Recorded> = of_user.iter().copied().filter(is_it).collect();
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
    let aside = |standing| history.commits.iter().filter(is_it).find(|r| r.standing == standing);
    if let Some(doubtful) = aside(Standing::Doubtful) {
        return unknown(format!(
            "{} of snapshot {} is of that commit, and later numbers were rolled back: nothing says whether it was too",
            doubtful.kept,
            doubtful.id()
        ));
    }
    let rolled_back = aside(Standing::RolledBack).map_or(String::new(), |gone| {
        format!("; {} holds one of it as snapshot {}, which was rolled back", gone.kept, gone.id())
    });
    let not =
        |reason: String| answer(CommitStatus::NotCommitted, &[], Confidence::Exact, format!("{reason}{rolled_back}"));
    if let Some(since) = since.filter(|since| as_of.is_none_or(|newest| *since > newest)) {
        let newest = as_of.map_or("there is none".to_string(), |newest| format!("the newest is {newest}"));
        return unknown(format!(
            "snapshot {since} is not there, {newest}: a commit after it cannot have been looked for"
        ));
    }
    let begin = match since {
        Some(since) => Some(SnapshotId(since.0.max(0).saturating_add(1))),
        None => history.earliest().map(Recorded::id),
    };
    let earliest = history.earliest().map(Recorded::id);
    if let (Some(since), Some(begin), Some(first)) = (since, begin, earliest)
        && first > begin
    {
        return unknown(format!("snapshots since {since} have expired: {}", history.reach(zone)));
    }
    if let Some(why) = gap(history, begin) {
        return unknown(format!("{why}: it may have been the commit"));
    }
    if earliest.is_none() {
        return not("the table has no snapshot".to_string());
    }
    if let Some(since) = since {
        return not(format!("every snapshot since {since} is kept, and none is of that commit"));
    }
    if history.is_whole() {
        return not("every snapshot since the first is kept, and none is of that commit".to_string());
    }
    let reach = history.reach(zone);
    unknown(match of_user.last().map(|last| (last.snapshot.commit_identifier, last.id())) {
        Some((BATCH, id)) if identifier != BATCH => format!(
            "{reach}; user '{user}' has come to the end of its input in snapshot {id}, and what it committed before is not \
             kept; say since which snapshot it can have been made"
        ),
        Some((last, id)) if identifier != BATCH => format!(
            "{reach}; user '{user}' has come as far as {} in snapshot {id}, so it has likely not landed, but an older \
             snapshot may have been it; say since which snapshot it can have been made",
            CommitIdentifier(last)
        ),
        _ => format!(
            "{reach}, and an older snapshot may have been the commit; say since which snapshot it can have been made"
        ),
    })
}

/// What is missing from the history from a snapshot on; None when nothing is.
fn gap(history: &History, begin: Option<SnapshotId>) -> Option<String> {
    let unread = |unread: &&Unread| unread.snapshot.is_some_and(|id| begin.is_none_or(|begin| id >= begin));
    if let Some(unread) = history.unread.iter().find(unread) {
        return Some(format!("{} cannot be read", unread.what));
    }
    let mut next = begin?.0;
    for recorded in history.in_force() {
        let id = recorded.id().0;
        if id < next {
            continue;
        }
        if id > next {
            return Some(format!("snapshot {next} is not kept, though older ones are"));
        }
        next = id.saturating_add(1);
    }
    None
}

#[cfg(test)]
mod tests;
