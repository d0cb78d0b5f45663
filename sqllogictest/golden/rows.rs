//! Rows in one canonical text: ours from Arrow, the expected ones from the archive's JSON, both led by the Arrow type.

use arrow::array::{Array, AsArray, FixedSizeListArray, ListArray, MapArray, RecordBatch, StructArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    UInt64Type,
};
use chrono::{DateTime, NaiveDate};
use lakepin::arrow;
use serde_json::Value;

/// Whether arrays are compared in order or as bags.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Kept,
    Ignored,
}

/// The order of the arrays of a column: `loose` names the columns whose arrays have none.
fn order_of(column: &str, loose: &[&str]) -> Order {
    if loose.contains(&column) { Order::Ignored } else { Order::Kept }
}

/// Canonical text of every row, sorted.
pub fn of_batches(batches: &[RecordBatch], loose: &[&str]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = schema
                .fields()
                .iter()
                .zip(batch.columns())
                .map(|(field, column)| format!("{}={}", field.name(), cell(column, row, order_of(field.name(), loose))))
                .collect();
            rows.push(cells.join("|"));
        }
    }
    rows.sort();
    rows
}

/// Canonical text of expected lines, by the fields they are read as, sorted. A line whose members are not exactly the
/// fields is an error.
pub fn of_lines<'a>(
    lines: impl Iterator<Item = &'a Value>,
    fields: &[std::sync::Arc<Field>],
    loose: &[&str],
) -> Result<Vec<String>, String> {
    let mut rows = Vec::new();
    for line in lines {
        let members = line.as_object().ok_or("an expected line is no object")?;
        if members.len() != fields.len() {
            return Err(format!(
                "columns differ: expected {:?}, read {:?}",
                members.keys().collect::<Vec<_>>(),
                fields.iter().map(|f| f.name()).collect::<Vec<_>>()
            ));
        }
        let mut cells = Vec::new();
        for field in fields {
            let value = members.get(field.name()).ok_or_else(|| format!("column {} is not expected", field.name()))?;
            let order = order_of(field.name(), loose);
            cells.push(format!("{}={}", field.name(), expected(value, field.data_type(), order)?));
        }
        rows.push(cells.join("|"));
    }
    rows.sort();
    Ok(rows)
}

fn bag(mut items: Vec<String>, order: Order) -> String {
    if order == Order::Ignored {
        items.sort();
    }
    format!("[{}]", items.join(","))
}

fn f64_text(v: f64) -> String {
    if v.is_nan() { "NaN".into() } else { format!("{:016x}", v.to_bits()) }
}

