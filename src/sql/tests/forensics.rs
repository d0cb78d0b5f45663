//! What commits did, whether one landed, what met, and gates: through SQL.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::notice::NoticeKind;

const START: i64 = 1_776_300_000_000;

/// Three checkpoints, a repair, and a commit that never came to be.
fn payments(dir: &std::path::Path) -> TableBuilder {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir, "pay", "t", &spec).unwrap();
    for checkpoint in 1..=3 {
        let given = [json!({"id": checkpoint, "v": checkpoint})];
        let commit = table.commit().file(FileSpec::rows(&given)).user("cdc").identifier(checkpoint);
        commit.watermark(START + checkpoint * 1_000).time_millis(START + checkpoint * 60_000).publish().unwrap();
    }
    let given = [json!({"id": 1, "v": 100, "_SEQUENCE_NUMBER": 0})];
    table.commit().file(FileSpec::rows(&given)).user("repair").identifier(i64::MAX).publish().unwrap();
    let mut aside = TableBuilder::open(dir, "pay", "t").unwrap();
    let given = [json!({"id": 9, "v": 9})];
    let lost = aside.commit().file(FileSpec::rows(&given)).user("lost").prepare().unwrap();
    // an hour ago: a younger one may be on its way
    let list = table.root().join("manifest").join(&lost.snapshot().delta_manifest_list);
    let hour = std::time::SystemTime::now() - Duration::from_secs(3_600);
    std::fs::File::options().write(true).open(list).unwrap().set_modified(hour).unwrap();
    table
}

#[tokio::test]
async fn commits_and_their_files_are_tables() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = payments(dir.path());
    let whole = table.commit().remove_all().kind(CommitKind::Overwrite).user("repair").identifier(i64::MAX);
    whole.publish().unwrap();
    let session = session_of(&dir).await;
    let commits = "SELECT commit_user, commit_identifier, first_snapshot, last_snapshot, rows_added, rows_deleted, \
                   overwrite_snapshots FROM t$commits ORDER BY 3";
    assert_eq!(
        rows(&session, commits).await,
        ["cdc,1,1,1,1,0,NULL", "cdc,2,2,2,1,0,NULL", "cdc,3,3,3,1,0,NULL", "repair,9223372036854775807,4,5,1,4,5"]
    );
    let files = "SELECT snapshot_id, list, change, level, record_count, min_key FROM t$commit_files \
                 WHERE commit_user = 'cdc' ORDER BY 1";
    assert_eq!(rows(&session, files).await, ["1,delta,ADD,0,1,[1]", "2,delta,ADD,0,1,[2]", "3,delta,ADD,0,1,[3]"]);
    let rate = "SELECT sum(commits), sum(empty_commits) FROM t$commit_rate";
    assert_eq!(rows(&session, rate).await, ["4,0"]);
    let rate = "SELECT count(*) FROM paimon_commit_rate('t', window => INTERVAL '1' DAY)";
    assert_eq!(rows(&session, rate).await, ["2"]);
    // a pin marks, and hides nothing
    rows(&session, "PIN TABLE t AT (VERSION => 2)").await;
    let pinned = "SELECT first_snapshot FROM t$commits WHERE pinned";
    assert_eq!(rows(&session, pinned).await, ["2"]);
    assert_eq!(rows(&session, "SELECT count(*) FROM t$commits").await, ["4"]);
}

