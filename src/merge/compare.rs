//! Order of two values of one column: nulls first, text and binaries bytewise, floats in one of two ways.
//!
//! | compares | -0.0 and 0.0 | NaN | source |
//! |---|---|---|---|
//! | values: `max`, `min` | -0.0 is less | the largest, equal to itself | Java's `Double.compare` |
//! | sequence fields | equal | equal to every number | the comparators Java generates: `a > b ? 1 : a < b ? -1 : 0` |
//! | keys | equal | the largest, equal to itself | the same; but what has no order cannot be sorted |

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};

/// -0.0 < 0.0; NaN is the largest and equal to itself.
pub(super) fn java_order_f32(a: f32, b: f32) -> Ordering {
    let canonical = |x: f32| if x.is_nan() { f32::NAN } else { x };
    canonical(a).total_cmp(&canonical(b))
}

/// -0.0 < 0.0; NaN is the largest and equal to itself.
pub(super) fn java_order_f64(a: f64, b: f64) -> Ordering {
    let canonical = |x: f64| if x.is_nan() { f64::NAN } else { x };
    canonical(a).total_cmp(&canonical(b))
}

/// Whether [`compare_values`] knows the type.
pub(super) fn is_comparable(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal128(..)
            | DataType::Date32
            | DataType::Time32(TimeUnit::Millisecond)
            | DataType::Timestamp(..)
            | DataType::Utf8
            | DataType::Binary
    )
}

/// Compares two values of sequence fields, as [`compare_values`] does all others. Not transitive where NaN occurs: it
/// ties with everything.
pub(super) fn compare_sequence(a: &dyn Array, i: usize, b: &dyn Array, j: usize) -> Ordering {
    if a.is_valid(i) && b.is_valid(j) {
        let order = match a.data_type() {
            DataType::Float32 => {
                Some(a.as_primitive::<Float32Type>().value(i).partial_cmp(&b.as_primitive::<Float32Type>().value(j)))
            }
            DataType::Float64 => {
                Some(a.as_primitive::<Float64Type>().value(i).partial_cmp(&b.as_primitive::<Float64Type>().value(j)))
            }
            _ => None,
        };
        if let Some(order) = order {
            return order.unwrap_or(Ordering::Equal);
        }
    }
    compare_values(a, i, b, j)
}

/// Compares two values of arrays of one type, for which [`is_comparable`] holds. Nulls are lowest.
pub(super) fn compare_values(a: &dyn Array, i: usize, b: &dyn Array, j: usize) -> Ordering {
    match (a.is_null(i), b.is_null(j)) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        (false, false) => {}
    }
    match a.data_type() {
        DataType::Boolean => a.as_boolean().value(i).cmp(&b.as_boolean().value(j)),
        DataType::Int8 => compare_natives::<Int8Type>(a, i, b, j),
        DataType::Int16 => compare_natives::<Int16Type>(a, i, b, j),
        DataType::Int32 => compare_natives::<Int32Type>(a, i, b, j),
        DataType::Int64 => compare_natives::<Int64Type>(a, i, b, j),
        DataType::Date32 => compare_natives::<Date32Type>(a, i, b, j),
        DataType::Time32(TimeUnit::Millisecond) => compare_natives::<Time32MillisecondType>(a, i, b, j),
        DataType::Timestamp(TimeUnit::Second, _) => compare_natives::<TimestampSecondType>(a, i, b, j),
        DataType::Timestamp(TimeUnit::Millisecond, _) => compare_natives::<TimestampMillisecondType>(a, i, b, j),
        DataType::Timestamp(TimeUnit::Microsecond, _) => compare_natives::<TimestampMicrosecondType>(a, i, b, j),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => compare_natives::<TimestampNanosecondType>(a, i, b, j),
        DataType::Decimal128(..) => compare_natives::<Decimal128Type>(a, i, b, j),
        DataType::Float32 => {
            java_order_f32(a.as_primitive::<Float32Type>().value(i), b.as_primitive::<Float32Type>().value(j))
        }
        DataType::Float64 => {
            java_order_f64(a.as_primitive::<Float64Type>().value(i), b.as_primitive::<Float64Type>().value(j))
        }
        DataType::Utf8 => a.as_string::<i32>().value(i).as_bytes().cmp(b.as_string::<i32>().value(j).as_bytes()),
        DataType::Binary => a.as_binary::<i32>().value(i).cmp(b.as_binary::<i32>().value(j)),
        _ => Ordering::Equal,
    }
}

