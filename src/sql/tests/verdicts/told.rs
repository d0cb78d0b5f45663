//! What a verdict says of what it does not know: no more than was looked at.

use super::*;

/// What a statement gives.
async fn judged(dir: &TempDir, sql: &str) -> Verdict {
    let session = session_of(dir).await;
    let found = session.verdict(sql, None).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    found.verdict
}

#[tokio::test]
async fn a_count_that_cannot_be_tested_is_not_equal() {
    let (dir, mut table) = payments(&[]);
    let outcome = |found: &Verdict| (found.summary.outcome.clone(), found.summary.clean);
    // rows that are not those of one table
    let found = judged(&dir, "RECONCILE pay.t$ro WITH COUNT 503").await;
    assert_eq!(outcome(&found), ("COUNT_NOT_DETERMINED".into(), false), "{}", found.text());
    assert!(found.text().contains("their count could not be tested"), "{}", found.text());
    assert!(found.page().contains("<h1>The count could not be tested</h1>"));
    // nor is it beside rows that are equal
    let beside = "RECONCILE pay.t$ro WITH pay.t$ro ON KEY (dt, id) THEIR COUNT 503";
    assert_eq!(outcome(&judged(&dir, beside).await), ("COUNT_NOT_DETERMINED".into(), false));
    let beside = "RECONCILE pay.t WITH pay.t ON KEY (dt, id) THEIR COUNT 41";
    assert_eq!(outcome(&judged(&dir, beside).await), ("COUNT_DIFFERENT".into(), false));
    let beside = "RECONCILE pay.t WITH pay.t ON KEY (dt, id) THEIR COUNT 40";
    assert_eq!(outcome(&judged(&dir, beside).await), ("EQUAL".into(), true));
    // a lost manifest list
    let last = table.commit().user("cdc").identifier(3).file(FileSpec::rows(&[row(1, "1.00", "NEW", 500)]));
    let last = last.publish().unwrap();
    std::fs::remove_file(table.root().join("manifest").join(&last.base_manifest_list)).unwrap();
    let found = judged(&dir, "RECONCILE pay.t WITH COUNT 40").await;
    assert_eq!(outcome(&found), ("COUNT_NOT_DETERMINED".into(), false), "{}", found.text());
    // a table without a snapshot has no row, and that is a count
    let dir = tempfile::tempdir().unwrap();
    TableBuilder::create(dir.path(), "pay", "t", &TableSpec::new(&[("id", "BIGINT NOT NULL")]).primary_key(&["id"]))
        .unwrap();
    let found = judged(&dir, "RECONCILE pay.t WITH COUNT 503").await;
    assert_eq!(outcome(&found), ("COUNT_DIFFERENT".into(), false), "{}", found.text());
    assert_eq!(found.count_test.as_ref().map(|test| (test.theirs, test.ours)), Some((503, 0)));
    let found = judged(&dir, "RECONCILE pay.t WITH COUNT 0").await;
    assert_eq!(outcome(&found), ("COUNT_EQUAL".into(), true), "{}", found.text());
    assert!(found.page().contains("<h1>The counts are equal</h1>"));
}