#[tokio::test]
async fn lookups_anomalies_conflicts_and_stray_files_are_functions() {
    let dir = tempfile::tempdir().unwrap();
    let _table = payments(dir.path());
    let session = session_of(&dir).await;
    for (call, status) in [
        ("'t', 'cdc', 2", "COMMITTED,2"),
        ("'pay.t', 'cdc', 4", "NOT_COMMITTED,NULL"),
        ("'t', 'cdc', 0", "SUPERSEDED,3"),
        ("'t', 'repair', 'batch'", "COMMITTED,4"),
        ("table => 't', user => 'nobody', identifier => 1", "NOT_COMMITTED,NULL"),
    ] {
        let sql = format!("SELECT status, snapshots FROM paimon_lookup_commit({call})");
        assert_eq!(rows(&session, &sql).await, [status], "{call}");
    }
    let found = "SELECT detector, snapshots, severity FROM paimon_anomalies('t')";
    assert_eq!(rows(&session, found).await, ["D-18,NULL,error", "D-9,3, 4,error"]);
    let stray = "SELECT kind, class, count(*) FROM t$unreferenced_files GROUP BY 1, 2 ORDER BY 1";
    assert_eq!(
        rows(&session, stray).await,
        ["data,failed attempt,1", "manifest list,failed attempt,2", "manifest,failed attempt,1"]
    );
    let readable = "SELECT DISTINCT readable FROM t$unreferenced_files";
    assert_eq!(rows(&session, readable).await, ["true"]);
    let data = "SELECT file_path FROM t$unreferenced_files WHERE kind = 'data'";
    let path = rows(&session, data).await.remove(0);
    let path = path.strip_prefix("file://").or(path.strip_prefix("file:")).unwrap_or(&path).to_string();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
    assert_eq!(rows(&session, &data.replace("file_path", "readable")).await, ["false"]);
    for (sql, code) in [
        ("SELECT * FROM paimon_lookup_commit('t', 'cdc')", "BadArgument"),
        ("SELECT * FROM paimon_lookup_commit('t', user => 'cdc', identifier => 'x')", "BadArgument"),
        ("SELECT * FROM paimon_lookup_commit('nope', 'cdc', 1)", "TableNotFound"),
        ("SELECT * FROM paimon_conflicts('t', snapshot => 99)", "SnapshotNotFound"),
        ("SELECT * FROM paimon_commit_rate('t', window => INTERVAL '1' MONTH)", "BadArgument"),
        ("SELECT * FROM paimon_anomalies('t@v2')", "BadArgument"),
    ] {
        assert_eq!(super::code(&session, sql).await, code, "{sql}");
    }
}

#[tokio::test]
async fn counts_of_a_table_whose_records_expire_say_so() {
    let expiring = "expired records may still be counted";
    for after in [None, Some("7 d")] {
        let dir = tempfile::tempdir().unwrap();
        let spec = TableSpec::new(&[("id", "INT NOT NULL")]).primary_key(&["id"]).option("bucket", "1");
        let spec = after.iter().fold(spec, |spec, after| spec.option("record-level.expire-time", after));
        let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
        table.append(&[json!({"id": 1})]).unwrap();
        let session = session_of(&dir).await;
        for sql in [
            "SELECT * FROM paimon_row_accounting('t')",
            "SELECT * FROM paimon_row_accounting('t', mode => 'metadata')",
            "SELECT * FROM t$row_accounting",
        ] {
            let told = session.run_one(sql).await.unwrap().notices;
            let count = told.iter().filter(|notice| notice.contains(expiring)).count();
            assert_eq!(count, usize::from(after.is_some()), "{sql}: {told:?}");
        }
        let (_, counted) = session.counts("t", None).await.unwrap();
        assert_eq!(counted.notices.iter().any(|notice| notice.contains(expiring)), after.is_some());
    }
}

#[tokio::test]
async fn gates_open_at_the_oldest_snapshot_and_pin_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = payments(dir.path());
    let session = session_of(&dir).await;
    let wait = |until: &str| {
        format!("WAIT FOR TABLE t UNTIL {until} TIMEOUT INTERVAL '100' MILLISECOND POLL INTERVAL '10' MILLISECOND PIN")
    };
    for (until, snapshot) in [
        (format!("WATERMARK >= {}", START + 1_500), 2),
        ("COMMIT ('cdc', 3)".to_string(), 3),
        ("SNAPSHOT >= 2 AND COMMIT ('repair', 'batch')".to_string(), 4),
        ("QUERY (SELECT max(id) >= 2 FROM t)".to_string(), 2),
        (format!("WATERMARK >= {} AND QUERY (SELECT count(*) = 3 FROM t)", START + 1_000), 3),
    ] {
        let sql = wait(&until);
        let opened = session.run_one(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        drop(opened);
        let pinned = rows(&session, "SELECT snapshot_id FROM t$snapshots WHERE pinned").await;
        assert_eq!(pinned, [snapshot.to_string()], "{until}");
        rows(&session, "UNPIN ALL").await;
    }
    for until in ["SNAPSHOT >= 5", "TAG 'eod'", "COMMIT ('cdc', 4)", "QUERY (SELECT count(*) > 100 FROM t)"] {
        let error = session.run_one(&wait(until)).await.unwrap_err();
        assert_eq!(error.code(), "GateTimeout", "{until}");
        assert!(error.message().contains("the newest snapshot is 4"), "{error}");
    }
    assert_eq!(super::code(&session, &wait("QUERY (SELECT id FROM t)")).await, "BadCondition");
    // what comes while it waits opens it
    let waiting = async {
        let sql =
            "WAIT FOR TABLE t UNTIL COMMIT ('cdc', 4) TIMEOUT INTERVAL '20' SECOND POLL INTERVAL '20' MILLISECOND";
        rows(&session, &format!("{sql} PIN LATEST")).await
    };
    let coming = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let given = [json!({"id": 4, "v": 4})];
        table.commit().file(FileSpec::rows(&given)).user("cdc").identifier(4).publish().unwrap();
    };
    let (opened, ()) = tokio::join!(waiting, coming);
    assert!(opened[0].starts_with("pay.t,true,"), "{opened:?}");
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["4"]);
}

