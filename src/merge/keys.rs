//! Keys of a batch in a form that compares fast, across batches.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Int32Type, Int64Type, Time32MillisecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow::row::{RowConverter, Rows, SortField};

use super::compare::canonical_keys;
use crate::error::{Error, Result};

/// Turns key columns into [`Keys`]. All batches of a merge go through one encoder, so their keys have one form.
#[derive(Debug)]
pub(super) struct KeyEncoder {
    types: Vec<DataType>,
    converter: Option<RowConverter>,
}

/// Keys of the rows of one batch. Keys of one encoder compare; the order is nulls first, numbers by value, NaN last, text
/// and binaries bytewise, column by column.
#[derive(Debug)]
pub(super) enum Keys {
    /// One column of at most 32 bits.
    Ints32(ScalarBuffer<i32>, Option<NullBuffer>),
    /// One column of 64 bits.
    Ints64(ScalarBuffer<i64>, Option<NullBuffer>),
    /// One decimal column.
    Ints128(ScalarBuffer<i128>, Option<NullBuffer>),
    /// One column of text or bytes.
    Bytes(OffsetBuffer<i32>, Buffer, Option<NullBuffer>),
    /// Anything else: encoded rows.
    Rows(Box<Rows>),
}

impl KeyEncoder {
    /// An encoder for key columns of these types.
    pub(super) fn try_new(types: Vec<DataType>) -> Result<Self> {
        let fast = match types.as_slice() {
            [] => return Err(Error::internal("a merge needs a key")),
            [only] => matches!(
                only,
                DataType::Boolean
                    | DataType::Int8
                    | DataType::Int16
                    | DataType::Int32
                    | DataType::Int64
                    | DataType::Date32
                    | DataType::Time32(TimeUnit::Millisecond)
                    | DataType::Timestamp(..)
                    | DataType::Decimal128(..)
                    | DataType::Utf8
                    | DataType::Binary
            ),
            _ => false,
        };
        let converter = if fast {
            None
        } else {
            Some(RowConverter::new(types.iter().map(|data_type| SortField::new(data_type.clone())).collect())?)
        };
        Ok(Self { types, converter })
    }

    /// An encoder for keys like these.
    pub(super) fn of(columns: &[ArrayRef]) -> Result<Self> {
        Self::try_new(columns.iter().map(|column| column.data_type().clone()).collect())
    }

    /// The keys of a batch.
    pub(super) fn encode(&self, columns: &[ArrayRef]) -> Result<Keys> {
        if columns.len() != self.types.len() || columns.iter().zip(&self.types).any(|(c, t)| c.data_type() != t) {
            return Err(Error::internal(format!(
                "key columns of types {:?} came as {:?}",
                self.types,
                columns.iter().map(|column| column.data_type().clone()).collect::<Vec<_>>()
            )));
        }
        if let Some(converter) = &self.converter {
            let columns: Vec<ArrayRef> = columns.iter().map(canonical_keys).collect();
            return Ok(Keys::Rows(Box::new(converter.convert_columns(&columns)?)));
        }
        let Some(column) = columns.first() else { return Err(Error::internal("a merge needs a key")) };
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        Ok(match column.data_type() {
            DataType::Boolean | DataType::Int8 | DataType::Int16 => {
                let wide = cast(column, &DataType::Int32)?;
                Keys::Ints32(wide.as_primitive::<Int32Type>().values().clone(), nulls)
            }
            DataType::Int32 => Keys::Ints32(column.as_primitive::<Int32Type>().values().clone(), nulls),
            DataType::Date32 => Keys::Ints32(column.as_primitive::<Date32Type>().values().clone(), nulls),
            DataType::Time32(_) => Keys::Ints32(column.as_primitive::<Time32MillisecondType>().values().clone(), nulls),
            DataType::Int64 => Keys::Ints64(column.as_primitive::<Int64Type>().values().clone(), nulls),
            DataType::Timestamp(unit, _) => {
                let values = match unit {
                    TimeUnit::Second => column.as_primitive::<TimestampSecondType>().values(),
                    TimeUnit::Millisecond => column.as_primitive::<TimestampMillisecondType>().values(),
                    TimeUnit::Microsecond => column.as_primitive::<TimestampMicrosecondType>().values(),
                    TimeUnit::Nanosecond => column.as_primitive::<TimestampNanosecondType>().values(),
                };
                Keys::Ints64(values.clone(), nulls)
            }
            DataType::Decimal128(..) => Keys::Ints128(column.as_primitive::<Decimal128Type>().values().clone(), nulls),
            DataType::Utf8 => {
                let text = column.as_string::<i32>();
                Keys::Bytes(text.offsets().clone(), text.values().clone(), nulls)
            }
            DataType::Binary => {
                let bytes = column.as_binary::<i32>();
                Keys::Bytes(bytes.offsets().clone(), bytes.values().clone(), nulls)
            }
            other => return Err(Error::internal(format!("no key form for {other}"))),
        })
    }
}

