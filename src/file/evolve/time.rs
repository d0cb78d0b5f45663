//! Casts among TIMESTAMP, TIMESTAMP WITH LOCAL TIME ZONE, DATE, TIME and whole seconds.
//!
//! A moment is epoch milliseconds and nanoseconds of the millisecond (0..=999_999), as the format sees it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Int32Type, Int64Type, Time32MillisecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType,
};

use super::primitive;
use crate::error::{Error, Result};
use crate::spec::DataType;
use crate::spec::arrow_types::arrow_type;
use crate::spec::zone::Zone;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// Epoch milliseconds and nanoseconds of the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) millis: i64,
    pub(super) nanos: i64,
}

impl Moment {
    /// The moment cut to `precision` digits: the nanoseconds of the millisecond are floored, whole milliseconds are
    /// cut towards zero.
    pub(super) fn truncate(self, precision: u8) -> Self {
        if precision > 3 {
            let unit = 10_i64.pow(u32::from(9 - precision.min(9)));
            return Self { millis: self.millis, nanos: self.nanos - self.nanos % unit };
        }
        let unit = 10_i64.pow(u32::from(3 - precision));
        Self { millis: self.millis / unit * unit, nanos: 0 }
    }

    /// The count of units of the Arrow type of a TIMESTAMP of this precision.
    pub(super) fn in_unit_of(self, precision: u8) -> Result<i64> {
        let count = match precision {
            0..=3 => Some(self.millis),
            4..=6 => self.millis.checked_mul(1000).and_then(|v| v.checked_add(self.nanos / 1000)),
            _ => self.millis.checked_mul(1_000_000).and_then(|v| v.checked_add(self.nanos)),
        };
        count.ok_or_else(|| out_of_range(self.millis, precision))
    }
}

/// A moment that the Arrow type of its column cannot hold.
pub(crate) fn out_of_range(millis: i64, precision: u8) -> Error {
    let moment = chrono::DateTime::from_timestamp_millis(millis)
        .map_or_else(|| format!("{millis} ms since 1970"), |t| t.naive_utc().to_string());
    Error::unsupported(format!(
        "the time {moment} lies outside of what TIMESTAMP({precision}) can hold here: 1677-09-21 to 2262-04-11 for \
         precisions 7 to 9"
    ))
    .with_code("TimestampOutOfRange")
    .with_hint("leave the column out, or alter it to TIMESTAMP(6)")
}

pub(super) fn cast(array: &ArrayRef, from: &DataType, to: &DataType, zone: &Zone) -> Result<ArrayRef> {
    match (from, to) {
        (DataType::Time(_), DataType::Time(_)) => Ok(Arc::clone(array)),
        (DataType::Timestamp(_) | DataType::TimestampLtz(_), _) => from_moments(array, from, to, zone),
        (_, DataType::Timestamp(_) | DataType::TimestampLtz(_)) => to_moments(array, from, to, zone),
        _ => Err(Error::internal(format!("{from:?} has no cast to {to:?}"))),
    }
}

