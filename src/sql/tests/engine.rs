//! Answers that the engine underneath gets wrong by itself, and that are right here.

use super::*;

async fn all_right(session: &Session, cases: &[(&str, &[&str])]) {
    for (sql, expected) in cases {
        let result = session.run_one(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        let batches: Vec<RecordBatch> = result.stream.try_collect().await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        let rows: Vec<String> = texts(&batches).into_iter().map(|row| row.join(",")).collect();
        assert_eq!(rows, *expected, "{sql}");
    }
}

/// In the order they come in.
#[tokio::test]
async fn what_is_constant_below_is_not_so_above() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let cube = "SELECT count(*) FROM (SELECT k, v, count(*) AS c FROM
        (SELECT value % 2 AS k, value % 15000 AS v FROM generate_series(1, 600000)) t WHERE k = 1 GROUP BY CUBE(k, v)) q";
    all_right(
        &session,
        &[
            (
                "SELECT r.k, l.g FROM (VALUES (1), (2), (3)) r(k) LEFT JOIN (SELECT 1 AS g, x FROM (VALUES (2)) v(x)) l
                 ON l.x = r.k ORDER BY l.g, r.k",
                &["2,1", "1,NULL", "3,NULL"],
            ),
            (
                "SELECT r.k, l.g FROM (SELECT 1 AS g, x FROM (VALUES (2)) v(x)) l FULL JOIN (VALUES (1), (2), (3)) r(k)
                 ON l.x = r.k ORDER BY l.g DESC NULLS LAST, r.k LIMIT 2",
                &["2,1", "1,NULL"],
            ),
            (
                "SELECT g, v FROM (SELECT 1 AS g, value AS v FROM generate_series(1, 20000)
                 UNION ALL SELECT 0 AS g, value + 50 AS v FROM generate_series(1, 20000)) t ORDER BY g, v LIMIT 2",
                &["0,51", "0,52"],
            ),
            (cube, &["15002"]),
        ],
    )
    .await;
    rows(&session, "SET datafusion.execution.target_partitions = 1").await;
    all_right(
        &session,
        &[(
            "SELECT l.g, count(*) FROM (SELECT value v, 3 AS g FROM generate_series(1, 100)) l RIGHT JOIN
             (SELECT value % 200 AS k FROM generate_series(1, 100000)) r ON l.v = r.k GROUP BY l.g ORDER BY 2",
            &["3,50000", "NULL,50000"],
        )],
    )
    .await;
}

