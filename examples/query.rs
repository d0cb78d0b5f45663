//! Rows, and which snapshot they are of: `cargo run --example query [WAREHOUSE [SQL]]`. Without a warehouse a small one
//! is made in a temporary folder.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use futures::TryStreamExt;
use lakepin::arrow::util::pretty::pretty_format_batches;
use lakepin::testing::builder::{TableBuilder, TableSpec};
use lakepin::{Session, SessionConfig, Warehouse};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let made = tempfile::tempdir()?;
    let warehouse = match args.next() {
        Some(path) => path,
        None => small_warehouse(made.path())?,
    };
    let sql = args.next().unwrap_or_else(|| "SELECT pay_id, amount FROM pay.payments ORDER BY pay_id".into());

    let warehouse = Warehouse::open(&warehouse, &Default::default()).await?;
    let session = Session::new(&warehouse, SessionConfig::default()).await?;
    let result = session.run_one(&sql).await?;
    let (pins, notices) = (result.pins, result.notices);
    // rows come as they are read; collecting them is for small answers
    let batches: Vec<_> = result.stream.try_collect().await?;
    println!("{}", pretty_format_batches(&batches)?);
    pins.iter().for_each(|pin| println!("{}", pin.text));
    notices.iter().for_each(|notice| println!("note: {notice}"));
    Ok(())
}

/// Three payments, one of which is corrected later: three final rows, four in files.
fn small_warehouse(dir: &std::path::Path) -> lakepin::Result<String> {
    let columns = [("pay_id", "STRING NOT NULL"), ("amount", "DECIMAL(12, 2)")];
    let spec = TableSpec::new(&columns).primary_key(&["pay_id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir, "pay", "payments", &spec)?;
    let pay = |id: &str, amount: &str| json!({"pay_id": id, "amount": amount});
    table.append(&[pay("P1", "10.00"), pay("P2", "25.50"), pay("P3", "7.25")])?;
    table.append(&[pay("P2", "24.50")])?;
    Ok(dir.to_string_lossy().into_owned())
}
