//! Live rows taken out of decoded batches: dead rows are decoded, and must not be seen.

use std::sync::Arc;

use arrow::array::{Array, Decimal128Array, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};

use super::{WITH_SOURCE, Way, explain, latest, register, rows};
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

const ROWS: i32 = 2_000;

/// Rows of every third key, or of all, whose amount is `amount(key)`.
fn batch(step: usize, first: i64, amount: impl Fn(i32) -> i128) -> RecordBatch {
    let keys: Vec<i32> = (0..ROWS).step_by(step).collect();
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int32, false),
        Field::new("amount", DataType::Decimal128(6, 2), true),
        Field::new("s", DataType::Utf8, true),
        Field::new("_SEQUENCE_NUMBER", DataType::Int64, false),
        Field::new("_VALUE_KIND", DataType::Int8, false),
    ]);
    // as they are written down, checked or not
    let amounts = Decimal128Array::from_iter_values(keys.iter().map(|key| amount(*key)));
    let amounts = amounts.into_data().into_builder().data_type(DataType::Decimal128(6, 2)).build().unwrap();
    let texts = keys.iter().map(|key| (key % 7 != 0).then(|| format!("s{key}")));
    RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(Int32Array::from(keys.clone())),
            Arc::new(Decimal128Array::from(amounts)),
            Arc::new(texts.collect::<StringArray>()),
            Arc::new(Int64Array::from_iter_values((0..keys.len() as i64).map(|at| first + at))),
            Arc::new(Int8Array::from(vec![0; keys.len()])),
        ],
    )
    .unwrap()
}

fn table(base: RecordBatch, newer: RecordBatch) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let columns = [("id", "INT NOT NULL"), ("amount", "DECIMAL(6, 2)"), ("s", "STRING")];
    let spec = TableSpec::new(&columns).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
    // several row groups, whose ends no batch meets
    let base = FileSpec::batches(vec![base]).level(5).row_group_rows(333);
    table.commit().file(base).publish().unwrap();
    table.commit().file(FileSpec::batches(vec![newer]).row_group_rows(100)).publish().unwrap();
    dir
}

#[tokio::test]
async fn values_of_dead_rows_are_not_checked_and_those_of_live_rows_are() {
    // DECIMAL(6, 2) does not hold them
    let long = |key: i32| if key % 3 == 0 { 123_456_789 } else { i128::from(key) };
    let dir = table(batch(1, 0, long), batch(3, 1_000_000, |key| i128::from(key) + 1));
    let lake = latest(dir.path(), "d", "t").await.unwrap();
    for way in [WITH_SOURCE, Way { batch_size: 97, partitions: 3, recalls: true, ..WITH_SOURCE }] {
        let context = register(way, &lake);
        // 1 332 keys as they were and 668 one more: cents of 0 to 1 999, and 667
        let sum = rows(&context, "SELECT sum(amount), count(s), min(id), max(id) FROM t").await.unwrap();
        assert_eq!(sum, ["19996.67|1714|0|1999"]);
        let some = rows(&context, "SELECT id, amount, s FROM t WHERE amount > 19.97").await.unwrap();
        assert_eq!(some, ["1998|19.99|s1998", "1999|19.99|s1999"]);
        let none = rows(&context, "SELECT id FROM t WHERE amount > 999").await.unwrap();
        assert!(none.is_empty(), "a dead value: {none:?}");
    }
    let short = |key: i32| i128::from(key);
    let dir =
        table(batch(1, 0, |key| if key == 1 { 123_456_789 } else { i128::from(key) }), batch(3, 1_000_000, short));
    let lake = latest(dir.path(), "d", "t").await.unwrap();
    let error = rows(&register(WITH_SOURCE, &lake), "SELECT sum(amount) FROM t").await.unwrap_err();
    assert!(error.to_string().contains("amount"), "{error}");
    assert_eq!(rows(&register(WITH_SOURCE, &lake), "SELECT sum(id) FROM t").await.unwrap(), ["1999000"]);
}

#[tokio::test]
async fn expressions_conditions_and_limits_see_live_rows_only() {
    // a base that divides by zero where it is dead
    let dir = table(batch(1, 0, |key| i128::from(key % 3)), batch(3, 1_000_000, |_| 5));
    let lake = latest(dir.path(), "d", "t").await.unwrap();
    for pushdown_filters in [false, true] {
        for batch_size in [8192, 64] {
            for recalls in [false, true] {
                let context = register(Way { pushdown_filters, batch_size, recalls, ..WITH_SOURCE }, &lake);
                let of = async |sql: &str| rows(&context, sql).await.unwrap();
                assert_eq!(of("SELECT sum(CAST(100 / amount AS INT) % 7) > 0 FROM t").await, ["true"]);
                assert_eq!(of("SELECT count(*) FROM t WHERE amount = 0").await, ["0"]);
                assert_eq!(of("SELECT count(*) FROM t WHERE amount = 0.05 AND id > 5").await, ["665"]);
                assert_eq!(of("SELECT count(*) FROM (SELECT id, s FROM t LIMIT 1500)").await, ["1500"]);
                assert_eq!(of("SELECT id, amount FROM t ORDER BY amount DESC, id LIMIT 2").await, ["0|0.05", "3|0.05"]);
                assert_eq!(
                    of("SELECT id FROM t WHERE id BETWEEN 331 AND 335 AND amount < 0.05").await,
                    ["331", "332", "334", "335"]
                );
                assert_eq!(of("SELECT count(DISTINCT id), count(s) FROM t").await, ["2000|1714"]);
            }
        }
    }
    assert!(explain(&register(WITH_SOURCE, &lake), "SELECT amount FROM t").await.contains("DataSourceExec"));
}

