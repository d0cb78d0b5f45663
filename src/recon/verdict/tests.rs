use super::decide::{Facts, layer_of_detector, next};
use super::*;

fn commit(snapshot: i64, user: &str, identifier: &str, kind: &str) -> CommitRef {
    CommitRef {
        snapshot,
        user: user.into(),
        identifier: identifier.into(),
        kind: kind.into(),
        time_ms: snapshot * 60_000,
        time: String::new(),
        watermark_ms: None,
        delta_rows: Some(2),
    }
}

fn cdc(snapshot: i64) -> CommitRef {
    commit(snapshot, "cdc", &snapshot.to_string(), "APPEND")
}

fn facts(class: Class, reason: Reason) -> Facts {
    Facts {
        class: Some(class),
        reason: Some(reason),
        commit: Some(cdc(7)),
        main_user: Some("cdc".into()),
        ..Facts::default()
    }
}

/// Every reason alone, in the class it comes with.
#[test]
fn every_reason_has_its_layer() {
    use Class::{Different, DupLake, ExtraInLake, FilterMismatch, MissingInLake};
    let cases = [
        (MissingInLake, Reason::NeverSeen, Some(Layer::Upstream)),
        (MissingInLake, Reason::NotYetCommitted, Some(Layer::CommitProtocol)),
        (MissingInLake, Reason::CommittedLater, Some(Layer::Upstream)),
        (Different, Reason::SupersededBySequence, Some(Layer::CoWriting)),
        (MissingInLake, Reason::Tombstoned, Some(Layer::Upstream)),
        (MissingInLake, Reason::VectorDeleted, Some(Layer::Upstream)),
        (MissingInLake, Reason::HiddenLevel0, Some(Layer::Visibility)),
        (MissingInLake, Reason::HiddenPostpone, Some(Layer::Visibility)),
        (MissingInLake, Reason::RemovedByOverwrite, Some(Layer::OperationOnTable)),
        (MissingInLake, Reason::DroppedPartition, Some(Layer::OperationOnTable)),
        (MissingInLake, Reason::RolledBack, Some(Layer::OperationOnTable)),
        (MissingInLake, Reason::ExpiredRecord, Some(Layer::OperationOnTable)),
        (MissingInLake, Reason::LostInCompaction, Some(Layer::Storage)),
        (MissingInLake, Reason::OtherPartition, Some(Layer::Storage)),
        (DupLake, Reason::OtherBucket, Some(Layer::Storage)),
        (Different, Reason::ValueFrom, Some(Layer::Upstream)),
        (ExtraInLake, Reason::ValueFrom, Some(Layer::Upstream)),
        (FilterMismatch, Reason::ValueFrom, Some(Layer::BusinessMapping)),
        (Different, Reason::UnknownBeforeHistory, None),
        // the comparison and the history contradict each other at one snapshot
        (MissingInLake, Reason::ValueFrom, Some(Layer::Engine)),
    ];
    for (class, reason, layer) in cases {
        assert_eq!(facts(class, reason).decide().layer, layer, "{class:?} {reason:?}");
    }
    for class in [Class::Unreadable, Class::NullKey, Class::DupSource] {
        let alone = Facts { class: Some(class), ..Facts::default() };
        assert_eq!(alone.decide().layer, Some(Layer::BusinessMapping), "{class:?}");
    }
}

#[test]
fn what_is_clean_later_is_visibility_whatever_the_reason() {
    for reason in [Reason::CommittedLater, Reason::ValueFrom, Reason::Tombstoned] {
        let found = Facts { clean_at: Some(9), ..facts(Class::Different, reason) }.decide();
        assert_eq!(found.layer, Some(Layer::Visibility));
        assert!(found.more.unwrap().contains("snapshot 9"));
    }
}

