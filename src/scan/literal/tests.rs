use std::sync::Arc;

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;

use super::{datum_to_scalar, scalar_to_datum};
use crate::spec::arrow_types::arrow_type;
use crate::spec::arrow_types::tests::atomic_values;
use crate::spec::data_type::{DataType, FieldType};
use crate::spec::datum::Datum;

fn type_of(text: &str) -> DataType {
    FieldType::parse(text).unwrap().data_type
}

fn exact(scalar: &ScalarValue, text: &str) -> Option<Datum> {
    scalar_to_datum(scalar, &type_of(text)).unwrap()
}

#[test]
fn every_atomic_value_becomes_a_literal_and_comes_back() {
    for (text, datum) in atomic_values() {
        let data_type = type_of(text);
        let scalar = datum_to_scalar(&datum, &data_type).unwrap();
        assert_eq!(scalar.data_type(), arrow_type(&data_type), "{text}");
        assert_eq!(scalar_to_datum(&scalar, &data_type).unwrap(), Some(datum), "{text}");
        let null = datum_to_scalar(&Datum::Null, &data_type).unwrap();
        assert_eq!(scalar_to_datum(&null, &data_type).unwrap(), Some(Datum::Null));
    }
}

#[test]
fn literals_move_between_types_only_without_loss() {
    let long = |value| ScalarValue::Int64(Some(value));
    assert_eq!(exact(&long(7), "TINYINT"), Some(Datum::TinyInt(7)));
    assert_eq!(exact(&long(300), "TINYINT"), None);
    assert_eq!(exact(&long(7), "DECIMAL(5, 2)"), Some(Datum::Decimal(700, 5, 2)));
    assert_eq!(exact(&long(1000), "DECIMAL(5, 2)"), None);
    assert_eq!(exact(&long(1 << 53), "DOUBLE"), Some(Datum::Double(9_007_199_254_740_992.0)));
    assert_eq!(exact(&long((1 << 53) + 1), "DOUBLE"), None);
    assert_eq!(exact(&long(16_777_217), "FLOAT"), None);
    assert_eq!(exact(&ScalarValue::UInt64(Some(u64::MAX)), "BIGINT"), None);
    assert_eq!(exact(&ScalarValue::Float64(Some(3.0)), "INT"), Some(Datum::Int(3)));
    assert_eq!(exact(&ScalarValue::Float64(Some(3.5)), "INT"), None);
    assert_eq!(exact(&ScalarValue::Float64(Some(f64::NAN)), "BIGINT"), None);
    assert_eq!(exact(&ScalarValue::Float64(Some(f64::INFINITY)), "BIGINT"), None);
    assert_eq!(exact(&ScalarValue::Float64(Some(0.1)), "FLOAT"), None);
    assert_eq!(exact(&ScalarValue::Float32(Some(0.5)), "DOUBLE"), Some(Datum::Double(0.5)));
    assert_eq!(exact(&ScalarValue::Float64(Some(0.5)), "DECIMAL(5, 2)"), None);
    let half = |value, scale| ScalarValue::Decimal128(Some(value), 10, scale);
    assert_eq!(exact(&half(150, 2), "DECIMAL(6, 1)"), Some(Datum::Decimal(15, 6, 1)));
    assert_eq!(exact(&half(155, 2), "DECIMAL(6, 1)"), None);
    assert_eq!(exact(&half(200, 2), "INT"), Some(Datum::Int(2)));
    assert_eq!(exact(&half(2, -2), "INT"), Some(Datum::Int(200)));
    assert_eq!(exact(&ScalarValue::Utf8(Some("1".into())), "INT"), None);
    assert_eq!(exact(&ScalarValue::Utf8View(Some("1".into())), "CHAR(3)"), Some(Datum::String("1".into())));
    let dictionary = ScalarValue::Dictionary(Box::new(ArrowType::Int32), Box::new(ScalarValue::from("x")));
    assert_eq!(exact(&dictionary, "STRING"), Some(Datum::String("x".into())));
    assert_eq!(exact(&ScalarValue::Boolean(Some(true)), "INT"), None);
}

#[test]
fn moments_need_the_same_kind_and_enough_digits() {
    let utc: Option<Arc<str>> = Some(Arc::from("UTC"));
    let wall = |nanos| ScalarValue::TimestampNanosecond(Some(nanos), None);
    assert_eq!(exact(&wall(-1), "TIMESTAMP(9)"), Some(Datum::Timestamp(-1, 999_999)));
    assert_eq!(exact(&wall(-1), "TIMESTAMP(6)"), None);
    assert_eq!(exact(&wall(1_500_000_000), "TIMESTAMP(1)"), Some(Datum::Timestamp(1500, 0)));
    assert_eq!(exact(&wall(1_500_000_000), "TIMESTAMP(0)"), None);
    assert_eq!(exact(&wall(0), "TIMESTAMP_LTZ(3)"), None);
    assert_eq!(
        exact(&ScalarValue::TimestampSecond(Some(1), utc.clone()), "TIMESTAMP_LTZ(3)"),
        Some(Datum::Timestamp(1000, 0))
    );
    assert_eq!(exact(&ScalarValue::TimestampSecond(Some(1), utc), "TIMESTAMP(3)"), None);
    assert_eq!(exact(&ScalarValue::Date32(Some(-1)), "TIMESTAMP(3)"), Some(Datum::Timestamp(-86_400_000, 0)));
    assert_eq!(exact(&ScalarValue::Date32(Some(-1)), "TIMESTAMP_LTZ(3)"), None);
    assert_eq!(exact(&wall(-86_400_000_000_000), "DATE"), Some(Datum::Date(-1)));
    assert_eq!(exact(&wall(1), "DATE"), None);
    assert_eq!(exact(&ScalarValue::Time64Nanosecond(Some(5_000_000)), "TIME(3)"), Some(Datum::Time(5)));
    assert_eq!(exact(&ScalarValue::Time64Nanosecond(Some(5_000_001)), "TIME(3)"), None);
}
