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

/// As the shell writes it: nothing stands for two values, and nothing is lost.
#[tokio::test]
async fn copied_text_tells_values_apart() {
    let (dir, _table) = three_snapshots();
    let out = tempfile::tempdir().unwrap();
    let session = session_of(&dir).await;
    let values = "SELECT 1 AS i, '' AS s, CAST('Infinity' AS DOUBLE) AS f, 12345678901234567890.10 AS d, X'00ff' AS b
        UNION ALL SELECT 2, NULL, CAST('NaN' AS DOUBLE), NULL, NULL
        UNION ALL SELECT 9007199254740993, E'a,\"b\\\\\\t', 0.1, -0.10, NULL ORDER BY i";
    let json = concat!(
        "{\"i\":1,\"s\":\"\",\"f\":\"Infinity\",\"d\":\"12345678901234567890.10\",\"b\":\"00ff\"}\n",
        "{\"i\":2,\"s\":null,\"f\":null,\"d\":null,\"b\":null}\n",
        "{\"i\":9007199254740993,\"s\":\"a,\\\"b\\\\\\t\",\"f\":0.1,\"d\":\"-0.10\",\"b\":null}\n",
    );
    let header = "i,s,f,d,b\n";
    let csv = "1,\"\",Infinity,12345678901234567890.10,00ff\n2,,NaN,,\n9007199254740993,\"a,\"\"b\\\t\",0.1,-0.10,\n";
    let tsv = "i\ts\tf\td\tb\n1\t\tInfinity\t12345678901234567890.10\t00ff\n2\t\\N\tNaN\t\\N\t\\N\n9007199254740993\ta,\"b\\\\\\t\t0.1\t-0.10\t\\N\n";
    let cases = [
        ("x.csv", "", format!("{header}{csv}")),
        ("x.CSV", "STORED AS CSV", format!("{header}{csv}")),
        ("x.tsv", "", tsv.to_string()),
        ("x.json", "", json.to_string()),
        ("x.ndjson", "", json.to_string()),
        ("x.jsonl", "", json.to_string()),
        ("h.csv", "OPTIONS ('format.has_header' 'false')", csv.to_string()),
        (
            "n.csv",
            "OPTIONS ('format.has_header' 'false', 'format.null_value' 'NaN', 'format.delimiter' '|')",
            "1||Infinity|12345678901234567890.10|00ff\n2|NaN|\"NaN\"|NaN|NaN\n9007199254740993|\"a,\"\"b\\\t\"|0.1|-0.10|NaN\n".into(),
        ),
        (
            "e.csv",
            "OPTIONS ('format.has_header' 'false', 'format.double_quote' 'false')",
            csv.replace("\"a,\"\"b\\\t\"", "\"a,\\\"b\\\\\t\""),
        ),
    ];
    for (name, options, expected) in cases {
        let target = out.path().join(name);
        let sql = format!("COPY ({values}) TO '{}' {options}", target.display());
        assert_eq!(rows(&session, &sql).await, ["3"], "{sql}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), expected, "{sql}");
    }
    let empty = out.path().join("empty.csv");
    rows(&session, &format!("COPY (SELECT id, v FROM t WHERE id < 0) TO '{}'", empty.display())).await;
    assert_eq!(std::fs::read_to_string(empty).unwrap(), "id,v\n");
}

#[tokio::test]
async fn copied_text_is_read_again() {
    let (dir, _table) = three_snapshots();
    let out = tempfile::tempdir().unwrap();
    let session = session_of(&dir).await;
    let expected = rows(&session, "SELECT id, v FROM t").await;
    for (format, name) in [("CSV", "x.csv"), ("JSON", "x.json"), ("NDJSON", "x.ndjson")] {
        let target = out.path().join(name).display().to_string();
        rows(&session, &format!("COPY (SELECT id, v FROM t) TO '{target}'")).await;
        rows(&session, &format!("CREATE EXTERNAL TABLE again_{format} STORED AS {format} LOCATION '{target}'")).await;
        assert_eq!(rows(&session, &format!("SELECT id, v FROM again_{format}")).await, expected, "{format}");
    }
}

/// An option that is not followed is refused, and no file is left.
#[tokio::test]
async fn copy_does_not_pass_over_an_option() {
    let (dir, _table) = three_snapshots();
    let out = tempfile::tempdir().unwrap();
    let session = session_of(&dir).await;
    for (name, option, value) in [
        ("x.csv", "date_format", "%d.%m.%Y"),
        ("x.csv", "timestamp_tz_format", "%s"),
        ("x.csv", "quote_style", "Never"),
        ("x.csv", "escape", "^"),
        ("x.tsv", "delimiter", ";"),
        ("x.tsv", "null_value", "NULL"),
        ("x.json", "newline_delimited", "false"),
    ] {
        let target = out.path().join(name);
        let sql = format!("COPY t TO '{}' OPTIONS ('format.{option}' '{value}')", target.display());
        let error = ask(&session, &sql).await.expect_err(&sql);
        assert_eq!(error.code(), "BadOption", "{error}");
        assert!(error.message().contains(option) && error.context().iter().any(|(name, _)| *name == "line"), "{error}");
        assert!(names(out.path()).is_empty(), "{sql}");
    }
}