#[tokio::test]
async fn tables_are_aligned_by_watermark_and_by_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let _table = payments(dir.path());
    let spec = TableSpec::new(&[("id", "INT NOT NULL")]).primary_key(&["id"]).option("bucket", "1");
    let mut orders = TableBuilder::create(dir.path(), "pay", "orders", &spec).unwrap();
    for checkpoint in [1, 3] {
        let commit = orders.commit().file(FileSpec::rows(&[json!({"id": checkpoint})])).user("cdc");
        let commit = commit.identifier(checkpoint).watermark(START + checkpoint * 900);
        commit.time_millis(START + checkpoint * 60_000).publish().unwrap();
    }
    let session = session_of(&dir).await;
    for (align, states) in [
        ("ALIGN".to_string(), ["2", "3"]),
        (format!("ALIGN ON WATERMARK {}", START + 1_000), ["2", "1"]),
        ("ALIGN ON IDENTIFIER 2 USER 'cdc'".to_string(), ["1", "2"]),
        ("ALIGN ON IDENTIFIER 3 USER 'cdc'".to_string(), ["2", "3"]),
        (format!("ALIGN ON TIMESTAMP to_timestamp_millis({})", START + 120_000), ["1", "2"]),
    ] {
        rows(&session, &format!("PIN TABLES orders, t {align}")).await;
        let pinned = "SELECT 'orders', snapshot_id FROM orders$snapshots WHERE pinned UNION ALL \
                      SELECT 't', snapshot_id FROM t$snapshots WHERE pinned ORDER BY 1";
        let found: Vec<String> =
            rows(&session, pinned).await.iter().filter_map(|row| Some(row.split_once(',')?.1.to_string())).collect();
        assert_eq!(found, states, "{align}");
    }
    for (align, code) in [
        ("ALIGN ON IDENTIFIER 3 USER 'nobody'", "CommitNotFound"),
        ("ALIGN ON IDENTIFIER 'x' USER 'cdc'", "BadArgument"),
        ("ALIGN ON TIMESTAMP '1990-01-01'", "TimestampTooEarly"),
    ] {
        assert_eq!(super::code(&session, &format!("PIN TABLES orders, t {align}")).await, code, "{align}");
    }
}

#[tokio::test]
async fn a_table_whose_newest_snapshot_is_torn_is_told_of_as_far_as_it_can_be() {
    let (dir, table) = three_snapshots();
    std::fs::write(table.root().join("snapshot/snapshot-3"), "{").unwrap();
    let session = session_of(&dir).await;
    // rows of an older state are no answer to a query of the newest
    assert!(ask(&session, "SELECT count(*) FROM t").await.is_err());
    let sql = "SELECT detector, snapshots FROM paimon_anomalies('t')";
    let result = session.run_one(sql).await.unwrap();
    let told: Vec<String> = result.notices.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|told| told.contains("snapshot 3, the newest of pay.t, cannot be read")), "{told:?}");
    assert!(all(result).await.0.contains(&vec!["D-15".to_string(), "3".to_string()]));
    assert_eq!(rows(&session, "SELECT max(last_snapshot) FROM t$commits").await, ["2"]);
    let found = rows(&session, "SELECT status FROM paimon_lookup_commit('t', 'nobody', 1)").await;
    assert_eq!(found, ["UNKNOWN"], "the torn one may be it");
}