#[tokio::test]
async fn of_a_few_keys_a_few_pages_are_read() {
    const KEYS: i32 = 120_000;
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
    let write = |table: &mut TableBuilder, keys: Vec<i32>, v: i32, first: i64, level: i32| {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int32, false),
            Field::new("v", DataType::Int32, true),
            Field::new("_SEQUENCE_NUMBER", DataType::Int64, false),
            Field::new("_VALUE_KIND", DataType::Int8, false),
        ]);
        let rows = keys.len();
        let batch = RecordBatch::try_new(
            Arc::new(schema),
            vec![
                Arc::new(Int32Array::from(keys)),
                Arc::new(Int32Array::from(vec![v; rows])),
                Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|at| first + at))),
                // every 1 000th row of a later file deletes
                Arc::new(Int8Array::from_iter_values(
                    (0..rows).map(|at| if level == 0 && at % 1_000 == 7 { 3 } else { 0 }),
                )),
            ],
        );
        table.commit().file(FileSpec::batches(vec![batch.unwrap()]).level(level)).publish().unwrap();
    };
    write(&mut table, (0..KEYS).collect(), 0, 0, 5);
    write(&mut table, (0..KEYS).step_by(2).collect(), 1, 1_000_000, 0);
    write(&mut table, (0..KEYS).step_by(5).collect(), 2, 2_000_000, 0);
    let newest = |id: i32| {
        let deletes = |step: i32| id / step % 1_000 == 7;
        match id {
            _ if id % 5 == 0 => (!deletes(5)).then_some(2),
            _ if id % 2 == 0 => (!deletes(2)).then_some(1),
            _ => Some(0),
        }
    };
    let lake = latest(dir.path(), "d", "t").await.unwrap();
    let ranges = [
        (70_000, 70_000),
        (35, 35),
        (14, 14),
        (0, 0),
        (119_990, 119_999),
        (59_999, 60_040),
        (-5, 3),
        (119_998, 200_000),
    ];
    for recalls in [false, true, true] {
        for partitions in [1, 3] {
            let context = register(Way { partitions, recalls, ..WITH_SOURCE }, &lake);
            for (from, to) in ranges {
                let sql = format!("SELECT id, v FROM t WHERE id >= {from} AND id <= {to}");
                let mut wanted: Vec<String> =
                    (from.max(0)..=to.min(KEYS - 1)).filter_map(|id| newest(id).map(|v| format!("{id}|{v}"))).collect();
                wanted.sort();
                assert_eq!(rows(&context, &sql).await.unwrap(), wanted, "{sql}");
                let plan = context.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
                datafusion::physical_plan::collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
                let read = super::memory::counted(&plan, "key_rows");
                assert!(read <= 3 * 40_000, "{sql}: {read} keys were read");
            }
            let some = "SELECT id, v FROM t WHERE id IN (8, 70000, 119999) AND v > 0";
            assert_eq!(rows(&context, some).await.unwrap(), ["70000|2", "8|1"]);
            let none = "SELECT id, v FROM t WHERE id > 10 AND id < 5";
            assert!(rows(&context, none).await.unwrap().is_empty());
        }
        // all of it is known, or found, as before
        let all =
            rows(&register(Way { recalls, ..WITH_SOURCE }, &lake), "SELECT count(*), sum(v) FROM t").await.unwrap();
        let left: Vec<i32> = (0..KEYS).filter_map(newest).collect();
        assert_eq!(all, [format!("{}|{}", left.len(), left.iter().map(|v| i64::from(*v)).sum::<i64>())]);
    }
}

#[tokio::test]
async fn keys_that_are_in_no_page_are_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "STRING")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).unwrap();
    let line = |id: i32| serde_json::json!({"id": id, "v": format!("v{id}")});
    // row groups of two keys each, with gaps between them
    let wide: Vec<_> = (0..20).map(|at| line(at / 2 * 100 + at % 2)).collect();
    table.commit().file(FileSpec::rows(&wide).row_group_rows(2).level(5)).publish().unwrap();
    table.commit().file(FileSpec::rows(&[line(50), line(950)])).publish().unwrap();
    let lake = latest(dir.path(), "d", "t").await.unwrap();
    for merge_source in [true, false] {
        let context = register(Way { merge_source, ..WITH_SOURCE }, &lake);
        for (condition, wanted) in [
            ("id = 450", vec![]),
            ("id > 450 AND id < 460", vec![]),
            ("id = 50", vec!["50|v50"]),
            ("id BETWEEN 40 AND 100", vec!["100|v100", "50|v50"]),
            ("id IN (450, 451, 901)", vec!["901|v901"]),
        ] {
            let sql = format!("SELECT id, v FROM t WHERE {condition}");
            assert_eq!(rows(&context, &sql).await.unwrap(), wanted, "{sql}");
        }
    }
}
