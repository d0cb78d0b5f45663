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

#[tokio::test]
async fn live_rows_are_remembered_between_statements() {
    let (dir, mut table) = three_snapshots();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    let kept = "SELECT entries, hits > 0, misses, evictions FROM paimon_cache() WHERE cache = 'selections'";
    assert_eq!(rows(&session, kept).await, ["0,false,0,0"]);
    let count = |plan: &[String], name: &str| -> u64 {
        let plan = plan.join("\n");
        let (_, value) = plan.split_once(&format!(" {name}=")).unwrap_or_else(|| panic!("no {name}: {plan}"));
        value.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    let names = ["sections_selected", "sections_recalled", "key_files_read", "rows_superseded", "keys_deleted"];
    let mut counted = Vec::new();
    for _ in 0..2 {
        assert_eq!(rows(&session, "SELECT id, v FROM t ORDER BY id").await, ["2,21", "3,30"]);
        let plan = rows(&session, "EXPLAIN ANALYZE SELECT sum(v) FROM t").await;
        counted.push(names.map(|name| count(&plan, name)));
    }
    assert_eq!(counted, [[0, 1, 0, 2, 1]; 2]);
    assert_eq!(rows(&session, kept).await, ["1,true,1,0"]);
    // an older snapshot has other files, and shows what it did
    assert_eq!(rows(&session, "SELECT id, v FROM t VERSION AS OF 2 ORDER BY id").await, ["1,10", "2,21", "3,30"]);
    assert_eq!(rows(&session, kept).await, ["2,true,2,0"]);
    // what is remembered answers a count without a file, and does not pass for metadata
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["2"]);
    let result = session.run_one("SELECT count(*) FROM t").await.unwrap();
    let notice = "answered from metadata and from the live rows of 3 data files, which earlier statements found";
    assert!(result.notices.iter().any(|told| told.starts_with(notice)), "{:?}", result.notices);
    let read = "EXPLAIN FILES SELECT count(*) FROM t";
    let files = rows(&session, read).await;
    assert!(files.len() == 3 && files.iter().all(|file| file.ends_with(",remembered")), "{files:?}");
    let files = rows(&session, "EXPLAIN FILES SELECT sum(v) FROM t").await;
    assert!(files.iter().all(|file| file.ends_with(",select")), "{files:?}");
    let bucket = table.root().join("bucket-0");
    let aside = dir.path().join("aside");
    std::fs::rename(&bucket, &aside).unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["2"]);
    rows(&session, "SET lakepin.selection_cache = false").await;
    assert_eq!(code(&session, "SELECT count(*) FROM t").await, "FileLost");
    std::fs::rename(&aside, &bucket).unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["2"]);
    assert_eq!(rows(&session, kept).await, ["2,true,2,0"]);
    rows(&session, "SET lakepin.selection_cache = true").await;
    // a new commit is a new fact
    table.append(&[json!({"id": 3, "v": 31}), json!({"id": 4, "v": 40})]).unwrap();
    assert_eq!(rows(&session, "SELECT id, v FROM t ORDER BY id").await, ["2,21", "3,31", "4,40"]);
    assert_eq!(rows(&session, "SELECT count(*), sum(v) FROM t VERSION AS OF 3").await, ["2,51"]);
    // a filter on the key reads fewer files, and remembers those by themselves
    for _ in 0..2 {
        assert_eq!(rows(&session, "SELECT v FROM t WHERE id = 4").await, ["40"]);
    }
    assert_eq!(rows(&session, "SELECT id, v FROM t ORDER BY id").await, ["2,21", "3,31", "4,40"]);
    // no room: nothing is kept, and nothing is wrong
    let none = QueryLimits { selection_bytes: 0, ..QueryLimits::default() };
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap().with_limits(&none);
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(rows(&session, "SELECT id, v FROM t ORDER BY id").await, ["2,21", "3,31", "4,40"]);
    }
    assert_eq!(
        rows(&session, "SELECT entries, bytes, limit_bytes FROM paimon_cache() WHERE cache = 'selections'").await,
        ["0,0,0"]
    );
    assert_eq!(code(&session, "SELECT * FROM paimon_cache('t')").await, "BadArgument");
}