#[tokio::test]
async fn what_was_rolled_back_is_marked_in_the_tables_of_commits() {
    let (dir, mut table) = three_snapshots();
    table.tag("gone", 3).unwrap();
    table.expire(3).unwrap();
    std::fs::write(table.root().join("snapshot/LATEST"), "2").unwrap();
    table.append(&[json!({"id": 5, "v": 50})]).unwrap();
    let session = session_of(&dir).await;
    let kept = "SELECT DISTINCT kept_as FROM t$commits WHERE first_snapshot = 3 ORDER BY 1";
    assert_eq!(rows(&session, kept).await, ["snapshot", "tag gone (rolled back)"]);
    let kept = "SELECT DISTINCT kept_as FROM t$commit_files WHERE snapshot_id = 3 ORDER BY 1";
    assert_eq!(rows(&session, kept).await, ["snapshot", "tag gone (rolled back)"]);
    assert!(rows(&session, "SELECT detector FROM paimon_anomalies('t')").await.is_empty());
}

#[tokio::test]
async fn a_gate_over_several_tables_takes_the_oldest_states_where_they_do() {
    let dir = tempfile::tempdir().unwrap();
    let _table = payments(dir.path());
    let spec = TableSpec::new(&[("id", "INT NOT NULL")]).primary_key(&["id"]).option("bucket", "1");
    let mut orders = TableBuilder::create(dir.path(), "pay", "orders", &spec).unwrap();
    for id in 1..=2 {
        orders.append(&[json!({"id": id})]).unwrap();
    }
    let session = session_of(&dir).await;
    let sql = "WAIT FOR TABLE t, orders UNTIL SNAPSHOT >= 1 AND QUERY (SELECT count(*) >= 1 FROM t JOIN orders USING (id)) \
               TIMEOUT INTERVAL '1' SECOND PIN";
    rows(&session, sql).await;
    for table in ["t", "orders"] {
        let pinned = format!("SELECT snapshot_id FROM {table}$snapshots WHERE pinned");
        assert_eq!(rows(&session, &pinned).await, ["1"], "{table}");
    }
}

#[tokio::test]
async fn a_gate_that_takes_the_newest_states_of_several_tables_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let _table = payments(dir.path());
    let spec = TableSpec::new(&[("id", "INT NOT NULL")]).primary_key(&["id"]).option("bucket", "1");
    let mut orders = TableBuilder::create(dir.path(), "pay", "orders", &spec).unwrap();
    for id in 1..=3 {
        orders.append(&[json!({"id": id})]).unwrap();
    }
    let session = session_of(&dir).await;
    for (tables, query, newest) in [
        ("t, orders", "SELECT count(*) >= 1 FROM t JOIN orders USING (id)", false),
        ("t, orders", "SELECT count(*) >= 2 FROM t JOIN orders USING (id)", true),
        ("orders", "SELECT count(*) >= 2 FROM orders", false),
    ] {
        let sql =
            format!("WAIT FOR TABLE {tables} UNTIL SNAPSHOT >= 1 AND QUERY ({query}) TIMEOUT INTERVAL '1' SECOND");
        let told = session.run_one(&sql).await.unwrap().notices;
        assert_eq!(told.iter().any(|notice| notice.contains("the newest of pay.t, pay.orders")), newest, "{told:?}");
    }
}

