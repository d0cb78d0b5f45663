//! What is kept of commits: whether one landed, what each did, which met.

use super::*;
use crate::recon::conflicts::{Around, Relation, Verdict, conflicts};
use crate::recon::lookup::{CommitStatus, lookup};

#[tokio::test]
async fn a_commit_is_looked_up_with_proof() {
    let mut bed = Bed::new(&[]);
    for checkpoint in 1..=6 {
        bed.commit("cdc", checkpoint, checkpoint * 10..checkpoint * 10 + 2);
    }
    bed.commit("repair", i64::MAX, 100..103);
    let zone = SessionZone::utc();
    let ask = |history: &History, user: &str, identifier, since: Option<i64>| {
        let found = lookup(history, user, identifier, since.map(SnapshotId), &zone);
        (found.status, found.snapshots.iter().map(|id| id.0).collect::<Vec<_>>(), found.confidence)
    };
    let whole = bed.history().await;
    assert_eq!(ask(&whole, "cdc", 3, None), (CommitStatus::Committed, vec![3], Confidence::Exact));
    assert_eq!(ask(&whole, "cdc", 7, None), (CommitStatus::NotCommitted, vec![], Confidence::Exact));
    assert_eq!(ask(&whole, "cdc", 0, None), (CommitStatus::Superseded, vec![6], Confidence::Exact));
    assert_eq!(ask(&whole, "repair", i64::MAX, None), (CommitStatus::Committed, vec![7], Confidence::Exact));
    assert_eq!(ask(&whole, "spark-fix-7", 1, None), (CommitStatus::NotCommitted, vec![], Confidence::Exact));
    bed.table.tag("eod", 2).unwrap();
    for id in [1, 2, 3] {
        bed.table.expire(id).unwrap();
    }
    let cut = bed.history().await;
    assert_eq!(ask(&cut, "cdc", 2, None), (CommitStatus::Committed, vec![2], Confidence::Exact), "the tag holds it");
    assert_eq!(ask(&cut, "cdc", 3, None).0, CommitStatus::Superseded);
    // 1 is gone: it may have been anything; and 3 is missing behind the tag
    assert_eq!(ask(&cut, "spark-fix-7", 1, None).0, CommitStatus::Unknown);
    fs::remove_file(bed.table.root().join("tag/tag-eod")).unwrap();
    let cut = bed.history().await;
    assert_eq!(ask(&cut, "spark-fix-7", 1, None).0, CommitStatus::Unknown);
    assert_eq!(ask(&cut, "spark-fix-7", 1, Some(3)), (CommitStatus::NotCommitted, vec![], Confidence::Exact));
    assert_eq!(ask(&cut, "spark-fix-7", 1, Some(2)).0, CommitStatus::Unknown, "3 is not kept");
    assert_eq!(ask(&cut, "cdc", 7, None).0, CommitStatus::Unknown, "what is only likely is not known");
    // one missing from between, and none that is torn, is taken for empty
    bed.table.expire(5).unwrap();
    let cut = bed.history().await;
    assert_eq!(ask(&cut, "cdc", 7, None).0, CommitStatus::Unknown);
    assert_eq!(ask(&cut, "spark-fix-7", 1, Some(3)).0, CommitStatus::Unknown);
}

