//! One NaN, and one zero where a column of numbers is a part of a value.
//!
//! Arrow compares floats bit by bit: a NaN with a sign is another one, and less than all numbers; `0.0 / 0` gives such a
//! NaN on some machines. DataFusion takes -0.0 and 0.0 for equal in columns, but not inside of arrays, rows and maps. So
//! every NaN becomes the one without a sign where it comes into a plan ([`OneNanRead`] and [`OneNanComputed`] for what scans,
//! aggregates and windows give; expressions are wrapped where a statement is planned), and the parts of such values one zero where they are
//! compared.
//!
//! The functions are made where a statement is planned; no SQL can call them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, make_array};
use arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type, Schema};
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::utils::take_function_args;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

/// The same value with one NaN.
pub(crate) fn with_one_nan(value: Expr) -> Expr {
    call(value, false)
}

/// The same value with one NaN and one zero, also in what it is made of.
pub(crate) fn with_one_number(value: Expr) -> Expr {
    call(value, true)
}

fn call(value: Expr, zeros: bool) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function(zeros).into(), vec![value]))
}

fn function(zeros: bool) -> ScalarUDF {
    ScalarUDF::new_from_impl(OneNumber { zeros, signature: Signature::any(1, Volatility::Immutable) })
}

/// Whether a function is one of these.
pub(crate) fn is_ours(function: &ScalarUDF) -> bool {
    function.inner().is::<OneNumber>()
}

/// The function of a name, for a plan that comes from elsewhere.
#[cfg(feature = "codec")]
pub(super) fn of_name(name: &str) -> Option<ScalarUDF> {
    [false, true].into_iter().find(|zeros| name_of(*zeros) == name).map(function)
}

/// Whether floats are a part of a type.
pub(crate) fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_floats(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::Dictionary(_, values) => has_floats(values),
        _ => false,
    }
}

/// What plans show.
fn name_of(zeros: bool) -> &'static str {
    if zeros { "one_number" } else { "one_nan" }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OneNumber {
    zeros: bool,
    signature: Signature,
}

impl ScalarUDFImpl for OneNumber {
    fn name(&self) -> &str {
        name_of(self.zeros)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// That of the value: columns keep their names. Beside the value itself, as a key of a join, it has one of its own.
    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        let [of] = take_function_args(self.name(), args)?;
        let of = of.schema_name();
        Ok(if self.zeros { format!("{}({of})", self.name()) } else { of.to_string() })
    }

    fn return_type(&self, operands: &[DataType]) -> DfResult<DataType> {
        let [of] = take_function_args(self.name(), operands)?;
        Ok(of.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let [of] = take_function_args(self.name(), args.arg_fields)?;
        Ok(Arc::clone(of))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let [of] = take_function_args(self.name(), args.args)?;
        Ok(match of {
            ColumnarValue::Array(values) => ColumnarValue::Array(one(&values, self.zeros)?),
            ColumnarValue::Scalar(value) => {
                let values = one(&value.to_array()?, self.zeros)?;
                ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&values, 0)?)
            }
        })
    }
}

/// The values with one NaN and, with `zeros`, one zero; the same array where nothing is to do.
fn one(values: &ArrayRef, zeros: bool) -> Result<ArrayRef, ArrowError> {
    match values.data_type() {
        DataType::Float32 => Ok(floats::<Float32Type>(values, zeros, f64::from, f32::NAN, 0.0)),
        DataType::Float64 => Ok(floats::<Float64Type>(values, zeros, |v| v, f64::NAN, 0.0)),
        nested if has_floats(nested) => {
            let data = values.to_data();
            let parts = data.child_data().iter().map(|part| Ok(one(&make_array(part.clone()), zeros)?.to_data()));
            let parts = parts.collect::<Result<Vec<_>, ArrowError>>()?;
            Ok(make_array(data.into_builder().child_data(parts).build()?))
        }
        _ => Ok(Arc::clone(values)),
    }
}

fn floats<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    zeros: bool,
    double: impl Fn(T::Native) -> f64,
    nan: T::Native,
    zero: T::Native,
) -> ArrayRef {
    // what has the sign: a number, a NaN or a zero
    let is_other = |value: T::Native| {
        let value = double(value);
        value.is_sign_negative() && (value.is_nan() || zeros && value == 0.0)
    };
    let numbers = values.as_primitive::<T>();
    if !numbers.values().iter().any(|value| is_other(*value)) {
        return Arc::clone(values);
    }
    let one = |value: T::Native| match is_other(value) {
        false => value,
        true if double(value).is_nan() => nan,
        true => zero,
    };
    let ones: PrimitiveArray<T> = numbers.unary(one);
    Arc::new(ones)
}

