use std::collections::BTreeMap;

use arrow::array::{
    Array, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, Decimal256Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, LargeStringArray, ListArray, StringViewArray,
    Time32SecondArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Int32Type, i256};

use super::*;
use crate::snapshot::SessionZone;

fn a(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

fn decimal(values: &[i128], precision: u8, scale: i8) -> ArrayRef {
    Arc::new(Decimal128Array::from(values.to_vec()).with_precision_and_scale(precision, scale).unwrap())
}

fn wide(texts: &[&str], precision: u8, scale: i8) -> ArrayRef {
    let values: Vec<i256> = texts.iter().map(|text| i256::from_string(text).unwrap()).collect();
    Arc::new(Decimal256Array::from(values).with_precision_and_scale(precision, scale).unwrap())
}

/// Equal values of two types, and the second with its middle one changed.
pub(super) fn pairs() -> Vec<(&'static str, ArrayRef, ArrayRef, ArrayRef)> {
    vec![
        ("bigint", longs([1, -2, i64::MAX]), longs([1, -2, i64::MAX]), longs([1, -3, i64::MAX])),
        (
            "int and smallint unsigned",
            Arc::new(Int32Array::from(vec![1, 200, 3])),
            Arc::new(UInt8Array::from(vec![1, 200, 3])),
            Arc::new(UInt8Array::from(vec![1, 201, 3])),
        ),
        (
            "unsigned 64",
            decimal(&[1, 18_446_744_073_709_551_615, 3], 20, 0),
            Arc::new(UInt64Array::from(vec![1, u64::MAX, 3])),
            Arc::new(UInt64Array::from(vec![1, u64::MAX - 1, 3])),
        ),
        (
            "bigint and unsigned 64",
            longs([-1, 2, 3]).clone(),
            decimal(&[-100, 200, 300], 22, 2),
            decimal(&[-100, 201, 300], 22, 2),
        ),
        (
            "boolean and tinyint",
            a(BooleanArray::from(vec![true, false, true])),
            Arc::new(Int8Array::from(vec![1, 0, 1])),
            Arc::new(Int8Array::from(vec![1, 2, 1])),
        ),
        (
            "boolean",
            a(BooleanArray::from(vec![Some(true), None, Some(false)])),
            a(BooleanArray::from(vec![Some(true), None, Some(false)])),
            a(BooleanArray::from(vec![Some(true), Some(false), Some(false)])),
        ),
        (
            "decimals of two scales",
            decimal(&[150, -1, 0], 10, 2),
            decimal(&[1500, -10, 0], 10, 3),
            decimal(&[1500, -11, 0], 10, 3),
        ),
        (
            "decimals beyond 38 digits",
            decimal(&[10_i128.pow(37), 5, 0], 38, 0),
            wide(&[&format!("1{}", "0".repeat(57)), "500000000000000000000", "0"], 76, 20),
            wide(&[&format!("1{}", "0".repeat(57)), "500000000000000000001", "0"], 76, 20),
        ),
        (
            "integers and decimals",
            Arc::new(Int16Array::from(vec![1, 2, 3])),
            decimal(&[10, 20, 30], 5, 1),
            decimal(&[10, 21, 30], 5, 1),
        ),
        (
            "doubles",
            a(Float64Array::from(vec![-0.0, f64::NAN, 0.1])),
            a(Float64Array::from(vec![0.0, -f64::NAN, 0.1])),
            a(Float64Array::from(vec![0.0, 1.0, 0.1])),
        ),
        (
            "floats and doubles",
            a(Float32Array::from(vec![-0.0, 0.1, f32::NAN])),
            a(Float64Array::from(vec![0.0, 0.1, f64::NAN])),
            a(Float64Array::from(vec![0.0, 0.100_001, f64::NAN])),
        ),
        (
            "doubles and decimals",
            a(Float64Array::from(vec![0.1, 1234.56, -2.0])),
            decimal(&[10, 123_456, -200], 12, 2),
            decimal(&[10, 123_457, -200], 12, 2),
        ),
        (
            "texts",
            texts([Some("订单"), Some(""), None]),
            a(StringViewArray::from(vec![Some("订单"), Some(""), None])),
            a(StringViewArray::from(vec![Some("订单"), None, None])),
        ),
        (
            "texts of other cases",
            texts([Some("A"), Some("b"), Some("c ")]),
            a(LargeStringArray::from(vec!["A", "b", "c "])),
            a(LargeStringArray::from(vec!["A", "B", "c "])),
        ),
        (
            "bytes",
            a(BinaryArray::from(vec![&b"\x00\xff"[..], b"ab", b"cd"])),
            a(FixedSizeBinaryArray::try_from_iter([b"\x00\xff", b"ab", b"cd"].into_iter()).unwrap()),
            a(FixedSizeBinaryArray::try_from_iter([b"\x00\xff", b"aB", b"cd"].into_iter()).unwrap()),
        ),
        (
            "dates",
            a(Date32Array::from(vec![-1, 0, 20_000])),
            a(Date64Array::from(vec![-86_400_000, 0, 20_000 * 86_400_000])),
            a(Date64Array::from(vec![-86_400_000, 86_400_000, 20_000 * 86_400_000])),
        ),
        (
            "dates and timestamps",
            a(Date32Array::from(vec![1, 2, 3])),
            a(TimestampSecondArray::from(vec![86_400, 172_800, 259_200])),
            a(TimestampSecondArray::from(vec![86_400, 172_801, 259_200])),
        ),
        (
            "times of day",
            a(Time32SecondArray::from(vec![0, 1, 86_399])),
            a(Time64MicrosecondArray::from(vec![999_999, 1_000_000, 86_399_000_000])),
            a(Time64MicrosecondArray::from(vec![999_999, 2_000_000, 86_399_000_000])),
        ),
        (
            "timestamps of two precisions, before 1970 too",
            a(TimestampMillisecondArray::from(vec![-1, 1000, 5])),
            a(TimestampMicrosecondArray::from(vec![-1, 1_000_000, 5_999])),
            a(TimestampMicrosecondArray::from(vec![-1, 1_001_000, 5_999])),
        ),
        (
            "instants",
            a(TimestampMicrosecondArray::from(vec![1, 2, 3]).with_timezone("UTC")),
            a(TimestampNanosecondArray::from(vec![1_000, 2_000, 3_000]).with_timezone("+08:00")),
            a(TimestampNanosecondArray::from(vec![1_000, 3_000, 3_000]).with_timezone("+08:00")),
        ),
        (
            "arrays",
            a(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), None, Some(vec![])])),
            a(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), None, Some(vec![])])),
            a(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), Some(vec![]), Some(vec![])])),
        ),
    ]
}

