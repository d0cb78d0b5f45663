//! What is refused because it would have no effect, and what notes say of which column.

use std::collections::BTreeMap;

use arrow::array::{BinaryArray, Decimal128Array, Float64Array};

use super::*;

fn binary(values: [&str; 2]) -> ArrayRef {
    Arc::new(values.into_iter().map(|value| Some(value.as_bytes())).collect::<BinaryArray>())
}

#[tokio::test]
async fn what_has_no_effect_is_refused() {
    let rows = side("l", &batch(vec![("id", longs([1, 2])), ("b", binary(["a", "b"])), ("v", longs([1, 2]))]));
    let map: BTreeMap<String, String> = [("x".to_string(), "y".to_string())].into();
    let mut mapped = by(&["id"]);
    mapped.wanted.maps.insert("B".to_string(), map);
    let mut tolerant = by(&["id"]);
    tolerant.wanted.tolerances.insert("ID".to_string(), Tolerance::parse("1").unwrap());
    for (options, code) in [(mapped, "BadMap"), (tolerant, "BadTolerance")] {
        let error = compared(rows.clone(), rows.clone(), options).await.unwrap_err();
        assert_eq!((error.code(), error.hint().is_some()), (code, true), "{error}");
    }
}

#[tokio::test]
async fn a_note_is_of_the_column_that_it_names() {
    let float = |values: [f64; 2]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let rows =
        |f: [f64; 2], v: [i64; 2]| side("s", &batch(vec![("id", longs([1, 2])), ("f", float(f)), ("v", longs(v))]));
    let noted = async |f: [f64; 2], v: [i64; 2]| {
        let report = compared(rows([1.0, 2.0], [1, 2]), rows(f, v), by(&["id"])).await.unwrap();
        report.notes.iter().any(|note| note.contains("column f holds floats"))
    };
    assert!(noted([1.0, 2.5], [1, 2]).await);
    // another column differs, and it is no float
    assert!(!noted([1.0, 2.0], [1, 3]).await);
}

#[tokio::test]
async fn values_that_map_names_are_counted_as_they_are_mapped() {
    let left = side("l", &batch(vec![("id", longs([1])), ("v", texts([Some("PAID")]))]));
    let code: ArrayRef = Arc::new(Decimal128Array::from(vec![100]).with_precision_and_scale(4, 2).unwrap());
    let padded = texts([Some("1 ")]);
    for (code, is_char, equal) in [(code, false, 1), (Arc::clone(&padded), true, 1), (padded, false, 0)] {
        let mut right = side("r", &batch(vec![("id", longs([1])), ("v", code)]));
        right.columns[1].declared = is_char.then(|| "char(2)".to_string());
        let mut options = by(&["id"]);
        options.wanted.maps.insert("v".into(), [("1".to_string(), "PAID".to_string())].into());
        let report = compared(left.clone(), right, options).await.unwrap();
        let noted = report.notes.iter().any(|note| note.contains("no value of v"));
        assert_eq!((report.count(Class::Equal).findings, noted), (equal, equal == 0), "{report:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_name_of_a_file_may_end_in_capitals_and_lead_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("S.CSV"), "id\n1\n").unwrap();
    std::fs::write(path("data.0"), "id\n1\n").unwrap();
    std::os::unix::fs::symlink(path("data.0"), path("link.csv")).unwrap();
    let rows = side("l", &batch(vec![("id", longs([1]))]));
    for name in ["S.CSV", "link.csv"] {
        let file = file_side(&path(name), &context(None).state()).await.unwrap();
        let report = compared(rows.clone(), file, by(&["id"])).await.unwrap();
        assert_eq!(told(&report), (vec![], 1), "{name}");
    }
}
