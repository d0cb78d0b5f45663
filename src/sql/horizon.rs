//! The horizon of a comparison: as it is written, or `AUTO`, the moment up to which both sides are whole.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::execution::SessionState;

use super::constant::evaluate;
use super::statements::{Horizon, Reconcile};
use crate::error::{Error, Result};
use crate::recon::compare::{Guard, Side, SideRows, find};
use crate::snapshot::{Pin, SessionZone};
use crate::spec::END_OF_INPUT;

/// A horizon, and where it comes from when nobody wrote it.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Rows newer than this are left out; None: none are.
    pub(crate) value: Option<ScalarValue>,
    /// For people.
    pub(crate) told: Option<String>,
}

/// The horizon of two sides.
///
/// # Errors
/// `BadHorizon` for one that is no constant, and for `AUTO` where a table has no watermark; `ZoneNotStated` where the column
/// has no zone and none is stated.
pub(crate) fn of(state: &SessionState, sides: [&Side; 2], asked: &Reconcile, zone: &SessionZone) -> Result<Found> {
    match &asked.horizon {
        None => Ok(Found::default()),
        Some((_, Horizon::At(value))) => Ok(Found { value: Some(evaluate(state, value)?), told: None }),
        Some((column, Horizon::Auto)) => auto(sides, column, asked.zone.is_some(), zone),
    }
}

fn auto([left, right]: [&Side; 2], column: &str, is_stated: bool, zone: &SessionZone) -> Result<Found> {
    let own = watermark(left).ok_or_else(|| {
        Error::invalid(format!(
            "{} ({}) has no watermark, so HORIZON AUTO has nothing to go by",
            left.name, left.position
        ))
        .with_code("BadHorizon")
        .with_hint("write the time up to which it is whole: HORIZON pay_time <= TIMESTAMP '2026-04-16 10:00:00'")
    })?;
    let mut parts = vec![(own, format!("the watermark of {}", left.name))];
    match &right.rows {
        SideRows::Source(source) => {
            parts.push((source.position().clock_millis, format!("the clock of {} when it was opened", right.name)));
        }
        // one without a watermark is as whole as it is
        SideRows::Plan(_) => {
            parts.extend(watermark(right).map(|watermark| (watermark, format!("the watermark of {}", right.name))));
        }
    }
    let told: Vec<String> =
        parts.iter().map(|(millis, what)| format!("{what}, {}", zone.show_watermark(*millis))).collect();
    let least = parts.iter().map(|(millis, _)| *millis).min().unwrap_or(END_OF_INPUT);
    let told = Some(format!("HORIZON {column} AUTO is the least of {}", told.join(", and ")));
    if least == END_OF_INPUT {
        return Ok(Found { value: None, told });
    }
    let types = [left, right].map(|side| find(&side.columns, column).map(|column| &column.data_type));
    let is_zoned = types.iter().flatten().any(|data_type| matches!(data_type, DataType::Timestamp(_, Some(_))));
    let is_clock = types.iter().flatten().any(|data_type| matches!(data_type, DataType::Timestamp(_, None)));
    if !is_zoned && is_clock && !is_stated {
        return Err(Error::invalid(format!("column {column} has no zone, and HORIZON AUTO is an instant"))
            .with_code("ZoneNotStated")
            .with_hint("say in which zone its clock runs: ZONE '+08:00' (zone = \"+08:00\")"));
    }
    let value = match is_zoned {
        true => ScalarValue::TimestampMillisecond(Some(least), Some(Arc::from("UTC"))),
        false => ScalarValue::TimestampMillisecond(Some(zone.zone().to_local_millis(least)), None),
    };
    Ok(Found { value: Some(value), told })
}

/// Up to which time a side is whole: the least watermark of the tables that it reads; None where one has none.
fn watermark(side: &Side) -> Option<i64> {
    let pins: Vec<&Arc<Pin>> = side
        .guards
        .iter()
        .filter_map(|guard| match guard {
            Guard::Pin(pin) => Some(pin),
            Guard::File(_) => None,
        })
        .collect();
    let all: Option<Vec<i64>> = pins.iter().map(|pin| pin.snapshot.as_ref()?.watermark).collect();
    all?.into_iter().min()
}
