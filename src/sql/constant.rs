//! Constants in clauses: literals and expressions such as `now() - INTERVAL '1' HOUR`.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::sqlparser::ast::{
    DataType as SqlType, Expr as SqlExpr, ExprWithAlias, TypedString, UnaryOperator, Value, ValueWithSpan,
    visit_expressions_mut,
};

use super::checked;
use super::doubles::fix_expression;
use crate::error::{Error, Result};
use crate::query::arithmetic::BEYOND;
use crate::snapshot::{PinRequest, SessionZone, names_zone, parse_timestamp, refuse_number};
use crate::storage::env::now_millis;

/// An integer literal, with or without sign; CAST of one, as which a declared parameter is given.
pub(crate) fn integer(expr: &SqlExpr) -> Option<i64> {
    match expr {
        SqlExpr::Cast { expr, data_type, .. } if is_integer(data_type) => {
            integer(expr).or_else(|| text(expr)?.trim().parse().ok())
        }
        SqlExpr::Value(ValueWithSpan { value: Value::Number(text, _), .. }) => text.parse().ok(),
        // with its sign: the smallest has no positive counterpart
        SqlExpr::UnaryOp { op: UnaryOperator::Minus, .. } => number(expr)?.parse().ok(),
        SqlExpr::UnaryOp { op: UnaryOperator::Plus, expr } | SqlExpr::Nested(expr) => integer(expr),
        _ => None,
    }
}

/// A number literal of any kind, as written.
fn number(expr: &SqlExpr) -> Option<String> {
    match expr {
        SqlExpr::Value(ValueWithSpan { value: Value::Number(text, _), .. }) => Some(text.clone()),
        SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr } => number(expr).map(|n| format!("-{n}")),
        SqlExpr::Nested(expr) => number(expr),
        _ => None,
    }
}

/// A string literal; CAST of one, or of a number, to a string.
pub(crate) fn text(expr: &SqlExpr) -> Option<&str> {
    match expr {
        SqlExpr::Cast { expr, data_type, .. } if is_string(data_type) => match expr.as_ref() {
            SqlExpr::Value(ValueWithSpan { value: Value::Number(text, _), .. }) => Some(text),
            expr => text(expr),
        },
        SqlExpr::Value(value) => string_value(&value.value),
        SqlExpr::Nested(expr) => text(expr),
        _ => None,
    }
}

fn is_integer(data_type: &SqlType) -> bool {
    let name = data_type.to_string().to_uppercase();
    ["INT", "BIGINT", "SMALLINT", "TINYINT"].iter().any(|known| name.starts_with(known))
}

fn is_string(data_type: &SqlType) -> bool {
    // a length would cut it
    let name = data_type.to_string().to_uppercase();
    ["VARCHAR", "STRING", "TEXT", "CHAR", "CHARACTER VARYING"].contains(&name.as_str())
}

fn string_value(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(s)
        | Value::DoubleQuotedString(s)
        | Value::EscapedStringLiteral(s)
        | Value::NationalStringLiteral(s) => Some(s),
        _ => None,
    }
}

/// The value of a constant expression.
pub(crate) fn evaluate(state: &SessionState, expr: &SqlExpr) -> Result<ScalarValue> {
    value(state, expr, logical(state, expr)?)
}

fn not_constant(expr: &SqlExpr, reason: String) -> Error {
    Error::invalid(format!("{expr} is not a constant: {reason}")).with_code("NotConstant")
}

