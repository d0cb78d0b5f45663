//! A table compared with its source on a real server: equal, and with one defect of each kind.

use futures::StreamExt;
use lakepin::arrow::array::RecordBatch;
use lakepin::arrow::util::display::{ArrayFormatter, FormatOptions};
use lakepin::sql::{Session, SessionConfig, Warehouse};
use lakepin::testing::builder::{FileSpec, TableBuilder, TableSpec};
use serde_json::{Value, json};

/// Rows of the table and of its source.
const ROWS: i64 = 300;

/// The lake side: amounts were changed once, so that there are superseded versions; one payment was deleted.
async fn session(folder: &std::path::Path) -> Session {
    let columns =
        [("dt", "STRING NOT NULL"), ("id", "BIGINT NOT NULL"), ("amount", "DECIMAL(12, 2)"), ("state", "STRING")];
    let spec = TableSpec::new(&columns).primary_key(&["dt", "id"]).partitioned_by(&["dt"]).option("bucket", "2");
    let mut table = TableBuilder::create(folder, "pay", "pays", &spec).expect("a table");
    let row = |id: i64, amount: String| json!({"dt": day(id), "id": id, "amount": amount, "state": state(id)});
    let first: Vec<Value> = (1..=ROWS + 1).map(|id| row(id, "0.01".to_string())).collect();
    table.append(&first).expect("rows");
    let second: Vec<Value> = (1..=ROWS).map(|id| row(id, amount(id))).collect();
    table.append(&second).expect("changes");
    let gone = json!({"dt": day(ROWS + 1), "id": ROWS + 1, "amount": "0.01", "state": "X", "_ROW_KIND": "-D"});
    table.commit().file(FileSpec::rows(&[gone])).publish().expect("a deletion");
    let warehouse = Warehouse::open(&folder.display().to_string(), &std::collections::BTreeMap::new()).await;
    Session::new(&warehouse.expect("a warehouse"), SessionConfig::default()).await.expect("a session")
}

fn day(id: i64) -> &'static str {
    if id % 2 == 0 { "2026-04-15" } else { "2026-04-16" }
}

fn amount(id: i64) -> String {
    format!("{}.{:02}", id * 7, id % 100)
}

/// Codes in the lake; the source has numbers for them, and one that is in Chinese.
fn state(id: i64) -> &'static str {
    if id % 3 == 0 { "成功" } else { "PAID" }
}

/// The statements that make the same rows in a database.
pub(super) fn source(text: &str) -> Vec<String> {
    let create = format!(
        "CREATE TABLE pays (dt {text} NOT NULL, id bigint NOT NULL, amount decimal(20, 4), state {text}, \
         PRIMARY KEY (dt, id))"
    );
    let rows: Vec<String> =
        (1..=ROWS).map(|id| format!("('{}', {id}, {}, '{}')", day(id), amount(id), state(id))).collect();
    vec![create, format!("INSERT INTO pays VALUES {}", rows.join(", "))]
}

/// One defect of each kind.
pub(super) const DEFECTS: &[&str] = &[
    "DELETE FROM pays WHERE id = 7",
    "INSERT INTO pays VALUES ('2026-04-16', 9001, 5, 'PAID'), ('2026-04-16', 9003, NULL, NULL)",
    "UPDATE pays SET amount = amount + 0.0001 WHERE id = 8",
    "UPDATE pays SET state = NULL WHERE id IN (10, 11)",
];

async fn verdict(session: &Session, url: &str) -> Result<Vec<String>, String> {
    told(session, &format!("RECONCILE pays WITH '{url}' FROM 'pays' ON KEY (dt, id)")).await
}