#[tokio::test]
async fn several_users_that_raise_a_watermark_are_told_by_gates_and_alignments() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL")]).primary_key(&["id"]).option("bucket", "1");
    for (name, second) in [("one", "cdc"), ("two", "repair")] {
        let mut table = TableBuilder::create(dir.path(), "pay", name, &spec).unwrap();
        for (at, user) in (1i64..).zip(["cdc", "cdc", second]) {
            let commit = table.commit().file(FileSpec::rows(&[json!({"id": at})])).user(user).identifier(at * 2);
            commit.watermark(START + at * 1_000).publish().unwrap();
        }
    }
    let session = session_of(&dir).await;
    let several = async |sql: String| {
        let told = session.run_one(&sql).await.unwrap().notices;
        told.iter().any(|notice| matches!(notice.kind(), NoticeKind::SeveralRaiseWatermark { .. }))
    };
    for (name, told) in [("one", false), ("two", true)] {
        let until = format!("WATERMARK >= {}", START + 1_500);
        let wait = format!("WAIT FOR TABLE {name} UNTIL {until} TIMEOUT INTERVAL '0' SECOND");
        assert_eq!(several(wait).await, told, "{name}");
        // other conditions rest on no watermark
        let wait = format!("WAIT FOR TABLE {name} UNTIL SNAPSHOT >= 2 TIMEOUT INTERVAL '0' SECOND");
        assert!(!several(wait).await);
        assert_eq!(several(format!("PIN TABLES {name} ALIGN ON WATERMARK {}", START + 1_500)).await, told, "{name}");
    }
    // a checkpoint without data: the one before it, told
    let before = async |sql: &str| {
        let told = session.run_one(sql).await.unwrap().notices;
        told.into_iter().find(|notice| matches!(notice.kind(), NoticeKind::AlignedBefore { .. }))
    };
    assert!(before("PIN TABLES one ALIGN ON IDENTIFIER 4 USER 'cdc'").await.is_none());
    let told = before("PIN TABLES one ALIGN ON IDENTIFIER 5 USER 'cdc'").await.unwrap();
    let NoticeKind::AlignedBefore { table, user, wanted, found } = told.kind() else { panic!("{told}") };
    assert_eq!([table, user, wanted, found], ["pay.one", "cdc", "5", "4"]);
}

#[tokio::test]
async fn files_of_commits_that_a_tag_proves_to_be_rolled_back_are_told_as_such() {
    let (dir, table) = three_snapshots();
    table.tag("gone", 2).unwrap();
    for id in [2, 3] {
        table.expire(id).unwrap();
    }
    std::fs::write(table.root().join("snapshot/LATEST"), "1").unwrap();
    let session = session_of(&dir).await;
    let stray = "SELECT kind, class, count(*) FROM t$unreferenced_files GROUP BY 1, 2 ORDER BY 1";
    // those of 3; the tag holds those of 2
    let expected = ["data,rolled back,1", "manifest list,rolled back,2", "manifest,rolled back,1"];
    assert_eq!(rows(&session, stray).await, expected);
}

/// Three checkpoints, and a repair that was writing all the while: a minute between commits.
fn overlapping(dir: &std::path::Path) -> TableBuilder {
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir, "pay", "t", &spec).unwrap();
    for checkpoint in 1..=3 {
        let given = [json!({"id": checkpoint, "v": checkpoint, "_SEQUENCE_NUMBER": checkpoint})];
        table.commit().file(FileSpec::rows(&given)).user("cdc").identifier(checkpoint).publish().unwrap();
    }
    let given = [json!({"id": 1, "v": 100, "_SEQUENCE_NUMBER": 0})];
    table.commit().file(FileSpec::rows(&given)).user("repair").identifier(i64::MAX).publish().unwrap();
    table
}

