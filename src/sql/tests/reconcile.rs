//! RECONCILE and paimon_compare.

use super::*;
use crate::sql::{Class, Sink, Verdict};

/// `pay.t`: three snapshots of payments, the later ones with a row changed, one added and one removed.
fn payments() -> (TempDir, TableBuilder) {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[
        ("id", "BIGINT NOT NULL"),
        ("amount", "DECIMAL(10, 2)"),
        ("状态", "STRING"),
        ("at", "TIMESTAMP_LTZ(3)"),
    ])
    .primary_key(&["id"])
    .option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let row = |id: i64, amount: &str, status: &str| json!({"id": id, "amount": amount, "状态": status, "at": "1970-01-01 00:00:01"});
    table.append(&[row(1, "10.00", "2"), row(2, "20.50", "2"), row(3, "3.00", "4")]).unwrap();
    table.append(&[row(2, "21.00", "2"), row(4, "4.00", "2")]).unwrap();
    let mut gone = row(1, "10.00", "2");
    gone["_ROW_KIND"] = json!("-D");
    table.append(&[gone]).unwrap();
    (dir, table)
}

#[tokio::test]
async fn two_states_of_a_table_are_compared_at_their_pins() {
    let (dir, _) = payments();
    let session = session_of(&dir).await;
    let sql = "RECONCILE t AT (VERSION => 1) WITH pay.t ON KEY (ID) LIMIT 1 PER CLASS";
    let (found, pins) = all(session.run_one(sql).await.unwrap()).await;
    assert_eq!(pins.iter().map(|pin| pin.snapshot_id).collect::<Vec<_>>(), [Some(1), Some(3)]);
    assert_eq!((found[0][1].as_str(), found[0][6].as_str()), ("DIFFERENT", "3"), "{found:?}");
    assert!(found[0][9].contains("pay.t @ snapshot 1") && found[0][9].contains("amount Δ = 5.5"), "{found:?}");
    let part =
        |name: &str| found.iter().filter(|row| row[0] == name).map(|row| row[1..10].join(",")).collect::<Vec<_>>();
    assert_eq!(
        part("class"),
        [
            "MISSING_IN_LAKE,NULL,NULL,NULL,NULL,1,0,1,NULL",
            "EXTRA_IN_LAKE,NULL,NULL,NULL,NULL,1,1,0,NULL",
            "DIFFERENT,NULL,NULL,NULL,NULL,1,1,1,NULL",
            "EQUAL,NULL,NULL,NULL,NULL,1,1,1,NULL",
        ]
    );
    assert!(
        part("example").contains(&r#"DIFFERENT,{"id":"2"},amount,20.50,21.00,NULL,1,1,NULL"#.to_string()),
        "{found:?}"
    );
    let same = "RECONCILE t@v2 WITH t VERSION AS OF 2 ON KEY (id)";
    assert_eq!(all(session.run_one(same).await.unwrap()).await.0[0][1], "EQUAL");
    // one state on both sides is one reading, and a session pin holds for both
    session.run_one("PIN TABLE t AT (VERSION => 2)").await.unwrap();
    assert_eq!(all(session.run_one("RECONCILE t WITH t ON KEY (id)").await.unwrap()).await.1.len(), 1);
}

#[tokio::test]
async fn the_right_side_is_a_query_with_codes_conditions_and_a_horizon() {
    let (dir, _) = payments();
    let session = session_of(&dir).await;
    let query = "SELECT * FROM (VALUES (2, 21, 'SUCC', 5), (3, 3, 'FAIL', 5), (4, 4, 'FAIL', 5), (9, 1, 'SUCC', 2000)) AS s(id, \"AMOUNT\", \"状态\", ms)";
    let query = format!(
        "SELECT id, \"AMOUNT\", \"状态\", CAST(to_timestamp_millis(ms) AS TIMESTAMP(3)) AS \"at\" FROM ({query})"
    );
    let sql = |rest: &str| format!("RECONCILE t WITH ({query}) ON KEY (id) {rest}");
    let coded = "COMPARE (amount, \"状态\" MAP ('SUCC' => '2', 'FAIL' => '4'))";
    let report = |rest: String| {
        let session = &session;
        async move { session.reconcile(&rest, None).await.unwrap().report }
    };
    let found = report(sql(coded)).await;
    let counts = |found: &crate::sql::ReconcileReport| {
        [Class::Equal, Class::Different, Class::MissingInLake, Class::FilterMismatch, Class::Late]
            .map(|class| found.count(class).findings)
    };
    assert_eq!(counts(&found), [2, 1, 1, 0, 0], "{found:?}");
    // the condition is of both sides, in their own case
    let found = report(sql(&format!("{coded} WHERE amount > 3"))).await;
    assert_eq!(counts(&found), [1, 1, 0, 0, 0], "{found:?}");
    let found = report(sql(&format!("{coded} WHERE \"状态\" IN ('2', 'SUCC')"))).await;
    assert_eq!(counts(&found), [1, 0, 1, 1, 0], "{found:?}");
    let error =
        session.reconcile(&sql(coded).replace("COMPARE (amount,", "COMPARE (amount, \"at\","), None).await.unwrap_err();
    assert_eq!(error.code(), "ZoneNotStated", "{error}");
    let late = |time: &str| sql(&format!("{coded} HORIZON \"at\" <= TIMESTAMP '1970-01-01 {time}' ZONE 'UTC'"));
    let found = report(late("00:00:01")).await;
    assert_eq!(counts(&found), [2, 1, 0, 0, 1], "{found:?}");
    assert_eq!((found.left.rows, found.right.rows), (3, 3));
    // every row of the lake is newer, and so is what stands beside it
    let error = session.reconcile(&late("00:00:00.050"), None).await.unwrap_err();
    assert_eq!(error.code(), "NothingCompared", "{error}");
    assert!(error.to_string().contains("at <= 1970-01-01"), "{error}");
    let none = sql(&format!("{coded} WHERE amount > 900"));
    let error = session.reconcile(&none, None).await.unwrap_err();
    assert_eq!(error.code(), "NothingCompared", "{error}");
    let found = report(format!("{none} ALLOW EMPTY")).await;
    assert_eq!((found.verdict, counts(&found)), (Verdict::Equal, [0; 5]), "{found:?}");
    assert!(found.notes.iter().any(|note| note.contains("ALLOW EMPTY")), "{found:?}");
}

#[tokio::test]
async fn a_condition_is_read_in_the_zone_that_is_stated() {
    let (dir, _) = payments();
    let session = session_of(&dir).await;
    // one second after the epoch, on the clock of the zone
    let of = |clock: &str| format!("(SELECT id, TIMESTAMP '1970-01-01 {clock}:01' AS \"at\" FROM t)");
    let sql = |right: &str, from: &str, to: &str, zone: &str| {
        format!(
            "RECONCILE t WITH {right} ON KEY (id) COMPARE (\"at\") \
             WHERE \"at\" >= TIMESTAMP '1970-01-01 {from}' AND \"at\" < TIMESTAMP '1970-01-01 {to}' ZONE '{zone}'"
        )
    };
    let found = async |sql: String| {
        let report = session.reconcile(&sql, None).await.unwrap().report;
        (report.verdict, report.left.rows, report.right.rows)
    };
    let equal = (Verdict::Equal, 3, 3);
    assert_eq!(found(sql(&of("08:00"), "08:00:00", "08:00:02", "+08:00")).await, equal);
    assert_eq!(found(sql(&of("00:00"), "00:00:00", "00:00:02", "+00:00")).await, equal);
    session.run_one("SET TIME ZONE '+08:00'").await.unwrap();
    for zone in ["UTC", "+00:00", "Z"] {
        assert_eq!(found(sql(&of("00:00"), "00:00:00", "00:00:02", zone)).await, equal, "{zone}");
    }
    assert_eq!(found(sql(&of("08:00"), "08:00:00", "08:00:02", "+08:00")).await, equal);
    // what a query of a side says stays in the zone of the session
    let own = "(SELECT id, CAST(\"at\" AS TIMESTAMP(3)) - INTERVAL '8' HOUR AS \"at\" FROM t)";
    assert_eq!(found(sql(own, "00:00:00", "00:00:02", "UTC")).await, equal);
    // and so does the condition where nothing else is stated
    let days = "RECONCILE t WITH t ON KEY (id) WHERE extract(hour FROM \"at\") =";
    assert_eq!(found(format!("{days} 8")).await, equal);
    assert_eq!(found(format!("{days} 0 ZONE 'UTC'")).await, equal);
}

#[tokio::test]
async fn files_are_sides_identified_by_their_bytes() {
    let (dir, _) = payments();
    let session = session_of(&dir).await;
    let files = tempfile::tempdir().unwrap();
    let path = |name: &str| files.path().join(name).display().to_string();
    std::fs::write(path("s.csv"), "ID,amount,状态\n2,21,2\n3,3.000,\n4,vier,2\n").unwrap();
    let sql = format!("RECONCILE t WITH '{}' ON KEY (id)", path("s.csv"));
    let report = session.reconcile(&sql, None).await.unwrap().report;
    let counts = [Class::Equal, Class::Different, Class::Unreadable].map(|class| report.count(class).findings);
    assert_eq!(counts, [1, 1, 1], "{report:?}");
    assert!(report.right.position.contains("sha256"), "{report:?}");
    session
        .run_one(&format!("COPY (SELECT id, amount FROM t) TO '{}' STORED AS PARQUET", path("s.parquet")))
        .await
        .unwrap()
        .stream
        .try_collect::<Vec<_>>()
        .await
        .unwrap();
    let sql = format!("RECONCILE t WITH '{}' ON KEY (id)", path("s.parquet"));
    assert_eq!(session.reconcile(&sql, None).await.unwrap().report.verdict, Verdict::Equal);
    for (file, code) in [("none.csv", "FileNotFound"), ("s.txt", "FileFormat")] {
        assert_eq!(code_of(&session, &format!("RECONCILE t WITH '{}' ON KEY (id)", path(file))).await, code);
    }
    let source = code_of(&session, "RECONCILE t WITH 'mysql://u:geheim@127.0.0.1:1/d' FROM 't' ON KEY (id)").await;
    assert!(source.starts_with("Source"), "{source}");
}

async fn code_of(session: &Session, sql: &str) -> &'static str {
    let error = session.reconcile(sql, None).await.unwrap_err();
    assert!(!format!("{error:?}").contains("geheim"), "{error:?}");
    error.code()
}