#[test]
fn who_wrote_and_when_tells_co_writing_from_a_restored_job_and_from_upstream() {
    let superseded = |winner: CommitRef, loser: CommitRef| {
        let facts = Facts {
            commit: Some(winner),
            expected: Some(loser),
            ..facts(Class::Different, Reason::SupersededBySequence)
        };
        facts.decide()
    };
    let fix = commit(9, "fix", "batch", "APPEND");
    // committed later, and lost
    let found = superseded(cdc(7), fix.clone());
    assert_eq!((found.layer, found.confidence), (Some(Layer::CoWriting), Confidence::Exact));
    assert_eq!(found.commits.iter().map(|commit| commit.snapshot).collect::<Vec<_>>(), [7, 9]);
    assert_eq!(superseded(cdc(7), cdc(9)).layer, Some(Layer::CommitProtocol));
    // written over by another
    assert_eq!(superseded(fix, cdc(7)).layer, Some(Layer::CoWriting));
    assert_eq!(superseded(cdc(8), cdc(7)).layer, Some(Layer::Upstream));
    let deleted = |by: CommitRef| {
        Facts { commit: Some(by), before: Some(cdc(3)), ..facts(Class::MissingInLake, Reason::Tombstoned) }
            .decide()
            .layer
    };
    assert_eq!(deleted(commit(9, "purge", "batch", "APPEND")), Some(Layer::OperationOnTable));
    assert_eq!(deleted(commit(9, "other-stream", "4", "APPEND")), Some(Layer::CoWriting));
    assert_eq!(deleted(cdc(9)), Some(Layer::Upstream));
    let extra = |own: Facts| own.decide().layer;
    let base = || facts(Class::ExtraInLake, Reason::ValueFrom);
    assert_eq!(extra(Facts { rose_again: true, ..base() }), Some(Layer::Storage));
    assert_eq!(extra(Facts { lost_later: Some(cdc(9)), ..base() }), Some(Layer::CommitProtocol));
    assert_eq!(extra(Facts { lost_later: Some(commit(9, "fix", "1", "APPEND")), ..base() }), Some(Layer::CoWriting));
    assert_eq!(extra(Facts { commit: Some(commit(9, "fix", "1", "APPEND")), ..base() }), Some(Layer::CoWriting));
}

#[test]
fn a_row_is_in_the_wrong_partition_only_where_the_other_side_lacks_it_there() {
    let mapping = (Some(Layer::BusinessMapping), Confidence::Inferred);
    let told = |class, reason, lone| {
        let mut own = Facts { partition_in_key: true, confidence: Some(Confidence::Exact), ..facts(class, reason) };
        own.place(lone);
        let found = own.decide();
        (found.layer, found.confidence)
    };
    let missing = |extra| told(Class::MissingInLake, Reason::OtherPartition, [extra, Lone::Yes]);
    assert_eq!(missing(Lone::Yes), mapping);
    assert_eq!(missing(Lone::No), (Some(Layer::Upstream), Confidence::Inferred));
    assert_eq!(missing(Lone::Unknown), (Some(Layer::BusinessMapping), Confidence::Heuristic));
    let extra = |missing| told(Class::ExtraInLake, Reason::ValueFrom, [Lone::Yes, missing]);
    assert_eq!(extra(Lone::Yes), mapping);
    assert_eq!(extra(Lone::No), (Some(Layer::Upstream), Confidence::Inferred));
    assert_eq!(extra(Lone::Unknown), (Some(Layer::Upstream), Confidence::Heuristic));
}

#[test]
fn a_change_added_twice_is_mapping_and_under_one_identity_a_broken_commit() {
    let pattern = Pattern::Twice { column: "amount".into(), delta: "5".into() };
    let twice = |first: CommitRef, second: CommitRef| {
        let twice = Some((pattern.clone(), first.clone(), second.clone()));
        let own = facts(Class::Different, Reason::SupersededBySequence);
        Facts { commit: Some(second), expected: Some(first), twice, ..own }.decide()
    };
    let found = twice(commit(5, "fix", "batch", "APPEND"), commit(6, "fix", "batch", "APPEND"));
    assert_eq!((found.layer, found.pattern), (Some(Layer::BusinessMapping), Some(pattern.clone())));
    assert_eq!(found.commits.iter().map(|commit| commit.snapshot).collect::<Vec<_>>(), [6, 5]);
    let found = twice(commit(5, "fix", "7", "APPEND"), commit(6, "fix", "7", "APPEND"));
    assert_eq!(found.layer, Some(Layer::CommitIdentity));
}

#[test]
fn values_decide_only_where_no_history_does() {
    let code = Pattern::Code { column: "s".into(), left: "1".into(), right: "PAID".into() };
    let pattern = Some((code.clone(), Confidence::Inferred));
    let found = Facts { pattern: pattern.clone(), ..facts(Class::Different, Reason::ValueFrom) }.decide();
    assert_eq!((found.layer, found.pattern), (Some(Layer::BusinessMapping), Some(code)));
    let removed = Facts { pattern, ..facts(Class::Different, Reason::RemovedByOverwrite) }.decide();
    assert_eq!((removed.layer, removed.pattern), (Some(Layer::OperationOnTable), None));
    let stray =
        Facts { stray_list: Some("manifest-list-x-1".into()), ..facts(Class::MissingInLake, Reason::NotYetCommitted) };
    assert_eq!(stray.decide().layer, Some(Layer::CommitIdentity));
}

