//! Plans travel as bytes and give the same rows.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use serde_json::json;

use super::{PLAIN, WAYS, Way, latest, session};
use crate::query::QueryEnv;
use crate::query::codec::LakeCodec;
use crate::testing::builder::{FileSpec, TableBuilder, TableSpec};

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
