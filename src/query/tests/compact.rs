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
