//! Nothing of a warehouse is written, however a statement and its target are spelt, and the refusal says so.

use std::path::{Path, PathBuf};

use datafusion::execution::object_store::ObjectStoreUrl;

use super::*;

/// Every file below a folder, with its bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// Whether each of these is refused, by a session and by [`Warehouse::sql`], and none writes.
async fn refused(url: &str, dir: &Path, statements: &[String]) {
    let before = contents(dir);
    let warehouse = Warehouse::open(url, &BTreeMap::new()).await.unwrap();
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    let context = SessionContext::new();
    warehouse.register(&context, "paimon").await.unwrap();
    for sql in statements {
        assert_eq!(code(&session, sql).await, "ReadOnly", "{url}: {sql}");
        let ours = match warehouse.sql(&context, &sql.replace(" t ", " paimon.pay.t ")).await {
            Ok(frame) => frame.collect().await.map(drop).map_err(Error::from_datafusion),
            Err(error) => Err(error),
        };
        assert_eq!(ours.map_err(|e| e.code()), Err("ReadOnly"), "{url}: Warehouse::sql {sql}");
    }
    assert_eq!(contents(dir), before, "{url}: something was written");
}

#[tokio::test]
async fn no_spelling_of_a_copy_writes_into_the_warehouse() {
    let (dir, _table) = three_snapshots();
    let own = dir.path().to_str().unwrap();
    let name = dir.path().file_name().unwrap().to_str().unwrap();
    let up = "../".repeat(std::env::current_dir().unwrap().components().count());
    let targets = [
        format!("{own}/x.csv"),
        format!("{own}/pay.db/t/x/"),
        format!("{own}/../{name}/x.csv"),
        format!("{up}{}/x.csv", &own[1..]),
        format!("file:{own}/x.csv"),
        format!("file://{own}/x.csv"),
        format!("FILE://localhost{own}/x.csv"),
        format!("file://{own}/%70ay.db/x.csv"),
        format!("file://{own}/y/%2e%2e/x.csv"),
    ];
    let statements: Vec<String> = targets
        .iter()
        .flat_map(|target| {
            ["", "EXPLAIN ", "EXPLAIN ANALYZE ", "EXPLAIN ANALYZE VERBOSE "]
                .map(|explain| format!("{explain}COPY (SELECT id FROM t ) TO '{target}' STORED AS CSV"))
        })
        .collect();
    for url in [own.to_string(), format!("file:{own}"), format!("file://{own}/"), format!("{up}{}", &own[1..])] {
        refused(&url, dir.path(), &statements).await;
    }
}

#[tokio::test]
async fn what_was_prepared_does_not_write_into_the_warehouse_either() {
    let (dir, _table) = three_snapshots();
    let before = contents(dir.path());
    let session = session_of(&dir).await;
    let target = dir.path().join("x.csv");
    rows(&session, &format!("PREPARE p AS COPY (SELECT * FROM t WHERE id > $1) TO '{}'", target.display())).await;
    for sql in ["EXECUTE p(1)", "EXPLAIN ANALYZE EXECUTE p(1)"] {
        assert_eq!(code(&session, sql).await, "ReadOnly", "{sql}");
    }
    assert_eq!(contents(dir.path()), before);
}

#[tokio::test]
async fn external_tables_read_in_the_warehouse_and_write_outside_of_it_only() {
    let (dir, _table) = three_snapshots();
    let out = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("csv")).unwrap();
    std::fs::write(dir.path().join("csv/one.csv"), "a\n1\n").unwrap();
    let before = contents(dir.path());
    let session = session_of(&dir).await;
    for (name, folder) in [("inside", dir.path().join("csv")), ("outside", out.path().to_path_buf())] {
        let sql = format!("CREATE EXTERNAL TABLE {name} (a INT) STORED AS CSV LOCATION 'file:{}/'", folder.display());
        rows(&session, &sql).await;
    }
    assert_eq!(rows(&session, "SELECT a FROM inside").await, ["1"]);
    for sql in [
        "INSERT INTO inside VALUES (2)",
        "INSERT INTO inside SELECT a FROM outside",
        "INSERT OVERWRITE inside VALUES (2)",
        "EXPLAIN ANALYZE INSERT INTO inside VALUES (2)",
    ] {
        let error = ask(&session, sql).await.unwrap_err();
        assert_eq!(error.code(), "ReadOnly", "{sql}: {error}");
        assert!(error.context().iter().any(|(name, value)| *name == "target" && value.contains("csv")), "{error:?}");
    }
    rows(&session, "INSERT INTO outside VALUES (3)").await;
    assert_eq!(rows(&session, "SELECT a FROM outside").await, ["3"]);
    // where a stream writes, nobody tells
    let pipe = dir.path().join("csv/one.csv");
    let stream = format!("CREATE UNBOUNDED EXTERNAL TABLE pipe (a INT) STORED AS CSV LOCATION '{}'", pipe.display());
    rows(&session, &stream).await;
    assert_eq!(code(&session, "INSERT INTO pipe VALUES (4)").await, "ReadOnly");
    assert_eq!(contents(dir.path()), before);
}

#[tokio::test]
async fn rows_are_not_spilled_into_the_warehouse() {
    let (dir, _table) = three_snapshots();
    let out = tempfile::tempdir().unwrap();
    let session = session_of(&dir).await;
    let set = |folder: &Path| format!("SET datafusion.runtime.temp_directory = '{}'", folder.display());
    assert_eq!(code(&session, &set(&dir.path().join("spill"))).await, "ReadOnly");
    assert_eq!(rows(&session, &set(out.path())).await, Vec::<String>::new());
}

/// A store that is known to a session under a name can be written by whoever guesses the name.
#[tokio::test]
async fn registering_gives_a_session_no_store() {
    let (dir, _table) = three_snapshots();
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let context = SessionContext::new();
    context.runtime_env().deregister_object_store(ObjectStoreUrl::local_filesystem().as_ref()).unwrap();
    warehouse.register(&context, "lake").await.unwrap();
    let read = context.sql("SELECT count(*) FROM lake.pay.t").await.unwrap().collect().await.unwrap();
    assert_eq!(texts(&read), [["2"]]);
    let read = context.sql("SELECT v FROM lake.pay.t ORDER BY v").await.unwrap().collect().await.unwrap();
    assert_eq!(texts(&read), [["21"], ["30"]]);
    let before = contents(dir.path());
    // stores have been numbered in the order in which they were opened
    let guessed = (0..1000).map(|number| format!("lakepin://store-{number}"));
    for url in guessed.chain(["file://".to_string()]) {
        let url = ObjectStoreUrl::parse(&url).unwrap();
        assert!(context.runtime_env().object_store(&url).is_err(), "{url}");
    }
    for target in ["lakepin://files-are-opened-elsewhere", "file://"] {
        let sql = format!("COPY (SELECT 1 AS a) TO '{target}{}/x.csv' STORED AS CSV", dir.path().display());
        let copied = match context.sql(&sql).await {
            Ok(frame) => frame.collect().await.map(drop),
            Err(error) => Err(error),
        };
        assert!(copied.is_err(), "{sql}");
    }
    assert_eq!(contents(dir.path()), before);
}
