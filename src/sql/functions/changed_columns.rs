//! Which columns differ between two rows: `changed(before_a, after_a, before_b, after_b, …)`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListBuilder, StringBuilder, make_comparator};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// The function for these columns. NULL equals NULL, NaN equals NaN, maps are equal when their entries are, in order.
pub(super) fn function(names: Vec<String>) -> ScalarUDF {
    let signature = if names.is_empty() {
        Signature::nullary(Volatility::Immutable)
    } else {
        Signature::any(names.len() * 2, Volatility::Immutable)
    };
    ScalarUDF::new_from_impl(ChangedColumns { names, signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ChangedColumns {
    names: Vec<String>,
    signature: Signature,
}

impl ScalarUDFImpl for ChangedColumns {
    fn name(&self) -> &'static str {
        "changed_columns"
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
    match make_comparator(before.as_ref(), after.as_ref(), SortOptions::default()) {
        Ok(compare) => Ok((0..rows).map(|row| compare(row, row).is_ne()).collect()),
        // types without an order still have equality
        Err(_) => Ok((0..rows).map(|row| before.slice(row, 1).to_data() != after.slice(row, 1).to_data()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int32Array, ListArray, StringArray};
    use arrow::datatypes::FieldRef;
    use datafusion::common::config::ConfigOptions;

    use super::*;

    #[test]
    fn null_equals_null_and_nan_equals_nan() {
        let udf = function(vec!["a".into(), "b".into()]);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![None, Some(1), Some(1)])),
            Arc::new(Int32Array::from(vec![None, None, Some(1)])),
            Arc::new(Float64Array::from(vec![f64::NAN, 1.0, 2.0])),
            Arc::new(Float64Array::from(vec![f64::NAN, 2.0, 2.0])),
        ];
        let fields: Vec<FieldRef> =
            arrays.iter().map(|a| Arc::new(Field::new("x", a.data_type().clone(), true))).collect();
        let result = udf
            .invoke_with_args(ScalarFunctionArgs {
                args: arrays.into_iter().map(ColumnarValue::Array).collect(),
                arg_fields: fields,
                number_rows: 3,
                return_field: Arc::new(Field::new("r", udf.return_type(&[]).unwrap(), true)),
                config_options: Arc::new(ConfigOptions::default()),
            })
            .unwrap();
        let ColumnarValue::Array(array) = result else { panic!("an array") };
        let list = array.as_any().downcast_ref::<ListArray>().unwrap();
        let row = |i: usize| -> Vec<String> {
            let value = list.value(i);
            let value = value.as_any().downcast_ref::<StringArray>().unwrap();
            value.iter().flatten().map(str::to_string).collect()
        };
        assert_eq!(row(0), Vec::<String>::new());
        assert_eq!(row(1), ["a", "b"]);
        assert_eq!(row(2), Vec::<String>::new());
    }
}
