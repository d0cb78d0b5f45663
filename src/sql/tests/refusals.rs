//! What is refused says which table and which option, before anything is printed.

use super::*;

/// Whether a statement is refused while it is planned, by an error that names the table and the option.
async fn refused(session: &Session, sql: &str, code: &str, option: &str) {
    // the error comes before a stream is handed over: nobody prints a header first
    let error = session.run_one(sql).await.map(|_| ()).expect_err(sql);
    assert_eq!(error.code(), code, "{sql}: {error:?}");
    named(&error, sql, option);
}

fn named(error: &Error, sql: &str, option: &str) {
    let context =
        |name: &str| error.context().iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    assert_eq!((context("table"), context("option")), (Some("pay.t"), Some(option)), "{sql}: {error:?}");
}

/// A table `pay.t(id, v)` of two rows of key 1 that have to be merged.
fn merged(options: &[(&str, &str)], second: serde_json::Value) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"id": 1, "v": 10})]).unwrap();
    table.append(&[second]).unwrap();
    for (option, value) in options {
        table.alter(&SchemaChange::Set(option, value)).unwrap();
    }
    dir
}

#[tokio::test]
async fn merge_options_that_cannot_be_used_are_refused_while_planning_by_table_and_option() {
    let again = json!({"id": 1, "v": 20});
    let aggregation = ("merge-engine", "aggregation");
    for (options, code, option) in [
        (
            vec![aggregation, ("fields.v.aggregate-function", "magic")],
            "AggregateFunctionUnknown",
            "fields.v.aggregate-function",
        ),
        (
            vec![aggregation, ("fields.default-aggregate-function", "magic")],
            "AggregateFunctionUnknown",
            "fields.default-aggregate-function",
        ),
        (
            vec![aggregation, ("fields.v.aggregate-function", "hll_sketch")],
            "AggregateFunctionUnsupported",
            "fields.v.aggregate-function",
        ),
        (
            vec![aggregation, ("fields.v.aggregate-function", "bool_and")],
            "AggregateType",
            "fields.v.aggregate-function",
        ),
        (vec![("sequence.field", "nope")], "OptionColumnUnknown", "sequence.field"),
        (
            vec![("merge-engine", "partial-update"), ("fields.nope.sequence-group", "v")],
            "OptionColumnUnknown",
            "fields.nope.sequence-group",
        ),
    ] {
        let dir = merged(&options, again.clone());
        let session = session_of(&dir).await;
        refused(&session, "SELECT v FROM t", code, option).await;
        refused(&session, "SELECT id, sum(v) FROM t GROUP BY id", code, option).await;
        if code != "OptionColumnUnknown" {
            assert_eq!(rows(&session, "SELECT id FROM t").await, ["1"], "the column is not asked for: {options:?}");
        }
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_taken_back_names_table_and_option() {
    let gone = json!({"id": 1, "v": 10, "_ROW_KIND": "-D"});
    for (options, option) in [
        (vec![("merge-engine", "aggregation"), ("fields.v.aggregate-function", "max")], "fields.v.aggregate-function"),
        (vec![("merge-engine", "partial-update")], "merge-engine"),
    ] {
        let dir = merged(&options, gone.clone());
        let session = session_of(&dir).await;
        let sql = "SELECT v FROM t$audit_log";
        let error = ask(&session, sql).await.unwrap_err();
        assert_eq!(error.code(), "RetractUnsupported", "{options:?}: {error:?}");
        named(&error, sql, option);
    }
}

#[tokio::test]
async fn a_number_that_leaves_its_type_while_merging_names_where_it_is_and_a_way_out() {
    for (function, values) in [("sum", [100, 100]), ("product", [100, 2])] {
        let dir = tempfile::tempdir().unwrap();
        let option = format!("fields.v.aggregate-function={function}");
        let (key, value) = option.split_once('=').unwrap();
        let spec = TableSpec::new(&[("p", "STRING NOT NULL"), ("id", "INT NOT NULL"), ("v", "TINYINT"), ("w", "INT")])
            .partitioned_by(&["p"])
            .primary_key(&["p", "id"])
            .option("bucket", "1")
            .option("merge-engine", "aggregation")
            .option(key, value);
        let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
        for v in values {
            table.append(&[json!({"p": "x", "id": 7, "v": v, "w": 1})]).unwrap();
        }
        let session = session_of(&dir).await;
        let error = ask(&session, "SELECT v FROM t").await.unwrap_err();
        assert_eq!(error.code(), "AggregateOverflow", "{function}: {error:?}");
        let context = error.context();
        for (name, wanted) in
            [("table", "pay.t"), ("column", "v"), ("key", "7"), ("bucket", "0"), ("snapshot", "2"), ("partition", "x")]
        {
            assert!(context.iter().any(|(known, found)| *known == name && found.contains(wanted)), "{name}: {error:?}");
        }
        assert!(error.hint().is_some_and(|hint| hint.contains("leave the column out")), "{error:?}");
        assert_eq!(rows(&session, "SELECT w FROM t").await, ["1"]);
        assert_eq!(rows(&session, "SELECT v FROM t VERSION AS OF 1").await, ["100"]);
    }
}

#[tokio::test]
async fn a_damaged_data_file_names_its_table() {
    let (dir, table) = three_snapshots();
    for entry in table.live_files().unwrap() {
        let path = table.root().join("bucket-0").join(&entry.file.file_name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, vec![0; bytes.len()]).unwrap();
    }
    let session = session_of(&dir).await;
    for sql in ["SELECT v FROM t", "SELECT v FROM t VERSION AS OF 1"] {
        let error = ask(&session, sql).await.unwrap_err();
        assert!(error.context().contains(&("table", "pay.t".to_string())), "{sql}: {error:?}");
    }
}

#[tokio::test]
async fn blobs_in_files_of_their_own_are_refused_only_when_they_are_projected() {
    let url = golden::python_warehouse().unwrap();
    let warehouse = Warehouse::open(url.to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let session = Session::new(&warehouse, SessionConfig::default()).await.unwrap();
    assert_eq!(rows(&session, "SELECT id FROM append_blob").await, ["1", "2", "3"]);
    assert_eq!(rows(&session, "SELECT count(*) FROM append_blob").await, ["3"]);
    assert_eq!(rows(&session, "SELECT id FROM append_blob WHERE id > 1 LIMIT 5").await, ["2", "3"]);
    for sql in ["SELECT * FROM append_blob", "SELECT b FROM append_blob", "SELECT id FROM append_blob WHERE b IS NULL"]
    {
        let error = session.run_one(sql).await.map(|_| ()).expect_err(sql);
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{sql}: {error:?}");
        let told = ["append_blob", "blob-field", "column: b"];
        assert!(told.iter().all(|word| error.to_string().contains(word)), "{sql}: {error}");
    }
    let files = rows(&session, "EXPLAIN FILES SELECT id FROM append_blob").await;
    let side = files.iter().find(|line| line.contains(".blob")).unwrap();
    assert!(side.contains("false,it holds only columns that are not asked for"), "{side}");
}