#[tokio::test]
async fn the_function_gives_the_same_rows_and_explain_reads_none() {
    let (dir, _) = payments();
    let session = session_of(&dir).await;
    let call = "paimon_compare(left => 't@v1', right => 'SELECT id, amount FROM t', key => 'id', columns => 'amount', limit => 5)";
    let found =
        rows(&session, &format!("SELECT class, findings FROM {call} WHERE part = 'class' AND class <> 'EQUAL'")).await;
    assert_eq!(found, ["DIFFERENT,1", "EXTRA_IN_LAKE,1", "MISSING_IN_LAKE,1"]);
    let twice = format!("SELECT count(*) FROM {call} a JOIN {call} b ON a.part = b.part WHERE a.part = 'verdict'");
    assert_eq!(rows(&session, &twice).await, ["1"]);
    let statement = "RECONCILE t@v1 WITH (SELECT id, amount FROM t) ON KEY (id) COMPARE (amount) LIMIT 5 PER CLASS";
    let mut one = rows(&session, statement).await;
    let mut other = rows(&session, &format!("SELECT * FROM {call}")).await;
    one.sort();
    other.sort();
    assert_eq!(one, other);
    let quiet = call.replace("limit => 5", "where => 'amount > 900', allow_empty => true");
    assert_eq!(rows(&session, &format!("SELECT class FROM {quiet} WHERE part = 'verdict'")).await, ["EQUAL"]);
    let strict = quiet.replace("true", "false");
    assert_eq!(code(&session, &format!("SELECT * FROM {strict}")).await, "NothingCompared");
    for wrong in ["'true'", "1", "NULL"] {
        let wrong = quiet.replace("true", wrong);
        assert_eq!(code(&session, &format!("SELECT * FROM {wrong}")).await, "BadArgument", "{wrong}");
    }
    std::fs::remove_dir_all(dir.path().join("pay.db/t/bucket-0")).unwrap();
    assert!(ask(&session, &format!("EXPLAIN SELECT * FROM {call}")).await.is_ok());
    assert_eq!(code(&session, &format!("SELECT * FROM {call}")).await, "FileLost");
    for wrong in ["left => 't', right => 't'", "left => 't', right => 't', key => 'id', limit => 'all'"] {
        assert_eq!(code(&session, &format!("SELECT * FROM paimon_compare({wrong})")).await, "BadArgument", "{wrong}");
    }
}

