//! Pins of a session: what is said about them, what holds them, and the rows they mark.

use super::*;
use crate::notice::Notice;

/// A result by its columns.
async fn columns(session: &Session, sql: &str) -> Vec<BTreeMap<String, String>> {
    let result = session.run_one(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let names: Vec<String> = result.schema.fields().iter().map(|f| f.name().clone()).collect();
    let (rows, _) = all(result).await;
    rows.into_iter().map(|row| names.iter().cloned().zip(row).collect()).collect()
}

fn consumer(table: &TableBuilder, name: &str, next: i64) {
    let folder = table.root().join("consumer");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("consumer-{name}")), format!("{{\"nextSnapshot\": {next}}}")).unwrap();
}

#[tokio::test]
async fn pins_tell_who_holds_them_and_what_became_of_them() {
    let (dir, mut table) = three_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "SET TIME ZONE '+08:00'").await;
    assert!(columns(&session, "SHOW PINS").await.is_empty());
    rows(&session, "PIN TABLE t AT (VERSION => 2)").await;
    let pinned = columns(&session, "SHOW PINS").await.remove(0);
    let expected = [
        ("table", "pay.t"),
        ("branch", "main"),
        ("snapshot_id", "2"),
        ("user", "builder"),
        ("kind", "APPEND"),
        ("commit_time", "2026-04-16 09:01:00.000 +08:00"),
        ("watermark", "NULL"),
        ("expires_about", "NULL"),
        ("retained_by", "newest 10"),
        ("state", "ok"),
        ("pinned_as", "v2"),
        ("note", "after 9 more commits, and none came for long"),
    ];
    for (column, value) in expected {
        assert_eq!(pinned[column], value, "{column}");
    }
    let names = session.run_one("SHOW PINS").await.unwrap().schema;
    let names: Vec<&str> = names.fields().iter().map(|f| f.name().as_str()).collect();
    let known =
        "table branch snapshot_id uuid user identifier kind commit_time watermark age expires_about retained_by state";
    assert_eq!(names[..13].join(" "), known);

    consumer(&table, "late", 2);
    table.tag("eod", 2).unwrap();
    let held = columns(&session, "SHOW PINS").await.remove(0);
    assert_eq!(held["retained_by"], "tag eod, consumer late, newest 10");
    assert_eq!(held["note"], "tag 'eod' holds it until somebody deletes the tag");
    std::fs::remove_file(table.root().join("tag/tag-eod")).unwrap();

    // so many commits as to push it out, the last of them just now
    let now = crate::storage::env::now_millis();
    std::fs::remove_dir_all(table.root().join("consumer")).unwrap();
    for n in 0..12 {
        let row = FileSpec::rows(&[json!({"id": 50 + n, "v": 0})]);
        table.commit().file(row).time_millis(now - (12 - n) * 600_000).publish().unwrap();
    }
    let loose = columns(&session, "SHOW PINS").await.remove(0);
    assert_eq!((loose["retained_by"].as_str(), loose["note"].as_str()), ("NULL", "NULL"));
    assert!(loose["expires_about"].ends_with("+08:00"), "{loose:?}");
    let warned = session.run_one("PIN TABLE t AT (VERSION => 3)").await.unwrap();
    assert!(warned.notices.iter().any(|n| n.contains("snapshot 3 of pay.t may be expired")), "{:?}", warned.notices);
    let fresh = session.run_one("PIN TABLE t").await.unwrap();
    assert!(fresh.notices.is_empty(), "{:?}", fresh.notices);

    rows(&session, "PIN TABLE t AT (VERSION => 2)").await;
    for id in [1, 2] {
        std::fs::remove_file(table.root().join(format!("snapshot/snapshot-{id}"))).unwrap();
    }
    let gone = columns(&session, "SHOW PINS").await.remove(0);
    assert_eq!(gone["state"], "expired");
    assert!(gone["note"].contains("available 3..15"), "{gone:?}");
    assert_eq!(code(&session, "SELECT * FROM t").await, "SnapshotExpired");
}

#[tokio::test]
async fn shown_pins_tell_what_settings_choose_beside_them() {
    let (dir, _table) = three_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "PIN TABLE t AT (VERSION => 2)").await;
    assert!(session.run_one("SHOW PINS").await.unwrap().notices.is_empty());
    rows(&session, "SET 'paimon.scan.snapshot-id' = '3'").await;
    rows(&session, "SET 'paimon.file-index.read.enabled' = 'false'").await;
    let told: Vec<String> = session.run_one("SHOW PINS").await.unwrap().notices.iter().map(Notice::to_string).collect();
    assert_eq!(told, ["SET 'paimon.scan.snapshot-id' = '3' chooses too; RESET 'paimon.scan.snapshot-id' ends that"]);
}

