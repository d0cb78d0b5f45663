//! One NaN and one zero, wherever they come from and whatever they are a part of.

use super::*;

/// `q` is a NaN with a sign where machines give one for `0 / 0`, one without, and a number.
const Q: &str =
    "(SELECT n, a / b AS q FROM (VALUES (1, 0e0, 0e0), (2, CAST('NaN' AS DOUBLE), 1e0), (3, 7e0, 1e0)) v(n, a, b)) t";

#[tokio::test]
async fn a_nan_of_arithmetic_is_the_one_there_is() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (sql, right) in [
        (format!("SELECT n FROM {Q} WHERE q = CAST('NaN' AS DOUBLE)"), vec!["1", "2"]),
        (format!("SELECT n FROM {Q} WHERE q > 8e0"), vec!["1", "2"]),
        (format!("SELECT n FROM {Q} WHERE q < 8e0"), vec!["3"]),
        (format!("SELECT n FROM {Q} WHERE q IN (CAST('NaN' AS DOUBLE), 1e0)"), vec!["1", "2"]),
        (format!("SELECT n FROM {Q} WHERE -q >= CAST('NaN' AS DOUBLE)"), vec!["1", "2"]),
        (format!("SELECT n FROM {Q} WHERE exp(q - 8e0) > 1e0"), vec!["1", "2"]),
        (format!("SELECT q, count(*) FROM {Q} GROUP BY q"), vec!["7.0,1", "NaN,2"]),
        (format!("SELECT DISTINCT q FROM {Q}"), vec!["7.0", "NaN"]),
        (format!("SELECT count(DISTINCT q), min(q), max(q) FROM {Q}"), vec!["2,7.0,NaN"]),
        (format!("SELECT n, rank() OVER (ORDER BY q) FROM {Q}"), vec!["1,2", "2,2", "3,1"]),
        (format!("SELECT n, count(*) OVER (PARTITION BY q) FROM {Q}"), vec!["1,2", "2,2", "3,1"]),
        (
            format!("SELECT t.n, u.n FROM {Q} JOIN {} ON t.q = u.q", Q.replace(") t", ") u")),
            vec!["1,1", "1,2", "2,1", "2,2", "3,3"],
        ),
        (
            format!("SELECT n FROM {Q} WHERE q NOT IN (SELECT q FROM {} WHERE n = 2)", Q.replace(") t", ") u")),
            vec!["3"],
        ),
        (format!("SELECT n FROM {Q} WHERE greatest(q, 9e0) = q"), vec!["1", "2"]),
        (format!("SELECT [q], count(*) FROM {Q} GROUP BY 1"), vec!["[7.0],1", "[NaN],2"]),
        // of aggregates and windows
        (
            "SELECT sum(x) > 1e0, avg(x) = sum(x) FROM (VALUES ('inf'::DOUBLE), ('-inf'::DOUBLE)) t(x)".into(),
            vec!["true,true"],
        ),
        (
            "SELECT count(*) FROM (SELECT sum(x) OVER () AS s FROM (VALUES ('inf'::DOUBLE), ('-inf'::DOUBLE)) t(x)) u \
             WHERE s > 1e0"
                .into(),
            vec!["2"],
        ),
        ("SELECT 0e0 / 0 = 'NaN'::DOUBLE, 0e0 / 0 > 1e0, '-nan'::DOUBLE > 1e0".into(), vec!["true,true,true"]),
    ] {
        assert_eq!(rows(&session, &sql).await, right, "{sql}");
    }
    let sorted = session.run_one(&format!("SELECT n FROM {Q} ORDER BY q DESC, n DESC")).await.unwrap();
    assert_eq!(all(sorted).await.0.concat(), ["2", "1", "3"]);
}

