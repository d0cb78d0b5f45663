//! Versions of a key whose order or place is out of the ordinary.

use serde_json::{Value, json};

use super::{all_ways, latest};
use crate::spec::CommitKind;
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

fn ints(engine: &str) -> TableSpec {
    TableSpec::new(&[("k", "INT NOT NULL"), ("v", "INT")])
        .primary_key(&["k"])
        .option("bucket", "1")
        .option("merge-engine", engine)
}

fn pair(k: i32, v: i32) -> Value {
    json!({"k": k, "v": v})
}

#[tokio::test]
async fn a_row_deleted_by_a_vector_takes_no_part_in_a_sum() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = ints("aggregation")
        .option("fields.v.aggregate-function", "sum")
        .option("deletion-vectors.enabled", "true")
        .option("deletion-vectors.merge-on-read", "true");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    table.commit().file(FileSpec::rows(&[pair(1, 5), pair(2, 7)]).level(5)).publish().expect("publishes");
    let file = table.live_files().expect("files").remove(0).file.file_name;
    table.commit().delete_positions(&file, &[0]).kind(CommitKind::Compact).publish().expect("publishes");
    table.append(&[pair(1, 3), pair(2, 1)]).expect("appends");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    assert_eq!(all_ways(&lake, "SELECT k, v FROM t").await, ["1|3", "2|8"]);
}

#[tokio::test]
async fn ordered_by_snapshot_the_later_commit_wins_over_larger_sequence_numbers() {
    for engine in ["deduplicate", "partial-update"] {
        let dir = tempfile::tempdir().expect("a folder");
        let spec = TableSpec::new(&[("k", "INT NOT NULL"), ("v", "STRING")])
            .primary_key(&["k"])
            .option("bucket", "1")
            .option("merge-engine", engine)
            .option("sequence.snapshot-ordering", "true");
        let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
        let line = |k: i32, v: &str, number: i32| json!({"k": k, "v": v, "_SEQUENCE_NUMBER": number});
        // a compaction's numbers are those of its rows
        table.commit().file(FileSpec::rows(&[line(2, "c", 1), line(3, "c", 7)]).level(5)).publish().expect("publishes");
        let first = (1..50).map(|number| line(100 + number, "x", number)).chain([line(1, "a", 50)]);
        table.append(&first.collect::<Vec<_>>()).expect("appends");
        let second = (2..8).map(|number| line(200 + number, "x", number));
        let second = second.chain([line(3, "b", 8), line(2, "b", 9), line(1, "b", 10)]);
        table.append(&second.collect::<Vec<_>>()).expect("appends");
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        assert_eq!(all_ways(&lake, "SELECT k, v FROM t WHERE k < 10").await, ["1|b", "2|b", "3|c"], "{engine}");
    }
}

#[tokio::test]
async fn a_map_with_key_times_takes_the_time_from_the_field_that_is_named() {
    let value = "MAP<STRING, ROW<t STRING, b INT, c STRING>>";
    for (field, wanted) in [(Some("t"), "{t: 9, b: 5, c: 1}"), (None, "{t: 3, b: 6, c: 4}")] {
        let dir = tempfile::tempdir().expect("a folder");
        let mut spec = TableSpec::new(&[("k", "INT NOT NULL"), ("m", value)])
            .primary_key(&["k"])
            .option("bucket", "1")
            .option("merge-engine", "aggregation")
            .option("fields.m.aggregate-function", "merge_map_with_keytime");
        if let Some(field) = field {
            spec = spec.option("fields.m.ts-field", field);
        }
        let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
        // newer by the first field, older by the last
        table.append(&[json!({"k": 1, "m": {"x": {"t": "9", "b": 5, "c": "1"}}})]).expect("appends");
        table.append(&[json!({"k": 1, "m": {"x": {"t": "3", "b": 6, "c": "4"}}})]).expect("appends");
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        assert_eq!(all_ways(&lake, "SELECT k, m FROM t").await, [format!("1|{{x: {wanted}}}")]);
    }
}
