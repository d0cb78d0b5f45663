//! Refusals tell their place in the statement, a stable code and a way out.

use super::*;

/// Code, line and column of the error of a statement, which has a hint.
async fn told(session: &Session, sql: &str) -> (Error, String) {
    let error = session.run_one(sql).await.map(|_| ()).expect_err(sql);
    let fact = |name: &str| {
        let found = error.context().iter().find(|(known, _)| *known == name);
        found.map_or("?".to_string(), |(_, value)| value.clone())
    };
    let place = format!("{} {}:{}", error.code(), fact("line"), fact("column"));
    assert!(error.hint().is_some(), "{sql}: {error:?}");
    (error, place)
}

#[tokio::test]
async fn refused_statements_say_where_and_what_to_do() {
    let (dir, _table) = three_snapshots();
    let inside = dir.path().join("x.csv").display().to_string();
    let session = session_of(&dir).await;
    for (sql, expected) in [
        (format!("COPY t TO '{inside}'"), "ReadOnly 1:11"),
        (format!("EXPLAIN COPY (SELECT id\nFROM t)\n TO '{inside}' STORED AS CSV"), "ReadOnly 3:5"),
        (format!("SET datafusion.runtime.temp_directory = '{inside}'"), "ReadOnly 1:41"),
        ("COPY t TO 'x.xyz'".into(), "UnknownFormat 1:11"),
        ("COPY t TO 'x'".into(), "UnknownFormat 1:11"),
        ("COPY t TO 'x.csv'\nSTORED AS WHAT".into(), "UnknownFormat 2:11"),
        ("COPY t TO 's3://nix/x.csv'".into(), "UnknownTarget 1:11"),
        ("COPY t TO 'x.csv' OPTIONS ('format.foo' 'x')".into(), "BadOption 1:28"),
        ("COPY t TO 'x.csv' PARTITIONED BY (nope)".into(), "ColumnNotFound 1:35"),
        ("INSERT INTO t VALUES (1, 2)".into(), "ReadOnly 1:1"),
        ("DELETE FROM t".into(), "ReadOnly 1:1"),
        ("DROP TABLE t".into(), "ReadOnly 1:1"),
        ("DROP VIEW nope".into(), "TableNotFound 1:11"),
        ("BEGIN".into(), "NotYet 1:1"),
        ("CREATE FUNCTION f() RETURNS int RETURN 1".into(), "NotYet 1:1"),
        ("WAIT FOR t".into(), "Syntax 1:1"),
        ("SHOW PARTITIONS t".into(), "NotPartitioned 1:1"),
        ("CREATE VIEW t AS SELECT 1".into(), "TableExists 1:13"),
        ("CREATE VIEW nodb.v AS SELECT 1".into(), "DatabaseNotFound 1:13"),
        ("SET TIME ZONE 'nope'".into(), "UnknownTimeZone 1:15"),
        ("SET 'paimon.scan.nope' = '3'".into(), "UnknownOption 1:5"),
        ("SELECT id,\n array_has([1e0], 1.5) FROM t".into(), "Plan 2:2"),
        ("SET datafusion.nope = 3".into(), "BadOption 1:16"),
        ("SELECT id FROM t WHERE\nsubstr(1) = '1'".into(), "Plan 2:8"),
    ] {
        let (error, place) = told(&session, &sql).await;
        assert_eq!(place, expected, "{sql}: {error:?}");
        assert!(!error.message().contains("Span(") && !error.message().contains("Config value"), "{error:?}");
    }
    for path in ["x.csv", "x.xyz", "x"] {
        assert!(!std::path::Path::new(path).exists(), "{path} was written");
    }
}

