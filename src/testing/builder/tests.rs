use serde_json::json;

use super::*;
use crate::spec::CommitKind;

fn payments() -> TableSpec {
    TableSpec::new(&[("pay_id", "STRING NOT NULL"), ("amount", "DECIMAL(12, 2)"), ("dt", "DATE NOT NULL")])
        .partitioned_by(&["dt"])
        .primary_key(&["dt", "pay_id"])
        .option("bucket", "2")
}

#[test]
fn commits_route_rows_and_replace_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &payments()).unwrap();
    let rows: Vec<_> =
        (0..20).map(|i| json!({"pay_id": format!("P{i}"), "amount": "1.50", "dt": "2026-04-16"})).collect();
    let first = table.append(&rows).unwrap();
    assert_eq!((first.id.0, first.total_record_count), (1, Some(20)));
    let live = table.live_files().unwrap();
    assert_eq!(live.len(), 2, "one file a bucket");
    let second = table
        .commit()
        .file(FileSpec::rows(&rows[..5]).level(5))
        .remove_all()
        .kind(CommitKind::Compact)
        .publish()
        .unwrap();
    assert_eq!(second.total_record_count, Some(5));
    assert!(table.live_files().unwrap().iter().all(|e| e.file.level == 5));
    assert!(table.root().join("dt=20559/bucket-0").is_dir(), "legacy partition names");
}

#[test]
fn a_published_id_is_not_taken_twice() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &payments()).unwrap();
    let row = [json!({"pay_id": "P1", "amount": "1.50", "dt": "2026-04-16"})];
    let one = table.commit().file(FileSpec::rows(&row)).prepare().unwrap();
    let other = table.commit().file(FileSpec::rows(&row)).prepare().unwrap();
    one.publish().unwrap();
    assert_eq!(other.publish().unwrap_err().kind(), crate::error::ErrorKind::Conflict);
}
