//! Plans travel as bytes and give the same rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect, displayable};
use datafusion::prelude::SessionContext;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use serde_json::json;

use super::{PLAIN, WAYS, WITH_SOURCE, Way, latest, register, rows, session, table, texts};
use crate::query::codec::LakeCodec;
use crate::query::nodes::read_exec::{Item, ReadExec};
use crate::query::{Compared, LakeTable, LakeView, QueryEnv, changed_columns, compared_form, with_answers};
use crate::scan::ChangeRange;
use crate::snapshot::{Pin, PinRequest};
use crate::spec::{Datum, SnapshotId};
use crate::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};
use crate::testing::golden;

/// A keyed table with a merged, a raw and a deleted part, in two partitions.
fn build(dir: &std::path::Path, engine: &str) {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT"), ("s", "STRING"), ("dt", "STRING NOT NULL")])
        .partitioned_by(&["dt"])
        .primary_key(&["dt", "id"])
        .option("bucket", "1")
        .option("merge-engine", engine);
    let mut table = TableBuilder::create(dir, "d", "t", &spec).expect("creates");
    let row = |id: i32, v: i32, dt: &str| json!({"id": id, "v": v, "s": format!("s{v}"), "dt": dt});
    let old: Vec<_> = (0..50).map(|id| row(id, id, "a")).chain((0..30).map(|id| row(id, id, "b"))).collect();
    table.commit().file(FileSpec::rows(&old).level(5)).publish().expect("publishes");
    let new: Vec<_> = (10..20).map(|id| row(id, id + 1000, "a")).collect();
    table.append(&new).expect("appends");
    if engine == "deduplicate" {
        let gone = json!({"id": 3, "v": 3, "s": "x", "dt": "a", "_ROW_KIND": "-D"});
        table.append(&[gone]).expect("appends");
    }
}

async fn through_bytes(context: &SessionContext, codec: &LakeCodec, sql: &str) -> (Vec<String>, Vec<String>, String) {
    let plan = context.sql(sql).await.expect("plans").create_physical_plan().await.expect("plans");
    let bytes = physical_plan_to_bytes_with_extension_codec(Arc::clone(&plan), codec).expect("encodes");
    let worker = SessionContext::new();
    let decoded = physical_plan_from_bytes_with_extension_codec(&bytes, &worker.task_ctx(), codec).expect("decodes");
    let text = displayable(plan.as_ref()).indent(false).to_string();
    let back = displayable(decoded.as_ref()).indent(false).to_string();
    assert_eq!(text, back, "{sql}");
    (run(&plan, context).await, run(&decoded, &worker).await, text)
}

async fn run(plan: &Arc<dyn ExecutionPlan>, context: &SessionContext) -> Vec<String> {
    let batches = collect(Arc::clone(plan), context.task_ctx()).await.expect("runs");
    let text = arrow::util::pretty::pretty_format_batches(&batches).expect("formats").to_string();
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn plans_through_bytes_give_the_same_rows() {
    for engine in ["deduplicate", "partial-update"] {
        let dir = tempfile::tempdir().expect("a folder");
        build(dir.path(), engine);
        let lake = latest(dir.path(), "d", "t").await.expect("pins");
        let codec = LakeCodec::new(QueryEnv::new(), vec![Arc::clone(lake.pin().table.storage())]);
        let mut seen = String::new();
        for way in WAYS.into_iter().chain([PLAIN]) {
            let context = session(way);
            context.register_table("t", Arc::new(lake.clone())).expect("registers");
            for sql in [
                "SELECT * FROM t",
                "SELECT dt, count(*), sum(v) FROM t GROUP BY dt",
                "SELECT id, v + 1 FROM t WHERE v > 1000 AND dt = 'a'",
                "SELECT s FROM t WHERE id = 12 ORDER BY s LIMIT 3",
            ] {
                let (here, there, text) = through_bytes(&context, &codec, sql).await;
                assert_eq!(here, there, "{engine} {way:?} {sql}");
                seen.push_str(&text);
            }
        }
        assert!(seen.contains("ReadExec:") && seen.contains("DataSourceExec:"), "{seen}");
    }
}

/// Neither the session that plans nor the one that runs has a store for the local file system, nor gets one.
#[tokio::test]
async fn plans_travel_between_sessions_without_a_local_store() {
    let dir = tempfile::tempdir().expect("a folder");
    build(dir.path(), "deduplicate");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let codec = LakeCodec::new(QueryEnv::new(), vec![Arc::clone(lake.pin().table.storage())]);
    let local = ObjectStoreUrl::local_filesystem();
    let alone = || {
        let context = session(WITH_SOURCE);
        context.runtime_env().deregister_object_store(local.as_ref()).expect("had one");
        context
    };
    let sql = "SELECT id, v, s FROM t WHERE dt = 'b'";
    let expected = rows(&register(WITH_SOURCE, &lake), sql).await.expect("runs");
    assert_eq!(expected.len(), 30);
    let (here, there) = (alone(), alone());
    here.register_table("t", Arc::new(lake.clone())).expect("registers");
    assert_eq!(rows(&here, sql).await.expect("runs"), expected);
    let plan = here.sql(sql).await.expect("plans").create_physical_plan().await.expect("plans");
    assert!(displayable(plan.as_ref()).indent(false).to_string().contains("DataSourceExec:"));
    let bytes = physical_plan_to_bytes_with_extension_codec(plan, &codec).expect("encodes");
    for worker in [&there, &SessionContext::new()] {
        let had_one = worker.runtime_env().object_store(&local).is_ok();
        let task = worker.task_ctx();
        let decoded = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).expect("decodes");
        let found = texts(&collect(decoded, task).await.expect("runs")).expect("texts");
        assert_eq!(found, expected);
        assert_eq!(worker.runtime_env().object_store(&local).is_ok(), had_one);
    }
    assert!(here.runtime_env().object_store(&local).is_err());
}