#[tokio::test]
async fn a_name_given_twice_is_told_by_name_and_place() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (sql, expected, name) in [
        ("CREATE VIEW w AS\nSELECT id, id FROM t", "DuplicateName 2:12", "'id'"),
        ("CREATE VIEW w(x, x) AS SELECT id, v FROM t", "DuplicateName 1:18", "'x'"),
        ("CREATE TEMPORARY TABLE w AS SELECT a.id, b.id FROM t a, t b", "DuplicateName 1:44", "'id'"),
        ("CREATE VIEW w AS SELECT a.id, b.id FROM t a, t b", "DuplicateName 1:33", "'id'"),
        ("SELECT * FROM t x, t x", "DuplicateName 1:22", "'x'"),
    ] {
        let (error, place) = told(&session, sql).await;
        assert_eq!(place, expected, "{sql}: {error:?}");
        assert!(error.message().contains(name) && !error.message().contains("unique expression"), "{sql}: {error:?}");
    }
}

#[tokio::test]
async fn a_copy_that_can_never_be_written_ends() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let copy = ask(&session, "COPY t TO '/proc/x.csv'");
    let error = tokio::time::timeout(std::time::Duration::from_secs(60), copy).await.unwrap().unwrap_err();
    assert_eq!(error.code(), "Output", "{error:?}");
}

#[tokio::test]
async fn a_condition_of_counts_is_told_like_that_of_a_query() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (table, condition, expected) in [
        ("t", "  nope > 1", "ColumnNotFound 1:3"),
        ("t", "id > 1 AND substr(1) = '1'", "Plan 1:19"),
        ("t", "   id + 1", "BadCondition 1:4"),
        ("t", " count(*) > 1", "BadCondition 1:2"),
        ("t", "id > 1 id", "Syntax 1:8"),
        ("    nope", "id > 1", "TableNotFound 1:5"),
    ] {
        let error = session.counts(table, Some(condition)).await.map(|_| ()).unwrap_err();
        let fact = |name: &str| error.context().iter().find(|(known, _)| *known == name).map(|(_, v)| v.clone());
        let place = format!("{} {}:{}", error.code(), fact("line").unwrap(), fact("column").unwrap());
        assert_eq!(place, expected, "{condition}: {error:?}");
        assert!(!error.message().contains("Span("), "{error:?}");
    }
}

#[tokio::test]
async fn what_a_table_holds_and_cannot_be_read_names_file_snapshot_and_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"id": 1, "v": 10})]).unwrap();
    table.alter(&SchemaChange::Set("merge-engine", "deduplicate")).unwrap();
    let schema = dir.path().join("pay.db/t/schema/schema-1");
    let text = std::fs::read_to_string(&schema).unwrap();
    std::fs::write(&schema, text.replace("\"deduplicate\"", "\"magic\"")).unwrap();
    let session = session_of(&dir).await;
    let error = ask(&session, "SELECT * FROM t").await.unwrap_err();
    let fact =
        |error: &Error, name: &str| error.context().iter().find(|(known, _)| *known == name).map(|(_, v)| v.clone());
    assert_eq!((error.code(), fact(&error, "table").as_deref()), ("UnsupportedOption", Some("pay.t")), "{error:?}");
    assert!(fact(&error, "file").unwrap().ends_with("/schema/schema-1"), "{error:?}");
    // what the caller asked for is in no file
    let error = ask(&session, "SELECT * FROM t /*+ OPTIONS('merge-engine'='alchemy') */").await.unwrap_err();
    assert_eq!(fact(&error, "file"), None, "{error:?}");
}

