//! Functions that comparisons of two states are made of: which columns differ, and a form of values that is equal where
//! they are.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, ListArray, ListBuilder, MapArray, StringBuilder, StructArray,
    UInt32Array, make_comparator,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{SortOptions, take};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Float32Type, Float64Type};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

const CHANGED_COLUMNS: &str = "changed_columns";
const COMPARED_FORM: &str = "compared_form";
const IN_ANY_ORDER: &str = "in_any_order";

/// Which columns differ between two rows: `changed_columns(before_a, after_a, before_b, after_b, …)`. NULL equals NULL,
/// NaN equals NaN, 0.0 equals -0.0; maps are equal when they have the same entries, in any order.
pub(crate) fn changed_columns(names: Vec<String>) -> ScalarUDF {
    let signature = if names.is_empty() {
        Signature::nullary(Volatility::Immutable)
    } else {
        Signature::any(names.len() * 2, Volatility::Immutable)
    };
    ScalarUDF::new_from_impl(ChangedColumns { names, signature })
}

/// `compared_form(value)`: equal for values that are equal, and of a type that can be grouped and joined by, which a map
/// is not.
pub(crate) fn compared_form() -> ScalarUDF {
    ScalarUDF::new_from_impl(ComparedForm { signature: Signature::any(1, Volatility::Immutable) })
}

/// `in_any_order(list)`: equal for lists of the same elements, each as often, in whatever order.
pub(crate) fn in_any_order() -> ScalarUDF {
    ScalarUDF::new_from_impl(InAnyOrder { signature: Signature::any(1, Volatility::Immutable) })
}

/// What another process needs to know of one of these functions; None for other functions.
#[cfg(feature = "codec")]
pub(super) fn state_of(function: &ScalarUDF) -> Option<Vec<String>> {
    if let Some(changed) = function.inner().downcast_ref::<ChangedColumns>() {
        return Some(changed.names.clone());
    }
    let plain = function.inner().is::<ComparedForm>() || function.inner().is::<InAnyOrder>();
    plain.then(Vec::new)
}

