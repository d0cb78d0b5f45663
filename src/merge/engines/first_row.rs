//! First-row: the first record wins; retracts have no place in it.

use super::Outcome;
use crate::error::{Error, Result};
use crate::merge::order::Record;

#[derive(Debug, Clone, Copy)]
pub(in crate::merge) struct FirstRow {
    pub(in crate::merge) ignore_delete: bool,
}

impl FirstRow {
    pub(in crate::merge) fn choose(&self, records: &[Record]) -> Result<Outcome> {
        if !self.ignore_delete && records.iter().any(|record| record.kind.is_retract()) {
            return Err(Error::unsupported("a first-row table cannot merge a -U or -D row")
                .with_code("RetractUnsupported")
                .with_context("option", "merge-engine")
                .with_hint("set 'ignore-delete' = 'true' on the table to skip them"));
        }
        Ok(records.iter().position(|record| !record.kind.is_retract()).map_or(Outcome::Nothing, Outcome::Record))
    }
}
