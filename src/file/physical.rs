//! From the Arrow array a decoder gives to exactly the Arrow type of the Paimon type the file was written with.
//!
//! Files of other writers (migrated Hive tables, Python, Spark) use other widths, units and nestings than Java: the
//! value counts as the *file's* annotation says, then comes the declared type. What could only be kept by changing a
//! value is an error.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Decimal128Array, FixedSizeListArray, Int64Array, ListArray, MapArray,
    PrimitiveArray, StringArray, StringBuilder, StructArray, UInt32Array, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, DecimalType, Int32Type, Int64Type, Time32MillisecondType,
    TimeUnit,
};

use super::evolve::{downcast, fits, from_units, map_array, null_in_not_null, out_of_range, rescale, visible};
use super::format::FileFormat;
use crate::error::{Error, Result};
use crate::spec::arrow_types::arrow_type;
use crate::spec::binary_row::unscaled;
use crate::spec::{DataField, DataType, FieldType};

/// Values as the declared type of the file's schema.
pub(crate) fn to_declared(array: &ArrayRef, declared: &FieldType, format: FileFormat) -> Result<ArrayRef> {
    let target = arrow_type(&declared.data_type);
    let trims = format == FileFormat::Orc && holds_char(&declared.data_type);
    if array.data_type() == &target && !trims {
        return Ok(Arc::clone(array));
    }
    if let ArrowType::Dictionary(_, values) = array.data_type() {
        return to_declared(&exact_cast(array, values)?, declared, format);
    }
    if array.data_type() == &ArrowType::Null {
        return Ok(new_null_array(&target, array.len()));
    }
    match &declared.data_type {
        DataType::Char(_) => {
            let text = text(array, declared)?;
            if trims { Ok(Arc::new(trim_blanks(&text))) } else { Ok(Arc::new(text)) }
        }
        DataType::Varchar(_) => Ok(Arc::new(text(array, declared)?)),
        DataType::Binary(_)
        | DataType::Varbinary(_)
        | DataType::Blob
        | DataType::Geometry(_)
        | DataType::Geography(_) => bytes(array, declared),
        DataType::Boolean => Err(mismatch(array, declared)),
        DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt => integers(array, declared),
        DataType::Float => match array.data_type() {
            ArrowType::Float16 => exact_cast(array, &target),
            _ => Err(mismatch(array, declared)),
        },
        DataType::Double => match array.data_type() {
            ArrowType::Float16 | ArrowType::Float32 => exact_cast(array, &target),
            _ => Err(mismatch(array, declared)),
        },
        DataType::Decimal(precision, scale) => decimals(array, declared, *precision, *scale),
        DataType::Date => dates(array, declared),
        DataType::Time(_) => times(array, declared),
        DataType::Timestamp(precision) | DataType::TimestampLtz(precision) => timestamps(array, declared, *precision),
        DataType::Array(item) => {
            let list = list(array, declared)?;
            let (offsets, values) = visible(list.offsets(), list.values())?;
            let values = to_declared(&values, item, format)?;
            let ArrowType::List(field) = target else { return Err(mismatch(array, declared)) };
            let list = ListArray::try_new(field, offsets, values, list.nulls().cloned()).map_err(null_in_not_null)?;
            Ok(Arc::new(list))
        }
        DataType::Vector(item, length) => vectors(array, declared, item, *length, format),
        DataType::Map(key, value) => {
            let (offsets, keys, values, nulls) = map_parts(array, declared)?;
            let keys = to_declared(&keys, key, format)?;
            let values = to_declared(&values, value, format)?;
            map_array(declared, offsets, keys, values, nulls)
        }
        DataType::Multiset(element) => {
            let (offsets, keys, counts, nulls) = map_parts(array, declared)?;
            let keys = to_declared(&keys, element, format)?;
            let counts = to_declared(&counts, &FieldType { data_type: DataType::Int, nullable: false }, format)?;
            map_array(declared, offsets, keys, counts, nulls)
        }
        DataType::Row(fields) => row(array, declared, fields, format),
        DataType::Variant => variant(array, declared),
    }
}