#[tokio::test]
async fn live_tables_mark_the_pinned_row_and_only_under_a_pin() {
    let (dir, table) = three_snapshots();
    table.tag("eod", 2).unwrap();
    table.tag("now", 3).unwrap();
    consumer(&table, "c", 2);
    let session = session_of(&dir).await;
    for system in ["snapshots", "tags", "branches", "consumers"] {
        let sql = format!("SELECT pinned FROM t${system}");
        assert_eq!(code(&session, &sql).await, "ColumnNotFound", "{system}");
        // nor under what other engines can say
        rows(&session, "SET 'paimon.pay.t.scan.snapshot-id' = '2'").await;
        assert_eq!(code(&session, &sql).await, "ColumnNotFound", "{system}");
        rows(&session, "RESET paimon").await;
    }
    let plain = session.run_one("SELECT * FROM t$snapshots").await.unwrap().schema;
    rows(&session, "PIN TABLE t AT (VERSION => 2)").await;
    let marked = session.run_one("SELECT * FROM t$snapshots").await.unwrap().schema;
    assert_eq!(marked.fields()[..plain.fields().len()], plain.fields()[..]);
    assert_eq!(marked.fields().last().unwrap().name(), "pinned");
    assert_eq!(rows(&session, "SELECT snapshot_id, pinned FROM t$snapshots").await, ["1,false", "2,true", "3,false"]);
    assert_eq!(rows(&session, "SELECT tag_name, pinned FROM t$tags").await, ["eod,true", "now,false"]);
    assert_eq!(rows(&session, "SELECT consumer_id FROM t$consumers WHERE pinned").await, ["c"]);
    assert!(rows(&session, "SELECT * FROM t$branches WHERE pinned").await.is_empty());
    let both = "SELECT snapshot_id FROM t$snapshots WHERE pinned UNION ALL SELECT count(*) FROM t";
    assert_eq!(rows(&session, both).await, ["2", "3"]);
    rows(&session, "UNPIN ALL").await;
    assert_eq!(code(&session, "SELECT pinned FROM t$tags").await, "ColumnNotFound");
}

