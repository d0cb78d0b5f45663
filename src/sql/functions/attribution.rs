//! Which commit made each difference: the last one between two states that changed what readers get of the key.

use std::sync::Arc;

use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::max;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Union, lit};
use datafusion::prelude::col;
use datafusion::scalar::ScalarValue;

use super::diff::{HERE, Sides, column, differs, joined};
use crate::error::{Error, Result};
use crate::query::Compared;
use crate::snapshot::{Pin, SessionZone};
use crate::spec::{Snapshot, TableSchema};

/// Columns that tell the commit, behind those of the difference.
const COLUMNS: &[&str] = &["snapshot_id", "commit_kind", "commit_user", "commit_identifier", "commit_time"];

/// A difference with the commit that made each row of it; `states` are all between the two, in order, both included.
///
/// Each is compared with the one before it, and files that both have are not read: all together that reads what the
/// commits wrote.
pub(super) async fn attributed(
    difference: LogicalPlan,
    sides: &Sides<'_>,
    states: Vec<Arc<Pin>>,
) -> Result<LogicalPlan> {
    let schema = Arc::clone(&sides.after.schema);
    let mut steps: Vec<Arc<LogicalPlan>> = Vec::new();
    let mut commits: Vec<Arc<Snapshot>> = Vec::new();
    let mut before: Option<Arc<Pin>> = None;
    for state in states {
        let state = state.with_schema(&schema).await?;
        if let (Some(before), Some(snapshot)) = (before.replace(Arc::clone(&state)), &state.snapshot) {
            let step = Sides {
                statement: sides.statement,
                compared: Compared::new(&before, &state),
                before,
                after: Arc::clone(&state),
                fields: sides.fields.clone(),
                unordered: sides.unordered.clone(),
                condition: sides.condition.clone(),
            };
            steps.push(Arc::new(touched(&step, &schema, snapshot.id.0)?));
            commits.push(Arc::clone(snapshot));
        }
    }
    let Some(first) = steps.first() else { return without(difference) };
    let all = match steps.len() {
        1 => first.as_ref().clone(),
        _ => LogicalPlan::Union(Union::try_new(steps)?),
    };
    let keys = || schema.primary_keys.iter();
    let last = LogicalPlanBuilder::from(all)
        .aggregate(keys().map(|key| Expr::Column(Column::from_name(key))), [max(col(CAUSE)).alias(CAUSE)])?
        .alias("causes")?
        .build()?;
    let named =
        LogicalPlanBuilder::values(commits.iter().map(|commit| commit_row(commit, sides.statement.zone())).collect())?;
    let columns = named.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let named = named
        .project(columns.iter().zip(COLUMNS).map(|(own, name)| Expr::Column(Column::from_name(own)).alias(*name)))?
        .alias("commits")?
        .build()?;
    let shown: Vec<String> = difference.schema().fields().iter().map(|field| field.name().clone()).collect();
    let joined = LogicalPlanBuilder::from(difference).alias("difference")?.join_detailed(
        last,
        JoinType::Left,
        (
            keys().map(|key| Column::new(Some("difference"), key)).collect::<Vec<_>>(),
            keys().map(|key| Column::new(Some("causes"), key)).collect::<Vec<_>>(),
        ),
        None,
        NullEquality::NullEqualsNull,
    )?;
    let joined = joined.join_detailed(
        named,
        JoinType::Left,
        (vec![Column::new(Some("causes"), CAUSE)], vec![Column::new(Some("commits"), "snapshot_id")]),
        None,
        NullEquality::NullEqualsNothing,
    )?;
    let columns = shown.iter().map(|name| column("difference", name).alias(name));
    let told = COLUMNS.iter().map(|name| column("commits", name).alias(cause_name(&shown, name)));
    Ok(joined.project(columns.chain(told).collect::<Vec<_>>())?.build()?)
}

const CAUSE: &str = "__cause";

/// The name of a column that tells the commit; a key column may have it already.
fn cause_name(shown: &[String], name: &str) -> String {
    if shown.iter().any(|known| known == name) { format!("cause_{name}") } else { name.to_string() }
}

/// Keys whose row a commit changed.
fn touched(step: &Sides<'_>, schema: &TableSchema, id: i64) -> Result<LogicalPlan> {
    let (new, gone) = (column("before", HERE).is_null(), column("after", HERE).is_null());
    let plan = joined(step, schema)?.filter(new.or(gone).or(differs(step, schema)))?;
    let keys = schema.primary_keys.iter();
    let keys = keys.map(|key| coalesce(vec![column("after", key), column("before", key)]).alias(key));
    Ok(plan.project(keys.chain([lit(id).alias(CAUSE)]).collect::<Vec<_>>())?.build()?)
}

fn commit_row(commit: &Snapshot, zone: &SessionZone) -> Vec<Expr> {
    // as other times of commits: the clock on the wall of the session
    let offset = i64::from(zone.offset_seconds(commit.time_millis)).saturating_mul(1_000);
    let time = commit.time_millis.saturating_add(offset);
    vec![
        lit(commit.id.0),
        lit(commit.commit_kind.as_str()),
        lit(commit.commit_user.clone()),
        lit(commit.commit_identifier),
        lit(ScalarValue::TimestampMillisecond(Some(time), None)),
    ]
}

/// No commit lies between: there is no difference either.
fn without(difference: LogicalPlan) -> Result<LogicalPlan> {
    let shown: Vec<String> = difference.schema().fields().iter().map(|field| field.name().clone()).collect();
    let none = |name: &str| -> Result<Expr> {
        let value = match name {
            "snapshot_id" | "commit_identifier" => ScalarValue::Int64(None),
            "commit_time" => ScalarValue::TimestampMillisecond(None, None),
            _ => ScalarValue::Utf8(None),
        };
        Ok(lit(value).alias(cause_name(&shown, name)))
    };
    let columns = shown.iter().map(|name| Ok(Expr::Column(Column::from_name(name))));
    let all = columns.chain(COLUMNS.iter().map(|name| none(name))).collect::<Result<Vec<Expr>>>()?;
    LogicalPlanBuilder::from(difference).project(all)?.build().map_err(Error::from)
}