/// The nodes of a plan that read files.
fn leaves(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    let children = plan.children();
    if children.is_empty() {
        return vec![Arc::clone(plan)];
    }
    children.into_iter().flat_map(leaves).collect()
}

fn statistics_of(node: &Arc<dyn ExecutionPlan>) -> Arc<Statistics> {
    StatisticsContext::new().compute(node.as_ref(), &StatisticsArgs::new()).expect("statistics")
}

/// Smallest and largest key of a file.
type KeyRange = (Arc<[Datum]>, Arc<[Datum]>);

/// Smallest and largest keys of the files of a node, in the order of its items.
fn key_ranges(node: &Arc<dyn ExecutionPlan>) -> Vec<KeyRange> {
    let Some(read) = node.downcast_ref::<ReadExec>() else { return Vec::new() };
    let sections = read.partitions().iter().flatten().map(Item::section);
    let files = sections.flat_map(|handle| handle.section.files());
    files.map(|file| (Arc::clone(&file.min_key), Arc::clone(&file.max_key))).collect()
}

/// Rows of each output partition of a node, in the order they come, and their number.
async fn by_partition(node: &Arc<dyn ExecutionPlan>, context: &SessionContext) -> (Vec<String>, usize) {
    let (mut texts, mut rows) = (Vec::new(), 0);
    for partition in 0..node.output_partitioning().partition_count() {
        let stream = node.execute(partition, context.task_ctx()).expect("starts");
        let batches = datafusion::physical_plan::common::collect(stream).await.expect("runs");
        texts.push(arrow::util::pretty::pretty_format_batches(&batches).expect("formats").to_string());
        rows += batches.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>();
    }
    (texts, rows)
}