#[tokio::test]
async fn a_sample_an_early_end_and_the_notes_of_a_comparison_are_told() {
    let (dir, _) = payments(&[]);
    let found = verdict_at(&dir, "", &source(&[], &[]), "SAMPLE 50 PERCENT BY KEY HASH VERDICT").await;
    let rows = found.source.as_ref().unwrap().rows;
    assert!((1..40).contains(&rows), "{}", found.text());
    assert_eq!((found.summary.outcome.as_str(), found.summary.clean), ("NO_DIFFERENCE_IN_SAMPLE", true));
    assert!(found.summary.line.starts_with(&format!("no difference in a sample of {rows} rows")), "{}", found.text());
    let (text, page) = (found.text(), found.page());
    assert!(page.contains(&format!("<h1>No difference in a sample of {rows} rows</h1>")), "{page}");
    for told in [&text, &page, &found.json().unwrap()] {
        assert!(
            told.contains("50 percent of the keys were looked at") && !told.to_lowercase().contains("nothing differs")
        );
    }
    let session = session_of(&dir).await;
    let sql = format!(
        "RECONCILE pay.t WITH ({}) ON KEY (dt, id) SAMPLE 50 PERCENT BY KEY HASH VERDICT INTO why",
        source(&[], &[])
    );
    all(session.run_one(&sql).await.unwrap()).await;
    let kept = super::super::rows(&session, "SELECT text FROM why WHERE part = 'note'").await;
    assert!(kept.iter().any(|note| note.contains("50 percent of the keys")), "{kept:?}");
    // ended early
    let without: Vec<i64> = (1..=30).collect();
    let found = verdict_at(&dir, "", &source(&without, &[]), "STOP AFTER 3 VERDICT").await;
    assert!(found.summary.stopped && found.summary.line.starts_with("at least 3 findings"), "{}", found.text());
    assert!(found.undetermined.iter().any(|limit| limit.why.contains("ended early")), "{}", found.text());
    assert!(found.page().contains("findings at least"));
    let whole = verdict(&dir, &source(&without, &[])).await;
    assert!(!whole.summary.stopped && whole.summary.line.starts_with("30 findings"), "{}", whole.text());
}

#[tokio::test]
async fn a_side_without_a_state_is_not_compared_twice() {
    let (dir, _) = payments(&[]);
    for moving in ["WHERE random() >= 0", "WHERE now() IS NOT NULL", "LIMIT 1000"] {
        let found = verdict(&dir, &format!("SELECT * FROM ({}) AS x {moving}", source(&[], &[]))).await;
        let Rerun::NotTried(why) = &found.source.as_ref().unwrap().rerun else { panic!("{moving}: {}", found.text()) };
        assert!(why.contains("not fixed at a state"), "{moving}: {why}");
        assert!(found.text().contains(&format!("compared once: {why}")), "{}", found.text());
    }
}

#[tokio::test]
async fn a_count_of_the_sources_own_rows_is_no_counting_rule() {
    let (dir, mut table) = payments(&[]);
    commit(&mut table, "cdc", 3, &[row(1, "1.00", "NEW", 500), row(2, "2.00", "NEW", 501)]);
    // R 42 = X 2 + N 40, and the source has 42 rows
    let missing = [(41, "41.00", "NEW"), (42, "42.00", "NEW")];
    let found = verdict_at(&dir, "", &source(&[], &missing), "THEIR COUNT 42").await;
    let test = found.count_test.as_ref().unwrap();
    assert_eq!((test.theirs, test.ours, test.layer), (42, 40, None), "{}", found.text());
    assert_eq!(found.summary.layer, Some(Layer::Upstream), "{}", found.text());
}

#[tokio::test]
async fn a_commit_kept_for_its_changes_alone_is_no_state_to_name() {
    let (dir, mut table) = payments(&[]);
    commit(&mut table, "cdc", 3, &[row(41, "41.00", "NEW", 100)]);
    let root = table.root().to_path_buf();
    std::fs::create_dir_all(root.join("changelog")).unwrap();
    for id in 1..=2 {
        let from = root.join(format!("snapshot/snapshot-{id}"));
        std::fs::rename(from, root.join(format!("changelog/changelog-{id}"))).unwrap();
    }
    let found = verdict(&dir, &source(&[], &[])).await;
    let case = case(&found, 41);
    assert_eq!((case.class, case.clean_until), (crate::sql::Class::ExtraInLake, None), "{}", found.text());
}

/// `pay.t`: rows of user `cdc`, then of `repair`, with a column of times.
fn times(columns: &[(&str, &str)], key: &str, first: &[Row], second: &[Row]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let spec = TableSpec::new(columns).primary_key(&[key]).option("bucket", "1");
    let mut table = TableBuilder::create(dir.path(), "pay", "t", &spec).unwrap();
    commit(&mut table, "cdc", 1, first);
    commit(&mut table, "repair", 1, second);
    dir
}

fn instant(text: &str) -> String {
    format!("arrow_cast('{text}', 'Timestamp(Millisecond, Some(\"UTC\"))')")
}

