//! Faults that were found in comparisons, each by what it did.

use arrow::array::{Array, Date32Array, Decimal128Array, Float32Array, Float64Array, TimestampSecondArray};
use datafusion::common::ScalarValue;

use super::*;
use crate::error::Error;

fn kept_at(path: &std::path::Path) -> Options {
    Options { progress: Some(path.to_path_buf()), ..by(&["id"]) }
}

fn decimals(values: &[i128], precision: u8, scale: i8) -> ArrayRef {
    Arc::new(Decimal128Array::from(values.to_vec()).with_precision_and_scale(precision, scale).unwrap())
}

#[tokio::test]
async fn rows_without_a_key_are_not_lost_when_a_comparison_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json");
    let rows = |changed: i64| {
        let ids = std::iter::repeat_n(None, 60_000).chain((0..60_000).map(Some));
        let ids: ArrayRef = Arc::new(ids.collect::<Int64Array>());
        batch(vec![("id", ids), ("v", longs((0..120_000).map(|at| if at == 119_000 { changed } else { at })))])
    };
    let (left, right) = (side("l", &rows(-1)), side("r", &rows(-2)));
    let whole = compared(left.clone(), right.clone(), by(&["id"])).await.unwrap();
    let died: Sink = Box::new(|example| match example.class {
        Class::Different => Err(Error::unavailable("the connection is gone")),
        _ => Ok(()),
    });
    let options = Options { sink: Some(died), ..kept_at(&path) };
    compared(left.clone(), right.clone(), options).await.unwrap_err();
    let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert!(kept["segments"][0]["left_rows"].as_u64().unwrap() > 60_000, "all without a key: {kept}");
    let resumed = compared(left.clone(), right.clone(), kept_at(&path)).await.unwrap();
    assert_eq!((&resumed.classes, &resumed.line), (&whole.classes, &whole.line));
    let note = resumed.notes.iter().find(|note| note.starts_with("resumed from")).unwrap();
    assert!(note.contains("p.json") && note.contains("up to the key id = "), "{note}");
    // what is complete is told again without reading anything
    let again = compared(left.clone(), right.clone(), kept_at(&path)).await.unwrap();
    assert_eq!((&again.classes, &again.line), (&whole.classes, &whole.line));
    // its findings were not kept, so they cannot be written
    let taken: Sink = Box::new(|_| Ok(()));
    let error = compared(left, right, Options { sink: Some(taken), ..kept_at(&path) }).await.unwrap_err();
    assert_eq!((error.code(), error.hint().is_some()), ("FindingsIncomplete", true), "{error}");
}

#[tokio::test]
async fn a_comparison_goes_on_only_from_the_same_query_at_a_known_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json");
    let rows = batch(vec![("id", longs(0..10))]);
    let (left, right) = (side("l", &rows), side("query", &rows));
    let asked = |text: &str| Side { what: Some(text.to_string()), ..right.clone() };
    compared(left.clone(), asked("SELECT 1"), kept_at(&path)).await.unwrap();
    compared(left.clone(), asked("SELECT 1"), kept_at(&path)).await.unwrap();
    let error = compared(left.clone(), asked("SELECT 2"), kept_at(&path)).await.unwrap_err();
    assert_eq!(error.code(), "OtherComparison");
    assert!(error.message().contains("another query"), "{error}");
    let moving = Side { state_known: false, ..right };
    for (left, right, which) in [(left.clone(), moving.clone(), "right"), (moving.clone(), left.clone(), "left")] {
        let error = compared(left, right, kept_at(&path)).await.unwrap_err();
        assert_eq!(error.code(), "StateNotKnown");
        assert!(error.message().contains(which) && error.hint().is_some(), "{error}");
    }
    // without progress it is compared all the same
    assert_eq!(compared(left, moving, by(&["id"])).await.unwrap().verdict, Verdict::Equal);
}

#[tokio::test]
async fn a_sample_without_rows_is_no_verdict() {
    let rows = side("l", &batch(vec![("id", longs(0..20))]));
    let sampled = || Options { sample: Some(1), ..by(&["id"]) };
    let error = compared(rows.clone(), rows, sampled()).await.unwrap_err();
    assert_eq!((error.code(), error.hint().is_some()), ("EmptySample", true), "{error}");
    let none = side("l", &batch(vec![("id", longs([]))]));
    let report = compared(none.clone(), none, sampled()).await.unwrap();
    assert_eq!(report.verdict, Verdict::NoDifferenceInSample);
}

