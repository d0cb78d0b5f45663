//! Avro values to Arrow arrays, column by column.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array,
    Int64Array, ListArray, MapArray, NullArray, StringArray, StructArray, Time32MillisecondArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType as ArrowType, Field, Fields};

use super::allowance::Allowance;
use crate::error::{Error, Result};
use crate::spec::avro::{DecimalMeaning, Input, IntMeaning, LongMeaning, Node};
use crate::spec::binary_row::unscaled;

/// The values of one column that are not given out yet.
pub(super) struct Builder {
    values: Values,
    valid: Vec<bool>,
    any_null: bool,
    /// Number of the null branch where the type is a union with null.
    null_branch: Option<i64>,
    /// Bytes that a value takes at least, be it NULL.
    width: usize,
}

enum Values {
    Null,
    Boolean(Vec<bool>),
    Int(IntMeaning, Vec<i32>),
    Long(LongMeaning, Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Decimal(u8, i8, Option<usize>, Vec<i128>),
    Bytes(Option<usize>, Run),
    Text(Run),
    Enum(Arc<[String]>, Run),
    List(Vec<i32>, Box<Builder>),
    Map(Vec<i32>, Run, Box<Builder>),
    Record(Vec<(String, Builder)>),
}

impl Values {
    /// Bytes that a value takes besides the bytes of text and the items of lists.
    fn width(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Boolean(_) => 1,
            Self::Int(..) | Self::Float(_) | Self::Bytes(..) | Self::Text(_) | Self::Enum(..) | Self::List(..) => 4,
            Self::Long(..) | Self::Double(_) => 8,
            Self::Map(..) => 4,
            Self::Decimal(..) => 16,
            Self::Record(fields) => fields.iter().map(|(_, field)| field.width).fold(0, usize::saturating_add),
        }
    }
}

/// Byte strings one behind the other.
struct Run {
    ends: Vec<i32>,
    data: Vec<u8>,
}

impl Run {
    fn new() -> Self {
        Self { ends: vec![0], data: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.data.extend_from_slice(bytes);
        self.ends.push(offset(self.data.len())?);
        Ok(())
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let run = std::mem::replace(self, Self::new());
        (OffsetBuffer::new(run.ends.into()), Buffer::from_vec(run.data))
    }
}

fn offset(length: usize) -> Result<i32> {
    i32::try_from(length).map_err(|_| {
        Error::exhausted("a batch of this column is larger than 2 GiB").with_hint("read with a smaller batch size")
    })
}

impl Builder {
    /// For values of a type.
    ///
    /// # Errors
    /// A union that is not "null or something".
    pub(super) fn new(node: &Node) -> Result<Self> {
        let (node, null_branch) = match node {
            Node::Union(branches) => match branches.as_slice() {
                [Node::Null, other] => (other, Some(0)),
                [other, Node::Null] => (other, Some(1)),
                _ => {
                    return Err(
                        Error::unsupported("an Avro union of several types is not read").with_code("UnsupportedAvro")
                    );
                }
            },
            plain => (plain, None),
        };
        let decimal = |meaning: &DecimalMeaning, size: Option<usize>| match meaning {
            Some((precision, scale)) => Values::Decimal(*precision, *scale, size, Vec::new()),
            None => Values::Bytes(size, Run::new()),
        };
        let values = match node {
            Node::Null => Values::Null,
            Node::Boolean => Values::Boolean(Vec::new()),
            Node::Int(meaning) => Values::Int(*meaning, Vec::new()),
            Node::Long(meaning) => Values::Long(*meaning, Vec::new()),
            Node::Float => Values::Float(Vec::new()),
            Node::Double => Values::Double(Vec::new()),
            Node::Bytes(meaning) => decimal(meaning, None),
            Node::Fixed(size, meaning) => decimal(meaning, Some(*size)),
            Node::Text => Values::Text(Run::new()),
            Node::Enum(symbols) => Values::Enum(Arc::clone(symbols), Run::new()),
            Node::Array(item) => Values::List(vec![0], Box::new(Self::new(item)?)),
            Node::Map(value) => Values::Map(vec![0], Run::new(), Box::new(Self::new(value)?)),
            Node::Record(fields) => {
                let mut builders = Vec::with_capacity(fields.len());
                for (name, field) in fields.iter() {
                    builders.push((name.clone(), Self::new(field)?));
                }
                Values::Record(builders)
            }
            Node::Union(_) => {
                return Err(Error::unsupported("an Avro union in a union is not read").with_code("UnsupportedAvro"));
            }
        };
        let width = 1 + values.width();
        Ok(Self { values, valid: Vec::new(), any_null: false, null_branch, width })
    }