#[tokio::test]
async fn values_of_every_pair_of_types_are_compared_and_one_changed_cell_is_found() {
    for (name, left, right, changed) in pairs() {
        let key = || ("id", longs([1, 2, 3]));
        let sides = |value: &ArrayRef| side("s", &batch(vec![key(), ("v", Arc::clone(value))]));
        let equal =
            compared(sides(&left), sides(&right), by(&["id"])).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!((equal.verdict, equal.count(Class::Equal).left_rows), (Verdict::Equal, 3), "{name}: {equal:?}");
        for (one, other) in [(&left, &changed), (&changed, &left)] {
            let report = compared(sides(one), sides(other), by(&["id"])).await.unwrap();
            assert_eq!(told(&report), (vec![("DIFFERENT", 1)], 2), "{name}: {report:?}");
            let [example] = report.examples.as_slice() else { panic!("{name}: {report:?}") };
            assert_eq!((example.key_json().as_str(), example.cells.len()), (r#"{"id":"2"}"#, 1), "{name}");
        }
        // the same values as a key find each other
        if !left.data_type().is_nested() {
            let keyed = |key: &ArrayRef| side("s", &batch(vec![("k", Arc::clone(key)), ("v", longs([7, 8, 9]))]));
            let report = compared(keyed(&left), keyed(&right), by(&["k"])).await.unwrap();
            let nulls = left.null_count() as u64;
            assert_eq!(report.count(Class::Equal).left_rows, 3 - nulls, "{name}: {report:?}");
            assert_eq!(report.count(Class::NullKey).findings, 2 * nulls, "{name}");
        }
    }
}

#[tokio::test]
async fn types_without_one_in_common_are_refused_by_name() {
    let times =
        |zone: Option<&str>| -> ArrayRef { Arc::new(TimestampMillisecondArray::from(vec![0]).with_timezone_opt(zone)) };
    let cases: Vec<(ArrayRef, ArrayRef, &str)> = vec![
        (longs([1]), texts([Some("1")]), "NotComparable"),
        (longs([1]), a(BooleanArray::from(vec![true])), "NotComparable"),
        (texts([Some("x")]), Arc::new(BinaryArray::from(vec![&b"x"[..]])), "NotComparable"),
        (Arc::new(Date32Array::from(vec![1])), longs([1]), "NotComparable"),
        (times(None), times(Some("UTC")), "ZoneNotStated"),
    ];
    for (left, right, code) in cases {
        let sides = |value: ArrayRef| side("s", &batch(vec![("id", longs([1])), ("v", value)]));
        let types = [left.data_type().to_string(), right.data_type().to_string()];
        let error = compared(sides(left), sides(right), by(&["id"])).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(types.iter().all(|name| error.to_string().contains(name)), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }
    let lone = side("s", &batch(vec![("a", longs([1]))]));
    let other = side("s", &batch(vec![("b", longs([1]))]));
    assert_eq!(compared(lone.clone(), other.clone(), by(&[])).await.unwrap_err().code(), "NoKey");
    assert_eq!(compared(lone, other, by(&["a"])).await.unwrap_err().code(), "ColumnNotFound");
}

#[tokio::test]
async fn clock_times_are_instants_of_the_stated_zone() {
    // 2026-03-08 02:30 never was in New York, 2026-11-01 01:30 was twice
    let clock = [1_776_304_800_000, 1_772_937_000_000, 1_793_496_600_000];
    let left: ArrayRef = Arc::new(TimestampMillisecondArray::from(clock.to_vec()));
    let right: ArrayRef =
        Arc::new(TimestampMillisecondArray::from(vec![1_776_304_800_000 + 4 * 3_600_000, 0, 0]).with_timezone("UTC"));
    let sides = |value: &ArrayRef| side("s", &batch(vec![("id", longs([1, 2, 3])), ("v", Arc::clone(value))]));
    let mut options = by(&["id"]);
    options.wanted.zone_stated = true;
    options.manner.zone = SessionZone::parse("America/New_York").unwrap();
    let report = compared(sides(&left), sides(&right), options).await.unwrap();
    assert_eq!(told(&report), (vec![("UNREADABLE", 2)], 1), "{report:?}");
    assert_eq!(report.examples[0].cells[0].left.as_deref(), Some("2026-03-08T02:30:00"), "{report:?}");
}

#[tokio::test]
async fn digits_that_one_side_has_not_are_counted_and_may_be_rounded() {
    let left: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, 3, -1]));
    let right: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1_400, 2_500, -600]));
    let sides = |value: &ArrayRef| side("s", &batch(vec![("id", longs([1, 2, 3])), ("v", Arc::clone(value))]));
    for (rounding, findings) in [(Rounding::Truncate, 1), (Rounding::HalfUp, 0)] {
        let mut options = by(&["id"]);
        options.manner.rounding = rounding;
        let report = compared(sides(&left), sides(&right), options).await.unwrap();
        assert_eq!(report.count(Class::Different).findings, findings, "{report:?}");
        assert_eq!(report.columns[0].cut, [0, 3]);
        assert!(report.notes.iter().any(|note| note.contains("0 values on the left and 3 on the right")), "{report:?}");
    }
}

