//! Tags, consumers: documents beside snapshots.

use std::time::Duration;

use chrono::{NaiveDate, NaiveDateTime};
use serde_json::Value;

use super::json::{self, Object};
use super::snapshot::{Snapshot, SnapshotId};
use crate::error::Result;

/// A tag file: a snapshot kept under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Tag {
    /// The snapshot, complete: `snapshot/` may have lost it.
    pub snapshot: Snapshot,
    /// When the tag was made, as the wall clock of the one who made it.
    pub create_time: Option<NaiveDateTime>,
    /// How long it is to be kept.
    pub time_retained: Option<Duration>,
}

/// A consumer file: where a reader goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consumer {
    /// The next snapshot it will read.
    pub next_snapshot: SnapshotId,
}

impl Tag {
    /// Reads a tag file.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let document = json::parse(bytes, TAG)?;
        let object = Object::new(&document, TAG)?;
        let snapshot = Snapshot::from_object(&object)?;
        snapshot.check_lists()?;
        Ok(Self {
            snapshot,
            create_time: object.get("tagCreateTime").map(|value| create_time(&object, value)).transpose()?,
            time_retained: object.get("tagTimeRetained").map(|value| time_retained(&object, value)).transpose()?,
        })
    }

    /// The retention as Java writes a duration: `PT24H`, `PT1M30.5S`.
    pub fn time_retained_text(&self) -> Option<String> {
        self.time_retained.map(iso_duration)
    }
}

impl Consumer {
    /// Reads a consumer file.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        let document = json::parse(bytes, CONSUMER)?;
        Ok(Self { next_snapshot: SnapshotId(Object::new(&document, CONSUMER)?.i64("nextSnapshot")?) })
    }
}

const TAG: &str = "tag file";
const CONSUMER: &str = "consumer file";