#[tokio::test]
async fn operands_keep_their_digits_above_what_brought_them_together() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let v = "(VALUES (1.5, 1e-18, 1)) v(d, f, i)";
    for of in ["coalesce(f, d)", "greatest(f, -d)", "CASE WHEN i = 2 THEN d ELSE f END"] {
        let sql = format!("SELECT c FROM (SELECT {of} AS c FROM {v}) t WHERE c = 0.0");
        assert!(rows(&session, &sql).await.is_empty(), "{sql}");
    }
    for (one, other) in [("d", "f"), ("f", "d"), ("i", "f"), ("row_number() OVER ()", "f")] {
        let sql =
            format!("SELECT c FROM (SELECT {one} AS c FROM {v} UNION ALL SELECT {other} FROM {v}) t WHERE c = 0.0");
        assert!(rows(&session, &sql).await.is_empty(), "{sql}");
    }
    all_right(
        &session,
        &[
            ("SELECT x FROM (SELECT 1.5 AS x UNION ALL SELECT 1e-20 UNION ALL SELECT 7) t ORDER BY x", &["1e-20", "1.5", "7.0"]),
            ("SELECT concat(1.50, ',', 2e0)", &["1.50,2.0"]),
            ("SELECT nvl2(1e0, 0.00000000000000000001, 2), nullif(12345678901234567890.5, 1e0)", &["0.00000000000000000001,12345678901234567890.5"]),
            ("SELECT nullif(x, 1.5), nvl2(x, 'a', 'b') FROM (VALUES (1.5e0), (NULL), (2e0)) t(x)", &["NULL,a", "NULL,b", "2.0,a"]),
            ("SELECT nullif(1, NULL), nullif('', ''), nullif(date '2026-01-01', '2026-01-01')", &["1,NULL,NULL"]),
            (
                "SELECT struct(CAST(12345678901234567890.12 AS DECIMAL(22, 2)), 1.5e0)['c0']",
                &["12345678901234567890.12"],
            ),
            ("SELECT d, s FROM (VALUES (1.24, '1.239'), (1.5, '1.50')) t(d, s) WHERE d = s", &["1.50,1.50"]),
            ("SELECT d FROM (VALUES (1.24), (1.5)) t(d) WHERE d IN (SELECT s FROM (VALUES ('1.239'), ('1.50')) u(s))", &["1.50"]),
            ("SELECT 9.5 IN ('5.5', NULL), 9.5 NOT IN ('5', NULL)", &["NULL,NULL"]),
            ("SELECT count(*) FROM (VALUES (1.23), (1.24)) t(d) WHERE 1.2399 IN (d, '1.2391')", &["0"]),
            ("SELECT count(*) FROM (VALUES (1.23), (1.24)) t(d) WHERE 1.2399 BETWEEN d AND '1.2391'", &["0"]),
            ("SELECT count(*) FROM (VALUES (-1e0 * 0), (0e0), (1e0)) t(v) WHERE v IN (-0e0, 5e0, 2e0, 7e0)", &["2"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn rows_are_ordered_by_their_columns() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let t = "(VALUES (1, NULL), (1, 2), (NULL, 5), (0, 9), (2, 0)) t(a, b)";
    for (condition, found) in [
        ("(a, b) <= (1, 2)", vec!["0,9", "1,2"]),
        ("(a, b) < (1, 2)", vec!["0,9"]),
        ("(a, b) > (1, 2)", vec!["2,0"]),
        ("(a, b) >= (1, 2)", vec!["1,2", "2,0"]),
        ("(a, b) BETWEEN (0, 9) AND (1, 2)", vec!["0,9", "1,2"]),
        ("CASE (a, b) WHEN (1, NULL) THEN 'hit' WHEN (1, 2) THEN 'two' END = 'hit'", vec![]),
        ("CASE (a, b) WHEN (1, NULL) THEN 'hit' WHEN (1, 2) THEN 'two' END = 'two'", vec!["1,2"]),
    ] {
        assert_eq!(rows(&session, &format!("SELECT a, b FROM {t} WHERE {condition}")).await, found, "{condition}");
    }
}

#[tokio::test]
async fn null_finds_null_only_where_that_was_asked_for() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let (a, b) = ("(VALUES (1), (NULL)) a(x)", "(VALUES (1), (NULL)) b(y)");
    all_right(
        &session,
        &[
            (&format!("SELECT count(*) FROM {a} JOIN {b} ON a.x IS NOT DISTINCT FROM b.y WHERE b.y = a.x"), &["1"]),
            (
                &format!(
                    "SELECT count(*) FROM {a} JOIN (VALUES (1, 1), (NULL, NULL)) b(x, y) ON a.x = b.x
                     JOIN (VALUES (1), (NULL)) c(y) ON b.y IS NOT DISTINCT FROM c.y"
                ),
                &["1"],
            ),
            (&format!("SELECT count(*) FROM {a} JOIN {b} ON a.x IS NOT DISTINCT FROM b.y"), &["2"]),
        ],
    )
    .await;
    for op in ["EXCEPT", "INTERSECT"] {
        let sql = format!("SELECT * FROM (VALUES (1), (1), (2)) t(a) {op} ALL SELECT * FROM (VALUES (1)) u(a)");
        assert_eq!(code(&session, &sql).await, "CountedSets");
        rows(&session, &sql.replace(" ALL", "")).await;
    }
}

#[tokio::test]
async fn nan_is_one_group_and_the_greatest_under_a_limit() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let nan = "CAST('NaN' AS DOUBLE)";
    all_right(
        &session,
        &[
            (
                &format!("SELECT DISTINCT x FROM (VALUES ({nan}), (1e0), (2e0), (3e0)) t(x) ORDER BY x LIMIT 1"),
                &["1.0"],
            ),
            (
                &format!(
                    "SELECT x, max(y) m FROM (VALUES ({nan}, 1), ({nan}, 9), (1e0, 5), (2e0, 3)) t(x, y) GROUP BY x
                     ORDER BY m DESC LIMIT 4"
                ),
                &["NaN,9", "1.0,5", "2.0,3"],
            ),
            (
                &format!(
                    "SELECT y FROM (SELECT y, max(x) m FROM (VALUES (1, {nan}), (2, {nan}), (3, 1e0)) t(y, x) GROUP BY y
                     ORDER BY m DESC LIMIT 2) ORDER BY y"
                ),
                &["1", "2"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn forms_that_the_engine_plans_and_fails_on_are_answered() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    all_right(
        &session,
        &[
            ("SELECT DISTINCT (v = 1) IS TRUE AS t FROM (VALUES (1), (NULL)) q(v) ORDER BY t", &["false", "true"]),
            ("SELECT g, count(*) FROM (SELECT (v > 21) IS NOT TRUE AS g FROM t) s GROUP BY g ORDER BY g", &["false,1", "true,1"]),
            ("SELECT x IS UNKNOWN, x IS NOT FALSE FROM (VALUES (NULL), (true)) t(x) ORDER BY 1", &["false,true", "true,true"]),
            (
                "SELECT x, rank() OVER (ORDER BY x) FROM (VALUES (TIME '01:00:00'), (TIME '00:30:00'), (TIME '01:00:00')) t(x)
                 ORDER BY x",
                &["00:30:00,1", "01:00:00,2", "01:00:00,2"],
            ),
            (
                "SELECT count(*) OVER (ORDER BY x) FROM (VALUES (X'01'), (X'01'), (X'02')) t(x) ORDER BY 1",
                &["2", "2", "3"],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn frames_end_where_the_type_of_their_key_ends() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (data_type, values, window, right) in [
        (
            "BIGINT",
            "(9223372036854775807), (2), (NULL)",
            "k RANGE BETWEEN CURRENT ROW AND 3 FOLLOWING",
            ["2,1", "9223372036854775807,1", "NULL,1"],
        ),
        (
            "TINYINT",
            "(-128), (-127), (NULL)",
            "k NULLS FIRST RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING",
            ["-127,1", "-128,0", "NULL,1"],
        ),
        (
            "TINYINT",
            "(-128), (5), (NULL)",
            "k DESC NULLS LAST RANGE BETWEEN 1 PRECEDING AND 9 FOLLOWING",
            ["-128,1", "5,1", "NULL,1"],
        ),
        // zero is no place for what is below it
        ("INT UNSIGNED", "(0), (1), (7)", "k RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING", ["0,0", "1,1", "7,0"]),
        // a distance that the type does not have
        ("SMALLINT", "(1), (2), (NULL)", "k NULLS FIRST RANGE 99999 PRECEDING", ["1,1", "2,2", "NULL,1"]),
    ] {
        let sql = format!(
            "SELECT k, count(*) OVER (ORDER BY {window}) FROM (SELECT CAST(x AS {data_type}) AS k FROM (VALUES {values}) v(x)) t"
        );
        assert_eq!(rows(&session, &sql).await, right, "{sql}");
    }
}

#[tokio::test]
async fn frames_end_where_times_end() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let last = "2262-04-11T23:47:16.800";
    for (data_type, values, window, right) in [
        (
            "TIMESTAMP",
            format!("('{last}'), (NULL), ('2020-01-01T00:00:00')"),
            "k RANGE BETWEEN CURRENT ROW AND INTERVAL '1 hour' FOLLOWING",
            vec!["2020-01-01T00:00:00,1".to_string(), format!("{last},1"), "NULL,1".to_string()],
        ),
        (
            "TIMESTAMP",
            format!("('{last}'), (NULL), ('2262-04-11T22:50:00')"),
            "k RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '1 day' FOLLOWING",
            vec!["2262-04-11T22:50:00,2".to_string(), format!("{last},2"), "NULL,3".to_string()],
        ),
        (
            "TIMESTAMP(3)",
            "('2024-01-31T00:00:00'), (NULL), ('2024-02-29T00:00:00'), ('2024-03-01T00:00:00')".into(),
            "k RANGE BETWEEN CURRENT ROW AND INTERVAL '1 month' FOLLOWING",
            ["2024-01-31T00:00:00,2", "2024-02-29T00:00:00,2", "2024-03-01T00:00:00,1", "NULL,1"]
                .map(str::to_string)
                .to_vec(),
        ),
        (
            "TIME(3)",
            "('23:59:59.5'), (NULL), ('23:00:00')".into(),
            "k RANGE BETWEEN CURRENT ROW AND INTERVAL '1 hour' FOLLOWING",
            ["23:00:00,2", "23:59:59.500,1", "NULL,1"].map(str::to_string).to_vec(),
        ),
        (
            "TIME",
            "('00:30:00'), (NULL), ('00:40:00')".into(),
            "k DESC NULLS LAST RANGE BETWEEN CURRENT ROW AND INTERVAL '1 hour' FOLLOWING",
            ["00:30:00,1", "00:40:00,2", "NULL,1"].map(str::to_string).to_vec(),
        ),
        (
            "DATE",
            "('2024-02-28'), (NULL), ('2024-03-01'), ('2024-03-02')".into(),
            "k RANGE BETWEEN INTERVAL '1 day' PRECEDING AND INTERVAL '2 days' FOLLOWING",
            ["2024-02-28,2", "2024-03-01,2", "2024-03-02,2", "NULL,1"].map(str::to_string).to_vec(),
        ),
    ] {
        let sql = format!(
            "SELECT k, count(*) OVER (ORDER BY {window}), min(k) OVER (ORDER BY k) = k FROM \
             (SELECT CAST(x AS {data_type}) AS k FROM (VALUES {values}) v(x)) t"
        );
        let found = rows(&session, &sql).await;
        let found: Vec<&str> = found.iter().filter_map(|row| row.rsplit_once(',')).map(|(row, _)| row).collect();
        assert_eq!(found, right, "{sql}");
    }
    let dates = "(VALUES (CAST(2147483647 AS DATE)), (NULL), (DATE '2020-01-01')) v(k)";
    let counts = "count(*) OVER (ORDER BY k RANGE BETWEEN CURRENT ROW AND INTERVAL '1 day' FOLLOWING)";
    assert_eq!(rows(&session, &format!("SELECT {counts} FROM {dates}")).await, ["1", "1", "1"]);
}

#[tokio::test]
async fn what_is_given_has_one_type_before_it_is_compared() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let t = "(VALUES (1, 1e-20, CAST(0 AS DECIMAL(9, 2))), (2, CAST('NaN' AS DOUBLE), 1.25)) t(n, f, d)";
    all_right(
        &session,
        &[
            (&format!("SELECT n FROM {t} WHERE CASE WHEN n > 5 THEN 1 ELSE f END = d"), &[]),
            (&format!("SELECT n FROM {t} WHERE CASE WHEN n > 5 THEN 1 ELSE f END NOT BETWEEN -2.5 AND d"), &["1", "2"]),
            (&format!("SELECT n FROM {t} WHERE coalesce(nullif(n, n), f) > d"), &["1", "2"]),
            (&format!("SELECT n FROM {t} WHERE greatest(n - 9, f) IN (d, 0.5)"), &[]),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_value_in_the_place_of_a_row_keeps_its_digits() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    all_right(
        &session,
        &[
            ("SELECT lag(x, 1, 0.005) OVER (ORDER BY x) FROM (VALUES (1.5), (2.5)) t(x)", &["0.005", "1.500"]),
            ("SELECT lead(x, 1, 1.5) OVER (ORDER BY x) FROM (VALUES (1), (2)) t(x)", &["2.0", "1.5"]),
            (
                "SELECT lag(x, 1, 3000000000) OVER (ORDER BY x) FROM (VALUES (CAST(1 AS INT)), (2)) t(x)",
                &["3000000000", "1"],
            ),
            ("SELECT lag(x, 1, 0) OVER (ORDER BY x) FROM (VALUES (1.5), (2.5)) t(x)", &["0.0", "1.5"]),
            ("SELECT lag(x, 1, NULL) OVER (ORDER BY x) FROM (VALUES (1), (2)) t(x)", &["NULL", "1"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn null_alone_is_no_distinct_value() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let t = "(SELECT CAST(NULL AS INT) AS x, a FROM (VALUES (1), (2)) v(a)) t";
    all_right(
        &session,
        &[
            (&format!("SELECT count(DISTINCT x), count(*) FROM {t}"), &["0,2"]),
            (&format!("SELECT count(DISTINCT x) FROM {t}"), &["0"]),
            ("SELECT count(DISTINCT x), count(*) FROM (SELECT 7 AS x FROM t) u", &["1,2"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn both_zeros_are_one() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let t = "(VALUES (0e0, 3), (-0e0, 2), (0e0, 1), (-0e0, 4)) t(x, y)";
    all_right(
        &session,
        &[
            (&format!("SELECT y FROM {t} ORDER BY x, y"), &["1", "2", "3", "4"]),
            (&format!("SELECT y FROM {t} ORDER BY x DESC, y LIMIT 2"), &["1", "2"]),
            (&format!("SELECT y FROM {t} ORDER BY CAST(x AS FLOAT), y DESC LIMIT 2"), &["4", "3"]),
            (&format!("SELECT DISTINCT ON (x) y FROM {t} ORDER BY x, y"), &["1"]),
            (&format!("SELECT first_value(y ORDER BY x, y DESC) FROM {t}"), &["4"]),
            (&format!("SELECT count(DISTINCT x), count(*) FROM {t}"), &["1,4"]),
            (
                &format!("SELECT DISTINCT rank() OVER (ORDER BY x), count(*) OVER (PARTITION BY x), sum(y) OVER (ORDER BY x) FROM {t}"),
                &["1,4,10"],
            ),
            (&format!("SELECT DISTINCT CASE x WHEN 0e0 THEN 'z' END, CASE 0e0 WHEN x THEN 'z' END FROM {t}"), &["z,z"]),
            ("SELECT CASE -0e0 WHEN 0e0 THEN 'z' END, nullif(-0e0, 0e0), -0e0 = 0e0, 0e0 IN (-0e0)", &["z,NULL,true,true"]),
            (&format!("SELECT count(*) FROM {t} GROUP BY x"), &["4"]),
            (&format!("SELECT count(*) FROM {t} JOIN (VALUES (0e0)) u(z) ON x = z"), &["4"]),
            // values are shown as they are
            ("SELECT x FROM (VALUES (-0e0, 1), (0e0, 0)) t(x, y) ORDER BY x, y", &["0.0", "-0.0"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn nan_in_other_parquet_files_is_found() {
    let (dir, _table) = three_snapshots();
    let out = tempfile::tempdir().unwrap();
    let session = session_of(&dir).await;
    for (name, values) in [("a", "('1'), ('NaN')"), ("b", "('NaN'), ('1')")] {
        let file = out.path().join(format!("{name}.parquet")).display().to_string();
        let written =
            format!("SELECT CAST(s AS DOUBLE) AS x, CAST(s AS FLOAT) AS f, 1 AS i FROM (VALUES {values}) t(s)");
        rows(&session, &format!("COPY ({written}) TO '{file}'")).await;
        rows(&session, &format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{file}'")).await;
        for pushed in [false, true] {
            rows(&session, &format!("SET datafusion.execution.parquet.pushdown_filters = {pushed}")).await;
            for condition in ["x > 1e0", "x > 100e0", "f <> 1", "x = CAST('NaN' AS DOUBLE)", "i = 1 AND f > 1"] {
                let sql = format!("SELECT count(*) FROM {name} WHERE {condition}");
                assert_eq!(rows(&session, &sql).await, ["1"], "{sql} {pushed}");
            }
        }
        let sql = format!("SELECT min(x), max(x), max(f), sum(x), count(DISTINCT x), max(i) FROM {name}");
        assert_eq!(rows(&session, &sql).await, ["1.0,NaN,NaN,NaN,2,1"]);
        assert_eq!(rows(&session, &format!("SELECT x FROM {name} ORDER BY x DESC LIMIT 1")).await, ["NaN"]);
    }
}

#[tokio::test]
async fn a_nested_key_that_is_null_is_merged_left_out_or_refused() {
    for (strategy, found) in [("merge", Ok("2")), ("ignore", Ok("1")), ("error", Err("NestedKeyNull"))] {
        let dir = tempfile::tempdir().unwrap();
        let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("items", "ARRAY<ROW<k INT, v INT>>")])
            .primary_key(&["id"])
            .option("bucket", "1")
            .option("merge-engine", "aggregation")
            .option("fields.items.aggregate-function", "nested_update")
            .option("fields.items.nested-key", "k")
            .option("fields.items.nested-key-null-strategy", strategy);
        let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
        for key in [json!(1), json!(null)] {
            table.append(&[json!({"id": 1, "items": [{"k": key, "v": 1}]})]).unwrap();
        }
        let session = session_of(&dir).await;
        let answer = ask(&session, "SELECT array_length(items) FROM t").await;
        let answer = answer.as_ref().map(|rows| rows[0].as_str()).map_err(Error::code);
        assert_eq!(answer, found, "{strategy}");
    }
}
