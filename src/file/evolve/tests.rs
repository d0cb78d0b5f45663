//! Tables of casts: the value before, the value after.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType as ArrowType, Field, Int64Type};

use serde_json::Value;

use super::{can_cast, cast_array};
use crate::error::{ErrorKind, Result};
use crate::spec::arrow_types::{arrow_type, datum_at, datums_to_array};
use crate::spec::zone::Zone;
use crate::spec::{DataField, DataType, Datum, FieldType};

use Datum::{BigInt, Boolean, Date, Decimal, Double, Float, Int, Null, SmallInt, Time, TinyInt};

fn field_type(text: &str) -> FieldType {
    FieldType::parse(text).unwrap()
}

fn text(value: &str) -> Datum {
    Datum::String(value.to_string())
}

fn bytes(value: &[u8]) -> Datum {
    Datum::Binary(value.to_vec())
}

fn ts(millis: i64, nanos: i32) -> Datum {
    Datum::Timestamp(millis, nanos)
}

fn cast_in(value: &Datum, from: &str, to: &str, zone: &Zone) -> Result<Datum> {
    let (from, to) = (field_type(from), field_type(to));
    let array = datums_to_array(&[Null, value.clone()], &from.data_type)?;
    let cast = cast_array(&array, &from, &to, zone)?;
    assert_eq!(cast.data_type(), &arrow_type(&to.data_type));
    cast.to_data().validate_full().unwrap();
    assert!(cast.is_null(0), "NULL stays NULL");
    datum_at(&cast, 1, &to.data_type)
}

fn check_in(zone: &Zone, cases: &[(&str, &str, Datum, Datum)]) {
    for (from, to, value, wanted) in cases {
        can_cast(&field_type(from), &field_type(to)).unwrap();
        match cast_in(value, from, to, zone) {
            Ok(Double(found)) if found.is_nan() => assert!(matches!(wanted, Double(w) if w.is_nan())),
            Ok(Float(found)) if found.is_nan() => assert!(matches!(wanted, Float(w) if w.is_nan())),
            Ok(found) => assert_eq!(&found, wanted, "{value:?} as {from} to {to}"),
            Err(error) => panic!("{value:?} as {from} to {to}: {error:?}"),
        }
    }
}

fn check(cases: &[(&str, &str, Datum, Datum)]) {
    check_in(&Zone::UTC, cases);
}

fn refused(cases: &[(&str, &str, &str)]) {
    for (from, to, value) in cases {
        let error = match cast_in(&text(value), from, to, &Zone::UTC) {
            Err(error) => error,
            Ok(found) => panic!("'{value}' as {to} became {found:?}"),
        };
        assert_eq!((error.kind(), error.code()), (ErrorKind::Invalid, "InvalidCastValue"), "'{value}' as {to}");
    }
}

#[test]
fn integers_narrow_in_two_s_complement() {
    check(&[
        ("INT", "TINYINT", Int(383), TinyInt(127)),
        ("INT", "TINYINT", Int(-129), TinyInt(127)),
        ("INT", "SMALLINT", Int(65_537), SmallInt(1)),
        ("BIGINT", "INT", BigInt(1 << 33), Int(0)),
        ("BIGINT", "INT", BigInt(-1), Int(-1)),
        ("BIGINT", "TINYINT", BigInt(i64::MIN), TinyInt(0)),
        ("TINYINT", "BIGINT", TinyInt(-128), BigInt(-128)),
        ("INT", "BIGINT", Int(i32::MIN), BigInt(-2_147_483_648)),
        ("INT", "FLOAT", Int(16_777_217), Float(16_777_216.0)),
        ("BIGINT", "DOUBLE", BigInt(i64::MAX), Double(9.223_372_036_854_776e18)),
    ]);
}