#[tokio::test]
async fn commits_are_runs_with_what_they_did() {
    use crate::recon::commits::{commit_rates, commits};
    let mut bed = Bed::new(&[]);
    let start = |at: i64| Some(START + at * 1_000);
    bed.commit_of("cdc", 1, CommitKind::Append, 0, 0..5, start(0));
    let rows = [json!({"id": 1, "v": "c", "dt": "d", "_SEQUENCE_NUMBER": 1})];
    let whole = bed.table.commit().remove_all().file(FileSpec::rows(&rows).level(5)).kind(CommitKind::Compact);
    whole.user("cdc").identifier(1).time_millis(START + 1_000).publish().unwrap();
    bed.commit_of("repair", 9, CommitKind::Append, 0, 50..53, start(2));
    bed.table.commit().user("cdc").identifier(2).time_millis(START + 61_000).publish().unwrap();
    let history = bed.history().await;
    let texts = history.texts(&SessionZone::utc()).await.unwrap();
    let runs = commits(&history, &texts).await.unwrap();
    let shown: Vec<_> = runs
        .iter()
        .map(|run| {
            let total = run.total();
            let ids: Vec<i64> = run.snapshots.iter().map(|snapshot| snapshot.id.0).collect();
            (run.user.as_str(), run.identifier, ids, total.added, total.added_rows, total.deleted_rows, run.gap_millis)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("cdc", 1, vec![1, 2], 2, 6, 5, None),
            ("repair", 9, vec![3], 1, 3, 0, None),
            ("cdc", 2, vec![4], 0, 0, 0, Some(60_000))
        ]
    );
    assert_eq!(runs.iter().map(|run| run.is_empty()).collect::<Vec<_>>(), [Some(false), Some(false), Some(true)]);
    let rates = commit_rates(&runs, MINUTE);
    let of_cdc: Vec<_> = rates.iter().filter(|r| r.user == "cdc").map(|r| (r.commits, r.snapshots, r.empty)).collect();
    assert_eq!(of_cdc, [(1, 2, 0), (1, 1, 1)]);
}

#[tokio::test]
async fn commits_that_met_are_told_with_what_they_share() {
    let all = Around::Times(i64::MIN, i64::MAX);
    let told = async |bed: &Bed, around| {
        let found = conflicts(&bed.history().await, around, &SessionZone::utc()).await.unwrap();
        found
            .pairs
            .into_iter()
            .map(|c| (c.commit.id.0, c.opponent.id.0, c.relation, c.attempts, c.first_base.0.0, c.inverted, c.verdict))
            .collect::<Vec<_>>()
    };
    // the repair began to write before the stream's second commit, which has higher sequence numbers
    let mut bed = Bed::new(&[]);
    bed.stamped("cdc", CommitKind::Append, START, START, 0..5);
    bed.stamped("cdc", CommitKind::Append, START + 8 * MINUTE, START + 8 * MINUTE, 10..60);
    for at in [20, 21] {
        bed.stamped("repair", CommitKind::Append, START + at * MINUTE, START + at * MINUTE, at..at + 1);
    }
    bed.stamped("repair", CommitKind::Append, START + 30 * MINUTE, START + 7 * MINUTE, 3..4);
    // published at once: it stood on 4, whatever came while it was writing
    let overlap = (5, 2, Relation::OverlappingWindow, Some(1), 4, true, Verdict::WrongCoWriting);
    assert!(told(&bed, all).await.contains(&overlap), "{:?}", told(&bed, all).await);
    assert!(told(&bed, Around::Snapshot(SnapshotId(2))).await.contains(&overlap));
    assert!(told(&bed, Around::Times(0, START + 20 * MINUTE)).await.is_empty(), "before it");
    // with a sequence field commit order does not matter
    let mut ordered = Bed::new(&[("sequence.field", "v")]);
    ordered.stamped("cdc", CommitKind::Append, START, START, 0..5);
    ordered.stamped("repair", CommitKind::Append, START + MINUTE, START + MINUTE, 0..1);
    ordered.stamped("cdc", CommitKind::Append, START + 8 * MINUTE, START + 8 * MINUTE, 10..60);
    ordered.stamped("repair", CommitKind::Append, START + 10 * MINUTE, START + 7 * MINUTE, 3..4);
    let verdicts: Vec<Verdict> = told(&ordered, all).await.into_iter().map(|one| one.6).collect();
    assert_eq!(verdicts, [Verdict::NormalCompetition]);
    // a committer object whose lists go on by four has tried twice
    let mut raced = Bed::new(&[]);
    let lists = |bed: &Bed, snapshot: i64, first: u64| {
        bed.patch(snapshot, |document| {
            let folder = bed.table.root().join("manifest");
            for (field, number) in [("baseManifestList", first), ("deltaManifestList", first + 1)] {
                let name = format!("manifest-list-0000000b-0000-0000-0000-000000000000-{number}");
                fs::rename(folder.join(document[field].as_str().unwrap()), folder.join(&name)).unwrap();
                document[field] = json!(name);
            }
        });
    };
    raced.stamped("b", CommitKind::Append, START, START, 0..5);
    lists(&raced, 1, 0);
    raced.stamped("a", CommitKind::Append, START + 2 * MINUTE, START + 2 * MINUTE, 5..9);
    raced.stamped("b", CommitKind::Append, START + 3 * MINUTE, START + MINUTE, 20..25);
    lists(&raced, 3, 4);
    let race = (3, 2, Relation::LostRace, Some(2), 1, false, Verdict::NormalCompetition);
    assert_eq!(told(&raced, all).await, [race]);
    // what an overwrite removed; what a compaction put together is asked for by name
    raced.stamped("c", CommitKind::Overwrite, START + 9 * MINUTE, START + 9 * MINUTE, 0..1);
    let overwrote: Vec<_> = told(&raced, Around::Snapshot(SnapshotId(4))).await;
    assert_eq!(
        overwrote.iter().map(|one| (one.1, one.2)).collect::<Vec<_>>(),
        [(1, Relation::Overwrote), (2, Relation::Overwrote), (3, Relation::Overwrote)]
    );
}

