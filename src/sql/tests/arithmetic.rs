//! Arithmetic whose result is no number of its type.

use super::*;

const MOST: &str = "9223372036854775807";
const LEAST: &str = "(-9223372036854775808)";

/// A row of all integer types at their ends.
const ENDS: &str = "(SELECT CAST(127 AS TINYINT) AS t, CAST(32767 AS SMALLINT) AS s, CAST(2147483647 AS INT) AS i, \
                    9223372036854775807 AS b, CAST(255 AS TINYINT UNSIGNED) AS ut, \
                    CAST(4294967295 AS INT UNSIGNED) AS ui, \
                    CAST(18446744073709551615 AS BIGINT UNSIGNED) AS ub) e";

#[tokio::test]
async fn what_leaves_its_type_is_an_error_wherever_it_stands() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let by_column = ["t", "s", "i", "b", "ut", "ui", "ub"].into_iter().flat_map(|column| {
        [
            format!("SELECT {column} + {column} FROM {ENDS}"),
            format!("SELECT {column} * {column} FROM {ENDS}"),
            format!("SELECT sum({column} * {column}) FROM {ENDS}"),
            format!("SELECT 1 FROM {ENDS} WHERE {column} + {column} > 0"),
        ]
    });
    let signed = ["t", "s", "i", "b"].into_iter().flat_map(|column| {
        let least = format!("(SELECT -{column} - CAST(1 AS BIGINT) AS wide, {column} FROM {ENDS}) l");
        let typed = format!(
            "CAST(wide AS {})",
            match column {
                "t" => "TINYINT",
                "s" => "SMALLINT",
                "i" => "INT",
                _ => "BIGINT",
            }
        );
        [format!("SELECT -({typed}) FROM {least}"), format!("SELECT {typed} - {column} FROM {least}")]
    });
    let others = [
        format!("SELECT {MOST} + 1"),
        format!("SELECT {LEAST} - 1"),
        format!("SELECT -({LEAST})"),
        format!("SELECT {MOST} * 2"),
        format!("SELECT id * {MOST} FROM t"),
        format!("SELECT id FROM t WHERE id + {MOST} > 0"),
        format!("SELECT id FROM t ORDER BY id + {MOST}"),
        format!("SELECT count(*) FROM t GROUP BY id + {MOST}"),
        format!("SELECT sum(id) OVER (ORDER BY id * {MOST}) FROM t"),
        format!("SELECT lag(id * {MOST}) OVER (ORDER BY id) FROM t"),
        format!("SELECT a.id FROM t a JOIN t b ON a.id + {MOST} = b.id"),
        format!("SELECT id FROM t WHERE id IN (SELECT id + {MOST} FROM t)"),
        format!("SELECT (SELECT max(id * {MOST}) FROM t)"),
        format!("VALUES ({MOST} + 1)"),
        format!("CREATE TEMPORARY TABLE made AS SELECT id * {MOST} AS x FROM t"),
        format!("SELECT * FROM t VERSION AS OF 2 WHERE id * {MOST} > 0"),
        format!("SELECT * FROM t FOR SYSTEM_TIME AS OF to_timestamp_millis({MOST} + 1)"),
        format!("SELECT avg(CAST('1{:0>24}' AS DECIMAL(38, 10))) FROM t", 0),
        format!("SELECT avg(CAST('1{:0>24}' AS DECIMAL(38, 10))) FROM t GROUP BY id", 0),
    ];
    for sql in by_column.chain(signed).chain(others) {
        assert_eq!(code(&session, &sql).await, "NumberOutOfRange", "{sql}");
    }
    let error = ask(&session, &format!("SELECT id + {MOST} FROM t WHERE id = 3")).await.unwrap_err();
    assert!(error.to_string().contains(&format!("3 + {MOST} is beyond the numbers of BIGINT")), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("DECIMAL(38, 0)")), "{error:?}");
}

#[tokio::test]
async fn what_is_not_evaluated_or_is_null_does_not_fail() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (sql, found) in [
        (format!("SELECT CASE WHEN id < 3 THEN id ELSE id * {MOST} END FROM t WHERE id < 3"), vec!["2"]),
        (format!("SELECT CASE WHEN id > 2 THEN 0 ELSE id * 2 END + {MOST} - {MOST} FROM t WHERE id > 2"), vec!["0"]),
        (format!("SELECT coalesce(id, id * {MOST}) FROM t"), vec!["2", "3"]),
        (format!("SELECT x + {MOST} FROM (VALUES (NULL), (-1)) v(x)"), vec!["9223372036854775806", "NULL"]),
        (format!("SELECT id FROM t WHERE id > 100 AND id * {MOST} > 0"), Vec::new()),
        (
            format!("SELECT {MOST} + 0, {LEAST} + 0, -{MOST} - 1, {LEAST} * 1"),
            vec!["9223372036854775807,-9223372036854775808,-9223372036854775808,-9223372036854775808"],
        ),
        (
            "SELECT CAST(id AS TINYINT) * CAST(40 AS TINYINT), 7 % id, 7 / id, -id FROM t".to_string(),
            vec!["120,1,2,-3", "80,1,3,-2"],
        ),
    ] {
        assert_eq!(rows(&session, &sql).await, found, "{sql}");
    }
}