#[test]
fn floats_become_integers_as_in_java() {
    check(&[
        ("DOUBLE", "INT", Double(-1.9), Int(-1)),
        ("DOUBLE", "INT", Double(1e10), Int(i32::MAX)),
        ("DOUBLE", "INT", Double(f64::NAN), Int(0)),
        ("DOUBLE", "INT", Double(f64::NEG_INFINITY), Int(i32::MIN)),
        ("DOUBLE", "BIGINT", Double(1e30), BigInt(i64::MAX)),
        // first to INT, then cut
        ("DOUBLE", "TINYINT", Double(1e10), TinyInt(-1)),
        ("DOUBLE", "SMALLINT", Double(-1e10), SmallInt(0)),
        ("FLOAT", "TINYINT", Float(200.7), TinyInt(-56)),
        ("FLOAT", "DOUBLE", Float(0.1), Double(0.100_000_001_490_116_12)),
        ("DOUBLE", "FLOAT", Double(1e300), Float(f32::INFINITY)),
        ("DOUBLE", "FLOAT", Double(f64::NAN), Float(f32::NAN)),
    ]);
}

#[test]
fn numbers_become_decimals_half_up_or_null() {
    check(&[
        ("INT", "DECIMAL(5, 2)", Int(999), Decimal(99_900, 5, 2)),
        ("INT", "DECIMAL(5, 2)", Int(1000), Null),
        ("BIGINT", "DECIMAL(38, 20)", BigInt(i64::MIN), Null),
        ("BIGINT", "DECIMAL(38, 19)", BigInt(i64::MAX), Decimal(i64::MAX as i128 * 10_i128.pow(19), 38, 19)),
        ("DOUBLE", "DECIMAL(5, 2)", Double(2.675), Decimal(268, 5, 2)),
        ("DOUBLE", "DECIMAL(5, 2)", Double(-2.675), Decimal(-268, 5, 2)),
        ("DOUBLE", "DECIMAL(5, 2)", Double(0.004_999), Decimal(0, 5, 2)),
        ("DOUBLE", "DECIMAL(5, 2)", Double(0.005), Decimal(1, 5, 2)),
        ("DOUBLE", "DECIMAL(5, 2)", Double(999.995), Null),
        ("DOUBLE", "DECIMAL(38, 0)", Double(1e37), Decimal(10_i128.pow(37), 38, 0)),
        ("DOUBLE", "DECIMAL(38, 0)", Double(1e38), Null),
        ("DOUBLE", "DECIMAL(38, 10)", Double(1e300), Null),
        ("DOUBLE", "DECIMAL(38, 10)", Double(1e-300), Decimal(0, 38, 10)),
        // a FLOAT is widened first: 0.1 is 0.10000000149011612
        ("FLOAT", "DECIMAL(20, 12)", Float(0.1), Decimal(100_000_001_490, 20, 12)),
        ("DECIMAL(5, 2)", "DECIMAL(6, 3)", Decimal(11_132, 5, 2), Decimal(111_320, 6, 3)),
        ("DECIMAL(6, 3)", "DECIMAL(5, 2)", Decimal(111_325, 6, 3), Decimal(11_133, 5, 2)),
        ("DECIMAL(6, 3)", "DECIMAL(5, 2)", Decimal(-111_325, 6, 3), Decimal(-11_133, 5, 2)),
        ("DECIMAL(6, 3)", "DECIMAL(4, 2)", Decimal(111_325, 6, 3), Null),
        ("DECIMAL(38, 0)", "DECIMAL(38, 1)", Decimal(10_i128.pow(38) - 1, 38, 0), Null),
        ("BOOLEAN", "DECIMAL(3, 2)", Boolean(true), Decimal(100, 3, 2)),
        ("BOOLEAN", "DECIMAL(1, 1)", Boolean(true), Null),
    ]);
    for value in [Double(f64::NAN), Double(f64::INFINITY)] {
        let error = cast_in(&value, "DOUBLE", "DECIMAL(5, 2)", &Zone::UTC).unwrap_err();
        assert_eq!(error.code(), "InvalidCastValue");
    }
}

