//! Faults others met, and what must hold of any scan.

use std::fs;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use serde_json::{Value, json};

use super::{PLAIN, WAYS, WITH_SOURCE, Way, all_ways, explain, gone, keyed, latest, register, row, rows, table, walk};
use crate::error::{Error, ErrorKind};
use crate::query::{LakeTable, LakeView, LakepinOptions, QueryEnv, ScanLog, Work};
use crate::snapshot::{Pin, PinRequest};
use crate::spec::CommitKind;
use crate::spec::index_manifest::{decode_index_manifest, encode_index_manifest};
use crate::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};

/// Old rows in one run, newer versions above, some deleted.
pub(super) fn versions(dir: &std::path::Path) {
    let mut table = TableBuilder::create(dir, "d", "t", &keyed("deduplicate")).expect("creates");
    let old: Vec<_> = (0..40).map(|id| row(id, 1, "a")).chain((0..10).map(|id| row(id, 1, "b"))).collect();
    table.commit().file(FileSpec::rows(&old).level(5)).kind(CommitKind::Compact).publish().expect("publishes");
    table.append(&(5..15).map(|id| row(id, 2, "a")).collect::<Vec<_>>()).expect("appends");
    table.append(&[gone(0, "a"), gone(7, "a")]).expect("appends");
}

#[tokio::test]
async fn a_filter_on_a_value_never_brings_back_a_superseded_version() {
    let dir = tempfile::tempdir().expect("a folder");
    versions(dir.path());
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t").await, ["48"]);
    // 40 - 10 newer - 1 deleted, and 10 of b
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t WHERE v = 1").await, ["39"]);
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t WHERE v = 2").await, ["9"]);
    assert_eq!(all_ways(&lake, "SELECT id FROM t WHERE id = 7 AND dt = 'a'").await, Vec::<String>::new());
    assert_eq!(all_ways(&lake, "SELECT v FROM t WHERE id = 8 AND dt = 'a'").await, ["2"]);
}

#[tokio::test]
async fn an_expression_that_fails_on_dead_rows_only_does_not_fail() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &keyed("deduplicate")).expect("creates");
    table
        .commit()
        .file(FileSpec::rows(&(0..20).map(|id| row(id, 0, "a")).collect::<Vec<_>>()).level(5))
        .publish()
        .expect("publishes");
    table.append(&(0..20).map(|id| row(id, 4, "a")).collect::<Vec<_>>()).expect("appends");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    assert_eq!(all_ways(&lake, "SELECT sum(8 / v) FROM t").await, ["40"]);
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t WHERE 8 / v = 2").await, ["20"]);
    assert_eq!(all_ways(&lake, "SELECT 8 / v FROM t WHERE 8 / v > 1 ORDER BY id LIMIT 1").await, ["2"]);
}

#[tokio::test]
async fn b086_every_filter_gets_its_own_answer() {
    use datafusion::catalog::TableProvider;
    use datafusion::logical_expr::TableProviderFilterPushDown as Answer;
    use datafusion::prelude::{col, lit, random};
    let dir = tempfile::tempdir().expect("a folder");
    versions(dir.path());
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let filters = [
        col("dt").eq(lit("a")),
        col("v").gt(lit(1)),
        col("dt").eq(lit("a")).and(col("id").eq(lit(1))),
        random().gt(lit(0.5)),
        lit(true),
    ];
    let wanted = [Answer::Exact, Answer::Inexact, Answer::Inexact, Answer::Unsupported, Answer::Unsupported];
    assert_eq!(lake.supports_filters_pushdown(&filters.iter().collect::<Vec<_>>()).expect("answers"), wanted);
    for (filter, answer) in filters.iter().zip(wanted) {
        assert_eq!(lake.supports_filters_pushdown(&[filter]).expect("answers"), [answer]);
    }
    for passes in 1..=5 {
        let context = register(WITH_SOURCE, &lake);
        context.state_ref().write().config_mut().options_mut().optimizer.max_passes = passes;
        let found = rows(&context, "SELECT count(*) FROM t WHERE dt = 'a' AND v = 2 AND id > 9").await.expect("runs");
        assert_eq!(found, ["5"]);
    }
}

fn remove_one_data_file(root: &std::path::Path) -> String {
    let file =
        walk(root).into_iter().find(|path| path.extension().is_some_and(|e| e == "parquet")).expect("a data file");
    fs::remove_file(&file).expect("removes");
    file.file_name().expect("a name").to_string_lossy().into_owned()
}

