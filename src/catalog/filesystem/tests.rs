use std::fs;
use std::path::Path;

use super::*;
use crate::snapshot::{Pin, PinRequest};
use crate::testing::golden;

const SCHEMA: &str = r#"{"version":3,"id":0,"fields":[{"id":0,"name":"a","type":"INT"}],"highestFieldId":0,
    "partitionKeys":[],"primaryKeys":[],"options":{},"timeMillis":1}"#;

fn make_table(warehouse: &Path, database: &str, table: &str) {
    let folder = warehouse.join(format!("{database}.db")).join(table).join("schema");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("schema-0"), SCHEMA).unwrap();
}

async fn open(path: &Path) -> Result<FilesystemCatalog> {
    FilesystemCatalog::open(path.to_str().unwrap(), &BTreeMap::new()).await
}

#[tokio::test]
async fn golden_warehouse_lists_and_opens() {
    let catalog = open(&golden::java_warehouse().unwrap()).await.unwrap();
    assert_eq!(catalog.list_databases().await.unwrap(), ["golden"]);
    let tables = catalog.list_tables("golden").await.unwrap();
    assert!(tables.len() > 70 && tables.iter().any(|table| table == "no_snapshot"), "{tables:?}");
    let table = catalog.table("golden", "branch_schema$branch_dev").await.unwrap();
    assert_eq!(table.name(), "golden.branch_schema$branch_dev");
    assert_eq!(table.latest_schema().await.unwrap().id.0, 1);
    let again = catalog.table("golden", "branch_schema$branch_dev").await.unwrap();
    assert!(Arc::ptr_eq(&table, &again), "what was read serves the next statement");
    let main = catalog.table("golden", "branch_schema$branch_main").await.unwrap();
    assert_eq!(main.name(), "golden.branch_schema");
}

#[tokio::test]
async fn unknown_names_offer_the_nearest() {
    let catalog = open(&golden::java_warehouse().unwrap()).await.unwrap();
    for (database, table, code, word) in [
        ("goldne", "history", "DatabaseNotFound", "did you mean 'golden'?"),
        ("golden", "histroy", "TableNotFound", "did you mean 'history'?"),
        ("golden", "history$branch_b2", "BranchNotFound", "'b1'"),
        ("golden", "a/b", "TableNotFound", "cannot contain '/'"),
        ("golden", "../golden.db/history", "TableNotFound", "cannot contain '/'"),
        ("golden", "..", "TableNotFound", "known tables"),
        ("golden", "", "TableNotFound", ""),
        ("", "history", "DatabaseNotFound", "golden"),
        ("golden", "history$branch_a/b", "BranchNotFound", "b1"),
    ] {
        let error = catalog.table(database, table).await.unwrap_err();
        assert_eq!(error.code(), code, "{database}.{table}: {error}");
        assert!(error.to_string().contains(word), "{database}.{table}: {error}");
    }
}

#[tokio::test]
async fn awkward_names_of_databases_and_tables_open() {
    let dir = tempfile::tempdir().unwrap();
    let warehouse = dir.path().join("ware house 50%#1");
    let names = ["plain", "with space", "50%", "a%2Fb", "订单", "#1", "x?y", "a.db"];
    for name in names {
        make_table(&warehouse, name, name);
    }
    let catalog = open(&warehouse).await.unwrap();
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    assert_eq!(catalog.list_databases().await.unwrap(), sorted);
    for name in names {
        assert_eq!(catalog.list_tables(name).await.unwrap(), [name]);
        let table = catalog.table(name, name).await.unwrap();
        let pin = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.unwrap();
        assert_eq!((pin.schema.fields.len(), pin.snapshot.is_none()), (1, true));
    }
}

#[tokio::test]
async fn escaped_file_url_opens_what_it_names() {
    let dir = tempfile::tempdir().unwrap();
    let warehouse = dir.path().join("a b");
    make_table(&warehouse, "d", "t");
    for url in [format!("file://{}/a b", dir.path().display()), format!("file://{}/a%20b", dir.path().display())] {
        let catalog = FilesystemCatalog::open(&url, &BTreeMap::new()).await.unwrap();
        assert_eq!(catalog.list_databases().await.unwrap(), ["d"], "{url}");
    }
}

#[tokio::test]
async fn wrong_places_say_where_to_go() {
    let dir = tempfile::tempdir().unwrap();
    make_table(&dir.path().join("warehouse"), "d", "t");
    let missing = open(&dir.path().join("warehuose")).await.unwrap_err();
    assert_eq!(missing.code(), "WarehouseNotFound");
    assert!(missing.to_string().contains("did you mean 'warehouse'?"), "{missing}");
    let nowhere = open(&dir.path().join("x/y/z")).await.unwrap_err();
    assert!(nowhere.to_string().contains("is not there either"), "{nowhere}");

    let top = dir.path().join("warehouse").display().to_string();
    for inside in ["warehouse/d.db", "warehouse/d.db/t"] {
        let error = open(&dir.path().join(inside)).await.unwrap_err();
        assert_eq!(error.code(), "NotAWarehouse");
        assert!(error.to_string().ends_with(&top), "{error}");
    }
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(open(&empty).await.unwrap().list_databases().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn folders_without_schema_are_no_tables_and_a_database_may_be_empty() {
    let dir = tempfile::tempdir().unwrap();
    make_table(dir.path(), "d", "t");
    fs::create_dir_all(dir.path().join("d.db/_temporary/x")).unwrap();
    fs::create_dir_all(dir.path().join("e.db")).unwrap();
    let catalog = open(dir.path()).await.unwrap();
    assert_eq!(catalog.list_tables("d").await.unwrap(), ["t"]);
    assert_eq!(catalog.list_tables("e").await.unwrap(), Vec::<String>::new());
    assert_eq!(catalog.list_tables("f").await.unwrap_err().code(), "DatabaseNotFound");
}

#[tokio::test]
async fn dropped_table_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    make_table(dir.path(), "d", "t");
    let catalog = open(dir.path()).await.unwrap();
    let table = catalog.table("d", "t").await.unwrap();
    fs::remove_dir_all(dir.path().join("d.db/t")).unwrap();
    let error = Pin::resolve(&table, PinRequest::Latest, &BTreeMap::new()).await.unwrap_err();
    assert_eq!(error.code(), "TableNotFound");
}

#[tokio::test]
async fn a_warehouse_missing_from_the_top_of_a_store_names_its_neighbours() {
    let store = Arc::new(object_store::memory::InMemory::new()) as Arc<dyn object_store::ObjectStore>;
    let storage = Storage::from_object_store(Arc::clone(&store), "memory://bucket").unwrap();
    let file = object_store::path::Path::from("warehouse/d.db/t/schema/schema-0");
    object_store::ObjectStoreExt::put(store.as_ref(), &file, SCHEMA.into()).await.unwrap();
    for (name, hint) in [("warehuose", "did you mean 'warehouse'?"), ("xyz", "known folders: 'warehouse'")] {
        let missing = storage.root().join(name).unwrap();
        let error = FilesystemCatalog::open_in(Arc::clone(&storage), missing).await.unwrap_err();
        assert_eq!(error.code(), "WarehouseNotFound");
        assert!(error.hint().is_some_and(|told| told.contains(hint)), "{error:?}");
    }
}