#[tokio::test]
async fn what_an_attempt_left_tells_its_base_exactly() {
    let mut bed = Bed::new(&[]);
    bed.commit("a", 1, 0..5);
    let mut other = TableBuilder::open(bed.dir.path(), "d", "t").unwrap();
    let rows = [json!({"id": 50, "v": "b", "dt": "d", "_SEQUENCE_NUMBER": 50})];
    let first = other.commit().file(FileSpec::rows(&rows)).user("b").identifier(1).prepare().unwrap();
    let entry = entries_of(&bed.table, &first.snapshot().delta_manifest_list).remove(0);
    for checkpoint in [2, 3] {
        bed.commit("a", checkpoint, checkpoint * 5..checkpoint * 5 + 4);
    }
    bed.table.commit().entry(entry).user("b").identifier(1).publish().unwrap();
    let met = async |bed: &Bed| {
        let around = Around::Snapshot(SnapshotId(4));
        let found = conflicts(&bed.history().await, around, &SessionZone::utc()).await.unwrap();
        let told = found.pairs.into_iter().map(|one| {
            (one.opponent.id.0, one.relation, (one.first_base.0.0, one.first_base.1), one.latest.0, one.attempts)
        });
        (told.collect::<Vec<_>>(), found.unpublished)
    };
    // it stood on 1, and met 2, or 3 right away
    let base = (1, Confidence::Exact);
    let lost = |opponent| (opponent, Relation::LostRace, base, opponent, None);
    assert_eq!(met(&bed).await, (vec![lost(2), lost(3)], 0));
    // without it that is guessed
    for list in [&first.snapshot().base_manifest_list, &first.snapshot().delta_manifest_list] {
        fs::remove_file(bed.table.root().join("manifest").join(list)).unwrap();
    }
    let (told, _) = met(&bed).await;
    assert!(told.iter().all(|one| one.2.1 != Confidence::Exact && one.1 != Relation::LostRace), "{told:?}");
    // one that was never published is counted
    let lost = other.commit().file(FileSpec::rows(&rows)).user("c").prepare().unwrap();
    aged(&bed.table, &lost.snapshot().delta_manifest_list);
    assert_eq!(met(&bed).await.1, 1);
}

#[tokio::test]
async fn two_committers_of_one_user_that_meet_are_suspicious() {
    let all = Around::Times(i64::MIN, i64::MAX);
    for (instances, suspicious) in [([1, 2, 1], vec![(3, 2)]), ([1, 2, 2], vec![]), ([1, 2, 3], vec![])] {
        let mut bed = Bed::new(&[]);
        for (snapshot, instance) in (1i64..).zip(instances) {
            bed.commit("cdc", snapshot, snapshot * 10..snapshot * 10 + 2);
            bed.by_instance(snapshot, instance);
        }
        let found = conflicts(&bed.history().await, all, &SessionZone::utc()).await.unwrap();
        let told: Vec<(i64, i64)> = found
            .pairs
            .iter()
            .filter(|one| one.verdict == Verdict::Suspicious)
            .map(|one| (one.commit.id.0, one.opponent.id.0))
            .collect();
        assert_eq!(told, suspicious, "{instances:?}");
    }
}
