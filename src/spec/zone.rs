//! Time zones: between an instant and the wall clock.
//!
//! TIMESTAMP WITH LOCAL TIME ZONE is an instant; its text, and casts from and to TIMESTAMP, need a zone. The zone is
//! always given, never taken from the environment here.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, FixedOffset, Offset, TimeZone};
use chrono_tz::Tz;

use crate::error::{Error, Result};

/// A time zone: a region of the tz database or a fixed offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone(Rule);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Region(Tz),
    Offset(FixedOffset),
}

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: Self = Self(Rule::Region(Tz::UTC));

    /// Reads `UTC`, `Z`, `Europe/Berlin`, `+02:00`, `-0530` or `UTC+8`.
    pub fn parse(text: &str) -> Result<Self> {
        let name = text.trim();
        if name.eq_ignore_ascii_case("z") || name.eq_ignore_ascii_case("utc") {
            return Ok(Self::UTC);
        }
        let bare = ["UTC", "GMT", "UT"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
        if let Some(offset) = parse_offset(bare) {
            return Ok(Self(Rule::Offset(offset)));
        }
        if let Some(region) = chrono_tz::TZ_VARIANTS.iter().find(|region| region.name().eq_ignore_ascii_case(name)) {
            return Ok(Self(Rule::Region(*region)));
        }
        Err(Error::invalid(format!("unknown time zone '{text}'"))
            .with_code("UnknownTimeZone")
            .with_hint("give a region such as 'Europe/Berlin', 'UTC', or an offset such as '+02:00'"))
    }

    /// Seconds east of UTC at an instant.
    pub fn offset_at_millis(&self, utc_millis: i64) -> i32 {
        match self.0 {
            Rule::Offset(offset) => offset.local_minus_utc(),
            Rule::Region(region) => {
                // beyond chrono's years the last known rule is as good as any
                let at = DateTime::from_timestamp_millis(utc_millis).unwrap_or(if utc_millis < 0 {
                    DateTime::<chrono::Utc>::MIN_UTC
                } else {
                    DateTime::<chrono::Utc>::MAX_UTC
                });
                region.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()
            }
        }
    }

    /// The wall clock of an instant, as milliseconds since 1970-01-01 00:00 on that clock.
    pub fn to_local_millis(&self, utc_millis: i64) -> i64 {
        utc_millis.saturating_add(i64::from(self.offset_at_millis(utc_millis)) * 1000)
    }

    /// The instant of a wall clock. As Java: of two instants the earlier; in a gap the clock is moved forward by it.
    pub fn to_utc_millis(&self, local_millis: i64) -> i64 {
        const DAY: i64 = 86_400_000;
        // the offset before any change near this clock, and the one after
        let before = i64::from(self.offset_at_millis(local_millis.saturating_sub(DAY))) * 1000;
        let after = i64::from(self.offset_at_millis(local_millis.saturating_add(DAY))) * 1000;
        for offset in [before, after] {
            let instant = local_millis.saturating_sub(offset);
            if self.to_local_millis(instant) == local_millis {
                return instant;
            }
        }
        local_millis.saturating_sub(before)
    }
}

/// `+8`, `+08`, `+0830`, `+08:30`, `+08:30:15`.
fn parse_offset(text: &str) -> Option<FixedOffset> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = text.get(1..)?;
    let parts: Vec<&str> = if digits.contains(':') {
        digits.split(':').collect()
    } else {
        match digits.len() {
            1 | 2 => vec![digits],
            4 => vec![digits.get(..2)?, digits.get(2..)?],
            _ => return None,
        }
    };
    if parts.len() > 3 {
        return None;
    }
    let mut seconds = 0;
    for (part, unit) in parts.iter().zip([3600, 60, 1]) {
        if part.is_empty() || part.len() > 2 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number: i32 = part.parse().ok()?;
        if unit < 3600 && number > 59 {
            return None;
        }
        seconds += number * unit;
    }
    if seconds > 18 * 3600 {
        return None;
    }
    FixedOffset::east_opt(sign * seconds)
}

impl FromStr for Zone {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Rule::Region(region) => f.write_str(region.name()),
            Rule::Offset(offset) => write!(f, "{offset}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Zone;

    #[test]
    fn names_and_offsets_are_read() {
        for (text, shown) in [
            ("utc", "UTC"),
            ("Z", "UTC"),
            ("europe/berlin", "Europe/Berlin"),
            ("+02:00", "+02:00"),
            ("UTC-5", "-05:00"),
        ] {
            assert_eq!(Zone::parse(text).unwrap().to_string(), shown);
        }
        for text in ["", "Mars/Olympus", "+", "+99", "+1:99", "02:00"] {
            assert_eq!(Zone::parse(text).unwrap_err().code(), "UnknownTimeZone", "{text}");
        }
    }

    #[test]
    fn gap_moves_forward_and_overlap_takes_the_earlier_instant() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        // 2024-03-31 02:30 does not exist: 03:30 +02:00 is meant
        assert_eq!(berlin.to_utc_millis(1_711_852_200_000), 1_711_848_600_000);
        assert_eq!(berlin.to_local_millis(1_711_848_600_000), 1_711_855_800_000);
        // 2024-10-27 02:30 happens twice: the summer one is meant
        assert_eq!(berlin.to_utc_millis(1_729_996_200_000), 1_729_989_000_000);
        assert_eq!(berlin.to_utc_millis(0), -3_600_000);
    }

    #[test]
    fn ends_of_time_do_not_panic() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        for millis in [i64::MIN, i64::MAX] {
            berlin.to_local_millis(millis);
            berlin.to_utc_millis(millis);
        }
    }
}