#[test]
fn decimals_become_numbers_towards_zero() {
    check(&[
        ("DECIMAL(5, 2)", "INT", Decimal(-199, 5, 2), Int(-1)),
        ("DECIMAL(5, 2)", "TINYINT", Decimal(38_399, 5, 2), TinyInt(127)),
        ("DECIMAL(38, 0)", "BIGINT", Decimal((1_i128 << 64) + 5, 38, 0), BigInt(5)),
        ("DECIMAL(5, 2)", "DOUBLE", Decimal(123, 5, 2), Double(1.23)),
        ("DECIMAL(38, 10)", "DOUBLE", Decimal(12_345_678_901_234_567_890_123, 38, 10), Double(1_234_567_890_123.456_8)),
        ("DECIMAL(10, 1)", "FLOAT", Decimal(167_772_175, 10, 1), Float(16_777_218.0)),
    ]);
}

#[test]
fn booleans_and_integers_are_one_and_zero() {
    check(&[
        ("BOOLEAN", "TINYINT", Boolean(true), TinyInt(1)),
        ("BOOLEAN", "DOUBLE", Boolean(false), Double(0.0)),
        ("INT", "BOOLEAN", Int(-7), Boolean(true)),
        ("BIGINT", "BOOLEAN", BigInt(0), Boolean(false)),
        ("BIGINT", "BOOLEAN", BigInt(1 << 40), Boolean(true)),
    ]);
}

#[test]
fn text_is_cut_and_padded_only_from_text_numbers_and_booleans() {
    check(&[
        ("INT", "STRING", Int(-5), text("-5")),
        ("INT", "VARCHAR(2)", Int(12_345), text("12")),
        ("INT", "CHAR(4)", Int(7), text("7   ")),
        ("BOOLEAN", "CHAR(2)", Boolean(true), text("tr")),
        ("BOOLEAN", "CHAR(6)", Boolean(false), text("false ")),
        ("DOUBLE", "STRING", Double(1e10), text("1.0E10")),
        ("DOUBLE", "STRING", Double(f64::NAN), text("NaN")),
        ("DECIMAL(5, 2)", "STRING", Decimal(-1, 5, 2), text("-0.01")),
        ("STRING", "VARCHAR(3)", text("abcdef"), text("abc")),
        ("STRING", "VARCHAR(2)", text("😀é中"), text("😀é")),
        ("STRING", "CHAR(3)", text("é"), text("é  ")),
        ("CHAR(2)", "CHAR(5)", text("ab"), text("ab   ")),
        ("VARCHAR(5)", "STRING", text("a b"), text("a b")),
        ("DATE", "STRING", Date(19_724), text("2024-01-02")),
        ("DATE", "VARCHAR(4)", Date(19_724), text("2024-01-02")),
        ("TIME(0)", "STRING", Time(11_045_000), text("03:04:05")),
        ("TIMESTAMP(3)", "STRING", ts(1_704_164_645_000, 0), text("2024-01-02 03:04:05.000")),
        ("TIMESTAMP(0)", "CHAR(3)", ts(1_704_164_645_000, 0), text("2024-01-02 03:04:05")),
        ("BYTES", "STRING", bytes("é".as_bytes()), text("é")),
        ("BYTES", "VARCHAR(1)", bytes(b"abc"), text("abc")),
    ]);
    check_in(
        &Zone::parse("Asia/Shanghai").unwrap(),
        &[("TIMESTAMP(3) WITH LOCAL TIME ZONE", "STRING", ts(0, 0), text("1970-01-01 08:00:00.000"))],
    );
}

#[test]
fn text_becomes_bytes_of_the_length() {
    check(&[
        ("STRING", "VARBINARY(2)", text("abc"), bytes(b"ab")),
        ("STRING", "BYTES", text("é"), bytes("é".as_bytes())),
        ("STRING", "BINARY(4)", text("ab"), bytes(b"ab\0\0")),
        ("BINARY(2)", "BINARY(3)", bytes(b"ab"), bytes(b"ab\0")),
        ("BYTES", "BINARY(1)", bytes(b"ab"), bytes(b"a")),
        ("BINARY(2)", "VARBINARY(8)", bytes(b"ab"), bytes(b"ab")),
    ]);
}

