//! TIMESTAMP WITH LOCAL TIME ZONE in the session's zone.
//!
//! Columns of that type are instants, which DataFusion sees as times of UTC: beside a clock time without a zone, in a
//! cast to DATE, TIMESTAMP or text, in `extract` and `date_trunc` it would take the clock of UTC, while results show the
//! session's. Here the session's clock counts everywhere, as in Flink and Spark. Nothing is done where both are one.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as DfResult;
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast, cast};
use datafusion::optimizer::AnalyzerRule;

use crate::query::settings::session_zone;
use crate::snapshot::names_zone;
use crate::spec::Zone;

/// The zone of our columns in Arrow's types.
const OURS: &str = "UTC";

/// What coercion would hide: UTC as somebody writes it (`x AT TIME ZONE 'UTC'`) is told from the zone of our columns by
/// another name for it, and a date beside an instant is made the clock time it begins with. Runs before types are coerced.
#[derive(Debug)]
pub(crate) struct WrittenTimes;

/// See the module. Runs after types have been coerced.
#[derive(Debug)]
pub(crate) struct LocalTimes;

impl WrittenTimes {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "written_times";
}

impl LocalTimes {
    /// Of the rule.
    pub(crate) const NAME: &'static str = "local_times";
}

impl AnalyzerRule for WrittenTimes {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> DfResult<LogicalPlan> {
        if zone_name(config)?.is_none() {
            return Ok(plan);
        }
        let plan = plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let schema = schema_of(&node);
            let node = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let written = expr.transform_up(|expr| Ok(written(expr, &schema)))?;
                Ok(written.update_data(|expr| name.restore(expr)))
            })?;
            if node.transformed { node.map_data(LogicalPlan::recompute_schema) } else { Ok(node) }
        })?;
        Ok(plan.data)
    }
}

impl AnalyzerRule for LocalTimes {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> DfResult<LogicalPlan> {
        let Some(zone) = zone_name(config)? else { return Ok(plan) };
        let plan = plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let schema = schema_of(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let local = expr.transform_up(|expr| local(expr, &schema, &zone))?;
                Ok(local.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(plan.data)
    }
}

/// The columns that expressions of a node see.
fn schema_of(node: &LogicalPlan) -> DFSchema {
    let mut schema = merge_schema(&node.inputs());
    if let LogicalPlan::TableScan(scan) = node {
        schema.merge(&scan.projected_schema);
    }
    schema
}

fn written(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let mut expr = expr;
    let changed = match &mut expr {
        Expr::Cast(Cast { expr: inner, field }) => {
            let Some(unit) = ours(field.data_type()) else { return Transformed::no(expr) };
            let renamed = cast(std::mem::take(inner.as_mut()), DataType::Timestamp(unit, Some("+00:00".into())));
            return Transformed::yes(renamed);
        }
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => dates_to_clock(vec![left, right], schema),
        Expr::Between(Between { expr, low, high, .. }) => dates_to_clock(vec![expr, low, high], schema),
        Expr::InList(InList { expr, list, .. }) => {
            dates_to_clock(std::iter::once(expr.as_mut()).chain(list.iter_mut()).collect(), schema)
        }
        _ => false,
    };
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

/// Makes a clock time of each date that stands beside an instant.
fn dates_to_clock(operands: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    // what has no type yet, a parameter, is coerced later
    let types: Vec<Option<DataType>> = operands.iter().map(|operand| operand.get_type(schema).ok()).collect();
    if !types.iter().flatten().any(|found| ours(found).is_some()) {
        return false;
    }
    let mut changed = false;
    for (operand, found) in operands.into_iter().zip(&types) {
        if matches!(found, Some(DataType::Date32 | DataType::Date64)) {
            // microseconds: nanoseconds end in 2262
            *operand = cast(std::mem::take(operand), DataType::Timestamp(TimeUnit::Microsecond, None));
            changed = true;
        }
    }
    changed
}

/// None where the session's clock is that of UTC.
fn zone_name(config: &ConfigOptions) -> DfResult<Option<String>> {
    let zone = session_zone(config)?;
    Ok((zone != Zone::UTC).then(|| zone.to_string()))
}

/// The unit of a time of the type our columns have.
fn ours(data_type: &DataType) -> Option<TimeUnit> {
    match data_type {
        DataType::Timestamp(unit, Some(zone)) if zone.as_ref() == OURS => Some(*unit),
        _ => None,
    }
}

fn is_clock(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Timestamp(_, None)
            | DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
    )
}

/// A text that names its zone.
fn is_zoned_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.try_as_str().flatten().is_some_and(names_zone))
}