#[tokio::test]
async fn nodes_of_every_view_come_back_as_they_were() {
    let (java, python) = (golden::java_warehouse().expect("golden"), golden::python_warehouse().expect("golden"));
    let range = ChangeRange { after: SnapshotId(1), upto: SnapshotId(2) };
    let keyed = [
        LakeView::Rows,
        LakeView::ReadOptimized,
        LakeView::AuditLog,
        LakeView::Delta { range, kinds: true },
        LakeView::Delta { range, kinds: false },
    ];
    let changes = [LakeView::Changelog { range, kinds: true }, LakeView::Changelog { range, kinds: false }];
    let cases: [(&std::path::Path, &str, &str, &[LakeView]); 9] = [
        (&java, "pk_lsm", "id IS NOT NULL", &keyed),
        (&java, "pk_dv", "id IS NOT NULL", &keyed),
        (&java, "pk_orc", "id IS NOT NULL", &keyed),
        (&java, "pk_agg", "id IS NOT NULL", &keyed),
        (&java, "pk_changelog_input", "true", &changes),
        (&java, "index_bitmap_file", "k = 'k1'", &keyed[..1]),
        (&java, "fallback_branch", "true", &keyed[..1]),
        (&python, "append_dv", "true", &keyed[..1]),
        (&python, "append_row_tracking", "true", &[LakeView::Rows, LakeView::RowTracking]),
    ];
    let mut seen = String::new();
    let (mut known, mut with_keys) = (0, 0);
    for (warehouse, name, condition, views) in cases {
        let pinned = latest(warehouse, "golden", name).await.expect("pins");
        let codec = LakeCodec::new(QueryEnv::new(), vec![Arc::clone(pinned.pin().table.storage())]);
        for (view, way) in views.iter().flat_map(|view| [WAYS[0], WAYS[2]].map(|way| (*view, way))) {
            let lake = LakeTable::try_view(Arc::clone(pinned.pin()), QueryEnv::new(), view).expect("a view");
            let (context, worker) = (session(way), SessionContext::new());
            context.register_table("t", Arc::new(lake)).expect("registers");
            for sql in ["SELECT * FROM t", &format!("SELECT * FROM t WHERE {condition}"), "SELECT * FROM t LIMIT 3"] {
                let plan = context.sql(sql).await.expect("plans").create_physical_plan().await.expect("plans");
                for node in leaves(&plan) {
                    let what = format!("{name} {view:?} {way:?} {sql}");
                    let bytes =
                        physical_plan_to_bytes_with_extension_codec(Arc::clone(&node), &codec).expect("encodes");
                    let task = context.task_ctx();
                    let back = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).expect("decodes");
                    let again =
                        physical_plan_to_bytes_with_extension_codec(Arc::clone(&back), &codec).expect("encodes");
                    assert_eq!(bytes, again, "{what}");
                    assert_eq!(node.schema(), back.schema(), "{what}");
                    // without them a selection reads the sequence numbers of all rows
                    let keys = key_ranges(&node);
                    assert_eq!(keys, key_ranges(&back), "{what}");
                    with_keys += usize::from(keys.iter().any(|(min, _)| !min.is_empty()));
                    let statistics = statistics_of(&node);
                    assert_eq!(statistics, statistics_of(&back), "{what}");
                    let here = by_partition(&node, &context).await;
                    if let (Precision::Exact(told), None) = (statistics.num_rows, node.fetch()) {
                        assert_eq!(told, here.1, "{what}: rows said to be exact");
                        known += 1;
                    }
                    // a node that another process runs is run twice when that process fails
                    assert_eq!(here, by_partition(&back, &worker).await, "{what}");
                    assert_eq!(here, by_partition(&back, &worker).await, "{what}, once more");
                    seen.push_str(&displayable(node.as_ref()).indent(false).to_string());
                }
            }
        }
    }
    for word in ["ReadExec:", "DataSourceExec:", "limit=3", "fetch=3", "$audit_log", "$delta", "$changelog", "$ro"] {
        assert!(seen.contains(word), "no node shows {word}:\n{seen}");
    }
    assert!(known > 10, "{known} nodes know their rows");
    assert!(with_keys > 10, "{with_keys} nodes have files with keys");
}

#[tokio::test]
async fn casts_use_the_zone_of_the_session_that_planned() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut table =
        TableBuilder::create(dir.path(), "d", "t", &TableSpec::new(&[("at", "TIMESTAMP(3)")])).expect("creates");
    table.append(&[json!({"at": "2026-04-16T10:00:00.000"})]).expect("appends");
    table.alter(&SchemaChange::Retype("at", "TIMESTAMP(3) WITH LOCAL TIME ZONE")).expect("alters");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let codec = LakeCodec::new(QueryEnv::new(), vec![Arc::clone(lake.pin().table.storage())]);
    let context = session(PLAIN);
    context.register_table("t", Arc::new(lake)).expect("registers");
    context.sql("SET datafusion.execution.time_zone = '+08:00'").await.expect("sets");
    let sql = "SELECT CAST(at AS BIGINT) FROM t";
    let (here, there, _) = through_bytes(&context, &codec, sql).await;
    assert_eq!(here, there);
    let ten_in_utc = chrono::DateTime::parse_from_rfc3339("2026-04-16T10:00:00+08:00").expect("a time");
    assert_eq!(rows(&context, sql).await.expect("runs"), [ten_in_utc.timestamp_millis().to_string()]);
}