#[test]
fn text_is_parsed_as_in_java() {
    check(&[
        ("STRING", "BOOLEAN", text("YeS"), Boolean(true)),
        ("STRING", "BOOLEAN", text("0"), Boolean(false)),
        ("STRING", "INT", text("12.7"), Int(12)),
        ("STRING", "INT", text("-2147483648"), Int(i32::MIN)),
        ("STRING", "INT", text("+5."), Int(5)),
        ("STRING", "BIGINT", text("-9223372036854775808"), BigInt(i64::MIN)),
        ("STRING", "TINYINT", text("-128"), TinyInt(-128)),
        ("STRING", "DOUBLE", text(" 1.5e3 "), Double(1500.0)),
        ("STRING", "DOUBLE", text("-Infinity"), Double(f64::NEG_INFINITY)),
        ("STRING", "DOUBLE", text("NaN"), Double(f64::NAN)),
        ("STRING", "DOUBLE", text("1d"), Double(1.0)),
        ("STRING", "FLOAT", text("3.4028235e38f"), Float(f32::MAX)),
        ("STRING", "DECIMAL(5, 2)", text("1.005"), Decimal(101, 5, 2)),
        ("STRING", "DECIMAL(5, 2)", text("-1.5E2"), Decimal(-15_000, 5, 2)),
        ("STRING", "DECIMAL(5, 2)", text("1000"), Null),
        ("STRING", "DECIMAL(5, 2)", text("1e999999999"), Null),
        ("STRING", "DECIMAL(5, 2)", text("1e-999999999"), Decimal(0, 5, 2)),
        ("STRING", "DECIMAL(38, 0)", text("00000000000000000000000000000000000000000000000001"), Decimal(1, 38, 0)),
        ("STRING", "DATE", text("2024-1-2"), Date(19_724)),
        ("STRING", "DATE", text("2024-01-02 23:59:59"), Date(19_724)),
        ("STRING", "DATE", text("19724"), Date(19_724)),
        ("STRING", "DATE", text("1969-12"), Date(-31)),
        ("STRING", "TIME(3)", text("03:04:05.6789"), Time(11_045_679)),
        ("STRING", "TIME(0)", text("3:4"), Time(11_040_000)),
        ("STRING", "TIME(0)", text("1234"), Time(1234)),
        ("STRING", "TIMESTAMP(3)", text("2024-01-02 03:04:05.678912"), ts(1_704_164_645_678, 0)),
        ("STRING", "TIMESTAMP(9)", text("2024-1-2 3:4:5.000000001"), ts(1_704_164_645_000, 1)),
        ("STRING", "TIMESTAMP(6)", text("2024-01-02"), ts(1_704_153_600_000, 0)),
        ("STRING", "TIMESTAMP(6)", text("2024-01-02T03:04"), ts(1_704_164_640_000, 0)),
        ("STRING", "TIMESTAMP(3)", text("2024-01-02T03:04:05.5"), ts(1_704_164_645_500, 0)),
        // February has no 30th: its last day
        ("STRING", "TIMESTAMP(3)", text("2023-02-30"), ts(1_677_542_400_000, 0)),
        ("STRING", "TIMESTAMP(0)", text("2"), ts(2000, 0)),
        ("STRING", "TIMESTAMP(3)", text("2"), ts(2, 0)),
        ("STRING", "TIMESTAMP(6)", text("2001"), ts(2, 1000)),
        ("STRING", "TIMESTAMP(9)", text("2000001"), ts(2, 1)),
    ]);
    refused(&[
        ("STRING", "BOOLEAN", " true"),
        ("STRING", "BOOLEAN", "ja"),
        ("STRING", "INT", ""),
        ("STRING", "INT", "-"),
        ("STRING", "INT", " 1"),
        ("STRING", "INT", "1.x"),
        ("STRING", "INT", "2147483648"),
        ("STRING", "TINYINT", "128"),
        ("STRING", "BIGINT", "9223372036854775808"),
        ("STRING", "DOUBLE", "inf"),
        ("STRING", "DOUBLE", "1e"),
        ("STRING", "DOUBLE", "."),
        ("STRING", "DECIMAL(5, 2)", " 1"),
        ("STRING", "DECIMAL(5, 2)", "NaN"),
        ("STRING", "DATE", "2024-02-30"),
        ("STRING", "DATE", "nope"),
        ("STRING", "TIME(0)", "25:00"),
        ("STRING", "TIMESTAMP(3)", "2024-01-02T03"),
        ("STRING", "TIMESTAMP(3)", "2024-01-32"),
        ("STRING", "TIMESTAMP(3)", "2024-13-01"),
        ("STRING", "TIMESTAMP(3)", "2024-01-02 03:04"),
        ("STRING", "TIMESTAMP(2)", "17"),
        ("STRING", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "17"),
    ]);
}

