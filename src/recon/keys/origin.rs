//! Which commit a version comes from.

use super::life::Lives;
use super::{Origin, Version, Written};
use crate::spec::{CommitKind, FileSource, SnapshotId};

/// How sure an origin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// It follows from bytes.
    Exact,
    /// One commit alone can have brought it.
    Inferred,
    /// Several can.
    Ambiguous,
    /// It was there when the history begins.
    BeforeHistory,
    /// No commit has brought it.
    None,
}

impl Certainty {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Inferred => "inferred",
            Self::Ambiguous => "ambiguous",
            Self::BeforeHistory => "before history",
            Self::None => "none",
        }
    }
}

/// Finds the origin of every version.
pub(super) fn set_origins(versions: &mut [Version], lives: &Lives, snapshot_ordering: bool) {
    let origins: Vec<Origin> = versions.iter().map(|one| origin(one, versions, lives, snapshot_ordering)).collect();
    for (version, origin) in versions.iter_mut().zip(origins) {
        version.origin = origin;
    }
}

fn origin(version: &Version, versions: &[Version], lives: &Lives, snapshot_ordering: bool) -> Origin {
    let known =
        |snapshot: SnapshotId, certainty| Origin { snapshot: Some(snapshot), certainty, candidates: Vec::new() };
    let unknown = |certainty, candidates| Origin { snapshot: None, certainty, candidates };
    match version.written {
        Written::Uncommitted => return unknown(Certainty::None, Vec::new()),
        Written::Changelog | Written::By(Some(FileSource::Append)) => {
            return match &version.added {
                Some(snapshot) => known(snapshot.id, Certainty::Exact),
                None if snapshot_ordering => known(SnapshotId(version.sequence), Certainty::Exact),
                None => unknown(Certainty::BeforeHistory, Vec::new()),
            };
        }
        Written::By(None) if version.level <= 0 && version.added.is_some() => {
            return match &version.added {
                Some(snapshot) => known(snapshot.id, Certainty::Exact),
                None => unknown(Certainty::BeforeHistory, Vec::new()),
            };
        }
        Written::By(_) => {}
    }
    if snapshot_ordering {
        return known(SnapshotId(version.sequence), Certainty::Exact);
    }
    // a survivor: the row that a writer wrote has the same sequence number
    let written = versions.iter().find(|other| {
        matches!(other.written, Written::By(Some(FileSource::Append)))
            && other.unit.0 == version.unit.0
            && other.sequence == version.sequence
            && other.added.is_some()
    });
    if let Some(snapshot) = written.and_then(|other| other.added.as_ref()) {
        return known(snapshot.id, Certainty::Exact);
    }
    let mut brought: Vec<SnapshotId> = Vec::new();
    for life in lives.files.values() {
        let entry = &life.planned.entry;
        let range = entry.file.min_sequence_number..=entry.file.max_sequence_number;
        let of_writer = entry.file.file_source == Some(FileSource::Append)
            || (entry.file.file_source.is_none() && entry.file.level <= 0);
        if !of_writer || entry.partition != version.unit.0 || !range.contains(&version.sequence) {
            continue;
        }
        // what was removed before the survivor was written, or comes later, is not its origin
        let Some(at) = life.added else { continue };
        let Ok(snapshot) = lives.snapshot(at) else { continue };
        let later = version.added.as_ref().is_some_and(|added| snapshot.id > added.id);
        if !later && snapshot.commit_kind != CommitKind::Compact && !brought.contains(&snapshot.id) {
            brought.push(snapshot.id);
        }
    }
    brought.sort_unstable();
    match brought.as_slice() {
        [] => unknown(Certainty::BeforeHistory, Vec::new()),
        [one] => known(*one, Certainty::Inferred),
        _ => unknown(Certainty::Ambiguous, brought),
    }
}