/// What is told with the rows of a statement.
async fn notices(session: &Session, sql: &str) -> Vec<String> {
    let result = session.run_one(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let told = result.notices.iter().map(ToString::to_string).collect();
    all(result).await;
    told
}

#[tokio::test]
async fn buckets_that_an_option_leaves_unread_are_told_like_hidden_rows() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "3");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let row = |id: i64| json!({"id": id, "v": 0});
    for bucket in 0..3 {
        let file = FileSpec::rows(&[row(i64::from(bucket)), row(10 + i64::from(bucket))]).bucket(bucket);
        table.commit().file(file).publish().unwrap();
    }
    let session = session_of(&dir).await;
    let told = "pay.t: option 'scan.bucket' = '1' reads that bucket alone: 2 files of 2 other buckets, 4 rows not read";
    for sql in ["SELECT count(*) FROM t", "SELECT * FROM t"] {
        assert!(!notices(&session, sql).await.iter().any(|told| told.contains("scan.bucket")), "{sql}");
        let hinted = notices(&session, &format!("{sql} /*+ OPTIONS('scan.bucket'='1') */")).await;
        assert!(hinted.iter().any(|notice| notice == told), "{sql}: {hinted:?}");
    }
    rows(&session, "SET 'paimon.pay.t.scan.bucket' = '1'").await;
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["2"]);
    assert!(notices(&session, "SELECT count(*) FROM t").await.contains(&told.to_string()));
    rows(&session, "RESET paimon").await;
    table.alter(&SchemaChange::Set("scan.bucket", "1")).unwrap();
    assert!(notices(&session, "SELECT count(*) FROM t").await.contains(&told.to_string()));
}

#[tokio::test]
async fn options_that_refuse_a_table_offer_no_older_state() {
    let (dir, mut table) = three_snapshots();
    table.alter(&SchemaChange::Set("query-auth.enabled", "true")).unwrap();
    let session = session_of(&dir).await;
    for sql in ["SELECT * FROM t", "SELECT * FROM t VERSION AS OF 1"] {
        let error = ask(&session, sql).await.unwrap_err();
        assert_eq!(error.code(), "UnsupportedOption", "{sql}: {error:?}");
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains("for every snapshot and tag") && !hint.contains("without it"), "{sql}: {hint}");
    }
}

#[tokio::test]
async fn a_branch_without_its_schema_folder_is_damage_not_a_typing_error() {
    let (dir, table) = three_snapshots();
    std::fs::create_dir_all(table.root().join("branch/branch-b1/snapshot")).unwrap();
    let session = session_of(&dir).await;
    let error = ask(&session, "SELECT * FROM t$branch_b1").await.unwrap_err();
    assert_eq!((error.code(), error.kind()), ("BranchWithoutSchema", ErrorKind::Corrupt), "{error:?}");
    let file = error.context().iter().find(|(name, _)| *name == "file").map(|(_, file)| file.as_str());
    assert!(file.is_some_and(|file| file.ends_with("/branch/branch-b1/schema")), "{error:?}");
}

#[tokio::test]
async fn a_range_of_a_tag_and_a_number_says_that_they_are_mixed() {
    let (dir, table) = three_snapshots();
    table.tag("t1", 1).unwrap();
    let session = session_of(&dir).await;
    for (range, words) in [
        ("t1,3", "'t1' is a tag and '3' is a snapshot id"),
        ("1,t1", "'t1' is a tag and '1' is a snapshot id"),
        ("t1,nope", "'nope' is neither a tag nor a snapshot id"),
        ("nope,t1", "'nope' is neither a tag nor a snapshot id"),
        ("nope,3", "'nope' is neither a tag nor a snapshot id"),
        ("1,nope", "'nope' is neither a tag nor a snapshot id"),
    ] {
        let sql = format!("SELECT * FROM t /*+ OPTIONS('incremental-between'='{range}') */");
        let error = ask(&session, &sql).await.unwrap_err();
        assert_eq!(error.code(), "BadOption", "{range}: {error:?}");
        assert!(error.message().contains(words), "{range}: {error:?}");
        assert_eq!(error.hint().unwrap_or_default().contains("tag 't1' holds snapshot 1"), words.starts_with("'t1'"));
    }
}

#[tokio::test]
async fn a_number_beyond_all_ids_is_told_so() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let (error, _) = told(&session, "SELECT * FROM t VERSION AS OF 99999999999999999999999").await;
    assert_eq!(error.code(), "BadSelector");
    assert_eq!(error.message(), "99999999999999999999999 is larger than any snapshot id");
}