/// Also case B050: precision and times before 1970.
#[test]
fn b050_timestamps_lose_digits_as_in_java() {
    check(&[
        ("TIMESTAMP(9)", "TIMESTAMP(6)", ts(-1, 999_999), ts(-1, 999_000)),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", ts(-1, 999_000), ts(-1, 0)),
        ("TIMESTAMP(6)", "TIMESTAMP(4)", ts(5, 678_000), ts(5, 600_000)),
        ("TIMESTAMP(9)", "TIMESTAMP(8)", ts(5, 678_912), ts(5, 678_910)),
        // whole milliseconds are cut towards zero
        ("TIMESTAMP(3)", "TIMESTAMP(0)", ts(-1, 0), ts(0, 0)),
        ("TIMESTAMP(3)", "TIMESTAMP(0)", ts(-1999, 0), ts(-1000, 0)),
        ("TIMESTAMP(3)", "TIMESTAMP(2)", ts(1999, 0), ts(1990, 0)),
        ("TIMESTAMP(3)", "TIMESTAMP(9)", ts(-1, 0), ts(-1, 0)),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(0) WITH LOCAL TIME ZONE", ts(-1, 0), ts(0, 0)),
        ("TIMESTAMP(6)", "DATE", ts(-1, 999_000), Date(-1)),
        ("TIMESTAMP(6)", "TIME(3)", ts(-1, 999_000), Time(86_399_999)),
        ("DATE", "TIMESTAMP(3)", Date(-1), ts(-86_400_000, 0)),
        ("TIME(3)", "TIMESTAMP(6)", Time(1), ts(1, 0)),
        ("TIMESTAMP(3)", "BIGINT", ts(-1999, 0), BigInt(-1)),
        ("TIMESTAMP(3)", "INT", ts(4_294_967_296_000, 0), Int(0)),
        ("INT", "TIMESTAMP(6)", Int(-1), ts(-1000, 0)),
        ("BIGINT", "TIMESTAMP(0)", BigInt(4_294_967_296), ts(4_294_967_296_000, 0)),
    ]);
}

/// A value may hold more digits than its column says; a cast to a precision that is no smaller leaves them.
#[test]
fn more_digits_than_declared_stay_when_the_precision_does_not_shrink() {
    check(&[
        ("TIMESTAMP(0)", "TIMESTAMP(3)", ts(1999, 0), ts(1999, 0)),
        ("TIMESTAMP(0)", "TIMESTAMP(0) WITH LOCAL TIME ZONE", ts(1999, 0), ts(1999, 0)),
        ("TIMESTAMP(2)", "TIMESTAMP(1)", ts(1999, 0), ts(1900, 0)),
    ]);
}