/// Reads, and pins for the session what was read; the notices.
async fn kept(session: &Session, sql: &str) -> Vec<Notice> {
    let result = session.run_one(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let readings = result.readings.clone();
    all(result).await;
    session.keep(&readings)
}

#[tokio::test]
async fn what_was_read_is_kept_as_it_was_read() {
    let (dir, mut table) = three_snapshots();
    table.tag("eod", 1).unwrap();
    table.expire(1).unwrap();
    let session = session_of(&dir).await;
    // the number alone would not be found any more
    assert!(kept(&session, "SELECT * FROM t VERSION AS OF 'eod'").await.is_empty());
    let pinned = columns(&session, "SHOW PINS").await.remove(0);
    assert_eq!((pinned["snapshot_id"].as_str(), pinned["state"].as_str()), ("1", "ok"), "{pinned:?}");
    assert_eq!(rows(&session, "SELECT id, v FROM t").await, ["1,10", "2,20"]);
    // the first reading counts
    assert!(kept(&session, "SELECT * FROM t VERSION AS OF 2").await.is_empty());
    assert_eq!(session.session_pins()[0].snapshot_id, Some(1));
    rows(&session, "UNPIN ALL").await;

    // a latest snapshot stays, whatever is committed later
    kept(&session, "SELECT * FROM t").await;
    table.append(&[json!({"id": 4, "v": 40})]).unwrap();
    assert_eq!(rows(&session, "SELECT id, v FROM t").await, ["2,21", "3,30"]);
    assert_eq!(columns(&session, "SHOW PINS").await[0]["pinned_as"], "latest");
    rows(&session, "UNPIN ALL").await;

    // changes are no state, and an option has chosen already
    kept(&session, "SELECT * FROM paimon_delta('t', 2, 3)").await;
    rows(&session, "SET 'paimon.pay.t.scan.snapshot-id' = '2'").await;
    kept(&session, "SELECT * FROM t").await;
    assert!(session.session_pins().is_empty(), "{:?}", session.session_pins());
}

#[tokio::test]
async fn a_number_that_was_given_anew_is_not_what_was_kept() {
    let (dir, table) = three_snapshots();
    let session = session_of(&dir).await;
    let result = session.run_one("SELECT * FROM t").await.unwrap();
    let readings = result.readings.clone();
    all(result).await;
    // rolled back to 2 and committed again while the rows were on their way
    table.expire(3).unwrap();
    std::fs::write(table.root().join("snapshot/LATEST"), "2").unwrap();
    let mut again = TableBuilder::open(dir.path(), "pay", "t").unwrap();
    assert_eq!(again.append(&[json!({"id": 77, "v": 77})]).unwrap().id.0, 3);
    assert!(session.keep(&readings).is_empty());
    assert_eq!(session.session_pins()[0].snapshot_id, Some(3));
    assert_eq!(code(&session, "SELECT * FROM t").await, "PinLost");
}

#[tokio::test]
async fn a_table_read_at_two_states_is_not_kept_and_that_is_told() {
    let (dir, _table) = three_snapshots();
    let spec = TableSpec::new(&[("id", "INT")]).option("bucket", "-1");
    let mut other = TableBuilder::create(dir.path(), "pay", "log", &spec).unwrap();
    other.append(&[json!({"id": 1})]).unwrap();
    let session = session_of(&dir).await;
    let sql = "SELECT count(*) FROM t VERSION AS OF 1 a JOIN t b ON a.id = b.id JOIN log ON log.id < b.id";
    let told = kept(&session, sql).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("pay.t was read at several states (snapshots 1, 3)"), "{told:?}");
    let pinned: Vec<_> = session.session_pins().into_iter().map(|pin| (pin.table, pin.snapshot_id)).collect();
    assert_eq!(pinned, [("pay.log".to_string(), Some(1))]);
    // a state beside the one that the session has is none of the session's
    rows(&session, "PIN TABLE t AT (VERSION => 2)").await;
    assert!(kept(&session, "SELECT count(*) FROM t VERSION AS OF 1 a JOIN t b ON a.id = b.id").await.is_empty());
    let pinned: Vec<_> = session.session_pins().into_iter().map(|pin| pin.snapshot_id).collect();
    assert_eq!(pinned, [Some(1), Some(2)]);
}

#[tokio::test]
async fn several_tables_are_pinned_all_or_none() {
    let (dir, mut table) = three_snapshots();
    let spec = TableSpec::new(&[("a", "INT")]).option("bucket", "-1");
    let mut other = TableBuilder::create(dir.path(), "pay", "log", &spec).unwrap();
    other.append(&[json!({"a": 1})]).unwrap();
    let session = session_of(&dir).await;
    let pinned = async || {
        let rows = columns(&session, "SHOW PINS").await;
        rows.into_iter().map(|row| format!("{}@{}", row["table"], row["snapshot_id"])).collect::<Vec<_>>()
    };
    rows(&session, "PIN TABLE t AT (VERSION => 1)").await;
    for (sql, expected) in [
        ("PIN TABLES t, nowhere", "TableNotFound"),
        ("PIN TABLES t, log VERSION AS OF 9", "SnapshotNotFound"),
        ("PIN TABLES t AT (VERSION => 2), log AT (VERSION => 9)", "SnapshotNotFound"),
        ("PIN TABLE t@v2 AT (VERSION => 3)", "ConflictingSelectors"),
        ("PIN TABLE t$snapshots", "BadSelector"),
        ("PIN TABLES t, log ALIGN ON WATERMARK TIMESTAMP '2026-04-16 10:00:00'", "WatermarkNotReached"),
        ("PIN TABLES t, log ALIGN", "NoWatermark"),
        ("PIN TABLE t AT (VERSION => 2) RETAIN INTERVAL '2' HOUR", "NotYet"),
    ] {
        assert_eq!(code(&session, sql).await, expected, "{sql}");
        assert_eq!(pinned().await, ["pay.t@1"], "{sql}");
    }
    // without a clause: what is the latest now, not what was pinned
    rows(&session, "PIN TABLE t").await;
    table.append(&[json!({"id": 9, "v": 9})]).unwrap();
    assert_eq!(pinned().await, ["pay.t@3"]);
    rows(&session, "PIN DATABASE pay AT (TIMESTAMP => '2026-04-16 01:00:00')").await;
    assert_eq!(pinned().await, ["pay.t@1", "pay.log@1"]);
    // options in force are those of the statement, not those of the moment of pinning
    rows(&session, "SET 'paimon.pay.t.scan.bucket' = '7'").await;
    assert!(rows(&session, "SELECT * FROM t").await.is_empty());
    rows(&session, "RESET 'paimon.pay.t.scan.bucket'").await;
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["2"]);
    rows(&session, "UNPIN TABLE log").await;
    assert_eq!(pinned().await, ["pay.t@1"]);
    assert_eq!(code(&session, "UNPIN TABLE log").await, "NotPinned");
}

