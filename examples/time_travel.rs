//! One table at several snapshots: by id, tag and time, side by side, and what changed between two of them.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use futures::TryStreamExt;
use lakepin::arrow::util::pretty::pretty_format_batches;
use lakepin::testing::builder::{TableBuilder, TableSpec};
use lakepin::{Session, SessionConfig, Warehouse};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let columns = [("order_id", "BIGINT NOT NULL"), ("status", "STRING")];
    let spec = TableSpec::new(&columns).primary_key(&["order_id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "shop", "orders", &spec)?;
    let order = |id: i64, status: &str| json!({"order_id": id, "status": status});
    table.append(&[order(1, "new"), order(2, "new")])?; // snapshot 1, 2026-04-16 01:00 UTC
    table.append(&[order(1, "paid")])?; // snapshot 2, a minute later
    table.tag("eod", 2)?;
    table.append(&[order(2, "cancelled"), order(3, "new")])?; // snapshot 3

    let warehouse = Warehouse::open(&dir.path().to_string_lossy(), &Default::default()).await?;
    let session = Session::new(&warehouse, SessionConfig::default()).await?;
    for sql in [
        "SELECT * FROM orders ORDER BY order_id",
        "SELECT * FROM orders VERSION AS OF 1 ORDER BY order_id",
        "SELECT * FROM orders VERSION AS OF 'eod' ORDER BY order_id",
        "SELECT * FROM orders TIMESTAMP AS OF '2026-04-16 09:00:30+08:00' ORDER BY order_id",
        "SELECT a.order_id, b.status AS was, a.status AS is FROM orders a \
         LEFT JOIN orders VERSION AS OF 1 b ON a.order_id = b.order_id ORDER BY a.order_id",
        "SELECT op, order_id FROM paimon_diff('shop.orders', from => 'eod', to => 3) ORDER BY order_id",
    ] {
        let result = session.run_one(sql).await?;
        let pins = result.pins;
        let batches: Vec<_> = result.stream.try_collect().await?;
        println!("{sql}\n{}", pretty_format_batches(&batches)?);
        pins.iter().for_each(|pin| println!("{}", pin.text));
    }
    // a session's own pin holds until UNPIN
    session.run_one("PIN TABLE orders AT (VERSION => 1)").await?;
    let pinned: Vec<_> = session.run_one("SELECT count(*) AS pinned FROM orders").await?.stream.try_collect().await?;
    println!("{}", pretty_format_batches(&pinned)?);
    // what is not kept any more is an error that tells what is
    if let Err(error) = session.run_one("SELECT * FROM orders VERSION AS OF 9").await {
        println!("{error}");
    }
    Ok(())
}