/// What Java Paimon 0.9 makes of every pair of types, but for answers that today's rules do not give: dates and times
/// of day before 1970, BIGINTs of 2^32 as BOOLEAN, and 1.0E23, which JDK 17 writes as 9.999999999999999E22.
#[test]
fn every_pair_gives_what_java_gives() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("sqllogictest/tables/cast_vectors.jsonl");
    let mut checked = 0;
    for line in std::fs::read_to_string(vectors).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (from, to) = (line["from"].as_str().unwrap(), line["to"].as_str().unwrap());
        let (from_type, to_type) = (field_type(from).data_type, field_type(to).data_type);
        for pair in line["values"].as_array().unwrap() {
            let wanted = datum(&pair[1], &to_type);
            let found = cast_in(&datum(&pair[0], &from_type), from, to, &Zone::UTC);
            match (&found, &wanted) {
                (Ok(Double(a)), Double(b)) => assert_eq!(a.to_bits(), b.to_bits(), "{from} to {to}: {pair}"),
                (Ok(Float(a)), Float(b)) => assert_eq!(a.to_bits(), b.to_bits(), "{from} to {to}: {pair}"),
                (Ok(found), wanted) => assert_eq!(found, wanted, "{from} to {to}: {pair}"),
                (Err(error), _) => panic!("{from} to {to}: {pair}: {error:?}"),
            }
            checked += 1;
        }
    }
    assert!(checked > 1500, "only {checked} casts");
}

/// A value in the notation of the golden tables.
fn datum(value: &Value, data_type: &DataType) -> Datum {
    let number = || value.as_i64().unwrap();
    let words = || value.as_str().map_or_else(|| value.to_string(), str::to_string);
    match data_type {
        _ if value.is_null() => Null,
        DataType::Boolean => Boolean(value.as_bool().unwrap()),
        DataType::TinyInt => TinyInt(number() as i8),
        DataType::SmallInt => SmallInt(number() as i16),
        DataType::Int => Int(number() as i32),
        DataType::BigInt => BigInt(number()),
        DataType::Float => Float(words().replace("Infinity", "inf").parse().unwrap()),
        DataType::Double => Double(words().replace("Infinity", "inf").parse().unwrap()),
        DataType::Decimal(precision, scale) => Decimal(words().replace('.', "").parse().unwrap(), *precision, *scale),
        DataType::Date => Date(moment(&format!("{}T00:00:00", words())).div_euclid(86_400_000_000_000) as i32),
        DataType::Time(_) => Time((moment(&format!("1970-01-01T{}", words())) / 1_000_000) as i32),
        DataType::Timestamp(_) | DataType::TimestampLtz(_) => {
            let nanos = moment(words().trim_end_matches('Z'));
            ts(nanos.div_euclid(1_000_000) as i64, nanos.rem_euclid(1_000_000) as i32)
        }
        DataType::Binary(_) | DataType::Varbinary(_) => {
            let hex = words();
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            Datum::Binary((0..hex.len()).step_by(2).map(byte).collect())
        }
        _ => Datum::String(words()),
    }
}

/// Nanoseconds since 1970.
fn moment(text: &str) -> i128 {
    let time = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").unwrap().and_utc();
    i128::from(time.timestamp()) * 1_000_000_000 + i128::from(time.timestamp_subsec_nanos())
}

#[test]
fn local_times_go_through_the_session_zone() {
    let ltz = "TIMESTAMP(3) WITH LOCAL TIME ZONE";
    check_in(
        &Zone::parse("Asia/Shanghai").unwrap(),
        &[
            ("TIMESTAMP(3)", ltz, ts(0, 0), ts(-28_800_000, 0)),
            (ltz, "TIMESTAMP(3)", ts(0, 0), ts(28_800_000, 0)),
            (ltz, "DATE", ts(57_600_000, 0), Date(1)),
            (ltz, "TIME(3)", ts(57_600_001, 0), Time(1)),
            ("DATE", ltz, Date(1), ts(57_600_000, 0)),
            ("STRING", ltz, text("1970-01-01 08:00:00"), ts(0, 0)),
            // Java counts the seconds of the instant, but takes a count for the clock of the zone
            (ltz, "BIGINT", ts(-1999, 0), BigInt(-1)),
            ("BIGINT", ltz, BigInt(0), ts(28_800_000, 0)),
        ],
    );
}

#[test]
fn times_that_arrow_cannot_hold_are_errors() {
    for (from, value) in [("TIMESTAMP(3)", ts(253_402_300_799_000, 0)), ("DATE", Date(2_932_896))] {
        let error = cast_in(&value, from, "TIMESTAMP(9)", &Zone::UTC).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "TimestampOutOfRange"));
        assert!(error.message().contains("9999-12-31"), "{error}");
    }
    assert!(cast_in(&BigInt(i64::MAX), "BIGINT", "TIMESTAMP(3)", &Zone::UTC).is_err());
}

