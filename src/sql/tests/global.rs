//! Tables over the whole warehouse: `sys.…`.

use super::*;

#[tokio::test]
async fn sys_tables_tell_of_every_table() {
    let (dir, mut table) = three_snapshots();
    let spec = TableSpec::new(&[("dt", "DATE"), ("h", "STRING"), ("v", "INT")])
        .partitioned_by(&["dt", "h"])
        .option("bucket", "-1")
        .option("owner", "ann")
        .option("createdAt", "1776301200000");
    let mut parts = TableBuilder::create(dir.path(), "shop", "visits", &spec).unwrap();
    parts
        .append(&[json!({"dt": "2024-01-02", "h": "a/b", "v": 1}), json!({"dt": "2024-01-02", "h": "a/b", "v": 2})])
        .unwrap();
    parts.append(&[json!({"dt": null, "h": "c", "v": 3})]).unwrap();
    let session = session_of(&dir).await;
    let names = ["all_table_options", "partitions", "tables"];
    let shown = names.map(|name| format!("sys,{name},table"));
    assert_eq!(rows(&session, "SHOW TABLES FROM sys").await, shown);
    assert_eq!(
        rows(&session, "SELECT * FROM sys.tables").await,
        [
            "pay,t,table,false,true,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL",
            "shop,visits,table,true,false,ann,1776301200000,NULL,NULL,NULL,NULL,NULL,NULL,NULL",
        ]
    );
    // names of partitions as in their folders, without escapes: a date is its day number in old layouts
    let partitions =
        "SELECT database_name, table_name, partition_name, record_count, file_count, done FROM sys.partitions";
    assert_eq!(
        rows(&session, partitions).await,
        ["shop,visits,dt=19724/h=a/b,2,1,false", "shop,visits,dt=__DEFAULT_PARTITION__/h=c,1,1,false"]
    );
    let times = "SELECT count(*) FROM sys.partitions p JOIN shop.visits$partitions q ON true \
                 WHERE p.last_file_creation_time = CAST(CAST(q.last_update_time AS TIMESTAMP(3)) AS BIGINT)";
    assert_ne!(rows(&session, times).await, ["0"]);
    // each table at the snapshot that the statement reads it at
    rows(&session, "PIN TABLE shop.visits AT (VERSION => 1)").await;
    let pinned = session.run_one("SELECT sum(record_count) - (SELECT count(*) FROM shop.visits) FROM sys.partitions");
    let (found, pins) = all(pinned.await.unwrap()).await;
    assert_eq!((found, pins.len(), pins[0].snapshot_id), (vec![vec!["0".to_string()]], 1, Some(1)));
    let path = rows(&session, "SELECT value FROM sys.all_table_options WHERE key = 'path' AND table_name = 't'").await;
    assert!(path[0].ends_with("pay.db/t"), "{path:?}");
    table.append(&[json!({"id": 1, "v": 1})]).unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM SYS.TABLES").await, ["2"]);
    assert_eq!(code(&session, "SELECT * FROM sys.tabels").await, "TableNotFound");
}

#[tokio::test]
async fn catalog_options_are_shown_only_when_that_was_said_and_never_secrets() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let error = ask(&session, "SELECT * FROM sys.catalog_options").await.unwrap_err();
    assert_eq!(error.code(), "TableNotFound");
    assert!(error.to_string().contains("catalog-options-table.enabled"), "{error}");
    let options = [("catalog-options-table.enabled", "true"), ("s3.secret-key", "hush"), ("s3.region", "eu")];
    let options = options.map(|(key, value)| (key.to_string(), value.to_string())).into();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &options).await.unwrap();
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    assert_eq!(
        rows(&session, "SELECT * FROM sys.catalog_options").await,
        ["catalog-options-table.enabled,true", "s3.region,eu", "s3.secret-key,***"]
    );
    assert!(rows(&session, "SHOW TABLES IN sys").await.contains(&"sys,catalog_options,table".to_string()));
}

/// A warehouse with a table that can be read, one whose option cannot be used, one without a schema file.
fn with_broken_tables() -> TempDir {
    let (dir, _table) = three_snapshots();
    let spec = TableSpec::new(&[("id", "INT"), ("p", "STRING")]).partitioned_by(&["p"]).option("bucket", "-1");
    let mut bad = TableBuilder::create(dir.path(), "pay", "bad", &spec).unwrap();
    bad.append(&[json!({"id": 1, "p": "x"})]).unwrap();
    let schema = bad.root().join("schema/schema-0");
    let text = std::fs::read_to_string(&schema).unwrap();
    assert!(text.contains("\"-1\""), "{text}");
    std::fs::write(&schema, text.replace("\"-1\"", "\"abc\"")).unwrap();
    std::fs::create_dir_all(dir.path().join("pay.db/hollow/schema")).unwrap();
    dir
}

#[tokio::test]
async fn a_table_that_cannot_be_read_hides_no_other_from_the_lists() {
    let dir = with_broken_tables();
    let session = session_of(&dir).await;
    for (sql, found, broken) in [
        ("SELECT table_name FROM sys.tables", vec!["bad", "t"], vec!["pay.hollow"]),
        ("SELECT DISTINCT table_name FROM sys.all_table_options", vec!["bad", "t"], vec!["pay.hollow"]),
        ("SELECT table_name FROM sys.partitions", vec![], vec!["pay.bad", "pay.hollow"]),
        (
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'pay'",
            vec!["id", "v"],
            vec!["pay.bad", "pay.hollow"],
        ),
        (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'pay'",
            vec!["t"],
            vec!["pay.bad", "pay.hollow"],
        ),
    ] {
        let result = session.run_one(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        for name in broken {
            let told = result.notices.iter().filter(|notice| notice.contains("left out") && notice.contains(name));
            assert_eq!(told.count(), 1, "{sql}, {name}: {:?}", result.notices);
        }
        assert!(result.pins.is_empty(), "{sql}: {:?}", result.pins);
        assert_eq!(rows(&session, sql).await, found, "{sql}");
    }
    assert_eq!(code(&session, "SELECT * FROM bad").await, "InvalidOption", "asked for by name it is still an error");
}

#[tokio::test]
async fn the_columns_of_a_table_are_shown_under_its_own_pin_whatever_the_others_are() {
    let dir = with_broken_tables();
    let session = session_of(&dir).await;
    let result = session.run_one("SHOW COLUMNS FROM t").await.unwrap();
    assert!(!result.notices.iter().any(|notice| notice.contains("left out")), "{:?}", result.notices);
    let (found, pins) = all(result).await;
    let names: Vec<&str> = found.iter().map(|row| row[3].as_str()).collect();
    assert_eq!(names, ["id", "v"], "{found:?}");
    let pinned: Vec<&str> = pins.iter().map(|pin| pin.table.as_str()).collect();
    assert_eq!(pinned, ["pay.t"]);
    assert_eq!(code(&session, "SHOW COLUMNS FROM bad").await, "InvalidOption");
}