impl Keys {
    /// Rows.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Ints32(values, _) => values.len(),
            Self::Ints64(values, _) => values.len(),
            Self::Ints128(values, _) => values.len(),
            Self::Bytes(offsets, ..) => offsets.len().saturating_sub(1),
            Self::Rows(rows) => rows.num_rows(),
        }
    }

    /// Bytes held beyond those of the key columns.
    pub(super) fn extra_bytes(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.size(),
            _ => 0,
        }
    }

    /// Compares two keys of one encoder.
    #[inline]
    pub(super) fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering {
        match (self, other) {
            (Self::Ints32(a, n), Self::Ints32(b, m)) => compare_nullable(a[i], n, i, b[j], m, j),
            (Self::Ints64(a, n), Self::Ints64(b, m)) => compare_nullable(a[i], n, i, b[j], m, j),
            (Self::Ints128(a, n), Self::Ints128(b, m)) => compare_nullable(a[i], n, i, b[j], m, j),
            (Self::Bytes(o, a, n), Self::Bytes(p, b, m)) => {
                compare_nullable(slice(o, a, i), n, i, slice(p, b, j), m, j)
            }
            (Self::Rows(a), Self::Rows(b)) => a.row(i).cmp(&b.row(j)),
            // one encoder gives one form
            _ => Ordering::Equal,
        }
    }

    /// The first row whose key is not larger than its predecessor's.
    pub(super) fn first_disorder(&self) -> Option<usize> {
        match self {
            Self::Ints32(values, None) => values.windows(2).position(|pair| pair[0] >= pair[1]).map(|at| at + 1),
            Self::Ints64(values, None) => values.windows(2).position(|pair| pair[0] >= pair[1]).map(|at| at + 1),
            _ => (1..self.len()).find(|&row| self.compare(row - 1, self, row).is_ge()),
        }
    }

    /// The first row in `from..to` whose key is not below key `j` of `other`, or `to`. Gallops: cheap when it is near.
    pub(super) fn lower_bound(&self, from: usize, to: usize, other: &Self, j: usize) -> usize {
        let mut low = from;
        let mut step = 1;
        let mut high = to;
        while low < to {
            let probe = (low + step - 1).min(to - 1);
            if self.compare(probe, other, j).is_lt() {
                low = probe + 1;
                step *= 2;
            } else {
                high = probe;
                break;
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.compare(middle, other, j).is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[inline]
fn slice<'a>(offsets: &OffsetBuffer<i32>, data: &'a Buffer, row: usize) -> &'a [u8] {
    // offsets of an arrow array are ascending, inside the data and not negative
    let (from, to) = (offsets[row] as usize, offsets[row + 1] as usize);
    &data[from..to]
}

#[inline]
fn compare_nullable<T: Ord>(
    a: T,
    a_nulls: &Option<NullBuffer>,
    i: usize,
    b: T,
    b_nulls: &Option<NullBuffer>,
    j: usize,
) -> Ordering {
    if a_nulls.is_none() && b_nulls.is_none() {
        return a.cmp(&b);
    }
    let a_null = a_nulls.as_ref().is_some_and(|nulls| nulls.is_null(i));
    let b_null = b_nulls.as_ref().is_some_and(|nulls| nulls.is_null(j));
    match (a_null, b_null) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(&b),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int64Array,
        StringArray, Time32MillisecondArray, TimestampMicrosecondArray,
    };

    use super::*;

    fn keys(columns: &[ArrayRef]) -> Keys {
        let types = columns.iter().map(|column| column.data_type().clone()).collect();
        KeyEncoder::try_new(types).unwrap().encode(columns).unwrap()
    }

    /// Every form agrees with the order the columns are written in: strictly increasing.
    #[test]
    fn every_type_sorts_nulls_first_and_by_value() {
        let ascending: Vec<ArrayRef> = vec![
            Arc::new(BooleanArray::from(vec![None, Some(false), Some(true)])),
            Arc::new(Int8Array::from(vec![None, Some(-128), Some(-1), Some(0), Some(127)])),
            Arc::new(Int64Array::from(vec![None, Some(i64::MIN), Some(-1), Some(0), Some(i64::MAX)])),
            Arc::new(Date32Array::from(vec![None, Some(-1), Some(0), Some(19_724)])),
            Arc::new(Time32MillisecondArray::from(vec![None, Some(0), Some(1)])),
            Arc::new(TimestampMicrosecondArray::from(vec![None, Some(-1), Some(0)])),
            Arc::new(Decimal128Array::from(vec![None, Some(i128::MIN / 4), Some(-1), Some(0), Some(i128::MAX / 4)])),
            Arc::new(StringArray::from(vec![None, Some(""), Some("a"), Some("a\0"), Some("b"), Some("\u{10000}")])),
            Arc::new(BinaryArray::from_opt_vec(vec![None, Some(b""), Some(b"\x00"), Some(b"\x7f"), Some(b"\xff")])),
            Arc::new(Float32Array::from(vec![None, Some(f32::NEG_INFINITY), Some(-0.0), Some(1e-40), Some(-f32::NAN)])),
            Arc::new(Float64Array::from(vec![None, Some(-1.0), Some(-0.0), Some(5e-324), Some(f64::NAN)])),
        ];
        for column in ascending {
            let keys = keys(std::slice::from_ref(&column));
            assert_eq!(keys.first_disorder(), None, "{}", column.data_type());
            // and in a composite key, where rows are encoded
            let tail: ArrayRef = Arc::new(Int8Array::from(vec![7; column.len()]));
            let composite = self::keys(&[column.clone(), tail]);
            assert_eq!(composite.first_disorder(), None, "{} in a composite key", column.data_type());
        }
    }

    #[test]
    fn both_zeros_are_one_key_and_so_are_all_nans() {
        let zeros: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, 0.0]));
        assert_eq!(keys(&[zeros]).first_disorder(), Some(1));
        let nans: ArrayRef = Arc::new(Float32Array::from(vec![f32::NAN, -f32::NAN]));
        let nans = keys(&[nans]);
        assert!(nans.compare(0, &nans, 1).is_eq());
        // rows of one file, as a writer sorts them for whom both zeros are equal
        let first: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, 0.0]));
        let second: ArrayRef = Arc::new(Int8Array::from(vec![1, 2, 3]));
        assert_eq!(keys(&[first, second]).first_disorder(), None);
    }

    #[test]
    fn disorder_is_found_and_equal_keys_are_disorder() {
        let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        assert_eq!(keys(&[column(vec![1, 2, 2, 3])]).first_disorder(), Some(2));
        assert_eq!(keys(&[column(vec![1, 2, 1])]).first_disorder(), Some(2));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["b", "a"]));
        assert_eq!(keys(&[text]).first_disorder(), Some(1));
    }

    #[test]
    fn lower_bound_finds_the_first_key_not_below() {
        let column: ArrayRef = Arc::new(Int64Array::from((0..100).map(|x| x * 2).collect::<Vec<_>>()));
        let keys = keys(&[column]);
        for wanted in 0..200_i64 {
            let one: ArrayRef = Arc::new(Int64Array::from(vec![wanted]));
            let one = self::keys(&[one]);
            let expected = usize::try_from((wanted + 1) / 2).unwrap().clamp(10, 90);
            assert_eq!(keys.lower_bound(10, 90, &one, 0), expected, "{wanted}");
        }
    }
}
