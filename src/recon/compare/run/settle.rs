//! Rows that one side alone showed under a condition, looked for on the other side beside it.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion::common::{Column as PlanColumn, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{Expr, lit};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt, stream};

use super::super::cursor::Cursor;
use super::super::pending::Waiting;
use super::super::side::{Asked, Form, Side, SideRows, ordered};
use super::super::tally::Class;
use super::{PAIRS, Run, alone};
use crate::error::{Error, Result};

/// Keys that are looked up by name; more are found by reading all.
const NAMED_KEYS: u64 = 2_000;
/// Keys that a database is asked for at once.
const KEYS_AT_ONCE: usize = 500;
/// Keys that a database is asked for by name in all.
const KEYS_OF_SOURCE: u64 = 20_000;

impl Run<'_> {
    /// Looks for the rows of one side alone on the other side, beside its condition.
    pub(super) async fn settle(&mut self) -> Result<()> {
        for right in [false, true] {
            let count = self.pending[usize::from(right)].count;
            if count > 0 {
                let waiting = self.pending[usize::from(right)].take()?;
                self.settle_side(right, count, &waiting).await?;
            }
        }
        Ok(())
    }

    async fn settle_side(&mut self, right: bool, count: u64, waiting: &Waiting) -> Result<()> {
        let (own, other) = (usize::from(right), usize::from(!right));
        let side = &self.sides[other];
        // what is looked up is counted by itself
        let form = Form::new(self.pairs, !right, side, self.manner)?;
        let rows = look_up(self.state, side, &form, count, waiting).await?;
        // they are counted where they come by themselves
        let mut others = Cursor::new(rows, &form, self.judge, &side.name, self.pairs.keys).uncounted();
        let owns = Cursor::new(waiting.rows()?, &self.forms[own], self.judge, &self.sides[own].name, self.pairs.keys);
        let mut owns = owns.uncounted();
        let mut gone: usize = 0;
        while let Some(row) = owns.here().await? {
            owns.advance();
            let found = loop {
                gone += 1;
                if gone.is_multiple_of(PAIRS) {
                    tokio::task::consume_budget().await;
                }
                let Some(other) = others.here().await? else { break None };
                match other.key().cmp(&row.key()) {
                    Ordering::Less => others.advance(),
                    Ordering::Equal => break Some(other),
                    Ordering::Greater => break None,
                }
            };
            let class = match &found {
                None if right => Class::MissingInLake,
                None => Class::ExtraInLake,
                Some(other) if other.is_late() && right => Class::LateUpdate,
                Some(other) if other.is_late() => Class::Late,
                Some(_) => Class::FilterMismatch,
            };
            let Some(found) = found else {
                self.one(class, right, &row)?;
                continue;
            };
            if class != Class::FilterMismatch {
                self.tally.leave_out(self.pairs, right, &row)?;
            }
            let (left, right_row) = if right { (&found, &row) } else { (&row, &found) };
            let differing = self.judge.differing(&alone(left), &alone(right_row))?;
            // what the condition is about comes first, and nothing that differs is left out: what is not shown is the same
            let (mut shown, others): (Vec<usize>, Vec<usize>) =
                differing.into_iter().partition(|at| self.in_condition.contains(at));
            shown.extend(others);
            let counts = (u64::from(!right), u64::from(right));
            self.tally.found(class, 1, counts.0, counts.1);
            self.examples.keep(&mut self.tally, class, (Some(left), Some(right_row)), &shown, counts)?;
        }
        self.looked_up[other] += form.found.rows.load(std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}

/// Rows of a side with the keys of those that wait, whatever its condition; others may come with them.
async fn look_up(
    state: &SessionState,
    side: &Side,
    form: &Arc<Form>,
    count: u64,
    waiting: &Waiting,
) -> Result<SendableRecordBatchStream> {
    let most = match &side.rows {
        SideRows::Plan(_) => NAMED_KEYS,
        SideRows::Source(_) => KEYS_OF_SOURCE,
    };
    let mut keys = None;
    if count <= most {
        let batches: Vec<RecordBatch> = waiting.rows()?.try_collect().await.map_err(Error::from_datafusion)?;
        let schema = batches.first().map_or_else(|| Arc::clone(&form.schema), RecordBatch::schema);
        keys = form.raw_keys(&concat_batches(&schema, &batches)?)?;
        if let (Some(keys), SideRows::Source(source)) = (&mut keys, &side.rows) {
            // the source refuses to look for what no row of it has
            keys.retain(|key| form.is_held(source.as_ref(), key));
        }
    }
    let asked = match (keys, &side.rows) {
        (None, _) => vec![Asked::default()],
        (Some(keys), SideRows::Plan(_)) => {
            let columns = form.key_columns();
            let conditions = columns.iter().enumerate().map(|(at, name)| {
                let mut values: Vec<ScalarValue> = keys.iter().filter_map(|key| key.get(at).cloned()).collect();
                values.dedup();
                Expr::Column(PlanColumn::new_unqualified(name)).in_list(values.into_iter().map(lit).collect(), false)
            });
            vec![Asked { also: conditions.reduce(Expr::and), ..Asked::default() }]
        }
        (Some(keys), SideRows::Source(_)) => {
            keys.chunks(KEYS_AT_ONCE).map(|keys| Asked { keys: keys.to_vec(), ..Asked::default() }).collect()
        }
    };
    let mut streams = Vec::new();
    for asked in asked {
        streams.push(ordered(side, form, asked, state).await?);
    }
    let state = state.clone();
    // one after another: keys come in order
    let rows = stream::iter(streams)
        .map(move |plan| plan.begin(&state).map_err(datafusion::error::DataFusionError::from))
        .try_flatten();
    Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&form.schema), rows)))
}
