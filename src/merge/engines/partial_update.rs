//! Partial-update: non-null fields overwrite; sequence groups have an order of their own.

use super::{Outcome, null_in_not_null, reset_row};
use crate::error::{Error, Result};
use crate::merge::aggregation::FoldState;
use crate::merge::cell::{Cell, Column};
use crate::merge::order::Record;
use crate::merge::rules::{ColumnRule, MergeRules};
use crate::spec::RowKind;

#[derive(Debug)]
pub(in crate::merge) struct PartialUpdate {
    rules: Vec<ColumnRule>,
    nullable: Vec<bool>,
    /// Of each column: its group, and whether it is one of its sequence columns.
    membership: Vec<Option<Membership>>,
    groups: Vec<Group>,
    /// The table has groups, projected or not: retracts go to them.
    grouped: bool,
    ignore_delete: bool,
    remove_record_on_delete: bool,
}

#[derive(Debug, Clone, Copy)]
struct Membership {
    group: usize,
    guards: bool,
}

/// A sequence group, its columns by their place in the batch.
#[derive(Debug)]
struct Group {
    sequence: Vec<usize>,
    removes_record: bool,
}

/// The row of a key while it is folded.
struct Fold<'a> {
    columns: &'a [Column<'a>],
    row: &'a mut Vec<Cell>,
    states: Vec<FoldState>,
    deleted: bool,
}

/// What to do with a group for one record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// All its sequence columns are NULL in the record.
    Empty,
    /// The record is older than the row.
    Older,
    /// The record is as new as the row, or newer.
    Newer,
}

impl PartialUpdate {
    pub(super) fn try_new(rules: &MergeRules, columns: &[usize]) -> Result<Self> {
        let place = |column: usize| columns.iter().position(|&known| known == column);
        let mut groups = Vec::with_capacity(rules.groups().len());
        for group in rules.groups() {
            // a group none of whose columns is read has no part in it
            let read = columns.iter().any(|&column| rules.group_of(column).is_some_and(|g| g == groups.len()));
            let sequence: Vec<usize> = group.sequence.iter().filter_map(|&column| place(column)).collect();
            if read && sequence.len() != group.sequence.len() {
                return Err(Error::internal("a sequence group is read without its sequence columns"));
            }
            groups.push(Group { sequence, removes_record: group.removes_record });
        }
        let mut column_rules = Vec::with_capacity(columns.len());
        let mut nullable = Vec::with_capacity(columns.len());
        let mut membership = Vec::with_capacity(columns.len());
        for (at, &column) in columns.iter().enumerate() {
            column_rules.push(rules.rule(column)?);
            nullable.push(rules.field(column)?.field_type.nullable);
            membership.push(
                rules.group_of(column).map(|group| Membership { group, guards: groups[group].sequence.contains(&at) }),
            );
        }
        Ok(Self {
            rules: column_rules,
            nullable,
            membership,
            grouped: !groups.is_empty(),
            groups,
            ignore_delete: rules.ignore_delete(),
            remove_record_on_delete: rules.remove_record_on_delete(),
        })
    }

