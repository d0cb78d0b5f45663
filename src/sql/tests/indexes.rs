//! File indexes answer as the rows do and let files go that statistics keep; index files lie where the options say.

use super::*;
use crate::spec::vectors::{container, hex, index_vectors};

#[tokio::test]
async fn every_kind_of_index_lets_files_go_and_loses_no_row() {
    for vector in index_vectors().iter().filter(|vector| vector["type"] == "INT") {
        let values: Vec<Option<i64>> = vector["values"].as_array().unwrap().iter().map(|v| v.as_i64()).collect();
        let distinct: std::collections::BTreeSet<i64> = values.iter().flatten().copied().collect();
        // a file of one value tells as much by its statistics
        if distinct.len() < 3 {
            continue;
        }
        let kind = format!("{} {}", vector["index"], vector["options"]);
        let body = hex(vector["bytes"].as_str().unwrap());
        let index = container(&[(vector["index"].as_str().unwrap(), Some(&body))]);
        let dir = tempfile::tempdir().unwrap();
        let spec = TableSpec::new(&[("n", "INT"), ("c", "INT")]).option("bucket", "-1");
        let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
        let given: Vec<_> = values.iter().enumerate().map(|(n, c)| json!({"n": n, "c": c})).collect();
        table.commit().file(FileSpec::rows(&given).keep_order().embedded_index(index)).publish().unwrap();
        let session = session_of(&dir).await;
        let mut dropped = 0;
        for literal in distinct.iter().flat_map(|value| [*value, value + 1]) {
            for (op, holds) in [
                ("=", (|c, l| c == l) as fn(i64, i64) -> bool),
                ("<", |c, l| c < l),
                (">=", |c, l| c >= l),
                ("<>", |c, l| c != l),
            ] {
                let sql = format!("SELECT n FROM t WHERE c {op} {literal}");
                let mut expected: Vec<String> = (0..values.len())
                    .filter(|row| values[*row].is_some_and(|c| holds(c, literal)))
                    .map(|row| row.to_string())
                    .collect();
                expected.sort();
                assert_eq!(rows(&session, &sql).await, expected, "{kind}: {sql}");
                let files = format!("EXPLAIN FILES {sql}");
                let (files, _) = all(session.run_one(&files).await.unwrap()).await;
                let by_index = files.iter().flatten().any(|cell| cell.contains("index"));
                assert!(!by_index || expected.is_empty(), "{kind}: {files:?}");
                dropped += usize::from(by_index);
            }
        }
        assert!(dropped > 3, "{kind}: only {dropped} filters let the file go");
    }
}

#[tokio::test]
async fn deletion_vectors_are_found_beside_the_data_where_the_option_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "INT")])
        .primary_key(&["id"])
        .option("bucket", "1")
        .option("deletion-vectors.enabled", "true")
        .option("index-file-in-data-file-dir", "true");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let given: Vec<_> = (0..4).map(|id| json!({"id": id, "v": id})).collect();
    table.commit().file(FileSpec::rows(&given).level(5)).publish().unwrap();
    let (from, to) = (table.root().join("index"), table.root().join("bucket-0"));
    let listed = |folder: &std::path::Path| -> Vec<_> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let data = listed(&to)[0].file_name().unwrap().to_string_lossy().into_owned();
    table.commit().delete_positions(&data, &[1, 3]).publish().unwrap();
    let moved = listed(&from);
    for file in &moved {
        std::fs::rename(file, to.join(file.file_name().unwrap())).unwrap();
    }
    assert!(!moved.is_empty());
    assert_eq!(rows(&session_of(&dir).await, "SELECT id FROM t").await, ["0", "2"]);
}