#[tokio::test]
async fn a_result_is_kept_as_a_table_of_the_session() {
    let (dir, _) = payments();
    let session = session_of(&dir).await;
    let sql = "RECONCILE t WITH t@v1 ON KEY (id) INTO result";
    session.run_one(sql).await.unwrap();
    assert_eq!(rows(&session, "SELECT class FROM result WHERE part = 'verdict'").await, ["DIFFERENT"]);
    assert_eq!(code(&session, sql).await, "TableExists");
    assert_eq!(code(&session, "RECONCILE t WITH t ON KEY (id) INTO pay.t").await, "TableExists");
}

#[tokio::test]
async fn an_example_names_the_snapshot_that_last_wrote_its_key() {
    let (dir, _) = payments();
    let session = session_of(&dir).await;
    let written = |found: &crate::sql::ReconcileReport| {
        let one = found.examples.iter().map(|one| (one.class, one.key_json(), one.snapshot));
        one.map(|(class, key, snapshot)| format!("{} {key} {snapshot:?}", class.name())).collect::<Vec<_>>()
    };
    let sql = "RECONCILE t WITH (SELECT id, amount + 1 AS amount FROM t@v1) ON KEY (id)";
    let found = session.reconcile(sql, None).await.unwrap().report;
    assert_eq!(
        written(&found),
        [
            r#"MISSING_IN_LAKE {"id":"1"} Some(3)"#,
            r#"EXTRA_IN_LAKE {"id":"4"} Some(2)"#,
            r#"DIFFERENT {"id":"2"} Some(2)"#,
            r#"DIFFERENT {"id":"3"} Some(1)"#,
        ],
        "{found:?}"
    );
    // the relation tells the same
    let call = "paimon_compare(left => 't', right => 'SELECT id, amount + 1 AS amount FROM t@v1', key => 'id')";
    let sql = format!("SELECT key, snapshot_id FROM {call} WHERE part = 'example' AND class = 'DIFFERENT'");
    assert_eq!(rows(&session, &sql).await, [r#"{"id":"2"},2"#, r#"{"id":"3"},1"#]);
    // a query has no history of its own
    let sql = "RECONCILE t WITH (SELECT id, amount + 1 AS amount FROM t@v1) ON KEY (amount)";
    let found = session.reconcile(sql, None).await.unwrap().report;
    assert!(!found.examples.is_empty() && found.examples.iter().all(|one| one.snapshot.is_none()), "{found:?}");
}

#[tokio::test]
async fn a_horizon_is_the_watermark_where_nobody_wrote_one() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "BIGINT NOT NULL"), ("at", "TIMESTAMP_LTZ(3)"), ("clock", "TIMESTAMP(3)")])
        .primary_key(&["id"])
        .option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let row = |id: i64| json!({"id": id, "at": format!("1970-01-01 00:00:0{id}"), "clock": format!("1970-01-01 08:00:0{id}")});
    let rows = crate::testing::builder::FileSpec::rows(&[row(1), row(2), row(3)]);
    table.commit().file(rows).watermark(2_000).publish().unwrap();
    let session = session_of(&dir).await;
    let sql = |rest: &str| format!("RECONCILE t WITH (SELECT * FROM t) ON KEY (id) COMPARE (id) HORIZON {rest}");
    for rest in ["\"at\" AUTO", "clock AUTO ZONE '+08:00'"] {
        let found = session.reconcile(&sql(rest), None).await.unwrap().report;
        let counts = [Class::Equal, Class::Late].map(|class| found.count(class).findings);
        assert_eq!(counts, [2, 1], "{rest}: {found:?}");
        assert!(found.notes.iter().any(|note| note.contains("AUTO is the least of the watermark of t")), "{found:?}");
    }
    assert_eq!(code_of(&session, &sql("clock AUTO")).await, "ZoneNotStated");
    assert_eq!(code_of(&session, &sql("id AUTO")).await, "BadHorizon");
    let (dir, _) = payments();
    let session = session_of(&dir).await;
    assert_eq!(code_of(&session, "RECONCILE t WITH t ON KEY (id) HORIZON \"at\" AUTO").await, "BadHorizon");
}

