//! One merge engine a file.

mod aggregation;
mod deduplicate;
mod first_row;
mod partial_update;

use super::cell::{Cell, Column};
use super::order::Record;
use super::rules::MergeRules;
use crate::error::{Error, Result};
use crate::spec::RowKind;
use crate::spec::options::MergeEngine;

pub(super) use deduplicate::Deduplicate;
pub(super) use first_row::FirstRow;

use aggregation::Aggregation;
use partial_update::PartialUpdate;

/// What the records of one key become.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    /// No row at all.
    Nothing,
    /// One of the records, by its number.
    Record(usize),
    /// The cells given.
    Row { sequence: i64, kind: RowKind },
}

/// The engine of a table, ready to fold keys of batches with certain columns.
#[derive(Debug)]
pub(super) enum Engine {
    Deduplicate(Deduplicate),
    FirstRow(FirstRow),
    PartialUpdate(PartialUpdate),
    Aggregation(Aggregation),
}

impl Engine {
    /// The engine for batches with these table columns.
    pub(super) fn try_new(rules: &MergeRules, columns: &[usize]) -> Result<Self> {
        Ok(match rules.engine() {
            MergeEngine::Deduplicate => Self::Deduplicate(Deduplicate { ignore_delete: rules.ignore_delete() }),
            MergeEngine::FirstRow => Self::FirstRow(FirstRow { ignore_delete: rules.ignore_delete() }),
            MergeEngine::PartialUpdate => Self::PartialUpdate(PartialUpdate::try_new(rules, columns)?),
            MergeEngine::Aggregation => Self::Aggregation(Aggregation::try_new(rules, columns)?),
        })
    }

    /// Whether rows are computed, not just chosen.
    pub(super) fn computes(&self) -> bool {
        matches!(self, Self::PartialUpdate(_) | Self::Aggregation(_))
    }

    /// Folds the records of one key, in order; at least one. `cells` gets the row if it is computed.
    pub(super) fn fold(&self, records: &[Record], columns: &[Column<'_>], cells: &mut Vec<Cell>) -> Result<Outcome> {
        match self {
            Self::Deduplicate(engine) => Ok(engine.choose(records)),
            Self::FirstRow(engine) => engine.choose(records),
            Self::PartialUpdate(engine) => engine.fold(records, columns, cells),
            Self::Aggregation(engine) => engine.fold(records, columns, cells),
        }
    }
}

/// Fills the row with a record's values. (Releases up to 2026 took NOT NULL columns only; today's rule takes them all.)
fn reset_row(record: &Record, columns: &[Column<'_>], nullable: &[bool], row: &mut Vec<Cell>) -> Result<()> {
    row.clear();
    for (column, nullable) in columns.iter().zip(nullable) {
        let cell = column.cell(record.at);
        if cell.is_null() && !nullable {
            return Err(null_in_not_null(column.name));
        }
        row.push(cell);
    }
    Ok(())
}

fn null_in_not_null(column: &str) -> Error {
    Error::invalid("a NOT NULL column holds NULL in a row to merge")
        .with_code("NullInNotNull")
        .with_context("column", column)
}