#[tokio::test]
async fn a_broken_tag_or_consumer_hides_no_pin() {
    let (dir, mut table) = three_snapshots();
    let session = session_of(&dir).await;
    rows(&session, "PIN TABLE t AT (VERSION => 1)").await;
    std::fs::create_dir_all(table.root().join("tag")).unwrap();
    std::fs::write(table.root().join("tag/tag-zz"), "{").unwrap();
    consumer(&table, "late", 2);
    std::fs::write(table.root().join("consumer/consumer-torn"), "{").unwrap();
    let pinned = columns(&session, "SHOW PINS").await.remove(0);
    assert_eq!(pinned["state"], "ok");
    let note = "tag 'zz' cannot be read, consumer 'torn' cannot be read: it may be kept longer";
    assert!(pinned["note"].ends_with(note), "{}", pinned["note"]);
    assert_eq!(session.versions("t").await.unwrap().0, [3, 2, 1]);
    table.append(&[json!({"id": 9, "v": 9})]).unwrap();
    rows(&session, "PIN TABLE t AT (VERSION => 1)").await;
    table.expire(1).unwrap();
    assert_eq!(columns(&session, "SHOW PINS").await[0]["state"], "expired");
    assert_eq!(code(&session, "SELECT * FROM t").await, "SnapshotExpired");
    // the table that tells of tags tells of this one
    let notices = session.run_one("SELECT * FROM t$tags").await.unwrap().notices.join("; ");
    assert!(notices.contains("tag 'zz' cannot be read"), "{notices}");
}

#[tokio::test]
async fn a_pin_that_cannot_be_asked_about_is_shown_beside_the_others() {
    let (dir, table) = three_snapshots();
    let spec = TableSpec::new(&[("a", "INT")]).option("bucket", "-1");
    let mut log = TableBuilder::create(dir.path(), "pay", "log", &spec).unwrap();
    log.append(&[json!({"a": 1})]).unwrap();
    let session = session_of(&dir).await;
    rows(&session, "PIN TABLES t AT (VERSION => 1), log AT (VERSION => 1)").await;
    std::fs::write(table.root().join("snapshot/snapshot-1"), "{").unwrap();
    let pins = columns(&session, "SHOW PINS").await;
    let states: Vec<&str> = pins.iter().map(|pin| pin["state"].as_str()).collect();
    assert_eq!(states, ["damaged", "ok"]);
    assert!(pins[0]["note"].len() > 10, "{:?}", pins[0]);
}

#[tokio::test]
async fn a_database_is_pinned_past_its_tables_without_snapshots() {
    let (dir, _table) = three_snapshots();
    let mut empty = TableBuilder::create(dir.path(), "pay", "empty", &TableSpec::new(&[("a", "INT")])).unwrap();
    let session = session_of(&dir).await;
    for clause in ["VERSION AS OF 2", "TIMESTAMP AS OF '2027-01-01'"] {
        let pinned = session.run_one(&format!("PIN DATABASE pay {clause}")).await.unwrap();
        let told: Vec<String> = pinned.notices.iter().map(Notice::to_string).collect();
        let expected = "pay.empty has no snapshot, so none of the past either: it is pinned as empty";
        assert!(told.iter().any(|told| told == expected), "{clause}: {told:?}");
    }
    empty.append(&[json!({"a": 1})]).unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM empty").await, ["0"]);
    // a table that is named must have what is asked of it, and one that is refused leaves the others as they were
    rows(&session, "UNPIN ALL").await;
    TableBuilder::create(dir.path(), "pay", "other", &TableSpec::new(&[("a", "INT")])).unwrap();
    assert_eq!(code(&session, "PIN TABLE t VERSION AS OF 2, other VERSION AS OF 2").await, "NoSnapshot");
    assert!(session.session_pins().is_empty());
}
