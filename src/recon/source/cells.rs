//! Values of a database to Arrow batches, exactly: what a type does not hold is told, never rounded.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanBuilder, Date32Array, Decimal128Array, Decimal256Array,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, ListBuilder, RecordBatch,
    RecordBatchOptions, StringBuilder, StructBuilder, Time32MillisecondArray, Time32SecondArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray, TimestampSecondArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, i256};
use datafusion::common::ScalarValue;

use super::SourceColumn;
use crate::error::{Error, Result};

/// A value as it came from the database.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f32),
    Double(f64),
    /// Digits with sign and point.
    Decimal(&'a str),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// Days since the epoch.
    Days(i32),
    /// Microseconds since the epoch or midnight.
    Micros(i64),
    /// What no value of its column's type is, as text.
    Unreadable(String),
}

/// A value that its column's type does not hold. Its cell is NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Row in the batch.
    pub row: usize,
    /// Column, by name.
    pub column: String,
    /// The value as the database writes it.
    pub text: String,
}

/// The name of the column behind the others, which tells unreadable values.
pub(in crate::recon) const UNREADABLE: &str = "__unreadable";

fn unreadable_parts() -> [Arc<Field>; 2] {
    ["column", "text"].map(|name| Arc::new(Field::new(name, DataType::Utf8, false)))
}

/// That column.
pub(in crate::recon) fn unreadable_field() -> Field {
    let parts = DataType::Struct(unreadable_parts().to_vec().into());
    Field::new(UNREADABLE, DataType::List(Arc::new(Field::new("item", parts, false))), true)
}

/// The unreadable values of a batch that was read with [`super::SourceRead::unreadable`], and the batch without the
/// column that tells them.
///
/// # Errors
/// A batch that was not read so.
pub fn unreadable_of(batch: &RecordBatch) -> Result<(RecordBatch, Vec<Unreadable>)> {
    let wrong = || Error::internal("a batch of a source does not tell what is unreadable");
    let last = batch.num_columns().checked_sub(1).ok_or_else(wrong)?;
    if batch.schema().field(last).name() != UNREADABLE {
        return Err(wrong());
    }
    let lists = batch.column(last).as_list_opt::<i32>().ok_or_else(wrong)?;
    let mut found = Vec::new();
    for row in (0..lists.len()).filter(|row| lists.is_valid(*row)) {
        let told = lists.value(row);
        let told = told.as_struct_opt().ok_or_else(wrong)?;
        let part = |at: usize| told.column(at).as_string_opt::<i32>().ok_or_else(wrong);
        let (columns, texts) = (part(0)?, part(1)?);
        found.extend((0..told.len()).map(|at| Unreadable {
            row,
            column: columns.value(at).to_string(),
            text: texts.value(at).to_string(),
        }));
    }
    let mut plain = batch.clone();
    plain.remove_column(last);
    Ok((plain, found))
}