#[tokio::test]
async fn a_pin_that_expires_meanwhile_gives_no_verdict() {
    let (dir, table) = payments();
    let session = session_of(&dir).await;
    let mut kept = true;
    let expired: Sink = Box::new(move |_| if std::mem::replace(&mut kept, false) { table.expire(1) } else { Ok(()) });
    let error = session.reconcile("RECONCILE t@v1 WITH t ON KEY (id)", Some(expired)).await.unwrap_err();
    assert_eq!(error.code(), "SnapshotExpired", "{error}");
}

#[tokio::test]
async fn a_comparison_goes_on_only_where_the_same_is_read_again() {
    let (dir, _) = payments();
    let session = session_of(&dir).await;
    let files = tempfile::tempdir().unwrap();
    let with = |right: &str| {
        let path = files.path().join("p.json").display().to_string();
        format!("RECONCILE t@v1 WITH {right} ON KEY (id) COMPARE (amount) PROGRESS '{path}'")
    };
    let query = with("(SELECT id, amount FROM t WHERE id < 3)");
    let first = session.reconcile(&query, None).await.unwrap().report;
    let again = session.reconcile(&query, None).await.unwrap().report;
    assert_eq!((&first.line, &first.classes), (&again.line, &again.classes));
    assert!(again.notes.iter().any(|note| note.starts_with("resumed from")), "{again:?}");
    assert_eq!(code_of(&session, &with("(SELECT id, amount FROM t WHERE id < 4)")).await, "OtherComparison");
    let other = "(SELECT id, amount FROM t WHERE id < 3 OR id IS NULL)";
    assert_eq!(code_of(&session, &with(other)).await, "OtherComparison");
    let filtered = query.replace("PROGRESS", "WHERE id = 1 OR id = 2 PROGRESS");
    assert_eq!(code_of(&session, &filtered).await, "OtherComparison");
    // a view is what it says, not its name
    session.run_one("CREATE VIEW w AS SELECT id, amount FROM t WHERE id < 3").await.unwrap();
    std::fs::remove_file(files.path().join("p.json")).unwrap();
    session.reconcile(&with("w"), None).await.unwrap();
    session.run_one("CREATE OR REPLACE VIEW w AS SELECT id, amount FROM t WHERE id < 5").await.unwrap();
    assert_eq!(code_of(&session, &with("w")).await, "OtherComparison");
    session.run_one("CREATE TEMPORARY TABLE mine AS SELECT id, amount FROM t").await.unwrap();
    for moving in [
        "mine",
        "(SELECT id, amount FROM t WHERE id < random() * 9)",
        "(SELECT id, amount FROM t LIMIT 2)",
        "(SELECT id, first_value(amount) AS amount FROM t GROUP BY id)",
        "(SELECT id, sum(CAST(amount AS DOUBLE)) AS amount FROM t GROUP BY id)",
        "(SELECT id, row_number() OVER () AS amount FROM t)",
        "(SELECT t.id, t.amount FROM t JOIN mine USING (id))",
    ] {
        assert_eq!(code_of(&session, &with(moving)).await, "StateNotKnown", "{moving}");
    }
}