#[tokio::test]
async fn a_vanished_data_file_is_an_error_and_never_fewer_rows() {
    for engine in ["deduplicate", "partial-update"] {
        for way in WAYS.into_iter().chain([PLAIN]) {
            let dir = tempfile::tempdir().expect("a folder");
            let mut builder = TableBuilder::create(dir.path(), "d", "t", &keyed(engine)).expect("creates");
            for commit in 0..3 {
                builder.append(&(0..9).map(|id| row(id, commit, "a")).collect::<Vec<_>>()).expect("appends");
            }
            let lake = latest(dir.path(), "d", "t").await.expect("pins");
            let name = remove_one_data_file(builder.root());
            let error = rows(&register(way, &lake), "SELECT * FROM t").await.expect_err("a file is gone");
            assert_eq!(error.code(), "FileLost", "{way:?}: {error:?}");
            assert!(error.to_string().contains(&name), "{error}");
            // now the snapshot is gone too: it expired under the scan
            builder.append(&[row(1, 9, "a")]).expect("appends");
            for snapshot in 1..=3 {
                builder.expire(snapshot).expect("expires");
            }
            let error = rows(&register(way, &lake), "SELECT * FROM t").await.expect_err("the snapshot is gone");
            assert_eq!(error.code(), "SnapshotExpired", "{way:?}: {error:?}");
            assert!(error.to_string().contains('3'), "{error}");
        }
    }
}

#[tokio::test]
async fn a_data_file_nested_absurdly_is_an_error_that_names_it() {
    for engine in ["deduplicate", "partial-update"] {
        let dir = tempfile::tempdir().expect("a folder");
        let mut table = TableBuilder::create(dir.path(), "d", "t", &keyed(engine)).expect("creates");
        table.append(&[row(1, 1, "a")]).expect("appends");
        table.append(&[row(1, 2, "a")]).expect("appends");
        let mut entry = table.live_files().expect("lists").pop().expect("a file");
        let file = walk(table.root()).into_iter().find(|file| file.ends_with(&entry.file.file_name)).expect("is there");
        table.commit().remove(&entry.file.file_name).publish().expect("publishes");
        let footer = crate::spec::parquet_footer::tests::chain(10_000);
        let length = u32::try_from(footer.len()).expect("fits").to_le_bytes();
        let bytes = [b"PAR1".as_slice(), &footer, &length, b"PAR1"].concat();
        entry.file.file_name = "data-nested-0.parquet".to_string();
        entry.file.file_size = bytes.len() as u64;
        fs::write(file.with_file_name(&entry.file.file_name), bytes).expect("writes");
        table.commit().entry(entry.clone()).publish().expect("publishes");
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        for way in WAYS.into_iter().chain([PLAIN]) {
            let error = rows(&register(way, &lake), "SELECT * FROM t").await.expect_err("it cannot be read");
            let text = error.to_string();
            assert!(text.contains("nested too deeply") && text.contains(&entry.file.file_name), "{way:?}: {text}");
        }
    }
}

#[tokio::test]
async fn both_zeros_are_one_key_and_tie_as_sequence_numbers() {
    // as Java Paimon answers for the same writes
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("k", "DOUBLE NOT NULL"), ("v", "STRING")]).primary_key(&["k"]).option("bucket", "1");
    let mut keys = TableBuilder::create(dir.path(), "d", "keys", &spec).expect("creates");
    keys.append(&[json!({"k": -0.0, "v": "old"}), json!({"k": 1.0, "v": "one"})]).expect("appends");
    keys.append(&[json!({"k": 0.0, "v": "new"})]).expect("appends");
    let lake = latest(dir.path(), "d", "keys").await.expect("pins");
    assert_eq!(all_ways(&lake, "SELECT v FROM t").await, ["new", "one"]);
    for (engine, group) in [("deduplicate", None), ("partial-update", Some("fields.x.sequence-group"))] {
        let name = engine.replace('-', "_");
        let mut spec = TableSpec::new(&[("k", "INT NOT NULL"), ("x", "DOUBLE"), ("v", "STRING")])
            .primary_key(&["k"])
            .option("bucket", "1")
            .option("merge-engine", engine);
        spec = match group {
            Some(option) => spec.option(option, "v"),
            None => spec.option("sequence.field", "x"),
        };
        let mut table = TableBuilder::create(dir.path(), "d", &name, &spec).expect("creates");
        for (x, y, v) in [(0.0, 2.0, "first"), (-0.0, 1.0, "second")] {
            table.append(&[json!({"k": 1, "x": x, "v": v}), json!({"k": 2, "x": y, "v": v})]).expect("appends");
        }
        let lake = latest(dir.path(), "d", &name).await.expect("pins");
        assert_eq!(all_ways(&lake, "SELECT k, v FROM t").await, ["1|second", "2|first"], "{engine}");
    }
}

