//! The order of whole files, when their sequence numbers allow one.

use super::{File, Section};
use crate::merge::rules::MergeRules;
use crate::spec::options::MergeEngine;

/// A file with rows: its number, its run and its sequence range.
#[derive(Clone, Copy)]
struct Ranked {
    at: usize,
    run: usize,
    min: i64,
    max: i64,
}

/// The files in the order in which the first file that has a key decides about it; None when only rows can be ordered.
///
/// ```text
/// file     sequence    level     deduplicate: c, b, a
/// a        1 ..  9     5         lookup rule: level 0 newest first, then levels from the lowest
/// b       10 .. 14     4         first-row:   a, b, c
/// c       15 .. 20     0
/// ```
///
/// Only files whose keys overlap need disjoint sequence ranges: an older file has the smaller range then, so the order
/// by smallest number holds for all of them at once.
pub(super) fn walk(section: &Section, rules: &MergeRules) -> Option<Vec<usize>> {
    if !rules.user_sequence_columns().is_empty() {
        return None;
    }
    let mut files = Vec::with_capacity(section.files.len());
    for (run, places) in section.runs.iter().enumerate() {
        for &at in places.iter().filter(|&&at| section.files[at].rows() > 0) {
            let (min, max) = section.files[at].sequence_range()?;
            files.push(Ranked { at, run, min, max });
        }
    }
    files.sort_by_key(|file| (file.min, file.at));
    for (number, older) in files.iter().enumerate() {
        for newer in files[number + 1..].iter().take_while(|newer| newer.min <= older.max) {
            // one number for both files: place decides, unless a retract goes before an add
            let tie = (older.min, older.max) == (newer.min, newer.max)
                && older.min == older.max
                && section.files[older.at].retracts.is_none()
                && section.files[newer.at].retracts.is_none();
            if !tie && overlap(older, newer, &section.files) {
                return None;
            }
        }
    }
    if rules.engine() == MergeEngine::FirstRow {
        // a retract among several records is an error, which takes all records of its key to see
        let skips = rules.ignore_delete() || section.files.iter().all(|file| file.retracts.is_none());
        return skips.then(|| files.iter().map(|file| file.at).collect());
    }
    files.reverse();
    if rules.needs_lookup() {
        // the record of the lowest upper level hides the others even when it is a retract that is skipped
        let retracts = |file: &File| file.level > 0 && file.retracts.is_some();
        if rules.ignore_delete() && section.files.iter().any(retracts) {
            return None;
        }
        return lookup(&files, &section.files);
    }
    Some(files.iter().map(|file| file.at).collect())
}

fn overlap(a: &Ranked, b: &Ranked, files: &[File]) -> bool {
    if a.run == b.run {
        return false;
    }
    let (x, y) = (&files[a.at], &files[b.at]);
    x.keys.compare(0, &y.keys, y.rows() - 1).is_le() && y.keys.compare(0, &x.keys, x.rows() - 1).is_le()
}

/// Level 0 newest first, then the other levels from the lowest; possible when level 0 is newer than what it overlaps.
fn lookup(newest_first: &[Ranked], files: &[File]) -> Option<Vec<usize>> {
    let (fresh, mut upper): (Vec<Ranked>, Vec<Ranked>) =
        newest_first.iter().partition(|file| files[file.at].level <= 0);
    let newer_than_level_0 = |upper: &Ranked| {
        fresh.iter().any(|fresh| (fresh.min, fresh.at) < (upper.min, upper.at) && overlap(fresh, upper, files))
    };
    if upper.iter().any(newer_than_level_0) {
        return None;
    }
    // of one level the oldest counts: it is met first
    upper.reverse();
    upper.sort_by_key(|file| files[file.at].level);
    Some(fresh.iter().chain(&upper).map(|file| file.at).collect())
}
