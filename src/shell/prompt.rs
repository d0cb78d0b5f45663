//! The prompt: database and pin, and whether to beware of them.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone};

use super::render::width::escaped;
use crate::sql::{PinLine, SessionChoice};

/// What a prompt tells.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look<'a> {
    /// Current database.
    pub database: &'a str,
    /// Pins of the session.
    pub pins: &'a [PinLine],
    /// What `SET` chooses in place of the latest snapshot.
    pub choices: &'a [SessionChoice],
    /// Zone of the session.
    pub zone: &'a str,
    /// A statement is open.
    pub open: bool,
    /// A pin is lost, or the last result left rows out by design.
    pub beware: bool,
    /// A branch of `\if` is open that does not run.
    pub skipping: bool,
}

/// `pay@latest=>`, `pay@4711[04-16 10:00:03+08]=>`, `pay@2 pins=>`, `pay@SET snapshot-id=3=>`; `->` in place of `=>` while a statement is open, `!`
/// before it to beware, `@` where nothing runs.
pub fn prompt(look: Look<'_>) -> String {
    let arrow = if look.open { "->" } else { "=>" };
    let marks = format!("{}{}", if look.beware { "!" } else { "" }, if look.skipping { "@" } else { "" });
    let chosen = match look.choices {
        [] => None,
        [one] => Some(escaped(&format!("SET {}={}", one.option.trim_start_matches("scan."), one.value))),
        several => Some(format!("{} SET", several.len())),
    };
    let pinned = match look.pins {
        [] => chosen.clone().unwrap_or_else(|| "latest".to_string()),
        [pin] => match (pin.snapshot_id, pin.commit_time_millis) {
            (Some(id), Some(millis)) => format!("{id}[{}]", short_time(millis, look.zone)),
            (Some(id), None) => id.to_string(),
            (None, _) => "empty".to_string(),
        },
        pins => format!("{} pins", pins.len()),
    };
    let more = chosen.filter(|_| !look.pins.is_empty()).map(|chosen| format!(", {chosen}")).unwrap_or_default();
    format!("{}@{pinned}{more}{marks}{arrow} ", escaped(look.database))
}

/// The prompt in its colour: red to beware.
pub fn coloured(prompt: &str, beware: bool) -> String {
    format!("\x1b[{}m{prompt}\x1b[0m", if beware { "1;31" } else { "1" })
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
            changes_after: None,
            text: String::new(),
            details: Box::default(),
        }
    }

    #[test]
    fn prompt_shows_the_pin() {
        let one = [pin(4711, 1_776_304_803_118)];
        let two = [one[0].clone(), pin(3, 0)];
        let set = ["scan.snapshot-id", "scan.tag-name"].map(|option| SessionChoice {
            table: Some("pay.t".into()),
            option: option.into(),
            value: "3".into(),
        });
        let latest = Look { database: "pay", zone: "+08:00", ..Look::default() };
        let pinned = Look { pins: &one, ..latest };
        let cases = [
            (latest, "pay@latest=> "),
            (pinned, "pay@4711[04-16 10:00:03+08]=> "),
            (Look { beware: true, ..pinned }, "pay@4711[04-16 10:00:03+08]!=> "),
            (Look { zone: "Asia/Kolkata", open: true, ..pinned }, "pay@4711[04-16 07:30:03+05:30]-> "),
            (Look { pins: &two, ..latest }, "pay@2 pins=> "),
            (Look { choices: &set[..1], ..latest }, "pay@SET snapshot-id=3=> "),
            (Look { choices: &set, ..latest }, "pay@2 SET=> "),
            (Look { choices: &set[..1], pins: &two, ..latest }, "pay@2 pins, SET snapshot-id=3=> "),
            (Look { skipping: true, ..latest }, "pay@latest@=> "),
            (Look { database: "a\x1b[2J", ..latest }, "a\\x1b[2J@latest=> "),
        ];
        for (look, expected) in cases {
            assert_eq!(prompt(look), expected);
        }
        assert!(coloured("x", true).starts_with("\x1b[1;31m") && !coloured("x", false).contains("31"));
    }
}
