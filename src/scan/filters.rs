//! The filters of a request, cut at AND and sorted by what may be judged of them where.

use std::sync::Arc;

use arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::split_conjunction;

use super::condition::{Condition, Conditions, column_indices, is_deterministic, without_qualifiers};
use super::prune::Pruner;
use crate::error::Result;
use crate::spec::TableSchema;

/// Where a condition may drop files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Follows from the partition alone: decided exactly, nothing is left to filter.
    Partition,
    /// On the key: all versions of a key share it, so any file may be dropped by it.
    Key,
    /// On values: only where no version of a key can hide another.
    Value,
    /// On nothing metadata knows.
    Nowhere,
}

/// One condition of a filter.
pub(crate) struct Conjunct {
    /// Number of the request's filter it belongs to.
    pub(crate) filter: usize,
    /// As shown in plans.
    pub(crate) text: Arc<str>,
    /// The expression without qualifiers.
    pub(crate) expr: Expr,
    /// Where it may drop files.
    pub(crate) reach: Reach,
    /// What of it metadata can judge.
    pub(crate) condition: Condition,
    /// Ready to be held against bounds, when that can drop anything.
    pub(crate) pruner: Option<Pruner>,
}

/// All conditions of a request.
pub(crate) struct Filters {
    /// One by one.
    pub(crate) conjuncts: Vec<Conjunct>,
    /// Expressions over partition columns that occur inside conditions.
    pub(crate) partition_exprs: Vec<Expr>,
    /// How many filters the request has.
    pub(crate) count: usize,
}

impl Filters {
    /// Sorts the filters of a request.
    pub(crate) fn try_new(filters: &[Expr], schema: &TableSchema) -> Result<Self> {
        let mut conditions = Conditions::try_new(schema)?;
        let partition: Vec<usize> = schema.partition_indices()?;
        let key: Vec<usize> = if schema.is_primary_key_table() { schema.trimmed_primary_key()? } else { Vec::new() };
        let mut conjuncts = Vec::new();
        for (filter, whole) in filters.iter().enumerate() {
            for part in split_conjunction(whole) {
                let reach = if conditions.is_partition_only(part) {
                    Reach::Partition
                } else {
                    match column_indices(part, schema).filter(|_| is_deterministic(part)) {
                        None => Reach::Nowhere,
                        Some(columns)
                            if schema.is_primary_key_table()
                                && columns.iter().all(|column| key.contains(column) || partition.contains(column)) =>
                        {
                            Reach::Key
                        }
                        Some(_) => Reach::Value,
                    }
                };
                let condition = if reach == Reach::Nowhere { Condition::Unknown } else { conditions.of(part) };
                let pruner = match reach {
                    Reach::Key | Reach::Value => Pruner::try_new(&condition, schema),
                    Reach::Partition | Reach::Nowhere => None,
                };
                let expr = without_qualifiers(part);
                let text: Arc<str> = shown(&expr).into();
                conjuncts.push(Conjunct { filter, text, expr, reach, condition, pruner });
            }
        }
        Ok(Self { conjuncts, partition_exprs: conditions.partition_exprs, count: filters.len() })
    }

    /// For each filter of the request whether the partitions alone decide it.
    pub(crate) fn exact(&self) -> Vec<bool> {
        let mut exact = vec![true; self.count];
        for conjunct in &self.conjuncts {
            if conjunct.reach != Reach::Partition
                && let Some(slot) = exact.get_mut(conjunct.filter)
            {
                *slot = false;
            }
        }
        exact
    }

    /// The conditions on values and keys together, for what judges them at once.
    pub(crate) fn on_rows(&self) -> Condition {
        let mut parts: Vec<Condition> = self
            .conjuncts
            .iter()
            .filter(|conjunct| matches!(conjunct.reach, Reach::Key | Reach::Value))
            .map(|conjunct| conjunct.condition.clone())
            .filter(|condition| *condition != Condition::Unknown)
            .collect();
        match parts.len() {
            0 => Condition::Unknown,
            1 => parts.remove(0),
            _ => Condition::And(parts),
        }
    }
}

/// A condition as it is shown: times as people write them, not as counts of their unit.
fn shown(expr: &Expr) -> String {
    let told = expr.clone().transform(|part| {
        let text = match &part {
            Expr::Literal(value, _) if value.data_type().is_temporal() && !value.is_null() => time_text(value),
            _ => None,
        };
        Ok(text.map_or(Transformed::no(part), |text| Transformed::yes(Expr::Column(Column::from_name(text)))))
    });
    told.map_or_else(|_| expr.human_display().to_string(), |told| told.data.human_display().to_string())
}

fn time_text(value: &ScalarValue) -> Option<String> {
    array_value_to_string(&value.to_array().ok()?, 0).ok()
}

/// For each filter whether a plan decides it exactly, so that nothing is left to filter above the scan: it reads
/// partition columns only and gives the same answer at any time.
pub fn exact_filters(filters: &[&Expr], schema: &TableSchema) -> Result<Vec<bool>> {
    let conditions = Conditions::try_new(schema)?;
    Ok(filters
        .iter()
        .map(|filter| split_conjunction(filter).into_iter().all(|part| conditions.is_partition_only(part)))
        .collect())
}
