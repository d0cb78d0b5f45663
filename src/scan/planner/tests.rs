//! Plans of the golden tables against those of the reference implementation, and rules that need whole tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Expr, Operator, binary_expr, col, lit};

use super::super::{FileRead, ScanEnv, ScanPlan, ScanRequest, plan};
use crate::snapshot::{Pin, PinRequest, Table, TableIdent};
use crate::spec::TableSchema;
use crate::spec::arrow_types::arrow_type;
use crate::storage::Storage;
use crate::testing::golden;

async fn table(warehouse: &Path, name: &str) -> Arc<Table> {
    let (storage, root) = Storage::open(warehouse.to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let folder = root.join(&format!("golden.db/{name}")).unwrap();
    Table::new(TableIdent::new("golden", name), storage, folder).unwrap()
}

async fn pin(table: &Arc<Table>, request: PinRequest) -> Arc<Pin> {
    Pin::resolve(table, request, &BTreeMap::new()).await.unwrap()
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Files of a plan the reference implementation made: name and whether it has a vector.
fn files_of(path: &Path) -> BTreeSet<(String, bool)> {
    lines(path)
        .iter()
        .flat_map(|split| split["files"].as_array().unwrap().clone())
        .map(|file| (file["name"].as_str().unwrap().to_string(), !file["deletion"].is_null()))
        .collect()
}

fn planned(plan: &ScanPlan) -> BTreeSet<(String, bool)> {
    plan.files().map(|file| (file.entry.file.file_name.clone(), file.deletion.is_some())).collect()
}

/// One line of `filters.txt`.
fn parse(text: &str, schema: &TableSchema) -> Vec<Expr> {
    text.split(" AND ").map(|part| comparison(part, schema)).collect()
}

fn comparison(text: &str, schema: &TableSchema) -> Expr {
    let mut words = text.splitn(3, ' ');
    let (name, op, value) = (words.next().unwrap(), words.next().unwrap(), words.next());
    let field = schema.fields.iter().find(|field| field.name == name).unwrap();
    let literal = |text: &str| {
        let data_type = arrow_type(field.data_type());
        lit(ScalarValue::Utf8(Some(text.to_string())).cast_to(&data_type).unwrap())
    };
    let column = col(name);
    let operator = match op {
        "isnull" => return column.is_null(),
        "notnull" => return column.is_not_null(),
        "in" => {
            let list = value.unwrap().split(',').map(literal).collect();
            return Expr::InList(InList::new(Box::new(column), list, false));
        }
        "=" => Operator::Eq,
        "!=" => Operator::NotEq,
        "<" => Operator::Lt,
        "<=" => Operator::LtEq,
        ">" => Operator::Gt,
        ">=" => Operator::GtEq,
        other => panic!("unknown operator {other}"),
    };
    binary_expr(column, operator, literal(value.unwrap()))
}

fn tables(side: &str) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = fs::read_dir(golden::root().unwrap().join(side).join("expected"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect();
    found.sort();
    found
}

fn numbered(folder: &Path, prefix: &str) -> Vec<(i64, PathBuf)> {
    let mut found: Vec<(i64, PathBuf)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let number = name.strip_prefix(prefix)?.strip_suffix(".jsonl")?.parse().ok()?;
            Some((number, path))
        })
        .collect();
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_plans_keep_what_java_keeps_or_less() {
    let env = ScanEnv::default();
    let warehouse = golden::java_warehouse().unwrap();
    let (mut plain, mut filtered, mut fewer) = (0, 0, Vec::new());
    let mut wrong = Vec::new();
    for (name, expected) in tables("java-0.9") {
        let Some((snapshot, path)) = numbered(&expected, "plan-").pop() else { continue };
        let table = table(&warehouse, &name).await;
        let pin = pin(&table, PinRequest::Latest).await;
        let whole = plan(&pin, &ScanRequest::default(), &env).await.unwrap();
        let java = files_of(&path);
        let own = planned(&whole);
        if own != java {
            wrong.push(format!(
                "{name}: without a filter\n  only Java {:?}\n  only we {:?}",
                java.difference(&own).collect::<Vec<_>>(),
                own.difference(&java).collect::<Vec<_>>()
            ));
        }
        plain += 1;
        let Ok(text) = fs::read_to_string(expected.join("filters.txt")) else { continue };
        for line in text.lines() {
            let (label, filter) = line.split_once(": ").unwrap();
            let java = files_of(&expected.join(format!("plan-{snapshot}-{label}.jsonl")));
            let rows = lines(&expected.join(format!("rows-{snapshot}-{label}.jsonl"))).len();
            let request = ScanRequest { filters: parse(filter, &pin.schema), explain: true, ..ScanRequest::default() };
            let found = plan(&pin, &request, &env).await.unwrap();
            let own = planned(&found);
            let more: Vec<_> = own.difference(&java).collect();
            // there 0.9 compares bounds of DECIMAL(6,2) with a DECIMAL(12,4) literal and loses rows
            let java_is_wrong = name.starts_with("evo_append_") && filter.starts_with("d > ");
            if !more.is_empty() && !java_is_wrong {
                wrong.push(format!("{name}, {filter}: {} more than Java: {more:?}", more.len()));
            }
            if own.is_empty() && rows > 0 {
                wrong.push(format!("{name}, {filter}: nothing kept of {rows} rows"));
            }
            if own.len() < java.len() {
                fewer.push(format!("{name}, {filter}: {} of {}", own.len(), java.len()));
            }
            // every file considered is explained once, and kept where it says so
            let kept: BTreeSet<String> =
                found.decisions.iter().filter(|d| d.kept).map(|decision| decision.file.clone()).collect();
            assert_eq!(kept, own.iter().map(|(name, _)| name.clone()).collect(), "{name}, {filter}");
            assert_eq!(found.decisions.len() as u64, found.stages.files, "{name}, {filter}");
            for decision in &found.decisions {
                assert_eq!(decision.kept, matches!(decision.read, FileRead::In(_)));
                assert_eq!(decision.kept, decision.section.is_some());
                assert!(!decision.rule.to_string().is_empty());
            }
            filtered += 1;
        }
    }
    println!(
        "{plain} plans, {filtered} with a filter; fewer files than Java in {}:\n{}",
        fewer.len(),
        fewer.join("\n")
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(plain >= 80 && filtered >= 95, "only {plain} and {filtered} plans compared");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden_row_counts_from_metadata_are_the_rows() {
    let env = ScanEnv::default();
    let (mut proven, mut unproven, mut refused) = (0, 0, Vec::new());
    for (side, warehouse) in
        [("java-0.9", golden::java_warehouse().unwrap()), ("python-2.1", golden::python_warehouse().unwrap())]
    {
        for (name, expected) in tables(side) {
            let table = table(&warehouse, &name).await;
            for (snapshot, path) in numbered(&expected, "snapshot-") {
                let pin = pin(&table, PinRequest::SnapshotId(snapshot)).await;
                match plan(&pin, &ScanRequest::default(), &env).await {
                    Ok(found) => match found.exact_row_count {
                        Some(count) => {
                            proven += 1;
                            assert_eq!(count, lines(&path).len() as u64, "{name}, snapshot {snapshot}");
                        }
                        None => unproven += 1,
                    },
                    Err(error) => refused.push(format!("{name}, snapshot {snapshot}: {}", error.code())),
                }
            }
        }
    }
    println!("{proven} counts proven, {unproven} not, refused:\n{}", refused.join("\n"));
    assert!(proven > 150, "only {proven} counts were proven");
    assert!(refused.len() <= 11, "{refused:?}");
    assert!(refused.iter().all(|line| line.starts_with("append_data_evolution") || line.starts_with("append_blob")));
}
