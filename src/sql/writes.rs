//! Where a planned statement would write, and that it is not into the warehouse.
//!
//! [`refuse`](super::statements::refuse) goes by the words of a statement. What writes files goes by its plan: behind
//! EXPLAIN and EXECUTE, and where only the catalog knows what a name stands for.

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::source_as_provider;
use datafusion::datasource::stream::StreamTable;
use datafusion::logical_expr::{LogicalPlan, Statement as PlanStatement};

use super::warehouse::Warehouse;
use crate::error::{Error, Result};

/// The setting that says where rows are spilled.
const SPILL: &str = "datafusion.runtime.temp_directory";

/// What would write, and where: None where that cannot be told.
type Write = (String, Option<String>);

/// Refuses a plan that would write into the warehouse, at any depth.
///
/// # Errors
/// `ReadOnly`, naming the target.
pub(crate) fn check(plan: &LogicalPlan, warehouse: &Warehouse) -> Result<()> {
    let mut writes: Vec<Write> = Vec::new();
    plan.apply(|node| {
        match node {
            LogicalPlan::Copy(copy) => writes.push(("COPY".to_string(), Some(copy.output_url.clone()))),
            LogicalPlan::Dml(dml) => {
                let provider = source_as_provider(&dml.target)?;
                writes.extend(written(&dml.op.to_string(), provider.as_ref()));
            }
            LogicalPlan::Statement(PlanStatement::SetVariable(set)) if set.variable.eq_ignore_ascii_case(SPILL) => {
                writes.push((format!("SET {SPILL}"), Some(set.value.clone())));
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    writes.into_iter().try_for_each(|(what, target)| match target {
        Some(target) => warehouse.check_outside(&what, &target),
        None => Err(Error::unsupported(format!("{what} would write where a stream goes, which cannot be checked"))
            .with_code("ReadOnly")
            .with_hint("Lakepin reads only; COPY … TO 'file' writes a file")),
    })
}

/// The files that a change of a relation of the session would write. What only lives in memory writes none, and what an
/// embedding program registered itself is its own affair.
fn written(what: &str, provider: &dyn TableProvider) -> Vec<Write> {
    if let Some(listing) = provider.downcast_ref::<ListingTable>() {
        return listing.table_paths().iter().map(|url| (what.to_string(), Some(url.to_string()))).collect();
    }
    if provider.downcast_ref::<StreamTable>().is_some() {
        return vec![(what.to_string(), None)];
    }
    Vec::new()
}