#[tokio::test]
async fn declared_types_say_what_arrow_does_not() {
    let left = side("s", &batch(vec![("id", longs([1, 2])), ("v", texts([Some("a"), Some("b ")]))]));
    let mut right = side("s", &batch(vec![("id", longs([1, 2])), ("v", texts([Some("a   "), Some("b")]))]));
    assert_eq!(compared(left.clone(), right.clone(), by(&["id"])).await.unwrap().differences(), 2);
    right.columns[1].declared = Some("char(4)".to_string());
    assert_eq!(compared(left, right, by(&["id"])).await.unwrap().verdict, Verdict::Equal);
    // tinyint(1) is a boolean, and any other integer is not
    let left = side("s", &batch(vec![("id", longs([1])), ("v", Arc::new(BooleanArray::from(vec![true])))]));
    let mut right = side("s", &batch(vec![("id", longs([1])), ("v", Arc::new(UInt32Array::from(vec![1])))]));
    right.columns[1].declared = Some("int(1)".to_string());
    assert_eq!(compared(left.clone(), right.clone(), by(&["id"])).await.unwrap_err().code(), "NotComparable");
    right.columns[1].declared = Some("tinyint(1) unsigned".to_string());
    assert_eq!(compared(left, right, by(&["id"])).await.unwrap().verdict, Verdict::Equal);
    // digits of a second by the declaration
    let times = |values: [i64; 2]| -> ArrayRef { Arc::new(TimestampMicrosecondArray::from(values.to_vec())) };
    let left = side("s", &batch(vec![("id", longs([1, 2])), ("v", times([1_200_000, 1_290_000]))]));
    let mut right = side("s", &batch(vec![("id", longs([1, 2])), ("v", times([1_250_000, 1_300_000]))]));
    right.columns[1].declared = Some("datetime(1)".to_string());
    let report = compared(left, right, by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("DIFFERENT", 1)], 1), "{report:?}");
}

