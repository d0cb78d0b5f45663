//! Views, aliases and names of columns.

use super::*;

#[tokio::test]
async fn a_view_is_shown_as_it_was_written() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    session.set_parameter("v", Some("2"));
    for (create, shown) in [
        (
            "CREATE VIEW a AS SELECT id, 'it''s' AS x\n  FROM t VERSION AS OF 1 -- the first",
            "CREATE VIEW `pay`.`a` AS SELECT id, 'it''s' AS x\n  FROM t VERSION AS OF 1",
        ),
        (
            "create or replace view pay.a as select * from t /*+ OPTIONS('scan.snapshot-id'='2') */",
            "CREATE VIEW `pay`.`a` as select * from t /*+ OPTIONS('scan.snapshot-id'='2') */",
        ),
        (
            "CREATE VIEW IF NOT EXISTS \"B b\" AS SELECT \"t@v1\".id FROM \"t@v1\"",
            "CREATE VIEW `pay`.`B b` AS SELECT \"t@v1\".id FROM \"t@v1\"",
        ),
        (
            "CREATE VIEW d AS SELECT id FROM t VERSION AS OF $v",
            "CREATE VIEW `pay`.`d` AS SELECT id FROM t VERSION AS OF 2",
        ),
    ] {
        rows(&session, create).await;
        let (name, _) = shown
            .trim_start_matches("CREATE VIEW ")
            .split_once(" AS ")
            .unwrap_or_else(|| shown.trim_start_matches("CREATE VIEW ").split_once(" as ").unwrap());
        let (found, _) = all(session.run_one(&format!("SHOW CREATE TABLE {name}")).await.unwrap()).await;
        assert_eq!(found, [[name.replace('`', ""), shown.to_string()]]);
        // and makes it again
        let before = rows(&session, &format!("SELECT * FROM {name}")).await;
        rows(&session, &shown.replacen("CREATE VIEW", "CREATE OR REPLACE VIEW", 1)).await;
        assert_eq!(rows(&session, &format!("SELECT * FROM {name}")).await, before, "{create}");
    }
}

#[tokio::test]
async fn a_view_lives_in_a_database_that_is_there() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for sql in [
        "CREATE VIEW nodb.v AS SELECT 1 AS a",
        "CREATE VIEW paimon.nodb.v AS SELECT 1 AS a",
        "CREATE TEMPORARY TABLE nodb.v AS SELECT 1 AS a",
        "CREATE EXTERNAL TABLE nodb.v (a INT) STORED AS CSV LOCATION '/nowhere'",
    ] {
        assert_eq!(code(&session, sql).await, "DatabaseNotFound", "{sql}");
    }
    rows(&session, "CREATE VIEW paimon.pay.v AS SELECT 1 AS a").await;
}

#[tokio::test]
async fn columns_are_named_by_the_name_that_was_written() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for sql in [
        "SELECT \"t@v1\".id, \"t@v1\".v FROM \"t@v1\"",
        "SELECT \"t@v1\".* FROM \"t@v1\"",
        "SELECT t@v1.id, t@v1.v FROM t@v1",
        "SELECT T@V1.id, t.v FROM t@v1",
        "SELECT pay.\"t@v1\".id, v FROM pay.\"t@v1\" WHERE \"t@v1\".id > 0 ORDER BY \"t@v1\".id",
        "SELECT id, v FROM \"t@v1\" WHERE EXISTS (SELECT 1 FROM t b VERSION AS OF 1 WHERE b.id = \"t@v1\".id)",
        "SELECT x.a, x.b FROM t x (a, b) VERSION AS OF 1",
        "SELECT x.a, x.b FROM t VERSION AS OF 1 x (a, b)",
        "SELECT x.a, x.b FROM pay.t AS x (a, b) FOR VERSION AS OF 1 WHERE a > 0",
        "SELECT a, b FROM t x (a, b) /*+ OPTIONS('scan.snapshot-id'='1') */",
        "SELECT a, b FROM t VERSION AS OF 1 x (a, b) /*+ OPTIONS('scan.bucket'='0') */",
        "SELECT a, b FROM t VERSION AS OF 1 AS x (a, b) /*+ OPTIONS('scan.bucket'='0') */ WHERE x.a > 0",
    ] {
        assert_eq!(rows(&session, sql).await, ["1,10", "2,20"], "{sql}");
    }
    for sql in [
        "SELECT * FROM (SELECT 1) x (a) VERSION AS OF 1",
        "SELECT * FROM paimon_diff('t', 1, 2) x (a, b, c, d, e) VERSION AS OF 1",
    ] {
        assert_eq!(code(&session, sql).await, "CannotTravel", "{sql}");
    }
}

