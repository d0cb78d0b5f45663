//! One cell as text. Data formats write ISO times with the digits of their unit, instants in UTC with `Z`, binary as
//! lower-case hex, the shortest digits of floats, decimals at full scale; nested values are JSON in every format.

use std::fmt::Write as _;
use std::io;

use arrow::array::cast::AsArray;
use arrow::array::timezone::Tz;
use arrow::array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::util::display::array_value_to_string;
use chrono::{DateTime, NaiveDateTime, Offset, TimeZone};

use super::Decimals;

/// How times are written.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Between date and time of day.
    pub between: char,
    /// Zone for instants; None: UTC, written `Z`.
    pub zone: Option<Tz>,
    /// Digits of a second, as a column declares them; None: those of its unit. A time that has more is written with all.
    pub digits: Option<u8>,
}

/// Times of data formats.
pub const ISO: Times = Times { between: 'T', zone: None, digits: None };

/// Appends the text of a cell; false when it is NULL.
pub fn text(array: &dyn Array, row: usize, times: Times, out: &mut String) -> io::Result<bool> {
    if is_null(array, row) {
        return Ok(false);
    }
    match array.data_type() {
        DataType::Utf8 => out.push_str(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => out.push_str(array.as_string::<i64>().value(row)),
        DataType::Utf8View => out.push_str(array.as_string_view().value(row)),
        DataType::Float16 => float(f64::from(array.as_primitive::<Float16Type>().value(row)), out),
        DataType::Float32 => float32(array.as_primitive::<Float32Type>().value(row), out),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row), out),
        DataType::Dictionary(..) => {
            if let Some((values, at)) = resolve(array, row) {
                return text(values.as_ref(), at, times, out);
            }
        }
        _ if !scalar(array, row, times, out)? => json(array, row, Decimals::String, out)?,
        _ => {}
    }
    Ok(true)
}

/// Appends a cell of a column that declares how many digits of a second it has as JSON.
pub fn json_with_digits(
    array: &dyn Array,
    row: usize,
    decimals: Decimals,
    digits: Option<u8>,
    out: &mut String,
) -> io::Result<()> {
    if digits.is_none() || is_null(array, row) {
        return json(array, row, decimals, out);
    }
    let mut text = String::new();
    if !(array.data_type().is_temporal() && scalar(array, row, Times { digits, ..ISO }, &mut text)?) {
        return json(array, row, decimals, out);
    }
    string(&text, out);
    Ok(())
}

/// Appends a cell as JSON.
pub fn json(array: &dyn Array, row: usize, decimals: Decimals, out: &mut String) -> io::Result<()> {
    if is_null(array, row) {
        out.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::Utf8 => string(array.as_string::<i32>().value(row), out),
        DataType::LargeUtf8 => string(array.as_string::<i64>().value(row), out),
        DataType::Utf8View => string(array.as_string_view().value(row), out),
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => {
            scalar(array, row, ISO, out)?;
        }
        DataType::Float16 => json_float(f64::from(array.as_primitive::<Float16Type>().value(row)), None, out),
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            json_float(f64::from(value), Some(value), out);
        }
        DataType::Float64 => json_float(array.as_primitive::<Float64Type>().value(row), None, out),
        DataType::List(_) => json_list(&array.as_list::<i32>().value(row), decimals, out)?,
        DataType::LargeList(_) => json_list(&array.as_list::<i64>().value(row), decimals, out)?,
        DataType::FixedSizeList(..) => json_list(&array.as_fixed_size_list().value(row), decimals, out)?,
        DataType::ListView(_) => json_list(&array.as_list_view::<i32>().value(row), decimals, out)?,
        DataType::LargeListView(_) => json_list(&array.as_list_view::<i64>().value(row), decimals, out)?,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            out.push('{');
            for (i, (field, column)) in fields.iter().zip(columns).enumerate() {
                if i > 0 {
                    out.push(',');
                }
                string(field.name(), out);
                out.push(':');
                json(column.as_ref(), row, decimals, out)?;
            }
            out.push('}');
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            out.push('[');
            if let [keys, values] = entries.columns() {
                for i in 0..entries.len() {
                    out.push_str(if i > 0 { ",[" } else { "[" });
                    json(keys.as_ref(), i, decimals, out)?;
                    out.push(',');
                    json(values.as_ref(), i, decimals, out)?;
                    out.push(']');
                }
            }
            out.push(']');
        }
        DataType::Dictionary(..) => match resolve(array, row) {
            Some((values, at)) => json(values.as_ref(), at, decimals, out)?,
            None => out.push_str("null"),
        },
        data_type if decimals == Decimals::Number && data_type.is_decimal() => {
            scalar(array, row, ISO, out)?;
        }
        _ => {
            // digits, colons and hex need no escape; what Arrow writes might
            let mut text = String::new();
            if scalar(array, row, ISO, &mut text)? {
                out.push('"');
                out.push_str(&text);
                out.push('"');
            } else {
                let text = array_value_to_string(array, row).map_err(io::Error::other)?;
                string(&text, out);
            }
        }
    }
    Ok(())
}

