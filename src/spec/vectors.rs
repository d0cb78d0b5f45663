//! Known answers of the reference implementation: rows, hashes, buckets, escaped paths, Bloom filters.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::binary_row::{BinaryRow, RowForm};
use super::bucket::{bucket_of, hash_row};
use super::data_type::{DataType, FieldType};
use super::datum::Datum;
use super::options::BucketFunction;
use super::partition_path::escape;

/// Every known answer of some kinds.
pub fn vectors(kinds: &[&str]) -> Vec<Value> {
    let all = lines("vectors.jsonl").into_iter();
    all.filter(|vector| kinds.contains(&vector["kind"].as_str().unwrap())).collect()
}

/// File indexes made by the reference implementation (newest line): kind, type, the values in row order and the bytes.
pub fn index_vectors() -> Vec<Value> {
    lines("index_vectors.jsonl")
}

fn lines(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sqllogictest/tables").join(file);
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn hex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|p| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap()).collect()
}

/// A container of indexes of one column `c`.
pub fn container(indexes: &[(&str, Option<&[u8]>)]) -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes = u16::try_from(text.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        bytes
    };
    let number = |number: usize| i32::try_from(number).unwrap().to_be_bytes();
    let head = 8 + 4 + 4 + 4 + 3 + 4 + indexes.iter().map(|(kind, _)| 2 + kind.len() + 8).sum::<usize>() + 4;
    let mut bytes = 1_493_475_289_347_502_i64.to_be_bytes().to_vec();
    bytes.extend(number(1));
    bytes.extend(number(head));
    bytes.extend(number(1));
    bytes.extend(text("c"));
    bytes.extend(number(indexes.len()));
    let mut at = head;
    for (kind, body) in indexes {
        bytes.extend(text(kind));
        match body {
            Some(body) => {
                bytes.extend(number(at));
                bytes.extend(number(body.len()));
                at += body.len();
            }
            None => bytes.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
        }
    }
    bytes.extend(number(0));
    for body in indexes.iter().filter_map(|(_, body)| *body) {
        bytes.extend_from_slice(body);
    }
    bytes
}

/// A value in the notation of the golden rows.
pub fn datum(value: &Value, data_type: &DataType) -> Datum {
    let text = value.as_str().unwrap_or_default();
    let number = value.as_i64().unwrap_or_default();
    let float = || match text {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => value.as_f64().unwrap(),
    };
    let time = |text: &str| {
        let time: chrono::NaiveTime = text.parse().unwrap();
        i32::try_from((time - chrono::NaiveTime::MIN).num_milliseconds()).unwrap()
    };
    match data_type {
        _ if value.is_null() => Datum::Null,
        DataType::Boolean => Datum::Boolean(value.as_bool().unwrap()),
        DataType::TinyInt => Datum::TinyInt(number.try_into().unwrap()),
        DataType::SmallInt => Datum::SmallInt(number.try_into().unwrap()),
        DataType::Int => Datum::Int(number.try_into().unwrap()),
        DataType::BigInt => Datum::BigInt(number),
        DataType::Float => Datum::Float(float() as f32),
        DataType::Double => Datum::Double(float()),
        DataType::Decimal(p, s) => Datum::Decimal(text.replace('.', "").parse().unwrap(), *p, *s),
        DataType::Char(_) | DataType::Varchar(_) => Datum::String(text.to_string()),
        DataType::Binary(_) | DataType::Varbinary(_) => Datum::Binary(hex(text)),
        DataType::Date => {
            let date: chrono::NaiveDate = text.parse().unwrap();
            Datum::Date((date - chrono::NaiveDate::default()).num_days().try_into().unwrap())
        }
        DataType::Time(_) => Datum::Time(time(text)),
        DataType::Timestamp(_) | DataType::TimestampLtz(_) => {
            let at: chrono::NaiveDateTime = text.trim_end_matches('Z').parse().unwrap();
            let nanos = i32::try_from(at.and_utc().timestamp_subsec_nanos() % 1_000_000).unwrap();
            Datum::Timestamp(at.and_utc().timestamp_millis(), nanos)
        }
        other => panic!("no notation for {other:?}"),
    }
}

pub fn data_type(text: &Value) -> DataType {
    FieldType::parse(text.as_str().unwrap()).unwrap().data_type
}

#[test]
fn rows_encode_decode_hash_and_find_their_bucket_as_in_java() {
    let cases = vectors(&["row", "projected_row"]);
    assert!(cases.len() > 90);
    for case in cases {
        let types: Vec<DataType> = case["types"].as_array().unwrap().iter().map(data_type).collect();
        let types: Vec<&DataType> = types.iter().collect();
        if types.iter().any(|t| matches!(t, DataType::Array(_) | DataType::Map(..) | DataType::Row(_))) {
            nested_row(&case, &types);
            continue;
        }
        let values: Vec<Datum> =
            types.iter().enumerate().map(|(i, t)| datum(&case["value"][format!("f{i}")], t)).collect();
        let pairs: Vec<_> = values.iter().zip(types.iter().copied()).collect();
        let form = if case["kind"] == "row" { RowForm::Serialized } else { RowForm::Projected };
        let row = BinaryRow::encode(&pairs, form).unwrap();
        assert_eq!(row.0, hex(case["serialized"].as_str().unwrap()), "{case}");
        assert_eq!(row.row_bytes(), hex(case["bytes"].as_str().unwrap()), "{case}");
        assert_eq!(i64::from(hash_row(row.row_bytes())), case["hash"].as_i64().unwrap(), "{case}");
        // NaN is not itself: compare the encoding of what was decoded
        let decoded = row.decode(&types).unwrap();
        let again: Vec<_> = decoded.iter().zip(types.iter().copied()).collect();
        assert_eq!(BinaryRow::encode(&again, form).unwrap(), row, "{case}");
        let reserves_null =
            form == RowForm::Serialized && BinaryRow::encode(&pairs, RowForm::Projected).unwrap() != row;
        if !reserves_null {
            let bucket = bucket_of(BucketFunction::Default, &values, &types, 5).unwrap();
            assert_eq!(bucket.map(i64::from), case["bucketOf5"].as_i64(), "{case}");
        }
    }
}

/// Rows with nested values are not built here, but hash, and their atomic fields decode.
fn nested_row(case: &Value, types: &[&DataType]) {
    let row = BinaryRow(hex(case["serialized"].as_str().unwrap()).into());
    assert_eq!(i64::from(hash_row(row.row_bytes())), case["hash"].as_i64().unwrap(), "{case}");
    for (index, data_type) in types.iter().enumerate() {
        let expected = &case["value"][format!("f{index}")];
        match row.get(index, data_type) {
            Ok(value) => assert_eq!(value, datum(expected, data_type), "{case}"),
            Err(_) => assert!(expected.is_array() || expected.is_object(), "{case}"),
        }
    }
}

#[test]
fn partition_names_and_values_are_escaped_as_in_java() {
    for case in vectors(&["partition_path"]) {
        let Some(path) = case["path"].as_str() else { continue };
        let value = escape(case["value"].as_str().unwrap());
        assert_eq!(format!("{}={value}/p={value}/", escape("k=")), path);
    }
}