/// A worker knows nothing of our functions but what the plan says.
#[tokio::test]
async fn a_comparison_travels_with_its_functions() {
    let dir = tempfile::tempdir().expect("a folder");
    build(dir.path(), "deduplicate");
    let table = table(dir.path(), "d", "t").await.expect("a table");
    let none = BTreeMap::new();
    let pin = |id| Pin::resolve(&table, PinRequest::SnapshotId(id), &none);
    let (before, after) = (pin(1).await.expect("pins"), pin(3).await.expect("pins"));
    let compared = Compared::new(&before, &after);
    let codec = LakeCodec::new(QueryEnv::new(), vec![Arc::clone(before.table.storage())]);
    let context = session(PLAIN);
    for (name, pin) in [("before", before), ("after", after)] {
        let lake = LakeTable::try_new(pin, QueryEnv::new()).expect("a table").in_comparison(Arc::clone(&compared));
        context.register_table(name, Arc::new(lake)).expect("registers");
    }
    context.register_udf(changed_columns(vec!["v".into(), "s".into()]));
    context.register_udf(compared_form());
    let sql = "SELECT coalesce(a.id, b.id), changed_columns(b.v, a.v, b.s, a.s), compared_form(map([b.s], [a.v])) \
               FROM before b FULL JOIN after a ON a.id = b.id AND a.dt = b.dt \
               WHERE a.id IS NULL OR b.id IS NULL OR array_length(changed_columns(b.v, a.v, b.s, a.s)) > 0";
    let (here, there, text) = through_bytes(&context, &codec, sql).await;
    assert_eq!(here, there);
    assert!(here.iter().any(|line| line.contains("[v, s]")), "{here:?}");
    assert!(text.contains("changed_columns"), "{text}");
}

#[tokio::test]
async fn damaged_bytes_are_refused_calmly() {
    let dir = tempfile::tempdir().expect("a folder");
    build(dir.path(), "deduplicate");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let codec = LakeCodec::new(QueryEnv::new(), vec![Arc::clone(lake.pin().table.storage())]);
    let context = session(Way { merge_source: false, ..PLAIN });
    context.register_table("t", Arc::new(lake)).expect("registers");
    let plan = context.sql("SELECT * FROM t").await.expect("plans").create_physical_plan().await.expect("plans");
    let bytes = physical_plan_to_bytes_with_extension_codec(plan, &codec).expect("encodes").to_vec();
    let task = context.task_ctx();
    for cut in (0..bytes.len()).step_by(97) {
        let part = bytes.get(..cut).unwrap_or_default();
        assert!(physical_plan_from_bytes_with_extension_codec(part, &task, &codec).is_err(), "cut at {cut}");
    }
    for at in (0..bytes.len()).step_by(41) {
        let mut other = bytes.clone();
        if let Some(byte) = other.get_mut(at) {
            *byte ^= 0x55;
        }
        // some flips are within names and numbers, and decode to another plan; none may panic
        let _ = physical_plan_from_bytes_with_extension_codec(&other, &task, &codec);
    }
    let nowhere = LakeCodec::new(QueryEnv::new(), Vec::new());
    let refused = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &nowhere).expect_err("no store");
    assert_eq!(crate::error::Error::from_datafusion(refused).code(), "StoreUnknown");
}

#[tokio::test]
async fn an_answer_from_metadata_travels_with_its_pin() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut table = TableBuilder::create(dir.path(), "d", "t", &TableSpec::new(&[("id", "INT")])).expect("creates");
    table.append(&[json!({"id": 1}), json!({"id": 2})]).expect("appends");
    let lake = latest(dir.path(), "d", "t").await.expect("pins");
    let codec = LakeCodec::new(QueryEnv::new(), vec![Arc::clone(lake.pin().table.storage())]);
    let state = SessionContext::new().state();
    let rules = with_answers(state.physical_optimizers()).expect("a new rule");
    let state = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(rules).build();
    assert!(with_answers(state.physical_optimizers()).is_none(), "it is there");
    let context = SessionContext::new_with_state(state);
    context.register_table("t", Arc::new(lake)).expect("registers");
    let (here, there, text) = through_bytes(&context, &codec, "SELECT count(*) + 1 FROM t").await;
    assert_eq!(here, there);
    assert!(here.iter().any(|line| line.contains("| 3")), "{here:?}");
    assert!(text.contains("MetadataExec: table=d.t, snapshot=1"), "{text}");
}
