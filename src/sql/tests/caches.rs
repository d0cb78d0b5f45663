//! What readers of one warehouse share, and what is counted of its stores.

use super::*;
use crate::query::QueryLimits;
use crate::snapshot::PinRequest;
use crate::storage::Storage;

#[tokio::test]
async fn tables_that_are_pinned_share_the_caches_of_their_warehouse() {
    let (dir, _table) = three_snapshots();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    let mut asked = Vec::new();
    for name in ["first", "second"] {
        let pinned = warehouse.table("pay", "t").await.unwrap().pin(PinRequest::SnapshotId(2)).await.unwrap();
        assert!(Arc::ptr_eq(pinned.env(), warehouse.env()));
        context.register_table(name, Arc::new(pinned)).unwrap();
        let before = warehouse.requests();
        let counted = context.sql(&format!("SELECT id FROM {name}")).await.unwrap().collect().await.unwrap();
        assert_eq!(texts(&counted).len(), 3);
        asked.push((warehouse.requests() - before).gets);
    }
    let stats = warehouse.env().scan.cache.stats();
    assert!(stats.hits > 0 && stats.entries == 2, "{stats:?}");
    assert!(asked[1] < asked[0], "the second read asks for no manifest: {asked:?}");
}

#[tokio::test]
async fn a_warehouse_keeps_to_the_limits_it_is_given() {
    let (dir, _table) = three_snapshots();
    let open = async || Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let kept = async |warehouse: &Warehouse| {
        let session = Session::new(warehouse, SessionConfig::default()).await.unwrap();
        assert_eq!(rows(&session, "SELECT id FROM t").await.len(), 2);
        warehouse.env().scan.cache.stats()
    };
    let none = QueryLimits { manifest_bytes: 0, requests_at_once: 1, ..QueryLimits::default() };
    let limited = open().await.with_limits(&none);
    let stats = kept(&limited).await;
    assert_eq!((stats.entries, stats.bytes, limited.env().scan.concurrency), (0, 0, 1));
    assert_eq!(limited.url(), dir.path().to_str().unwrap());
    // told once: what nobody limits is what the limits say
    let plain = open().await;
    assert!(kept(&plain).await.entries > 0);
    assert_eq!(plain.env().scan.concurrency, QueryLimits::default().requests_at_once);
    assert_eq!(QueryLimits::default().manifest_bytes, crate::scan::MANIFEST_CACHE_BYTES);
}

#[tokio::test]
async fn requests_of_external_paths_are_counted() {
    const FOLDER: &str = "memory://requests-of-external-paths/files";
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL")]).option("bucket", "1").option("bucket-key", "id");
    let mut near = TableBuilder::create(dir.path(), "pay", "near", &spec).unwrap();
    near.append(&[json!({"id": 1}), json!({"id": 2})]).unwrap();
    let mut entry = near.live_files().unwrap().remove(0);
    let bytes = std::fs::read(near.root().join("bucket-0").join(&entry.file.file_name)).unwrap();
    let (there, folder) = Storage::open(FOLDER, &BTreeMap::new()).await.unwrap();
    let path = folder.join(&entry.file.file_name).unwrap();
    entry.file.external_path = Some(path.to_string());
    TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap().commit().entry(entry).publish().unwrap();
    there.object_store().put_opts(path.path(), bytes.clone().into(), Default::default()).await.unwrap();

    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    rows(&session, "SELECT count(*) FROM t").await;
    let before = (warehouse.requests(), warehouse.catalog().storage().counts());
    assert_eq!(rows(&session, "SELECT id FROM t").await, ["1", "2"]);
    let all = warehouse.requests() - before.0;
    let own = warehouse.catalog().storage().counts() - before.1;
    assert!(all.bytes_read > own.bytes_read && all.range_gets > own.range_gets, "{all} of which its own store {own}");
}