/// A query among the parts of an expression: its rows would be read before it is known at which snapshot.
fn refuse_query(expr: &SqlExpr) -> Result<()> {
    let mut expr = expr.clone();
    let found = visit_expressions_mut(&mut expr, |part| match part {
        SqlExpr::Subquery(_) | SqlExpr::Exists { .. } | SqlExpr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    if found.is_continue() {
        return Ok(());
    }
    Err(not_constant(&expr, "a subquery is read when the snapshots of the statement are chosen already".to_string())
        .with_hint("ask for the value first, and write it in its place: as a literal, or as a parameter"))
}

fn logical(state: &SessionState, expr: &SqlExpr) -> Result<Expr> {
    refuse_query(expr)?;
    let mut aliased = ExprWithAlias { expr: expr.clone(), alias: None };
    fix_expression(&mut aliased.expr);
    state
        .create_logical_expr_from_sql_expr(aliased, &DFSchema::empty())
        .map_err(|error| not_constant(expr, Error::from_datafusion(error).message().to_string()))
}

fn value(state: &SessionState, expr: &SqlExpr, logical: Expr) -> Result<ScalarValue> {
    // one moment for all of a statement: two references AS OF now() are the same state
    let started = state.execution_props().query_execution_start_time;
    let now = started.or_else(|| chrono::DateTime::from_timestamp_millis(now_millis()));
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(DFSchema::empty()))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(now)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let coerced = simplifier
        .coerce(logical, &DFSchema::empty())
        .map_err(|error| not_constant(expr, Error::from_datafusion(error).message().to_string()))?;
    match simplifier.simplify(checked::expression(coerced, &DFSchema::empty())?)? {
        Expr::Literal(value, _) => Ok(value),
        other => Err(match beyond(state, &other) {
            Some(error) => error,
            None => not_constant(expr, format!("it depends on {other}")),
        }),
    }
}

/// The error of a constant that is no number of its type.
fn beyond(state: &SessionState, constant: &Expr) -> Option<Error> {
    let constant = state.create_physical_expr(constant.clone(), &DFSchema::empty()).ok()?;
    let row = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &row).ok()?;
    constant.evaluate(&row).err().map(Error::from_datafusion).filter(|error| error.code() == BEYOND)
}

/// An instant from an expression, epoch milliseconds. Text and naive timestamps are of the session's zone, dates are
/// the start of their day; numbers are refused, because engines disagree on their unit.
pub(crate) fn instant(state: &SessionState, expr: &SqlExpr, zone: &SessionZone) -> Result<i64> {
    if let Some(number) = number(expr) {
        return Err(refuse_number(&number, zone));
    }
    if let Some(text) = text(expr) {
        return parse_timestamp(text, zone);
    }
    if let SqlExpr::TypedString(TypedString { data_type, value, .. }) = expr
        && matches!(data_type, SqlType::Timestamp(..) | SqlType::Date | SqlType::Datetime(_))
        && let Some(text) = string_value(&value.value)
    {
        return parse_timestamp(text, zone);
    }
    if let SqlExpr::Nested(inner) = expr {
        return instant(state, inner, zone);
    }
    let logical = logical(state, &on_clock(expr, zone)?)?;
    let of_day = logical.exists(|part| Ok(is_part_of_day(part)))?;
    if *zone != SessionZone::utc() && logical.exists(|part| Ok(forgets_zone(part)))? {
        return Err(Error::invalid(format!("{expr} is a clock time of UTC here, and the session's zone is {zone}"))
            .with_code("AmbiguousTimestamp")
            .with_hint("write to_timestamp_seconds(…) or to_timestamp_millis(…), which are instants"));
    }
    let value = value(state, expr, logical)?;
    if of_day && matches!(value, ScalarValue::Date32(_) | ScalarValue::Date64(_)) {
        return Err(Error::invalid(format!("{expr} is a date: its hours would be lost"))
            .with_code("BadTimestamp")
            .with_hint("start from a timestamp: TIMESTAMP '2026-04-16 00:00:00' - INTERVAL '1' HOUR"));
    }
    scalar_instant(&value, zone).ok_or_else(|| {
        Error::invalid(format!("{expr} is not a time"))
            .with_code("BadTimestamp")
            .with_context("type", value.data_type())
    })?
}

/// A watermark from an expression: a number of epoch milliseconds, or an instant.
pub(crate) fn watermark(state: &SessionState, expr: &SqlExpr, zone: &SessionZone) -> Result<PinRequest> {
    // a number is no question here: watermarks have one unit everywhere
    if let Some(millis) = integer(expr).or_else(|| text(expr)?.trim().parse().ok()) {
        return Ok(PinRequest::Watermark(millis));
    }
    match evaluate(state, expr) {
        Ok(ScalarValue::Int64(Some(millis))) => Ok(PinRequest::Watermark(millis)),
        _ => instant(state, expr, zone).map(PinRequest::WatermarkTime),
    }
}

