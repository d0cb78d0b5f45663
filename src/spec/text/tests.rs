use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Int32Array, Int32Builder, ListArray, MapBuilder, StringArray, StringBuilder, StructArray,
    TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow::datatypes::{DataType as ArrowType, Field, Int32Type};
use proptest::prelude::{any, prop_assert_eq, proptest};

use super::{array_text, civil_from_days, date, datum_text, datum_text_in, time, timestamp};
use crate::spec::data_type::{DataType, FieldType};
use crate::spec::datum::Datum;
use crate::spec::zone::Zone;

fn type_of(text: &str) -> DataType {
    FieldType::parse(text).unwrap().data_type
}

fn texts(array: ArrayRef, text: &str) -> Vec<Option<String>> {
    let texts = array_text(&array, &type_of(text), &Zone::UTC).unwrap();
    texts.iter().map(|text| text.map(str::to_string)).collect()
}

#[test]
fn dates_outside_of_four_digits_have_a_sign() {
    for (days, text) in [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (19_724, "2024-01-02"),
        (-719_162, "0001-01-01"),
        (-719_528, "0000-01-01"),
        (-719_529, "-0001-12-31"),
        (2_932_896, "9999-12-31"),
        (2_932_897, "+10000-01-01"),
    ] {
        assert_eq!(date(days), text);
    }
}

#[test]
fn times_have_one_to_p_fraction_digits() {
    // (millis, p, as Java 0.9 writes it)
    for (millis, precision, text) in [
        (3_723_004, 0, "01:02:03"),
        (0, 1, "00:00:00.0"),
        (1, 2, "00:00:00.00"),
        (10, 3, "00:00:00.01"),
        (120, 3, "00:00:00.12"),
        (3_723_004, 1, "01:02:03.0"),
        (3_723_004, 3, "01:02:03.004"),
        (86_399_999, 9, "23:59:59.999"),
    ] {
        assert_eq!(time(millis, precision), text);
    }
}

#[test]
fn timestamps_have_p_fraction_digits_or_as_many_as_they_need() {
    for (millis, nanos, precision, text) in [
        (0, 0, 0, "1970-01-01 00:00:00"),
        (1, 0, 0, "1970-01-01 00:00:00.001"),
        (10, 0, 1, "1970-01-01 00:00:00.01"),
        (120, 0, 3, "1970-01-01 00:00:00.120"),
        (-1, 999_999, 9, "1969-12-31 23:59:59.999999999"),
        (-1, 0, 6, "1969-12-31 23:59:59.999000"),
        (5, 7, 3, "1970-01-01 00:00:00.005000007"),
        (i64::MAX, 0, 3, "+292278994-08-17 07:12:55.807"),
        (i64::MIN, 0, 3, "-292275055-05-16 16:47:04.192"),
    ] {
        assert_eq!(timestamp(millis, nanos, precision), text);
    }
}

#[test]
fn instants_are_shown_on_the_clock_of_the_zone() {
    let berlin = Zone::parse("Europe/Berlin").unwrap();
    let noon = Datum::Timestamp(1_719_835_200_000, 0);
    let ltz = type_of("TIMESTAMP_LTZ(3)");
    assert_eq!(datum_text_in(&noon, &ltz, &berlin).unwrap(), "2024-07-01 14:00:00.000");
    assert_eq!(datum_text(&noon, &ltz).unwrap(), "2024-07-01 12:00:00.000");
    assert_eq!(datum_text_in(&noon, &type_of("TIMESTAMP(0)"), &berlin).unwrap(), "2024-07-01 12:00:00");
    let array: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1_719_835_200_000]).with_timezone("UTC"));
    assert_eq!(array_text(&array, &ltz, &berlin).unwrap().value(0), "2024-07-01 14:00:00.000");
}

#[test]
fn nested_values_are_written_with_their_nulls() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    assert_eq!(texts(Arc::new(list), "ARRAY<INT>"), [Some("[1, null]".into()), None, Some("[]".into())]);

    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("k");
    map.values().append_value(7);
    map.keys().append_value("");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(true).unwrap();
    let map: ArrayRef = Arc::new(map.finish());
    assert_eq!(texts(map.clone(), "MAP<STRING, INT>"), [Some("{k -> 7,  -> null}".into()), Some("{}".into())]);
    assert_eq!(texts(map.slice(1, 1), "MAP<STRING, INT>"), [Some("{}".into())]);
    assert_eq!(texts(map, "MULTISET<STRING>")[0].as_deref(), Some("{k -> 7,  -> null}"));

    let row = StructArray::from(vec![
        (
            Arc::new(Field::new("a", ArrowType::Int32, true)),
            Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef,
        ),
        (
            Arc::new(Field::new("b", ArrowType::Utf8, true)),
            Arc::new(StringArray::from(vec![None, Some("x")])) as ArrayRef,
        ),
    ]);
    assert_eq!(
        texts(Arc::new(row.clone()), "ROW<a INT, b STRING>"),
        [Some("{1, null}".into()), Some("{null, x}".into())]
    );
    let error = array_text(&(Arc::new(row) as ArrayRef), &type_of("ROW<a INT>"), &Zone::UTC).unwrap_err();
    assert!(error.to_string().contains("ROW<`a` INT>"), "{error}");
}

#[test]
fn bytes_are_read_as_utf8() {
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&b"abc"[..]), Some(&b"\xff"[..]), None]));
    assert_eq!(texts(bytes, "BYTES"), [Some("abc".into()), Some("\u{fffd}".into()), None]);
}

#[test]
fn units_of_arrow_do_not_change_the_text() {
    let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1]));
    assert_eq!(texts(nanos, "TIMESTAMP(9)"), [Some("1969-12-31 23:59:59.999999999".into())]);
}

proptest! {
    #[test]
    fn days_agree_with_the_calendar(days in -100_000_000_i64..100_000_000) {
        let (year, month, day) = civil_from_days(days);
        if let Some(date) = chrono::DateTime::from_timestamp(days * 86_400, 0) {
            use chrono::Datelike;
            prop_assert_eq!((year, month, day), (i64::from(date.year()), i64::from(date.month()), i64::from(date.day())));
        }
    }

    #[test]
    fn no_value_panics(millis in any::<i64>(), nanos in any::<i32>(), precision in any::<u8>(), days in any::<i64>()) {
        timestamp(millis, nanos, precision);
        date(days);
        time(nanos, precision);
    }
}