#[tokio::test]
async fn nested_rows_are_replaced_in_the_order_of_values() {
    // the only releases that know the option compare floats by Double.compare: -0.0 is older than 0.0
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("k", "INT NOT NULL"), ("n", "ARRAY<ROW<a INT, t DOUBLE, v STRING>>")])
        .primary_key(&["k"])
        .option("bucket", "1")
        .option("merge-engine", "aggregation")
        .option("fields.n.aggregate-function", "nested_update")
        .option("fields.n.nested-key", "a")
        .option("fields.n.nested-sequence-field", "t");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    for (first, second, v) in [(0.0, -0.0, "old"), (-0.0, 0.0, "new")] {
        let nested = json!([{"a": 1, "t": first, "v": v}, {"a": 2, "t": second, "v": v}]);
        table.append(&[json!({"k": 1, "n": nested})]).expect("appends");
    }
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let found = all_ways(&lake, "SELECT n FROM t").await;
    assert_eq!(found, ["[{a: 1, t: 0.0, v: old}, {a: 2, t: 0.0, v: new}]"]);
}

/// Puts a Parquet file of these columns in the place of the table's only file. Returns its name.
fn replace_file(table: &mut TableBuilder, batch: &RecordBatch) -> String {
    let mut entry = table.live_files().expect("lists").pop().expect("a file");
    let file = walk(table.root()).into_iter().find(|file| file.ends_with(&entry.file.file_name)).expect("is there");
    table.commit().remove(&entry.file.file_name).publish().expect("publishes");
    let mut bytes = Vec::new();
    let mut writer =
        parquet::arrow::arrow_writer::ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("opens");
    writer.write(batch).expect("writes");
    writer.close().expect("closes");
    entry.file.file_name = "data-replaced-0.parquet".to_string();
    entry.file.file_size = bytes.len() as u64;
    fs::write(file.with_file_name(&entry.file.file_name), bytes).expect("writes");
    table.commit().entry(entry.clone()).publish().expect("publishes");
    entry.file.file_name
}

#[tokio::test]
async fn timestamps_stored_finer_or_in_a_zone_are_read_alike() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("at", "TIMESTAMP(3)"), ("fine", "TIMESTAMP(6)"), ("zoned", "TIMESTAMP(6)")]);
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    let line = |at: &str, fine: &str| json!({"at": at, "fine": fine, "zoned": fine});
    table
        .append(&[
            line("1969-12-31T23:59:59.998", "1969-12-31T23:59:59.998500"),
            line("1970-01-01T00:00:00.001", "1970-01-01T00:00:00.001500"),
        ])
        .expect("appends");
    let micros = vec![-1500, 1500];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("at", Arc::new(TimestampMicrosecondArray::from(micros.clone()))),
        ("fine", Arc::new(TimestampNanosecondArray::from(vec![-1_499_999, 1_500_999]))),
        ("zoned", Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("+05:00"))),
    ];
    replace_file(&mut table, &RecordBatch::try_from_iter(columns).expect("a batch"));
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let (early, late) = (
        "1969-12-31T23:59:59.998|1969-12-31T23:59:59.998500|1969-12-31T23:59:59.998500",
        "1970-01-01T00:00:00.001|1970-01-01T00:00:00.001500|1970-01-01T00:00:00.001500",
    );
    assert_eq!(all_ways(&lake, "SELECT * FROM t").await, [early, late]);
    for filter in [
        "at = TIMESTAMP '1969-12-31 23:59:59.998'",
        "at < TIMESTAMP '1969-12-31 23:59:59.999'",
        "fine = TIMESTAMP '1969-12-31 23:59:59.998500'",
        "zoned = TIMESTAMP '1969-12-31 23:59:59.998500'",
    ] {
        assert_eq!(all_ways(&lake, &format!("SELECT * FROM t WHERE {filter}")).await, [early], "{filter}");
    }
}