/// An expression with each time that names its zone written as the session's clock shows it: DataFusion forgets the zone
/// of a text it makes a TIMESTAMP of.
fn on_clock(expr: &SqlExpr, zone: &SessionZone) -> Result<SqlExpr> {
    let mut expr = expr.clone();
    let told = visit_expressions_mut(&mut expr, |part| {
        let value = match part {
            SqlExpr::TypedString(TypedString { value, .. }) | SqlExpr::Value(value) => value,
            _ => return ControlFlow::Continue(()),
        };
        if let Value::SingleQuotedString(text) = &mut value.value
            && names_zone(text)
        {
            match parse_timestamp(text, zone) {
                Ok(instant) => *text = clock(zone.zone().to_local_millis(instant)).unwrap_or_else(|| text.clone()),
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    });
    match told {
        ControlFlow::Continue(()) => Ok(expr),
        ControlFlow::Break(error) => Err(error),
    }
}

/// A clock time as text.
fn clock(millis: i64) -> Option<String> {
    Some(chrono::DateTime::from_timestamp_millis(millis)?.format("%Y-%m-%d %H:%M:%S%.3f").to_string())
}

/// An interval that is not of whole days: DataFusion takes it from a date without a word, and leaves the date.
fn is_part_of_day(part: &Expr) -> bool {
    match part {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => {
            interval.nanoseconds % 86_400_000_000_000 != 0
        }
        Expr::Literal(ScalarValue::IntervalDayTime(Some(interval)), _) => interval.milliseconds % 86_400_000 != 0,
        _ => false,
    }
}

/// A number of seconds made a time whose zone is lost: DataFusion shows the clock of UTC as if it were the session's.
fn forgets_zone(part: &Expr) -> bool {
    let Expr::ScalarFunction(call) = part else { return false };
    let of_number = || match call.args.as_slice() {
        [number] => number.get_type(&DFSchema::empty()).is_ok_and(|data_type| data_type.is_numeric()),
        _ => false,
    };
    matches!(call.name(), "to_timestamp" | "from_unixtime") && of_number()
}

/// None when the value is of a type that is no time.
fn scalar_instant(value: &ScalarValue, zone: &SessionZone) -> Option<Result<i64>> {
    let null = || Err(Error::invalid("the time is NULL").with_code("BadTimestamp"));
    if let ScalarValue::Date32(days) = value {
        return Some(days.map_or_else(null, |days| zone.start_of_day(days.into())));
    }
    let (units, per_second, zoned) = match value {
        ScalarValue::TimestampSecond(v, z) => (*v, 1i64, z.is_some()),
        ScalarValue::TimestampMillisecond(v, z) => (*v, 1_000, z.is_some()),
        ScalarValue::TimestampMicrosecond(v, z) => (*v, 1_000_000, z.is_some()),
        ScalarValue::TimestampNanosecond(v, z) => (*v, 1_000_000_000, z.is_some()),
        ScalarValue::Date64(millis) => (*millis, 1_000, false),
        ScalarValue::Utf8(t) | ScalarValue::LargeUtf8(t) | ScalarValue::Utf8View(t) => {
            return Some(t.as_deref().map_or_else(null, |t| parse_timestamp(t, zone)));
        }
        ScalarValue::Null => return Some(null()),
        number if number.data_type().is_numeric() => return Some(Err(refuse_number(&number.to_string(), zone))),
        _ => return None,
    };
    let Some(units) = units else { return Some(null()) };
    let millis = if per_second <= 1_000 {
        units.checked_mul(1_000 / per_second)
    } else {
        Some(units.div_euclid(per_second / 1_000))
    };
    let Some(millis) = millis else {
        return Some(Err(Error::invalid("the time is out of range").with_code("BadTimestamp")));
    };
    Some(if zoned { Ok(millis) } else { wall_clock(millis, zone) })
}

/// The instant of a wall-clock time given as if it were UTC.
fn wall_clock(millis: i64, zone: &SessionZone) -> Result<i64> {
    let text = clock(millis).ok_or_else(|| Error::invalid("the time is out of range").with_code("BadTimestamp"))?;
    parse_timestamp(&text, zone)
}