/// A string as JSON.
pub fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 || c == '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn is_null(array: &dyn Array, row: usize) -> bool {
    array.data_type() == &DataType::Null || array.is_null(row)
}

/// The dictionary value of a row; None when it is NULL.
fn resolve(array: &dyn Array, row: usize) -> Option<(ArrayRef, usize)> {
    let dictionary = array.as_any_dictionary_opt()?;
    let at = *dictionary.normalized_keys().get(row)?;
    let values = dictionary.values();
    (!values.is_null(at)).then(|| (values.clone(), at))
}

fn json_list(items: &ArrayRef, decimals: Decimals, out: &mut String) -> io::Result<()> {
    out.push('[');
    for i in 0..items.len() {
        if i > 0 {
            out.push(',');
        }
        json(items.as_ref(), i, decimals, out)?;
    }
    out.push(']');
    Ok(())
}

fn json_float(value: f64, single: Option<f32>, out: &mut String) {
    if value.is_nan() {
        out.push_str("null");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
    } else {
        match single {
            Some(single) => float32(single, out),
            None => float(value, out),
        }
    }
}

/// The shortest digits that read back as the same number.
fn float(value: f64, out: &mut String) {
    if value.is_finite() {
        match serde_json::to_string(&value) {
            Ok(text) => out.push_str(&text),
            Err(_) => drop(write!(out, "{value}")),
        }
    } else {
        not_finite(value, out);
    }
}

fn float32(value: f32, out: &mut String) {
    if value.is_finite() {
        match serde_json::to_string(&value) {
            Ok(text) => out.push_str(&text),
            Err(_) => drop(write!(out, "{value}")),
        }
    } else {
        not_finite(f64::from(value), out);
    }
}

fn not_finite(value: f64, out: &mut String) {
    out.push_str(if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    });
}