/// Values of one column of a chunk.
enum Values {
    Bools(BooleanBuilder),
    Ints(Vec<Option<i64>>),
    Unsigned(Vec<Option<u64>>),
    Floats(Vec<Option<f32>>),
    Doubles(Vec<Option<f64>>),
    Decimals(Vec<Option<i256>>),
    Texts(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Values {
    fn of(data_type: &DataType) -> Result<Self> {
        Ok(match data_type {
            DataType::Boolean => Self::Bools(BooleanBuilder::new()),
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => Self::Unsigned(Vec::new()),
            DataType::Float32 => Self::Floats(Vec::new()),
            DataType::Float64 => Self::Doubles(Vec::new()),
            DataType::Decimal128(..) | DataType::Decimal256(..) => Self::Decimals(Vec::new()),
            DataType::Utf8 => Self::Texts(StringBuilder::new()),
            DataType::Binary => Self::Bytes(BinaryBuilder::new()),
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time32(_)
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond, _) => {
                Self::Ints(Vec::new())
            }
            other => return Err(Error::internal(format!("no source gives {other}"))),
        })
    }

    fn push_null(&mut self) {
        match self {
            Self::Bools(values) => values.append_null(),
            Self::Ints(values) => values.push(None),
            Self::Unsigned(values) => values.push(None),
            Self::Floats(values) => values.push(None),
            Self::Doubles(values) => values.push(None),
            Self::Decimals(values) => values.push(None),
            Self::Texts(values) => values.append_null(),
            Self::Bytes(values) => values.append_null(),
        }
    }

    /// Takes a value, or gives the text of one that it does not hold.
    fn push(&mut self, data_type: &DataType, cell: Cell<'_>) -> std::result::Result<(), String> {
        match (self, cell) {
            (values, Cell::Null) => values.push_null(),
            (_, Cell::Unreadable(text)) => return Err(text),
            (Self::Bools(values), Cell::Bool(value)) => values.append_value(value),
            (Self::Ints(values), Cell::Int(value)) => {
                values.push(Some(held(data_type, value).ok_or_else(|| value.to_string())?));
            }
            (Self::Ints(values), Cell::Unsigned(value)) => {
                let held = i64::try_from(value).ok().and_then(|value| held(data_type, value));
                values.push(Some(held.ok_or_else(|| value.to_string())?));
            }
            (Self::Ints(values), Cell::Days(days)) => values.push(Some(i64::from(days))),
            (Self::Ints(values), Cell::Micros(micros)) => {
                let unit = micros_in(data_type);
                // finer than the column declares: it would be lost
                if micros.rem_euclid(unit) != 0 {
                    return Err(format!("{micros} µs"));
                }
                values.push(Some(micros.div_euclid(unit)));
            }
            (Self::Unsigned(values), Cell::Unsigned(value)) => {
                let fits = match data_type {
                    DataType::UInt8 => value <= u64::from(u8::MAX),
                    DataType::UInt16 => value <= u64::from(u16::MAX),
                    DataType::UInt32 => value <= u64::from(u32::MAX),
                    _ => true,
                };
                values.push(Some(Some(value).filter(|_| fits).ok_or_else(|| value.to_string())?));
            }
            (Self::Unsigned(values), Cell::Int(value)) => {
                values.push(Some(u64::try_from(value).map_err(|_| value.to_string())?));
            }
            (Self::Floats(values), Cell::Float(value)) => values.push(Some(value)),
            (Self::Doubles(values), Cell::Double(value)) => values.push(Some(value)),
            (Self::Decimals(values), Cell::Decimal(text)) => {
                values.push(Some(unscaled(text, data_type).ok_or_else(|| text.to_string())?));
            }
            (Self::Texts(values), Cell::Text(text) | Cell::Decimal(text)) => values.append_value(text),
            (Self::Bytes(values), Cell::Bytes(bytes)) => values.append_value(bytes),
            (_, other) => return Err(format!("{other:?}")),
        }
        Ok(())
    }

    fn finish(self, data_type: &DataType) -> Result<ArrayRef> {
        let many = || Error::internal(format!("a value of a source is outside {data_type}"));
        macro_rules! narrowed {
            ($array:ty, $values:expr) => {{
                let values = $values.into_iter().map(|value| value.map(TryInto::try_into).transpose());
                Arc::new(values.collect::<std::result::Result<$array, _>>().map_err(|_| many())?) as ArrayRef
            }};
        }
        Ok(match (self, data_type) {
            (Self::Bools(mut values), _) => Arc::new(values.finish()),
            (Self::Texts(mut values), _) => Arc::new(values.finish()),
            (Self::Bytes(mut values), _) => Arc::new(values.finish()),
            (Self::Floats(values), _) => Arc::new(Float32Array::from(values)),
            (Self::Doubles(values), _) => Arc::new(Float64Array::from(values)),
            (Self::Unsigned(values), DataType::UInt8) => narrowed!(UInt8Array, values),
            (Self::Unsigned(values), DataType::UInt16) => narrowed!(UInt16Array, values),
            (Self::Unsigned(values), DataType::UInt32) => narrowed!(UInt32Array, values),
            (Self::Unsigned(values), _) => Arc::new(UInt64Array::from(values)),
            (Self::Decimals(values), DataType::Decimal128(precision, scale)) => {
                let narrow = |value: Option<i256>| value.map(|value| value.to_i128().ok_or_else(many)).transpose();
                let array = values.into_iter().map(narrow).collect::<Result<Decimal128Array>>()?;
                Arc::new(array.with_precision_and_scale(*precision, *scale)?)
            }
            (Self::Decimals(values), DataType::Decimal256(precision, scale)) => {
                Arc::new(Decimal256Array::from(values).with_precision_and_scale(*precision, *scale)?)
            }
            (Self::Ints(values), DataType::Int8) => narrowed!(Int8Array, values),
            (Self::Ints(values), DataType::Int16) => narrowed!(Int16Array, values),
            (Self::Ints(values), DataType::Int32) => narrowed!(Int32Array, values),
            (Self::Ints(values), DataType::Int64) => Arc::new(Int64Array::from(values)),
            (Self::Ints(values), DataType::Date32) => narrowed!(Date32Array, values),
            (Self::Ints(values), DataType::Time32(TimeUnit::Second)) => narrowed!(Time32SecondArray, values),
            (Self::Ints(values), DataType::Time32(_)) => narrowed!(Time32MillisecondArray, values),
            (Self::Ints(values), DataType::Time64(_)) => Arc::new(Time64MicrosecondArray::from(values)),
            (Self::Ints(values), DataType::Timestamp(unit, zone)) => match unit {
                TimeUnit::Second => Arc::new(TimestampSecondArray::from(values).with_timezone_opt(zone.clone())),
                TimeUnit::Millisecond => {
                    Arc::new(TimestampMillisecondArray::from(values).with_timezone_opt(zone.clone()))
                }
                _ => Arc::new(TimestampMicrosecondArray::from(values).with_timezone_opt(zone.clone())),
            },
            (_, other) => return Err(Error::internal(format!("no source gives {other}"))),
        })
    }
}

/// A whole number, where the type holds it.
fn held(data_type: &DataType, value: i64) -> Option<i64> {
    let fits = match data_type {
        DataType::Int8 => i8::try_from(value).is_ok(),
        DataType::Int16 => i16::try_from(value).is_ok(),
        DataType::Int32 => i32::try_from(value).is_ok(),
        _ => true,
    };
    fits.then_some(value)
}

/// Microseconds in one unit of a type of time.
pub(super) fn micros_in(data_type: &DataType) -> i64 {
    match data_type {
        DataType::Time32(TimeUnit::Second) | DataType::Timestamp(TimeUnit::Second, _) => 1_000_000,
        DataType::Time32(_) | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000,
        _ => 1,
    }
}

/// The type of points in time with so many digits behind the second.
pub(super) fn timestamp_type(digits: u32, utc: bool) -> DataType {
    let unit = match digits {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        _ => TimeUnit::Microsecond,
    };
    DataType::Timestamp(unit, utc.then(|| "UTC".into()))
}

/// The type of times of day with so many digits behind the second.
pub(super) fn time_type(digits: u32) -> DataType {
    match digits {
        0 => DataType::Time32(TimeUnit::Second),
        1..=3 => DataType::Time32(TimeUnit::Millisecond),
        _ => DataType::Time64(TimeUnit::Microsecond),
    }
}

/// The type of decimals with so many digits, or text where Arrow has none of that width.
pub(super) fn decimal_type(precision: u32, scale: u32) -> DataType {
    let (Ok(digits), Ok(behind)) = (u8::try_from(precision), i8::try_from(scale)) else { return DataType::Utf8 };
    match precision {
        1..=38 if scale <= precision => DataType::Decimal128(digits, behind),
        39..=76 if scale <= precision => DataType::Decimal256(digits, behind),
        _ => DataType::Utf8,
    }
}

/// A decimal's digits without its point, at the scale of a type; none where it holds fewer.
fn unscaled(text: &str, data_type: &DataType) -> Option<i256> {
    let (DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)) = data_type else {
        return None;
    };
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = usize::try_from(*scale).ok()?;
    let kept = fraction.get(..scale.min(fraction.len()))?;
    let dropped = fraction.get(kept.len()..)?;
    let all = format!("{whole}{kept}{}", "0".repeat(scale - kept.len()));
    let significant = all.trim_start_matches('0');
    let is_number = !digits.trim_matches('.').is_empty()
        && all.bytes().all(|b| b.is_ascii_digit())
        && dropped.bytes().all(|b| b == b'0');
    if !is_number || significant.len() > usize::from(*precision) {
        return None;
    }
    let value = if significant.is_empty() { i256::ZERO } else { i256::from_string(significant)? };
    Some(if negative { value.wrapping_neg() } else { value })
}

