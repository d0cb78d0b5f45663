//! Timestamps of ORC from their two streams: seconds since 2015, and nanoseconds with their zeros cut off.

use arrow::array::Int64Array;
use chrono::{DateTime, NaiveDate, Offset, TimeZone};
use chrono_tz::{OffsetComponents, Tz};

use super::rle::Unsigned;
use super::tail::Clock;
use crate::error::{Error, Result};

/// 2015-01-01 00:00 UTC.
const EPOCH: i64 = 1_420_070_400;
/// 1900-01-01 00:00 UTC: before it Java knows a zone only by its standard offset of today.
const YEAR_1900: i64 = -2_208_988_800;
const NANOS: i64 = 1_000_000_000;

/// The timestamps of one column in one stripe.
pub(super) struct Moments {
    nanos: Unsigned,
    /// Seconds that all values of the first stream are counted from.
    base: i64,
    /// Zone whose wall clock is wanted; None for UTC.
    zone: Option<Tz>,
}

impl Moments {
    /// `zone` is the writer's, as the stripe names it.
    pub(super) fn new(nanos: Unsigned, clock: Clock, zone: Option<Tz>) -> Result<Self> {
        let zone = match clock {
            Clock::Wall => zone.filter(|zone| *zone != Tz::UTC),
            Clock::Instant => None,
        };
        let base = match zone {
            None => EPOCH,
            Some(zone) => {
                let midnight = NaiveDate::from_ymd_opt(2015, 1, 1).and_then(|day| day.and_hms_opt(0, 0, 0));
                midnight
                    .and_then(|midnight| zone.from_local_datetime(&midnight).earliest())
                    .map(|instant| instant.timestamp())
                    .ok_or_else(|| Error::corrupt(format!("the zone {zone} has no midnight in 2015")))?
            }
        };
        Ok(Self { nanos, base, zone })
    }

    /// Nanoseconds since 1970 on the wanted clock for every value of the first stream, in order.
    pub(super) fn join(&mut self, seconds: &Int64Array) -> Result<Vec<i128>> {
        let mut moments = Vec::with_capacity(seconds.values().len());
        for seconds in seconds {
            moments.push(match seconds {
                Some(seconds) => self.moment(seconds)?,
                None => 0,
            });
        }
        Ok(moments)
    }

    fn moment(&mut self, stored: i64) -> Result<i128> {
        let nanos = nanos(self.nanos.next()?)?;
        let far = || Error::corrupt(format!("a timestamp of {stored} seconds"));
        let mut seconds = stored.checked_add(self.base).ok_or_else(far)?;
        // both libraries write one second more for times before 1970 with a fraction, unless it is tiny (ORC-763)
        if seconds < 0 && nanos > 999_999 {
            seconds -= 1;
        }
        if let Some(zone) = self.zone {
            let whole = if nanos < 0 { seconds.checked_sub(1).ok_or_else(far)? } else { seconds };
            seconds = seconds.checked_add(offset(zone, whole).ok_or_else(far)?).ok_or_else(far)?;
        }
        Ok(i128::from(seconds) * i128::from(NANOS) + i128::from(nanos))
    }
}

/// The lowest three bits count zeros that were cut off. Arrow's writer gives negative numbers before 1970.
fn nanos(stored: u64) -> Result<i64> {
    let zeros = u32::try_from(stored & 7).unwrap_or(0);
    let digits = stored.cast_signed() >> 3;
    let nanos = if zeros == 0 { Some(digits) } else { digits.checked_mul(10_i64.pow(zeros + 1)) };
    nanos
        .filter(|nanos| (-NANOS + 1..NANOS).contains(nanos))
        .ok_or_else(|| Error::corrupt("a timestamp with more than a second of nanoseconds"))
}

/// Seconds east of UTC as Java has them.
fn offset(zone: Tz, instant: i64) -> Option<i64> {
    let at = |instant: i64| DateTime::from_timestamp(instant, 0).map(|t| zone.offset_from_utc_datetime(&t.naive_utc()));
    if instant < YEAR_1900 {
        // the standard offset of the last rule known
        return Some(at(2_000_000_000)?.base_utc_offset().num_seconds());
    }
    Some(i64::from(at(instant)?.fix().local_minus_utc()))
}

#[cfg(test)]
mod tests {
    use super::super::rle::Version;
    use super::*;

    fn stream(bytes: Vec<u8>) -> Unsigned {
        Unsigned::new(Box::new(std::io::Cursor::new(bytes)), Version::Two)
    }

    #[test]
    fn nanoseconds_have_their_zeros_back_and_may_be_negative() {
        for (stored, wanted) in [
            (0, 0),
            (5 << 3, 5),
            (1 << 3 | 5, 1_000_000),
            (123_456_789 << 3, 123_456_789),
            ((-1_i64 << 3 | 5).cast_unsigned(), -1_000_000),
            ((-999_999_999_i64 << 3).cast_unsigned(), -999_999_999),
        ] {
            assert_eq!(nanos(stored).unwrap(), wanted);
        }
        assert!(nanos(NANOS.cast_unsigned() << 3).is_err());
        assert!(nanos(u64::MAX >> 1).is_err());
    }

    #[test]
    fn clock_of_shanghai_is_told_as_java_tells_it() {
        let zone: Tz = "Asia/Shanghai".parse().unwrap();
        assert_eq!(offset(zone, 0), Some(8 * 3600));
        // summer time of 1988
        assert_eq!(offset(zone, 583_732_800), Some(9 * 3600));
        // local mean time in 1900, but not before
        assert_eq!(offset(zone, YEAR_1900), Some(8 * 3600 + 343));
        assert_eq!(offset(zone, YEAR_1900 - 1), Some(8 * 3600));
    }

    /// -0.6 s is written as 0 whole seconds (cut towards zero) and 400 ms: nobody can take the second off again.
    #[test]
    fn last_second_before_1970_is_one_second_late() {
        let four_hundred_ms = 4 << 3 | 7;
        let stored = stream(vec![0x00, four_hundred_ms]);
        let mut moments = Moments::new(stored, Clock::Wall, None).unwrap();
        let read = moments.join(&Int64Array::from(vec![Some(-EPOCH), None, Some(-EPOCH - 1)])).unwrap();
        assert_eq!(read, [400_000_000, 0, -1_600_000_000]);
    }

    #[test]
    fn negative_nanoseconds_of_arrow_are_taken_from_the_whole_seconds() {
        let minus_one_ms = (-1_i64 << 3 | 5).cast_unsigned();
        let mut bytes = vec![0x38];
        bytes.extend(minus_one_ms.to_be_bytes());
        let mut moments = Moments::new(stream(bytes), Clock::Wall, Some(Tz::GMT)).unwrap();
        let read = moments.join(&Int64Array::from(vec![-EPOCH, -EPOCH - 1])).unwrap();
        assert_eq!(read, [-1_000_000, -1_001_000_000]);
    }
}