    /// Bytes that a value takes at least, be it NULL.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Rows so far.
    fn len(&self) -> usize {
        self.valid.len()
    }

    /// Room for `items` more of them, asked for before they are read.
    fn expect(&self, items: u64, allowance: &mut Allowance) -> Result<()> {
        offset(self.len().saturating_add(usize::try_from(items).unwrap_or(usize::MAX)))?;
        allowance.build(items, self.width)
    }

    /// Reads one value.
    pub(super) fn read(&mut self, input: &mut Input<'_>, allowance: &mut Allowance) -> Result<()> {
        allowance.repeats.value()?;
        if let Some(null) = self.null_branch {
            match input.long()? {
                branch if branch == null => return self.push_null(),
                0 | 1 => {}
                other => return Err(Error::corrupt(format!("a union of two has no branch {other}"))),
            }
        }
        match &mut self.values {
            Values::Null => return self.push_null(),
            Values::Boolean(values) => values.push(input.boolean()?),
            Values::Int(_, values) => values.push(input.int()?),
            Values::Long(_, values) => values.push(input.long()?),
            Values::Float(values) => values.push(input.float()?),
            Values::Double(values) => values.push(input.double()?),
            Values::Decimal(_, _, size, values) => {
                let bytes = sized(input, *size)?;
                values.push(unscaled(bytes).ok_or_else(|| Error::corrupt("a decimal of more than 16 bytes"))?);
            }
            Values::Bytes(size, run) => run.push(sized(input, *size)?)?,
            Values::Text(run) => run.push(input.bytes()?)?,
            Values::Enum(symbols, run) => {
                let number = input.int()?;
                let symbol = usize::try_from(number).ok().and_then(|at| symbols.get(at));
                run.push(symbol.ok_or_else(|| Error::corrupt(format!("an enum has no symbol {number}")))?.as_bytes())?;
            }
            Values::List(ends, item) => {
                loop {
                    let items = input.items(&allowance.repeats)?;
                    if items == 0 {
                        break;
                    }
                    item.expect(items, allowance)?;
                    for _ in 0..items {
                        item.read(input, allowance)?;
                    }
                }
                ends.push(offset(item.len())?);
            }
            Values::Map(ends, keys, value) => {
                loop {
                    let items = input.items(&allowance.repeats)?;
                    if items == 0 {
                        break;
                    }
                    value.expect(items, allowance)?;
                    for _ in 0..items {
                        keys.push(input.bytes()?)?;
                        value.read(input, allowance)?;
                    }
                }
                ends.push(offset(value.len())?);
            }
            Values::Record(fields) => {
                for (name, field) in fields {
                    field.read(input, allowance).map_err(|e| e.with_context("nested field", name))?;
                }
            }
        }
        self.valid.push(true);
        Ok(())
    }

    fn push_null(&mut self) -> Result<()> {
        match &mut self.values {
            Values::Null => {}
            Values::Boolean(values) => values.push(false),
            Values::Int(_, values) => values.push(0),
            Values::Long(_, values) => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Double(values) => values.push(0.0),
            Values::Decimal(_, _, _, values) => values.push(0),
            Values::Bytes(_, run) | Values::Text(run) | Values::Enum(_, run) => run.push(&[])?,
            Values::List(ends, item) => ends.push(offset(item.len())?),
            Values::Map(ends, _, value) => ends.push(offset(value.len())?),
            Values::Record(fields) => {
                for (_, field) in fields {
                    field.push_null()?;
                }
            }
        }
        self.valid.push(false);
        self.any_null = true;
        Ok(())
    }

