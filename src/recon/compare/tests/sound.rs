//! What keeps a verdict from saying more than was compared.

use arrow::array::Array;
use datafusion::common::ScalarValue;
use twox_hash::XxHash64;

use super::passes::Memory;
use super::types::pairs;
use super::*;
use crate::recon::source::SourceOrder;

fn late_after(limit: i64) -> Options {
    let mut options = by(&["id"]);
    options.wanted.horizon = Some("v".to_string());
    options.horizon = Some(ScalarValue::Int64(Some(limit)));
    options
}

#[tokio::test]
async fn what_compared_no_row_is_not_equal() {
    let rows = || batch(vec![("id", longs([1, 2])), ("v", longs([5, 60]))]);
    let none = || batch(vec![("id", longs([])), ("v", longs([]))]);
    let of = |left: RecordBatch, right: RecordBatch| (side("l", &left), side("r", &right));
    let (left, right) = of(rows(), rows());
    let error = compared(left, right, late_after(4)).await.unwrap_err();
    assert_eq!(error.code(), "NothingCompared", "{error}");
    assert!(error.to_string().contains("v <= 4") && error.hint().is_some(), "{error}");
    for (left, right) in [of(rows(), none()), of(none(), rows())] {
        assert_eq!(compared(left, right, late_after(4)).await.unwrap_err().code(), "NothingCompared");
    }
    // one row is in time: it alone is counted
    let (left, right) = of(rows(), rows());
    let report = compared(left, right, late_after(5)).await.unwrap();
    assert_eq!(told(&report), (vec![("LATE", 1)], 1));
    assert!(report.line.starts_with("EQUAL: 1 rows of "), "{report}");
    assert_eq!((report.left.rows, report.right.rows), (1, 1));
    // a condition that leaves nothing over, of a plan and of a database
    let source = || Side::of_source(Arc::new(Memory::new(rows(), "id")));
    for right in [side("r", &rows()), source()] {
        let condition = "v = 7";
        let sides = (filtered(side("l", &none()), condition), filtered(right, condition));
        let error = compared(sides.0, sides.1, by(&["id"])).await.unwrap_err();
        assert_eq!(error.code(), "NothingCompared", "{error}");
        assert!(error.context().iter().any(|(name, value)| *name == "condition" && value.contains('7')), "{error:?}");
        // a quiet day may have none, where that is said: the report says so too, and what differs is found all the same
        let quiet = || Options { may_be_empty: true, ..by(&["id"]) };
        let again = |right: Side| (filtered(side("l", &none()), condition), filtered(right, condition));
        let (left, right) = again(side("r", &rows()));
        let report = compared(left, right, quiet()).await.unwrap();
        assert!(report.line.starts_with("EQUAL: 0 rows of "), "{report}");
        assert!(report.notes.first().is_some_and(|note| note.contains("ALLOW EMPTY")), "{report:?}");
        let (left, right) = again(side("r", &batch(vec![("id", longs([3])), ("v", longs([7]))])));
        assert_eq!(told(&compared(left, right, quiet()).await.unwrap()).0, vec![("MISSING_IN_LAKE", 1)]);
    }
    // two sides without a row are equal, whatever is asked of them
    for options in [by(&["id"]), late_after(4)] {
        let (left, right) = of(none(), none());
        let report = compared(filtered(left, "v = 7"), filtered(right, "v = 7"), options).await.unwrap();
        assert!(report.line.starts_with("EQUAL: 0 rows of "), "{report}");
    }
}