#[tokio::test]
async fn texts_of_a_file_are_read_as_what_stands_beside_them_or_told_as_they_are() {
    let instants: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![0, 1_500, 0]).with_timezone("UTC"));
    let left = side(
        "lake",
        &batch(vec![
            ("id", longs([1, 2, 3])),
            ("n", Arc::new(Int32Array::from(vec![10, 20, 30]))),
            ("d", decimal(&[150, 100, 1], 10, 2)),
            ("f", Arc::new(Float32Array::from(vec![0.1, 2.0, -0.0]))),
            ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
            ("day", Arc::new(Date32Array::from(vec![0, 1, 2]))),
            ("at", instants),
        ]),
    );
    let text = |a, b, c| texts([Some(a), Some(b), Some(c)]);
    let mut right = side(
        "file",
        &batch(vec![
            ("ID", text("3", "1", "2.0")),
            ("n", text("30", "10.00", "zwanzig")),
            ("d", text("0.01", "1.5", "1.0000000001")),
            ("f", text("0", "0.1", "2")),
            ("b", texts([None, Some("TRUE"), Some("0")])),
            ("day", text("1970-01-03", "1970-01-01", "1970-01-02")),
            ("at", text("1970-01-01T00:00:00Z", "1970-01-01 08:00:00+08:00", "1970-01-01 00:00:01.500Z")),
        ]),
    );
    right.columns.iter_mut().for_each(|column| column.untyped = true);
    let report = compared(left, right, by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("UNREADABLE", 1)], 2), "{report:?}");
    let cell = &report.examples[0].cells[0];
    assert_eq!((cell.left.as_deref(), cell.right.as_deref()), (Some("20"), Some("zwanzig")));
}

#[tokio::test]
async fn codes_are_compared_by_what_they_stand_for() {
    let left = side("s", &batch(vec![("id", longs([1, 2, 3])), ("v", longs([2, 2, 3]))]));
    let right =
        side("s", &batch(vec![("id", longs([1, 2, 3])), ("v", texts([Some("SUCC"), Some("FAIL"), Some("3")]))]));
    let map: BTreeMap<String, String> =
        [("SUCC", "2"), ("FAIL", "4")].iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    let mut options = by(&["id"]);
    options.wanted.maps.insert("v".into(), map);
    let report = compared(left, right, options).await.unwrap();
    assert_eq!(told(&report), (vec![("DIFFERENT", 1)], 2), "{report:?}");
    let cell = &report.examples[0].cells[0];
    assert_eq!((cell.left.as_deref(), cell.right.as_deref()), (Some("2"), Some("4")));
    assert_eq!(DataType::Utf8.to_string(), report.columns[0].types[2]);
}
