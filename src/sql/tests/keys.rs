//! The history of a key, why it is as it is, and what a commit made of keys.

use super::*;

/// `three_snapshots`, then a compaction and a repair that another user wrote with a lower number.
fn with_past() -> (TempDir, TableBuilder) {
    let (dir, mut table) = three_snapshots();
    let rows = [json!({"id": 2, "v": 21, "_SEQUENCE_NUMBER": 2}), json!({"id": 3, "v": 30, "_SEQUENCE_NUMBER": 3})];
    table.commit().file(FileSpec::rows(&rows).level(5)).remove_all().kind(CommitKind::Compact).publish().unwrap();
    let repair = [json!({"id": 2, "v": 77, "_SEQUENCE_NUMBER": 1}), json!({"id": 4, "v": 40, "_SEQUENCE_NUMBER": 2})];
    table.commit().file(FileSpec::rows(&repair)).user("repair").identifier(9).publish().unwrap();
    (dir, table)
}

#[tokio::test]
async fn a_key_tells_its_past_and_why_it_is_as_it_is() {
    let (dir, table) = with_past();
    let session = session_of(&dir).await;
    let columns = "version, snapshot_id, commit_kind, file_source, sequence, row_kind, v, origin_snapshot, \
                   origin_confidence, visible_from, visible_to, removed_by, loses_to";
    let past = |key: &str, more: &str| format!("SELECT {columns} FROM paimon_key_history('pay.t', key => {key}{more})");
    let expected = [
        "1,1,APPEND,APPEND,1,+I,20,1,exact,1,1,4,2",
        "2,2,APPEND,APPEND,2,+I,21,2,exact,2,3,4,NULL",
        "3,4,COMPACT,COMPACT,2,+I,21,2,exact,4,NULL,NULL,NULL",
        "4,5,APPEND,APPEND,1,+I,77,5,exact,NULL,NULL,NULL,3",
    ];
    for key in ["2", "(2)", "'id=2'"] {
        assert_eq!(rows(&session, &past(key, "")).await, expected, "{key}");
    }
    assert_eq!(rows(&session, &past("2", ", from => 3, to => 3")).await.len(), 2);
    assert!(notices(&session, &past("2", "")).await.is_empty());
    let why = |more: &str| {
        format!("SELECT reason, snapshot_id, commit_user, confidence FROM paimon_explain_key('t', {more})")
    };
    for (call, answer) in [
        ("key => 2", "VALUE_FROM,2,builder,exact"),
        ("key => 2, expected => 'v=77'", "SUPERSEDED_BY_SEQUENCE,2,builder,exact"),
        ("key => 2, expected => 'v=20', at => 3", "SUPERSEDED_BY_SEQUENCE,2,builder,exact"),
        ("key => 1", "TOMBSTONED,3,builder,exact"),
        ("key => 4, at => 3", "COMMITTED_LATER,5,repair,exact"),
        ("key => 8", "NEVER_SEEN,NULL,NULL,exact"),
    ] {
        assert_eq!(rows(&session, &why(call)).await, [answer], "{call}");
    }
    for (call, expected) in [
        ("key => 'x=1'", "ColumnNotFound"),
        ("key => (1, 2)", "BadArgument"),
        ("at => 1", "BadArgument"),
        ("key => 1, expected => 'nope=1'", "ColumnNotFound"),
        ("key => 1, expected => 'v=abc'", "BadArgument"),
        ("key => 1, at => 99", "SnapshotNotFound"),
    ] {
        let found = ask(&session, &why(call)).await.unwrap_err();
        assert_eq!(found.code(), expected, "{call}: {found}");
    }
    // a session that pins the table asks about what it reads
    session.run_one("PIN TABLE t AT (VERSION => 2)").await.unwrap();
    assert_eq!(rows(&session, &why("key => 1")).await, ["VALUE_FROM,1,builder,exact"]);
    session.run_one("UNPIN ALL").await.unwrap();
    table.expire(1).unwrap();
    let told = notices(&session_of(&dir).await, &past("2", "")).await;
    assert!(told.iter().any(|told| told.contains("begins with snapshot 2")), "{told:?}");
}