fn f32_text(v: f32) -> String {
    if v.is_nan() { "NaN".into() } else { format!("{:08x}", v.to_bits()) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn timestamp(seconds: i64, nanos: u32, zone: bool) -> String {
    let time = DateTime::from_timestamp(seconds, nanos).expect("time in range").naive_utc();
    format!("{}{}", time.format("%Y-%m-%dT%H:%M:%S%.9f"), if zone { "Z" } else { "" })
}

fn cell(array: &dyn Array, row: usize, order: Order) -> String {
    if array.is_null(row) {
        return "null".into();
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float32 => f32_text(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => f64_text(array.as_primitive::<Float64Type>().value(row)),
        // by its own type, as every client writes it: digits beyond the precision are lost there
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Utf8 => format!("{:?}", array.as_string::<i32>().value(row)),
        DataType::Binary => hex(array.as_binary::<i32>().value(row)),
        DataType::Date32 => {
            let days = i64::from(array.as_primitive::<Date32Type>().value(row));
            let date: NaiveDate = DateTime::from_timestamp(days * 86_400, 0).expect("date in range").date_naive();
            date.format("%Y-%m-%d").to_string()
        }
        DataType::Time32(TimeUnit::Millisecond) => array.as_primitive::<Time32MillisecondType>().value(row).to_string(),
        DataType::Timestamp(unit, zone) => {
            let (value, per_second) = match unit {
                TimeUnit::Millisecond => (array.as_primitive::<TimestampMillisecondType>().value(row), 1_000),
                TimeUnit::Microsecond => (array.as_primitive::<TimestampMicrosecondType>().value(row), 1_000_000),
                TimeUnit::Nanosecond => (array.as_primitive::<TimestampNanosecondType>().value(row), 1_000_000_000),
                TimeUnit::Second => panic!("no Paimon type is in seconds"),
            };
            let nanos = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
            timestamp(value.div_euclid(per_second), nanos as u32, zone.is_some())
        }
        DataType::List(_) => {
            let list: &ListArray = array.as_list();
            let items = list.value(row);
            bag((0..items.len()).map(|i| cell(&items, i, order)).collect(), order)
        }
        DataType::FixedSizeList(..) => {
            let list: &FixedSizeListArray = array.as_fixed_size_list();
            let items = list.value(row);
            bag((0..items.len()).map(|i| cell(&items, i, order)).collect(), order)
        }
        DataType::Map(..) => {
            let map: &MapArray = array.as_map();
            let entries = map.value(row);
            let pairs = (0..entries.len())
                .map(|i| format!("({}:{})", cell(entries.column(0), i, order), cell(entries.column(1), i, order)))
                .collect();
            bag(pairs, Order::Ignored)
        }
        DataType::Struct(fields) => {
            let row_of: &StructArray = array.as_struct();
            let cells: Vec<String> = fields
                .iter()
                .zip(row_of.columns())
                .map(|(field, column)| format!("{}={}", field.name(), cell(column, row, order)))
                .collect();
            format!("{{{}}}", cells.join("|"))
        }
        other => panic!("no canonical text for {other}"),
    }
}

fn number(value: &Value) -> Result<f64, String> {
    match value {
        Value::String(text) => match text.as_str() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            other => Err(format!("no number: {other}")),
        },
        // the text as printed: going through f64 first would round FLOAT twice
        other => other.to_string().parse().map_err(|e| format!("{other}: {e}")),
    }
}

fn expected(value: &Value, data_type: &DataType, order: Order) -> Result<String, String> {
    if value.is_null() {
        return Ok("null".into());
    }
    let text = || value.as_str().ok_or_else(|| format!("{value} is no string"));
    let items = || value.as_array().ok_or_else(|| format!("{value} is no array"));
    Ok(match data_type {
        DataType::Float32 => f32_text(number(value)? as f32),
        DataType::Float64 => f64_text(number(value)?),
        DataType::Utf8 => format!("{:?}", text()?),
        DataType::Binary | DataType::Date32 | DataType::Timestamp(..) | DataType::Decimal128(..) => text()?.to_string(),
        DataType::Time32(_) => {
            let time = chrono::NaiveTime::parse_from_str(text()?, "%H:%M:%S%.f").map_err(|e| e.to_string())?;
            (time - chrono::NaiveTime::MIN).num_milliseconds().to_string()
        }
        DataType::List(item) | DataType::FixedSizeList(item, _) => {
            let cells: Result<Vec<_>, _> = items()?.iter().map(|v| expected(v, item.data_type(), order)).collect();
            bag(cells?, order)
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { return Err("map without entries".into()) };
            let mut cells = Vec::new();
            for item in items()? {
                let (key, value) = (&item[0], &item[1]);
                cells.push(format!(
                    "({}:{})",
                    expected(key, pair[0].data_type(), order)?,
                    expected(value, pair[1].data_type(), order)?
                ));
            }
            bag(cells, Order::Ignored)
        }
        DataType::Struct(fields) => {
            let mut cells = Vec::new();
            for field in fields {
                let member = value.get(field.name()).ok_or_else(|| format!("no member {} in {value}", field.name()))?;
                cells.push(format!("{}={}", field.name(), expected(member, field.data_type(), order)?));
            }
            format!("{{{}}}", cells.join("|"))
        }
        _ => value.to_string(),
    })
}