#[test]
fn pairs_that_alter_table_cannot_make_are_refused_with_both_types() {
    for (from, to) in [
        ("DOUBLE", "BOOLEAN"),
        ("DECIMAL(5, 2)", "BOOLEAN"),
        ("DATE", "INT"),
        ("INT", "DATE"),
        ("DOUBLE", "TIMESTAMP(3)"),
        ("SMALLINT", "TIMESTAMP(3)"),
        ("BYTES", "INT"),
        ("INT", "BYTES"),
        ("VARIANT", "STRING"),
        ("BOOLEAN", "DATE"),
        ("DATE", "TIME(0)"),
        ("ARRAY<INT>", "ARRAY<DATE>"),
        ("STRING", "ARRAY<INT>"),
        ("MAP<INT, INT>", "MAP<BIGINT, INT>"),
    ] {
        let Ok(from) = FieldType::parse(from).or_else(|_| nested(from)) else { panic!("{from}") };
        let Ok(to) = FieldType::parse(to).or_else(|_| nested(to)) else { panic!("{to}") };
        let error = can_cast(&from, &to).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "UnsupportedCast"), "{from} to {to}");
    }
}

/// `ARRAY<T>` and `MAP<K, V>`, for short tables.
fn nested(text: &str) -> Result<FieldType> {
    let (kind, inner) = text.strip_suffix('>').and_then(|t| t.split_once('<')).unwrap();
    let data_type = match kind {
        "ARRAY" => DataType::Array(Box::new(field_type(inner))),
        _ => {
            let (key, value) = inner.split_once(", ").unwrap();
            DataType::Map(Box::new(field_type(key)), Box::new(field_type(value)))
        }
    };
    Ok(FieldType { data_type, nullable: true })
}

fn field(id: i32, name: &str, field_type: FieldType) -> DataField {
    DataField { id, name: name.to_string(), field_type, description: None, default_value: None, sums: false }
}

fn row(fields: Vec<DataField>) -> FieldType {
    FieldType { data_type: DataType::Row(fields), nullable: true }
}

fn structs(to: &FieldType, columns: Vec<ArrayRef>, nulls: Option<NullBuffer>) -> ArrayRef {
    let ArrowType::Struct(fields) = arrow_type(&to.data_type) else { panic!() };
    Arc::new(StructArray::new(fields, columns, nulls))
}

/// Case B074: fields of a row are matched by id; a null row stays null, a row of nulls stays a row.
#[test]
fn b074_nested_rows_evolve_by_field_id() {
    let from = row(vec![field(1, "a", field_type("INT")), field(2, "b", field_type("STRING"))]);
    // a renamed and widened, b dropped and added again under its name, c added, order changed
    let to = row(vec![
        field(7, "b", field_type("STRING")),
        field(1, "a2", field_type("BIGINT")),
        field(8, "c", field_type("DOUBLE")),
    ]);
    let nulls = NullBuffer::from(vec![true, false, true]);
    let old = structs(
        &from,
        vec![
            Arc::new(Int32Array::from(vec![Some(1), Some(9), None])),
            Arc::new(StringArray::from(vec!["x", "y", "z"])),
        ],
        Some(nulls.clone()),
    );
    let new = cast_array(&old, &from, &to, &Zone::UTC).unwrap();
    assert_eq!(new.data_type(), &arrow_type(&to.data_type));
    let new = new.as_struct();
    assert_eq!(new.nulls(), Some(&nulls));
    assert_eq!(new.column(0).null_count(), 3, "an added field of an old name holds nothing");
    assert_eq!(new.column(1).as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), [Some(1), None, None]);
    assert_eq!(new.column(2).null_count(), 3);
}