#[tokio::test]
async fn nulls_in_a_not_null_column_are_told_with_their_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "STRING")]);
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    table.append(&[json!({"id": 1, "v": "a"}), json!({"id": 2, "v": "b"})]).expect("appends");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int32Array::from(vec![Some(1), None]))),
        ("v", Arc::new(StringArray::from(vec!["a", "b"]))),
    ];
    let name = replace_file(&mut table, &RecordBatch::try_from_iter(columns).expect("a batch"));
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    for way in WAYS.into_iter().chain([PLAIN]) {
        for sql in ["SELECT * FROM t", "SELECT id + 1 FROM t", "SELECT v FROM t ORDER BY id"] {
            let error = rows(&register(way, &lake), sql).await.expect_err("a null");
            assert_eq!(error.code(), "NullInNotNull", "{way:?} {sql}: {error:?}");
            let text = error.to_string();
            for word in ["column: id", &name, "restore the file"] {
                assert!(text.contains(word) || error.hint().is_some_and(|h| h.contains(word)), "{way:?} {sql}: {text}");
            }
        }
    }
    assert_eq!(all_ways(&lake, "SELECT v FROM t").await, ["a", "b"]);
}

#[tokio::test]
async fn verify_files_finds_a_missing_file_while_planning() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut builder = TableBuilder::create(dir.path(), "d", "t", &keyed("deduplicate")).expect("creates");
    builder.append(&[row(1, 1, "a")]).expect("appends");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    remove_one_data_file(builder.root());
    let mut config = SessionConfig::new();
    let options = LakepinOptions { verify_files: true, ..LakepinOptions::default() };
    config.options_mut().extensions.insert(options);
    let context = SessionContext::new_with_config(config);
    context.register_table("t", Arc::new(lake)).expect("registers");
    let planned = context.sql("SELECT * FROM t").await.expect("plans").create_physical_plan().await;
    let error = Error::from_datafusion(planned.expect_err("the file is gone"));
    assert_eq!(error.code(), "FileLost");
}

#[tokio::test]
async fn b087_no_columns_still_means_rows() {
    let dir = tempfile::tempdir().expect("a folder");
    versions(dir.path());
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t WHERE v = 1").await, ["39"]);
    assert_eq!(all_ways(&lake, "SELECT 1 FROM t WHERE dt = 'b'").await.len(), 10);
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t a CROSS JOIN t b").await, ["2304"]);
    assert_eq!(all_ways(&lake, "SELECT count(dt) FROM t").await, ["48"]);
    let dir = tempfile::tempdir().expect("a folder");
    TableBuilder::create(dir.path(), "d", "t", &keyed("deduplicate")).expect("creates");
    let empty = latest(dir.path(), "d", "t").await.expect("pins");
    assert_eq!(all_ways(&empty, "SELECT count(*) FROM t").await, ["0"]);
    assert_eq!(all_ways(&empty, "SELECT count(*), max(v) FROM t WHERE v = 1").await, ["0|∅"]);
}

#[tokio::test]
async fn b089_sixteen_settings_give_the_same_rows() {
    let dir = tempfile::tempdir().expect("a folder");
    versions(dir.path());
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let queries = [
        "SELECT * FROM t WHERE v = 1 AND s <> 's9'",
        "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 6",
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id AND a.dt = b.dt WHERE b.v = 2",
        "SELECT count(*) FROM t WHERE s LIKE 's2%' OR id < 3",
    ];
    let mut known: Option<Vec<Vec<String>>> = None;
    for bits in 0..16u32 {
        let context = register(WITH_SOURCE, &lake);
        {
            let state = context.state_ref();
            let mut state = state.write();
            let options = state.config_mut().options_mut();
            options.execution.parquet.pushdown_filters = bits & 1 != 0;
            options.execution.parquet.pruning = bits & 2 != 0;
            options.execution.collect_statistics = bits & 4 != 0;
            options.optimizer.enable_dynamic_filter_pushdown = bits & 8 != 0;
        }
        let mut found = Vec::new();
        for query in queries {
            found.push(rows(&context, query).await.expect("runs"));
        }
        if let Some(known) = &known {
            assert_eq!(known, &found, "settings {bits:04b}");
        }
        known = Some(found);
    }
}

