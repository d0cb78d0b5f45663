//! `m[1]`, `m[1.50]`, `m[DATE '2024-01-01']`: DataFusion compares the key as it is written with the keys of the map, and fails
//! where their types differ. Here it is brought to the type of the keys; one that is no value of that type is in no map.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ExprSchemable, cast, lit};

use super::in_lists::literal;

/// The function behind a subscript.
const GET_FIELD: &str = "get_field";

/// Brings the key of a subscript to the type of the map's keys; whether it was another.
pub(super) fn to_key_type(function: &mut ScalarFunction, schema: &DFSchema) -> bool {
    if function.name() != GET_FIELD {
        return false;
    }
    let [map, key] = function.args.as_mut_slice() else { return false };
    let Ok(DataType::Map(entries, _)) = map.get_type(schema) else { return false };
    let DataType::Struct(fields) = entries.data_type() else { return false };
    let (Some(wanted), Ok(found)) = (fields.first().map(|field| field.data_type()), key.get_type(schema)) else {
        return false;
    };
    if found == *wanted || !comparable(&found, wanted) {
        return false;
    }
    // a clock time becomes an instant in the session's zone, which another rule knows
    let zoned = matches!((&found, wanted), (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(_))));
    let same = match literal(key).filter(|_| !zoned) {
        Some(value) => same_value(&value, wanted).map(lit),
        None => Some(cast(std::mem::take(key), wanted.clone())),
    };
    let Some(same) = same else { return false };
    *key = same;
    true
}

fn comparable(found: &DataType, wanted: &DataType) -> bool {
    let time = |of: &DataType| matches!(of, DataType::Time32(_) | DataType::Time64(_));
    let day = |of: &DataType| matches!(of, DataType::Date32 | DataType::Timestamp(..));
    let number = |of: &DataType| of.is_numeric();
    found.is_string() && !wanted.is_nested()
        || found.is_null()
        || number(found) && number(wanted)
        || time(found) && time(wanted)
        || day(found) && day(wanted)
        || found.is_binary() && wanted.is_binary()
}

/// The value of the other type that equals this one, NULL where there is none; None for a text that is no such value,
/// which is a mistake.
fn same_value(value: &ScalarValue, wanted: &DataType) -> Option<ScalarValue> {
    let none = || ScalarValue::try_from(wanted).ok();
    let brought = value.cast_to(wanted);
    if value.data_type().is_string() {
        return brought.ok();
    }
    let Ok(brought) = brought else { return none() };
    // a decimal beside a DOUBLE is the nearest one, as everywhere
    if wanted.is_floating() || brought.cast_to(&value.data_type()).is_ok_and(|back| back == *value) {
        return Some(brought);
    }
    none()
}
