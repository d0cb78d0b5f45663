//! Kernel for any keys and order: a merge of the runs that compares encoded keys.

use super::mask::Mask;
use super::{File, Section, Selected};
use crate::error::{Error, Result};
use crate::merge::cell::RowRef;
use crate::merge::engines::{Deduplicate, FirstRow, Outcome};
use crate::merge::loser_tree::LoserTree;
use crate::merge::order::{self, Record};
use crate::merge::rules::MergeRules;
use crate::spec::RowKind;
use crate::spec::options::MergeEngine;

/// The unread rows of a run.
struct Cursor<'a> {
    files: &'a [usize],
    /// Place of the current file in `files`.
    file: usize,
    row: usize,
}

impl Cursor<'_> {
    /// Current file and row, past vector-deleted rows; None at the end.
    fn head(&self) -> Option<(usize, usize)> {
        self.files.get(self.file).map(|&file| (file, self.row))
    }

    /// Moves on by `rows` and past what does not count.
    fn advance(&mut self, rows: usize, files: &[File]) {
        self.row += rows;
        while let Some(&at) = self.files.get(self.file) {
            let file = &files[at];
            while self.row < file.rows() && file.is_deleted(self.row) {
                self.row += 1;
            }
            if self.row < file.rows() {
                return;
            }
            self.file += 1;
            self.row = 0;
        }
    }
}

pub(super) fn select(section: &Section, rules: &MergeRules) -> Result<Selected> {
    let files = &section.files;
    let mut masks: Vec<Mask> = files.iter().map(|file| Mask::none(file.rows())).collect();
    let mut cursors: Vec<Cursor<'_>> = section
        .runs
        .iter()
        .map(|run| {
            let mut cursor = Cursor { files: run, file: 0, row: 0 };
            cursor.advance(0, files);
            cursor
        })
        .collect();
    let less = |cursors: &[Cursor<'_>], a: usize, b: usize| match (cursors[a].head(), cursors[b].head()) {
        (Some((f, i)), Some((g, j))) => files[f].keys.compare(i, &files[g].keys, j).then(a.cmp(&b)).is_lt(),
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => a < b,
    };
    if cursors.is_empty() {
        return Ok((masks, 0));
    }
    let mut tree = LoserTree::new(cursors.len(), |a, b| less(&cursors, a, b));
    let mut keys = 0;
    let mut records: Vec<Record> = Vec::new();
    while let Some((at, row)) = cursors[tree.winner()].head() {
        let winner = tree.winner();
        let file = &files[at];
        let next = tree.runner_up(|a, b| less(&cursors, a, b)).and_then(|next| cursors[next].head());
        let alone = match next {
            None => file.rows(),
            Some((other, j)) => file.keys.lower_bound(row, file.rows(), &files[other].keys, j),
        };
        if alone > row {
            keys += alone_rows(file, row, alone, &mut masks[at]);
            cursors[winner].advance(alone - row, files);
            tree.replay(|a, b| less(&cursors, a, b));
            continue;
        }
        records.clear();
        loop {
            let player = tree.winner();
            match cursors[player].head() {
                Some((other, j)) if files[other].keys.compare(j, &file.keys, row).is_eq() => {
                    records.push(record(other, j, &files[other])?);
                    cursors[player].advance(1, files);
                    tree.replay(|a, b| less(&cursors, a, b));
                }
                _ => break,
            }
        }
        keys += 1;
        if let Some(live) = choose(&mut records, files, rules)? {
            masks[live.batch as usize].set(live.row as usize);
        }
    }
    Ok((masks, keys))
}

/// Rows `from..to` whose keys nothing else has: live unless deleted or a retract. Gives their number of keys.
fn alone_rows(file: &File, from: usize, to: usize, mask: &mut Mask) -> u64 {
    if file.deleted.is_none() && file.retracts.is_none() {
        mask.set_range(from, to);
        return (to - from) as u64;
    }
    let mut keys = 0;
    for row in (from..to).filter(|&row| !file.is_deleted(row)) {
        keys += 1;
        if !file.is_retract(row) {
            mask.set(row);
        }
    }
    keys
}

fn record(at: usize, row: usize, file: &File) -> Result<Record> {
    let number = |number: usize| u32::try_from(number).map_err(|_| Error::internal("too many rows in a file"));
    Ok(Record {
        at: RowRef { batch: number(at)?, row: number(row)? },
        sequence: file.sequence(row),
        // only whether it is a retract matters
        kind: if file.is_retract(row) { RowKind::Delete } else { RowKind::Insert },
        level: file.level,
        // files are numbered run by run
        place: number(at)?,
    })
}

/// The live record of a key.
fn choose(records: &mut Vec<Record>, files: &[File], rules: &MergeRules) -> Result<Option<RowRef>> {
    let outcome = if records.len() == 1 {
        Outcome::Record(0)
    } else {
        order::sort(records, rules.sequence_is_total(), |a, b| {
            let (x, y) = (&files[a.batch as usize].user_sequence, &files[b.batch as usize].user_sequence);
            let columns = x.iter().zip(y).map(|(x, y)| (x.as_ref(), y.as_ref()));
            order::compare_user_sequence(columns, a.row as usize, b.row as usize, rules.sequence_descending())
        });
        if rules.needs_lookup() {
            order::retain_lookup(records);
        }
        match rules.engine() {
            MergeEngine::FirstRow => FirstRow { ignore_delete: rules.ignore_delete() }.choose(records)?,
            _ => Deduplicate { ignore_delete: rules.ignore_delete() }.choose(records),
        }
    };
    Ok(match outcome {
        Outcome::Record(at) => records.get(at).filter(|record| !record.kind.is_retract()).map(|record| record.at),
        Outcome::Nothing | Outcome::Row { .. } => None,
    })
}
