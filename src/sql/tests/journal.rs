//! What statements read is recorded, and found again.

use std::path::Path;

use super::*;
use crate::notice::NoticeKind;

async fn recording(dir: &TempDir, journal: &Path) -> Session {
    let warehouse = Warehouse::open(dir.path().to_str().unwrap(), &BTreeMap::new()).await.unwrap();
    let config = SessionConfig { journal: Some(journal.to_path_buf()), ..SessionConfig::default() };
    Session::new(&warehouse, config).await.unwrap()
}

const READS: &str = "SELECT statement, outcome, rows, table_name, snapshot_id, commit_kind FROM recon.read_journal";

#[tokio::test]
async fn the_journal_tells_what_each_statement_read() {
    let (dir, _table) = three_snapshots();
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("reads.ndjson");
    let session = recording(&dir, &file).await;
    assert_eq!(rows(&session, READS).await, [""; 0], "what reads no table is not recorded");
    rows(&session, "SELECT * FROM t VERSION AS OF 2").await;
    rows(&session, "SELECT count(*) FROM t a JOIN t VERSION AS OF 1 b ON a.id = b.id").await;
    // given up before its rows
    drop(session.run_one("SELECT * FROM t").await.unwrap());
    // reads nothing either
    rows(&session, "PIN TABLE t AT (VERSION => 1)").await;
    assert_eq!(code(&session, "WAIT FOR TABLE t UNTIL SNAPSHOT >= 9 TIMEOUT INTERVAL '0' SECOND").await, "GateTimeout");
    // what it opened at, though it pins nothing
    rows(&session, "WAIT FOR TABLE t UNTIL SNAPSHOT >= 2 TIMEOUT INTERVAL '0' SECOND").await;
    assert_eq!(code(&session, "SELECT 1 / 0 FROM t").await, "Execution");
    // another session with the same journal sees it too
    let other = recording(&dir, &file).await;
    let read = rows(&other, READS).await;
    assert_eq!(
        read,
        [
            "SELECT,Execution,0,pay.t,1,APPEND",
            "SELECT,cancelled,0,pay.t,3,APPEND",
            "SELECT,complete,1,pay.t,1,APPEND",
            "SELECT,complete,1,pay.t,3,APPEND",
            "SELECT,complete,3,pay.t,2,APPEND",
            "WAIT,GateTimeout,0,pay.t,3,APPEND",
            "WAIT,complete,1,pay.t,2,APPEND",
        ]
    );
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("manifest-list") && !text.contains("VERSION AS OF"), "fingerprints, no statements: {text}");
    let without = session_of(&dir).await;
    assert_eq!(code(&without, READS).await, "NoJournal");
    assert_eq!(code(&session, "SELECT * FROM recon.other").await, "DatabaseNotFound");
    assert_eq!(code(&session, "SELECT * FROM recon.read_journal VERSION AS OF 1").await, "CannotTravel");
}

#[tokio::test]
async fn a_journal_that_cannot_be_written_is_told_and_fails_nothing() {
    let (dir, _table) = three_snapshots();
    let state = tempfile::tempdir().unwrap();
    let session = recording(&dir, state.path()).await;
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["2"]);
    let told = session.run_one("SELECT count(*) FROM t").await.unwrap().notices;
    assert!(told.iter().any(|notice| matches!(notice.kind(), NoticeKind::JournalFailed { .. })), "{told:?}");
    // once, and at the end where no statement followed
    assert!(session.journal_failure().is_none());
    let session = recording(&dir, state.path()).await;
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["2"]);
    assert!(session.journal_failure().is_some() && session.journal_failure().is_none());
}

#[tokio::test]
async fn conflicts_name_what_was_read_between_both_commits() {
    let dir = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")]).primary_key(&["id"]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let now = crate::storage::env::now_millis();
    let give = |id: i64| FileSpec::rows(&[json!({"id": id, "v": id, "_SEQUENCE_NUMBER": id})]);
    table.commit().file(give(1)).user("cdc").identifier(1).time_millis(now - 60_000).publish().unwrap();
    let file = state.path().join("reads.ndjson");
    let session = recording(&dir, &file).await;
    rows(&session, "SELECT count(*) FROM t").await;
    // published later than the read
    let late = table.commit().remove_all().kind(CommitKind::Overwrite).user("repair").identifier(7);
    late.time_millis(now + 60_000).publish().unwrap();
    let met = "SELECT snapshot_id, opponent_snapshot_id, verdict, recon_reads IS NOT NULL FROM paimon_conflicts('t', snapshot => 2)";
    let found = rows(&session, met).await;
    assert_eq!(found, ["2,1,read-timing problem,true"]);
    let reads = rows(&session, "SELECT recon_reads FROM paimon_conflicts('t', snapshot => 2)").await;
    assert!(reads[0].starts_with("SELECT of session ") && reads[0].ends_with("read snapshot 1"), "{reads:?}");
    let silent = session_of(&dir).await;
    assert_eq!(rows(&silent, met).await, ["2,1,normal competition,false"]);
}
