//! What filters say of the first column of the key: files are sorted by it.

use datafusion::common::ScalarValue;

use super::condition::{CompareOp, Condition};
use super::filters::Filters;
use crate::spec::TableSchema;

/// Smallest and largest value of the first key column that a row which is wanted can have. Both belong to it; one of them
/// is known at least.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyInterval {
    /// The column, by its place in the table's schema.
    pub column: usize,
    /// Never NULL.
    pub lower: Option<ScalarValue>,
    /// Never NULL.
    pub upper: Option<ScalarValue>,
}

impl Filters {
    /// What all filters together say; None: any value.
    pub(crate) fn key_interval(&self, schema: &TableSchema) -> Option<KeyInterval> {
        if !schema.is_primary_key_table() {
            return None;
        }
        let column = *schema.trimmed_primary_key().ok()?.first()?;
        let mut found = KeyInterval { column, lower: None, upper: None };
        for conjunct in &self.conjuncts {
            found.narrow(&conjunct.condition);
        }
        (found.lower.is_some() || found.upper.is_some()).then_some(found)
    }
}

impl KeyInterval {
    fn narrow(&mut self, condition: &Condition) {
        match condition {
            Condition::And(parts) => parts.iter().for_each(|part| self.narrow(part)),
            Condition::Compare { column, cast: None, op, literal } if *column == self.column => match op {
                CompareOp::Eq => {
                    self.from(literal);
                    self.to(literal);
                }
                CompareOp::Gt | CompareOp::GtEq => self.from(literal),
                CompareOp::Lt | CompareOp::LtEq => self.to(literal),
                CompareOp::NotEq => {}
            },
            Condition::OneOf { column, cast: None, literals, negated: false } if *column == self.column => {
                let least = literals.iter().try_fold(None, |least: Option<&ScalarValue>, one| match least {
                    None => Some(Some(one)),
                    Some(least) => Some(Some(if one.partial_cmp(least)?.is_lt() { one } else { least })),
                });
                let most = literals.iter().try_fold(None, |most: Option<&ScalarValue>, one| match most {
                    None => Some(Some(one)),
                    Some(most) => Some(Some(if one.partial_cmp(most)?.is_gt() { one } else { most })),
                });
                if let (Some(Some(least)), Some(Some(most))) = (least, most) {
                    self.from(least);
                    self.to(most);
                }
            }
            _ => {}
        }
    }

    fn from(&mut self, value: &ScalarValue) {
        let narrower = |known: &ScalarValue| value.partial_cmp(known).is_some_and(|order| order.is_gt());
        if self.lower.as_ref().is_none_or(narrower) {
            self.lower = Some(value.clone());
        }
    }

    fn to(&mut self, value: &ScalarValue) {
        let narrower = |known: &ScalarValue| value.partial_cmp(known).is_some_and(|order| order.is_lt());
        if self.upper.as_ref().is_none_or(narrower) {
            self.upper = Some(value.clone());
        }
    }
}
