//! The session's time zone: what a wall-clock time without a zone means.

use std::fmt;

use chrono::DateTime;

use crate::error::{Error, Result};
use crate::spec::{END_OF_INPUT, Zone};

const DAY_MILLIS: i64 = 86_400_000;

/// The zone of a session: how wall-clock times become instants and instants are shown.
///
/// Stricter than [`Zone`], which casts as Java does: a time that happens twice, or never, is an error here, since the
/// hour that was meant decides which snapshot is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionZone(Zone);

impl Default for SessionZone {
    fn default() -> Self {
        Self::utc()
    }
}

impl From<Zone> for SessionZone {
    fn from(zone: Zone) -> Self {
        Self(zone)
    }
}

/// The instants at which a clock shows a time, epoch milliseconds.
enum Instants {
    One(i64),
    Two(i64, i64),
    /// Never: the clock jumps over it, from one offset (seconds) to another.
    Gap {
        before: i32,
        after: i32,
    },
}

impl SessionZone {
    /// UTC.
    pub fn utc() -> Self {
        Self(Zone::UTC)
    }

    /// The zone of this machine: `TZ`, else the link `/etc/localtime`; UTC when neither says.
    pub fn local() -> Self {
        let named = std::env::var("TZ").ok().map(|name| name.trim_start_matches(':').to_string());
        let linked = || {
            let target = std::fs::read_link("/etc/localtime").ok()?;
            let (_, name) = target.to_str()?.split_once("zoneinfo/")?;
            Some(name.trim_start_matches("posix/").to_string())
        };
        let zone = named.filter(|name| !name.is_empty()).or_else(linked);
        zone.and_then(|name| Self::parse(&name).ok()).unwrap_or_default()
    }

    /// `UTC`, `Z`, `+08:00`, `Asia/Shanghai`, `local`.
    pub fn parse(text: &str) -> Result<Self> {
        if text.trim().eq_ignore_ascii_case("local") {
            return Ok(Self::local());
        }
        Zone::parse(text).map(Self)
    }

    /// The zone as casts need it.
    pub fn zone(&self) -> Zone {
        self.0
    }

    /// Its name as written: `UTC`, `+08:00`, `Asia/Shanghai`.
    pub fn name(&self) -> String {
        self.0.to_string()
    }

    /// Seconds east of UTC at an instant.
    pub fn offset_seconds(&self, epoch_millis: i64) -> i32 {
        self.0.offset_at_millis(epoch_millis)
    }

    /// An instant as text, with its offset: `2026-04-16 10:00:00.123 +08:00`, in UTC `2026-04-16 02:00:00.123 UTC`.
    pub fn show(&self, epoch_millis: i64) -> String {
        match wall_clock(self.0.to_local_millis(epoch_millis)) {
            None => format!("epoch millisecond {epoch_millis}"),
            Some(clock) if self.0 == Zone::UTC => format!("{clock} UTC"),
            Some(clock) => format!("{clock} {}", offset_text(self.offset_seconds(epoch_millis))),
        }
    }

    /// An instant as text and as epoch milliseconds: what errors and pins print.
    pub fn show_exact(&self, epoch_millis: i64) -> String {
        format!("{} ({epoch_millis} ms)", self.show(epoch_millis))
    }

    /// A watermark as text, and as epoch milliseconds where it is a time.
    pub fn show_watermark(&self, watermark: i64) -> String {
        match watermark {
            END_OF_INPUT => "end of input".to_string(),
            millis => self.show_exact(millis),
        }
    }

    /// The instant at which the clock of this zone shows a time, given as milliseconds since 1970-01-01 00:00 on that
    /// clock. Errors: a time that happens twice (`AmbiguousTimestamp`) or never (`NonexistentTimestamp`) because the
    /// clock is changed.
    pub fn instant_of(&self, local_millis: i64) -> Result<i64> {
        let clock = || wall_clock(local_millis).unwrap_or_default();
        match self.instants_of(local_millis) {
            Instants::One(instant) => Ok(instant),
            Instants::Two(first, second) => {
                Err(Error::invalid(format!("{} happens twice in {}: the clock is set back then", clock(), self.name()))
                    .with_code("AmbiguousTimestamp")
                    .with_hint(format!(
                        "add the offset: '{} {}' is {first} ms, '{} {}' is {second} ms",
                        clock(),
                        offset_text(self.offset_seconds(first)),
                        clock(),
                        offset_text(self.offset_seconds(second))
                    )))
            }
            Instants::Gap { before, after } => Err(Error::invalid(format!(
                "{} does not exist in {}: the clock jumps from {} to {} then",
                clock(),
                self.name(),
                offset_text(before),
                offset_text(after)
            ))
            .with_code("NonexistentTimestamp")
            .with_hint("add the offset that is meant, or give a time before or after the jump")),
        }
    }

