//! A comparison that compared nothing is no proof that nothing differs.

use std::sync::atomic::Ordering;

use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;

use super::super::side::{Form, Side, SideRows};
use super::super::tally::Tally;
use crate::error::{Error, Result};
use crate::recon::source::SourceRead;

/// What kept rows from being compared.
pub(super) struct Kept<'a> {
    /// The horizon, `at <= 2026-04-16 10:00:00`.
    pub(super) horizon: Option<String>,
    /// Whether a part of the keys was looked at.
    pub(super) sampled: bool,
    /// Whether it may be that no row meets the condition.
    pub(super) may_be_empty: bool,
    /// The forms of both sides.
    pub(super) forms: &'a [std::sync::Arc<Form>; 2],
}

/// Ends a comparison in which no row was compared though there are some. Two sides without a row are equal. Says what was
/// compared, where a condition that no row meets is admitted.
///
/// # Errors
/// `EmptySample`, `NothingCompared`; those of the look whether a side has a row at all.
pub(super) async fn check(
    sides: &[Side; 2],
    tally: &Tally,
    kept: Kept<'_>,
    state: &SessionState,
) -> Result<Option<String>> {
    if tally.compared() != [0, 0] || tally.differences() > 0 {
        return Ok(None);
    }
    let came = kept.forms.iter().map(|form| form.found.rows.load(Ordering::Relaxed)).sum::<u64>();
    if kept.sampled && tally.rows == [0, 0] && came > 0 {
        return Err(Error::invalid(format!(
            "the sample holds no row: none of the {came} rows of both sides has a key in it, so nothing was compared"
        ))
        .with_code("EmptySample")
        .with_hint("take a larger part, SAMPLE 10 PERCENT BY KEY HASH, or compare all"));
    }
    if tally.rows != [0, 0] {
        let [left, right] = tally.rows;
        let horizon = kept.horizon.unwrap_or_default();
        return Err(nothing(format!(
            "all rows that came, {left} on the left and {right} on the right, are newer than the horizon, {horizon}"
        ))
        .with_context("horizon", horizon)
        .with_hint("choose a later horizon, or a state of the table that has older rows: HORIZON, AT (VERSION => …)"));
    }
    for side in sides {
        if let Some(condition) = &side.condition
            && has_a_row(side, state).await?
        {
            if kept.may_be_empty {
                return Ok(Some(format!(
                    "no row was compared: none of either side meets the condition, though {} has rows; ALLOW EMPTY admits that",
                    side.name
                )));
            }
            return Err(nothing(format!("no row of either side meets the condition, and {} has rows", side.name))
                .with_context("condition", condition.to_string())
                .with_hint(
                    "look for what the condition leaves over with SELECT count(*) … WHERE, and widen it; where a day may be without rows, say ALLOW EMPTY",
                ));
        }
    }
    Ok(None)
}

fn nothing(why: String) -> Error {
    Error::invalid(format!("nothing was compared, so it cannot be said that nothing differs: {why}"))
        .with_code("NothingCompared")
}

/// Whether a side has a row, whatever its condition: the first one answers.
async fn has_a_row(side: &Side, state: &SessionState) -> Result<bool> {
    let mut rows = match &side.rows {
        SideRows::Source(source) => {
            let columns = source.columns().iter().take(1).map(|column| column.name.clone()).collect();
            // what the column's type does not hold is a row too
            source.read(SourceRead { columns, unreadable: true, ..SourceRead::default() }).await?
        }
        SideRows::Plan(plan) => {
            let first = LogicalPlanBuilder::from(plan.clone()).limit(0, Some(1))?.build()?;
            let physical = state.create_physical_plan(&first).await?;
            execute_stream(physical, std::sync::Arc::new(TaskContext::from(state)))?
        }
    };
    while let Some(batch) = rows.next().await {
        if batch.map_err(Error::from_datafusion)?.num_rows() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
