//! Tables of the builder are real tables: the Java reader gives the same rows for every snapshot.

use std::process::Command;

use lakepin::spec::CommitKind;
use lakepin::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};
use serde_json::{Value, json};

use crate::differential::oracle;
use crate::golden::{Side, compare_table};
use crate::harness::{Outcome, Test};

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new_async("builder::java_reads_the_same_rows", run));
}

fn payment(n: i64, amount: &str, kind: &str) -> Value {
    json!({"pay_id": format!("P{n:05}"), "amount": amount, "at": "2026-04-16T10:00:00.123", "dt": "2026-04-16",
           "ok": n % 2 == 0, "tags": [format!("t{n}"), null], "_ROW_KIND": kind})
}

fn build(warehouse: &std::path::Path) -> Result<(), lakepin::Error> {
    let columns = [
        ("pay_id", "STRING NOT NULL"),
        ("amount", "DECIMAL(12, 2)"),
        ("at", "TIMESTAMP(3)"),
        ("dt", "STRING NOT NULL"),
        ("ok", "BOOLEAN"),
    ];
    let spec = TableSpec::new(&columns).partitioned_by(&["dt"]).primary_key(&["dt", "pay_id"]).option("bucket", "2");
    let mut table = TableBuilder::create(warehouse, "golden", "runs", &spec)?;
    let rows = |range: std::ops::Range<i64>, amount: &str, kind: &str| -> Vec<Value> {
        range.map(|n| without(payment(n, amount, kind), "tags")).collect()
    };
    table.append(&rows(0..60, "1.00", "+I"))?;
    table
        .commit()
        .file(FileSpec::rows(&rows(0..60, "2.00", "+I")).level(5))
        .remove_all()
        .kind(CommitKind::Compact)
        .publish()?;
    table.append(&rows(10..20, "3.00", "+U"))?;
    table
        .commit()
        .file(FileSpec::rows(&rows(15..25, "3.00", "-D")))
        .user("other")
        .identifier(77)
        .watermark(1000)
        .publish()?;
    table.alter(&SchemaChange::Add("note", "STRING"))?;
    table.append(&[json!({"pay_id": "P99999", "amount": "9.99", "dt": "2026-04-17", "note": "new"})])?;

    let spec = TableSpec::new(&[("id", "BIGINT"), ("s", "STRING"), ("tags", "ARRAY<STRING>")]).option("bucket", "-1");
    let mut append = TableBuilder::create(warehouse, "golden", "plain", &spec)?;
    append.append(&[json!({"id": 1, "s": "a", "tags": ["x", null]}), json!({"id": 2, "s": null, "tags": null})])?;
    append.append(&[json!({"id": 3, "s": "订单", "tags": []})])?;

    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "STRING")])
        .primary_key(&["id"])
        .option("bucket", "1")
        .option("deletion-vectors.enabled", "true");
    let mut vectors = TableBuilder::create(warehouse, "golden", "vectors", &spec)?;
    let rows: Vec<Value> = (0..10).map(|i| json!({"id": i, "v": "old"})).collect();
    vectors.commit().file(FileSpec::rows(&rows).level(5)).kind(CommitKind::Compact).publish()?;
    let name = vectors.live_files()?[0].file.file_name.clone();
    let new: Vec<Value> = (3..6).map(|i| json!({"id": i, "v": "new"})).collect();
    vectors
        .commit()
        .file(FileSpec::rows(&new).level(4))
        .delete_positions(&name, &[3, 4, 5])
        .kind(CommitKind::Compact)
        .publish()?;
    Ok(())
}

fn without(mut row: Value, member: &str) -> Value {
    if let Some(members) = row.as_object_mut() {
        members.remove(member);
    }
    row
}

async fn run() -> Result<Outcome, String> {
    let Some(oracle) = oracle() else {
        return Ok(Outcome::Skipped("the Java oracle is not set up (sqllogictest/oracle/setup.sh)".into()));
    };
    let work = tempfile::tempdir().map_err(|e| e.to_string())?;
    let side = Side::made(work.path());
    build(&side.warehouse).map_err(|e| format!("{e:?}"))?;
    let tables = ["runs", "plain", "vectors"];
    let steps = work.path().join("steps.jsonl");
    let text: String = tables
        .iter()
        .map(|t| format!("{}\n", json!({"op": "expect", "table": t, "dir": side.expected.join(t)})))
        .collect();
    std::fs::write(&steps, text).map_err(|e| e.to_string())?;
    let output = Command::new(oracle)
        .arg("script")
        .args([side.warehouse.as_os_str(), "golden".as_ref(), steps.as_os_str()])
        .output()
        .map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(format!("Java cannot read them: {}", String::from_utf8_lossy(&output.stdout)));
    }
    let mut files = 0;
    for table in tables {
        files += compare_table(&side, table).await.map_err(|m| format!("{table}: {m}"))?;
    }
    Ok(Outcome::Passed(format!("{} tables, {files} files", tables.len())))
}
