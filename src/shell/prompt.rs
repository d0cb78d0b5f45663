//! The prompt: database and pin.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone};

use crate::sql::PinLine;

/// `pay@latest=>`, `pay@4711[04-16 10:00:03+08]=>`, `pay@2 pins=>`; `->` in place of `=>` while a statement is open.
pub fn prompt(database: &str, pins: &[PinLine], zone: &str, open: bool) -> String {
    let arrow = if open { "->" } else { "=>" };
    let pinned = match pins {
        [] => "latest".to_string(),
        [pin] => match (pin.snapshot_id, pin.commit_time_millis) {
            (Some(id), Some(millis)) => format!("{id}[{}]", short_time(millis, zone)),
            (Some(id), None) => id.to_string(),
            (None, _) => "empty".to_string(),
        },
        pins => format!("{} pins", pins.len()),
    };
    format!("{database}@{pinned}{arrow} ")
}

/// `04-16 10:00:03+08`
fn short_time(millis: i64, zone: &str) -> String {
    let Some(at) = DateTime::from_timestamp_millis(millis) else { return millis.to_string() };
    let zone: Tz = match zone.parse() {
        Ok(zone) => zone,
        Err(_) => return at.format("%m-%d %H:%M:%SZ").to_string(),
    };
    let offset = zone.offset_from_utc_datetime(&at.naive_utc()).fix();
    let local = at.with_timezone(&offset);
    let zone = offset.to_string();
    let zone = zone.strip_suffix(":00").unwrap_or(&zone);
    format!("{}{zone}", local.format("%m-%d %H:%M:%S"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(id: i64, millis: i64) -> PinLine {
        PinLine {
            table: "pay.t".into(),
            snapshot_id: Some(id),
            commit_time_millis: Some(millis),
            user: None,
            identifier: None,
            kind: None,
            watermark: None,
            schema_id: 0,
            tag: None,
            session: true,
            text: String::new(),
        }
    }

    #[test]
    fn prompt_shows_the_pin() {
        assert_eq!(prompt("pay", &[], "UTC", false), "pay@latest=> ");
        let one = [pin(4711, 1_776_304_803_118)];
        assert_eq!(prompt("pay", &one, "+08:00", false), "pay@4711[04-16 10:00:03+08]=> ");
        assert_eq!(prompt("pay", &one, "Asia/Kolkata", true), "pay@4711[04-16 07:30:03+05:30]-> ");
        assert_eq!(prompt("pay", &[one[0].clone(), pin(3, 0)], "UTC", false), "pay@2 pins=> ");
    }
}