#[tokio::test]
async fn explain_names_the_pin_and_is_the_same_every_time() {
    let dir = tempfile::tempdir().expect("a folder");
    versions(dir.path());
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    for way in [PLAIN, WITH_SOURCE] {
        let first = explain(&register(way, &lake), "SELECT id FROM t WHERE dt = 'a'").await;
        for wanted in ["table=d.t", "snapshot=3", "schema=0", "dropped by partition 1", "select 1"] {
            assert!(first.contains(wanted), "{wanted} in {first}");
        }
        assert_eq!(first, explain(&register(way, &lake), "SELECT id FROM t WHERE dt = 'a'").await);
    }
}

#[tokio::test]
async fn one_bucket_uses_every_partition_and_a_node_runs_twice() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut builder = TableBuilder::create(dir.path(), "d", "t", &keyed("deduplicate")).expect("creates");
    for commit in 0..4 {
        builder.append(&(0..100).map(|id| row(id + commit, commit, "a")).collect::<Vec<_>>()).expect("appends");
    }
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    for merge_source in [false, true] {
        let context = register(Way { merge_source, partitions: 4, ..PLAIN }, &lake);
        let plan = context.sql("SELECT * FROM t").await.expect("plans").create_physical_plan().await.expect("plans");
        use datafusion::physical_plan::ExecutionPlanProperties;
        assert_eq!(plan.output_partitioning().partition_count(), 4);
        for _ in 0..2 {
            let batches =
                datafusion::physical_plan::collect(Arc::clone(&plan), context.task_ctx()).await.expect("runs");
            assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 103);
        }
    }
}

#[tokio::test]
async fn views_show_kinds_and_deleted_keys() {
    let dir = tempfile::tempdir().expect("a folder");
    versions(dir.path());
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let audit = LakeTable::try_view(Arc::clone(lake.pin()), QueryEnv::new(), LakeView::AuditLog).expect("a view");
    let found = all_ways(&audit, "SELECT rowkind, count(*) FROM t GROUP BY rowkind").await;
    assert_eq!(found, ["+I|48", "-D|2"]);
    assert_eq!(all_ways(&audit, "SELECT rowkind, id FROM t WHERE rowkind = '-D'").await, ["-D|0", "-D|7"]);
    let refused = LakeTable::try_view(Arc::clone(lake.pin()), QueryEnv::new(), LakeView::RowTracking);
    assert_eq!(refused.expect_err("no row tracking").code(), "NoRowTracking");
}

#[tokio::test]
async fn renamed_swapped_added_and_dropped_columns_are_found_by_id() {
    use crate::testing::builder::SchemaChange;
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("a", "INT"), ("b", "INT"), ("c", "STRING")]);
    let mut builder = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    builder.append(&[json!({"a": 1, "b": 2, "c": "x"})]).expect("appends");
    for (from, to) in [("a", "z"), ("b", "a"), ("z", "b")] {
        builder.alter(&SchemaChange::Rename(from, to)).expect("alters");
    }
    builder.append(&[json!({"a": 20, "b": 10, "c": "y"})]).expect("appends");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    assert_eq!(all_ways(&lake, "SELECT a, b, c FROM t").await, ["20|10|y", "2|1|x"]);
    assert_eq!(all_ways(&lake, "SELECT c FROM t WHERE a = 2").await, ["x"]);
    assert_eq!(all_ways(&lake, "SELECT b FROM t WHERE c = 'x'").await, ["1"]);
}

#[tokio::test]
async fn rows_that_a_deletion_vector_names_are_not_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let columns = [("id", "INT NOT NULL"), ("v", "INT")];
    let append = TableSpec::new(&columns).option("deletion-vectors.enabled", "true");
    let keyed = append.clone().primary_key(&["id"]).option("bucket", "1");
    for (name, spec, wide) in [("a", &append, false), ("b", &append, true), ("c", &keyed, false), ("d", &keyed, true)] {
        let mut table = TableBuilder::create(dir.path(), "d", name, spec).expect("creates");
        let all: Vec<Value> = (0..70).map(|id| json!({"id": id, "v": id})).collect();
        table.commit().file(FileSpec::rows(&all).level(5).row_group_rows(7)).publish().expect("publishes");
        let file = table.live_files().expect("files").remove(0).file.file_name;
        let commit = table.commit().delete_positions(&file, &[0, 3, 63, 64, 69]).kind(CommitKind::Compact);
        if wide { commit.bitmap64() } else { commit }.publish().expect("publishes");
        let lake = latest(dir.path(), "d", name).await.expect("pins");
        let left: i64 = (0..70).filter(|id| ![0, 3, 63, 64, 69].contains(id)).sum();
        assert_eq!(all_ways(&lake, "SELECT count(v), sum(v) FROM t").await, [format!("65|{left}")], "{name}");
        assert_eq!(all_ways(&lake, "SELECT id FROM t WHERE v IN (2, 3, 62, 63)").await, ["2", "62"], "{name}");
        assert_eq!(all_ways(&lake, "SELECT count(*) FROM t").await, ["65"], "{name}");
    }
}

