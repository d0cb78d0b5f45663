//! The file of what is done.

use serde_json::Value;

use super::*;

fn kept_at(path: &std::path::Path) -> Options {
    Options { progress: Some(path.to_path_buf()), ..by(&["id"]) }
}

fn json(path: &std::path::Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_what_a_comparison_keeps() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json");
    let left = side("l", &batch(vec![("id", longs([1, 2])), ("secret", longs([1, 2]))]));
    let right = side("r", &batch(vec![("id", longs([1, 2])), ("secret", longs([1, 3]))]));
    compared(left, right, kept_at(&path)).await.unwrap();
    assert!(json(&path)["tally"]["examples"].to_string().contains("secret"), "values of both sides are in it");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn a_file_of_what_is_done_that_was_changed_is_not_gone_on_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json");
    let rows = batch(vec![("id", longs(0..60_000))]);
    let (left, right) = (side("l", &rows), side("r", &rows));
    compared(left.clone(), right.clone(), kept_at(&path)).await.unwrap();
    let whole = json(&path);
    assert_eq!(whole["segments"].as_array().unwrap().len(), 2);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = whole.clone();
        change(&mut value);
        std::fs::write(&path, value.to_string()).unwrap();
    };
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Value));
    let changes: [Change<'_>; 5] = [
        // a key that is none: all rows would be counted once more
        ("damaged", &|value| value["segments"][1]["upto"] = "zz".into()),
        ("damaged", &|value| value["tally"]["rows"][0] = 7.into()),
        ("damaged", &|value| value["sum"] = "".into()),
        ("another release", &|value| value["identity"]["format"] = 1.into()),
        ("another release", &|value| drop(value["identity"].as_object_mut().unwrap().remove("format"))),
    ];
    for (told, change) in changes {
        changed(change);
        let before = std::fs::read(&path).unwrap();
        let error = compared(left.clone(), right.clone(), kept_at(&path)).await.unwrap_err();
        assert_eq!(error.code(), "OtherComparison", "{error}");
        assert!(error.message().contains(told), "{told}: {error}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "it is not written over");
    }
    changed(&|_| {});
    assert_eq!(told(&compared(left, right, kept_at(&path)).await.unwrap()), (vec![], 60_000));
}

#[tokio::test]
async fn two_runs_that_keep_what_is_done_in_one_file_do_not_mix_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json");
    let rows = batch(vec![("id", longs(0..120_000))]);
    let (left, right) = (side("l", &rows), side("r", &rows));
    let run = || compared(left.clone(), right.clone(), kept_at(&path));
    let (one, other) = tokio::join!(run(), run());
    assert_eq!((told(&one.unwrap()), told(&other.unwrap())), ((vec![], 120_000), (vec![], 120_000)));
    assert_eq!(told(&run().await.unwrap()), (vec![], 120_000));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// The bytes of a key stand in files: where they become others, `FORMAT` has to.
#[tokio::test]
async fn the_bytes_of_keys_in_files_are_those_of_their_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json");
    let rows = side("l", &batch(vec![("id", longs([5])), ("k", texts([Some("甲")]))]));
    let options = Options { progress: Some(path.clone()), ..by(&["id", "k"]) };
    compared(rows.clone(), rows, options).await.unwrap();
    let kept = json(&path);
    assert_eq!(kept["identity"]["format"], 2);
    assert_eq!(kept["segments"][0]["upto"], "01800000000000000502e794b2000000000003");
}
