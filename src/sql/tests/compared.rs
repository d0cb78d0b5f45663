//! Rows that are compared, keys of maps, and what the rules of `EXPLAIN FILES` say of times.

use super::*;

/// A table of three files, keys 1 to 3, 4 to 6 and 7 to 9, in two partitions.
fn three_files() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("k", "BIGINT NOT NULL"), ("dt", "STRING NOT NULL"), ("at", "TIMESTAMP(3)")])
        .partitioned_by(&["dt"])
        .primary_key(&["k", "dt"])
        .option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    for (first, dt) in [(1, "d1"), (4, "d1"), (7, "d2")] {
        let all: Vec<_> =
            (first..first + 3).map(|k| json!({"k": k, "dt": dt, "at": format!("2026-04-0{k}T10:00:00.123")})).collect();
        table.commit().file(FileSpec::rows(&all).level(5)).kind(CommitKind::Compact).publish().unwrap();
    }
    dir
}

async fn kept(session: &Session, condition: &str) -> usize {
    let sql = format!("EXPLAIN FILES SELECT * FROM t WHERE {condition}");
    rows(session, &sql).await.iter().filter(|row| row.split(',').nth(3) == Some("true")).count()
}

#[tokio::test]
async fn rows_that_are_compared_leave_files_out() {
    let dir = three_files();
    let session = session_of(&dir).await;
    for (condition, files, right) in [
        ("(k, dt) = (5, 'd1')", 1, vec!["5"]),
        ("(k, dt) IN ((5, 'd1'), (6, 'd1'))", 1, vec!["5", "6"]),
        ("(k, dt) IN ((5, 'd1'), (5, 'd2'), (8, 'd2'))", 2, vec!["5", "8"]),
        ("(k, dt) NOT IN ((1, 'd1'), (2, 'd1')) AND k < 4", 1, vec!["3"]),
        ("(k, dt) <> (1, 'd1') AND k < 3", 1, vec!["2"]),
        ("(dt, (k, k)) = ('d1', (5, 5))", 1, vec!["5"]),
        ("k IS NOT DISTINCT FROM 5", 1, vec!["5"]),
        ("NOT (k IS DISTINCT FROM 5)", 1, vec!["5"]),
        ("at IS NOT DISTINCT FROM TIMESTAMP '2026-04-05 10:00:00.123'", 1, vec!["5"]),
        ("k IS DISTINCT FROM 5 AND k > 3 AND k < 7", 1, vec!["4", "6"]),
        ("at IS NOT DISTINCT FROM NULL", 0, vec![]),
        ("k IS NOT DISTINCT FROM NULL", 0, vec![]),
    ] {
        assert_eq!(rows(&session, &format!("SELECT k FROM t WHERE {condition}")).await, right, "{condition}");
        assert_eq!(kept(&session, condition).await, files, "{condition}");
    }
}

/// A row with NULL equals none, unless a column differs.
#[tokio::test]
async fn rows_are_compared_by_the_three_values_of_sql() {
    let dir = three_files();
    let session = session_of(&dir).await;
    for (condition, right) in [
        ("(1, NULL) = (1, NULL)", "NULL"),
        ("(1, NULL) = (2, NULL)", "false"),
        ("(1, 2) = (1, 2)", "true"),
        ("(1, NULL) <> (2, 3)", "true"),
        ("(1, NULL) IN ((2, 3), (1, 4))", "NULL"),
        ("(1, 4) IN ((2, 3), (1, 4), (NULL, NULL))", "true"),
        ("(1, 4) NOT IN ((2, 3), (1, NULL))", "NULL"),
    ] {
        assert_eq!(rows(&session, &format!("SELECT {condition}")).await, [right], "{condition}");
    }
}

#[tokio::test]
async fn lists_of_rows_have_one_meaning_however_long() {
    let dir = three_files();
    let session = session_of(&dir).await;
    let listed = |rows: usize, op: &str| {
        let all: Vec<String> = (0..rows).map(|at| format!("({at}, 1)")).collect();
        format!("SELECT x FROM (VALUES (1), (5000), (NULL)) t(x) WHERE (x, 1) {op} ({})", all.join(", "))
    };
    for count in [2, 300, 2_000] {
        assert_eq!(rows(&session, &listed(count, "NOT IN")).await, ["5000"], "{count}");
        assert_eq!(rows(&session, &listed(count, "IN")).await, ["1"], "{count}");
    }
    let error = ask(&session, &listed(2_001, "NOT IN")).await.unwrap_err();
    assert!(
        error.code() == "StatementTooDeep" && error.hint().is_some_and(|hint| hint.contains("EXISTS")),
        "{error:?}"
    );
}

