//! `t$retention`: until when each snapshot is kept, and by what.

use super::*;

#[tokio::test]
async fn retention_tells_the_end_of_every_kept_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(&[("id", "INT NOT NULL"), ("v", "INT")])
        .primary_key(&["id"])
        .option("bucket", "1")
        .option("snapshot.num-retained.min", "2")
        .option("snapshot.num-retained.max", "100")
        .option("snapshot.time-retained", "1 h");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    let now = crate::storage::env::now_millis();
    for id in 1..=5 {
        let row = [json!({"id": id, "v": id})];
        table.commit().file(FileSpec::rows(&row)).time_millis(now - (5 - id) * 600_000).publish().unwrap();
    }
    table.tag("eod", 1).unwrap();
    table.tag("eod-2", 2).unwrap();
    // held by its tag alone
    table.expire(1).unwrap();
    let session = session_of(&dir).await;
    let kept = "SELECT snapshot_id, expires_about IS NULL, protected_by, reason FROM t$retention";
    assert_eq!(
        rows(&session, kept).await,
        [
            "1,true,tag eod,tag 'eod' holds it until somebody deletes the tag",
            "2,true,tag eod-2,tag 'eod-2' holds it until somebody deletes the tag",
            "3,false,NULL,NULL",
            "4,false,newest 2,NULL",
            "5,false,newest 2,NULL",
        ]
    );
    // an hour after its successor came
    let when = "SELECT abs(date_part('epoch', expires_about - commit_time) - 4200) < 60 FROM t$retention WHERE snapshot_id = 3";
    assert_eq!(rows(&session, when).await, ["true"]);
    rows(&session, "PIN TABLE t AT (VERSION => 3)").await;
    assert_eq!(rows(&session, "SELECT snapshot_id FROM t$retention WHERE pinned").await, ["3"]);
}
