use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;

use crate::error::{Error, Result};
use crate::sql::{Session, SessionConfig, Warehouse};

async fn session(partitions: usize) -> Session {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("pay.db")).unwrap();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let config = SessionConfig { target_partitions: Some(partitions), batch_size: Some(2), ..SessionConfig::default() };
    Session::new(&warehouse, config).await.unwrap()
}

async fn ask(session: &Session, sql: &str) -> Result<Vec<String>> {
    let batches: Vec<RecordBatch> =
        session.run_one(sql).await?.stream.try_collect().await.map_err(Error::from_datafusion)?;
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in &batches {
        let columns: Vec<_> = batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            let cells: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
            cells.join(",")
        }));
    }
    rows.sort();
    Ok(rows)
}

const MOST: &str = "9223372036854775807";

#[tokio::test]
async fn a_sum_beyond_its_type_fails_in_every_form() {
    let nines = "9".repeat(38);
    for partitions in [1, 3] {
        let session = session(partitions).await;
        let ints = format!("(VALUES (1, {MOST}), (1, 1), (2, 5), (1, 7), (2, NULL)) t(g, x)");
        let decimal = format!("CAST('{nines}' AS DECIMAL(38, 0))");
        let decimals = format!("(VALUES (1, {decimal}), (1, {decimal}), (2, CAST(5 AS DECIMAL(38, 0)))) t(g, x)");
        let half = format!("CAST('{}' AS DECIMAL(38, 0))", "6".repeat(38));
        // within 128 bits, but of 39 digits
        let digits = format!("(VALUES (1, {half}), (1, {half})) t(g, x)");
        for from in [&ints, &decimals, &digits] {
            for sql in [
                format!("SELECT sum(x) FROM {from}"),
                format!("SELECT sum(x + 0) FROM {from}"),
                format!("SELECT g, sum(x) FROM {from} GROUP BY g"),
                format!("SELECT g, sum(x), count(DISTINCT x) FROM {from} GROUP BY g"),
                format!("SELECT sum(x) OVER (ORDER BY g ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM {from}"),
                format!("SELECT sum(x) OVER (PARTITION BY g) FROM {from}"),
                format!("SELECT g, sum(x) FILTER (WHERE x > 0) FROM {from} GROUP BY g"),
            ] {
                let error = ask(&session, &sql).await.expect_err(&sql);
                assert_eq!(error.code(), "SumOutOfRange", "{sql}: {error:?}");
            }
        }
        let distinct = format!("SELECT sum(DISTINCT x), min(g) FROM {ints}");
        assert_eq!(ask(&session, &distinct).await.unwrap_err().code(), "SumOutOfRange");
        let error = ask(&session, &format!("SELECT sum(x) FROM {ints}")).await.unwrap_err();
        assert!(error.to_string().contains("BIGINT"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("DECIMAL(38, 0)")), "{error:?}");
    }
}

