//! `sum` of integers and decimals that fails where the sum is no number of its type. DataFusion's goes on at the other
//! end: a sum of positive numbers comes out negative.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::mem::size_of_val;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowNumericType, AsArray, PrimitiveArray};
use arrow::compute::sum_checked;
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, FieldRef, Int64Type,
    UInt64Type, i256,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};

use super::as_inner;
use super::frames::{Different, Doubles};
use super::groups::{Fold, FoldedGroups};
use crate::error::Error;

/// `sum`: see the module. What DataFusion does with `sum(x + 1)`, counting the ones apart, is not done here: the parts may
/// be in the type where their sum is not.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CheckedSum {
    inner: Sum,
}

/// Types whose sums can leave them.
pub(super) trait Summed: ArrowNumericType + Send {
    /// As a number of the widest type.
    fn wide(value: Self::Native) -> i256;

    /// The number of this type; None when it has none.
    fn narrow(value: i256) -> Option<Self::Native>;

    /// Whether the type has the number, which may have fewer digits than its bits could hold.
    fn fits(_value: Self::Native, _data_type: &DataType) -> bool {
        true
    }
}

impl Summed for Int64Type {
    fn wide(value: i64) -> i256 {
        i256::from_i128(value.into())
    }

    fn narrow(value: i256) -> Option<i64> {
        to_narrow(value)
    }
}

impl Summed for UInt64Type {
    fn wide(value: u64) -> i256 {
        i256::from_i128(value.into())
    }

    fn narrow(value: i256) -> Option<u64> {
        to_narrow(value)
    }
}

/// Decimals of one width.
macro_rules! summed_decimal {
    ($type:ident, $decimal:ident, $native:ty, $wide:expr, $narrow:expr) => {
        impl Summed for $type {
            fn wide(value: $native) -> i256 {
                $wide(value)
            }

            fn narrow(value: i256) -> Option<$native> {
                $narrow(value)
            }

            fn fits(value: $native, data_type: &DataType) -> bool {
                match data_type {
                    DataType::$decimal(precision, _) => $type::is_valid_decimal_precision(value, *precision),
                    _ => true,
                }
            }
        }
    };
}

summed_decimal!(Decimal32Type, Decimal32, i32, |value: i32| i256::from_i128(value.into()), to_narrow);
summed_decimal!(Decimal64Type, Decimal64, i64, |value: i64| i256::from_i128(value.into()), to_narrow);
summed_decimal!(Decimal128Type, Decimal128, i128, i256::from_i128, to_narrow);
summed_decimal!(Decimal256Type, Decimal256, i256, |value| value, Some);

fn to_narrow<N: TryFrom<i128>>(value: i256) -> Option<N> {
    value.to_i128()?.try_into().ok()
}

pub(super) fn beyond(data_type: &DataType) -> Error {
    let (name, way_out) = match data_type {
        DataType::Int64 => ("BIGINT".to_string(), "sum(CAST(x AS DECIMAL(38, 0))) or sum(CAST(x AS DOUBLE))"),
        DataType::UInt64 => ("BIGINT UNSIGNED".to_string(), "sum(CAST(x AS DECIMAL(38, 0))) or sum(CAST(x AS DOUBLE))"),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            (format!("DECIMAL({precision}, {scale})"), "sum(CAST(x AS DOUBLE))")
        }
        other => (other.to_string(), "sum(CAST(x AS DOUBLE))"),
    };
    Error::invalid(format!("the sum is beyond the numbers of {name}, the type it has"))
        .with_code("SumOutOfRange")
        .with_hint(format!("write {way_out}"))
}

fn groups<T: Summed>(data_type: &DataType) -> Box<dyn GroupsAccumulator> {
    let by = Fold::<T> { start: T::Native::ZERO, fits: T::fits, refused: beyond };
    Box::new(FoldedGroups::new(data_type, by, |sum: &mut T::Native, value: T::Native| {
        let (next, fine) = match sum.add_checked(value) {
            Ok(next) => (next, true),
            Err(_) => (*sum, false),
        };
        *sum = next;
        fine
    }))
}