#[tokio::test]
async fn functions_over_the_past_are_asked_as_of_a_state() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = overlapping(dir.path());
    table.tag("eod", 3).unwrap();
    let session = session_of(&dir).await;
    let lookup =
        |at: &str| format!("SELECT status, as_of_snapshot FROM paimon_lookup_commit('t', 'repair', 'batch'{at})");
    assert_eq!(rows(&session, &lookup("")).await, ["COMMITTED,4"]);
    for at in [", at => 3", ", at => 'eod'"] {
        assert_eq!(rows(&session, &lookup(at)).await, ["NOT_COMMITTED,3"], "{at}");
    }
    let inverted = |at: &str| format!("SELECT detector FROM paimon_anomalies('t'{at}) WHERE detector = 'D-9'");
    assert_eq!(rows(&session, &inverted("")).await, ["D-9"]);
    assert_eq!(rows(&session, &inverted(", from => 1, at => 2")).await, [""; 0]);
    let history = |at: &str| format!("SELECT snapshot_id FROM paimon_key_history('t', key => 1{at}) ORDER BY 1");
    assert_eq!(rows(&session, &history("")).await, ["1", "4"]);
    assert_eq!(rows(&session, &history(", at => 3")).await, ["1"]);
    let rate = "SELECT sum(commits) FROM paimon_commit_rate('t', at => 2)";
    assert_eq!(rows(&session, rate).await, ["2"]);
    table.append(&[json!({"id": 9, "v": 9})]).unwrap();
    let met = |of: &str| format!("SELECT DISTINCT snapshot_id FROM paimon_conflicts('t'{of}) ORDER BY 1");
    assert_eq!(rows(&session, &met("")).await, ["4", "5"]);
    assert_eq!(rows(&session, &met(", at => 4")).await, ["4"]);
    let first = crate::testing::builder::FIRST_COMMIT_MILLIS;
    let time = |id: i64| format!("to_timestamp_millis({})", first + (id - 1) * 60_000);
    assert_eq!(rows(&session, &met(&format!(", since => {}, until => {}", time(4), time(4)))).await, ["4"]);
    assert_eq!(rows(&session, &met(&format!(", from_time => {}", time(5)))).await, ["5"]);
    for (sql, code, told) in [
        ("paimon_commit_keys('t', snapshot => 2, at => 2)", "BadArgument", "snapshot => 102"),
        ("paimon_compare(left => 't', right => 't', key => 'id', at => 2)", "BadArgument", "left => 'db.t@v3'"),
        ("paimon_anomalies('t', to => 2, at => 2)", "BadArgument", "given twice"),
        ("paimon_conflicts('t', since => 5)", "AmbiguousTimestamp", ""),
        ("paimon_lookup_commit('t', 'cdc', 1, at => 99)", "SnapshotNotFound", ""),
    ] {
        let error = ask(&session, &format!("SELECT * FROM {sql}")).await.unwrap_err();
        assert!(error.code() == code && error.message().contains(told), "{sql}: {error:?}");
    }
}

#[tokio::test]
async fn each_item_of_a_conflict_has_its_confidence() {
    let dir = tempfile::tempdir().unwrap();
    let table = overlapping(dir.path());
    let mut aside = TableBuilder::open(dir.path(), "pay", "t").unwrap();
    let lost = aside.commit().file(FileSpec::rows(&[json!({"id": 9, "v": 9})])).user("lost").prepare().unwrap();
    let list = table.root().join("manifest").join(&lost.snapshot().delta_manifest_list);
    let hour = std::time::SystemTime::now() - Duration::from_secs(3_600);
    std::fs::File::options().write(true).open(list).unwrap().set_modified(hour).unwrap();
    let session = session_of(&dir).await;
    let sql = "SELECT first_base_confidence IS NOT NULL, final_base, final_base_confidence, latest, latest_confidence, \
               sides_confidence, attempts, attempts_confidence, units_confidence, reads_confidence \
               FROM paimon_conflicts('t', snapshot => 4) WHERE opponent_snapshot_id = 3";
    let result = session.run_one(sql).await.unwrap();
    let told: Vec<String> = result.notices.iter().map(ToString::to_string).collect();
    assert!(
        told.iter().any(|told| told.contains("rejected for good") && told.contains("1 manifest lists")),
        "{told:?}"
    );
    let found: Vec<String> = all(result).await.0.into_iter().map(|row| row.join(",")).collect();
    assert_eq!(found, ["true,3,exact,3,inferred,exact,1,inferred,exact,NULL"]);
    // the repair wrote a key of the first commit, with another value, and one of the second as it is
    let mut table = table;
    let given = [json!({"id": 2, "v": 2}), json!({"id": 3, "v": 33}), json!({"id": 4, "v": 4})];
    table.commit().file(FileSpec::rows(&given)).user("other").publish().unwrap();
    let keys = "SELECT opponent_snapshot_id, common_keys, differing_keys FROM paimon_conflicts('t', snapshot => 5";
    let session = session_of(&dir).await;
    assert_eq!(rows(&session, &format!("{keys})")).await, ["2,NULL,NULL", "3,NULL,NULL", "4,NULL,NULL"]);
    assert_eq!(rows(&session, &format!("{keys}, deep => true)")).await, ["2,1,0", "3,1,1", "4,0,0"]);
}
