//! Columns of the random tables: their values in every form the tests need.

use chrono::{DateTime, Days, NaiveDate};
use lakepin::spec::{DataType, Datum};
use lakepin::testing::naive::Value;
use serde_json::json;

use crate::random::Random;

/// A column of the random tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Col {
    pub name: &'static str,
    /// Field id.
    pub id: i32,
    /// Type as SQL has it.
    text: &'static str,
    pub data_type: DataType,
    pub nullable: bool,
    /// Fewer different values than this.
    span: u64,
}

/// Types of columns that no test computes with.
const OTHERS: &[&str] = &["DATE", "TIMESTAMP(3)", "TIMESTAMP(6)", "DECIMAL(10, 2)", "DOUBLE", "BOOLEAN", "BIGINT"];

/// Types of keys.
const KEYS: &[&str] = &["INT", "INT", "INT", "BIGINT", "STRING", "DATE", "TIMESTAMP(3)", "DECIMAL(10, 2)", "DOUBLE"];

fn data_type(text: &str) -> DataType {
    match text {
        "STRING" => DataType::STRING,
        "BIGINT" => DataType::BigInt,
        "DATE" => DataType::Date,
        "TIMESTAMP(3)" => DataType::Timestamp(3),
        "TIMESTAMP(6)" => DataType::Timestamp(6),
        "DECIMAL(10, 2)" => DataType::Decimal(10, 2),
        "DOUBLE" => DataType::Double,
        "BOOLEAN" => DataType::Boolean,
        _ => DataType::Int,
    }
}

impl Col {
    /// A column that takes NULL; its id is that of a table made with it at place `id`.
    pub fn new(name: &'static str, text: &'static str, span: u64) -> Self {
        Self { name, id: 0, text, data_type: data_type(text), nullable: true, span }
    }

    pub fn not_null(self) -> Self {
        Self { nullable: false, ..self }
    }

    /// A key column of any type.
    pub fn key(name: &'static str, span: u64, random: &mut Random) -> Self {
        Self::new(name, random.pick(KEYS), span).not_null()
    }

    /// A column of a type that no other column has.
    pub fn other(name: &'static str, random: &mut Random) -> Self {
        Self::new(name, random.pick(OTHERS), 15)
    }

    /// The same column with another type.
    pub fn retyped(&self, text: &'static str) -> Self {
        Self { text, data_type: data_type(text), ..self.clone() }
    }

    pub fn is_text(&self) -> bool {
        self.data_type == DataType::STRING
    }

    pub fn is_integer(&self) -> bool {
        matches!(self.data_type, DataType::Int | DataType::BigInt)
    }

    pub fn sql_type(&self) -> &'static str {
        self.text
    }

    /// The type as a schema has it.
    pub fn declared(&self) -> String {
        format!("{}{}", self.text, if self.nullable { "" } else { " NOT NULL" })
    }

    /// A value, never NULL.
    pub fn literal(&self, random: &mut Random) -> Value {
        let n = random.below(self.span) as i64;
        match self.data_type {
            DataType::Boolean => Value::Bool(n % 2 == 0),
            // on both sides of zero where time began
            DataType::Date => Value::Int(n - 4),
            DataType::Timestamp(6) => Value::Int((n - 4) * 43_200_000_001),
            DataType::Timestamp(_) => Value::Int((n - 4) * 43_200_001),
            DataType::Decimal(..) => Value::Decimal(i128::from(n - 4) * 25),
            DataType::Double => Value::Double((n - 4) as f64 * 0.5),
            DataType::Varchar(_) => Value::Text(format!("s{n:02}")),
            _ => Value::Int(n),
        }
    }

    pub fn value(&self, random: &mut Random) -> Value {
        if self.nullable && random.chance(20) { Value::Null } else { self.literal(random) }
    }

    /// A value of this column as a value of the column it was made into.
    pub fn cast(&self, value: &Value, to: &Self) -> Value {
        match (value, &to.data_type) {
            (Value::Null, _) => Value::Null,
            (Value::Int(n), DataType::Varchar(_)) => Value::Text(n.to_string()),
            (Value::Int(n), DataType::Double) if self.is_integer() => Value::Double(*n as f64),
            (Value::Int(n), DataType::Decimal(..)) if self.is_integer() => Value::Decimal(i128::from(*n) * 100),
            (value, _) => value.clone(),
        }
    }

    /// A value as the tests print it.
    pub fn shown(&self, value: &Value) -> String {
        match (value, &self.data_type) {
            (Value::Int(days), DataType::Date) => date(*days).to_string(),
            (Value::Int(unit), DataType::Timestamp(precision)) => timestamp(*unit, *precision),
            (Value::Int(n), _) => n.to_string(),
            (Value::Decimal(unscaled), _) => decimal(*unscaled),
            (Value::Double(n), _) => format!("{n:?}"),
            (Value::Bool(b), _) => b.to_string(),
            (Value::Text(text), _) => text.clone(),
            _ => "NULL".into(),
        }
    }

    /// A value as a literal of SQL.
    pub fn sql(&self, value: &Value) -> String {
        let shown = self.shown(value);
        match (value, &self.data_type) {
            (Value::Null, _) => shown,
            (_, DataType::Date) => format!("DATE '{shown}'"),
            (_, DataType::Timestamp(_)) => format!("TIMESTAMP '{shown}'"),
            (_, DataType::Varchar(_)) => format!("'{shown}'"),
            _ => shown,
        }
    }

    /// A value as the table builder takes it.
    pub fn json(&self, value: &Value) -> serde_json::Value {
        match (value, &self.data_type) {
            (Value::Null, _) => json!(null),
            (Value::Int(n), DataType::Int | DataType::BigInt) => json!(n),
            (Value::Double(n), _) => json!(n),
            (Value::Bool(b), _) => json!(b),
            _ => json!(self.shown(value)),
        }
    }

    /// A value of a key, as buckets are computed from it.
    pub fn datum(&self, value: &Value) -> Datum {
        match (value, &self.data_type) {
            (Value::Int(n), DataType::BigInt) => Datum::BigInt(*n),
            (Value::Int(n), DataType::Date) => Datum::Date(*n as i32),
            (Value::Int(millis), DataType::Timestamp(3)) => Datum::Timestamp(*millis, 0),
            (Value::Int(n), _) => Datum::Int(*n as i32),
            (Value::Decimal(unscaled), DataType::Decimal(precision, scale)) => {
                Datum::Decimal(*unscaled, *precision, *scale)
            }
            (Value::Double(n), _) => Datum::Double(*n),
            (Value::Text(text), _) => Datum::String(text.clone()),
            _ => Datum::Null,
        }
    }
}

fn date(days: i64) -> NaiveDate {
    let day = NaiveDate::default();
    if days < 0 { day - Days::new(days.unsigned_abs()) } else { day + Days::new(days.unsigned_abs()) }
}

fn timestamp(unit: i64, precision: u8) -> String {
    let moment =
        if precision == 6 { DateTime::from_timestamp_micros(unit) } else { DateTime::from_timestamp_millis(unit) };
    moment.map(|moment| format!("{:?}", moment.naive_utc())).unwrap_or_default()
}

fn decimal(unscaled: i128) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs();
    format!("{sign}{}.{:02}", digits / 100, digits % 100)
}
