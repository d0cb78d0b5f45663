//! What metadata may answer, and what it must leave to the rows.

use std::fs;

use serde_json::json;

use super::{WITH_SOURCE, all_ways, explain, gone, keyed, latest, register, row, rows, walk};
use crate::spec::CommitKind;
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

/// Removes every data file of a table: whoever answers then has not looked into one.
fn remove_data_files(table: &TableBuilder) {
    for entry in table.live_files().expect("lists") {
        let found = walk(table.root()).into_iter().find(|path| path.ends_with(&entry.file.file_name));
        fs::remove_file(found.expect("is there")).expect("removes");
    }
}

#[tokio::test]
async fn b012_counts_are_those_of_the_filtered_rows() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut table = TableBuilder::create(
        dir.path(),
        "d",
        "t",
        &TableSpec::new(&[("id", "INT"), ("v", "INT"), ("dt", "STRING")]).partitioned_by(&["dt"]),
    )
    .expect("creates");
    for (dt, count) in [("a", 10), ("b", 20), ("c", 5)] {
        table.append(&(0..count).map(|id| json!({"id": id, "v": id, "dt": dt})).collect::<Vec<_>>()).expect("appends");
    }
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t").await, ["35"]);
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t WHERE dt = 'b'").await, ["20"]);
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t WHERE dt = 'b' AND v >= 15").await, ["5"]);
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t WHERE v >= 15").await, ["5"]);
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM (SELECT * FROM t LIMIT 7)").await, ["7"]);
    assert_eq!(
        all_ways(&lake, "SELECT count(*) FROM t JOIN (SELECT max(v) AS m FROM t WHERE dt = 'a') x ON v = m").await,
        ["2"]
    );
    assert_eq!(all_ways(&lake, "SELECT min(dt), max(dt) FROM t").await, ["a|c"]);
    assert_eq!(all_ways(&lake, "SELECT dt, count(*) FROM t GROUP BY dt").await, ["a|10", "b|20", "c|5"]);
}

#[tokio::test]
async fn counts_and_partition_bounds_come_from_metadata() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("id", "INT"), ("dt", "STRING")]).partitioned_by(&["dt"]);
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    for dt in [Some("a"), Some("b"), None] {
        table.append(&(0..10).map(|id| json!({"id": id, "dt": dt})).collect::<Vec<_>>()).expect("appends");
    }
    remove_data_files(&table);
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let context = register(WITH_SOURCE, &lake);
    assert_eq!(rows(&context, "SELECT count(*) FROM t").await.expect("runs"), ["30"]);
    let bounds = "SELECT min(dt), max(dt), count(*), count(dt) FROM t";
    assert_eq!(rows(&context, bounds).await.expect("runs"), ["a|b|30|20"]);
    let groups = rows(&context, "SELECT dt, count(*) FROM t GROUP BY dt").await.expect("runs");
    assert_eq!(groups, ["a|10", "b|10", "∅|10"]);
    assert_eq!(rows(&context, "SELECT count(*) FROM t WHERE dt > 'a'").await.expect("runs"), ["10"]);
    let plan = explain(&context, "SELECT count(*) FROM t").await;
    assert!(!plan.contains("ReadExec") && !plan.contains("DataSourceExec"), "{plan}");
}

#[tokio::test]
async fn the_null_partition_is_counted_and_bounds_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("id", "INT"), ("dt", "STRING")]).partitioned_by(&["dt"]);
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    for dt in [None, Some("b"), None, Some("a"), Some("b")] {
        table.append(&[json!({"id": 1, "dt": dt}), json!({"id": 2, "dt": dt})]).expect("appends");
    }
    remove_data_files(&table);
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    assert_eq!(all_ways(&lake, "SELECT count(*), count(dt), min(dt), max(dt) FROM t").await, ["10|6|a|b"]);
    assert_eq!(all_ways(&lake, "SELECT dt, count(*) FROM t GROUP BY dt").await, ["a|2", "b|4", "∅|4"]);
    assert_eq!(all_ways(&lake, "SELECT count(*), count(dt), max(dt) FROM t WHERE dt IS NULL").await, ["4|0|∅"]);
}

#[tokio::test]
async fn compacted_partitions_of_a_keyed_table_are_counted_and_bounded_by_metadata() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = keyed("deduplicate").option("deletion-vectors.enabled", "true");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    let mut commit = table.commit().kind(CommitKind::Compact);
    for (dt, rows) in [("a", 4), ("b", 5), ("c", 6)] {
        commit = commit.file(FileSpec::rows(&(0..rows).map(|id| row(id, id, dt)).collect::<Vec<_>>()).level(5));
    }
    commit.publish().expect("publishes");
    // all rows of a and one of b are deleted
    let files = table.live_files().expect("lists");
    let name = |at: usize| files.get(at).map(|entry| entry.file.file_name.clone()).expect("is there");
    let deleted = table.commit().delete_positions(&name(0), &[0, 1, 2, 3]).delete_positions(&name(1), &[2]);
    deleted.publish().expect("publishes");
    remove_data_files(&table);
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    assert_eq!(all_ways(&lake, "SELECT min(dt), max(dt), count(*) FROM t").await, ["b|c|10"]);
    assert_eq!(all_ways(&lake, "SELECT dt, count(*) FROM t GROUP BY dt").await, ["b|4", "c|6"]);
    assert_eq!(all_ways(&lake, "SELECT max(dt) FROM t WHERE dt < 'c'").await, ["b"]);
    assert_eq!(all_ways(&lake, "SELECT DISTINCT dt FROM t").await, ["b", "c"]);
    let context = register(WITH_SOURCE, &lake);
    for sql in ["SELECT min(dt), max(dt) FROM t", "SELECT count(*), max(dt) FROM t WHERE dt > 'b'"] {
        let plan = explain(&context, sql).await;
        assert!(!plan.contains("ReadExec") && !plan.contains("DataSourceExec"), "{plan}");
    }
}

