//! System tables and time: which follow a snapshot, and which are always of now and say so.

use super::*;

/// Two schemas, of which the second has a column more, and an aggregated column.
fn altered() -> (TempDir, TableBuilder) {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("k", "INT NOT NULL"), ("v", "INT")])
        .primary_key(&["k"])
        .option("bucket", "1")
        .option("merge-engine", "aggregation")
        .option("fields.v.aggregate-function", "sum")
        .option("fields.v.ignore-retract", "true");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"k": 1, "v": 1})]).unwrap();
    table.alter(&SchemaChange::Add("w", "STRING")).unwrap();
    table.append(&[json!({"k": 1, "v": 1, "w": "x"})]).unwrap();
    (dir, table)
}

#[tokio::test]
async fn tables_that_are_always_of_now_do_not_travel() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for system in Session::system_tables() {
        if system == "row_tracking" {
            // only of tables that track rows
            continue;
        }
        let now = [
            "snapshots",
            "schemas",
            "options",
            "tags",
            "branches",
            "consumers",
            "commits",
            "commit_files",
            "commit_rate",
            "retention",
            "unreferenced_files",
        ]
        .contains(&system);
        for sql in [
            format!("SELECT count(*) FROM t${system} VERSION AS OF 1"),
            format!("SELECT count(*) FROM t${system} TIMESTAMP AS OF '2026-04-16 01:00:00'"),
            format!("SELECT count(*) FROM t${system}@v1"),
            format!("SELECT count(*) FROM \"t${system}@v1\""),
            format!("SELECT count(*) FROM t${system} /*+ OPTIONS('scan.snapshot-id'='1') */"),
        ] {
            match (now, ask(&session, &sql).await) {
                (true, Err(error)) => assert_eq!(error.code(), "CannotTravel", "{sql}"),
                (false, outcome) => assert_eq!(outcome.unwrap().len(), 1, "{sql}"),
                (true, Ok(rows)) => panic!("{sql}: {rows:?}"),
            }
        }
        rows(&session, &format!("SELECT count(*) FROM t${system}")).await;
    }
}

#[tokio::test]
async fn under_a_pin_a_table_of_now_says_so() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let told = async |sql: &str| session.run_one(sql).await.unwrap().notices.join("; ");
    rows(&session, "PIN TABLE t AT (VERSION => 1)").await;
    for system in ["schemas", "options"] {
        let notices = told(&format!("SELECT count(*) FROM t${system}")).await;
        assert!(notices.contains(&format!("pay.t${system} is of now, not of the pinned snapshot 1")), "{notices}");
    }
    assert!(!told("SELECT count(*) FROM t$files").await.contains("of now"));
    rows(&session, "UNPIN ALL").await;
    assert!(!told("SELECT count(*) FROM t$options").await.contains("of now"));
}

#[tokio::test]
async fn aggregation_fields_are_those_of_the_snapshot_as_paimon_writes_them() {
    let (dir, _table) = altered();
    let session = session_of(&dir).await;
    let k = "k,INT NOT NULL,[],[],NULL";
    let v = "v,INT,[sum, true],[fields.v.aggregate-function, fields.v.ignore-retract],NULL";
    let w = "w,STRING,[],[],NULL";
    assert_eq!(rows(&session, "SELECT * FROM t$aggregation_fields").await, [k, v, w]);
    assert_eq!(rows(&session, "SELECT * FROM t$aggregation_fields VERSION AS OF 1").await, [k, v]);
    rows(&session, "PIN TABLE t AT (VERSION => 1)").await;
    assert_eq!(rows(&session, "SELECT * FROM t$aggregation_fields").await, [k, v]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_branch_is_of_the_time_its_folder_was_touched() {
    let (dir, table) = three_snapshots();
    let branch = table.root().join("branch/branch-b");
    std::fs::create_dir_all(branch.join("schema")).unwrap();
    std::fs::copy(table.root().join("schema/schema-0"), branch.join("schema/schema-0")).unwrap();
    let touched = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_776_304_800_123);
    std::fs::File::open(&branch).unwrap().set_modified(touched).unwrap();
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, "SELECT * FROM t$branches").await, ["b,2026-04-16T02:00:00.123"]);
}

#[tokio::test]
async fn selectors_in_names_of_system_tables_are_read() {
    let (dir, table) = three_snapshots();
    for folder in ["schema", "snapshot"] {
        let to = table.root().join("branch/branch-b").join(folder);
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(table.root().join(folder)).unwrap().flatten() {
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    let session = session_of(&dir).await;
    for (name, count) in [
        ("t$files@v1", "1"),
        ("t$files@v3", "3"),
        ("\"t$files@v2\"", "2"),
        ("pay.\"t$files@v2\"", "2"),
        ("t$FILES@V2", "2"),
        ("t$audit_log@v1", "2"),
        ("t$branch_b@v1", "2"),
        ("t$branch_b$files@v2", "2"),
        ("t$files@v2 f", "2"),
    ] {
        assert_eq!(rows(&session, &format!("SELECT count(*) FROM {name}")).await, [count], "{name}");
    }
    assert_eq!(rows(&session, "SELECT \"t$files@v1\".level FROM \"t$files@v1\"").await, ["0"]);
    assert_eq!(code(&session, "SELECT * FROM t$fils@v1").await, "TableNotFound");
    // in front ends that give names only
    let context = session.context();
    for (name, count) in [("t$files@v2", 2), ("t$branch_b$files@v1", 1)] {
        let name = datafusion::common::TableReference::full("paimon", "pay", name);
        assert_eq!(context.table(name).await.unwrap().count().await.unwrap(), count);
    }
}

#[tokio::test]
async fn partitions_are_shown_at_the_version_in_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("p", "INT"), ("v", "INT")]).partitioned_by(&["p"]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"p": 1, "v": 1})]).unwrap();
    table.append(&[json!({"p": 2, "v": 1})]).unwrap();
    let session = session_of(&dir).await;
    for (name, count) in [("t", 2), ("t@v1", 1), ("t VERSION AS OF 1", 1), ("\"t@v1\"", 1)] {
        assert_eq!(rows(&session, &format!("SHOW PARTITIONS {name}")).await.len(), count, "{name}");
    }
}

