//! The texts of options as values.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// Options as they were given.
pub(super) struct Given<'a>(pub(super) &'a BTreeMap<String, String>);

impl<'a> Given<'a> {
    /// The text as it stands.
    pub(super) fn get(&self, option: &str) -> Option<&'a str> {
        self.0.get(option).map(String::as_str)
    }

    /// The text without blanks around it; None when nothing is left.
    pub(super) fn text(&self, option: &str) -> Option<String> {
        self.get(option).map(str::trim).filter(|text| !text.is_empty()).map(str::to_string)
    }

    /// `true` or `false`, in any case.
    pub(super) fn bool(&self, option: &str, default: bool) -> Result<bool> {
        self.first_bool(&[option], default)
    }

    /// The boolean of the first of several names that is set.
    pub(super) fn first_bool(&self, options: &[&str], default: bool) -> Result<bool> {
        let Some((option, text)) = options.iter().find_map(|option| Some((option, self.get(option)?))) else {
            return Ok(default);
        };
        match lower(text).as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(unusable(option, text, "accepted are true and false")),
        }
    }

    /// A whole number of 32 bits.
    pub(super) fn int(&self, option: &str) -> Result<Option<i32>> {
        self.number(option)
    }

    /// A whole number of 64 bits.
    pub(super) fn long(&self, option: &str) -> Result<Option<i64>> {
        self.number(option)
    }

    fn number<N: std::str::FromStr>(&self, option: &str) -> Result<Option<N>> {
        self.get(option)
            .map(|text| text.trim().parse().map_err(|_| unusable(option, text, "a whole number is expected")))
            .transpose()
    }

    /// A span of time in whole milliseconds: `1 h`, `90min`, `500` (milliseconds).
    pub(super) fn millis(&self, option: &str) -> Result<Option<i64>> {
        let Some(text) = self.get(option) else { return Ok(None) };
        millis(text).map(Some).ok_or_else(|| {
            unusable(option, text, "a duration is expected, such as '1 h'; units are d, h, min, s, ms, µs and ns")
        })
    }

    /// Names between commas, blanks around them cut.
    pub(super) fn names(&self, option: &str) -> Vec<String> {
        let text = self.get(option).unwrap_or_default();
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_string).collect()
    }

    /// One of a list of known values. Another may be of a newer release, so it is a feature that we lack.
    pub(super) fn one_of<V: Copy>(&self, option: &str, known: &[(&str, V)]) -> Result<Option<V>> {
        let Some(text) = self.get(option) else { return Ok(None) };
        let value = lower(text);
        match known.iter().find(|(name, _)| *name == value) {
            Some((_, value)) => Ok(Some(*value)),
            None => Err(unknown(option, text, known.iter().map(|(name, _)| *name))),
        }
    }

    /// One of a list of known words, lower case, of the first of several names that is set.
    pub(super) fn word_of(&self, options: &[&str], known: &[&str]) -> Result<Option<String>> {
        let Some((option, text)) = options.iter().find_map(|option| Some((option, self.get(option)?))) else {
            return Ok(None);
        };
        let value = lower(text);
        if known.contains(&value.as_str()) {
            Ok(Some(value))
        } else {
            Err(unknown(option, text, known.iter().copied()))
        }
    }

    /// `bucket`: -1, -2 or a count.
    pub(super) fn bucket(&self) -> Result<i32> {
        let bucket = self.int("bucket")?.unwrap_or(-1);
        if bucket > 0 || bucket == -1 || bucket == -2 {
            return Ok(bucket);
        }
        Err(unusable("bucket", &bucket.to_string(), "accepted are -1 (dynamic), -2 (postpone) and counts from 1"))
    }
}

/// Lower case without blanks around.
pub(super) fn lower(text: &str) -> String {
    text.trim().to_ascii_lowercase()
}

/// Milliseconds in a text such as `1 h`.
fn millis(text: &str) -> Option<i64> {
    let text = text.trim().to_lowercase();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let number: i64 = number.parse().ok()?;
    let factor = match unit.trim() {
        "" | "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        "µs" | "micro" | "micros" | "microsecond" | "microseconds" => return Some(number / 1_000),
        "ns" | "nano" | "nanos" | "nanosecond" | "nanoseconds" => return Some(number / 1_000_000),
        _ => return None,
    };
    number.checked_mul(factor)
}

/// The error for a value that cannot be used.
pub(super) fn unusable(option: &str, value: &str, accepted: &str) -> Error {
    Error::invalid(format!("option '{option}' has the value '{value}', which cannot be used"))
        .with_code("InvalidOption")
        .with_context("option", option)
        .with_hint(accepted)
}

fn unknown<'k>(option: &str, value: &str, known: impl Iterator<Item = &'k str>) -> Error {
    Error::unsupported(format!("option '{option}' has the value '{value}', which is not known"))
        .with_code("UnsupportedOption")
        .with_context("option", option)
        .with_hint(format!("known are {}", known.collect::<Vec<_>>().join(", ")))
}