#[tokio::test]
async fn what_cannot_be_compared_says_why() {
    let (dir, _) = payments();
    let session = session_of(&dir).await;
    for (sql, expected) in [
        ("RECONCILE t WITH (SELECT id, 'x' AS amount FROM t) ON KEY (id)", "NotComparable"),
        ("RECONCILE t WITH (SELECT id, id FROM t) ON KEY (id)", "DuplicateName"),
        ("RECONCILE t WITH t ON KEY (nr)", "ColumnNotFound"),
        ("RECONCILE t WITH t ON KEY (id) WHERE nr = 1", "ColumnNotFound"),
        ("RECONCILE t WITH t ON KEY (id) WHERE t.id = 1", "BadArgument"),
        ("RECONCILE t WITH t ON KEY (id) WHERE id IN (SELECT 1)", "BadArgument"),
        ("RECONCILE t WITH u ON KEY (id)", "TableNotFound"),
        ("RECONCILE t WITH t ON KEY (id) SAMPLE 200 PERCENT BY KEY HASH", "BadArgument"),
        ("RECONCILE t WITH t ON KEY (id) TOLERANCE \"状态\" 1", "BadTolerance"),
        ("RECONCILE t WITH t ON KEY (id) HORIZON \"at\" <= 'soon'", "BadHorizon"),
        ("RECONCILE t WITH", "Syntax"),
    ] {
        assert_eq!(code(&session, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn who_found_a_difference_learns_that_its_states_go_soon() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")])
        .primary_key(&["id"])
        .option("bucket", "1")
        .option("snapshot.num-retained.min", "1")
        .option("snapshot.time-retained", "1 h");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    table.append(&[json!({"id": 1, "v": 1})]).unwrap();
    table.append(&[json!({"id": 1, "v": 2})]).unwrap();
    let session = session_of(&dir).await;
    let soon = |notices: &[crate::notice::Notice]| {
        let kinds = notices.iter().map(|notice| notice.kind());
        kinds.filter(|kind| matches!(kind, crate::notice::NoticeKind::ExpiresSoon { snapshot: 1, .. })).count()
    };
    let red = session.reconcile("RECONCILE t@v1 WITH t ON KEY (id)", None).await.unwrap();
    assert_eq!((red.report.differences(), soon(&red.notices)), (1, 1), "{:?}", red.notices);
    let judged = session.verdict("RECONCILE t@v1 WITH t ON KEY (id)", None).await.unwrap();
    assert_eq!(soon(&judged.notices), 1, "{:?}", judged.notices);
    let same = session.reconcile("RECONCILE t@v1 WITH t@v1 ON KEY (id)", None).await.unwrap();
    assert_eq!(soon(&same.notices), 0);
}