#[tokio::test]
async fn late_rows_are_no_duplicates() {
    let rows = |rows: &[(i64, i64, i64)]| {
        batch(vec![
            ("id", longs(rows.iter().map(|row| row.0))),
            ("at", longs(rows.iter().map(|row| row.1))),
            ("v", longs(rows.iter().map(|row| row.2))),
        ])
    };
    // by key: one more on its way; overwritten and doubled in the source; on their way on both sides; two in time
    let left = side("l", &rows(&[(1, 10, 1), (1, 99, 2), (2, 99, 5), (3, 99, 1), (3, 98, 2), (4, 1, 1), (4, 2, 2)]));
    let right = side("r", &rows(&[(1, 10, 1), (2, 10, 4), (2, 11, 4), (3, 97, 1), (4, 1, 1), (4, 77, 3)]));
    let mut options = by(&["id"]);
    options.wanted.horizon = Some("at".to_string());
    options.wanted.columns = Some(vec!["v".to_string()]);
    options.horizon = Some(ScalarValue::Int64(Some(50)));
    let report = compared(left, right, options).await.unwrap();
    let expected = vec![("DUP_SOURCE", 1), ("DUP_LAKE", 1), ("LATE", 2), ("LATE_UPDATE", 3)];
    assert_eq!(told(&report), (expected, 2), "{report:?}");
    assert_eq!((report.count(Class::DupSource).right_rows, report.count(Class::DupLake).left_rows), (2, 2));
}

#[tokio::test]
async fn keys_that_are_not_unique_are_told_with_their_rows() {
    let twice = side("l", &batch(vec![("id", longs([1, 1, 2])), ("v", longs([1, 2, 3]))]));
    let report = compared(twice.clone(), twice, by(&["id"])).await.unwrap();
    let (source, lake) = (report.count(Class::DupSource), report.count(Class::DupLake));
    assert_eq!((source.findings, source.right_rows, lake.findings, lake.left_rows), (1, 2, 1, 2), "{report:?}");
    assert_eq!((report.verdict, report.count(Class::Equal).left_rows), (Verdict::Different, 3));
    assert!(report.notes.iter().any(|note| note.contains("the key is not unique")), "{report:?}");
}

#[tokio::test]
async fn a_row_that_one_condition_hides_is_shown_with_the_values_of_both() {
    let rows = |id: i64, status: &'static str| batch(vec![("id", longs([id])), ("status", texts([Some(status)]))]);
    let condition = "status = 'ok' OR status = 'paid'";
    for (left, right) in [("bad", "ok"), ("paid", "bad")] {
        let (one, other) =
            (filtered(side("l", &rows(1, left)), condition), filtered(side("r", &rows(1, right)), condition));
        let report = compared(one, other, by(&["id"])).await.unwrap();
        assert_eq!(told(&report), (vec![("FILTER_MISMATCH", 1)], 0), "{report:?}");
        let shown = arrow::util::pretty::pretty_format_batches(&[report.rows().unwrap()]).unwrap().to_string();
        let line = shown.lines().find(|line| line.contains("| example |") || line.contains("| example ")).unwrap();
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(&cells[4..7], ["status", left, right], "{shown}");
    }
}

#[tokio::test]
async fn digits_of_keys_and_of_doubles_that_were_cut_are_told() {
    let id: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, 2]));
    let finer: ArrayRef = Arc::new(arrow::array::TimestampMillisecondArray::from(vec![1_000, 2_500]));
    let money = decimals(&[123_456_789_012_345_678, 100], 20, 2);
    let near: ArrayRef = Arc::new(Float64Array::from(vec![1_234_567_890_123_456.8, 1.0]));
    let left = side("l", &batch(vec![("id", id), ("v", money)]));
    let report = compared(left, side("r", &batch(vec![("id", finer), ("v", near)])), by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![], 2), "{report:?}");
    assert_eq!(report.columns[0].cut, [1, 0]);
    for part in ["column id of the key was compared", "column v was compared"] {
        assert!(report.notes.iter().any(|note| note.contains(part)), "{report:?}");
    }
}