#[test]
fn an_older_source_lacks_every_newer_commit_and_not_one_row() {
    let commits: Vec<CommitRef> = (1..=9).map(cdc).collect();
    let newer = |snapshot: i64| Facts {
        clean_until: Some(6),
        commit: Some(cdc(snapshot)),
        expected: Some(cdc(2)),
        ..facts(Class::Different, Reason::SupersededBySequence)
    };
    // two rows of each of the newest three commits
    let mut all: Vec<Facts> = [7, 7, 8, 8, 9, 9].map(newer).into();
    ahead::mark(&mut all, &commits, 1.0);
    assert!(all.iter().all(|facts| facts.decide().layer == Some(Layer::Visibility)));
    // commit 8 is known to the source: it lacks what came behind it, and what is wrong before it is wrong
    let mut gap: Vec<Facts> = [7, 7, 9, 9].map(newer).into();
    ahead::mark(&mut gap, &commits, 1.0);
    let layers: Vec<_> = gap.iter().filter_map(|facts| facts.decide().layer).collect();
    assert_eq!(layers, [Layer::Upstream, Layer::Upstream, Layer::Visibility, Layer::Visibility]);
    // another user's commit that nothing is known of but its own rows
    let mut foreign: Vec<Facts> = [7, 7].map(newer).into();
    foreign.iter_mut().for_each(|facts| facts.commit = Some(commit(7, "fix", "batch", "APPEND")));
    ahead::mark(&mut foreign, &commits, 1.0);
    assert!(!foreign[0].ahead);
    // it came last, behind two that the source lacks too: then it lacks all three
    let repair = || Facts { commit: Some(commit(9, "fix", "batch", "APPEND")), ..newer(9) };
    let mut behind: Vec<Facts> = [newer(7), newer(7), newer(8), newer(8), repair(), repair()].into();
    ahead::mark(&mut behind, &commits, 1.0);
    assert!(behind.iter().all(|facts| facts.decide().layer == Some(Layer::Visibility)));
    // alone it is what it is
    let mut alone: Vec<Facts> = [repair(), repair()].into();
    ahead::mark(&mut alone, &commits, 1.0);
    assert!(alone.iter().all(|facts| facts.decide().layer == Some(Layer::CoWriting)));
    // one row of the newest commits of many
    let mut few: Vec<Facts> = [7].map(newer).into();
    ahead::mark(&mut few, &commits, 1.0);
    assert!(!few[0].ahead);
}

#[test]
fn two_results_of_one_state_are_the_engines_and_rows_that_do_not_add_up_the_storages() {
    let layer = |rerun: &Rerun, violations: &[&str]| {
        let violations = violations.iter().map(|text| (*text).to_string()).collect();
        engine(Some(rerun), Some(&Counts { violations, ..Counts::default() })).and_then(|cause| cause.layer)
    };
    assert_eq!(layer(&Rerun::Same, &[]), None);
    assert_eq!(layer(&Rerun::NotTried("why".into()), &[]), None);
    assert_eq!(layer(&Rerun::Differs("1, then 2".into()), &["R"]), Some(Layer::Engine));
    assert_eq!(layer(&Rerun::Same, &["R"]), Some(Layer::Storage));
}

#[test]
fn what_differs_from_itself_or_does_not_add_up_is_never_clean() {
    let count = |theirs: u64| count::test(theirs, &Counts { final_rows: 7, ..Counts::default() }, &[], None);
    let sums = Counts { violations: vec!["R".into()], ..Counts::default() };
    for (rerun, counts, sound) in [
        (Rerun::Same, Counts::default(), true),
        (Rerun::Differs("1, then 2".into()), Counts::default(), false),
        (Rerun::Same, sums, false),
    ] {
        let causes: Vec<Cause> = engine(Some(&rerun), Some(&counts)).into_iter().collect();
        let told =
            |theirs| summary(None, Some(CountOutcome::of(Some(&count(theirs)))), &causes, &[], None, causes.is_empty());
        let (same, other) = (told(7), told(8));
        assert_eq!((same.clean, same.sound, other.clean), (sound, sound, false), "{rerun:?}");
        assert_eq!(same.outcome, if sound { "COUNT_EQUAL" } else { "UNSOUND" });
        assert_eq!(
            (same.line.starts_with("their count is the number"), other.outcome.as_str()),
            (sound, "COUNT_DIFFERENT")
        );
        assert_eq!((same.is_decided(), other.is_decided()), (sound, sound));
    }
    // neither passes a check that expects equal sides nor one that expects others
    let unknown = summary(None, Some(CountOutcome::NotDetermined), &[], &[], None, true);
    assert!(!unknown.clean && !unknown.is_decided(), "{unknown:?}");
}

#[test]
fn every_layer_says_what_to_do_and_every_detector_has_one() {
    for layer in Layer::ALL {
        assert!(!next(Some(layer), None).is_empty() && !layer.name().is_empty());
        assert!(page::colour(Some(layer)).starts_with("var(--c"));
    }
    let colours: std::collections::BTreeSet<String> =
        Layer::ALL.iter().map(|layer| page::colour(Some(*layer))).collect();
    assert_eq!(colours.len(), Layer::ALL.len());
    for number in 1..20 {
        assert!(layer_of_detector(&format!("D-{number}")).is_some(), "D-{number}");
    }
}