#[tokio::test]
async fn a_nan_of_a_file_is_the_one_there_is() {
    use arrow::array::{Float32Array, Float64Array, Int32Array};
    use parquet::arrow::ArrowWriter;

    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let file = dir.path().join("nans.parquet");
    let batch = RecordBatch::try_from_iter([
        ("n", Arc::new(Int32Array::from(vec![1, 2, 3])) as _),
        ("d", Arc::new(Float64Array::from(vec![-f64::NAN, f64::NAN, 1.0])) as _),
        ("f", Arc::new(Float32Array::from(vec![-f32::NAN, f32::NAN, 1.0])) as arrow::array::ArrayRef),
    ])
    .unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(&file).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let create = format!("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{}'", file.display());
    session.run_one(&create).await.unwrap();
    for (sql, right) in [
        ("SELECT sum(n) FILTER (WHERE d < 0e0 OR f < 5), sum(n) FILTER (WHERE d >= 'NaN'::DOUBLE) FROM e", "3,3"),
        ("SELECT count(DISTINCT d), count(DISTINCT f), max(d), min(d), max(f), min(f) FROM e", "2,2,NaN,1.0,NaN,1.0"),
        ("SELECT count(*) FROM e WHERE d > 2e0 AND f > 2e0", "2"),
        ("SELECT count(*) FROM e WHERE d = 'NaN'::DOUBLE", "2"),
        ("SELECT count(*) FROM e a JOIN e b ON a.d = b.d", "5"),
        ("SELECT max(c) FROM (SELECT count(*) AS c FROM e GROUP BY d, f) t", "2"),
    ] {
        for pushed in [false, true] {
            let set = format!("SET datafusion.execution.parquet.pushdown_filters = {pushed}");
            session.run_one(&set).await.unwrap();
            assert_eq!(rows(&session, sql).await, [right], "{sql} {pushed}");
        }
    }
}

#[tokio::test]
async fn parts_of_values_have_one_zero() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let t = "(VALUES (0e0, 2), (-0e0, 1), (0e0, 0)) t(f, n)";
    for (sql, right) in [
        (format!("SELECT count(DISTINCT (f, 1)), count(DISTINCT [f]), count(DISTINCT f) FROM {t}"), vec!["1,1,1"]),
        (format!("SELECT count(*) FROM (SELECT DISTINCT [f] AS l FROM {t}) u"), vec!["1"]),
        (format!("SELECT [f], count(*) FROM {t} GROUP BY 1"), vec!["[0.0],3"]),
        (format!("SELECT {{x: f}}, 1, count(*) FROM {t} GROUP BY 1, 2"), vec!["{x: 0.0},1,3"]),
        (
            "SELECT [0e0] = [-0e0], [0e0] IN ([-0e0]), [0e0] IS DISTINCT FROM [-0e0], [-0e0] < [0e0]".into(),
            vec!["true,true,false,false"],
        ),
        ("SELECT count(*) FROM (VALUES ([0e0])) a(x) JOIN (VALUES ([-0e0])) b(y) ON x = y".into(), vec!["1"]),
        ("SELECT count(*) FROM (VALUES ([0e0], 1)) a(x, z) JOIN (VALUES ([-0e0])) b(x) USING (x)".into(), vec!["1"]),
        ("SELECT count(*) FROM (SELECT [0e0] UNION SELECT [-0e0]) t".into(), vec!["1"]),
        ("SELECT count(*) FROM (SELECT [0e0] AS l INTERSECT SELECT [-0e0]) t".into(), vec!["1"]),
        (
            format!("SELECT n, rank() OVER (ORDER BY [f]), sum(n) OVER (PARTITION BY [f]) FROM {t}"),
            vec!["0,1,3", "1,1,3", "2,1,3"],
        ),
    ] {
        assert_eq!(rows(&session, &sql).await, right, "{sql}");
    }
    let sorted = session.run_one(&format!("SELECT n FROM {t} ORDER BY [f], n")).await.unwrap();
    assert_eq!(all(sorted).await.0.concat(), ["0", "1", "2"]);
    // what is shown keeps its sign
    assert_eq!(rows(&session, "SELECT -f, [-f] FROM (VALUES (0e0)) t(f)").await, ["-0.0,[-0.0]"]);
}
