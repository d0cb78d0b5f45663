//! Directory of a partition and bucket.

use std::fmt::Write;

use chrono::{DateTime, Datelike, Timelike};

use super::data_type::DataType;
use super::datum::Datum;
use super::options::CoreOptions;
use super::schema::Bucket;
use super::text;
use crate::error::{Error, Result};

/// Escapes a partition name or value for a path: control characters and `" # % ' * / : = ? \ { } [ ] ^` become `%XX`.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            // writing to a string cannot fail
            let _ = write!(escaped, "%{:02X}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

fn is_escaped(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f'
            | '\x7f'
            | '"'
            | '#'
            | '%'
            | '\''
            | '*'
            | '/'
            | ':'
            | '='
            | '?'
            | '\\'
            | '{'
            | '}'
            | '['
            | ']'
            | '^'
    )
}

/// `name=value/name=value` of a partition, escaped, without a slash at the end; empty for a table without partitions.
/// Null, empty and blank values share the default directory, so values are never taken back from paths. Instants are
/// told in UTC.
pub fn partition_dir(names: &[&str], values: &[Datum], types: &[&DataType], options: &CoreOptions) -> Result<String> {
    let parts = parts(names, values, types, options)?;
    let escaped: Vec<String> = parts.iter().map(|(name, text)| format!("{}={}", escape(name), escape(text))).collect();
    Ok(escaped.join("/"))
}

/// The same without escapes: the name of a partition as catalogs tell it.
pub fn partition_name(names: &[&str], values: &[Datum], types: &[&DataType], options: &CoreOptions) -> Result<String> {
    let parts = parts(names, values, types, options)?;
    Ok(parts.iter().map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join("/"))
}

fn parts<'n>(
    names: &[&'n str],
    values: &[Datum],
    types: &[&DataType],
    options: &CoreOptions,
) -> Result<Vec<(&'n str, String)>> {
    if names.len() != values.len() || names.len() != types.len() {
        return Err(Error::internal(format!(
            "{} partition columns, {} values, {} types",
            names.len(),
            values.len(),
            types.len()
        )));
    }
    let part = |((name, value), data_type): ((&&'n str, &Datum), &&DataType)| {
        let text = value_text(value, data_type, options.partition_legacy_name)
            .map_err(|error| error.with_context("column", name))?
            .filter(|text| !is_blank(text))
            .unwrap_or_else(|| options.partition_default_name.clone());
        Ok((*name, text))
    };
    names.iter().zip(values).zip(types).map(part).collect()
}

/// `bucket-N`, or `bucket-postpone`.
pub fn bucket_dir(bucket: Bucket) -> String {
    if bucket == Bucket::POSTPONE { "bucket-postpone".to_string() } else { format!("bucket-{bucket}") }
}

/// Text of one partition value; None for null. The legacy form shows dates and times as the numbers behind them.
fn value_text(value: &Datum, data_type: &DataType, legacy: bool) -> Result<Option<String>> {
    Ok(Some(match value {
        Datum::Null => return Ok(None),
        Datum::String(text) => text.clone(),
        Datum::Date(number) | Datum::Time(number) if legacy => number.to_string(),
        Datum::Timestamp(millis, nanos) if legacy => local_date_time(*millis, *nanos)?,
        Datum::Binary(_) => return Err(Error::unsupported("a binary column cannot be a partition column")),
        other => text::datum_text(other, data_type)
            .ok_or_else(|| Error::internal(format!("no text for {other:?} of type {data_type:?}")))?,
    }))
}

/// Java's `LocalDateTime.toString`: seconds only if not zero, the fraction in groups of three digits.
fn local_date_time(millis: i64, nanos_of_milli: i32) -> Result<String> {
    let time = DateTime::from_timestamp_millis(millis)
        .ok_or_else(|| Error::unsupported(format!("timestamp {millis} ms has no calendar date")))?
        .naive_utc();
    let nanos = time.nanosecond() + u32::try_from(nanos_of_milli).unwrap_or_default();
    let year = time.year();
    let mut text = match year {
        0..=9999 => format!("{year:04}"),
        10_000.. => format!("+{year}"),
        _ => format!("-{:04}", year.unsigned_abs()),
    };
    // writing to a string cannot fail
    let _ = write!(text, "-{:02}-{:02}T{:02}:{:02}", time.month(), time.day(), time.hour(), time.minute());
    if time.second() > 0 || nanos > 0 {
        let _ = write!(text, ":{:02}", time.second());
    }
    let _ = match nanos {
        0 => Ok(()),
        n if n % 1_000_000 == 0 => write!(text, ".{:03}", n / 1_000_000),
        n if n % 1_000 == 0 => write!(text, ".{:06}", n / 1_000),
        n => write!(text, ".{n:09}"),
    };
    Ok(text)
}

/// Whether Java's `Character.isWhitespace` holds for every character (it does for the empty text). Unlike Rust's notion
/// it leaves no-break spaces out and takes the four separators under the space in.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| {
        matches!(c, '\u{1c}'..='\u{1f}')
            || (c.is_whitespace() && !matches!(c, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(legacy: bool) -> CoreOptions {
        let mut raw = std::collections::BTreeMap::new();
        raw.insert("partition.legacy-name".to_string(), legacy.to_string());
        CoreOptions::parse(&raw).unwrap()
    }

    fn dir(value: Datum, data_type: &DataType, legacy: bool) -> String {
        partition_dir(&["p"], &[value], &[data_type], &options(legacy)).unwrap()
    }

    #[test]
    fn names_and_values_are_escaped() {
        let path = partition_dir(
            &["a=b", "n"],
            &[Datum::String("c/d %".into()), Datum::Int(-5)],
            &[&DataType::Varchar(9), &DataType::Int],
            &options(true),
        );
        assert_eq!(path.unwrap(), "a%3Db=c%2Fd %25/n=-5");
        assert_eq!(escape("中文\n~"), "中文%0A~");
    }

    #[test]
    fn null_empty_and_blank_share_the_default_directory() {
        let text = DataType::Varchar(9);
        for value in [Datum::Null, Datum::String(String::new()), Datum::String(" \t\u{1c}\u{3000}".into())] {
            assert_eq!(dir(value, &text, true), "p=__DEFAULT_PARTITION__");
        }
        // a no-break space is no white space in Java
        assert_eq!(dir(Datum::String("\u{a0}".into()), &text, true), "p=\u{a0}");
    }

    #[test]
    fn legacy_names_show_dates_as_days_and_timestamps_with_the_shortest_tail() {
        assert_eq!(dir(Datum::Date(-1), &DataType::Date, true), "p=-1");
        assert_eq!(dir(Datum::Time(3_600_000), &DataType::Time(0), true), "p=3600000");
        let at = |millis, nanos| dir(Datum::Timestamp(millis, nanos), &DataType::Timestamp(6), true);
        assert_eq!(at(1_709_210_096_789, 12_000), "p=2024-02-29T12%3A34%3A56.789012");
        assert_eq!(at(-86_400_000, 0), "p=1969-12-31T00%3A00");
        assert_eq!(at(1000, 0), "p=1970-01-01T00%3A00%3A01");
        assert_eq!(at(0, 1), "p=1970-01-01T00%3A00%3A00.000000001");
    }

    #[test]
    fn new_names_show_dates_as_dates() {
        assert_eq!(dir(Datum::Date(19_723), &DataType::Date, false), "p=2024-01-01");
    }

    #[test]
    fn postpone_bucket_has_a_name() {
        assert_eq!(bucket_dir(Bucket(-2)), "bucket-postpone");
        assert_eq!(bucket_dir(Bucket(3)), "bucket-3");
    }
}
