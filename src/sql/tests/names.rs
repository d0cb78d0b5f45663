//! Names, odd ones too, and what is said about them.

use async_trait::async_trait;

use super::*;
use crate::catalog::{Catalog, FilesystemCatalog};
use crate::snapshot::Table;
use crate::storage::{Location, Storage};

/// A catalog whose databases cannot be listed.
#[derive(Debug)]
struct Unlisted(FilesystemCatalog);

#[async_trait]
impl Catalog for Unlisted {
    fn location(&self) -> &Location {
        self.0.location()
    }

    fn storage(&self) -> &Arc<Storage> {
        self.0.storage()
    }

    async fn list_databases(&self) -> Result<Vec<String>> {
        self.0.list_databases().await
    }

    async fn list_tables(&self, _database: &str) -> Result<Vec<String>> {
        Err(Error::unavailable("the store does not answer").with_code("StorageTimeout"))
    }

    async fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        self.0.table(database, name).await
    }
}

#[tokio::test]
async fn a_table_that_cannot_be_looked_for_is_not_said_to_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("a", "INT")]).option("bucket", "-1");
    TableBuilder::create(dir.path(), "pay", "Orders", &spec).unwrap().append(&[json!({"a": 1})]).unwrap();
    let url = dir.path().to_str().unwrap();
    let catalog = FilesystemCatalog::open(url, &BTreeMap::new()).await.unwrap();
    let warehouse = Warehouse::over(url, Arc::new(Unlisted(catalog)));
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    assert_eq!(rows(&session, "SELECT a FROM \"Orders\"").await, ["1"]);
    // it is there, in other letters, and only a listing would tell
    for sql in ["SELECT a FROM orders", "DESCRIBE orders", "PIN TABLE orders"] {
        let error = ask(&session, sql).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, "StorageTimeout"), "{sql}: {error}");
    }
}

#[tokio::test]
async fn odd_names_travel_as_others_do() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("编号", "INT"), ("v x", "INT")]).option("bucket", "-1");
    for (database, name) in [
        ("支付", "订单"),
        ("my db", "a b"),
        ("my db", "Mixed"),
        ("my db", "it's"),
        ("my db", "mail@home"),
        ("my db", "mail"),
    ] {
        let mut table = TableBuilder::create(dir.path(), database, name, &spec).unwrap();
        table.append(&[json!({"编号": 1, "v x": 1})]).unwrap();
        table.append(&[json!({"编号": 2, "v x": 2})]).unwrap();
        table.tag("ZwölfUhr", 1).unwrap();
        if name == "mail" {
            table.append(&[json!({"编号": 3, "v x": 3})]).unwrap();
            table.tag("home", 3).unwrap();
        }
    }
    let session = session_of(&dir).await;
    for (from, count) in [
        ("支付.订单", "2"),
        ("支付.订单 VERSION AS OF 1", "1"),
        ("支付.订单@v1", "1"),
        ("`支付`.`订单` VERSION AS OF 'ZwölfUhr'", "1"),
        ("支付.订单 /*+ OPTIONS('scan.tag-name'='ZwölfUhr') */ AS 单", "1"),
        ("\"my db\".\"a b\" VERSION AS OF 1", "1"),
        ("\"my db\".\"a b@v1\"", "1"),
        ("\"my db\".\"it's\" AS x FOR VERSION AS OF 1", "1"),
        ("\"my db\".mixed@ZwölfUhr", "1"),
        ("\"my db\".MIXED@V1", "1"),
        // a table that is really called so goes before a selector in a name
        ("\"my db\".\"mail@home\"", "2"),
        ("\"my db\".\"mail@home\" VERSION AS OF 1", "1"),
        ("\"my db\".\"mail@home\" /*+ OPTIONS('scan.snapshot-id'='1') */", "1"),
        ("\"my db\".mail@home", "2"),
        ("\"my db\".mail VERSION AS OF 'home'", "3"),
    ] {
        assert_eq!(rows(&session, &format!("SELECT count(*) FROM {from}")).await, [count], "{from}");
    }
    let sql = "SELECT \"mail@home\".编号 FROM \"my db\".\"mail@home\" WHERE \"mail@home\".\"v x\" = 2";
    assert_eq!(rows(&session, sql).await, ["2"]);
    rows(&session, "USE 支付").await;
    rows(&session, "PIN TABLE 订单 AT (TAG => 'ZwölfUhr')").await;
    assert_eq!(rows(&session, "SELECT 编号 FROM 订单").await, ["1"]);
    assert_eq!(rows(&session, "SELECT count(*) FROM 订单$files").await, ["1"]);
}

#[tokio::test]
async fn an_option_for_a_table_is_for_one_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("a", "INT")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "Orders", &spec).unwrap();
    table.append(&[json!({"a": 1})]).unwrap();
    table.append(&[json!({"a": 2})]).unwrap();
    let session = session_of(&dir).await;
    assert_eq!(code(&session, "SET 'paimon.pay.ordres.scan.snapshot-id' = '1'").await, "TableNotFound");
    for name in ["paimon.pay.orders.scan.snapshot-id", "paimon.pay.Orders.scan.snapshot-id"] {
        rows(&session, &format!("SET '{name}' = '1'")).await;
        assert_eq!(rows(&session, "SELECT * FROM orders").await, ["1"], "{name}");
        assert_eq!(rows(&session, &format!("SHOW '{name}'")).await, [format!("{name},1")]);
        rows(&session, &format!("RESET '{name}'")).await;
        assert_eq!(rows(&session, "SELECT count(*) FROM orders").await, ["2"]);
    }
}

#[tokio::test]
async fn two_hints_of_one_text_are_still_two() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let sql = "SELECT (SELECT count(*) FROM t /*+ OPTIONS('x'='1, scan.snapshot-id=2') */) - \
               (SELECT count(*) FROM t /*+ OPTIONS('x'='1', 'scan.snapshot-id'='2') */)";
    assert_eq!(rows(&session, sql).await, ["-1"]);
}

#[tokio::test]
async fn what_cannot_travel_says_so() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "CREATE TEMPORARY TABLE mine AS SELECT * FROM t VERSION AS OF 1").await;
    rows(&session, "CREATE VIEW seen AS SELECT * FROM t").await;
    rows(&session, "CREATE TEMPORARY TABLE \"mine@v1\" AS SELECT 7 AS id").await;
    assert_eq!(rows(&session, "SELECT id FROM \"mine@v1\"").await, ["7"]);
    for sql in [
        "SELECT * FROM mine VERSION AS OF 1",
        "SELECT * FROM \"mine@tag:x\"",
        "SELECT * FROM seen AT (TAG => 'x')",
        "SELECT * FROM seen /*+ OPTIONS('scan.snapshot-id'='1') */",
        "SELECT * FROM sys.tables VERSION AS OF 1",
        "WITH c AS (SELECT * FROM t) SELECT * FROM c VERSION AS OF 1",
    ] {
        assert_eq!(code(&session, sql).await, "CannotTravel", "{sql}");
    }
}