    /// The values so far as an array; the builder starts anew.
    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        let rows = self.valid.len();
        let valid = std::mem::take(&mut self.valid);
        let nulls = std::mem::take(&mut self.any_null).then(|| NullBuffer::from(valid));
        let built: ArrayRef = match &mut self.values {
            Values::Null => Arc::new(NullArray::new(rows)),
            Values::Boolean(values) => Arc::new(BooleanArray::new(std::mem::take(values).into(), nulls)),
            Values::Int(meaning, values) => {
                let values = ScalarBuffer::from(std::mem::take(values));
                match meaning {
                    IntMeaning::Plain => Arc::new(Int32Array::new(values, nulls)),
                    IntMeaning::Date => Arc::new(Date32Array::new(values, nulls)),
                    IntMeaning::TimeMillis => Arc::new(Time32MillisecondArray::new(values, nulls)),
                }
            }
            Values::Long(meaning, values) => {
                let values = ScalarBuffer::from(std::mem::take(values));
                match meaning {
                    LongMeaning::Plain => Arc::new(Int64Array::new(values, nulls)),
                    LongMeaning::TimeMicros => Arc::new(Time64MicrosecondArray::new(values, nulls)),
                    LongMeaning::Millis => Arc::new(TimestampMillisecondArray::new(values, nulls)),
                    LongMeaning::Micros => Arc::new(TimestampMicrosecondArray::new(values, nulls)),
                    LongMeaning::Nanos => Arc::new(TimestampNanosecondArray::new(values, nulls)),
                }
            }
            Values::Float(values) => Arc::new(Float32Array::new(std::mem::take(values).into(), nulls)),
            Values::Double(values) => Arc::new(Float64Array::new(std::mem::take(values).into(), nulls)),
            Values::Decimal(precision, scale, _, values) => Arc::new(
                Decimal128Array::new(std::mem::take(values).into(), nulls)
                    .with_precision_and_scale(*precision, *scale)
                    .map_err(damage)?,
            ),
            Values::Bytes(_, run) => {
                let (offsets, data) = run.take();
                Arc::new(BinaryArray::try_new(offsets, data, nulls).map_err(damage)?)
            }
            Values::Text(run) | Values::Enum(_, run) => Arc::new(text(run, nulls)?),
            Values::List(ends, item) => {
                let values = item.finish()?;
                let offsets = OffsetBuffer::new(std::mem::replace(ends, vec![0]).into());
                let field = Arc::new(Field::new("item", values.data_type().clone(), true));
                Arc::new(ListArray::try_new(field, offsets, values, nulls).map_err(damage)?)
            }
            Values::Map(ends, keys, value) => {
                let keys: ArrayRef = Arc::new(text(keys, None)?);
                let values = value.finish()?;
                let fields = Fields::from(vec![
                    Field::new("key", ArrowType::Utf8, false),
                    Field::new("value", values.data_type().clone(), true),
                ]);
                let entries = StructArray::try_new(fields.clone(), vec![keys, values], None).map_err(damage)?;
                let offsets = OffsetBuffer::new(std::mem::replace(ends, vec![0]).into());
                let field = Arc::new(Field::new("entries", ArrowType::Struct(fields), false));
                Arc::new(MapArray::try_new(field, offsets, entries, nulls, false).map_err(damage)?)
            }
            Values::Record(fields) if fields.is_empty() => Arc::new(StructArray::new_empty_fields(rows, nulls)),
            Values::Record(fields) => {
                let mut types = Vec::with_capacity(fields.len());
                let mut columns = Vec::with_capacity(fields.len());
                for (name, field) in fields {
                    let column = field.finish()?;
                    types.push(Field::new(name.as_str(), column.data_type().clone(), true));
                    columns.push(column);
                }
                Arc::new(StructArray::try_new(Fields::from(types), columns, nulls).map_err(damage)?)
            }
        };
        Ok(built)
    }
}

fn sized<'a>(input: &mut Input<'a>, size: Option<usize>) -> Result<&'a [u8]> {
    match size {
        Some(size) => input.take(size),
        None => input.bytes(),
    }
}

fn text(run: &mut Run, nulls: Option<NullBuffer>) -> Result<StringArray> {
    let (offsets, data) = run.take();
    StringArray::try_new(offsets, data, nulls).map_err(|e| Error::corrupt("stored text is not UTF-8").with_source(e))
}

fn damage(error: arrow::error::ArrowError) -> Error {
    Error::corrupt(format!("stored values do not fit together: {error}"))
}