#[tokio::test]
async fn sums_within_their_type_are_as_before() {
    for partitions in [1, 3] {
        let session = session(partitions).await;
        let from =
            format!("(VALUES (1, {MOST}), (1, -1), (2, 5), (2, NULL), (3, NULL), (1, -7), (2, 6), (2, 5)) t(g, x)");
        for (sql, found) in [
            (format!("SELECT sum(x) FROM {from} WHERE g = 1"), vec!["9223372036854775799"]),
            (format!("SELECT g, sum(x) FROM {from} GROUP BY g"), vec!["1,9223372036854775799", "2,16", "3,NULL"]),
            (format!("SELECT g, sum(x) FILTER (WHERE x < 6) FROM {from} GROUP BY g"), vec!["1,-8", "2,10", "3,NULL"]),
            (format!("SELECT g, sum(DISTINCT x) FROM {from} WHERE g > 1 GROUP BY g"), vec!["2,11", "3,NULL"]),
            (format!("SELECT sum(DISTINCT x), count(DISTINCT g) FROM {from} WHERE g > 1"), vec!["11,2"]),
            (
                "SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (VALUES (1), (2), (4)) t(x)"
                    .to_string(),
                vec!["1", "3", "6"],
            ),
            ("SELECT sum(x), arrow_typeof(sum(x)) FROM (VALUES (1.25), (-0.5)) t(x)".to_string(), vec!["0.75,Decimal128(13, 2)"]),
            ("SELECT sum(CAST(x AS DOUBLE)) FROM (VALUES (1e308), (1e308)) t(x)".to_string(), vec!["inf"]),
            ("SELECT sum(x) FROM (VALUES (1)) t(x) WHERE x > 1".to_string(), vec!["NULL"]),
        ] {
            assert_eq!(ask(&session, &sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")), found, "{sql}");
        }
    }
    // on its way a sum may leave the type
    let sql = format!("SELECT sum(x) FROM (VALUES ({MOST}), (1), (-1)) t(x)");
    assert_eq!(ask(&session(1).await, &sql).await.unwrap(), [MOST]);
}

#[tokio::test]
async fn least_and_greatest_know_infinities_and_nan_in_groups_too() {
    let from = "(SELECT g, CAST(x AS DOUBLE) AS x FROM (VALUES (1, 'Infinity'), (2, '-Infinity'), (3, 'NaN'), (3, '1'), \
                (4, '2'), (4, 'NaN'), (4, '1'), (5, NULL), (6, '-5'), (6, '7'), (1, 'Infinity')) v(g, x))";
    let groups = ["1,inf,inf", "2,-inf,-inf", "3,1.0,NaN", "4,1.0,NaN", "5,NULL,NULL", "6,-5.0,7.0"];
    for partitions in [1, 3] {
        let session = session(partitions).await;
        for of in ["x", "CAST(x AS FLOAT)"] {
            let sql = format!("SELECT g, min({of}), max({of}) FROM {from} GROUP BY g");
            assert_eq!(ask(&session, &sql).await.unwrap(), groups, "{sql}");
            for (at, group) in groups.iter().enumerate() {
                // without groups, and in a window
                let sql = format!("SELECT {0}, min({of}), max({of}) FROM {from} WHERE g = {0}", at + 1);
                assert_eq!(ask(&session, &sql).await.unwrap(), [*group], "{sql}");
                let sql = format!(
                    "SELECT DISTINCT g, min({of}) OVER w, max({of}) OVER w FROM {from} WHERE g = {} \
                     WINDOW w AS (PARTITION BY g)",
                    at + 1
                );
                assert_eq!(ask(&session, &sql).await.unwrap(), [*group], "{sql}");
            }
            let sql = format!("SELECT g, max({of}) FILTER (WHERE g < 3) FROM {from} GROUP BY g");
            let found = ask(&session, &sql).await.unwrap();
            assert_eq!(found, ["1,inf", "2,-inf", "3,NULL", "4,NULL", "5,NULL", "6,NULL"]);
        }
        let texts = "SELECT min(x), max(x) FROM (VALUES (1, 'a'), (1, 'b')) t(g, x) GROUP BY g";
        assert_eq!(ask(&session, texts).await.unwrap(), ["a,b"]);
    }
}

/// DataFusion's functions of these names go round to the other end of the type, and take infinities for the first value.
#[cfg(feature = "codec")]
#[tokio::test]
async fn these_functions_are_the_same_where_a_plan_arrives() {
    use datafusion::execution::context::SessionContext;
    use datafusion::physical_plan::collect;
    use datafusion_proto::bytes::{
        physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
    };

    use crate::query::QueryEnv;
    use crate::query::codec::LakeCodec;

    let session = session(2).await;
    let codec = LakeCodec::new(QueryEnv::new(), Vec::new());
    let worker = SessionContext::new();
    let travelled = async |sql: &str| {
        let plan = session.context().sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let bytes = physical_plan_to_bytes_with_extension_codec(plan, &codec).unwrap();
        let plan = physical_plan_from_bytes_with_extension_codec(&bytes, &worker.task_ctx(), &codec).unwrap();
        let batches = collect(plan, worker.task_ctx()).await?;
        Ok::<_, datafusion::error::DataFusionError>(
            arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string(),
        )
    };
    let rows = "(VALUES (1, 2, 0.5e0), (1, 3, 1e0)) t(g, x, d)";
    let shown = travelled(&format!("SELECT g, sum(x), avg(d), min(d), max(d) FROM {rows} GROUP BY g")).await.unwrap();
    assert!(shown.contains("| 1 | 5"), "{shown}");
    let frame = "OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)";
    for sum in ["sum(x)".to_string(), format!("sum(x) {frame}")] {
        let sql = format!("SELECT {sum} FROM (VALUES ({MOST}), (1)) t(x)");
        let error = travelled(&sql).await.expect_err(&sql).to_string();
        assert!(error.contains("beyond"), "{sql}: {error}");
    }
    let infinite = "(VALUES (1, '-inf'::DOUBLE), (2, 'inf'::DOUBLE)) t(g, d)";
    let shown = travelled(&format!("SELECT g, max(d), min(d) FROM {infinite} GROUP BY g ORDER BY g")).await.unwrap();
    assert!(shown.contains("| 1 | -inf     | -inf") && shown.contains("| 2 | inf      | inf"), "{shown}");
}

#[tokio::test]
async fn a_row_that_left_the_frame_leaves_nothing_in_its_sum() {
    let session = session(1).await;
    let frame = "OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let doubles = "(VALUES (1, 1e20), (2, 1e0), (3, 1e0), (4, NULL), (5, 'NaN'::DOUBLE), (6, 2e0), (7, 'inf'::DOUBLE), \
                   (8, 4e0), (9, 5e0)) t(n, x)";
    for (sql, found) in [
        (
            format!("SELECT n, sum(x) {frame} FROM {doubles}"),
            vec!["1,1e20", "2,1e20", "3,2.0", "4,1.0", "5,NaN", "6,NaN", "7,inf", "8,inf", "9,9.0"],
        ),
        (
            format!("SELECT n, avg(x) {frame} FROM {doubles}"),
            vec!["1,1e20", "2,5e19", "3,1.0", "4,1.0", "5,NaN", "6,NaN", "7,inf", "8,inf", "9,4.5"],
        ),
        (
            format!("SELECT n, mean(x) {frame} FROM (VALUES (1, 1000000000000000001), (2, 1), (3, 2)) t(n, x)"),
            vec!["1,1e18", "2,5e17", "3,1.5"],
        ),
        (
            format!(
                "SELECT n, sum(x) {frame} FROM (VALUES (1, NULL), (2, NULL), (3, 2e0), (4, NULL), (5, NULL)) t(n, x)"
            ),
            vec!["1,NULL", "2,NULL", "3,2.0", "4,2.0", "5,NULL"],
        ),
        (
            "SELECT n, sum(x) OVER (ORDER BY n ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING) \
             FROM (VALUES (1, 1e20), (2, 1e0), (3, 2e0), (4, 3e0), (5, 4e0)) t(n, x)"
                .to_string(),
            vec!["1,1e20", "2,6.0", "3,9.0", "4,7.0", "5,4.0"],
        ),
    ] {
        assert_eq!(ask(&session, &sql).await.unwrap(), found, "{sql}");
    }
}

#[tokio::test]
async fn a_sum_of_different_values_in_a_frame_stays_in_its_type() {
    let session = session(1).await;
    let frame = "OVER (ORDER BY n ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)";
    let within =
        format!("(VALUES (1, {MOST}), (2, {MOST}), (3, -7), (4, 7), (5, 7), (6, NULL), (7, NULL), (8, NULL)) t(n, x)");
    let found = ["1,9223372036854775807", "2,9223372036854775807", "3,9223372036854775800", "4,9223372036854775807"];
    let found: Vec<&str> = found.into_iter().chain(["5,0", "6,7", "7,7", "8,NULL"]).collect();
    assert_eq!(ask(&session, &format!("SELECT n, sum(DISTINCT x) {frame} FROM {within}")).await.unwrap(), found);
    let decimals = "(VALUES (1, 1.5), (2, 1.5), (3, 2.5), (4, NULL)) t(n, x)";
    let found = ask(&session, &format!("SELECT n, sum(DISTINCT x) {frame} FROM {decimals}")).await.unwrap();
    assert_eq!(found, ["1,1.5", "2,1.5", "3,4.0", "4,4.0"]);
    let beyond = format!("(VALUES (1, {MOST}), (2, 1), (3, -1)) t(n, x)");
    let error = ask(&session, &format!("SELECT n, sum(DISTINCT x) {frame} FROM {beyond}")).await.unwrap_err();
    assert_eq!(error.code(), "SumOutOfRange", "{error:?}");
}
