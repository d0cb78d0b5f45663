use arrow::array::{Array, Decimal128Array, Float64Array};
use datafusion::common::ScalarValue;

use super::*;

fn options_of(key: &[&str], change: impl FnOnce(&mut Options)) -> Options {
    let mut options = by(key);
    change(&mut options);
    options
}

#[tokio::test]
async fn each_row_is_of_one_class_and_money_is_summed_exactly() {
    let money = |cents: Vec<i128>| -> ArrayRef {
        Arc::new(Decimal128Array::from(cents).with_precision_and_scale(38, 2).unwrap())
    };
    let left = side(
        "lake",
        &batch(vec![
            ("dt", texts([Some("16"), Some("16"), Some("17"), None, Some("18"), Some("19")])),
            ("订单", texts([Some("a"), Some("b"), Some("a"), Some("x"), Some("甲"), Some("z")])),
            ("amount", money(vec![100, 250, 300, 1, 5, 10])),
        ]),
    );
    let right = side(
        "source",
        &batch(vec![
            ("DT", texts([Some("18"), Some("16"), Some("16"), Some("17"), Some("20"), Some("20")])),
            ("订单", texts([Some("甲"), Some("a"), Some("b"), Some("a"), None, Some("q")])),
            ("amount", money(vec![5, 100, 251, 300, 7, 9])),
        ]),
    );
    let report = compared(left, right, by(&["dt", "订单"])).await.unwrap();
    let expected = vec![("MISSING_IN_LAKE", 1), ("EXTRA_IN_LAKE", 1), ("DIFFERENT", 1), ("NULL_KEY", 2)];
    assert_eq!(told(&report), (expected, 3), "{report:?}");
    let amount = &report.columns[0];
    assert_eq!(amount.sums, Some(["6.66".to_string(), "6.72".to_string()]));
    assert_eq!((amount.delta.as_deref(), amount.mismatches), (Some("-0.06"), 1));
    assert!(report.line.contains("DIFFERENT: 5 findings") && report.line.contains("amount Δ = -0.06"), "{report}");
    let rows = report.rows().unwrap();
    assert_eq!(rows.schema(), Report::schema());
    let shown = arrow::util::pretty::pretty_format_batches(&[rows]).unwrap().to_string();
    assert!(shown.contains(r#"{"dt":"19","订单":"z"}"#) && shown.contains(r#"{"amount":"0.10"}"#), "{shown}");
}

#[tokio::test]
async fn duplicates_are_told_and_equal_ones_stand_for_each_other() {
    let left = side("l", &batch(vec![("id", longs([1, 1, 1, 2, 3, 3])), ("v", longs([1, 2, 3, 5, 7, 8]))]));
    let right = side("r", &batch(vec![("id", longs([1, 1, 2, 2, 4, 4])), ("v", longs([3, 9, 5, 5, 1, 2]))]));
    let report = compared(left, right, by(&["id"])).await.unwrap();
    let expected =
        vec![("MISSING_IN_LAKE", 1), ("EXTRA_IN_LAKE", 1), ("DIFFERENT", 1), ("DUP_SOURCE", 3), ("DUP_LAKE", 2)];
    assert_eq!(told(&report), (expected, 2), "{report:?}");
    // equal bags of rows are duplicates all the same
    let twice = side("l", &batch(vec![("id", longs([1, 1])), ("v", longs([1, 2]))]));
    let report = compared(twice.clone(), twice, by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("DUP_SOURCE", 1), ("DUP_LAKE", 1)], 2), "{report:?}");
    assert_eq!(report.verdict, Verdict::Different);
    let no_key = side("l", &batch(vec![("id", longs((0..30_000).map(|_| 1)))]));
    assert_eq!(compared(no_key.clone(), no_key, by(&["id"])).await.unwrap_err().code(), "KeyNotUnique");
}

