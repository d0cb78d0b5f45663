//! Deduplicate: the last record wins, and its kind decides.

use super::Outcome;
use crate::merge::order::Record;

#[derive(Debug, Clone, Copy)]
pub(in crate::merge) struct Deduplicate {
    pub(in crate::merge) ignore_delete: bool,
}

impl Deduplicate {
    pub(in crate::merge) fn choose(&self, records: &[Record]) -> Outcome {
        records
            .iter()
            .rposition(|record| !(self.ignore_delete && record.kind.is_retract()))
            .map_or(Outcome::Nothing, Outcome::Record)
    }
}
