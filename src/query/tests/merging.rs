//! Versions of a key whose order or place is out of the ordinary.

use serde_json::{Value, json};

use super::{PLAIN, WAYS, all_ways, latest, register, rows};
use crate::spec::CommitKind;
use crate::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};

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

/// Two versions of a key, or what a compaction made of them.
fn summed(dir: &std::path::Path, compacted: bool) -> TableBuilder {
    let columns = [("k", "INT NOT NULL"), ("d", "DECIMAL(4, 2)"), ("e", "DECIMAL(18, 0)"), ("f", "DECIMAL(20, 0)")];
    let spec = TableSpec::new(&columns)
        .primary_key(&["k"])
        .option("bucket", "1")
        .option("merge-engine", "aggregation")
        .option("fields.default-aggregate-function", "sum");
    let mut table = TableBuilder::create(dir, "d", "t", &spec).expect("creates");
    let row = |d: &str, e: &str, f: &str| json!({"k": 1, "d": d, "e": e, "f": f});
    if compacted {
        use arrow::array::{ArrayRef, Decimal128Array, Int8Array, Int32Array, Int64Array, RecordBatch};
        let decimal = |value: i128, precision, scale| -> ArrayRef {
            let array = Decimal128Array::from(vec![value]).with_precision_and_scale(precision, scale);
            std::sync::Arc::new(array.expect("a type"))
        };
        let columns: [(&str, ArrayRef); 6] = [
            ("k", std::sync::Arc::new(Int32Array::from(vec![1]))),
            ("d", decimal(19_998, 4, 2)),
            ("e", decimal(1_999_999_999_999_999_998, 18, 0)),
            ("f", decimal(5, 20, 0)),
            ("_SEQUENCE_NUMBER", std::sync::Arc::new(Int64Array::from(vec![0]))),
            ("_VALUE_KIND", std::sync::Arc::new(Int8Array::from(vec![0]))),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)));
        let file = FileSpec::batches(vec![batch.expect("a batch")]).level(5);
        table.commit().file(file).kind(CommitKind::Compact).publish().expect("publishes");
    } else {
        table.append(&[row("99.99", "999999999999999999", "3")]).expect("appends");
        table.append(&[row("99.99", "999999999999999999", "2")]).expect("appends");
    }
    table
}

#[tokio::test]
async fn a_sum_longer_than_its_decimal_keeps_all_digits() {
    for compacted in [false, true] {
        let dir = tempfile::tempdir().expect("a folder");
        summed(dir.path(), compacted);
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        for (sql, wanted) in [
            ("SELECT d, e, f FROM t", "199.98|1999999999999999998|5"),
            ("SELECT CAST(d AS STRING), concat(d, '!'), d * 1 FROM t", "199.98|199.98!|199.98"),
            ("SELECT CAST(e AS STRING), CAST(d AS DOUBLE) FROM t", "1999999999999999998|199.98"),
            ("SELECT k FROM t WHERE d::string = '199.98'", "1"),
            ("SELECT k FROM t WHERE d = 199.98", "1"),
            ("SELECT k FROM t WHERE d IN (1.00, 199.98) AND d > 150 AND d BETWEEN 99 AND 200", "1"),
            ("SELECT count(*) FROM t WHERE d <= 99.99 OR d = 19.99", "0"),
            ("SELECT sum(d), max(e), min(d) FROM t GROUP BY d", "199.98|1999999999999999998|199.98"),
        ] {
            assert_eq!(all_ways(&lake, sql).await, [wanted], "{sql}, compacted: {compacted}");
        }
    }
}

#[tokio::test]
async fn a_decimal_longer_than_its_type_fails_where_the_column_is_no_sum() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut table = summed(dir.path(), true);
    table.alter(&SchemaChange::Set("fields.default-aggregate-function", "last_value")).expect("alters");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    for way in WAYS.into_iter().chain([PLAIN]) {
        let context = register(way, &lake);
        assert_eq!(rows(&context, "SELECT k, f FROM t").await.expect("runs"), ["1|5"]);
        let error = rows(&context, "SELECT k, d FROM t").await.expect_err("a cut value");
        assert_eq!(error.code(), "DecimalBeyondPrecision", "{way:?}: {error}");
        assert!(error.to_string().contains("199.98"), "{error}");
    }
    // a wider type shows it
    table.alter(&SchemaChange::Retype("d", "DECIMAL(6, 2)")).expect("alters");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    assert_eq!(all_ways(&lake, "SELECT k, d FROM t").await, ["1|199.98"]);
}

#[tokio::test]
async fn keys_and_other_functions_keep_the_declared_decimal() {
    let dir = tempfile::tempdir().expect("a folder");
    let columns = [("k", "DECIMAL(4, 2) NOT NULL"), ("s", "DECIMAL(4, 2)"), ("m", "DECIMAL(4, 2)")];
    let spec = TableSpec::new(&columns)
        .primary_key(&["k"])
        .option("bucket", "1")
        .option("merge-engine", "aggregation")
        .option("fields.m.aggregate-function", "max")
        .option("fields.default-aggregate-function", "sum");
    TableBuilder::create(dir.path(), "d", "t", &spec)
        .expect("creates")
        .append(&[json!({"k": "1.00"})])
        .expect("appends");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let types = "SELECT arrow_typeof(k), arrow_typeof(s), arrow_typeof(m) FROM t";
    assert_eq!(all_ways(&lake, types).await, ["Decimal128(4, 2)|Decimal128(19, 2)|Decimal128(4, 2)"]);
}
