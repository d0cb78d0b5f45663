//! The verdict of a comparison as a statement names it: the comparison, the history of the table on its left, and a look
//! at the values that may be codes.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::common::{Column as PlanColumn, ScalarValue};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::functions_aggregate::expr_fn::{approx_distinct, count};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::physical_plan::execute_stream;
use futures::TryStreamExt;
use parking_lot::Mutex;

use super::reconcile::{plan_of, query_side, sides, table_side};
use super::statement::Statement;
use super::statements::{Reconcile, RightSide, Theirs};
use super::system_tables::Source;
use crate::error::{Error, Result};
use crate::memory::MemoryBudget;
use crate::query::{LakeTable, LakeView};
use crate::recon::compare::{Guard, Report, Side, SideRows, Sink};
use crate::recon::history::History;
use crate::recon::verdict::{self, Compared, Domain, KEYS, Left, Patterns, Rerun, Sample, Verdict, Wanted};
use crate::snapshot::Pin;

/// Rows of a side up to which a comparison is run again at the same pins.
const RERUN: u64 = 200_000;
/// Columns that are asked for codes.
const COLUMNS: usize = 8;

/// Compares, and gives the verdict; the report is None where a count alone was given.
pub(crate) async fn judge(
    statement: &Arc<Statement>,
    state: &SessionState,
    asked: &Reconcile,
    sink: Option<Sink>,
) -> Result<(Verdict, Option<Report>)> {
    let wanted = Wanted { keys: asked.verdict.unwrap_or(KEYS), theirs: their_count(statement, state, asked).await? };
    if matches!(asked.right, RightSide::Count) {
        let side = table_side(statement, &asked.left).await?;
        let left = left_of(statement, &side).await?;
        return Ok((verdict::judge(&left, None, wanted).await?, None));
    }
    let sides = sides(statement, state, asked).await?;
    let [side, _] = &sides;
    let side = side.clone();
    let partition_keys = pin_of(&side).map(|pin| pin.schema.partition_keys.clone()).unwrap_or_default();
    let sample = Arc::new(Mutex::new(Sample::new(partition_keys)));
    let taken = {
        let (sample, mut sink) = (Arc::clone(&sample), sink);
        let take: Sink = Box::new(move |example| {
            sample.lock().take(example);
            sink.as_mut().map_or(Ok(()), |sink| sink(example))
        });
        take
    };
    let comparison = plan_of(sides.clone(), statement, state, asked, Some(taken)).await?;
    let common = comparison.common();
    let report = comparison.run().await?;
    let rerun = again(sides, statement, state, asked, &report).await?;
    let sample = std::mem::take(&mut *sample.lock());
    let domain = domain(state, &side, &Patterns::of(sample.all())).await?;
    let left = left_of(statement, &side).await?;
    let compared = Compared {
        report: &report,
        sample,
        domain,
        rerun,
        keys: asked.key.clone(),
        common,
        filtered: asked.condition.is_some(),
    };
    let found = verdict::judge(&left, Some(compared), wanted).await?;
    Ok((found, Some(report)))
}

/// The pin of a side that is the rows of one table.
pub(crate) fn pin_of(side: &Side) -> Option<&Arc<Pin>> {
    let SideRows::Plan(LogicalPlan::TableScan(scan)) = &side.rows else { return None };
    let provider = datafusion::datasource::source_as_provider(&scan.source).ok()?;
    let is_rows = provider.downcast_ref::<LakeTable>()?.view() == LakeView::Rows;
    match side.guards.as_slice() {
        [Guard::Pin(pin)] if is_rows => Some(pin),
        _ => None,
    }
}

/// What a side is: a table with its history, as it is now, or other rows.
async fn left_of(statement: &Arc<Statement>, side: &Side) -> Result<Left> {
    let Some(pin) = pin_of(side) else { return Ok(Left::Other) };
    if pin.snapshot.is_none() {
        return Ok(Left::Empty);
    }
    let source = Source::of_now(statement, &pin.table).await?;
    let history = History::load(source.pin()?, &source.env).await.map_err(|error| source.named(error))?;
    let budget: Arc<dyn MemoryBudget> = source.budget();
    Ok(Left::of_table(history, pin, source.zone, budget))
}