#[tokio::test]
async fn a_float_beside_a_decimal_is_as_exact_as_a_float() {
    let float: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 19.99, 2.5]));
    let left = side("l", &batch(vec![("id", longs([1, 2, 3])), ("v", Arc::clone(&float))]));
    let right = side("r", &batch(vec![("id", longs([1, 2, 3])), ("v", decimals(&[10, 1_999, 251], 10, 2))]));
    let report = compared(left, right, by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("DIFFERENT", 1)], 2), "{report:?}");
    assert_eq!(report.columns[0].types[2], "Float32");
    // what no FLOAT holds is not infinity
    let left = side("l", &batch(vec![("id", longs([1])), ("v", Arc::new(Float32Array::from(vec![f32::INFINITY])))]));
    let right = side("r", &batch(vec![("id", longs([1])), ("v", Arc::new(Float64Array::from(vec![1e300])))]));
    assert_eq!(told(&compared(left, right, by(&["id"])).await.unwrap()), (vec![("UNREADABLE", 1)], 0));
}

#[tokio::test]
async fn texts_are_not_bent_into_the_type_beside_them() {
    let left = side(
        "l",
        &batch(vec![
            ("id", longs([1, 2, 3])),
            ("day", Arc::new(Date32Array::from(vec![0, 0, 0]))),
            ("f", Arc::new(Float64Array::from(vec![f64::INFINITY, f64::INFINITY, 0.5]))),
        ]),
    );
    let mut right = side(
        "r",
        &batch(vec![
            ("id", texts([Some("1"), Some("2"), Some("3")])),
            ("day", texts([Some("1970-01-01 00:00:00"), Some("1970-01-01"), Some("1970-01-01 10:00:00")])),
            ("f", texts([Some("inf"), Some("1e400"), Some("0.5")])),
        ]),
    );
    right.columns.iter_mut().for_each(|column| column.untyped = true);
    let report = compared(left, right, by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("UNREADABLE", 2)], 1), "{report:?}");
    let told: Vec<_> =
        report.examples.iter().flat_map(|one| &one.cells).filter_map(|cell| cell.right.as_deref()).collect();
    assert_eq!(told, ["1e400", "1970-01-01 10:00:00"]);
}

#[tokio::test]
async fn examples_show_decimals_as_their_columns_do() {
    let left = side("l", &batch(vec![("id", decimals(&[500], 10, 2)), ("v", decimals(&[1_000], 10, 2))]));
    let right = side("r", &batch(vec![("id", longs([5])), ("v", decimals(&[10_500], 12, 3))]));
    let report = compared(left.clone(), right, by(&["id"])).await.unwrap();
    let cell = &report.examples[0].cells[0];
    assert_eq!((cell.left.as_deref(), cell.right.as_deref()), (Some("10.00"), Some("10.500")), "{report:?}");
    assert_eq!(report.examples[0].key_json(), r#"{"id":"5.00"}"#);
    let mut file = side("f", &batch(vec![("id", texts([Some("5")])), ("v", texts([Some("11")]))]));
    file.columns.iter_mut().for_each(|column| column.untyped = true);
    let report = compared(left, file, by(&["id"])).await.unwrap();
    assert_eq!(report.examples[0].cells[0].right.as_deref(), Some("11.00"));
}

#[tokio::test]
async fn a_horizon_finer_than_its_column_is_not_rounded_to_it() {
    let late_at = async |column: ArrayRef, horizon: ScalarValue| {
        let ids = longs(0..i64::try_from(column.len()).unwrap());
        let rows = batch(vec![("id", ids), ("at", column)]);
        let mut options = by(&["id"]);
        options.wanted.horizon = Some("at".to_string());
        options.horizon = Some(horizon);
        options.manner.rounding = Rounding::HalfUp;
        let report = compared(side("l", &rows), side("r", &rows), options).await.unwrap();
        let note = report.notes.iter().find(|note| note.contains("LATE")).cloned().unwrap();
        (report.count(Class::Late).findings, note)
    };
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![0, 10, 11]));
    let (late, note) = late_at(seconds, ScalarValue::TimestampNanosecond(Some(10_600_000_000), None)).await;
    assert_eq!(late, 1);
    assert!(note.contains("1970-01-01T00:00:10.6"), "{note}");
    assert_eq!(late_at(decimals(&[500, 501], 10, 2), ScalarValue::Decimal128(Some(5_005), 10, 3)).await.0, 1);
    assert_eq!(late_at(longs([-6, -5, 5, 6]), ScalarValue::Decimal128(Some(-57), 10, 1)).await.0, 3);
    let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 1, 2]));
    assert_eq!(late_at(Arc::clone(&days), ScalarValue::from("1970-01-02 10:00:00")).await.0, 1);
    assert_eq!(late_at(days, ScalarValue::TimestampSecond(Some(90_000), None)).await.0, 1);
}