fn compare_natives<T: ArrowPrimitiveType>(a: &dyn Array, i: usize, b: &dyn Array, j: usize) -> Ordering
where
    T::Native: Ord,
{
    a.as_primitive::<T>().value(i).cmp(&b.as_primitive::<T>().value(j))
}

/// The keys with every NaN and every zero in one form, so that bytewise encodings of equal keys are equal and NaN sorts
/// last.
pub fn canonical_keys(array: &ArrayRef) -> ArrayRef {
    // adding zero turns -0.0 into 0.0
    match array.data_type() {
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            std::sync::Arc::new(values.unary::<_, Float32Type>(|x| if x.is_nan() { f32::NAN } else { x + 0.0 }))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            std::sync::Arc::new(values.unary::<_, Float64Type>(|x| if x.is_nan() { f64::NAN } else { x + 0.0 }))
        }
        _ => ArrayRef::clone(array),
    }
}

/// The array with every NaN in one form, so that bytewise encodings of equal values are equal.
pub(super) fn canonical_nans(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            std::sync::Arc::new(values.unary::<_, Float32Type>(|x| if x.is_nan() { f32::NAN } else { x }))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            std::sync::Arc::new(values.unary::<_, Float64Type>(|x| if x.is_nan() { f64::NAN } else { x }))
        }
        _ => ArrayRef::clone(array),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, StringArray};

    use super::*;

    #[test]
    fn negative_zero_is_less_than_zero_and_nan_is_largest() {
        let negative_nan = f64::from_bits(0xfff8_0000_0000_0001);
        let array = Float64Array::from(vec![None, Some(-0.0), Some(0.0), Some(f64::INFINITY), Some(negative_nan)]);
        for i in 1..array.len() {
            assert!(compare_values(&array, i - 1, &array, i).is_lt(), "{i}");
        }
        assert!(java_order_f64(negative_nan, f64::NAN).is_eq());
        assert!(java_order_f32(-f32::NAN, f32::NAN).is_eq());
    }

    #[test]
    fn zeros_tie_and_nan_ties_with_everything_in_sequence_fields() {
        let array = Float64Array::from(vec![None, Some(-0.0), Some(0.0), Some(1.0), Some(f64::NAN)]);
        let order = |i: usize, j: usize| compare_sequence(&array, i, &array, j);
        assert!(order(1, 2).is_eq() && order(2, 3).is_lt() && order(3, 1).is_gt());
        assert!((1..5).all(|i| order(i, 4).is_eq() && order(4, i).is_eq() && order(0, i).is_lt()));
        let array = arrow::array::Float32Array::from(vec![-0.0, 0.0, f32::NAN]);
        assert!((0..3).all(|i| (0..3).all(|j| compare_sequence(&array, i, &array, j).is_eq())));
    }

    #[test]
    fn text_compares_by_bytes_not_by_utf16() {
        let array = StringArray::from(vec!["\u{ffff}", "\u{10000}"]);
        assert!(compare_values(&array, 0, &array, 1).is_lt());
    }

    #[test]
    fn nans_get_one_form() {
        let array: ArrayRef = Arc::new(Float64Array::from(vec![f64::from_bits(0xfff8_0000_0000_0001), 1.0]));
        let canonical = canonical_nans(&array);
        assert_eq!(canonical.as_primitive::<Float64Type>().value(0).to_bits(), f64::NAN.to_bits());
    }
}
