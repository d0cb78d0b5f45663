//! Tables of the builder are real tables: the Java reader gives the same rows for every snapshot.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use lakepin::spec::CommitKind;
use lakepin::testing::builder::{FileSpec, SchemaChange, TableBuilder, TableSpec};
use serde_json::{Value, json};

use crate::differential::oracle;
use crate::golden::{Side, compare_table};
use crate::harness::{Outcome, Test};

pub fn register(tests: &mut Vec<Test>) {
    tests.push(Test::new_async("builder::java_reads_the_same_rows", run));
    tests.push(Test::new_async("java::partitions_of_every_type_are_where_java_puts_them", partitions));
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

const NO_ORACLE: &str = "the Java oracle is not set up (sqllogictest/oracle/setup.sh)";

async fn run() -> Result<Outcome, String> {
    let Some(oracle) = oracle() else { return Ok(Outcome::Skipped(NO_ORACLE.into())) };
    let work = tempfile::tempdir().map_err(|e| e.to_string())?;
    let side = Side::made(work.path());
    build(&side.warehouse).map_err(|e| format!("{e:?}"))?;
    let tables = ["runs", "plain", "vectors"];
    let files = compare(&oracle, &side, &tables).await?;
    Ok(Outcome::Passed(format!("{} tables, {files} files", tables.len())))
}

/// Lets Java read tables and compares; the number of files compared.
async fn compare(oracle: &Path, side: &Side, tables: &[&str]) -> Result<usize, String> {
    let steps = side.warehouse.with_file_name("steps.jsonl");
    let text: String = tables
        .iter()
        .map(|t| format!("{}\n", json!({"op": "expect", "table": t, "dir": side.expected.join(t)})))
        .collect();
    std::fs::write(&steps, text).map_err(|e| e.to_string())?;
    java(oracle, &["script".as_ref(), side.warehouse.as_os_str(), "golden".as_ref(), steps.as_os_str()])?;
    let mut files = 0;
    for table in tables {
        files += compare_table(side, table).await.map_err(|m| format!("{table}: {m}"))?.files();
    }
    Ok(files)
}

fn java(oracle: &Path, args: &[&OsStr]) -> Result<(), String> {
    let output = Command::new(oracle).args(args).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("Java {:?}: {}", args[0], String::from_utf8_lossy(&said)))
}

/// Types a partition may have, and values whose folder is not obvious. (A FLOAT or DOUBLE whose old Java text is not the
/// shortest, as 1.17549435E-38, is left out: a JDK before 19 puts it into another folder than one after.)
const PARTITION_TYPES: &[(&str, &str, &[&str])] = &[
    ("f", "FLOAT", &["1.5", "-0.0", "0.0", "\"NaN\"", "\"Infinity\"", "1.0E-5", "3.4028235E38", "1.0E10", "null"]),
    ("d", "DOUBLE", &["1.5", "-0.0", "0.0", "\"NaN\"", "\"-Infinity\"", "0.001", "1.0E7", "9007199254740993", "null"]),
    ("b", "BOOLEAN", &["true", "false", "null"]),
    ("t", "TINYINT", &["-128", "127"]),
    ("s", "SMALLINT", &["-7", "32767", "null"]),
    (
        "c",
        "DECIMAL(38, 10)",
        &["\"-0.0000000001\"", "\"99999999999999999999999999.9999999999\"", "\"0.0000000000\"", "null"],
    ),
    ("n", "DECIMAL(5, 0)", &["\"-12345\"", "\"0\""]),
    ("w", "CHAR(5)", &["\"ab\"", "\"\"", "\" \"", "\"a/b:c\"", "\"订单\"", "null"]),
    ("dt", "DATE", &["\"0001-01-01\"", "\"1969-12-31\"", "\"9999-12-31\"", "null"]),
    ("ti", "TIME(3)", &["\"00:00:00\"", "\"23:59:59.999\"", "\"00:00:00.001\"", "null"]),
    ("t0", "TIMESTAMP(0)", &["\"1969-12-31T23:59:59.000000000\"", "\"2024-02-29T12:00:00.000000000\"", "null"]),
    ("t3", "TIMESTAMP(3)", &["\"1969-12-31T23:59:59.999000000\"", "\"2024-02-29T12:34:00.000000000\"", "null"]),
    ("t6", "TIMESTAMP(6)", &["\"1969-12-31T23:59:59.999999000\"", "\"9999-12-31T23:59:59.999999000\"", "null"]),
    ("t9", "TIMESTAMP(9)", &["\"1969-12-31T23:59:59.999999999\"", "\"2024-02-29T12:34:56.100000000\"", "null"]),
    (
        "l3",
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
        &["\"1969-12-31T23:59:59.999000000Z\"", "\"2024-02-29T12:34:00.000000000Z\"", "null"],
    ),
    (
        "l6",
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        &["\"0001-01-01T00:00:00.000000000Z\"", "\"2024-02-29T12:34:56.000001000Z\"", "null"],
    ),
];

async fn partitions() -> Result<Outcome, String> {
    let Some(oracle) = oracle() else { return Ok(Outcome::Skipped(NO_ORACLE.into())) };
    let work = tempfile::tempdir().map_err(|e| e.to_string())?;
    let side = Side::made(work.path());
    let columns: Vec<(&str, &str)> =
        [("id", "INT")].into_iter().chain(PARTITION_TYPES.iter().map(|(name, text, _)| (*name, *text))).collect();
    let keys: Vec<&str> = PARTITION_TYPES.iter().map(|(name, _, _)| *name).collect();
    // ORC, since Avro has no TIMESTAMP(9)
    let spec = TableSpec::new(&columns).partitioned_by(&keys).option("bucket", "-1").option("file.format", "orc");
    TableBuilder::create(&side.warehouse, "golden", "t", &spec).map_err(|e| format!("{e:?}"))?;
    let most = PARTITION_TYPES.iter().map(|(_, _, values)| values.len()).max().unwrap_or(0);
    let rows: String = (0..most)
        .map(|row| {
            let cells: Vec<String> = PARTITION_TYPES
                .iter()
                .map(|(name, _, values)| format!("\"{name}\":{}", values[row % values.len()]))
                .collect();
            format!("{{\"id\":{row},{}}}\n", cells.join(","))
        })
        .collect();
    let file = work.path().join("rows.jsonl");
    std::fs::write(&file, rows).map_err(|e| e.to_string())?;
    java(&oracle, &["write".as_ref(), side.warehouse.as_os_str(), "golden".as_ref(), "t".as_ref(), file.as_os_str()])?;
    let files = compare(&oracle, &side, &["t"]).await?;
    Ok(Outcome::Passed(format!("{most} partitions of {} types, {files} files", PARTITION_TYPES.len())))
}