#[tokio::test]
async fn keys_are_one_in_lower_case_where_that_is_said() {
    let rows = |keys: &[&str], values: &[i64]| {
        batch(vec![("k", texts(keys.iter().map(|key| Some(*key)))), ("v", longs(values.to_vec()))])
    };
    let left = side("l", &rows(&["A", "b", "Straße", "ÄB", "x", "X"], &[1, 2, 3, 4, 5, 6]));
    let right = side("r", &rows(&["a", "B", "straße", "äb", "x"], &[1, 9, 3, 4, 5]));
    let report = compared(left.clone(), right.clone(), by(&["k"])).await.unwrap();
    assert_eq!(told(&report), (vec![("MISSING_IN_LAKE", 4), ("EXTRA_IN_LAKE", 5)], 1), "{report:?}");
    let folded = || Options { wanted: Wanted { folded: vec!["K".into()], ..by(&["k"]).wanted }, ..by(&["k"]) };
    let report = compared(left.clone(), right.clone(), folded()).await.unwrap();
    assert_eq!(told(&report), (vec![("DIFFERENT", 1), ("DUP_LAKE", 1)], 4), "{report:?}");
    // as the lake writes it, to be looked for there
    assert_eq!(report.examples[0].key_json(), r#"{"k":"b"}"#);
    assert!(report.notes.iter().any(|note| note.contains("lower case")), "{report:?}");
    let wrong = Options { wanted: Wanted { folded: vec!["v".into()], ..by(&["k"]).wanted }, ..by(&["k"]) };
    assert_eq!(compared(left.clone(), right, wrong).await.unwrap_err().code(), "BadArgument");
    // what the collation of a database does is told, though nothing is asked
    let mut source = Memory::new(rows(&["a", "b"], &[1, 2]), "k");
    source.order_by("k", SourceOrder::Collation("utf8mb4_general_ci".into()));
    let report = compared(left.clone(), Side::of_source(Arc::new(source)), by(&["k"])).await.unwrap();
    let note = report.notes.iter().find(|note| note.contains("utf8mb4_general_ci")).expect("the collation is told");
    assert!(note.contains("COLLATE NOCASE (k)"), "{note}");
    let mut source = Memory::new(rows(&["a", "b"], &[1, 2]), "k");
    source.order_by("k", SourceOrder::Collation("en_US.UTF-8".into()));
    let report = compared(left, Side::of_source(Arc::new(source)), by(&["k"])).await.unwrap();
    assert!(!report.notes.iter().any(|note| note.contains("COLLATE")), "{report:?}");
}

#[tokio::test]
async fn a_source_that_dies_midway_gives_no_verdict_and_keeps_whole_segments() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json");
    let count = 120_000i64;
    let rows = |changed: i64| {
        batch(vec![("id", longs(0..count)), ("v", longs((0..count).map(|id| if id % changed == 7 { -1 } else { id })))])
    };
    let left = side("l", &rows(1));
    let source =
        |fail_after: Option<usize>| Side::of_source(Arc::new(Memory { fail_after, ..Memory::new(rows(50_000), "id") }));
    let kept = || Options { progress: Some(path.clone()), ..by(&["id"]) };
    let whole = compared(left.clone(), source(None), by(&["id"])).await.unwrap();
    assert_eq!(told(&whole), (vec![("DIFFERENT", 3)], 119_997));
    for (after, segments) in [(0, 0), (20_000, 0), (49_999, 0), (70_000, 1), (119_999, 2)] {
        let _ = std::fs::remove_file(&path);
        for options in [by(&["id"]), kept()] {
            let error = compared(left.clone(), source(Some(after)), options).await.unwrap_err();
            assert_eq!(error.code(), "SourceLost", "{after}: {error}");
        }
        let text = std::fs::read_to_string(&path).unwrap_or_else(|_| r#"{"segments": []}"#.to_string());
        let progress: serde_json::Value = serde_json::from_str(&text).unwrap();
        let done = progress["segments"].as_array().unwrap();
        assert_eq!(done.len(), segments, "{after}: {progress}");
        assert!(done.iter().all(|one| one["left_rows"] == 50_000 && one["right_rows"] == 50_000), "{progress}");
        assert_ne!(progress["complete"], true);
        // it goes on to the same end
        let resumed = compared(left.clone(), source(None), kept()).await.unwrap();
        assert_eq!((&resumed.classes, &resumed.columns), (&whole.classes, &whole.columns), "{after}");
    }
    // one that has to be sorted is read to its end first
    let unordered = Memory { fail_after: Some(100_000), order: false, ..Memory::new(rows(50_000), "id") };
    let error = compared(left, Side::of_source(Arc::new(unordered)), by(&["id"])).await.unwrap_err();
    assert_eq!(error.code(), "SourceLost");
}

/// A cell of every type, at full scale in a million rows. `LAKEPIN_SEED` chooses other rows.
#[tokio::test]
async fn one_cell_of_many_is_found_whatever_its_type() {
    let count: u64 = if full() { 1_000_000 } else { 4_000 };
    let seed: u64 = std::env::var("LAKEPIN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let take = |array: &dyn Array, of: &dyn Fn(u64) -> u32| {
        let rows = arrow::array::UInt32Array::from_iter_values((0..count).map(of));
        arrow::compute::take(array, &rows, None).unwrap()
    };
    let matrix = pairs();
    let names: Vec<String> = (0..matrix.len()).map(|at| format!("c{at}")).collect();
    let tiled = |row: u64| u32::try_from(row % 3).unwrap();
    let table = |right: bool, changed: Option<(usize, ArrayRef)>| {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..i64::try_from(count).unwrap()));
        let mut columns = vec![("id", ids)];
        for (at, (_, one, other, _)) in matrix.iter().enumerate() {
            let own = changed.as_ref().filter(|(changed, _)| *changed == at).map(|(_, array)| Arc::clone(array));
            let array = own.unwrap_or_else(|| take(if right { other } else { one }, &tiled));
            columns.push((names[at].as_str(), array));
        }
        side(if right { "r" } else { "l" }, &batch(columns))
    };
    let left = table(false, None);
    let report = compared(left.clone(), table(true, None), by(&["id"])).await.unwrap();
    assert_eq!(told(&report), (vec![], count), "{report:?}");
    for (at, (name, _, other, changed)) in matrix.iter().enumerate() {
        // a row that has the value in the middle, which is the one that is changed
        let drawn = XxHash64::oneshot(seed, names[at].as_bytes()) % (count / 3) * 3 + 1;
        let both = arrow::compute::concat(&[other.as_ref(), changed.as_ref()]).unwrap();
        let one = take(&both, &|row| if row == drawn { 4 } else { tiled(row) });
        let report = compared(left.clone(), table(true, Some((at, one))), by(&["id"])).await.unwrap();
        assert_eq!(told(&report), (vec![("DIFFERENT", 1)], count - 1), "{name}, seed {seed}: {report:?}");
        let [example] = report.examples.as_slice() else { panic!("{name}: {report:?}") };
        let found = (example.key_json(), example.cells.iter().map(|cell| cell.column.clone()).collect::<Vec<_>>());
        assert_eq!(found, (format!(r#"{{"id":"{drawn}"}}"#), vec![names[at].clone()]), "{name}, seed {seed}");
    }
}