async fn notices(session: &Session, sql: &str) -> Vec<String> {
    session.run_one(sql).await.unwrap().notices.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_commit_tells_what_it_made_of_keys_and_a_difference_its_commit() {
    let (dir, _table) = with_past();
    let session = session_of(&dir).await;
    let of = |id: i64| format!("SELECT op, id, before_v, after_v FROM paimon_commit_keys('t', snapshot => {id})");
    for (id, expected) in [
        (1, vec!["INSERT,1,NULL,10", "INSERT,2,NULL,20"]),
        (2, vec!["INSERT,3,NULL,30", "UPDATE,2,20,21"]),
        (3, vec!["DELETE,1,10,NULL"]),
        (4, vec![]),
        (5, vec!["INSERT,4,NULL,40"]),
    ] {
        assert_eq!(rows(&session, &of(id)).await, expected, "{id}");
    }
    let caused = "SELECT op, id, snapshot_id, commit_kind, commit_user, commit_identifier FROM paimon_diff('t', ";
    assert_eq!(
        rows(&session, &format!("{caused} 1, 5, attribute => true)")).await,
        [
            "DELETE,1,3,APPEND,builder,3",
            "INSERT,3,2,APPEND,builder,2",
            "INSERT,4,5,APPEND,repair,9",
            "UPDATE,2,2,APPEND,builder,2"
        ]
    );
    let times = "SELECT d.commit_time = s.commit_time AS same FROM paimon_diff('t', 1, 5, attribute => true) d \
                 JOIN t$snapshots s ON s.snapshot_id = d.snapshot_id WHERE d.id = 4";
    session.run_one("SET TIME ZONE '+08:00'").await.unwrap();
    assert_eq!(rows(&session, times).await, ["true"]);
    assert_eq!(rows(&session, &format!("{caused} 3, 2, attribute => true)")).await, ["INSERT,1,3,APPEND,builder,3"]);
    assert!(rows(&session, &format!("{caused} 3, 3, attribute => true)")).await.is_empty());
    assert_eq!(code(&session, "SELECT * FROM paimon_commit_keys('t')").await, "BadArgument");
}

#[tokio::test]
async fn a_compaction_that_loses_a_row_and_a_key_in_two_buckets_are_found_by_reading() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "2");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let row = |id: i64| json!({"id": id, "v": 1, "_SEQUENCE_NUMBER": id});
    table.commit().file(FileSpec::rows(&[row(1), row(2)]).bucket(0)).publish().unwrap();
    let good = FileSpec::rows(&[row(1), row(2)]).bucket(0).level(5);
    table.commit().file(good).remove_all().kind(CommitKind::Compact).publish().unwrap();
    let deep = "SELECT detector, snapshots FROM paimon_anomalies('t', deep => true) WHERE detector IN ('D-13', 'D-16')";
    assert!(rows(&session_of(&dir).await, deep).await.is_empty());
    let short = FileSpec::rows(&[row(1)]).bucket(0).level(5);
    table.commit().file(short).remove_all().kind(CommitKind::Compact).publish().unwrap();
    table.commit().file(FileSpec::rows(&[row(1)]).bucket(1)).publish().unwrap();
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, deep).await, ["D-13,4", "D-16,3"]);
    assert!(rows(&session, &deep.replace(", deep => true", "")).await.is_empty());
    for (range, expected) in
        [("from => 3, to => 3", vec!["D-16,3"]), ("from => 4", vec!["D-13,4"]), ("to => 2", vec![])]
    {
        assert_eq!(rows(&session, &deep.replace("deep", &format!("{range}, deep"))).await, expected, "{range}");
    }
    assert_eq!(code(&session, "SELECT * FROM paimon_anomalies('t', from => 3, to => 2)").await, "BadArgument");
}

#[tokio::test]
async fn a_compaction_may_write_entries_of_maps_in_another_order_and_what_cannot_be_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let columns = [("id", "BIGINT NOT NULL"), ("m", "MAP<STRING, INT>")];
    let spec = TableSpec::new(&columns).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let schema = crate::spec::arrow_types::arrow_schema(table.schema());
    let of = |text: &str| {
        let mut reader = arrow::json::ReaderBuilder::new(Arc::clone(&schema)).build(text.as_bytes()).unwrap();
        let batch = reader.next().unwrap().unwrap();
        let columns: Vec<(&str, arrow::array::ArrayRef)> = vec![
            ("id", Arc::clone(batch.column(0))),
            ("m", Arc::clone(batch.column(1))),
            ("_SEQUENCE_NUMBER", Arc::new(arrow::array::Int64Array::from(vec![1]))),
            ("_VALUE_KIND", Arc::new(arrow::array::Int8Array::from(vec![0]))),
        ];
        FileSpec::batches(vec![
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap(),
        ])
    };
    table.commit().file(of(r#"{"id": 1, "m": {"a": 1, "bb": 2}}"#)).publish().unwrap();
    let turned = of(r#"{"id": 1, "m": {"bb": 2, "a": 1}}"#).level(5);
    table.commit().file(turned).remove_all().kind(CommitKind::Compact).publish().unwrap();
    let deep = "SELECT detector, snapshots FROM paimon_anomalies('t', deep => true) WHERE detector <> 'D-2'";
    assert!(rows(&session_of(&dir).await, deep).await.is_empty());
    // a file that is there with its size, and is none
    let file = table.live_files().unwrap().remove(0).file;
    let size = usize::try_from(file.file_size).unwrap();
    std::fs::write(table.root().join("bucket-0").join(&file.file_name), vec![7u8; size]).unwrap();
    let found = rows(&session_of(&dir).await, deep).await;
    assert_eq!(found, ["D-13,2", "D-15,2", "D-15,2", "D-16,2"]);
    let told = "SELECT count(*) FROM paimon_anomalies('t', deep => true) WHERE evidence LIKE '%not checked, because%'";
    assert_eq!(rows(&session_of(&dir).await, told).await, ["2"], "neither D-13 nor D-16 could be checked");
}