/// Rows of one chunk, column by column.
pub(super) struct Chunk {
    columns: Vec<(String, DataType, Values)>,
    unreadable: Vec<(usize, usize, String)>,
    rows: usize,
    bytes: usize,
}

impl Chunk {
    pub(super) fn new(columns: &[&SourceColumn]) -> Result<Self> {
        let columns = columns
            .iter()
            .map(|column| Ok((column.name.clone(), column.data_type.clone(), Values::of(&column.data_type)?)));
        Ok(Self { columns: columns.collect::<Result<_>>()?, unreadable: Vec::new(), rows: 0, bytes: 0 })
    }

    /// Takes one row, a cell for each column.
    pub(super) fn push<'a>(&mut self, cells: impl Iterator<Item = Cell<'a>>) -> Result<()> {
        let mut filled = 0;
        for ((at, (_, data_type, values)), cell) in self.columns.iter_mut().enumerate().zip(cells) {
            self.bytes += match &cell {
                Cell::Text(text) | Cell::Decimal(text) => text.len() + 8,
                Cell::Bytes(bytes) => bytes.len() + 8,
                _ => 8,
            };
            if let Err(text) = values.push(data_type, cell) {
                values.push_null();
                self.unreadable.push((self.rows, at, text));
            }
            filled += 1;
        }
        if filled != self.columns.len() {
            return Err(Error::internal("a row of the source has fewer values than columns"));
        }
        self.rows += 1;
        Ok(())
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether some value of these columns could not be read.
    pub(super) fn has_unreadable(&self, columns: &[usize]) -> bool {
        self.unreadable.iter().any(|(_, column, _)| columns.contains(column))
    }

    /// The batch. `schema` tells whether unreadable values have a column to be told in; else they are an error.
    pub(super) fn finish(self, schema: &SchemaRef) -> Result<RecordBatch> {
        let told = schema.fields().len() > self.columns.len();
        if let (false, Some((_, at, text))) = (told, self.unreadable.first()) {
            let (name, data_type) =
                self.columns.get(*at).map(|(name, data_type, _)| (name.as_str(), data_type)).unzip();
            let data_type = data_type.map(ToString::to_string).unwrap_or_default();
            return Err(Error::invalid(format!("a value of the source is none of its type {data_type}"))
                .with_code("SourceValue")
                .with_context("column", name.unwrap_or_default())
                .with_context("value", text.chars().take(100).collect::<String>())
                .with_hint("read the column as text, with a CAST in a SELECT of the source, or leave the row out"));
        }
        let names: Vec<String> = self.columns.iter().map(|(name, _, _)| name.clone()).collect();
        let finished = self.columns.into_iter().map(|(_, data_type, values)| values.finish(&data_type));
        let mut arrays = finished.collect::<Result<Vec<_>>>()?;
        if told {
            let builder = StructBuilder::from_fields(unreadable_parts().to_vec(), 0);
            let item = Field::new("item", DataType::Struct(unreadable_parts().to_vec().into()), false);
            let mut lists = ListBuilder::new(builder).with_field(item);
            let mut left = self.unreadable.into_iter().peekable();
            for row in 0..self.rows {
                let mut any = false;
                while let Some((_, at, text)) = left.next_if(|(of, _, _)| *of == row) {
                    let name = names.get(at).map(String::as_str).unwrap_or_default();
                    for (part, text) in [name, &text].into_iter().enumerate() {
                        let part = lists.values().field_builder::<StringBuilder>(part);
                        part.ok_or_else(|| Error::internal("a struct has lost its fields"))?.append_value(text);
                    }
                    lists.values().append(true);
                    any = true;
                }
                lists.append(any);
            }
            arrays.push(Arc::new(lists.finish()));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
    }
}

/// The schema of what a read gives.
pub(super) fn schema_of(columns: &[&SourceColumn], unreadable: bool) -> SchemaRef {
    // every column may be NULL: unreadable values are
    let fields = columns.iter().map(|column| Field::new(&column.name, column.data_type.clone(), true));
    Arc::new(Schema::new(fields.chain(unreadable.then(unreadable_field)).collect::<Vec<_>>()))
}

/// A key's value in the type of its column, or an error: it would be another value there.
pub(super) fn key_value(column: &SourceColumn, value: &ScalarValue) -> Result<ScalarValue> {
    if value.is_null() {
        return ScalarValue::try_from(&column.data_type).map_err(Error::from_datafusion);
    }
    let cast = value
        .cast_to(&column.data_type)
        .ok()
        .filter(|cast| cast.cast_to(&value.data_type()).is_ok_and(|back| back == *value));
    cast.ok_or_else(|| {
        Error::invalid(format!("the key value {value} is no {}", column.data_type))
            .with_code("SourceKeyValue")
            .with_context("column", &column.name)
            .with_hint("give keys in the types of the source's columns")
    })
}

/// A key's value as a cell. Texts and bytes are the scalar's own.
pub(super) fn key_cell(value: &ScalarValue) -> Result<Cell<'_>> {
    use ScalarValue as S;
    if value.is_null() {
        return Ok(Cell::Null);
    }
    let wrong = || Error::internal(format!("{} is no key of a source", value.data_type()));
    Ok(match value {
        S::Boolean(Some(value)) => Cell::Bool(*value),
        S::Int8(Some(value)) => Cell::Int((*value).into()),
        S::Int16(Some(value)) => Cell::Int((*value).into()),
        S::Int32(Some(value)) => Cell::Int((*value).into()),
        S::Int64(Some(value)) => Cell::Int(*value),
        S::UInt8(Some(value)) => Cell::Unsigned((*value).into()),
        S::UInt16(Some(value)) => Cell::Unsigned((*value).into()),
        S::UInt32(Some(value)) => Cell::Unsigned((*value).into()),
        S::UInt64(Some(value)) => Cell::Unsigned(*value),
        S::Float32(Some(value)) => Cell::Float(*value),
        S::Float64(Some(value)) => Cell::Double(*value),
        S::Utf8(Some(text)) => Cell::Text(text),
        S::Binary(Some(bytes)) => Cell::Bytes(bytes),
        S::Date32(Some(days)) => Cell::Days(*days),
        S::Time32Second(Some(time)) => Cell::Micros(i64::from(*time) * 1_000_000),
        S::Time32Millisecond(Some(time)) => Cell::Micros(i64::from(*time) * 1_000),
        S::Time64Microsecond(Some(micros)) | S::TimestampMicrosecond(Some(micros), _) => Cell::Micros(*micros),
        S::TimestampMillisecond(Some(time), _) => Cell::Micros(time.checked_mul(1_000).ok_or_else(wrong)?),
        S::TimestampSecond(Some(time), _) => Cell::Micros(time.checked_mul(1_000_000).ok_or_else(wrong)?),
        _ => return Err(wrong()),
    })
}