#[tokio::test]
async fn a_vector_of_another_cardinality_is_damaged() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("id", "INT")]).option("deletion-vectors.enabled", "true");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    table.append(&(0..10).map(|id| json!({"id": id})).collect::<Vec<_>>()).expect("appends");
    let file = table.live_files().expect("files").remove(0).file.file_name;
    let snapshot = table.commit().delete_positions(&file, &[1, 2, 3]).publish().expect("publishes");
    let name = table.root().join("manifest").join(snapshot.index_manifest.expect("an index manifest"));
    let mut index = decode_index_manifest(&fs::read(&name).expect("reads"), "index").expect("decodes");
    for range in index.iter_mut().flat_map(|file| file.deletion_vectors.iter_mut().flatten()) {
        range.cardinality = Some(2);
    }
    fs::write(&name, encode_index_manifest(&index).expect("encodes")).expect("writes");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    for way in WAYS.into_iter().chain([PLAIN]) {
        let error = rows(&register(way, &lake), "SELECT id FROM t").await.expect_err("damaged");
        assert!(error.to_string().contains("holds 3 rows, the index manifest says 2"), "{way:?}: {error}");
    }
}

#[tokio::test]
async fn a_vector_that_names_rows_behind_the_end_is_damaged() {
    let dir = tempfile::tempdir().expect("a folder");
    let append = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).option("deletion-vectors.enabled", "true");
    let keyed = append.clone().primary_key(&["id"]).option("bucket", "1");
    for (name, spec) in [("a", &append), ("k", &keyed)] {
        let mut table = TableBuilder::create(dir.path(), "d", name, spec).expect("creates");
        let all: Vec<Value> = (0..10).map(|id| json!({"id": id, "v": id})).collect();
        table.commit().file(FileSpec::rows(&all).level(5)).publish().expect("publishes");
        let file = table.live_files().expect("files").remove(0).file.file_name;
        let commit = table.commit().delete_positions(&file, &[1, 2, 10]).kind(CommitKind::Compact);
        let snapshot = commit.publish().expect("publishes");
        let lake = latest(dir.path(), "d", name).await.expect("pins");
        for way in WAYS.into_iter().chain([PLAIN]) {
            let error = rows(&register(way, &lake), "SELECT v FROM t").await.expect_err("damaged");
            assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "CorruptDeletionVector"), "{way:?}: {error}");
            assert!(error.message().contains("position 10 of a data file of 10 rows"), "{way:?}: {error}");
            let told = |wanted: &str| error.context().iter().find(|(known, _)| *known == wanted).map(|(_, told)| told);
            assert_eq!(told("table"), Some(&format!("d.{name}")), "{way:?}");
            assert_eq!(told("snapshot"), Some(&snapshot.id.to_string()), "{way:?}");
            assert!(told("file").is_some_and(|told| told.contains("/index/index-")), "{way:?}: {error:?}");
            assert!(told("data file").is_some_and(|told| told.ends_with(&file)), "{way:?}: {error:?}");
            assert!(error.hint().is_some(), "{way:?}");
        }
    }
}