pub(super) async fn told(session: &Session, sql: &str) -> Result<Vec<String>, String> {
    let mut answer = session.run_one(sql).await.map_err(|e| format!("{e:?}"))?;
    let mut batches: Vec<RecordBatch> = Vec::new();
    while let Some(batch) = answer.stream.next().await {
        batches.push(batch.map_err(|e| e.to_string())?);
    }
    let options = FormatOptions::new().with_null("NULL");
    let mut found = Vec::new();
    for batch in &batches {
        let cell = |name: &str, row: usize| -> Result<String, String> {
            let array = batch.column_by_name(name).ok_or(format!("there is no column {name}"))?;
            Ok(ArrayFormatter::try_new(array.as_ref(), &options).map_err(|e| e.to_string())?.value(row).to_string())
        };
        for row in 0..batch.num_rows() {
            match cell("part", row)?.as_str() {
                "verdict" => found.push(cell("class", row)?),
                "class" => found.push(format!("{} {}", cell("class", row)?, cell("findings", row)?)),
                "example" => {
                    found.push(format!("{} {} {}", cell("class", row)?, cell("key", row)?, cell("column", row)?))
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// Compares before and after the defects.
pub(super) async fn compared<F>(url: &str, break_it: F) -> Result<String, String>
where
    F: AsyncFnOnce(),
{
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let session = session(folder.path()).await;
    let equal = verdict(&session, url).await?;
    if equal.first().map(String::as_str) != Some("EQUAL") || !equal.contains(&format!("EQUAL {ROWS}")) {
        return Err(format!("equal sides: {equal:?}"));
    }
    break_it().await;
    let mut found = verdict(&session, url).await?;
    found.sort();
    let mut right = vec![
        "DIFFERENT".to_string(),
        "DIFFERENT 3".to_string(),
        format!("EQUAL {}", ROWS - 4),
        "EXTRA_IN_LAKE 1".to_string(),
        "MISSING_IN_LAKE 2".to_string(),
        r#"DIFFERENT {"dt":"2026-04-15","id":"8"} amount"#.to_string(),
        r#"DIFFERENT {"dt":"2026-04-15","id":"10"} state"#.to_string(),
        r#"DIFFERENT {"dt":"2026-04-16","id":"11"} state"#.to_string(),
        r#"EXTRA_IN_LAKE {"dt":"2026-04-16","id":"7"} NULL"#.to_string(),
        r#"MISSING_IN_LAKE {"dt":"2026-04-16","id":"9001"} NULL"#.to_string(),
        r#"MISSING_IN_LAKE {"dt":"2026-04-16","id":"9003"} NULL"#.to_string(),
    ];
    right.sort();
    if found != right {
        return Err(format!("found {found:#?}\nright {right:#?}"));
    }
    Ok(format!("{ROWS} rows, 6 defects"))
}

/// A date that no type holds is a finding of its own, and costs no other row.
pub(super) async fn unreadable<F>(url: &str, day: &str, add_one: F) -> Result<String, String>
where
    F: AsyncFnOnce(),
{
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("d", "DATE")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(folder.path(), "pay", "odd", &spec).expect("a table");
    let rows: Vec<Value> = (1..=3).map(|id| json!({"id": id, "d": "2026-04-16"})).collect();
    table.append(&rows).expect("rows");
    let warehouse = Warehouse::open(&folder.path().display().to_string(), &std::collections::BTreeMap::new()).await;
    let session = Session::new(&warehouse.expect("a warehouse"), SessionConfig::default()).await.expect("a session");
    let found = told(&session, &format!("RECONCILE odd WITH '{url}' FROM 'odd' ON KEY (id)")).await?;
    for right in ["DIFFERENT 1", "UNREADABLE 1", "EQUAL 1"] {
        if !found.iter().any(|line| line == right) {
            return Err(format!("{right} is not among {found:?}"));
        }
    }
    // under a condition too, and where the lake has no such row
    add_one().await;
    let found =
        told(&session, &format!("RECONCILE odd WITH '{url}' FROM 'odd' ON KEY (id) WHERE d >= DATE '2026-04-01'"))
            .await?;
    for right in ["DIFFERENT 1", "UNREADABLE 2", "EQUAL 1"] {
        if !found.iter().any(|line| line == right) {
            return Err(format!("{right} is not among {found:?} under a condition"));
        }
    }
    Ok(format!("{day} is unreadable, two rows beside it are compared"))
}

/// A table of integers, and a session on it.
async fn numbers(folder: &std::path::Path, rows: &[(i64, i64)]) -> Session {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(folder, "pay", "numbers", &spec).expect("a table");
    let rows: Vec<Value> = rows.iter().map(|(id, v)| json!({"id": id, "v": v})).collect();
    table.append(&rows).expect("rows");
    let warehouse = Warehouse::open(&folder.display().to_string(), &std::collections::BTreeMap::new()).await;
    Session::new(&warehouse.expect("a warehouse"), SessionConfig::default()).await.expect("a session")
}

/// The numbers from 1 to 20 000 in a source whose row 1 differs and whose row 2 does not meet the condition.
pub(super) const NUMBERS: i64 = 20_000;

/// A query that is streamed and ends early leaves its connection to the look at what one side alone showed.
pub(super) async fn early(url: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let rows: Vec<(i64, i64)> = (1..=NUMBERS).map(|id| (id, 1)).collect();
    let session = numbers(folder.path(), &rows).await;
    let sql =
        |from: &str| format!("RECONCILE numbers WITH '{url}' FROM '{from}' ON KEY (id) WHERE v >= 0 STOP AFTER 1");
    for from in ["numbers", "SELECT id, v FROM numbers"] {
        let found = told(&session, &sql(from)).await?;
        for right in ["DIFFERENT 1", "FILTER_MISMATCH 1"] {
            if !found.iter().any(|line| line == right) {
                return Err(format!("{right} is not among {found:?} of {from}"));
            }
        }
    }
    Ok(format!("{NUMBERS} rows, two findings"))
}

/// Keys that a type of the source cannot have are in the lake alone, also where they are looked for by name.
pub(super) async fn no_such_keys(url: &str, table: &str, key: &str, lake: &[&str]) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let spec = TableSpec::new(&[("k", key), ("v", "INT")]).primary_key(&["k"]).option("bucket", "1");
    let mut of_lake = TableBuilder::create(folder.path(), "pay", "odd", &spec).expect("a table");
    let rows: Vec<Value> = lake.iter().map(|key| json!({"k": key, "v": 1})).collect();
    of_lake.append(&rows).expect("rows");
    let warehouse = Warehouse::open(&folder.path().display().to_string(), &std::collections::BTreeMap::new()).await;
    let session = Session::new(&warehouse.expect("a warehouse"), SessionConfig::default()).await.expect("a session");
    let found = told(&session, &format!("RECONCILE odd WITH '{url}' FROM '{table}' ON KEY (k) WHERE v = 1")).await?;
    for right in [format!("EXTRA_IN_LAKE {}", lake.len() - 1), "EQUAL 1".to_string()] {
        if !found.contains(&right) {
            return Err(format!("{right} is not among {found:?} of {table}"));
        }
    }
    Ok(format!("{table}: {} keys that cannot be there", lake.len() - 1))
}