    pub(super) fn fold(&self, records: &[Record], columns: &[Column<'_>], row: &mut Vec<Cell>) -> Result<Outcome> {
        row.clear();
        row.resize(columns.len(), Cell::Null);
        let states = vec![FoldState::default(); columns.len()];
        let mut fold = Fold { columns, row, states, deleted: false };
        let mut filled = false;
        let mut added = false;
        let mut sequence = 0;
        for record in records {
            fold.deleted = false;
            if record.kind.is_retract() {
                if !filled {
                    reset_row(record, columns, &self.nullable, fold.row)?;
                    filled = true;
                }
                if self.ignore_delete {
                    continue;
                }
                sequence = record.sequence;
                self.retract(record, &mut fold)?;
                continue;
            }
            sequence = record.sequence;
            if self.grouped {
                self.update_groups(record, &mut fold)?;
            } else {
                self.update(record, &mut fold)?;
            }
            added = true;
            filled = true;
        }
        let kind = if fold.deleted || !added { RowKind::Delete } else { RowKind::Insert };
        Ok(Outcome::Row { sequence, kind })
    }

    fn retract(&self, record: &Record, fold: &mut Fold<'_>) -> Result<()> {
        if self.grouped {
            return self.retract_groups(record, fold);
        }
        if !self.remove_record_on_delete {
            return Err(Error::unsupported("this partial-update table cannot merge a -U or -D row")
                .with_code("RetractUnsupported")
                .with_context("option", "merge-engine")
                .with_hint(
                    "set 'ignore-delete', 'partial-update.remove-record-on-delete' or sequence groups on the table",
                ));
        }
        if record.kind == RowKind::Delete {
            fold.deleted = true;
            reset_row(record, fold.columns, &self.nullable, fold.row)?;
        }
        Ok(())
    }

    /// Without groups: what is not NULL overwrites.
    fn update(&self, record: &Record, fold: &mut Fold<'_>) -> Result<()> {
        for ((column, cell), nullable) in fold.columns.iter().zip(fold.row.iter_mut()).zip(&self.nullable) {
            match column.cell(record.at) {
                Cell::Null if !nullable => return Err(null_in_not_null(column.name)),
                Cell::Null => {}
                value => *cell = value,
            }
        }
        Ok(())
    }

    /// Columns are visited in schema order, and a group's sequence is taken when its first sequence column is met:
    /// columns before it compare with the old sequence, columns after it with the new one.
    fn update_groups(&self, record: &Record, fold: &mut Fold<'_>) -> Result<()> {
        for at in 0..fold.columns.len() {
            let column = &fold.columns[at];
            let Some(membership) = self.membership[at] else {
                let input = column.cell(record.at);
                match &self.rules[at] {
                    ColumnRule::Aggregate(aggregator) => {
                        let acc = fold.take(at);
                        fold.row[at] = aggregator.agg(acc, input, column, &mut fold.states[at])?;
                    }
                    ColumnRule::Plain if !input.is_null() => fold.row[at] = input,
                    ColumnRule::Plain => {}
                }
                continue;
            };
            let group = &self.groups[membership.group];
            match (group.standing(record, fold), &self.rules[at]) {
                (Standing::Empty, _) => {}
                (Standing::Newer, _) if membership.guards => group.take_sequence(record, fold),
                (Standing::Newer, ColumnRule::Plain) => fold.row[at] = column.cell(record.at),
                (Standing::Newer, ColumnRule::Aggregate(aggregator)) => {
                    let acc = fold.take(at);
                    fold.row[at] = aggregator.agg(acc, column.cell(record.at), column, &mut fold.states[at])?;
                }
                (Standing::Older, ColumnRule::Plain) => {}
                (Standing::Older, ColumnRule::Aggregate(aggregator)) => {
                    let acc = fold.take(at);
                    fold.row[at] =
                        aggregator.agg_reversed(acc, column.cell(record.at), column, &mut fold.states[at])?;
                }
            }
        }
        Ok(())
    }

    fn retract_groups(&self, record: &Record, fold: &mut Fold<'_>) -> Result<()> {
        for at in 0..fold.columns.len() {
            let column = &fold.columns[at];
            let Some(membership) = self.membership[at] else { continue };
            let group = &self.groups[membership.group];
            match (group.standing(record, fold), &self.rules[at]) {
                (Standing::Empty, _) => {}
                (Standing::Newer, _) if membership.guards => {
                    if record.kind == RowKind::Delete && group.removes_record {
                        fold.deleted = true;
                        return reset_row(record, fold.columns, &self.nullable, fold.row);
                    }
                    group.take_sequence(record, fold);
                }
                (Standing::Newer, ColumnRule::Plain) => fold.row[at] = Cell::Null,
                (Standing::Older, ColumnRule::Plain) => {}
                (_, ColumnRule::Aggregate(aggregator)) => {
                    let acc = fold.take(at);
                    fold.row[at] = aggregator.retract(acc, column.cell(record.at), column)?;
                }
            }
        }
        Ok(())
    }
}

impl Fold<'_> {
    fn take(&mut self, at: usize) -> Cell {
        std::mem::replace(&mut self.row[at], Cell::Null)
    }
}

impl Group {
    fn standing(&self, record: &Record, fold: &Fold<'_>) -> Standing {
        let mut empty = true;
        for &at in &self.sequence {
            empty &= fold.columns[at].is_null(record.at);
        }
        if empty {
            return Standing::Empty;
        }
        for &at in &self.sequence {
            let column = &fold.columns[at];
            match column.compare_sequence(&column.cell(record.at), &fold.row[at]) {
                std::cmp::Ordering::Less => return Standing::Older,
                std::cmp::Ordering::Greater => return Standing::Newer,
                std::cmp::Ordering::Equal => {}
            }
        }
        Standing::Newer
    }

    /// All sequence columns change at once.
    fn take_sequence(&self, record: &Record, fold: &mut Fold<'_>) {
        for &at in &self.sequence {
            fold.row[at] = fold.columns[at].cell(record.at);
        }
    }
}