#[tokio::test]
async fn a_broken_tag_or_consumer_hides_no_other() {
    let (dir, table) = three_snapshots();
    for (name, id) in [("a", 1), ("b", 2), ("c", 3)] {
        table.tag(name, id).unwrap();
    }
    let root = dir.path().join("pay.db/t");
    std::fs::write(root.join("tag/tag-b"), "{\"version\": 4}").unwrap();
    std::fs::create_dir_all(root.join("consumer")).unwrap();
    std::fs::write(root.join("consumer/consumer-x"), "{\"nextSnapshot\": 2}").unwrap();
    std::fs::write(root.join("consumer/consumer-y"), "").unwrap();
    let session = session_of(&dir).await;
    for (sql, rows, what) in [
        ("SELECT tag_name, snapshot_id FROM t$tags", vec!["a,1", "b,NULL", "c,3"], "tag 'b' cannot be read"),
        ("SELECT * FROM t$consumers", vec!["x,2", "y,NULL"], "consumer 'y' cannot be read"),
    ] {
        assert_eq!(super::rows(&session, sql).await, rows, "{sql}");
        let notices = session.run_one(sql).await.unwrap().notices.join("; ");
        assert!(notices.contains(what) && notices.contains("pay.t"), "{sql}: {notices}");
    }
    // the marks of a pin stand in a column of their own
    super::rows(&session, "PIN TABLE t AT (VERSION => 3)").await;
    let marked = super::rows(&session, "SELECT tag_name, pinned FROM t$tags").await;
    assert_eq!(marked, ["a,false", "b,false", "c,true"]);
}

#[tokio::test]
async fn rows_that_add_up_to_no_number_are_damage_and_not_another_number() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("k", "INT NOT NULL"), ("v", "INT")]).option("bucket", "1").option("bucket-key", "k");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"k": 1, "v": 1})]).unwrap();
    for number in 0..2 {
        let mut entry = table.live_files().unwrap().remove(0);
        entry.file.row_count = i64::MAX - 1;
        // as large as such a file would be
        entry.file.file_size = 1 << 44;
        entry.file.file_name = format!("data-{number}.parquet");
        table.commit().entry(entry).publish().unwrap();
    }
    // nobody counts them in the snapshot, where another number would be noticed first
    let path = table.root().join("snapshot/snapshot-3");
    let mut snapshot = crate::spec::Snapshot::from_json(&std::fs::read(&path).unwrap()).unwrap();
    snapshot.total_record_count = None;
    std::fs::write(&path, snapshot.to_json()).unwrap();
    let session = session_of(&dir).await;
    for sql in [
        "SELECT record_count FROM t$partitions",
        "SELECT record_count FROM t$buckets",
        "SELECT count(*) FROM t",
        "SELECT * FROM paimon_row_accounting('t')",
        "EXPLAIN FILES SELECT * FROM t",
    ] {
        let error = ask(&session, sql).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "CorruptManifest"), "{sql}: {error}");
        assert!(error.message().contains("more than 9223372036854775807 rows"), "{sql}: {error}");
        let names = |name: &str, value: &str| error.context().iter().any(|(n, v)| *n == name && v == value);
        assert!(names("table", "pay.t") && names("snapshot", "3"), "{sql}: {error:?}");
    }
    // a number that there is
    assert_eq!(rows(&session, "SELECT record_count FROM t$buckets VERSION AS OF 2").await, [i64::MAX.to_string()]);
}

#[tokio::test]
async fn rows_that_cannot_be_numbered_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("k", "INT")]).option("row-tracking.enabled", "true");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"k": 1}), json!({"k": 2})]).unwrap();
    let mut entry = table.live_files().unwrap().remove(0);
    let session = session_of(&dir).await;
    for (first, name) in [(5, "data-5.parquet"), (i64::MAX, "data-max.parquet")] {
        let folder = table.root().join("bucket-0");
        std::fs::copy(folder.join(&entry.file.file_name), folder.join(name)).unwrap();
        let old = std::mem::replace(&mut entry.file.file_name, name.into());
        entry.file.first_row_id = Some(first);
        table.commit().remove(&old).entry(entry.clone()).publish().unwrap();
        let found = ask(&session, "SELECT _ROW_ID FROM t$row_tracking").await;
        if first == 5 {
            assert_eq!(found.unwrap(), ["5", "6"]);
        } else {
            let error = found.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.message().contains("cannot be numbered from 9223372036854775807 on"), "{error}");
        }
    }
}