/// Compares once more, where that reads the same and costs little.
async fn again(
    sides: [Side; 2],
    statement: &Arc<Statement>,
    state: &SessionState,
    asked: &Reconcile,
    first: &Report,
) -> Result<Rerun> {
    let not = |why: &str| Ok(Rerun::NotTried(why.to_string()));
    if sides.iter().any(|side| matches!(side.rows, SideRows::Source(_))) {
        return not("a database cannot be read again as it was");
    }
    if let Some(side) = sides.iter().find(|side| !side.state_known) {
        return not(&format!("{} is not fixed at a state: read again it may have other rows", side.name));
    }
    if asked.progress.is_some() || asked.stop_after.is_some() {
        return not("the comparison went on from another one, or was ended early");
    }
    if first.left.rows.max(first.right.rows) > RERUN {
        return not("there are too many rows to read them twice unasked");
    }
    let second = plan_of(sides, statement, state, asked, None).await?.run().await?;
    if second.classes == first.classes && second.columns == first.columns {
        return Ok(Rerun::Same);
    }
    Ok(Rerun::Differs(format!("first {}, then {}", first.line, second.line)))
}

/// How often the lake has the values that may be codes.
async fn domain(state: &SessionState, side: &Side, patterns: &Patterns) -> Result<Domain> {
    let mut domain = Domain::default();
    let SideRows::Plan(plan) = &side.rows else { return Ok(domain) };
    for (name, values) in patterns.wanted().into_iter().take(COLUMNS) {
        let Some(column) = side.columns.iter().find(|column| column.name == name) else { continue };
        let is_code = column.data_type.is_integer()
            || matches!(
                column.data_type,
                DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Boolean
            );
        if !is_code {
            continue;
        }
        let text = || cast(Expr::Column(PlanColumn::from_name(&name)), DataType::Utf8);
        let mut all = LogicalPlanBuilder::from(plan.clone());
        if let Some(condition) = &side.condition {
            all = all.filter(condition.clone())?;
        }
        let some = all.clone().filter(text().in_list(values.iter().map(lit).collect(), false))?;
        let counted = some.aggregate([text().alias("value")], [count(lit(1)).alias("rows")])?.build()?;
        for batch in collect(state, &counted).await? {
            let (texts, rows) = (batch.column(0).as_string_opt::<i32>(), batch.column(1).as_primitive::<Int64Type>());
            for (value, rows) in texts.into_iter().flatten().zip(rows) {
                let rows = rows.and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0);
                domain.rows.insert((name.clone(), value.unwrap_or_default().to_string()), rows);
            }
        }
        // a value that is asked for and not there is there no time
        for value in values {
            domain.rows.entry((name.clone(), value)).or_default();
        }
        let distinct = all.aggregate(Vec::<Expr>::new(), [approx_distinct(text())])?.build()?;
        let found = collect(state, &distinct).await?;
        let count = found.first().and_then(|batch| batch.column(0).as_primitive_opt::<UInt64Type>()?.iter().next()?);
        domain.distinct.insert(name, count.unwrap_or(u64::MAX));
    }
    Ok(domain)
}

async fn collect(state: &SessionState, plan: &LogicalPlan) -> Result<Vec<RecordBatch>> {
    let physical = state.create_physical_plan(plan).await?;
    let rows = execute_stream(physical, Arc::new(TaskContext::from(state)))?;
    rows.try_collect().await.map_err(Error::from_datafusion)
}

/// The count of the other side: a number, or what a query gives.
async fn their_count(statement: &Arc<Statement>, state: &SessionState, asked: &Reconcile) -> Result<Option<u64>> {
    let query = match &asked.theirs {
        None => return Ok(None),
        Some(Theirs::Number(number)) => return Ok(Some(*number)),
        Some(Theirs::Query(query)) => query,
    };
    let wrong = || {
        Error::invalid("THEIR COUNT takes a query for one number that is not negative")
            .with_code("BadArgument")
            .with_hint("write THEIR COUNT 503, or THEIR COUNT (SELECT count(*) FROM …)")
    };
    let side = query_side(statement, query).await?;
    let SideRows::Plan(plan) = &side.rows else { return Err(wrong()) };
    let batches = collect(state, plan).await?;
    let mut values = batches.iter().filter(|batch| batch.num_rows() > 0);
    let (Some(batch), None) = (values.next(), values.next()) else { return Err(wrong()) };
    if batch.num_rows() != 1 || batch.num_columns() != 1 {
        return Err(wrong());
    }
    let value = ScalarValue::try_from_array(batch.column(0), 0)?;
    match value.cast_to(&DataType::UInt64) {
        Ok(ScalarValue::UInt64(Some(number))) => Ok(Some(number)),
        _ => Err(wrong()),
    }
}
