//! Kernel for ranked files with any keys: each file in turn meets the sorted keys that the files before it had.

use super::mask::Mask;
use super::{File, Section, Selected};
use crate::merge::rules::MergeRules;

/// Every file walks past the keys claimed so far: with more runs than this a merge of all at once is cheaper.
const MOST_RUNS: usize = 24;

/// A key that a file of the walk had, by the row that had it first.
#[derive(Clone, Copy)]
struct Claim {
    file: u32,
    row: u32,
}

/// Selects by walking the files in `walk`; None when another kernel is better.
pub(super) fn select(section: &Section, rules: &MergeRules, walk: &[usize]) -> Option<Selected> {
    let files = &section.files;
    let skips = rules.ignore_delete() && files.iter().any(|file| file.retracts.is_some());
    let addressable = u32::try_from(files.len()).is_ok() && files.iter().all(|file| u32::try_from(file.rows()).is_ok());
    if skips || !addressable || section.runs.len() > MOST_RUNS {
        return None;
    }
    let mut masks: Vec<Mask> = files.iter().map(|file| Mask::none(file.rows())).collect();
    let mut claims: Vec<Claim> = Vec::new();
    let mut keys = 0;
    for (step, &at) in walk.iter().enumerate() {
        let file = &files[at];
        let (Some(from), Some(to)) = (claim_bound(&claims, files, file, 0), claim_end(&claims, files, file)) else {
            continue;
        };
        let met_again = walk[step + 1..].iter().any(|&later| overlap(file, &files[later]));
        let mut merged: Vec<Claim> = Vec::with_capacity(if met_again { to - from + file.rows() } else { 0 });
        let mut row = 0;
        let claim = |row: usize| Claim { file: at as u32, row: row as u32 };
        for &held in &claims[from..to] {
            let end = file.keys.lower_bound(row, file.rows(), &files[held.file as usize].keys, held.row as usize);
            keys += fresh(file, row, end, &mut masks[at], |row| {
                if met_again {
                    merged.push(claim(row));
                }
            });
            let same =
                end < file.rows() && file.keys.compare(end, &files[held.file as usize].keys, held.row as usize).is_eq();
            row = end + usize::from(same);
            if met_again {
                merged.push(held);
            }
        }
        keys += fresh(file, row, file.rows(), &mut masks[at], |row| {
            if met_again {
                merged.push(claim(row));
            }
        });
        if met_again {
            if from == 0 && to == claims.len() {
                claims = merged;
            } else {
                claims.splice(from..to, merged);
            }
        }
    }
    Some((masks, keys))
}

/// Rows `from..to`, whose keys no file had before: live unless deleted or a retract. Gives their number of keys.
fn fresh(file: &File, from: usize, to: usize, mask: &mut Mask, mut claim: impl FnMut(usize)) -> u64 {
    if file.deleted.is_none() && file.retracts.is_none() {
        mask.set_range(from, to);
        (from..to).for_each(claim);
        return (to - from) as u64;
    }
    let mut keys = 0;
    for row in (from..to).filter(|&row| !file.is_deleted(row)) {
        keys += 1;
        claim(row);
        if !file.is_retract(row) {
            mask.set(row);
        }
    }
    keys
}

/// The first claim that is not below a row of a file.
fn claim_bound(claims: &[Claim], files: &[File], file: &File, row: usize) -> Option<usize> {
    (row < file.rows()).then(|| {
        claims
            .partition_point(|held| files[held.file as usize].keys.compare(held.row as usize, &file.keys, row).is_lt())
    })
}

/// The first claim above the last row of a file.
fn claim_end(claims: &[Claim], files: &[File], file: &File) -> Option<usize> {
    let last = file.rows().checked_sub(1)?;
    Some(
        claims.partition_point(|held| {
            files[held.file as usize].keys.compare(held.row as usize, &file.keys, last).is_le()
        }),
    )
}

fn overlap(a: &File, b: &File) -> bool {
    let (Some(a_last), Some(b_last)) = (a.rows().checked_sub(1), b.rows().checked_sub(1)) else { return false };
    a.keys.compare(0, &b.keys, b_last).is_le() && b.keys.compare(0, &a.keys, a_last).is_le()
}