#[tokio::test]
async fn a_partition_without_rows_bounds_nothing() {
    for (name, level) in [("merged", 0), ("alone", 3)] {
        let dir = tempfile::tempdir().expect("a folder");
        let mut table = TableBuilder::create(dir.path(), "d", "t", &keyed("deduplicate")).expect("creates");
        let mut first = table.commit().kind(CommitKind::Compact);
        first = first.file(FileSpec::rows(&[row(1, 1, "b"), row(2, 2, "b")]).level(5));
        if level == 0 {
            first = first.file(FileSpec::rows(&[row(1, 1, "a"), row(1, 1, "z")]).level(5));
        }
        first.publish().expect("publishes");
        // the only rows of a and z are deleted: by newer rows, or they were never there
        let deletes = FileSpec::rows(&[gone(1, "a"), gone(1, "z")]).level(level).delete_count(Some(0));
        table.commit().file(deletes).publish().expect("publishes");
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        assert_eq!(all_ways(&lake, "SELECT min(dt), max(dt), count(*) FROM t").await, ["b|b|2"], "{name}");
        assert_eq!(all_ways(&lake, "SELECT dt, count(*) FROM t GROUP BY dt").await, ["b|2"], "{name}");
        let plan = explain(&register(WITH_SOURCE, &lake), "SELECT min(dt), max(dt) FROM t").await;
        assert!(plan.contains("ReadExec") || plan.contains("DataSourceExec"), "{name}: {plan}");
        // where the partitions are known to hold rows, they are bounds again
        let plan = explain(&register(WITH_SOURCE, &lake), "SELECT min(dt), max(dt) FROM t WHERE dt = 'b'").await;
        assert!(!plan.contains("ReadExec") && !plan.contains("DataSourceExec"), "{name}: {plan}");
    }
}

/// Rows below the top level whose deletes nobody counted; where `vectors`, over older versions that a vector hides, else
/// over older versions on the top level or none.
fn uncounted_deletes(dir: &std::path::Path, engine: &str, level: i32, vectors: bool) {
    let spec = keyed(engine).option("deletion-vectors.enabled", if vectors { "true" } else { "false" });
    let mut table = TableBuilder::create(dir, "d", "t", &spec).expect("creates");
    let old: Vec<_> = (10..13).map(|id| row(id, 1, "d")).collect();
    table.commit().file(FileSpec::rows(&old).level(5)).kind(CommitKind::Compact).publish().expect("publishes");
    let hidden = table.live_files().expect("lists").first().map(|entry| entry.file.file_name.clone()).expect("one");
    let with_deletes =
        |dt: &str| -> Vec<_> { (0..10).map(|id| row(id, id, dt)).chain((10..13).map(|id| gone(id, dt))).collect() };
    let lower = |rows: &[serde_json::Value]| FileSpec::rows(rows).level(level).delete_count(Some(0));
    let mut commit = table
        .commit()
        .kind(CommitKind::Compact)
        .file(lower(&with_deletes("a")))
        .file(FileSpec::rows(&(0..5).map(|id| row(id, id, "b")).collect::<Vec<_>>()).level(5))
        .file(lower(&(0..4).map(|id| gone(id, "c")).collect::<Vec<_>>()))
        .file(lower(&with_deletes("d")));
    if vectors {
        commit = commit.delete_positions(&hidden, &[0, 1, 2]);
    }
    commit.publish().expect("publishes");
}

#[tokio::test]
async fn deletes_that_nobody_counted_delete_all_the_same() {
    for (engine, vectors) in
        [("deduplicate", false), ("deduplicate", true), ("partial-update", true), ("first-row", true)]
    {
        for level in [1, 4] {
            let dir = tempfile::tempdir().expect("a folder");
            uncounted_deletes(dir.path(), engine, level, vectors);
            let lake = latest(dir.path(), "d", "t").await.expect("pins");
            let what = format!("{engine}, vectors {vectors}, level {level}");
            let ids: Vec<String> = (0..10).map(|id| id.to_string()).collect();
            for dt in ["a", "d"] {
                assert_eq!(all_ways(&lake, &format!("SELECT id FROM t WHERE dt = '{dt}'")).await, ids, "{what}");
            }
            assert_eq!(
                all_ways(&lake, "SELECT id, v, s FROM t WHERE s = 'gone'").await,
                Vec::<String>::new(),
                "{what}"
            );
            assert_eq!(all_ways(&lake, "SELECT count(*), count(v), min(dt), max(dt) FROM t").await, ["25|25|a|d"]);
            assert_eq!(
                all_ways(&lake, "SELECT dt, count(*) FROM t GROUP BY dt").await,
                ["a|10", "b|5", "d|10"],
                "{what}"
            );
            assert_eq!(all_ways(&lake, "SELECT count(*) FROM t WHERE dt = 'c'").await, ["0"], "{what}");
            for limit in [5, 11, 15, 25, 26] {
                let sql = format!("SELECT count(*) FROM (SELECT v FROM t LIMIT {limit})");
                assert_eq!(all_ways(&lake, &sql).await, [limit.min(25).to_string()], "{what}, limit {limit}");
                let sql = format!("SELECT count(*) FROM (SELECT dt FROM t WHERE dt <> 'b' LIMIT {limit})");
                assert_eq!(all_ways(&lake, &sql).await, [limit.min(20).to_string()], "{what}, limit {limit}");
            }
        }
    }
}