#[tokio::test]
async fn keys_of_maps_are_found_in_their_own_type() {
    let dir = three_files();
    let session = session_of(&dir).await;
    for (key, found, missed) in [
        ("CAST(1 AS TINYINT)", "1", "2"),
        ("CAST(1 AS SMALLINT)", "1", "100000"),
        ("CAST(1 AS INT)", "1", "3000000000"),
        ("CAST(1 AS INT)", "1.0", "1.5"),
        ("CAST(1 AS BIGINT)", "1", "-1"),
        ("CAST(-1 AS INT)", "-1", "1"),
        ("CAST(1.5 AS DECIMAL(5, 2))", "1.50", "1.505"),
        ("CAST(1.5 AS DECIMAL(5, 2))", "1.5", "100000"),
        ("CAST(0.1 AS DOUBLE)", "0.1", "0.2"),
        ("true", "true", "false"),
        ("'x'", "'x'", "'y'"),
        ("DATE '2026-04-16'", "DATE '2026-04-16'", "DATE '2026-04-17'"),
        ("DATE '2026-04-16'", "'2026-04-16'", "TIMESTAMP '2026-04-16 01:00:00'"),
        ("CAST(TIME '10:00:00' AS TIME(3))", "TIME '10:00:00'", "TIME '10:00:00.0001'"),
        (
            "CAST(TIMESTAMP '2026-04-16 10:00:00.123' AS TIMESTAMP(3))",
            "TIMESTAMP '2026-04-16 10:00:00.123'",
            "TIMESTAMP '2026-04-16 10:00:00.1234'",
        ),
        (
            "CAST(TIMESTAMP '9999-12-31 00:00:00' AS TIMESTAMP(6))",
            "TIMESTAMP '9999-12-31 00:00:00'",
            "DATE '2026-04-16'",
        ),
    ] {
        let sql = format!("SELECT m[{found}], m[{missed}] FROM (SELECT map([{key}], ['yes']) AS m FROM t WHERE k = 1)");
        assert_eq!(rows(&session, &sql).await, ["yes,NULL"], "{key}: {found}, {missed}");
    }
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("m", "MAP<INT, STRING>"), ("n", "MAP<STRING, MAP<INT, INT>>")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table
        .append(&[json!({"m": {"1": "a", "2": "b"}, "n": {"x": {"7": 8}}}), json!({"m": {"3": "c"}, "n": {}})])
        .unwrap();
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, "SELECT m[1], m[3], n['x'][7] FROM t").await, ["NULL,c,NULL", "a,NULL,8"]);
    assert_eq!(rows(&session, "SELECT count(*) FROM t WHERE m[1] = 'a' AND n['x'][7] > 7").await, ["1"]);
    // a text that is no such key is a mistake, not a key that is not there
    assert!(ask(&session, "SELECT m['one'] FROM t").await.is_err());
}

#[tokio::test]
async fn rules_show_times_as_times() {
    let dir = three_files();
    let session = session_of(&dir).await;
    let told = rows(&session, "EXPLAIN FILES SELECT * FROM t WHERE at = TIMESTAMP '2026-04-05 10:00:00.123'").await;
    let told = told.join("\n");
    assert!(told.contains("at = 2026-04-05T10:00:00.123") && !told.contains("1775"), "{told}");
}

#[tokio::test]
async fn what_cannot_be_done_is_told_with_a_way_out() {
    let (dir, _table) = three_snapshots();
    let spec = TableSpec::new(&[("rowkind", "STRING"), ("v", "INT")]).option("bucket", "-1");
    let mut own = TableBuilder::create(dir.path(), "pay", "own", &spec).unwrap();
    own.append(&[json!({"rowkind": "x", "v": 1})]).unwrap();
    let session = session_of(&dir).await;
    for system in ["audit_log", "binlog"] {
        let error = ask(&session, &format!("SELECT * FROM own${system}")).await.unwrap_err();
        assert_eq!(error.code(), "ColumnOfView", "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("paimon_diff")), "{error}");
    }
    assert_eq!(rows(&session, "SELECT rowkind FROM own").await, ["x"]);
    for sql in [
        "SELECT * FROM t TIMESTAMP AS OF (SELECT max(commit_time) FROM t$snapshots)",
        "SELECT * FROM t TIMESTAMP AS OF (SELECT max(commit_time) - INTERVAL '1' HOUR FROM t$snapshots)",
    ] {
        let error = ask(&session, sql).await.unwrap_err();
        assert_eq!(error.code(), "NotConstant", "{error}");
        assert!(error.message().contains("a subquery") && error.hint().is_some(), "{error}");
    }
    let branch = dir.path().join("pay.db/t/branch/branch-b");
    for folder in ["schema", "snapshot"] {
        std::fs::create_dir_all(branch.join(folder)).unwrap();
        for file in std::fs::read_dir(dir.path().join("pay.db/t").join(folder)).unwrap().flatten() {
            std::fs::copy(file.path(), branch.join(folder).join(file.file_name())).unwrap();
        }
    }
    rows(&session, "PIN TABLE t$branch_b").await;
    let error = ask(&session, "UNPIN TABLE t").await.unwrap_err();
    assert_eq!(error.code(), "NotPinned");
    assert!(error.hint().is_some_and(|hint| hint.contains("pay.t$branch_b")), "{error:?}");
}