/// A time in the session's zone, ready to be cast: Arrow's cast to a time without zone keeps the clock of UTC.
fn on_clock(zoned: Expr, wanted: &DataType) -> Expr {
    match wanted {
        DataType::Timestamp(_, None) => to_local_time().call(vec![zoned]),
        _ => zoned,
    }
}

/// Functions that look at the clock of their arguments.
const OF_THE_CLOCK: &[&str] =
    &["date_part", "date_trunc", "date_bin", "to_char", "to_date", "to_time", "to_local_time"];

/// The expression with the session's clock in it; its type stays.
fn local(expr: Expr, schema: &DFSchema, zone: &str) -> DfResult<Transformed<Expr>> {
    let in_zone = |unit: TimeUnit| DataType::Timestamp(unit, Some(zone.into()));
    match expr {
        Expr::Cast(Cast { expr, field }) => {
            let from = expr.get_type(schema)?;
            Ok(match (ours(&from), ours(field.data_type())) {
                (None, Some(unit)) if is_clock(&from) => {
                    let clock = match *expr {
                        // TIMESTAMP '…Z' is an instant, which the inner cast would forget
                        Expr::Cast(Cast { expr: text, .. }) if is_zoned_text(&text) => *text,
                        // Arrow makes of a date the midnight of UTC, whatever the zone
                        date if matches!(from, DataType::Date32 | DataType::Date64) => {
                            cast(date, DataType::Timestamp(unit, None))
                        }
                        clock => clock,
                    };
                    Transformed::yes(cast(cast(clock, in_zone(unit)), field.data_type().clone()))
                }
                (Some(unit), None) if is_clock(field.data_type()) => {
                    let seen = Box::new(on_clock(cast(*expr, in_zone(unit)), field.data_type()));
                    Transformed::yes(Expr::Cast(Cast { expr: seen, field }))
                }
                _ => Transformed::no(Expr::Cast(Cast { expr, field })),
            })
        }
        Expr::TryCast(TryCast { expr, field }) => Ok(match ours(&expr.get_type(schema)?) {
            Some(unit) if is_clock(field.data_type()) => {
                let seen = Box::new(on_clock(cast(*expr, in_zone(unit)), field.data_type()));
                Transformed::yes(Expr::TryCast(TryCast { expr: seen, field }))
            }
            _ => Transformed::no(Expr::TryCast(TryCast { expr, field })),
        }),
        Expr::ScalarFunction(call) if OF_THE_CLOCK.contains(&call.name()) => {
            let ScalarFunction { func, args } = call;
            let before = Expr::ScalarFunction(ScalarFunction { func: func.clone(), args: args.clone() });
            let mut changed = false;
            let mut seen = Vec::with_capacity(args.len());
            for arg in args {
                seen.push(match ours(&arg.get_type(schema)?) {
                    Some(unit) => {
                        changed = true;
                        cast(arg, in_zone(unit))
                    }
                    None => arg,
                });
            }
            if !changed {
                return Ok(Transformed::no(before));
            }
            let given = before.get_type(schema)?;
            let after = Expr::ScalarFunction(ScalarFunction { func, args: seen });
            let same = after.get_type(schema)? == given;
            Ok(Transformed::yes(if same { after } else { cast(after, given) }))
        }
        // a month or a day later on the session's calendar
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (of_left, of_right) = (left.get_type(schema)?, right.get_type(schema)?);
            let is_interval = |data_type: &DataType| matches!(data_type, DataType::Interval(_));
            let (left, right, unit) = match (ours(&of_left), ours(&of_right)) {
                (Some(unit), None) if is_interval(&of_right) => (Box::new(cast(*left, in_zone(unit))), right, unit),
                (None, Some(unit)) if is_interval(&of_left) => (left, Box::new(cast(*right, in_zone(unit))), unit),
                _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            };
            let moved = Expr::BinaryExpr(BinaryExpr { left, op, right });
            Ok(Transformed::yes(cast(moved, DataType::Timestamp(unit, Some(OURS.into())))))
        }
        other => Ok(Transformed::no(other)),
    }
}