/// The function of a name; None when it is none of these.
#[cfg(feature = "codec")]
pub(super) fn of_state(name: &str, state: Vec<String>) -> Option<ScalarUDF> {
    match name {
        CHANGED_COLUMNS => Some(changed_columns(state)),
        COMPARED_FORM => Some(compared_form()),
        IN_ANY_ORDER => Some(in_any_order()),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ChangedColumns {
    names: Vec<String>,
    signature: Signature,
}

impl ScalarUDFImpl for ChangedColumns {
    fn name(&self) -> &'static str {
        CHANGED_COLUMNS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let rows = arguments.number_rows;
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let mut differ: Vec<(&str, Vec<bool>)> = Vec::new();
        for (name, pair) in self.names.iter().zip(arrays.chunks(2)) {
            let [before, after] = pair else {
                return Err(DataFusionError::Internal("columns come in pairs".into()));
            };
            differ.push((name, differences(before, after)?));
        }
        // scalars only: one row stands for all
        let length = differ.first().map_or(rows, |(_, d)| d.len());
        let mut list = ListBuilder::new(StringBuilder::new());
        for row in 0..length {
            for (name, differs) in &differ {
                if differs.get(row).copied().unwrap_or(false) {
                    list.values().append_value(name);
                }
            }
            list.append(true);
        }
        Ok(ColumnarValue::Array(Arc::new(list.finish())))
    }
}

fn differences(before: &ArrayRef, after: &ArrayRef) -> DfResult<Vec<bool>> {
    let rows = before.len().min(after.len());
    if before.data_type() != after.data_type() {
        return Err(DataFusionError::Internal("sides of a comparison differ in type".into()));
    }
    let (before, after) = (compared(before)?, compared(after)?);
    match make_comparator(before.as_ref(), after.as_ref(), SortOptions::default()) {
        Ok(compare) => Ok((0..rows).map(|row| compare(row, row).is_ne()).collect()),
        // types without an order still have equality
        Err(_) => Ok((0..rows).map(|row| before.slice(row, 1).to_data() != after.slice(row, 1).to_data()).collect()),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ComparedForm {
    signature: Signature,
}

impl ScalarUDFImpl for ComparedForm {
    fn name(&self) -> &'static str {
        COMPARED_FORM
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> DfResult<DataType> {
        match arguments {
            [argument] => Ok(compared_type(argument)),
            _ => Err(DataFusionError::Internal("one value has a compared form".into())),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        match ColumnarValue::values_to_arrays(&arguments.args)?.as_slice() {
            [array] => Ok(ColumnarValue::Array(compared(array)?)),
            _ => Err(DataFusionError::Internal("one value has a compared form".into())),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InAnyOrder {
    signature: Signature,
}

impl ScalarUDFImpl for InAnyOrder {
    fn name(&self) -> &'static str {
        IN_ANY_ORDER
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> DfResult<DataType> {
        match arguments {
            [argument] => Ok(compared_type(argument)),
            _ => Err(DataFusionError::Internal("one list is ordered".into())),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        match ColumnarValue::values_to_arrays(&arguments.args)?.as_slice() {
            [array] => Ok(ColumnarValue::Array(ordered(&compared(array)?)?)),
            _ => Err(DataFusionError::Internal("one list is ordered".into())),
        }
    }
}

/// Lists with their elements in order; as they are where elements have none.
fn ordered(array: &ArrayRef) -> DfResult<ArrayRef> {
    let DataType::List(item) = array.data_type() else { return Ok(Arc::clone(array)) };
    let list = array.as_list::<i32>();
    let Ok(order) = make_comparator(list.values(), list.values(), SortOptions::default()) else {
        return Ok(Arc::clone(array));
    };
    let (sorted, lengths) = sorted_within(list.offsets(), list.nulls(), order);
    let values = take(list.values(), &sorted, None)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, list.nulls().cloned())?))
}

/// The places of the elements of each list, in order, and how many each has.
fn sorted_within(
    offsets: &OffsetBuffer<i32>,
    nulls: Option<&NullBuffer>,
    order: impl Fn(usize, usize) -> Ordering,
) -> (UInt32Array, Vec<usize>) {
    let mut sorted: Vec<u32> = Vec::new();
    let mut lengths = Vec::with_capacity(offsets.len());
    for (row, bounds) in offsets.windows(2).enumerate() {
        let first = sorted.len();
        if let [start, end] = bounds
            && nulls.is_none_or(|nulls| nulls.is_valid(row))
        {
            sorted.extend((*start..*end).filter_map(|at| u32::try_from(at).ok()));
        }
        if let Some(own) = sorted.get_mut(first..) {
            own.sort_by(|a, b| order(*a as usize, *b as usize));
        }
        lengths.push(sorted.len() - first);
    }
    (UInt32Array::from(sorted), lengths)
}

/// The type of [`compared`]: maps are lists of entries.
pub(crate) fn compared_type(data_type: &DataType) -> DataType {
    let inner = |field: &FieldRef| -> FieldRef {
        Arc::new(field.as_ref().clone().with_data_type(compared_type(field.data_type())))
    };
    match data_type {
        DataType::List(item) => DataType::List(inner(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(inner(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, _) => DataType::List(inner(entries)),
        other => other.clone(),
    }
}

/// Values in a form that is the same for equal ones: entries of maps by key, one zero and one NaN.
pub(crate) fn compared(array: &ArrayRef) -> DfResult<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float32 => {
            let one = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(one)) as ArrayRef
        }
        DataType::Float64 => {
            let one = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(one))
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let DataType::List(item) = compared_type(array.data_type()) else { return Err(odd(array)) };
            Arc::new(ListArray::try_new(item, list.offsets().clone(), compared(list.values())?, list.nulls().cloned())?)
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let DataType::FixedSizeList(item, length) = compared_type(array.data_type()) else {
                return Err(odd(array));
            };
            let start = usize::try_from(list.value_offset(0)).map_err(|_| odd(array))?;
            let width = usize::try_from(length).map_err(|_| odd(array))?;
            let values = compared(&list.values().slice(start, width * list.len()))?;
            Arc::new(FixedSizeListArray::try_new(item, length, values, list.nulls().cloned())?)
        }
        DataType::Struct(_) => {
            let row = array.as_struct();
            let DataType::Struct(fields) = compared_type(array.data_type()) else { return Err(odd(array)) };
            Arc::new(row_of(fields, row.columns(), row)?)
        }
        DataType::Map(..) => by_key(array.as_map())?,
        _ => Arc::clone(array),
    })
}

fn odd(array: &ArrayRef) -> DataFusionError {
    DataFusionError::Internal(format!("{} has another compared form than was told", array.data_type()))
}

fn row_of(fields: Fields, columns: &[ArrayRef], row: &StructArray) -> DfResult<StructArray> {
    let columns = columns.iter().map(compared).collect::<DfResult<Vec<_>>>()?;
    Ok(if columns.is_empty() {
        StructArray::new_empty_fields(row.len(), row.nulls().cloned())
    } else {
        StructArray::try_new(fields, columns, row.nulls().cloned())?
    })
}

/// Maps as lists of their entries, by key; of equal keys by value.
fn by_key(map: &MapArray) -> DfResult<ArrayRef> {
    let DataType::List(item) = compared_type(map.data_type()) else {
        return Err(DataFusionError::Internal("the compared form of a map is a list".into()));
    };
    let DataType::Struct(fields) = item.data_type() else {
        return Err(DataFusionError::Internal("the entries of a map are rows".into()));
    };
    let entries = row_of(fields.clone(), map.entries().columns(), map.entries())?;
    let [keys, values] = entries.columns() else {
        return Err(DataFusionError::Internal("an entry of a map has a key and a value".into()));
    };
    let order = SortOptions::default();
    let (key, value) = (make_comparator(keys, keys, order)?, make_comparator(values, values, order)?);
    let (sorted, lengths) = sorted_within(map.offsets(), map.nulls(), |a, b| key(a, b).then_with(|| value(a, b)));
    let entries = take(&entries, &sorted, None)?;
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), entries, map.nulls().cloned())?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, Float64Array, Int32Array, Int32Builder, MapBuilder, StringArray};
    use arrow::datatypes::Int32Type;
    use datafusion::common::config::ConfigOptions;

    use super::*;

    fn call(function: &ScalarUDF, arrays: Vec<ArrayRef>) -> ArrayRef {
        let types: Vec<DataType> = arrays.iter().map(|a| a.data_type().clone()).collect();
        let fields: Vec<FieldRef> = types.iter().map(|t| Arc::new(Field::new("x", t.clone(), true))).collect();
        let number_rows = arrays[0].len();
        let result = function.invoke_with_args(ScalarFunctionArgs {
            args: arrays.into_iter().map(ColumnarValue::Array).collect(),
            arg_fields: fields,
            number_rows,
            return_field: Arc::new(Field::new("r", function.return_type(&types).unwrap(), true)),
            config_options: Arc::new(ConfigOptions::default()),
        });
        let ColumnarValue::Array(array) = result.unwrap() else { panic!("an array") };
        assert_eq!(array.data_type(), &function.return_type(&types).unwrap());
        array
    }

    fn changed(names: &[&str], arrays: Vec<ArrayRef>) -> Vec<Vec<String>> {
        let array = call(&changed_columns(names.iter().map(|name| (*name).to_string()).collect()), arrays);
        let row = |value: Option<ArrayRef>| -> Vec<String> {
            let value = value.unwrap();
            let value = value.as_any().downcast_ref::<StringArray>().unwrap();
            value.iter().flatten().map(str::to_string).collect()
        };
        array.as_list::<i32>().iter().map(row).collect()
    }

    #[test]
    fn null_equals_null_nan_equals_nan_and_zero_equals_zero() {
        let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![None, Some(1), Some(1), None])),
            Arc::new(Int32Array::from(vec![None, None, Some(1), None])),
            Arc::new(Float64Array::from(vec![f64::NAN, 1.0, 2.0, 0.0])),
            Arc::new(Float64Array::from(vec![-other_nan, 2.0, 2.0, -0.0])),
            Arc::new(Float32Array::from(vec![0.0, 0.0, 2.0, -0.0])),
            Arc::new(Float32Array::from(vec![-0.0, 0.0, 2.0, 0.0])),
        ];
        let none: Vec<String> = vec![];
        assert_eq!(changed(&["a", "b", "c"], arrays), [none.clone(), vec!["a".into(), "b".into()], none.clone(), none]);
    }

    /// Entries of a map.
    type Entries<'a> = &'a [(&'a str, Option<i32>)];

    /// One map a row; None is NULL.
    fn maps(rows: &[Option<Entries<'_>>]) -> ArrayRef {
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        for row in rows {
            for (key, value) in row.unwrap_or_default() {
                map.keys().append_value(key);
                map.values().append_option(*value);
            }
            map.append(row.is_some()).unwrap();
        }
        Arc::new(map.finish())
    }

    #[test]
    fn lists_in_any_order_are_equal_when_each_element_is_there_as_often() {
        let lists = |rows: Vec<Option<Vec<Option<i32>>>>| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
        };
        let before = lists(vec![
            Some(vec![Some(3), None, Some(1)]),
            Some(vec![Some(1), Some(1), Some(2)]),
            None,
            Some(vec![]),
            Some(vec![Some(1)]),
        ]);
        let after = lists(vec![
            Some(vec![None, Some(1), Some(3)]),
            Some(vec![Some(1), Some(2), Some(2)]),
            None,
            None,
            Some(vec![Some(1), Some(1)]),
        ]);
        let plain = changed(&["l"], vec![before.clone(), after.clone()]);
        assert!(!plain[0].is_empty(), "the order counts otherwise");
        let sorted = |lists| call(&in_any_order(), vec![lists]);
        let told = changed(&["l"], vec![sorted(before), sorted(after)]);
        assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 0, 1, 1]);
    }

    #[test]
    fn maps_are_equal_in_any_order_of_their_entries() {
        let one: &[(&str, Option<i32>)] = &[("BB", Some(2)), ("Aa", Some(1)), ("c", None)];
        let turned: &[(&str, Option<i32>)] = &[("c", None), ("Aa", Some(1)), ("BB", Some(2))];
        let other: &[(&str, Option<i32>)] = &[("BB", Some(1)), ("Aa", Some(2)), ("c", None)];
        let before = maps(&[Some(one), Some(one), None, None, Some(&[]), Some(one)]);
        let after = maps(&[Some(turned), Some(other), None, Some(&[]), Some(&[]), Some(&turned[1..])]);
        let told: Vec<bool> =
            changed(&["m"], vec![Arc::clone(&before), Arc::clone(&after)]).iter().map(|row| !row.is_empty()).collect();
        assert_eq!(told, [false, true, false, true, false, true]);
        // also below a list, sliced
        let nested = |maps: ArrayRef| -> ArrayRef {
            let item = Arc::new(Field::new("item", maps.data_type().clone(), true));
            let lists = ListArray::new(item, OffsetBuffer::from_lengths([2, 1, 3]), maps, None);
            Arc::new(lists.slice(1, 2))
        };
        let told: Vec<bool> =
            changed(&["l"], vec![nested(before.clone()), nested(after)]).iter().map(|row| !row.is_empty()).collect();
        assert_eq!(told, [false, true]);
        let form = call(&compared_form(), vec![before]);
        assert!(matches!(form.data_type(), DataType::List(_)), "{}", form.data_type());
    }
}