/// A function for the type of a sum that can leave it.
macro_rules! checked {
    ($function:ident($data_type:expr $(, $argument:expr)*), else $otherwise:expr) => {
        match $data_type {
            DataType::Int64 => Ok($function::<Int64Type>($data_type $(, $argument)*)),
            DataType::UInt64 => Ok($function::<UInt64Type>($data_type $(, $argument)*)),
            DataType::Decimal32(..) => Ok($function::<Decimal32Type>($data_type $(, $argument)*)),
            DataType::Decimal64(..) => Ok($function::<Decimal64Type>($data_type $(, $argument)*)),
            DataType::Decimal128(..) => Ok($function::<Decimal128Type>($data_type $(, $argument)*)),
            DataType::Decimal256(..) => Ok($function::<Decimal256Type>($data_type $(, $argument)*)),
            _ => $otherwise,
        }
    };
}

impl AggregateUDFImpl for CheckedSum {
    as_inner!();

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        let wanted = args.return_field.data_type().clone();
        if args.is_distinct {
            let values = self.inner.accumulator(args)?;
            return checked!(distinct(&wanted, values), else Ok(values));
        }
        checked!(rows(&wanted), else self.inner.accumulator(args))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        let wanted = args.return_field.data_type().clone();
        match (args.is_distinct, &wanted) {
            (true, _) => checked!(different(&wanted), else self.inner.create_sliding_accumulator(args)),
            (false, DataType::Float64) => Ok(Doubles::sum()),
            (false, _) => checked!(rows(&wanted), else self.inner.create_sliding_accumulator(args)),
        }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        let wanted = args.return_field.data_type().clone();
        checked!(groups(&wanted), else self.inner.create_groups_accumulator(args))
    }
}

fn rows<T: Summed>(data_type: &DataType) -> Box<dyn Accumulator> {
    Box::new(Rows::<T>::new(data_type))
}

fn different<T: Summed>(data_type: &DataType) -> Box<dyn Accumulator>
where
    T::Native: Hash + Eq,
{
    Box::new(Different::<T>::new(data_type))
}

fn distinct<T: Summed>(data_type: &DataType, values: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
    Box::new(Distinct::<T> { values, data_type: data_type.clone(), of: PhantomData })
}

/// The sum of rows that come, and in a window go. It may leave the type on its way.
struct Rows<T> {
    sum: i256,
    count: u64,
    data_type: DataType,
    of: PhantomData<fn() -> T>,
}

impl<T: Summed> Rows<T> {
    fn new(data_type: &DataType) -> Self {
        Self { sum: i256::ZERO, count: 0, data_type: data_type.clone(), of: PhantomData }
    }

    /// How many values there are, and what they add up to.
    fn of(&self, values: &PrimitiveArray<T>) -> DfResult<(u64, i256)> {
        let count = values.len() - values.null_count();
        let sum = match sum_checked(values) {
            Ok(sum) => sum.map_or(i256::ZERO, T::wide),
            Err(_) => {
                let all = values.iter().flatten().try_fold(i256::ZERO, |sum, value| sum.checked_add(T::wide(value)));
                all.ok_or_else(|| beyond(&self.data_type))?
            }
        };
        Ok((u64::try_from(count).unwrap_or(u64::MAX), sum))
    }
}

impl<T: Summed> fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("sum", &self.sum).field("count", &self.count).finish_non_exhaustive()
    }
}

impl<T: Summed> Accumulator for Rows<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        for values in values {
            let (count, sum) = self.of(values.as_primitive::<T>())?;
            self.sum = self.sum.checked_add(sum).ok_or_else(|| beyond(&self.data_type))?;
            self.count += count;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        for values in values {
            let (count, sum) = self.of(values.as_primitive::<T>())?;
            self.sum = self.sum.checked_sub(sum).ok_or_else(|| beyond(&self.data_type))?;
            self.count -= count;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        if self.count == 0 {
            return ScalarValue::new_primitive::<T>(None, &self.data_type);
        }
        let sum = T::narrow(self.sum).filter(|sum| T::fits(*sum, &self.data_type));
        let sum = sum.ok_or_else(|| beyond(&self.data_type))?;
        ScalarValue::new_primitive::<T>(Some(sum), &self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum of values that are different, which DataFusion's accumulator collects.
struct Distinct<T> {
    values: Box<dyn Accumulator>,
    data_type: DataType,
    of: PhantomData<fn() -> T>,
}

impl<T: Summed> fmt::Debug for Distinct<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distinct").field("values", &self.values).finish_non_exhaustive()
    }
}

impl<T: Summed> Accumulator for Distinct<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        self.values.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        self.values.merge_batch(states)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        self.values.state()
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        let mut sum = Rows::<T>::new(&self.data_type);
        for state in self.values.state()? {
            if let ScalarValue::List(values) = state {
                sum.update_batch(&[Arc::clone(values.values())])?;
            }
        }
        sum.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }
}
