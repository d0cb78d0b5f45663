//! Points in time as users write them.

use chrono::{NaiveDate, NaiveTime, Timelike};

use super::zone::SessionZone;
use crate::error::{Error, Result};
use crate::spec::Zone;

/// A point in time as written: a date, a date and time with up to nine digits of fraction, with or without zone
/// (`Z`, `+08:00`, `Asia/Shanghai`). Without zone the session's counts; a date is the start of that day. Bare digits
/// are refused, with their readings offered. Returns epoch milliseconds; finer digits are cut.
///
/// ```
/// use lakepin::snapshot::{SessionZone, parse_timestamp};
///
/// let shanghai = SessionZone::parse("Asia/Shanghai")?;
/// assert_eq!(parse_timestamp("2026-04-16", &shanghai)?, 1_776_268_800_000);
/// assert_eq!(parse_timestamp("2026-04-16T00:00:00Z", &shanghai)?, 1_776_297_600_000);
/// # Ok::<(), lakepin::Error>(())
/// ```
pub fn parse_timestamp(text: &str, zone: &SessionZone) -> Result<i64> {
    let trimmed = text.trim();
    if is_number(trimmed) {
        return Err(refuse_number(trimmed, zone));
    }
    let written = Written::parse(trimmed).ok_or_else(|| invalid(text))?;
    let zone = match written.zone {
        None => *zone,
        Some(name) => SessionZone::from(Zone::parse(name).map_err(|e| {
            invalid(text).with_hint(format!("'{name}' is not a time zone: give Z, +08:00 or a region")).with_source(e)
        })?),
    };
    let days = i64::from(written.date.to_epoch_days());
    match written.time {
        None => zone.start_of_day(days),
        Some(time) => {
            let of_day = i64::from(time.num_seconds_from_midnight()) * 1000 + i64::from(time.nanosecond() / 1_000_000);
            zone.instant_of(days * 86_400_000 + of_day)
        }
    }
}

/// Whether a point in time is written with its zone, so that it is the same instant in every session.
pub(crate) fn names_zone(text: &str) -> bool {
    Written::parse(text.trim()).is_some_and(|written| written.zone.is_some())
}

/// Refuses a bare number as a point in time: it may be seconds or milliseconds, and engines disagree. The message
/// offers each reading with the spelling that is clear.
pub fn refuse_number(number: &str, zone: &SessionZone) -> Error {
    let refused = Error::invalid(format!("the bare number {number} is not a point in time: its unit is not clear"))
        .with_code("AmbiguousTimestamp");
    let mut readings = Vec::new();
    if let Ok(value) = number.parse::<i64>() {
        for (unit, millis) in [("seconds", value.checked_mul(1000)), ("milliseconds", Some(value))] {
            // beyond the year 9999 nobody meant it
            if let Some(millis) = millis.filter(|millis| millis.unsigned_abs() < 253_402_300_800_000) {
                readings.push(format!("as {unit} TIMESTAMP '{}'", zone.show(millis)));
            }
        }
        if let (8, Some(date)) = (number.len(), NaiveDate::parse_from_str(number, "%Y%m%d").ok()) {
            readings.push(format!("as a date DATE '{date}'"));
        }
    }
    if readings.is_empty() {
        return refused.with_hint("write the time out: TIMESTAMP '2026-04-16 10:00:00+08:00'");
    }
    refused.with_hint(format!("write {}", readings.join(", or ")))
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && digits.bytes().any(|b| b.is_ascii_digit())
}

fn invalid(text: &str) -> Error {
    Error::invalid(format!("'{text}' is not a point in time")).with_code("InvalidTimestamp").with_hint(
        "write a date and time such as '2026-04-16', '2026-04-16 10:00:00', '2026-04-16T10:00:00.123Z' or \
         '2026-04-16 10:00:00 +08:00'",
    )
}

/// A point in time taken apart.
struct Written<'a> {
    date: NaiveDate,
    time: Option<NaiveTime>,
    zone: Option<&'a str>,
}

impl<'a> Written<'a> {
    /// `yyyy-M-d[ H:m[:s[.fraction]]][ zone]`, the blank before the time also `T`.
    fn parse(text: &'a str) -> Option<Self> {
        let mut rest = text;
        let year = digits(&mut rest, 4, 4)?;
        rest = rest.strip_prefix('-')?;
        let month = digits(&mut rest, 1, 2)?;
        rest = rest.strip_prefix('-')?;
        let day = digits(&mut rest, 1, 2)?;
        let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
        let after_date = rest.strip_prefix(['T', 't']).unwrap_or(rest).trim_start();
        let mut time = None;
        if after_date.starts_with(|c: char| c.is_ascii_digit()) {
            if after_date.len() == rest.len() {
                // nothing between date and time
                return None;
            }
            rest = after_date;
            time = Some(time_of_day(&mut rest)?);
        } else if after_date.is_empty() && !rest.is_empty() {
            return None;
        }
        let zone = rest.trim();
        Some(Self { date, time, zone: (!zone.is_empty()).then_some(zone) })
    }
}