#[tokio::test]
async fn vectors_that_are_not_applied_are_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("dt", "STRING NOT NULL")])
        .partitioned_by(&["dt"])
        .primary_key(&["id", "dt"])
        .option("bucket", "1")
        .option("deletion-vectors.enabled", "true");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    let all: Vec<Value> = (0..10).map(|id| json!({"id": id, "dt": if id < 5 { "a" } else { "b" }})).collect();
    table.commit().file(FileSpec::rows(&all).level(5)).kind(CommitKind::Compact).publish().expect("publishes");
    let files: Vec<String> = table.live_files().expect("files").into_iter().map(|entry| entry.file.file_name).collect();
    let commit = table.commit().delete_positions(&files[0], &[1, 2]).delete_positions(&files[1], &[0]);
    let snapshot = commit.kind(CommitKind::Compact).publish().expect("publishes");
    let index = table.root().join("manifest").join(snapshot.index_manifest.expect("an index manifest"));
    // what a query answers and what it says
    let told = async |sql: &str| {
        let table = super::table(dir.path(), "d", "t").await.expect("opens");
        let pin = Pin::resolve(&table, PinRequest::Latest, &Default::default()).await.expect("pins");
        let log = ScanLog::new();
        let lake = LakeTable::try_new(pin, QueryEnv::new()).expect("a table").with_log(Arc::clone(&log));
        let found = rows(&register(WITH_SOURCE, &lake), sql).await.expect("runs");
        let notices: Vec<String> =
            log.reports().iter().flat_map(|report| report.notices.iter().map(ToString::to_string)).collect();
        (found.len(), notices)
    };
    assert_eq!(told("SELECT * FROM t").await, (7, vec![]));
    table.alter(&SchemaChange::Set("deletion-vectors.enabled", "false")).expect("alters");
    let since = "deleted by vectors that are not applied, since deletion-vectors.enabled is false now";
    assert_eq!(told("SELECT * FROM t").await, (10, vec![format!("d.t: 3 rows of 2 files are {since}")]));
    let of_b = told("SELECT * FROM t WHERE dt = 'b'").await;
    assert_eq!(of_b.0, 5);
    assert!(of_b.1.len() == 1 && of_b.1[0].contains(" of 1 file "), "{of_b:?}");
    assert_eq!(told("SELECT * FROM t WHERE dt = 'c'").await, (0, vec![]));
    // older writers do not say how many rows a vector names
    let mut entries = decode_index_manifest(&fs::read(&index).expect("reads"), "index").expect("decodes");
    for range in entries.iter_mut().flat_map(|file| file.deletion_vectors.iter_mut().flatten()) {
        range.cardinality = None;
    }
    fs::write(&index, encode_index_manifest(&entries).expect("encodes")).expect("writes");
    assert_eq!(told("SELECT * FROM t").await, (10, vec![format!("d.t: at least 2 rows of 2 files are {since}")]));
    fs::write(&index, "no manifest").expect("writes");
    let (found, notices) = told("SELECT * FROM t").await;
    assert_eq!(found, 10);
    assert!(notices.iter().any(|notice| notice.contains("is not known")), "{notices:?}");
}

#[tokio::test]
async fn a_limit_counts_the_rows_that_vectors_leave() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("id", "INT")]).option("deletion-vectors.enabled", "true");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    let ids = |from: i32| -> Vec<Value> { (from..from + 10).map(|id| json!({"id": id})).collect() };
    for from in [0, 10, 20] {
        table.append(&ids(from)).expect("appends");
    }
    // a commit writes the vectors of a bucket anew, so all are given in one
    let names: Vec<String> = table.live_files().expect("files").into_iter().map(|e| e.file.file_name).collect();
    let deleted = [0, 1, 2, 3, 4, 5, 6, 7];
    let commit = names.iter().fold(table.commit(), |commit, name| commit.delete_positions(name, &deleted));
    commit.publish().expect("publishes");
    let left = 6;
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    for limit in [1, 2, 3, 5, 6, 10, 30] {
        for way in WAYS.into_iter().chain([PLAIN]) {
            let found = rows(&register(way, &lake), &format!("SELECT id FROM t LIMIT {limit}")).await.expect("runs");
            assert_eq!(found.len(), left.min(limit), "{way:?} LIMIT {limit}");
        }
    }
}

#[tokio::test]
async fn a_file_of_another_length_is_damaged_whoever_read_its_footer_first() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("id", "INT")]);
    let mut whole = TableBuilder::create(dir.path(), "d", "whole", &spec).expect("creates");
    whole.append(&[json!({"id": 1}), json!({"id": 2}), json!({"id": 3})]).expect("appends");
    let mut entry = whole.live_files().expect("files").remove(0);
    entry.file.row_count = 2;
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    let file = format!("bucket-0/{}", entry.file.file_name);
    fs::create_dir_all(table.root().join("bucket-0")).expect("a folder");
    fs::copy(whole.root().join(&file), table.root().join(&file)).expect("copies");
    table.commit().entry(entry).publish().expect("publishes");
    for ways in [[PLAIN, WITH_SOURCE], [WITH_SOURCE, PLAIN]] {
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        for way in ways {
            let error = rows(&register(way, &lake), "SELECT id FROM t").await.expect_err("damaged");
            assert_eq!(error.code(), "DataFileCorrupt", "{way:?}: {error}");
        }
    }
}