#[tokio::test]
async fn a_table_that_is_used_twice_needs_an_alias() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let twice = ask(&session, "SELECT count(*) FROM t VERSION AS OF 1, t VERSION AS OF 2").await.unwrap_err();
    assert_eq!(twice.code(), "DuplicateName", "{twice}");
    assert!(twice.hint().is_some_and(|hint| hint.contains("alias")), "{twice}");
    let whose = ask(&session, "SELECT id FROM t a JOIN t b ON a.id = b.id").await.unwrap_err();
    assert_eq!(whose.code(), "AmbiguousColumn", "{whose}");
    assert!(whose.hint().is_some(), "{whose}");
}

#[tokio::test]
async fn unknown_catalogs_and_columns_of_conditions_lead_to_the_nearest() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    for (sql, code, near) in [
        ("SELECT * FROM paimn.pay.t", "CatalogNotFound", "did you mean 'paimon'?"),
        ("DESCRIBE paimn.pay.t", "CatalogNotFound", "did you mean 'paimon'?"),
        ("SELECT * FROM paimon_diff('t', 1, 2, where => 'idd = 1')", "ColumnNotFound", "did you mean 'id'?"),
    ] {
        let error = ask(&session, sql).await.unwrap_err();
        assert_eq!(error.code(), code, "{sql}: {error}");
        assert!(error.to_string().contains(near), "{sql}: {error}");
    }
    let error = session.counts("t", Some("vv = 1")).await.unwrap_err();
    assert!(error.to_string().contains("'v'"), "{error}");
}

#[tokio::test]
async fn a_copy_is_explained_with_its_clause() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    let target = dir.path().parent().unwrap().join("lakepin-explained.csv");
    for explain in ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN FORMAT TREE"] {
        let sql = format!("{explain} COPY t VERSION AS OF 1 TO '{}' STORED AS CSV", target.display());
        assert!(!rows(&session, &sql).await.is_empty(), "{sql}");
        assert!(!target.exists());
    }
}

#[tokio::test]
async fn a_name_with_points_in_it_is_quoted_wherever_it_is_text() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.b", "mail@home", "mail"] {
        let spec = TableSpec::new(&[("i", "INT")]).option("bucket", "-1");
        let mut table = TableBuilder::create(dir.path(), "pay", name, &spec).unwrap();
        table.append(&[json!({"i": 1})]).unwrap();
        table.append(&[json!({"i": 2})]).unwrap();
        if name == "mail" {
            table.append(&[json!({"i": 3})]).unwrap();
            table.tag("home", 3).unwrap();
        }
    }
    let session = session_of(&dir).await;
    for name in ["pay.\"a.b\"", "\"a.b\"", "paimon.`pay`.`a.b`", "pay.mail@home", "\"mail@home\""] {
        let sql = format!("SELECT i FROM paimon_diff('{name}', 1, 2)");
        assert_eq!(rows(&session, &sql).await, ["2"], "{sql}");
    }
    for set in ["'paimon.pay.\"a.b\".scan.snapshot-id'", "paimon.pay.\"a.b\".scan.snapshot-id"] {
        rows(&session, &format!("SET {set} = '1'")).await;
        assert_eq!(rows(&session, "SELECT i FROM \"a.b\"").await, ["1"], "{set}");
        rows(&session, &format!("RESET {set}")).await;
        assert_eq!(rows(&session, "SELECT count(*) FROM \"a.b\"").await, ["2"], "{set}");
    }
    // a table that is really called so is the one that is pinned
    rows(&session, "PIN TABLE \"mail@home\"").await;
    assert_eq!(session.session_pins()[0].table, "pay.mail@home");
    rows(&session, "UNPIN TABLE \"mail@home\"").await;
    for (sql, expected) in [
        ("SET 'paimon.pay.mail.scan.snapshot-id' = 'abc'", "InvalidOption"),
        ("SET paimon.scan.mode = 'nonsense'", "UnsupportedOption"),
    ] {
        assert_eq!(code(&session, sql).await, expected, "{sql}");
    }
    assert_eq!(rows(&session, "SELECT count(*) FROM mail").await, ["3"]);
}