#[tokio::test]
async fn differences_of_places_and_lengths_have_a_sign() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let places =
        "SELECT row_number() OVER (ORDER BY id) AS up, row_number() OVER (ORDER BY id DESC) AS down, id FROM t";
    for (sql, found) in [
        (format!("SELECT up - down FROM ({places}) p"), vec!["-1", "1"]),
        (format!("SELECT sum(up - down), arrow_typeof(min(up - down)) FROM ({places}) p"), vec!["0,Int64"]),
        (
            format!("SELECT d - up, d - id FROM (SELECT up - down AS d, up, id FROM ({places}) p) q"),
            vec!["-1,-2", "-2,-3"],
        ),
        (
            format!("SELECT up - down AS d FROM ({places}) p UNION ALL SELECT up FROM ({places}) p"),
            vec!["-1", "1", "1", "2"],
        ),
        (format!("SELECT up - down AS d FROM ({places}) p WHERE up - down < 0"), vec!["-1"]),
        ("SELECT array_length([1]) - array_length([1, 2, 3])".to_string(), vec!["-2"]),
        ("SELECT CAST(1 AS TINYINT UNSIGNED) - CAST(255 AS TINYINT UNSIGNED)".to_string(), vec!["-254"]),
    ] {
        assert_eq!(rows(&session, &sql).await, found, "{sql}");
    }
    let far = "SELECT CAST(18446744073709551615 AS BIGINT UNSIGNED) - CAST(0 AS BIGINT UNSIGNED)";
    assert_eq!(code(&session, far).await, "NumberOutOfRange");
}

#[tokio::test]
async fn decimals_keep_the_digits_of_their_type() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let six = format!("CAST('{}' AS DECIMAL(38, 0))", "6".repeat(38));
    for sql in [
        format!("SELECT {six} + {six}"),
        format!("SELECT x + x FROM (SELECT {six} AS x) t"),
        format!("SELECT x - y FROM (SELECT {six} AS x, CAST('-{}' AS DECIMAL(38, 0)) AS y) t", "6".repeat(38)),
        format!("SELECT x * 2 FROM (SELECT {six} AS x) t"),
        format!("SELECT x / 0.5 FROM (SELECT {six} AS x) t"),
    ] {
        assert_eq!(code(&session, &sql).await, "NumberOutOfRange", "{sql}");
    }
    let half = "3".repeat(38);
    let sql = format!("SELECT x + x, x - x FROM (SELECT CAST('{half}' AS DECIMAL(38, 0)) AS x) t");
    assert_eq!(rows(&session, &sql).await, [format!("{},0", "6".repeat(38))]);
}

#[tokio::test]
async fn columns_keep_their_names_and_constants_prune() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("day", "INT"), ("id", "BIGINT"), ("v", "INT")])
        .partitioned_by(&["day"])
        .option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    for day in 1..=4 {
        table.append(&[json!({"day": day, "id": day * 10, "v": day})]).unwrap();
    }
    let session = session_of(&dir).await;
    let result =
        session.run_one("SELECT id + v, id * 2 - -v, -id, sum(id * v) OVER () FROM t LIMIT 1 + 1").await.unwrap();
    let names: Vec<&str> = result.schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names[..3], ["t.id + t.v", "t.id * Int64(2) - (- t.v)", "(- t.id)"]);
    assert!(names[3].starts_with("sum(t.id * t.v)"), "{names:?}");
    for (condition, files) in [
        ("day = 1 + 2", 1),
        ("day + 1 = 3", 1),
        ("day * 2 BETWEEN 3 AND 6", 2),
        ("id = 3 * 10", 1),
        ("id > 20 + 5", 2),
        ("id IN (5 + 5, 20)", 2),
        ("-day = -3", 1),
        ("-id <= -30", 2),
        ("-v > -2", 1),
        ("-3 > -v", 1),
        ("id < -(-20)", 1),
        ("day = 7 AND 9223372036854775807 + day > 0", 0),
    ] {
        let result = session.run_one(&format!("SELECT v FROM t WHERE {condition}")).await.unwrap();
        assert_eq!(result.scanned.map_or(0, |scanned| scanned.files), files, "{condition}");
    }
    let plan = rows(&session, "EXPLAIN SELECT id + v FROM t WHERE day + 1 = 3").await.join("\n");
    assert!(plan.contains("full_filters") && plan.contains("add("), "{plan}");
}

#[tokio::test]
async fn a_session_of_the_caller_gets_it_with_our_sql() {
    let (dir, _table) = three_snapshots();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    warehouse.register(&context, "lake").await.unwrap();
    for (sql, wanted) in [
        (format!("SELECT id + {MOST} FROM lake.pay.t"), "NumberOutOfRange"),
        (format!("SELECT sum(x) FROM (VALUES ({MOST}), (1)) t(x)"), "SumOutOfRange"),
    ] {
        let frame = warehouse.sql(&context, &sql).await.unwrap();
        let error = Error::from_datafusion(frame.collect().await.expect_err(&sql));
        assert_eq!(error.code(), wanted, "{sql}");
    }
    // statements that reach DataFusion without us are its own
    let plain = context.sql(&format!("SELECT {MOST} + 1")).await.unwrap().collect().await.unwrap();
    assert_eq!(texts(&plain), [["-9223372036854775808"]]);
}