    /// The first instant of a day (days since 1970-01-01), also where midnight is skipped or happens twice.
    pub fn start_of_day(&self, epoch_days: i64) -> Result<i64> {
        let midnight = epoch_days
            .checked_mul(DAY_MILLIS)
            .ok_or_else(|| Error::invalid("the date is out of range").with_code("InvalidTimestamp"))?;
        match self.instants_of(midnight) {
            Instants::One(instant) | Instants::Two(instant, _) => Ok(instant),
            Instants::Gap { before, after } => {
                // the jump itself: the first instant with the later offset
                let mut early = midnight.saturating_sub(i64::from(after) * 1000);
                let mut late = midnight.saturating_sub(i64::from(before) * 1000);
                while early < late {
                    let middle = early + (late - early) / 2;
                    if self.offset_seconds(middle) == after {
                        late = middle;
                    } else {
                        early = middle + 1;
                    }
                }
                Ok(late)
            }
        }
    }

    fn instants_of(&self, local_millis: i64) -> Instants {
        let before = self.offset_seconds(local_millis.saturating_sub(DAY_MILLIS));
        let after = self.offset_seconds(local_millis.saturating_add(DAY_MILLIS));
        let instant = |offset: i32| {
            let instant = local_millis.saturating_sub(i64::from(offset) * 1000);
            (self.0.to_local_millis(instant) == local_millis).then_some(instant)
        };
        match (instant(before), instant(after)) {
            (Some(first), Some(second)) if first != second => Instants::Two(first.min(second), first.max(second)),
            (Some(only), _) | (None, Some(only)) => Instants::One(only),
            (None, None) => Instants::Gap { before, after },
        }
    }
}

/// `2026-04-16 10:00:00.123` of a clock's milliseconds; None beyond the calendar.
fn wall_clock(local_millis: i64) -> Option<String> {
    let clock = DateTime::from_timestamp_millis(local_millis)?.naive_utc();
    Some(clock.format("%Y-%m-%d %H:%M:%S%.3f").to_string())
}

/// `+08:00`; seconds only where there are some.
fn offset_text(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let all = seconds.unsigned_abs();
    let (hours, minutes, rest) = (all / 3600, all / 60 % 60, all % 60);
    if rest == 0 {
        format!("{sign}{hours:02}:{minutes:02}")
    } else {
        format!("{sign}{hours:02}:{minutes:02}:{rest:02}")
    }
}

impl fmt::Display for SessionZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> SessionZone {
        SessionZone::parse(name).unwrap()
    }

    #[test]
    fn instants_are_shown_with_their_offset() {
        let at = 1_776_304_800_123;
        assert_eq!(zone("Asia/Shanghai").show(at), "2026-04-16 10:00:00.123 +08:00");
        assert_eq!(SessionZone::utc().show_exact(at), "2026-04-16 02:00:00.123 UTC (1776304800123 ms)");
        assert_eq!(zone("-03:30").show(0), "1969-12-31 20:30:00.000 -03:30");
        assert_eq!(SessionZone::utc().show(i64::MAX), format!("epoch millisecond {}", i64::MAX));
        assert_eq!(SessionZone::utc().show_watermark(i64::MAX), "end of input");
    }

    #[test]
    fn a_time_that_happens_twice_or_never_is_refused_with_both_readings() {
        let berlin = zone("Europe/Berlin");
        // 2026-10-25 02:30 and 2026-03-29 02:30
        let twice = berlin.instant_of(1_792_895_400_000).unwrap_err();
        assert_eq!(twice.code(), "AmbiguousTimestamp");
        assert!(twice.to_string().contains("02:30:00.000 +02:00' is 1792888200000 ms"), "{twice}");
        assert!(twice.to_string().contains("02:30:00.000 +01:00' is 1792891800000 ms"), "{twice}");
        let never = berlin.instant_of(1_774_751_400_000).unwrap_err();
        assert_eq!(never.code(), "NonexistentTimestamp");
        assert!(never.to_string().contains("from +01:00 to +02:00"), "{never}");
        assert_eq!(berlin.instant_of(1_792_800_000_000).unwrap(), 1_792_800_000_000 - 7_200_000);
    }

    #[test]
    fn day_starts_after_a_skipped_midnight() {
        // Beirut skipped 2022-03-27 00:00 to 01:00: the day starts at 01:00 +03:00
        let day = 19_078;
        assert_eq!(zone("Asia/Beirut").start_of_day(day).unwrap(), day * 86_400_000 - 2 * 3_600_000);
        assert_eq!(zone("Asia/Shanghai").start_of_day(0).unwrap(), -8 * 3_600_000);
        assert!(SessionZone::utc().start_of_day(i64::MAX).is_err());
        // Toronto 1919-03-30 jumped from 23:30 to 00:30 the next day
        let start = zone("America/Toronto").start_of_day(-18_539).unwrap();
        assert_eq!(zone("America/Toronto").show(start), "1919-03-31 00:30:00.000 -04:00");
    }
}