#[tokio::test]
async fn rows_of_one_key_stand_for_each_other_in_whatever_order_they_come() {
    let rows = |turn: usize, values: &[(i64, i64)]| {
        let mut values = values.to_vec();
        values.rotate_left(turn);
        let (ids, vs) = values.into_iter().unzip::<_, _, Vec<i64>, Vec<i64>>();
        batch(vec![("id", longs(ids)), ("v", longs(vs))])
    };
    let lefts = [(1, 10), (1, 20), (1, 30), (2, 5), (2, 6), (3, 7), (3, 8), (3, 9)];
    let rights = [(1, 31), (1, 11), (1, 21), (2, 9), (4, 4), (4, 3), (3, 7), (3, 1)];
    let mut first = None;
    for (turn, other) in [(0, 0), (1, 0), (2, 1), (5, 3), (7, 6), (3, 7)] {
        let (left, right) = (side("l", &rows(turn, &lefts)), side("r", &rows(other, &rights)));
        let report = compared(left, right, by(&["id"])).await.unwrap();
        let first = first.get_or_insert_with(|| report.clone());
        assert_eq!(&report, first, "{turn} {other}");
    }
    let report = first.unwrap();
    let pairs = report.examples.iter().filter(|example| example.class == Class::Different);
    let pairs: Vec<_> = pairs
        .flat_map(|example| &example.cells)
        .map(|cell| (cell.left.clone().unwrap(), cell.right.clone().unwrap()))
        .collect();
    let expected = [("10", "11"), ("20", "21"), ("30", "31"), ("5", "9"), ("8", "1")];
    assert_eq!(pairs, expected.map(|(left, right)| (left.to_string(), right.to_string())));
}

#[tokio::test]
async fn rows_beyond_the_horizon_are_in_flight_and_in_no_sum() {
    let rows = |ids: &[i64], at: &[i64], v: &[i64]| {
        batch(vec![("id", longs(ids.to_vec())), ("at", longs(at.to_vec())), ("v", longs(v.to_vec()))])
    };
    let left = side("l", &rows(&[1, 2, 3, 4, 5], &[10, 99, 10, 99, 10], &[1, 2, 3, 4, 5]));
    let right = side("r", &rows(&[1, 2, 3, 6, 7], &[10, 10, 99, 99, 10], &[1, 7, 8, 6, 7]));
    let options = options_of(&["id"], |options| {
        options.wanted.horizon = Some("at".to_string());
        options.horizon = Some(ScalarValue::Int64(Some(50)));
        options.wanted.columns = Some(vec!["v".to_string()]);
    });
    let report = compared(left, right, options).await.unwrap();
    let expected = vec![("MISSING_IN_LAKE", 1), ("EXTRA_IN_LAKE", 1), ("LATE", 2), ("LATE_UPDATE", 2)];
    assert_eq!(told(&report), (expected, 1), "{report:?}");
    assert_eq!(report.columns[0].sums, Some(["6".to_string(), "8".to_string()]));
    let wrong = options_of(&["id"], |options| {
        options.wanted.horizon = Some("at".to_string());
        options.horizon = Some(ScalarValue::Utf8(Some("soon".to_string())));
    });
    let empty = side("l", &rows(&[], &[], &[]));
    assert_eq!(compared(empty.clone(), empty, wrong).await.unwrap_err().code(), "BadHorizon");
}

#[tokio::test]
async fn a_row_that_a_condition_hides_is_not_missing() {
    let rows = |ids: &[i64], status: &[&'static str], v: &[i64]| {
        batch(vec![
            ("id", longs(ids.to_vec())),
            ("status", texts(status.iter().map(|s| Some(*s)))),
            ("v", longs(v.to_vec())),
        ])
    };
    let left = side("l", &rows(&[1, 2, 3, 5], &["ok", "bad", "ok", "bad"], &[1, 2, 3, 5]));
    let right = side("r", &rows(&[1, 2, 4, 3], &["ok", "ok", "ok", "bad"], &[1, 0, 4, 3]));
    let condition = "status = 'ok'";
    let report =
        compared(filtered(left.clone(), condition), filtered(right.clone(), condition), by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("MISSING_IN_LAKE", 1), ("FILTER_MISMATCH", 2)], 1), "{report:?}");
    let examples = report.examples.iter().filter(|e| e.class == Class::FilterMismatch);
    let mut cells: Vec<Vec<&str>> =
        examples.map(|example| example.cells.iter().map(|cell| cell.column.as_str()).collect()).collect();
    cells.sort();
    assert_eq!(cells, [vec!["status"], vec!["status", "v"]], "{report:?}");
    // one of them is there, but newer than the horizon
    let options = options_of(&["id"], |options| {
        options.wanted.horizon = Some("v".to_string());
        options.horizon = Some(ScalarValue::Int64(Some(2)));
    });
    let report = compared(filtered(left, condition), filtered(right, condition), options).await.unwrap();
    assert_eq!(told(&report), (vec![("FILTER_MISMATCH", 1), ("LATE", 1), ("LATE_UPDATE", 1)], 1), "{report:?}");
}