#[tokio::test]
async fn columns_stored_in_another_form_are_refused_when_they_are_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("id", "INT"), ("m", "MAP<STRING, INT>")])
        .option("fields.m.map.storage-layout", "shared-shredding");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    table.append(&[json!({"id": 1, "m": {"a": 1}}), json!({"id": 2, "m": null})]).expect("appends");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    for way in WAYS.into_iter().chain([PLAIN]) {
        let context = register(way, &lake);
        for sql in ["SELECT * FROM t", "SELECT m FROM t", "SELECT id FROM t WHERE m IS NULL"] {
            let error = rows(&context, sql).await.expect_err("refused");
            assert_eq!(error.code(), "UnsupportedOption", "{way:?} {sql}: {error}");
            for word in ["d.t", "column: m", "fields.m.map.storage-layout"] {
                assert!(error.to_string().contains(word), "{word} is not said: {error}");
            }
        }
    }
    assert_eq!(all_ways(&lake, "SELECT id FROM t WHERE id > 1").await, ["2"]);
    assert_eq!(all_ways(&lake, "SELECT count(*) FROM t").await, ["2"]);
}

#[tokio::test]
async fn what_a_scan_found_is_told_even_when_its_node_is_optimised_away() {
    let dir = tempfile::tempdir().expect("a folder");
    let spec = TableSpec::new(&[("id", "INT")]);
    let mut builder = TableBuilder::create(dir.path(), "d", "t", &spec).expect("creates");
    builder.append(&[json!({"id": 1})]).expect("appends");
    let table = table(dir.path(), "d", "t").await.expect("opens");
    let pin = Pin::resolve(&table, PinRequest::Latest, &Default::default()).await.expect("pins");
    let log = ScanLog::explaining_files(Arc::default());
    let lake = LakeTable::try_new(pin, QueryEnv::new()).expect("a table").with_log(Arc::clone(&log));
    assert_eq!(rows(&register(WITH_SOURCE, &lake), "SELECT count(*) FROM t").await.expect("runs"), ["1"]);
    let reports = log.reports();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports.first().map(|report| report.decisions.len()), Some(1));
}

#[tokio::test]
async fn work_of_a_plan_is_known_before_it_is_read_and_done_at_its_end() {
    let dir = tempfile::tempdir().expect("a folder");
    versions(dir.path());
    let table = table(dir.path(), "d", "t").await.expect("opens");
    let pin = Pin::resolve(&table, PinRequest::Latest, &Default::default()).await.expect("pins");
    let progress = Arc::new(crate::scan::ScanProgress::default());
    let log = ScanLog::watched(Arc::clone(&progress));
    let lake = LakeTable::try_new(pin, QueryEnv::new()).expect("a table").with_log(log);
    for way in WAYS.into_iter().chain([PLAIN]) {
        let context = register(way, &lake);
        // of the four files one holds deletes only: our own reader does not open it for its rows
        for (sql, files, dead, physical, read) in [
            ("SELECT id, v FROM t", 4, 1, 62, 48),
            ("SELECT id, v FROM t WHERE dt = 'b'", 1, 0, 10, 10),
            ("SELECT sum(v) FROM t", 4, 1, 62, 48),
        ] {
            let plan = context.sql(sql).await.expect("plans").create_physical_plan().await.expect("plans");
            let before = Work::of(&plan);
            assert_eq!((before.files, before.file_rows), (files, physical), "{way:?}: {sql}");
            assert_eq!((before.files_read, before.rows_read, before.share()), (0, 0, Some(0.0)), "{way:?}: {sql}");
            assert!(before.file_bytes > 0);
            let mut rows =
                datafusion::physical_plan::execute_stream(Arc::clone(&plan), context.task_ctx()).expect("runs");
            while let Some(batch) = rows.next().await {
                batch.expect("reads");
            }
            drop(rows);
            let after = Work::of(&plan);
            let opened = if way.merge_source { files } else { files - dead };
            assert_eq!((after.files_read, after.rows_read), (opened, read), "{way:?}: {sql}");
            assert!(after.share() > Some(0.7) && after.share() <= Some(1.0), "{way:?}: {sql}");
        }
        let joined = context.sql("SELECT * FROM t a, t b").await.expect("plans").create_physical_plan().await;
        assert_eq!(Work::of(&joined.expect("plans")).share(), None);
    }
    assert!(progress.manifests() > 0);
    assert_eq!(progress.manifests(), progress.manifests_read());
}