fn from_moments(array: &ArrayRef, from: &DataType, to: &DataType, zone: &Zone) -> Result<ArrayRef> {
    let unit = match array.data_type() {
        ArrowType::Timestamp(unit, _) => *unit,
        other => return Err(Error::internal(format!("a timestamp as {other}"))),
    };
    let counts = arrow_cast(array, &ArrowType::Int64)?;
    let counts = primitive::<Int64Type>(&counts)?;
    let instants = matches!(from, DataType::TimestampLtz(_));
    let moment = |count: i64| match unit {
        TimeUnit::Second => Moment { millis: count.saturating_mul(1000), nanos: 0 },
        TimeUnit::Millisecond => Moment { millis: count, nanos: 0 },
        TimeUnit::Microsecond => Moment { millis: count.div_euclid(1000), nanos: count.rem_euclid(1000) * 1000 },
        TimeUnit::Nanosecond => Moment { millis: count.div_euclid(1_000_000), nanos: count.rem_euclid(1_000_000) },
    };
    // everything but LTZ is told by the wall clock
    let wall = |count: i64| {
        let m = moment(count);
        if instants { Moment { millis: zone.to_local_millis(m.millis), nanos: m.nanos } } else { m }
    };
    // only a smaller precision cuts: a value may hold more digits than its column says
    let cut = |m: Moment, precision: u8| match from {
        DataType::Timestamp(old) | DataType::TimestampLtz(old) if *old > precision => m.truncate(precision),
        _ => m,
    };
    match to {
        DataType::Date => {
            let days = counts.try_unary::<_, Date32Type, Error>(|count| {
                let m = wall(count);
                i32::try_from(m.millis.div_euclid(MILLIS_PER_DAY)).map_err(|_| out_of_range(m.millis, 3))
            })?;
            Ok(Arc::new(days))
        }
        DataType::Time(_) => {
            // the remainder is below one day
            let times =
                counts.unary::<_, Time32MillisecondType>(|count| wall(count).millis.rem_euclid(MILLIS_PER_DAY) as i32);
            Ok(Arc::new(times))
        }
        // towards zero, of the instant itself; INT takes the low bits, as Java does
        DataType::Int => Ok(Arc::new(counts.unary::<_, Int32Type>(|count| (moment(count).millis / 1000) as i32))),
        DataType::BigInt => Ok(Arc::new(counts.unary::<_, Int64Type>(|count| moment(count).millis / 1000))),
        DataType::Timestamp(precision) => timestamps(counts, to, *precision, |count| Ok(cut(wall(count), *precision))),
        DataType::TimestampLtz(precision) => timestamps(counts, to, *precision, |count| {
            let m = moment(count);
            let millis = if instants { m.millis } else { zone.to_utc_millis(m.millis) };
            Ok(cut(Moment { millis, nanos: m.nanos }, *precision))
        }),
        other => Err(Error::internal(format!("a timestamp has no cast to {other:?}"))),
    }
}

fn to_moments(array: &ArrayRef, from: &DataType, to: &DataType, zone: &Zone) -> Result<ArrayRef> {
    let (precision, instants) = match to {
        DataType::Timestamp(p) => (*p, false),
        DataType::TimestampLtz(p) => (*p, true),
        other => return Err(Error::internal(format!("{other:?} is no timestamp"))),
    };
    let counts = match from {
        DataType::Date | DataType::Time(_) => arrow_cast(&arrow_cast(array, &ArrowType::Int32)?, &ArrowType::Int64)?,
        _ => arrow_cast(array, &ArrowType::Int64)?,
    };
    let counts = primitive::<Int64Type>(&counts)?;
    timestamps(counts, to, precision, |count| {
        let wall = match from {
            DataType::Date => count.checked_mul(MILLIS_PER_DAY),
            DataType::Time(_) => Some(count),
            _ => count.checked_mul(1000),
        }
        .ok_or_else(|| out_of_range(count, precision))?;
        // Java takes the clock that shows in the zone at that second for the instant
        let millis = match from {
            _ if !instants => wall,
            DataType::Date | DataType::Time(_) => zone.to_utc_millis(wall),
            _ => zone.to_local_millis(wall),
        };
        Ok(Moment { millis, nanos: 0 })
    })
}

/// Moments in the unit of the target type.
fn timestamps(
    counts: &PrimitiveArray<Int64Type>,
    to: &DataType,
    precision: u8,
    moment: impl Fn(i64) -> Result<Moment>,
) -> Result<ArrayRef> {
    let units = counts.try_unary::<_, Int64Type, Error>(|count| moment(count)?.in_unit_of(precision))?;
    from_units(units, to)
}

/// Counts as the Arrow timestamps of a Paimon type.
pub(crate) fn from_units(units: PrimitiveArray<Int64Type>, to: &DataType) -> Result<ArrayRef> {
    fn typed<T: ArrowPrimitiveType<Native = i64>>(units: PrimitiveArray<Int64Type>) -> PrimitiveArray<T> {
        let (_, values, nulls) = units.into_parts();
        PrimitiveArray::new(values, nulls)
    }
    let ArrowType::Timestamp(unit, tz) = arrow_type(to) else {
        return Err(Error::internal(format!("{to:?} is no timestamp")));
    };
    Ok(match unit {
        TimeUnit::Millisecond => Arc::new(typed::<TimestampMillisecondType>(units).with_timezone_opt(tz)),
        TimeUnit::Microsecond => Arc::new(typed::<TimestampMicrosecondType>(units).with_timezone_opt(tz)),
        TimeUnit::Nanosecond => Arc::new(typed::<TimestampNanosecondType>(units).with_timezone_opt(tz)),
        TimeUnit::Second => return Err(Error::internal("no timestamp is kept in seconds")),
    })
}