/// One NaN in what is read. Runs before conditions and columns are moved into scans, which compute them there.
#[derive(Debug)]
pub(super) struct OneNanRead;

impl PhysicalOptimizerRule for OneNanRead {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        // the one row that literals stand on has no values, whatever its columns are called
        let reads = |node: &Arc<dyn ExecutionPlan>| node.children().is_empty() && !node.is::<PlaceholderRowExec>();
        plan.transform_up(|node| match reads(&node) {
            true => with_one_nan_from(0, node, config),
            false => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "lakepin_one_nan_read"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// One NaN in what aggregates and windows compute. Runs after all other rules.
#[derive(Debug)]
pub(super) struct OneNanComputed;

impl PhysicalOptimizerRule for OneNanComputed {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match known_columns(&node) {
            Some(known) => with_one_nan_from(known, node, config),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "lakepin_one_nan_computed"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// How many columns of a node are those of its input; None: it computes none.
fn known_columns(node: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        let is_last = !matches!(aggregate.mode(), AggregateMode::Partial | AggregateMode::PartialReduce);
        return is_last.then(|| node.schema().fields().len().saturating_sub(aggregate.aggr_expr().len()));
    }
    if node.is::<WindowAggExec>() || node.is::<BoundedWindowAggExec>() {
        return node.children().first().map(|input| input.schema().fields().len());
    }
    None
}

/// The columns of a node, with one NaN in those from a place on.
fn with_one_nan_from(
    known: usize,
    node: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let schema = node.schema();
    let is_new = |at: usize| at >= known && has_floats(schema.field(at).data_type());
    if !(0..schema.fields().len()).any(is_new) {
        return Ok(Transformed::no(node));
    }
    let shown = schema.fields().iter().enumerate().map(|(at, field)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), at));
        let value = if is_new(at) { physical(column, &schema, config)? } else { column };
        Ok((value, field.name().clone()))
    });
    let shown = shown.collect::<DfResult<Vec<_>>>()?;
    Ok(Transformed::yes(Arc::new(ProjectionExec::try_new(shown, node)?) as Arc<dyn ExecutionPlan>))
}

fn physical(column: Arc<dyn PhysicalExpr>, schema: &Schema, config: &ConfigOptions) -> DfResult<Arc<dyn PhysicalExpr>> {
    Ok(Arc::new(ScalarFunctionExpr::try_new(
        Arc::new(function(false)),
        vec![column],
        schema,
        Arc::new(config.clone()),
    )?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, Float64Array, ListArray, StructArray};
    use arrow::datatypes::Field;

    use super::*;

    const OTHER: f64 = -f64::NAN;

    fn bits(values: &ArrayRef) -> Vec<u64> {
        values.as_primitive::<Float64Type>().values().iter().map(|value| value.to_bits()).collect()
    }

    #[test]
    fn numbers_with_two_forms_get_one() {
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![OTHER, f64::NAN, -0.0, 0.0, -1.0]));
        let nan = f64::NAN.to_bits();
        let (zero, minus) = (0.0f64.to_bits(), (-0.0f64).to_bits());
        assert_eq!(bits(&one(&doubles, false).unwrap()), [nan, nan, minus, zero, (-1.0f64).to_bits()]);
        assert_eq!(bits(&one(&doubles, true).unwrap()), [nan, nan, zero, zero, (-1.0f64).to_bits()]);
        // nothing to do: the same values
        let kept: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, -0.0, -1.0]));
        assert!(Arc::ptr_eq(&kept, &one(&kept, false).unwrap()));
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![-f32::NAN, -0.0]));
        let floats = one(&floats, true).unwrap();
        let floats = floats.as_primitive::<Float32Type>();
        assert_eq!((floats.value(0).to_bits(), floats.value(1).to_bits()), (f32::NAN.to_bits(), 0));
    }

    #[test]
    fn parts_of_values_get_one_form_too() {
        let rows = vec![Some(vec![Some(-0.0), None]), None, Some(vec![Some(OTHER)])];
        let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
        let field = Arc::new(Field::new("l", lists.data_type().clone(), true));
        let both: ArrayRef = Arc::new(StructArray::from(vec![(field, Arc::new(lists) as ArrayRef)]));
        let plain = vec![Some(vec![Some(0.0), None]), None, Some(vec![Some(f64::NAN)])];
        let plain = ListArray::from_iter_primitive::<Float64Type, _, _>(plain);
        for (values, expected) in [(both.clone(), plain.clone()), (both.slice(1, 2), plain.slice(1, 2))] {
            let found = one(&values, true).unwrap();
            assert_eq!(found.as_struct().column(0).as_list::<i32>(), &expected);
        }
    }
}
