//! COPY leaves its target as it was, or whole.

use std::path::Path;
use std::time::Duration;

use super::*;

/// Names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const BREAKS: &str = "SELECT a.value / (a.value - 50000) AS x FROM generate_series(1, 100000) a";

#[tokio::test]
async fn copy_that_fails_leaves_what_stood_there() {
    let (dir, _table) = three_snapshots();
    let out = tempfile::tempdir().unwrap();
    let session = session_of(&dir).await;
    let target = |name: &str| out.path().join(name).display().to_string();
    for name in ["x.csv", "x.parquet", "x.json"] {
        std::fs::write(out.path().join(name), "precious").unwrap();
        for explain in ["", "EXPLAIN ANALYZE "] {
            let sql = format!("{explain}COPY ({BREAKS}) TO '{}'", target(name));
            assert_eq!(code(&session, &sql).await, "Execution", "{sql}");
        }
        assert_eq!(std::fs::read_to_string(out.path().join(name)).unwrap(), "precious");
        assert_eq!(names(out.path()), [name]);
        rows(&session, &format!("COPY t TO '{}'", target(name))).await;
        let written = std::fs::read(out.path().join(name)).unwrap();
        assert!(!written.is_empty() && written != b"precious", "{name}");
        std::fs::remove_file(out.path().join(name)).unwrap();
    }
    // a target that was not there is not there
    code(&session, &format!("COPY ({BREAKS}) TO '{}'", target("new.csv"))).await;
    assert!(names(out.path()).is_empty());
}

#[tokio::test]
async fn copy_into_a_folder_adds_whole_files() {
    let (dir, _table) = three_snapshots();
    let out = tempfile::tempdir().unwrap();
    let session = session_of(&dir).await;
    let folder = out.path().join("all");
    let copy = |query: &str| format!("COPY ({query}) TO '{}/' STORED AS CSV PARTITIONED BY (v)", folder.display());
    let read = format!("SELECT count(*) FROM {}", "added");
    for n in [1, 2] {
        rows(&session, &copy("SELECT id, v FROM t")).await;
        assert_eq!(names(&folder), ["v=21", "v=30"]);
        assert_eq!(names(&folder.join("v=21")).len(), n);
    }
    code(&session, &copy(&format!("SELECT x AS id, 7 AS v FROM ({BREAKS})"))).await;
    assert_eq!((names(&folder), names(out.path())), (vec!["v=21".into(), "v=30".into()], vec!["all".into()]));
    let create = format!(
        "CREATE EXTERNAL TABLE added (id BIGINT, v INT) STORED AS CSV PARTITIONED BY (v) LOCATION '{}/' OPTIONS ('format.has_header' 'true')",
        folder.display()
    );
    rows(&session, &create).await;
    assert_eq!(rows(&session, &read).await, ["4"]);
    // the name of a folder that is there means the folder
    std::fs::create_dir(out.path().join("d.csv")).unwrap();
    rows(&session, &format!("COPY t TO '{}'", out.path().join("d.csv").display())).await;
    assert_eq!(names(&out.path().join("d.csv")).len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_copy_leaves_nothing_beside() {
    let (dir, _table) = three_snapshots();
    let out = tempfile::tempdir().unwrap();
    std::fs::write(out.path().join("x.csv"), "precious").unwrap();
    let session = session_of(&dir).await;
    let sql = format!(
        "COPY (SELECT value, repeat('x', 1000) AS x FROM generate_series(1, 1000000000000)) TO '{}'",
        out.path().join("x.csv").display()
    );
    let mut stream = session.run_one(&sql).await.unwrap().stream;
    let running = tokio::spawn(async move { stream.try_next().await.map(drop) });
    // rows are being written
    while names(out.path()).len() < 2 {
        tokio::task::yield_now().await;
    }
    running.abort();
    let _ = running.await;
    // what the store does in the background ends soon
    for _ in 0..3000 {
        if names(out.path()).len() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(names(out.path()), ["x.csv"]);
    assert_eq!(std::fs::read_to_string(out.path().join("x.csv")).unwrap(), "precious");
}
