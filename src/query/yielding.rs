//! Plans that can be cancelled at any moment.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;

use crate::error::Result;

/// Puts a node that gives way above every node that makes many batches of one. DataFusion does so for leaves; but what
/// consumes a cross join in one loop never comes back to a leaf, holds its thread until the last row, and hears neither
/// cancelling nor the clock.
///
/// # Errors
/// A node that cannot take its children anew.
pub fn yielding(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let wrapped = plan.transform_up(|node| {
        Ok(if multiplies(node.as_ref()) {
            Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>)
        } else {
            Transformed::no(node)
        })
    })?;
    Ok(wrapped.data)
}

/// Whether a node makes many batches of one.
pub(super) fn multiplies(node: &dyn ExecutionPlan) -> bool {
    node.name().ends_with("JoinExec") || node.name() == "UnnestExec"
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use datafusion::execution::context::SessionContext;
    use datafusion::physical_plan::execute_stream;
    use futures::StreamExt;

    use super::*;

    /// On one thread a consumer that never yields would keep the clock from ever striking.
    #[tokio::test(flavor = "current_thread")]
    async fn joins_hear_the_clock() {
        let context = SessionContext::new();
        for sql in [
            "select sum(a.value * b.value) from generate_series(1, 1000000) a, generate_series(1, 1000000) b",
            "select count(*) from generate_series(1, 1000000) a join generate_series(1, 1000000) b on a.value < b.value",
            "select count(*) from generate_series(1, 300000) a join generate_series(1, 300000) b on a.value % 2 = b.value % 2",
        ] {
            let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
            let mut rows = execute_stream(yielding(plan).unwrap(), context.task_ctx()).unwrap();
            let began = Instant::now();
            let ended = tokio::time::timeout(Duration::from_millis(200), rows.next()).await;
            assert!(ended.is_err() && began.elapsed() < Duration::from_secs(20), "{sql}: {:?}", began.elapsed());
        }
    }
}