/// `H:m[:s[.fraction]]`, the fraction up to nine digits.
fn time_of_day(rest: &mut &str) -> Option<NaiveTime> {
    let hour = digits(rest, 1, 2)?;
    *rest = rest.strip_prefix(':')?;
    let minute = digits(rest, 1, 2)?;
    let (mut second, mut nanos) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        *rest = after;
        second = digits(rest, 1, 2)?;
        if let Some(after) = rest.strip_prefix('.') {
            *rest = after;
            let before = rest.len();
            let fraction = digits(rest, 1, 9)?;
            let missing = 9 - (before - rest.len());
            nanos = fraction * 10_u32.pow(u32::try_from(missing).ok()?);
        }
    }
    NaiveTime::from_hms_nano_opt(hour, minute, second, nanos)
}

/// Takes a run of digits off the front; None when it is shorter than `least` or longer than `most`.
fn digits(rest: &mut &str, least: usize, most: usize) -> Option<u32> {
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    if length < least || length > most {
        return None;
    }
    let number = rest.get(..length)?.parse().ok()?;
    *rest = rest.get(length..)?;
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b025_midnight_is_the_sessions_unless_a_zone_is_written() {
        let shanghai = SessionZone::parse("Asia/Shanghai").unwrap();
        let midnight = 1_776_268_800_000; // 2026-04-16 00:00 +08:00
        for text in [
            "2026-04-16",
            "2026-4-16",
            "2026-04-16 00:00:00",
            "2026-04-16T00:00",
            "2026-04-16 0:0:0",
            " 2026-04-16 00:00:00.000 ",
            "2026-04-16 00:00:00+08:00",
            "2026-04-16 00:00:00 +08",
            "2026-04-16T00:00:00+0800",
            "2026-04-15T16:00:00Z",
            "2026-04-15 16:00:00 UTC",
            "2026-04-16 00:00:00 Asia/Shanghai",
            "2026-04-16+08:00",
            "2026-04-16 00:00:00.0009999",
        ] {
            assert_eq!(parse_timestamp(text, &shanghai).unwrap(), midnight, "{text}");
        }
        assert_eq!(parse_timestamp("2026-04-16 00:00:00.123", &shanghai).unwrap(), midnight + 123);
        assert_eq!(parse_timestamp("2026-04-16 00:00:00.123456789Z", &shanghai).unwrap(), midnight + 28_800_123);
        assert_eq!(parse_timestamp("2026-04-16", &SessionZone::utc()).unwrap(), midnight + 28_800_000);
        assert_eq!(parse_timestamp("1969-12-31 23:59:59.999Z", &shanghai).unwrap(), -1);
    }

    #[test]
    fn what_is_shown_can_be_asked_for_again() {
        for name in ["UTC", "Europe/Berlin", "-03:30"] {
            let zone = SessionZone::parse(name).unwrap();
            for millis in [0, -1, 1_776_268_800_123] {
                assert_eq!(parse_timestamp(&zone.show(millis), &SessionZone::utc()).unwrap(), millis);
            }
        }
    }

    #[test]
    fn b027_bare_numbers_are_refused_with_both_readings() {
        let utc = SessionZone::utc();
        let error = parse_timestamp("1678883047", &utc).unwrap_err();
        assert_eq!(error.code(), "AmbiguousTimestamp");
        let text = error.to_string();
        assert!(text.contains("as seconds TIMESTAMP '2023-03-15 12:24:07.000 UTC'"), "{text}");
        assert!(text.contains("as milliseconds TIMESTAMP '1970-01-20 10:21:23.047 UTC'"), "{text}");
        let text = parse_timestamp("1678883047356", &utc).unwrap_err().to_string();
        assert!(text.contains("as milliseconds TIMESTAMP '2023-03-15 12:24:07.356 UTC'"), "{text}");
        let text = parse_timestamp("20260416", &utc).unwrap_err().to_string();
        assert!(text.contains("as a date DATE '2026-04-16'"), "{text}");
        for number in ["-5", "1.5", "99999999999999999999999", "+7"] {
            assert_eq!(parse_timestamp(number, &utc).unwrap_err().code(), "AmbiguousTimestamp", "{number}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2026-13-01",
            "2026-02-29",
            "2026-04-16 24:00:00",
            "2026-04-16 10:00:60",
            "2026-04-16 10",
            "2026-04-1610:00:00",
            "2026-04-16T",
            "2026-04-16 10:00:00.",
            "2026-04-16 10:00:00.1234567890",
            "2026-04-16 10:00:00 Mars/Olympus",
            "2026-04-16 10:00:00 +99:00",
            "26-04-16",
            "２０２６-04-16",
            "2026-04-16 10:00:00Zzz",
        ] {
            assert_eq!(parse_timestamp(text, &SessionZone::utc()).unwrap_err().code(), "InvalidTimestamp", "{text}");
        }
    }
}
