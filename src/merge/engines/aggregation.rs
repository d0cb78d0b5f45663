//! Aggregation: every column has a function.

use super::{Outcome, reset_row};
use crate::error::{Error, Result};
use crate::merge::aggregation::{Aggregator, FoldState};
use crate::merge::cell::{Cell, Column};
use crate::merge::order::Record;
use crate::merge::rules::{ColumnRule, MergeRules};
use crate::spec::RowKind;

#[derive(Debug)]
pub(in crate::merge) struct Aggregation {
    aggregators: Vec<Aggregator>,
    nullable: Vec<bool>,
    remove_record_on_delete: bool,
}

impl Aggregation {
    pub(super) fn try_new(rules: &MergeRules, columns: &[usize]) -> Result<Self> {
        let mut aggregators = Vec::with_capacity(columns.len());
        let mut nullable = Vec::with_capacity(columns.len());
        for &column in columns {
            nullable.push(rules.field(column)?.field_type.nullable);
            match rules.rule(column)? {
                ColumnRule::Aggregate(aggregator) => aggregators.push(*aggregator),
                ColumnRule::Plain => return Err(Error::internal("every column of an aggregation has a function")),
            }
        }
        Ok(Self { aggregators, nullable, remove_record_on_delete: rules.remove_record_on_delete() })
    }

    pub(super) fn fold(&self, records: &[Record], columns: &[Column<'_>], row: &mut Vec<Cell>) -> Result<Outcome> {
        row.clear();
        row.resize(columns.len(), Cell::Null);
        let mut states = vec![FoldState::default(); columns.len()];
        let mut deleted = false;
        for record in records {
            deleted = self.remove_record_on_delete && record.kind == RowKind::Delete;
            if deleted {
                reset_row(record, columns, &self.nullable, row)?;
                continue;
            }
            for (((cell, column), aggregator), state) in
                row.iter_mut().zip(columns).zip(&self.aggregators).zip(&mut states)
            {
                let acc = std::mem::replace(cell, Cell::Null);
                let input = column.cell(record.at);
                *cell = if record.kind.is_retract() {
                    aggregator.retract(acc, input, column)?
                } else {
                    aggregator.agg(acc, input, column, state)?
                };
            }
        }
        let sequence = records.last().map_or(0, |record| record.sequence);
        Ok(Outcome::Row { sequence, kind: if deleted { RowKind::Delete } else { RowKind::Insert } })
    }
}
