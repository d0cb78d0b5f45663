//! What commits are marked with, as people write and read it: identifiers of batch jobs, watermarks at the end of input, tags
//! that are called as a snapshot.

use super::*;

async fn told(session: &Session, sql: &str) -> (Vec<String>, Vec<String>) {
    let result = session.run(sql).await.unwrap().pop().unwrap();
    let pins = result.pins.iter().map(|pin| pin.text.clone()).collect();
    (pins, result.notices.iter().map(ToString::to_string).collect())
}

/// `t` with snapshots 1 (watermark 2026), 2 (batch, end of input) and a tag `2` on the first.
async fn marked() -> (TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("a", "INT")]).option("bucket", "-1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let row = |a: i32| FileSpec::rows(&[json!({"a": a})]);
    table.commit().file(row(1)).user("u").identifier(7).watermark(1_767_225_600_000).publish().unwrap();
    table.commit().file(row(2)).user("u").identifier(i64::MAX).watermark(i64::MAX).publish().unwrap();
    table.tag("2", 1).unwrap();
    let session = session_of(&dir).await;
    (dir, session)
}

#[tokio::test]
async fn commits_of_batch_jobs_are_called_batch() {
    let (_dir, session) = marked().await;
    for clause in ["t AT (COMMIT => ('u', 'batch'))", "\"t@commit:u:batch\""] {
        let (pins, _) = told(&session, &format!("SELECT * FROM {clause}")).await;
        assert!(pins[0].contains("snapshot 2,") && pins[0].contains("identifier batch"), "{clause}: {pins:?}");
    }
    let error = session.run("SELECT * FROM t AT (COMMIT => ('u', 8))").await.map(|_| ()).unwrap_err();
    assert!(error.message().ends_with("of 'u' identifier 7 and identifier batch"), "{error}");
    let error = session.run("SELECT * FROM t AT (COMMIT => ('x', 'batch'))").await.map(|_| ()).unwrap_err();
    assert!(error.message().contains("identifier batch; available"), "{error}");
    assert!(error.message().ends_with("of users 'u'"), "{error}");
}

#[tokio::test]
async fn only_a_number_is_taken_for_seconds_and_no_time_reaches_the_end_of_input() {
    let (_dir, session) = marked().await;
    let decades = |notices: &[String]| notices.iter().any(|notice| notice.contains("decades"));
    for (watermark, wanted) in [
        ("1767225600", true),
        ("'1767225600'", true),
        ("'1970-01-21'", false),
        ("TIMESTAMP '1970-01-21 00:00:00'", false),
        // only the end of input is after it
        ("1767225600001", false),
        ("'2026-02-01'", false),
    ] {
        let (pins, notices) = told(&session, &format!("SELECT * FROM t AT (WATERMARK => {watermark})")).await;
        assert_eq!(decades(&notices), wanted, "{watermark}: {notices:?}");
        let at_end = pins[0].contains("watermark end of input");
        assert_eq!(at_end, pins[0].contains("snapshot 2,"), "{pins:?}");
    }
    assert_eq!(rows(&session, "SELECT count(*) FROM t$snapshots").await, ["2"]);
}

#[tokio::test]
async fn a_tag_called_as_a_snapshot_is_told_with_both_ways_out_by_counts_too() {
    let (_dir, session) = marked().await;
    let (_, notices) = told(&session, "SELECT a FROM \"t@2\"").await;
    assert!(notices.iter().any(|told| told.ends_with("VERSION AS OF 2 or pay.t@v2 reads it")), "{notices:?}");
    let (_, notices) = told(&session, "SELECT a FROM t@v2").await;
    assert!(notices.iter().any(|told| told.ends_with("VERSION AS OF '2' or pay.t@tag:2 reads it")), "{notices:?}");
    for table in ["\"t@2\"", "t version as of '2'"] {
        let (_, counted) = session.counts(table, None).await.unwrap();
        assert!(counted.notices.iter().any(|told| told.contains("snapshot 2 exists too")), "{table}");
    }
}

#[tokio::test]
async fn files_that_were_looked_for_are_told_as_found() {
    let (_dir, session) = marked().await;
    let told_of = async || told(&session, "SELECT count(*) FROM t").await.1.join("; ");
    assert!(told_of().await.contains("verify_files = true checks"));
    session.run("SET lakepin.verify_files = true").await.unwrap();
    assert!(told_of().await.contains("all of them were found"), "{}", told_of().await);
}

#[tokio::test]
async fn a_view_is_not_pinned_and_a_column_of_another_relation_is_named_with_it() {
    let (_dir, session) = marked().await;
    session.run("CREATE VIEW v AS SELECT a AS b FROM t").await.unwrap();
    let error = session.run("PIN TABLE v").await.map(|_| ()).unwrap_err();
    assert!(error.message().contains("'v' is a view"), "{error}");
    let error = session.run("SELECT t.b FROM t, v").await.map(|_| ()).unwrap_err();
    assert_eq!(error.hint(), Some("did you mean 'v.b'?"), "{error}");
}
