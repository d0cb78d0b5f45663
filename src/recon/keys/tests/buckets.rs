//! Keys of tables whose buckets are rescaled, dynamic or postponed.

use super::*;

fn key(id: i32) -> [ScalarValue; 1] {
    [ScalarValue::Int32(Some(id))]
}

/// Bucket in which each state shows the key.
async fn buckets(warehouse: &Path, id: i32) -> Vec<(i64, i32)> {
    let past = past(warehouse, id).await;
    past.spans.iter().filter(|span| span.seen.is_row()).map(|span| (span.from.0, span.unit.1)).collect()
}

#[tokio::test]
async fn a_rescaled_table_is_asked_in_the_bucket_of_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut t = table(path, &[("bucket", "2")]);
    let ids = 0..12;
    t.append(&ids.clone().map(|id| row(id, 1, i64::from(id))).collect::<Vec<_>>()).unwrap();
    t.alter(&SchemaChange::Set("bucket", "8")).unwrap();
    // all but one are written into the new buckets
    let kept: Vec<Json> = ids.clone().filter(|id| *id != 7).map(|id| row(id, 2, 100 + i64::from(id))).collect();
    t.commit().file(FileSpec::rows(&kept)).remove_all().kind(CommitKind::Overwrite).user("rescale").publish().unwrap();
    t.append(&[row(3, 3, 200)]).unwrap();
    let mut moved = 0;
    for id in ids.filter(|id| *id != 7) {
        assert_eq!(why(path, id, 1).await, (Reason::ValueFrom, Some(1)), "{id}");
        assert_eq!(why(path, id, 2).await, (Reason::ValueFrom, Some(2)), "{id}");
        let found = buckets(path, id).await;
        assert_eq!(found.len(), if id == 3 { 3 } else { 2 }, "{id}: {found:?}");
        moved += usize::from(found[0].1 != found[1].1);
    }
    assert!(moved > 3, "{moved} keys have another bucket now");
    assert_eq!(why(path, 7, 3).await, (Reason::RemovedByOverwrite, Some(2)));
    assert_eq!(why(path, 3, 3).await, (Reason::ValueFrom, Some(3)));
}

#[tokio::test]
async fn a_key_of_dynamic_buckets_is_found_in_whichever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut t = table(path, &[("bucket", "-1")]);
    t.commit().file(FileSpec::rows(&[row(1, 1, 1), row(2, 2, 2)]).bucket(5)).publish().unwrap();
    t.commit().file(FileSpec::rows(&[row(1, 7, 3)]).bucket(5)).publish().unwrap();
    t.commit().file(FileSpec::rows(&[gone(2, 4)]).bucket(5)).publish().unwrap();
    assert_eq!(why(path, 1, 3).await, (Reason::ValueFrom, Some(2)));
    assert_eq!(why(path, 2, 3).await, (Reason::Tombstoned, Some(3)));
    assert_eq!(why(path, 9, 3).await, (Reason::NeverSeen, None));
    // a writer whose hash index was lost puts it into another one
    t.commit().file(FileSpec::rows(&[row(1, 8, 5)]).bucket(0)).publish().unwrap();
    let (reason, _, sentence) = why_at(path, &key(1), 4, None).await;
    assert_eq!(reason, Reason::OtherBucket, "{sentence}");
    assert!(sentence.contains("there 2 times") && sentence.contains("D-13"), "{sentence}");
    assert_eq!(buckets(path, 1).await, [(1, 5), (2, 5), (4, 0)]);
}

#[tokio::test]
async fn a_postponed_key_is_hidden_until_it_is_compacted_into_its_bucket() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let mut t = table(path, &[("bucket", "-2")]);
    t.commit().file(FileSpec::rows(&[row(1, 1, 1), row(2, 2, 2)]).bucket(-2)).publish().unwrap();
    assert_eq!(why(path, 1, 1).await, (Reason::HiddenPostpone, Some(1)));
    let real = FileSpec::rows(&[row(1, 1, 1), row(2, 2, 2)]).bucket(3).level(5);
    t.commit().file(real).remove_all().kind(CommitKind::Compact).publish().unwrap();
    t.commit().file(FileSpec::rows(&[row(2, 9, 3)]).bucket(-2)).publish().unwrap();
    assert_eq!(why(path, 1, 2).await, (Reason::ValueFrom, Some(1)), "the compaction only moved it");
    assert_eq!(buckets(path, 2).await, [(2, 3)]);
    // its newer value waits
    let (reason, commit, sentence) = why_at(path, &key(2), 3, Some(9)).await;
    assert_eq!((reason, commit), (Reason::HiddenPostpone, Some(3)), "{sentence}");
    assert_eq!(why_at(path, &key(2), 3, Some(2)).await.0, Reason::ValueFrom);
}