/// Case B074 inside of lists and maps.
#[test]
fn b074_rows_in_arrays_and_maps_evolve() {
    let old_row = row(vec![field(1, "a", field_type("INT"))]);
    let new_row = row(vec![field(1, "z", field_type("BIGINT")), field(2, "n", field_type("STRING"))]);
    let array_of = |t: &FieldType| FieldType { data_type: DataType::Array(Box::new(t.clone())), nullable: true };
    let map_of = |t: &FieldType| FieldType {
        data_type: DataType::Map(Box::new(field_type("STRING NOT NULL")), Box::new(t.clone())),
        nullable: true,
    };
    let rows = structs(&old_row, vec![Arc::new(Int32Array::from(vec![1, 2, 3]))], Some(vec![true, false, true].into()));

    let ArrowType::List(item) = arrow_type(&array_of(&old_row).data_type) else { panic!() };
    let offsets = OffsetBuffer::new(vec![0, 2, 2, 3].into());
    let list: ArrayRef = Arc::new(ListArray::new(item, offsets.clone(), rows.clone(), None));
    // a slice sees only a part of the values
    for (start, length) in [(0, 3), (1, 2)] {
        let part = list.slice(start, length);
        let new = cast_array(&part, &array_of(&old_row), &array_of(&new_row), &Zone::UTC).unwrap();
        assert_eq!(new.data_type(), &arrow_type(&array_of(&new_row).data_type));
        new.to_data().validate_full().unwrap();
        let last = new.as_list::<i32>().value(length - 1);
        assert_eq!(last.as_struct().column(0).as_primitive::<Int64Type>().value(0), 3);
    }

    let ArrowType::Map(entries, _) = arrow_type(&map_of(&old_row).data_type) else { panic!() };
    let ArrowType::Struct(fields) = entries.data_type() else { panic!() };
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["k", "l", "m"]));
    let pairs = StructArray::new(fields.clone(), vec![keys, rows], None);
    let map: ArrayRef = Arc::new(MapArray::new(entries, offsets, pairs, None, false));
    let new = cast_array(&map, &map_of(&old_row), &map_of(&new_row), &Zone::UTC).unwrap();
    assert_eq!(new.data_type(), &arrow_type(&map_of(&new_row).data_type));
    let first = new.as_map().value(0);
    assert!(first.column(1).is_null(1), "a null row stays null");
    assert_eq!(first.column(1).as_struct().column(0).as_primitive::<Int64Type>().value(0), 1);
}

/// What lies under a null row is arbitrary: it must not fail a cast.
#[test]
fn values_under_a_null_row_are_not_cast() {
    let from = row(vec![field(1, "a", field_type("STRING"))]);
    let to = row(vec![field(1, "a", field_type("INT"))]);
    let old = structs(&from, vec![Arc::new(StringArray::from(vec!["1", "rubbish"]))], Some(vec![true, false].into()));
    let new = cast_array(&old, &from, &to, &Zone::UTC).unwrap();
    assert!(new.is_valid(0) && new.is_null(1));
}

#[test]
fn errors_name_the_nested_field() {
    let from = row(vec![field(1, "a", field_type("STRING"))]);
    let to = row(vec![field(1, "renamed", field_type("INT"))]);
    let old = structs(&from, vec![Arc::new(StringArray::from(vec!["x"]))], None);
    let error = cast_array(&old, &from, &to, &Zone::UTC).unwrap_err();
    assert_eq!(error.to_string().split(';').next(), Some("'x' cannot be read as INT (nested field: renamed)"));
}

/// Only nullability and names of what is nested differ: the Arrow type is that of the table.
#[test]
fn nested_nullability_follows_the_table() {
    let array_of = |t: &str| FieldType { data_type: DataType::Array(Box::new(field_type(t))), nullable: true };
    let (from, to) = (array_of("BIGINT NOT NULL"), array_of("BIGINT"));
    let item = Arc::new(Field::new("item", ArrowType::Int64, false));
    let list = ListArray::new(item, OffsetBuffer::new(vec![0, 1].into()), Arc::new(Int64Array::from(vec![1])), None);
    let new = cast_array(&(Arc::new(list) as ArrayRef), &from, &to, &Zone::UTC).unwrap();
    assert_eq!(new.data_type(), &arrow_type(&to.data_type));
}
