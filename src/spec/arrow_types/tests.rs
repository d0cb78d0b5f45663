use arrow::array::{Array, Int32Array};
use arrow::datatypes::{DataType as ArrowType, TimeUnit};

use super::{arrow_field, arrow_type, datum_at, datums_to_array};
use crate::spec::data_type::{DataField, DataType, FieldType};
use crate::spec::datum::Datum;

fn type_of(text: &str) -> DataType {
    FieldType::parse(text).unwrap().data_type
}

#[test]
fn units_follow_the_precision_and_zones_the_kind() {
    let timestamp = |text: &str| match arrow_type(&type_of(text)) {
        ArrowType::Timestamp(unit, zone) => (unit, zone.is_some()),
        other => panic!("{other}"),
    };
    assert_eq!(timestamp("TIMESTAMP(0)"), (TimeUnit::Millisecond, false));
    assert_eq!(timestamp("TIMESTAMP(3)"), (TimeUnit::Millisecond, false));
    assert_eq!(timestamp("TIMESTAMP(4)"), (TimeUnit::Microsecond, false));
    assert_eq!(timestamp("TIMESTAMP_LTZ(6)"), (TimeUnit::Microsecond, true));
    assert_eq!(timestamp("TIMESTAMP_LTZ(7)"), (TimeUnit::Nanosecond, true));
}

#[test]
fn nested_types_keep_names_and_nullability() {
    let field_type = FieldType::parse(
        "ROW<a ARRAY<INT NOT NULL>, m MAP<STRING, BIGINT NOT NULL>, s MULTISET<DATE>, v VECTOR<FLOAT, 3>>",
    );
    let field = DataField {
        id: 1,
        name: "r".into(),
        field_type: field_type.unwrap(),
        description: Some("no metadata of it".into()),
        default_value: None,
        sums: false,
    };
    let arrow = arrow_field(&field);
    assert!(arrow.metadata().is_empty() && arrow.is_nullable());
    let ArrowType::Struct(fields) = arrow.data_type() else { panic!("{arrow}") };
    let ArrowType::List(item) = fields[0].data_type() else { panic!("{arrow}") };
    assert_eq!((item.name().as_str(), item.is_nullable()), ("item", false));
    for (column, key, value_nullable) in [(1, ArrowType::Utf8, false), (2, ArrowType::Date32, true)] {
        let ArrowType::Map(entries, false) = fields[column].data_type() else { panic!("{arrow}") };
        let ArrowType::Struct(parts) = entries.data_type() else { panic!("{arrow}") };
        assert_eq!((entries.name().as_str(), entries.is_nullable()), ("entries", false));
        assert_eq!((parts[0].name().as_str(), parts[0].data_type(), parts[0].is_nullable()), ("key", &key, false));
        assert_eq!((parts[1].name().as_str(), parts[1].is_nullable()), ("value", value_nullable));
    }
    assert!(matches!(fields[3].data_type(), ArrowType::FixedSizeList(_, 3)));
}

/// A value of each atomic type, with the type as it is written.
pub(crate) fn atomic_values() -> Vec<(&'static str, Datum)> {
    vec![
        ("BOOLEAN", Datum::Boolean(true)),
        ("TINYINT", Datum::TinyInt(i8::MIN)),
        ("SMALLINT", Datum::SmallInt(i16::MIN)),
        ("INT", Datum::Int(i32::MIN)),
        ("BIGINT", Datum::BigInt(i64::MIN)),
        ("FLOAT", Datum::Float(-0.5)),
        ("DOUBLE", Datum::Double(f64::MAX)),
        ("DECIMAL(5, 2)", Datum::Decimal(-99_999, 5, 2)),
        ("DECIMAL(38, 10)", Datum::Decimal(10_i128.pow(38) - 1, 38, 10)),
        ("DATE", Datum::Date(-719_528)),
        ("TIME(3)", Datum::Time(86_399_999)),
        ("TIMESTAMP(3)", Datum::Timestamp(i64::MIN, 0)),
        ("TIMESTAMP(6)", Datum::Timestamp(-1, 999_000)),
        ("TIMESTAMP(9)", Datum::Timestamp(-1, 999_999)),
        ("TIMESTAMP_LTZ(3)", Datum::Timestamp(5, 0)),
        ("TIMESTAMP_LTZ(9)", Datum::Timestamp(5, 1)),
        ("CHAR(3)", Datum::String("a b".into())),
        ("STRING", Datum::String("数".into())),
        ("BINARY(2)", Datum::Binary(vec![0, 255])),
        ("BLOB", Datum::Binary(vec![])),
        ("GEOMETRY", Datum::Binary(vec![1])),
    ]
}

#[test]
fn every_atomic_value_goes_into_an_array_and_comes_back() {
    for (text, datum) in atomic_values() {
        let data_type = type_of(text);
        let array = datums_to_array(&[Datum::Null, datum.clone()], &data_type).unwrap();
        assert_eq!(array.data_type(), &arrow_type(&data_type), "{text}");
        assert_eq!(datum_at(&array, 0, &data_type).unwrap(), Datum::Null);
        assert_eq!(datum_at(&array, 1, &data_type).unwrap(), datum, "{text}");
        assert!(datum_at(&array, 2, &data_type).is_err());
    }
}

#[test]
fn values_of_another_type_are_errors_and_nested_nulls_are_fine() {
    assert!(datums_to_array(&[Datum::BigInt(1)], &DataType::Int).is_err());
    assert!(datum_at(&Int32Array::from(vec![1]), 0, &DataType::BigInt).is_err());
    let nested = type_of("ARRAY<INT>");
    assert_eq!(datums_to_array(&[Datum::Null, Datum::Null], &nested).unwrap().null_count(), 2);
    assert!(datums_to_array(&[Datum::Int(1)], &nested).is_err());
}

#[test]
fn nanoseconds_out_of_range_are_an_error() {
    let error = datums_to_array(&[Datum::Timestamp(i64::MAX / 1000, 0)], &type_of("TIMESTAMP(9)")).unwrap_err();
    assert_eq!(error.code(), "OutOfRange");
    assert!(datums_to_array(&[Datum::Timestamp(i64::MAX, 0)], &type_of("TIMESTAMP(6)")).is_err());
    // the earliest nanosecond: its millisecond alone would not fit
    let first =
        Datum::Timestamp(i64::MIN.div_euclid(1_000_000), i32::try_from(i64::MIN.rem_euclid(1_000_000)).unwrap());
    assert!(datums_to_array(&[first], &type_of("TIMESTAMP(9)")).is_ok());
}