/// Appends what needs no escape in JSON; false for other types.
fn scalar(array: &dyn Array, row: usize, times: Times, out: &mut String) -> io::Result<bool> {
    macro_rules! number {
        ($type:ty) => {{
            let _ = write!(out, "{}", array.as_primitive::<$type>().value(row));
        }};
    }
    macro_rules! decimal {
        // whatever the precision says: arithmetic can give more digits, and none is cut
        ($type:ty, $scale:expr) => {{
            let text = <$type>::format_decimal(array.as_primitive::<$type>().value(row), u8::MAX, *$scale);
            // the zeros that a scale below zero appends make no number of a zero
            out.push_str(if text.bytes().all(|digit| digit == b'0') { "0" } else { &text });
        }};
    }
    match array.data_type() {
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Decimal32(_, scale) => decimal!(Decimal32Type, scale),
        DataType::Decimal64(_, scale) => decimal!(Decimal64Type, scale),
        DataType::Decimal128(_, scale) => decimal!(Decimal128Type, scale),
        DataType::Decimal256(_, scale) => decimal!(Decimal256Type, scale),
        DataType::Binary => hex(array.as_binary::<i32>().value(row), out),
        DataType::LargeBinary => hex(array.as_binary::<i64>().value(row), out),
        DataType::BinaryView => hex(array.as_binary_view().value(row), out),
        DataType::FixedSizeBinary(_) => hex(array.as_fixed_size_binary().value(row), out),
        DataType::Date32 => date(i64::from(array.as_primitive::<Date32Type>().value(row)), out),
        DataType::Date64 => date(array.as_primitive::<Date64Type>().value(row).div_euclid(86_400_000), out),
        DataType::Time32(TimeUnit::Second) => {
            time_of_day(
                i64::from(array.as_primitive::<Time32SecondType>().value(row)),
                TimeUnit::Second,
                times.digits,
                out,
            );
        }
        DataType::Time32(_) => {
            let millis = i64::from(array.as_primitive::<Time32MillisecondType>().value(row));
            time_of_day(millis, TimeUnit::Millisecond, times.digits, out);
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            time_of_day(
                array.as_primitive::<Time64MicrosecondType>().value(row),
                TimeUnit::Microsecond,
                times.digits,
                out,
            );
        }
        DataType::Time64(_) => {
            time_of_day(
                array.as_primitive::<Time64NanosecondType>().value(row),
                TimeUnit::Nanosecond,
                times.digits,
                out,
            );
        }
        DataType::Timestamp(unit, zone) => {
            let value = match unit {
                TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(row),
                TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(row),
                TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(row),
                TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().value(row),
            };
            timestamp(value, *unit, zone.is_some(), times, out);
        }
        DataType::Duration(_) | DataType::Interval(_) => {
            out.push_str(&array_value_to_string(array, row).map_err(io::Error::other)?);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}

fn date(days: i64, out: &mut String) {
    match days.checked_mul(86_400).and_then(|seconds| DateTime::from_timestamp(seconds, 0)) {
        Some(at) => drop(write!(out, "{}", at.date_naive())),
        None => drop(write!(out, "{days} days")),
    }
}

/// Units in a second and digits after it.
fn unit_of(unit: TimeUnit) -> (i64, usize) {
    match unit {
        TimeUnit::Second => (1, 0),
        TimeUnit::Millisecond => (1_000, 3),
        TimeUnit::Microsecond => (1_000_000, 6),
        TimeUnit::Nanosecond => (1_000_000_000, 9),
    }
}

fn time_of_day(value: i64, unit: TimeUnit, declared: Option<u8>, out: &mut String) {
    let (per_second, digits) = unit_of(unit);
    let seconds = value.div_euclid(per_second);
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    fraction(value.rem_euclid(per_second), digits, declared, out);
}

fn fraction(value: i64, digits: usize, declared: Option<u8>, out: &mut String) {
    let shown = declared.map_or(digits, usize::from).min(digits);
    let text = if digits > 0 { format!("{value:0digits$}") } else { String::new() };
    let text = match text.split_at_checked(shown) {
        Some((shown, rest)) if rest.bytes().all(|digit| digit == b'0') => shown,
        _ => &text,
    };
    if !text.is_empty() {
        let _ = write!(out, ".{text}");
    }
}

fn timestamp(value: i64, unit: TimeUnit, instant: bool, times: Times, out: &mut String) {
    let (per_second, digits) = unit_of(unit);
    let Some(at) = DateTime::from_timestamp(value.div_euclid(per_second), 0) else {
        let _ = write!(out, "{value} {unit:?}s since 1970");
        return;
    };
    let mut write_local = |local: NaiveDateTime| {
        let _ = write!(out, "{}{}{}", local.date(), times.between, local.time().format("%H:%M:%S"));
        fraction(value.rem_euclid(per_second), digits, times.digits, out);
    };
    match (instant, times.zone) {
        (false, _) => write_local(at.naive_utc()),
        (true, None) => {
            write_local(at.naive_utc());
            out.push('Z');
        }
        (true, Some(zone)) => {
            let offset = zone.offset_from_utc_datetime(&at.naive_utc()).fix();
            match at.naive_utc().checked_add_offset(offset) {
                Some(local) => write_local(local),
                // the last hours of the calendar are past its end there
                None => {
                    let _ = write!(out, "{value} {unit:?}s since 1970");
                    return;
                }
            }
            let _ = write!(out, "{offset}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Builder;
    use arrow::array::types::Int32Type;
    use arrow::array::{
        ArrayRef, BinaryArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int64Array, ListArray,
        MapBuilder, RecordBatch, StringArray, StringBuilder, StructArray, Time32MillisecondArray,
        TimestampMicrosecondArray, TimestampMillisecondArray,
    };

    use super::super::{Delimited, Json, Separated, text_of};
    use super::*;

    fn one(array: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable([("v", array, true)]).unwrap()
    }

    fn objects(array: ArrayRef, decimals: Decimals) -> Vec<String> {
        let batch = one(array);
        let text = text_of(Json::lines(&batch.schema(), decimals), &[batch]);
        text.lines().map(str::to_string).collect()
    }

    fn delimited(batch: RecordBatch, separated: Separated) -> String {
        text_of(Delimited::new(&batch.schema(), separated), &[batch])
    }

    #[test]
    fn json_values_are_exact() {
        let cases: Vec<(ArrayRef, &[&str])> = vec![
            (Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN])), &["9223372036854775807", "-9223372036854775808"]),
            (
                Arc::new(Decimal128Array::from(vec![15_000_000_000, -1]).with_precision_and_scale(38, 10).unwrap()),
                &["\"1.5000000000\"", "\"-0.0000000001\""],
            ),
            (
                Arc::new(Float64Array::from(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.1, 1e300])),
                &["null", "\"Infinity\"", "\"-Infinity\"", "0.1", "1e+300"],
            ),
            (Arc::new(Float32Array::from(vec![0.1, 16_777_216.0])), &["0.1", "16777216.0"]),
            (Arc::new(BinaryArray::from_vec(vec![b"\x00\xff", b""])), &["\"00ff\"", "\"\""]),
            (Arc::new(Date32Array::from(vec![0, -1])), &["\"1970-01-01\"", "\"1969-12-31\""]),
            (Arc::new(Time32MillisecondArray::from(vec![36_003_118])), &["\"10:00:03.118\""]),
            (
                Arc::new(TimestampMillisecondArray::from(vec![Some(1_776_304_803_118), Some(-1), None])),
                &["\"2026-04-16T02:00:03.118\"", "\"1969-12-31T23:59:59.999\"", "null"],
            ),
            (
                Arc::new(TimestampMicrosecondArray::from(vec![1_776_304_803_000_000]).with_timezone("UTC")),
                &["\"2026-04-16T02:00:03.000000Z\""],
            ),
            (Arc::new(StringArray::from(vec!["a\"b\\\n\x1b订"])), &["\"a\\\"b\\\\\\n\\u001b订\""]),
            (
                Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None])),
                &["[1,null]", "null"],
            ),
        ];
        for (array, expected) in cases {
            let found = objects(array, Decimals::String);
            let expected: Vec<String> = expected.iter().map(|v| format!("{{\"v\":{v}}}")).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn decimals_longer_than_their_type_keep_their_digits() {
        let array = Decimal128Array::from(vec![19_998, -19_998]).with_precision_and_scale(4, 2).unwrap();
        assert_eq!(delimited(one(Arc::new(array)), Separated::by_commas()), "v\n199.98\n-199.98\n");
    }

    #[test]
    fn decimals_are_numbers_when_asked() {
        let array = Decimal128Array::from(vec![15_000_000_000, -1]).with_precision_and_scale(38, 10).unwrap();
        let found = objects(Arc::new(array), Decimals::Number);
        assert_eq!(found, ["{\"v\":1.5000000000}", "{\"v\":-0.0000000001}"]);
        let thousands = Decimal128Array::from(vec![0, -5]).with_precision_and_scale(5, -3).unwrap();
        assert_eq!(objects(Arc::new(thousands), Decimals::Number), ["{\"v\":0}", "{\"v\":-5000}"]);
    }

    #[test]
    fn maps_are_arrays_of_pairs_and_rows_objects() {
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        map.keys().append_value("k");
        map.values().append_null();
        map.append(true).unwrap();
        assert_eq!(objects(Arc::new(map.finish()), Decimals::String), ["{\"v\":[[\"k\",null]]}"]);
        let inner: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let row = StructArray::try_from(vec![("a b", inner)]).unwrap();
        assert_eq!(delimited(one(Arc::new(row)), Separated::by_commas()), "v\n\"{\"\"a b\"\":1}\"\n");
    }

    #[test]
    fn csv_tells_null_from_empty() {
        let names: ArrayRef =
            Arc::new(StringArray::from(vec![None, Some(""), Some("a,b"), Some("q\"q"), Some("x\ny")]));
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
        let batch = RecordBatch::try_from_iter_with_nullable([("n", names, true), ("i", ids, true)]).unwrap();
        let csv = delimited(batch.clone(), Separated::by_commas());
        assert_eq!(csv, "n,i\n,0\n\"\",1\n\"a,b\",2\n\"q\"\"q\",3\n\"x\ny\",4\n");
        let tsv = delimited(batch, Separated::by_tabs());
        assert_eq!(tsv, "n\ti\n\\N\t0\n\t1\na,b\t2\nq\"q\t3\nx\\ny\t4\n");
    }

    #[test]
    fn json_array_is_one_document_and_keeps_doubled_names() {
        let a: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("id", a.clone()), ("id", a.clone()), ("id_2", a)]).unwrap();
        let json = || Json::array(&batch.schema(), Decimals::String);
        let text = text_of(json(), std::slice::from_ref(&batch));
        assert_eq!(text, "[\n{\"id\":1,\"id_3\":1,\"id_2\":1},\n{\"id\":2,\"id_3\":2,\"id_2\":2}\n]\n");
        let empty = text_of(json(), &[batch.slice(0, 0)]);
        assert_eq!(empty, "[]\n");
    }

    #[test]
    fn instants_at_the_ends_of_the_calendar_are_shown_in_any_zone() {
        let last = DateTime::<chrono::Utc>::MAX_UTC.timestamp();
        for (seconds, zone) in [(last, "+08:00"), (-last, "-08:00"), (i64::MAX, "+08:00"), (i64::MIN, "+08:00")] {
            let array = arrow::array::TimestampSecondArray::from(vec![seconds]).with_timezone("UTC");
            let mut shown = String::new();
            let times = Times { between: ' ', zone: Some(zone.parse().unwrap()), digits: None };
            assert!(text(&array, 0, times, &mut shown).unwrap());
            assert!(!shown.is_empty(), "{seconds} {zone}");
        }
    }

    #[test]
    fn instants_in_tables_are_in_the_session_zone() {
        let array = TimestampMillisecondArray::from(vec![1_776_304_803_118]).with_timezone("UTC");
        let mut text_of = String::new();
        let times = Times { between: ' ', zone: Some("+08:00".parse().unwrap()), digits: None };
        assert!(text(&array, 0, times, &mut text_of).unwrap());
        assert_eq!(text_of, "2026-04-16 10:00:03.118+08:00");
    }

    #[test]
    fn a_column_may_declare_fewer_digits_than_its_unit_has() {
        let times = TimestampMillisecondArray::from(vec![1_000, 1_500, 1_118]);
        let shown = |row, digits| {
            let mut out = String::new();
            text(&times, row, Times { digits, ..ISO }, &mut out).unwrap();
            let mut json = String::new();
            json_with_digits(&times, row, Decimals::String, digits, &mut json).unwrap();
            assert_eq!(json, format!("\"{out}\""));
            out.split_off("1970-01-01T00:00:0".len())
        };
        assert_eq!(
            [shown(0, None), shown(0, Some(0)), shown(0, Some(1)), shown(0, Some(3))],
            ["1.000", "1", "1.0", "1.000"]
        );
        // no digit that is there is left out
        assert_eq!([shown(1, Some(0)), shown(1, Some(1)), shown(2, Some(2))], ["1.500", "1.5", "1.118"]);
        let clock = arrow::array::Time32MillisecondArray::from(vec![3_600_000]);
        let mut out = String::new();
        text(&clock, 0, Times { digits: Some(0), ..ISO }, &mut out).unwrap();
        assert_eq!(out, "01:00:00");
    }
}