/// A decimal's digits with their point.
pub(super) fn decimal_text(value: &ScalarValue) -> Option<String> {
    let (text, scale) = match value {
        ScalarValue::Decimal128(Some(value), _, scale) => (value.to_string(), *scale),
        ScalarValue::Decimal256(Some(value), _, scale) => (value.to_string(), *scale),
        _ => return None,
    };
    let scale = usize::try_from(scale).ok()?;
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    Some(if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

#[cfg(test)]
mod tests {
    use super::super::SourceOrder;
    use super::*;

    fn column(name: &str, data_type: DataType) -> SourceColumn {
        SourceColumn {
            name: name.into(),
            data_type,
            declared: String::new(),
            nullable: true,
            order: SourceOrder::Values,
        }
    }

    #[test]
    fn decimals_are_exact_or_none() {
        let wide = DataType::Decimal256(65, 30);
        let most = format!("-{}.{}", "9".repeat(35), "9".repeat(30));
        let cases = [
            ("1.5", DataType::Decimal128(3, 2), Some("150")),
            ("-0.05", DataType::Decimal128(3, 2), Some("-5")),
            ("+7", DataType::Decimal128(1, 0), Some("7")),
            (".5", DataType::Decimal128(3, 1), Some("5")),
            ("1.500", DataType::Decimal128(3, 1), Some("15")),
            ("1.55", DataType::Decimal128(3, 1), None),
            ("1000", DataType::Decimal128(3, 0), None),
            ("0", wide.clone(), Some("0")),
            ("NaN", wide.clone(), None),
            ("", wide.clone(), None),
            ("1e5", wide.clone(), None),
        ];
        for (text, data_type, expected) in cases {
            let value = unscaled(text, &data_type).map(|value| value.to_string());
            assert_eq!(value.as_deref(), expected, "{text} as {data_type}");
        }
        assert_eq!(unscaled(&most, &wide).map(|v| v.to_string()), Some(format!("-{}", "9".repeat(65))));
        let back = ScalarValue::Decimal256(unscaled(&most, &wide), 65, 30);
        assert_eq!(decimal_text(&back).as_deref(), Some(most.as_str()));
        assert_eq!(decimal_text(&ScalarValue::Decimal128(Some(-5), 3, 2)).as_deref(), Some("-0.05"));
    }

    #[test]
    fn unreadable_values_are_told_or_an_error() {
        let columns = [column("a", DataType::Int8), column("b", timestamp_type(0, false))];
        let columns: Vec<&SourceColumn> = columns.iter().collect();
        let chunk = || {
            let mut chunk = Chunk::new(&columns).expect("types are known");
            chunk.push([Cell::Int(1), Cell::Micros(-1_000_000)].into_iter()).expect("row");
            chunk.push([Cell::Int(300), Cell::Micros(1)].into_iter()).expect("row");
            chunk.push([Cell::Null, Cell::Unreadable("0000-00-00".into())].into_iter()).expect("row");
            chunk
        };
        let batch = chunk().finish(&schema_of(&columns, true)).expect("told");
        let (plain, told) = unreadable_of(&batch).expect("told");
        let told: Vec<_> = told.iter().map(|one| (one.row, one.column.as_str(), one.text.as_str())).collect();
        assert_eq!(told, [(1, "a", "300"), (1, "b", "1 µs"), (2, "b", "0000-00-00")]);
        assert_eq!((plain.num_columns(), plain.column(1).null_count()), (2, 2));
        let error = chunk().finish(&schema_of(&columns, false)).expect_err("not told");
        assert_eq!((error.code(), error.context().len()), ("SourceValue", 2));
        assert!(unreadable_of(&plain).is_err());
    }

    #[test]
    fn keys_keep_their_value_or_are_refused() {
        let narrow = column("k", DataType::Int16);
        assert_eq!(key_value(&narrow, &ScalarValue::Int64(Some(7))).expect("fits"), ScalarValue::Int16(Some(7)));
        for bad in [ScalarValue::Int64(Some(70_000)), ScalarValue::Float64(Some(1.5)), ScalarValue::from("x")] {
            assert_eq!(key_value(&narrow, &bad).expect_err("no key").code(), "SourceKeyValue", "{bad}");
        }
    }
}
