//! Statements whose plan travels as bytes: another process gives the same rows, of system tables and changes too.

use datafusion::physical_plan::collect;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};

use super::*;
use crate::query::codec::LakeCodec;

/// Rows of a statement, run here and run by a session that knows nothing but its plan as bytes.
async fn here_and_there(warehouse: &Warehouse, sql: &str) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let context = SessionContext::new();
    warehouse.register(&context, "lake").await.unwrap();
    let frame = warehouse.sql(&context, sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let plan = frame.create_physical_plan().await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let codec = LakeCodec::new(Arc::clone(warehouse.env()), vec![Arc::clone(warehouse.catalog().storage())]);
    let bytes = physical_plan_to_bytes_with_extension_codec(Arc::clone(&plan), &codec)
        .unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let worker = SessionContext::new();
    let decoded = physical_plan_from_bytes_with_extension_codec(&bytes, &worker.task_ctx(), &codec)
        .unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let mut here = texts(&collect(plan, context.task_ctx()).await.unwrap());
    let mut there = texts(&collect(decoded, worker.task_ctx()).await.unwrap());
    here.sort();
    there.sort();
    (here, there)
}

#[tokio::test]
async fn statements_through_bytes_give_the_same_rows() {
    let url = golden::java_warehouse().unwrap();
    let warehouse = Warehouse::open(url.to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let system = ["snapshots", "schemas", "options", "files", "manifests", "partitions", "buckets", "row_accounting"];
    let mut statements: Vec<String> =
        system.iter().map(|name| format!("SELECT * FROM lake.golden.pk_lsm${name}")).collect();
    let others = [
        "SELECT * FROM lake.golden.pk_lsm$audit_log",
        "SELECT * FROM lake.golden.pk_lsm$ro",
        "SELECT * FROM paimon_row_accounting('golden.pk_lsm', level => 'unit')",
        "SELECT final_rows, bucket FROM paimon_row_accounting('golden.pk_lsm', level => 'unit', at => 1) WHERE files > 0",
        "SELECT * FROM paimon_diff('golden.pk_lsm', 1, 2)",
        "SELECT * FROM paimon_delta('golden.pk_lsm', 0, 2)",
        "SELECT * FROM lake.golden.pk_lsm VERSION AS OF 1 a FULL JOIN lake.golden.pk_lsm b ON a.id = b.id",
        "SELECT b.found, a.id FROM lake.golden.pk_lsm a LEFT JOIN (SELECT 1 AS found, id FROM lake.golden.pk_lsm VERSION AS OF 1) b
         ON a.id = b.id ORDER BY b.found, a.id LIMIT 5",
        "SELECT 'now' AS side, count(*) FROM lake.golden.pk_lsm UNION ALL SELECT 'then', count(id) FROM lake.golden.pk_lsm
         VERSION AS OF 1 ORDER BY side LIMIT 1",
        "SELECT id, (SELECT id FROM lake.golden.pk_lsm WHERE id = -5) AS missing FROM lake.golden.pk_lsm WHERE id < 9",
        "SELECT id + 1, id - 1, -id, sum(id * 2) OVER () FROM lake.golden.pk_lsm WHERE id + 1 > 0",
        "SELECT s.snapshot_id, count(*) FROM lake.golden.pk_lsm$snapshots s CROSS JOIN lake.golden.pk_lsm t GROUP BY 1",
    ];
    statements.extend(others.map(str::to_string));
    for sql in &statements {
        let (here, there) = here_and_there(&warehouse, sql).await;
        assert!(!here.is_empty(), "{sql}: no rows to compare");
        assert_eq!(here, there, "{sql}");
    }
}