/// `[y, M, d, h, m, s, nanos]` with zeros at the end left out, or ISO text.
fn create_time(object: &Object<'_>, value: &Value) -> Result<NaiveDateTime> {
    let wrong = || object.wrong("tagCreateTime", "a date and time, as [y, M, d, h, m, s, nanos] or ISO text", value);
    match value {
        Value::Array(parts) if (3..=7).contains(&parts.len()) => {
            let mut numbers = [0_u32; 7];
            for (number, part) in numbers.iter_mut().zip(parts) {
                *number = part.as_u64().and_then(|part| u32::try_from(part).ok()).ok_or_else(wrong)?;
            }
            let [year, month, day, hour, minute, second, nanos] = numbers;
            i32::try_from(year)
                .ok()
                .and_then(|year| NaiveDate::from_ymd_opt(year, month, day))
                .and_then(|date| date.and_hms_nano_opt(hour, minute, second, nanos))
                .ok_or_else(wrong)
        }
        Value::String(text) => ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S%.f"]
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
            .ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// Seconds as a decimal, or an ISO duration text.
fn time_retained(object: &Object<'_>, value: &Value) -> Result<Duration> {
    let parsed = match value {
        // by way of its text, since a binary fraction would not be the one that was written
        Value::Number(number) => match number.as_f64() {
            Some(seconds) => decimal_seconds(&seconds.to_string()),
            None => None,
        },
        Value::String(text) => parse_iso_duration(text),
        _ => None,
    };
    parsed.ok_or_else(|| object.wrong("tagTimeRetained", "a number of seconds that is not negative", value))
}

fn decimal_seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let nanos: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some(Duration::new(whole.parse().ok()?, nanos.parse().ok()?))
}

/// `PT24H`, `PT8H6M12.345S`, also with days: `P1DT2H`.
fn parse_iso_duration(text: &str) -> Option<Duration> {
    let upper = text.trim().to_ascii_uppercase();
    let rest = upper.strip_prefix('P')?;
    let (days, time) = rest.split_once('T').unwrap_or((rest, ""));
    let mut total = Duration::ZERO;
    for (part, units) in [(days, &[('D', 86_400)][..]), (time, &[('H', 3600), ('M', 60), ('S', 1)])] {
        let mut rest = part;
        for (letter, seconds) in units {
            if let Some((number, after)) = rest.split_once(*letter) {
                let amount = decimal_seconds(number)?;
                if *seconds != 1 && amount.subsec_nanos() != 0 {
                    return None;
                }
                total = total.checked_add(amount.checked_mul(*seconds)?)?;
                rest = after;
            }
        }
        if !rest.is_empty() {
            return None;
        }
    }
    Some(total)
}

/// `Duration.toString` of Java.
fn iso_duration(duration: Duration) -> String {
    let total = duration.as_secs();
    let (hours, minutes, seconds, nanos) = (total / 3600, total / 60 % 60, total % 60, duration.subsec_nanos());
    let mut text = "PT".to_string();
    if hours > 0 {
        text += &format!("{hours}H");
    }
    if minutes > 0 {
        text += &format!("{minutes}M");
    }
    if nanos > 0 {
        text += format!("{seconds}.{nanos:09}").trim_end_matches('0');
        text += "S";
    } else if seconds > 0 || text == "PT" {
        text += &format!("{seconds}S");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Consumer, Tag, iso_duration, parse_iso_duration};
    use crate::spec::snapshot::SnapshotId;

    fn tag(extra: &str) -> crate::Result<Tag> {
        Tag::from_json(
            format!(
                r#"{{"version": 3, "id": 2, "schemaId": 0, "baseManifestList": "a", "deltaManifestList": "b",
                "changelogManifestList": null, "commitUser": "u", "commitIdentifier": 2, "commitKind": "APPEND",
                "timeMillis": 1, "logOffsets": {{}}, "totalRecordCount": 10, "deltaRecordCount": 5{extra}}}"#
            )
            .as_bytes(),
        )
    }

    #[test]
    fn times_of_a_tag_are_read_in_every_form() {
        let plain = tag("").unwrap();
        assert_eq!((plain.create_time, plain.time_retained, plain.snapshot.id), (None, None, SnapshotId(2)));
        let full =
            tag(r#", "tagCreateTime": [2026, 11, 29, 12, 3, 56, 321953393], "tagTimeRetained": 315360000.000000000"#)
                .unwrap();
        assert_eq!(full.create_time.unwrap().to_string(), "2026-11-29 12:03:56.321953393");
        assert_eq!(full.time_retained_text().unwrap(), "PT87600H");
        for (time, shown) in [
            ("[2024, 1, 2, 3, 4]", "2024-01-02 03:04:00"),
            ("[2024, 1, 2]", "2024-01-02 00:00:00"),
            ("\"2024-01-02T03:04\"", "2024-01-02 03:04:00"),
            ("\"2024-01-02T03:04:05.678\"", "2024-01-02 03:04:05.678"),
        ] {
            let tag = tag(&format!(", \"tagCreateTime\": {time}")).unwrap();
            assert_eq!(tag.create_time.unwrap().to_string(), shown);
        }
        for time in
            ["[2024]", "[2024, 13, 1]", "[2024, 1, 1, 1, 1, 1, 1, 1]", "[-1, 1, 1]", "7", "\"soon\"", "[2024, 1.5, 1]"]
        {
            let error = tag(&format!(", \"tagCreateTime\": {time}")).unwrap_err();
            assert!(error.to_string().contains("tagCreateTime"), "{error}");
        }
    }

    #[test]
    fn retention_keeps_its_fraction() {
        for (seconds, text) in [
            ("5.000000000", "PT5S"),
            ("0.1", "PT0.1S"),
            ("90061.25", "PT25H1M1.25S"),
            ("0", "PT0S"),
            ("86400", "PT24H"),
        ] {
            let tag = tag(&format!(", \"tagTimeRetained\": {seconds}")).unwrap();
            assert_eq!(tag.time_retained_text().unwrap(), text);
        }
        for bad in ["-1", "1e300", "true", "\"P1\""] {
            assert!(tag(&format!(", \"tagTimeRetained\": {bad}")).is_err(), "{bad}");
        }
        assert_eq!(parse_iso_duration("P1DT2H"), Some(Duration::from_secs(93_600)));
        assert_eq!(parse_iso_duration(&iso_duration(Duration::new(3723, 45))), Some(Duration::new(3723, 45)));
    }

    #[test]
    fn consumer_is_one_number() {
        assert_eq!(Consumer::from_json(b"{\"nextSnapshot\": 5}").unwrap().next_snapshot, SnapshotId(5));
        assert!(Consumer::from_json(b"{\"nextSnapshot\": ").is_err());
        assert!(Consumer::from_json(b"{}").unwrap_err().to_string().contains("nextSnapshot"));
    }
}
