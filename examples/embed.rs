//! Lake tables in a service's own DataFusion session: the warehouse as a catalog, a pinned table as a provider, and a
//! join with a table in memory.
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::sync::Arc;

use lakepin::arrow::array::{Int64Array, RecordBatch, StringArray};
use lakepin::datafusion::datasource::MemTable;
use lakepin::datafusion::prelude::{SessionContext, col, lit};
use lakepin::testing::builder::{TableBuilder, TableSpec};
use lakepin::{PinRequest, Warehouse};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let spec = TableSpec::new(&[("user_id", "BIGINT NOT NULL"), ("spent", "BIGINT")])
        .primary_key(&["user_id"])
        .option("bucket", "2");
    let mut table = TableBuilder::create(dir.path(), "shop", "spending", &spec)?;
    table.append(&[json!({"user_id": 1, "spent": 10}), json!({"user_id": 2, "spent": 20})])?;
    table.append(&[json!({"user_id": 1, "spent": 15})])?;

    // the caller's session, with a table of its own
    let context = SessionContext::new();
    let users = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![1, 2])) as _),
        ("name", Arc::new(StringArray::from(vec!["Ann", "Bo"])) as _),
    ])?;
    context.register_table("users", Arc::new(MemTable::try_new(users.schema(), vec![vec![users]])?))?;

    // all tables as `lake.database.table`; each statement reads the snapshots that are the latest then
    let warehouse = Warehouse::open(&dir.path().to_string_lossy(), &Default::default()).await?;
    warehouse.register(&context, "lake").await?;
    let joined = "SELECT u.name, s.spent FROM users u JOIN lake.shop.spending s ON u.id = s.user_id ORDER BY u.name";
    context.sql(joined).await?.show().await?;

    // time travel in our SQL, on the caller's session
    let before = "SELECT u.name, s.spent FROM users u JOIN lake.shop.spending VERSION AS OF 1 s ON u.id = s.user_id";
    warehouse.sql(&context, before).await?.sort(vec![col("name").sort(true, true)])?.show().await?;

    // one table fixed at one snapshot: a provider that never moves on
    let pinned = warehouse.table("shop", "spending").await?.pin(PinRequest::SnapshotId(1)).await?;
    println!("{}", pinned.pin().describe(&Default::default()));
    context
        .read_table(Arc::new(pinned))?
        .filter(col("spent").gt(lit(5)))?
        .sort(vec![col("user_id").sort(true, true)])?
        .show()
        .await?;
    Ok(())
}