#[tokio::test]
async fn a_value_in_another_type_is_found_in_the_history_it_has_in_the_table() {
    let paid = |at: &str, sequence: i64| json!({"id": 1, "paid": at, "_SEQUENCE_NUMBER": sequence});
    let dir = times(
        &[("id", "BIGINT NOT NULL"), ("paid", "TIMESTAMP(3)")],
        "id",
        &[paid("2026-04-16 10:00:00", 1)],
        &[paid("2026-04-16 11:00:00", 2)],
    );
    let sql = format!(
        "RECONCILE pay.t WITH (SELECT 1 AS id, {} AS paid) ON KEY (id) ZONE '+08:00' VERDICT",
        instant("2026-04-16T02:00:00Z")
    );
    let found = judged(&dir, &sql).await;
    let case = case(&found, 1);
    assert_eq!(case.reason.as_deref(), Some("SUPERSEDED_BY_SEQUENCE"), "{}", found.text());
    assert_eq!((told(&found, 1), case.clean_until), ((Some(Layer::CoWriting), Some(2)), Some(1)));
}

#[tokio::test]
async fn a_key_in_another_type_is_looked_up_as_the_table_has_it() {
    for (declared, text) in
        [("TIMESTAMP(3) NOT NULL", "2026-04-16 10:00:00"), ("TIMESTAMP_LTZ(3) NOT NULL", "2026-04-16 02:00:00")]
    {
        let paid = json!({"paid": text, "v": 1, "_SEQUENCE_NUMBER": 1});
        let gone = json!({"paid": text, "v": 1, "_SEQUENCE_NUMBER": 2, "_ROW_KIND": "-D"});
        let dir = times(&[("paid", declared), ("v", "INT")], "paid", &[paid], &[gone]);
        let sql = format!(
            "RECONCILE pay.t WITH (SELECT {} AS paid, 1 AS v) ON KEY (paid) ZONE '+08:00' VERDICT",
            instant("2026-04-16T02:00:00Z")
        );
        let found = judged(&dir, &sql).await;
        let reason = found.keys[0].reason.as_deref();
        assert_eq!(reason, Some("TOMBSTONED"), "{declared}: {}", found.text());
    }
}

#[tokio::test]
async fn a_key_of_which_digits_were_left_out_has_no_history_made_up() {
    let paid =
        |at: &str, sequence: i64| json!({"paid": format!("2026-04-16 {at}"), "v": 1, "_SEQUENCE_NUMBER": sequence});
    let gone = |at: &str, sequence: i64| {
        let mut row = paid(at, sequence);
        row["_ROW_KIND"] = json!("-D");
        row
    };
    let dir = times(
        &[("paid", "TIMESTAMP(6) NOT NULL"), ("v", "INT")],
        "paid",
        &[paid("10:00:00.123456", 1), paid("10:00:00.200000", 2), paid("10:00:00.500001", 3)],
        &[gone("10:00:00.200000", 4), gone("10:00:00.500001", 5)],
    );
    let sql = "RECONCILE pay.t WITH (SELECT arrow_cast(x, 'Timestamp(Millisecond, None)') AS paid, 1 AS v FROM (VALUES \
               ('2026-04-16T10:00:00.200'), ('2026-04-16T10:00:00.500')) AS s(x)) ON KEY (paid) VERDICT";
    let found = judged(&dir, sql).await;
    let of = |end: &str| {
        let is_it = |case: &&KeyCase| case.key[0].1.as_deref().is_some_and(|key| key.ends_with(end));
        found.keys.iter().find(is_it).unwrap_or_else(|| panic!("{end}: {}", found.text()))
    };
    // the key that was deleted is .500001, the one that is there .123456
    for end in [".500", ".123"] {
        let case = of(end);
        assert_eq!((case.layer, case.reason.as_deref()), (None, None), "{end}: {}", found.text());
        assert!(case.sentence.contains("several keys of the table"), "{}", case.sentence);
    }
    assert_eq!(of(".200").reason.as_deref(), Some("TOMBSTONED"));
}