fn holds_char(t: &DataType) -> bool {
    match t {
        DataType::Char(_) => true,
        DataType::Array(item) | DataType::Multiset(item) | DataType::Vector(item, _) => holds_char(&item.data_type),
        DataType::Map(key, value) => holds_char(&key.data_type) || holds_char(&value.data_type),
        DataType::Row(fields) => fields.iter().any(|f| holds_char(f.data_type())),
        _ => false,
    }
}

fn mismatch(array: &ArrayRef, declared: &FieldType) -> Error {
    Error::corrupt(format!(
        "the file stores {} where its schema says {declared}",
        array.data_type().to_string().chars().take(200).collect::<String>()
    ))
    .with_code("PhysicalTypeMismatch")
}

/// A cast that fails rather than make nulls.
fn exact_cast(array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef> {
    cast_with_options(array, to, &CastOptions { safe: false, ..Default::default() })
        .map_err(|e| Error::corrupt(format!("a stored value cannot be read as {to}")).with_source(e))
}

fn text(array: &ArrayRef, declared: &FieldType) -> Result<StringArray> {
    match array.data_type() {
        ArrowType::Utf8 => Ok(downcast::<StringArray>(array)?.clone()),
        ArrowType::LargeUtf8
        | ArrowType::Utf8View
        | ArrowType::Binary
        | ArrowType::LargeBinary
        | ArrowType::BinaryView => {
            let cast = cast_with_options(array, &ArrowType::Utf8, &CastOptions { safe: false, ..Default::default() })
                .map_err(|e| Error::corrupt("stored text is not UTF-8").with_source(e))?;
            Ok(downcast::<StringArray>(&cast)?.clone())
        }
        ArrowType::FixedSizeBinary(_) => text(&exact_cast(array, &ArrowType::Binary)?, declared),
        _ => Err(mismatch(array, declared)),
    }
}

/// ORC pads `char(n)` with blanks; Java takes them off again, those of the value too.
fn trim_blanks(text: &StringArray) -> StringArray {
    let mut builder = StringBuilder::with_capacity(text.len(), text.value_data().len());
    for value in text {
        builder.append_option(value.map(|v| v.trim_end_matches(' ')));
    }
    builder.finish()
}

fn bytes(array: &ArrayRef, declared: &FieldType) -> Result<ArrayRef> {
    match array.data_type() {
        ArrowType::Binary => Ok(Arc::clone(array)),
        ArrowType::Utf8 => Ok(Arc::new(BinaryArray::from(downcast::<StringArray>(array)?.clone()))),
        ArrowType::LargeBinary
        | ArrowType::BinaryView
        | ArrowType::FixedSizeBinary(_)
        | ArrowType::LargeUtf8
        | ArrowType::Utf8View => exact_cast(array, &ArrowType::Binary),
        _ => Err(mismatch(array, declared)),
    }
}

fn is_integer(t: &ArrowType) -> bool {
    t.is_integer()
}

fn integers(array: &ArrayRef, declared: &FieldType) -> Result<ArrayRef> {
    if !is_integer(array.data_type()) {
        return Err(mismatch(array, declared));
    }
    exact_cast(array, &arrow_type(&declared.data_type))
        .map_err(|e| Error::corrupt(format!("a stored integer does not fit {declared}")).with_source(e))
}

/// Decimals of any width and scale; integers and big-endian bytes are unscaled values.
fn decimals(array: &ArrayRef, declared: &FieldType, precision: u8, scale: u8) -> Result<ArrayRef> {
    let (values, stored_scale): (Decimal128Array, i8) = match array.data_type() {
        ArrowType::Decimal128(_, s) => (downcast::<Decimal128Array>(array)?.clone(), *s),
        ArrowType::Decimal32(_, s) | ArrowType::Decimal64(_, s) => {
            let wide = exact_cast(array, &ArrowType::Decimal128(38, *s))?;
            (downcast::<Decimal128Array>(&wide)?.clone(), *s)
        }
        ArrowType::Decimal256(_, s) => {
            let narrow =
                exact_cast(array, &ArrowType::Decimal128(38, *s)).map_err(|e| too_long(declared).with_source(e))?;
            (downcast::<Decimal128Array>(&narrow)?.clone(), *s)
        }
        t if is_integer(t) => {
            let whole = exact_cast(array, &ArrowType::Int64)?;
            let whole = downcast::<Int64Array>(&whole)?;
            (whole.unary::<_, Decimal128Type>(i128::from), as_scale(scale))
        }
        ArrowType::Binary | ArrowType::FixedSizeBinary(_) => {
            let bytes = exact_cast(array, &ArrowType::Binary)?;
            let bytes = downcast::<BinaryArray>(&bytes)?;
            let mut values = Vec::with_capacity(bytes.len());
            for value in bytes {
                values.push(match value {
                    Some(value) => Some(unscaled(value).ok_or_else(|| too_long(declared))?),
                    None => None,
                });
            }
            (values.into_iter().collect(), as_scale(scale))
        }
        _ => return Err(mismatch(array, declared)),
    };
    let same_scale = stored_scale == as_scale(scale);
    let already = matches!(array.data_type(), ArrowType::Decimal128(p, _) if *p <= precision);
    let values = if same_scale && already {
        values
    } else {
        let stored_scale = u8::try_from(stored_scale).map_err(|_| mismatch(array, declared))?;
        values.try_unary::<_, Decimal128Type, Error>(|v| {
            if same_scale && fits(v, precision) {
                return Ok(v);
            }
            rescale(v, stored_scale, precision, scale).ok_or_else(|| too_long(declared))
        })?
    };
    Ok(Arc::new(values.with_precision_and_scale(precision, as_scale(scale))?))
}

/// Decimals as the type they are given out as; other arrays as they are. A value of more digits is an error, since every
/// text of it would be cut: columns that once held sums can have some.
pub(crate) fn within_precision(array: ArrayRef, given: &ArrowType) -> Result<ArrayRef> {
    let (ArrowType::Decimal128(_, held), ArrowType::Decimal128(precision, scale)) = (array.data_type(), given) else {
        return Ok(array);
    };
    if held != scale {
        return Err(Error::internal(format!("decimals of scale {held} were given for {given}")));
    }
    let values = downcast::<Decimal128Array>(&array)?;
    if let Some(beyond) = values.iter().flatten().find(|value| !fits(*value, *precision)) {
        return Err(Error::corrupt(format!(
            "the file holds {}, which has more digits than DECIMAL({precision}, {scale})",
            Decimal128Type::format_decimal(beyond, u8::MAX, *scale)
        ))
        .with_code("DecimalBeyondPrecision")
        .with_hint(
            "sums can be longer than their type; read a snapshot at which the column was one, or widen the type",
        ));
    }
    if array.data_type() == given {
        return Ok(array);
    }
    Ok(Arc::new(values.clone().with_precision_and_scale(*precision, *scale)?))
}

fn as_scale(scale: u8) -> i8 {
    // a scale is at most 38
    i8::try_from(scale).unwrap_or(i8::MAX)
}

fn too_long(declared: &FieldType) -> Error {
    Error::corrupt(format!("a stored decimal has more digits than {declared}"))
}

fn dates(array: &ArrayRef, declared: &FieldType) -> Result<ArrayRef> {
    match array.data_type() {
        ArrowType::Int32 => Ok(Arc::new(array.as_primitive::<Int32Type>().reinterpret_cast::<Date32Type>())),
        ArrowType::Int64 => {
            let days = exact_cast(array, &ArrowType::Int32)?;
            Ok(Arc::new(days.as_primitive::<Int32Type>().reinterpret_cast::<Date32Type>()))
        }
        ArrowType::Date64 => exact_cast(array, &ArrowType::Date32),
        _ => Err(mismatch(array, declared)),
    }
}

/// Milliseconds of the day; finer units are cut.
fn times(array: &ArrayRef, declared: &FieldType) -> Result<ArrayRef> {
    let millis = |divisor: i64, factor: i64| -> Result<ArrayRef> {
        let counts = exact_cast(&exact_cast(array, &raw_time(array.data_type()))?, &ArrowType::Int64)?;
        let values = counts.as_primitive::<Int64Type>().try_unary::<_, Time32MillisecondType, Error>(|v| {
            v.checked_mul(factor)
                .map(|v| v.div_euclid(divisor))
                .and_then(|v| i32::try_from(v).ok())
                .ok_or_else(|| Error::corrupt(format!("{v} is no time of the day")))
        })?;
        Ok(Arc::new(values))
    };
    match array.data_type() {
        ArrowType::Int32 | ArrowType::Int64 | ArrowType::Time32(TimeUnit::Millisecond) => millis(1, 1),
        ArrowType::Time32(TimeUnit::Second) => millis(1, 1000),
        ArrowType::Time64(TimeUnit::Microsecond) => millis(1000, 1),
        ArrowType::Time64(TimeUnit::Nanosecond) => millis(1_000_000, 1),
        _ => Err(mismatch(array, declared)),
    }
}

/// The integer type under a TIME.
fn raw_time(t: &ArrowType) -> ArrowType {
    match t {
        ArrowType::Time64(_) | ArrowType::Int64 => ArrowType::Int64,
        _ => ArrowType::Int32,
    }
}

/// Nanoseconds in a unit.
fn nanos_per(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// The unit in which a TIMESTAMP of a precision is kept.
fn unit_of(precision: u8) -> TimeUnit {
    match precision {
        0..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

/// Counts of the file's unit as counts of the declared unit: floored, and never wrapped. Whether the file calls them
/// UTC or local does not matter; the declared type does.
fn timestamps(array: &ArrayRef, declared: &FieldType, precision: u8) -> Result<ArrayRef> {
    let to = unit_of(precision);
    let convert = |nanos: i128| -> Result<i64> {
        i64::try_from(nanos.div_euclid(nanos_per(to))).map_err(|_| {
            let millis = i64::try_from(nanos.div_euclid(1_000_000)).unwrap_or(i64::MAX);
            out_of_range(millis, precision)
        })
    };
    let units: PrimitiveArray<Int64Type> = match array.data_type() {
        // ORC gives nanoseconds as DECIMAL(38, 9) of seconds, the only form that holds all of them
        ArrowType::Decimal128(_, 9) => {
            array.as_primitive::<Decimal128Type>().try_unary::<_, Int64Type, Error>(convert)?
        }
        ArrowType::Timestamp(from, _) => {
            let counts = exact_cast(array, &ArrowType::Int64)?;
            let counts = counts.as_primitive::<Int64Type>();
            if *from == to {
                counts.clone()
            } else {
                let unit = nanos_per(*from);
                counts.try_unary::<_, Int64Type, Error>(|v| convert(i128::from(v) * unit))?
            }
        }
        // without annotation the count is in the declared unit
        ArrowType::Int64 => array.as_primitive::<Int64Type>().clone(),
        _ => return Err(mismatch(array, declared)),
    };
    from_units(units, &declared.data_type)
}

fn list(array: &ArrayRef, declared: &FieldType) -> Result<ListArray> {
    match array.data_type() {
        ArrowType::List(_) => Ok(downcast::<ListArray>(array)?.clone()),
        ArrowType::LargeList(field) | ArrowType::FixedSizeList(field, _) => {
            let list = exact_cast(array, &ArrowType::List(Arc::clone(field)))?;
            Ok(downcast::<ListArray>(&list)?.clone())
        }
        _ => Err(mismatch(array, declared)),
    }
}

fn vectors(
    array: &ArrayRef,
    declared: &FieldType,
    item: &FieldType,
    length: u32,
    format: FileFormat,
) -> Result<ArrayRef> {
    let ArrowType::FixedSizeList(field, size) = arrow_type(&declared.data_type) else {
        return Err(mismatch(array, declared));
    };
    let list = list(array, declared)?;
    let (offsets, values) = visible(list.offsets(), list.values())?;
    let values = to_declared(&values, item, format)?;
    let mut at: Vec<Option<u32>> = Vec::new();
    for row in 0..list.len() {
        let (Some(start), Some(end)) = (offsets.get(row), offsets.get(row + 1)) else {
            return Err(Error::internal("a list without offsets"));
        };
        if list.is_null(row) {
            at.extend((0..length).map(|_| None));
            continue;
        }
        if i64::from(end - start) != i64::from(length) {
            return Err(Error::corrupt(format!(
                "a stored vector has {} elements where its schema says {declared}",
                end - start
            )));
        }
        let start = start.unsigned_abs();
        at.extend((0..length).map(|i| Some(start + i)));
    }
    let values = take(&values, &UInt32Array::from(at), None)?;
    let list = FixedSizeListArray::try_new(field, size, values, list.nulls().cloned()).map_err(null_in_not_null)?;
    Ok(Arc::new(list))
}

type MapParts = (OffsetBuffer<i32>, ArrayRef, ArrayRef, Option<NullBuffer>);

/// Keys and values of a map, stored as a map or as a list of `{key, value}`.
fn map_parts(array: &ArrayRef, declared: &FieldType) -> Result<MapParts> {
    let (offsets, entries, nulls) = match array.data_type() {
        ArrowType::Map(..) => {
            let map = downcast::<MapArray>(array)?;
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let (offsets, entries) = visible(map.offsets(), &entries)?;
            (offsets, entries, map.nulls().cloned())
        }
        ArrowType::List(_) | ArrowType::LargeList(_) => {
            let list = list(array, declared)?;
            let (offsets, entries) = visible(list.offsets(), list.values())?;
            (offsets, entries, list.nulls().cloned())
        }
        _ => return Err(mismatch(array, declared)),
    };
    let ArrowType::Struct(fields) = entries.data_type() else { return Err(mismatch(array, declared)) };
    if fields.len() != 2 {
        return Err(mismatch(array, declared));
    }
    let entries = downcast::<StructArray>(&entries)?;
    if entries.null_count() > 0 {
        return Err(Error::corrupt("a stored map has an entry that is null"));
    }
    let swapped = fields.first().is_some_and(|f| f.name() == "value");
    let (key, value) = if swapped { (1, 0) } else { (0, 1) };
    Ok((offsets, Arc::clone(entries.column(key)), Arc::clone(entries.column(value)), nulls))
}

/// A row by the names of the file's schema; a field that is not stored is null.
fn row(array: &ArrayRef, declared: &FieldType, fields: &[DataField], format: FileFormat) -> Result<ArrayRef> {
    let (ArrowType::Struct(_), ArrowType::Struct(targets)) = (array.data_type(), arrow_type(&declared.data_type))
    else {
        return Err(mismatch(array, declared));
    };
    let stored = downcast::<StructArray>(array)?;
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        columns.push(match stored.column_by_name(&field.name) {
            Some(column) => to_declared(column, &field.field_type, format)
                .map_err(|e| e.with_context("nested field", &field.name))?,
            None => new_null_array(&arrow_type(field.data_type()), stored.len()),
        });
    }
    let row = if columns.is_empty() {
        StructArray::new_empty_fields(stored.len(), stored.nulls().cloned())
    } else {
        StructArray::try_new(targets, columns, stored.nulls().cloned()).map_err(null_in_not_null)?
    };
    Ok(Arc::new(row))
}

/// `value` and `metadata`; a shredded variant keeps parts of its value elsewhere and is refused.
fn variant(array: &ArrayRef, declared: &FieldType) -> Result<ArrayRef> {
    let (ArrowType::Struct(fields), ArrowType::Struct(targets)) = (array.data_type(), arrow_type(&declared.data_type))
    else {
        return Err(mismatch(array, declared));
    };
    if let Some(other) = fields.iter().find(|f| !matches!(f.name().as_str(), "value" | "metadata")) {
        return Err(Error::unsupported(format!("the VARIANT is shredded (it stores '{}')", other.name()))
            .with_code("ShreddedVariant")
            .with_hint("leave the column out"));
    }
    let stored = downcast::<StructArray>(array)?;
    let mut columns = Vec::with_capacity(2);
    for target in &targets {
        let column = stored.column_by_name(target.name()).ok_or_else(|| mismatch(array, declared))?;
        columns.push(bytes(column, declared)?);
    }
    Ok(Arc::new(StructArray::try_new(targets, columns, stored.nulls().cloned()).map_err(null_in_not_null)?))
}
