//! Rows of one key of which a side has several.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::row::{RowConverter, SortField};

use super::super::cursor::At;
use super::super::judge::Finding;
use super::super::pairs::Role;
use super::super::tally::Class;
use super::{Run, alone, gathered};
use crate::error::Result;

impl Run<'_> {
    /// Compares the rows of one key. Those that are newer than the horizon are on their way, and no second row of it.
    ///
    /// Which row stands for which does not depend on the order in which a side gives rows of one key: it has none.
    pub(super) fn group(&mut self, lefts: Vec<At>, rights: Vec<At>) -> Result<()> {
        let (lefts, rights) = (by_values(lefts)?, by_values(rights)?);
        let (late_lefts, lefts): (Vec<At>, Vec<At>) = lefts.into_iter().partition(At::is_late);
        let (late_rights, rights): (Vec<At>, Vec<At>) = rights.into_iter().partition(At::is_late);
        let (mut late_lefts, mut late_rights) = (late_lefts.iter(), late_rights.iter());
        match (lefts.is_empty(), rights.is_empty()) {
            (true, false) => match late_lefts.next() {
                // what the other side has is older than the row that is on its way
                Some(late) => self.behind(late, false, &rights)?,
                None => self.in_time(&lefts, &rights)?,
            },
            (false, true) => match late_rights.next() {
                Some(late) => self.behind(late, true, &lefts)?,
                None => self.in_time(&lefts, &rights)?,
            },
            (false, false) => self.in_time(&lefts, &rights)?,
            (true, true) => {
                while let (Some(left), Some(right)) = (late_lefts.as_slice().first(), late_rights.as_slice().first()) {
                    self.late(Some(left), Some(right))?;
                    late_lefts.next();
                    late_rights.next();
                }
            }
        }
        late_lefts.try_for_each(|late| self.late(Some(late), None))?;
        late_rights.try_for_each(|late| self.late(None, Some(late)))
    }

    /// A late row, and the rows that the other side has of its key.
    fn behind(&mut self, late: &At, is_right: bool, others: &[At]) -> Result<()> {
        self.doubles(!is_right, others, 1)?;
        match others.first() {
            Some(other) if is_right => self.late(Some(other), Some(late)),
            Some(other) => self.late(Some(late), Some(other)),
            None => Ok(()),
        }
    }

    /// Counts the rows of a side, where there are several; `stand` of them are of another class too.
    fn doubles(&mut self, right: bool, rows: &[At], stand: usize) -> Result<()> {
        let [first, _, ..] = rows else { return Ok(()) };
        let class = if right { Class::DupSource } else { Class::DupLake };
        let all = rows.len() as u64;
        let counts = if right { (0, all) } else { (all, 0) };
        self.tally.found(class, 1, counts.0, counts.1);
        if let Some(twice) = self.tally.twice.get_mut(usize::from(right)) {
            *twice += stand.min(rows.len()) as u64;
        }
        let own = if right { (None, Some(first)) } else { (Some(first), None) };
        self.examples.keep(&mut self.tally, class, own, &[], counts)
    }

    fn in_time(&mut self, lefts: &[At], rights: &[At]) -> Result<()> {
        // one row of a side stands for the key where the other side has none
        let stand = lefts.len().min(rights.len()).max(1);
        self.doubles(false, lefts, stand)?;
        self.doubles(true, rights, stand)?;
        if lefts.is_empty() || rights.is_empty() {
            let (right, rows) = if lefts.is_empty() { (true, rights) } else { (false, lefts) };
            return match rows.first() {
                Some(first) => self.lone(right, first),
                None => Ok(()),
            };
        }
        // equal rows stand for each other first
        let (one, other) = (gathered(lefts)?, gathered(rights)?);
        let keys = |batch: &RecordBatch| self.values.convert_columns(&self.compared(batch));
        let (one_keys, other_keys) = (keys(&one)?, keys(&other)?);
        let readable = |right: bool, batch: &RecordBatch, row: usize| {
            let form = &self.forms[usize::from(right)];
            form.unread
                .iter()
                .flatten()
                .chain(&form.unsure)
                .all(|at| batch.columns().get(*at).is_none_or(|column| column.is_null(row)))
        };
        let mut by_value: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for row in (0..rights.len()).rev().filter(|row| readable(true, &other, *row)) {
            by_value.entry(other_keys.row(row).data()).or_default().push(row);
        }
        let mut used = vec![false; rights.len()];
        let mut rest = Vec::new();
        let mut equal = 0;
        for (row, left) in lefts.iter().enumerate() {
            let readable = readable(false, &one, row);
            let found = if readable { by_value.get_mut(one_keys.row(row).data()).and_then(Vec::pop) } else { None };
            match found.and_then(|found| used.get_mut(found)) {
                Some(used) => {
                    *used = true;
                    equal += 1;
                }
                None => rest.push(left),
            }
        }
        let mut others = rights.iter().zip(&used).filter(|(_, used)| !**used).map(|(right, _)| right);
        self.tally.found(Class::Equal, equal, equal, equal);
        // what is left of both is compared in the order of its values; what is left of one is counted above
        for left in rest {
            let Some(right) = others.next() else { break };
            let findings = self.judge.compare(&alone(left), &alone(right))?;
            let finding = findings.and_then(|mut findings| findings.pop()).unwrap_or(Finding::Equal);
            self.finding(finding, left, right)?;
        }
        Ok(())
    }

    fn compared(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        let pairs = self.pairs.all.iter().zip(batch.columns());
        pairs.filter(|(pair, _)| pair.role == Role::Compared).map(|(_, column)| std::sync::Arc::clone(column)).collect()
    }
}

/// Rows of one key in the order of their values: those that are compared, then all others.
fn by_values(rows: Vec<At>) -> Result<Vec<At>> {
    if rows.len() < 2 {
        return Ok(rows);
    }
    let batch = gathered(&rows)?;
    let fields = batch.schema().fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
    let values = RowConverter::new(fields)?.convert_columns(batch.columns())?;
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.sort_by_key(|place| values.row(*place));
    let mut slots: Vec<Option<At>> = rows.into_iter().map(Some).collect();
    Ok(places.into_iter().filter_map(|place| slots.get_mut(place)?.take()).collect())
}