#[tokio::test]
async fn tolerances_are_exact_and_of_their_columns() {
    let money = |cents: Vec<i128>| -> ArrayRef {
        Arc::new(Decimal128Array::from(cents).with_precision_and_scale(20, 3).unwrap())
    };
    let left = side(
        "l",
        &batch(vec![
            ("id", longs([1, 2, 3, 4])),
            ("m", money(vec![1000, 1000, 1000, 1000])),
            ("f", Arc::new(Float64Array::from(vec![100.0, 100.0, 100.0, f64::NAN]))),
        ]),
    );
    let right = side(
        "r",
        &batch(vec![
            ("id", longs([1, 2, 3, 4])),
            ("m", money(vec![1010, 1011, 990, 1000])),
            ("f", Arc::new(Float64Array::from(vec![100.0, 100.0, 101.0, 1.0]))),
        ]),
    );
    let tolerant = |money: &str, float: &str| {
        options_of(&["id"], |options| {
            options.wanted.tolerances.insert("m".into(), Tolerance::parse(money).unwrap());
            options.wanted.tolerances.insert("f".into(), Tolerance::parse(float).unwrap());
        })
    };
    for (money, float, different, tolerated) in
        [("0.01", "0", 3, 1), ("0.0109", "1.5", 2, 2), ("rel:0.02", "rel:0.01", 1, 3), ("9e50", "0.5", 2, 2)]
    {
        let report = compared(left.clone(), right.clone(), tolerant(money, float)).await.unwrap();
        let found = (report.count(Class::Different).findings, report.count(Class::Tolerated).findings);
        assert_eq!(found, (different, tolerated), "{money} {float}: {report:?}");
    }
    let near = side("r", &batch(vec![("id", longs([1])), ("m", longs([2]))]));
    let own = side("l", &batch(vec![("id", longs([1])), ("m", longs([1]))]));
    let options = options_of(&["id"], |options| {
        options.wanted.tolerances.insert("m".into(), Tolerance::parse("1").unwrap());
    });
    assert_eq!(compared(own, near, options).await.unwrap().verdict, Verdict::EqualWithinTolerance);
    assert!(Tolerance::parse("-1").is_err() && Tolerance::parse("rel:x").is_err() && Tolerance::parse("").is_err());
}

#[tokio::test]
async fn nothing_against_rows_and_nothing_against_nothing() {
    let rows = batch(vec![("id", longs(0..500)), ("v", longs(0..500))]);
    let (full, none) = (side("full", &rows), side("none", &rows.slice(0, 0)));
    let report = compared(none.clone(), full.clone(), by(&["id"])).await.unwrap();
    assert_eq!((told(&report), report.examples.len()), ((vec![("MISSING_IN_LAKE", 500)], 0), 10), "{report:?}");
    let report = compared(full, none.clone(), by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("EXTRA_IN_LAKE", 500)], 0));
    let report = compared(none.clone(), none, by(&["id"])).await.unwrap();
    assert_eq!(report.verdict, Verdict::Equal);
    assert!(report.notes.iter().any(|note| note.contains("no row")), "{report:?}");
}

#[tokio::test]
async fn columns_are_found_in_any_case_and_lone_ones_are_told() {
    let left = side("l", &batch(vec![("Id", longs([1])), ("a", longs([1])), ("only", longs([1]))]));
    let right = side("r", &batch(vec![("ID", longs([1])), ("A", longs([1])), ("more", longs([2]))]));
    let report = compared(left.clone(), right.clone(), by(&["id"])).await.unwrap();
    assert_eq!(report.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a"]);
    for name in ["l alone has them: only", "r alone has them: more"] {
        assert!(report.notes.iter().any(|note| note.contains(name)), "{report:?}");
    }
    let except = options_of(&["id"], |options| options.wanted.except = vec!["A".to_string()]);
    assert_eq!(compared(left.clone(), right.clone(), except).await.unwrap().columns, []);
    let unknown = options_of(&["id"], |options| options.wanted.except = vec!["zz".to_string()]);
    assert_eq!(compared(left, right, unknown).await.unwrap_err().code(), "ColumnNotFound");
}

#[tokio::test]
async fn nulls_are_no_key_however_many() {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![None; 20_000]));
    assert_eq!(ids.null_count(), 20_000);
    let rows = side("l", &batch(vec![("id", ids)]));
    let report = compared(rows.clone(), rows, by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![("NULL_KEY", 40_000)], 0));
}
