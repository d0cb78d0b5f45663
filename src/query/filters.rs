//! Which filters a scan takes.

use std::collections::BTreeSet;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};

use crate::snapshot::Pin;

/// How far a scan of `pin` applies `filter`, by the filter alone.
///
/// Exact: it is deterministic and speaks of partition columns only, whose values the manifest entries tell. Inexact: it
/// is deterministic and speaks of the table's columns; files are pruned by it, rows are not. Unsupported: all else.
pub fn pushdown(pin: &Pin, filter: &Expr) -> TableProviderFilterPushDown {
    if !is_deterministic(filter) {
        return TableProviderFilterPushDown::Unsupported;
    }
    let partition: BTreeSet<&str> = pin.schema.partition_keys.iter().map(String::as_str).collect();
    let (mut some, mut within, mut known) = (false, true, true);
    for column in filter.column_refs() {
        some = true;
        within &= partition.contains(column.name.as_str());
        known &= pin.schema.field_index(&column.name).is_some();
    }
    // the plan decides the same way which filters it applies itself
    within &= crate::scan::exact_filters(&[filter], &pin.schema).is_ok_and(|exact| exact == [true]);
    match (some && known, within) {
        (true, true) => TableProviderFilterPushDown::Exact,
        (true, false) => TableProviderFilterPushDown::Inexact,
        (false, _) => TableProviderFilterPushDown::Unsupported,
    }
}

fn is_deterministic(filter: &Expr) -> bool {
    let mut fine = !filter.is_volatile();
    let walked = filter.apply(|expr| match expr {
        Expr::ScalarSubquery(_)
        | Expr::InSubquery(_)
        | Expr::Exists(_)
        | Expr::SetComparison(_)
        | Expr::OuterReferenceColumn(..)
        | Expr::Placeholder(_)
        | Expr::ScalarVariable(..)
        | Expr::AggregateFunction(_)
        | Expr::WindowFunction(_) => {
            fine = false;
            Ok(TreeNodeRecursion::Stop)
        }
        _ => Ok(TreeNodeRecursion::Continue),
    });
    fine && walked.is_ok()
}
